//! Speed and memory of long films. Not run by default: `cargo test --test sound -- --ignored`.

use engine_base::{CancelToken, NoProgress};
use flow_media::sound::{EncodeOptions, Limiter, encode_film, measure, mix};
use flow_timeline::SoundRole;

use crate::support::{clip, file, sound_mix};

/// Peak memory of this process in kilobytes, where the system tells.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

/// Processor seconds of this process, which other work on the machine does not change: user and
/// system time are fields 14 and 15, in hundredths on all common systems.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

/// Mix, measure and code one shot a minute with a looped bed, an ambience and speech.
fn film_of(minutes: i64) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let cancel = CancelToken::new();
    let sources = [file("sweep.mp3"), file("sweep.ogg"), file("sweep.flac")];
    let minute = 60 * 48_000;
    let mut film = Vec::new();
    let start = cpu_secs();
    for shot in 0..minutes {
        let mut bed = clip(0, SoundRole::Music, -shot * minute, minutes * minute);
        bed.looped = true;
        bed.gain_db = -14.0;
        let mut place = clip(1, SoundRole::Ambience, -shot * minute, minutes * minute);
        place.looped = true;
        place.gain_db = -26.0;
        let mut clips = vec![bed, place];
        for line in 0..12 {
            clips.push(clip(2, SoundRole::Voice, line * 5 * 48_000, 96_000));
        }
        let out = dir.path().join(format!("{shot}.wav"));
        mix(
            &sound_mix(minute, clips),
            &sources,
            &out,
            &cancel,
            &NoProgress,
        )
        .unwrap();
        film.push(out);
    }
    let mixed = cpu_secs() - start;
    let start = cpu_secs();
    let loudness = measure(&film, &cancel, &NoProgress).unwrap();
    let measured = cpu_secs() - start;
    let start = cpu_secs();
    let report = encode_film(
        &film,
        loudness.gain_db,
        &Limiter::default(),
        &dir.path().join("film.m4a"),
        &EncodeOptions::default(),
        &cancel,
        &NoProgress,
    )
    .unwrap();
    let coded = cpu_secs() - start;
    let secs = minutes as f64 * 60.0;
    let peak = peak_kib();
    eprintln!(
        "{minutes} min: mix {:.0} x, measure {:.0} x, encode {:.0} x real time by processor time ({} passes); peak {peak} KiB; {loudness:?} {report:?}",
        secs / mixed,
        secs / measured,
        secs / coded,
        report.passes,
    );
    peak
}

#[test]
#[ignore = "takes minutes: run by hand for speed and memory"]
fn memory_does_not_grow_with_the_film() {
    let short = film_of(10);
    let long = film_of(60);
    assert!(
        long <= short + short / 10,
        "10 minutes peak at {short} KiB, 60 at {long}"
    );
}
