//! Z-Image: the prompt's states are those before the last layer of Qwen 3.

use engine_base::CancelToken;
use engine_models::{KlVae, ZImage, load_kl_vae, load_z_image};
use engine_tensor::Cpu;

use super::language::{Frame, TextModel};
use super::{FamilyEntry, Opened};
use crate::image::family::{Denoiser, ImageFamily, ImageLimits, Latent, opaque};
use crate::image::folder::Folder;
use crate::image::given::on_white;
use crate::image::schedule::{FlowSchedule, Grid};
use crate::image::{GivenPicture, ImageError};

pub(super) const FAMILY: FamilyEntry = FamilyEntry {
    id: "z_image",
    classes: &[
        "ZImagePipeline",
        "ZImageImg2ImgPipeline",
        "ZImageInpaintPipeline",
    ],
    open,
};

const FRAME: Frame = Frame {
    template: "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    kept_from: "<|im_start|>user\n",
    most_tokens: 512,
};
/// Latent pixels of a token, along each side.
const PATCH: usize = 2;

#[derive(Debug)]
struct Model {
    transformer: ZImage,
    vae: KlVae,
    text: TextModel,
    schedule: FlowSchedule,
    limits: ImageLimits,
    /// What latents are multiplied by, after something was taken off.
    scale: f32,
    offset: f32,
}

fn open(folder: &Folder<'_>, cpu: &Cpu) -> Opened {
    let part = folder.network("transformer", &[])?;
    let transformer = load_z_image(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let part = folder.vae()?;
    let vae = load_kl_vae(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let number = |key: &str, otherwise: f64| part.config[key].as_f64().unwrap_or(otherwise) as f32;
    let (scale, offset) = (number("scaling_factor", 1.0), number("shift_factor", 0.0));
    if !(scale.is_finite() && scale > 0.0 && offset.is_finite()) {
        let reason = format!("scaling_factor is {scale}, expected a number over 0");
        return Err(folder.wrong("vae", reason));
    }
    let text = TextModel::open(folder, FRAME)?;
    let config = transformer.config();
    if vae.config().latent_channels != config.in_channels {
        let reason = format!(
            "the autoencoder has {} channels, expected the transformer's {}",
            vae.config().latent_channels,
            config.in_channels
        );
        return Err(folder.wrong("vae", reason));
    }
    if text.hidden() != config.cap_feat_dim {
        let reason = format!(
            "the text encoder's states have {} elements, expected {}",
            text.hidden(),
            config.cap_feat_dim
        );
        return Err(folder.wrong("text_encoder", reason));
    }
    let step_px = (PATCH * vae.scale()) as u32;
    Ok(Box::new(Model {
        schedule: FlowSchedule::of(&folder.scheduler()?, Grid::Even)?,
        limits: ImageLimits {
            step_px,
            least_side_px: 2 * step_px,
            most_px: 1 << 22,
            size_px: (1024, 1024),
            // The released model is the distilled one.
            steps: 9,
            guidance: 1.0,
        },
        transformer,
        vae,
        text,
        scale,
        offset,
    }))
}

struct Running<'a> {
    model: &'a Model,
    texts: Vec<Vec<f32>>,
}

impl Denoiser for Running<'_> {
    fn velocities(
        &mut self,
        latent: &Latent,
        sigma: f32,
        _next: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ImageError> {
        let size = (latent.height, latent.width);
        let planes = latent.planes();
        let mut velocities = Vec::new();
        for text in &self.texts {
            let network = &self.model.transformer;
            // Told how much of the picture is there; answers with the negated velocity.
            let mut out = network.run(&planes, size, text, 1.0 - sigma, cancel)?;
            out.iter_mut().for_each(|value| *value = -*value);
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

    fn sigmas(&self, steps: u32, (height, width): (usize, usize)) -> Result<Vec<f32>, ImageError> {
        self.schedule
            .sigmas(steps, height / PATCH * (width / PATCH), None)
    }

    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        _references: &[GivenPicture],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError> {
        let layers = [self.text.layers().saturating_sub(1)];
        let mut texts = Vec::new();
        for prompt in prompts {
            texts.push(self.text.states(prompt, &layers, notes, cancel)?);
        }
        Ok(Box::new(Running { model: self, texts }))
    }

    fn encode(
        &self,
        planes: Vec<f32>,
        (width_px, height_px): (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError> {
        let size = (height_px as usize, width_px as usize);
        let mut mean = self.vae.encode(&on_white(planes), size, cancel)?.mean;
        mean.iter_mut()
            .for_each(|z| *z = (*z - self.offset) * self.scale);
        let scale = self.vae.scale();
        Ok(Latent::of_planes(&mean, (size.0 / scale, size.1 / scale)))
    }

    fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<Vec<f32>, ImageError> {
        let mut planes = latent.planes();
        planes
            .iter_mut()
            .for_each(|z| *z = *z / self.scale + self.offset);
        let size = (latent.height, latent.width);
        Ok(opaque(self.vae.decode(&planes, size, cancel)?))
    }
}
