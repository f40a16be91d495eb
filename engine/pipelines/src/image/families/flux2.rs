//! FLUX.2 klein: the prompt's states come from three layers of Qwen 3.

use engine_base::CancelToken;
use engine_models::{Flux2, KlVae, PlacedRows, load_flux2, load_kl_vae};
use engine_nn::flux2_mu;
use engine_tensor::Cpu;

use super::language::{Frame, TextModel};
use super::{FamilyEntry, Opened};
use crate::image::family::{Denoiser, ImageFamily, ImageLimits, Latent, opaque};
use crate::image::folder::Folder;
use crate::image::given::on_white;
use crate::image::schedule::{FlowSchedule, Grid};
use crate::image::{GivenPicture, ImageError};

pub(super) const FAMILY: FamilyEntry = FamilyEntry {
    id: "flux2",
    classes: &["Flux2KleinPipeline", "Flux2KleinKVPipeline"],
    open,
};

const FRAME: Frame = Frame {
    template: "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    kept_from: "<|im_start|>user\n",
    most_tokens: 512,
};
/// Latent pixels of a token, along each side.
const PATCH: usize = 2;
const MOST_REFERENCES: usize = 10;
const REFERENCE_PX: f64 = 1024.0 * 1024.0;
/// References stand so far from each other in time, the first so far from the picture.
const APART: f64 = 10.0;

#[derive(Debug)]
struct Model {
    transformer: Flux2,
    vae: KlVae,
    text: TextModel,
    schedule: FlowSchedule,
    limits: ImageLimits,
}

/// Layers whose states are read: a quarter, a half and three quarters of the way.
fn read_layers(layers: usize) -> [usize; 3] {
    [layers / 4, layers / 2, 3 * layers / 4]
}

