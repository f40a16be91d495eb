//! The small model of our own: Qwen-Image 2.1 with a small configuration, and the first blocks of a small
//! language model as its text encoder.
//!
//! A folder of `config.json` (parts `transformer`, `vae`, `scheduler`, `text`, `sample` and perhaps
//! `preview`) and `sketch.safetensors` (both networks, 8-bit rows with scales).

use std::path::Path;
use std::sync::Arc;

use engine_base::CancelToken;
use engine_models::{
    Activations, Condition, DenseModel, KvKind, LoadOptions, Prefix, QwenImage21,
    QwenImage21Config, ResidualVae, ResidualVaeConfig, load_dense, load_qwen_image_21,
    load_residual_vae,
};
use engine_nn::{FlowShift, flow_sigmas, linear_sigmas};
use engine_tensor::Cpu;
use engine_weights::ScaledRows;
use serde::Deserialize;

use super::family::{Denoiser, ImageFamily, ImageLimits, Latent};
use super::prompt::PromptFrame;
use super::{GivenPicture, ImageError, ImageOptions};
use crate::Tokenizer;

pub(super) const CONFIG_FILE: &str = "config.json";
pub(super) const WEIGHTS_FILE: &str = "sketch.safetensors";
/// What begins the part of the template whose states are kept.
const KEPT_FROM: &str = "<|im_start|>user\n";
/// Most pixels: what memory of a small machine bears.
const MOST_PX: u64 = 1 << 20;
const LEAST_SIDE_PX: u32 = 64;

/// `config.json`.
#[derive(Debug, Clone, Deserialize)]
struct Config {
    transformer: QwenImage21Config,
    vae: ResidualVaeConfig,
    text: TextConfig,
    sample: SampleConfig,
    #[serde(default)]
    preview: Option<Vec<[f32; 3]>>,
}

#[derive(Debug, Clone, Deserialize)]
struct TextConfig {
    /// What the text encoder is, for people.
    model: String,
    /// Blocks after which states are taken.
    layer: usize,
    max_tokens: usize,
    template: String,
}

#[derive(Debug, Clone, Deserialize)]
struct SampleConfig {
    size: u32,
    steps: u32,
    guidance: f32,
    shift: f64,
    /// Whether the model was trained on transparent pictures: otherwise its alpha is noise around opaque.
    #[serde(default)]
    alpha: bool,
}

/// Whether a folder's `config.json` is of this kind.
pub(super) fn is_sketch(config: &serde_json::Value) -> bool {
    ["transformer", "vae", "text", "sample"]
        .iter()
        .all(|part| config.get(part).is_some_and(serde_json::Value::is_object))
}

#[derive(Debug)]
pub(super) struct Sketch {
    transformer: QwenImage21,
    vae: ResidualVae,
    text: Arc<DenseModel>,
    tokenizer: Tokenizer,
    frame: PromptFrame,
    layer: usize,
    shift: f64,
    limits: ImageLimits,
    preview: Option<Vec<[f32; 3]>>,
    alpha: bool,
    work_bytes: usize,
}

