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
//! u = ((h >> 12) + 0.5) / 2^52                  in (0, 1), never 0 or 1
//! mix(x): twice { x ^= x >> 32; x *= 0xd6e8feb86659fd93 }; x ^= x >> 32  (64 bits, wrapping)
//! ```
//!
//! So a draw depends on the seed, the absolute position in the stream, the token id and the logits,
//! and on nothing else: not on the order of candidates, earlier draws, the batch or the machine's
//! threads. A drafted, resumed or batched stream draws what a fresh and lone one does.
//!
//! # Order of the rules
//! Repetition, presence and frequency penalties; logit bias; the allowed set; temperature; then of
//! the distribution at that temperature top-k, top-p, min-p. Ties go to the lower id everywhere.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::f64::consts::LN_2;

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
    #[error(
        "cannot draw a token at position {position}: the logit of token {token} is {got}, expected a number under infinity"
    )]
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
    /// How often each token seen in prompt or reply is in the reply.
    seen: BTreeMap<u32, u32>,
    scores: Vec<f32>,
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    token: u32,
    /// Logit less the highest one, over temperature: at most 0.
    score: f32,
}

/// Likeliest first; of equals the lower id.
fn by_rank(a: &Candidate, b: &Candidate) -> Ordering {
    b.score.total_cmp(&a.score).then(a.token.cmp(&b.token))
}

impl TokenSampler {
    /// A sampler of a vocabulary of `vocab` tokens that has seen nothing.
    ///
    /// # Errors
    /// [`SampleError::BadParameter`] and [`SampleError::BadToken`] name what is out of range.
    pub fn new(sampling: Sampling, vocab: usize) -> Result<Self, SampleError> {
        sampling.check()?;
        for &token in sampling.logit_bias.keys() {
            check_token("logit_bias", token, vocab)?;
        }
        Ok(Self {
            sampling,
            vocab,
            seen: BTreeMap::new(),
            scores: Vec::new(),
            candidates: Vec::new(),
        })
    }

    /// Let the repetition penalty see the prompt.
    ///
    /// # Errors
    /// [`SampleError::BadToken`].
    pub fn see_prompt(&mut self, tokens: &[u32]) -> Result<(), SampleError> {
        for &token in tokens {
            check_token("the prompt", token, self.vocab)?;
            // Only this penalty reads the prompt: without it, long prompts would slow each draw.
            if self.sampling.repetition_penalty != 1.0 {
                self.seen.entry(token).or_insert(0);
            }
        }
        Ok(())
    }

    /// Let all penalties see a token of the reply.
    ///
    /// # Errors
    /// [`SampleError::BadToken`].
    pub fn see_reply(&mut self, token: u32) -> Result<(), SampleError> {
        check_token("the reply", token, self.vocab)?;
        let count = self.seen.entry(token).or_insert(0);
        *count = count.saturating_add(1);
        Ok(())
    }

    /// Whether the parameters forbid a token outright.
    pub fn forbids(&self, token: u32) -> bool {
        self.sampling
            .logit_bias
            .get(&token)
            .is_some_and(|&bias| bias == f32::NEG_INFINITY)
    }

    /// The token at absolute position `position` of the stream.
    ///
    /// `logits: [vocab]`; `allowed`: bit `t % 32` of word `t / 32` says whether token `t` may be
    /// drawn, missing words allow none; `None` allows all. Minus infinity among the logits forbids
    /// a token.
    ///
    /// # Errors
    /// [`SampleError::BadLength`], [`SampleError::NotANumber`], [`SampleError::NoneAllowed`].
    pub fn draw(
        &mut self,
        logits: &[f32],
        position: u64,
        allowed: Option<&[u32]>,
    ) -> Result<u32, SampleError> {
        self.score(logits, position)?;
        self.gather(allowed);
        let highest = self
            .candidates
            .iter()
            .copied()
            .min_by(by_rank)
            .ok_or(SampleError::NoneAllowed { position })?;
        if self.sampling.temperature == 0.0 || self.candidates.len() == 1 {
            return Ok(highest.token);
        }
        let temperature = self.sampling.temperature;
        for candidate in &mut self.candidates {
            candidate.score = (candidate.score - highest.score) / temperature;
        }
        self.keep_likeliest();
        let noise = Noise::new(self.sampling.seed, position);
        Ok(noise.winner(&self.candidates).unwrap_or(highest.token))
    }

    /// Copy logits and apply penalties and bias.
    fn score(&mut self, logits: &[f32], position: u64) -> Result<(), SampleError> {
        if logits.len() != self.vocab {
            return Err(SampleError::BadLength {
                got: logits.len(),
                vocab: self.vocab,
            });
        }
        // One pass without a branch for each; the culprit is looked for only when there is one.
        let sound = logits
            .iter()
            .fold(true, |sound, &l| sound & (l < f32::INFINITY));
        if !sound {
            let at = logits
                .iter()
                .position(|&l| l.is_nan() || l == f32::INFINITY);
            let at = at.unwrap_or(0);
            return Err(SampleError::NotANumber {
                position,
                token: at as u32,
                got: logits[at],
            });
        }
        self.scores.clear();
        self.scores.extend_from_slice(logits);
        let s = &self.sampling;
        let repetition = s.repetition_penalty;
        for (&token, &in_reply) in &self.seen {
            let score = &mut self.scores[token as usize];
            if *score > 0.0 {
                *score /= repetition;
            } else {
                *score *= repetition;
            }
            if in_reply > 0 {
                *score -= s.presence_penalty + s.frequency_penalty * in_reply as f32;
            }
        }
        for (&token, &bias) in &s.logit_bias {
            self.scores[token as usize] += bias;
        }
        Ok(())
    }

