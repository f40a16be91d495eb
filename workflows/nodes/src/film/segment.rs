//! `film.segment`: a stretch of pictures, rendered and encoded in one stream.

use std::path::PathBuf;
use std::sync::Arc;

use engine_base::{Code, Datum};
use flow_graph::{
    Call, Exactness, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};
use flow_media::encode::{EncodeOptions, Preset};
use flow_media::render::render_segment;
use flow_timeline::LayerKind;

use super::{Fonts, codecs, failed};
use crate::spec;

/// Camera moves, blends and cards over pictures, as one closed run of coded frames.
pub(crate) struct Segment {
    spec: NodeSpec,
    fonts: Arc<Fonts>,
}

impl Segment {
    pub(crate) fn new(fonts: Arc<Fonts>) -> Self {
        let help = "Renders one stretch of a film from stills or videos: camera move, blend, fades \
                    and text, encoded so that stretches join without being encoded again.";
        let mut spec = spec::node("film.segment", 1, "Segment", "film", help);
        let pictures = PortType::named("picture,video");
        let crf = Widget::Int {
            default: 18,
            min: 0,
            max: 40,
        };
        let preset = Widget::Choice {
            default: "medium",
            options: &["ultrafast", "veryfast", "fast", "medium", "slow"],
        };
        spec.inputs = vec![
            spec::optional(spec::list(
                "sources",
                pictures,
                "A picture or video for each layer.",
            )),
            spec::data(
                "segment",
                Datum::Null,
                "Length, layers, moves, blend, fades and text.",
            ),
            spec::data(
                "fonts",
                Datum::List(vec![]),
                "Content hashes of the fonts that draw its text.",
            ),
            spec::set(
                "crf",
                PortType::INT,
                crf,
                "Quality: lower is better and larger.",
            ),
            spec::set(
                "preset",
                PortType::TEXT,
                preset,
                "Slower makes smaller files.",
            ),
        ];
        spec.outputs = vec![spec::gives(
            "video",
            PortType::VIDEO,
            "Coded frames, no sound.",
        )];
        spec.exactness = Exactness::Tolerant;
        Self { spec, fonts }
    }
}

impl Node for Segment {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        codecs()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let segment: flow_timeline::Segment = spec::read("segment", call.datum("segment")?)?;
        let mut given = call.list("sources").iter();
        let mut sources = Vec::with_capacity(segment.layers.len());
        for (at, layer) in segment.layers.iter().enumerate() {
            if matches!(layer.source, LayerKind::Colour { .. }) {
                sources.push(PathBuf::new());
                continue;
            }
            let blob = given
                .next()
                .and_then(flow_graph::Value::as_blob)
                .ok_or_else(|| {
                    let what =
                        format!("input \"sources\": expected a file for layer {at}, got none");
                    NodeError::new(Code::BadInput, what)
                })?;
            sources.push(context.artifacts.path(&blob.hash)?);
        }
        let options = EncodeOptions {
            crf: u8::try_from(call.int("crf")?).unwrap_or(18),
            preset: spec::read::<Preset>("preset", call.datum("preset")?)?,
            // Segments run beside each other; two threads each keep the last one short.
            threads: 2,
            ..EncodeOptions::default()
        };
        let file = context.artifacts.temp("mp4")?;
        render_segment(
            &segment,
            &sources,
            &self.fonts,
            file.path(),
            &options,
            context.threads,
            context.cancel,
            context.progress,
        )
        .map_err(failed)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "video/mp4")?))
    }
}
