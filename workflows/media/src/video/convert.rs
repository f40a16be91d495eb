//! Decoded frames to upright sRGB pictures with square pixels.

use ffmpeg_next::color::{Primaries, Range, Space, TransferCharacteristic};
use ffmpeg_next::format::Pixel;
use ffmpeg_next::software::scaling;
use ffmpeg_next::{ffi, frame};

use super::tone::{Gamut, ToneMap, Transfer};
use crate::probe::open::codec;
use crate::still::MAX_SIDE_PX;
use crate::{MediaError, Picture, Pixels};

/// Light and primaries of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) transfer: Transfer,
    pub(super) gamut: Gamut,
}

/// The colour facts of a frame, with the defaults for what is not tagged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding {
    /// `SWS_CS_*`.
    matrix: i32,
    is_full_range: bool,
    pub(super) look: Look,
}

/// Untagged pictures from here on are taken as BT.709, smaller ones as BT.601.
const HD_LINES: u32 = 720;
const HD_WIDTH: u32 = 1280;

pub(super) fn coding(frame: &frame::Video) -> Coding {
    let is_hd = frame.height() >= HD_LINES || frame.width() >= HD_WIDTH;
    let matrix = match frame.color_space() {
        Space::BT709 => ffi::SWS_CS_ITU709,
        Space::BT470BG | Space::SMPTE170M => ffi::SWS_CS_ITU601,
        Space::FCC => ffi::SWS_CS_FCC,
        Space::SMPTE240M => ffi::SWS_CS_SMPTE240M,
        Space::BT2020NCL | Space::BT2020CL => ffi::SWS_CS_BT2020,
        _ if is_hd => ffi::SWS_CS_ITU709,
        _ => ffi::SWS_CS_ITU601,
    };
    let format: ffi::AVPixelFormat = frame.format().into();
    // SAFETY: the descriptor table is static; unknown formats give null, which is checked.
    let is_rgb = unsafe {
        let descriptor = ffi::av_pix_fmt_desc_get(format);
        !descriptor.is_null() && (*descriptor).flags & ffi::AV_PIX_FMT_FLAG_RGB as u64 != 0
    };
    let is_jpeg_kind = matches!(
        frame.format(),
        Pixel::YUVJ420P | Pixel::YUVJ422P | Pixel::YUVJ444P | Pixel::YUVJ440P | Pixel::YUVJ411P
    );
    let is_full_range = match frame.color_range() {
        Range::JPEG => true,
        Range::MPEG => is_rgb,
        Range::Unspecified => is_rgb || is_jpeg_kind,
    };
    let transfer = match frame.color_transfer_characteristic() {
        TransferCharacteristic::SMPTE2084 => Transfer::Pq,
        TransferCharacteristic::ARIB_STD_B67 => Transfer::Hlg,
        _ => Transfer::Sdr,
    };
    let gamut = match frame.color_primaries() {
        Primaries::BT2020 => Gamut::Bt2020,
        Primaries::SMPTE432 => Gamut::P3,
        // HDR without primaries is BT.2020 everywhere it is made.
        Primaries::Unspecified if transfer != Transfer::Sdr => Gamut::Bt2020,
        _ => Gamut::Bt709,
    };
    Coding {
        matrix,
        is_full_range,
        look: Look { transfer, gamut },
    }
}

/// Size on screen before turning: square pixels by making the shorter-sampled direction longer,
/// then made smaller to `max_side_px`.
pub(crate) fn display_size(
    width_px: u32,
    height_px: u32,
    (sar_num, sar_den): (i64, i64),
    max_side_px: Option<u32>,
) -> (u32, u32) {
    let (mut width, mut height) = (u64::from(width_px), u64::from(height_px));
    let (num, den) = (sar_num.unsigned_abs(), sar_den.unsigned_abs());
    // Ratios beyond 10 are nonsense in a header, not picture shapes.
    if num > 0 && den > 0 && num <= den.saturating_mul(10) && den <= num.saturating_mul(10) {
        if num > den {
            width = ((u128::from(width) * u128::from(num) + u128::from(den / 2)) / u128::from(den))
                as u64;
        } else {
            height = ((u128::from(height) * u128::from(den) + u128::from(num / 2))
                / u128::from(num)) as u64;
        }
    }
    let limit = u64::from(max_side_px.unwrap_or(MAX_SIDE_PX).clamp(1, MAX_SIDE_PX));
    let long = width.max(height);
    if long > limit {
        width = ((width * limit + long / 2) / long).max(1);
        height = ((height * limit + long / 2) / long).max(1);
    }
    (
        u32::try_from(width).unwrap_or(MAX_SIDE_PX),
        u32::try_from(height).unwrap_or(MAX_SIDE_PX),
    )
}

/// EXIF orientation (1 to 8) of a display matrix: nine big-endian-order 16.16 values, row by row,
/// that take (x, y, 1) to the screen. Nothing for turns that are not quarter turns.
pub(crate) fn orientation_of(matrix: &[i32; 9]) -> Option<u8> {
    let sign = |value: i32| {
        if value.unsigned_abs() < 256 {
            0
        } else {
            value.signum()
        }
    };
    match [matrix[0], matrix[1], matrix[3], matrix[4]].map(sign) {
        [1, 0, 0, 1] => Some(1),
        [-1, 0, 0, 1] => Some(2),
        [-1, 0, 0, -1] => Some(3),
        [1, 0, 0, -1] => Some(4),
        [0, 1, 1, 0] => Some(5),
        [0, 1, -1, 0] => Some(6),
        [0, -1, -1, 0] => Some(7),
        [0, -1, 1, 0] => Some(8),
        _ => None,
    }
}

