//! The loop that makes one reply.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use engine_base::CancelToken;
use engine_nn::{ModelError, TokenModel, TokenSampler};

use super::stop::StopTexts;
use super::{FinishReason, TextError, TextPipeline, TextReply, TextRequest};
use crate::constraint::{Constraint, GrammarSet, Guide};
use crate::stream::TextStream;
use crate::tokenizer::Tokenizer;

/// A bit set of the first `count` numbers, as [`TokenSampler::draw`] reads it.
pub(super) fn first_bits(count: usize) -> Vec<u32> {
    let mut words = vec![u32::MAX; count / 32];
    if !count.is_multiple_of(32) {
        words.push((1 << (count % 32)) - 1);
    }
    words
}

/// The number of the only bit set, if there is one.
fn only_bit(words: &[u32]) -> Option<u32> {
    let mut used = words.iter().enumerate().filter(|(_, word)| **word != 0);
    let (at, word) = used.next()?;
    (word.is_power_of_two() && used.next().is_none())
        .then(|| at as u32 * 32 + word.trailing_zeros())
}

/// The text of a reply on its way to the caller.
struct Outlet<'a> {
    tokenizer: &'a Tokenizer,
    characters: TextStream,
    stops: StopTexts,
    text: String,
    on_text: &'a mut dyn FnMut(&str) -> ControlFlow<()>,
}

impl Outlet<'_> {
    /// Add the text of a token; says if the reply ends with it.
    fn token(&mut self, token: u32) -> Option<FinishReason> {
        if self.tokenizer.is_special(token) {
            return None;
        }
        let mut whole = String::new();
        let bytes = self.tokenizer.token_bytes(token);
        self.characters.push(bytes, &mut whole);
        self.pass(&whole)
    }

    fn pass(&mut self, whole: &str) -> Option<FinishReason> {
        let mut certain = String::new();
        let stopped = self.stops.push(whole, &mut certain);
        if self.hand_over(&certain).is_break() {
            return Some(FinishReason::Cancelled);
        }
        stopped.then_some(FinishReason::StopString)
    }

    fn hand_over(&mut self, certain: &str) -> ControlFlow<()> {
        if certain.is_empty() {
            return ControlFlow::Continue(());
        }
        self.text.push_str(certain);
        (self.on_text)(certain)
    }

    /// Hand over what was held back, and say how the reply ended after all.
    fn finish(&mut self, finish: FinishReason) -> FinishReason {
        if finish == FinishReason::StopString {
            return finish;
        }
        let mut whole = String::new();
        self.characters.finish(&mut whole);
        let mut certain = String::new();
        if self.stops.push(&whole, &mut certain) {
            // The last piece of text is this one, so it does not matter if the caller breaks.
            return match self.hand_over(&certain) {
                ControlFlow::Continue(()) | ControlFlow::Break(()) => FinishReason::StopString,
            };
        }
        self.stops.finish(&mut certain);
        match self.hand_over(&certain) {
            ControlFlow::Continue(()) | ControlFlow::Break(()) => finish,
        }
    }
}

/// A token, and whether it was drawn or the only one.
enum Next {
    Drawn(u32),
    Forced(u32),
    Cancelled,
}

/// What the loop changes.
struct Writer<'a> {
    model: &'a mut dyn TokenModel,
    /// Tokens in the model's cache.
    stream: &'a mut Vec<u32>,
    /// Tokens that follow them and were not given to the model yet.
    pending: Vec<u32>,
    sampler: TokenSampler,
    guide: Option<Guide>,
    known: Option<&'a [u32]>,
    ask_for_forced_tokens: bool,
    prefill: Option<Duration>,
    guiding: Duration,
    /// Sum of the drawn tokens' log probabilities and their count, where they are asked for.
    likelihood: Option<(f64, usize)>,
}

/// Natural logarithm of the probability of `token`, by all of `logits`.
fn logprob(logits: &[f32], token: u32) -> f64 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits
        .iter()
        .map(|logit| f64::from((logit - most).exp()))
        .sum();
    let own = logits.get(token as usize).copied().unwrap_or(most);
    f64::from(own - most) - sum.ln()
}

