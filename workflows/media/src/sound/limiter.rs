//! A look-ahead true-peak limiter.
//!
//! The peak between samples is found at four times the rate. The gain that each peak needs is
//! held over a window that reaches ahead of it and behind it, released slowly, and smoothed by two
//! running means as long as the look-ahead: a mean of values none of which is above what the peak
//! needs is not above it either, so the ceiling holds by construction. Means are whole numbers, so
//! they neither drift nor change a sound that stays below the ceiling by a single bit.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::factor_of_db;
use super::resample::kernel_with;

/// How a film's peaks are held down.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limiter {
    /// True peak that the limiter lets through. Below `max_dbtp`, as coding adds peaks.
    pub ceiling_dbtp: f64,
    /// True peak that the coded file may reach: coded above it, the film is coded again with a
    /// lower ceiling.
    pub max_dbtp: f64,
}

impl Default for Limiter {
    /// -1 dBTP in the coded file, limited to -1.5 before coding.
    fn default() -> Self {
        Self {
            ceiling_dbtp: -1.5,
            max_dbtp: -1.0,
        }
    }
}

/// Taps on each side of the peak finder's filter.
const HALF: usize = 12;
const TAPS: usize = HALF * 2;
const UNIT: u64 = 1 << 30;
const RELEASE_SECS: f64 = 0.15;

/// A limiter at work on two channels.
pub(super) struct LimiterRun {
    ceiling: f64,
    /// Samples by which the gain goes down before a peak.
    ahead: usize,
    /// Samples for which it stays down: half a wave of 20 Hz, so that a steady tone is turned
    /// down as a whole and not reshaped.
    hold: usize,
    release: f64,
    phases: [[f32; TAPS]; 3],
    /// Input from sample `at` of the film on, interleaved; before the film it is silent.
    input: Vec<f32>,
    /// Sample that `input` begins with.
    at: i64,
    /// Next sample whose need is looked for.
    next: i64,
    /// Needs in the window, rising, with their samples.
    low: VecDeque<(i64, f64)>,
    eased: f64,
    means: [Mean; 2],
    /// Smallest factor that was applied.
    pub(super) smallest: f64,
}

/// A running mean of whole numbers.
struct Mean {
    values: VecDeque<u64>,
    sum: u64,
}

impl Mean {
    fn new(len: usize) -> Self {
        Self {
            values: vec![UNIT; len].into(),
            sum: UNIT * len as u64,
        }
    }

    fn push(&mut self, value: u64) -> u64 {
        let oldest = self.values.pop_front().unwrap_or(UNIT);
        self.values.push_back(value);
        self.sum = self.sum + value - oldest;
        self.sum / self.values.len() as u64
    }
}

impl LimiterRun {
    pub(super) fn new(rate_hz: u32, ceiling_dbtp: f64) -> Self {
        let rate = rate_hz as usize;
        let ahead = (rate / 200).max(8);
        let first = ahead / 2;
        let mut phases = [[0.0f32; TAPS]; 3];
        for (phase, row) in phases.iter_mut().enumerate() {
            let frac = (phase + 1) as f64 / 4.0;
            for (tap, weight) in row.iter_mut().enumerate() {
                let place = tap as f64 - (HALF as f64 - 1.0) - frac;
                *weight = kernel_with(place, HALF as f64, 1.0, 6.0) as f32;
            }
        }
        Self {
            ceiling: factor_of_db(ceiling_dbtp),
            ahead,
            hold: rate / 40,
            release: 1.0 - (-1.0 / (RELEASE_SECS * f64::from(rate_hz))).exp(),
            phases,
            input: vec![0.0; (HALF - 1) * 2],
            at: 1 - HALF as i64,
            next: 0,
            low: VecDeque::new(),
            eased: 1.0,
            means: [Mean::new(first), Mean::new(ahead - first + 1)],
            smallest: 1.0,
        }
    }

