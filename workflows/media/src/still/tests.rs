//! Stills are made here by encoders, or lie with their maker under `tests/cases`.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::ExtendedColorType as Kind;
use image::ImageEncoder as _;
use image::codecs::{jpeg::JpegEncoder, png::PngEncoder, tiff::TiffEncoder, webp::WebPEncoder};
use moxcms::ColorProfile;

use super::*;

mod damaged;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/cases")
        .join(name)
}

fn load(bytes: &[u8], max_side_px: Option<u32>) -> Result<Loaded, MediaError> {
    read(
        Cursor::new(bytes),
        bytes.len() as u64,
        Path::new("still"),
        &StillOptions { max_side_px },
    )
}

fn message(bytes: &[u8]) -> String {
    load(bytes, None).unwrap_err().to_string()
}

fn png(data: &[u8], width: u32, height: u32, kind: Kind, icc: Option<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = PngEncoder::new(&mut out);
    if let Some(icc) = icc {
        encoder.set_icc_profile(icc).unwrap();
    }
    encoder.write_image(data, width, height, kind).unwrap();
    out
}

/// A PNG chunk put in front of the first `IDAT`.
fn with_chunk(png: &[u8], kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let at = png.windows(4).position(|w| w == b"IDAT").unwrap() - 4;
    let mut chunk = (body.len() as u32).to_be_bytes().to_vec();
    chunk.extend_from_slice(kind);
    chunk.extend_from_slice(body);
    let mut crc = u32::MAX;
    for byte in &chunk[4..] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    chunk.extend_from_slice(&(!crc).to_be_bytes());
    [&png[..at], &chunk, &png[at..]].concat()
}

/// A JPEG segment put behind the start marker.
fn with_segment(jpeg: &[u8], marker: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xff, marker], &length, body, &jpeg[2..]].concat()
}

fn exif_block(orientation: u16) -> Vec<u8> {
    let mut block = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
    block.extend_from_slice(&orientation.to_be_bytes());
    block.extend_from_slice(&[0; 6]);
    block
}

fn rgb(loaded: &Loaded, x: u32, y: u32) -> [u8; 3] {
    let pixel = loaded.picture.at(x, y).unwrap();
    [0, 1, 2].map(|channel| (pixel[channel] >> 8) as u8)
}

fn near(got: [u8; 3], expected: [u8; 3], most: u8, what: &str) {
    let worst = (0..3).map(|n| got[n].abs_diff(expected[n])).max().unwrap();
    assert!(
        worst <= most,
        "{what}: got {got:?}, expected {expected:?} within {most}"
    );
}

#[test]
fn alpha_pictures_of_the_upscaler_case_read_right() {
    let disc = load_still(&case("up-01/disc-rgba.png"), &StillOptions::default()).unwrap();
    assert_eq!((disc.width_px, disc.height_px), (33, 31));
    assert_eq!(
        disc.at(0, 0),
        Some([65535, 0, 65535, 0]),
        "hidden magenta stays"
    );
    assert_eq!(disc.at(16, 15).unwrap()[3], 65535);
    let gray = load_still(&case("up-01/gray-alpha.png"), &StillOptions::default()).unwrap();
    assert_eq!(gray.at(8, 0), Some([128 * 257, 128 * 257, 128 * 257, 0]));
    assert_eq!(
        gray.at(9, 0),
        Some([128 * 257, 128 * 257, 128 * 257, 65535])
    );
    let palette = load_still(&case("up-01/palette-trns.png"), &StillOptions::default()).unwrap();
    assert_eq!(palette.at(0, 0), Some([65535, 0, 0, 0]));
    assert_eq!(palette.at(4, 0), Some([0, 65535, 0, 128 * 257]));
    assert_eq!(palette.at(8, 0), Some([0, 0, 65535, 65535]));
}

