//! Stills through `longtake upscale`: every type, depth and shape that is read comes out twice as
//! large and looks the same; what is not read is refused by name. Needs the upscaler that
//! `cargo xtask setup` fetches.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flow_media::still::{SavePicture, SaveSamples, StillOptions, load_still, save_still};
use flow_media::{Picture, Pixels};
use longtake_tests::film::{Ran, ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

fn upscale(from: &Path, to: &Path) -> Ran {
    let mut command = Command::new(PROGRAM);
    command.args(["upscale", "--json"]).arg(from).arg(to);
    ran(&mut command).unwrap()
}

fn read(path: &Path) -> Picture {
    load_still(path, &StillOptions::default()).unwrap()
}

/// Most that a pixel of a slope differs: the network's own doing, 12 as measured.
const SLOPES_MOST: u32 = 14;

/// Largest difference of 255 between a picture and the means of the larger one's blocks of 2 x 2.
fn worst_difference(small: &Picture, large: &Picture) -> u32 {
    let mut worst = 0;
    for y in 0..small.height_px {
        for x in 0..small.width_px {
            let blocks = [(0, 0), (1, 0), (0, 1), (1, 1)]
                .map(|(right, down)| large.at(2 * x + right, 2 * y + down).unwrap());
            let here = small.at(x, y).unwrap();
            for channel in 0..4 {
                let sum: u32 = blocks.iter().map(|block| u32::from(block[channel])).sum();
                worst = worst.max((sum / 4).abs_diff(u32::from(here[channel])) / 257);
            }
        }
    }
    worst
}

/// A picture of slopes, with `channels` of 16 bits.
fn slopes(width_px: u32, height_px: u32, channels: u32) -> Vec<u16> {
    let mut values = Vec::new();
    for y in 0..height_px {
        for x in 0..width_px {
            for channel in 0..channels {
                let value = 9000 + 300 * x * (channel + 1) + 500 * y;
                values.push(value.min(60_000) as u16);
            }
        }
    }
    values
}

fn save(path: &Path, width_px: u32, height_px: u32, channels: u8, wide: bool) {
    let values = slopes(width_px, height_px, u32::from(channels));
    let narrow: Vec<u8> = values.iter().map(|value| (value >> 8) as u8).collect();
    let samples = if wide {
        SaveSamples::U16(&values)
    } else {
        SaveSamples::U8(&narrow)
    };
    let picture = SavePicture {
        width_px,
        height_px,
        channels,
        samples,
    };
    save_still(&picture, path).unwrap();
}

#[test]
fn every_type_depth_and_shape_comes_out_twice_as_large_and_looks_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str| folder.path().join(name);
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    // Name, width, height, channels, 16 bits.
    let drawn = [
        ("one.png", 1, 1, 3, false),
        ("column.png", 1, 500, 3, false),
        ("row.jpg", 500, 1, 3, false),
        ("grey-alpha-16.png", 24, 18, 2, true),
        ("grey-16.tiff", 24, 18, 1, true),
        ("rgba-16.png", 24, 18, 4, true),
        ("rgba.webp", 24, 18, 4, false),
        ("grey.jpg", 24, 18, 1, false),
        ("rgb.tif", 24, 18, 3, false),
    ];
    let mut files: Vec<(PathBuf, bool, u32)> = Vec::new();
    for (name, width_px, height_px, channels, wide) in drawn {
        save(&made(name), width_px, height_px, channels, wide);
        files.push((made(name), wide, SLOPES_MOST));
    }
    for name in ["cmyk-adobe.jpg", "cmyk-adobe-progressive.jpg"] {
        // An edge of full contrast, off the grid of the halves.
        files.push((cases.join("stills").join(name), false, 60));
    }
    let mut wrong = Vec::new();
    for (from, wide, most) in files {
        let to = made("large.png");
        let told = upscale(&from, &to);
        assert!(
            told.status.success(),
            "is the upscaler here (`cargo xtask setup`)? {told:?}"
        );
        let (small, large) = (read(&from), read(&to));
        let size = (2 * small.width_px, 2 * small.height_px);
        assert_eq!((large.width_px, large.height_px), size, "{from:?}");
        let json = told.json();
        assert_eq!(
            (&json["width_px"], &json["height_px"]),
            (&size.0.into(), &size.1.into())
        );
        assert_eq!(matches!(large.pixels, Pixels::Rgba16(_)), wide, "{from:?}");
        let worst = worst_difference(&small, &large);
        let line = format!("{:?}: {worst} of 255", from.file_name().unwrap());
        println!("{line}");
        if worst > most {
            wrong.push(line);
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn what_is_no_picture_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str| folder.path().join(name);
    save(&made("good.png"), 40, 30, 3, false);
    let good = fs::read(made("good.png")).unwrap();
    let mut huge = good.clone();
    huge[16..24].copy_from_slice(&[0, 9, 0, 0, 0, 9, 0, 0]);
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty.png", b"", "empty"),
        ("text.png", b"no picture at all", "PNG"),
        ("moving.gif", b"GIF89a\x01\0\x01\0\0\0\0;", "GIF"),
        ("old.bmp", b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", "BMP"),
        ("half.png", &good[..60], "half.png"),
        ("huge.png", &huge, "huge.png"),
    ];
    let to = made("large.png");
    for (name, bytes, part) in cases {
        fs::write(made(name), bytes).unwrap();
        let told = upscale(&made(name), &to);
        let code = told.status.code();
        assert!(matches!(code, Some(3..=6)), "{name}: {told:?}");
        assert!(
            told.err.contains(part) && told.err.contains(name),
            "{told:?}"
        );
        assert!(!to.exists(), "{name}");
    }
    // The result never takes the picture's own place, and other types are not written.
    let told = upscale(&made("good.png"), &made("good.png"));
    assert!(
        !told.status.success() && told.err.contains("replace"),
        "{told:?}"
    );
    let told = upscale(&made("good.png"), &made("large.gif"));
    assert!(
        !told.status.success() && told.err.contains(".webp"),
        "{told:?}"
    );
    assert_eq!(fs::read(made("good.png")).unwrap(), good);
}