    /// Take `samples` (interleaved); adds to `out` what is ready. Output runs behind by
    /// [`LimiterRun::delay`] samples.
    pub(super) fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.input.extend_from_slice(samples);
        let end = self.at + self.input.len() as i64 / 2;
        while self.next + (HALF as i64) < end {
            let need = self.need();
            self.step(need, out);
        }
        // Kept: what the peak finder or the delay still reaches.
        let keep = self.next - (self.ahead + HALF) as i64;
        let drop = (keep - self.at).max(0) as usize;
        self.input.drain(..drop * 2);
        self.at += drop as i64;
    }

    /// Samples by which output runs behind input.
    pub(super) const fn delay(&self) -> usize {
        self.ahead - 1 + HALF
    }

    /// Give out what is still held.
    pub(super) fn finish(&mut self, out: &mut Vec<f32>) {
        self.push(&vec![0.0; self.delay() * 2], out);
    }

    /// Factor that brings the true peak at sample `next`, and up to the one after it, to the
    /// ceiling.
    fn need(&self) -> f64 {
        let middle = (self.next - self.at) as usize;
        let window = &self.input[(middle + 1 - HALF) * 2..(middle + 1 + HALF) * 2];
        let mut loudest = 0.0f32;
        for value in window {
            loudest = loudest.max(value.abs());
        }
        // No curve through these samples is four times as high as they are.
        if f64::from(loudest) * 4.0 <= self.ceiling {
            return 1.0;
        }
        let here = HALF - 1;
        let mut peak = window[here * 2].abs().max(window[here * 2 + 1].abs());
        for row in &self.phases {
            let (mut left, mut right) = (0.0f32, 0.0f32);
            for (weight, pair) in row.iter().zip(window.chunks_exact(2)) {
                left += weight * pair[0];
                right += weight * pair[1];
            }
            peak = peak.max(left.abs()).max(right.abs());
        }
        let peak = f64::from(peak);
        if peak > self.ceiling {
            self.ceiling / peak
        } else {
            1.0
        }
    }

    fn step(&mut self, need: f64, out: &mut Vec<f32>) {
        while self.low.back().is_some_and(|(_, other)| *other >= need) {
            self.low.pop_back();
        }
        self.low.push_back((self.next, need));
        let oldest = self.next - (self.ahead + self.hold) as i64 + 1;
        while self.low.front().is_some_and(|(at, _)| *at < oldest) {
            self.low.pop_front();
        }
        let held = self.low.front().map_or(1.0, |(_, need)| *need);
        self.eased = held.min(self.eased + (1.0 - self.eased) * self.release);
        let mut mean = (self.eased * UNIT as f64) as u64;
        for running in &mut self.means {
            mean = running.push(mean);
        }
        let place = self.next - self.ahead as i64 + 1;
        if place >= 0 {
            let factor = mean as f64 / UNIT as f64;
            self.smallest = self.smallest.min(factor);
            let from = (place - self.at) as usize * 2;
            for value in &self.input[from..from + 2] {
                out.push((f64::from(*value) * factor) as f32);
            }
        }
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(samples: &[f32], ceiling_dbtp: f64) -> Vec<f32> {
        let mut limiter = LimiterRun::new(48_000, ceiling_dbtp);
        let mut out = Vec::new();
        // Odd pieces, to show that they do not matter.
        for piece in samples.chunks(2 * 777) {
            limiter.push(piece, &mut out);
        }
        limiter.finish(&mut out);
        assert_eq!(out.len(), samples.len());
        out
    }

    fn tone(hz: f64, level: f64, phase: f64, samples: usize) -> Vec<f32> {
        (0..samples)
            .flat_map(|n| {
                let turn = n as f64 * hz / 48_000.0 * std::f64::consts::TAU + phase;
                [(level * turn.sin()) as f32; 2]
            })
            .collect()
    }

    fn true_peak_db(samples: &[f32]) -> f64 {
        let mut meter = ebur128::EbuR128::new(2, 48_000, ebur128::Mode::TRUE_PEAK).unwrap();
        meter.add_frames_f32(samples).unwrap();
        let peak = meter.true_peak(0).unwrap().max(meter.true_peak(1).unwrap());
        20.0 * peak.log10()
    }

    #[test]
    fn below_the_ceiling_not_a_bit_changes() {
        let quiet = tone(997.0, 0.8, 0.1, 48_000);
        assert_eq!(run(&quiet, -1.0), quiet);
    }

    #[test]
    fn peaks_between_samples_are_held() {
        // A quarter of the rate at 45 degrees: samples 3 dB below the true peak.
        for (hz, phase) in [
            (12_000.0, std::f64::consts::FRAC_PI_4),
            (11_025.0, 0.3),
            (60.0, 0.0),
        ] {
            let loud = run(&tone(hz, 1.6, phase, 48_000), -1.5);
            let peak = true_peak_db(&loud[9_600..86_400]);
            assert!(peak < -1.35, "{hz} Hz: {peak:.2} dBTP");
            assert!(peak > -1.7, "{hz} Hz is held down too far: {peak:.2} dBTP");
        }
    }

    #[test]
    fn noise_and_clicks_are_held() {
        let mut state = 1u32;
        let noise: Vec<f32> = (0..96_000)
            .map(|n| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let burst = if (n / 9_600) % 2 == 0 { 3.0 } else { 0.05 };
                (state as f32 / u32::MAX as f32 - 0.5) * burst
            })
            .collect();
        let peak = true_peak_db(&run(&noise, -1.5));
        assert!(peak < -1.3, "{peak:.2} dBTP");
        let mut click = vec![0.0f32; 9_600];
        click[4_800] = 5.0;
        let peak = true_peak_db(&run(&click, -1.5));
        assert!((peak + 1.5).abs() < 0.1, "{peak:.2} dBTP");
    }

    #[test]
    fn a_steady_tone_is_turned_down_and_not_reshaped() {
        // Whole numbers of turns in 4,800 samples.
        for hz in [30.0, 100.0, 990.0] {
            let out = run(&tone(hz, 2.0, 0.0, 96_000), -1.5);
            // Fit level and phase over the steady part; the rest is distortion.
            let len = 38_400;
            let (mut re, mut im, mut power) = (0.0, 0.0, 0.0);
            for n in 48_000..48_000 + len {
                let turn = n as f64 * hz / 48_000.0 * std::f64::consts::TAU;
                let value = f64::from(out[n * 2]);
                re += value * turn.sin();
                im += value * turn.cos();
                power += value * value;
            }
            let fitted = 2.0 * (re * re + im * im) / len as f64;
            let residual = 10.0 * ((power - fitted).abs() / power).log10();
            assert!(residual < -70.0, "{hz} Hz: distortion {residual:.1} dB");
        }
    }
}
