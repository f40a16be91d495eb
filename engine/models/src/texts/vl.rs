//! Models of pictures and words: which there are, and how prompts with pictures are read by them.

use engine_base::CancelToken;
use engine_nn::ModelError;
use engine_tensor::Cpu;
use serde_json::Value;

use super::vision::VisionConfig;
use super::vl_text::{SeenPicture, VlStates, VlText};
use super::{qwen2_5_vl, qwen3_vl};
use crate::LoadError;
use crate::error::wrong;
use crate::images::Tensors;

/// Most pixels of a side that are looked at.
const SIDE_CAP_PX: usize = 16_384;

type Parts = (VlText, Option<Box<dyn VlTower>>);
type Load = fn(&Tensors<'_>, &Value, &Cpu) -> Result<Parts, LoadError>;

/// `model_type` of each family, and what loads it.
const LOADERS: &[(&str, Load)] = &[
    ("qwen2_5_vl", qwen2_5_vl::load),
    ("qwen3_vl", qwen3_vl::load),
];

/// Families of models of pictures and words, by their `model_type`.
pub const VL_FAMILIES: &[&str] = &["qwen2_5_vl", "qwen3_vl"];

/// What a vision tower makes of a picture.
#[derive(Debug)]
pub(super) struct VlPicture {
    /// `[tokens, hidden]`.
    pub(super) states: Vec<f32>,
    /// For the first layers of the language side.
    pub(super) deep: Vec<Vec<f32>>,
}

/// A vision tower.
pub(super) trait VlTower: std::fmt::Debug + Send + Sync {
    fn config(&self) -> &VisionConfig;

    /// `patches`: as [`VisionConfig::patches`] orders those of a picture of `size` patches.
    fn see(
        &self,
        patches: &[f32],
        size: (usize, usize),
        cancel: &CancelToken,
    ) -> Result<VlPicture, ModelError>;
}

/// The tensors of the language side, under whichever of its names.
pub(super) fn language_tensors<'a>(tensors: &Tensors<'a>) -> Tensors<'a> {
    let names = [
        "model.language_model",
        "language_model.model",
        "language_model",
        "model",
    ];
    let found = names
        .iter()
        .find(|name| tensors.has(&format!("{name}.embed_tokens.weight")));
    match found {
        Some(name) => tensors.under(name),
        None => tensors.clone(),
    }
}

/// The tensors of the vision tower, where `needed` is among them.
pub(super) fn vision_tensors<'a>(tensors: &Tensors<'a>, needed: &str) -> Option<Tensors<'a>> {
    let names = ["model.visual", "visual"];
    let found = names
        .iter()
        .find(|name| tensors.has(&format!("{name}.{needed}")))?;
    Some(tensors.under(found))
}

/// A picture in a prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptPicture<'a> {
    /// The first of its tokens in the prompt; there are as many as [`VlEncoder::tokens_of`] says.
    pub at: usize,
    /// `[3, height, width]`, normalized as the model was trained: -1..1 for both families' real checkpoints
    /// is what their preprocessors say themselves.
    pub picture: &'a [f32],
    /// Rows of pixels: a multiple of [`VlEncoder::token_px`].
    pub height: usize,
    /// Columns of pixels: a multiple too.
    pub width: usize,
}

/// A model of pictures and words, as an encoder of prompts.
#[derive(Debug)]
pub struct VlEncoder {
    family: &'static str,
    text: VlText,
    tower: Option<Box<dyn VlTower>>,
    image_token: Option<u32>,
}

