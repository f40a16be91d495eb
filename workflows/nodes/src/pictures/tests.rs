use std::path::PathBuf;

use engine_base::NoProgress;

use super::*;

fn tests(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    root.join(path)
}

/// The default model of the pack.
fn pack_upscaler() -> Upscaler {
    let models = std::env::var_os("LONGTAKE_MODELS").map(PathBuf::from);
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let folder = models
        .or_else(|| data.or(home).map(|data| data.join("longtake/models")))
        .unwrap_or_default()
        .join("realesr-animevideov3-x2");
    assert!(
        folder.is_dir(),
        "the upscaler is not in {folder:?}: run `cargo xtask setup`"
    );
    Upscaler::open(&folder, 2).unwrap()
}

fn tiny_upscaler() -> Upscaler {
    Upscaler::open(&tests("fixtures/upscalers/srvgg_x2"), 2).unwrap()
}

/// The file at twice its size, as it is read back.
fn twice(upscaler: &Upscaler, from: &Path) -> (Picture, StillReport) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("large.png");
    let cancel = CancelToken::new();
    let report = upscale_still(upscaler, (from, &to), 2, &cancel, &NoProgress).unwrap();
    let large = load_still_noted(&to, &StillOptions::default()).unwrap();
    assert_eq!(
        (report.width_px, report.height_px),
        (large.picture.width_px, large.picture.height_px)
    );
    (large.picture, report)
}

fn pixel(picture: &Picture, x: u32, y: u32) -> [i32; 4] {
    picture
        .at(x, y)
        .unwrap()
        .map(|value| i32::from(value) / 257)
}

/// Case up-01: a disc over hidden magenta.
#[test]
fn transparency_is_raised_with_care_and_hidden_colours_stay_hidden() {
    let upscaler = pack_upscaler();
    let (disc, _) = twice(&upscaler, &tests("cases/up-01/disc-rgba.png"));
    assert_eq!((disc.width_px, disc.height_px), (66, 62));
    let small = load_still_noted(
        &tests("cases/up-01/disc-rgba.png"),
        &StillOptions::default(),
    );
    let small = small.unwrap().picture;
    let (mut partial, mut blocks, mut edge_blocks) = (0, 0, 0);
    for y in 0..62 {
        for x in 0..66 {
            let [red, green, blue, alpha] = pixel(&disc, x, y);
            partial += i32::from((1..255).contains(&alpha));
            let over_white = |value: i32| (value * alpha + 255 * (255 - alpha)) / 255;
            // What the disc's own colours explain: its greatest excess of red and blue over green.
            let own = (0..small.height_px)
                .flat_map(|y| (0..small.width_px).map(move |x| (x, y)))
                .map(|(x, y)| pixel(&small, x, y))
                .filter(|pixel| pixel[3] > 0)
                .map(|[red, green, blue, _]| (red - green).min(blue - green))
                .max()
                .unwrap_or(0)
                .max(0);
            let [red, green, blue] = [red, green, blue].map(over_white);
            assert!(
                (red - green).min(blue - green) <= own + 20,
                "magenta at {x}, {y}: {red} {green} {blue}"
            );
            if x % 2 == 0 && y % 2 == 0 {
                let four = [(0, 0), (1, 0), (0, 1), (1, 1)]
                    .map(|(right, down)| pixel(&disc, x + right, y + down)[3]);
                if four.iter().any(|alpha| (1..255).contains(alpha)) {
                    edge_blocks += 1;
                    blocks += i32::from(four.iter().all(|alpha| *alpha == four[0]));
                }
            }
        }
    }
    assert!(partial > 60, "{partial} pixels of a smooth edge");
    assert!(
        blocks * 4 < edge_blocks,
        "{blocks} of {edge_blocks} are blocks of 2 x 2"
    );
    let (grey, _) = twice(&upscaler, &tests("cases/up-01/gray-alpha.png"));
    assert_eq!((grey.width_px, grey.height_px), (34, 18));
    let (palette, _) = twice(&upscaler, &tests("cases/up-01/palette-trns.png"));
    assert_eq!((palette.width_px, palette.height_px), (24, 14));
    for y in 0..14 {
        for x in 0..24 {
            let [red, green, blue, alpha] = pixel(&palette, x, y);
            let redder = (red - green.max(blue)) * alpha / 255;
            assert!(
                redder <= 20,
                "red at {x}, {y}: {red} {green} {blue} {alpha}"
            );
        }
    }
}

