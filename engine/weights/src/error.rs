//! Why weights cannot be read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use engine_base::Code;

use crate::CheckpointKind;
use crate::metadata::MetadataError;

/// What a file is that holds no weights we read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// No bytes.
    Empty,
    /// The text that Git LFS leaves in place of a large file.
    LfsPointer {
        /// Length of the real file, as the pointer says.
        real_bytes: Option<u64>,
    },
    /// HTML, such as a login page saved under the file's name.
    WebPage,
    /// A zip archive, as PyTorch writes its pickles into.
    Zip,
    /// A bare pickle.
    Pickle,
    /// JSON or other text.
    Text,
    /// Weights, opened as another kind than they are.
    OtherKind(CheckpointKind),
    /// A file format with a name.
    Named(&'static str),
    /// Something else, with its first bytes.
    Unknown {
        /// At most 8 bytes.
        first: Vec<u8>,
    },
}

/// A whole number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("this file is empty"),
            Self::LfsPointer { real_bytes } => {
                f.write_str("this is a Git LFS pointer, not the weights themselves")?;
                match real_bytes {
                    Some(real) => write!(f, ": the real file is {} bytes", grouped(*real)),
                    None => Ok(()),
                }
            }
            Self::WebPage => {
                f.write_str("this is a web page (a login or a licence gate), not weights")
            }
            Self::Zip => f.write_str(
                "this is a zip / PyTorch pickle container; only safetensors and GGUF are read",
            ),
            Self::Pickle => f.write_str("this is a pickle; only safetensors and GGUF are read"),
            Self::Text => f.write_str("this is a text file, not weights"),
            Self::OtherKind(kind) => write!(f, "this is a {kind} file, opened as another kind"),
            Self::Named(name) => {
                write!(f, "this is {name}; only safetensors and GGUF are read")
            }
            Self::Unknown { first } => {
                f.write_str("this is neither GGUF nor safetensors: it begins with bytes")?;
                first.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
        }
    }
}

/// Why weights could not be opened or used. Paths are empty for bytes from memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The system refused.
    #[error("cannot {doing}: {source}, {path:?}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{found}, {path:?}")]
    NotWeights {
        /// What it is.
        found: Found,
        /// The file.
        path: PathBuf,
    },
    /// The end is missing.
    #[error(
        "file is cut short: {} bytes are missing ({what} ends at byte {expected_bytes}, the file \
         has {got_bytes}), {path:?}", expected_bytes.saturating_sub(*got_bytes)
    )]
    CutShort {
        /// What reaches past the end.
        what: String,
        /// Where it ends.
        expected_bytes: u64,
        /// Length of the file.
        got_bytes: u64,
        /// The file.
        path: PathBuf,
    },
    /// A count or size over what we accept.
    #[error("cannot read {what}: got {got}, expected at most {max}, {path:?}")]
    OverCap {
        /// What was counted.
        what: String,
        /// The figure in the file.
        got: u64,
        /// The most that is accepted there.
        max: u64,
        /// The file.
        path: PathBuf,
    },
    /// A file of a version or byte order we do not read.
    #[error("cannot read this GGUF: got {got}, expected version 2 or 3, little endian, {path:?}")]
    Version {
        /// What was found.
        got: String,
        /// The file.
        path: PathBuf,
    },
    /// Contents that contradict the format.
    #[error("damaged weights: {what}, {path:?}")]
    Damaged {
        /// What is wrong, and where.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// An element type we do not decode.
    #[error("tensor {name:?} has type {got}, which is not supported, {path:?}")]
    UnsupportedType {
        /// The tensor.
        name: String,
        /// The type's name.
        got: String,
        /// The file.
        path: PathBuf,
    },
    /// A file that an index or a multi-part file needs.
    #[error("weight file {name:?} is missing, needed by {path:?}")]
    MissingFile {
        /// The file that is not there.
        name: String,
        /// What names it.
        path: PathBuf,
    },
    /// An index that points out of its folder.
    #[error("weight file {name:?} lies outside the folder of its index, {path:?}")]
    OutsideFolder {
        /// The name in the index.
        name: String,
        /// The index.
        path: PathBuf,
    },
    /// A folder in which no weights, or several, were found.
    #[error("cannot choose weights in a folder: {what}, {path:?}")]
    Folder {
        /// What is there.
        what: String,
        /// The folder.
        path: PathBuf,
    },
    /// A tensor the reader needs.
    #[error("tensor {name:?} is missing, {path:?}")]
    MissingTensor {
        /// Its name.
        name: String,
        /// The first weight file.
        path: PathBuf,
    },
    /// A tensor of another shape than its reader needs.
    #[error("tensor {name:?} has shape {got:?}, expected {expected:?}, {path:?}")]
    WrongShape {
        /// Its name.
        name: String,
        /// Shape in the file.
        got: Vec<usize>,
        /// Shape the reader needs.
        expected: Vec<usize>,
        /// The first weight file.
        path: PathBuf,
    },
    /// A metadata value is missing or of another type.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl WeightsError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Io { source, .. } => Code::of_io(source),
            Self::MissingFile { .. } | Self::Folder { .. } => Code::NotFound,
            Self::Version { .. } | Self::UnsupportedType { .. } => Code::Refused,
            Self::CutShort { .. } | Self::Damaged { .. } | Self::OverCap { .. } => Code::Corrupt,
            Self::NotWeights { .. }
            | Self::OutsideFolder { .. }
            | Self::MissingTensor { .. }
            | Self::WrongShape { .. }
            | Self::Metadata(_) => Code::BadInput,
        }
    }

    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn damaged(what: impl Into<String>, path: &Path) -> Self {
        Self::Damaged {
            what: what.into(),
            path: path.to_owned(),
        }
    }
}
