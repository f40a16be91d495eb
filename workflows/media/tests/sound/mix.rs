//! Mixing: exactness, fades, ducking, loops, joins.

use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code, NoProgress, ProgressEvent};
use flow_media::MediaError;
use flow_media::sound::{duck_reach, mix};
use flow_timeline::{SoundClip, SoundMix, SoundRole};

use crate::support::{Noise, both, clip, file, left, mixed, rms_db, sound_mix, tone, write};

#[test]
fn clips_are_placed_to_the_sample_at_their_gain() {
    let dir = tempfile::tempdir().unwrap();
    let first = write(
        &dir.path().join("a.wav"),
        &both(1_000, |n| n as f64 / 1_000.0),
    );
    let second = write(&dir.path().join("b.wav"), &[0.25, -0.5].repeat(1_000));
    let mut late = clip(1, SoundRole::Effect, 20_000, 500);
    late.gain_db = -6.020_599_913_279_624;
    let mut early = clip(0, SoundRole::Effect, -100, 600);
    early.source_start = 50;
    let got = mixed(&sound_mix(30_000, vec![early, late]), &[first, second]);
    for (n, pair) in got.chunks_exact(2).enumerate() {
        let n = n as i64;
        let right = if n < 500 {
            let value = ((n + 150) as f64 / 1_000.0) as f32;
            [value, value]
        } else if (20_000..20_500).contains(&n) {
            [0.125, -0.25]
        } else {
            [0.0, 0.0]
        };
        assert!(
            (pair[0] - right[0]).abs() < 1e-7 && (pair[1] - right[1]).abs() < 1e-7,
            "sample {n}: got {pair:?}, expected {right:?}"
        );
    }
}

#[test]
fn fades_rise_without_a_corner_and_cross_fades_keep_power() {
    let dir = tempfile::tempdir().unwrap();
    let ones = write(&dir.path().join("ones.wav"), &both(40_000, |_| 1.0));
    let mut single = clip(0, SoundRole::Effect, 0, 10_000);
    (single.fade_in, single.fade_out) = (2_000, 1_000);
    let got = left(&mixed(
        &sound_mix(10_000, vec![single.clone()]),
        std::slice::from_ref(&ones),
    ));
    assert!((got[999] - 0.5).abs() < 1e-3 && (got[9_499] - 0.5).abs() < 1e-3);
    assert!(got[2_000..9_000].iter().all(|value| *value == 1.0));
    assert!(got[0] < 1e-5 && got[9_999] < 1e-5);
    // Two independent noises under a cross-fade: the level must not dip.
    let mut noise = Noise(5);
    let mut random = |name: &str| {
        let samples: Vec<f32> = (0..80_000).map(|_| 0.3 * noise.next() as f32).collect();
        write(&dir.path().join(name), &samples)
    };
    let (a, b) = (random("a.wav"), random("b.wav"));
    let mut out = clip(0, SoundRole::Music, 0, 30_000);
    out.fade_out = 20_000;
    let mut into = clip(1, SoundRole::Music, 10_000, 30_000);
    into.fade_in = 20_000;
    let got = left(&mixed(&sound_mix(40_000, vec![out, into]), &[a, b]));
    let steady = rms_db(&got[..8_000]);
    for part in got[10_000..30_000].chunks(4_000) {
        let level = rms_db(part) - steady;
        assert!(level.abs() < 0.5, "the level changes by {level:.2} dB");
    }
}

#[test]
fn ducking_has_its_depth_and_its_times() {
    let dir = tempfile::tempdir().unwrap();
    let music = write(&dir.path().join("m.wav"), &tone(1_000.0, 0.5, 480_000));
    let speech = write(&dir.path().join("v.wav"), &both(480_000, |_| 0.0));
    let clips = vec![
        clip(0, SoundRole::Music, 0, 480_000),
        clip(1, SoundRole::Voice, 96_000, 48_000),
        // A pause of 0.5 s: shorter than 0.25 s + 0.6 s.
        clip(1, SoundRole::Voice, 168_000, 48_000),
    ];
    let got = left(&mixed(
        &sound_mix(480_000, clips),
        &[music.clone(), speech.clone()],
    ));
    let full = rms_db(&tone(1_000.0, 0.5, 48_000));
    let level = |from: usize, to: usize| rms_db(&got[from..to]) - full;
    for (from, to, right) in [
        (0, 83_904, 0.0),
        (96_000, 144_000, -6.0),
        (144_000, 168_000, -6.0),
        (168_000, 216_000, -6.0),
        (244_800, 480_000, 0.0),
        // Half way down and up.
        (89_952, 90_048, -3.0),
        (230_352, 230_448, -3.0),
    ] {
        let level = level(from, to);
        assert!(
            (level - right).abs() < 0.15,
            "{from}..{to}: {level:.2} dB, expected {right}"
        );
    }
    let clips = vec![
        clip(0, SoundRole::Effect, 0, 96_000),
        clip(1, SoundRole::Voice, 0, 96_000),
    ];
    let got = mixed(&sound_mix(96_000, clips), &[music, speech]);
    assert_eq!(got, tone(1_000.0, 0.5, 96_000), "effects keep their level");
}

