//! One text at a time: several candidates from the model, the best by rule.

use engine_base::CancelToken;

use super::draw::Draw;
use super::error::ProduceError;
use super::judge::{Use, Wanted, Written, judge};
use super::near_json::near_json;
use super::premise::Premise;
use super::prompts::{Step, language_name, reply_schema};
use super::schema::complaints;
use super::{ProduceCounts, ProduceEvent, ProduceOptions};
use crate::llm::{Llm, LlmKind, LlmReply, LlmRequest, Message, Role};
use crate::origin::By;

/// Passing failures of a model in a row after which it is taken to be gone.
const FAILURES_MAX: usize = 12;
/// Complaints that are passed on.
const COMPLAINTS_MAX: usize = 4;

/// Texts from which on a film is long: fewer candidates keep its script a matter of minutes.
const LONG_TEXTS: usize = 120;
/// Candidates for each text of a long film.
const CANDIDATES_LONG: usize = 2;
/// Points of a score for a natural logarithm of probability.
const LIKELIHOOD_WEIGHT: f64 = 12.0;

/// What is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) step: &'a Step,
    /// The question.
    pub(crate) question: String,
    /// Regular expression that the text meets where the model can be held to it.
    pub(crate) pattern: Option<String>,
    /// Longest text in characters.
    pub(crate) chars_max: usize,
    pub(crate) used_for: Use,
    pub(crate) subject: &'a str,
    pub(crate) words: (usize, usize),
    /// Names the draws of this text.
    pub(crate) place: String,
    /// What was wrong with an earlier text in this place.
    pub(crate) complaints: Vec<String>,
    /// Texts that it may not be.
    pub(crate) taken: &'a [String],
}

pub(crate) struct Writer<'w> {
    pub(crate) premise: &'w Premise,
    pub(crate) options: &'w ProduceOptions,
    pub(crate) written: Written,
    pub(crate) counts: ProduceCounts,
    llm: &'w mut dyn Llm,
    watch: &'w mut dyn FnMut(&ProduceEvent<'_>),
    cancel: &'w CancelToken,
    stage: &'static str,
    step: usize,
    of: usize,
    failures: usize,
    /// Whether the model is not asked at all: it does not write the language.
    silent: bool,
}

