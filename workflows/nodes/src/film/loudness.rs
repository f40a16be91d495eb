//! `film.loudness`: how loud a film is, and the gain that brings it to the target.

use engine_base::{Code, Datum};
use flow_graph::{
    Call, Exactness, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};

use super::sound_mix::blob_paths;
use super::{codecs, failed};
use crate::compile::LoudnessTarget;
use crate::spec;

/// Loudness of all mixes of a film in a row.
pub(crate) struct Loudness {
    spec: NodeSpec,
}

impl Loudness {
    pub(crate) fn new() -> Self {
        let help = "Measures the loudness of a whole film (EBU R 128) and the gain it needs.";
        let mut spec = spec::node("film.loudness", 1, "Loudness", "film", help);
        let mixes = spec::list("mixes", PortType::AUDIO, "The film's mixes in order.");
        let target = Widget::Choice {
            default: LoudnessTarget::Web.as_str(),
            options: &["-14", "-16", "-23", "-24", "as it is"],
        };
        let about = "Integrated loudness in LUFS that the gain brings it to.";
        let target = spec::set("target", PortType::TEXT, target, about);
        spec.inputs = vec![mixes, target];
        spec.outputs = vec![spec::gives(
            "loudness",
            PortType::DATA,
            "Levels and gain in dB.",
        )];
        spec.exactness = Exactness::Tolerant;
        Self { spec }
    }
}

impl Node for Loudness {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        codecs()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let mixes = blob_paths(context, call, "mixes")?;
        // A number, or words for none.
        let target = call.text("target")?.parse::<f64>().ok();
        let loudness =
            flow_media::sound::measure_for(&mixes, target, context.cancel, context.progress)
                .map_err(failed)?;
        let datum = serde_json::to_value(loudness).and_then(serde_json::from_value);
        let datum: Datum = datum.map_err(|error| {
            NodeError::new(
                Code::Internal,
                format!("cannot write the loudness down: {error}"),
            )
        })?;
        Ok(Outcome::data(datum))
    }
}
