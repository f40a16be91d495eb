//! Which versions work together, and what to say when they don't.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Version of the messages between owner and workers. Raised when an older side would
/// misunderstand a newer one.
pub const PROTOCOL: Protocol = Protocol {
    newest: 1,
    oldest: 1,
};

/// The oldest nats-server with client priorities (prioritized consumers).
pub const NATS_AT_LEAST: Version = Version {
    major: 2,
    minor: 12,
    patch: 0,
};

/// A range of message versions that a program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// The newest.
    pub newest: u32,
    /// The oldest it still speaks.
    pub oldest: u32,
}

/// A release: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

/// Why two sides cannot work together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The other side is too old.
    #[error(
        "cannot work with {peer}: it speaks message versions {} to {}, this program {} to {}; \
         update longtake on {peer}", theirs.oldest, theirs.newest, ours.oldest, ours.newest
    )]
    PeerOlder {
        /// Who.
        peer: String,
        /// What this program speaks.
        ours: Protocol,
        /// What the other one speaks.
        theirs: Protocol,
    },
    /// The other side is too new.
    #[error(
        "cannot work with {peer}: it speaks message versions {} to {}, this program {} to {}; \
         update longtake here", theirs.oldest, theirs.newest, ours.oldest, ours.newest
    )]
    PeerNewer {
        /// Who.
        peer: String,
        /// What this program speaks.
        ours: Protocol,
        /// What the other one speaks.
        theirs: Protocol,
    },
    /// The nats-server is too old.
    #[error("cannot use nats-server {got} at {address:?}: expected {expected} or newer")]
    NatsOlder {
        /// Where it is.
        address: String,
        /// The oldest that does.
        expected: Version,
        /// What it says it is.
        got: Version,
    },
    /// A text is no version.
    #[error("cannot read a version: expected three numbers like 2.12.0, got {got:?}")]
    NoVersion {
        /// The text, cut to 80 characters.
        got: String,
    },
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    /// Takes `2.12.1`, `v2.12.1` and `2.12.1-RC.2` (which is taken for 2.12.1).
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let refused = || VersionError::NoVersion {
            got: text.chars().take(80).collect(),
        };
        let bare = text.trim().strip_prefix('v').unwrap_or(text.trim());
        let bare = bare.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = bare.split('.').map(|part| {
            let digits = part.bytes().all(|c| c.is_ascii_digit());
            part.parse::<u32>().ok().filter(|_| digits)
        });
        match (
            numbers.next(),
            numbers.next(),
            numbers.next(),
            numbers.next(),
        ) {
            (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) => Ok(Self {
                major,
                minor,
                patch,
            }),
            _ => Err(refused()),
        }
    }
}

impl Protocol {
    /// The newest message version that both sides speak. `peer` names the other one.
    ///
    /// # Errors
    /// When there is none; the text says which side to update.
    pub fn common(self, theirs: Self, peer: &str) -> Result<u32, VersionError> {
        let common = self.newest.min(theirs.newest);
        let (ours, peer) = (self, peer.to_owned());
        if common < self.oldest {
            Err(VersionError::PeerOlder { peer, ours, theirs })
        } else if common < theirs.oldest {
            Err(VersionError::PeerNewer { peer, ours, theirs })
        } else {
            Ok(common)
        }
    }
}

/// Whether a nats-server that says `version` will do.
///
/// # Errors
/// When it is older than [`NATS_AT_LEAST`] or says no version.
pub fn check_nats(version: &str, address: &str) -> Result<Version, VersionError> {
    let got: Version = version.parse()?;
    if got < NATS_AT_LEAST {
        return Err(VersionError::NatsOlder {
            address: address.to_owned(),
            expected: NATS_AT_LEAST,
            got,
        });
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn speaks(oldest: u32, newest: u32) -> Protocol {
        Protocol { newest, oldest }
    }

    #[test]
    fn the_newest_common_version_is_taken() {
        assert_eq!(speaks(2, 5).common(speaks(4, 9), "spark-1"), Ok(5));
        assert_eq!(speaks(2, 5).common(speaks(1, 2), "spark-1"), Ok(2));
        let older = speaks(3, 5).common(speaks(1, 2), "spark-1").unwrap_err();
        assert!(older.to_string().ends_with("update longtake on spark-1"));
        let newer = speaks(1, 2).common(speaks(3, 5), "spark-1").unwrap_err();
        assert!(newer.to_string().ends_with("update longtake here"));
        assert!(newer.to_string().contains("3 to 5") && newer.to_string().contains("1 to 2"));
    }

    #[test]
    fn old_servers_are_refused_with_both_versions() {
        let error = check_nats("2.9.10", "127.0.0.1:4222")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("2.9.10") && error.contains("2.12.0"),
            "{error}"
        );
        assert!(check_nats("2.12.0", "x").is_ok());
        assert!(check_nats("2.15.1-RC.3", "x").is_ok());
        assert!(check_nats("v3.0.0", "x").is_ok());
        for wrong in [
            "",
            "2",
            "2.12",
            "2.12.x",
            "2.12.0.1",
            "2.+1.0",
            "99999999999.0.0",
        ] {
            assert!(check_nats(wrong, "x").is_err(), "{wrong:?} was taken");
        }
    }
}
