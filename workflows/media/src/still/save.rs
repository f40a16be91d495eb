//! Still pictures to files: PNG, JPEG, WebP and TIFF, by the ending of the name.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use image::{ExtendedColorType, ImageEncoder as _, ImageError};

use crate::MediaError;
use crate::ff::PartFile;

/// Quality of JPEG files, 1 to 100.
const JPEG_QUALITY: u8 = 93;
/// Quality of pictures that are looked at for a moment.
const PREVIEW_QUALITY: u8 = 80;
/// Longest side that a JPEG file can have.
const JPEG_SIDE_PX: u32 = 65_535;
/// Longest side that a WebP file can have.
const WEBP_SIDE_PX: u32 = 16_383;

/// Channel values of a picture to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveSamples<'a> {
    /// 8 bits each.
    U8(&'a [u8]),
    /// 16 bits each.
    U16(&'a [u16]),
}

/// A picture to be written: sRGB, straight alpha, rows from the top, channels interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavePicture<'a> {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    pub channels: u8,
    /// `width_px * height_px * channels` values.
    pub samples: SaveSamples<'a>,
}

/// File types that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Png,
    Jpeg,
    WebP,
    Tiff,
}

impl Kind {
    fn of(path: &Path) -> Result<Self, MediaError> {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        match ending.to_ascii_lowercase().as_str() {
            "png" => Ok(Self::Png),
            "jpg" | "jpeg" => Ok(Self::Jpeg),
            "webp" => Ok(Self::WebP),
            "tif" | "tiff" => Ok(Self::Tiff),
            other => Err(MediaError::BadRequest(format!(
                "cannot write a picture ending in {other:?}: expected .png, .jpg, .webp or .tiff, \
                 {path:?}"
            ))),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::WebP => "WebP",
            Self::Tiff => "TIFF",
        }
    }

    /// Longest side, whether there is alpha, and whether there are 16 bits.
    const fn limits(self) -> (u32, bool, bool) {
        match self {
            Self::Png | Self::Tiff => (u32::MAX, true, true),
            Self::Jpeg => (JPEG_SIDE_PX, false, false),
            Self::WebP => (WEBP_SIDE_PX, true, false),
        }
    }
}

/// Whether a picture can be written to a file of this name.
///
/// # Errors
/// [`MediaError::BadRequest`] for an ending other than png, jpg, jpeg, webp, tif and tiff.
pub fn check_still_name(path: &Path) -> Result<(), MediaError> {
    Kind::of(path).map(drop)
}

/// Write a picture by the ending of `path`; it appears whole or not at all. Gives what the file type
/// could not hold, for people: JPEG has no alpha (what is transparent becomes white), JPEG and WebP
/// have 8 bits.
///
/// # Errors
/// [`MediaError::BadRequest`] for another ending, a picture whose data does not fit its size, or one
/// that is too large for the type; [`MediaError::Io`].
pub fn save_still(picture: &SavePicture<'_>, path: &Path) -> Result<Vec<String>, MediaError> {
    let kind = Kind::of(path)?;
    let (width_px, height_px) = (picture.width_px, picture.height_px);
    let (side_px, has_alpha, has_16_bits) = kind.limits();
    let (len, wide) = match picture.samples {
        SaveSamples::U8(values) => (values.len(), false),
        SaveSamples::U16(values) => (values.len(), true),
    };
    let expected = u64::from(width_px) * u64::from(height_px) * u64::from(picture.channels);
    if len as u64 != expected || expected == 0 || picture.channels > 4 {
        return Err(MediaError::BadRequest(format!(
            "cannot write a picture of {width_px} x {height_px} px and {} channels: expected \
             {expected} values, got {len}",
            picture.channels
        )));
    }
    if width_px.max(height_px) > side_px {
        return Err(MediaError::BadRequest(format!(
            "cannot write {width_px} x {height_px} px as {}: expected sides up to {side_px} px; \
             .png and .tiff hold more, {path:?}",
            kind.name()
        )));
    }
    let mut notes = Vec::new();
    let mut channels = picture.channels;
    let flattened;
    let narrowed: Vec<u8>;
    let mut samples = picture.samples;
    if wide && !has_16_bits {
        notes.push(format!(
            "{} has 8 bits a channel: rounded from 16",
            kind.name()
        ));
        if let SaveSamples::U16(values) = samples {
            narrowed = values
                .iter()
                .map(|value| ((u32::from(*value) + 128) / 257) as u8)
                .collect();
            samples = SaveSamples::U8(&narrowed);
        }
    }
    if !has_alpha && channels.is_multiple_of(2) {
        notes.push(format!(
            "{} has no transparency: laid on white",
            kind.name()
        ));
        if let SaveSamples::U8(values) = samples {
            flattened = on_white(values, usize::from(channels));
            channels -= 1;
            samples = SaveSamples::U8(&flattened);
        }
    }
    let grey_alpha;
    if kind == Kind::Tiff && channels == 2 {
        grey_alpha = grey_as_rgb(samples);
        channels = 4;
        samples = grey_alpha.as_samples();
    }
    let part = PartFile::new(path)?;
    write(kind, (width_px, height_px), channels, samples, &part, path)?;
    part.keep()?;
    Ok(notes)
}

