//! Probes of the reported cases and of clips made here.

use std::path::PathBuf;

use ffmpeg_next::format::Pixel;

use super::*;
use crate::video::clips::{Clip, make, number};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/cases")
        .join(name)
}

fn secs(value: Rational) -> f64 {
    value.as_f64()
}

#[test]
fn offsets_between_picture_and_sound_are_told() {
    let late = probe(&case("av-02/video-late-854ms.mp4")).unwrap();
    // The picture comes 0.854 s after the sound, within a frame of 1/25 s.
    assert!(
        (secs(late.audio[0].start_secs) + 0.854).abs() <= 0.04,
        "{late:?}"
    );
    assert!((secs(late.video[0].duration_secs) - 2.0).abs() < 1e-6);
    // The file does not mark the 1024 samples of AAC delay: they are silence before 0.300 s.
    let late = probe(&case("av-02/audio-late-300ms.mkv")).unwrap();
    assert!(
        (secs(late.audio[0].start_secs) + 1024.0 / 48000.0 - 0.3).abs() <= 0.001,
        "{late:?}"
    );
    let hour = probe(&case("av-02/starts-at-one-hour.ts")).unwrap();
    assert_eq!(hour.start_secs, Rational::whole(3600));
    assert!(
        (secs(hour.video[0].duration_secs) - 2.0).abs() < 1e-6,
        "{hour:?}"
    );
    assert!(secs(hour.audio[0].start_secs).abs() < 0.03, "{hour:?}");
    let length = secs(hour.duration_secs.unwrap());
    assert!((length - 2.88).abs() < 0.05, "{length}");
}

#[test]
fn phone_clip_is_variable_and_turned() {
    let phone = probe(&case("av-03/phone-vfr-rot90.mp4")).unwrap();
    let video = &phone.video[0];
    assert_eq!((video.width_px, video.height_px), (192, 108));
    assert_eq!(
        (video.display_width_px, video.display_height_px),
        (108, 192)
    );
    assert_eq!(video.orientation, 8);
    assert!(video.is_vfr);
    assert_eq!(video.frames, Some(86));
    assert!((secs(video.average_fps.unwrap()) - 86.0 / 3.983_333).abs() < 0.01);
    assert_eq!(video.largest_fps, Some(Rational::whole(60)));
    assert_eq!(video.suggested_fps, Rational::whole(24));
    assert!((secs(phone.duration_secs.unwrap()) - 4.0).abs() <= 1.0 / 60.0);
    assert!(
        phone
            .notes
            .iter()
            .any(|note| note.contains("variable frame rate")),
        "{phone:?}"
    );
    let audio = &phone.audio[0];
    assert_eq!((audio.sample_rate_hz, audio.channels), (44_100, 1));
    assert!(secs(audio.start_secs).abs() < 0.001, "{audio:?}");
}

#[test]
fn unfinished_files_are_named_as_such() {
    for name in ["av-06/no-moov.mp4", "av-06/cut-in-mdat.mp4"] {
        let error = probe(&case(name)).unwrap_err();
        assert!(matches!(error, MediaError::BadFile { .. }));
        let text = error.to_string();
        assert!(
            text.contains("not finished when it was written: it has no index"),
            "{text}"
        );
    }
    let cut = probe(&case("av-06/fragmented-cut.mp4")).unwrap();
    assert!(cut.is_cut);
    assert!(
        cut.notes[0].contains("the end is missing"),
        "{:?}",
        cut.notes
    );
    assert_eq!(cut.video[0].codec, "h264");
    assert_eq!(cut.video[0].suggested_fps, Rational::whole(25));
}

#[test]
fn streams_are_described() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.mkv");
    let clip = Clip {
        codec: "ffv1",
        pixel: Pixel::YUV422P10LE,
        hz: 24000,
        times: (0..24).map(|n| n * 1001).collect(),
        options: &[],
        tags: [9, 9, 16, 1],
        sample_aspect: (4, 3),
        ..Clip::default()
    };
    make(&path, &clip, |picture, _| {
        for plane in 0..3 {
            for pair in picture.data_mut(plane).chunks_exact_mut(2) {
                pair.copy_from_slice(&500u16.to_le_bytes());
            }
        }
    });
    let got = probe(&path).unwrap();
    let video = &got.video[0];
    assert_eq!((video.codec.as_str(), video.bit_depth), ("ffv1", 10));
    assert_eq!(video.pixel_format, "yuv422p10le");
    assert_eq!(video.sample_aspect, Rational::new(4, 3).unwrap());
    assert_eq!(video.suggested_fps, Rational::new(24000, 1001).unwrap());
    assert!(!video.is_vfr && video.colour.is_hdr);
    assert_eq!(video.colour.transfer.as_deref(), Some("smpte2084"));
    assert_eq!(video.colour.matrix.as_deref(), Some("bt2020nc"));
    assert_eq!(video.colour.range.as_deref(), Some("tv"));
    assert_eq!((video.display_width_px, video.display_height_px), (171, 48));
    let text = serde_json::to_string(&got).unwrap();
    assert_eq!(serde_json::from_str::<Probe>(&text).unwrap(), got);
}

#[test]
fn cut_matroska_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.mkv");
    make(&path, &Clip::default(), number);
    assert!(!probe(&path).unwrap().is_cut);
    let bytes = std::fs::read(&path).unwrap();
    let cut = folder.path().join("cut.mkv");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let got = probe(&cut).unwrap();
    assert!(got.is_cut);
    let length = secs(got.video[0].duration_secs);
    assert!((0.2..1.6).contains(&length), "{length}");
}
