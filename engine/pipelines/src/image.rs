//! Pictures from prompts.
//!
//! A picture is a function of the model and the request: the same seed gives the same bytes, whatever was
//! drawn before, with any number of threads, and also when it was cut short and went on from a kept latent.

mod error;
mod families;
mod family;
mod folder;
mod given;
mod kept;
mod ldm;
mod noise;
mod preview;
mod prompt;
mod schedule;
mod single;
mod sketch;
mod walk;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use engine_base::{CancelToken, Cancelled, ContentHash};
use engine_tensor::Cpu;
use serde_json::Value;

pub use self::error::ImageError;
use self::family::ImageFamily;
pub use self::family::{ImageLimits, Latent};
use self::folder::Folder;
pub use self::given::{GivenPicture, InitPicture};
pub use self::kept::KeptLatent;
use self::preview::PreviewWeights;
use self::sketch::Sketch;

/// Families that pictures are drawn with.
pub const IMAGE_FAMILIES: &[&str] = &[
    "qwen_image_21",
    "qwen_image",
    "flux2",
    "flux3",
    "z_image",
    "stable_diffusion",
];

/// Folders whose files decide what a model draws.
const PART_FOLDERS: &[&str] = &[
    "transformer",
    "unet",
    "vae",
    "text_encoder",
    "text_encoder_2",
];

/// Most steps of a run.
const MOST_STEPS: u32 = 1000;
/// Memory that decoding may take for a level, in bytes.
const WORK_BYTES: usize = 1 << 30;

/// How a picture model is opened.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageOptions {
    /// Threads; 0 for one per processor. Results do not depend on it.
    pub threads: usize,
    /// Weights of the text encoder (a file or folder), for models that come without one.
    pub text_encoder: Option<PathBuf>,
    /// Folder of a `tokenizer.json`, for models that come without one.
    pub tokenizer: Option<PathBuf>,
    /// Folder of the autoencoder, instead of the model's own.
    pub vae: Option<PathBuf>,
    /// Adapters (LoRA or LoKr files), each with its weight, merged into the model's weights in f32.
    pub adapters: Vec<(PathBuf, f32)>,
    /// Memory that decoding may take for a level of its network, in bytes: beyond that it works in windows.
    pub work_bytes: usize,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            threads: 0,
            text_encoder: None,
            tokenizer: None,
            vae: None,
            adapters: Vec::new(),
            work_bytes: WORK_BYTES,
        }
    }
}

/// What is to be drawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageRequest {
    /// What is seen.
    pub prompt: String,
    /// What is not to be seen; used where there is guidance.
    pub negative: String,
    /// Width; 0 for the model's own.
    pub width_px: u32,
    /// Height; 0 for the model's own.
    pub height_px: u32,
    /// Decides the noise that is begun with.
    pub seed: u64,
    /// Steps; the model's own when `None`.
    pub steps: Option<u32>,
    /// How far the prompt is followed beyond the negative one; 1 is no guidance; the model's own when `None`.
    pub guidance: Option<f32>,
    /// What is begun with instead of noise alone.
    pub init: Option<InitPicture>,
    /// Where `init` is drawn anew (white) and where it stays (black); of its size.
    pub mask: Option<GivenPicture>,
    /// Pictures that the prompt speaks of, for models that take some.
    pub references: Vec<GivenPicture>,
}

/// A step that was done.
#[derive(Debug, Clone, Copy)]
pub struct ImageStep<'a> {
    /// Which, from 1.
    pub step: u32,
    /// Of how many.
    pub of: u32,
    /// The latent after it.
    pub latent: &'a Latent,
}

/// A picture of 8 bits a channel, straight alpha, rows from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RgbaImage {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
    /// `[height, width, 4]`.
    pub rgba: Vec<u8>,
    /// What went on differently, for people: a prompt that was cut.
    pub notes: Vec<String>,
}