#[test]
fn sixteen_bits_stay_sixteen_in_png_and_tiff() {
    let values: Vec<u16> = (0..24).map(|n| n * 2731 + 1).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&values);
    let mut tiff = Cursor::new(Vec::new());
    TiffEncoder::new(&mut tiff)
        .write_image(bytes, 3, 2, Kind::Rgba16)
        .unwrap();
    for file in [png(bytes, 3, 2, Kind::Rgba16, None), tiff.into_inner()] {
        let loaded = load(&file, None).unwrap();
        assert_eq!(loaded.picture.pixels, Pixels::Rgba16(values.clone()));
        assert_eq!(loaded.notes, Vec::<String>::new());
    }
    let gray: [u16; 2] = [0x1234, 0xfedc];
    let loaded = load(
        &png(bytemuck::cast_slice(&gray), 2, 1, Kind::L16, None),
        None,
    )
    .unwrap();
    assert_eq!(
        loaded.picture.at(1, 0),
        Some([0xfedc, 0xfedc, 0xfedc, 65535])
    );
}

#[test]
fn orientation_is_applied_in_every_type() {
    // 2 x 1: white, black.
    let data = [255, 255, 255, 0, 0, 0];
    let block = exif_block(6);
    let mut webp = Vec::new();
    let mut encoder = WebPEncoder::new_lossless(&mut webp);
    encoder.set_exif_metadata(block.clone()).unwrap();
    encoder.write_image(&data, 2, 1, Kind::Rgb8).unwrap();
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, 100)
        .write_image(&data, 2, 1, Kind::Rgb8)
        .unwrap();
    let jpeg = with_segment(&jpeg, 0xe1, &[b"Exif\0\0", &block[..]].concat());
    let tiff = tiff_with(&[255, 0], 2, 1, 1, &[(274, 3, 1, 6 << 16)]);
    for (name, file) in [
        (
            "png",
            with_chunk(&png(&data, 2, 1, Kind::Rgb8, None), b"eXIf", &block),
        ),
        ("webp", webp),
        ("jpeg", jpeg),
        ("tiff", tiff),
    ] {
        let loaded = load(&file, None).unwrap();
        let picture = &loaded.picture;
        assert_eq!((picture.width_px, picture.height_px), (1, 2), "{name}");
        assert_eq!((loaded.coded_width_px, loaded.coded_height_px), (2, 1));
        // Orientation 6: the first column of the file is the top row.
        near(rgb(&loaded, 0, 0), [255; 3], 3, name);
        near(rgb(&loaded, 0, 1), [0; 3], 3, name);
    }
}

/// A big-endian TIFF of 8-bit samples with `channels`, and further entries (tag, type, count, value).
fn tiff_with(
    data: &[u8],
    width: u32,
    height: u32,
    channels: u32,
    more: &[(u16, u16, u32, u32)],
) -> Vec<u8> {
    let bits_at = 8 + data.len() as u32;
    let directory_at = bits_at + 8;
    let photometric = match channels {
        1 => 1,
        3 => 2,
        _ => 5,
    };
    let bits = if channels == 1 { 8 << 16 } else { bits_at };
    let mut entries = vec![
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, channels, bits),
        (259, 3, 1, 1 << 16),
        (262, 3, 1, photometric << 16),
        (273, 4, 1, 8),
        (277, 3, 1, channels << 16),
        (278, 4, 1, height),
        (279, 4, 1, data.len() as u32),
    ];
    for (tag, kind, count, value) in more {
        entries.retain(|entry| entry.0 != *tag);
        entries.push((*tag, *kind, *count, *value));
    }
    entries.sort_unstable();
    let mut out = b"MM\0*".to_vec();
    out.extend_from_slice(&directory_at.to_be_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&[0, 8, 0, 8, 0, 8, 0, 8]);
    out.extend_from_slice(&(entries.len() as u16).to_be_bytes());
    for (tag, kind, count, value) in entries {
        out.extend_from_slice(&u16::to_be_bytes(tag));
        out.extend_from_slice(&u16::to_be_bytes(kind));
        out.extend_from_slice(&u32::to_be_bytes(count));
        out.extend_from_slice(&u32::to_be_bytes(value));
    }
    out.extend_from_slice(&[0; 4]);
    out
}

