//! `film.sound_mix`: the sound of a stretch of film, before loudness.

use std::path::PathBuf;

use engine_base::{Code, Datum};
use flow_graph::{Call, Exactness, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType};

use super::{codecs, failed};
use crate::spec;

/// Voices, music, ambience and effects as 32-bit float stereo.
pub(crate) struct SoundMix {
    spec: NodeSpec,
}

impl SoundMix {
    pub(crate) fn new() -> Self {
        let help = "Places sounds on a stretch of film, with fades, loops and room for speech.";
        let mut spec = spec::node("film.sound_mix", 1, "Sound mix", "film", help);
        let sounds = PortType::named("audio,video");
        spec.inputs = vec![
            spec::optional(spec::list(
                "sources",
                sounds,
                "The sounds, as the mix counts them.",
            )),
            spec::data("mix", Datum::Null, "Length and what is heard when."),
        ];
        spec.outputs = vec![spec::gives("sound", PortType::AUDIO, "Float stereo sound.")];
        spec.exactness = Exactness::Tolerant;
        Self { spec }
    }
}

impl Node for SoundMix {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        codecs()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let mix: flow_timeline::SoundMix = spec::read("mix", call.datum("mix")?)?;
        let sources = blob_paths(context, call, "sources")?;
        let file = context.artifacts.temp("wav")?;
        flow_media::sound::mix(
            &mix,
            &sources,
            file.path(),
            context.cancel,
            context.progress,
        )
        .map_err(failed)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "audio/wav")?))
    }
}

/// Paths of all files of a list input.
pub(super) fn blob_paths(
    context: &NodeContext<'_>,
    call: &Call,
    input: &str,
) -> Result<Vec<PathBuf>, NodeError> {
    let path = |(at, value): (usize, &flow_graph::Value)| {
        let blob = value.as_blob().ok_or_else(|| {
            let what = format!("input {input:?}, item {at}: expected a file, got something else");
            NodeError::new(Code::BadInput, what)
        })?;
        context.artifacts.path(&blob.hash)
    };
    call.list(input).iter().enumerate().map(path).collect()
}
