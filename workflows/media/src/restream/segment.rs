//! Segments: runs of redrawn frames, coded by libx264, by index.

use std::path::Path;

use engine_base::Rational;
use ffmpeg_next as av;
use flow_timeline::FilmFormat;

use super::coding::Coding;
use super::{RgbPicture, yuv};
use crate::encode::{EncodeOptions, EncodeReport, sound_instructions};
use crate::ff::{self, PartFile, failed};
use crate::{MediaError, encode};

/// Frames that the encoder looks ahead over may take this much.
const LOOKAHEAD_BYTES: u64 = 384 << 20;

/// How the segments of one video are coded. Equal formats give equal parameter sets.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentFormat {
    /// Width, even.
    pub(super) width_px: u32,
    /// Height, even.
    pub(super) height_px: u32,
    /// Width over height of a pixel.
    pub(super) sample_aspect: Rational,
    /// Rate that the stream names; times come from the file.
    pub(super) rate: Rational,
    pub(super) is_vfr: bool,
    pub(super) coding: Coding,
    pub(super) options: EncodeOptions,
}

impl SegmentFormat {
    /// Size of the frames.
    pub const fn size_px(&self) -> (u32, u32) {
        (self.width_px, self.height_px)
    }

    /// What checks of segments take.
    pub(super) fn film_format(&self) -> FilmFormat {
        FilmFormat {
            width_px: self.width_px,
            height_px: self.height_px,
            fps: self.rate,
            ..FilmFormat::DEFAULT
        }
    }

    fn lookahead_frames(&self) -> u64 {
        let bytes = u64::from(self.width_px) * u64::from(self.height_px) * 3;
        (LOOKAHEAD_BYTES / bytes.max(1)).clamp(4, 40)
    }

    /// An encoder that was opened for this format.
    pub(super) fn encoder(&self) -> Result<av::encoder::Video, MediaError> {
        ff::init()?;
        self.options.check()?;
        let rate = ff::rational(self.rate)?;
        let codec = av::encoder::find_by_name("libx264").ok_or_else(|| MediaError::Codec {
            what: "find the encoder libx264".into(),
            source: av::Error::EncoderNotFound,
        })?;
        let mut context = av::codec::context::Context::new_with_codec(codec)
            .encoder()
            .video()
            .map_err(failed("make an encoder"))?;
        context.set_width(self.width_px);
        context.set_height(self.height_px);
        context.set_format(self.coding.pixel());
        context.set_time_base(rate.invert());
        context.set_frame_rate(Some(rate));
        context.set_aspect_ratio(ff::rational(self.sample_aspect)?);
        context.set_gop(u32::from(self.options.gop_frames));
        context.set_colorspace(self.coding.space);
        context.set_color_range(self.coding.range);
        context.set_flags(
            av::codec::Flags::GLOBAL_HEADER
                | av::codec::Flags::BITEXACT
                | av::codec::Flags::CLOSED_GOP,
        );
        // SAFETY: the context is alive and not opened yet; these are plain fields that the safe
        // binding has no setters for.
        unsafe {
            let raw = context.as_mut_ptr();
            (*raw).thread_count = i32::from(self.options.threads);
            (*raw).keyint_min = i32::from(self.options.gop_frames);
            (*raw).color_primaries = self.coding.primaries.into();
            (*raw).color_trc = self.coding.transfer.into();
            (*raw).chroma_sample_location = self.coding.siting.into();
        }
        let mut dictionary = av::Dictionary::new();
        dictionary.set("preset", self.options.preset.name());
        dictionary.set("crf", &self.options.crf.to_string());
        dictionary.set("forced-idr", "1");
        let params = format!(
            "scenecut=0:open-gop=0:stitchable=1:force-cfr={}:rc-lookahead={}{}",
            u8::from(!self.is_vfr),
            self.lookahead_frames(),
            sound_instructions()
        );
        dictionary.set("x264-params", &params);
        let (width_px, height_px) = (self.width_px, self.height_px);
        context
            .open_as_with(codec, dictionary)
            .map_err(failed(format!(
                "open the encoder libx264 for {width_px} x {height_px} px"
            )))
    }
}

