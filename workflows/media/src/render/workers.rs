//! Rows of a frame over a fixed number of threads; results never depend on how many.

use rayon::prelude::*;

use crate::MediaError;

/// Threads for the rows of frames.
pub(crate) struct Workers {
    pool: Option<rayon::ThreadPool>,
}

impl Workers {
    /// `threads` of them, at least one; one works in the caller's thread.
    pub(crate) fn new(threads: usize) -> Result<Self, MediaError> {
        if threads <= 1 {
            return Ok(Self { pool: None });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.min(64))
            .thread_name(|i| format!("render-{i}"))
            .build()
            .map_err(|error| {
                MediaError::BadRequest(format!("start {threads} render threads: {error}"))
            })?;
        Ok(Self { pool: Some(pool) })
    }

    /// Call `work(index, item, scratch)` for each item; each thread keeps its scratch.
    pub(crate) fn each<T: Send, S>(
        &self,
        items: Vec<T>,
        scratch: impl Fn() -> S + Sync + Send,
        work: impl Fn(usize, T, &mut S) + Sync + Send,
    ) {
        match &self.pool {
            None => {
                let mut kept = scratch();
                for (i, item) in items.into_iter().enumerate() {
                    work(i, item, &mut kept);
                }
            }
            Some(pool) => pool.install(|| {
                items
                    .into_par_iter()
                    .enumerate()
                    .for_each_init(&scratch, |kept, (i, item)| work(i, item, kept));
            }),
        }
    }
}
