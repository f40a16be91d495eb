//! H.264 by libx264, as segments that can be joined without coding again.
//!
//! A segment is an MP4 file: it keeps time stamps and parameter sets exactly, and any player shows
//! it. Every segment of one film format and one [`EncodeOptions`] has the same parameter sets;
//! groups of pictures are closed and of fixed length; the encoder's thread count is part of the
//! options, never taken from the machine. So equal frames give equal bytes.

use std::path::Path;

use engine_base::Rational;
use ffmpeg_next as av;
use flow_timeline::FilmFormat;
use serde::{Deserialize, Serialize};

use crate::MediaError;
use crate::ff::{self, failed};
use crate::render::YuvFrame;
use crate::segment_file::SegmentFile;

/// Speed against size, as libx264 names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Fastest, largest; for tests and previews.
    Ultrafast,
    /// Much faster than the default.
    Veryfast,
    /// Faster than the default.
    Fast,
    /// The default.
    #[default]
    Medium,
    /// Slower, smaller.
    Slow,
}

impl Preset {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ultrafast => "ultrafast",
            Self::Veryfast => "veryfast",
            Self::Fast => "fast",
            Self::Medium => "medium",
            Self::Slow => "slow",
        }
    }
}

/// How pictures are coded. Everything here decides bytes and belongs in keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EncodeOptions {
    /// Constant quality, 0 (lossless) to 51.
    pub crf: u8,
    /// Speed against size.
    pub preset: Preset,
    /// Encoder threads, 1 to 32. Fixed, since it changes bytes.
    pub threads: u8,
    /// Frames from one key frame to the next, 1 to 1000.
    pub gop_frames: u16,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            crf: 18,
            preset: Preset::Medium,
            threads: 4,
            gop_frames: 48,
        }
    }
}

impl EncodeOptions {
    pub(crate) fn check(&self) -> Result<(), MediaError> {
        let bad = |what: String| Err(MediaError::BadRequest(what));
        if self.crf > 51 {
            return bad(format!("encode at crf {}: expected 0 to 51", self.crf));
        }
        if !(1..=32).contains(&self.threads) {
            return bad(format!(
                "encode with {} threads: expected 1 to 32",
                self.threads
            ));
        }
        if !(1..=1000).contains(&self.gop_frames) {
            return bad(format!(
                "encode with a key frame every {} frames: expected 1 to 1000",
                self.gop_frames
            ));
        }
        Ok(())
    }
}

/// Version of the libraries that decide the bytes, for keys.
pub fn codec_version() -> String {
    let name = |v: u32| format!("{}.{}.{}", v >> 16, (v >> 8) & 255, v & 255);
    format!(
        "avcodec {} avformat {}",
        name(av::codec::version()),
        name(av::format::version())
    )
}

/// What was coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodeReport {
    /// Frames in the file.
    pub frames: i64,
    /// Its size.
    pub bytes: u64,
}

/// Codes frames into a segment file. Dropped before [`Self::finish`], nothing is left behind.
pub struct VideoEncoder {
    file: SegmentFile,
    width_px: usize,
    height_px: usize,
}

impl VideoEncoder {
    /// An encoder for a new segment at `path`.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for options or a format out of range, [`MediaError::Codec`] when
    /// libx264 is not there or the file cannot be made.
    pub fn create(
        path: &Path,
        format: &FilmFormat,
        options: &EncodeOptions,
    ) -> Result<Self, MediaError> {
        ff::init()?;
        options.check()?;
        format
            .check()
            .map_err(|error| MediaError::BadRequest(error.to_string()))?;
        let rate = ff::rational(format.fps)?;
        let codec = av::encoder::find_by_name("libx264").ok_or_else(|| MediaError::Codec {
            what: "find the encoder libx264".into(),
            source: av::Error::EncoderNotFound,
        })?;
        let mut context = av::codec::context::Context::new_with_codec(codec)
            .encoder()
            .video()
            .map_err(failed("make an encoder"))?;
        context.set_width(format.width_px);
        context.set_height(format.height_px);
        context.set_format(av::format::Pixel::YUV420P);
        context.set_time_base(rate.invert());
        context.set_frame_rate(Some(rate));
        context.set_aspect_ratio((1, 1));
        context.set_gop(u32::from(options.gop_frames));
        context.set_colorspace(av::color::Space::BT709);
        context.set_color_range(av::color::Range::MPEG);
        context.set_flags(
            av::codec::Flags::GLOBAL_HEADER
                | av::codec::Flags::BITEXACT
                | av::codec::Flags::CLOSED_GOP,
        );
        // SAFETY: the context is alive and not opened yet; these are plain fields that the safe
        // binding has no setters for.
        unsafe {
            let raw = context.as_mut_ptr();
            (*raw).thread_count = i32::from(options.threads);
            (*raw).keyint_min = i32::from(options.gop_frames);
            (*raw).color_primaries = av::ffi::AVColorPrimaries::AVCOL_PRI_BT709;
            (*raw).color_trc = av::ffi::AVColorTransferCharacteristic::AVCOL_TRC_BT709;
            (*raw).chroma_sample_location = av::ffi::AVChromaLocation::AVCHROMA_LOC_LEFT;
        }
        let mut dictionary = av::Dictionary::new();
        dictionary.set("preset", options.preset.name());
        dictionary.set("crf", &options.crf.to_string());
        dictionary.set("forced-idr", "1");
        // `stitchable` keeps parameter sets free of what a segment happens to hold; no scene cuts,
        // so that key frames stand where the interval says.
        let params = format!(
            "scenecut=0:open-gop=0:stitchable=1:force-cfr=1{}",
            sound_instructions()
        );
        dictionary.set("x264-params", &params);
        let encoder = context
            .open_as_with(codec, dictionary)
            .map_err(failed("open the encoder libx264"))?;
        Ok(Self {
            file: SegmentFile::create(path, encoder, rate)?,
            width_px: format.width_px as usize,
            height_px: format.height_px as usize,
        })
    }

