//! One clip of a mix: where its samples come from and how loud they are, as pure functions of
//! the sample's place in the clip.

use std::f64::consts::{FRAC_PI_2, PI};

use flow_timeline::{SoundClip, SoundMix};

use super::reader::SoundReader;
use crate::MediaError;

/// Cross-fade at a loop's seam: 50 ms, less for short loops.
const SEAM_PER_SEC: i64 = 20;

/// How a fade runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Alone: from and to silence without a corner.
    RaisedCosine,
    /// Half of a cross-fade: the powers of both halves add up to one.
    EqualPower,
}

/// The level of a clip over its length.
#[derive(Debug)]
pub(super) struct Level {
    gain: f64,
    samples: i64,
    fade_in: (i64, Shape),
    fade_out: (i64, Shape),
}

impl Level {
    /// The level of clip `index`. A fade is half of a cross-fade when a clip of the same role has
    /// the opposite fade over exactly the same samples: then every stretch that has a part of the
    /// one has the same part of the other, and the choice is the same on both sides of a join.
    pub(super) fn new(mix: &SoundMix, index: usize) -> Self {
        let clip = &mix.clips[index];
        let end = clip.start + clip.samples;
        let partner = |matches: &dyn Fn(&SoundClip) -> bool| {
            let found = mix.clips.iter().enumerate().any(|(other, candidate)| {
                other != index && candidate.role == clip.role && matches(candidate)
            });
            if found {
                Shape::EqualPower
            } else {
                Shape::RaisedCosine
            }
        };
        let (fade_in, fade_out) = (fade_len(clip, clip.fade_in), fade_len(clip, clip.fade_out));
        let shape_in = partner(&|other| {
            fade_len(other, other.fade_out) == fade_in
                && other.start + other.samples == clip.start + fade_in
        });
        let shape_out = partner(&|other| {
            fade_len(other, other.fade_in) == fade_out && other.start == end - fade_out
        });
        Self {
            gain: super::factor_of_db(clip.gain_db),
            samples: clip.samples,
            fade_in: (fade_in, shape_in),
            fade_out: (fade_out, shape_out),
        }
    }

    /// Factor at sample `at` of the clip.
    pub(super) fn at(&self, at: i64) -> f64 {
        let mut factor = self.gain;
        if at < self.fade_in.0 {
            factor *= risen(at, self.fade_in);
        }
        let left = self.samples - 1 - at;
        if left < self.fade_out.0 {
            factor *= risen(left, self.fade_out);
        }
        factor
    }
}

fn fade_len(clip: &SoundClip, wanted: i64) -> i64 {
    wanted.clamp(0, clip.samples)
}

/// How far a fade has risen at its sample `at`. Mirrored places give values whose squares add up
/// to 1 for [`Shape::EqualPower`] and whose sum is 1 for [`Shape::RaisedCosine`].
fn risen(at: i64, (len, shape): (i64, Shape)) -> f64 {
    let part = (at as f64 + 0.5) / len as f64;
    match shape {
        Shape::RaisedCosine => 0.5 - 0.5 * (PI * part).cos(),
        Shape::EqualPower => (FRAC_PI_2 * part).sin(),
    }
}

/// Where the samples of a clip come from.
pub(super) struct Feed {
    reader: SoundReader,
    source_start: i64,
    /// Set when the source is shorter than the clip and starts again.
    seam: Option<Seam>,
    /// Samples of the clip that the source could not fill.
    pub(super) short: bool,
}

/// A loop: the last `fade` samples of the source run together with its first ones.
struct Seam {
    /// Samples from one start to the next.
    period: i64,
    fade: i64,
    /// The first `fade` samples of the source, interleaved.
    head: Vec<f32>,
}

impl Feed {
    pub(super) fn new(mut reader: SoundReader, clip: &SoundClip) -> Result<Self, MediaError> {
        let mut seam = None;
        if clip.looped {
            let len = reader.samples()?;
            if len > 0 && clip.source_start + clip.samples > len {
                let fade = (i64::from(reader.rate_hz()) / SEAM_PER_SEC).min(len / 4);
                let mut head = vec![0.0; fade as usize * 2];
                reader.read_at(0, &mut head)?;
                seam = Some(Seam {
                    period: len - fade,
                    fade,
                    head,
                });
            }
        }
        Ok(Self {
            reader,
            source_start: clip.source_start,
            seam,
            short: false,
        })
    }

    pub(super) fn into_reader(self) -> SoundReader {
        self.reader
    }

    pub(super) const fn reader(&self) -> &SoundReader {
        &self.reader
    }

    /// Samples of the clip from its sample `at` on, interleaved.
    pub(super) fn read(&mut self, at: i64, out: &mut [f32]) -> Result<(), MediaError> {
        let mut place = self.source_start + at;
        if self.seam.is_none() {
            let there = self.reader.read_at(place, out)?;
            self.short |= there < out.len() / 2;
            return Ok(());
        }
        let mut done = 0;
        while done < out.len() {
            let step = self.read_looped(place, &mut out[done..])?;
            place += step as i64;
            done += step * 2;
        }
        Ok(())
    }

    /// The part of `out` up to the next change between seam and plain run; gives its samples.
    fn read_looped(&mut self, place: i64, out: &mut [f32]) -> Result<usize, MediaError> {
        let Some(seam) = &self.seam else {
            return Ok(out.len() / 2);
        };
        let wanted = out.len() as i64 / 2;
        // Before the source's start there is silence once; loops run from there on.
        if place < 0 {
            let step = wanted.min(-place) as usize;
            out[..step * 2].fill(0.0);
            return Ok(step);
        }
        let within = place % seam.period;
        if place < seam.period || within >= seam.fade {
            let step = wanted.min(seam.period - within) as usize;
            self.reader.read_at(within, &mut out[..step * 2])?;
            return Ok(step);
        }
        let step = wanted.min(seam.fade - within) as usize;
        let part = &mut out[..step * 2];
        self.reader.read_at(seam.period + within, part)?;
        let head = &seam.head[within as usize * 2..];
        for (index, (to, from)) in part
            .chunks_exact_mut(2)
            .zip(head.chunks_exact(2))
            .enumerate()
        {
            let rising = (within + index as i64, (seam.fade, Shape::EqualPower));
            let up = risen(rising.0, rising.1);
            let down = risen(seam.fade - 1 - rising.0, rising.1);
            for channel in 0..2 {
                to[channel] =
                    (f64::from(to[channel]) * down + f64::from(from[channel]) * up) as f32;
            }
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_cross_fade_keep_power_and_single_fades_keep_level() {
        for at in 0..50 {
            let power = |shape| {
                let (up, down) = (risen(at, (50, shape)), risen(49 - at, (50, shape)));
                (up * up + down * down, up + down)
            };
            assert!((power(Shape::EqualPower).0 - 1.0).abs() < 1e-12);
            assert!((power(Shape::RaisedCosine).1 - 1.0).abs() < 1e-12);
        }
    }
}
