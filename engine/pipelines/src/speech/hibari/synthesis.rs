//! A harmonic and noise spectrum turned into sound.
//!
//! Per frame of 12.5 ms and bin, the network of hibari-tts 0.2.1 predicts three parts, added up:
//! harmonics `exp(h) e^(i pi tanh(t))` on the spectrum of a pulse train at the pitch, noise of the
//! size `exp(n)`, and a free part `exp(r) e^(i p)`. One inverse short-time Fourier transform makes
//! sound of the sum. Checked against that package's `dsp.py` with the same noise (see the test).

use std::f64::consts::TAU;
use std::sync::Arc;

use realfft::num_complex::Complex32;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

/// Samples of one transform.
const WINDOW: usize = 1200;
/// Samples between two frames.
pub(in crate::speech) const HOP: usize = 300;
/// Frequencies of one frame.
pub(in crate::speech) const BINS: usize = WINDOW / 2 + 1;
const RATE_HZ: f64 = 24_000.0;
/// Below this pitch a frame has no voice.
const VOICE_HZ: f32 = 40.0;
/// Harmonics stop below this.
const HARMONIC_LIMIT_HZ: f32 = 11_000.0;
/// Larger logarithms are cut: a network's outlier is not to deafen.
const LOG_LIMIT: f32 = 7.0;
/// Where the closed form of the pulse train divides by nearly nothing.
const NEAR_PULSE: f32 = 2e-3;

/// What the network gives: tensors of `[BINS, frames]`, row-major, and the pitch per frame.
pub(in crate::speech) struct Spectrum<'a> {
    /// Frames.
    pub(in crate::speech) frames: usize,
    /// Logarithm of the harmonics' size.
    pub(in crate::speech) harmonic_log: &'a [f32],
    /// Angle of the harmonics: tanh of it, in half turns.
    pub(in crate::speech) harmonic_turn: &'a [f32],
    /// Logarithm of the noise's size.
    pub(in crate::speech) noise_log: &'a [f32],
    /// Logarithm of the free part's size.
    pub(in crate::speech) free_log: &'a [f32],
    /// Angle of the free part, in radians.
    pub(in crate::speech) free_angle: &'a [f32],
    /// Pitch, `[frames]`.
    pub(in crate::speech) pitch_hz: &'a [f32],
}

impl Spectrum<'_> {
    /// Whether every tensor has the size that `frames` asks for.
    pub(in crate::speech) fn is_whole(&self) -> bool {
        let parts = [
            self.harmonic_log,
            self.harmonic_turn,
            self.noise_log,
            self.free_log,
            self.free_angle,
        ];
        self.frames > 0
            && self.pitch_hz.len() == self.frames
            && parts.iter().all(|part| part.len() == BINS * self.frames)
    }
}

/// The transforms and the window, made once.
pub(in crate::speech) struct Synthesizer {
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    /// Periodic Hann.
    window: Vec<f32>,
}

impl Synthesizer {
    pub(in crate::speech) fn new() -> Self {
        let mut planner = RealFftPlanner::new();
        let hann = |at: usize| (0.5 - 0.5 * (TAU * at as f64 / WINDOW as f64).cos()) as f32;
        Self {
            forward: planner.plan_fft_forward(WINDOW),
            inverse: planner.plan_fft_inverse(WINDOW),
            window: (0..WINDOW).map(hann).collect(),
        }
    }

