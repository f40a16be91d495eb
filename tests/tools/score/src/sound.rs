//! Stereo sound in memory: loops, filters, reverb, level, files.

use std::f64::consts::PI;
use std::path::Path;

use anyhow::{Context, Result};
use ebur128::{EbuR128, Mode};

/// Rate of everything here.
pub const RATE: f64 = 48_000.0;

/// Left and right samples of equal length.
#[derive(Debug, Clone, Default)]
pub struct Stereo {
    pub left: Vec<f64>,
    pub right: Vec<f64>,
}

/// Samples in `secs`.
pub fn samples(secs: f64) -> usize {
    (secs * RATE).round() as usize
}

/// Factor of `db`.
pub fn gain(db: f64) -> f64 {
    10_f64.powf(db / 20.0)
}

impl Stereo {
    pub fn silent(length: usize) -> Self {
        Self {
            left: vec![0.0; length],
            right: vec![0.0; length],
        }
    }

    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Adds `other` from `start` on; what passes the end goes on at the beginning, so that a loop
    /// rings over its own seam.
    pub fn add_looped(&mut self, start: i64, other: &Stereo, factor: f64) {
        let length = self.len() as i64;
        for (at, (left, right)) in other.left.iter().zip(&other.right).enumerate() {
            let place = (start + at as i64).rem_euclid(length) as usize;
            self.left[place] += left * factor;
            self.right[place] += right * factor;
        }
    }

    /// Adds a mono sound, placed between left (-1) and right (1) at constant power.
    pub fn add_mono(&mut self, start_secs: f64, mono: &[f64], pan: f64, factor: f64) {
        let angle = (pan + 1.0) * PI / 4.0;
        let both = Stereo {
            left: mono.iter().map(|sample| sample * angle.cos()).collect(),
            right: mono.iter().map(|sample| sample * angle.sin()).collect(),
        };
        self.add_looped((start_secs * RATE).round() as i64, &both, factor);
    }

    pub fn scale(&mut self, factor: f64) {
        self.left
            .iter_mut()
            .chain(&mut self.right)
            .for_each(|sample| *sample *= factor);
    }

    /// Applies a filter to a loop: it runs once to settle and a second time for keeps.
    pub fn filter_looped(&mut self, filter: Filter) {
        for channel in [&mut self.left, &mut self.right] {
            let mut state = filter.start();
            for sample in channel.iter() {
                state.step(*sample);
            }
            channel
                .iter_mut()
                .for_each(|sample| *sample = state.step(*sample));
        }
    }

    pub fn peak(&self) -> f64 {
        self.left
            .iter()
            .chain(&self.right)
            .fold(0.0, |peak: f64, sample| peak.max(sample.abs()))
    }

    /// Integrated loudness in LUFS.
    pub fn loudness(&self) -> Result<f64> {
        let mut meter = EbuR128::new(2, RATE as u32, Mode::I)?;
        meter.add_frames_planar_f64(&[&self.left, &self.right])?;
        Ok(meter.loudness_global()?)
    }

    /// Brings the loudness to `lufs`; peaks above -4 dB are rounded off.
    pub fn level(&mut self, lufs: f64) -> Result<()> {
        for _ in 0..3 {
            self.scale(gain(lufs - self.loudness()?));
            let (knee, top) = (gain(-9.0), gain(-4.0));
            for sample in self.left.iter_mut().chain(&mut self.right) {
                let over = sample.abs() - knee;
                if over > 0.0 {
                    let soft = knee + (top - knee) * (over / (top - knee)).tanh();
                    *sample = soft.copysign(*sample);
                }
            }
        }
        Ok(())
    }