/// Loudness of the default voice, measured over its lines of the sample film.
const VOICE_LUFS: f64 = -20.9;

#[test]
fn a_bed_under_speech_lies_12_to_15_db_below_it() {
    let dir = tempfile::tempdir().unwrap();
    let samples: usize = 20 * 48_000;
    let speech = write(&dir.path().join("v.wav"), &both(samples, |_| 0.0));
    let sounds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/samples/sound");
    for name in ["bed-dawn", "bed-tide", "bed-hearth"] {
        let mut bed = clip(0, SoundRole::Music, 0, samples as i64);
        // As scripts that are written have it.
        bed.gain_db = -8.0;
        bed.looped = true;
        let spoken = clip(1, SoundRole::Voice, 0, samples as i64);
        let mix = sound_mix(samples as i64, vec![bed, spoken]);
        let file = sounds.join(format!("{name}.opus"));
        let got = mixed(&mix, &[file, speech.clone()]);
        let path = write(&dir.path().join("mix.wav"), &got);
        let heard = flow_media::sound::loudness_of(&path, &CancelToken::new()).unwrap();
        let below = VOICE_LUFS - heard.lufs;
        println!(
            "{name}: {below:.1} dB below speech, peak {:.1} dBTP",
            heard.true_peak_dbtp
        );
        assert!((12.0..15.0).contains(&below), "{name}: {below:.1} dB");
        assert!(heard.true_peak_dbtp < -12.0, "room for the voice above it");
    }
}

#[test]
fn a_loop_runs_on_through_its_seam() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = Noise(9);
    let random: Vec<f32> = (0..60_000).map(|_| 0.3 * noise.next() as f32).collect();
    let bed = write(&dir.path().join("bed.wav"), &random);
    let mut looped = clip(0, SoundRole::Ambience, 0, 200_000);
    looped.looped = true;
    looped.source_start = 1_234;
    let got = mixed(&sound_mix(200_000, vec![looped]), &[bed]);
    let source = |n: usize| &random[n * 2..n * 2 + 2];
    // 30,000 samples, seam 2,400: a period of 27,600.
    for n in [0, 20_000, 26_000] {
        assert_eq!(&got[n * 2..n * 2 + 2], source(n + 1_234), "sample {n}");
    }
    for n in [30_000usize, 50_000, 100_000, 190_000] {
        let within = (n + 1_234) % 27_600;
        assert!(within >= 2_400);
        assert_eq!(&got[n * 2..n * 2 + 2], source(within), "sample {n}");
    }
    let steady = rms_db(&random);
    for part in got.chunks(4_800) {
        let level = rms_db(part) - steady;
        assert!(level.abs() < 0.6, "the level changes by {level:.2} dB");
    }
    // A slow tone that does not fit its loop: without the seam it would jump by its height.
    let slow = write(&dir.path().join("slow.wav"), &tone(50.0, 0.5, 30_111));
    let mut looped = clip(0, SoundRole::Ambience, 0, 120_000);
    looped.looped = true;
    let got = left(&mixed(&sound_mix(120_000, vec![looped]), &[slow]));
    let jump = got
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .fold(0.0, f32::max);
    assert!(jump < 0.006, "a jump of {jump}");
}

#[test]
fn lossy_loops_work_too() {
    let mut looped = clip(0, SoundRole::Music, 0, 300_000);
    looped.looped = true;
    let got = left(&mixed(
        &sound_mix(300_000, vec![looped]),
        &[file("sweep.mp3")],
    ));
    let period = 96_000 - 2_400;
    for n in 3_000..80_000 {
        assert_eq!(got[n], got[n + period], "sample {n}");
        assert_eq!(got[n], got[n + 2 * period], "sample {n}");
    }
}

/// The part of a mix from sample `from` to sample `to`, as a caller would write it down.
fn stretch(whole: &SoundMix, from: i64, to: i64) -> SoundMix {
    let reach = duck_reach(&whole.duck);
    let clips = whole
        .clips
        .iter()
        .filter(|clip| {
            let reach = if clip.role == SoundRole::Voice {
                reach
            } else {
                0
            };
            clip.start < to + reach && clip.start + clip.samples > from - reach
        })
        .map(|clip| SoundClip {
            start: clip.start - from,
            ..clip.clone()
        })
        .collect();
    SoundMix {
        samples: to - from,
        clips,
        ..whole.clone()
    }
}

