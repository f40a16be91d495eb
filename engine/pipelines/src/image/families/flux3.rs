//! FLUX.3, base and distilled: the prompt's states come from eight layers of Qwen3-VL.

use engine_base::CancelToken;
use engine_models::{Flux3, Flux3Input, KlVae, PlacedRows, load_flux3, load_kl_vae};
use engine_tensor::Cpu;

use super::flux2::{check_vae, limits, picture_of, places, reference_size, tokens_of, word_places};
use super::language::{Frame, VlModel, stacked};
use super::{FamilyEntry, Opened};
use crate::image::family::{Denoiser, ImageFamily, ImageLimits, Latent};
use crate::image::folder::Folder;
use crate::image::schedule::{FlowSchedule, Grid};
use crate::image::{GivenPicture, ImageError};

pub(super) const FAMILY: FamilyEntry = FamilyEntry {
    id: "flux3",
    classes: &[
        "Flux3DistilledModularPipeline",
        "Flux3ModularPipeline",
        "Flux3AutoBlocks",
        "Flux3DistilledAutoBlocks",
    ],
    open,
};

const FRAME: Frame = Frame {
    template: "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    kept_from: "<|im_start|>user\n",
    most_tokens: 1024,
};
/// Layers whose states are read, evenly over the depth.
const READ: usize = 8;
const PATCH: usize = 2;
const MOST_REFERENCES: usize = 10;
/// Rows and columns count half.
const SCALE: f64 = 0.5;

#[derive(Debug)]
struct Model {
    transformer: Flux3,
    vae: KlVae,
    text: VlModel,
    schedule: FlowSchedule,
    limits: ImageLimits,
}

fn open(folder: &Folder<'_>, cpu: &Cpu) -> Opened {
    let part = folder.network("transformer", &[])?;
    let transformer = load_flux3(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let part = folder.vae()?;
    let vae = load_kl_vae(part.weights.as_ref(), "", &part.config()?, cpu)?;
    let text = VlModel::open(folder, FRAME, cpu)?;
    let config = transformer.config();
    check_vae(folder, &vae, config.in_channels)?;
    if READ * text.hidden() != config.joint_attention_dim {
        let reason = format!(
            "eight of the text encoder's states have {} elements, expected {}",
            READ * text.hidden(),
            config.joint_attention_dim
        );
        return Err(folder.wrong("text_encoder", reason));
    }
    let distilled = config.flow_map;
    Ok(Box::new(Model {
        schedule: FlowSchedule::of(&folder.scheduler()?, Grid::Linear)?,
        limits: limits(&vae, if distilled { (16, 1.0) } else { (50, 3.5) }),
        transformer,
        vae,
        text,
    }))
}

struct Running<'a> {
    model: &'a Model,
    texts: Vec<Vec<f32>>,
    references: Vec<f32>,
    reference_places: Vec<[f64; 4]>,
}

impl Denoiser for Running<'_> {
    fn velocities(
        &mut self,
        latent: &Latent,
        sigma: f32,
        next: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ImageError> {
        let network = &self.model.transformer;
        let image_places = places((latent.height, latent.width), (0.0, 0.0, SCALE));
        let mut velocities = Vec::new();
        for text in &self.texts {
            let text_places = word_places(text.len() / network.config().joint_attention_dim);
            let references = PlacedRows {
                rows: &self.references,
                places: &self.reference_places,
            };
            let given = Flux3Input {
                image: PlacedRows {
                    rows: &latent.values,
                    places: &image_places,
                },
                text: PlacedRows {
                    rows: text,
                    places: &text_places,
                },
                references: (!self.references.is_empty()).then_some(references),
                timestep: sigma,
                target: network.config().flow_map.then_some(next),
            };
            velocities.push(network.velocity(&given, cancel)?);
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
        let step = (PATCH * self.vae.scale()) as u32;
        let (mut rows, mut reference_places) = (Vec::new(), Vec::new());
        for (index, reference) in references.iter().enumerate() {
            let size = reference_size(reference.size_px(), step);
            let latent = self.encode(reference.planes(size), size, cancel)?;
            let place = -(index as f64) - 1.0;
            reference_places.extend(places((latent.height, latent.width), (0.0, place, SCALE)));
            rows.extend(latent.values);
        }
        let hidden = self.text.hidden();
        let mut texts = Vec::new();
        for prompt in prompts {
            let read = self.text.read(prompt, &[], notes, cancel)?;
            let layers = read.states.hidden.len() - 1;
            let of = |index: usize| {
                let states = &read.states.hidden[layers * index / (READ + 1)];
                states[read.dropped * hidden..].to_vec()
            };
            let lists: Vec<Vec<f32>> = (1..=READ).map(of).collect();
            texts.push(stacked(&lists, hidden));
        }
        Ok(Box::new(Running {
            model: self,
            texts,
            references: rows,
            reference_places,
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
