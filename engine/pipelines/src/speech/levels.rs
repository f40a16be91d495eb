//! Sound as a voice gives it, made fit to be put together: silence cut, edges faded, level even.

use super::network::RATE_HZ;

/// Silence kept before the first sound of a piece, and after the last.
pub(super) const LEAD_SECS: f64 = 0.03;
pub(super) const TAIL_SECS: f64 = 0.06;

/// Length of the fades at both ends.
const FADE_SECS: f64 = 0.005;

/// Stretch over which loudness is told.
const BLOCK: usize = RATE_HZ as usize / 100;

/// Below this part of the loudest block's level a block is silence (-48 dB).
const SILENCE: f32 = 0.004;

/// Below this part of it (-30 dB) a block does not count for the level.
const SPEECH: f32 = 0.0316;

/// Level of speech that every sentence is brought to: root mean square, -20 dB of full scale.
const LEVEL: f32 = 0.1;

/// Largest sample that is let through: -1 dB of full scale.
pub(super) const PEAK: f32 = 0.891;

/// Most that a sentence is raised or lowered: 12 dB.
const GAIN_LIMIT: f32 = 4.0;

pub(super) const fn samples_of(secs: f64) -> usize {
    // Not a number and below 0 become 0.
    (secs * RATE_HZ as f64).round() as usize
}

fn root_mean_square(samples: &[f32]) -> f32 {
    let sum: f64 = samples.iter().map(|value| f64::from(value * value)).sum();
    (sum / samples.len().max(1) as f64).sqrt() as f32
}

/// Begin and end of what is kept of `samples`: the sound with [`LEAD_SECS`] and [`TAIL_SECS`]
/// around it, and in any case where the first and the last word begin. Where the last one ends is
/// heard, not predicted: networks count the silence behind it in.
pub(super) fn kept(samples: &[f32], words: (usize, usize)) -> (usize, usize) {
    let levels: Vec<f32> = samples.chunks(BLOCK).map(root_mean_square).collect();
    let loudest = levels.iter().copied().fold(0.0, f32::max);
    let sounds = |level: &f32| *level > loudest * SILENCE;
    let first = levels.iter().position(sounds).unwrap_or(0) * BLOCK;
    let last = levels
        .iter()
        .rposition(sounds)
        .map_or(0, |at| (at + 1) * BLOCK);
    let begin = first.min(words.0).saturating_sub(samples_of(LEAD_SECS));
    let end = last.max(words.1).saturating_add(samples_of(TAIL_SECS));
    let end = end.min(samples.len());
    (begin.min(end), end)
}

/// Fade both ends, so that nothing clicks where silence follows.
pub(super) fn fade(samples: &mut [f32]) {
    let length = samples_of(FADE_SECS).min(samples.len() / 2);
    let gain = |at: usize| {
        let share = (at as f32 + 0.5) / length as f32;
        0.5 - 0.5 * (std::f32::consts::PI * share).cos()
    };
    for (at, value) in samples.iter_mut().take(length).enumerate() {
        *value *= gain(at);
    }
    for (at, value) in samples.iter_mut().rev().take(length).enumerate() {
        *value *= gain(at);
    }
}

/// Bring speech to the common level without going over the peak.
pub(super) fn even(samples: &mut [f32]) {
    let levels: Vec<f32> = samples.chunks(BLOCK).map(root_mean_square).collect();
    let loudest = levels.iter().copied().fold(0.0, f32::max);
    let (mut sum, mut count) = (0.0f64, 0usize);
    for level in levels.iter().filter(|level| **level > loudest * SPEECH) {
        sum += f64::from(level * level);
        count += 1;
    }
    if count == 0 {
        return;
    }
    let level = (sum / count as f64).sqrt() as f32;
    let peak = samples
        .iter()
        .fold(0.0f32, |most, value| most.max(value.abs()));
    let gain = (LEVEL / level).clamp(1.0 / GAIN_LIMIT, GAIN_LIMIT);
    let gain = gain.min(PEAK / peak);
    for value in samples {
        *value *= gain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(length: usize, size: f32) -> Vec<f32> {
        (0..length)
            .map(|at| size * (at as f32 * 0.05).sin())
            .collect()
    }

    #[test]
    fn silence_around_is_cut_but_never_a_word() {
        let mut samples = vec![0.0; 12_000];
        samples.extend(tone(24_000, 0.3));
        samples.extend(vec![1e-5; 12_000]);
        let (begin, end) = kept(&samples, (13_000, 30_000));
        assert!(begin.abs_diff(12_000 - 720) <= BLOCK, "{begin}");
        assert!(end.abs_diff(36_000 + 1440) <= BLOCK, "{end}");
        assert_eq!(kept(&samples, (600, 47_000)), (0, 48_000));
        assert_eq!(kept(&[], (0, 0)), (0, 0));
    }

    #[test]
    fn fades_end_in_silence_and_touch_the_edges_only() {
        let mut samples = vec![1.0; 1000];
        fade(&mut samples);
        assert!(samples[0] < 1e-3 && samples[999] < 1e-3);
        assert!(samples[120..880].iter().all(|value| *value == 1.0));
        let mut short = vec![1.0; 3];
        fade(&mut short);
        fade(&mut []);
    }

    #[test]
    fn quiet_and_loud_speech_come_to_one_level() {
        for size in [0.05, 0.1, 0.5] {
            let mut samples = tone(24_000, size);
            samples.extend(vec![0.0; 24_000]);
            even(&mut samples);
            let level = root_mean_square(&samples[..24_000]);
            assert!((level - LEVEL).abs() < 0.002, "{size}: {level}");
        }
        // Peaks decide where there are any.
        let mut samples = tone(24_000, 0.02);
        samples[5000] = 0.9;
        even(&mut samples);
        assert!(samples.iter().all(|value| value.abs() <= PEAK + 1e-6));
        even(&mut [0.0; 100]);
        even(&mut []);
    }
}
