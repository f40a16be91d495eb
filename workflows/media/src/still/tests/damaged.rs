//! Damaged and cut files: an error or a picture, never a panic, never a picture of the wrong size.

use super::*;

/// Small valid files of every type.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (width, height) = (24u32, 16u32);
    let rgb: Vec<u8> = (0..width * height * 3)
        .map(|n| (n * 7 % 251) as u8)
        .collect();
    let rgba: Vec<u8> = (0..width * height * 4)
        .map(|n| (n * 5 % 253) as u8)
        .collect();
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, 80)
        .write_image(&rgb, width, height, Kind::Rgb8)
        .unwrap();
    let jpeg = with_segment(&jpeg, 0xe1, &[b"Exif\0\0", &exif_block(6)[..]].concat());
    let mut webp = Vec::new();
    WebPEncoder::new_lossless(&mut webp)
        .write_image(&rgba, width, height, Kind::Rgba8)
        .unwrap();
    let icc = ColorProfile::new_display_p3().encode().unwrap();
    let mut tiff = Cursor::new(Vec::new());
    TiffEncoder::new(&mut tiff)
        .write_image(&rgba, width, height, Kind::Rgba8)
        .unwrap();
    let read = |name| std::fs::read(case(name)).unwrap();
    vec![
        ("png", png(&rgba, width, height, Kind::Rgba8, Some(icc))),
        ("jpeg", jpeg),
        ("webp", webp),
        ("tiff", tiff.into_inner()),
        ("tiff cmyk", tiff_with(&rgba, width, height, 4, &[])),
        ("ycck", read("stills/cmyk-adobe.jpg")),
        ("progressive", read("stills/cmyk-adobe-progressive.jpg")),
        ("palette", read("up-01/palette-trns.png")),
    ]
}

fn check(name: &str, bytes: &[u8]) -> bool {
    match load(bytes, Some(64)) {
        Ok(loaded) => {
            let picture = loaded.picture;
            let expected = picture.width_px as usize * picture.height_px as usize * 4;
            let got = match &picture.pixels {
                Pixels::Rgba8(data) => data.len(),
                Pixels::Rgba16(data) => data.len(),
            };
            assert_eq!(got, expected, "{name}");
            assert!(picture.width_px.max(picture.height_px) <= 64, "{name}");
            true
        }
        Err(error) => {
            let text = error.to_string();
            assert!(
                !text.contains("its decoder failed"),
                "{name}: a decoder panicked"
            );
            false
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (name, seed) in seeds() {
        assert!(check(name, &seed), "{name} is not valid to begin with");
        for _ in 0..3000 {
            let mut bytes = seed.clone();
            for _ in 0..=random() % 4 {
                let at = random() as usize % bytes.len();
                // Half of the hits go to the header, where sizes and offsets are.
                let at = if random() % 2 == 0 {
                    at % 80.min(bytes.len())
                } else {
                    at
                };
                bytes[at] = random() as u8;
            }
            check(name, &bytes);
        }
    }
}

#[test]
fn cut_files_say_where_they_end() {
    for (name, seed) in seeds() {
        for length in 1..seed.len() {
            if length > 200 && length % 7 != 0 {
                continue;
            }
            let Err(error) = load(&seed[..length], None) else {
                continue;
            };
            let text = error.to_string();
            assert!(
                !text.contains("its decoder failed"),
                "{name} cut at {length}"
            );
            if length > 16 && length < seed.len() / 2 && !name.starts_with("tiff") {
                assert!(
                    text.contains("cut off") && text.contains(&length.to_string()),
                    "{name} cut at {length}: {text}"
                );
            }
        }
    }
}

#[test]
fn most_of_a_cut_file_is_never_taken_for_the_whole() {
    for (name, seed) in seeds() {
        let cut = &seed[..seed.len() * 2 / 3];
        assert!(load(cut, None).is_err(), "{name}");
    }
}
