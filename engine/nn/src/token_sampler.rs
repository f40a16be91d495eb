//! Draws the next token from logits.
//!
//! # The draw
//! A token is drawn by the Gumbel maximum: of the candidates' scores `logit / temperature + g`, the
//! highest wins, which draws token `i` with the probability that softmax gives it. The noise of a
//! candidate is `g = -ln(-ln(u))`, and its `u` comes from a counter, not from a running generator:
//!
//! ```text
//! a = mix(seed   + 0x9e3779b97f4a7c15)
//! b = mix(a ^ (position + 0xd1b54a32d192ed03))
//! h = mix(b ^ (token_id * 0xff51afd7ed558ccd + 0x2545f4914f6cdd1d))
//! u = ((h >> 11) + 0.5) / 2^53                  in (0, 1), never 0 or 1
//! mix(x): x ^= x >> 32; x *= 0xd6e8feb86659fd93; twice; x ^= x >> 32     (all wrapping, 64 bits)
//! ```
//!
//! So a draw depends on the seed, the absolute position in the stream, the token id and the logits,
//! and on nothing else: not on the order of candidates, earlier draws, the batch or the machine's
//! threads. A drafted, resumed or batched stream draws what a fresh and lone one does.
//!
//! # Order of the rules
//! Repetition, presence and frequency penalties; logit bias; the allowed set; temperature; then of
//! the distribution at that temperature top-k, top-p, min-p. Ties go to the lower id everywhere.

use std::collections::BTreeMap;

use engine_base::Code;
use serde::{Deserialize, Serialize};

/// How tokens are drawn. The default draws from the plain softmax with seed 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Divides logits before the draw, 0 to 100; 0 takes the highest logit.
    pub temperature: f32,
    /// Keep this many of the likeliest tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the fewest of the likeliest tokens whose probabilities sum to it, over 0 to 1.
    pub top_p: f32,
    /// Keep tokens at least this many times as likely as the likeliest, 0 to 1.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen in prompt or reply, over 0 to
    /// 100; 1 is off.
    pub repetition_penalty: f32,
    /// Taken from the logit of each token in the reply, -100 to 100.
    pub presence_penalty: f32,
    /// Taken from the logit of a token for each time it is in the reply, -100 to 100.
    pub frequency_penalty: f32,
    /// Added to logits of single tokens; minus infinity forbids one.
    pub logit_bias: BTreeMap<u32, f32>,
    /// With the position and the token id, decides every draw.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: BTreeMap::new(),
            seed: 0,
        }
    }
}

/// Why no token could be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A parameter outside its range.
    #[error("cannot draw tokens with {name} {got}: expected {expected}")]
    BadParameter {
        /// Its field in [`Sampling`].
        name: &'static str,
        /// Its value.
        got: f32,
        /// What it may be.
        expected: &'static str,
    },
    /// A token id outside the vocabulary, in `logit_bias` or the history.
    #[error("cannot draw tokens with {name} of token {got}: expected an id under {vocab}")]
    BadToken {
        /// Where it stood.
        name: &'static str,
        /// The id.
        got: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// Other counts of logits than the vocabulary has tokens.
    #[error("cannot draw a token from {got} logits: expected {vocab}")]
    BadLength {
        /// Logits given.
        got: usize,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// A logit that is no number.
    #[error("cannot draw a token at position {position}: the logit of token {token} is {got}, expected a number under infinity")]
    NotANumber {
        /// Absolute position in the stream.
        position: u64,
        /// The token.
        token: u32,
        /// Its logit.
        got: f32,
    },
    /// Nothing is left to draw from.
    #[error("cannot draw a token at position {position}: none is allowed")]
    NoneAllowed {
        /// Absolute position in the stream.
        position: u64,
    },
}

impl SampleError {
    /// The kind of failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::BadParameter { .. } | Self::BadToken { .. } | Self::NoneAllowed { .. } => {
                Code::BadInput
            }
            Self::BadLength { .. } => Code::Internal,
            Self::NotANumber { .. } => Code::Corrupt,
        }
    }
}

/// Draws the tokens of one stream.
#[derive(Debug, Clone)]
pub struct TokenSampler {
    sampling: Sampling,
    vocab: usize,
    /// Seen tokens: whether in the prompt, and how often in the reply.
    history: BTreeMap<u32, Seen>,
    scores: Vec<f32>,
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    in_reply: u32,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    token: u32,
    /// Logit over temperature.
    scaled: f32,
}
