//! Mixing a stretch of film into one f32 wave file.

use std::path::{Path, PathBuf};

use engine_base::{CancelToken, ProgressEvent, ProgressSink};
use flow_timeline::{SoundClip, SoundMix, SoundRole};

use super::duck::Duck;
use super::place::{Feed, Level};
use super::reader::SoundReader;
use super::wave::WaveWriter;
use super::{BLOCK, check_rate, db_of_factor};
use crate::MediaError;

/// Places and lengths beyond this many samples (200 years at 192 kHz) are refused, so that sums
/// of them cannot overflow.
const MAX_PLACE: i64 = 1 << 50;
/// Level changes beyond this are refused.
const MAX_CLIP_GAIN_DB: f64 = 60.0;
/// Idle readers kept for the next clip of the same source.
const MAX_IDLE: usize = 8;

/// What happened in a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct MixReport {
    /// Samples written.
    pub samples: i64,
    /// Largest value of either channel in dB of full scale, [`super::SILENCE_DBTP`] for silence.
    pub peak_dbfs: f64,
    /// What is worth telling about sources, in order of source.
    pub notes: Vec<SourceNote>,
}

/// A remark on a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceNote {
    /// Index of the source.
    pub source: usize,
    /// For people: what is damaged, cut or too short.
    pub text: String,
}

/// A clip that sounds now.
struct Active {
    clip: usize,
    level: Level,
    feed: Feed,
}

/// Mix `mix` from `sources` (any files with sound) into the f32 wave file `out`, of exactly
/// `mix.samples` samples. Every sample is a pure function of its place on the film's timeline, so
/// the mixes of two adjacent stretches are, sample for sample, the mix of both in one; each has to
/// list the clips that reach into it in the same order, and the voice clips within
/// [`super::duck_reach`] of it.
///
/// Fades that lie exactly over each other, in and out, of clips of one role are equal-power
/// cross-fades; others are raised cosines. A clip without a fade begins and ends hard. A clip
/// whose source is shorter is silent after it, or loops with a 50 ms cross-fade at the seam.
///
/// # Errors
/// [`MediaError::BadRequest`] for a mix that makes no sense, errors of [`SoundReader::open`],
/// [`MediaError::Io`], [`MediaError::Cancelled`]; `out` is then left as it was.
pub fn mix(
    mix: &SoundMix,
    sources: &[PathBuf],
    out: &Path,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<MixReport, MediaError> {
    check(mix, sources)?;
    let mut writer = WaveWriter::create(out, mix.sample_rate_hz)?;
    let mut mixer = Mixer::new(mix, sources, cancel);
    let mut sums = vec![0.0f64; BLOCK * 2];
    let mut values = vec![0.0f32; BLOCK * 2];
    let mut peak = 0.0f32;
    let mut at = 0i64;
    while at < mix.samples {
        cancel.check()?;
        let count = (mix.samples - at).min(BLOCK as i64) as usize;
        let (sums, values) = (&mut sums[..count * 2], &mut values[..count * 2]);
        mixer.block(at, sums)?;
        for (to, sum) in values.iter_mut().zip(sums.iter()) {
            *to = *sum as f32;
            peak = peak.max(to.abs());
        }
        writer.write(values)?;
        at += count as i64;
        progress.report(ProgressEvent {
            what: "mixing sound".to_owned(),
            step: at as u64,
            of: mix.samples as u64,
            secs_left: None,
        });
    }
    writer.finish()?;
    Ok(MixReport {
        samples: mix.samples,
        peak_dbfs: db_of_factor(f64::from(peak)).max(super::SILENCE_DBTP),
        notes: mixer.finish(),
    })
}

struct Mixer<'a> {
    mix: &'a SoundMix,
    sources: &'a [PathBuf],
    cancel: &'a CancelToken,
    /// Clips not yet begun, the next one last.
    waiting: Vec<usize>,
    /// In order of clip, so that sums are the same however the film is cut into stretches.
    active: Vec<Active>,
    idle: Vec<(usize, SoundReader)>,
    duck: Duck,
    duck_curve: Vec<f64>,
    block: Vec<f32>,
    notes: Vec<SourceNote>,
}

impl<'a> Mixer<'a> {
    fn new(mix: &'a SoundMix, sources: &'a [PathBuf], cancel: &'a CancelToken) -> Self {
        let mut waiting: Vec<usize> = (0..mix.clips.len())
            .filter(|index| {
                let clip = &mix.clips[*index];
                clip.samples > 0 && clip.start < mix.samples && clip.start + clip.samples > 0
            })
            .collect();
        waiting.sort_by_key(|index| std::cmp::Reverse((mix.clips[*index].start, *index)));
        Self {
            mix,
            sources,
            cancel,
            waiting,
            active: Vec::new(),
            idle: Vec::new(),
            duck: Duck::new(mix),
            duck_curve: vec![1.0; BLOCK],
            block: vec![0.0; BLOCK * 2],
            notes: Vec::new(),
        }
    }

