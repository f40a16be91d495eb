//! `image.draw`: a picture from a prompt.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash, Datum, ProgressEvent, ProgressSink};
use engine_pipelines::{
    GivenPicture, ImageError, ImagePipeline, ImageRequest, KeptLatent, RgbaImage,
};
use flow_graph::{
    Call, Exactness, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};
use flow_media::Pixels;
use flow_media::still::{SavePicture, SaveSamples, StillOptions, load_still, save_still};

use super::failed;
use crate::spec;

/// Largest side that can be asked for.
pub(super) const SIDE_MAX_PX: i64 = 65_536;

/// Opens picture models by their id, or the default one by an empty id.
pub trait ImageModelSource: Send + Sync {
    /// Open the model called `id`.
    ///
    /// # Errors
    /// There is no such model, or it is not here.
    fn open(&self, id: &str) -> Result<Arc<ImagePipeline>, NodeError>;

    /// Open a model of any kind.
    ///
    /// # Errors
    /// There is no such model, or it cannot be opened.
    fn open_choice(&self, choice: &ImageChoice) -> Result<Arc<ImagePipeline>, NodeError>;

    /// The content of all files of a choice.
    ///
    /// # Errors
    /// There is no such model, or a file cannot be read.
    fn content_of(&self, choice: &ImageChoice) -> Result<ContentHash, NodeError>;

    /// What decides the results of models: their content hashes.
    fn side_data(&self) -> Datum;
}

/// Which model, with what merged into it: what loader and adapter nodes hand on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageChoice {
    /// Id of the model, its folder or its file; empty for the default one.
    pub model: String,
    /// Folder of the text encoder, instead of the model's own.
    pub text_encoder: Option<PathBuf>,
    /// Folder of the autoencoder, instead of the model's own.
    pub vae: Option<PathBuf>,
    /// Adapters with their weights.
    pub adapters: Vec<(PathBuf, f32)>,
}

/// A picture that was drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnStill {
    /// Its width.
    pub width_px: u32,
    /// Its height.
    pub height_px: u32,
    /// Steps that were taken from a latent kept of an earlier run.
    pub kept_steps: u32,
    /// What went on differently, for people.
    pub notes: Vec<String>,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape of a map_err function"
)]
pub(super) fn refused(error: ImageError) -> NodeError {
    NodeError::new(error.code(), error.to_string())
}

