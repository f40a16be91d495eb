//! Packets of segment and sound files.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use ffmpeg_next as av;
use flow_timeline::FilmFormat;

use crate::MediaError;
use crate::ff::{self, failed};

/// A segment that was looked through.
pub(crate) struct SegmentFile {
    pub frames: i64,
    /// Frames by which decoding order runs ahead of showing order.
    pub delay: i64,
    pub parameter_sets: Vec<u8>,
    frame_base: av::Rational,
}

/// Packets of an open segment, in decoding order.
pub(crate) struct Packets {
    input: av::format::context::Input,
    stream: usize,
    base: av::Rational,
    frame_base: av::Rational,
    path: PathBuf,
}

fn bad(path: &Path, what: impl Into<String>) -> MediaError {
    MediaError::BadFile {
        what: what.into(),
        path: path.to_owned(),
    }
}

fn extradata(parameters: &av::codec::Parameters) -> Vec<u8> {
    // SAFETY: the parameters are alive; data and size describe one block that they own.
    unsafe {
        let raw = parameters.as_ptr();
        if (*raw).extradata.is_null() || (*raw).extradata_size <= 0 {
            return Vec::new();
        }
        std::slice::from_raw_parts((*raw).extradata, (*raw).extradata_size as usize).to_vec()
    }
}

impl SegmentFile {
    /// Look through the segment at `path`: H.264 of this size, a key frame first, and every frame
    /// from 0 on exactly once.
    pub(crate) fn check(path: &Path, format: &FilmFormat) -> Result<Self, MediaError> {
        let frame_base = ff::rational(format.fps)?.invert();
        let mut packets = Packets::open(path, frame_base)?;
        let parameters = packets.parameters(path)?;
        // SAFETY: the parameters are alive; plain fields.
        let (width, height) = unsafe {
            let raw = parameters.as_ptr();
            ((*raw).width, (*raw).height)
        };
        let (want_w, want_h) = (format.width_px, format.height_px);
        if parameters.id() != av::codec::Id::H264
            || (i64::from(width), i64::from(height)) != (want_w.into(), want_h.into())
        {
            return Err(bad(
                path,
                format!(
                    "join a segment: got {:?} of {width}x{height} px, expected H264 of {want_w}x{want_h} px",
                    parameters.id()
                ),
            ));
        }
        let mut shown = Vec::new();
        let mut delay = 0;
        while let Some((packet, pts)) = packets.next()? {
            let index = shown.len() as i64;
            if index == 0 && !packet.is_key() {
                return Err(bad(path, "join a segment: its first frame is no key frame"));
            }
            if packet.is_corrupt() {
                return Err(bad(
                    path,
                    format!("join a segment: frame {index} is damaged"),
                ));
            }
            delay = delay.max(index - pts);
            shown.push(pts);
        }
        shown.sort_unstable();
        let frames = shown.len() as i64;
        if frames == 0 || !shown.iter().copied().eq(0..frames) {
            return Err(bad(
                path,
                format!(
                    "join a segment: got {frames} frames, expected each frame from 0 on once at {} a second",
                    format.fps
                ),
            ));
        }
        Ok(Self {
            frames,
            delay,
            parameter_sets: extradata(&parameters),
            frame_base,
        })
    }

    pub(crate) fn reopen(&self, path: &Path) -> Result<Packets, MediaError> {
        Packets::open(path, self.frame_base)
    }
}

impl Packets {
    fn open(path: &Path, frame_base: av::Rational) -> Result<Self, MediaError> {
        let input = av::format::input(&ff::url_of(path)?)
            .map_err(failed(format!("open the segment {path:?}")))?;
        let Some(stream) = input.streams().best(av::media::Type::Video) else {
            return Err(bad(path, "join a segment: it holds no pictures"));
        };
        let (stream, base) = (stream.index(), stream.time_base());
        Ok(Self {
            input,
            stream,
            base,
            frame_base,
            path: path.to_owned(),
        })
    }

    fn parameters(&self, path: &Path) -> Result<av::codec::Parameters, MediaError> {
        self.input
            .stream(self.stream)
            .map(|stream| stream.parameters())
            .ok_or_else(|| bad(path, "join a segment: it holds no pictures"))
    }

