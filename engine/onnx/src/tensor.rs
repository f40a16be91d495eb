//! Tensors that go into a network and come out of it.

use crate::error::OnnxError;

/// Kind of the values of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnnxType {
    /// 32-bit floats.
    F32,
    /// 64-bit integers.
    I64,
}

impl std::fmt::Display for OnnxType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::I64 => "i64",
        })
    }
}

/// Values of a tensor, row-major.
#[derive(Debug, Clone, PartialEq)]
pub enum OnnxData {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit integers.
    I64(Vec<i64>),
}

/// A dense tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct OnnxTensor {
    shape: Vec<usize>,
    data: OnnxData,
}

impl OnnxTensor {
    /// A tensor of floats; at least one value.
    ///
    /// # Errors
    /// [`OnnxError::BadTensor`] when `values` do not fill `shape`.
    pub fn f32(shape: &[usize], values: Vec<f32>) -> Result<Self, OnnxError> {
        check(shape, values.len())?;
        Ok(Self {
            shape: shape.to_vec(),
            data: OnnxData::F32(values),
        })
    }

    /// A tensor of integers; at least one value.
    ///
    /// # Errors
    /// [`OnnxError::BadTensor`] when `values` do not fill `shape`.
    pub fn i64(shape: &[usize], values: Vec<i64>) -> Result<Self, OnnxError> {
        check(shape, values.len())?;
        Ok(Self {
            shape: shape.to_vec(),
            data: OnnxData::I64(values),
        })
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its values.
    pub const fn data(&self) -> &OnnxData {
        &self.data
    }

    /// Its values, taken.
    pub fn into_data(self) -> OnnxData {
        self.data
    }

    /// Kind of its values.
    pub const fn kind(&self) -> OnnxType {
        match self.data {
            OnnxData::F32(_) => OnnxType::F32,
            OnnxData::I64(_) => OnnxType::I64,
        }
    }
}

fn check(shape: &[usize], values: usize) -> Result<(), OnnxError> {
    let expected = shape
        .iter()
        .try_fold(1usize, |product, length| product.checked_mul(*length));
    if values > 0 && expected == Some(values) {
        return Ok(());
    }
    Err(OnnxError::BadTensor {
        shape: shape.to_vec(),
        values,
        expected: match expected {
            Some(0) => "a shape without 0".into(),
            Some(expected) => expected.to_string(),
            None => "a smaller shape".into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_must_fill_the_shape() {
        assert!(OnnxTensor::f32(&[2, 3], vec![0.0; 6]).is_ok());
        assert!(OnnxTensor::i64(&[], vec![1]).is_ok());
        for shape in [&[2, 3][..], &[0], &[usize::MAX, 2]] {
            let error = OnnxTensor::i64(shape, vec![0; 5]).unwrap_err();
            assert!(error.to_string().contains("from 5 values"), "{error}");
        }
        assert!(OnnxTensor::f32(&[0], Vec::new()).is_err());
    }
}
