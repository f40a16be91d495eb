//! TIFF files to raw samples.

use std::io::{BufRead, Seek};
use std::path::Path;

use tiff::ColorType;
use tiff::TiffError;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;

use super::raw::{Colour, Model, Raw, Sample, Samples, linear_to_srgb};
use super::{MAX_PIXELS, bad, check_size};
use crate::MediaError;

/// `ExtraSamples` value of alpha that the colours are already multiplied by.
const ASSOCIATED_ALPHA: u16 = 1;

fn failed(error: &TiffError, len_bytes: u64, path: &Path) -> MediaError {
    match error {
        TiffError::IoError(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => bad(
            path,
            format!(
                "the TIFF picture is cut off: the file ends after {len_bytes} bytes, before data \
                 that its directory points at"
            ),
        ),
        TiffError::LimitsExceeded => MediaError::TooLarge {
            what: "the TIFF picture needs more memory than is allowed".to_owned(),
            path: path.to_owned(),
        },
        TiffError::UnsupportedError(what) => bad(
            path,
            format!("the TIFF picture is of a kind that is not read: {what}"),
        ),
        other => bad(path, format!("the TIFF picture is damaged: {other}")),
    }
}

pub(super) fn decode<R: BufRead + Seek>(
    reader: R,
    len_bytes: u64,
    path: &Path,
) -> Result<Raw, MediaError> {
    let fail = |error: TiffError| failed(&error, len_bytes, path);
    let mut limits = Limits::default();
    limits.decoding_buffer_size = usize::try_from(MAX_PIXELS * 16).unwrap_or(usize::MAX);
    limits.intermediate_buffer_size = limits.decoding_buffer_size / 4;
    limits.ifd_value_size = 64 << 20;
    let mut decoder = Decoder::new(reader).map_err(fail)?.with_limits(limits);
    let (width_px, height_px) = decoder.dimensions().map_err(fail)?;
    check_size(width_px, height_px, path)?;
    let kind = decoder.colortype().map_err(fail)?;
    let (model, bits) = match kind {
        ColorType::Gray(bits) => (Model::Gray, bits),
        ColorType::GrayA(bits) => (Model::GrayAlpha, bits),
        ColorType::RGB(bits) => (Model::Rgb, bits),
        ColorType::RGBA(bits) => (Model::Rgba, bits),
        ColorType::CMYK(bits) => (Model::Cmyk, bits),
        other => {
            return Err(bad(
                path,
                format!(
                    "the TIFF picture has samples of kind {other:?}, expected gray, RGB or CMYK"
                ),
            ));
        }
    };
    let mut notes = Vec::new();
    let orientation = decoder
        .find_tag_unsigned::<u16>(Tag::Orientation)
        .ok()
        .flatten()
        .and_then(|value| u8::try_from(value).ok())
        .filter(|value| (1..=8).contains(value))
        .unwrap_or(1);
    let icc = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    let extra = decoder
        .find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)
        .ok()
        .flatten()
        .unwrap_or_default();
    let mut data = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut data).map_err(fail)?;
    if decoder.more_images() {
        notes.push("several pages: only the first is used".to_owned());
    }
    let pixels = width_px as usize * height_px as usize;
    let mut samples =
        samples(data, bits, (width_px as usize, pixels), &mut notes).ok_or_else(|| {
            bad(
                path,
                format!("the TIFF picture has {bits} bits a sample, expected 1, 8, 16 or float"),
            )
        })?;
    let channels = model.channels();
    let got = match &mut samples {
        Samples::U8(data) => fitted(data, pixels, channels, layout.planes),
        Samples::U16(data) => fitted(data, pixels, channels, layout.planes),
    };
    if !got {
        return Err(bad(
            path,
            format!(
                "the TIFF picture is damaged: its data does not fill {width_px} x {height_px} px"
            ),
        ));
    }
    if extra.first() == Some(&ASSOCIATED_ALPHA) && matches!(model, Model::GrayAlpha | Model::Rgba) {
        match &mut samples {
            Samples::U8(data) => straighten(data, channels),
            Samples::U16(data) => straighten(data, channels),
        }
        notes.push("alpha was multiplied into the colours and was taken out again".to_owned());
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
        orientation,
        notes,
    })
}

fn samples(
    data: DecodingResult,
    bits: u8,
    (width, pixels): (usize, usize),
    notes: &mut Vec<String>,
) -> Option<Samples> {
    match data {
        DecodingResult::U8(data) if bits == 8 => Some(Samples::U8(data)),
        DecodingResult::U8(data) if bits == 1 => {
            // Rows start on whole bytes; the first pixel is in the high bit.
            let mut out = Vec::with_capacity(pixels);
            for row in data.chunks_exact(width.div_ceil(8)) {
                out.extend((0..width).map(|x| (row[x / 8] >> (7 - x % 8) & 1) * 255));
            }
            Some(Samples::U8(out))
        }
        DecodingResult::U16(data) if bits == 16 => Some(Samples::U16(data)),
        DecodingResult::F32(data) => {
            notes.push("floating-point samples were taken as light and limited to 0..1".to_owned());
            Some(Samples::U16(
                data.iter()
                    .map(|light| {
                        // NaN clamps to NaN, which the cast makes 0.
                        let value = linear_to_srgb(f64::from(light.clamp(0.0, 1.0)));
                        (value * 65535.0 + 0.5) as u16
                    })
                    .collect(),
            ))
        }
        _ => None,
    }
}

/// Interleave planes if there are several; whether the data fills the picture.
fn fitted<T: Sample>(data: &mut Vec<T>, pixels: usize, channels: usize, planes: usize) -> bool {
    if planes > 1 {
        if planes < channels || data.len() < pixels * channels {
            return false;
        }
        let stride = data.len() / planes;
        if stride < pixels {
            return false;
        }
        let mut out = Vec::with_capacity(pixels * channels);
        for at in 0..pixels {
            out.extend((0..channels).map(|plane| data[plane * stride + at]));
        }
        *data = out;
    }
    data.len() == pixels * channels
}

fn straighten<T: Sample>(data: &mut [T], channels: usize) {
    for pixel in data.chunks_exact_mut(channels) {
        let (colours, alpha) = pixel.split_at_mut(channels - 1);
        let alpha = u64::from(alpha[0].wide());
        if alpha == 0 {
            continue;
        }
        for value in colours {
            let whole = (u64::from(value.wide()) * u64::from(T::MAX) + alpha / 2) / alpha;
            *value = T::narrow(u32::try_from(whole).unwrap_or(u32::MAX));
        }
    }
}
