//! Error codes: what a shell or a script may decide on. Texts are for people only.

use serde::{Deserialize, Serialize};

/// The kind of a failure, stable across versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The input is not what was asked for: a person has to change it.
    BadInput,
    /// A named thing is not there.
    NotFound,
    /// Somebody else owns it.
    Busy,
    /// Refused on purpose (newer version, licence, limits); nothing was changed.
    Refused,
    /// Asked to stop.
    Cancelled,
    /// The disk is full.
    DiskFull,
    /// No right to read or write.
    NotPermitted,
    /// Stored bytes are not what their hash says.
    Corrupt,
    /// Not enough memory for it.
    OutOfMemory,
    /// The operating system failed a read or write.
    Io,
    /// A fault of ours.
    Internal,
}

impl Code {
    /// The code's name as written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadInput => "bad_input",
            Self::NotFound => "not_found",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::DiskFull => "disk_full",
            Self::NotPermitted => "not_permitted",
            Self::Corrupt => "corrupt",
            Self::OutOfMemory => "out_of_memory",
            Self::Io => "io",
            Self::Internal => "internal",
        }
    }

    /// The code of an input-output error.
    pub fn of_io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound => Self::NotFound,
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::NotPermitted,
            Kind::StorageFull | Kind::QuotaExceeded => Self::DiskFull,
            Kind::OutOfMemory => Self::OutOfMemory,
            _ => Self::Io,
        }
    }

    /// Exit status of a command that ended with it (0 is success, 2 is wrong usage).
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::BadInput | Self::NotFound => 3,
            Self::Busy | Self::Refused => 4,
            Self::DiskFull | Self::NotPermitted | Self::Io | Self::OutOfMemory => 5,
            Self::Corrupt => 6,
            Self::Cancelled => 130,
            Self::Internal => 1,
        }
    }
}