/// A picture of `rgb` (`width_px * height_px` pixels of three bytes) as a JPEG file in memory.
///
/// # Errors
/// [`MediaError::BadRequest`] for another number of bytes, or sides that JPEG cannot hold.
pub fn jpeg_of(width_px: u32, height_px: u32, rgb: &[u8]) -> Result<Vec<u8>, MediaError> {
    let expected = u64::from(width_px) * u64::from(height_px) * 3;
    let fits = width_px.max(height_px) <= JPEG_SIDE_PX && expected > 0;
    if rgb.len() as u64 != expected || !fits {
        return Err(MediaError::BadRequest(format!(
            "cannot write {width_px} x {height_px} px as JPEG: expected {expected} bytes, got {}",
            rgb.len()
        )));
    }
    let mut jpeg = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, PREVIEW_QUALITY)
        .write_image(rgb, width_px, height_px, ExtendedColorType::Rgb8)
        .map_err(|error| MediaError::BadRequest(format!("cannot write a JPEG: {error}")))?;
    Ok(jpeg)
}

/// 8-bit colours laid on white.
fn on_white(values: &[u8], channels: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() / channels * (channels - 1));
    for pixel in values.chunks_exact(channels) {
        let Some((alpha, colours)) = pixel.split_last() else {
            continue;
        };
        let alpha = u32::from(*alpha);
        out.extend(
            colours.iter().map(|colour| {
                ((u32::from(*colour) * alpha + 255 * (255 - alpha) + 127) / 255) as u8
            }),
        );
    }
    out
}

/// Values of grey and alpha as RGB and alpha.
enum Rgba {
    U8(Vec<u8>),
    U16(Vec<u16>),
}

impl Rgba {
    fn as_samples(&self) -> SaveSamples<'_> {
        match self {
            Self::U8(values) => SaveSamples::U8(values),
            Self::U16(values) => SaveSamples::U16(values),
        }
    }
}

fn grey_as_rgb(samples: SaveSamples<'_>) -> Rgba {
    fn spread<T: Copy>(values: &[T]) -> Vec<T> {
        let pixels = values.as_chunks::<2>().0.iter();
        pixels
            .flat_map(|[grey, alpha]| [*grey, *grey, *grey, *alpha])
            .collect()
    }
    match samples {
        SaveSamples::U8(values) => Rgba::U8(spread(values)),
        SaveSamples::U16(values) => Rgba::U16(spread(values)),
    }
}

