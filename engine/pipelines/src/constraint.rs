//! Holding a reply to a JSON schema or a regular expression, token by token.
//!
//! A schema's value is written on one line, with `", "` between items and `": "` after keys, its
//! properties in the order of the schema. Characters from U+0020 on are always written raw in
//! strings, never as `\u` escapes; regular expressions must match the whole reply.

mod keywords;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use engine_base::{Code, ContentHash};
use llguidance::api::{StopReason, TopLevelGrammar};
use llguidance::toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use llguidance::{Matcher, ParserFactory, panic_utils};
use serde_json::{Value, json};

use crate::tokenizer::Tokenizer;

/// Longest regular expression, in bytes.
const MAX_REGEX_BYTES: usize = 64 << 10;

/// Compiled grammars that are kept.
const MAX_COMPILED: usize = 64;

/// No token: for tokenizers without an end token.
const NO_TOKEN: u32 = u32::MAX;

/// What a reply must be.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Constraint {
    /// Anything.
    #[default]
    None,
    /// JSON that is valid under a JSON Schema (2020-12).
    JsonSchema(Value),
    /// Text that a regular expression matches as a whole.
    Regex(String),
}

/// Why a reply cannot be held to a constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// A keyword that decoding cannot hold a reply to.
    #[error("cannot hold a reply to keyword {keyword:?} at {pointer:?} of the schema: {reason}")]
    Unsupported {
        /// The keyword.
        keyword: String,
        /// JSON pointer to it.
        pointer: String,
        /// What is known instead.
        reason: String,
    },
    /// Not a schema.
    #[error("the schema is broken at {pointer:?}: got {got}, expected {expected}")]
    BadSchema {
        /// JSON pointer to the place.
        pointer: String,
        /// What stands there.
        got: String,
        /// What should.
        expected: String,
    },
    /// No value meets it.
    #[error("no reply can meet the constraint: {reason}")]
    CannotBeMet {
        /// Why.
        reason: String,
    },
    /// Not a regular expression, or more than is compiled.
    #[error("cannot compile the constraint: {reason}")]
    BadGrammar {
        /// Why.
        reason: String,
    },
    /// The grammar engine gave up while a reply was made.
    #[error("the constraint cannot be followed any further: {reason}")]
    GaveUp {
        /// Why.
        reason: String,
    },
}

impl ConstraintError {
    /// The kind of failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } => Code::Refused,
            Self::BadSchema { .. } | Self::CannotBeMet { .. } | Self::BadGrammar { .. } => {
                Code::BadInput
            }
            Self::GaveUp { .. } => Code::Internal,
        }
    }
}

/// The vocabulary as the grammar engine sees it.
struct Vocabulary {
    trie: TokTrie,
    tokenizer: Tokenizer,
}

impl Vocabulary {
    fn new(tokenizer: &Tokenizer) -> Self {
        let count = tokenizer.vocab_tokens() as u32;
        let words: Vec<Vec<u8>> = (0..count)
            .map(|token| {
                let bytes = tokenizer.token_bytes(token);
                if tokenizer.is_special(token) {
                    // Keeps the names of marks out of the text a grammar can ask for.
                    let mut marked = vec![TokTrie::SPECIAL_TOKEN_MARKER];
                    marked.extend_from_slice(bytes);
                    marked
                } else {
                    bytes.to_vec()
                }
            })
            .collect();
        let ends = tokenizer.end_tokens();
        let end = ends.first().copied().unwrap_or(NO_TOKEN);
        let mut trie = TokTrie::from(&TokRxInfo::new(count, end), &words);
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(ends);
        }
        Self {
            trie,
            tokenizer: tokenizer.clone(),
        }
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let tokens = self.tokenizer.encode_bare(text).unwrap_or_default();
            // A tokenizer may compose characters or see marks in a text; the forced bytes have to
            // come out as they are.
            let same = tokens.iter().all(|&t| !self.tokenizer.is_special(t))
                && self.trie.decode_raw(&tokens) == text.as_bytes();
            if same {
                tokens
            } else {
                self.trie.greedy_tokenize(text.as_bytes())
            }
        })
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.tokenizer.is_byte_exact()
    }
}