    /// Sound of `spectrum`: `HOP` samples a frame. `noise` gives the next real and imaginary part of
    /// standard normal noise; it is asked bin by bin, frame after frame. A spectrum that is not
    /// whole gives no sound.
    pub(in crate::speech) fn sound(
        &self,
        spectrum: &Spectrum<'_>,
        noise: &mut dyn FnMut() -> (f32, f32),
    ) -> Vec<f32> {
        if !spectrum.is_whole() {
            return Vec::new();
        }
        let frames = spectrum.frames;
        let pulses = pulses(spectrum.pitch_hz);
        let mut block = self.forward.make_input_vec();
        let mut bins = self.forward.make_output_vec();
        let mut scratch = self.forward.make_scratch_vec();
        let mut back = self.inverse.make_output_vec();
        let mut back_scratch = self.inverse.make_scratch_vec();
        let mut sum = vec![0.0f32; frames * HOP + WINDOW - HOP];
        let mut weight = vec![0.0f32; sum.len()];
        // A unit cosine peaks at a quarter of the window, so this makes exp(h) its size.
        let scale = 4.0 / WINDOW as f32;
        for frame in 0..frames {
            for (at, (value, window)) in block.iter_mut().zip(&self.window).enumerate() {
                let place = mirrored(frame * HOP + at, WINDOW / 2, pulses.len());
                *value = pulses.get(place).copied().unwrap_or(0.0) * window * scale;
            }
            // The lengths are the plans' own, so neither transform can fail.
            let done = self
                .forward
                .process_with_scratch(&mut block, &mut bins, &mut scratch);
            debug_assert!(done.is_ok());
            mix(spectrum, frame, &mut bins, noise);
            let done = self
                .inverse
                .process_with_scratch(&mut bins, &mut back, &mut back_scratch);
            debug_assert!(done.is_ok());
            let begin = frame * HOP;
            let places = sum.iter_mut().zip(&mut weight).skip(begin);
            for ((sum, weight), (value, window)) in places.zip(back.iter().zip(&self.window)) {
                *sum += value / WINDOW as f32 * window;
                *weight += window * window;
            }
        }
        let whole = sum
            .iter()
            .zip(&weight)
            .map(|(sum, weight)| sum / weight.max(1e-11));
        whole.skip(WINDOW / 2).take(frames * HOP).collect()
    }
}

/// Turn the pulse train's spectrum of one frame into the sound's.
fn mix(
    spectrum: &Spectrum<'_>,
    frame: usize,
    bins: &mut [Complex32],
    noise: &mut dyn FnMut() -> (f32, f32),
) {
    let at = |part: &[f32], bin: usize| {
        let value = part.get(bin * spectrum.frames + frame);
        value.copied().unwrap_or(0.0)
    };
    let size = |part: &[f32], bin: usize| at(part, bin).min(LOG_LIMIT).exp();
    let last = bins.len().saturating_sub(1);
    for (bin, value) in bins.iter_mut().enumerate() {
        let angle = at(spectrum.harmonic_turn, bin).tanh() * std::f32::consts::PI;
        let harmonic = Complex32::from_polar(size(spectrum.harmonic_log, bin), angle);
        let (re, im) = noise();
        let hiss = Complex32::new(re, im) * size(spectrum.noise_log, bin);
        let angle = at(spectrum.free_angle, bin);
        let free = Complex32::from_polar(size(spectrum.free_log, bin), angle);
        *value = *value * harmonic + hiss + free;
        // A real signal has no imaginary part there.
        if bin == 0 || bin == last {
            value.im = 0.0;
        }
    }
}

/// Index into a signal of `length` samples that is mirrored at its ends, for sample `at` of it with
/// `before` samples put in front.
fn mirrored(at: usize, before: usize, length: usize) -> usize {
    if length < 2 {
        return 0;
    }
    let period = 2 * (length - 1);
    let place = (at + period * (before / period + 1) - before) % period;
    place.min(period - place)
}

/// A pulse train at the pitch: every harmonic below the limit at size 1, which is
/// `sin((H + 1/2) t) / (2 sin(t/2)) - 1/2`. Silent where there is no voice.
fn pulses(pitch_hz: &[f32]) -> Vec<f32> {
    let mut train = Vec::with_capacity(pitch_hz.len() * HOP);
    let mut turns = 0.0f64;
    for frame in 0..pitch_hz.len() {
        for at in 0..HOP {
            let pitch = pitch_at(pitch_hz, frame, at);
            let held = pitch.max(VOICE_HZ);
            turns += f64::from(held);
            if pitch <= VOICE_HZ {
                train.push(0.0);
                continue;
            }
            let angle = ((turns / RATE_HZ).fract() * TAU) as f32;
            let harmonics = (HARMONIC_LIMIT_HZ / held).floor() + 0.5;
            let below = 2.0 * (angle * 0.5).sin();
            let sum = if below.abs() <= NEAR_PULSE {
                harmonics
            } else {
                (harmonics * angle).sin() / below
            };
            train.push(sum - 0.5);
        }
    }
    train
}

