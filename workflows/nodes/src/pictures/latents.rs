//! Nodes that draw in single parts: a model, adapters over it, a prompt, a latent, its way to a picture.

use std::path::PathBuf;
use std::sync::Arc;

use engine_base::{Code, Datum, ProgressEvent};
use engine_pipelines::{ImagePipeline, ImageRequest, KeptLatent, Latent};
use flow_graph::{
    Call, Exactness, Handle, InputSpec, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome,
    PortOutput, PortType, Value, Widget,
};
use std::ops::ControlFlow;

use super::draw::{
    ImageChoice, ImageModelSource, SIDE_MAX_PX, given_picture, refused, save_drawn, seed_of, text,
    whole,
};
use crate::spec;

const MODEL: PortType = PortType::named("image_model");
const CONDITIONING: PortType = PortType::named("conditioning");
const LATENT: PortType = PortType::named("latent");
/// What latents of files are marked with: they belong to whatever model reads them.
const MARK: &str = "latent";
/// Most strength of an adapter, either way.
const WEIGHT_MAX: f64 = 10.0;

/// What a type does in a call.
type Run = fn(&Part, &NodeContext<'_>, &Call) -> Result<Outcome, NodeError>;

/// A type of this file.
pub(super) struct Part {
    spec: NodeSpec,
    source: Arc<dyn ImageModelSource>,
    run: Run,
}

/// All types of this file.
pub(super) fn types(source: &Arc<dyn ImageModelSource>) -> Vec<Arc<dyn Node>> {
    let all: [(NodeSpec, Run); 7] = [
        (loader_spec(), Part::load),
        (adapter_spec(), Part::adapt),
        (prompt_spec(), Part::prompt),
        (empty_spec(), Part::empty),
        (encode_spec(), Part::encode),
        (sample_spec(), Part::sample),
        (decode_spec(), Part::decode),
    ];
    all.into_iter()
        .map(|(spec, run)| {
            let source = Arc::clone(source);
            Arc::new(Part { spec, source, run }) as Arc<dyn Node>
        })
        .collect()
}

fn model_input() -> InputSpec {
    spec::linked("model", MODEL, "The model.")
}

fn side(name: &'static str) -> InputSpec {
    let help = "Pixels; 0 for the model's own size.";
    spec::set(name, PortType::INT, whole(0, SIDE_MAX_PX), help)
}

/// Floats, on a device: another kind of device may round otherwise.
fn computed(mut spec: NodeSpec) -> NodeSpec {
    spec.exactness = Exactness::Tolerant;
    spec.lane = Lane::Device;
    spec
}

fn loader_spec() -> NodeSpec {
    let help = "Names a picture model; it is opened when something is drawn with it.";
    let mut spec = spec::node("image.model", 1, "Load picture model", "image", help);
    let name = |name, help| spec::set(name, PortType::TEXT, text("", false, 400), help);
    spec.inputs = vec![
        name("model", "Its name in the model folder; empty for our own."),
        name("text_encoder", "Another text encoder, by its name there."),
        name("vae", "Another autoencoder, by its name there."),
    ];
    spec.outputs = vec![spec::gives("model", MODEL, "The model.")];
    spec.durable = false;
    spec
}

fn adapter_spec() -> NodeSpec {
    let help = "Merges an adapter (LoRA or LoKr) into a picture model.";
    let mut spec = spec::node("image.adapter", 1, "Load adapter", "image", help);
    let weight = Widget::Float {
        default: 1.0,
        min: -WEIGHT_MAX,
        max: WEIGHT_MAX,
    };
    spec.inputs = vec![
        model_input(),
        spec::set(
            "adapter",
            PortType::TEXT,
            text("", false, 400),
            "Its file's name in the model folder.",
        ),
        spec::set("weight", PortType::FLOAT, weight, "1 is as it was trained."),
    ];
    spec.outputs = vec![spec::gives("model", MODEL, "The model with it.")];
    spec.durable = false;
    spec
}

fn prompt_spec() -> NodeSpec {
    let help = "Words for a picture: what is seen, and what is not.";
    let mut spec = spec::node("image.prompt", 1, "Prompt", "image", help);
    let words = |name, help| spec::set(name, PortType::TEXT, text("", true, 20_000), help);
    spec.inputs = vec![
        words("prompt", "What is to be seen."),
        words("negative", "What is not to be seen."),
    ];
    spec.outputs = vec![spec::gives("conditioning", CONDITIONING, "The words.")];
    spec.cheap = true;
    spec
}

fn empty_spec() -> NodeSpec {
    let help = "A latent of a size, with nothing in it.";
    let mut spec = spec::node("image.latent", 1, "Empty latent", "image", help);
    spec.inputs = vec![model_input(), side("width_px"), side("height_px")];
    spec.outputs = vec![spec::gives("latent", LATENT, "The latent.")];
    computed(spec)
}

fn encode_spec() -> NodeSpec {
    let help = "The latent of a picture.";
    let mut spec = spec::node("image.encode", 1, "Encode picture", "image", help);
    spec.inputs = vec![
        model_input(),
        spec::linked("picture", PortType::PICTURE, "The picture."),
        side("width_px"),
        side("height_px"),
    ];
    spec.outputs = vec![spec::gives("latent", LATENT, "The latent.")];
    computed(spec)
}

fn sample_spec() -> NodeSpec {
    let help = "Walks from noise, or from a latent, to the latent of a picture.";
    let mut spec = spec::node("image.sample", 1, "Sample", "image", help);
    let number = |default, max| Widget::Float {
        default,
        min: 0.0,
        max,
    };
    spec.inputs = vec![
        model_input(),
        spec::linked("conditioning", CONDITIONING, "The words."),
        spec::linked(
            "latent",
            LATENT,
            "Begun with; an empty one for its size alone.",
        ),
        spec::optional(spec::list(
            "references",
            PortType::PICTURE,
            "Pictures that the words speak of.",
        )),
        spec::set(
            "seed",
            PortType::INT,
            Widget::Seed { default: 0 },
            "Another seed gives another picture.",
        ),
        spec::set(
            "steps",
            PortType::INT,
            whole(0, 1000),
            "Steps; 0 for the model's own.",
        ),
        spec::set(
            "guidance",
            PortType::FLOAT,
            number(0.0, 100.0),
            "1 is no guidance, 0 the model's own.",
        ),
        spec::set(
            "strength",
            PortType::FLOAT,
            number(1.0, 1.0),
            "How far the latent may be left; 1 keeps nothing.",
        ),
    ];
    spec.outputs = vec![spec::gives("latent", LATENT, "The latent.")];
    computed(spec)
}

fn decode_spec() -> NodeSpec {
    let help = "The picture of a latent.";
    let mut spec = spec::node("image.decode", 1, "Decode latent", "image", help);
    spec.inputs = vec![model_input(), spec::linked("latent", LATENT, "The latent.")];
    spec.outputs = vec![spec::gives(
        "picture",
        PortType::PICTURE,
        "The picture, as PNG.",
    )];
    computed(spec)
}

fn bad(message: String) -> NodeError {
    NodeError::new(Code::BadInput, message)
}

/// The name of a file in the model folder: never one outside of it.
fn inside(call: &Call, input: &str) -> Result<Option<PathBuf>, NodeError> {
    let name = call.text(input)?;
    if name.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(name);
    let plain = path
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    if plain {
        return Ok(Some(path));
    }
    Err(bad(format!(
        "input {input:?} is {name:?}, expected a name in the model folder"
    )))
}

fn choice(call: &Call) -> Result<Arc<ImageChoice>, NodeError> {
    let found = call.one("model")?.as_handle::<ImageChoice>();
    found.ok_or_else(|| bad("input \"model\": expected a picture model".to_owned()))
}

/// Width and height, each 0 for the model's own.
fn size(call: &Call) -> Result<(u32, u32), NodeError> {
    let of = |name: &str| {
        let got = call.int(name)?;
        u32::try_from(got)
            .map_err(|_too_large| bad(format!("input {name:?} is {got}, expected 0 or more")))
    };
    Ok((of("width_px")?, of("height_px")?))
}

fn settled(pipeline: &ImagePipeline, size: (u32, u32)) -> Result<(u32, u32), NodeError> {
    let asked = ImageRequest {
        width_px: size.0,
        height_px: size.1,
        ..ImageRequest::default()
    };
    let settled = pipeline.settle(&asked).map_err(refused)?;
    Ok((settled.width_px, settled.height_px))
}

/// Pixels of a latent that a model made.
fn pixels(pipeline: &ImagePipeline, latent: &Latent) -> Option<(u32, u32)> {
    let limits = pipeline.limits();
    let (rows, columns, _) = pipeline.latent_size((limits.step_px, limits.step_px));
    let of = |side: usize, step: usize| {
        u32::try_from(side / step.max(1))
            .ok()?
            .checked_mul(limits.step_px)
    };
    of(latent.width, columns).zip(of(latent.height, rows))
}

impl Part {
    fn handle(&self, choice: ImageChoice) -> Result<Outcome, NodeError> {
        let content = self.source.content_of(&choice)?;
        let object = Arc::new(choice);
        let value = Value::Handle(Handle { content, object });
        Ok(Outcome::Values(vec![PortOutput::One(value)]))
    }

    fn load(&self, _: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let model = inside(call, "model")?.unwrap_or_default();
        self.handle(ImageChoice {
            model: model.to_string_lossy().into_owned(),
            text_encoder: inside(call, "text_encoder")?,
            vae: inside(call, "vae")?,
            adapters: Vec::new(),
        })
    }

    fn adapt(&self, _: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let mut choice = choice(call)?.as_ref().clone();
        if let Some(adapter) = inside(call, "adapter")? {
            choice
                .adapters
                .push((adapter, call.float("weight")? as f32));
        }
        self.handle(choice)
    }

    fn prompt(&self, _: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let words = |name: &str| Ok::<_, NodeError>(Datum::from(call.text(name)?));
        Ok(Outcome::data(Datum::List(vec![
            words("prompt")?,
            words("negative")?,
        ])))
    }

    fn keep(
        context: &NodeContext<'_>,
        (step, latent): (u32, &Latent),
    ) -> Result<Outcome, NodeError> {
        let file = context.artifacts.temp("safetensors")?;
        KeptLatent::save(step, latent, MARK, file.path()).map_err(refused)?;
        let media_type = "application/vnd.safetensors";
        Ok(Outcome::blob(context.artifacts.adopt(file, media_type)?))
    }

    /// A latent of a file; its step is 0 for an empty one.
    fn latent(context: &NodeContext<'_>, call: &Call) -> Result<KeptLatent, NodeError> {
        let path = context.artifacts.path(&call.blob("latent")?.hash)?;
        KeptLatent::load(MARK, &path).map_err(refused)
    }

    fn empty(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let pipeline = self.source.open_choice(choice(call)?.as_ref())?;
        let size = settled(&pipeline, size(call)?)?;
        let (height, width, channels) = pipeline.latent_size(size);
        let latent = Latent {
            height,
            width,
            channels,
            values: vec![0.0; height * width * channels],
        };
        Self::keep(context, (0, &latent))
    }

    fn encode(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let pipeline = self.source.open_choice(choice(call)?.as_ref())?;
        let path = context.artifacts.path(&call.blob("picture")?.hash)?;
        let picture = given_picture(&path)?;
        let size = match size(call)? {
            (0, 0) => pipeline.nearest_size(picture.size_px()),
            size => settled(&pipeline, size)?,
        };
        let latent = pipeline.encode(&picture, size, context.cancel);
        Self::keep(context, (1, &latent.map_err(refused)?))
    }

    fn sample(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let pipeline = self.source.open_choice(choice(call)?.as_ref())?;
        let words = call.datum("conditioning")?.as_list().unwrap_or_default();
        let word = |at: usize| words.get(at).and_then(Datum::as_str).map(str::to_owned);
        let [prompt, negative] = [word(0), word(1)].map(|word| {
            word.ok_or_else(|| bad("input \"conditioning\": expected words of a prompt".to_owned()))
        });
        let kept = Self::latent(context, call)?;
        let size = pixels(&pipeline, &kept.latent);
        let size = size.ok_or_else(|| bad("input \"latent\": it is too large".to_owned()))?;
        let mut references = Vec::new();
        for value in call.list("references") {
            let blob = value.as_blob();
            let blob =
                blob.ok_or_else(|| bad("input \"references\": expected pictures".to_owned()))?;
            references.push(given_picture(&context.artifacts.path(&blob.hash)?)?);
        }
        let steps = u32::try_from(call.int("steps")?).unwrap_or(0);
        let guidance = call.float("guidance")? as f32;
        let request = ImageRequest {
            prompt: prompt?,
            negative: negative?,
            width_px: size.0,
            height_px: size.1,
            seed: seed_of(call)?,
            steps: (steps > 0).then_some(steps),
            guidance: (guidance > 0.0).then_some(guidance),
            references,
            ..ImageRequest::default()
        };
        let strength = call.float("strength")? as f32;
        let clean = (kept.step > 0).then_some((kept.latent, strength));
        let sampled = pipeline.sample(&request, clean, context.cancel, &mut |step| {
            context.progress.report(ProgressEvent {
                what: "sampling".to_owned(),
                step: u64::from(step.step),
                of: u64::from(step.of),
                secs_left: None,
            });
            match context.cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        let (latent, _) = sampled.map_err(refused)?;
        Self::keep(context, (1, &latent))
    }

    fn decode(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let pipeline = self.source.open_choice(choice(call)?.as_ref())?;
        let kept = Self::latent(context, call)?;
        let drawn = pipeline.decode(&kept.latent, context.cancel);
        let file = context.artifacts.temp("png")?;
        save_drawn(&drawn.map_err(refused)?, file.path())?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "image/png")?))
    }
}

impl Node for Part {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        Datum::Null
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        (self.run)(self, context, call)
    }
}
