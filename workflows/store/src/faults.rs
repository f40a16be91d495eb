//! Named points at which a test may stop the process.

use std::fmt;
use std::sync::Arc;

type Callback = dyn Fn(&str) + Send + Sync;

/// Called at every named point passed. Production has none; kill tests abort in it.
///
/// The points are: `blob.half_written`, `blob.renamed_before_commit`,
/// `commit.before_transaction`, `commit.in_transaction`, `commit.after_transaction`,
/// `migrate.copied`, `migrate.before_rename`, `migrate.after_rename`, `prune.files_removed`,
/// `media.renamed_before_commit`.
#[derive(Clone, Default)]
pub struct Faults {
    at: Option<Arc<Callback>>,
}

impl Faults {
    /// Every point, in the order in which one stored result passes them.
    pub const POINTS: [&'static str; 10] = [
        "migrate.copied",
        "migrate.before_rename",
        "migrate.after_rename",
        "blob.half_written",
        "blob.renamed_before_commit",
        "commit.before_transaction",
        "commit.in_transaction",
        "commit.after_transaction",
        "prune.files_removed",
        "media.renamed_before_commit",
    ];

    /// No faults.
    pub fn none() -> Self {
        Self::default()
    }

    /// `at` is called with the name of every point passed, from whatever thread passes it.
    pub fn new(at: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            at: Some(Arc::new(at)),
        }
    }

    pub(crate) fn pass(&self, point: &str) {
        debug_assert!(Self::POINTS.contains(&point), "unlisted point {point:?}");
        if let Some(at) = &self.at {
            at(point);
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.at.is_some() {
            "Faults(set)"
        } else {
            "Faults(none)"
        })
    }
}