/// Pitch at sample `at` of a frame: linear between the middles of frames.
fn pitch_at(pitch_hz: &[f32], frame: usize, at: usize) -> f32 {
    let get = |frame: usize| {
        let frame = frame.min(pitch_hz.len().saturating_sub(1));
        pitch_hz.get(frame).copied().unwrap_or(0.0)
    };
    let place = (at as f32 + 0.5) / HOP as f32 - 0.5;
    let (from, to, share) = if place < 0.0 {
        (get(frame.saturating_sub(1)), get(frame), place + 1.0)
    } else {
        (get(frame), get(frame + 1), place)
    };
    from * (1.0 - share) + to * share
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator of `tests/fixtures/hibari_dsp/make.py`: uniform in 0..1.
    struct Dice(u32);

    impl Dice {
        fn roll(&mut self) -> f32 {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.0 >> 8) as f32 / (1 << 24) as f32
        }
    }

    #[test]
    fn it_makes_the_sound_that_the_package_makes() {
        let expected = include_bytes!("../../../../../tests/fixtures/hibari_dsp/expected.f32");
        let expected: Vec<f32> = expected
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        let frames = expected.len() / HOP;
        let mut dice = Dice(1);
        let mut tensor = |low: f32, high: f32| -> Vec<f32> {
            (0..BINS * frames)
                .map(|_| low + (high - low) * dice.roll())
                .collect()
        };
        let harmonic_log = tensor(-6.0, 0.0);
        let harmonic_turn = tensor(-2.0, 2.0);
        let noise_log = tensor(-6.0, -1.0);
        let free_log = tensor(-6.0, 7.5);
        let free_angle = tensor(-4.0, 4.0);
        let pitch_hz: Vec<f32> = (0..frames)
            .map(|frame| match frame % 8 {
                5 | 6 => 0.0,
                at => 90.0 + 37.0 * at as f32,
            })
            .collect();
        let spectrum = Spectrum {
            frames,
            harmonic_log: &harmonic_log,
            harmonic_turn: &harmonic_turn,
            noise_log: &noise_log,
            free_log: &free_log,
            free_angle: &free_angle,
            pitch_hz: &pitch_hz,
        };
        let mut noise = Dice(2);
        let mut next = || (2.0 * noise.roll() - 1.0, 2.0 * noise.roll() - 1.0);
        let sound = Synthesizer::new().sound(&spectrum, &mut next);
        assert_eq!(sound.len(), expected.len());
        let loudest = expected
            .iter()
            .fold(0.0f32, |most, value| most.max(value.abs()));
        let apart = sound.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0f32, f32::max);
        println!("largest difference {apart:e} of {loudest}");
        assert!(
            loudest > 0.1 && apart < 2e-5 * loudest,
            "{apart} of {loudest}"
        );
    }

    #[test]
    fn a_signal_is_mirrored_at_its_ends() {
        let places: Vec<_> = (0..10).map(|at| mirrored(at, 3, 4)).collect();
        assert_eq!(places, [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
        // Shorter than what is put in front.
        assert!((0..1200).all(|at| mirrored(at, 600, 2) < 2));
        assert_eq!(mirrored(5, 600, 1), 0);
    }

    #[test]
    fn one_frame_makes_a_frame_of_sound() {
        let part = vec![-1.0; BINS];
        let spectrum = Spectrum {
            frames: 1,
            harmonic_log: &part,
            harmonic_turn: &part,
            noise_log: &part,
            free_log: &part,
            free_angle: &part,
            pitch_hz: &[120.0],
        };
        let sound = Synthesizer::new().sound(&spectrum, &mut || (0.0, 0.0));
        assert_eq!(sound.len(), HOP);
        assert!(sound.iter().all(|value| value.is_finite()));
        let broken = Spectrum {
            frames: 2,
            ..spectrum
        };
        assert!(
            Synthesizer::new()
                .sound(&broken, &mut || (0.0, 0.0))
                .is_empty()
        );
    }
}