    /// Sum the block from `at` on.
    fn block(&mut self, at: i64, sums: &mut [f64]) -> Result<(), MediaError> {
        let count = sums.len() / 2;
        let end = at + count as i64;
        self.begin_clips(end)?;
        sums.fill(0.0);
        self.duck.curve(at, &mut self.duck_curve[..count]);
        for active in &mut self.active {
            let clip = &self.mix.clips[active.clip];
            let first = at.max(clip.start);
            let last = end.min(clip.start + clip.samples);
            if first >= last {
                continue;
            }
            let part = &mut self.block[..(last - first) as usize * 2];
            active.feed.read(first - clip.start, part)?;
            let offset = (first - at) as usize;
            let ducked = makes_room(clip.role);
            let to = sums[offset * 2..].chunks_exact_mut(2);
            for (index, (to, from)) in to.zip(part.chunks_exact(2)).enumerate() {
                let mut factor = active.level.at(first - clip.start + index as i64);
                if ducked {
                    factor *= self.duck_curve[offset + index];
                }
                to[0] += f64::from(from[0]) * factor;
                to[1] += f64::from(from[1]) * factor;
            }
        }
        self.end_clips(end);
        Ok(())
    }

    fn begin_clips(&mut self, end: i64) -> Result<(), MediaError> {
        while let Some(index) = self.waiting.last().copied()
            && self.mix.clips[index].start < end
        {
            self.waiting.pop();
            let clip = &self.mix.clips[index];
            let reader = match self
                .idle
                .iter()
                .position(|(source, _)| *source == clip.source)
            {
                Some(found) => self.idle.swap_remove(found).1,
                None => SoundReader::open_with(
                    &self.sources[clip.source],
                    self.mix.sample_rate_hz,
                    self.cancel,
                )?,
            };
            let active = Active {
                clip: index,
                level: Level::new(self.mix, index),
                feed: Feed::new(reader, clip)?,
            };
            let place = self
                .active
                .partition_point(|other| other.clip < active.clip);
            self.active.insert(place, active);
        }
        Ok(())
    }

    fn end_clips(&mut self, end: i64) {
        let mut index = 0;
        while index < self.active.len() {
            let clip = &self.mix.clips[self.active[index].clip];
            if clip.start + clip.samples > end {
                index += 1;
                continue;
            }
            let active = self.active.remove(index);
            self.note(&active);
            if self.idle.len() == MAX_IDLE {
                self.idle.remove(0);
            }
            self.idle.push((clip.source, active.feed.into_reader()));
        }
    }

    fn note(&mut self, active: &Active) {
        let source = self.mix.clips[active.clip].source;
        let short = active
            .feed
            .short
            .then(|| "shorter than its clip: silent after its end".to_owned());
        for text in active.feed.reader().notes().into_iter().chain(short) {
            self.notes.push(SourceNote { source, text });
        }
    }

    fn finish(mut self) -> Vec<SourceNote> {
        for active in std::mem::take(&mut self.active) {
            self.note(&active);
        }
        self.notes.sort();
        self.notes.dedup();
        self.notes
    }
}

const fn makes_room(role: SoundRole) -> bool {
    matches!(role, SoundRole::Music | SoundRole::Ambience)
}

fn check(mix: &SoundMix, sources: &[PathBuf]) -> Result<(), MediaError> {
    check_rate(mix.sample_rate_hz, "mix sound")?;
    let refuse = |what: String| Err(MediaError::BadRequest(format!("cannot mix sound: {what}")));
    if !(0..=MAX_PLACE).contains(&mix.samples) {
        return refuse(format!(
            "expected a length of 0 to {MAX_PLACE} samples, got {}",
            mix.samples
        ));
    }
    let duck = &mix.duck;
    if !(-MAX_CLIP_GAIN_DB..=0.0).contains(&duck.depth_db) {
        return refuse(format!(
            "expected a ducking depth of {} to 0 dB, got {}",
            -MAX_CLIP_GAIN_DB, duck.depth_db
        ));
    }
    let lengths = 0..=MAX_PLACE;
    if !lengths.contains(&duck.attack) || !lengths.contains(&duck.release) {
        return refuse(format!(
            "expected ducking attack and release of 0 or more samples, got {} and {}",
            duck.attack, duck.release
        ));
    }
    for (index, clip) in mix.clips.iter().enumerate() {
        if let Some(what) = fault(clip, sources.len()) {
            return refuse(format!("clip {index}: {what}"));
        }
    }
    Ok(())
}

fn fault(clip: &SoundClip, sources: usize) -> Option<String> {
    let places = -MAX_PLACE..=MAX_PLACE;
    let lengths = 0..=MAX_PLACE;
    if clip.source >= sources {
        return Some(format!(
            "expected one of {sources} sources, got index {}",
            clip.source
        ));
    }
    if !(-MAX_CLIP_GAIN_DB * 3.0..=MAX_CLIP_GAIN_DB).contains(&clip.gain_db) {
        return Some(format!(
            "expected a gain of {} to {MAX_CLIP_GAIN_DB} dB, got {}",
            -MAX_CLIP_GAIN_DB * 3.0,
            clip.gain_db
        ));
    }
    if !places.contains(&clip.start) || !places.contains(&clip.source_start) {
        return Some(format!(
            "expected starts within {MAX_PLACE} samples, got {} and {}",
            clip.start, clip.source_start
        ));
    }
    [clip.samples, clip.fade_in, clip.fade_out]
        .into_iter()
        .find(|len| !lengths.contains(len))
        .map(|len| format!("expected lengths of 0 to {MAX_PLACE} samples, got {len}"))
}