struct Scaler {
    context: scaling::Context,
    source: (Pixel, u32, u32),
    coding: Coding,
    tone: Option<ToneMap>,
    out: frame::Video,
}

// SAFETY: a scaling context has no tie to a thread; it is reached through `&mut` only.
unsafe impl Send for Scaler {}

/// Makes pictures of one clip, all of one size.
pub(super) struct Converter {
    size: (u32, u32),
    orientation: u8,
    scaler: Option<Scaler>,
}

impl Converter {
    /// `size`: on screen, before turning by `orientation`.
    pub(super) fn new(size: (u32, u32), orientation: u8) -> Self {
        Self {
            size,
            orientation,
            scaler: None,
        }
    }

    pub(super) fn picture(&mut self, frame: &frame::Video) -> Result<Picture, MediaError> {
        let source = (frame.format(), frame.width(), frame.height());
        let coding = coding(frame);
        let fits = |scaler: &Scaler| scaler.source == source && scaler.coding == coding;
        let size = self.size;
        let scaler = match self.scaler.take().filter(fits) {
            Some(scaler) => self.scaler.insert(scaler),
            None => self.scaler.insert(scaler_of(source, coding, size)?),
        };
        scaler
            .context
            .run(frame, &mut scaler.out)
            .map_err(|source| codec("cannot convert a video frame to RGB", source))?;
        let (width, height) = (size.0 as usize, size.1 as usize);
        let stride = scaler.out.stride(0);
        let data = scaler.out.data(0);
        let mut pixels = Vec::with_capacity(width * height * 4);
        match &scaler.tone {
            None => {
                for row in data.chunks(stride).take(height) {
                    pixels.extend_from_slice(&row[..width * 4]);
                }
            }
            Some(tone) => {
                for row in data.chunks(stride).take(height) {
                    for pixel in row[..width * 8].chunks_exact(8) {
                        let value = |at: usize| u16::from_le_bytes([pixel[at], pixel[at + 1]]);
                        let [r, g, b] = tone.map([value(0), value(2), value(4)]);
                        pixels.extend_from_slice(&[r, g, b, pixel[7]]);
                    }
                }
            }
        }
        Ok(Picture {
            width_px: size.0,
            height_px: size.1,
            pixels: Pixels::Rgba8(pixels),
        }
        .oriented(self.orientation))
    }
}

fn scaler_of(
    source: (Pixel, u32, u32),
    coding: Coding,
    (width, height): (u32, u32),
) -> Result<Scaler, MediaError> {
    let (format, from_width, from_height) = source;
    let tone = ToneMap::new(coding.look);
    let target = if tone.is_some() {
        Pixel::RGBA64LE
    } else {
        Pixel::RGBA
    };
    let filter = if width < from_width || height < from_height {
        scaling::Flags::AREA
    } else {
        scaling::Flags::BICUBIC
    };
    let flags = filter
        | scaling::Flags::ACCURATE_RND
        | scaling::Flags::FULL_CHR_H_INT
        | scaling::Flags::FULL_CHR_H_INP
        | scaling::Flags::BITEXACT;
    let mut context = scaling::Context::get(
        format,
        from_width,
        from_height,
        target,
        width,
        height,
        flags,
    )
    .map_err(|source| MediaError::Codec {
        what: format!("cannot convert video frames of {from_width} x {from_height} px"),
        source,
    })?;
    // SAFETY: the context is alive; the coefficient tables are static in FFmpeg; sizes agree.
    let answer = unsafe {
        ffi::sws_setColorspaceDetails(
            context.as_mut_ptr(),
            ffi::sws_getCoefficients(coding.matrix),
            i32::from(coding.is_full_range),
            ffi::sws_getCoefficients(ffi::SWS_CS_ITU709),
            1,
            0,
            1 << 16,
            1 << 16,
        )
    };
    if answer < 0 {
        // RGB sources have no matrix to set; anything else is told in the log.
        tracing::debug!(?format, "this pixel format takes no colour matrix");
    }
    Ok(Scaler {
        context,
        source,
        coding,
        tone,
        out: frame::Video::new(target, width, height),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_become_square_by_growing() {
        assert_eq!(display_size(720, 576, (64, 45), None), (1024, 576));
        assert_eq!(display_size(720, 480, (8, 9), None), (720, 540));
        assert_eq!(display_size(1920, 1080, (1, 1), None), (1920, 1080));
        assert_eq!(display_size(101, 55, (0, 1), None), (101, 55));
        assert_eq!(display_size(100, 50, (100_000, 1), None), (100, 50));
        assert_eq!(display_size(3840, 2160, (1, 1), Some(1280)), (1280, 720));
    }

    #[test]
    fn display_matrices_turn_like_exif() {
        let one = 1 << 16;
        let of = |a, b, c, d| orientation_of(&[a, b, 0, c, d, 0, 0, 0, 1 << 30]);
        assert_eq!(of(one, 0, 0, one), Some(1));
        // As phones write them: clockwise quarter turn, half turn, counter-clockwise.
        assert_eq!(of(0, one, -one, 0), Some(6));
        assert_eq!(of(-one, 0, 0, -one), Some(3));
        assert_eq!(of(0, -one, one, 0), Some(8));
        assert_eq!(of(-one, 0, 0, one), Some(2));
        assert_eq!(of(46341, 46341, -46341, 46341), None);
    }
}
