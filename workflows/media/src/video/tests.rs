//! Clips are made here by FFmpeg's encoders, or lie under `tests/cases`.

use std::path::PathBuf;

use ffmpeg_next::format::Pixel;

use super::clips::{Clip, HEIGHT, WIDTH, drawn, make, number};
use super::*;
use crate::Pixels;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/cases")
        .join(name)
}

fn open(path: &Path, fps: i64) -> VideoFrames {
    VideoFrames::open(path, Rational::whole(fps), &VideoOptions::default()).unwrap()
}

fn assert_send<T: Send>(_: &T) {}

const OPEN_GOP: &[(&str, &str)] = &[
    ("preset", "veryfast"),
    ("g", "12"),
    ("bf", "3"),
    ("x264-params", "open-gop=1:scenecut=0:b-adapt=0"),
];

#[test]
fn every_container_gives_the_same_frames_in_order_and_by_seek() {
    let folder = tempfile::tempdir().unwrap();
    for (name, options) in [
        ("a.mp4", Clip::default().options),
        ("b.mkv", OPEN_GOP),
        ("c.ts", OPEN_GOP),
        ("d.mov", OPEN_GOP),
    ] {
        let path = folder.path().join(name);
        let clip = Clip {
            times: (0..200).collect(),
            options,
            ..Clip::default()
        };
        make(&path, &clip, number);
        let mut frames = open(&path, 25);
        assert_send(&frames);
        assert_eq!(frames.frames(), 200, "{name}");
        let mut in_order = Vec::new();
        for n in 0..200 {
            let picture = frames.frame(n).unwrap();
            assert_eq!(drawn(&picture), n as usize, "{name}");
            in_order.push(picture);
        }
        assert_eq!(frames.seeks(), 0, "{name}: reading in order must not seek");
        for n in [150i64, 20, 199, 0, 75, 74, 190, 3, 130, 131, 61, 1] {
            let picture = frames.frame(n).unwrap();
            assert_eq!(drawn(&picture), n as usize, "{name} by seek");
            assert_eq!(picture, in_order[n as usize], "{name} by seek, frame {n}");
        }
        assert!(frames.seeks() >= 6, "{name}: {}", frames.seeks());
        assert_eq!(
            drawn(&frames.frame(5000).unwrap()),
            199,
            "{name}: held past the end"
        );
        let seeks = frames.seeks();
        assert_eq!(drawn(&frames.frame(0).unwrap()), 0);
        assert_eq!(
            drawn(&frames.frame(9000).unwrap()),
            199,
            "{name}: held past the end"
        );
        assert_eq!(
            frames.seeks(),
            seeks + 2,
            "{name}: the end is reached by a seek"
        );
        assert_eq!(frames.notes(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn other_rates_hold_and_drop_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thirty.mkv");
    let clip = Clip {
        hz: 30,
        times: (0..90).collect(),
        ..Clip::default()
    };
    make(&path, &clip, number);
    for fps in [24i64, 25, 30, 60] {
        let mut frames = open(&path, fps);
        assert_eq!(frames.frames(), 3 * fps, "{fps}");
        for n in 0..frames.frames() {
            let expected = n * 30 / fps;
            assert_eq!(
                drawn(&frames.frame(n).unwrap()),
                expected as usize,
                "{n} at {fps}"
            );
        }
        assert_eq!(frames.seeks(), 0);
    }
    // 23.976 in a container that counts milliseconds: each frame once, no repeats.
    let path = folder.path().join("film.mkv");
    let clip = Clip {
        hz: 24000,
        times: (0..120).map(|n| n * 1001).collect(),
        ..Clip::default()
    };
    make(&path, &clip, number);
    let fps = Rational::new(24000, 1001).unwrap();
    let mut frames = VideoFrames::open(&path, fps, &VideoOptions::default()).unwrap();
    assert_eq!(frames.frames(), 120);
    for n in 0..120 {
        assert_eq!(drawn(&frames.frame(n).unwrap()), n as usize);
    }
}

#[test]
fn clips_start_at_their_first_picture() {
    // av-02: one hour on the clock; two seconds at 25, so 1 s is frame 25.
    let mut frames = open(&case("av-02/starts-at-one-hour.ts"), 25);
    assert_eq!(frames.frames(), 50);
    let all: Vec<_> = (0..50).map(|n| frames.frame(n).unwrap()).collect();
    for n in [25i64, 3, 49, 0] {
        assert_eq!(
            frames.frame(n).unwrap(),
            all[n as usize],
            "frame {n} by seek"
        );
    }
    assert_ne!(all[24], all[25]);
    for name in ["av-02/video-late-854ms.mp4", "av-02/audio-late-300ms.mkv"] {
        let mut late = open(&case(name), 25);
        assert_eq!(late.frames(), 50, "{name}");
        let Pixels::Rgba8(first) = &late.frame(25).unwrap().pixels else {
            panic!("expected 8 bits")
        };
        // The same programme in another container: coded apart, so only nearly equal.
        let Pixels::Rgba8(other) = &all[25].pixels else {
            panic!("expected 8 bits")
        };
        let off: u64 = first
            .iter()
            .zip(other)
            .map(|(a, b)| u64::from(a.abs_diff(*b)))
            .sum();
        assert!(off / (first.len() as u64) < 4, "{name}: {off}");
    }
}

#[test]
fn phone_clip_is_upright_and_keeps_its_time() {
    // av-03: 192 x 108 turned, variable rate, gap from 2.0 to 3.5 s.
    let mut frames = open(&case("av-03/phone-vfr-rot90.mp4"), 24);
    assert_eq!(frames.size_px(), (108, 192));
    assert_eq!(frames.frames(), 96);
    let all: Vec<_> = (0..96).map(|n| frames.frame(n).unwrap()).collect();
    assert_eq!((all[0].width_px, all[0].height_px), (108, 192));
    let Pixels::Rgba8(held) = &all[50].pixels else {
        panic!("expected 8 bits")
    };
    for (n, picture) in all.iter().enumerate().take(84).skip(50) {
        assert_eq!(
            picture.pixels,
            Pixels::Rgba8(held.clone()),
            "gap, frame {n}"
        );
    }
    // White band on top, black at the bottom, as the matrix says.
    assert!(all[0].at(10, 5).unwrap()[0] > 60_000 && all[0].at(10, 185).unwrap()[0] < 5_000);
    // The seconds are drawn in a box; frames of one second show one number.
    let box_differs = |a: usize, b: usize| {
        let mut off = 0u32;
        for (x, y) in (41..66).flat_map(|x| (32..48).map(move |y| (x, y))) {
            let (a, b) = (all[a].at(x, y).unwrap()[1], all[b].at(x, y).unwrap()[1]);
            off += u32::from(a.abs_diff(b) > 25_000);
        }
        off > 8
    };
    let of_second: [(usize, std::ops::Range<usize>); 3] = [(12, 3..22), (36, 27..46), (90, 87..94)];
    for (shown, range) in &of_second {
        for n in range.clone() {
            assert!(
                !box_differs(*shown, n),
                "frame {n} shows another second than {shown}"
            );
        }
    }
    assert!(box_differs(12, 36) && box_differs(36, 90) && box_differs(12, 60));
    assert!(box_differs(36, 60) && box_differs(60, 90));
    assert_ne!(all[50], all[86]);
    for n in [90i64, 10, 60, 30] {
        assert_eq!(
            frames.frame(n).unwrap(),
            all[n as usize],
            "frame {n} by seek"
        );
    }
}

#[test]
fn what_is_left_of_a_cut_file_is_shown() {
    let mut frames = open(&case("av-06/fragmented-cut.mp4"), 25);
    assert!(frames.frames() > 40, "{}", frames.frames());
    assert!(frames.frames() < 110, "{}", frames.frames());
    let last = frames.frames() - 1;
    frames.frame(last).unwrap();
    assert!(
        frames.notes()[0].contains("the end is missing"),
        "{:?}",
        frames.notes()
    );
    for name in ["av-06/no-moov.mp4", "av-06/cut-in-mdat.mp4"] {
        let error = VideoFrames::open(&case(name), Rational::whole(25), &VideoOptions::default())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("not finished when it was written"),
            "{error}"
        );
    }
    // Index in front, media data cut: the frames that are there.
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.mp4");
    let clip = Clip {
        times: (0..100).collect(),
        muxer: &[("movflags", "faststart")],
        ..Clip::default()
    };
    make(&whole, &clip, number);
    let bytes = std::fs::read(&whole).unwrap();
    let cut = folder.path().join("cut.mp4");
    std::fs::write(&cut, &bytes[..bytes.len() * 3 / 5]).unwrap();
    let mut frames = open(&cut, 25);
    assert!((20..80).contains(&frames.frames()), "{}", frames.frames());
    for n in 0..frames.frames() - 3 {
        assert_eq!(drawn(&frames.frame(n).unwrap()), n as usize);
    }
    assert!(frames.notes()[0].contains("the end is missing"));
}

#[test]
fn pixels_are_made_square_and_sides_may_be_odd() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.mkv");
    let clip = Clip {
        codec: "ffv1",
        pixel: Pixel::YUV444P,
        size: (71, 57),
        times: (0..3).collect(),
        options: &[],
        sample_aspect: (64, 45),
        ..Clip::default()
    };
    make(&path, &clip, |picture, _| {
        for plane in 0..3 {
            picture.data_mut(plane).fill(128);
        }
    });
    let mut frames = open(&path, 25);
    assert_eq!(frames.size_px(), (101, 57));
    assert_eq!(frames.frame(0).unwrap().width_px, 101);
    let options = VideoOptions {
        max_side_px: Some(40),
    };
    let mut small = VideoFrames::open(&path, Rational::whole(25), &options).unwrap();
    assert_eq!(small.size_px(), (40, 23));
    let middle = small.frame(0).unwrap().at(20, 11).unwrap();
    assert!((middle[1] >> 8).abs_diff(130) <= 2, "{middle:?}");
}

/// Luma weights of red and blue.
fn exact(yuv: [f64; 3], (kr, kb): (f64, f64), is_full: bool, scale: f64) -> [f64; 3] {
    let [y, cb, cr] = if is_full {
        let most = 256.0 * scale - 1.0;
        let middle = 128.0 * scale;
        [
            yuv[0] / most,
            (yuv[1] - middle) / most,
            (yuv[2] - middle) / most,
        ]
    } else {
        [
            (yuv[0] / scale - 16.0) / 219.0,
            (yuv[1] / scale - 128.0) / 224.0,
            (yuv[2] / scale - 128.0) / 224.0,
        ]
    };
    let r = y + 2.0 * (1.0 - kr) * cr;
    let b = y + 2.0 * (1.0 - kb) * cb;
    let g = (y - kr * r - kb * b) / (1.0 - kr - kb);
    [r, g, b].map(|value| (value * 255.0).round().clamp(0.0, 255.0))
}

#[test]
fn colours_are_within_two_of_an_exact_conversion() {
    let folder = tempfile::tempdir().unwrap();
    let (bt601, bt709, bt2020) = ((0.299, 0.114), (0.2126, 0.0722), (0.2627, 0.0593));
    // Name, tags, size, weights, full range, pixel format.
    let cases = [
        (
            "untagged-sd",
            [2, 2, 2, 0],
            (64, 48),
            bt601,
            false,
            Pixel::YUV420P,
        ),
        (
            "untagged-hd",
            [2, 2, 2, 0],
            (1280, 16),
            bt709,
            false,
            Pixel::YUV420P,
        ),
        (
            "709-limited",
            [1, 1, 1, 1],
            (64, 48),
            bt709,
            false,
            Pixel::YUV420P,
        ),
        (
            "709-full",
            [1, 1, 1, 2],
            (64, 48),
            bt709,
            true,
            Pixel::YUV444P,
        ),
        (
            "601-full",
            [6, 6, 6, 2],
            (64, 48),
            bt601,
            true,
            Pixel::YUV422P,
        ),
        (
            "2020-matrix-10",
            [9, 1, 1, 1],
            (64, 48),
            bt2020,
            false,
            Pixel::YUV420P10LE,
        ),
        (
            "709-limited-10",
            [1, 1, 1, 1],
            (64, 48),
            bt709,
            false,
            Pixel::YUV422P10LE,
        ),
    ];
    let colours: [[u16; 3]; 7] = [
        [16, 128, 128],
        [235, 128, 128],
        [126, 128, 128],
        [81, 90, 200],
        [145, 54, 34],
        [41, 210, 110],
        [180, 100, 150],
    ];
    let mut worst = 0f64;
    for (name, tags, size, weights, is_full, pixel) in cases {
        let deep = matches!(pixel, Pixel::YUV420P10LE | Pixel::YUV422P10LE);
        let scale = if deep { 4 } else { 1 };
        let path = folder.path().join(format!("{name}.mkv"));
        let clip = Clip {
            codec: "ffv1",
            pixel,
            size,
            times: (0..colours.len() as i64).collect(),
            options: &[],
            tags,
            ..Clip::default()
        };
        make(&path, &clip, |picture, i| {
            for (plane, value) in colours[i].iter().enumerate() {
                let value = value * scale;
                if deep {
                    for pair in picture.data_mut(plane).chunks_exact_mut(2) {
                        pair.copy_from_slice(&value.to_le_bytes());
                    }
                } else {
                    picture.data_mut(plane).fill(value as u8);
                }
            }
        });
        let mut frames = open(&path, 25);
        for (i, yuv) in colours.iter().enumerate() {
            let picture = frames.frame(i as i64).unwrap();
            let yuv = yuv.map(|value| f64::from(value * scale));
            let expected = exact(yuv, weights, is_full, f64::from(scale));
            for (x, y) in [(1, 1), (size.0 / 2, size.1 / 2), (size.0 - 1, size.1 - 1)] {
                let got = picture.at(x, y).unwrap();
                for channel in 0..3 {
                    let off = (f64::from(got[channel] >> 8) - expected[channel]).abs();
                    worst = worst.max(off);
                    assert!(
                        off <= 2.0,
                        "{name} {yuv:?}: got {got:?}, expected {expected:?}"
                    );
                }
                assert_eq!(got[3], 65535);
            }
        }
    }
    println!("worst difference from exact conversion: {worst}");
}

#[test]
fn hdr_white_is_bright_and_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    for (transfer, white) in [(16, 0.58f64), (18, 0.75)] {
        let path = folder.path().join(format!("hdr-{transfer}.mkv"));
        let clip = Clip {
            codec: "ffv1",
            pixel: Pixel::YUV420P10LE,
            size: (64, 48),
            times: vec![0, 1, 2],
            options: &[],
            tags: [9, 9, transfer, 1],
            ..Clip::default()
        };
        make(&path, &clip, |picture, i| {
            let luma = 64.0 + 876.0 * [white, white / 2.0, 1.0][i];
            for (plane, value) in [luma.round() as u16, 512, 512].iter().enumerate() {
                for pair in picture.data_mut(plane).chunks_exact_mut(2) {
                    pair.copy_from_slice(&value.to_le_bytes());
                }
            }
        });
        let mut frames = open(&path, 25);
        let level =
            |frames: &mut VideoFrames, n| frames.frame(n).unwrap().at(9, 9).unwrap()[1] >> 8;
        let (white, dim, peak) = (
            level(&mut frames, 0),
            level(&mut frames, 1),
            level(&mut frames, 2),
        );
        assert!((225..250).contains(&white), "diffuse white {white}");
        assert!(dim < 170 && peak >= 254, "{dim} {peak}");
        assert!(frames.notes()[0].contains("HDR"), "{:?}", frames.notes());
    }
}

