//! Stable Diffusion 1.5 and SDXL: CLIP reads the prompt, a U-Net predicts noise.

use engine_base::CancelToken;
use engine_models::{
    ClipText, KlVae, TinyVae, UNet, UNetInput, load_clip_text, load_kl_vae, load_tiny_vae,
    load_unet,
};
use engine_nn::{Spacing, TrainedNoise};
use engine_tensor::Cpu;
use serde_json::Value;

use super::{FamilyEntry, Opened};
use crate::Tokenizer;
use crate::image::family::{Denoiser, ImageFamily, ImageLimits, Latent, SmallPicture, opaque};
use crate::image::folder::{Folder, Part};
use crate::image::given::on_white;
use crate::image::prompt::PromptFrame;
use crate::image::{GivenPicture, ImageError, ldm};

pub(super) const FAMILY: FamilyEntry = FamilyEntry {
    id: "stable_diffusion",
    classes: &[
        "StableDiffusionPipeline",
        "StableDiffusionImg2ImgPipeline",
        "StableDiffusionXLPipeline",
        "StableDiffusionXLImg2ImgPipeline",
    ],
    open,
};

const STEPS: u32 = 30;

/// A text encoder with its tokenizer.
#[derive(Debug)]
struct Encoder {
    model: ClipText,
    tokenizer: Tokenizer,
    frame: PromptFrame,
    /// What fills a prompt up.
    filler: u32,
}

impl Encoder {
    fn open(
        folder: &Folder<'_>,
        (part, tokenizer): (&Part, &str),
        cpu: &Cpu,
    ) -> Result<Box<Self>, ImageError> {
        let model = load_clip_text(part.weights.as_ref(), "", &part.config()?, cpu)?;
        let (tokenizer, config) = folder.tokenizer(&[tokenizer])?;
        let token = |keys: &[&str], otherwise: &str| {
            let named = keys
                .iter()
                .find_map(|key| config[*key].as_str())
                .unwrap_or(otherwise);
            let found = tokenizer.token_id(named);
            found.ok_or_else(|| {
                folder.wrong(
                    "text_encoder",
                    format!("its tokenizer has no token {named:?}"),
                )
            })
        };
        let begin = token(&["bos_token"], "<|startoftext|>")?;
        let end = token(&["eos_token"], "<|endoftext|>")?;
        let filler = token(&["pad_token", "eos_token"], "<|endoftext|>")?;
        Ok(Box::new(Self {
            frame: PromptFrame::between(begin, end, model.most_tokens()),
            model,
            tokenizer,
            filler,
        }))
    }

    fn tokens(&self, prompt: &str, notes: &mut Vec<String>) -> Result<Vec<u32>, ImageError> {
        let mut framed = self.frame.fill(&self.tokenizer, prompt)?;
        notes.extend(framed.note);
        framed.tokens.resize(self.model.most_tokens(), self.filler);
        Ok(framed.tokens)
    }
}

#[derive(Debug)]
struct Model {
    unet: Box<UNet>,
    vae: Box<KlVae>,
    first: Box<Encoder>,
    second: Option<Box<Encoder>>,
    small: Option<Box<TinyVae>>,
    noise: TrainedNoise,
    spacing: Spacing,
    karras: bool,
    /// Whether the network predicts velocities.
    velocity: bool,
    limits: ImageLimits,
    scale: f32,
}

