//! `film.subtitles`: subtitles as an SRT file.

use engine_base::{Code, Datum, Rational};
use flow_graph::{Call, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget};
use flow_media::subtitle::{SrtStyle, write_srt};
use flow_timeline::Cue;

use super::failed;
use crate::spec;

/// Cues written as SRT.
pub(crate) struct Subtitles {
    spec: NodeSpec,
}

impl Subtitles {
    pub(crate) fn new() -> Self {
        let help = "Writes subtitles as an SRT file (UTF-8).";
        let mut spec = spec::node("film.subtitles", 1, "Subtitles", "film", help);
        let rate = Widget::Text {
            default: "24",
            multiline: false,
            max_chars: 20,
        };
        spec.inputs = vec![
            spec::data(
                "cues",
                Datum::List(vec![]),
                "Text, first frame and frames of each.",
            ),
            spec::set(
                "fps",
                PortType::TEXT,
                rate,
                "Frames a second, such as 24 or 30000/1001.",
            ),
        ];
        spec.outputs = vec![spec::gives("file", PortType::FILE, "The SRT file.")];
        spec.output_node = true;
        Self { spec }
    }
}

impl Node for Subtitles {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let cues: Vec<Cue> = spec::read("cues", call.datum("cues")?)?;
        let fps: Rational = call
            .text("fps")?
            .parse()
            .map_err(|error| NodeError::new(Code::BadInput, format!("input \"fps\": {error}")))?;
        let file = context.artifacts.temp("srt")?;
        let text = write_srt(&cues, fps, &SrtStyle::default()).map_err(failed)?;
        std::fs::write(file.path(), text).map_err(|error| {
            let what = format!("cannot write the subtitles: {error}");
            NodeError::new(Code::of_io(&error), what)
        })?;
        Ok(Outcome::blob(
            context.artifacts.adopt(file, "application/x-subrip")?,
        ))
    }
}