#[test]
fn refusals_say_what_was_got() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let message = |path: &Path| {
        VideoFrames::open(path, Rational::whole(24), &VideoOptions::default())
            .err()
            .unwrap()
            .to_string()
    };
    assert!(message(&write("a.mp4", b"")).contains("an empty file"));
    assert!(message(&write("b.mp4", b"<html>no</html>")).contains("web page"));
    // A playlist must not be followed.
    let list = write(
        "c.mp4",
        b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\na.ts\n",
    );
    assert!(message(&list).contains("a text file"), "{}", message(&list));
    let still = message(&case("up-01/disc-rgba.png"));
    assert!(still.contains("a PNG picture"), "{still}");
    assert!(message(folder.path()).contains("a folder"));
    let path = folder.path().join("ok.mkv");
    make(&path, &Clip::default(), number);
    let zero = VideoFrames::open(&path, Rational::ZERO, &VideoOptions::default());
    assert!(zero.is_err());
    assert!(open(&path, 25).frame(-1).is_err());
    assert_eq!(open(&path, 25).size_px(), (WIDTH, HEIGHT));
}

#[test]
fn damaged_clips_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for name in ["a.mp4", "b.mkv", "c.ts"] {
        let path = folder.path().join(name);
        let clip = Clip {
            times: (0..25).collect(),
            ..Clip::default()
        };
        make(&path, &clip, number);
        let seed = std::fs::read(&path).unwrap();
        for round in 0..60 {
            let mut bytes = seed.clone();
            for _ in 0..=random() % 6 {
                let at = random() as usize % bytes.len();
                let at = if round % 2 == 0 { at } else { at % 900 };
                bytes[at] = random() as u8;
            }
            if round % 5 == 0 {
                bytes.truncate(random() as usize % bytes.len());
            }
            let broken = folder.path().join(format!("broken-{name}"));
            std::fs::write(&broken, &bytes).unwrap();
            let fps = Rational::whole(25);
            let Ok(mut frames) = VideoFrames::open(&broken, fps, &VideoOptions::default()) else {
                continue;
            };
            for n in [0, 12, 3, 24] {
                if let Ok(picture) = frames.frame(n) {
                    assert_eq!((picture.width_px, picture.height_px), frames.size_px());
                }
            }
        }
    }
}
