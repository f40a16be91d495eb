//! Segments: runs of redrawn frames, coded by libx264, by index.

use std::path::Path;

use engine_base::Rational;
use ffmpeg_next as av;
use flow_timeline::FilmFormat;

use super::coding::Coding;
use super::{RgbPicture, yuv};
use crate::MediaError;
use crate::encode::{EncodeOptions, EncodeReport, sound_instructions};
use crate::ff::{self, failed};
use crate::segment_file::SegmentFile;

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
    file: SegmentFile,
}

impl SegmentEncoder {
    /// An encoder for a new segment at `path`, an MP4 file.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for options out of range, [`MediaError::Codec`] when libx264 is
    /// not there, takes no such size, or the file cannot be made.
    pub fn create(path: &Path, format: &SegmentFormat) -> Result<Self, MediaError> {
        let rate = ff::rational(format.rate)?;
        Ok(Self {
            file: SegmentFile::create(path, format.encoder()?, rate)?,
            format: format.clone(),
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
        let coding = &self.format.coding;
        self.file.push(|frame| yuv::fill(frame, picture, coding))
    }

    /// Code what is waiting, close the file, sync it and move it to its place.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] without a picture, [`MediaError::Codec`] or [`MediaError::Io`]
    /// when the rest cannot be written; then nothing is at the place.
    pub fn finish(self) -> Result<EncodeReport, MediaError> {
        self.file.finish()
    }
}
