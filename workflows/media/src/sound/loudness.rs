//! Loudness of a film's mixes, and the gain that brings it to the target.

use std::path::{Path, PathBuf};

use ebur128::{EbuR128, Mode};
use engine_base::{CancelToken, ProgressEvent, ProgressSink};
use serde::{Deserialize, Serialize};

use super::limiter::{Limiter, LimiterRun};
use super::wave::WaveReader;
use super::{BLOCK, check_rate, db_of_factor, factor_of_db};
use crate::MediaError;

/// Integrated loudness that films are brought to.
pub const TARGET_LUFS: f64 = -16.0;
/// Largest gain: what is softer stays softer, as noise would come up with it.
pub const MAX_GAIN_DB: f64 = 30.0;
/// The most that is added for what the limiter takes: beyond it the film would only get denser.
const MAX_MAKE_UP_DB: f64 = 4.0;
/// Passes over a film that the limiter works on.
const MAX_TRIES: u32 = 3;
/// Loudness differences below this are left.
const CLOSE_LU: f64 = 0.1;
/// Loudness given for silence: the absolute gate of ITU-R BS.1770.
pub const SILENCE_LUFS: f64 = -70.0;
/// Peak given for silence.
pub const SILENCE_DBTP: f64 = -150.0;

/// Loudness of a film (EBU R 128, ITU-R BS.1770-4). All values are finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loudness {
    /// Integrated loudness; [`SILENCE_LUFS`] when nothing passes the gate.
    pub integrated_lufs: f64,
    /// True peak; [`SILENCE_DBTP`] for digital silence.
    pub true_peak_dbtp: f64,
    /// Loudness range (EBU Tech 3342).
    pub range_lu: f64,
    /// Gain that brings the film to its target, with what the standard limiter takes away
    /// made up for; 0 for a silent film, at most [`MAX_GAIN_DB`].
    pub gain_db: f64,
    /// Whether the film is silent: nothing in it passes the gate.
    pub silent: bool,
    /// Whether [`MAX_GAIN_DB`] was less than the target asks for.
    pub capped: bool,
}

/// Collects loudness of two channels of f32.
pub(super) struct Meter(EbuR128);

fn failed(error: &ebur128::Error) -> MediaError {
    MediaError::BadRequest(format!("cannot measure loudness: {error}"))
}

impl Meter {
    pub(super) fn new(rate_hz: u32, mode: Mode) -> Result<Self, MediaError> {
        EbuR128::new(2, rate_hz, mode)
            .map(Self)
            .map_err(|error| failed(&error))
    }

    pub(super) fn add(&mut self, samples: &[f32]) -> Result<(), MediaError> {
        self.0
            .add_frames_f32(samples)
            .map_err(|error| failed(&error))
    }

    /// Integrated loudness, at least [`SILENCE_LUFS`].
    pub(super) fn lufs(&self) -> Result<f64, MediaError> {
        let lufs = self.0.loudness_global().map_err(|error| failed(&error))?;
        Ok(if lufs.is_finite() {
            lufs.max(SILENCE_LUFS)
        } else {
            SILENCE_LUFS
        })
    }

    /// True peak of both channels, at least [`SILENCE_DBTP`].
    pub(super) fn true_peak_dbtp(&self) -> Result<f64, MediaError> {
        let mut peak = 0.0f64;
        for channel in 0..2 {
            peak = peak.max(self.0.true_peak(channel).map_err(|error| failed(&error))?);
        }
        Ok(db_of_factor(peak).max(SILENCE_DBTP))
    }

    fn range_lu(&self) -> Result<f64, MediaError> {
        let range = self.0.loudness_range().map_err(|error| failed(&error))?;
        Ok(if range.is_finite() { range } else { 0.0 })
    }
}

/// The mixes of a film, read one after the other.
pub(super) struct Film<'a> {
    paths: &'a [PathBuf],
    next: usize,
    current: Option<WaveReader>,
    pub(super) rate_hz: u32,
    pub(super) samples: u64,
}

impl<'a> Film<'a> {
    /// Look at all mixes; they have to be of one rate and not empty together.
    pub(super) fn open(paths: &'a [PathBuf], what: &str) -> Result<Self, MediaError> {
        let mut rate: Option<(u32, &Path)> = None;
        let mut samples = 0u64;
        for path in paths {
            let reader = WaveReader::open(path)?;
            samples += reader.samples();
            match rate {
                None => rate = Some((reader.rate_hz(), path)),
                Some((rate_hz, first)) if rate_hz != reader.rate_hz() => {
                    return Err(MediaError::BadRequest(format!(
                        "cannot {what}: expected mixes of one sample rate, got {rate_hz} Hz in {first:?} and {} Hz in {path:?}",
                        reader.rate_hz()
                    )));
                }
                Some(_) => {}
            }
        }
        let (Some((rate_hz, _)), true) = (rate, samples > 0) else {
            return Err(MediaError::BadRequest(format!(
                "cannot {what}: expected mixes with sound, got {} without any",
                paths.len()
            )));
        };
        check_rate(rate_hz, what)?;
        Ok(Self {
            paths,
            next: 0,
            current: None,
            rate_hz,
            samples,
        })
    }

