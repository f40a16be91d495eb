//! Text encoders that are language models, with their tokenizers and templates.

use std::path::PathBuf;
use std::sync::Arc;

use engine_base::CancelToken;
use engine_models::{
    Activations, DenseModel, KvKind, LoadOptions, PromptPicture, VlEncoder, VlStates, load_dense,
    load_vl_encoder,
};
use engine_tensor::Cpu;
use serde_json::Value;

use crate::Tokenizer;
use crate::image::folder::Folder;
use crate::image::prompt::{FramedPrompt, PromptFrame};
use crate::image::{GivenPicture, ImageError};

/// A plain language model.
#[derive(Debug)]
pub(super) struct TextModel {
    model: Arc<DenseModel>,
    tokenizer: Tokenizer,
    frame: PromptFrame,
    layers: usize,
}

/// What is the same for every text encoder of a family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) template: &'static str,
    /// What begins the part whose states are kept; empty for the prompt itself.
    pub(super) kept_from: &'static str,
    pub(super) most_tokens: usize,
}

impl TextModel {
    pub(super) fn open(folder: &Folder<'_>, frame: Frame) -> Result<Self, ImageError> {
        let part = folder.text_encoder()?;
        let load = LoadOptions {
            threads: folder.options.threads,
            kv: KvKind::F32,
            activations: Activations::Exact,
            ..LoadOptions::default()
        };
        let model = load_dense(part.weights.as_ref(), &load)?;
        let (tokenizer, _) = folder.tokenizer(&["tokenizer", "text_encoder"])?;
        let layers = part.config["num_hidden_layers"].as_u64().unwrap_or(0) as usize;
        Ok(Self {
            frame: PromptFrame::new(
                &tokenizer,
                frame.template,
                frame.kept_from,
                frame.most_tokens,
            )?,
            model,
            tokenizer,
            layers,
        })
    }

    pub(super) fn hidden(&self) -> usize {
        self.model.hidden()
    }

    pub(super) fn layers(&self) -> usize {
        self.layers
    }

    /// States after `layer` layers, of what is kept of the frame with `prompt` in it.
    pub(super) fn states(
        &self,
        prompt: &str,
        layers: &[usize],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, ImageError> {
        let framed = self.frame.fill(&self.tokenizer, prompt)?;
        notes.extend(framed.note);
        let hidden = self.hidden();
        let mut all = Vec::new();
        for layer in layers {
            let mut stream = Arc::clone(&self.model).stream();
            let mut states = stream.states_after(&framed.tokens, *layer, cancel)?;
            states.drain(..framed.dropped * hidden);
            all.push(states);
        }
        Ok(stacked(&all, hidden))
    }
}

/// Rows of several lists side by side.
pub(super) fn stacked(lists: &[Vec<f32>], cols: usize) -> Vec<f32> {
    let rows = lists.first().map_or(0, |list| list.len() / cols.max(1));
    let mut out = Vec::with_capacity(lists.iter().map(Vec::len).sum());
    for row in 0..rows {
        for list in lists {
            out.extend_from_slice(&list[row * cols..(row + 1) * cols]);
        }
    }
    out
}

/// How a preprocessor normalizes pictures of 0..1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Colours {
    mean: [f32; 3],
    deviation: [f32; 3],
}

/// A model of pictures and words.
#[derive(Debug)]
pub(super) struct VlModel {
    model: VlEncoder,
    tokenizer: Tokenizer,
    frame: PromptFrame,
    colours: Colours,
    path: PathBuf,
}

/// Of CLIP's pictures, which Qwen2.5-VL was trained with.
const CLIP_COLOURS: Colours = Colours {
    mean: [0.481_454_67, 0.457_827_5, 0.408_210_73],
    deviation: [0.268_629_55, 0.261_302_6, 0.275_777_1],
};
const PLAIN_COLOURS: Colours = Colours {
    mean: [0.5; 3],
    deviation: [0.5; 3],
};

/// Where a picture's part of a prompt stands, in the prompt's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) at: usize,
    pub(super) tokens: usize,
}

