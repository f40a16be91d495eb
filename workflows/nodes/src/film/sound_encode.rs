//! `film.sound_encode`: the one final encode of a film's sound.

use engine_base::Datum;
use flow_graph::{
    Call, Exactness, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};
use flow_media::sound::{EncodeOptions, Limiter, SoundFormat, encode_film};

use super::sound_mix::blob_paths;
use super::{codecs, failed};
use crate::spec;

/// Gain, true-peak limiter and AAC over all mixes of a film.
pub(crate) struct SoundEncode {
    spec: NodeSpec,
}

impl SoundEncode {
    pub(crate) fn new() -> Self {
        let help = "Brings a film's sound to its loudness, holds its peaks and encodes it once.";
        let mut spec = spec::node("film.sound_encode", 1, "Encode sound", "film", help);
        let bitrate = Widget::Int {
            default: 192_000,
            min: 32_000,
            max: 512_000,
        };
        spec.inputs = vec![
            spec::list("mixes", PortType::AUDIO, "The film's mixes in order."),
            spec::linked("loudness", PortType::DATA, "What film.loudness measured."),
            spec::set("bitrate", PortType::INT, bitrate, "Bits a second."),
        ];
        spec.outputs = vec![spec::gives("sound", PortType::AUDIO, "AAC in an MP4 file.")];
        spec.exactness = Exactness::Tolerant;
        Self { spec }
    }
}

impl Node for SoundEncode {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        codecs()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let mixes = blob_paths(context, call, "mixes")?;
        let loudness: flow_media::sound::Loudness =
            spec::read("loudness", call.datum("loudness")?)?;
        let bitrate_bps = u32::try_from(call.int("bitrate")?).unwrap_or(192_000);
        let options = EncodeOptions {
            format: SoundFormat::Aac { bitrate_bps },
        };
        let file = context.artifacts.temp("m4a")?;
        encode_film(
            &mixes,
            loudness.gain_db,
            &Limiter::default(),
            file.path(),
            &options,
            context.cancel,
            context.progress,
        )
        .map_err(failed)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "audio/mp4")?))
    }
}
