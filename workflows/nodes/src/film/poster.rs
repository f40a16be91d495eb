//! `film.poster`: one frame of a segment as a picture.

use engine_base::Datum;
use flow_graph::{
    Call, Exactness, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};

use super::{codecs, failed};
use crate::spec;

/// One frame as PNG.
pub(crate) struct Poster {
    spec: NodeSpec,
}

impl Poster {
    pub(crate) fn new() -> Self {
        let help = "Takes one frame of a segment as a picture, for lists and shop windows.";
        let mut spec = spec::node("film.poster", 1, "Poster frame", "film", help);
        let frame = Widget::Int {
            default: 0,
            min: 0,
            max: i64::from(i32::MAX),
        };
        spec.inputs = vec![
            spec::linked("video", PortType::VIDEO, "The segment."),
            spec::set(
                "frame",
                PortType::INT,
                frame,
                "Which frame, counted from 0.",
            ),
        ];
        spec.outputs = vec![spec::gives(
            "picture",
            PortType::PICTURE,
            "The frame as PNG.",
        )];
        spec.exactness = Exactness::Tolerant;
        spec.output_node = true;
        Self { spec }
    }
}

impl Node for Poster {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        codecs()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let video = context.artifacts.path(&call.blob("video")?.hash)?;
        let file = context.artifacts.temp("png")?;
        flow_media::mux::poster(&video, call.int("frame")?, file.path()).map_err(failed)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "image/png")?))
    }
}
