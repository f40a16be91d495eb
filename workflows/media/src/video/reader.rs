//! Decoded frames of one video stream in presentation order, with seeking.

use std::path::{Path, PathBuf};

use ffmpeg_next::codec::{self, threading};
use ffmpeg_next::error::EAGAIN;
use ffmpeg_next::format::context::Input;
use ffmpeg_next::{Error, Packet, ffi, frame, media};

use crate::MediaError;
use crate::probe::boxes::Outline;
use crate::probe::open::{self, codec};
use crate::still::MAX_PIXELS;

/// Decoder threads: fixed, so that what is held in memory does not depend on the machine.
const THREADS: usize = 4;
/// How far before the target a seek aims, in seconds, one try after the other.
const SEEK_BACK_SECS: [i64; 4] = [0, 2, 10, 60];
/// Packets in a row that may be refused by the decoder before the stream is given up.
const MAX_REFUSED: u32 = 10_000;

/// A decoded frame and its time in ticks of the stream.
pub(crate) struct Decoded {
    pub(crate) frame: frame::Video,
    pub(crate) pts: i64,
}

/// Reads one video stream.
pub(crate) struct Reader {
    path: PathBuf,
    input: Input,
    decoder: ffmpeg_next::decoder::Video,
    stream: usize,
    /// Seconds a tick: numerator, denominator.
    pub(crate) time_base: (i64, i64),
    /// Usual length of a frame in ticks, at least 1.
    pub(crate) frame_ticks: i64,
    pub(crate) outline: Outline,
    pending: Option<Packet>,
    /// Frames before it refer to pictures that were not read.
    floor: Option<i64>,
    last_pts: Option<i64>,
    is_drained: bool,
    refused_in_row: u32,
    /// Packets or frames that could not be decoded.
    pub(crate) damaged: u64,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Self, MediaError> {
        let opened = open::open(path)?;
        let mut input = opened.input;
        let stream = best_video(&input).ok_or_else(|| MediaError::BadFile {
            what: "expected a video, the file has no moving picture".to_owned(),
            path: path.to_owned(),
        })?;
        open::only(&mut input, stream);
        let found = input
            .stream(stream)
            .ok_or_else(|| codec("no stream", Error::StreamNotFound))?;
        let base = found.time_base();
        let time_base = (
            i64::from(base.numerator().max(1)),
            i64::from(base.denominator().max(1)),
        );
        let rate = found.avg_frame_rate();
        let frame_ticks = ticks_of_rate(rate.numerator(), rate.denominator(), time_base);
        let decoder = decoder_of(&found, path)?;
        Ok(Self {
            path: path.to_owned(),
            input,
            decoder,
            stream,
            time_base,
            frame_ticks,
            outline: opened.outline,
            pending: None,
            floor: None,
            last_pts: None,
            is_drained: false,
            refused_in_row: 0,
            damaged: 0,
        })
    }

    pub(crate) fn stream(&self) -> Option<ffmpeg_next::Stream<'_>> {
        self.input.stream(self.stream)
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// Sample aspect ratio for a frame: the container's word before the codec's.
    pub(crate) fn sample_aspect(&mut self, frame: &mut frame::Video) -> (i64, i64) {
        // SAFETY: all three pointers are alive for the call, which only reads from them; the
        // stream index was found in this very input.
        let ratio = unsafe {
            let context = self.input.as_mut_ptr();
            let stream = *(*context).streams.add(self.stream);
            ffi::av_guess_sample_aspect_ratio(context, stream, frame.as_mut_ptr())
        };
        if ratio.num > 0 && ratio.den > 0 {
            (i64::from(ratio.num), i64::from(ratio.den))
        } else {
            (1, 1)
        }
    }

