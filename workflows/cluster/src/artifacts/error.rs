//! Why an artifact did not come, and who is to blame.

use std::fmt;

use engine_base::{Code, ContentHash};
use flow_store::StoreError;

use crate::lease::Failure;
use crate::names::WorkerId;

/// Where bytes came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A worker's store.
    Holder(WorkerId),
    /// The shared folder or bucket.
    Shared,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holder(worker) => write!(f, "worker {worker}"),
            Self::Shared => f.write_str("the shared store"),
        }
    }
}

/// Somebody who gave other bytes than the hash says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptHolder {
    /// Who.
    pub from: Origin,
    /// What its bytes hash to, so far as they were read.
    pub got: ContentHash,
    /// How many bytes were read.
    pub got_bytes: u64,
}

/// What came of asking somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Who was asked.
    pub from: Origin,
    /// What happened the last time.
    pub outcome: String,
}

/// Several attempts in one line.
fn list(tried: &[Tried]) -> String {
    if tried.is_empty() {
        return "nobody was known to hold it".to_owned();
    }
    let each: Vec<String> = tried
        .iter()
        .map(|one| format!("{}: {}", one.from, one.outcome))
        .collect();
    each.join("; ")
}

fn names(corrupt: &[CorruptHolder]) -> String {
    let each: Vec<String> = corrupt
        .iter()
        .map(|one| format!("{} gave {} ({} bytes)", one.from, one.got, one.got_bytes))
        .collect();
    each.join("; ")
}

/// Why an artifact is not in our store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// Nobody has it; it has to be made again.
    #[error("cannot fetch artifact {hash}: it is gone from every holder: {}", list(.tried))]
    Gone {
        /// What was asked for.
        hash: ContentHash,
        /// Who was asked.
        tried: Vec<Tried>,
        /// Who gave other bytes.
        corrupt: Vec<CorruptHolder>,
    },
    /// Somebody may have it, but sends nothing.
    #[error(
        "cannot fetch artifact {hash}: got {got_bytes} of {length_bytes} bytes, then nobody sent \
         any more: {}", list(.tried)
    )]
    Unreachable {
        /// What was asked for.
        hash: ContentHash,
        /// Its size.
        length_bytes: u64,
        /// What came of it.
        got_bytes: u64,
        /// Who was asked.
        tried: Vec<Tried>,
        /// Who gave other bytes.
        corrupt: Vec<CorruptHolder>,
    },
    /// Everybody who has it gave other bytes; it has to be made again, by somebody else.
    #[error("cannot fetch artifact {hash}: its bytes are others than announced: {}", names(.corrupt))]
    Corrupt {
        /// What was asked for.
        hash: ContentHash,
        /// Who gave other bytes; never empty.
        corrupt: Vec<CorruptHolder>,
    },
    /// No room for it, also after unused ones were removed.
    #[error(
        "cannot fetch artifact {hash}: the disk is full: needed {needed_bytes} bytes, {free_bytes} \
         were free"
    )]
    DiskFull {
        /// What was asked for.
        hash: ContentHash,
        /// Its size.
        needed_bytes: u64,
        /// What was free.
        free_bytes: u64,
    },
    /// Asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The shared store cannot be used.
    #[error("cannot {what} the shared store: {message}")]
    Shared {
        /// What was tried.
        what: &'static str,
        /// What it said.
        message: String,
    },
    /// No connection can be made at all.
    #[error("cannot begin to fetch: {message}")]
    Client {
        /// What the system said.
        message: String,
    },
    /// Our own store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ArtifactError {
    /// The kind of the failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::Gone { .. } => Code::NotFound,
            Self::Unreachable { .. } | Self::Shared { .. } | Self::Client { .. } => Code::Io,
            Self::Corrupt { .. } => Code::Corrupt,
            Self::DiskFull { .. } => Code::DiskFull,
            Self::Cancelled => Code::Cancelled,
            Self::Store(error) => error.code(),
        }
    }

    /// Who gave other bytes than announced, whatever else went wrong.
    pub fn corrupt(&self) -> &[CorruptHolder] {
        match self {
            Self::Gone { corrupt, .. }
            | Self::Unreachable { corrupt, .. }
            | Self::Corrupt { corrupt, .. } => corrupt,
            Self::DiskFull { .. }
            | Self::Cancelled
            | Self::Shared { .. }
            | Self::Client { .. }
            | Self::Store(_) => &[],
        }
    }

    /// What it means for a job that needed the artifact. A worker that gave other bytes is named
    /// first: it has to be kept from giving more.
    pub fn failure(&self) -> Failure {
        let culprit = self.corrupt().iter().find_map(|one| match &one.from {
            Origin::Holder(worker) => Some((worker.clone(), one.got)),
            Origin::Shared => None,
        });
        match self {
            Self::Corrupt { hash, .. } => {
                culprit.map_or(Failure::InputGone { content: *hash }, |(worker, got)| {
                    Failure::Corrupt {
                        worker,
                        expected: *hash,
                        got,
                    }
                })
            }
            Self::Gone { hash, .. } => Failure::InputGone { content: *hash },
            Self::DiskFull {
                needed_bytes,
                free_bytes,
                ..
            } => Failure::DiskFull {
                needed_bytes: *needed_bytes,
                free_bytes: *free_bytes,
            },
            Self::Unreachable { .. }
            | Self::Cancelled
            | Self::Shared { .. }
            | Self::Client { .. }
            | Self::Store(_) => Failure::Node {
                code: self.code(),
                text: self.to_string(),
            },
        }
    }
}