/// Codes pictures into a segment file. Dropped before [`Self::finish`], nothing is left behind.
pub struct SegmentEncoder {
    format: SegmentFormat,
    encoder: av::encoder::Video,
    // Closed before the part file is moved or removed.
    output: Option<av::format::context::Output>,
    part: PartFile,
    frame: av::frame::Video,
    frame_base: av::Rational,
    frames: i64,
}

impl SegmentEncoder {
    /// An encoder for a new segment at `path`, an MP4 file.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for options out of range, [`MediaError::Codec`] when libx264 is
    /// not there, takes no such size, or the file cannot be made.
    pub fn create(path: &Path, format: &SegmentFormat) -> Result<Self, MediaError> {
        let encoder = format.encoder()?;
        let rate = ff::rational(format.rate)?;
        let frame_base = rate.invert();
        let part = PartFile::new(path)?;
        let mut output = av::format::output_as(&ff::url_of(part.path())?, "mp4")
            .map_err(failed(format!("make the segment file {path:?}")))?;
        let mut stream = output
            .add_stream(av::encoder::find(av::codec::Id::None))
            .map_err(failed("add a video stream"))?;
        stream.set_parameters(&encoder);
        stream.set_time_base(frame_base);
        stream.set_rate(rate);
        stream.set_avg_frame_rate(rate);
        // SAFETY: the output context is alive and its header not written yet.
        unsafe { (*output.as_mut_ptr()).flags |= av::ffi::AVFMT_FLAG_BITEXACT };
        output.write_header().map_err(failed(format!(
            "write the head of the segment file {path:?}"
        )))?;
        let frame = av::frame::Video::new(format.coding.pixel(), format.width_px, format.height_px);
        Ok(Self {
            format: format.clone(),
            encoder,
            output: Some(output),
            part,
            frame,
            frame_base,
            frames: 0,
        })
    }

    /// Code the next picture.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for a picture of another size, [`MediaError::Codec`] when the
    /// encoder or the disk refuses.
    pub fn push(&mut self, picture: &RgbPicture) -> Result<(), MediaError> {
        let (width, height) = self.format.size_px();
        let values = width as usize * height as usize * 3;
        if (picture.width_px, picture.height_px) != (width, height)
            || picture.values.len() != values
        {
            return Err(MediaError::BadRequest(format!(
                "encode a picture of {} x {} px and {} values: expected {width} x {height}",
                picture.width_px,
                picture.height_px,
                picture.values.len()
            )));
        }
        // SAFETY: the frame is alive; FFmpeg gives it buffers of its own where the encoder still
        // holds the old ones.
        let ready = unsafe { av::ffi::av_frame_make_writable(self.frame.as_mut_ptr()) };
        if ready < 0 {
            return Err(failed("make room for a frame")(av::Error::from(ready)));
        }
        yuv::fill(&mut self.frame, picture, &self.format.coding);
        self.frame.set_pts(Some(self.frames));
        self.frames += 1;
        self.encoder
            .send_frame(&self.frame)
            .map_err(failed("encode a frame"))?;
        self.drain()
    }

    fn drain(&mut self) -> Result<(), MediaError> {
        match &mut self.output {
            Some(output) => {
                encode::drain(&mut self.encoder, output, self.frame_base, self.part.path())
            }
            None => Ok(()),
        }
    }

    /// Code what is waiting, close the file, sync it and move it to its place.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] without a picture, [`MediaError::Codec`] or [`MediaError::Io`]
    /// when the rest cannot be written; then nothing is at the place.
    pub fn finish(mut self) -> Result<EncodeReport, MediaError> {
        if self.frames == 0 {
            return Err(MediaError::BadRequest(
                "finish a segment without frames: expected at least 1".into(),
            ));
        }
        self.encoder
            .send_eof()
            .map_err(failed("end the encoder's input"))?;
        self.drain()?;
        if let Some(output) = self.output.take() {
            encode::close(output, self.part.path())?;
        }
        Ok(EncodeReport {
            frames: self.frames,
            bytes: self.part.keep()?,
        })
    }
}
