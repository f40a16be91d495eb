//! The one final encode of a film's sound.

use std::path::{Path, PathBuf};

use ebur128::Mode;
use engine_base::{CancelToken, ProgressEvent, ProgressSink};
use serde::{Deserialize, Serialize};

use super::limiter::{Limiter, LimiterRun};
use super::loudness::{Film, Meter};
use super::reader::SoundReader;
use super::sink::Sink;
use super::wave::PartFile;
use super::{BLOCK, db_of_factor, factor_of_db};
use crate::MediaError;

/// Most times that a film is coded to get its peaks under the limit.
const MAX_PASSES: u32 = 3;

/// How final sound is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SoundFormat {
    /// AAC-LC in an M4A file.
    Aac {
        /// Bits a second for both channels.
        bitrate_bps: u32,
    },
    /// FLAC, 24 bits.
    Flac,
    /// PCM of 24 bits in a wave file (RF64 above 4 GiB).
    Wav,
}

/// Choices of the final encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodeOptions {
    /// Codec and container.
    pub format: SoundFormat,
}

impl Default for EncodeOptions {
    /// AAC at 192 kbit/s.
    fn default() -> Self {
        Self {
            format: SoundFormat::Aac {
                bitrate_bps: 192_000,
            },
        }
    }
}

/// What the final encode gave, measured on the coded file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodeReport {
    /// Length of the film in samples.
    pub samples: u64,
    /// Sample rate.
    pub sample_rate_hz: u32,
    /// Integrated loudness of the coded file.
    pub coded_lufs: f64,
    /// True peak of the coded file.
    pub coded_true_peak_dbtp: f64,
    /// Ceiling that was used in the end.
    pub ceiling_dbtp: f64,
    /// The most that the limiter took away.
    pub max_reduction_db: f64,
    /// Times the film was coded.
    pub passes: u32,
}

/// Apply `gain_db` to the film made of `mixes`, limit its true peak and code it into `out`.
///
/// The coded file is decoded again and measured: while its true peak is above
/// `limiter.max_dbtp` it is coded anew with a lower ceiling, at most three times in all; the report
/// gives what was reached. Priming is in the edit list: sample 0 of the file is sample 0 of the
/// film. In M4A the last packet's stated length ends the film; players that ignore it play up to
/// 1,023 samples of the encoder's padding.
///
/// # Errors
/// [`MediaError::BadRequest`] for no sound, differing rates, or values out of range;
/// [`MediaError::Codec`]; [`MediaError::Io`]; [`MediaError::Cancelled`]. `out` is then left as it
/// was.
pub fn encode_film(
    mixes: &[PathBuf],
    gain_db: f64,
    limiter: &Limiter,
    out: &Path,
    options: &EncodeOptions,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<EncodeReport, MediaError> {
    check(gain_db, limiter, options)?;
    let part = PartFile::new(out);
    let mut ceiling_dbtp = limiter.ceiling_dbtp;
    let mut passes = 0;
    loop {
        passes += 1;
        let mut film = Film::open(mixes, "encode sound")?;
        let (rate_hz, samples) = (film.rate_hz, film.samples);
        let watch = Watch {
            cancel,
            progress,
            of: samples,
        };
        let sink = Sink::create(part.path(), options.format, rate_hz)?;
        let smallest = code(&mut film, sink, factor_of_db(gain_db), ceiling_dbtp, &watch)?;
        let (coded_lufs, coded_true_peak_dbtp) = check_coded(part.path(), rate_hz, &watch)?;
        let over = coded_true_peak_dbtp - limiter.max_dbtp;
        if over >= 0.0 && passes < MAX_PASSES {
            // A little more than what is over: other peaks come up when these go down.
            ceiling_dbtp -= over + 0.15;
            continue;
        }
        part.keep()?;
        return Ok(EncodeReport {
            samples,
            sample_rate_hz: rate_hz,
            coded_lufs,
            coded_true_peak_dbtp,
            ceiling_dbtp,
            // Not minus 0 where nothing was taken.
            max_reduction_db: 0.0 - db_of_factor(smallest),
            passes,
        });
    }
}

fn check(gain_db: f64, limiter: &Limiter, options: &EncodeOptions) -> Result<(), MediaError> {
    let refuse = |what: String| {
        Err(MediaError::BadRequest(format!(
            "cannot encode sound: {what}"
        )))
    };
    if !(-100.0..=100.0).contains(&gain_db) {
        return refuse(format!("expected a gain of -100 to 100 dB, got {gain_db}"));
    }
    let (ceiling, max) = (limiter.ceiling_dbtp, limiter.max_dbtp);
    if !(-40.0..=0.0).contains(&ceiling) || !(ceiling..=0.0).contains(&max) {
        return refuse(format!(
            "expected a ceiling of -40 to 0 dBTP and a limit between it and 0, got {ceiling} and {max}"
        ));
    }
    if let SoundFormat::Aac { bitrate_bps } = options.format
        && !(32_000..=512_000).contains(&bitrate_bps)
    {
        return refuse(format!(
            "expected 32000 to 512000 bits a second, got {bitrate_bps}"
        ));
    }
    Ok(())
}

struct Watch<'a> {
    cancel: &'a CancelToken,
    progress: &'a dyn ProgressSink,
    of: u64,
}