fn write(
    kind: Kind,
    (width_px, height_px): (u32, u32),
    channels: u8,
    samples: SaveSamples<'_>,
    part: &PartFile,
    path: &Path,
) -> Result<(), MediaError> {
    let io = |source| MediaError::Io {
        what: "cannot write a picture",
        path: path.to_owned(),
        source,
    };
    let failed = |error: ImageError| match error {
        ImageError::IoError(source) => io(source),
        other => io(std::io::Error::other(other)),
    };
    // The encoders take 16 bits in the machine's own order.
    let (bytes, colour): (&[u8], _) = match samples {
        SaveSamples::U8(values) => (
            values,
            match channels {
                1 => ExtendedColorType::L8,
                2 => ExtendedColorType::La8,
                3 => ExtendedColorType::Rgb8,
                _ => ExtendedColorType::Rgba8,
            },
        ),
        SaveSamples::U16(values) => (
            bytemuck::cast_slice(values),
            match channels {
                1 => ExtendedColorType::L16,
                2 => ExtendedColorType::La16,
                3 => ExtendedColorType::Rgb16,
                _ => ExtendedColorType::Rgba16,
            },
        ),
    };
    let mut file = BufWriter::new(File::create(part.path()).map_err(io)?);
    let written = match kind {
        Kind::Png => image::codecs::png::PngEncoder::new(&mut file)
            .write_image(bytes, width_px, height_px, colour),
        Kind::Jpeg => image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY)
            .write_image(bytes, width_px, height_px, colour),
        Kind::WebP => image::codecs::webp::WebPEncoder::new_lossless(&mut file)
            .write_image(bytes, width_px, height_px, colour),
        Kind::Tiff => image::codecs::tiff::TiffEncoder::new(&mut file)
            .write_image(bytes, width_px, height_px, colour),
    };
    written.map_err(failed)?;
    file.flush().map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::still::{StillOptions, load_still_noted};

    /// Writes 6 x 5 px of so many channels and bits, and compares what is read back.
    fn there_and_back(path: &Path, channels: u8, wide: bool) {
        let count = 6 * 5 * usize::from(channels);
        let values: Vec<u16> = (0..count).map(|at| (at * 517 % 65_536) as u16).collect();
        let narrow: Vec<u8> = values.iter().map(|value| (value >> 8) as u8).collect();
        let samples = if wide {
            SaveSamples::U16(&values)
        } else {
            SaveSamples::U8(&narrow)
        };
        let picture = SavePicture {
            width_px: 6,
            height_px: 5,
            channels,
            samples,
        };
        let notes = save_still(&picture, path).unwrap();
        let kind = Kind::of(path).unwrap();
        let (_, has_alpha, has_16_bits) = kind.limits();
        let lost = usize::from(wide && !has_16_bits)
            + usize::from(channels.is_multiple_of(2) && !has_alpha);
        let what = format!("{path:?}, {channels} channels, wide {wide}");
        assert_eq!(notes.len(), lost, "{what}: {notes:?}");
        let read = load_still_noted(path, &StillOptions::default()).unwrap();
        let read = read.picture;
        assert_eq!((read.width_px, read.height_px), (6, 5), "{what}");
        if kind == Kind::Jpeg {
            return;
        }
        let first = (2 * 6 + 3) * usize::from(channels);
        let value = |at: usize| match (wide, has_16_bits) {
            (true, true) => values[first + at],
            (true, false) => ((u32::from(values[first + at]) + 128) / 257 * 257) as u16,
            (false, _) => u16::from(narrow[first + at]) * 257,
        };
        let expected = match channels {
            1 => [value(0), value(0), value(0), 65_535],
            2 => [value(0), value(0), value(0), value(1)],
            3 => [value(0), value(1), value(2), 65_535],
            _ => [value(0), value(1), value(2), value(3)],
        };
        assert_eq!(read.at(3, 2), Some(expected), "{what}");
    }

    #[test]
    fn every_type_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        for ending in ["png", "jpg", "webp", "tiff", "TIF"] {
            for channels in 1..=4u8 {
                for wide in [false, true] {
                    there_and_back(&folder.path().join(format!("a.{ending}")), channels, wide);
                }
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
    }

    #[test]
    fn what_no_file_can_hold_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let picture = SavePicture {
            width_px: 2,
            height_px: 1,
            channels: 3,
            samples: SaveSamples::U8(&[1, 2, 3, 4, 5, 6]),
        };
        for (name, width_px) in [("a.gif", 2), ("a", 2), ("a.png", 3), ("a.png", 0)] {
            let picture = SavePicture {
                width_px,
                ..picture
            };
            assert!(
                save_still(&picture, &folder.path().join(name)).is_err(),
                "{name}"
            );
        }
        let long = vec![0; 20_000];
        let picture = SavePicture {
            width_px: 20_000,
            height_px: 1,
            channels: 1,
            samples: SaveSamples::U8(&long),
        };
        let error = save_still(&picture, &folder.path().join("a.webp")).unwrap_err();
        assert!(error.to_string().contains("16383"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