/// The U-Net, and the side of its usual latent.
fn network(folder: &Folder<'_>, cpu: &Cpu) -> Result<(Box<UNet>, u32), ImageError> {
    let part = folder.network("unet", &old_names())?;
    let unet = load_unet(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let side = part.config["sample_size"].as_u64().unwrap_or(64);
    Ok((Box::new(unet), side.clamp(1, 1024) as u32))
}

/// The autoencoder, and what its latents are multiplied by.
fn autoencoder(folder: &Folder<'_>, cpu: &Cpu) -> Result<(Box<KlVae>, f32), ImageError> {
    let part = folder.vae()?;
    let vae = load_kl_vae(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let scale = part.config["scaling_factor"].as_f64().unwrap_or(0.182_15) as f32;
    if scale.is_finite() && scale > 0.0 {
        return Ok((Box::new(vae), scale));
    }
    let reason = format!("scaling_factor is {scale}, expected a number over 0");
    Err(folder.wrong("vae", reason))
}

fn preview_network(folder: &Folder<'_>, cpu: &Cpu) -> Result<Option<Box<TinyVae>>, ImageError> {
    let Some(part) = folder.extra("taesd")? else {
        return Ok(None);
    };
    let small = load_tiny_vae(part.weights.as_ref(), "", &part.config()?, cpu)?;
    Ok(Some(Box::new(small)))
}

fn open(folder: &Folder<'_>, cpu: &Cpu) -> Opened {
    let (unet, side) = network(folder, cpu)?;
    let (vae, scale) = autoencoder(folder, cpu)?;
    let first = Encoder::open(folder, (&folder.text_encoder()?, "tokenizer"), cpu)?;
    let large = unet.config().addition_time_embed_dim.is_some();
    let second = match large {
        true => {
            let part = folder.second_text_encoder()?;
            Some(Encoder::open(folder, (&part, "tokenizer_2"), cpu)?)
        }
        false => None,
    };
    let small = preview_network(folder, cpu)?;
    let config = folder.scheduler()?;
    let (noise, spacing) = trained(folder, &config)?;
    let step_px = (unet.step() * vae.scale()) as u32;
    let model = Model {
        limits: ImageLimits {
            step_px,
            least_side_px: 2 * step_px,
            most_px: 1 << 22,
            size_px: (side * vae.scale() as u32, side * vae.scale() as u32),
            steps: STEPS,
            guidance: if large { 5.0 } else { 7.5 },
        },
        karras: config["use_karras_sigmas"].as_bool().unwrap_or(false),
        velocity: config["prediction_type"].as_str() == Some("v_prediction"),
        noise,
        spacing,
        unet,
        vae,
        first,
        second,
        small,
        scale,
    };
    model.check(folder)?;
    Ok(Box::new(model))
}

/// Modules by the names of the first program, which adapters for SDXL are trained by.
fn old_names() -> Vec<(String, String)> {
    const LAYERS: usize = 2;
    const DEEP: usize = 10;
    let mut places = vec!["mid_block.attentions.0".to_owned()];
    for level in 0..4 {
        let place = |side: &str, layer| format!("{side}_blocks.{level}.attentions.{layer}");
        places.extend((0..LAYERS).map(|layer| place("down", layer)));
        places.extend((0..=LAYERS).map(|layer| place("up", layer)));
    }
    let mut modules = vec!["proj_in".to_owned(), "proj_out".to_owned()];
    for block in 0..DEEP {
        for part in ["attn1", "attn2"] {
            for end in ["to_q", "to_k", "to_v", "to_out.0"] {
                modules.push(format!("transformer_blocks.{block}.{part}.{end}"));
            }
        }
        modules.push(format!("transformer_blocks.{block}.ff.net.0.proj"));
        modules.push(format!("transformer_blocks.{block}.ff.net.2"));
    }
    let all = places.iter().flat_map(|place| {
        modules
            .iter()
            .map(move |module| format!("{place}.{module}"))
    });
    all.filter_map(|module| Some((ldm::old_module(&module, LAYERS)?, module)))
        .collect()
}

fn trained(folder: &Folder<'_>, config: &Value) -> Result<(TrainedNoise, Spacing), ImageError> {
    let wrong = |reason: String| ImageError::Config {
        reason,
        path: folder
            .path()
            .join("scheduler")
            .join("scheduler_config.json"),
    };
    let number = |key: &str, otherwise: f64| config[key].as_f64().unwrap_or(otherwise);
    let (first, last) = (number("beta_start", 0.000_85), number("beta_end", 0.012));
    if !(first > 0.0 && first < last && last < 1.0) {
        return Err(wrong(format!(
            "betas go from {first} to {last}, expected 0 < first < last < 1"
        )));
    }
    let kind = config["beta_schedule"].as_str().unwrap_or("scaled_linear");
    if kind != "scaled_linear" || number("num_train_timesteps", 1000.0) != 1000.0 {
        let got = number("num_train_timesteps", 1000.0);
        return Err(wrong(format!(
            "beta_schedule is {kind:?} over {got} timesteps, expected \"scaled_linear\" over 1000"
        )));
    }
    let predicts = config["prediction_type"].as_str().unwrap_or("epsilon");
    if !["epsilon", "v_prediction"].contains(&predicts) {
        return Err(wrong(format!(
            "prediction_type is {predicts:?}, expected \"epsilon\" or \"v_prediction\""
        )));
    }
    let zero_end = config["rescale_betas_zero_snr"].as_bool().unwrap_or(false);
    let spacing = match config["timestep_spacing"].as_str() {
        Some("trailing") => Spacing::Trailing,
        Some("linspace") => Spacing::Even,
        _ => Spacing::Leading(config["steps_offset"].as_u64().unwrap_or(0).min(10) as usize),
    };
    Ok((TrainedNoise::scaled_linear(first, last, zero_end), spacing))
}

/// What is the same for a prompt at every step.
struct Read {
    text: Vec<f32>,
    pooled: Vec<f32>,
}

impl Model {
    fn check(&self, folder: &Folder<'_>) -> Result<(), ImageError> {
        let config = self.unet.config();
        if self.vae.config().latent_channels != config.in_channels {
            let reason = format!(
                "the U-Net reads {} channels, expected the autoencoder's {}; one made for inpainting alone \
                 waits for support",
                config.in_channels,
                self.vae.config().latent_channels
            );
            return Err(folder.wrong("unet", reason));
        }
        let read = self.read("", &mut Vec::new(), &CancelToken::new())?;
        let width = read.text.len() / self.first.model.most_tokens();
        if width != config.cross_attention_dim {
            let reason = format!(
                "the text encoder's states have {width} elements, expected {}",
                config.cross_attention_dim
            );
            return Err(folder.wrong("text_encoder", reason));
        }
        Ok(())
    }

    fn read(
        &self,
        prompt: &str,
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Read, ImageError> {
        let tokens = self.first.tokens(prompt, notes)?;
        let states = self.first.model.states(&tokens, cancel)?;
        let Some(second) = &self.second else {
            return Ok(Read {
                text: states.last,
                pooled: Vec::new(),
            });
        };
        // Both towers, each before its last block; the cut is told once.
        let before_last =
            |hidden: Vec<Vec<f32>>| hidden.into_iter().rev().nth(1).unwrap_or_default();
        let rows = tokens.len();
        let tokens = second.tokens(prompt, &mut Vec::new())?;
        let more = second.model.states(&tokens, cancel)?;
        let (a, b) = (before_last(states.hidden), before_last(more.hidden));
        let (a_cols, b_cols) = (a.len() / rows, b.len() / tokens.len().max(1));
        let pairs = a
            .chunks_exact(a_cols.max(1))
            .zip(b.chunks_exact(b_cols.max(1)));
        Ok(Read {
            text: pairs
                .flat_map(|(a, b)| a.iter().chain(b))
                .copied()
                .collect(),
            pooled: more.projected.unwrap_or(more.pooled),
        })
    }
}

struct Running<'a> {
    model: &'a Model,
    prompts: Vec<Read>,
}

impl Denoiser for Running<'_> {
    fn velocities(
        &mut self,
        latent: &Latent,
        sigma: f32,
        _next: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ImageError> {
        let model = self.model;
        let size = (latent.height, latent.width);
        let square = sigma * sigma + 1.0;
        let planes = latent.planes();
        let shown: Vec<f32> = planes.iter().map(|x| x / square.sqrt()).collect();
        let told = model.noise.timestep_of(f64::from(sigma));
        // Trained timesteps are whole; between them only where a schedule lies between them.
        let whole = told.round();
        let told = if (told - whole).abs() < 0.01 {
            whole
        } else {
            told
        };
        let side = |latent: usize| (latent * model.vae.scale()) as f32;
        let (height, width) = (side(size.0), side(size.1));
        let ids = [height, width, 0.0, 0.0, height, width];
        let mut velocities = Vec::new();
        for prompt in &self.prompts {
            let input = UNetInput {
                timestep: told as f32,
                text: &prompt.text,
                pooled: &prompt.pooled,
                size_ids: if model.second.is_some() { &ids } else { &[] },
                guidance: &[],
            };
            let mut out = model.unet.run(&shown, size, &input, cancel)?;
            if model.velocity {
                for (out, x) in out.iter_mut().zip(&planes) {
                    let picture = *out * (-sigma / square.sqrt()) + x / square;
                    *out = (x - picture) / sigma;
                }
            }
            velocities.push(Latent::of_planes(&out, size).values);
        }
        Ok(velocities)
    }
}

impl ImageFamily for Model {
    fn id(&self) -> &'static str {
        FAMILY.id
    }

    fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    fn latent_size(&self, (width_px, height_px): (u32, u32)) -> (usize, usize, usize) {
        let side = |px: u32| px as usize / self.vae.scale();
        (
            side(height_px),
            side(width_px),
            self.vae.config().latent_channels,
        )
    }

    fn sigmas(&self, steps: u32, _latent: (usize, usize)) -> Result<Vec<f32>, ImageError> {
        let run = self
            .noise
            .euler_run(steps as usize, self.spacing, self.karras);
        Ok(run.sigmas.iter().map(|sigma| *sigma as f32).collect())
    }

    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        _references: &[GivenPicture],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError> {
        let mut read = Vec::new();
        for prompt in prompts {
            read.push(self.read(prompt, notes, cancel)?);
        }
        Ok(Box::new(Running {
            model: self,
            prompts: read,
        }))
    }

    fn encode(
        &self,
        planes: Vec<f32>,
        (width_px, height_px): (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError> {
        let size = (height_px as usize, width_px as usize);
        let mut mean = self.vae.encode(&on_white(planes), size, cancel)?.mean;
        mean.iter_mut().for_each(|z| *z *= self.scale);
        let scale = self.vae.scale();
        Ok(Latent::of_planes(&mean, (size.0 / scale, size.1 / scale)))
    }

    fn noised(&self, clean: f32, noise: f32, sigma: f32) -> f32 {
        clean + sigma * noise
    }

    fn noise_scale(&self, sigma: f32) -> f32 {
        match self.spacing {
            Spacing::Leading(_) => (sigma * sigma + 1.0).sqrt(),
            Spacing::Even | Spacing::Trailing => sigma,
        }
    }

    fn small(&self, latent: &Latent) -> Result<Option<SmallPicture>, ImageError> {
        let Some(small) = &self.small else {
            return Ok(None);
        };
        let planes = latent.planes();
        let size = (latent.height, latent.width);
        let rgb = small.decode(&planes, size, &CancelToken::new())?;
        let side = |latent: usize| (latent * small.scale()) as u32;
        Ok(Some((opaque(rgb), (side(size.1), side(size.0)))))
    }

    fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<Vec<f32>, ImageError> {
        let mut planes = latent.planes();
        planes.iter_mut().for_each(|z| *z /= self.scale);
        let size = (latent.height, latent.width);
        Ok(opaque(self.vae.decode(&planes, size, cancel)?))
    }
}
