//! SRVGG compact (Wang et al., "Real-ESRGAN", arXiv 2107.10833; `SRVGGNetCompact` of the Real-ESRGAN
//! repository): convolutions at the size of the input, one pixel shuffle, the input added.
//!
//! Checked against spandrel 0.4.2 (`RealESRGAN Compact`). Only PReLU between convolutions, as all
//! published checkpoints have it.

use engine_base::CancelToken;
use engine_tensor::Cpu;
use engine_tensor::ops::{Activation, Conv2d, ConvEnd, conv2d, pixel_shuffle};

use super::named::Named;
use super::plain::ConvWeights;
use super::{PictureError, PictureFamily, PictureMemory, PictureModel};
use crate::LoadError;

pub(super) const FAMILY: PictureFamily = PictureFamily {
    id: "srvgg",
    about: "Real-ESRGAN compact: body.0.weight, body.1.weight …",
    recognises: |named| {
        let rank = |name: &str| named.shape(name).map(|shape| shape.len());
        rank("body.0.weight") == Some(4) && rank("body.1.weight") == Some(1)
    },
    load: |named| Ok(Box::new(Srvgg::load(named)?)),
};

/// Most convolutions of a network that is taken for real.
const CONVS_CAP: usize = 256;

#[derive(Debug)]
struct Srvgg {
    convs: Vec<Conv2d>,
    scale: usize,
    widest_blocks: usize,
}

fn wrong(key: &str, got: &[usize], expected: &str) -> LoadError {
    LoadError::Config {
        key: format!("the shape of {key:?}"),
        got: format!("{got:?}"),
        expected: expected.to_owned(),
    }
}

impl Srvgg {
    fn load(named: &Named<'_>) -> Result<Self, LoadError> {
        let first = named.shape("body.0.weight").unwrap_or_default();
        let [features, 3, 3, 3] = first[..] else {
            return Err(wrong("body.0.weight", &first, "[features, 3, 3, 3]"));
        };
        // Convolutions at even places, slopes between them.
        let count = (0..CONVS_CAP)
            .take_while(|at| named.shape(&format!("body.{}.weight", 2 * at)).is_some())
            .count();
        let last_name = format!("body.{}", 2 * (count - 1));
        let last = named
            .shape(&format!("{last_name}.weight"))
            .unwrap_or_default();
        let outputs = last.first().copied().unwrap_or(0);
        let scale = (1..=4).find(|scale| 3 * scale * scale == outputs);
        let Some(scale) = scale.filter(|_| count >= 2) else {
            let expected = "3, 12, 27 or 48 outputs: 3 channels at a scale of 1 to 4";
            return Err(wrong(&last_name, &last, expected));
        };
        let mut convs = Vec::new();
        let mut channels = 3;
        for at in 0..count - 1 {
            let slopes = named.values(&format!("body.{}.weight", 2 * at + 1), &[features])?;
            let name = format!("body.{}", 2 * at);
            let activation = Activation::Prelu(slopes);
            convs.push(named.conv(&name, features, &[channels], &activation)?);
            channels = features;
        }
        convs.push(named.conv(&last_name, outputs, &[channels], &Activation::None)?);
        named.all_used(FAMILY.id)?;
        let widest_blocks = convs.iter().map(Conv2d::out_blocks).max().unwrap_or(1);
        Ok(Self {
            convs,
            scale,
            widest_blocks,
        })
    }
}

/// The convolutions of a checkpoint of which [`Srvgg::load`] makes a model.
pub(super) fn plain(named: &Named<'_>) -> Result<Vec<ConvWeights>, LoadError> {
    let mut convs: Vec<ConvWeights> = Vec::new();
    while convs.len() < CONVS_CAP {
        let name = format!("body.{}", 2 * convs.len());
        if named.shape(&format!("{name}.weight")).is_none() {
            break;
        }
        let mut conv = ConvWeights::of(named, &name)?;
        let slopes = format!("body.{}.weight", 2 * convs.len() + 1);
        if named.shape(&slopes).is_some() {
            conv.slopes = Some(named.values(&slopes, &[conv.outputs])?);
        }
        convs.push(conv);
    }
    Ok(convs)
}

impl PictureModel for Srvgg {
    fn family(&self) -> &'static str {
        FAMILY.id
    }

    fn scale(&self) -> usize {
        self.scale
    }

    fn step_px(&self) -> usize {
        1
    }

    fn overlap_px(&self) -> usize {
        // Each convolution reaches 1 px further.
        self.convs.len().next_multiple_of(8)
    }

    fn bytes_per_px(&self) -> usize {
        let shuffled = 3 * self.scale * self.scale;
        4 * (2 * 16 * self.widest_blocks + 16 + shuffled)
    }

    fn run(
        &self,
        cpu: &Cpu,
        rgb: &[f32],
        (height, width): (usize, usize),
        memory: &mut PictureMemory,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError> {
        memory.begin((height, width));
        let mut at = memory.take(1, height, width)?;
        at.fill(rgb)?;
        for conv in &self.convs {
            cancel.check()?;
            let mut next = memory.take(conv.out_blocks(), height, width)?;
            conv2d(cpu, conv, at.all(), ConvEnd::default(), next.all_mut())?;
            memory.give(std::mem::replace(&mut at, next));
        }
        let mut out = vec![0.0; 3 * height * width * self.scale * self.scale];
        pixel_shuffle(cpu, at.all(), self.scale, Some(rgb), &mut out)?;
        memory.give(at);
        Ok(out)
    }
}
