//! What can go wrong between machines.

use std::path::PathBuf;

use engine_base::Code;
use flow_store::StoreError;

use crate::artifacts::ArtifactError;
use crate::join::JoinLineError;
use crate::version::VersionError;

/// Why a cluster cannot be started, joined or used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The line that joins is none.
    #[error(transparent)]
    Join(#[from] JoinLineError),
    /// Versions that do not work together.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// Nobody answers.
    #[error(
        "cannot reach the cluster's server at {address:?}: {why}; is `longtake cluster up` running there?"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// What the system said.
        why: String,
    },
    /// The secret is not the server's.
    #[error(
        "the cluster's server at {address:?} does not let us in: the token is wrong or was withdrawn; \
         copy the line that `longtake cluster up` prints now"
    )]
    Refused {
        /// Where.
        address: String,
    },
    /// The server is another one than the line says.
    #[error(
        "cannot trust the server at {address:?}: expected the certificate {expected}, got another one"
    )]
    Certificate {
        /// Where.
        address: String,
        /// Fingerprint in the line.
        expected: String,
    },
    /// A server without streams.
    #[error(
        "cannot use the server at {address:?}: JetStream is off; start it with `longtake cluster up`, or with jetstream in its configuration"
    )]
    NoJetStream {
        /// Where.
        address: String,
    },
    /// A message that the server would refuse.
    #[error("cannot send {what}: it has {got_bytes} bytes, the server takes at most {most_bytes}")]
    TooLarge {
        /// What was to be sent.
        what: String,
        /// Its size.
        got_bytes: usize,
        /// The server's limit.
        most_bytes: usize,
    },
    /// A stream, a bucket or a consumer does not do what it should.
    #[error("cannot {what}: {why}")]
    Stream {
        /// What was tried.
        what: String,
        /// What the server said.
        why: String,
    },
    /// Somebody else hands out work.
    #[error("the cluster works for {owner:?} now; it is free again when that ends")]
    Busy {
        /// Who.
        owner: String,
    },
    /// Another worker has the name.
    #[error("another worker called {name:?} is in the cluster; give this one another --name")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No server program.
    #[error(
        "cannot find nats-server {at_least} or newer: looked at {looked}; `cargo xtask setup` fetches it, \
         or put it on the PATH"
    )]
    NoServer {
        /// The oldest that does.
        at_least: String,
        /// Where it was looked for and what was found.
        looked: String,
    },
    /// The server program ended.
    #[error("nats-server did not start: {why}")]
    ServerEnded {
        /// What it said.
        why: String,
    },
    /// An address that is taken.
    #[error("cannot listen on {address}: {why}; choose another --port")]
    PortTaken {
        /// Which.
        address: String,
        /// What the system said.
        why: String,
    },
    /// A file of ours.
    #[error("cannot {what}: {why}: {path:?}")]
    File {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: String,
        /// Of what kind.
        code: Code,
        /// Which file.
        path: PathBuf,
    },
    /// The system has no thread, socket or randomness.
    #[error("cannot {what}: {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file that is somewhere else.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// Asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl ClusterError {
    /// Its kind.
    pub const fn code(&self) -> Code {
        match self {
            Self::Join(_) | Self::PortTaken { .. } => Code::BadInput,
            Self::Version(_)
            | Self::Certificate { .. }
            | Self::NoJetStream { .. }
            | Self::NameTaken { .. }
            | Self::TooLarge { .. } => Code::Refused,
            Self::Busy { .. } => Code::Busy,
            Self::Refused { .. } => Code::NotPermitted,
            Self::NoServer { .. } => Code::NotFound,
            Self::File { code, .. } => *code,
            Self::Cancelled => Code::Cancelled,
            _ => Code::Io,
        }
    }

    /// A failed call of the server's streams.
    pub fn stream(what: impl Into<String>, why: &dyn std::fmt::Display) -> Self {
        Self::Stream {
            what: what.into(),
            why: why.to_string(),
        }
    }

    /// A failed call on a file.
    pub fn file(what: &'static str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::File {
            what,
            why: error.to_string(),
            code: Code::of_io(error),
            path: path.to_owned(),
        }
    }
}