#[test]
fn types_depth_and_turns_are_those_of_the_file() {
    let upscaler = tiny_upscaler();
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<u16> = (0..5 * 3).map(|at| at * 4000 + 7).collect();
    let grey = SavePicture {
        width_px: 5,
        height_px: 3,
        channels: 1,
        samples: SaveSamples::U16(&values),
    };
    for name in ["grey.png", "grey.tiff"] {
        let path = folder.path().join(name);
        save_still(&grey, &path).unwrap();
        let (large, report) = twice(&upscaler, &path);
        assert_eq!((large.width_px, large.height_px), (10, 6));
        assert!(report.notes.is_empty(), "{:?}", report.notes);
        let Pixels::Rgba16(values) = &large.pixels else {
            panic!("expected 16 bits");
        };
        let pixels = values.as_chunks::<4>().0;
        assert!(
            pixels
                .iter()
                .all(|[r, g, b, a]| r == g && g == b && *a == u16::MAX)
        );
        assert!(
            values.iter().any(|value| value % 257 != 0),
            "16 bits are used"
        );
    }
    let cancel = CancelToken::new();
    let from = folder.path().join("grey.png");
    for name in ["out.jpg", "out.webp", "out.tif"] {
        let to = folder.path().join(name);
        let report = upscale_still(&upscaler, (&from, &to), 2, &cancel, &NoProgress).unwrap();
        assert_eq!(
            report.notes.is_empty(),
            name == "out.tif",
            "{:?}",
            report.notes
        );
    }
    // Four channels of ink become three of light; the result is one of the size that is shown.
    let (ink, _) = twice(&upscaler, &tests("cases/stills/cmyk-adobe.jpg"));
    let shown = load_still_noted(
        &tests("cases/stills/cmyk-adobe.jpg"),
        &StillOptions::default(),
    );
    let shown = shown.unwrap().picture;
    assert_eq!(
        (ink.width_px, ink.height_px),
        (2 * shown.width_px, 2 * shown.height_px)
    );
    for bad in ["out.gif", "out"] {
        let to = folder.path().join(bad);
        assert!(upscale_still(&upscaler, (&from, &to), 2, &cancel, &NoProgress).is_err());
    }
    let missing = folder.path().join("none.png");
    let to = folder.path().join("x.png");
    let error = upscale_still(&upscaler, (&missing, &to), 2, &cancel, &NoProgress).unwrap_err();
    assert_eq!(error.code, engine_base::Code::NotFound);
}

#[test]
fn channels_that_say_nothing_are_left_out() {
    let of = |values: Vec<u8>| {
        raster(Picture {
            width_px: 2,
            height_px: 1,
            pixels: Pixels::Rgba8(values),
        })
    };
    let cases: [(&[u8], u8, &[u8]); 4] = [
        (&[1, 1, 1, 255, 2, 2, 2, 255], 1, &[1, 2]),
        (&[1, 1, 1, 255, 2, 2, 2, 9], 2, &[1, 255, 2, 9]),
        (&[1, 2, 3, 255, 4, 5, 6, 255], 3, &[1, 2, 3, 4, 5, 6]),
        (&[1, 2, 3, 0, 4, 5, 6, 255], 4, &[1, 2, 3, 0, 4, 5, 6, 255]),
    ];
    for (values, channels, kept) in cases {
        let raster = of(values.to_vec());
        assert_eq!(raster.channels, channels);
        assert_eq!(raster.samples, Samples::U8(kept.to_vec()));
    }
}