impl<'w> Writer<'w> {
    pub(crate) fn new(
        premise: &'w Premise,
        options: &'w ProduceOptions,
        llm: &'w mut dyn Llm,
        watch: &'w mut dyn FnMut(&ProduceEvent<'_>),
        cancel: &'w CancelToken,
        of: usize,
    ) -> Self {
        let known = llm.languages();
        let silent = !known.is_empty() && !known.contains(&premise.language);
        Self {
            premise,
            options,
            written: Written::default(),
            counts: ProduceCounts::default(),
            llm,
            watch,
            cancel,
            stage: "",
            step: 0,
            of,
            failures: 0,
            silent,
        }
    }

    pub(crate) fn kind(&self) -> LlmKind {
        self.llm.kind()
    }

    /// Whether texts are written in sentence forms.
    pub(crate) fn is_weak(&self) -> bool {
        self.llm.is_weak() && self.kind() == LlmKind::Constrained && self.premise.language == "en"
    }

    /// Whether the model is left out, since it does not write the premise's language.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// The model's name and the languages it is made for.
    pub(crate) fn about(&self) -> (String, Vec<String>) {
        (self.llm.name().to_owned(), self.llm.languages().to_vec())
    }

    pub(crate) fn stage(&mut self, stage: &'static str) {
        self.stage = stage;
        self.tell("");
    }

    fn tell(&mut self, text: &str) {
        (self.watch)(&ProduceEvent {
            stage: self.stage,
            step: self.step.min(self.of),
            of: self.of,
            text,
        });
    }

    /// The best candidate that will do, else what `rule` writes.
    pub(crate) fn write(
        &mut self,
        asked: &Asked<'_>,
        rule: impl FnOnce(&mut Draw) -> String,
    ) -> Result<(String, By), ProduceError> {
        let (text, by) = match self.best(asked)? {
            Some(text) => {
                self.counts.by_model += 1;
                (text, By::Model)
            }
            None => {
                self.counts.by_rule += 1;
                let mut draw = Draw::new(self.options.seed, &format!("rule {}", asked.place));
                (rule(&mut draw), By::Rule)
            }
        };
        if matches!(asked.used_for, Use::Action | Use::Speech) {
            self.written.add(&text, self.premise);
        }
        self.step += 1;
        self.tell(&text);
        Ok((text, by))
    }

    /// The best candidate that will do, if there is one.
    pub(crate) fn write_if(&mut self, asked: &Asked<'_>) -> Result<Option<String>, ProduceError> {
        let text = self.best(asked)?;
        self.step += 1;
        if let Some(text) = &text {
            self.counts.by_model += 1;
            self.written.add(text, self.premise);
            self.tell(text);
        }
        Ok(text)
    }

    fn best(&mut self, asked: &Asked<'_>) -> Result<Option<String>, ProduceError> {
        if self.silent {
            return Ok(None);
        }
        let mut best: Option<(i64, String)> = None;
        let mut wrong: Option<(String, Vec<String>)> = None;
        let mut seeds = Draw::new(self.options.seed, &asked.place);
        let candidates = if self.of > LONG_TEXTS {
            self.options.candidates.min(CANDIDATES_LONG)
        } else {
            self.options.candidates
        };
        for attempt in 0..self.options.tries.max(candidates).max(1) {
            if attempt >= candidates && best.is_some() {
                break;
            }
            self.cancel.check()?;
            let request = self.request(asked, seeds.next(), wrong.as_ref());
            self.counts.drawn += 1;
            let reply = match self.llm.complete(&request, self.cancel) {
                Ok(reply) => reply,
                Err(error) if error.passing && self.failures < FAILURES_MAX => {
                    self.failures += 1;
                    self.counts.refused += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.failures = 0;
            self.counts.tokens += reply.tokens;
            let (text, found) = self.read(asked, &request, &reply);
            match (text, found) {
                (Some(text), Ok(score)) => {
                    // Of two texts that will do, the one that is more like language to the model.
                    let likely = reply.mean_logprob.unwrap_or(0.0).clamp(-20.0, 0.0);
                    let score = score + (likely * LIKELIHOOD_WEIGHT) as i64;
                    if best.as_ref().is_none_or(|(most, _)| score > *most) {
                        best = Some((score, text));
                    }
                }
                (_, Ok(_)) => {}
                (_, Err(complaints)) => {
                    self.counts.refused += 1;
                    wrong = Some((reply.text, complaints));
                }
            }
        }
        Ok(best.map(|(_, text)| text))
    }

    /// The text of a reply and its score, or what is wrong with it.
    fn read(
        &self,
        asked: &Asked<'_>,
        request: &LlmRequest,
        reply: &LlmReply,
    ) -> (Option<String>, Result<i64, Vec<String>>) {
        let Some(value) = near_json(&reply.text) else {
            let field = asked.step.field;
            let complaint = format!("reply with JSON such as {{\"{field}\": \"...\"}}");
            return (None, Err(vec![complaint]));
        };
        if let Some(schema) = &request.schema {
            let found = complaints(&value, schema);
            if !found.is_empty() {
                return (None, Err(found));
            }
        }
        let text = value[asked.step.field].as_str().unwrap_or("").trim();
        let text = self.tidy(text, asked.used_for);
        let wanted = Wanted {
            used_for: asked.used_for,
            premise: self.premise,
            subject: asked.subject,
            words: asked.words,
            columns_max: asked.chars_max,
            examples: asked.step.examples,
            taken: asked.taken,
        };
        let verdict = judge(&text, &wanted, &self.written);
        if verdict.complaints.is_empty() {
            (Some(text), Ok(verdict.score))
        } else {
            (None, Err(verdict.complaints))
        }
    }

    /// Without quotes around it, with a capital and a full stop where a sentence has them.
    fn tidy(&self, text: &str, used_for: Use) -> String {
        let quotes = ['"', '“', '”', '„', '«', '»', '「', '」', '\''];
        let text = text.trim_matches(quotes).trim();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if matches!(used_for, Use::Label | Use::Look) {
            return text;
        }
        let mut chars = text.chars();
        let mut out: String = match chars.next() {
            Some(first) => first.to_uppercase().chain(chars).collect(),
            None => return text,
        };
        let ends = ['.', '!', '?', '…', '。', '！', '？', '؟', '।'];
        if !out.ends_with(ends) {
            out = out
                .trim_end_matches([',', ';', ':', '，', '、', '،'])
                .to_owned();
            out.push_str(self.premise.writing.full_stop());
        }
        out
    }

    fn request(
        &self,
        asked: &Asked<'_>,
        seed: u64,
        wrong: Option<&(String, Vec<String>)>,
    ) -> LlmRequest {
        let constrained = self.llm.kind() == LlmKind::Constrained;
        let field = asked.step.field;
        let said = |role, text| Message { role, text };
        let mut messages = Vec::new();
        for (question, reply) in asked.step.examples {
            let reply = serde_json::json!({ field: reply }).to_string();
            messages.push(said(Role::User, (*question).to_owned()));
            messages.push(said(Role::Assistant, reply));
        }
        let mut question = asked.question.clone();
        if !asked.complaints.is_empty() {
            question.push_str("\nMind: ");
            question.push_str(&asked.complaints.join("; "));
        }
        messages.push(said(Role::User, question));
        // A model that is held to the schema does better with another draw than with advice.
        if let (false, Some((reply, complaints))) = (constrained, wrong) {
            let reply: String = reply.chars().take(400).collect();
            let advice: Vec<&str> = complaints
                .iter()
                .take(COMPLAINTS_MAX)
                .map(String::as_str)
                .collect();
            messages.push(said(Role::Assistant, reply));
            messages.push(said(
                Role::User,
                format!("That will not do: {}.", advice.join("; ")),
            ));
        }
        let mut system = asked.step.system.to_owned();
        if self.premise.language != "en" {
            let language = language_name(&self.premise.language);
            system.push_str(&format!(" Write in {language}."));
        }
        if !constrained {
            let (least, most) = asked.words;
            let unit = if self.premise.writing.is_unspaced() {
                "characters"
            } else {
                "words"
            };
            system.push_str(&format!(
                " Reply with JSON {{\"{field}\": \"...\"}} and nothing else, {least} to {most} \
                 {unit}."
            ));
        }
        let pattern = asked.pattern.as_deref().filter(|_| constrained);
        LlmRequest {
            system,
            messages,
            schema: Some(reply_schema(field, pattern, asked.chars_max.max(20) * 2)),
            max_tokens: if constrained { 80 } else { 400 },
            temperature: self.options.temperature,
            seed,
            stop: Vec::new(),
        }
    }
}
