//! Qwen-Image and its Edit: the prompt is read by Qwen2.5-VL, references stand behind the picture's tokens.

use engine_base::CancelToken;
use engine_models::{CausalVae, QwenImage, load_causal_vae, load_qwen_image};
use engine_nn::guided_keeping_norm;
use engine_tensor::Cpu;

use super::language::{Frame, VlModel};
use super::{FamilyEntry, Opened};
use crate::image::family::{Denoiser, ImageFamily, ImageLimits, Latent, opaque};
use crate::image::folder::Folder;
use crate::image::given::on_white;
use crate::image::schedule::{FlowSchedule, Grid};
use crate::image::{GivenPicture, ImageError};

pub(super) const FAMILY: FamilyEntry = FamilyEntry {
    id: "qwen_image",
    classes: &[
        "QwenImagePipeline",
        "QwenImageImg2ImgPipeline",
        "QwenImageInpaintPipeline",
        "QwenImageEditPipeline",
        "QwenImageEditPlusPipeline",
    ],
    open,
};

const FRAME: Frame = Frame {
    template: "<|im_start|>system\nDescribe the image by detailing the color, shape, size, texture, \
               quantity, text, spatial relationships of the objects and background:<|im_end|>\n\
               <|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    kept_from: "",
    most_tokens: 1058,
};
const EDIT_FRAME: Frame = Frame {
    template: "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, \
               texture, objects, background), then explain how the user's text instruction should alter or \
               modify the image. Generate a new image that meets the user's requirements while maintaining \
               consistency with the original input where appropriate.<|im_end|>\n<|im_start|>user\n{}\
               <|im_end|>\n<|im_start|>assistant\n",
    kept_from: "",
    most_tokens: 1088,
};
/// Latent pixels of a token, along each side.
const PATCH: usize = 2;
const MOST_REFERENCES: usize = 3;
const REFERENCE_PX: f64 = 1024.0 * 1024.0;
/// Pixels that the text encoder is shown of a reference.
const SEEN_PX: f64 = 384.0 * 384.0;

#[derive(Debug)]
struct Model {
    transformer: QwenImage,
    vae: CausalVae,
    text: VlModel,
    schedule: FlowSchedule,
    limits: ImageLimits,
    edits: bool,
}

fn open(folder: &Folder<'_>, cpu: &Cpu) -> Opened {
    let part = folder.network("transformer", &[])?;
    let transformer = load_qwen_image(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let part = folder.vae()?;
    let vae = load_causal_vae(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let class = folder.index["_class_name"].as_str().unwrap_or_default();
    let edits = class.contains("Edit");
    let frame = if edits { EDIT_FRAME } else { FRAME };
    let text = VlModel::open(folder, frame, cpu)?;
    let config = transformer.config();
    if vae.config().z_dim * PATCH * PATCH != config.in_channels {
        let reason = format!(
            "the autoencoder has {} channels, expected a quarter of the transformer's {}",
            vae.config().z_dim,
            config.in_channels
        );
        return Err(folder.wrong("vae", reason));
    }
    if text.hidden() != config.joint_attention_dim {
        let reason = format!(
            "the text encoder's states have {} elements, expected {}",
            text.hidden(),
            config.joint_attention_dim
        );
        return Err(folder.wrong("text_encoder", reason));
    }
    let step_px = (PATCH * vae.scale()) as u32;
    Ok(Box::new(Model {
        schedule: FlowSchedule::of(&folder.scheduler()?, Grid::Linear)?,
        limits: ImageLimits {
            step_px,
            least_side_px: 2 * step_px,
            most_px: 1 << 22,
            size_px: (1328, 1328),
            steps: 50,
            guidance: 4.0,
        },
        transformer,
        vae,
        text,
        edits,
    }))
}

/// Whole steps of a side after a picture was shrunk to about so many pixels.
fn steps_of(size: (u32, u32), step: usize, most: f64) -> (usize, usize) {
    let (width, height) = (f64::from(size.0), f64::from(size.1));
    let shrink = (most / (width * height)).sqrt().min(1.0);
    let round = |side: f64| ((side * shrink / step as f64).round() as usize).max(1);
    (round(height), round(width))
}

struct Running<'a> {
    model: &'a Model,
    /// `[tokens, joint_attention_dim]` of each prompt.
    texts: Vec<Vec<f32>>,
    references: Vec<Latent>,
}

impl Denoiser for Running<'_> {
    fn velocities(
        &mut self,
        latent: &Latent,
        sigma: f32,
        _next: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ImageError> {
        let mut tokens = latent.values.clone();
        let mut sizes = vec![(latent.height, latent.width)];
        for reference in &self.references {
            tokens.extend_from_slice(&reference.values);
            sizes.push((reference.height, reference.width));
        }
        let mut velocities = Vec::new();
        for text in &self.texts {
            let network = &self.model.transformer;
            let mut all = network.velocity(&tokens, &sizes, text, sigma, cancel)?;
            all.truncate(latent.values.len());
            velocities.push(all);
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
        let side = |px: u32| px as usize / (PATCH * self.vae.scale());
        let channels = self.transformer.config().in_channels;
        (side(height_px), side(width_px), channels)
    }

    fn sigmas(&self, steps: u32, latent: (usize, usize)) -> Result<Vec<f32>, ImageError> {
        self.schedule.sigmas(steps, latent.0 * latent.1, None)
    }

    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        references: &[GivenPicture],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError> {
        let step = PATCH * self.vae.scale();
        let (mut seen, mut latents) = (Vec::new(), Vec::new());
        for reference in references {
            let (rows, columns) = steps_of(reference.size_px(), step, REFERENCE_PX);
            let size = ((columns * step) as u32, (rows * step) as u32);
            latents.push(self.encode(reference.planes(size), size, cancel)?);
            // As the text encoder's tokens are: 28 px each.
            seen.push((reference, steps_of(reference.size_px(), 28, SEEN_PX)));
        }
        let hidden = self.text.hidden();
        let mut texts = Vec::new();
        for prompt in prompts {
            let read = self.text.read(prompt, &seen, notes, cancel)?;
            let mut states = read.states.last;
            states.drain(..read.dropped * hidden);
            texts.push(states);
        }
        Ok(Box::new(Running {
            model: self,
            texts,
            references: latents,
        }))
    }

    fn most_references(&self) -> usize {
        if self.edits { MOST_REFERENCES } else { 0 }
    }

    fn encode(
        &self,
        planes: Vec<f32>,
        (width_px, height_px): (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError> {
        let size = (height_px as usize, width_px as usize);
        let posterior = self.vae.encode(&on_white(planes), size, cancel)?;
        let (height, width, channels) = self.latent_size((width_px, height_px));
        Ok(Latent {
            height,
            width,
            channels,
            values: self.vae.pack(&posterior.mean, (height, width)),
        })
    }

    fn guide(&self, with: Vec<f32>, without: &[f32], guidance: f32, channels: usize) -> Vec<f32> {
        guided_keeping_norm(&with, without, guidance, channels)
    }

    fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<Vec<f32>, ImageError> {
        let (height, width) = (latent.height, latent.width);
        let planes = self.vae.unpack(&latent.values, (height, width));
        let size = (PATCH * height, PATCH * width);
        Ok(opaque(self.vae.decode(&planes, size, cancel)?))
    }
}
