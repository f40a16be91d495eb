//! Random access to any file's sound at one rate.

use std::path::{Path, PathBuf};

use engine_base::CancelToken;

use super::check_rate;
use super::decode::{Chunk, Decoder};
use super::resample::Resampler;
use crate::MediaError;

/// Source samples kept behind the last place read.
const KEEP_BEHIND: i64 = 16_384;
/// Source samples held before any are dropped: short loops are decoded once.
const HOLD: usize = 1 << 19;
/// Source samples that are decoded and dropped rather than sought over.
const SEEK_AHEAD: i64 = 262_144;
/// Output samples made at once.
const STEP: usize = 4_096;

/// Reads the sound of a file as two channels of f32 at one rate, from any sample on.
///
/// Sample 0 is the start of the file: for a video whose sound starts late, silence comes first,
/// so that sound and picture keep their places. Encoder delay and padding are left out. What
/// [`SoundReader::read_at`] gives depends on the place only, never on what was read before.
/// Lossless files are entered in their middle; lossy ones are decoded from their start when a
/// place before the last one is asked for (see [`super::convert`] for many reads of a long one).
pub struct SoundReader {
    path: PathBuf,
    decoder: Decoder,
    resampler: Resampler,
    rate_hz: u32,
    /// Source samples from `start` on.
    left: Vec<f32>,
    right: Vec<f32>,
    start: i64,
    /// A decoded block that lies behind a gap.
    pending: Option<Chunk>,
    ended: bool,
    /// Source length, known once the end was reached.
    source_len: Option<i64>,
    /// Source length that the container states.
    declared_len: Option<i64>,
}

impl std::fmt::Debug for SoundReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoundReader")
            .field("path", &self.path)
            .field("rate_hz", &self.rate_hz)
            .finish_non_exhaustive()
    }
}

impl SoundReader {
    /// Open the best sound of `path`, to be read at `rate_hz`.
    ///
    /// # Errors
    /// [`MediaError::BadFile`] for a file that is empty, not media, has no sound or none that
    /// decodes; [`MediaError::Io`] when it cannot be read; [`MediaError::BadRequest`] for a rate
    /// outside [`super::MIN_RATE_HZ`] to [`super::MAX_RATE_HZ`].
    pub fn open(path: &Path, rate_hz: u32) -> Result<Self, MediaError> {
        Self::open_with(path, rate_hz, &CancelToken::new())
    }

