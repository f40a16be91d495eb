//! What is said in the film: narration and dialogue, or the premise where the model is silent.

use super::error::ProduceError;
use super::forms;
use super::judge::Use;
use super::premise::sentences;
use super::prompts::{
    DIALOGUE, NARRATION, NARRATION_STARTS, SPEECH_STARTS, Start, sentence_pattern,
};
use super::stages::Stages;
use super::writer::Asked;
use crate::llm::LlmKind;
use crate::origin::{By, Origins};
use crate::script::{Line, Script};
use crate::speech::columns;

/// Sets of forms that are tried for one line.
const ROUNDS: usize = 3;

impl Stages<'_> {
    pub(super) fn lines(&mut self, script: &mut Script) -> Result<(), ProduceError> {
        self.writer.stage("lines");
        if self.writer.is_silent() {
            self.narrate_premise(script);
            return Ok(());
        }
        let mut number = 0;
        let count = self.subjects.len();
        for scene in 0..script.scenes.len() {
            for shot in 0..script.scenes[scene].shots.len() {
                let mut draw = self.draw(&format!("line {number}"));
                // A quarter of the shots is silent, never the first two, and never the last.
                let silent = number > 1 && number + 1 < count && draw.below(4) == 0;
                let speaks = draw.below(5) < 4;
                let speaker = self.subjects[number].member.filter(|_| speaks);
                if !silent
                    && let Some(line) = self.line(script, (scene, shot), speaker, number, &[])?
                {
                    script.scenes[scene].shots[shot].lines.push(line);
                }
                number += 1;
            }
        }
        Ok(())
    }

    /// The sentences of the premise as narration, over the film from its first shot on.
    fn narrate_premise(&self, script: &mut Script) {
        let sentences = sentences(&self.premise.text);
        let count = self.subjects.len();
        let step = (count / sentences.len().max(1)).max(1);
        let shots = script.scenes.iter_mut().flat_map(|scene| &mut scene.shots);
        let columns_max = self.outline.columns_max();
        let said = sentences
            .into_iter()
            .filter(|each| columns(each) <= columns_max);
        for (shot, text) in shots.step_by(step).zip(said) {
            shot.lines.push(Line {
                text: text.to_owned(),
                by: Origins::default().with(By::User, &["text"]),
                ..Line::default()
            });
        }
    }

    /// A line for a shot; none when the model gives none that will do: silence needs no rule. A
    /// weak model gets other forms to fill before that.
    pub(super) fn line(
        &mut self,
        script: &Script,
        (scene, shot): (usize, usize),
        speaker: Option<usize>,
        number: usize,
        complaints: &[String],
    ) -> Result<Option<Line>, ProduceError> {
        let rounds = if self.writer.is_weak() { ROUNDS } else { 1 };
        for round in 0..rounds {
            let again = complaints.len() + 100 * round;
            let line =
                self.try_line(script, (scene, shot), speaker, (number, again), complaints)?;
            if line.is_some() {
                return Ok(line);
            }
        }
        Ok(None)
    }

    fn try_line(
        &mut self,
        script: &Script,
        (scene, shot): (usize, usize),
        speaker: Option<usize>,
        (number, again): (usize, usize),
        complaints: &[String],
    ) -> Result<Option<Line>, ProduceError> {
        let premise = self.premise;
        let mut draw = self.draw(&format!("start of line {number} {again}"));
        let name = speaker.map_or("", |member| script.cast[member].name.as_str());
        let (step, groups) = if speaker.is_some() {
            (&DIALOGUE, SPEECH_STARTS)
        } else {
            (&NARRATION, NARRATION_STARTS)
        };
        let group = draw.below(groups.len());
        let start = if self.english() {
            Start::Words(groups[group])
        } else {
            Start::Any
        };
        let asks = self.english() && speaker.is_some() && group == 1;
        let seen = &script.scenes[scene].shots[shot].action;
        let mut question = format!("{}\nSeen: {seen}", self.story());
        if self.writer.kind() == LlmKind::Remote {
            let before = script.scenes[scene].shots[..shot]
                .iter()
                .rev()
                .find_map(|shot| shot.lines.last());
            if let Some(before) = before {
                question.push_str(&format!("\nSaid before: {}", before.text));
            }
        }
        question.push_str(&if speaker.is_some() {
            format!("\n{name} says")
        } else {
            "\nThe narrator says".to_owned()
        });
        let columns_max = self.outline.columns_max().clamp(16, 74);
        let words = match (premise.writing.is_unspaced(), self.writer.is_weak()) {
            (true, _) => (4, (columns_max / 2).clamp(6, 30)),
            (false, false) => (4, self.outline.words_max().clamp(5, 12)),
            (false, true) => (3, 14),
        };
        let count = self.subjects.len();
        let told = speaker.map(|_| name);
        let form = self
            .writer
            .is_weak()
            .then(|| self.line_form(script, scene, told, (number, count), number + again))
            .flatten();
        let pattern = form.as_deref().map_or_else(
            || sentence_pattern(premise, &start, words, asks),
            forms::pattern,
        );
        let asked = Asked {
            step,
            question,
            pattern: Some(pattern),
            chars_max: columns_max,
            used_for: Use::Speech,
            subject: "",
            words,
            place: format!("line {number} {again}"),
            complaints: complaints.to_vec(),
            taken: &[],
        };
        let text = self.writer.write_if(&asked)?;
        Ok(text.map(|text| Line {
            speaker: name.to_owned(),
            text,
            by: Origins::default()
                .with(By::Model, &["text"])
                .with(By::Rule, &["speaker"]),
            ..Line::default()
        }))
    }
}
