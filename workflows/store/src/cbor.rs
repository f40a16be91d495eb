//! A strict reader of the part of CBOR (RFC 8949) that rows use: it takes only the canonical form
//! that [`CanonicalWriter`](engine_base::CanonicalWriter) writes, so that equal values have equal
//! bytes.

use std::collections::BTreeMap;

use engine_base::Datum;

/// Why bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by another version.
    #[error("expected encoding {expected}, got {got}")]
    Version {
        /// The first byte.
        got: u8,
        /// What this version writes.
        expected: u8,
    },
    /// The bytes end too early.
    #[error("the bytes end at {at}, in the middle of a value")]
    Short {
        /// Where.
        at: usize,
    },
    /// Something else stands there.
    #[error("expected {expected} at byte {at}")]
    Unexpected {
        /// Where.
        at: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// Bytes after the last value.
    #[error("{left} bytes stand after the end, at byte {at}")]
    Trailing {
        /// Where.
        at: usize,
        /// How many.
        left: usize,
    },
}

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const LIST: u8 = 4;
const MAP: u8 = 5;

/// Reads canonical CBOR from a slice.
pub(crate) struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(all: &'a [u8]) -> Self {
        Self { all, at: 0 }
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        match self.all.len() - self.at {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { at: self.at, left }),
        }
    }

    fn left(&self) -> usize {
        self.all.len() - self.at
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        if count > self.left() {
            return Err(DecodeError::Short { at: self.all.len() });
        }
        let taken = &self.all[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    const fn unexpected(at: usize, expected: &'static str) -> DecodeError {
        DecodeError::Unexpected { at, expected }
    }

    fn peek(&self) -> Result<u8, DecodeError> {
        self.all
            .get(self.at)
            .copied()
            .ok_or(DecodeError::Short { at: self.at })
    }

    /// Major type and argument in the shortest form; longer forms are refused.
    fn head(&mut self) -> Result<(u8, u64), DecodeError> {
        let at = self.at;
        let [first] = self.fixed::<1>()?;
        let (major, short) = (first >> 5, first & 31);
        let (argument, least) = match short {
            0..=23 => (u64::from(short), 0),
            24 => (u64::from(self.fixed::<1>()?[0]), 24),
            25 => (u64::from(u16::from_be_bytes(self.fixed()?)), 1 << 8),
            26 => (u64::from(u32::from_be_bytes(self.fixed()?)), 1 << 16),
            27 => (u64::from_be_bytes(self.fixed()?), 1 << 32),
            _ => return Err(Self::unexpected(at, "a definite length")),
        };
        if argument < least {
            return Err(Self::unexpected(at, "a number in its shortest form"));
        }
        Ok((major, argument))
    }

    fn head_of(&mut self, major: u8, expected: &'static str) -> Result<u64, DecodeError> {
        let at = self.at;
        match self.head()? {
            (got, argument) if got == major => Ok(argument),
            _ => Err(Self::unexpected(at, expected)),
        }
    }

    pub(crate) fn whole(&mut self) -> Result<u64, DecodeError> {
        self.head_of(UNSIGNED, "a whole number")
    }

    /// Length of a list, never more than the bytes left could hold.
    pub(crate) fn list(&mut self) -> Result<usize, DecodeError> {
        let argument = self.head_of(LIST, "a list")?;
        self.counted(argument)
    }

    pub(crate) fn list_of(&mut self, length: usize) -> Result<(), DecodeError> {
        let at = self.at;
        if self.list()? == length {
            Ok(())
        } else {
            Err(Self::unexpected(at, "a list of another length"))
        }
    }

    /// Every element takes one byte at least.
    fn counted(&self, count: u64) -> Result<usize, DecodeError> {
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(DecodeError::Short { at: self.all.len() }),
        }
    }

    pub(crate) fn bool(&mut self) -> Result<bool, DecodeError> {
        let at = self.at;
        match self.fixed::<1>()? {
            [0xf5] => Ok(true),
            [0xf4] => Ok(false),
            _ => Err(Self::unexpected(at, "true or false")),
        }
    }

    pub(crate) fn take_null(&mut self) -> bool {
        let null = self.all.get(self.at) == Some(&0xf6);
        self.at += usize::from(null);
        null
    }

    pub(crate) fn hash(&mut self) -> Result<[u8; 32], DecodeError> {
        let at = self.at;
        match self.head_of(BYTES, "a hash of 32 bytes")? {
            32 => self.fixed(),
            _ => Err(Self::unexpected(at, "a hash of 32 bytes")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, DecodeError> {
        let argument = self.head_of(TEXT, "text")?;
        let length = self.counted(argument)?;
        let at = self.at;
        std::str::from_utf8(self.take(length)?)
            .map_err(|error| Self::unexpected(at + error.valid_up_to(), "text in UTF-8"))
    }

    /// A value in the form that `Datum::canonical` writes.
    pub(crate) fn datum(&mut self) -> Result<Datum, DecodeError> {
        self.datum_at_depth(0)
    }

    fn datum_at_depth(&mut self, depth: usize) -> Result<Datum, DecodeError> {
        let at = self.at;
        if depth > Datum::MAX_DEPTH {
            return Err(Self::unexpected(at, "a value nested less deep"));
        }
        match self.peek()? {
            0xf4 | 0xf5 => return Ok(Datum::Bool(self.bool()?)),
            0xf6 => {
                self.at += 1;
                return Ok(Datum::Null);
            }
            0xfb => {
                self.at += 1;
                let value = f64::from_bits(u64::from_be_bytes(self.fixed()?));
                if value.is_nan() || (value == 0.0 && value.is_sign_negative()) {
                    return Err(Self::unexpected(at, "a number other than NaN and -0"));
                }
                return Ok(Datum::Float(value));
            }
            _ => {}
        }
        match self.peek()? >> 5 {
            UNSIGNED => Ok(Datum::whole(self.whole()?)),
            NEGATIVE => {
                let argument = self.head_of(NEGATIVE, "a whole number")?;
                i64::try_from(argument)
                    .map(|value| Datum::Int(-1 - value))
                    .map_err(|_outside| Self::unexpected(at, "a whole number of 64 bits"))
            }
            TEXT => Ok(Datum::Text(self.text()?.to_owned())),
            LIST => {
                let length = self.list()?;
                let mut items = Vec::with_capacity(length.min(64));
                for _ in 0..length {
                    items.push(self.datum_at_depth(depth + 1)?);
                }
                Ok(Datum::List(items))
            }
            MAP => self.map_at_depth(depth),
            _ => Err(Self::unexpected(at, "a plain value")),
        }
    }

    fn map_at_depth(&mut self, depth: usize) -> Result<Datum, DecodeError> {
        let argument = self.head_of(MAP, "a map")?;
        let length = self.counted(argument)?;
        let mut members = BTreeMap::new();
        let mut last: Option<&'a str> = None;
        for _ in 0..length {
            let at = self.at;
            let name = self.text()?;
            let rises = last.is_none_or(|last| (last.len(), last) < (name.len(), name));
            if !rises {
                return Err(Self::unexpected(at, "names once each, in canonical order"));
            }
            last = Some(name);
            members.insert(name.to_owned(), self.datum_at_depth(depth + 1)?);
        }
        Ok(Datum::Map(members))
    }
}
