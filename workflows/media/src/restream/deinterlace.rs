//! Interlaced frames to whole ones, one for one, by FFmpeg's bwdif.

use ffmpeg_next::error::EAGAIN;
use ffmpeg_next::filter::{self, Graph};
use ffmpeg_next::{Error, Rescale as _, ffi, frame};

use crate::MediaError;
use crate::probe::open::codec;
use crate::video::Decoded;

const WHAT: &str = "cannot deinterlace";
const SOURCE: &str = "in";
const SINK: &str = "out";

/// Takes frames in order and gives as many, each one frame later. Frames that are not interlaced
/// pass as they are.
pub(super) struct Deinterlacer {
    graph: Graph,
    time_base: ffmpeg_next::Rational,
}

impl Deinterlacer {
    /// For frames like `frame`.
    pub(super) fn new(frame: &frame::Video, time_base: (i64, i64)) -> Result<Self, MediaError> {
        let failed = |source| codec(WHAT, source);
        let small = |value| i32::try_from(value).map_err(|_large| failed(Error::InvalidData));
        let time_base = ffmpeg_next::Rational::new(small(time_base.0)?, small(time_base.1)?);
        let missing = || failed(Error::FilterNotFound);
        let mut graph = Graph::new();
        let arguments = format!(
            "video_size={}x{}:pix_fmt={}:time_base={}/{}:pixel_aspect=1/1",
            frame.width(),
            frame.height(),
            ffi::AVPixelFormat::from(frame.format()) as i32,
            time_base.numerator(),
            time_base.denominator()
        );
        let source = filter::find("buffer").ok_or_else(missing)?;
        graph.add(&source, SOURCE, &arguments).map_err(failed)?;
        let sink = filter::find("buffersink").ok_or_else(missing)?;
        graph.add(&sink, SINK, "").map_err(failed)?;
        graph
            .output(SOURCE, 0)
            .and_then(|parser| parser.input(SINK, 0))
            .and_then(|parser| parser.parse("bwdif=mode=send_frame:parity=auto:deint=interlaced"))
            .map_err(failed)?;
        graph.validate().map_err(failed)?;
        Ok(Self { graph, time_base })
    }

    /// Take one more frame; nothing for the end.
    pub(super) fn push(&mut self, frame: Option<Decoded>) -> Result<(), MediaError> {
        let mut source = self
            .graph
            .get(SOURCE)
            .ok_or_else(|| codec(WHAT, Error::Bug))?;
        match frame {
            Some(mut decoded) => {
                decoded.frame.set_pts(Some(decoded.pts));
                source.source().add(&decoded.frame)
            }
            None => source.source().flush(),
        }
        .map_err(|source| codec(WHAT, source))
    }

    /// The next frame that is ready.
    pub(super) fn pull(&mut self) -> Result<Option<Decoded>, MediaError> {
        let mut sink = self
            .graph
            .get(SINK)
            .ok_or_else(|| codec(WHAT, Error::Bug))?;
        let mut sink = sink.sink();
        let mut frame = frame::Video::empty();
        match sink.frame(&mut frame) {
            Ok(()) => {
                let pts = frame.pts().ok_or_else(|| codec(WHAT, Error::InvalidData))?;
                // The filter counts in finer ticks.
                let pts = pts.rescale(sink.time_base(), self.time_base);
                Ok(Some(Decoded { frame, pts }))
            }
            Err(Error::Eof) => Ok(None),
            Err(Error::Other { errno }) if errno == EAGAIN => Ok(None),
            Err(error) => Err(codec(WHAT, error)),
        }
    }
}
