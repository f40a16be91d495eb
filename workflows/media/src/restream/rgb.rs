//! Decoded frames as full-range RGB of 16 bits, in the frame's own matrix.

use std::ffi::CStr;
use std::ptr;

use ffmpeg_next::format::Pixel;
use ffmpeg_next::software::scaling;
use ffmpeg_next::{Error, ffi, frame};

use super::RgbPicture;
use super::coding::{Coding, Layout};
use crate::MediaError;
use crate::probe::open::codec;

const WHAT: &str = "cannot convert a video frame to RGB";

/// A scaling context, freed with it.
struct Sws(*mut ffi::SwsContext);

// SAFETY: a scaling context has no tie to a thread; it is reached through `&mut` only.
unsafe impl Send for Sws {}

impl Drop for Sws {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `sws_alloc_context` and is freed once; null is allowed.
        unsafe { ffi::sws_freeContext(self.0) };
    }
}

/// What a context was made for.
type Shape = (Pixel, u32, u32);

/// Converts the frames of one video.
pub(super) struct ToRgb {
    coding: Coding,
    made: Option<(Shape, Sws, frame::Video)>,
}

impl ToRgb {
    pub(super) const fn new(coding: Coding) -> Self {
        Self { coding, made: None }
    }

    /// The frame as RGB. What is transparent is shown over black.
    pub(super) fn picture(&mut self, frame: &frame::Video) -> Result<RgbPicture, MediaError> {
        let shape = (frame.format(), frame.width(), frame.height());
        let (_, sws, planes) = match self.made.take().filter(|made| made.0 == shape) {
            Some(made) => self.made.insert(made),
            None => {
                let layout = Layout::of(shape.0).ok_or_else(|| codec(WHAT, Error::InvalidData))?;
                let target = if layout.has_alpha {
                    Pixel::GBRAP16LE
                } else {
                    Pixel::GBRP16LE
                };
                let sws = context(shape, target, &self.coding)?;
                let planes = frame::Video::new(target, shape.1, shape.2);
                self.made.insert((shape, sws, planes))
            }
        };
        let height = i32::try_from(shape.2).map_err(|_large| codec(WHAT, Error::InvalidData))?;
        // SAFETY: the context was made for frames of this format and size and for `planes`, whose
        // buffers are its own; both frames are alive for the call.
        let rows = unsafe {
            let (from, to) = (frame.as_ptr(), planes.as_mut_ptr());
            ffi::sws_scale(
                sws.0,
                (*from).data.as_ptr().cast(),
                (*from).linesize.as_ptr(),
                0,
                height,
                (*to).data.as_ptr(),
                (*to).linesize.as_ptr(),
            )
        };
        if rows < 0 {
            return Err(codec(WHAT, Error::from(rows)));
        }
        Ok(interleaved(planes))
    }
}

fn context(
    (format, width, height): Shape,
    target: Pixel,
    coding: &Coding,
) -> Result<Sws, MediaError> {
    // SAFETY: takes nothing; null is checked below.
    let sws = Sws(unsafe { ffi::sws_alloc_context() });
    if sws.0.is_null() {
        return Err(codec(
            WHAT,
            Error::Other {
                errno: ffmpeg_next::error::ENOMEM,
            },
        ));
    }
    let flags = scaling::Flags::BICUBIC
        | scaling::Flags::ACCURATE_RND
        | scaling::Flags::FULL_CHR_H_INT
        | scaling::Flags::FULL_CHR_H_INP
        | scaling::Flags::BITEXACT;
    let chroma = Layout::of(format).map_or((0, 0), |layout| layout.chroma);
    let (across, down) = coding.chroma_place();
    let pixel = |format: Pixel| ffi::AVPixelFormat::from(format) as i64;
    let options: [(&CStr, i64); 9] = [
        (c"srcw", i64::from(width)),
        (c"srch", i64::from(height)),
        (c"src_format", pixel(format)),
        (c"dstw", i64::from(width)),
        (c"dsth", i64::from(height)),
        (c"dst_format", pixel(target)),
        (c"sws_flags", i64::from(flags.bits())),
        (c"src_h_chr_pos", if chroma.0 == 1 { across } else { -513 }),
        (c"src_v_chr_pos", if chroma.1 == 1 { down } else { -513 }),
    ];
    for (name, value) in options {
        // SAFETY: the context is alive and not initialised yet; names are C strings.
        let set = unsafe { ffi::av_opt_set_int(sws.0.cast(), name.as_ptr(), value, 0) };
        if set < 0 {
            return Err(codec(WHAT, Error::from(set)));
        }
    }
    // SAFETY: the context is alive; null filters are allowed.
    let begun = unsafe { ffi::sws_init_context(sws.0, ptr::null_mut(), ptr::null_mut()) };
    if begun < 0 {
        return Err(codec(WHAT, Error::from(begun)));
    }
    // SAFETY: the context is alive; the coefficient tables are static in FFmpeg.
    let told = unsafe {
        ffi::sws_setColorspaceDetails(
            sws.0,
            ffi::sws_getCoefficients(coding.sws_matrix),
            i32::from(coding.is_full_range),
            ffi::sws_getCoefficients(ffi::SWS_CS_ITU709),
            1,
            0,
            1 << 16,
            1 << 16,
        )
    };
    if told < 0 {
        // RGB has no matrix to set; anything else is told in the log.
        tracing::debug!(?format, "this pixel format takes no colour matrix");
    }
    Ok(sws)
}

fn interleaved(planes: &frame::Video) -> RgbPicture {
    let (width, height) = (planes.width() as usize, planes.height() as usize);
    let mut values = vec![0u16; width * height * 3];
    let row = |plane: usize, y: usize| {
        let first = y * planes.stride(plane);
        planes.data(plane)[first..first + width * 2]
            .as_chunks::<2>()
            .0
    };
    let has_alpha = planes.format() == Pixel::GBRAP16LE;
    for (y, to) in values.chunks_exact_mut((width * 3).max(1)).enumerate() {
        let (greens, blues, reds) = (row(0, y), row(1, y), row(2, y));
        for (x, pixel) in to.as_chunks_mut::<3>().0[..width].iter_mut().enumerate() {
            *pixel = [reds[x], greens[x], blues[x]].map(u16::from_le_bytes);
        }
        if has_alpha {
            let alphas = row(3, y);
            for (pixel, alpha) in to.as_chunks_mut::<3>().0.iter_mut().zip(alphas) {
                let alpha = u32::from(u16::from_le_bytes(*alpha));
                *pixel = pixel.map(|value| ((u32::from(value) * alpha + 32_767) / 65_535) as u16);
            }
        }
    }
    RgbPicture {
        width_px: planes.width(),
        height_px: planes.height(),
        values,
    }
}
