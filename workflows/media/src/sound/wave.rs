//! The container of mixes: RIFF/WAVE, two channels of 32-bit float, RF64 above 4 GiB.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::MediaError;

/// Bytes of one sample of both channels.
const FRAME_BYTES: u64 = 8;
/// Bytes before the first sample: RIFF head, `ds64` or `JUNK`, `fmt `, `fact`, head of `data`.
const HEAD_BYTES: u64 = 12 + 36 + 26 + 12 + 8;
const FLOAT_TAG: u16 = 3;

/// The file's head for `frames` samples. Up to 4 GiB a plain wave file with a `JUNK` chunk where
/// `ds64` would be, above that RF64 (EBU Tech 3306): the head's size never changes.
fn head(rate_hz: u32, frames: u64) -> Vec<u8> {
    let data_bytes = frames * FRAME_BYTES;
    let riff_bytes = data_bytes + HEAD_BYTES - 8;
    let large = u32::try_from(riff_bytes).is_err();
    let short = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let mut out = Vec::with_capacity(HEAD_BYTES as usize);
    out.extend_from_slice(if large { b"RF64" } else { b"RIFF" });
    out.extend_from_slice(&if large {
        u32::MAX.to_le_bytes()
    } else {
        short(riff_bytes)
    });
    out.extend_from_slice(b"WAVE");
    out.extend_from_slice(if large { b"ds64" } else { b"JUNK" });
    out.extend_from_slice(&28u32.to_le_bytes());
    for size in [riff_bytes, data_bytes, frames] {
        out.extend_from_slice(&(if large { size } else { 0 }).to_le_bytes());
    }
    out.extend_from_slice(&0u32.to_le_bytes());
    out.extend_from_slice(b"fmt ");
    out.extend_from_slice(&18u32.to_le_bytes());
    out.extend_from_slice(&FLOAT_TAG.to_le_bytes());
    out.extend_from_slice(&2u16.to_le_bytes());
    out.extend_from_slice(&rate_hz.to_le_bytes());
    out.extend_from_slice(&rate_hz.saturating_mul(FRAME_BYTES as u32).to_le_bytes());
    out.extend_from_slice(&(FRAME_BYTES as u16).to_le_bytes());
    out.extend_from_slice(&32u16.to_le_bytes());
    out.extend_from_slice(&0u16.to_le_bytes());
    out.extend_from_slice(b"fact");
    out.extend_from_slice(&4u32.to_le_bytes());
    out.extend_from_slice(&short(frames));
    out.extend_from_slice(b"data");
    out.extend_from_slice(&if large {
        u32::MAX.to_le_bytes()
    } else {
        short(data_bytes)
    });
    out
}

/// The name under which `out` is written until it is whole.
pub(super) fn part_path(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    out.with_file_name(name)
}

/// A file that takes its final name only when whole; dropped before that, it is removed.
#[derive(Debug)]
pub(super) struct PartFile {
    part: PathBuf,
    out: PathBuf,
    kept: bool,
}

impl PartFile {
    pub(super) fn new(out: &Path) -> Self {
        Self {
            part: part_path(out),
            out: out.to_path_buf(),
            kept: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.part
    }

    /// Sync to disk, then take the final name.
    pub(super) fn keep(mut self) -> Result<(), MediaError> {
        let failed = |path: &Path, source| MediaError::Io {
            what: "cannot finish the sound file",
            path: path.to_path_buf(),
            source,
        };
        File::open(&self.part)
            .and_then(|file| file.sync_all())
            .map_err(|source| failed(&self.part, source))?;
        std::fs::rename(&self.part, &self.out).map_err(|source| failed(&self.out, source))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.kept {
            // It may never have been made; there is nobody to tell if it stays.
            drop(std::fs::remove_file(&self.part));
        }
    }
}

/// Writes an f32 stereo wave file: a RIFF/WAVE (RF64 above 4 GiB) whose samples start at byte 94,
/// format tag 3, little-endian, left and right interleaved. Until [`WaveWriter::finish`] the file
/// is named `OUT.part`.
#[derive(Debug)]
pub struct WaveWriter {
    // Before `part`, so that the file is closed before it is removed.
    file: BufWriter<File>,
    part: PartFile,
    rate_hz: u32,
    frames: u64,
}

impl WaveWriter {
    /// Begin the file `out`.
    ///
    /// # Errors
    /// [`MediaError::Io`] when it cannot be written.
    pub fn create(out: &Path, rate_hz: u32) -> Result<Self, MediaError> {
        let part = PartFile::new(out);
        let file = File::create(part.path()).map_err(|source| MediaError::Io {
            what: "cannot begin a sound file",
            path: out.to_path_buf(),
            source,
        })?;
        let mut writer = Self {
            file: BufWriter::with_capacity(1 << 16, file),
            part,
            rate_hz,
            frames: 0,
        };
        writer.put(&head(rate_hz, 0))?;
        Ok(writer)
    }

