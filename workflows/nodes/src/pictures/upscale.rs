//! `image.upscale`: a picture at twice its size.

use std::sync::Arc;

use engine_base::Datum;
use flow_graph::{
    Call, Exactness, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};

use super::{UpscalerSource, upscale_still};
use crate::spec;

/// A picture at twice its size, as PNG.
pub(super) struct Upscale {
    spec: NodeSpec,
    source: Arc<dyn UpscalerSource>,
}

impl Upscale {
    pub(super) fn new(source: Arc<dyn UpscalerSource>) -> Self {
        let help = "Makes a picture twice as wide and twice as high with a model that draws what \
                    small pixels only hint at. Transparency, grey and 16 bits are kept.";
        let mut spec = spec::node("image.upscale", 1, "Upscale 2x", "image", help);
        let model = Widget::Text {
            default: "",
            multiline: false,
            max_chars: 200,
        };
        spec.inputs = vec![
            spec::linked("picture", PortType::PICTURE, "PNG, JPEG, WebP or TIFF."),
            spec::set(
                "model",
                PortType::TEXT,
                model,
                "Id of the model; empty for the default.",
            ),
        ];
        spec.outputs = vec![spec::gives(
            "picture",
            PortType::PICTURE,
            "The picture at twice its size, as PNG.",
        )];
        // Floats: another kind of device may round otherwise.
        spec.exactness = Exactness::Tolerant;
        spec.lane = Lane::Device;
        Self { spec, source }
    }
}

impl Node for Upscale {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        self.source.side_data()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let picture = context.artifacts.path(&call.blob("picture")?.hash)?;
        let upscaler = self.source.open(call.text("model")?)?;
        let file = context.artifacts.temp("png")?;
        let files = (picture.as_path(), file.path());
        upscale_still(&upscaler, files, 2, context.cancel, context.progress)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "image/png")?))
    }
}
