//! Prompts in the frame that a text encoder was trained with.

use super::ImageError;
use crate::Tokenizer;

/// Where the prompt stands in a template.
const PLACE: &str = "{}";

/// A template, and which of its tokens count.
#[derive(Debug, Clone)]
pub(super) struct PromptFrame {
    /// Tokens that are read but whose states are dropped.
    dropped: Vec<u32>,
    /// Tokens between those and the prompt.
    before: Vec<u32>,
    after: Vec<u32>,
    /// Most tokens that count.
    most_tokens: usize,
}

/// A prompt ready to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FramedPrompt {
    pub(super) tokens: Vec<u32>,
    /// Tokens at the front whose states are dropped.
    pub(super) dropped: usize,
    /// What was cut off, for people.
    pub(super) note: Option<String>,
}

impl PromptFrame {
    /// Of `template`, in which `{}` is the prompt; what stands before `kept_from` is dropped after reading.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        template: &str,
        kept_from: &str,
        most_tokens: usize,
    ) -> Result<Self, ImageError> {
        let wrong = |got: &str, expected: &str| ImageError::Request {
            what: "the prompt's template",
            got: format!("{got:?}"),
            expected: expected.to_owned(),
        };
        let (head, after) = template
            .split_once(PLACE)
            .ok_or_else(|| wrong(template, "one with {}"))?;
        let kept = head.rfind(kept_from).unwrap_or(0);
        let frame = Self {
            dropped: tokenizer.encode_marked(&head[..kept])?,
            before: tokenizer.encode_marked(&head[kept..])?,
            after: tokenizer.encode_marked(after)?,
            most_tokens,
        };
        if frame.room() == 0 {
            return Err(wrong(template, "one that leaves room for a prompt"));
        }
        Ok(frame)
    }

    /// A prompt between two tokens.
    pub(super) fn between(before: u32, after: u32, most_tokens: usize) -> Self {
        Self {
            dropped: Vec::new(),
            before: vec![before],
            after: vec![after],
            most_tokens,
        }
    }

    /// The same with `more` between the frame's begin and the prompt.
    pub(super) fn with(&self, more: &[u32]) -> Self {
        let mut frame = self.clone();
        frame.before.extend_from_slice(more);
        frame.most_tokens += more.len();
        frame
    }

    /// Tokens before those that were put in by [`PromptFrame::with`].
    pub(super) fn head(&self) -> usize {
        self.dropped.len() + self.before.len()
    }

    /// Tokens that a prompt may have.
    fn room(&self) -> usize {
        let taken = self.before.len() + self.after.len();
        self.most_tokens.saturating_sub(taken)
    }

    /// The most whole words at the begin of `prompt` that find room; of one word without end the most letters.
    fn longest<'a>(&self, tokenizer: &Tokenizer, prompt: &'a str) -> Result<&'a str, ImageError> {
        let fits = |end: usize| -> Result<bool, ImageError> {
            Ok(tokenizer.encode_bare(&prompt[..end])?.len() <= self.room())
        };
        let spaces = prompt.char_indices().filter(|(_, c)| c.is_whitespace());
        let words: Vec<usize> = spaces
            .map(|(at, _)| prompt[..at].trim_end().len())
            .collect();
        let letters = prompt.char_indices().map(|(at, _)| at).collect();
        for ends in [words, letters] {
            let (mut fit, mut beyond) = (0, ends.len());
            // The first `fit` ends do; a longer prefix never has fewer tokens by more than a few.
            while fit < beyond {
                let middle = usize::midpoint(fit, beyond);
                match fits(ends[middle])? {
                    true => fit = middle + 1,
                    false => beyond = middle,
                }
            }
            let end = fit.checked_sub(1).map_or(0, |at| ends[at]);
            if end > 0 && fits(end)? {
                return Ok(&prompt[..end]);
            }
        }
        Ok("")
    }

    /// `prompt` in its frame; words at its end that find no room are cut off.
    pub(super) fn fill(
        &self,
        tokenizer: &Tokenizer,
        prompt: &str,
    ) -> Result<FramedPrompt, ImageError> {
        let prompt = prompt.trim();
        let mut ids = tokenizer.encode_bare(prompt)?;
        let mut note = None;
        if ids.len() > self.room() {
            let count = ids.len();
            let kept = self.longest(tokenizer, prompt)?;
            ids = tokenizer.encode_bare(kept)?;
            note = Some(format!(
                "the prompt is {count} tokens long and the model reads {}: it was cut after {:?}",
                self.room(),
                kept.chars()
                    .rev()
                    .take(40)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .collect::<String>()
            ));
        }
        let parts = [&self.dropped, &self.before, &ids, &self.after];
        Ok(FramedPrompt {
            tokens: parts.into_iter().flatten().copied().collect(),
            dropped: self.dropped.len(),
            note,
        })
    }
}