    /// The next frame in presentation order; nothing at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Decoded>, MediaError> {
        loop {
            let mut frame = frame::Video::empty();
            match self.decoder.receive_frame(&mut frame) {
                Ok(()) => {
                    self.refused_in_row = 0;
                    let pts = frame
                        .timestamp()
                        .or_else(|| frame.pts())
                        .or_else(|| {
                            self.last_pts
                                .map(|last| last.saturating_add(self.frame_ticks))
                        })
                        .unwrap_or(0);
                    if self.floor.is_some_and(|floor| pts < floor) {
                        continue;
                    }
                    // Two frames at one time: the later one is never on screen.
                    if self.last_pts.is_some_and(|last| pts <= last) {
                        continue;
                    }
                    self.last_pts = Some(pts);
                    return Ok(Some(Decoded { frame, pts }));
                }
                Err(Error::Other { errno }) if errno == EAGAIN && !self.is_drained => {
                    self.feed()?;
                }
                Err(Error::Eof) => return Ok(None),
                Err(_) if self.is_drained => return Ok(None),
                Err(_) => {
                    self.damaged += 1;
                    self.refused()?;
                    self.feed()?;
                }
            }
        }
    }

    fn refused(&mut self) -> Result<(), MediaError> {
        self.refused_in_row += 1;
        if self.refused_in_row > MAX_REFUSED {
            return Err(MediaError::BadFile {
                what: format!(
                    "the video is damaged: {MAX_REFUSED} packets in a row could not be decoded"
                ),
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// Give the decoder one more packet, or tell it that there are none.
    fn feed(&mut self) -> Result<(), MediaError> {
        let packet = match self.pending.take() {
            Some(packet) => Some(packet),
            None => self.packet(),
        };
        let sent = match packet {
            Some(packet) => self.decoder.send_packet(&packet),
            None => {
                self.is_drained = true;
                self.decoder.send_eof()
            }
        };
        match sent {
            Ok(()) | Err(Error::Eof) => Ok(()),
            Err(Error::Other { errno }) if errno == ffmpeg_next::error::ENOMEM => {
                Err(codec("cannot decode video", Error::Other { errno }))
            }
            Err(_) => {
                self.damaged += 1;
                self.refused()
            }
        }
    }

    /// The stream's next packet that was read whole.
    fn packet(&mut self) -> Option<Packet> {
        loop {
            let packet = open::next_packet(&mut self.input)?;
            if packet.stream() != self.stream {
                continue;
            }
            if packet.is_corrupt() && self.outline.cut.is_some() {
                // Half a picture at the end of a cut file.
                self.damaged += 1;
                continue;
            }
            return Some(packet);
        }
    }

    /// Begin again at the start of the file.
    pub(crate) fn restart(&mut self) -> Result<(), MediaError> {
        let damaged = self.damaged;
        *self = Self::open(&self.path)?;
        self.damaged = damaged;
        Ok(())
    }

    /// Go to the last point from which decoding gives a frame at or before `target` (ticks), and
    /// return that frame. Falls back to the start of the file.
    pub(crate) fn seek(&mut self, target: i64, start: i64) -> Result<Option<Decoded>, MediaError> {
        for back_secs in SEEK_BACK_SECS {
            let back =
                i128::from(back_secs) * i128::from(self.time_base.1) / i128::from(self.time_base.0);
            let aim = target.saturating_sub(i64::try_from(back).unwrap_or(i64::MAX));
            if aim <= start {
                break;
            }
            if self.try_seek(aim, target)?
                && let Some(first) = self.next()?
                && first.pts <= target
            {
                return Ok(Some(first));
            }
        }
        self.restart()?;
        self.next()
    }

    /// Whether there is a key packet at or before `target` when reading from about `aim`.
    fn try_seek(&mut self, aim: i64, target: i64) -> Result<bool, MediaError> {
        let index = i32::try_from(self.stream).unwrap_or(0);
        // SAFETY: the input is alive and borrowed mutably; the call takes plain numbers beside it.
        let answer = unsafe {
            ffi::av_seek_frame(
                self.input.as_mut_ptr(),
                index,
                aim,
                ffi::AVSEEK_FLAG_BACKWARD,
            )
        };
        if answer < 0 {
            return Ok(false);
        }
        self.decoder.flush();
        self.is_drained = false;
        self.last_pts = None;
        self.refused_in_row = 0;
        self.pending = None;
        while let Some(packet) = self.packet() {
            if !packet.is_key() {
                continue;
            }
            let Some(time) = packet.pts().or_else(|| packet.dts()) else {
                continue;
            };
            if time > target {
                return Ok(false);
            }
            self.floor = Some(time);
            self.pending = Some(packet);
            return Ok(true);
        }
        Ok(false)
    }
}

/// The stream to show: the demuxer's best, never a cover picture.
pub(crate) fn best_video(input: &Input) -> Option<usize> {
    let is_cover = |stream: &ffmpeg_next::Stream<'_>| {
        stream
            .disposition()
            .contains(ffmpeg_next::format::stream::Disposition::ATTACHED_PIC)
    };
    input
        .streams()
        .best(media::Type::Video)
        .filter(|stream| !is_cover(stream))
        .map(|stream| stream.index())
}

/// Length of a frame at a rate, in ticks, rounded; a 25th of a second where the rate is not known.
pub(crate) fn ticks_of_rate(num: i32, den: i32, time_base: (i64, i64)) -> i64 {
    let (num, den) = if num > 0 && den > 0 {
        (i128::from(num), i128::from(den))
    } else {
        (25, 1)
    };
    let above = den * i128::from(time_base.1);
    let below = num * i128::from(time_base.0);
    i64::try_from((above + below / 2) / below)
        .unwrap_or(1)
        .max(1)
}

pub(crate) fn decoder_of(
    stream: &ffmpeg_next::Stream<'_>,
    path: &Path,
) -> Result<ffmpeg_next::decoder::Video, MediaError> {
    let what = || {
        let name = stream.parameters().id().name();
        format!("cannot decode the video codec {name:?}")
    };
    let fail = |source| MediaError::Codec {
        what: what(),
        source,
    };
    let mut context = codec::Context::from_parameters(stream.parameters()).map_err(fail)?;
    // SAFETY: the context is ours and not opened yet; these are plain fields.
    let (width, height) = unsafe {
        let raw = context.as_mut_ptr();
        (*raw).max_pixels = MAX_PIXELS as i64;
        (*raw).pkt_timebase = (*stream.as_ptr()).time_base;
        ((*raw).width.max(0), (*raw).height.max(0))
    };
    let pixels = u64::from(width.unsigned_abs()) * u64::from(height.unsigned_abs());
    if pixels > MAX_PIXELS {
        return Err(MediaError::TooLarge {
            what: format!(
                "the video is {width} x {height} px, expected up to {} million pixels",
                MAX_PIXELS / 1_000_000
            ),
            path: path.to_owned(),
        });
    }
    context.set_threading(threading::Config {
        count: THREADS,
        ..threading::Config::kind(threading::Type::Frame)
    });
    context.decoder().video().map_err(fail)
}
