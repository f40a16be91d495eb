//! Residual blocks with group norms, as Stable Diffusion's networks have them.

use engine_nn::{Linear, Runner};
use engine_tensor::ops::{Conv2d, GroupNormSpec, Unary, activate, group_norm};
use engine_tensor::{Cpu, Planes, TensorError};

use super::kit::{convolved, raised};
use super::tensors::Tensors;
use crate::LoadError;

/// A norm over groups of channels.
#[derive(Debug)]
pub(super) struct GroupNorm {
    groups: usize,
    epsilon: f32,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl GroupNorm {
    pub(super) fn load(
        tensors: &Tensors<'_>,
        channels: usize,
        (groups, epsilon): (usize, f32),
    ) -> Result<Self, LoadError> {
        Ok(Self {
            groups,
            epsilon,
            weight: tensors.values("weight", &[channels])?,
            bias: tensors.values("bias", &[channels])?,
        })
    }

    pub(super) fn channels(&self) -> usize {
        self.weight.len()
    }

    pub(super) fn run(&self, cpu: &Cpu, x: &Planes, silu: bool) -> Result<Planes, TensorError> {
        let spec = GroupNormSpec {
            groups: self.groups,
            weight: &self.weight,
            bias: &self.bias,
            epsilon: self.epsilon,
            silu,
        };
        let mut out = Planes::zeros(x.blocks(), x.height(), x.width())?;
        group_norm(cpu, &spec, x.all(), out.all_mut())?;
        Ok(out)
    }
}

/// Two convolutions behind norms; the timestep, where there is one, is added between them.
#[derive(Debug)]
pub(super) struct ResBlock {
    norm1: GroupNorm,
    conv1: Conv2d,
    time: Option<Linear>,
    norm2: GroupNorm,
    conv2: Conv2d,
    shortcut: Option<Conv2d>,
}

impl ResBlock {
    /// `time`: elements of an embedded timestep, where the block reads one.
    pub(super) fn load(
        tensors: &Tensors<'_>,
        (inputs, outputs): (usize, usize),
        norm: (usize, f32),
        time: Option<usize>,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            norm1: GroupNorm::load(&tensors.under("norm1"), inputs, norm)?,
            conv1: tensors.conv("conv1", outputs, inputs, 3)?,
            time: match time {
                Some(time) => Some(tensors.biased("time_emb_proj", outputs, time)?),
                None => None,
            },
            norm2: GroupNorm::load(&tensors.under("norm2"), outputs, norm)?,
            conv2: tensors.conv("conv2", outputs, outputs, 3)?,
            shortcut: match inputs == outputs {
                true => None,
                false => Some(tensors.conv("conv_shortcut", outputs, inputs, 1)?),
            },
        })
    }

    pub(super) fn run(&self, cpu: &Cpu, x: &Planes) -> Result<Planes, TensorError> {
        let inner = self.norm1.run(cpu, x, true)?;
        self.finish(cpu, x, &convolved(cpu, &self.conv1, &inner, None)?)
    }

    /// The same at an embedded timestep, which went through a silu already.
    pub(super) fn run_at(
        &self,
        runner: &mut Runner,
        x: &Planes,
        time: &[f32],
    ) -> Result<Planes, TensorError> {
        let cpu = runner.cpu().clone();
        let inner = self.norm1.run(&cpu, x, true)?;
        let mut inner = convolved(&cpu, &self.conv1, &inner, None)?;
        if let Some(linear) = &self.time {
            let mut by = vec![0.0; linear.weights().rows()];
            runner.linear(time, [(linear, &mut by)])?;
            inner = raised(&inner, &by)?;
        }
        self.finish(&cpu, x, &inner)
    }

    fn finish(&self, cpu: &Cpu, x: &Planes, inner: &Planes) -> Result<Planes, TensorError> {
        let inner = self.norm2.run(cpu, inner, true)?;
        match &self.shortcut {
            Some(shortcut) => {
                let around = convolved(cpu, shortcut, x, None)?;
                convolved(cpu, &self.conv2, &inner, Some(&around))
            }
            None => convolved(cpu, &self.conv2, &inner, Some(x)),
        }
    }
}

/// `silu` of a copy.
pub(super) fn active(cpu: &Cpu, x: &[f32]) -> Vec<f32> {
    let mut active = x.to_vec();
    activate(cpu, Unary::Silu, &mut active);
    active
}
