//! Qwen-Image 2.1 and its Turbo: the prompt is read by Qwen3-VL, references stand in it where it sees them.

use engine_base::CancelToken;
use engine_models::{Condition, QwenImage21, ResidualVae, load_qwen_image_21, load_residual_vae};
use engine_tensor::Cpu;

use super::language::{Frame, VlModel};
use super::{FamilyEntry, Opened};
use crate::image::family::{Denoiser, ImageFamily, ImageLimits, Latent};
use crate::image::folder::Folder;
use crate::image::schedule::{FlowSchedule, Grid};
use crate::image::sketch::{Prefixed, decode};
use crate::image::{GivenPicture, ImageError};

pub(super) const FAMILY: FamilyEntry = FamilyEntry {
    id: "qwen_image_21",
    classes: &["QwenImage21Pipeline", "QwenImage21TurboPipeline"],
    open,
};

const FRAME: Frame = Frame {
    template: "<|im_start|>system\nComprehend and analyze the provided prompt.<|im_end|>\n\
               <|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    kept_from: "<|im_start|>user\n",
    most_tokens: 1024,
};
/// Latent pixels of a token that a reference is seen by, along each side.
const SEEN: usize = 2;
const MOST_REFERENCES: usize = 10;
/// References are brought to about this many pixels.
const REFERENCE_PX: f64 = 1024.0 * 1024.0;
const STEPS: u32 = 40;

#[derive(Debug)]
struct Model {
    transformer: QwenImage21,
    vae: ResidualVae,
    text: VlModel,
    schedule: FlowSchedule,
    /// Of a distilled model: its own levels, with the 0 at the end.
    sigmas: Option<Vec<f32>>,
    limits: ImageLimits,
    work_bytes: usize,
}

