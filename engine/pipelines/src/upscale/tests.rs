use std::path::PathBuf;

use engine_base::NoProgress;

use super::*;

fn fixture(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/upscalers");
    root.join(name)
}

fn upscaler(name: &str) -> Upscaler {
    Upscaler::open(&fixture(name), 2).unwrap()
}

fn twice(upscaler: &Upscaler, picture: &Raster) -> Raster {
    let cancel = CancelToken::new();
    upscaler.upscale(picture, 2, &cancel, &NoProgress).unwrap()
}

/// Smooth and sharp parts, the same at any depth.
fn picture(width: u32, height: u32, channels: u8, wide: bool) -> Raster {
    let value = |x: u32, y: u32, channel: u32| {
        let wave = ((x * (3 + channel) + y * 5) as f32 / 9.0).sin() * 0.4 + 0.5;
        let edge = if (x / 7 + y / 5 + channel).is_multiple_of(3) {
            0.3
        } else {
            0.0
        };
        (wave - edge).clamp(0.0, 1.0)
    };
    let mut values = Vec::new();
    for y in 0..height {
        for x in 0..width {
            values.extend((0..u32::from(channels)).map(|channel| value(x, y, channel)));
        }
    }
    let samples = if wide {
        Samples::U16(values.iter().map(|v| (v * 65535.0) as u16).collect())
    } else {
        Samples::U8(values.iter().map(|v| (v * 255.0) as u8).collect())
    };
    Raster {
        width_px: width,
        height_px: height,
        channels,
        samples,
    }
}

fn bytes(raster: &Raster) -> &[u8] {
    let Samples::U8(values) = &raster.samples else {
        panic!("expected 8 bits");
    };
    values
}

/// Largest difference of two pictures of 8 bits.
fn apart(a: &Raster, b: &Raster) -> u8 {
    let pairs = bytes(a).iter().zip(bytes(b));
    pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn every_size_depth_and_number_of_channels_is_kept() {
    for model in ["srvgg_x2", "rrdb_x2", "rrdb_x4"] {
        let upscaler = upscaler(model);
        for (width, height) in [(1, 1), (1, 9), (13, 1), (2, 2), (17, 11)] {
            for channels in 1..=4 {
                for wide in [false, true] {
                    let small = picture(width, height, channels, wide);
                    let large = twice(&upscaler, &small);
                    assert_eq!((large.width_px, large.height_px), (2 * width, 2 * height));
                    assert_eq!(large.channels, channels);
                    assert_eq!(large.samples.len(), 4 * small.samples.len());
                    assert_eq!(matches!(large.samples, Samples::U16(_)), wide);
                }
            }
        }
    }
}

#[test]
fn tiles_fit_within_one_step() {
    for (model, width, height, channels) in [
        ("srvgg_x2", 150, 83, 3),
        ("srvgg_x2", 150, 83, 4),
        ("rrdb_x2", 80, 48, 3),
        ("rrdb_x4", 80, 48, 3),
    ] {
        let (whole, tiled) = (upscaler(model), upscaler(model).with_work_bytes(1));
        let small = picture(width, height, channels, false);
        assert_eq!(whole.tile_count(width, height), 1);
        assert!(tiled.tile_count(width, height) > 4);
        let worst = apart(&twice(&whole, &small), &twice(&tiled, &small));
        assert!(
            worst <= 1,
            "{model}, {channels} channels: tiles differ by {worst}"
        );
    }
}

#[test]
fn threads_change_nothing() {
    let small = picture(61, 40, 4, false);
    let one = Upscaler::open(&fixture("srvgg_x2"), 1).unwrap();
    let three = Upscaler::open(&fixture("srvgg_x2"), 3).unwrap();
    assert_eq!(twice(&one, &small), twice(&three, &small));
}

#[test]
fn hidden_colours_change_nothing_and_opaque_stays_opaque() {
    let upscaler = upscaler("srvgg_x2");
    let disc = |hidden: [u8; 3]| {
        let mut values = Vec::new();
        for y in 0..40i32 {
            for x in 0..40i32 {
                let far = ((x - 20).pow(2) + (y - 20).pow(2)) as f32;
                let alpha = ((15.0 - far.sqrt()) * 255.0).clamp(0.0, 255.0) as u8;
                values.extend(if alpha == 0 { hidden } else { [40, 160, 60] });
                values.push(alpha);
            }
        }
        Raster {
            width_px: 40,
            height_px: 40,
            channels: 4,
            samples: Samples::U8(values),
        }
    };
    let green = twice(&upscaler, &disc([40, 160, 60]));
    let magenta = twice(&upscaler, &disc([255, 0, 255]));
    assert_eq!(green, magenta);
    let alpha = |x: usize, y: usize| bytes(&green)[(y * 80 + x) * 4 + 3];
    assert_eq!((alpha(40, 40), alpha(0, 0), alpha(79, 79)), (255, 0, 0));
}

#[test]
fn bad_pictures_scales_and_files_are_refused() {
    let upscaler = upscaler("srvgg_x2");
    let cancel = CancelToken::new();
    let refused = |picture: &Raster, scale| {
        let refused = upscaler.upscale(picture, scale, &cancel, &NoProgress);
        refused.unwrap_err().to_string()
    };
    let good = picture(4, 4, 3, false);
    assert!(refused(&good, 3).contains("3x"));
    for (width_px, channels) in [(0, 3), (5, 3), (4, 0), (4, 5), (u32::MAX, 3)] {
        let bad = Raster {
            width_px,
            channels,
            ..good.clone()
        };
        assert!(refused(&bad, 2).contains("channels"));
    }
    cancel.cancel();
    assert_eq!(refused(&good, 2), "cancelled");
    let nothing = tempfile::tempdir().unwrap();
    for path in [
        nothing.path().to_owned(),
        nothing.path().join("x.param"),
        fixture("meta.json"),
    ] {
        assert!(Upscaler::open(&path, 1).is_err());
    }
}
