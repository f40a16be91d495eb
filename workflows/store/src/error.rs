//! Why a store call failed.

use std::io;
use std::path::{Path, PathBuf};

use engine_base::{Code, ContentHash, DatumError, Key};

use crate::values::DecodeError;

/// Why the store or a project's database could not do what was asked.
///
/// Errors are `Clone`: one failed transaction answers everybody who waited for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused a read or a write.
    #[error("cannot {what}: {message}: {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// Its kind: [`Code::DiskFull`], [`Code::NotPermitted`], [`Code::NotFound`], [`Code::Io`].
        code: Code,
        /// The system's words.
        message: String,
        /// The file or folder.
        path: PathBuf,
    },
    /// SQLite refused a statement.
    #[error("cannot {what}: {message}: {}", path.display())]
    Database {
        /// What was tried.
        what: &'static str,
        /// Its kind.
        code: Code,
        /// SQLite's words.
        message: String,
        /// The database.
        path: PathBuf,
    },
    /// The database was written by a newer version; it was not touched.
    #[error(
        "cannot open a database of schema {got}, written by a newer version: this one knows schemas \
         up to {newest}; nothing was changed: {}", path.display()
    )]
    NewerSchema {
        /// Schema of the file.
        got: u32,
        /// Newest schema this version knows.
        newest: u32,
        /// The database.
        path: PathBuf,
    },
    /// The file is no database of this kind.
    #[error("cannot open the database: expected {expected}, got {got}: {}", path.display())]
    NotADatabase {
        /// What it should be.
        expected: &'static str,
        /// What it is.
        got: String,
        /// The file.
        path: PathBuf,
    },
    /// Another process has it open in a way that stands against this.
    #[error("cannot {what}: another process has it open: {}", path.display())]
    Busy {
        /// What was tried.
        what: &'static str,
        /// The database or lock file.
        path: PathBuf,
    },
    /// No file of this content.
    #[error("cannot find content {hash}: {}", path.display())]
    NotFound {
        /// Its content hash.
        hash: ContentHash,
        /// Where it would lie.
        path: PathBuf,
    },
    /// A project is not where it should be, or is where none should be.
    #[error("cannot {what}: {got}: {}", path.display())]
    Project {
        /// What was tried.
        what: &'static str,
        /// What was found.
        got: &'static str,
        /// Its kind.
        code: Code,
        /// The folder.
        path: PathBuf,
    },
    /// Not a plain file.
    #[error("cannot take it into the store: expected a plain file, got {got}: {}", path.display())]
    NotAFile {
        /// What it is.
        got: &'static str,
        /// Where.
        path: PathBuf,
    },
    /// The bytes changed while they were copied, or are not what their name says.
    #[error("cannot use the file: expected content {expected}, got {got}: {}", path.display())]
    WrongContent {
        /// What it should hash to.
        expected: ContentHash,
        /// What it hashes to.
        got: ContentHash,
        /// The file.
        path: PathBuf,
    },
    /// A result names a file which the store does not hold.
    #[error("cannot commit a result of {node_type:?}: its file {hash} is not in the store")]
    MissingBlob {
        /// The result's key.
        key: Key,
        /// The node type that made it.
        node_type: String,
        /// The absent content.
        hash: ContentHash,
    },
    /// An exact node gave other bytes than before for the same key.
    #[error(
        "node type {node_type:?} is exact but gave other content for key {}: had {had}, got {got}",
        key.short()
    )]
    ExactMismatch {
        /// The key.
        key: Key,
        /// The node type.
        node_type: String,
        /// The content that was committed first and stays.
        had: ContentHash,
        /// The content that was refused.
        got: ContentHash,
    },
    /// Plain data over the limit; it has to be a file.
    #[error(
        "cannot store {what} of {got_bytes} bytes: at most {most_bytes} are stored in the \
         database, larger results must be files"
    )]
    TooLarge {
        /// Plain data, or a whole result.
        what: &'static str,
        /// Its encoded size.
        got_bytes: u64,
        /// [`crate::SMALL_MAX_BYTES`] or [`crate::RESULT_MAX_BYTES`].
        most_bytes: u64,
    },
    /// Plain data with no canonical form.
    #[error(transparent)]
    Value(#[from] DatumError),
    /// Stored bytes that cannot be read back.
    #[error("cannot read a stored value: {0}")]
    Decode(#[from] DecodeError),
    /// Stored text that cannot be read back.
    #[error("cannot read stored {what}: {message}")]
    BadRow {
        /// What it is.
        what: &'static str,
        /// Why not.
        message: String,
    },
    /// A value that could be written and not be read again.
    #[error("cannot write {what}: lists and maps stand in each other deeper than {most} levels")]
    TooDeep {
        /// What it is.
        what: &'static str,
        /// Most levels.
        most: usize,
    },
    /// An entity was changed by somebody else in between.
    #[error("cannot change {kind} {id:?}: expected {expected}, got {got}")]
    Conflict {
        /// The entity's kind.
        kind: String,
        /// Its id.
        id: String,
        /// What the change was made against.
        expected: String,
        /// What is there.
        got: String,
    },
    /// A thread of the store has ended, as after a panic or while closing.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// The kind of the failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::Io { code, .. } | Self::Database { code, .. } | Self::Project { code, .. } => {
                *code
            }
            Self::NewerSchema { .. } => Code::Refused,
            Self::NotADatabase { .. }
            | Self::WrongContent { .. }
            | Self::Decode(_)
            | Self::BadRow { .. } => Code::Corrupt,
            Self::Busy { .. } | Self::Conflict { .. } => Code::Busy,
            Self::NotFound { .. } | Self::MissingBlob { .. } => Code::NotFound,
            Self::NotAFile { .. }
            | Self::TooLarge { .. }
            | Self::TooDeep { .. }
            | Self::Value(_) => Code::BadInput,
            Self::ExactMismatch { .. } | Self::Closed => Code::Internal,
        }
    }

    pub(crate) fn io(what: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::Io {
            what,
            code: Code::of_io(error),
            message: error.to_string(),
            path: path.to_owned(),
        }
    }

    pub(crate) fn database(what: &'static str, path: &Path, error: &sqlx::Error) -> Self {
        let (code, message) = match error {
            sqlx::Error::Database(inner) => (
                code_of_sqlite(inner.code().as_deref().unwrap_or_default()),
                inner.message().to_owned(),
            ),
            sqlx::Error::Io(inner) => (Code::of_io(inner), inner.to_string()),
            other => (Code::Internal, other.to_string()),
        };
        // Where a sync fails or the log's index cannot grow, SQLite says no more than "disk I/O
        // error", also on a full disk.
        let code = match code {
            Code::Io if is_full(path) => Code::DiskFull,
            code => code,
        };
        Self::Database {
            what,
            code,
            message,
            path: path.to_owned(),
        }
    }
}

/// Whether the disk of the database has no page of it left.
fn is_full(path: &Path) -> bool {
    path.parent()
        .and_then(|dir| rustix::fs::statvfs(dir).ok())
        .is_some_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < 4096)
}

/// Primary result codes of <https://sqlite.org/rescode.html>; extended ones carry them in the low
/// byte.
fn code_of_sqlite(code: &str) -> Code {
    match code.parse::<u32>().unwrap_or(1) & 0xff {
        3 | 8 | 23 => Code::NotPermitted,
        5 | 6 => Code::Busy,
        7 => Code::OutOfMemory,
        10 | 14 => Code::Io,
        11 | 26 => Code::Corrupt,
        13 => Code::DiskFull,
        _ => Code::Internal,
    }
}

/// Gives input-output results the words of [`StoreError::Io`].
pub(crate) trait IoContext<T> {
    fn during(self, what: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, what: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::io(what, path, &error))
    }
}

/// Gives SQL results the words of [`StoreError::Database`].
pub(crate) trait SqlContext<T> {
    fn during_sql(self, what: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> SqlContext<T> for Result<T, sqlx::Error> {
    fn during_sql(self, what: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::database(what, path, &error))
    }
}
