//! How many scenes, shots and lines a length holds, and how long each shot is.

use engine_base::Rational;
use flow_timeline::FilmFormat;

use super::error::ProduceError;
use crate::length::Length;

/// Shortest and longest film that a premise is made into, in seconds.
pub const FILM_SECS_MIN: i64 = 5;
/// Longest film, in seconds.
pub const FILM_SECS_MAX: i64 = 600;

/// The film's parts, before anything is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outline {
    /// Frames of the whole film, credits included.
    pub(crate) frames: i64,
    /// Frames of the credits; 0 for none.
    pub(crate) credits_frames: i64,
    /// Shots of each scene.
    pub(crate) shots: Vec<usize>,
    pub(crate) places: usize,
    pub(crate) cast: usize,
    /// Seconds of a usual shot, for how much can be said in it.
    pub(crate) shot_secs: f64,
}

/// Refuse a length that the producer does not fill.
///
/// # Errors
/// [`ProduceError::Length`].
pub fn check_film_length(length: Length) -> Result<(), ProduceError> {
    // At a rate at which no length of the range is rounded out of it.
    let frames = length.frames(Rational::whole(24));
    let edge = |secs| Length::secs(secs).frames(Rational::whole(24));
    if (edge(FILM_SECS_MIN)..=edge(FILM_SECS_MAX)).contains(&frames) {
        return Ok(());
    }
    Err(ProduceError::Length { got: length })
}

impl Outline {
    pub(crate) fn new(length: Length, format: &FilmFormat) -> Result<Self, ProduceError> {
        let frames = length.frames(format.fps);
        let edge = |secs| Length::secs(secs).frames(format.fps);
        if frames < edge(FILM_SECS_MIN) || frames > edge(FILM_SECS_MAX) {
            return Err(ProduceError::Length { got: length });
        }
        let secs = frames as f64 / format.fps.as_f64();
        let credits_secs = if secs >= 60.0 { 4 } else { 0 };
        let told_secs = secs - credits_secs as f64;
        let usual_secs = match told_secs {
            ..60.0 => 5.0,
            ..180.0 => 5.5,
            _ => 6.5,
        };
        let count = ((told_secs / usual_secs).round() as usize).max(2);
        let in_scene = if count > 30 { 4.0 } else { 3.2 };
        let scenes = ((count as f64 / in_scene).round() as usize).max(1);
        let shots = (0..scenes)
            .map(|at| count * (at + 1) / scenes - count * at / scenes)
            .collect();
        Ok(Self {
            frames,
            credits_frames: edge(credits_secs),
            shots,
            places: (scenes * 3).div_ceil(5).clamp(1, 8),
            cast: match told_secs {
                ..25.0 => 1,
                ..120.0 => 2,
                _ => 3,
            },
            shot_secs: told_secs / count as f64,
        })
    }

    /// Most words of a line that is said in comfort in a usual shot.
    pub(crate) fn words_max(&self) -> usize {
        ((self.shot_secs - 0.7) * 2.3) as usize
    }

    /// Most columns of a line whose subtitle is read in comfort in a usual shot.
    pub(crate) fn columns_max(&self) -> usize {
        ((self.shot_secs - 1.2) * 15.0) as usize
    }
}

/// Length in frames of each shot: at least what it needs, the rest by weight, whole half seconds
/// where they go, and exactly `total` together.
pub(crate) fn shot_frames(needed: &[i64], weights: &[i64], total: i64, fps: Rational) -> Vec<i64> {
    let half = (Length::Secs(Rational::new(1, 2).unwrap_or(Rational::ONE)).frames(fps)).max(1);
    let up = |frames: i64| (frames + half - 1) / half * half;
    let mut frames: Vec<i64> = needed.iter().map(|each| up(*each)).collect();
    let count = i64::try_from(frames.len()).unwrap_or(1).max(1);
    let weight_sum: i64 = weights.iter().sum::<i64>().max(1);
    let slack = (total - frames.iter().sum::<i64>()).max(0);
    for (each, weight) in frames.iter_mut().zip(weights) {
        *each += slack * weight / weight_sum / half * half;
    }
    // What is left over or missing goes round by half seconds, then frames to the last.
    let mut at = 0;
    let least = |at: usize| {
        needed
            .get(at)
            .copied()
            .unwrap_or(1)
            .min(total / count)
            .max(1)
    };
    while let left @ 1.. = total - frames.iter().sum::<i64>() {
        let step = left.min(half);
        let last = frames.len() - 1;
        let place = if step < half {
            last
        } else {
            (at * 7 + 3) % frames.len()
        };
        frames[place] += step;
        at += 1;
    }
    while let over @ 1.. = frames.iter().sum::<i64>() - total {
        let longest = (0..frames.len()).max_by_key(|at| (frames[*at] - least(*at), *at));
        let longest = longest.unwrap_or(0);
        frames[longest] -= over.min(half).min((frames[longest] - 1).max(1));
    }
    frames
}

/// A length in seconds that is exactly this many frames at `fps`.
pub(crate) fn length_of(frames: i64, fps: Rational) -> Length {
    let num = frames.checked_mul(fps.den());
    let secs = num.and_then(|num| Rational::new(num, fps.num()).ok());
    secs.map_or(Length::Frames(frames), Length::Secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_decides_how_much_there_is() {
        let format = FilmFormat::DEFAULT;
        let outline = |secs| Outline::new(Length::secs(secs), &format).unwrap();
        assert_eq!(outline(15).shots, [3]);
        assert_eq!(outline(45).shots, [3, 3, 3]);
        let long = outline(600);
        assert_eq!(long.shots.iter().sum::<usize>(), 92);
        assert_eq!((long.shots.len(), long.places, long.cast), (23, 8, 3));
        for secs in [1, 601] {
            assert!(Outline::new(Length::secs(secs), &format).is_err());
        }
    }

    #[test]
    fn shots_fill_the_film_to_the_frame() {
        for (rate, secs) in [
            ("24", 45),
            ("25", 47),
            ("30000/1001", 61),
            ("1", 20),
            ("120", 9),
        ] {
            let fps: Rational = rate.parse().unwrap();
            let total = Length::secs(secs).frames(fps);
            let needed = vec![total / 12, total / 10, total / 20, total / 9];
            let frames = shot_frames(&needed, &[4, 2, 1, 3], total, fps);
            assert_eq!(frames.iter().sum::<i64>(), total, "{rate}");
            for (frames, needed) in frames.iter().zip(&needed) {
                assert!(frames >= needed, "{rate}: {frames} under {needed}");
            }
            let tight = shot_frames(&[total, total, total, total], &[1; 4], total, fps);
            assert_eq!(tight.iter().sum::<i64>(), total, "{rate}");
            assert!(tight.iter().all(|frames| *frames > 0), "{rate}: {tight:?}");
            assert_eq!(length_of(total, fps).frames(fps), total);
        }
    }
}
