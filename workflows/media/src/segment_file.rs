//! The file of one segment: an encoder, what it writes to, and how many frames it took.

use std::path::Path;

use ffmpeg_next as av;

use crate::MediaError;
use crate::encode::{EncodeReport, close, drain};
use crate::ff::{self, PartFile, failed};

/// A segment that is being coded. Dropped before [`Self::finish`], nothing is left behind.
pub(crate) struct SegmentFile {
    encoder: av::encoder::Video,
    // Closed before the part file is moved or removed.
    output: Option<av::format::context::Output>,
    part: PartFile,
    frame: av::frame::Video,
    frame_base: av::Rational,
    frames: i64,
}

impl SegmentFile {
    /// A new MP4 file at `path` for what `encoder` codes at `rate` frames a second.
    pub(crate) fn create(
        path: &Path,
        encoder: av::encoder::Video,
        rate: av::Rational,
    ) -> Result<Self, MediaError> {
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
        let frame = av::frame::Video::new(encoder.format(), encoder.width(), encoder.height());
        Ok(Self {
            encoder,
            output: Some(output),
            part,
            frame,
            frame_base,
            frames: 0,
        })
    }

    /// Code the next frame, which `fill` draws.
    pub(crate) fn push(
        &mut self,
        fill: impl FnOnce(&mut av::frame::Video),
    ) -> Result<(), MediaError> {
        // SAFETY: the frame is alive; FFmpeg gives it buffers of its own where the encoder still
        // holds the old ones.
        let ready = unsafe { av::ffi::av_frame_make_writable(self.frame.as_mut_ptr()) };
        if ready < 0 {
            return Err(failed("make room for a frame")(av::Error::from(ready)));
        }
        fill(&mut self.frame);
        self.frame.set_pts(Some(self.frames));
        self.frames += 1;
        self.encoder
            .send_frame(&self.frame)
            .map_err(failed("encode a frame"))?;
        self.drain()
    }

    fn drain(&mut self) -> Result<(), MediaError> {
        match &mut self.output {
            Some(output) => drain(&mut self.encoder, output, self.frame_base, self.part.path()),
            None => Ok(()),
        }
    }

    /// Code what is waiting, close the file, sync it and move it to its place.
    pub(crate) fn finish(mut self) -> Result<EncodeReport, MediaError> {
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
            close(output, self.part.path())?;
        }
        Ok(EncodeReport {
            frames: self.frames,
            bytes: self.part.keep()?,
        })
    }
}