#[test]
fn tiff_alpha_that_is_multiplied_in_is_taken_out() {
    let data = [100, 50, 0, 128, 0, 0, 0, 0];
    let tags = [(262, 3, 1, 2 << 16), (338, 3, 1, 1 << 16)];
    let loaded = load(&tiff_with(&data, 2, 1, 4, &tags), None).unwrap();
    let Pixels::Rgba8(out) = &loaded.picture.pixels else {
        panic!("expected 8 bits")
    };
    assert_eq!(out, &[199, 100, 0, 128, 0, 0, 0, 0]);
}

#[test]
fn inks_become_colours() {
    let ycck = std::fs::read(case("stills/cmyk-adobe.jpg")).unwrap();
    let progressive = std::fs::read(case("stills/cmyk-adobe-progressive.jpg")).unwrap();
    for (name, file) in [("ycck", &ycck), ("progressive", &progressive)] {
        let loaded = load(file, None).unwrap();
        near(rgb(&loaded, 4, 4), [0, 204, 204], 2, name);
        near(rgb(&loaded, 28, 28), [255, 51, 102], 2, name);
        assert!(
            loaded.notes[0].contains("approximate"),
            "{:?}",
            loaded.notes
        );
    }
    // The same samples said to be CMYK: Y 76, Cb 85, Cr 255, K 204 are 255 minus the inks.
    let mut plain = ycck;
    let transform_at = plain.windows(5).position(|w| w == b"Adobe").unwrap() + 11;
    assert_eq!(plain[transform_at], 2);
    plain[transform_at] = 0;
    near(
        rgb(&load(&plain, None).unwrap(), 4, 4),
        [61, 68, 204],
        2,
        "cmyk",
    );
    let tiff = tiff_with(&[255, 0, 0, 51, 0, 204, 153, 0], 2, 1, 4, &[]);
    let loaded = load(&tiff, None).unwrap();
    assert_eq!(rgb(&loaded, 0, 0), [0, 204, 204]);
    assert_eq!(rgb(&loaded, 1, 0), [255, 51, 102]);
}

/// CIE Lab (D50) to sRGB through Bradford-adapted matrices, as ICC.1 and IEC 61966-2-1 define them.
fn lab_to_srgb([l, a, b]: [f64; 3]) -> [u8; 3] {
    let fy = (l + 16.0) / 116.0;
    let [x, y, z] = [
        (fy + a / 500.0, 0.9642),
        (fy, 1.0),
        (fy - b / 200.0, 0.8249),
    ]
    .map(|(f, white): (f64, f64)| {
        let cube = f.powi(3);
        white
            * if cube > 0.008_856 {
                cube
            } else {
                (f - 16.0 / 116.0) / 7.787
            }
    });
    let linear = [
        3.133_856 * x - 1.616_867 * y - 0.490_615 * z,
        -0.978_768 * x + 1.916_142 * y + 0.033_454 * z,
        0.071_945 * x - 0.228_991 * y + 1.405_243 * z,
    ];
    linear.map(|light| (super::raw::linear_to_srgb(light.clamp(0.0, 1.0)) * 255.0).round() as u8)
}