    /// Add samples, left and right interleaved; an odd value at the end is left out.
    ///
    /// # Errors
    /// [`MediaError::Io`].
    pub fn write(&mut self, samples: &[f32]) -> Result<(), MediaError> {
        let whole = &samples[..samples.len() / 2 * 2];
        let mut bytes = [0u8; 4096];
        for chunk in whole.chunks(bytes.len() / 4) {
            for (to, value) in bytes.chunks_exact_mut(4).zip(chunk) {
                to.copy_from_slice(&value.to_le_bytes());
            }
            self.put(&bytes[..chunk.len() * 4])?;
        }
        self.frames += whole.len() as u64 / 2;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), MediaError> {
        self.file.write_all(bytes).map_err(|source| MediaError::Io {
            what: "cannot write sound",
            path: self.part.out.clone(),
            source,
        })
    }

    /// Write the sizes, sync, and give the file its name. Gives its samples.
    ///
    /// # Errors
    /// [`MediaError::Io`].
    pub fn finish(mut self) -> Result<u64, MediaError> {
        let failed = |source| MediaError::Io {
            what: "cannot finish the sound file",
            path: self.part.out.clone(),
            source,
        };
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.file
            .write_all(&head(self.rate_hz, self.frames))
            .map_err(failed)?;
        self.file.flush().map_err(failed)?;
        self.part.keep()?;
        Ok(self.frames)
    }
}

/// Reads an f32 stereo wave file from its start.
#[derive(Debug)]
pub struct WaveReader {
    file: BufReader<File>,
    path: PathBuf,
    rate_hz: u32,
    frames: u64,
    left: u64,
}

impl WaveReader {
    /// Open `path`, made by [`WaveWriter`] or any other program as f32 stereo.
    ///
    /// # Errors
    /// [`MediaError::Io`]; [`MediaError::BadFile`] when it is something else or cut.
    pub fn open(path: &Path) -> Result<Self, MediaError> {
        let failed = |source| MediaError::Io {
            what: "cannot read a mix",
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let file_bytes = file.metadata().map_err(failed)?.len();
        let mut file = BufReader::with_capacity(1 << 16, file);
        let parsed = parse(&mut file, file_bytes).map_err(|refused| match refused {
            Refused::Io(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
                failed(source)
            }
            Refused::Io(_) => MediaError::BadFile {
                what: format!(
                    "cannot read a mix: expected an f32 stereo wave file, got {file_bytes} bytes that end in its head"
                ),
                path: path.to_path_buf(),
            },
            Refused::What(what) => MediaError::BadFile {
                what: format!("cannot read a mix: expected an f32 stereo wave file, got {what}"),
                path: path.to_path_buf(),
            },
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            rate_hz: parsed.0,
            frames: parsed.1,
            left: parsed.1,
        })
    }

    /// Sample rate.
    pub const fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Length in samples.
    pub const fn samples(&self) -> u64 {
        self.frames
    }

    /// Read on into `out` (interleaved); gives the samples read, 0 at the end. Values that are
    /// not numbers are read as 0.
    ///
    /// # Errors
    /// [`MediaError::Io`].
    pub fn read(&mut self, out: &mut [f32]) -> Result<usize, MediaError> {
        let frames = (out.len() as u64 / 2).min(self.left) as usize;
        let mut bytes = [0u8; 4096];
        for chunk in out[..frames * 2].chunks_mut(bytes.len() / 4) {
            let bytes = &mut bytes[..chunk.len() * 4];
            self.file
                .read_exact(bytes)
                .map_err(|source| MediaError::Io {
                    what: "cannot read a mix",
                    path: self.path.clone(),
                    source,
                })?;
            for (to, from) in chunk.iter_mut().zip(bytes.chunks_exact(4)) {
                let value = f32::from_le_bytes([from[0], from[1], from[2], from[3]]);
                *to = if value.is_finite() { value } else { 0.0 };
            }
        }
        self.left -= frames as u64;
        Ok(frames)
    }
}

enum Refused {
    Io(std::io::Error),
    What(String),
}

impl From<std::io::Error> for Refused {
    fn from(source: std::io::Error) -> Self {
        Self::Io(source)
    }
}

fn refused(what: impl Into<String>) -> Refused {
    Refused::What(what.into())
}

/// Walk the chunks up to the samples; gives sample rate and samples.
fn parse(file: &mut BufReader<File>, file_bytes: u64) -> Result<(u32, u64), Refused> {
    let mut riff = [0u8; 12];
    file.read_exact(&mut riff)?;
    let wide = match &riff[..4] {
        b"RIFF" => false,
        b"RF64" => true,
        _ => return Err(refused("another kind of file")),
    };
    if &riff[8..] != b"WAVE" {
        return Err(refused("a RIFF file of another kind"));
    }
    let mut rate_hz = None;
    let mut wide_data_bytes = None;
    loop {
        let mut chunk = [0u8; 8];
        file.read_exact(&mut chunk)?;
        let bytes = u64::from(u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]));
        let mut used = 0u64;
        match &chunk[..4] {
            b"ds64" if wide && bytes >= 24 => {
                let mut sizes = [0u8; 24];
                file.read_exact(&mut sizes)?;
                used = 24;
                wide_data_bytes = sizes[8..16].try_into().ok().map(u64::from_le_bytes);
            }
            b"fmt " if bytes >= 16 => {
                let mut format = [0u8; 16];
                file.read_exact(&mut format)?;
                used = 16;
                let short = |at: usize| u16::from_le_bytes([format[at], format[at + 1]]);
                let (tag, channels, bits) = (short(0), short(2), short(14));
                if (tag, channels, bits) != (FLOAT_TAG, 2, 32) {
                    return Err(refused(format!(
                        "format tag {tag}, {channels} channels, {bits} bits"
                    )));
                }
                rate_hz = Some(u32::from_le_bytes([
                    format[4], format[5], format[6], format[7],
                ]));
            }
            b"data" => {
                let rate_hz = rate_hz.ok_or_else(|| refused("no format before the samples"))?;
                let data_bytes = match wide_data_bytes {
                    Some(wide_bytes) if bytes == u64::from(u32::MAX) => wide_bytes,
                    _ => bytes,
                };
                let there = file_bytes.saturating_sub(file.stream_position()?);
                if data_bytes > there {
                    return Err(refused(format!(
                        "a file cut in the middle ({there} bytes of sound of {data_bytes})"
                    )));
                }
                if data_bytes % FRAME_BYTES != 0 {
                    return Err(refused(format!(
                        "{data_bytes} bytes of sound, not whole samples"
                    )));
                }
                if rate_hz == 0 {
                    return Err(refused("a sample rate of 0"));
                }
                return Ok((rate_hz, data_bytes / FRAME_BYTES));
            }
            _ => {}
        }
        // Chunks are padded to even sizes. A size that leads past the end ends in a short read.
        let skip = bytes + bytes % 2 - used;
        file.seek_relative(i64::try_from(skip).unwrap_or(i64::MAX))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_is_as_long_as_it_says_and_turns_to_rf64() {
        for frames in [0, 48_000, 1 << 29, 1 << 33] {
            let head = head(48_000, frames);
            assert_eq!(head.len() as u64, HEAD_BYTES);
            assert_eq!(&head[..4], if frames < 1 << 29 { b"RIFF" } else { b"RF64" });
        }
    }