impl Sketch {
    pub(super) fn open(folder: &Path, options: &ImageOptions) -> Result<Self, ImageError> {
        let path = folder.join(CONFIG_FILE);
        let text = std::fs::read(&path).map_err(|source| ImageError::Io {
            what: "read the configuration",
            source,
            path: path.clone(),
        })?;
        let config: Config = serde_json::from_slice(&text).map_err(|error| ImageError::Config {
            reason: error.to_string(),
            path: path.clone(),
        })?;
        let weights = folder.join(WEIGHTS_FILE);
        if !weights.is_file() {
            return Err(ImageError::MissingPart {
                part: "weights",
                expected: format!("{}", weights.display()),
            });
        }
        let encoder = options.text_encoder.as_ref().filter(|path| path.exists());
        let encoder = encoder.ok_or_else(|| ImageError::MissingPart {
            part: "text encoder",
            expected: match &options.text_encoder {
                Some(path) => format!("{} at {}", config.text.model, path.display()),
                None => format!("the path of {}", config.text.model),
            },
        })?;
        if let Some((path, _)) = options.adapters.first() {
            return Err(ImageError::Request {
                what: "an adapter for the small model of our own",
                got: path.display().to_string(),
                expected: "none: it takes none".to_owned(),
            });
        }
        let cpu = Cpu::new(options.threads)?;
        let checkpoint = ScaledRows::open(&weights)?;
        let load = LoadOptions {
            threads: options.threads,
            kv: KvKind::F32,
            activations: Activations::Exact,
            ..LoadOptions::default()
        };
        let encoder = crate::open_checkpoint(encoder)?;
        let text = load_dense(encoder.as_ref(), &load)?;
        let tokenizer = Tokenizer::of_checkpoint(encoder.as_ref())?;
        let template = &config.text.template;
        let frame = PromptFrame::new(&tokenizer, template, KEPT_FROM, config.text.max_tokens)?;
        let sample = &config.sample;
        let preview = config.preview.clone();
        let sketch = Self {
            transformer: load_qwen_image_21(
                &checkpoint,
                "transformer.",
                &config.transformer,
                &cpu,
            )?,
            vae: load_residual_vae(&checkpoint, "vae.", &config.vae, &cpu)?,
            text,
            tokenizer,
            frame,
            layer: config.text.layer,
            shift: sample.shift,
            limits: ImageLimits {
                step_px: 16,
                least_side_px: LEAST_SIDE_PX,
                most_px: MOST_PX,
                size_px: (sample.size, sample.size),
                steps: sample.steps,
                guidance: sample.guidance,
            },
            alpha: sample.alpha,
            preview: preview.filter(|rows| rows.len() == config.vae.z_dim + 1),
            work_bytes: options.work_bytes,
        };
        sketch.check(&path)?;
        Ok(sketch)
    }

    /// `Ok` when the parts fit each other.
    fn check(&self, path: &Path) -> Result<(), ImageError> {
        let config = self.transformer.config();
        let wrong = |reason: String| ImageError::Config {
            reason,
            path: path.to_owned(),
        };
        if self.vae.config().z_dim != config.in_channels {
            return Err(wrong(format!(
                "the autoencoder has {} channels, expected the transformer's {}",
                self.vae.config().z_dim,
                config.in_channels
            )));
        }
        if self.vae.scale() != 16 {
            let scale = self.vae.scale();
            return Err(wrong(format!(
                "the autoencoder's scale is {scale}, expected 16"
            )));
        }
        if self.text.hidden() != config.context_in_dim {
            return Err(wrong(format!(
                "the text encoder's states have {} elements, expected {}",
                self.text.hidden(),
                config.context_in_dim
            )));
        }
        if !(self.shift.is_finite() && self.shift > 0.0) {
            return Err(wrong(format!(
                "the shift is {}, expected a number over 0",
                self.shift
            )));
        }
        Ok(())
    }

    /// Text states of a prompt: `[tokens, hidden]`.
    pub(super) fn states(
        &self,
        prompt: &str,
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, ImageError> {
        let framed = self.frame.fill(&self.tokenizer, prompt)?;
        notes.extend(framed.note);
        let mut stream = Arc::clone(&self.text).stream();
        let mut states = stream.states_after(&framed.tokens, self.layer, cancel)?;
        states.drain(..framed.dropped * self.text.hidden());
        Ok(states)
    }
}

impl ImageFamily for Sketch {
    fn id(&self) -> &'static str {
        "qwen_image_21"
    }

    fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    fn latent_size(&self, (width_px, height_px): (u32, u32)) -> (usize, usize, usize) {
        let side = |px: u32| px as usize / self.vae.scale();
        (side(height_px), side(width_px), self.vae.config().z_dim)
    }