impl VlEncoder {
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        config: &Value,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        let name = config["model_type"].as_str().unwrap_or_default();
        let known = LOADERS.iter().find(|(id, _)| *id == name);
        let (family, load) = known.ok_or_else(|| LoadError::UnknownFamily {
            got: name.to_owned(),
            known: VL_FAMILIES.join(", "),
        })?;
        let (text, tower) = load(tensors, config, cpu)?;
        if let Some(tower) = &tower
            && tower.config().out != text.config().hidden
        {
            let expected = format!("{}, the hidden_size of the text", text.config().hidden);
            return Err(wrong("out_hidden_size", tower.config().out, &expected));
        }
        let image_token = config["image_token_id"].as_u64();
        Ok(Self {
            family,
            text,
            tower,
            image_token: image_token.and_then(|id| u32::try_from(id).ok()),
        })
    }

    /// Id of its family.
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// Elements of a state.
    pub fn hidden(&self) -> usize {
        self.text.config().hidden
    }

    /// The token that stands for a part of a picture in a prompt.
    pub fn image_token(&self) -> Option<u32> {
        self.image_token
    }

    /// Pixels of a token, along each side; `None` for a checkpoint that reads no pictures.
    pub fn token_px(&self) -> Option<usize> {
        self.tower.as_ref().map(|tower| tower.config().token_px())
    }

    /// Tokens of a picture of `height` x `width` pixels.
    pub fn tokens_of(&self, (height, width): (usize, usize)) -> usize {
        let side = self.token_px().unwrap_or(1).max(1);
        (height / side) * (width / side)
    }

    /// The states of a prompt.
    ///
    /// # Errors
    /// `ContextFull` for no tokens or too many, `BadToken`, `Cancelled`; `NotANumber` for pictures that do
    /// not stand in it, have other sides, or that this checkpoint cannot read.
    pub fn states(
        &self,
        tokens: &[u32],
        pictures: &[PromptPicture<'_>],
        cancel: &CancelToken,
    ) -> Result<VlStates, ModelError> {
        let mut seen = Vec::new();
        for picture in pictures {
            seen.push(self.see(picture, tokens.len(), cancel)?);
        }
        self.text.states(tokens, &seen, cancel)
    }

    /// The states of a prompt whose only picture begins at token `at`, as patches in the model's own order:
    /// `[rows * columns, values of a patch]`.
    ///
    /// # Errors
    /// As [`VlEncoder::states`].
    pub fn states_of_patches(
        &self,
        tokens: &[u32],
        (at, patches, size): (usize, &[f32], (usize, usize)),
        cancel: &CancelToken,
    ) -> Result<VlStates, ModelError> {
        let tower = self.tower()?;
        let config = tower.config();
        let wanted = size.0 * size.1 * config.patch_values();
        if patches.len() != wanted || (size.0 % config.merge) + (size.1 % config.merge) != 0 {
            return Err(refused(format!(
                "a picture of {} x {} patches has {} values, expected {wanted}",
                size.0,
                size.1,
                patches.len()
            )));
        }
        let found = tower.see(patches, size, cancel)?;
        let (rows, columns) = (size.0 / config.merge, size.1 / config.merge);
        if at + rows * columns > tokens.len() {
            return Err(refused(
                "a picture stands behind the end of its prompt".to_owned(),
            ));
        }
        let seen = SeenPicture {
            at,
            rows,
            columns,
            states: found.states,
            deep: found.deep,
        };
        self.text.states(tokens, &[seen], cancel)
    }

    fn tower(&self) -> Result<&dyn VlTower, ModelError> {
        let tower = self.tower.as_deref();
        tower.ok_or_else(|| {
            refused("the text encoder's weights have no part that sees pictures".to_owned())
        })
    }

    fn see(
        &self,
        picture: &PromptPicture<'_>,
        tokens: usize,
        cancel: &CancelToken,
    ) -> Result<SeenPicture, ModelError> {
        let tower = self.tower()?;
        let config = tower.config();
        let (height, width) = (picture.height, picture.width);
        let step = config.token_px();
        let fits = |side: usize| side > 0 && side <= SIDE_CAP_PX && side.is_multiple_of(step);
        let wanted = height.saturating_mul(width).saturating_mul(3);
        if !fits(height) || !fits(width) || picture.picture.len() != wanted {
            return Err(refused(format!(
                "a picture of {height} x {width} px in a prompt has {} values, expected {wanted} and sides \
                 that are multiples of {step}",
                picture.picture.len()
            )));
        }
        let (rows, columns) = (height / step, width / step);
        if picture.at.saturating_add(rows * columns) > tokens {
            return Err(refused(
                "a picture stands behind the end of its prompt".to_owned(),
            ));
        }
        let patches = config.patches(picture.picture, (height, width));
        let size = (height / config.patch, width / config.patch);
        let found = tower.see(&patches, size, cancel)?;
        Ok(SeenPicture {
            at: picture.at,
            rows,
            columns,
            states: found.states,
            deep: found.deep,
        })
    }
}

fn refused(why: String) -> ModelError {
    ModelError::NotANumber(why)
}
