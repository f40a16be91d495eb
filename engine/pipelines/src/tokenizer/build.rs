//! Builds the tokenizer that GGUF metadata describes.
//!
//! Two kinds are built: `gpt2`, byte-level BPE with listed merges, and `llama`, SentencePiece BPE,
//! whose merges follow from the scores. The word cutting of the `pre` names is that of the models'
//! own tokenizers; where a file names none, it is llama.cpp's default.

use std::collections::HashMap;

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::prepend::Prepend;
use tokenizers::normalizers::replace::Replace;
use tokenizers::normalizers::utils::Sequence as NormalizerSequence;
use tokenizers::normalizers::{NFC, NormalizerWrapper};
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, PreTokenizerWrapper, SplitDelimiterBehavior};

use super::vocabulary::GgufVocabulary;
use super::{MAX_TOKEN_BYTES, MAX_VOCAB_TOKENS, TokenizerError};

const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// SentencePiece's mark for a blank.
const BLANK: &str = "\u{2581}";

/// Longest token, in characters, whose merges are worked out from scores: each costs its square.
const MAX_MERGED_CHARS: usize = 256;

const LLAMA3_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Cuts of llama.cpp where a file names no `pre`, one after another.
const DEFAULT_CUTS: [&str; 4] = [
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
];

/// How a `pre` name cuts text into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordCut {
    Gpt2,
    /// As GPT-2, each digit alone.
    SmolLm,
    Llama3,
    Qwen2,
    Default,
}

const WORD_CUTS: &[(&str, WordCut)] = &[
    ("default", WordCut::Default),
    ("gpt-2", WordCut::Gpt2),
    ("smollm", WordCut::SmolLm),
    ("starcoder", WordCut::SmolLm),
    ("refact", WordCut::SmolLm),
    ("llama-bpe", WordCut::Llama3),
    ("llama3", WordCut::Llama3),
    ("llama-v3", WordCut::Llama3),
    ("qwen2", WordCut::Qwen2),
    ("deepseek-r1-qwen", WordCut::Qwen2),
];

fn broken(reason: impl std::fmt::Display) -> TokenizerError {
    TokenizerError::Broken(reason.to_string())
}

/// The tokenizer, without begin and end tokens.
pub(super) fn build(vocabulary: &GgufVocabulary) -> Result<tokenizers::Tokenizer, TokenizerError> {
    check(vocabulary)?;
    let mut made = match vocabulary.model.as_str() {
        "gpt2" => byte_level(vocabulary)?,
        "llama" => sentence_piece(vocabulary)?,
        other => {
            return Err(TokenizerError::UnknownKind {
                what: "tokenizer.ggml.model",
                got: other.chars().take(80).collect(),
                known: "gpt2, llama".to_owned(),
            });
        }
    };
    add_marks(&mut made, vocabulary)?;
    Ok(made)
}

/// Counts and ids, before anything is built.
fn check(vocabulary: &GgufVocabulary) -> Result<(), TokenizerError> {
    let count = vocabulary.tokens.len();
    if count == 0 || count > MAX_VOCAB_TOKENS {
        return Err(broken(format!(
            "it has {count} tokens, expected 1 to {MAX_VOCAB_TOKENS}"
        )));
    }
    for (name, len) in [
        ("token types", vocabulary.token_types.len()),
        ("scores", vocabulary.scores.len()),
    ] {
        if len != 0 && len != count {
            return Err(broken(format!("it has {len} {name}, expected {count}")));
        }
    }
    for (name, token) in [
        ("begin", vocabulary.bos),
        ("end", vocabulary.eos),
        ("end of turn", vocabulary.eot),
        ("end of message", vocabulary.eom),
        ("unknown", vocabulary.unknown),
    ] {
        if let Some(token) = token
            && token as usize >= count
        {
            return Err(broken(format!(
                "its {name} token is {token}, expected an id under {count}"
            )));
        }
    }
    for (id, name) in vocabulary.tokens.iter().enumerate() {
        if name.len() > MAX_TOKEN_BYTES {
            return Err(broken(format!(
                "token {id} is {} bytes long, expected at most {MAX_TOKEN_BYTES}",
                name.len()
            )));
        }
    }
    Ok(())
}

/// Names to ids; of two tokens of one name the first counts.
fn vocab(vocabulary: &GgufVocabulary) -> Vocab {
    let mut vocab = Vocab::default();
    for (id, name) in vocabulary.tokens.iter().enumerate() {
        vocab.entry(name.clone()).or_insert(id as u32);
    }
    vocab
}

