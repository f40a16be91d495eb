//! Loudness and the final encode.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code, NoProgress, ProgressEvent};
use flow_media::MediaError;
use flow_media::sound::{
    EncodeOptions, EncodeReport, Limiter, Loudness, MAX_GAIN_DB, SoundFormat, SoundReader,
    encode_film, measure,
};

use crate::support::{Noise, RATE, alignment, both, left, read_all, tone, write};

fn loudness(mixes: &[PathBuf]) -> Loudness {
    measure(mixes, &CancelToken::new(), &NoProgress).unwrap()
}

fn encode(mixes: &[PathBuf], gain_db: f64, out: &Path, format: SoundFormat) -> EncodeReport {
    let options = EncodeOptions { format };
    let cancel = CancelToken::new();
    encode_film(
        mixes,
        gain_db,
        &Limiter::default(),
        out,
        &options,
        &cancel,
        &NoProgress,
    )
    .unwrap()
}

const AAC: SoundFormat = SoundFormat::Aac {
    bitrate_bps: 192_000,
};

/// Chords with plucks and a beat: peaks well above the mean.
fn music(secs: usize) -> Vec<f32> {
    let mut noise = Noise(1);
    let rate = f64::from(RATE);
    let mut out = Vec::new();
    for n in 0..secs * RATE as usize {
        let t = n as f64 / rate;
        let chord = [220.0, 277.18, 329.63, 440.0, 554.37];
        let decay = (-(t * 2.0).fract() * 5.0).exp();
        let mut value: f64 = chord
            .iter()
            .enumerate()
            .map(|(k, hz)| decay * (TAU * hz * t).sin() / (k + 1) as f64)
            .sum();
        let beat = (t * 2.0 + 0.5).fract();
        value += 1.5 * (-beat * 60.0).exp() * noise.next();
        value += 0.8 * (-beat * 12.0).exp() * (TAU * 55.0 * t).sin();
        let side = 0.1 * (TAU * 660.0 * t).sin() * decay;
        out.extend([(0.2 * (value + side)) as f32, (0.2 * (value - side)) as f32]);
    }
    out
}

/// Voiced syllables with pauses: pulses through two moving resonances.
fn speech(secs: usize) -> Vec<f32> {
    let rate = f64::from(RATE);
    let mut states = [[0.0f64; 2]; 2];
    let mut phase = 0.0f64;
    both_stateful(secs * RATE as usize, |n| {
        let t = n as f64 / rate;
        let syllable = (t * 4.0).fract();
        let speaking = (t / 2.5).fract() < 0.7;
        let envelope = if speaking {
            (syllable * TAU / 2.0).sin().max(0.0)
        } else {
            0.0
        };
        phase += (120.0 + 20.0 * (t * 3.0).sin()) / rate;
        let pulse = if phase >= 1.0 {
            phase -= 1.0;
            1.0
        } else {
            0.0
        };
        let mut value = 0.0;
        for (state, hz) in states
            .iter_mut()
            .zip([500.0 + 200.0 * (t * 7.0).sin(), 1_500.0])
        {
            let radius = 0.985;
            let next = pulse + 2.0 * radius * (TAU * hz / rate).cos() * state[0]
                - radius * radius * state[1];
            *state = [next, state[0]];
            value += next;
        }
        0.05 * envelope * value
    })
}

fn both_stateful(samples: usize, mut value: impl FnMut(usize) -> f64) -> Vec<f32> {
    (0..samples).flat_map(|n| [value(n) as f32; 2]).collect()
}

#[test]
fn a_reference_tone_reads_as_the_standard_says() {
    // EBU Tech 3341, cases 1 and 2: 1 kHz in both channels.
    let dir = tempfile::tempdir().unwrap();
    for level_db in [-23.0f64, -33.0] {
        let level = 10f64.powf(level_db / 20.0);
        let samples = tone(1_000.0, level, 20 * RATE as usize);
        // In two files, to show that gating runs over the join.
        let (a, b) = samples.split_at(samples.len() / 3 / 2 * 2);
        let mixes = [
            write(&dir.path().join("a.wav"), a),
            write(&dir.path().join("b.wav"), b),
        ];
        let got = loudness(&mixes);
        assert!((got.integrated_lufs - level_db).abs() < 0.1, "{got:?}");
        assert!((got.true_peak_dbtp - level_db).abs() < 0.2, "{got:?}");
        assert!((got.gain_db - (-16.0 - level_db)).abs() < 0.1, "{got:?}");
        assert!(got.range_lu < 0.2 && !got.silent && !got.capped, "{got:?}");
    }
}

#[test]
fn silence_and_whispers_have_finite_gains() {
    let dir = tempfile::tempdir().unwrap();
    let silent = write(&dir.path().join("s.wav"), &both(96_000, |_| 0.0));
    let got = loudness(std::slice::from_ref(&silent));
    assert!(got.silent && got.gain_db == 0.0, "{got:?}");
    assert!(got.integrated_lufs.is_finite() && got.true_peak_dbtp.is_finite());
    let out = dir.path().join("s.m4a");
    let report = encode(&[silent], got.gain_db, &out, AAC);
    assert_eq!((report.samples, report.passes), (96_000, 1));
    let whisper = write(&dir.path().join("w.wav"), &tone(1_000.0, 0.001, 240_000));
    let got = loudness(&[whisper]);
    assert!(
        got.capped && (got.gain_db - MAX_GAIN_DB).abs() < 1e-9 && !got.silent,
        "{got:?}"
    );
    // Shorter than one gating block.
    let short = write(&dir.path().join("c.wav"), &tone(1_000.0, 0.5, 1_000));
    assert!(loudness(&[short]).silent);
}