    /// Code the next frame.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for a frame of another size, [`MediaError::Codec`] when the
    /// encoder or the disk refuses.
    pub fn push(&mut self, frame: &YuvFrame) -> Result<(), MediaError> {
        let (width, height) = (self.width_px, self.height_px);
        if (frame.width_px, frame.height_px) != (width, height) {
            return Err(MediaError::BadRequest(format!(
                "encode a frame of {}x{} px: expected {width}x{height}",
                frame.width_px, frame.height_px
            )));
        }
        self.file.push(|coded| {
            for (index, plane) in [&frame.y, &frame.u, &frame.v].into_iter().enumerate() {
                let width = if index == 0 { width } else { width / 2 };
                let stride = coded.stride(index);
                let rows = coded.data_mut(index).chunks_mut(stride);
                for (out, row) in rows.zip(plane.chunks_exact(width)) {
                    out[..width].copy_from_slice(row);
                }
            }
        })
    }

    /// Code what is waiting, close the file, sync it and move it to its place.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] without a frame, [`MediaError::Codec`] or [`MediaError::Io`]
    /// when the rest cannot be written; then nothing is at the place.
    pub fn finish(self) -> Result<EncodeReport, MediaError> {
        self.file.finish()
    }
}

/// Write the packets that are ready to the only stream of a segment; frames count in `frame_base`.
pub(crate) fn drain(
    encoder: &mut av::encoder::Video,
    output: &mut av::format::context::Output,
    frame_base: av::Rational,
    path: &Path,
) -> Result<(), MediaError> {
    let stream_base = output
        .stream(0)
        .map_or(frame_base, |stream| stream.time_base());
    let mut packet = av::Packet::empty();
    loop {
        match encoder.receive_packet(&mut packet) {
            Ok(()) => {
                packet.set_stream(0);
                packet.set_duration(1);
                packet.rescale_ts(frame_base, stream_base);
                packet
                    .write_interleaved(output)
                    .map_err(failed(format!("write to {path:?}")))?;
            }
            Err(av::Error::Eof) => return Ok(()),
            Err(av::Error::Other { errno }) if errno == av::error::EAGAIN => return Ok(()),
            Err(error) => return Err(failed("encode a frame")(error)),
        }
    }
}

/// Parameter that keeps libx264 from its AVX-512 code. That of its rate control looks past the
/// end of a row when the frame is not a multiple of 128 px wide, so that what is coded depends on
/// what the memory held before. AVX2 is always there where AVX-512 is.
pub(crate) fn sound_instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        return ":asm=AVX2,FMA3,BMI2";
    }
    ""
}

/// Write the trailer and make sure that all of it reached the file.
pub(crate) fn close(
    mut output: av::format::context::Output,
    path: &Path,
) -> Result<(), MediaError> {
    let what = || format!("write the end of {path:?}");
    output.write_trailer().map_err(failed(what()))?;
    // SAFETY: the output context is alive and owns its open file until it is dropped.
    let error = unsafe {
        let file = (*output.as_ptr()).pb;
        av::ffi::avio_flush(file);
        (*file).error
    };
    if error < 0 {
        return Err(failed(what())(av::Error::from(error)));
    }
    Ok(())
}

/// Seconds of `frames` at `fps`, exactly.
pub(crate) fn seconds(frames: i64, fps: Rational) -> Result<Rational, MediaError> {
    fps.time_of_frame(frames).map_err(|error| {
        MediaError::BadRequest(format!("time of frame {frames} at {fps} a second: {error}"))
    })
}
