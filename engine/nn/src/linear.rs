//! Linear layers over weights as they lie in a file.

use engine_tensor::{DType, PackedMatrix, TensorError};
use engine_weights::Checkpoint;

use crate::LayerError;

/// `y = x W^T + b`. `W: [outputs, inputs]` stays packed; `b: [outputs]` is f32.
#[derive(Debug, Clone)]
pub struct Linear {
    weights: PackedMatrix,
    bias: Option<Vec<f32>>,
}

impl Linear {
    /// The layer of tensor `name`, without bias. A convolution of 1 x 1 is one too.
    ///
    /// # Errors
    /// [`LayerError`], with the tensor's name.
    pub fn load(
        checkpoint: &dyn Checkpoint,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Self, LayerError> {
        let of_conv = |shape: &[usize]| match shape {
            [o, i, rest @ ..] => {
                (*o, *i) == (outputs, inputs) && rest.iter().all(|side| *side == 1)
            }
            _ => false,
        };
        let tensor = match checkpoint.tensor(name) {
            Some(tensor) if of_conv(&tensor.shape) => tensor,
            _ => checkpoint.tensor_of_shape(name, &[outputs, inputs])?,
        };
        let weights = PackedMatrix::new(name, tensor.dtype, outputs, inputs, tensor.bytes)?;
        Ok(Self {
            weights,
            bias: None,
        })
    }

    /// The layer of `values: [outputs, inputs]`, called `name` in errors.
    ///
    /// # Errors
    /// [`LayerError`] for lengths that do not go together and values that are no numbers.
    pub fn of_values(
        name: &str,
        values: &[f32],
        (outputs, inputs): (usize, usize),
        bias: Option<Vec<f32>>,
    ) -> Result<Self, LayerError> {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let weights = PackedMatrix::new(name, DType::F32, outputs, inputs, bytes.into())?;
        Ok(Self { weights, bias })
    }

    /// The same layer with the bias of tensor `name`, which must be there.
    ///
    /// # Errors
    /// [`LayerError`], with the tensor's name.
    pub fn with_bias(
        mut self,
        checkpoint: &dyn Checkpoint,
        name: &str,
    ) -> Result<Self, LayerError> {
        self.bias = Some(load_vector(checkpoint, name, self.weights.rows())?);
        Ok(self)
    }

    /// Its matrix.
    pub fn weights(&self) -> &PackedMatrix {
        &self.weights
    }

    /// Its bias.
    pub fn bias(&self) -> Option<&[f32]> {
        self.bias.as_deref()
    }
}

/// Tensor `name: [len]` as finite f32.
pub(crate) fn load_vector(
    checkpoint: &dyn Checkpoint,
    name: &str,
    len: usize,
) -> Result<Vec<f32>, LayerError> {
    let tensor = checkpoint.tensor_of_shape(name, &[len])?;
    // A matrix of one row: the same checks, and the same message for values that are no number.
    let row = PackedMatrix::new(name, tensor.dtype, 1, len, tensor.bytes)?;
    let mut values = vec![0.0; len];
    row.decode_row(0, &mut values);
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(LayerError::Tensor(TensorError::NotFinite {
            name: name.to_owned(),
            row: at,
        }));
    }
    Ok(values)
}
