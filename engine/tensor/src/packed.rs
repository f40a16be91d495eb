//! Matrices of weights, as they lie in a file.

use crate::{Bytes, DType, TensorError};

pub(crate) mod decode;

/// A matrix whose rows are packed blocks or plain floats, used where it lies.
///
/// Layout: `[rows, cols]`, row after row, little endian, no alignment promised. All values and
/// scales are finite.
#[derive(Debug, Clone)]
pub struct PackedMatrix {
    name: String,
    dtype: DType,
    rows: usize,
    cols: usize,
    row_bytes: usize,
    bytes: Bytes,
}

impl PackedMatrix {
    /// Element types that products read.
    pub const DTYPES: &'static [DType] = &[
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q5_1,
        DType::Q8_0,
        DType::Q2_K,
        DType::Q3_K,
        DType::Q4_K,
        DType::Q5_K,
        DType::Q6_K,
        DType::IQ4_NL,
    ];

    /// `rows` x `cols` elements of `dtype`. Reads every scale once; the bytes stay where they are.
    ///
    /// # Errors
    /// `Type`, `Rows`, `Bytes`, or `NotFinite` with the name of the tensor.
    pub fn new(
        name: &str,
        dtype: DType,
        rows: usize,
        cols: usize,
        bytes: Bytes,
    ) -> Result<Self, TensorError> {
        if !Self::DTYPES.contains(&dtype) {
            let known: Vec<&str> = Self::DTYPES.iter().map(|dtype| dtype.name()).collect();
            return Err(TensorError::Type {
                name: name.to_owned(),
                dtype,
                known: known.join(", "),
            });
        }
        let total = dtype
            .bytes_of(cols)
            .and_then(|row| Some((row, row.checked_mul(rows)?)));
        let Some((row_bytes, expected)) = total.filter(|_| cols > 0 && rows > 0) else {
            return Err(TensorError::Rows {
                name: name.to_owned(),
                cols,
                dtype,
            });
        };
        if bytes.len() != expected {
            return Err(TensorError::Bytes {
                name: name.to_owned(),
                got: bytes.len(),
                expected,
                rows,
                cols,
                dtype,
            });
        }
        let finite = decode::finite_check(dtype);
        let bad = bytes
            .chunks_exact(row_bytes)
            .position(|row| !row.chunks_exact(dtype.block_bytes()).all(finite));
        if let Some(row) = bad {
            return Err(TensorError::NotFinite {
                name: name.to_owned(),
                row,
            });
        }
        Ok(Self {
            name: name.to_owned(),
            dtype,
            rows,
            cols,
            row_bytes,
            bytes,
        })
    }

    /// Its name in the checkpoint.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its elements are stored.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of rows: outputs of a product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row: inputs of a product.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Whether rows are packed in blocks, so that products take inputs of 8 bits.
    pub fn is_packed(&self) -> bool {
        self.dtype.block_elements() > 1
    }

    /// All bytes, and the bytes of a row.
    pub(crate) fn bytes(&self) -> (&[u8], usize) {
        (&self.bytes, self.row_bytes)
    }

    /// The bytes of row `row`.
    fn row(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.row_bytes..(row + 1) * self.row_bytes]
    }

    /// The values of row `row` into `out: [cols]`: the plain reference for every other reader.
    ///
    /// # Panics
    /// When the row or the length of `out` is outside.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows && out.len() == self.cols, "row inside");
        decode::row(self.dtype, self.row(row), out);
    }
}
