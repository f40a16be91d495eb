//! Blocks of autoencoders of the Wan kind: their norms are of single pixels.

use engine_tensor::ops::{Conv2d, channel_norm};
use engine_tensor::{Cpu, Planes, TensorError};

use super::kit::{columns, convolved, full_attention};
use super::tensors::Tensors;
use crate::LoadError;

/// Each pixel over its root mean square, times `gamma`, perhaps through silu.
pub(super) fn normed(
    cpu: &Cpu,
    input: &Planes,
    gamma: &[f32],
    silu: bool,
) -> Result<Planes, TensorError> {
    let mut out = Planes::zeros(input.blocks(), input.height(), input.width())?;
    channel_norm(cpu, input.all(), gamma, silu, out.all_mut())?;
    Ok(out)
}

/// The weight of a norm, whatever number of ones its shape ends with.
pub(super) fn gamma(
    tensors: &Tensors<'_>,
    name: &str,
    channels: usize,
) -> Result<Vec<f32>, LoadError> {
    let name = format!("{name}.gamma");
    let mut shape = tensors.shape(&name).unwrap_or_default();
    if shape.iter().skip(1).any(|side| *side != 1) || shape.first() != Some(&channels) {
        shape = vec![channels];
    }
    tensors.values(&name, &shape)
}

#[derive(Debug)]
pub(super) struct ResBlock {
    norm1: Vec<f32>,
    conv1: Conv2d,
    norm2: Vec<f32>,
    conv2: Conv2d,
    shortcut: Option<Conv2d>,
}

impl ResBlock {
    pub(super) fn load(
        tensors: &Tensors<'_>,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            norm1: gamma(tensors, "norm1", inputs)?,
            conv1: tensors.conv("conv1", outputs, inputs, 3)?,
            norm2: gamma(tensors, "norm2", outputs)?,
            conv2: tensors.conv("conv2", outputs, outputs, 3)?,
            shortcut: match inputs == outputs {
                true => None,
                false => Some(tensors.conv("conv_shortcut", outputs, inputs, 1)?),
            },
        })
    }

    pub(super) fn run(&self, cpu: &Cpu, x: &Planes) -> Result<Planes, TensorError> {
        let inner = normed(cpu, x, &self.norm1, true)?;
        let inner = convolved(cpu, &self.conv1, &inner, None)?;
        let inner = normed(cpu, &inner, &self.norm2, true)?;
        match &self.shortcut {
            Some(shortcut) => {
                let around = convolved(cpu, shortcut, x, None)?;
                convolved(cpu, &self.conv2, &inner, Some(&around))
            }
            None => convolved(cpu, &self.conv2, &inner, Some(x)),
        }
    }
}

/// Two residual blocks around attention of one head over all pixels.
#[derive(Debug)]
pub(super) struct Mid {
    first: ResBlock,
    norm: Vec<f32>,
    qkv: Conv2d,
    proj: Conv2d,
    second: ResBlock,
}

impl Mid {
    pub(super) fn load(tensors: &Tensors<'_>, channels: usize) -> Result<Self, LoadError> {
        let attention = tensors.under("attentions.0");
        Ok(Self {
            first: ResBlock::load(&tensors.under("resnets.0"), channels, channels)?,
            norm: gamma(&attention, "norm", channels)?,
            qkv: attention.conv("to_qkv", 3 * channels, channels, 1)?,
            proj: attention.conv("proj", channels, channels, 1)?,
            second: ResBlock::load(&tensors.under("resnets.1"), channels, channels)?,
        })
    }

    pub(super) fn run(&self, cpu: &Cpu, x: &Planes) -> Result<Planes, TensorError> {
        let x = self.first.run(cpu, x)?;
        let channels = self.norm.len();
        let inner = normed(cpu, &x, &self.norm, false)?;
        let qkv = convolved(cpu, &self.qkv, &inner, None)?.rows(3 * channels)?;
        let part = |at: usize| columns(&qkv, 3 * channels, at * channels..(at + 1) * channels);
        let mixed = full_attention(cpu, (1, channels), &part(0), &part(1), &part(2))?;
        let mut planes = Planes::zeros(x.blocks(), x.height(), x.width())?;
        planes.fill_rows(&mixed)?;
        let x = convolved(cpu, &self.proj, &planes, Some(&x))?;
        self.second.run(cpu, &x)
    }
}
