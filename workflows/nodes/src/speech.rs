//! Nodes that speak.

mod line;

use std::ops::Range;
use std::sync::Arc;

use engine_base::{CancelToken, ContentHash, ProgressSink};
use flow_graph::{Node, NodeError};
use serde::{Deserialize, Serialize};

pub(crate) use line::VERSION as LINE_VERSION;
pub use line::{LineSound, line_sound};

/// A text for a voice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeechLine {
    /// The text.
    pub text: String,
    /// Id of the voice.
    pub voice: String,
    /// BCP-47 tag of the text's language.
    pub language: String,
    /// 1 is the voice's own pace.
    pub rate: f64,
    /// Content hash of everything that decides how the voice sounds.
    pub weights: ContentHash,
}

/// A word in the sound of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct HeardWord {
    /// Its bytes in the text.
    pub source: Range<usize>,
    /// Where it begins in the sound.
    pub start_secs: f64,
    /// Where it ends.
    pub end_secs: f64,
}

/// The sound of a text: one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeechSound {
    /// Its samples.
    pub samples: Vec<f32>,
    /// Its sampling rate.
    pub rate_hz: u32,
    /// Its words in order.
    pub words: Vec<HeardWord>,
}

/// The voices of this machine.
pub trait SpeechSource: Send + Sync {
    /// Content hash of everything that decides how `voice` sounds.
    ///
    /// # Errors
    /// There is no such voice here.
    fn weights(&self, voice: &str) -> Result<ContentHash, NodeError>;

    /// Speak a line.
    ///
    /// # Errors
    /// The voice is not here, does not speak the language or cannot say the text.
    fn speak(
        &self,
        line: &SpeechLine,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<SpeechSound, NodeError>;
}

/// Types of this folder, which speak with `source`.
pub fn speech_node_types(source: &Arc<dyn SpeechSource>) -> Vec<Arc<dyn Node>> {
    vec![Arc::new(line::Line::new(Arc::clone(source)))]
}
