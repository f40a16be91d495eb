//! Reading files: lengths, places, rates, damage.

use engine_base::{CancelToken, Code, NoProgress};
use flow_media::MediaError;
use flow_media::sound::{
    EncodeOptions, Limiter, SoundFormat, SoundReader, convert, encode_film, waveform,
};

use crate::support::{
    Noise, RATE, alignment, both, case, file, left, read_all, read_wave, sweep, write,
};

const SWEEPS: [&str; 8] = [
    "sweep.mp3",
    "sweep.ogg",
    "sweep.opus",
    "sweep.m4a",
    "sweep.flac",
    "sweep-u8.wav",
    "sweep.webm",
    "film.mp4",
];

#[test]
fn every_format_has_its_length_and_place() {
    for name in SWEEPS {
        let mut reader = SoundReader::open(&file(name), RATE).unwrap();
        let got = read_all(&mut reader);
        assert_eq!(reader.samples().unwrap(), 96_000, "{name}: length");
        assert_eq!(got.len(), 192_000, "{name}: samples read");
        assert!(
            got.chunks_exact(2).all(|pair| pair[0] == pair[1]),
            "{name}: mono on both sides"
        );
        let (shift, alike) = alignment(&sweep(RATE)[..48_000], &left(&got)[..48_000], 20);
        assert!(
            shift.abs() <= 1 && alike > 0.98,
            "{name}: shifted by {shift} samples, alike {alike:.4}"
        );
        assert_eq!(reader.notes(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn rate_conversion_of_a_file_is_clean() {
    let mut reader = SoundReader::open(&file("sweep.flac"), RATE).unwrap();
    let got = left(&read_all(&mut reader));
    let right = sweep(RATE);
    let (mut signal, mut error) = (0.0, 0.0);
    for n in 500..95_500 {
        signal += f64::from(right[n]).powi(2);
        error += f64::from(right[n] - got[n]).powi(2);
    }
    let snr = 10.0 * (signal / error).log10();
    // The file has 16 bits: about 92 dB for this level before the conversion.
    assert!(snr > 88.0, "{snr:.1} dB");
}

#[test]
fn any_order_of_reads_gives_the_same_bits() {
    for name in SWEEPS {
        let whole = read_all(&mut SoundReader::open(&file(name), RATE).unwrap());
        let mut reader = SoundReader::open(&file(name), RATE).unwrap();
        let mut places = Noise(7);
        for _ in 0..12 {
            let at = places.below(96_000);
            let mut got = vec![0.0; 2 * (1 + places.below(3_000))];
            let there = reader.read_at(at as i64, &mut got).unwrap();
            let end = (at * 2 + got.len()).min(whole.len());
            assert_eq!(there, (end - at * 2) / 2, "{name} at {at}");
            assert_eq!(got[..there * 2], whole[at * 2..end], "{name} at {at}");
            assert!(got[there * 2..].iter().all(|value| *value == 0.0));
        }
    }
}

#[test]
fn long_lossless_files_are_entered_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = Noise(3);
    let samples = both(RATE as usize * 40, |n| {
        0.4 * (n as f64 * 0.01 + (n as f64 * 1e-4).sin() * 20.0).sin()
    })
    .iter()
    .map(|value| value + 0.05 * noise.next() as f32)
    .collect::<Vec<f32>>();
    let wav = write(&dir.path().join("long.wav"), &samples);
    let flac = dir.path().join("long.flac");
    encode_film(
        std::slice::from_ref(&wav),
        0.0,
        &Limiter::default(),
        &flac,
        &EncodeOptions {
            format: SoundFormat::Flac,
        },
        &CancelToken::new(),
        &NoProgress,
    )
    .unwrap();
    for path in [wav, flac] {
        for rate in [RATE, 44_100] {
            let whole = read_all(&mut SoundReader::open(&path, rate).unwrap());
            let mut reader = SoundReader::open(&path, rate).unwrap();
            assert_eq!(reader.samples().unwrap(), whole.len() as i64 / 2);
            let mut places = Noise(11);
            for _ in 0..12 {
                let at = places.below(whole.len() / 2 - 1_000);
                let mut got = vec![0.0; 2_000];
                reader.read_at(at as i64, &mut got).unwrap();
                assert_eq!(got, whole[at * 2..][..2_000], "{path:?} at {at}");
            }
        }
    }
}

#[test]
fn converted_files_read_as_their_sources() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("sweep.wav");
    let source = file("sweep.mp3");
    let converted = convert(&source, RATE, &out, &CancelToken::new(), &NoProgress).unwrap();
    assert_eq!(converted.samples, 96_000);
    let right = read_all(&mut SoundReader::open(&source, RATE).unwrap());
    assert_eq!(read_wave(&out), right);
    assert_eq!(read_all(&mut SoundReader::open(&out, RATE).unwrap()), right);
}

#[test]
fn surround_is_folded_by_the_usual_shares() {
    let mut reader = SoundReader::open(&file("surround.flac"), RATE).unwrap();
    let mut got = [0.0; 2];
    reader.read_at(4_000, &mut got).unwrap();
    let half = std::f32::consts::FRAC_1_SQRT_2;
    let right = [0.10 + half * (0.30 + 0.04), 0.20 + half * (0.30 + 0.06)];
    for (got, right) in got.iter().zip(right) {
        assert!((got - right).abs() < 1e-3, "got {got}, expected {right}");
    }
}

#[test]
fn places_before_and_after_the_source_are_silent() {
    let mut reader = SoundReader::open(&file("sweep.flac"), RATE).unwrap();
    let mut got = vec![1.0; 400];
    assert_eq!(reader.read_at(-100, &mut got).unwrap(), 200);
    assert!(got[..200].iter().all(|value| *value == 0.0));
    assert!(got[210..].iter().any(|value| *value != 0.0));
    for far in [96_000, 1 << 40, i64::MAX, i64::MIN] {
        got.fill(1.0);
        reader.read_at(far, &mut got).unwrap();
        assert!(got.iter().all(|value| *value == 0.0), "at {far}");
    }
}

/// av-02: sound and picture keep their offsets.
#[test]
fn offsets_between_sound_and_picture_are_kept() {
    let first_loud = |name: &str| {
        let mut reader = SoundReader::open(&case(name), RATE).unwrap();
        let all = read_all(&mut reader);
        let peak = all.iter().fold(0.0f32, |peak, value| peak.max(value.abs()));
        let first = all
            .iter()
            .position(|value| value.abs() > peak * 0.3)
            .unwrap();
        (
            first as f64 / 2.0 / f64::from(RATE),
            all.len() as f64 / 2.0 / f64::from(RATE),
        )
    };
    let (first, _) = first_loud("av-02/audio-late-300ms.mkv");
    assert!(
        (first - 0.300).abs() < 0.005,
        "sound starts at {first:.4} s"
    );
    let (first, len) = first_loud("av-02/video-late-854ms.mp4");
    assert!(first < 0.005, "sound starts at {first:.4} s");
    assert!((len - 2.86).abs() < 0.001, "{len} s");
    let (_, len) = first_loud("av-02/starts-at-one-hour.ts");
    assert!((len - 2.9).abs() < 0.03, "{len} s");
}

/// av-03: the ticks of the phone's video are at 0, 1, 2 and 3 s.
#[test]
fn ticks_of_a_phone_video_are_where_they_were() {
    let mut reader = SoundReader::open(&case("av-03/phone-vfr-rot90.mp4"), RATE).unwrap();
    let all = left(&read_all(&mut reader));
    assert_eq!(all.len(), 192_000);
    for second in 0..4usize {
        let from = (second * 48_000).saturating_sub(24_000);
        let part = &all[from..(second * 48_000 + 24_000).min(all.len())];
        let peak = part
            .iter()
            .fold(0.0f32, |peak, value| peak.max(value.abs()));
        let first = from + part.iter().position(|v| v.abs() > peak * 0.3).unwrap();
        let off = (first as f64 - second as f64 * 48_000.0) / 48_000.0;
        assert!(off.abs() < 0.01, "tick {second} is off by {off:.4} s");
    }
}

/// av-06: unfinished files are named as such; a cut fragmented one gives what is there.
#[test]
fn unfinished_and_cut_files_say_so() {
    for name in ["av-06/no-moov.mp4", "av-06/cut-in-mdat.mp4"] {
        let error = SoundReader::open(&case(name), RATE).unwrap_err();
        assert_eq!(error.code(), Code::BadInput);
        let text = error.to_string();
        assert!(text.contains("not finished when written"), "{text}");
        assert!(text.contains(name), "{text}");
    }
    let mut reader = SoundReader::open(&case("av-06/fragmented-cut.mp4"), RATE).unwrap();
    let samples = reader.samples().unwrap();
    assert!(samples > 48_000, "only {samples} samples");
    let notes = reader.notes();
    assert!(!notes.is_empty(), "{samples} samples and no note");
}

#[test]
fn cut_files_give_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["sweep.mp3", "sweep.flac", "sweep-u8.wav"] {
        let whole = std::fs::read(file(name)).unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, &whole[..whole.len() * 6 / 10]).unwrap();
        let mut reader = SoundReader::open(&path, RATE).unwrap();
        let all = left(&read_all(&mut reader));
        assert!(
            all.len() > 40_000 && all.len() < 80_000,
            "{name}: {} samples",
            all.len()
        );
        let (shift, alike) = alignment(&sweep(RATE)[..36_000], &all[..36_000], 20);
        assert!(shift.abs() <= 1 && alike > 0.98, "{name}: {shift} {alike}");
        // FFmpeg takes a wave file's length from what is there.
        if name != "sweep-u8.wav" {
            let notes = reader.notes();
            assert!(
                notes.iter().any(|note| note.contains("the end is missing")),
                "{name}: {notes:?}"
            );
        }
    }
}

