//! Weights of picture models as they are in their files, for devices that pack them themselves.

use engine_weights::Checkpoint;

use super::named::Named;
use super::{PICTURE_FAMILIES, rrdb, srvgg};
use crate::LoadError;

/// A convolution 3 x 3.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvWeights {
    /// `[outputs, inputs, 3, 3]`.
    pub weights: Vec<f32>,
    /// `[outputs]`.
    pub bias: Vec<f32>,
    /// Slopes below zero, `[outputs]`, where they are weights.
    pub slopes: Option<Vec<f32>>,
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub outputs: usize,
}

impl ConvWeights {
    /// `NAME.weight`, `NAME.bias`.
    pub(super) fn of(named: &Named<'_>, name: &str) -> Result<Self, LoadError> {
        let weight = format!("{name}.weight");
        let shape = named.shape(&weight).unwrap_or_default();
        let [outputs, inputs, 3, 3] = shape[..] else {
            return Err(LoadError::Config {
                key: format!("the shape of {weight:?}"),
                got: format!("{shape:?}"),
                expected: "[outputs, inputs, 3, 3]".to_owned(),
            });
        };
        Ok(Self {
            weights: named.values(&weight, &shape)?,
            bias: named.values(&format!("{name}.bias"), &[outputs])?,
            slopes: None,
            inputs,
            outputs,
        })
    }
}

/// A network of residual dense blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseNetwork {
    /// Pixels along each side that become channels.
    pub unshuffle: usize,
    /// To features.
    pub first: ConvWeights,
    /// Three dense blocks of five convolutions each.
    pub blocks: Vec<[[ConvWeights; 5]; 3]>,
    /// After the blocks.
    pub trunk: ConvWeights,
    /// Each after the nearest pixels at twice the size.
    pub up: [ConvWeights; 2],
    /// At four times the size.
    pub high: ConvWeights,
    /// To three channels.
    pub last: ConvWeights,
}

/// The network of a picture model.
#[derive(Debug, Clone, PartialEq)]
pub enum PictureWeights {
    /// Convolutions in a row, a pixel shuffle, the picture added.
    Chain(Vec<ConvWeights>),
    /// Residual dense blocks.
    Dense(Box<DenseNetwork>),
}

impl PictureWeights {
    /// How many times larger its pictures are.
    pub fn scale(&self) -> usize {
        match self {
            Self::Chain(convs) => convs
                .last()
                .map_or(1, |conv| (conv.outputs / 3).isqrt().max(1)),
            Self::Dense(network) => 4 / network.unshuffle.max(1),
        }
    }
}

/// The weights of a checkpoint that [`super::load_picture_model`] takes.
///
/// # Errors
/// As of that function.
pub fn picture_weights(checkpoint: &dyn Checkpoint) -> Result<PictureWeights, LoadError> {
    let named = Named::of(checkpoint);
    let family = PICTURE_FAMILIES
        .iter()
        .find(|family| (family.recognises)(&named));
    match family.map(|family| family.id) {
        Some(id) if id == rrdb::FAMILY.id => {
            Ok(PictureWeights::Dense(Box::new(rrdb::plain(&named)?)))
        }
        Some(id) if id == srvgg::FAMILY.id => Ok(PictureWeights::Chain(srvgg::plain(&named)?)),
        _ => Err(LoadError::NoConfig {
            expected: "tensors of a picture network",
        }),
    }
}