    fn sigmas(&self, steps: u32, _latent: (usize, usize)) -> Result<Vec<f32>, ImageError> {
        let grid = linear_sigmas(steps as usize);
        Ok(flow_sigmas(&grid, FlowShift::Constant(self.shift), None)?)
    }

    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        _references: &[GivenPicture],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError> {
        let mut prefixes = Vec::new();
        for prompt in prompts {
            let states = self.states(prompt, notes, cancel)?;
            let conditions = [Condition::Text(&states)];
            prefixes.push(self.transformer.prefix(&conditions, cancel)?);
        }
        Ok(Box::new(Prefixed {
            transformer: &self.transformer,
            prefixes,
        }))
    }

    fn encode(
        &self,
        planes: Vec<f32>,
        (width_px, height_px): (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError> {
        // Colours over white, and alpha beside them: what the model was trained on.
        let pixels = planes.len() / 4;
        let alphas = planes[3 * pixels..].to_vec();
        let mut rgba = super::given::on_white(planes);
        rgba.extend(alphas);
        let size = (height_px as usize, width_px as usize);
        let mut mean = self.vae.encode(&rgba, size, cancel)?.mean;
        self.vae.normalize(&mut mean);
        let scale = self.vae.scale();
        Ok(Latent::of_planes(&mean, (size.0 / scale, size.1 / scale)))
    }

    fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<Vec<f32>, ImageError> {
        let mut rgba = decode(&self.vae, latent, self.work_bytes, cancel)?;
        match self.alpha {
            true => take_white_off(&mut rgba),
            false => {
                let colours = rgba.len() / 4 * 3;
                rgba[colours..].fill(1.0);
            }
        }
        Ok(rgba)
    }

    fn preview_weights(&self) -> Option<&[[f32; 3]]> {
        self.preview.as_deref()
    }
}

/// Alpha this near to nothing or to all is that.
const ALPHA_NOISE: f32 = 0.08;

/// Straight colours from colours laid over white, `[4, height, width]` in -1..1: the model learned
/// pictures whose colours go over into white where they are transparent.
fn take_white_off(rgba: &mut [f32]) {
    let (colours, alphas) = rgba.split_at_mut(rgba.len() / 4 * 3);
    let pixels = alphas.len();
    for (at, alpha) in alphas.iter_mut().enumerate() {
        let cover = (f32::midpoint(*alpha, 1.0) - ALPHA_NOISE) / (1.0 - 2.0 * ALPHA_NOISE);
        let cover = cover.clamp(0.0, 1.0);
        *alpha = 2.0 * cover - 1.0;
        if cover > 0.0 && cover < 1.0 {
            for plane in 0..3 {
                let colour = &mut colours[plane * pixels + at];
                // Over white, (c + 1) / 2 = cover * straight + (1 - cover).
                *colour = ((*colour - 1.0) / cover + 1.0).clamp(-1.0, 1.0);
            }
        }
    }
}

/// The picture of a latent.
pub(super) fn decode(
    vae: &ResidualVae,
    latent: &Latent,
    work_bytes: usize,
    cancel: &CancelToken,
) -> Result<Vec<f32>, ImageError> {
    let mut planes = latent.planes();
    vae.restore(&mut planes);
    let size = (latent.height, latent.width);
    Ok(vae.decode(&planes, size, work_bytes, cancel)?)
}

/// Prompts whose keys and values are kept for all steps.
pub(super) struct Prefixed<'a> {
    pub(super) transformer: &'a QwenImage21,
    pub(super) prefixes: Vec<Prefix>,
}

impl Denoiser for Prefixed<'_> {
    fn velocities(
        &mut self,
        latent: &Latent,
        sigma: f32,
        _next: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ImageError> {
        let mut prefixes: Vec<&mut Prefix> = self.prefixes.iter_mut().collect();
        let latents = vec![&latent.values[..]; prefixes.len()];
        let size = (latent.height, latent.width);
        let velocities =
            self.transformer
                .velocities(&mut prefixes, &latents, size, sigma, cancel)?;
        Ok(velocities)
    }
}
