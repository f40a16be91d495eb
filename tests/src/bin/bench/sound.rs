//! How fast a film's sound is mixed, measured and encoded.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use engine_base::{CancelToken, NoProgress};
use flow_media::sound::{EncodeOptions, Limiter, encode_film, measure, mix};
use flow_timeline::{DuckRule, SoundClip, SoundMix, SoundRole};
use longtake_tests::film::scratch;
use longtake_tests::load::CpuTime;
use longtake_tests::long_film::samples as sample_folder;
use longtake_tests::{Better, Receipt};

use crate::{Bench, Samples};

pub(crate) const BENCH: Bench = Bench {
    name: "sound",
    about: "ten minutes of sound mixed, measured and encoded",
    run,
};

const RATE_HZ: u32 = 48_000;
const MINUTE: i64 = 60 * RATE_HZ as i64;
const MINUTES: i64 = 10;
const ROUNDS: usize = 3;

fn clip(source: usize, role: SoundRole, start: i64, samples: i64, gain_db: f64) -> SoundClip {
    SoundClip {
        source,
        role,
        start,
        samples,
        source_start: 0,
        looped: true,
        gain_db,
        fade_in: 4_800,
        fade_out: 4_800,
    }
}

/// The sound of minute `minute`: music, a place, and something said every five seconds.
fn stretch(minute: i64) -> SoundMix {
    let (start, samples) = (-minute * MINUTE, MINUTES * MINUTE);
    let mut clips = vec![
        clip(0, SoundRole::Music, start, samples, -14.0),
        clip(1, SoundRole::Ambience, start, samples, -22.0),
    ];
    for line in 0..12 {
        let at = line * 5 * i64::from(RATE_HZ);
        clips.push(clip(2, SoundRole::Voice, at, 2 * i64::from(RATE_HZ), -6.0));
    }
    SoundMix {
        sample_rate_hz: RATE_HZ,
        samples: MINUTE,
        clips,
        duck: DuckRule::standard(RATE_HZ),
    }
}

fn run(receipt: &mut Receipt, _peers: bool) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("longtake-sound-")
        .tempdir_in(scratch()?)?;
    let sources = ["bed-tide", "ambience-sea", "bed-hearth"]
        .map(|name| sample_folder().join("sound").join(format!("{name}.opus")));
    let cancel = CancelToken::new();
    let film: Vec<PathBuf> = (0..MINUTES)
        .map(|minute| folder.path().join(format!("{minute}.wav")))
        .collect();
    let mut samples = Samples::new();
    for _ in 0..ROUNDS {
        let mut laps = Laps::start();
        for (minute, out) in (0..MINUTES).zip(&film) {
            mix(&stretch(minute), &sources, out, &cancel, &NoProgress)?;
        }
        laps.lap(&mut samples, "mix");
        let loudness = measure(&film, &cancel, &NoProgress)?;
        laps.lap(&mut samples, "measure");
        let out = folder.path().join("film.m4a");
        let report = encode_film(
            &film,
            loudness.gain_db,
            &Limiter::default(),
            &out,
            &EncodeOptions::default(),
            &cancel,
            &NoProgress,
        )?;
        ensure!(report.passes >= 1, "the sound was not encoded");
        laps.lap(&mut samples, "encode");
        laps.whole(&mut samples, "all of it");
    }
    for name in ["mix", "measure", "encode", "all of it"] {
        samples.row(receipt, name, "x real time", Better::Higher, None)?;
        let name = format!("{name}, processor");
        samples.row(receipt, &name, "x real time", Better::Higher, None)?;
    }
    Ok(())
}

/// Wall and processor time of one stage after the other.
struct Laps {
    first: (Instant, Option<CpuTime>),
    last: (Instant, Option<CpuTime>),
}

impl Laps {
    fn start() -> Self {
        let now = (Instant::now(), CpuTime::now());
        Self {
            first: now,
            last: now,
        }
    }

    fn note(samples: &mut Samples, name: &str, since: (Instant, Option<CpuTime>)) {
        let film_secs = (MINUTES * 60) as f64;
        samples.add(name, film_secs / since.0.elapsed().as_secs_f64());
        if let (Some(before), Some(now)) = (since.1, CpuTime::now()) {
            let secs = now.since(before).own_secs;
            samples.add(&format!("{name}, processor"), film_secs / secs);
        }
    }

    fn lap(&mut self, samples: &mut Samples, name: &str) {
        Self::note(samples, name, self.last);
        self.last = (Instant::now(), CpuTime::now());
    }

    fn whole(&self, samples: &mut Samples, name: &str) {
        Self::note(samples, name, self.first);
    }
}
