//! Why the GPU is not used, or a call on it failed.

use std::fmt;

/// What a machine lacks to run on an NVIDIA GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// No driver library.
    #[error("no CUDA here: the driver's library (libcuda) is not on this machine")]
    Driver,
    /// A driver that sees no device.
    #[error("no CUDA here: the driver is installed but finds no device ({reason})")]
    Device {
        /// What the driver said.
        reason: String,
    },
    /// A driver older than what we call.
    #[error(
        "cannot use CUDA: the driver offers CUDA {}.{}, expected at least {}.{}",
        got.0, got.1, expected.0, expected.1
    )]
    DriverTooOld {
        /// Major and minor version it offers.
        got: (i32, i32),
        /// What is needed.
        expected: (i32, i32),
    },
    /// No run-time compiler.
    #[error(
        "cannot use CUDA: the compiler's library (libnvrtc) is not on this machine, and no kernel is cached"
    )]
    Compiler,
    /// No library for large products.
    #[error("cannot multiply large matrices: cuBLASLt (libcublasLt) is not on this machine")]
    Products,
    /// A device older than the kernels.
    #[error("cannot use {device:?}: compute capability {}.{}, expected 9.0 or newer", got.0, got.1)]
    Architecture {
        /// Its name.
        device: String,
        /// Its compute capability.
        got: (i32, i32),
    },
}

/// One launch, as errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launched {
    pub(crate) op: &'static str,
    pub(crate) shape: [usize; 6],
    pub(crate) rank: usize,
}

impl Launched {
    pub(crate) fn new(op: &'static str, shape: &[usize]) -> Self {
        let mut kept = [0; 6];
        let rank = shape.len().min(kept.len());
        kept[..rank].copy_from_slice(&shape[..rank]);
        Self {
            op,
            shape: kept,
            rank,
        }
    }
}

impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.op, &self.shape[..self.rank])
    }
}

/// A call on the device that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is nothing to run on.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// More memory than the budget or the device has.
    #[error(
        "cannot take {asked_bytes} bytes on the device: {used_bytes} of a budget of {budget_bytes} are in use ({reason})"
    )]
    OutOfMemory {
        /// What was asked for.
        asked_bytes: usize,
        /// What is in use.
        used_bytes: usize,
        /// The most that may be held.
        budget_bytes: usize,
        /// Whether the budget or the driver refused.
        reason: String,
    },
    /// The driver refused a call.
    #[error("cannot {doing}: the driver says {said}")]
    Driver {
        /// What was tried.
        doing: &'static str,
        /// Name of its error.
        said: String,
    },
    /// A kernel failed while it ran; the device's context is lost.
    #[error("a kernel failed ({said}); it is one of the launches since the last wait: {launches}")]
    Fault {
        /// Name of the driver's error.
        said: String,
        /// Ops and shapes, oldest first.
        launches: String,
    },
    /// Kernel source that does not compile.
    #[error("cannot compile the kernels {source_name:?} for {arch}: {log}")]
    Compile {
        /// Name of the source.
        source_name: &'static str,
        /// Target.
        arch: String,
        /// The compiler's log.
        log: String,
    },
    /// Lengths that do not go together.
    #[error("cannot run {op} on the device: {what} is {got}, expected {expected}")]
    Shape {
        /// The op.
        op: &'static str,
        /// Which length.
        what: &'static str,
        /// Its value.
        got: usize,
        /// What it has to be.
        expected: String,
    },
    /// The CPU's side of a comparison failed.
    #[error(transparent)]
    Tensor(#[from] engine_tensor::TensorError),
}

/// `Ok` when `holds`.
pub(crate) fn ensure(
    holds: bool,
    op: &'static str,
    what: &'static str,
    got: usize,
    expected: impl fmt::Display,
) -> Result<(), CudaError> {
    if holds {
        return Ok(());
    }
    Err(CudaError::Shape {
        op,
        what,
        got,
        expected: expected.to_string(),
    })
}
