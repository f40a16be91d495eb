//! A whole source as an f32 wave file, for sources that are read again and again.

use std::path::Path;

use engine_base::{CancelToken, ProgressEvent, ProgressSink};

use super::BLOCK;
use super::reader::SoundReader;
use super::wave::WaveWriter;
use crate::MediaError;

/// What [`convert`] wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// Samples written.
    pub samples: i64,
    /// What was wrong with the source; empty for a sound one.
    pub notes: Vec<String>,
}

/// Decode all of `path` to the f32 wave file `out` at `rate_hz`. Reads of it give what reads of
/// `path` give; unlike a lossy file it can be entered anywhere at no cost.
///
/// # Errors
/// Errors of [`SoundReader::open`], [`MediaError::Io`], [`MediaError::Cancelled`].
pub fn convert(
    path: &Path,
    rate_hz: u32,
    out: &Path,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<Converted, MediaError> {
    let mut reader = SoundReader::open_with(path, rate_hz, cancel)?;
    let mut writer = WaveWriter::create(out, rate_hz)?;
    let mut block = vec![0.0; BLOCK * 2];
    let mut samples = 0i64;
    loop {
        let there = reader.read_at(samples, &mut block)?;
        writer.write(&block[..there * 2])?;
        samples += there as i64;
        progress.report(ProgressEvent {
            what: "decoding sound".to_owned(),
            step: samples as u64,
            of: 0,
            secs_left: None,
        });
        if there < BLOCK {
            break;
        }
    }
    writer.finish()?;
    Ok(Converted {
        samples,
        notes: reader.notes(),
    })
}