fn open(folder: &Folder<'_>, cpu: &Cpu) -> Opened {
    let part = folder.network("transformer", &[])?;
    let transformer = load_flux2(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let part = folder.vae()?;
    let vae = load_kl_vae(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let text = TextModel::open(folder, FRAME)?;
    let config = transformer.config();
    check_vae(folder, &vae, config.in_channels)?;
    if 3 * text.hidden() != config.joint_attention_dim {
        let reason = format!(
            "three of the text encoder's states have {} elements, expected {}",
            3 * text.hidden(),
            config.joint_attention_dim
        );
        return Err(folder.wrong("text_encoder", reason));
    }
    let distilled = folder.index["is_distilled"].as_bool().unwrap_or(false);
    Ok(Box::new(Model {
        schedule: FlowSchedule::of(&folder.scheduler()?, Grid::Linear)?,
        limits: limits(&vae, if distilled { (4, 1.0) } else { (50, 4.0) }),
        transformer,
        vae,
        text,
    }))
}

/// `Ok` when the autoencoder's packed latents are the network's tokens.
pub(super) fn check_vae(
    folder: &Folder<'_>,
    vae: &KlVae,
    channels: usize,
) -> Result<(), ImageError> {
    let packed = vae.config().latent_channels * PATCH * PATCH;
    if packed == channels {
        return Ok(());
    }
    let reason = format!(
        "the autoencoder's packed latents have {packed} channels, expected the transformer's {channels}"
    );
    Err(folder.wrong("vae", reason))
}

pub(super) fn limits(vae: &KlVae, (steps, guidance): (u32, f32)) -> ImageLimits {
    let step_px = (PATCH * vae.scale()) as u32;
    ImageLimits {
        step_px,
        least_side_px: 2 * step_px,
        most_px: 1 << 22,
        size_px: (1024, 1024),
        steps,
        guidance,
    }
}

/// A picture's latent as tokens of `2 x 2`.
pub(super) fn tokens_of(
    vae: &KlVae,
    planes: Vec<f32>,
    (width_px, height_px): (u32, u32),
    cancel: &CancelToken,
) -> Result<Latent, ImageError> {
    let size = (height_px as usize, width_px as usize);
    let posterior = vae.encode(&on_white(planes), size, cancel)?;
    let side = PATCH * vae.scale();
    let (height, width) = (size.0 / side, size.1 / side);
    let values = vae.pack(&posterior.mean, (height, width));
    Ok(Latent {
        height,
        width,
        channels: values.len() / (height * width).max(1),
        values,
    })
}

pub(super) fn picture_of(
    vae: &KlVae,
    latent: &Latent,
    cancel: &CancelToken,
) -> Result<Vec<f32>, ImageError> {
    let planes = vae.unpack(&latent.values, (latent.height, latent.width));
    let size = (PATCH * latent.height, PATCH * latent.width);
    Ok(opaque(vae.decode(&planes, size, cancel)?))
}

/// Pixels of a reference, in whole tokens of `step` px.
pub(super) fn reference_size((width, height): (u32, u32), step: u32) -> (u32, u32) {
    let shrink = (REFERENCE_PX / (f64::from(width) * f64::from(height)))
        .sqrt()
        .min(1.0);
    let round = |side: u32| {
        let steps = (f64::from(side) * shrink / f64::from(step))
            .round()
            .max(1.0);
        steps as u32 * step
    };
    (round(width), round(height))
}

/// Places of a picture's tokens: time, row, column, index.
pub(super) fn places(
    (height, width): (usize, usize),
    (time, index, scale): (f64, f64, f64),
) -> Vec<[f64; 4]> {
    (0..height * width)
        .map(|at| {
            let (row, column) = (at / width, at % width);
            [time, scale * row as f64, scale * column as f64, index]
        })
        .collect()
}

/// Places of words.
pub(super) fn word_places(count: usize) -> Vec<[f64; 4]> {
    (0..count).map(|at| [0.0, 0.0, 0.0, at as f64]).collect()
}

struct Running<'a> {
    model: &'a Model,
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
        let mut rows = latent.values.clone();
        let mut image_places = places((latent.height, latent.width), (0.0, 0.0, 1.0));
        for (index, reference) in self.references.iter().enumerate() {
            rows.extend_from_slice(&reference.values);
            let time = APART * (index + 1) as f64;
            let size = (reference.height, reference.width);
            image_places.extend(places(size, (time, 0.0, 1.0)));
        }
        let network = &self.model.transformer;
        let mut velocities = Vec::new();
        for text in &self.texts {
            let text_places = word_places(text.len() / network.config().joint_attention_dim);
            let image = PlacedRows {
                rows: &rows,
                places: &image_places,
            };
            let text = PlacedRows {
                rows: text,
                places: &text_places,
            };
            let mut all = network.velocity(image, text, sigma, cancel)?;
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
        let tokens = latent.0 * latent.1;
        let mu = flux2_mu(tokens, steps as usize);
        self.schedule.sigmas(steps, tokens, Some(mu))
    }

    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        references: &[GivenPicture],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError> {
        let step = (PATCH * self.vae.scale()) as u32;
        let mut latents = Vec::new();
        for reference in references {
            let size = reference_size(reference.size_px(), step);
            latents.push(self.encode(reference.planes(size), size, cancel)?);
        }
        let layers = read_layers(self.text.layers());
        let mut texts = Vec::new();
        for prompt in prompts {
            texts.push(self.text.states(prompt, &layers, notes, cancel)?);
        }
        Ok(Box::new(Running {
            model: self,
            texts,
            references: latents,
        }))
    }

    fn most_references(&self) -> usize {
        MOST_REFERENCES
    }

    fn encode(
        &self,
        planes: Vec<f32>,
        size_px: (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError> {
        tokens_of(&self.vae, planes, size_px, cancel)
    }

    fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<Vec<f32>, ImageError> {
        picture_of(&self.vae, latent, cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_of_the_real_text_encoder_are_the_pipelines() {
        assert_eq!(read_layers(36), [9, 18, 27]);
    }
}
