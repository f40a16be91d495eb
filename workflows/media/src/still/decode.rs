//! PNG, JPEG and WebP files to raw samples.

use std::io::{BufRead, Seek, SeekFrom};
use std::path::Path;

use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::{ColorType, ImageDecoder, ImageError};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::raw::{Colour, Model, Raw, Samples};
use super::sniff::Kind;
use super::{MAX_PIXELS, MAX_SIDE_PX, bad, check_size, header, tiff};
use crate::MediaError;

/// A JPEG is held in memory; no camera writes larger ones.
const MAX_JPEG_BYTES: u64 = 512 << 20;

pub(super) fn decode<R: BufRead + Seek>(
    kind: Kind,
    mut reader: R,
    len_bytes: u64,
    path: &Path,
) -> Result<Raw, MediaError> {
    match kind {
        Kind::Png => png(reader, len_bytes, path),
        Kind::WebP => webp(reader, len_bytes, path),
        Kind::Tiff => tiff::decode(reader, len_bytes, path),
        Kind::Jpeg => {
            if len_bytes > MAX_JPEG_BYTES {
                return Err(MediaError::TooLarge {
                    what: format!(
                        "the JPEG file has {len_bytes} bytes, expected up to {MAX_JPEG_BYTES}"
                    ),
                    path: path.to_owned(),
                });
            }
            let mut data = Vec::with_capacity(len_bytes as usize);
            reader
                .read_to_end(&mut data)
                .map_err(|source| read_failed(path, source))?;
            jpeg(&data, path)
        }
    }
}

fn read_failed(path: &Path, source: std::io::Error) -> MediaError {
    MediaError::Io {
        what: "cannot read a picture",
        path: path.to_owned(),
        source,
    }
}

/// Limits for decoders that take some: the samples of the largest picture and as much again.
pub(super) fn limits() -> image::Limits {
    let mut limits = image::Limits::no_limits();
    limits.max_image_width = Some(MAX_SIDE_PX);
    limits.max_image_height = Some(MAX_SIDE_PX);
    limits.max_alloc = Some(MAX_PIXELS * 16);
    limits
}

/// A decoder's failure in words, with the place where the file was cut if it was.
fn failed(name: &str, cut: Option<&str>, error: &ImageError, path: &Path) -> MediaError {
    match (cut, error) {
        (Some(cut), _) => bad(path, format!("the {name} picture is cut off: {cut}")),
        (None, ImageError::Limits(limit)) => MediaError::TooLarge {
            what: format!("the {name} picture needs more memory than is allowed: {limit}"),
            path: path.to_owned(),
        },
        (None, ImageError::Unsupported(what)) => bad(
            path,
            format!("the {name} picture is of a kind that is not read: {what}"),
        ),
        (None, error) => bad(path, format!("the {name} picture is damaged: {error}")),
    }
}

fn png<R: BufRead + Seek>(mut reader: R, len_bytes: u64, path: &Path) -> Result<Raw, MediaError> {
    let facts = header::png(&mut reader, len_bytes).map_err(|source| read_failed(path, source))?;
    reader
        .seek(SeekFrom::Start(0))
        .map_err(|source| read_failed(path, source))?;
    check_png_size(&mut reader, path)?;
    let cut = facts.cut.as_deref();
    let mut decoder = PngDecoder::with_limits(reader, limits())
        .map_err(|error| failed("PNG", cut, &error, path))?;
    let (width_px, height_px) = decoder.dimensions();
    check_size(width_px, height_px, path)?;
    // Deflate gives at most 1032 bytes for one.
    if decoder.total_bytes() / 1040 > len_bytes {
        return Err(bad(
            path,
            format!(
                "the PNG picture is damaged: {len_bytes} bytes cannot hold {width_px} x {height_px} px"
            ),
        ));
    }
    let mut notes = Vec::new();
    if decoder.is_apng().unwrap_or(false) {
        notes.push("animated: only the first picture is used".to_owned());
    }
    let icc = decoder.icc_profile().ok().flatten();
    let exif = decoder.exif_metadata().ok().flatten();
    let orientation = orientation(exif);
    let (model, samples) = through(decoder).map_err(|error| failed("PNG", cut, &error, path))?;
    if let Some(cut) = cut {
        // All rows were there; only what follows them is missing.
        notes.push(format!("{cut}; the picture itself is whole"));
    }
    let gamma = facts
        .gamma
        .filter(|_| !facts.has_srgb && icc.is_none() && facts.cicp.is_none());
    Ok(Raw {
        width_px,
        height_px,
        model,
        samples,
        colour: Colour {
            cicp: facts.cicp,
            icc,
            gamma,
        },
        orientation,
        notes,
    })
}