/// A model that draws pictures.
#[derive(Debug)]
pub struct ImagePipeline {
    family: Box<dyn ImageFamily>,
    folder: PathBuf,
    /// What was merged into it, for [`ImagePipeline::mark`].
    adapters: Vec<String>,
    preview: OnceLock<PreviewWeights>,
}

/// What may stop a run, and who is told of its steps.
type Watched<'a, 'b> = (
    &'a CancelToken,
    &'a mut (dyn FnMut(ImageStep<'_>) -> ControlFlow<()> + 'b),
);

fn bad_strength(got: f32) -> ImageError {
    ImageError::Request {
        what: "the strength",
        got: got.to_string(),
        expected: "over 0 and up to 1".to_owned(),
    }
}

/// -1..1 to 0..=255.
fn to_byte(value: f32) -> u8 {
    (value * 127.5 + 127.5).clamp(0.0, 255.0).round() as u8
}

impl ImagePipeline {
    /// The model in `folder`: laid out like diffusers' (`model_index.json`), or the small model of our own
    /// (`config.json` and `sketch.safetensors`); or a file of weights (safetensors or GGUF), whose missing
    /// parts the options name.
    ///
    /// # Errors
    /// [`ImageError`]: what the folder is instead, the family it is of, a part that is missing by name, or
    /// what is wrong with its weights.
    pub fn open(folder: &Path, options: &ImageOptions) -> Result<Self, ImageError> {
        Ok(Self {
            family: open_family(folder, options)?,
            folder: folder.to_owned(),
            adapters: options.adapters.iter().map(described).collect(),
            preview: OnceLock::new(),
        })
    }