/// Draws `request` and writes it to `to`, by the ending of its name. With `kept`, the latent is kept there
/// after every step, a run goes on from what it finds there of the same request, and the file is removed
/// when the picture is there.
///
/// # Errors
/// The pipeline's; a file that cannot be written; cancelled.
pub fn draw_still(
    pipeline: &ImagePipeline,
    request: &ImageRequest,
    (to, kept): (&Path, Option<&Path>),
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<DrawnStill, NodeError> {
    let mark = pipeline.mark(request).map_err(refused)?;
    let mut notes = Vec::new();
    let found = match kept.filter(|path| path.is_file()) {
        None => None,
        Some(path) => match KeptLatent::load(&mark, path) {
            Ok(kept) => Some(kept),
            Err(error) => {
                notes.push(format!("the picture is begun anew: {error}"));
                None
            }
        },
    };
    let kept_steps = found.as_ref().map_or(0, |found| found.step);
    let mut unkept = None;
    let drawn = pipeline.draw_from(request, found, cancel, &mut |step| {
        progress.report(ProgressEvent {
            what: "drawing".to_owned(),
            step: u64::from(step.step),
            of: u64::from(step.of),
            secs_left: None,
        });
        if let Some(path) = kept
            && let Err(error) = KeptLatent::save(step.step, step.latent, &mark, path)
        {
            unkept = Some(format!(
                "the picture cannot go on later where it is: {error}"
            ));
        }
        if cancel.is_cancelled() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let drawn = drawn.map_err(refused)?;
    notes.extend(unkept);
    notes.extend(drawn.notes.clone());
    notes.extend(save_drawn(&drawn, to)?);
    if let Some(path) = kept.filter(|path| path.is_file()) {
        std::fs::remove_file(path).map_err(|error| {
            let message = format!(
                "cannot remove a kept latent: {error}, at {}",
                path.display()
            );
            NodeError::new(Code::of_io(&error), message)
        })?;
    }
    Ok(DrawnStill {
        width_px: drawn.width_px,
        height_px: drawn.height_px,
        kept_steps,
        notes,
    })
}

/// Writes a drawn picture by the ending of its name; gives what could not be kept.
pub(super) fn save_drawn(drawn: &RgbaImage, to: &Path) -> Result<Vec<String>, NodeError> {
    let picture = SavePicture {
        width_px: drawn.width_px,
        height_px: drawn.height_px,
        channels: 4,
        samples: SaveSamples::U8(&drawn.rgba),
    };
    let notes = save_still(&picture, to).map_err(failed)?;
    Ok(notes.into_iter().collect())
}

/// Reads a still to hand it to a picture model.
///
/// # Errors
/// A file that is no picture, or one that is too large.
pub fn given_picture(path: &Path) -> Result<GivenPicture, NodeError> {
    let picture = load_still(path, &StillOptions::default()).map_err(failed)?;
    let rgba = match picture.pixels {
        Pixels::Rgba8(values) => values,
        Pixels::Rgba16(values) => values.iter().map(|value| (value >> 8) as u8).collect(),
    };
    GivenPicture::new(picture.width_px, picture.height_px, rgba).map_err(refused)
}

/// A picture from a prompt, as PNG.
pub(super) struct Draw {
    spec: NodeSpec,
    source: Arc<dyn ImageModelSource>,
}

pub(super) fn text(default: &'static str, multiline: bool, max_chars: usize) -> Widget {
    Widget::Text {
        default,
        multiline,
        max_chars,
    }
}

pub(super) fn whole(default: i64, max: i64) -> Widget {
    Widget::Int {
        default,
        min: 0,
        max,
    }
}

impl Draw {
    pub(super) fn new(source: Arc<dyn ImageModelSource>) -> Self {
        let help =
            "Draws a picture from words. The same words, seed and model give the same picture.";
        let mut spec = spec::node("image.draw", 1, "Draw picture", "image", help);
        let input = |name, ty, widget, help| spec::set(name, ty, widget, help);
        spec.inputs = vec![
            input(
                "prompt",
                PortType::TEXT,
                text("", true, 20_000),
                "What is to be seen.",
            ),
            input(
                "negative",
                PortType::TEXT,
                text("", true, 20_000),
                "What is not to be seen.",
            ),
            input(
                "model",
                PortType::TEXT,
                text("", false, 200),
                "Id of the model; empty for the default.",
            ),
            input(
                "width_px",
                PortType::INT,
                whole(0, SIDE_MAX_PX),
                "Width; 0 for the model's own.",
            ),
            input(
                "height_px",
                PortType::INT,
                whole(0, SIDE_MAX_PX),
                "Height; 0 for the model's own.",
            ),
            input(
                "seed",
                PortType::INT,
                Widget::Seed { default: 0 },
                "Another seed gives another picture.",
            ),
            input(
                "steps",
                PortType::INT,
                whole(0, 1000),
                "Steps from noise to picture; 0 for the model's own.",
            ),
            input(
                "guidance",
                PortType::FLOAT,
                Widget::Float {
                    default: 0.0,
                    min: 0.0,
                    max: 100.0,
                },
                "How closely the prompt is followed; 1 is no guidance, 0 the model's own.",
            ),
        ];
        spec.outputs = vec![spec::gives(
            "picture",
            PortType::PICTURE,
            "The picture, as PNG with alpha.",
        )];
        // Floats: another kind of device may round otherwise.
        spec.exactness = Exactness::Tolerant;
        spec.lane = Lane::Device;
        Self { spec, source }
    }
}

pub(super) fn seed_of(call: &Call) -> Result<u64, NodeError> {
    let datum = call.datum("seed")?;
    datum.as_u64().ok_or_else(|| {
        let message = "input \"seed\": expected a whole number from 0";
        NodeError::new(Code::BadInput, message)
    })
}

/// What a call of the node asks for.
fn request_of(call: &Call) -> Result<ImageRequest, NodeError> {
    let count = |name: &str| -> Result<u32, NodeError> {
        let got = call.int(name)?;
        u32::try_from(got).map_err(|_too_large| {
            let message = format!("input {name:?} is {got}, expected a whole number from 0");
            NodeError::new(Code::BadInput, message)
        })
    };
    let steps = count("steps")?;
    let guidance = call.float("guidance")?;
    Ok(ImageRequest {
        prompt: call.text("prompt")?.to_owned(),
        negative: call.text("negative")?.to_owned(),
        width_px: count("width_px")?,
        height_px: count("height_px")?,
        seed: seed_of(call)?,
        steps: (steps > 0).then_some(steps),
        guidance: (guidance > 0.0).then_some(guidance as f32),
        ..ImageRequest::default()
    })
}

impl Node for Draw {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        self.source.side_data()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let request = request_of(call)?;
        let pipeline = self.source.open(call.text("model")?)?;
        let file = context.artifacts.temp("png")?;
        let files = (file.path(), None);
        draw_still(&pipeline, &request, files, context.cancel, context.progress)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "image/png")?))
    }
}