/// The decoder makes its buffers while it reads the header: hold the limits against it before.
fn check_png_size<R: BufRead + Seek>(reader: &mut R, path: &Path) -> Result<(), MediaError> {
    let mut head = [0u8; 24];
    let got = reader.read_exact(&mut head);
    reader
        .seek(SeekFrom::Start(0))
        .map_err(|source| read_failed(path, source))?;
    if got.is_err() {
        return Ok(());
    }
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if &head[12..16] == b"IHDR" {
        check_size(number(16), number(20), path)?;
    }
    Ok(())
}

fn webp<R: BufRead + Seek>(mut reader: R, len_bytes: u64, path: &Path) -> Result<Raw, MediaError> {
    let mut head = [0u8; 12];
    reader
        .read_exact(&mut head)
        .and_then(|()| reader.seek(SeekFrom::Start(0)))
        .map_err(|source| read_failed(path, source))?;
    let cut = header::webp_len_bytes(&head)
        .filter(|said| *said > len_bytes)
        .map(|said| format!("the file has {len_bytes} of {said} bytes"));
    let fail = |error: ImageError| failed("WebP", cut.as_deref(), &error, path);
    let mut decoder = WebPDecoder::new(reader).map_err(fail)?;
    let (width_px, height_px) = decoder.dimensions();
    check_size(width_px, height_px, path)?;
    decoder.set_limits(limits()).map_err(fail)?;
    let mut notes = Vec::new();
    if decoder.has_animation() {
        notes.push("animated: only the first picture is used".to_owned());
    }
    let icc = decoder.icc_profile().ok().flatten();
    let exif = decoder.exif_metadata().ok().flatten();
    let (model, samples) = through(decoder).map_err(fail)?;
    if let Some(cut) = &cut {
        notes.push(format!("{cut}; the picture itself is whole"));
    }
    Ok(Raw {
        width_px,
        height_px,
        model,
        samples,
        colour: Colour {
            icc,
            ..Colour::default()
        },
        orientation: orientation(exif),
        notes,
    })
}

/// All samples of a decoder of the `image` crate.
fn through(decoder: impl ImageDecoder) -> Result<(Model, Samples), ImageError> {
    let kind = decoder.color_type();
    let bytes = usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX);
    let model = match kind {
        ColorType::L8 | ColorType::L16 => Model::Gray,
        ColorType::La8 | ColorType::La16 => Model::GrayAlpha,
        ColorType::Rgb8 | ColorType::Rgb16 => Model::Rgb,
        _ => Model::Rgba,
    };
    let samples = match kind {
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => {
            let mut data = vec![0u16; bytes / 2];
            decoder.read_image(bytemuck::cast_slice_mut(&mut data))?;
            Samples::U16(data)
        }
        _ => {
            let mut data = vec![0u8; bytes];
            decoder.read_image(&mut data)?;
            Samples::U8(data)
        }
    };
    Ok((model, samples))
}

/// EXIF orientation from a raw EXIF block; 1 where there is none or it is damaged.
pub(super) fn orientation(block: Option<Vec<u8>>) -> u8 {
    let Some(mut block) = block else { return 1 };
    if block.starts_with(b"Exif\0\0") {
        block.drain(..6);
    }
    let mut reader = exif::Reader::new();
    reader.continue_on_error(true);
    let parsed = match reader.read_raw(block) {
        Ok(parsed) => parsed,
        Err(error) => match error.distill_partial_result(|_| ()) {
            Ok(parsed) => parsed,
            Err(_) => return 1,
        },
    };
    parsed
        .get_field(exif::Tag::Orientation, exif::In::PRIMARY)
        .and_then(|field| field.value.get_uint(0))
        .and_then(|value| u8::try_from(value).ok())
        .filter(|value| (1..=8).contains(value))
        .unwrap_or(1)
}