fn byte_level(vocabulary: &GgufVocabulary) -> Result<tokenizers::Tokenizer, TokenizerError> {
    let pre = vocabulary.pre.as_deref().unwrap_or("default");
    let cut = WORD_CUTS
        .iter()
        .find(|(name, _)| *name == pre)
        .map(|(_, cut)| *cut)
        .ok_or_else(|| TokenizerError::UnknownKind {
            what: "tokenizer.ggml.pre",
            got: pre.chars().take(80).collect(),
            known: WORD_CUTS
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
    let merges = vocabulary
        .merges
        .iter()
        .enumerate()
        .map(|(at, merge)| {
            // A blank never stands in a name: byte-level names write it as U+0120.
            match merge.split_once(' ') {
                Some((left, right)) if !left.is_empty() && !right.is_empty() => {
                    Ok((left.to_owned(), right.to_owned()))
                }
                _ => Err(broken(format!(
                    "merge {at} is {:?}, expected two names with a blank between",
                    merge.chars().take(80).collect::<String>()
                ))),
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let model = BPE::builder()
        .vocab_and_merges(vocab(vocabulary), merges)
        .ignore_merges(cut == WordCut::Llama3)
        .build()
        .map_err(broken)?;
    let mut made = tokenizers::Tokenizer::new(model);
    if cut == WordCut::Qwen2 {
        made.with_normalizer(Some(NFC)).map_err(broken)?;
    }
    made.with_pre_tokenizer(Some(pre_tokenizer(cut)?));
    made.with_decoder(Some(ByteLevel::new(false, true, true)));
    Ok(made)
}

fn pre_tokenizer(cut: WordCut) -> Result<Sequence, TokenizerError> {
    let split = |pattern: &str| -> Result<PreTokenizerWrapper, TokenizerError> {
        Split::new(
            SplitPattern::Regex(pattern.to_owned()),
            SplitDelimiterBehavior::Isolated,
            false,
        )
        .map(PreTokenizerWrapper::from)
        .map_err(broken)
    };
    let bytes = |cuts_words: bool| ByteLevel::new(false, true, cuts_words).into();
    Ok(Sequence::new(match cut {
        WordCut::Gpt2 => vec![bytes(true)],
        WordCut::SmolLm => vec![Digits::new(true).into(), bytes(true)],
        WordCut::Llama3 => vec![split(LLAMA3_WORDS)?, bytes(false)],
        WordCut::Qwen2 => vec![split(QWEN2_WORDS)?, bytes(false)],
        WordCut::Default => {
            let mut cuts = DEFAULT_CUTS
                .iter()
                .map(|pattern| split(pattern))
                .collect::<Result<Vec<_>, _>>()?;
            cuts.push(bytes(false));
            cuts
        }
    }))
}

fn sentence_piece(vocabulary: &GgufVocabulary) -> Result<tokenizers::Tokenizer, TokenizerError> {
    if vocabulary.scores.is_empty() {
        return Err(broken("it has no scores, which its kind merges by"));
    }
    let unknown = vocabulary
        .unknown
        .and_then(|id| vocabulary.tokens.get(id as usize))
        .or_else(|| vocabulary.tokens.iter().find(|name| *name == "<unk>"));
    let mut builder = BPE::builder()
        .vocab_and_merges(vocab(vocabulary), merges_of_scores(vocabulary))
        .byte_fallback(true)
        .fuse_unk(true);
    if let Some(name) = unknown {
        builder = builder.unk_token(name.clone());
    }
    let mut made = tokenizers::Tokenizer::new(builder.build().map_err(broken)?);
    let prefixed = vocabulary.add_space_prefix.unwrap_or(true);
    let mut normalizers: Vec<NormalizerWrapper> = Vec::new();
    if prefixed {
        normalizers.push(Prepend::new(BLANK.to_owned()).into());
    }
    normalizers.push(Replace::new(" ", BLANK).map_err(broken)?.into());
    made.with_normalizer(Some(NormalizerSequence::new(normalizers)))
        .map_err(broken)?;
    let mut decoders = vec![
        Replace::new(BLANK, " ").map_err(broken)?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if prefixed {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    made.with_decoder(Some(DecoderSequence::new(decoders)));
    Ok(made)
}

/// SentencePiece merges the neighbours whose joint token scores highest, so every way to cut a
/// token in two known tokens is a merge, ranked by the score of the whole.
fn merges_of_scores(vocabulary: &GgufVocabulary) -> Vec<(String, String)> {
    let ids: HashMap<&str, usize> = vocabulary
        .tokens
        .iter()
        .enumerate()
        .rev()
        .map(|(id, name)| (name.as_str(), id))
        .collect();
    let mut merges = Vec::new();
    for (id, name) in vocabulary.tokens.iter().enumerate() {
        if is_mark(vocabulary, id) || name.chars().count() > MAX_MERGED_CHARS {
            continue;
        }
        for (at, _) in name.char_indices().skip(1) {
            let (left, right) = name.split_at(at);
            if let (Some(&l), Some(&r)) = (ids.get(left), ids.get(right)) {
                merges.push((vocabulary.scores[id], id, l, r));
            }
        }
    }
    merges.sort_by(|a, b| {
        let by_score = b.0.total_cmp(&a.0);
        by_score.then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
    });
    merges
        .into_iter()
        .map(|(_, _, l, r)| (vocabulary.tokens[l].clone(), vocabulary.tokens[r].clone()))
        .collect()
}

fn is_mark(vocabulary: &GgufVocabulary, id: usize) -> bool {
    matches!(
        vocabulary.token_types.get(id),
        Some(&(UNKNOWN | CONTROL | USER_DEFINED))
    )
}

/// Control tokens become special ones, user defined ones are taken from the text whole.
fn add_marks(
    made: &mut tokenizers::Tokenizer,
    vocabulary: &GgufVocabulary,
) -> Result<(), TokenizerError> {
    let named = vocabulary.tokens.iter().zip(&vocabulary.token_types);
    let (mut special, mut whole) = (Vec::new(), Vec::new());
    for (name, &kind) in named {
        if name.is_empty() {
            continue;
        }
        match kind {
            UNKNOWN | CONTROL => special.push(AddedToken::from(name.as_str(), true)),
            USER_DEFINED => {
                whole.push(AddedToken::from(name.as_str(), false).normalized(false));
            }
            _ => {}
        }
    }
    made.add_special_tokens(special).map_err(broken)?;
    made.add_tokens(whole).map_err(broken)?;
    Ok(())
}