    /// Next packet and the frame it shows.
    pub(crate) fn next(&mut self) -> Result<Option<(av::Packet, i64)>, MediaError> {
        loop {
            let mut packet = av::Packet::empty();
            match packet.read(&mut self.input) {
                Ok(()) if packet.stream() != self.stream => {}
                Ok(()) => {
                    let Some(pts) = packet.pts() else {
                        return Err(bad(&self.path, "join a segment: a frame has no time"));
                    };
                    // Exact: the container's units divide a frame. Anything else is caught by the
                    // check that every frame is there once.
                    let frame = rescale(pts, self.base, self.frame_base);
                    return Ok(Some((packet, frame)));
                }
                Err(av::Error::Eof) => return Ok(None),
                Err(error) => {
                    return Err(failed(format!("read the segment {:?}", self.path))(error));
                }
            }
        }
    }
}

fn rescale(value: i64, from: av::Rational, to: av::Rational) -> i64 {
    use av::Rescale as _;
    value.rescale(from, to)
}

/// The sound of a film.
pub(crate) struct SoundFile {
    input: av::format::context::Input,
    stream: usize,
    base: av::Rational,
    ahead: VecDeque<av::Packet>,
    ended: bool,
    /// First sample past the film.
    end: i64,
    path: PathBuf,
}

impl SoundFile {
    pub(crate) fn open(path: &Path) -> Result<Self, MediaError> {
        let input = av::format::input(&ff::url_of(path)?)
            .map_err(failed(format!("open the sound {path:?}")))?;
        let Some(stream) = input.streams().best(av::media::Type::Audio) else {
            return Err(bad(path, "join sound: the file holds none"));
        };
        if stream.parameters().id() != av::codec::Id::AAC {
            let got = stream.parameters().id();
            return Err(bad(path, format!("join sound: got {got:?}, expected AAC")));
        }
        let (stream, base) = (stream.index(), stream.time_base());
        Ok(Self {
            input,
            stream,
            base,
            ahead: VecDeque::new(),
            ended: false,
            end: i64::MAX,
            path: path.to_owned(),
        })
    }

    /// Set the film's length in samples. Times stay in samples, so the container's unit must be
    /// one.
    pub(crate) fn fit(&mut self, samples: i64, sample_rate_hz: u32) -> Result<(), MediaError> {
        let rate = i32::try_from(sample_rate_hz).unwrap_or(i32::MAX);
        if self.base != av::Rational::new(1, rate) {
            return Err(bad(
                &self.path,
                format!("join sound: got times in {}, expected 1/{rate}", self.base),
            ));
        }
        self.end = samples;
        Ok(())
    }

    pub(crate) fn base(&self) -> av::Rational {
        self.base
    }

    pub(crate) fn parameters(&self) -> av::codec::Parameters {
        self.input
            .stream(self.stream)
            .map_or_else(av::codec::Parameters::new, |stream| stream.parameters())
    }

    /// Next packet that starts before frame `until`. The last one that reaches past the film is
    /// marked to end with it; later ones are left out.
    pub(crate) fn next_before(
        &mut self,
        until: i64,
        frame_base: av::Rational,
    ) -> Result<Option<av::Packet>, MediaError> {
        while self.ahead.is_empty() && !self.ended {
            let mut packet = av::Packet::empty();
            match packet.read(&mut self.input) {
                Ok(()) if packet.stream() == self.stream => self.ahead.push_back(packet),
                Ok(()) => {}
                Err(av::Error::Eof) => self.ended = true,
                Err(error) => {
                    return Err(failed(format!("read the sound {:?}", self.path))(error));
                }
            }
        }
        let Some(start) = self.ahead.front().and_then(av::Packet::pts) else {
            return Ok(None);
        };
        if start >= self.end {
            self.ahead.clear();
            self.ended = true;
            return Ok(None);
        }
        if until != i64::MAX && start >= rescale(until, frame_base, self.base) {
            return Ok(None);
        }
        let mut packet = self.ahead.pop_front();
        if let Some(packet) = &mut packet
            && start + packet.duration() > self.end
        {
            packet.set_duration(self.end - start);
        }
        Ok(packet)
    }
}