#[test]
fn coded_films_meet_loudness_peak_length_and_place() {
    let dir = tempfile::tempdir().unwrap();
    let loud: Vec<f32> = music(12).iter().map(|value| value * 6.0).collect();
    for (name, samples) in [("music", music(12)), ("loud", loud), ("speech", speech(12))] {
        // Not a whole number of packets.
        let samples = &samples[..samples.len() - 2 * 333];
        let (a, b) = samples.split_at(2 * 200_001);
        let mixes = [
            write(&dir.path().join("a.wav"), a),
            write(&dir.path().join("b.wav"), b),
        ];
        let measured = loudness(&mixes);
        let out = dir.path().join(format!("{name}.m4a"));
        let report = encode(&mixes, measured.gain_db, &out, AAC);
        assert!(
            (report.coded_lufs + 16.0).abs() < 0.5,
            "{name}: {measured:?} {report:?}"
        );
        assert!(report.coded_true_peak_dbtp < -1.0, "{name}: {report:?}");
        let mut reader = SoundReader::open(&out, RATE).unwrap();
        let got = left(&read_all(&mut reader));
        assert_eq!(got.len(), samples.len() / 2, "{name}");
        let right = left(samples);
        let (shift, alike) = alignment(&right[..100_000], &got[..100_000], 40);
        assert!(
            shift == 0 && alike > 0.9,
            "{name}: shifted {shift}, {alike:.3}"
        );
        let tail = right.len() - 50_000;
        let (shift, _) = alignment(&right[tail..], &got[tail..], 40);
        assert_eq!(shift, 0, "{name}: the end is shifted");
    }
}

#[test]
fn peaks_that_ask_for_it_are_coded_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = Noise(77);
    let harsh = both_stateful(4 * RATE as usize, |_| 4.0 * noise.next());
    let mixes = [write(&dir.path().join("n.wav"), &harsh)];
    let options = EncodeOptions {
        format: SoundFormat::Aac {
            bitrate_bps: 64_000,
        },
    };
    let out = dir.path().join("n.m4a");
    let cancel = CancelToken::new();
    let limiter = Limiter {
        ceiling_dbtp: -1.0,
        max_dbtp: -1.0,
    };
    let report = encode_film(&mixes, 0.0, &limiter, &out, &options, &cancel, &NoProgress).unwrap();
    assert!(report.passes > 1, "{report:?}");
    assert!(report.coded_true_peak_dbtp < -1.0, "{report:?}");
    assert!(report.max_reduction_db > 6.0, "{report:?}");
}

#[test]
fn lossless_exports_are_the_film_to_24_bits() {
    let dir = tempfile::tempdir().unwrap();
    let samples = tone(440.0, 0.5, 100_001);
    let mixes = [write(&dir.path().join("a.wav"), &samples)];
    for (format, name) in [(SoundFormat::Flac, "x.flac"), (SoundFormat::Wav, "x.wav")] {
        let out = dir.path().join(name);
        let report = encode(&mixes, 0.0, &out, format);
        assert_eq!(
            (report.passes, report.max_reduction_db),
            (1, 0.0),
            "{report:?}"
        );
        let got = read_all(&mut SoundReader::open(&out, RATE).unwrap());
        assert_eq!(got.len(), samples.len(), "{name}");
        let worst = got
            .iter()
            .zip(&samples)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(worst < 2e-7, "{name}: off by {worst}");
    }
}

#[test]
fn the_same_film_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mixes = [write(&dir.path().join("a.wav"), &music(3))];
    for format in [AAC, SoundFormat::Flac, SoundFormat::Wav] {
        let [a, b] = ["one", "two"].map(|name| {
            let out = dir.path().join(name);
            encode(&mixes, 3.0, &out, format);
            std::fs::read(&out).unwrap()
        });
        assert!(a == b, "{format:?}: two runs differ");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}

#[test]
fn stops_and_bad_places_leave_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let mixes = [write(&dir.path().join("a.wav"), &music(10))];
    let out = dir.path().join("film.m4a");
    std::fs::write(&out, b"old").unwrap();
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let sink = move |event: ProgressEvent| {
        if event.step > 100_000 {
            stop.cancel();
        }
    };
    let options = EncodeOptions::default();
    let limiter = Limiter::default();
    let error = encode_film(&mixes, 0.0, &limiter, &out, &options, &cancel, &sink).unwrap_err();
    assert!(matches!(error, MediaError::Cancelled), "{error}");
    assert_eq!(std::fs::read(&out).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);

    let fresh = CancelToken::new();
    let nowhere = dir.path().join("no-folder/film.m4a");
    let error = encode_film(
        &mixes,
        0.0,
        &limiter,
        &nowhere,
        &options,
        &fresh,
        &NoProgress,
    )
    .unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(error.to_string().contains("no-folder"), "{error}");

    let error = encode_film(&[], 0.0, &limiter, &out, &options, &fresh, &NoProgress).unwrap_err();
    assert!(matches!(error, MediaError::BadRequest(_)), "{error}");
    let error = encode_film(
        &mixes,
        f64::NAN,
        &limiter,
        &out,
        &options,
        &fresh,
        &NoProgress,
    )
    .unwrap_err();
    assert!(matches!(error, MediaError::BadRequest(_)), "{error}");
    let raw = dir.path().join("raw.wav");
    std::fs::write(&raw, b"RIFF").unwrap();
    let error = measure(&[raw], &fresh, &NoProgress).unwrap_err();
    assert!(matches!(error, MediaError::BadFile { .. }), "{error}");
}