/// What a prompt with pictures becomes.
pub(super) struct VlPrompt {
    pub(super) states: VlStates,
    /// Tokens at the front whose states are dropped.
    pub(super) dropped: usize,
    /// One for each picture.
    pub(super) slots: Vec<Slot>,
}

impl VlModel {
    pub(super) fn open(folder: &Folder<'_>, frame: Frame, cpu: &Cpu) -> Result<Self, ImageError> {
        let part = folder.text_encoder()?;
        let model = load_vl_encoder(part.weights.as_ref(), "", &part.config, cpu)?;
        let (tokenizer, _) = folder.tokenizer(&["processor", "tokenizer", "text_encoder"])?;
        let about = folder.json("processor/preprocessor_config.json")?;
        let list = |key: &str| -> Option<[f32; 3]> {
            serde_json::from_value(about.as_ref().unwrap_or(&Value::Null)[key].clone()).ok()
        };
        let colours = match (list("image_mean"), list("image_std")) {
            (Some(mean), Some(deviation)) if deviation.iter().all(|d| *d > 0.0) => {
                Colours { mean, deviation }
            }
            _ if model.family() == "qwen2_5_vl" => CLIP_COLOURS,
            _ => PLAIN_COLOURS,
        };
        Ok(Self {
            frame: PromptFrame::new(
                &tokenizer,
                frame.template,
                frame.kept_from,
                frame.most_tokens,
            )?,
            model,
            tokenizer,
            colours,
            path: part.path,
        })
    }

    pub(super) fn hidden(&self) -> usize {
        self.model.hidden()
    }

    /// `Ok` when it can be shown pictures.
    pub(super) fn check_sees(&self) -> Result<(), ImageError> {
        match (self.model.token_px(), self.model.image_token()) {
            (Some(_), Some(_)) => Ok(()),
            _ => Err(ImageError::MissingPart {
                part: "text encoder's part that sees pictures",
                expected: format!("tensors \"visual.…\" beside {}", self.path.display()),
            }),
        }
    }

    /// Reads `prompt` with `pictures` before it, each shown in so many rows and columns of tokens.
    pub(super) fn read(
        &self,
        prompt: &str,
        pictures: &[(&GivenPicture, (usize, usize))],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<VlPrompt, ImageError> {
        if !pictures.is_empty() {
            self.check_sees()?;
        }
        let side = self.model.token_px().unwrap_or(1);
        let image = self.model.image_token().unwrap_or(0);
        let (mut before, mut slots, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (picture, (rows, columns))) in pictures.iter().enumerate() {
            let head = format!("Picture {}: <|vision_start|>", index + 1);
            before.extend(self.tokenizer.encode_marked(&head)?);
            slots.push(Slot {
                at: self.frame.head() + before.len(),
                tokens: rows * columns,
            });
            before.extend(std::iter::repeat_n(image, rows * columns));
            before.extend(self.tokenizer.encode_marked("<|vision_end|>")?);
            let (height, width) = (rows * side, columns * side);
            let planes = picture.on_white((width as u32, height as u32));
            shown.push((self.normalized(planes), height, width));
        }
        let FramedPrompt {
            tokens,
            dropped,
            note,
        } = self.frame.with(&before).fill(&self.tokenizer, prompt)?;
        notes.extend(note);
        let given: Vec<PromptPicture<'_>> = shown
            .iter()
            .zip(&slots)
            .map(|((picture, height, width), slot)| PromptPicture {
                at: slot.at,
                picture,
                height: *height,
                width: *width,
            })
            .collect();
        Ok(VlPrompt {
            states: self.model.states(&tokens, &given, cancel)?,
            dropped,
            slots,
        })
    }

    /// -1..1 to what the model was trained with.
    fn normalized(&self, mut planes: Vec<f32>) -> Vec<f32> {
        let pixels = (planes.len() / 3).max(1);
        let by = self.colours.mean.iter().zip(&self.colours.deviation);
        for (plane, (mean, deviation)) in planes.chunks_exact_mut(pixels).zip(by) {
            for value in plane {
                *value = (f32::midpoint(*value, 1.0) - mean) / deviation;
            }
        }
        planes
    }
}