    /// Candidates in the order of their ids.
    fn gather(&mut self, allowed: Option<&[u32]>) {
        self.candidates.clear();
        let mut take = |token: usize, score: f32| {
            if score > f32::NEG_INFINITY {
                self.candidates.push(Candidate {
                    token: token as u32,
                    score,
                });
            }
        };
        match allowed {
            None => {
                for (token, &score) in self.scores.iter().enumerate() {
                    take(token, score);
                }
            }
            Some(words) => {
                for (at, &word) in words.iter().enumerate() {
                    let mut rest = word;
                    while rest != 0 {
                        let token = at * 32 + rest.trailing_zeros() as usize;
                        rest &= rest - 1;
                        if let Some(&score) = self.scores.get(token) {
                            take(token, score);
                        }
                    }
                }
            }
        }
    }

    /// Top-k, top-p, min-p.
    fn keep_likeliest(&mut self) {
        let top_k = self.sampling.top_k as usize;
        let candidates = &mut self.candidates;
        if top_k > 0 && top_k < candidates.len() {
            candidates.select_nth_unstable_by(top_k - 1, by_rank);
            candidates.truncate(top_k);
            candidates.sort_unstable_by(by_rank);
        }
        if self.sampling.top_p < 1.0 {
            keep_top_p(candidates, f64::from(self.sampling.top_p));
        }
        if self.sampling.min_p > 0.0 {
            let least = self.sampling.min_p.ln();
            candidates.retain(|c| c.score >= least);
        }
    }
}

/// Sorts as many of the likeliest as it takes to reach `top_p`, and drops the others.
fn keep_top_p(candidates: &mut Vec<Candidate>, top_p: f64) {
    let total: f64 = candidates.iter().map(|c| f64::from(c.score).exp()).sum();
    let mut sorted = 0;
    let mut sum = 0.0;
    let mut block = 64;
    while sorted < candidates.len() {
        let end = candidates.len().min(sorted + block);
        let rest = &mut candidates[sorted..];
        if end - sorted < rest.len() {
            rest.select_nth_unstable_by(end - sorted - 1, by_rank);
        }
        candidates[sorted..end].sort_unstable_by(by_rank);
        for at in sorted..end {
            sum += f64::from(candidates[at].score).exp();
            if sum >= top_p * total {
                candidates.truncate(at + 1);
                return;
            }
        }
        sorted = end;
        block *= 8;
    }
}

fn check_token(name: &'static str, got: u32, vocab: usize) -> Result<(), SampleError> {
    if (got as usize) < vocab {
        Ok(())
    } else {
        Err(SampleError::BadToken { name, got, vocab })
    }
}

impl Sampling {
    /// Always the highest logit.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            ..Self::default()
        }
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// [`SampleError::BadParameter`] names the first that is not.
    pub fn check(&self) -> Result<(), SampleError> {
        let range = |name, got: f32, fits: bool, expected| {
            if fits {
                Ok(())
            } else {
                Err(SampleError::BadParameter {
                    name,
                    got,
                    expected,
                })
            }
        };
        let (t, r) = (self.temperature, self.repetition_penalty);
        range("temperature", t, (0.0..=100.0).contains(&t), "0 to 100")?;
        let p = self.top_p;
        range("top_p", p, p > 0.0 && p <= 1.0, "over 0 to 1")?;
        let p = self.min_p;
        range("min_p", p, (0.0..=1.0).contains(&p), "0 to 1")?;
        range(
            "repetition_penalty",
            r,
            r > 0.0 && r <= 100.0,
            "over 0 to 100",
        )?;
        for (name, p) in [
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ] {
            range(name, p, (-100.0..=100.0).contains(&p), "-100 to 100")?;
        }
        for &bias in self.logit_bias.values() {
            let fits = bias < f32::INFINITY;
            range("logit_bias", bias, fits, "a number under infinity")?;
        }
        Ok(())
    }
}

/// The noise of one position.
struct Noise {
    key: u64,
}

fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

impl Noise {
    fn new(seed: u64, position: u64) -> Self {
        let seed = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let position = position.wrapping_add(0xd1b5_4a32_d192_ed03);
        Self {
            key: mix(seed ^ position),
        }
    }

    /// 52 bits `v`, of which `u = (v + 0.5) / 2^52`; given as `2^52 - 1 - v`, since the far end
    /// near 1 is where precision counts.
    fn complement(&self, token: u32) -> u64 {
        let token = u64::from(token)
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .wrapping_add(0x2545_f491_4f6c_dd1d);
        !mix(self.key ^ token) >> 12
    }

    /// `-ln(-ln(u))`: finite for every `u`.
    fn gumbel(complement: u64) -> f64 {
        const SCALE: f64 = 1.0 / (1u64 << 52) as f64;
        let one_less_u = (complement as f64 + 0.5) * SCALE;
        -(-(-one_less_u).ln_1p()).ln()
    }

    /// The candidate with the highest noisy score.
    fn winner(&self, candidates: &[Candidate]) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for candidate in candidates {
            let complement = self.complement(candidate.token);
            let score = f64::from(candidate.score);
            if let Some((best_score, best_token)) = best {
                // -ln(-ln(u)) <= -ln(1 - u), which the leading zeros bound: most candidates need
                // no logarithm. The slack covers the rounding of both sides.
                let bound = f64::from(complement.leading_zeros() - 11) * LN_2;
                if score + bound + 1e-9 < best_score {
                    continue;
                }
                let score = score + Self::gumbel(complement);
                if score > best_score || (score == best_score && candidate.token < best_token) {
                    best = Some((score, candidate.token));
                }
            } else {
                best = Some((score + Self::gumbel(complement), candidate.token));
            }
        }
        best.map(|(_, token)| token)
    }
}

#[cfg(test)]
#[path = "token_sampler_tests.rs"]
mod tests;
