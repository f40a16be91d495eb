//! `film.mux`: segments, sound, subtitles and chapters as one film file.

use std::collections::BTreeMap;

use engine_base::Datum;
use flow_graph::{
    Call, Exactness, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Value, Widget,
};
use flow_media::mux::{MuxRequest, mux_film};
use flow_timeline::{Chapter, Cue, FilmFormat};

use super::sound_mix::blob_paths;
use super::{codecs, failed};
use crate::spec;

/// The last step: joins without encoding again.
pub(crate) struct Mux {
    spec: NodeSpec,
}

impl Mux {
    pub(crate) fn new() -> Self {
        let help = "Joins segments without encoding them again and adds sound, subtitles, chapters \
                    and what is to be known about the film.";
        let mut spec = spec::node("film.mux", 1, "Film file", "film", help);
        let language = Widget::Text {
            default: "en",
            multiline: false,
            max_chars: 35,
        };
        spec.inputs = vec![
            spec::list("segments", PortType::VIDEO, "The film's segments in order."),
            spec::optional(spec::linked(
                "sound",
                PortType::AUDIO,
                "The film's encoded sound.",
            )),
            spec::data("format", Datum::Null, "Size, frame rate and sample rate."),
            spec::data("cues", Datum::List(vec![]), "Subtitles."),
            spec::data("chapters", Datum::List(vec![]), "Chapters."),
            spec::data("metadata", Datum::Map(BTreeMap::new()), "Texts by name."),
            spec::set(
                "language",
                PortType::TEXT,
                language,
                "Of speech and subtitles (BCP 47).",
            ),
        ];
        spec.outputs = vec![spec::gives("film", PortType::VIDEO, "The film as MP4.")];
        spec.exactness = Exactness::Tolerant;
        spec.output_node = true;
        Self { spec }
    }
}

impl Node for Mux {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        codecs()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let segments = blob_paths(context, call, "segments")?;
        let sound = match call.list("sound").first().and_then(Value::as_blob) {
            Some(blob) => Some(context.artifacts.path(&blob.hash)?),
            None => None,
        };
        let format: FilmFormat = spec::read("format", call.datum("format")?)?;
        let cues: Vec<Cue> = spec::read("cues", call.datum("cues")?)?;
        let chapters: Vec<Chapter> = spec::read("chapters", call.datum("chapters")?)?;
        let metadata: BTreeMap<String, String> = spec::read("metadata", call.datum("metadata")?)?;
        let file = context.artifacts.temp("mp4")?;
        let request = MuxRequest {
            segments: &segments,
            sound: sound.as_deref(),
            cues: &cues,
            chapters: &chapters,
            metadata,
            language: Some(call.text("language")?),
            format,
            out: file.path(),
        };
        mux_film(&request, context.cancel, context.progress).map_err(failed)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "video/mp4")?))
    }
}