impl Writer<'_> {
    /// The token at absolute position `position`.
    fn next(&mut self, position: usize, cancel: &CancelToken) -> Result<Next, TextError> {
        let start = Instant::now();
        let mut forced = None;
        let mut allowed = self.known;
        if let Some(guide) = &mut self.guide {
            forced = guide.forced()?;
            if forced.is_none() || self.ask_for_forced_tokens {
                let mask = guide.mask()?;
                forced = forced.or_else(|| only_bit(mask));
                allowed = Some(mask);
            }
        }
        self.guiding += start.elapsed();
        if let Some(token) = forced
            && !self.ask_for_forced_tokens
            && !self.sampler.forbids(token)
        {
            return Ok(Next::Forced(token));
        }
        let start = Instant::now();
        let logits = match self.model.extend(&self.pending, cancel) {
            Ok(logits) => logits,
            Err(ModelError::Cancelled) => return Ok(Next::Cancelled),
            Err(error) => return Err(error.into()),
        };
        self.stream.append(&mut self.pending);
        if self.prefill.is_none() {
            self.prefill = Some(start.elapsed());
        }
        // A forced token that is forbidden is refused here, by the empty set of allowed ones.
        let none = [];
        if forced.is_some_and(|token| self.sampler.forbids(token)) {
            allowed = Some(&none);
        }
        let token = self.sampler.draw(logits, position as u64, allowed)?;
        if let Some((sum, count)) = &mut self.likelihood {
            *sum += logprob(logits, token);
            *count += 1;
        }
        Ok(Next::Drawn(token))
    }

    /// Go on by `token`.
    fn take(&mut self, token: u32) -> Result<(), TextError> {
        let start = Instant::now();
        if let Some(guide) = &mut self.guide {
            guide.take(token)?;
        }
        self.guiding += start.elapsed();
        self.sampler.see_reply(token)?;
        self.pending.push(token);
        Ok(())
    }
}

impl TextPipeline {
    fn guide(&mut self, constraint: &Constraint) -> Result<Option<Guide>, TextError> {
        if *constraint == Constraint::None {
            return Ok(None);
        }
        let grammars = match &mut self.grammars {
            Some(grammars) => grammars,
            none => none.insert(GrammarSet::new(&self.tokenizer)?),
        };
        Ok(grammars.guide(constraint)?)
    }

    /// Forget what the cache holds beyond the part shared with `prompt`, of which at least one
    /// token is left to be read, since its logits are needed. Gives the tokens kept.
    fn share(&mut self, prompt: &[u32]) -> usize {
        let most = (prompt.len() - 1).min(self.model.cached_tokens());
        let shared = self
            .stream
            .iter()
            .zip(prompt)
            .take(most)
            .take_while(|(a, b)| a == b)
            .count();
        self.model.truncate(shared);
        self.stream.truncate(shared);
        shared
    }

    /// The reply to a prompt of at least one token that fits the context.
    pub(super) fn reply(
        &mut self,
        prompt: &[u32],
        request: &TextRequest,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
        cancel: &CancelToken,
    ) -> Result<TextReply, TextError> {
        let guide = self.guide(&request.constraint)?;
        let vocab = self.model.vocab_tokens();
        let mut sampler = TokenSampler::new(request.sampling.clone(), vocab)?;
        sampler.see_prompt(prompt)?;
        let reused_tokens = self.share(prompt);
        let room = self.model.context_tokens() - prompt.len();
        let most = request.max_tokens.min(room);

        let tokenizer = self.tokenizer.clone();
        let mut outlet = Outlet {
            tokenizer: &tokenizer,
            characters: TextStream::new(),
            stops: StopTexts::new(&request.stop),
            text: String::new(),
            on_text,
        };
        let mut writer = Writer {
            model: &mut *self.model,
            stream: &mut self.stream,
            pending: prompt[reused_tokens..].to_vec(),
            sampler,
            guide,
            known: self.known.as_deref(),
            ask_for_forced_tokens: self.options.ask_for_forced_tokens,
            prefill: None,
            guiding: Duration::ZERO,
            likelihood: request.likelihood.then_some((0.0, 0)),
        };
        let start = Instant::now();
        let mut tokens = Vec::new();
        let mut forced_tokens = 0;
        let finish = loop {
            if cancel.is_cancelled() {
                break FinishReason::Cancelled;
            }
            if writer.guide.as_ref().is_some_and(Guide::is_done) {
                break FinishReason::ConstraintDone;
            }
            if tokens.len() == most {
                break FinishReason::Length;
            }
            let token = match writer.next(prompt.len() + tokens.len(), cancel)? {
                Next::Cancelled => break FinishReason::Cancelled,
                Next::Drawn(token) => token,
                Next::Forced(token) => {
                    forced_tokens += 1;
                    token
                }
            };
            if tokenizer.is_end(token) {
                // Under a constraint the end is allowed only where it is met.
                break match writer.guide {
                    Some(_) => FinishReason::ConstraintDone,
                    None => FinishReason::Stop,
                };
            }
            writer.take(token)?;
            tokens.push(token);
            if let Some(finish) = outlet.token(token) {
                break finish;
            }
        };
        let mean_logprob = match writer.likelihood {
            Some((sum, count)) if count > 0 => Some(sum / count as f64),
            _ => None,
        };
        let (prefill, guiding) = (writer.prefill.unwrap_or_default(), writer.guiding);
        let all = start.elapsed();
        let finish = outlet.finish(finish);
        Ok(TextReply {
            text: outlet.text,
            tokens,
            finish,
            prompt_tokens: prompt.len(),
            reused_tokens,
            forced_tokens,
            mean_logprob,
            prefill_secs: prefill.as_secs_f64(),
            decode_secs: all.saturating_sub(prefill).as_secs_f64(),
            constraint_secs: guiding.as_secs_f64(),
        })
    }
}