    /// As [`SoundReader::open`]; reads end in [`MediaError::Cancelled`] once `cancel` is raised.
    ///
    /// # Errors
    /// As [`SoundReader::open`], and [`MediaError::Cancelled`].
    pub fn open_with(path: &Path, rate_hz: u32, cancel: &CancelToken) -> Result<Self, MediaError> {
        check_rate(rate_hz, "read sound")?;
        let decoder = Decoder::open(path, cancel)?;
        let resampler = Resampler::new(decoder.rate_hz(), rate_hz);
        let declared_len = decoder.declared_len();
        Ok(Self {
            path: path.to_path_buf(),
            decoder,
            resampler,
            rate_hz,
            left: Vec::new(),
            right: Vec::new(),
            start: 0,
            pending: None,
            ended: false,
            source_len: None,
            declared_len,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rate it is read at.
    pub const fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Rate of the file itself.
    pub fn source_rate_hz(&self) -> u32 {
        self.decoder.rate_hz()
    }

    /// Exact length in samples at [`SoundReader::rate_hz`], of what is really there. The end is
    /// looked up in lossless files, lossy ones are decoded through once.
    ///
    /// # Errors
    /// [`MediaError::Cancelled`], [`MediaError::Io`].
    pub fn samples(&mut self) -> Result<i64, MediaError> {
        if self.source_len.is_none()
            && self.decoder.can_enter()
            && let Some(declared) = self.declared_len
        {
            let near = declared - SEEK_AHEAD;
            if near > self.end() + SEEK_AHEAD {
                self.go_to(near)?;
            }
        }
        while self.source_len.is_none() && self.pull()? {
            self.drop_before(self.end() - KEEP_BEHIND);
        }
        Ok(self.resampler.out_len(self.source_len.unwrap_or(0)))
    }

    /// Read samples from `sample` on into `out` (left and right interleaved). Places outside the
    /// source are silent. Gives the number of samples of `out` that lie before the source's end.
    ///
    /// # Errors
    /// [`MediaError::Cancelled`], [`MediaError::Io`]. Damage inside is no error: see
    /// [`SoundReader::notes`].
    pub fn read_at(&mut self, sample: i64, out: &mut [f32]) -> Result<usize, MediaError> {
        let mut first = sample;
        for part in out.chunks_mut(STEP * 2) {
            self.read_part(first, part)?;
            first = first.saturating_add(part.len() as i64 / 2);
        }
        let end = self
            .source_len
            .map_or(i64::MAX, |len| self.resampler.out_len(len));
        Ok((end.saturating_sub(sample)).clamp(0, out.len() as i64 / 2) as usize)
    }

    fn read_part(&mut self, first: i64, out: &mut [f32]) -> Result<(), MediaError> {
        out.fill(0.0);
        let count = out.len() / 2;
        let last = first.saturating_add(count as i64);
        // Far outside the source nothing has to be computed, and no place overflows.
        if count == 0 || last <= 0 || first > 1 << 50 {
            return Ok(());
        }
        let (start, len) = self.resampler.window(first, count);
        let end = start + len as i64;
        self.cover(start.max(0), end)?;
        let mut planes = [vec![0.0f32; len], vec![0.0f32; len]];
        for (to, from) in planes.iter_mut().zip([&self.left, &self.right]) {
            let begin = start.max(self.start);
            let stop = end.min(self.start + from.len() as i64);
            if begin < stop {
                let values = &from[(begin - self.start) as usize..(stop - self.start) as usize];
                to[(begin - start) as usize..(stop - start) as usize].copy_from_slice(values);
            }
        }
        self.resampler.run(first, &planes[0], &planes[1], out);
        let lead = (-first).clamp(0, count as i64) as usize;
        out[..lead * 2].fill(0.0);
        if let Some(len) = self.source_len {
            let there = (self.resampler.out_len(len) - first).clamp(0, count as i64) as usize;
            out[there * 2..].fill(0.0);
        }
        Ok(())
    }

    /// What is wrong with the file, as far as it was read; empty for a sound one.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.decoder.bad_packets > 0 {
            notes.push(format!(
                "{} damaged places were left silent",
                self.decoder.bad_packets
            ));
        }
        if let Some(why) = &self.decoder.stopped {
            notes.push(format!("reading ended early {why}"));
        }
        let missing = self.missing_secs();
        if missing > 0.0 {
            notes.push(format!(
                "the end is missing: {missing:.1} s less than the file says"
            ));
        }
        notes
    }

    /// Seconds that the file says it holds and does not, once the end was reached.
    pub fn missing_secs(&self) -> f64 {
        match (self.declared_len, self.source_len) {
            (Some(declared), Some(there)) => {
                let secs = (declared - there) as f64 / f64::from(self.decoder.rate_hz());
                // Containers count whole packets or round to milliseconds.
                if secs > 0.15 { secs } else { 0.0 }
            }
            _ => 0.0,
        }
    }

    /// Source sample after the last one held.
    fn end(&self) -> i64 {
        self.start + self.left.len() as i64
    }

    fn drop_before(&mut self, place: i64) {
        let count = (place - self.start).clamp(0, self.left.len() as i64) as usize;
        if self.left.len() >= HOLD {
            self.left.drain(..count);
            self.right.drain(..count);
            self.start += count as i64;
        }
    }

    fn go_to(&mut self, place: i64) -> Result<(), MediaError> {
        self.start = self.decoder.seek(place)?;
        self.left.clear();
        self.right.clear();
        self.pending = None;
        self.ended = false;
        Ok(())
    }

    /// Hold the source samples `start..end`, as far as there are any.
    fn cover(&mut self, start: i64, end: i64) -> Result<(), MediaError> {
        if self.source_len.is_some_and(|len| start >= len) {
            return Ok(());
        }
        let ahead = start > self.end().saturating_add(SEEK_AHEAD) && self.decoder.can_enter();
        if start < self.start || ahead {
            self.go_to(start)?;
        }
        while self.end() < end {
            self.drop_before(start.min(self.end()) - KEEP_BEHIND);
            if !self.pull()? {
                break;
            }
        }
        Ok(())
    }

    /// Add the next block, or a stretch of the silence before it where the file has a gap.
    /// False at the end.
    fn pull(&mut self) -> Result<bool, MediaError> {
        if self.ended {
            return Ok(false);
        }
        let next = match self.pending.take() {
            Some(chunk) => Some(chunk),
            None => self.decoder.next()?,
        };
        let end = self.end();
        let Some(chunk) = next else {
            self.ended = true;
            // The first end found stands, so that the length never changes.
            self.source_len.get_or_insert(end);
            return Ok(false);
        };
        let gap = chunk.at - end;
        if gap > 0 {
            // A gap may be an hour: it is never held whole.
            let silence = self.left.len() + gap.min(SEEK_AHEAD) as usize;
            self.left.resize(silence, 0.0);
            self.right.resize(silence, 0.0);
            self.pending = Some(chunk);
            return Ok(true);
        }
        // Blocks that overlap, or sound before the file's start.
        let skip = usize::try_from(-gap)
            .unwrap_or(usize::MAX)
            .min(chunk.left.len());
        self.left.extend_from_slice(&chunk.left[skip..]);
        self.right.extend_from_slice(&chunk.right[skip..]);
        Ok(true)
    }
}