/// Compiles constraints for one tokenizer, and keeps the latest.
pub struct GrammarSet {
    factory: ParserFactory,
    /// Latest used last.
    compiled: Vec<(ContentHash, Matcher)>,
}

impl std::fmt::Debug for GrammarSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GrammarSet({} compiled)", self.compiled.len())
    }
}

impl GrammarSet {
    /// A set for `tokenizer`. Takes some hundred milliseconds for 50 thousand tokens.
    ///
    /// # Errors
    /// [`ConstraintError::BadGrammar`] if the grammar engine refuses the vocabulary.
    pub fn new(tokenizer: &Tokenizer) -> Result<Self, ConstraintError> {
        let vocabulary: TokEnv = Arc::new(Vocabulary::new(tokenizer));
        let mut factory = ParserFactory::new_simple(&vocabulary).map_err(bad_grammar)?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self {
            factory,
            compiled: Vec::new(),
        })
    }

    /// What holds one reply to `constraint`; `None` where there is nothing to hold it to.
    ///
    /// # Errors
    /// [`ConstraintError`] says which keyword is not supported or why nothing can be made.
    pub fn guide(&mut self, constraint: &Constraint) -> Result<Option<Guide>, ConstraintError> {
        let (hash, source) = match constraint {
            Constraint::None => return Ok(None),
            Constraint::JsonSchema(schema) => ("json ", schema.to_string()),
            Constraint::Regex(regex) => ("regex ", regex.clone()),
        };
        let hash = ContentHash::of((hash.to_owned() + &source).as_bytes());
        if let Some(at) = self.compiled.iter().position(|(known, _)| *known == hash) {
            let entry = self.compiled.remove(at);
            self.compiled.push(entry);
        } else {
            let matcher = self.compile(constraint)?;
            if self.compiled.len() == MAX_COMPILED {
                self.compiled.remove(0);
            }
            self.compiled.push((hash, matcher));
        }
        // A deep copy shares nothing that grows, so that a reply does not depend on earlier ones.
        let fresh = self
            .compiled
            .last()
            .map(|(_, matcher)| matcher.deep_clone());
        Ok(fresh.map(|matcher| Guide {
            matcher,
            mask: SimpleVob::new(),
        }))
    }

    fn compile(&self, constraint: &Constraint) -> Result<Matcher, ConstraintError> {
        match constraint {
            Constraint::None => Err(bad_grammar("there is no constraint")),
            Constraint::Regex(regex) => {
                if regex.len() > MAX_REGEX_BYTES {
                    return Err(bad_grammar(format!(
                        "the regular expression is {} bytes long, expected at most {MAX_REGEX_BYTES}",
                        regex.len()
                    )));
                }
                let whole = without_anchors(regex);
                self.matcher(TopLevelGrammar::from_regex(whole))
                    .map_err(|reason| of_compiler(&reason))
            }
            Constraint::JsonSchema(schema) => {
                let schema = keywords::checked(schema)?;
                self.matcher(grammar_of(&schema)).map_err(|reason| {
                    let compiles = |schema: &Value| self.matcher(grammar_of(schema)).err();
                    keywords::blamed(&schema, &reason, &compiles)
                        .unwrap_or_else(|| of_compiler(&reason))
                })
            }
        }
    }

    fn matcher(&self, grammar: TopLevelGrammar) -> Result<Matcher, String> {
        let compile = AssertUnwindSafe(|| self.factory.create_parser(grammar));
        let parser = panic_utils::catch_unwind(compile).map_err(|error| format!("{error:#}"))?;
        let matcher = Matcher::new(Ok(parser));
        match matcher.get_error() {
            None => Ok(matcher),
            Some(reason) => Err(reason),
        }
    }
}

fn grammar_of(schema: &Value) -> TopLevelGrammar {
    let mut schema = schema.clone();
    if let Value::Object(entries) = &mut schema {
        let style = json!({
            "whitespace_flexible": false,
            "item_separator": ", ",
            "key_separator": ": ",
        });
        entries.insert("x-guidance".to_owned(), style);
    }
    TopLevelGrammar::from_json_schema(schema)
}

