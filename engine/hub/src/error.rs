//! Why something with models failed.

use std::io;
use std::path::{Path, PathBuf};

use engine_base::{Cancelled, Code};

/// Why a model could not be described, fetched, checked or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// There is no place for models on this machine.
    #[error("cannot tell where models belong: set LONGTAKE_MODELS to a folder")]
    NoFolder,
    /// A manifest says something that cannot be.
    #[error("cannot read the model manifest: {what}: {path:?}")]
    Manifest {
        /// What is wrong and what was expected.
        what: String,
        /// The manifest.
        path: PathBuf,
    },
    /// No manifest has a model of this id.
    #[error("there is no model {id:?}; known models: {known}")]
    UnknownModel {
        /// What was asked for.
        id: String,
        /// Ids there are, with commas.
        known: String,
    },
    /// A model has files for other kinds of machines only.
    #[error("the model {id:?} is not there for this kind of machine ({machine})")]
    NotForThisMachine {
        /// The model.
        id: String,
        /// This machine.
        machine: &'static str,
    },
    /// The source does not have it.
    #[error("{what} is not there: {reason}")]
    NotThere {
        /// What was asked for.
        what: String,
        /// What the source said.
        reason: String,
    },
    /// The source wants an account, or one with more rights.
    #[error("{what} is not given to everybody ({reason}); {hint}")]
    NotAllowed {
        /// What was asked for.
        what: String,
        /// What the source said.
        reason: String,
        /// How to get at it.
        hint: String,
    },
    /// Nobody answered, or the way to the source broke again and again.
    #[error("cannot fetch {what}: {reason}; {by_hand}")]
    Unreachable {
        /// What was asked for.
        what: String,
        /// What happened, and how often it was tried.
        reason: String,
        /// Which file goes into which folder.
        by_hand: String,
    },
    /// The source answered something that no such source answers.
    #[error("cannot fetch {what}: {reason}")]
    BadAnswer {
        /// What was asked for.
        what: String,
        /// What was got and what was expected.
        reason: String,
    },
    /// What came is not of the size that the manifest names.
    #[error("{what} has the wrong size: expected {expected} bytes, got {got}")]
    WrongSize {
        /// The file or archive.
        what: String,
        /// Bytes the manifest names.
        expected: u64,
        /// Bytes got, or announced.
        got: u64,
    },
    /// What came is not what the manifest names.
    #[error("{what} has the wrong content: expected sha256 {expected}, got {got}")]
    WrongHash {
        /// The file or archive.
        what: String,
        /// Hash the manifest names.
        expected: String,
        /// Hash of what came.
        got: String,
    },
    /// A package client cannot be run.
    #[error("cannot run {program:?}: {reason}; {install}")]
    NoClient {
        /// The program.
        program: String,
        /// What happened.
        reason: String,
        /// What to install.
        install: String,
    },
    /// An archive does not hold what it should, or not in a form that is taken.
    #[error("cannot take {member:?} out of {archive:?}: {reason}")]
    Archive {
        /// The file in the archive.
        member: String,
        /// The archive's name.
        archive: String,
        /// What was got and what was expected.
        reason: String,
    },
    /// Another process works on the model.
    #[error("the model {id:?} is in use by another process{holder}")]
    Busy {
        /// The model.
        id: String,
        /// Which process, where known.
        holder: String,
    },
    /// Not enough room on the disk.
    #[error("{id:?} needs {needed} bytes on disk and {free} are free: {path:?}")]
    DiskFull {
        /// The model.
        id: String,
        /// Bytes to write.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// The models folder.
        path: PathBuf,
    },
    /// Asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The operating system failed.
    #[error("cannot {what}: {error}: {path:?}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl HubError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { what, path, error }
    }

    /// The kind of failure, for shells and scripts.
    pub fn code(&self) -> Code {
        match self {
            Self::NoFolder
            | Self::UnknownModel { .. }
            | Self::NotForThisMachine { .. }
            | Self::NotThere { .. } => Code::NotFound,
            Self::Manifest { .. } => Code::BadInput,
            Self::NotAllowed { .. } => Code::NotPermitted,
            Self::NoClient { .. } => Code::NotFound,
            Self::WrongSize { .. } | Self::WrongHash { .. } | Self::Archive { .. } => Code::Corrupt,
            Self::Busy { .. } => Code::Busy,
            Self::DiskFull { .. } => Code::DiskFull,
            Self::Cancelled(_) => Code::Cancelled,
            Self::Unreachable { .. } | Self::BadAnswer { .. } => Code::Io,
            Self::Io { error, .. } => Code::of_io(error),
        }
    }
}
