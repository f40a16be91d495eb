//! Any bytes as a tokenizer: no panic, and what is built gives back the bytes it was given.
//!
//! Input: a GGUF file, a `tokenizer.json`, or lines. The first line is the kind, the word cut and
//! letters for flags, with blanks between; then come tokens, each with its type as first
//! character, an empty line, and merges.

#![no_main]

use std::path::Path;

use engine_pipelines::{Constraint, GgufVocabulary, GrammarSet, Tokenizer};
use engine_weights::Gguf;
use libfuzzer_sys::fuzz_target;

fn of_lines(text: &str) -> GgufVocabulary {
    let mut lines = text.split('\n');
    let mut head = lines.next().unwrap_or_default().split(' ');
    let mut vocabulary = GgufVocabulary {
        model: head.next().unwrap_or_default().to_owned(),
        pre: head.next().map(str::to_owned),
        ..GgufVocabulary::default()
    };
    let flags = head.next().unwrap_or_default();
    let flag = |c: char| flags.contains(c);
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        let mut chars = line.chars();
        let kind = chars.next().and_then(|c| c.to_digit(10)).unwrap_or(1);
        vocabulary.token_types.push(i64::from(kind));
        vocabulary.tokens.push(chars.as_str().to_owned());
        vocabulary.scores.push(-(vocabulary.scores.len() as f64));
    }
    vocabulary.merges = lines.map(str::to_owned).collect();
    vocabulary.bos = flag('b').then_some(0);
    vocabulary.eos = flag('e').then_some(1);
    vocabulary.add_bos = flag('B').then_some(true);
    vocabulary.add_eos = flag('E').then_some(true);
    vocabulary.add_space_prefix = flag('s').then_some(false);
    vocabulary
}

fn built(bytes: &[u8]) -> Option<Tokenizer> {
    if bytes.starts_with(b"GGUF") {
        let read = Gguf::from_bytes(bytes.to_vec(), Path::new("fuzzed.gguf")).ok()?;
        return Tokenizer::of_checkpoint(&read).ok();
    }
    if bytes.starts_with(b"{") {
        return Tokenizer::from_json(bytes, None).ok();
    }
    let text = std::str::from_utf8(bytes).ok()?;
    Tokenizer::from_gguf(&of_lines(text)).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(tokenizer) = built(bytes) else {
        return;
    };
    for text in ["", "a b", "12 été 場景 🎬\n\n  x", "<s></s>"] {
        let Ok(tokens) = tokenizer.encode(text) else {
            continue;
        };
        assert!(tokens.iter().all(|&t| (t as usize) < tokenizer.vocab_tokens()));
        drop(tokenizer.decode(&tokens, true));
    }
    if tokenizer.vocab_tokens() < 2000
        && let Ok(mut grammars) = GrammarSet::new(&tokenizer)
        && let Ok(Some(mut guide)) = grammars.guide(&Constraint::Regex("[a-z ]+".to_owned()))
    {
        drop(guide.mask().map(<[u32]>::len));
    }
});
