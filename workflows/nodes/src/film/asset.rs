//! `asset.file`: a file that somebody brought in.

use engine_base::Code;
use flow_graph::{
    BlobRef, Call, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};

use crate::spec;

/// A picture, video or sound by content hash.
pub(crate) struct Asset {
    spec: NodeSpec,
}

impl Asset {
    pub(crate) fn new() -> Self {
        let help = "A picture, video or sound that you brought in, by its content.";
        let mut spec = spec::node("asset.file", 1, "File", "asset", help);
        let any = PortType::named("picture,video,audio,file");
        let media_type = Widget::Text {
            default: "application/octet-stream",
            multiline: false,
            max_chars: 100,
        };
        spec.inputs = vec![
            spec::set(
                "content",
                PortType::FILE,
                Widget::Asset { accept: &["*/*"] },
                "The file's content hash.",
            ),
            spec::set(
                "media_type",
                PortType::TEXT,
                media_type,
                "What kind of file it is.",
            ),
        ];
        spec.inputs[0].required = true;
        spec.outputs = vec![spec::gives("file", any, "The file.")];
        spec.durable = false;
        spec.cheap = true;
        Self { spec }
    }
}

impl Node for Asset {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let hash = call.text("content")?.parse().map_err(|error| {
            NodeError::new(Code::BadInput, format!("input \"content\": {error}"))
        })?;
        let path = context.artifacts.path(&hash)?;
        let bytes = std::fs::metadata(&path)
            .map_err(|error| {
                let what = format!("cannot read the asset {}: {error}: {path:?}", hash.short());
                NodeError::new(Code::of_io(&error), what)
            })?
            .len();
        let media_type = call.text("media_type")?.to_owned();
        Ok(Outcome::blob(BlobRef {
            hash,
            bytes,
            media_type,
        }))
    }
}
