//! Where ops run.

use std::sync::Arc;

use crate::{Affinity, Simd, TensorError, Threads};

/// The processor: its threads and vector instructions. Cheap to clone; clones share the threads.
#[derive(Debug, Clone)]
pub struct Cpu {
    threads: Arc<Threads>,
    simd: Simd,
}

impl Cpu {
    /// With `threads` threads, the caller's among them, and the best instructions there are.
    ///
    /// # Errors
    /// `Threads` when they cannot be started.
    pub fn new(threads: usize) -> Result<Self, TensorError> {
        Ok(Self {
            threads: Arc::new(Threads::new(threads)?),
            simd: Simd::best(),
        })
    }

    /// The same with a say in which processors the threads run on.
    ///
    /// # Errors
    /// `Threads` when they cannot be started or pinned.
    pub fn with_affinity(threads: usize, affinity: Affinity) -> Result<Self, TensorError> {
        Ok(Self {
            threads: Arc::new(Threads::with_affinity(threads, affinity)?),
            simd: Simd::best(),
        })
    }

    /// On these threads, with these instructions.
    pub fn with(threads: Arc<Threads>, simd: Simd) -> Self {
        Self { threads, simd }
    }

    /// Its threads.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Its vector instructions.
    pub fn simd(&self) -> Simd {
        self.simd
    }
}