/// A CMYK profile whose table has one Lab colour for each corner of the ink cube.
fn cmyk_profile(lab: impl Fn([f64; 4]) -> [f64; 3]) -> Vec<u8> {
    let mut table = b"mft1\0\0\0\0\x04\x03\x02\0".to_vec();
    for n in 0..9u32 {
        let one = if n % 4 == 0 { 0x0001_0000u32 } else { 0 };
        table.extend_from_slice(&one.to_be_bytes());
    }
    for _ in 0..4 {
        table.extend(0..=255u8);
    }
    for corner in 0..16u32 {
        let ink = [8, 4, 2, 1].map(|bit| f64::from(u32::from(corner & bit != 0)));
        let [l, a, b] = lab(ink);
        table.extend([
            (l * 2.55).round() as u8,
            (a + 128.0).round() as u8,
            (b + 128.0).round() as u8,
        ]);
    }
    for _ in 0..3 {
        table.extend(0..=255u8);
    }
    let total = 128 + 4 + 12 + table.len();
    let mut out = vec![0u8; 128];
    out[..4].copy_from_slice(&(total as u32).to_be_bytes());
    out[8..12].copy_from_slice(&[2, 0x40, 0, 0]);
    out[12..24].copy_from_slice(b"prtrCMYKLab ");
    out[36..40].copy_from_slice(b"acsp");
    for (at, value) in [(68, 0xf6d6u32), (72, 0x1_0000), (76, 0xd32d)] {
        out[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(b"A2B0");
    out.extend_from_slice(&144u32.to_be_bytes());
    out.extend_from_slice(&(table.len() as u32).to_be_bytes());
    out.extend_from_slice(&table);
    out
}

#[test]
fn ink_profile_decides_the_colours() {
    let lab = |[c, m, y, k]: [f64; 4]| {
        [
            (100.0 - 40.0 * c - 45.0 * m - 8.0 * y) * (1.0 - 0.9 * k),
            (-35.0 * c + 70.0 * m - 5.0 * y) * (1.0 - k),
            (-40.0 * c - 5.0 * m + 90.0 * y) * (1.0 - k),
        ]
    };
    let icc = cmyk_profile(lab);
    let inks = [
        [0u8, 0, 0, 0],
        [255, 0, 0, 0],
        [0, 255, 255, 0],
        [0, 0, 0, 255],
    ];
    // The tag value points behind the rest of the file.
    let plain = tiff_with(inks.as_flattened(), 4, 1, 4, &[]);
    let at = plain.len() as u32 + 12;
    let mut file = tiff_with(
        inks.as_flattened(),
        4,
        1,
        4,
        &[(34675, 7, icc.len() as u32, at)],
    );
    file.extend_from_slice(&icc);
    let loaded = load(&file, None).unwrap();
    for (x, ink) in inks.iter().enumerate() {
        let expected = lab_to_srgb(lab(ink.map(|value| f64::from(value) / 255.0)));
        near(rgb(&loaded, x as u32, 0), expected, 3, &format!("{ink:?}"));
    }
    let jpeg = std::fs::read(case("stills/cmyk-adobe.jpg")).unwrap();
    let body = [b"ICC_PROFILE\0\x01\x01", &icc[..]].concat();
    let loaded = load(&with_segment(&jpeg, 0xe2, &body), None).unwrap();
    assert!(
        loaded
            .notes
            .iter()
            .any(|note| note.contains("through its colour profile"))
    );
    // Magenta 80 %, yellow 60 %: between the corners, where only the trend is checked.
    let [r, g, b] = rgb(&loaded, 28, 28);
    assert!(r > 180 && g < 150 && b < 170 && r > b, "{:?}", [r, g, b]);
}

#[test]
fn profiles_convert_to_srgb_and_srgb_changes_nothing() {
    let data = [200, 100, 50, 10, 250, 30, 128, 128, 128, 255, 255, 255];
    let srgb = ColorProfile::new_srgb().encode().unwrap();
    let loaded = load(&png(&data, 4, 1, Kind::Rgb8, Some(srgb)), None).unwrap();
    assert_eq!(rgb(&loaded, 0, 0), [200, 100, 50]);
    assert_eq!(loaded.notes, Vec::<String>::new());
    let p3 = ColorProfile::new_display_p3().encode().unwrap();
    let loaded = load(&png(&data, 4, 1, Kind::Rgb8, Some(p3)), None).unwrap();
    // Display P3 to sRGB by the published primaries: D65 both, same curve.
    let to_linear = |v: u8| super::raw::srgb_to_linear(f64::from(v) / 255.0);
    let [r, g, b] = [200, 100, 50].map(to_linear);
    let expected = [
        1.224_940 * r - 0.224_940 * g,
        -0.042_057 * r + 1.042_057 * g,
        -0.019_638 * r - 0.078_636 * g + 1.098_274 * b,
    ]
    .map(|light| (super::raw::linear_to_srgb(light.clamp(0.0, 1.0)) * 255.0).round() as u8);
    near(rgb(&loaded, 0, 0), expected, 2, "display p3");
    near(rgb(&loaded, 2, 0), [128; 3], 1, "neutral stays neutral");
    near(rgb(&loaded, 3, 0), [255; 3], 1, "white stays white");
    assert!(loaded.notes[0].contains("converted"), "{:?}", loaded.notes);
}

#[test]
fn gray_profile_png_gamma_and_code_points_are_used() {
    let gray = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
    let file = png(&[0, 55, 255], 3, 1, Kind::L8, Some(gray));
    let loaded = load(&file, None).unwrap();
    // Light 55/255 in sRGB.
    near(rgb(&loaded, 1, 0), [128; 3], 2, "linear gray profile");
    near(rgb(&loaded, 2, 0), [255; 3], 1, "white");
    let plain = png(&[55, 55, 55], 1, 1, Kind::Rgb8, None);
    let linear = with_chunk(&plain, b"gAMA", &100_000u32.to_be_bytes());
    near(
        rgb(&load(&linear, None).unwrap(), 0, 0),
        [128; 3],
        2,
        "gamma 1",
    );
    let usual = with_chunk(&plain, b"gAMA", &45_455u32.to_be_bytes());
    assert_eq!(rgb(&load(&usual, None).unwrap(), 0, 0), [55; 3]);
    let red = png(&[200, 100, 50], 1, 1, Kind::Rgb8, None);
    let p3 = load(&with_chunk(&red, b"cICP", &[12, 13, 0, 1]), None).unwrap();
    let icc = ColorProfile::new_display_p3().encode().unwrap();
    let same = load(&png(&[200, 100, 50], 1, 1, Kind::Rgb8, Some(icc)), None).unwrap();
    near(rgb(&p3, 0, 0), rgb(&same, 0, 0), 1, "cICP as the profile");
    let pq = load(&with_chunk(&red, b"cICP", &[9, 16, 0, 1]), None).unwrap();
    assert!(
        pq.notes[0].contains("9/16 are not converted"),
        "{:?}",
        pq.notes
    );
}

#[test]
fn bad_profile_is_a_note() {
    for icc in [
        vec![7; 200],
        ColorProfile::new_display_p3().encode().unwrap()[..300].to_vec(),
    ] {
        let loaded = load(&png(&[1, 2, 3], 1, 1, Kind::Rgb8, Some(icc)), None).unwrap();
        assert_eq!(rgb(&loaded, 0, 0), [1, 2, 3]);
        assert!(loaded.notes[0].contains("ignored"), "{:?}", loaded.notes);
    }
    let inks = cmyk_profile(|_| [50.0, 0.0, 0.0]);
    let loaded = load(&png(&[1, 2, 3], 1, 1, Kind::Rgb8, Some(inks)), None).unwrap();
    assert!(loaded.notes[0].contains("Cmyk"), "{:?}", loaded.notes);
}

#[test]
fn smaller_on_request_and_the_same_on_any_thread_count() {
    let data: Vec<u8> = (0..300 * 200 * 3u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let file = png(&data, 300, 200, Kind::Rgb8, None);
    let many = load(&file, Some(90)).unwrap();
    assert_eq!((many.picture.width_px, many.picture.height_px), (90, 60));
    let one = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap()
        .install(|| load(&file, Some(90)).unwrap());
    assert_eq!(many, one);
    assert_eq!(load(&file, Some(300)).unwrap(), load(&file, None).unwrap());
}

#[test]
fn refusals_say_what_was_got() {
    assert!(message(b"").contains("empty file"));
    assert!(message(b"<html><body>not found").contains("web page (HTML)"));
    assert!(message(b"%PDF-1.4 ...........").contains("PDF"));
    assert!(message(b"GIF89a............").contains("GIF"));
    assert!(message(b"\0\0\0\x18ftypmp42\0\0\0\0").contains("MP4"));
    let missing = load_still(Path::new("no/such.png"), &StillOptions::default()).unwrap_err();
    assert_eq!(
        missing.code(),
        engine_base::Code::of_io(&std::io::ErrorKind::NotFound.into())
    );
    let folder = load_still(
        Path::new(env!("CARGO_MANIFEST_DIR")),
        &StillOptions::default(),
    );
    assert!(folder.unwrap_err().to_string().contains("a folder"));
}

#[test]
fn size_limits_hold_before_anything_is_decoded() {
    let small = png(&[0; 3], 1, 1, Kind::Rgb8, None);
    for (width, height, word) in [
        (50_000u32, 10u32, "50000 x 10"),
        (20_000, 20_000, "200 million"),
    ] {
        let mut file = small[..8].to_vec();
        let mut header = width.to_be_bytes().to_vec();
        header.extend_from_slice(&height.to_be_bytes());
        header.extend_from_slice(&[8, 2, 0, 0, 0]);
        // The chunk goes in front of IDAT; the old IHDR (25 bytes) is left out.
        let mut rest = small[..8].to_vec();
        rest.extend_from_slice(&small[33..]);
        file = with_chunk(&[file, rest[8..].to_vec()].concat(), b"IHDR", &header);
        let error = load(&file, None).unwrap_err();
        assert!(matches!(error, MediaError::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let mut jpeg = vec![0xff, 0xd8, 0xff, 0xc0, 0, 17, 8];
    jpeg.extend_from_slice(&50_000u16.to_be_bytes());
    jpeg.extend_from_slice(&50_000u16.to_be_bytes());
    jpeg.extend_from_slice(&[3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    assert!(message(&jpeg).contains("50000 x 50000"));
    let tiff = tiff_with(&[0; 3], 50_000, 1, 3, &[]);
    assert!(message(&tiff).contains("50000 x 1"));
    // Header says 30 million pixels, the file has 2 kB.
    let mut jpeg = Vec::new();
    JpegEncoder::new(&mut jpeg)
        .write_image(&[9; 3], 1, 1, Kind::Rgb8)
        .unwrap();
    let at = jpeg.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    jpeg[at + 5..at + 9].copy_from_slice(&[0x13, 0x88, 0x17, 0x70]);
    assert!(message(&jpeg).contains("cannot hold 6000 x 5000"));
}

#[test]
fn animated_png_gives_its_first_picture_and_says_so() {
    let still = png(&[10, 20, 30], 1, 1, Kind::Rgb8, None);
    let control = [0, 0, 0, 1, 0, 0, 0, 0];
    let mut frame = vec![0; 26];
    frame[7] = 1;
    frame[11] = 1;
    frame[23] = 10;
    let file = with_chunk(&with_chunk(&still, b"acTL", &control), b"fcTL", &frame);
    let loaded = load(&file, None).unwrap();
    assert_eq!(rgb(&loaded, 0, 0), [10, 20, 30]);
    assert!(loaded.notes[0].contains("animated"), "{:?}", loaded.notes);
}

#[test]
fn saved_png_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("poster.png");
    let picture = Picture {
        width_px: 2,
        height_px: 1,
        pixels: Pixels::Rgba16(vec![65535, 257, 0, 65535, 0, 300, 514, 128 * 257]),
    };
    save_png(&picture, &path).unwrap();
    let back = load_still(&path, &StillOptions::default()).unwrap();
    assert_eq!(
        back.pixels,
        Pixels::Rgba8(vec![255, 1, 0, 255, 0, 1, 2, 128])
    );
    let wrong = Picture {
        height_px: 2,
        ..picture
    };
    assert!(save_png(&wrong, &path).is_err());
}
