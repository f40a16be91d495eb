//! Signals and measures that the sound tests share.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, NoProgress};
use flow_media::sound::{SoundReader, WaveReader, WaveWriter};
use flow_timeline::{DuckRule, SoundClip, SoundMix, SoundRole};

pub(crate) const RATE: u32 = 48_000;

pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sound/files")
        .join(name)
}

pub(crate) fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/cases")
        .join(name)
}

/// The sweep of `files/make.sh` at `rate_hz`.
pub(crate) fn sweep(rate_hz: u32) -> Vec<f32> {
    (0..2 * rate_hz)
        .map(|n| {
            let t = f64::from(n) / f64::from(rate_hz);
            (0.5 * (TAU * (100.0 * t + 1975.0 * t * t)).sin()) as f32
        })
        .collect()
}

/// Interleaved samples of one function of the sample's index on both sides.
pub(crate) fn both(samples: usize, value: impl Fn(usize) -> f64) -> Vec<f32> {
    (0..samples).flat_map(|n| [value(n) as f32; 2]).collect()
}

pub(crate) fn tone(hz: f64, level: f64, samples: usize) -> Vec<f32> {
    both(samples, |n| {
        level * (n as f64 * hz / f64::from(RATE) * TAU).sin()
    })
}

/// Numbers in -1 to 1 that depend on the seed only.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.next() + 1.0) / 2.0 * end as f64) as usize % end.max(1)
    }
}

pub(crate) fn write(path: &Path, samples: &[f32]) -> PathBuf {
    let mut writer = WaveWriter::create(path, RATE).unwrap();
    writer.write(samples).unwrap();
    writer.finish().unwrap();
    path.to_path_buf()
}

pub(crate) fn read_wave(path: &Path) -> Vec<f32> {
    let mut reader = WaveReader::open(path).unwrap();
    let mut out = vec![0.0; reader.samples() as usize * 2];
    assert_eq!(reader.read(&mut out).unwrap() * 2, out.len());
    out
}

/// All of a file, read forward in odd steps.
pub(crate) fn read_all(reader: &mut SoundReader) -> Vec<f32> {
    let mut all = Vec::new();
    let mut block = vec![0.0; 2 * 5_003];
    loop {
        let there = reader.read_at(all.len() as i64 / 2, &mut block).unwrap();
        all.extend_from_slice(&block[..there * 2]);
        if there * 2 < block.len() {
            return all;
        }
    }
}

pub(crate) fn left(samples: &[f32]) -> Vec<f32> {
    samples.iter().step_by(2).copied().collect()
}

pub(crate) fn rms_db(samples: &[f32]) -> f64 {
    let power: f64 = samples.iter().map(|v| f64::from(*v).powi(2)).sum();
    10.0 * (power / samples.len() as f64).log10()
}

/// Shift of `got` against `right`, in samples, at which they are most alike, and the correlation.
pub(crate) fn alignment(right: &[f32], got: &[f32], reach: i64) -> (i64, f64) {
    let len = right.len().min(got.len()) as i64;
    let range = reach..len - reach;
    let mut best = (0, f64::MIN);
    for shift in -reach..=reach {
        let (mut product, mut power_a, mut power_b) = (0.0, 0.0, 0.0);
        for n in range.clone() {
            let (a, b) = (
                f64::from(right[n as usize]),
                f64::from(got[(n + shift) as usize]),
            );
            product += a * b;
            power_a += a * a;
            power_b += b * b;
        }
        let alike = product / (power_a * power_b).sqrt();
        if alike > best.1 {
            best = (shift, alike);
        }
    }
    best
}

pub(crate) fn clip(source: usize, role: SoundRole, start: i64, samples: i64) -> SoundClip {
    SoundClip {
        source,
        role,
        start,
        samples,
        source_start: 0,
        looped: false,
        gain_db: 0.0,
        fade_in: 0,
        fade_out: 0,
    }
}

pub(crate) fn sound_mix(samples: i64, clips: Vec<SoundClip>) -> SoundMix {
    SoundMix {
        sample_rate_hz: RATE,
        samples,
        clips,
        duck: DuckRule::standard(RATE),
    }
}

/// The samples of a mix.
pub(crate) fn mixed(mix: &SoundMix, sources: &[PathBuf]) -> Vec<f32> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("mix.wav");
    let report =
        flow_media::sound::mix(mix, sources, &out, &CancelToken::new(), &NoProgress).unwrap();
    assert_eq!(report.samples, mix.samples);
    let samples = read_wave(&out);
    assert_eq!(samples.len() as i64, mix.samples * 2);
    samples
}