fn jpeg(data: &[u8], path: &Path) -> Result<Raw, MediaError> {
    let facts = header::jpeg(data);
    if facts.width_px == 0 || facts.components == 0 {
        let what = if facts.has_end {
            "the JPEG picture is damaged: it has no frame header".to_owned()
        } else {
            format!(
                "the JPEG picture is cut off: the file ends after {} bytes, before its size",
                data.len()
            )
        };
        return Err(bad(path, what));
    }
    check_size(facts.width_px, facts.height_px, path)?;
    let cut = (!facts.has_end).then(|| {
        let place = if facts.has_scan {
            "inside the picture data"
        } else {
            "before the picture data"
        };
        format!("the file ends after {} bytes, {place}", data.len())
    });
    // Every block of 8 x 8 takes at least a bit; subsampling leaves at least the first channel.
    let blocks = u64::from(facts.width_px.div_ceil(8)) * u64::from(facts.height_px.div_ceil(8));
    if blocks > data.len() as u64 * 8 {
        return Err(bad(
            path,
            format!(
                "the JPEG picture is damaged: {} bytes cannot hold {} x {} px",
                data.len(),
                facts.width_px,
                facts.height_px
            ),
        ));
    }
    let mut notes = Vec::new();
    let (decoded, strict_failure) = match jpeg_samples(data, true) {
        Ok(decoded) => (decoded, None),
        Err(strict) => {
            if let Some(cut) = &cut {
                return Err(bad(path, format!("the JPEG picture is cut off: {cut}")));
            }
            match jpeg_samples(data, false) {
                Ok(decoded) => (decoded, Some(strict)),
                Err(error) => {
                    return Err(bad(path, format!("the JPEG picture is damaged: {error}")));
                }
            }
        }
    };
    if let Some(failure) = strict_failure {
        notes.push(format!(
            "the JPEG data is damaged, parts of the picture may be wrong: {failure}"
        ));
    }
    if let Some(cut) = cut {
        notes.push(format!("{cut}; the picture itself is whole"));
    }
    let JpegSamples {
        mut samples,
        space,
        icc,
        exif,
        width_px,
        height_px,
    } = decoded;
    check_size(width_px, height_px, path)?;
    let model = match space {
        ColorSpace::Luma => Model::Gray,
        ColorSpace::RGB => Model::Rgb,
        _ => {
            if space == ColorSpace::YCCK {
                from_ycck(&mut samples);
            }
            if facts.has_adobe {
                for sample in &mut samples {
                    *sample = 255 - *sample;
                }
            }
            Model::Cmyk
        }
    };
    let expected = width_px as usize * height_px as usize * model.channels();
    if samples.len() != expected {
        return Err(bad(
            path,
            format!(
                "the JPEG picture is damaged: expected {expected} samples, got {}",
                samples.len()
            ),
        ));
    }
    Ok(Raw {
        width_px,
        height_px,
        model,
        samples: Samples::U8(samples),
        colour: Colour {
            icc,
            ..Colour::default()
        },
        orientation: orientation(exif),
        notes,
    })
}

struct JpegSamples {
    samples: Vec<u8>,
    space: ColorSpace,
    icc: Option<Vec<u8>>,
    exif: Option<Vec<u8>>,
    width_px: u32,
    height_px: u32,
}

fn jpeg_samples(data: &[u8], strict: bool) -> Result<JpegSamples, String> {
    let text = |error: zune_jpeg::errors::DecodeErrors| format!("{error:?}");
    let options = DecoderOptions::default()
        .set_strict_mode(strict)
        .set_max_width(MAX_SIDE_PX as usize)
        .set_max_height(MAX_SIDE_PX as usize);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(data), options);
    decoder.decode_headers().map_err(text)?;
    // Four-channel data is taken as stored, so that an ICC profile for inks can be used.
    let space = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => ColorSpace::Luma,
        Some(space @ (ColorSpace::CMYK | ColorSpace::YCCK)) => space,
        _ => ColorSpace::RGB,
    };
    let options = decoder.options().jpeg_set_out_colorspace(space);
    decoder.set_options(options);
    let samples = decoder.decode().map_err(text)?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    Ok(JpegSamples {
        samples,
        space,
        icc: decoder.icc_profile(),
        exif: decoder.exif().cloned(),
        width_px: u32::try_from(width).unwrap_or(0),
        height_px: u32::try_from(height).unwrap_or(0),
    })
}

/// Undo the YCbCr form of the first three channels: it holds 255 minus the stored samples (Adobe
/// Technical Note 5116). Black stands beside it as it is.
fn from_ycck(samples: &mut [u8]) {
    for pixel in samples.chunks_exact_mut(4) {
        let (y, cb, cr) = (
            f32::from(pixel[0]),
            f32::from(pixel[1]) - 128.0,
            f32::from(pixel[2]) - 128.0,
        );
        let rgb = [
            y + 1.402 * cr,
            y - 0.344_136 * cb - 0.714_136 * cr,
            y + 1.772 * cb,
        ];
        for (channel, value) in pixel.iter_mut().zip(rgb) {
            *channel = 255 - (value + 0.5).clamp(0.0, 255.0) as u8;
        }
    }
}
