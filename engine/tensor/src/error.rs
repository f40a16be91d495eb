//! Why tensors were refused.

use crate::DType;

/// A tensor or a call that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// Lengths that do not go together.
    #[error("cannot run {op}: {what} is {got}, expected {expected}")]
    Shape {
        /// The op.
        op: &'static str,
        /// Which length.
        what: &'static str,
        /// Its value.
        got: usize,
        /// What it has to be.
        expected: usize,
    },
    /// Bytes that are not the tensor's.
    #[error("tensor {name:?} has {got} bytes, expected {expected} for {rows} x {cols} {dtype}")]
    Bytes {
        /// Name of the tensor.
        name: String,
        /// Bytes there are.
        got: usize,
        /// Bytes there should be.
        expected: usize,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        cols: usize,
        /// Element type.
        dtype: DType,
    },
    /// Rows that are not whole blocks, or too many elements.
    #[error("tensor {name:?} has rows of {cols} elements, expected whole blocks of {dtype}")]
    Rows {
        /// Name of the tensor.
        name: String,
        /// Elements of a row.
        cols: usize,
        /// Element type.
        dtype: DType,
    },
    /// An element type no matrix product reads.
    #[error("tensor {name:?} is {dtype}, expected one of {known}")]
    Type {
        /// Name of the tensor.
        name: String,
        /// Element type.
        dtype: DType,
        /// Types that can be read.
        known: String,
    },
    /// A weight that is infinite or no number.
    #[error("tensor {name:?} has a value or scale that is not finite, in row {row}")]
    NotFinite {
        /// Name of the tensor.
        name: String,
        /// Row of the first of them.
        row: usize,
    },
    /// A picture beyond what fits in memory.
    #[error("cannot hold {channels} channels of {width} x {height} px: {why}")]
    Picture {
        /// Channels.
        channels: usize,
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
        /// What is wrong with that.
        why: &'static str,
    },
    /// Threads that could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}

/// `Ok` when a length is as expected.
pub(crate) fn expect(
    op: &'static str,
    what: &'static str,
    got: usize,
    expected: usize,
) -> Result<(), TensorError> {
    if got == expected {
        Ok(())
    } else {
        Err(TensorError::Shape {
            op,
            what,
            got,
            expected,
        })
    }
}