    #[test]
    fn reads_past_four_gib() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long.wav");
        let frames = (5u64 << 30) / FRAME_BYTES;
        let mut file = File::create(&path).unwrap();
        file.write_all(&head(48_000, frames)).unwrap();
        file.set_len(HEAD_BYTES + frames * FRAME_BYTES).unwrap();
        drop(file);
        let reader = WaveReader::open(&path).unwrap();
        assert_eq!((reader.rate_hz(), reader.samples()), (48_000, frames));
        let mut sound = crate::sound::SoundReader::open(&path, 48_000).unwrap();
        assert_eq!(sound.samples().unwrap(), frames as i64);
    }

    #[test]
    fn nothing_is_left_of_an_unfinished_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wav");
        let mut writer = WaveWriter::create(&path, 48_000).unwrap();
        writer.write(&[0.5; 64]).unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wav");
        let values: Vec<f32> = (0..5000).map(|n| n as f32 * 0.001 - 2.0).collect();
        let mut writer = WaveWriter::create(&path, 44_100).unwrap();
        writer.write(&values).unwrap();
        assert_eq!(writer.finish().unwrap(), 2500);
        let mut reader = WaveReader::open(&path).unwrap();
        let mut got = vec![0.0; 6000];
        assert_eq!(reader.read(&mut got).unwrap(), 2500);
        assert_eq!(got[..5000], values);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 100]).unwrap();
        let text = WaveReader::open(&path).unwrap_err().to_string();
        assert!(text.contains("cut in the middle"), "{text}");
    }
}