#[test]
fn what_is_no_sound_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty.wav");
    std::fs::write(&empty, b"").unwrap();
    let text = dir.path().join("text.mp3");
    std::fs::write(&text, "no sound at all, only words\n".repeat(50)).unwrap();
    let list = dir.path().join("list.m3u8");
    std::fs::write(&list, "#EXTM3U\n#EXTINF:2,\nfile:///etc/passwd\n").unwrap();
    for (path, part) in [
        (empty, "0 bytes"),
        (text, "expected a sound or video file"),
        (list, "expected a sound or video file"),
        (file("silent-film.mp4"), "has no sound"),
        (dir.path().to_path_buf(), "is a folder"),
    ] {
        let error = SoundReader::open(&path, RATE).unwrap_err();
        assert_eq!(error.code(), Code::BadInput, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = SoundReader::open(&dir.path().join("none.wav"), RATE).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    let error = SoundReader::open(&file("sweep.flac"), 1).unwrap_err();
    assert!(matches!(error, MediaError::BadRequest(_)), "{error}");
}

#[test]
fn a_stop_ends_a_read() {
    let cancel = CancelToken::new();
    let mut reader = SoundReader::open_with(&file("sweep.mp3"), RATE, &cancel).unwrap();
    cancel.cancel();
    assert!(matches!(reader.samples(), Err(MediaError::Cancelled)));
}

#[test]
fn damaged_files_never_panic_and_stay_bounded() {
    let dir = tempfile::tempdir().unwrap();
    for name in SWEEPS.into_iter().chain(["surround.flac"]) {
        let whole = std::fs::read(file(name)).unwrap();
        let mut noise = Noise(whole.len() as u64);
        let path = dir.path().join(name);
        for round in 0..24 {
            let mut bytes = whole.clone();
            if round % 4 == 0 {
                bytes.truncate(noise.below(whole.len()));
            }
            // Half of the changes go to the head, where the sizes are.
            let reach = if round % 2 == 0 { 512 } else { bytes.len() };
            for _ in 0..1 + noise.below(12) {
                let at = noise.below(reach.min(bytes.len()).max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = noise.below(256) as u8;
                }
            }
            std::fs::write(&path, &bytes).unwrap();
            let Ok(mut reader) = SoundReader::open(&path, RATE) else {
                continue;
            };
            let mut block = vec![0.0; 2 * 48_000];
            let mut at = 0i64;
            // A damaged length may claim hours of silence; a minute of it is enough here.
            while at < 60 * 48_000 {
                let there = reader.read_at(at, &mut block).unwrap();
                assert!(block.iter().all(|value| value.is_finite()), "{name}");
                at += 48_000;
                if there < 48_000 {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_waveform_shows_where_it_is_loud() {
    let dir = tempfile::tempdir().unwrap();
    let samples = both(96_001, |n| match n {
        0..24_000 => 0.0,
        24_000..48_000 => 0.5,
        48_000..72_000 => -0.25,
        _ => 0.0,
    });
    let path = write(&dir.path().join("a.wav"), &samples);
    let cancel = CancelToken::new();
    let bars = waveform(&path, 8, &cancel).unwrap();
    let seen: Vec<_> = bars.iter().map(|bar| (bar.min, bar.max)).collect();
    assert_eq!(seen[1], (0.0, 0.0));
    assert_eq!(seen[3], (0.5, 0.5));
    assert_eq!(seen[5], (-0.25, -0.25));
    assert!((bars[3].rms - 0.5).abs() < 1e-6 && bars[7].rms == 0.0);
    let error = waveform(&path, 0, &cancel).unwrap_err();
    assert!(matches!(error, MediaError::BadRequest(_)), "{error}");
    let tiny = write(&dir.path().join("b.wav"), &[0.5; 6]);
    assert_eq!(waveform(&tiny, 10, &cancel).unwrap().len(), 10);
}