    /// Writes 32-bit float WAV.
    pub fn write_wav(&self, path: &Path) -> Result<()> {
        let data_bytes = u32::try_from(self.len() * 8)?;
        let mut out = Vec::with_capacity(self.len() * 8 + 44);
        out.extend(b"RIFF");
        out.extend((36 + data_bytes).to_le_bytes());
        out.extend(b"WAVEfmt ");
        out.extend(16_u32.to_le_bytes());
        out.extend(3_u16.to_le_bytes());
        out.extend(2_u16.to_le_bytes());
        out.extend((RATE as u32).to_le_bytes());
        out.extend((RATE as u32 * 8).to_le_bytes());
        out.extend(8_u16.to_le_bytes());
        out.extend(32_u16.to_le_bytes());
        out.extend(b"data");
        out.extend(data_bytes.to_le_bytes());
        for (left, right) in self.left.iter().zip(&self.right) {
            out.extend((*left as f32).to_le_bytes());
            out.extend((*right as f32).to_le_bytes());
        }
        std::fs::write(path, out).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Second-order filter (state variable form: may be retuned at every sample).
#[derive(Debug, Clone, Copy)]
pub enum Filter {
    Low(f64, f64),
    High(f64, f64),
    Band(f64, f64),
}

/// A running filter.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    filter: Filter,
    first: f64,
    second: f64,
}

impl Filter {
    pub fn start(self) -> Running {
        Running {
            filter: self,
            first: 0.0,
            second: 0.0,
        }
    }
}

impl Running {
    /// The next output; frequencies in Hz, resonance as Q.
    pub fn step(&mut self, input: f64) -> f64 {
        let (Filter::Low(hz, q) | Filter::High(hz, q) | Filter::Band(hz, q)) = self.filter;
        let g = (PI * hz.min(RATE * 0.45) / RATE).tan();
        let k = 1.0 / q;
        let a1 = 1.0 / (1.0 + g * (g + k));
        let v3 = input - self.second;
        let band = a1 * (self.first + g * v3);
        let low = self.second + g * band;
        self.first = 2.0 * band - self.first;
        self.second = 2.0 * low - self.second;
        match self.filter {
            Filter::Low(..) => low,
            Filter::High(..) => input - k * band - low,
            Filter::Band(..) => k * band,
        }
    }

    /// The same with the filter moved to `hz`.
    pub fn step_at(&mut self, hz: f64, input: f64) -> f64 {
        match &mut self.filter {
            Filter::Low(now, _) | Filter::High(now, _) | Filter::Band(now, _) => *now = hz,
        }
        self.step(input)
    }
}

/// A room: eight delay lines fed back through a Householder matrix, each losing highs.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Time in which the sound dies away by 60 dB.
    pub decay_secs: f64,
    /// Frequency above which it dies sooner.
    pub damp_hz: f64,
    /// Size: scales the delays; 1 is a hall.
    pub size: f64,
    /// Before the first reflection.
    pub predelay_secs: f64,
}

impl Room {
    /// The wet sound alone, `tail_secs` longer than `dry`.
    pub fn wet(&self, dry: &Stereo, tail_secs: f64) -> Stereo {
        const LINES: [f64; 8] = [
            1423.0, 1637.0, 1867.0, 2083.0, 2311.0, 2539.0, 2777.0, 3001.0,
        ];
        let lengths = LINES.map(|line| ((line * self.size) as usize).max(16) | 1);
        let mut lines: Vec<Vec<f64>> = lengths.iter().map(|length| vec![0.0; *length]).collect();
        let keep = lengths.map(|length| 10_f64.powf(-3.0 * length as f64 / RATE / self.decay_secs));
        let smooth = (-2.0 * PI * self.damp_hz / RATE).exp();
        let mut damped = [0.0; 8];
        let mut places = [0; 8];
        let predelay = samples(self.predelay_secs);
        let length = dry.len() + samples(tail_secs);
        let mut wet = Stereo::silent(length);
        for at in 0..length {
            let heard = |channel: &[f64]| {
                at.checked_sub(predelay)
                    .and_then(|at| channel.get(at))
                    .copied()
                    .unwrap_or(0.0)
            };
            let (left, right) = (heard(&dry.left), heard(&dry.right));
            let mut out = [0.0; 8];
            for (line, sample) in out.iter_mut().enumerate() {
                let fresh = lines[line][places[line]];
                damped[line] = fresh + (damped[line] - fresh) * smooth;
                *sample = damped[line] * keep[line];
            }
            let shared = out.iter().sum::<f64>() / 4.0;
            for line in 0..8 {
                let fed = if line % 2 == 0 { left } else { right };
                lines[line][places[line]] = fed * 0.5 + out[line] - shared;
                places[line] = (places[line] + 1) % lengths[line];
            }
            wet.left[at] = (out[0] - out[2] + out[4] - out[6]) * 0.5;
            wet.right[at] = (out[1] - out[3] + out[5] - out[7]) * 0.5;
        }
        wet
    }
}
