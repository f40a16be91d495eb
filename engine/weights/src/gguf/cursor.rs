//! Numbers and texts at the start of a file, each checked against its end.

use std::path::Path;

use crate::WeightsError;

/// A place in a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    path: &'a Path,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8], path: &'a Path) -> Self {
        Self { bytes, at: 0, path }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn path(&self) -> &'a Path {
        self.path
    }

    const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `len` bytes. A length that no file of this size can have is called a wrong
    /// length, another that does not fit a missing end.
    pub(super) fn take(&mut self, len: u64, what: &str) -> Result<&'a [u8], WeightsError> {
        let fits = usize::try_from(len).ok().filter(|len| *len <= self.left());
        let Some(fits) = fits else {
            if len > self.bytes.len() as u64 {
                return Err(self.over_cap(format!("bytes of {what}"), len, self.left() as u64));
            }
            return Err(self.cut_short(what, len));
        };
        let taken = &self.bytes[self.at..self.at + fits];
        self.at += fits;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], WeightsError> {
        let Some(array) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(self.cut_short(what, N as u64));
        };
        self.at += N;
        Ok(*array)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, WeightsError> {
        self.array(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, WeightsError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, WeightsError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, WeightsError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A count of things of at least `min_bytes` each that still fit the file.
    pub(super) fn count(
        &mut self,
        what: &str,
        min_bytes: usize,
        cap: usize,
    ) -> Result<usize, WeightsError> {
        let got = self.u64(what)?;
        self.check_count(got, what, min_bytes, cap)
    }

    pub(super) fn check_count(
        &self,
        got: u64,
        what: &str,
        min_bytes: usize,
        cap: usize,
    ) -> Result<usize, WeightsError> {
        let Some(count) = usize::try_from(got).ok().filter(|count| *count <= cap) else {
            return Err(self.over_cap(what.to_owned(), got, cap as u64));
        };
        if count > self.left() / min_bytes {
            // Below the cap, so no overflow.
            return Err(self.cut_short(what, got.saturating_mul(min_bytes as u64)));
        }
        Ok(count)
    }

    /// The bytes of a text: its length as u64, then itself.
    pub(super) fn text(&mut self, what: &str, cap: usize) -> Result<&'a [u8], WeightsError> {
        let len = self.u64(what)?;
        if len > cap as u64 {
            return Err(self.over_cap(format!("bytes of {what}"), len, cap as u64));
        }
        self.take(len, what)
    }

    pub(super) fn damaged(&self, what: impl std::fmt::Display) -> WeightsError {
        WeightsError::damaged(format!("{what}, before byte {}", self.at), self.path)
    }

    pub(super) fn over_cap(&self, what: String, got: u64, max: u64) -> WeightsError {
        WeightsError::OverCap {
            what,
            got,
            max,
            path: self.path.to_owned(),
        }
    }

    fn cut_short(&self, what: &str, needed: u64) -> WeightsError {
        WeightsError::CutShort {
            what: what.to_owned(),
            expected_bytes: (self.at as u64).saturating_add(needed),
            got_bytes: self.bytes.len() as u64,
            path: self.path.to_owned(),
        }
    }
}