fn open(folder: &Folder<'_>, cpu: &Cpu) -> Opened {
    let part = folder.network("transformer", &[])?;
    let transformer = load_qwen_image_21(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let part = folder.vae()?;
    let vae = load_residual_vae(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let text = VlModel::open(folder, FRAME, cpu)?;
    let config = transformer.config();
    if vae.config().z_dim != config.in_channels {
        let reason = format!(
            "the autoencoder has {} channels, expected the transformer's {}",
            vae.config().z_dim,
            config.in_channels
        );
        return Err(folder.wrong("vae", reason));
    }
    if text.hidden() != config.context_in_dim {
        let reason = format!(
            "the text encoder's states have {} elements, expected {}",
            text.hidden(),
            config.context_in_dim
        );
        return Err(folder.wrong("text_encoder", reason));
    }
    let sigmas: Option<Vec<f32>> =
        serde_json::from_value(folder.index["sample_sigmas"].clone()).unwrap_or_default();
    let sigmas = sigmas
        .map(ended)
        .transpose()
        .map_err(|got| ImageError::Config {
            reason: format!("sample_sigmas are {got:?}, expected falling numbers from 1 to 0"),
            path: folder.path().join("model_index.json"),
        })?;
    let steps = sigmas
        .as_ref()
        .map_or(STEPS, |sigmas| sigmas.len() as u32 - 1);
    let step_px = vae.scale() as u32;
    Ok(Box::new(Model {
        schedule: FlowSchedule::of(&folder.scheduler()?, Grid::Linear)?,
        limits: ImageLimits {
            step_px,
            least_side_px: 4 * step_px,
            most_px: 1 << 24,
            size_px: (1024, 1024),
            steps,
            guidance: 1.0,
        },
        sigmas,
        transformer,
        vae,
        text,
        work_bytes: folder.options.work_bytes,
    }))
}

/// A list of levels that ends with 0.
fn ended(mut sigmas: Vec<f32>) -> Result<Vec<f32>, Vec<f32>> {
    let falls = sigmas.windows(2).all(|pair| pair[0] > pair[1]);
    let inside = sigmas.iter().all(|sigma| (0.0..=1.0).contains(sigma));
    if !falls || !inside || sigmas.first().is_none_or(|first| *first == 0.0) {
        return Err(sigmas);
    }
    if sigmas.last() != Some(&0.0) {
        sigmas.push(0.0);
    }
    Ok(sigmas)
}

/// Pixels of a reference: about as many as wanted, in whole tokens, of its own shape.
fn reference_size((width, height): (u32, u32), step: u32) -> (u32, u32) {
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

impl ImageFamily for Model {
    fn id(&self) -> &'static str {
        FAMILY.id
    }

    fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    fn latent_size(&self, (width_px, height_px): (u32, u32)) -> (usize, usize, usize) {
        let side = |px: u32| px as usize / self.vae.scale();
        (side(height_px), side(width_px), self.vae.config().z_dim)
    }

    fn sigmas(&self, steps: u32, latent: (usize, usize)) -> Result<Vec<f32>, ImageError> {
        match &self.sigmas {
            Some(sigmas) if sigmas.len() == steps as usize + 1 => Ok(sigmas.clone()),
            _ => self.schedule.sigmas(steps, latent.0 * latent.1, None),
        }
    }

    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        references: &[GivenPicture],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError> {
        let scale = self.vae.scale();
        let step = (SEEN * scale) as u32;
        let (mut seen, mut latents) = (Vec::new(), Vec::new());
        for reference in references {
            let size = reference_size(reference.size_px(), step);
            let latent = self.encode(reference.planes(size), size, cancel)?;
            seen.push((reference, (latent.height / SEEN, latent.width / SEEN)));
            latents.push(latent);
        }
        let mut prefixes = Vec::new();
        for prompt in prompts {
            let read = self.text.read(prompt, &seen, notes, cancel)?;
            // Before the last norm.
            let states = read
                .states
                .hidden
                .last()
                .map_or(&[][..], |states| &states[..]);
            let hidden = self.text.hidden();
            let mut conditions = Vec::new();
            let mut from = read.dropped;
            for (slot, latent) in read.slots.iter().zip(&latents) {
                conditions.push(Condition::Text(&states[from * hidden..slot.at * hidden]));
                conditions.push(Condition::Image {
                    latent: &latent.values,
                    height: latent.height,
                    width: latent.width,
                });
                from = slot.at + slot.tokens;
            }
            conditions.push(Condition::Text(&states[from * hidden..]));
            prefixes.push(self.transformer.prefix(&conditions, cancel)?);
        }
        Ok(Box::new(Prefixed {
            transformer: &self.transformer,
            prefixes,
        }))
    }

    fn most_references(&self) -> usize {
        MOST_REFERENCES
    }

    fn encode(
        &self,
        planes: Vec<f32>,
        (width_px, height_px): (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError> {
        let size = (height_px as usize, width_px as usize);
        let mut mean = self.vae.encode(&planes, size, cancel)?.mean;
        self.vae.normalize(&mut mean);
        let scale = self.vae.scale();
        Ok(Latent::of_planes(&mean, (size.0 / scale, size.1 / scale)))
    }

    fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<Vec<f32>, ImageError> {
        decode(&self.vae, latent, self.work_bytes, cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_keep_their_shape_and_the_eight_levels_end() {
        assert_eq!(reference_size((4000, 2000), 32), (1440, 736));
        assert_eq!(reference_size((33, 10), 32), (32, 32));
        let turbo = [
            1.0, 0.978_453, 0.954_18, 0.926_626, 0.895_08, 0.845_148, 0.704_534, 0.414_568,
        ];
        let sigmas = ended(turbo.to_vec()).unwrap();
        assert_eq!((sigmas.len(), sigmas[8]), (9, 0.0));
        assert!(ended(vec![0.5, 0.7]).is_err());
        assert!(ended(Vec::new()).is_err());
        assert!(ended(vec![2.0, 0.5]).is_err());
    }
}