    /// Name of its family.
    pub fn family(&self) -> &'static str {
        self.family.id()
    }

    /// What it can draw, and draws when nothing else is asked for.
    pub fn limits(&self) -> &ImageLimits {
        self.family.limits()
    }

    /// The request with the model's own values filled in, checked.
    ///
    /// # Errors
    /// `Size`, with the nearest that can be drawn; `Request`.
    pub fn settle(&self, request: &ImageRequest) -> Result<ImageRequest, ImageError> {
        let limits = self.family.limits();
        let mut settled = request.clone();
        if let (Some(init), 0, 0) = (&request.init, settled.width_px, settled.height_px) {
            (settled.width_px, settled.height_px) = nearest(limits, init.picture.size_px());
        }
        if settled.width_px == 0 {
            settled.width_px = limits.size_px.0;
        }
        if settled.height_px == 0 {
            settled.height_px = limits.size_px.1;
        }
        self.check_given(request)?;
        check_size(limits, (settled.width_px, settled.height_px))?;
        let steps = request.steps.unwrap_or(limits.steps);
        if steps == 0 || steps > MOST_STEPS {
            return Err(ImageError::Request {
                what: "the number of steps",
                got: steps.to_string(),
                expected: format!("1 to {MOST_STEPS}"),
            });
        }
        let guidance = request.guidance.unwrap_or(limits.guidance);
        if !(0.0..=100.0).contains(&guidance) {
            return Err(ImageError::Request {
                what: "guidance",
                got: guidance.to_string(),
                expected: "0 to 100".to_owned(),
            });
        }
        settled.steps = Some(steps);
        settled.guidance = Some(guidance);
        Ok(settled)
    }

    /// `Ok` for pictures that go together and with the model.
    fn check_given(&self, request: &ImageRequest) -> Result<(), ImageError> {
        let most = self.family.most_references();
        if request.references.len() > most {
            return Err(ImageError::Request {
                what: "the number of references",
                got: request.references.len().to_string(),
                expected: match most {
                    0 => format!("none: a model of {} takes none", self.family()),
                    most => format!("at most {most}"),
                },
            });
        }
        if let Some(init) = &request.init
            && !(init.strength > 0.0 && init.strength <= 1.0)
        {
            return Err(bad_strength(init.strength));
        }
        let Some(mask) = &request.mask else {
            return Ok(());
        };
        let Some(init) = &request.init else {
            return Err(ImageError::Given(
                "there is a mask and no picture that it is for".to_owned(),
            ));
        };
        let ((width, height), (wanted_width, wanted_height)) =
            (mask.size_px(), init.picture.size_px());
        if (width, height) != (wanted_width, wanted_height) {
            return Err(ImageError::Given(format!(
                "the mask is of {width} x {height} px, expected the picture's {wanted_width} x \
                 {wanted_height}"
            )));
        }
        Ok(())
    }

    /// A short name of what `request` draws with this model: latents that were kept for another one are
    /// refused. The model counts by its folder's files and their lengths.
    ///
    /// # Errors
    /// As [`ImagePipeline::settle`].
    pub fn mark(&self, request: &ImageRequest) -> Result<String, ImageError> {
        let request = self.settle(request)?;
        let mut files: Vec<String> = Vec::new();
        if let Ok(about) = self.folder.metadata() {
            files.push(about.len().to_string());
        }
        let own = std::iter::once(&self.folder);
        let parts = PART_FOLDERS.iter().map(|part| self.folder.join(part));
        for folder in own.cloned().chain(parts) {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let len = entry.metadata().map_or(0, |about| about.len());
                files.push(format!("{} {len}", entry.file_name().display()));
            }
        }
        files.sort();
        files.extend(self.adapters.clone());
        let text = format!("{} {request:?} {files:?}", self.family());
        Ok(ContentHash::of(text.as_bytes()).to_hex())
    }

    /// Draws `request`. `on_step` is called after every step and may end the run.
    ///
    /// # Errors
    /// [`ImageError`]: what is wrong with the request; `NotANumber` with the step; `Cancelled`.
    pub fn draw(
        &self,
        request: &ImageRequest,
        on_step: &mut dyn FnMut(ImageStep<'_>) -> ControlFlow<()>,
    ) -> Result<RgbaImage, ImageError> {
        self.draw_from(request, None, &CancelToken::new(), on_step)
    }

    /// The same from a latent that was kept of an earlier run of this request.
    ///
    /// # Errors
    /// As [`ImagePipeline::draw`]; `Kept` for a latent of another size or too many steps.
    pub fn draw_from(
        &self,
        request: &ImageRequest,
        kept: Option<KeptLatent>,
        cancel: &CancelToken,
        on_step: &mut dyn FnMut(ImageStep<'_>) -> ControlFlow<()>,
    ) -> Result<RgbaImage, ImageError> {
        let request = self.settle(request)?;
        let ground = walk::Ground::of(self.family.as_ref(), &request, cancel)?;
        let walked = self.walk(&request, ground.as_ref(), kept, (cancel, on_step));
        let (latent, notes, of) = walked?;
        let mut rgba = self.pixels(&latent, of, cancel)?;
        if let Some(ground) = &ground {
            ground.restore(&mut rgba);
        }
        Ok(RgbaImage {
            width_px: request.width_px,
            height_px: request.height_px,
            rgba,
            notes,
        })
    }

    /// The latent of `request`, not yet a picture. `clean`, where there is one, is begun with instead of
    /// [`ImageRequest::init`]: as [`ImagePipeline::encode`] gives it, of the request's size; `strength` says
    /// how far it may be left.
    ///
    /// # Errors
    /// As [`ImagePipeline::draw`]; `Given` for a latent of another size.
    pub fn sample(
        &self,
        request: &ImageRequest,
        clean: Option<(Latent, f32)>,
        cancel: &CancelToken,
        on_step: &mut dyn FnMut(ImageStep<'_>) -> ControlFlow<()>,
    ) -> Result<(Latent, Vec<String>), ImageError> {
        let request = self.settle(request)?;
        let ground = match clean {
            None => walk::Ground::of(self.family.as_ref(), &request, cancel)?,
            Some((clean, strength)) => {
                let wanted = self
                    .family
                    .latent_size((request.width_px, request.height_px));
                if (clean.height, clean.width, clean.channels) != wanted
                    || clean.values.len() != wanted.0 * wanted.1 * wanted.2
                {
                    return Err(ImageError::Given(format!(
                        "a latent is of {} x {} x {} values, expected {} x {} x {}",
                        clean.height, clean.width, clean.channels, wanted.0, wanted.1, wanted.2
                    )));
                }
                if !(strength > 0.0 && strength <= 1.0) {
                    return Err(bad_strength(strength));
                }
                Some(walk::Ground::of_latent(clean, strength))
            }
        };
        let walked = self.walk(&request, ground.as_ref(), None, (cancel, on_step));
        walked.map(|(latent, notes, _)| (latent, notes))
    }

    /// The nearest size to `size_px` that can be drawn.
    pub fn nearest_size(&self, size_px: (u32, u32)) -> (u32, u32) {
        nearest(self.family.limits(), size_px)
    }

    /// Rows, columns and channels of the latent of a picture.
    pub fn latent_size(&self, size_px: (u32, u32)) -> (usize, usize, usize) {
        self.family.latent_size(size_px)
    }

    /// The latent of a picture at `size_px`, which [`ImagePipeline::settle`] takes.
    ///
    /// # Errors
    /// `Size`; `Tensor` for too little memory; `Cancelled`.
    pub fn encode(
        &self,
        picture: &GivenPicture,
        size_px: (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError> {
        check_size(self.family.limits(), size_px)?;
        self.family.encode(picture.planes(size_px), size_px, cancel)
    }

    /// The picture of a latent.
    ///
    /// # Errors
    /// `Given` for a latent of another model; `NotANumber`; `Cancelled`.
    pub fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<RgbaImage, ImageError> {
        let step = self.family.limits().step_px.max(1);
        let (height, width, channels) = self.family.latent_size((step, step));
        // Sides of a lattice step may be several of the latent's.
        let (down, across) = (height.max(1), width.max(1));
        let whole = latent.height.is_multiple_of(down) && latent.width.is_multiple_of(across);
        let len = latent.height.checked_mul(latent.width);
        let len = len.and_then(|pixels| pixels.checked_mul(channels));
        if latent.channels != channels || !whole || len != Some(latent.values.len()) {
            return Err(ImageError::Given(format!(
                "a latent is of {} x {} x {} values, expected {channels} channels",
                latent.height, latent.width, latent.channels
            )));
        }
        let side = |latent: usize, step_latent: usize| {
            u32::try_from(latent / step_latent).ok()?.checked_mul(step)
        };
        let size_px = side(latent.width, across).zip(side(latent.height, down));
        let size_px = size_px.unwrap_or((u32::MAX, u32::MAX));
        check_size(self.family.limits(), size_px)?;
        check_numbers(latent, (0, 0))?;
        Ok(RgbaImage {
            width_px: size_px.0,
            height_px: size_px.1,
            rgba: self.pixels(latent, 0, cancel)?,
            notes: Vec::new(),
        })
    }

    fn pixels(
        &self,
        latent: &Latent,
        of: u32,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, ImageError> {
        let planes = self.family.decode(latent, cancel)?;
        match planes.iter().all(|value| value.is_finite()) {
            true => Ok(bytes_of(&planes)),
            false => Err(ImageError::NotANumber { step: of, of }),
        }
    }

    /// All steps of a settled request: the latent, notes, and how many steps there were.
    fn walk(
        &self,
        request: &ImageRequest,
        ground: Option<&walk::Ground>,
        kept: Option<KeptLatent>,
        (cancel, on_step): Watched<'_, '_>,
    ) -> Result<(Latent, Vec<String>, u32), ImageError> {
        let (steps, guidance) = (request.steps.unwrap_or(1), request.guidance.unwrap_or(1.0));
        let size_px = (request.width_px, request.height_px);
        let (height, width, channels) = self.family.latent_size(size_px);
        let strength = ground.map_or(1.0, walk::Ground::strength);
        let sigmas = walk::begun_at(&self.family.sigmas(steps, (height, width))?, strength);
        let of = sigmas.len().saturating_sub(1) as u32;
        let noise = noise::noise(request.seed, height * width * channels);
        let KeptLatent {
            step: done,
            mut latent,
        } = kept.unwrap_or_else(|| KeptLatent {
            step: 0,
            latent: Latent {
                height,
                width,
                channels,
                values: walk::begin(self.family.as_ref(), ground, &noise, &sigmas),
            },
        });
        let sizes = (latent.height, latent.width, latent.channels);
        if sizes != (height, width, channels)
            || latent.values.len() != height * width * channels
            || done > of
        {
            return Err(ImageError::Kept(format!(
                "it is of {} x {} x {} values after step {done}, expected {height} x {width} x \
                 {channels} and at most step {of}",
                latent.height, latent.width, latent.channels
            )));
        }
        check_numbers(&latent, (done, of))?;
        let guided = (guidance - 1.0).abs() > f32::EPSILON;
        let both = [request.prompt.as_str(), request.negative.as_str()];
        let prompts = if guided { &both[..] } else { &both[..1] };
        let mut notes = Vec::new();
        let references = &request.references;
        let mut denoiser = self.family.begin(prompts, references, &mut notes, cancel)?;
        let pairs = sigmas.windows(2).zip(1u32..).skip(done as usize);
        for (pair, step) in pairs {
            let mut velocities = denoiser.velocities(&latent, pair[0], pair[1], cancel)?;
            let without = if guided { velocities.pop() } else { None };
            let mut velocity = velocities.pop().unwrap_or_default();
            if let Some(without) = without {
                velocity = self.family.guide(velocity, &without, guidance, channels);
            }
            engine_nn::flow_step(&mut latent.values, &velocity, pair[0], pair[1]);
            if let Some(ground) = ground {
                ground.keep(self.family.as_ref(), &mut latent, &noise, pair[1]);
            }
            check_numbers(&latent, (step, of))?;
            let latent = &latent;
            if on_step(ImageStep { step, of, latent }).is_break() {
                return Err(Cancelled.into());
            }
        }
        Ok((latent, notes, of))
    }

    /// A small picture of a latent, without the autoencoder: one pixel for each of the latent's, or what a
    /// small autoencoder that lies with the model makes of it.
    ///
    /// # Errors
    /// `Tensor` when the model cannot run.
    pub fn preview(&self, latent: &Latent) -> Result<RgbaImage, ImageError> {
        if let Some((planes, (width_px, height_px))) = self.family.small(latent)? {
            return Ok(RgbaImage {
                width_px,
                height_px,
                rgba: bytes_of(&planes),
                notes: Vec::new(),
            });
        }
        let weights = match (self.family.preview_weights(), self.preview.get()) {
            (Some(weights), _) => weights,
            (None, Some(weights)) => weights,
            (None, None) => {
                let fitted = preview::fit(self.family.as_ref())?;
                self.preview.get_or_init(|| fitted)
            }
        };
        Ok(RgbaImage {
            width_px: latent.width as u32,
            height_px: latent.height as u32,
            rgba: preview::draw(weights, latent),
            notes: Vec::new(),
        })
    }
}

/// `[4, pixels]` in -1..1 to `[pixels, 4]` in 8 bits.
fn bytes_of(planes: &[f32]) -> Vec<u8> {
    let pixels = planes.len() / 4;
    let byte = |at: usize| to_byte(planes[at % 4 * pixels + at / 4]);
    (0..planes.len()).map(byte).collect()
}

/// An adapter by its name, length and weight.
fn described((path, weight): &(PathBuf, f32)) -> String {
    let len = path.metadata().map_or(0, |about| about.len());
    format!("{} {len} {weight}", path.display())
}

fn check_numbers(latent: &Latent, (step, of): (u32, u32)) -> Result<(), ImageError> {
    if latent.values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(ImageError::NotANumber { step, of })
    }
}

/// As near as the shape allows: first shrunk to the area, then rounded to the lattice.
fn nearest(limits: &ImageLimits, (width_px, height_px): (u32, u32)) -> (u32, u32) {
    let step = limits.step_px.max(1);
    let pixels = u64::from(width_px) * u64::from(height_px);
    let shrink = (limits.most_px as f64 / pixels.max(1) as f64)
        .sqrt()
        .min(1.0);
    let round = |side: u32| {
        let wanted = f64::from(side) * shrink;
        let steps = (wanted / f64::from(step)).round().max(1.0) as u32;
        (steps * step).max(limits.least_side_px.next_multiple_of(step))
    };
    let (mut width, mut height) = (round(width_px), round(height_px));
    while u64::from(width) * u64::from(height) > limits.most_px {
        let larger = if width >= height {
            &mut width
        } else {
            &mut height
        };
        *larger -= step;
    }
    (width, height)
}

/// `Ok` for a size that can be drawn.
fn check_size(limits: &ImageLimits, (width_px, height_px): (u32, u32)) -> Result<(), ImageError> {
    let step = limits.step_px.max(1);
    let fits = |side: u32| side >= limits.least_side_px && side.is_multiple_of(step);
    let pixels = u64::from(width_px) * u64::from(height_px);
    if fits(width_px) && fits(height_px) && pixels <= limits.most_px {
        return Ok(());
    }
    let why = if pixels > limits.most_px {
        format!("that is {pixels} px, expected at most {}", limits.most_px)
    } else {
        let least = limits.least_side_px;
        format!("expected sides of {least} px or more that are multiples of {step}")
    };
    let (width, height) = nearest(limits, (width_px, height_px));
    Err(ImageError::Size {
        width_px,
        height_px,
        why,
        nearest_width_px: width,
        nearest_height_px: height,
    })
}

fn read_json(path: &Path) -> Result<Value, ImageError> {
    let text = std::fs::read(path).map_err(|source| ImageError::Io {
        what: "read the configuration",
        source,
        path: path.to_owned(),
    })?;
    serde_json::from_slice(&text).map_err(|error| ImageError::Config {
        reason: error.to_string(),
        path: path.to_owned(),
    })
}

fn open_family(folder: &Path, options: &ImageOptions) -> Result<Box<dyn ImageFamily>, ImageError> {
    let refused = |what: &str| ImageError::Folder {
        what: what.to_owned(),
        path: folder.to_owned(),
    };
    if folder.is_file() {
        return single::open(folder, options);
    }
    if !folder.is_dir() {
        return Err(refused("there is no such folder or file"));
    }
    let index = folder.join("model_index.json");
    if index.is_file() {
        let index = read_json(&index)?;
        let class = index["_class_name"].as_str().unwrap_or_default();
        let family = families::by_class(class).ok_or_else(|| ImageError::Family {
            got: class.to_owned(),
            known: IMAGE_FAMILIES.join(", "),
            path: folder.to_owned(),
        })?;
        let parts = Folder::new(folder, (index, family.id), options)?;
        return (family.open)(&parts, &Cpu::new(options.threads)?);
    }
    let config = folder.join(sketch::CONFIG_FILE);
    if !config.is_file() {
        return Err(refused(
            "expected a file \"model_index.json\", or \"config.json\" and \"sketch.safetensors\"",
        ));
    }
    let json = read_json(&config)?;
    if sketch::is_sketch(&json) {
        return Ok(Box::new(Sketch::open(folder, options)?));
    }
    let got = json["model_type"].as_str();
    let got = got.or_else(|| json["_class_name"].as_str());
    Err(ImageError::Family {
        got: got.unwrap_or("unknown").to_owned(),
        known: IMAGE_FAMILIES.join(", "),
        path: folder.to_owned(),
    })
}
