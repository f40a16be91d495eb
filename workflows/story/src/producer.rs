//! The producer: from a premise to a script, with a language model for the words and rules for
//! everything else.

mod draw;
mod dress;
mod error;
mod fallback;
mod finish;
mod forms;
mod judge;
mod near_json;
mod outline;
mod people;
mod plain_forms;
mod premise;
mod prompts;
mod schema;
mod spoken;
mod stages;
mod stills;
mod words;
mod writer;

use engine_base::CancelToken;
use flow_timeline::FilmFormat;

pub use error::ProduceError;
pub use near_json::near_json;
pub use outline::{FILM_SECS_MAX, FILM_SECS_MIN, check_film_length};
pub use premise::{PREMISE_CHARS_MAX, Premise, Writing};
pub use stills::{Picture, choose_pictures, match_pictures};

use crate::length::Length;
use crate::llm::Llm;
use crate::script::Script;

/// What a premise is made into. The same premise, options and (local) model give the same script.
#[derive(Debug, Clone, PartialEq)]
pub struct ProduceOptions {
    /// Decides every draw.
    pub seed: u64,
    /// Length of the film, credits included.
    pub length: Length,
    /// Format of the film; its rate decides on which frames shots end.
    pub format: FilmFormat,
    /// Candidates drawn for each text, of which the best is taken.
    pub candidates: usize,
    /// Most candidates drawn for a text while none will do.
    pub tries: usize,
    /// How freely the model draws.
    pub temperature: f32,
    /// Pictures to choose from.
    pub pictures: Vec<Picture>,
    /// Names of sounds that may be used: `ambience-...` and `bed-...`.
    pub sounds: Vec<String>,
}

impl Default for ProduceOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            length: Length::secs(45),
            format: FilmFormat::DEFAULT,
            candidates: 3,
            tries: 9,
            temperature: 0.8,
            pictures: Vec::new(),
            sounds: Vec::new(),
        }
    }
}

/// What happens while a script is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceEvent<'e> {
    /// The stage, for people.
    pub stage: &'static str,
    /// Texts written so far.
    pub step: usize,
    /// Texts that will be written.
    pub of: usize,
    /// The text that was just written; empty when a stage begins.
    pub text: &'e str,
}

/// Figures of how a script came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProduceCounts {
    /// Candidates that the model was asked for.
    pub drawn: usize,
    /// Candidates refused by the rules.
    pub refused: usize,
    /// Tokens of all replies.
    pub tokens: usize,
    /// Texts by the model.
    pub by_model: usize,
    /// Texts by rule because no candidate would do.
    pub by_rule: usize,
    /// Shots.
    pub shots: usize,
    /// Shots about which the linter said nothing before anything was repaired.
    pub shots_clean: usize,
    /// Shots written again because of the linter.
    pub shots_repaired: usize,
}

/// A script and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Produced {
    /// The script; valid, of the length asked for to the frame.
    pub script: Script,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Figures.
    pub counts: ProduceCounts,
}

/// Write the script of a film from a premise.
///
/// # Errors
/// [`ProduceError`]: a premise without words, a length out of range, a model that fails for good.
/// Bad replies are no error: they are asked for again, and in the end a rule writes the text.
pub fn produce(
    premise: &str,
    options: &ProduceOptions,
    llm: &mut dyn Llm,
    watch: &mut dyn FnMut(&ProduceEvent<'_>),
    cancel: &CancelToken,
) -> Result<Produced, ProduceError> {
    let premise = Premise::read(premise)?;
    stages::Stages::new(&premise, options, llm, watch, cancel)?.run()
}
