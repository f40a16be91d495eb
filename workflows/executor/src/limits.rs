//! How much a run may take up.

/// Limits of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls of the processor lane at a time.
    pub workers: usize,
    /// Calls of the waiting lane at a time.
    pub waiting: usize,
    /// Threads each call of the processor lane may use by itself.
    pub threads_per_call: usize,
    /// Expansions within expansions.
    pub depth: u32,
    /// Nodes of a run, those of expansions included.
    pub nodes: usize,
}

impl Limits {
    /// One worker for each processor of this machine.
    pub fn of_machine() -> Self {
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            workers,
            waiting: 64,
            threads_per_call: 1,
            depth: 1000,
            nodes: 1_000_000,
        }
    }
}
