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
    let is_rgb = has_flag(frame.format(), ffi::AV_PIX_FMT_FLAG_RGB);
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

/// Whether a pixel format has an `AV_PIX_FMT_FLAG_*`.
fn has_flag(format: Pixel, flag: i32) -> bool {
    // SAFETY: the descriptor table is static; unknown formats give null, which is checked.
    let flags = unsafe {
        let descriptor = ffi::av_pix_fmt_desc_get(format.into());
        if descriptor.is_null() {
            return false;
        }
        (*descriptor).flags
    };
    flags & u64::from(flag.unsigned_abs()) != 0
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

    /// `spare`: a picture that is no longer needed, whose memory is used again.
    pub(super) fn picture(
        &mut self,
        frame: &frame::Video,
        spare: Option<Picture>,
    ) -> Result<Picture, MediaError> {
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
        let bytes = width * height * 4;
        let mut pixels = match spare.map(|picture| picture.pixels) {
            Some(Pixels::Rgba8(data)) if data.len() == bytes => data,
            _ => vec![0u8; bytes],
        };
        for (y, row) in pixels.chunks_exact_mut(width * 4).enumerate() {
            scaler.row(y, width, row);
        }
        Ok(Picture {
            width_px: size.0,
            height_px: size.1,
            pixels: Pixels::Rgba8(pixels),
        }
        .oriented(self.orientation))
    }
}

impl Scaler {
    /// Row `y` of what was converted last, as 8-bit RGBA.
    fn row(&self, y: usize, width: usize, to: &mut [u8]) {
        let line = |plane: usize, bytes: usize| {
            let first = y * self.out.stride(plane);
            &self.out.data(plane)[first..first + bytes]
        };
        match (&self.tone, self.out.format()) {
            (Some(tone), _) => {
                let from = line(0, width * 8);
                for (pixel, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(4)) {
                    let value = |at: usize| u16::from_le_bytes([pixel[at], pixel[at + 1]]);
                    let [r, g, b] = tone.map([value(0), value(2), value(4)]);
                    to.copy_from_slice(&[r, g, b, pixel[7]]);
                }
            }
            (None, Pixel::GBRP) => {
                let (greens, blues, reds) = (line(0, width), line(1, width), line(2, width));
                // Plain indices over equal lengths: the form that becomes vector code.
                for (x, pixel) in to.as_chunks_mut::<4>().0[..width].iter_mut().enumerate() {
                    *pixel = [reds[x], greens[x], blues[x], 255];
                }
            }
            (None, _) => to.copy_from_slice(line(0, width * 4)),
        }
    }
}

fn scaler_of(
    source: (Pixel, u32, u32),
    coding: Coding,
    (width, height): (u32, u32),
) -> Result<Scaler, MediaError> {
    let (format, from_width, from_height) = source;
    let tone = ToneMap::new(coding.look);
    // Planes come out of swscale four times as fast as interleaved pixels of the same accuracy.
    let target = if tone.is_some() {
        Pixel::RGBA64LE
    } else if has_flag(format, ffi::AV_PIX_FMT_FLAG_ALPHA) {
        Pixel::RGBA
    } else {
        Pixel::GBRP
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
