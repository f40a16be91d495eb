//! Content hashes (BLAKE3 over bytes) and work keys.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not a hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read a hash: expected 64 lower-case hex digits, got {got:?}")]
pub struct HashParseError {
    /// The text, cut to 80 characters.
    pub got: String,
}

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The hash with exactly these 32 bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Its 32 bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// 64 lower-case hex digits.
            pub fn to_hex(&self) -> String {
                blake3::Hash::from_bytes(self.0).to_hex().to_string()
            }

            /// First 12 hex digits: enough for a person to tell two apart.
            pub fn short(&self) -> String {
                self.to_hex()[..12].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.to_hex())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.short())
            }
        }

        impl FromStr for $name {
            type Err = HashParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let refused = || HashParseError { got: text.chars().take(80).collect() };
                let lower = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                if text.len() != 64 || !lower {
                    return Err(refused());
                }
                let mut bytes = [0u8; 32];
                for (at, byte) in bytes.iter_mut().enumerate() {
                    *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16)
                        .map_err(|_digits_were_checked| refused())?;
                }
                Ok(Self(bytes))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_hex())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hash_type! {
    /// Names bytes: BLAKE3 of them. Equal hash, equal bytes.
    ContentHash
}

hash_type! {
    /// Names work: BLAKE3 over the canonical encoding of a node type, its version, parameters,
    /// input contents, side data and seed. Never paths, names, time, host, device or layout.
    Key
}

impl ContentHash {
    /// Hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Hash of everything `reader` gives, in bounded memory.
    ///
    /// # Errors
    /// Whatever the reader fails with.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = ContentHasher::new();
        io::copy(&mut reader, &mut hasher)?;
        Ok(hasher.finish())
    }
}

impl Key {
    /// Key over an already canonical encoding.
    pub fn of_canonical(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

/// Hashes bytes as they are written to it.
#[derive(Default)]
pub struct ContentHasher {
    inner: blake3::Hasher,
    bytes: u64,
}

impl ContentHasher {
    /// A hasher that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes it has seen.
    pub const fn len_bytes(&self) -> u64 {
        self.bytes
    }

    /// The hash of all bytes seen.
    pub fn finish(&self) -> ContentHash {
        ContentHash(*self.inner.finalize().as_bytes())
    }
}

impl io::Write for ContentHasher {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.inner.update(buf);
        self.bytes += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_refuses_other_spellings() {
        let hash = ContentHash::of(b"longtake");
        assert_eq!(hash.to_string().parse::<ContentHash>(), Ok(hash));
        for wrong in ["", "ab", &hash.to_hex().to_uppercase(), &"é".repeat(32)] {
            assert!(
                wrong.parse::<ContentHash>().is_err(),
                "{wrong:?} was taken for a hash"
            );
        }
    }

    #[test]
    fn reader_equals_slice() {
        let bytes: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
        assert_eq!(
            ContentHash::of_reader(&bytes[..]).ok(),
            Some(ContentHash::of(&bytes))
        );
    }

    #[test]
    fn empty_content_is_blake3_of_nothing() {
        assert_eq!(
            ContentHash::of(b"").to_hex(),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
    }
}