fn busy_film(sources: &[PathBuf]) -> SoundMix {
    let mut noise = Noise(21);
    let mut clips = Vec::new();
    for index in 0..24 {
        let role = [
            SoundRole::Voice,
            SoundRole::Music,
            SoundRole::Ambience,
            SoundRole::Effect,
        ][index % 4];
        let mut clip = clip(
            index % sources.len(),
            role,
            noise.below(400_000) as i64 - 20_000,
            5_000 + noise.below(150_000) as i64,
        );
        clip.source_start = noise.below(30_000) as i64;
        clip.looped = index % 3 == 0;
        clip.gain_db = -12.0 * (noise.next() + 1.0);
        clip.fade_in = noise.below(8_000) as i64;
        clip.fade_out = noise.below(8_000) as i64;
        clips.push(clip);
    }
    // And one true cross-fade.
    let mut out = clip(1, SoundRole::Music, 100_000, 60_000);
    out.fade_out = 20_000;
    let mut into = clip(2, SoundRole::Music, 140_000, 90_000);
    into.fade_in = 20_000;
    clips.extend([out, into]);
    sound_mix(400_000, clips)
}

#[test]
fn two_stretches_are_the_whole_sample_for_sample() {
    let dir = tempfile::tempdir().unwrap();
    let sources = [
        file("sweep.flac"),
        write(&dir.path().join("t.wav"), &tone(333.0, 0.4, 90_000)),
        file("sweep.mp3"),
    ];
    let film = busy_film(&sources);
    let whole = mixed(&film, &sources);
    for cut in [1i64, 100_003, 150_000, 233_333, 399_999] {
        let mut parts = mixed(&stretch(&film, 0, cut), &sources);
        parts.extend(mixed(&stretch(&film, cut, 400_000), &sources));
        let first = parts.iter().zip(&whole).position(|(a, b)| a != b);
        assert_eq!(first, None, "cut at {cut}: first difference");
    }
    assert_eq!(mixed(&film, &sources), whole, "the same again");
}

#[test]
fn a_source_too_short_is_silent_after_its_end_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("mix.wav");
    let clips = vec![clip(0, SoundRole::Voice, 0, 150_000)];
    let report = mix(
        &sound_mix(150_000, clips),
        &[file("sweep.flac")],
        &out,
        &CancelToken::new(),
        &NoProgress,
    )
    .unwrap();
    assert_eq!(report.notes.len(), 1, "{report:?}");
    assert!(report.notes[0].text.contains("shorter"), "{report:?}");
    assert!((report.peak_dbfs + 6.02).abs() < 0.1, "{report:?}");
}

#[test]
fn mixes_without_sense_are_refused() {
    let sources = [file("sweep.flac")];
    let good = || clip(0, SoundRole::Music, 0, 100);
    type Spoil = fn(&mut SoundMix);
    let cases: [(&str, Spoil); 8] = [
        ("sample rate", |mix| mix.sample_rate_hz = 0),
        ("length", |mix| mix.samples = -1),
        ("length", |mix| mix.samples = i64::MAX),
        ("source", |mix| mix.clips[0].source = 1),
        ("gain", |mix| mix.clips[0].gain_db = f64::NAN),
        ("starts", |mix| mix.clips[0].start = i64::MIN),
        ("lengths", |mix| mix.clips[0].fade_in = -1),
        ("depth", |mix| mix.duck.depth_db = 3.0),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (part, spoil) in cases {
        let mut bad = sound_mix(100, vec![good()]);
        spoil(&mut bad);
        let out = dir.path().join("mix.wav");
        let error = mix(&bad, &sources, &out, &CancelToken::new(), &NoProgress).unwrap_err();
        assert!(matches!(error, MediaError::BadRequest(_)), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_stop_or_a_bad_place_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let film = sound_mix(1 << 40, vec![clip(0, SoundRole::Music, 0, 1 << 40)]);
    let sources = [file("sweep.flac")];
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let sink = move |event: ProgressEvent| {
        if event.step > 500_000 {
            stop.cancel();
        }
    };
    let out = dir.path().join("mix.wav");
    let error = mix(&film, &sources, &out, &cancel, &sink).unwrap_err();
    assert!(matches!(error, MediaError::Cancelled), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let out = dir.path().join("no-folder/mix.wav");
    let error = mix(&film, &sources, &out, &CancelToken::new(), &NoProgress).unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(error.to_string().contains("no-folder"), "{error}");
}