/// The compiler's words, with what it appends for its own developers cut off.
fn of_compiler(reason: &str) -> ConstraintError {
    let reason = first_lines(reason);
    if reason.contains("Unsatisfiable schema") {
        ConstraintError::CannotBeMet { reason }
    } else {
        ConstraintError::BadGrammar { reason }
    }
}

fn first_lines(reason: &str) -> String {
    let reason = reason.split("<state>").next().unwrap_or(reason);
    let reason = reason.split("<non-verbose/>").next().unwrap_or(reason);
    let words: Vec<&str> = reason.split_whitespace().collect();
    words.join(" ").chars().take(500).collect()
}

fn bad_grammar(reason: impl std::fmt::Display) -> ConstraintError {
    ConstraintError::BadGrammar {
        reason: first_lines(&reason.to_string()),
    }
}

/// The expression matches the whole reply anyway, and its engine knows no anchors.
fn without_anchors(regex: &str) -> &str {
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    match regex.strip_suffix('$') {
        Some(inner) => {
            let escapes = inner.bytes().rev().take_while(|&b| b == b'\\').count();
            if escapes % 2 == 0 { inner } else { regex }
        }
        None => regex,
    }
}

/// Holds one reply to its constraint.
pub struct Guide {
    matcher: Matcher,
    mask: SimpleVob,
}

impl std::fmt::Debug for Guide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guide").finish_non_exhaustive()
    }
}

impl Guide {
    /// Whether the reply is complete and nothing may follow.
    pub fn is_done(&self) -> bool {
        self.matcher.stop_reason() != StopReason::NotStopped && !self.matcher.is_error()
    }

    /// Whether the reply is complete as it stands.
    ///
    /// # Errors
    /// [`ConstraintError::GaveUp`].
    pub fn is_met(&mut self) -> Result<bool, ConstraintError> {
        if self.is_done() {
            return Ok(true);
        }
        self.matcher.is_accepting().map_err(|error| gave_up(&error))
    }

    /// The only token that may come next, where there is only one. It is the one that
    /// [`Guide::mask`] would leave.
    ///
    /// # Errors
    /// [`ConstraintError::GaveUp`].
    pub fn forced(&mut self) -> Result<Option<u32>, ConstraintError> {
        let forced = self.matcher.compute_ff_tokens();
        match self.matcher.get_error() {
            None => Ok(forced.first().copied()),
            Some(reason) => Err(gave_up(&reason)),
        }
    }

    /// The tokens that may come next: bit `t % 32` of word `t / 32` for token `t`. End tokens are
    /// among them when the reply is complete.
    ///
    /// # Errors
    /// [`ConstraintError::CannotBeMet`] when there is none, [`ConstraintError::GaveUp`].
    pub fn mask(&mut self) -> Result<&[u32], ConstraintError> {
        match self.matcher.compute_mask() {
            Ok(mask) => {
                self.mask = mask;
                Ok(self.mask.as_slice())
            }
            Err(error) => {
                let error = error.to_string();
                if error.contains("NoExtension") {
                    return Err(ConstraintError::CannotBeMet {
                        reason: "no token leads on".to_owned(),
                    });
                }
                Err(gave_up(&error))
            }
        }
    }

    /// Go on by `token`, which must be allowed.
    ///
    /// # Errors
    /// [`ConstraintError::GaveUp`], also for a token that is not allowed.
    pub fn take(&mut self, token: u32) -> Result<(), ConstraintError> {
        self.matcher
            .consume_token(token)
            .map_err(|error| gave_up(&error))
    }

    /// How many of `tokens` may come next, one after another. For checking a finished text.
    ///
    /// # Errors
    /// [`ConstraintError::GaveUp`].
    pub fn allowed_tokens(&mut self, tokens: &[u32]) -> Result<usize, ConstraintError> {
        self.matcher
            .validate_tokens(tokens)
            .map_err(|error| gave_up(&error))
    }
}

fn gave_up(reason: &dyn std::fmt::Display) -> ConstraintError {
    ConstraintError::GaveUp {
        reason: first_lines(&reason.to_string()),
    }
}

#[cfg(test)]
mod tests;
