//! `speech.line`: a text spoken by a voice.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_base::{Code, ContentHash, Datum, Rational};
use flow_graph::{
    BlobRef, Call, Exactness, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome, PortOutput,
    PortType, Value, Widget,
};

use super::{SpeechLine, SpeechSource};
use crate::film::failed;
use crate::spec;

/// Words of a line kept with their times; longer texts keep those of their beginning.
const WORDS_MAX: usize = 1000;

/// Version of the node type. 1 did not know pauses in the text, and comparisons only with blanks.
pub(crate) const VERSION: u32 = 2;

/// A text spoken by a voice.
pub(super) struct Line {
    spec: NodeSpec,
    source: Arc<dyn SpeechSource>,
}

impl Line {
    pub(super) fn new(source: Arc<dyn SpeechSource>) -> Self {
        let help = "Speaks a text: its sound, and when each word is heard.";
        let mut spec = spec::node("speech.line", VERSION, "Speak", "speech", help);
        let text = |multiline, max_chars| Widget::Text {
            default: "",
            multiline,
            max_chars,
        };
        spec.inputs = vec![
            spec::set(
                "text",
                PortType::TEXT,
                text(true, 100_000),
                "What is said. [word](/sounds/) gives a word's sounds, <break time=\"500ms\"/> a pause.",
            ),
            spec::set(
                "voice",
                PortType::TEXT,
                text(false, 200),
                "Id of the voice, as `longtake speak --list` shows them.",
            ),
            spec::set(
                "language",
                PortType::TEXT,
                Widget::Text {
                    default: "en",
                    multiline: false,
                    max_chars: 40,
                },
                "Language tag of the text.",
            ),
            spec::set(
                "rate",
                PortType::FLOAT,
                Widget::Float {
                    default: 1.0,
                    min: 0.5,
                    max: 2.0,
                },
                "1 is the voice's own pace.",
            ),
            spec::set(
                "weights",
                PortType::TEXT,
                text(false, 64),
                "Content hash of the voice; empty takes the one that is here.",
            ),
        ];
        spec.outputs = vec![
            spec::gives(
                "sound",
                PortType::AUDIO,
                "Float stereo sound, both channels alike.",
            ),
            spec::gives(
                "words",
                PortType::DATA,
                "Length in samples, sampling rate, and [first byte, end byte, start, end] of each \
                 word, times in milliseconds.",
            ),
        ];
        spec.exactness = Exactness::Tolerant;
        spec.lane = Lane::Device;
        Self { spec, source }
    }
}

impl Node for Line {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn migrate(
        &self,
        from_version: u32,
        widgets: BTreeMap<String, Datum>,
    ) -> Result<BTreeMap<String, Datum>, NodeError> {
        if matches!(from_version, 1 | VERSION) {
            return Ok(widgets);
        }
        let message = format!(
            "cannot read \"speech.line\" version {from_version}: expected at most version {VERSION}"
        );
        Err(NodeError::new(Code::Refused, message))
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let voice = call.text("voice")?;
        let here = self.source.weights(voice)?;
        let asked = call.text("weights")?;
        if !asked.is_empty() && asked != here.to_hex() {
            let message = format!(
                "the voice {voice:?} on this machine is another one: expected {asked}, got {}",
                here.to_hex()
            );
            return Err(NodeError::new(Code::Refused, message));
        }
        let line = SpeechLine {
            text: call.text("text")?.to_owned(),
            voice: voice.to_owned(),
            language: call.text("language")?.to_owned(),
            rate: call.float("rate")?,
            weights: here,
        };
        let sound = self.source.speak(&line, context.cancel, context.progress)?;
        let file = context.artifacts.temp("wav")?;
        let mut writer =
            flow_media::sound::WaveWriter::create(file.path(), sound.rate_hz).map_err(failed)?;
        for samples in sound.samples.chunks(4096) {
            let both: Vec<f32> = samples.iter().flat_map(|sample| [*sample; 2]).collect();
            writer.write(&both).map_err(failed)?;
        }
        let samples = writer.finish().map_err(failed)?;
        let millis = |secs: f64| Datum::Int((secs * 1000.0).round() as i64);
        let words = sound.words.iter().take(WORDS_MAX).map(|word| {
            Datum::List(vec![
                Datum::whole(word.source.start as u64),
                Datum::whole(word.source.end as u64),
                millis(word.start_secs),
                millis(word.end_secs),
            ])
        });
        let words = Datum::map([
            ("samples", Datum::whole(samples)),
            ("rate_hz", Datum::from(sound.rate_hz)),
            ("words", Datum::List(words.collect())),
        ]);
        let blob = context.artifacts.adopt(file, "audio/wav")?;
        Ok(Outcome::Values(vec![
            PortOutput::One(Value::Blob(blob)),
            PortOutput::One(Value::data(words)),
        ]))
    }
}

/// What a `speech.line` node gave.
#[derive(Debug, Clone, PartialEq)]
pub struct LineSound {
    /// Its sound.
    pub sound: ContentHash,
    /// Length of the sound.
    pub secs: Rational,
    /// End byte, start and end in milliseconds of each word.
    pub words: Vec<(usize, i64, i64)>,
}

/// Read the outputs of a `speech.line` node.
///
/// # Errors
/// They are not what that node gives: a fault of ours.
pub fn line_sound(sound: &BlobRef, words: &Datum) -> Result<LineSound, NodeError> {
    let fault = || {
        let message = "the words of a spoken line have another form than expected";
        NodeError::new(Code::Internal, message)
    };
    let whole = |name: &str| words.get(name).and_then(Datum::as_i64).ok_or_else(fault);
    let (samples, rate_hz) = (whole("samples")?, whole("rate_hz")?);
    let list = words
        .get("words")
        .and_then(Datum::as_list)
        .ok_or_else(fault)?;
    let words = list.iter().map(|word| {
        let figures: Option<Vec<i64>> = word.as_list()?.iter().map(Datum::as_i64).collect();
        match figures?[..] {
            [_, end, start_millis, end_millis] => {
                Some((usize::try_from(end).ok()?, start_millis, end_millis))
            }
            _ => None,
        }
    });
    let words: Option<Vec<_>> = words.collect();
    Ok(LineSound {
        sound: sound.hash,
        secs: Rational::new(samples, rate_hz).map_err(|_zero| fault())?,
        words: words.ok_or_else(fault)?,
    })
}