    /// Read on; gives samples read, 0 at the end of the film.
    pub(super) fn read(&mut self, out: &mut [f32]) -> Result<usize, MediaError> {
        loop {
            if let Some(reader) = &mut self.current {
                let count = reader.read(out)?;
                if count > 0 {
                    return Ok(count);
                }
            }
            let Some(path) = self.paths.get(self.next) else {
                return Ok(0);
            };
            self.current = Some(WaveReader::open(path)?);
            self.next += 1;
        }
    }
}

/// Measure a film for [`TARGET_LUFS`]: as [`measure_for`].
///
/// # Errors
/// As [`measure_for`].
pub fn measure(
    mixes: &[PathBuf],
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<Loudness, MediaError> {
    measure_for(mixes, Some(TARGET_LUFS), cancel, progress)
}

/// Measure the film made of `mixes` (f32 wave files of one rate, in order) and find the gain that
/// brings it to `target_lufs`; without a target the gain is 0 and the film stays as loud as it is.
/// Where the gain brings
/// peaks above the standard limiter's ceiling, up to three more passes find what it takes away.
///
/// # Errors
/// [`MediaError::BadRequest`] when there is no sound or rates differ; errors of
/// [`WaveReader::open`]; [`MediaError::Io`]; [`MediaError::Cancelled`].
pub fn measure_for(
    mixes: &[PathBuf],
    target_lufs: Option<f64>,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<Loudness, MediaError> {
    let mut film = Film::open(mixes, "measure loudness")?;
    let mut meter = Meter::new(film.rate_hz, Mode::I | Mode::LRA | Mode::TRUE_PEAK)?;
    let mut block = vec![0.0; BLOCK * 2];
    let mut done = 0u64;
    loop {
        cancel.check()?;
        let count = film.read(&mut block)?;
        if count == 0 {
            break;
        }
        meter.add(&block[..count * 2])?;
        done += count as u64;
        progress.report(ProgressEvent {
            what: "measuring loudness".to_owned(),
            step: done,
            of: film.samples,
            secs_left: None,
        });
    }
    let integrated_lufs = meter.lufs()?;
    let true_peak_dbtp = meter.true_peak_dbtp()?;
    let silent = integrated_lufs <= SILENCE_LUFS;
    let wanted = target_lufs.map_or(0.0, |target| target - integrated_lufs);
    let mut gain_db = if silent { 0.0 } else { wanted.min(MAX_GAIN_DB) };
    let ceiling_dbtp = Limiter::default().ceiling_dbtp;
    let highest = (gain_db + MAX_MAKE_UP_DB).min(MAX_GAIN_DB);
    let goal = integrated_lufs + gain_db;
    for _ in 0..MAX_TRIES {
        let kept = silent || target_lufs.is_none();
        if kept || true_peak_dbtp + gain_db <= ceiling_dbtp {
            break;
        }
        let lost = goal - limited_lufs(mixes, gain_db, ceiling_dbtp, cancel, progress)?;
        if lost < CLOSE_LU {
            break;
        }
        gain_db = (gain_db + lost).min(highest);
    }
    Ok(Loudness {
        integrated_lufs,
        true_peak_dbtp,
        range_lu: meter.range_lu()?,
        gain_db,
        silent,
        capped: !silent && wanted > MAX_GAIN_DB,
    })
}

/// Loudness of the film after `gain_db` and the limiter.
fn limited_lufs(
    mixes: &[PathBuf],
    gain_db: f64,
    ceiling_dbtp: f64,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<f64, MediaError> {
    let mut film = Film::open(mixes, "measure loudness")?;
    let mut meter = Meter::new(film.rate_hz, Mode::I)?;
    let mut limiter = LimiterRun::new(film.rate_hz, ceiling_dbtp);
    let gain = factor_of_db(gain_db);
    let mut block = vec![0.0f32; BLOCK * 2];
    let mut limited = Vec::with_capacity(BLOCK * 2 + 2 * limiter.delay());
    let mut done = 0u64;
    loop {
        cancel.check()?;
        let count = film.read(&mut block)?;
        done += count as u64;
        progress.report(ProgressEvent {
            what: "measuring limited loudness".to_owned(),
            step: done,
            of: film.samples,
            secs_left: None,
        });
        limited.clear();
        for value in &mut block[..count * 2] {
            *value = (f64::from(*value) * gain) as f32;
        }
        if count == 0 {
            limiter.finish(&mut limited);
        } else {
            limiter.push(&block[..count * 2], &mut limited);
        }
        meter.add(&limited)?;
        if count == 0 {
            return meter.lufs();
        }
    }
}