impl Watch<'_> {
    fn tell(&self, what: &str, step: u64) -> Result<(), MediaError> {
        self.cancel.check()?;
        self.progress.report(ProgressEvent {
            what: what.to_owned(),
            step,
            of: self.of,
            secs_left: None,
        });
        Ok(())
    }
}

/// Code the film; gives the limiter's smallest factor.
fn code(
    film: &mut Film<'_>,
    mut sink: Sink,
    gain: f64,
    ceiling_dbtp: f64,
    watch: &Watch<'_>,
) -> Result<f64, MediaError> {
    let mut limiter = LimiterRun::new(film.rate_hz, ceiling_dbtp);
    let mut block = vec![0.0f32; BLOCK * 2];
    let mut limited = Vec::with_capacity(BLOCK * 2 + 2 * limiter.delay());
    let mut done = 0u64;
    loop {
        let count = film.read(&mut block)?;
        limited.clear();
        if count == 0 {
            limiter.finish(&mut limited);
            sink.write(&limited)?;
            sink.finish()?;
            return Ok(limiter.smallest);
        }
        for value in &mut block[..count * 2] {
            *value = (f64::from(*value) * gain) as f32;
        }
        limiter.push(&block[..count * 2], &mut limited);
        sink.write(&limited)?;
        done += count as u64;
        watch.tell("coding sound", done)?;
    }
}

/// How loud a finished file is, as it decodes (EBU R 128).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLoudness {
    /// Integrated loudness; [`super::SILENCE_LUFS`] when nothing passes the gate.
    pub lufs: f64,
    /// True peak; [`super::SILENCE_DBTP`] for digital silence.
    pub true_peak_dbtp: f64,
}

/// Measure the sound of the file at `path`.
///
/// # Errors
/// A file without sound or one that cannot be read; [`MediaError::Cancelled`].
pub fn loudness_of(path: &Path, cancel: &CancelToken) -> Result<FileLoudness, MediaError> {
    let watch = Watch {
        cancel,
        progress: &engine_base::NoProgress,
        of: 0,
    };
    let (meter, _samples) = heard(path, 48_000, &watch)?;
    Ok(FileLoudness {
        lufs: meter.lufs()?,
        true_peak_dbtp: meter.true_peak_dbtp()?,
    })
}

/// A meter that has heard the whole file, and how many samples that was.
fn heard(path: &Path, rate_hz: u32, watch: &Watch<'_>) -> Result<(Meter, u64), MediaError> {
    let mut reader = SoundReader::open_with(path, rate_hz, watch.cancel)?;
    let mut meter = Meter::new(rate_hz, Mode::I | Mode::TRUE_PEAK)?;
    let mut block = vec![0.0; BLOCK * 2];
    let mut at = 0u64;
    loop {
        let there = reader.read_at(at as i64, &mut block)?;
        meter.add(&block[..there * 2])?;
        at += there as u64;
        watch.tell("checking coded sound", at)?;
        if there < BLOCK {
            return Ok((meter, at));
        }
    }
}

/// Loudness and true peak of the coded file, as it decodes.
fn check_coded(path: &Path, rate_hz: u32, watch: &Watch<'_>) -> Result<(f64, f64), MediaError> {
    let (meter, at) = heard(path, rate_hz, watch)?;
    if at != watch.of {
        return Err(MediaError::BadFile {
            what: format!(
                "cannot encode sound: expected {} samples in the coded file, got {at}",
                watch.of
            ),
            path: path.to_path_buf(),
        });
    }
    Ok((meter.lufs()?, meter.true_peak_dbtp()?))
}
