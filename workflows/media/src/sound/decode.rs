//! Decoding through FFmpeg at the source's own rate, as placed blocks of two channels.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

use engine_base::CancelToken;
use ff::format::Sample;
use ff::format::sample::Type;
use ffmpeg_next as ff;

use crate::MediaError;

/// The formats whose demuxers read nothing but the file itself: no play lists, no devices.
const FORMATS: &str = "wav,w64,mp3,flac,ogg,mov,mp4,m4a,matroska,webm,mpegts,mpeg,aac,ac3,eac3,\
                       aiff,caf,avi,au,asf,flv,ape,wv,tta,amr,dts,mxf";
/// Containers whose packets carry exact sample times and can be entered at any of them.
const EXACT_FORMATS: [&str; 6] = ["wav", "w64", "flac", "aiff", "caf", "au"];
/// Source rates that are read.
const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;
/// Damaged packets in a row after which the rest is given up.
const MAX_BAD_RUN: u32 = 1_000;
/// A pause in the time stamps longer than this many seconds is taken for damage.
const MAX_GAP_SECS: i64 = 3_600;

/// One decoded block. `left` and `right` are of equal length.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Source sample of the first value; 0 is the start of the file, sound or picture.
    pub(super) at: i64,
    pub(super) left: Vec<f32>,
    pub(super) right: Vec<f32>,
    /// Samples that the container says it holds, where it says so.
    declared: Option<usize>,
}

/// A source being decoded.
pub(super) struct Decoder {
    path: PathBuf,
    input: ff::format::context::Input,
    stream: usize,
    decoder: ff::decoder::Audio,
    tick: ff::Rational,
    rate_hz: u32,
    /// Time stamp of the file's start, in source samples.
    origin: Option<i64>,
    /// Time stamp, in source samples, at which the file's picture starts.
    picture_start: Option<i64>,
    /// Place that the next block has if nothing is missing.
    next_at: Option<i64>,
    /// Decoded and not yet given out: the last block may have to be cut.
    held: Option<Chunk>,
    seekable: bool,
    /// Whether the next block is the first after a jump: its place has to come from its time.
    entering: bool,
    drained: bool,
    bad_run: u32,
    /// Packets and frames that could not be decoded.
    pub(super) bad_packets: u64,
    /// Why reading stopped before the end of the file.
    pub(super) stopped: Option<String>,
    pub(super) cancel: CancelToken,
}

fn start_ffmpeg() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It only fails where a device library does, and none is used.
        ff::init().unwrap_or(());
        // Damage is reported through errors and notes, not on the terminal.
        ff::log::set_level(ff::log::Level::Quiet);
    });
}

/// `path` as FFmpeg takes it: never read as a URL.
pub(super) fn ffmpeg_name(path: &Path) -> Result<String, MediaError> {
    start_ffmpeg();
    match path.to_str() {
        Some(text) if !text.contains('\0') => Ok(format!("file:{text}")),
        _ => Err(MediaError::BadRequest(format!(
            "cannot use a file name that is not UTF-8: {path:?}"
        ))),
    }
}

fn bad_file(path: &Path, what: impl Into<String>) -> MediaError {
    MediaError::BadFile {
        what: what.into(),
        path: path.to_path_buf(),
    }
}

/// The first bytes of the file, for a message that says more than FFmpeg does.
fn look(path: &Path) -> Result<Vec<u8>, MediaError> {
    let failed = |source| MediaError::Io {
        what: "cannot read sound",
        path: path.to_path_buf(),
        source,
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(bad_file(path, "cannot read sound: it is a folder"));
    }
    let mut head = Vec::with_capacity(16);
    file.take(16).read_to_end(&mut head).map_err(failed)?;
    Ok(head)
}

fn open_input(path: &Path) -> Result<ff::format::context::Input, MediaError> {
    let name = ffmpeg_name(path)?;
    let head = look(path)?;
    if head.is_empty() {
        return Err(bad_file(
            path,
            "cannot read sound: the file is empty (0 bytes)",
        ));
    }
    let mut options = ff::Dictionary::new();
    options.set("protocol_whitelist", "file");
    options.set("format_whitelist", FORMATS);
    ff::format::input_with_dictionary(&name, options).map_err(|source| {
        if head.get(4..8) == Some(b"ftyp") {
            bad_file(
                path,
                format!("cannot read sound: the file was not finished when written, it has no index ({source})"),
            )
        } else {
            bad_file(
                path,
                format!("cannot read sound: expected a sound or video file, got something else or a damaged one ({source})"),
            )
        }
    })
}

impl Decoder {
    /// Open the best sound of `path`.
    pub(super) fn open(path: &Path, cancel: &CancelToken) -> Result<Self, MediaError> {
        let input = open_input(path)?;
        let codec_failed = |source| MediaError::Codec {
            what: format!("cannot open a decoder for the sound of {path:?}"),
            source,
        };
        let (index, tick, parameters) = {
            let stream = input
                .streams()
                .best(ff::media::Type::Audio)
                .ok_or_else(|| bad_file(path, "cannot read sound: the file has no sound"))?;
            (stream.index(), stream.time_base(), stream.parameters())
        };
        let mut context = ff::codec::Context::from_parameters(parameters).map_err(codec_failed)?;
        context.set_threading(ff::threading::Config::count(1));
        let mut decoder = context.decoder();
        decoder.set_packet_time_base(tick);
        let decoder = decoder.audio().map_err(codec_failed)?;
        let format = input.format().name().to_owned();
        let mut source = Self {
            path: path.to_path_buf(),
            stream: index,
            decoder,
            tick,
            rate_hz: 0,
            origin: None,
            picture_start: None,
            next_at: None,
            held: None,
            seekable: EXACT_FORMATS.contains(&format.as_str()),
            entering: false,
            drained: false,
            bad_run: 0,
            bad_packets: 0,
            stopped: None,
            cancel: cancel.clone(),
            input,
        };
        // The first frame tells the true rate and start: headers of some codecs do not.
        source.held = source.decode()?;
        if source.held.is_none() {
            let why = source.stopped.take().unwrap_or_default();
            let what = format!("cannot read sound: nothing in it could be decoded {why}");
            return Err(bad_file(path, what.trim_end()));
        }
        Ok(source)
    }

    pub(super) fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Length in source samples that the container states (not one guessed from a bit rate).
    pub(super) fn declared_len(&self) -> Option<i64> {
        let guessed = {
            // SAFETY: the context is open for as long as `self.input` lives; a plain field is read.
            unsafe { (*self.input.as_ptr()).duration_estimation_method }
        };
        if guessed == ff::ffi::AVDurationEstimationMethod::AVFMT_DURATION_FROM_BITRATE {
            return None;
        }
        let stream = self.input.stream(self.stream)?;
        if stream.duration() <= 0 {
            return None;
        }
        let start = match stream.start_time() {
            ff::ffi::AV_NOPTS_VALUE => 0,
            start => self.samples_of(start)?.checked_sub(self.origin?)?,
        };
        self.samples_of(stream.duration())?.checked_add(start)
    }

    /// A time stamp in source samples, rounded.
    fn samples_of(&self, ticks: i64) -> Option<i64> {
        rescale(ticks, self.tick, self.rate_hz)
    }

    /// Whether one tick is a whole part of a sample's time.
    fn exact_ticks(&self) -> bool {
        self.tick.numerator() == 1
            && i64::from(self.tick.denominator()) % i64::from(self.rate_hz.max(1)) == 0
    }

    /// The next block, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Chunk>, MediaError> {
        let Some(mut current) = self.held.take() else {
            return Ok(None);
        };
        self.held = self.decode()?;
        if self.held.is_none()
            && self.stopped.is_none()
            && let Some(declared) = current.declared
        {
            // The container's last packet is short: what follows is the encoder's padding.
            current.left.truncate(declared);
            current.right.truncate(declared);
        }
        Ok(Some(current))
    }

    /// Go to a block at or before source sample `target`. Where the format cannot be entered
    /// exactly in its middle (lossy codecs carry state from packet to packet, some containers
    /// round their times) decoding begins again at the start, so that the values are the same.
    /// Gives the place at which decoding goes on.
    pub(super) fn seek(&mut self, target: i64) -> Result<i64, MediaError> {
        if target > 0 && self.can_enter() && self.enter(target)? {
            return Ok(self.held.as_ref().map_or(0, |block| block.at));
        }
        let (bad_packets, seekable) = (self.bad_packets, self.seekable);
        let again = Self::open(&self.path, &self.cancel)?;
        *self = again;
        self.bad_packets = self.bad_packets.max(bad_packets);
        self.seekable = seekable;
        Ok(0)
    }

    pub(super) fn can_enter(&self) -> bool {
        self.seekable && self.exact_ticks()
    }

    /// Seek and verify; false when the place reached is not known to be right.
    fn enter(&mut self, target: i64) -> Result<bool, MediaError> {
        let Some(origin) = self.origin else {
            return Ok(false);
        };
        let micros = i128::from(target + origin) * 1_000_000 / i128::from(self.rate_hz.max(1));
        // A little early, as time stamps of seeks are rounded.
        let Ok(micros) = i64::try_from(micros - 1_000) else {
            return Ok(false);
        };
        if self.input.seek(micros, ..micros).is_err() {
            return Ok(false);
        }
        self.decoder.flush();
        (self.drained, self.next_at, self.bad_run) = (false, None, 0);
        self.stopped = None;
        self.entering = true;
        self.held = self.decode()?;
        self.entering = false;
        Ok(self
            .held
            .as_ref()
            .is_some_and(|block| block.at >= 0 && block.at <= target))
    }

    /// Decode one block from the packets that follow.
    fn decode(&mut self) -> Result<Option<Chunk>, MediaError> {
        let mut frame = ff::frame::Audio::empty();
        loop {
            self.cancel.check()?;
            match self.decoder.receive_frame(&mut frame) {
                Ok(()) => {
                    if frame.samples() == 0 || frame.planes() == 0 {
                        continue;
                    }
                    self.bad_run = 0;
                    match self.place(&frame) {
                        Ok(chunk) => return Ok(Some(chunk)),
                        Err(why) => {
                            self.stopped = Some(why);
                            return Ok(None);
                        }
                    }
                }
                Err(ff::Error::Eof) => return Ok(None),
                Err(ff::Error::Other { errno }) if errno == ff::util::error::EAGAIN => {
                    if self.drained {
                        return Ok(None);
                    }
                    self.feed();
                }
                Err(error) => self.count_bad(&error),
            }
            if self.stopped.is_some() && !self.drained {
                self.drain();
            }
        }
    }

    fn count_bad(&mut self, error: &ff::Error) {
        self.bad_packets += 1;
        self.bad_run += 1;
        if self.bad_run > MAX_BAD_RUN {
            self.stopped = Some(format!("(too much damage: {error})"));
        }
    }

    fn drain(&mut self) {
        self.drained = true;
        if let Err(error) = self.decoder.send_eof() {
            self.count_bad(&error);
        }
    }

    /// Hand the next packet of the stream to the decoder, or tell it that there is none.
    fn feed(&mut self) {
        let mut packet = ff::Packet::empty();
        match packet.read(&mut self.input) {
            Ok(()) if packet.stream() != self.stream => {}
            Ok(()) => {
                if let Err(error) = self.decoder.send_packet(&packet) {
                    self.count_bad(&error);
                }
            }
            Err(ff::Error::Eof) => self.drain(),
            Err(error @ ff::Error::InvalidData) => self.count_bad(&error),
            Err(error) => {
                self.stopped = Some(format!("(reading stopped: {error})"));
            }
        }
    }

    /// Copy a frame out and find its place.
    fn place(&mut self, frame: &ff::frame::Audio) -> Result<Chunk, String> {
        let rate_hz = frame.rate();
        if self.rate_hz == 0 {
            if !RATES_HZ.contains(&rate_hz) {
                return Err(format!("(its sample rate is {rate_hz} Hz)"));
            }
            self.rate_hz = rate_hz;
            self.picture_start = self.find_picture_start();
        } else if rate_hz != self.rate_hz {
            return Err(format!(
                "(the sample rate changes from {} to {rate_hz} Hz)",
                self.rate_hz
            ));
        }
        let stamp = frame
            .timestamp()
            .or(frame.pts())
            .and_then(|ticks| self.samples_of(ticks));
        let origin = *self.origin.get_or_insert_with(|| {
            let first = stamp.unwrap_or(0);
            // A picture that starts earlier is where the file starts.
            self.picture_start.map_or(first, |start| start.min(first))
        });
        let stamped = stamp.map(|stamp| stamp.saturating_sub(origin));
        let at = match (self.next_at, stamped) {
            // A first block with no time: at the start when reading from there, else unusable.
            (None, None) if self.entering => -1,
            (None, None) => 0,
            (None, Some(at)) => at,
            (Some(expected), None) => expected,
            (Some(expected), Some(at)) => {
                let gap = at.saturating_sub(expected);
                let rate = i64::from(self.rate_hz);
                if gap > rate / 20 && gap < rate * MAX_GAP_SECS {
                    at
                } else {
                    if gap != 0 {
                        self.seekable = false;
                    }
                    expected
                }
            }
        };
        let mut chunk = Chunk {
            at,
            ..Chunk::default()
        };
        copy_stereo(frame, &mut chunk.left, &mut chunk.right)?;
        self.next_at = Some(at.saturating_add(chunk.left.len() as i64));
        if self.exact_ticks() {
            let stated = self.samples_of(frame.packet().duration).unwrap_or(0);
            chunk.declared = usize::try_from(stated)
                .ok()
                .filter(|stated| *stated > 0 && *stated < chunk.left.len());
        }
        Ok(chunk)
    }

    /// Where the file's picture begins, in this stream's samples; covers do not count.
    fn find_picture_start(&self) -> Option<i64> {
        let cover = ff::format::stream::Disposition::ATTACHED_PIC;
        self.input
            .streams()
            .filter(|stream| stream.parameters().medium() == ff::media::Type::Video)
            .filter(|stream| !stream.disposition().contains(cover))
            .filter(|stream| stream.start_time() != ff::ffi::AV_NOPTS_VALUE)
            .filter_map(|stream| rescale(stream.start_time(), stream.time_base(), self.rate_hz))
            .min()
    }
}

/// `ticks` of `tick` seconds in samples at `rate_hz`, rounded; `None` out of a sane range.
fn rescale(ticks: i64, tick: ff::Rational, rate_hz: u32) -> Option<i64> {
    let den = i128::from(tick.denominator());
    if den <= 0 {
        return None;
    }
    let num = i128::from(ticks) * i128::from(tick.numerator()) * i128::from(rate_hz);
    let samples = (2 * num + den).div_euclid(2 * den);
    i64::try_from(samples)
        .ok()
        .filter(|samples| samples.abs() < 1 << 52)
}

/// The two channels' shares of each channel of a layout: ITU-R BS.775 for surround (centre and
/// surrounds at -3 dB, no low-frequency effects), mono at full level on both sides.
fn shares(frame: &ff::frame::Audio) -> Vec<(f32, f32)> {
    const HALF_POWER: f32 = std::f32::consts::FRAC_1_SQRT_2;
    let channels = usize::from(frame.channels());
    if channels == 1 {
        return vec![(1.0, 1.0)];
    }
    if channels == 2 {
        return vec![(1.0, 0.0), (0.0, 1.0)];
    }
    let mut mask = frame.channel_layout().bits();
    if mask.count_ones() as usize != channels {
        mask = ff::ChannelLayout::default(i32::from(frame.channels())).bits();
    }
    if mask.count_ones() as usize != channels {
        // No layout known: odd channels left, even ones right.
        return (0..channels)
            .map(|channel| {
                if channel % 2 == 0 {
                    (1.0, 0.0)
                } else {
                    (0.0, 1.0)
                }
            })
            .collect();
    }
    (0..64u32)
        .filter(|bit| mask >> bit & 1 == 1)
        .map(|bit| match bit {
            // Front left, left of centre, wide left.
            0 | 6 | 31 => (1.0, 0.0),
            1 | 7 | 32 => (0.0, 1.0),
            2 => (HALF_POWER, HALF_POWER),
            // The two low-frequency channels.
            3 | 35 => (0.0, 0.0),
            // Back left, side left, top front left, top back left.
            4 | 9 | 12 | 15 => (HALF_POWER, 0.0),
            5 | 10 | 14 | 17 => (0.0, HALF_POWER),
            _ => (0.5, 0.5),
        })
        .collect()
}

/// A frame of any sample format and layout as two channels of f32.
fn copy_stereo(
    frame: &ff::frame::Audio,
    left: &mut Vec<f32>,
    right: &mut Vec<f32>,
) -> Result<(), String> {
    let shares = shares(frame);
    match frame.format() {
        Sample::U8(kind) => fold(frame, kind, &shares, left, right, |v: u8| {
            (f32::from(v) - 128.0) / 128.0
        }),
        Sample::I16(kind) => fold(frame, kind, &shares, left, right, |v: i16| {
            f32::from(v) / 32_768.0
        }),
        Sample::I32(kind) => fold(frame, kind, &shares, left, right, |v: i32| {
            (f64::from(v) / 2_147_483_648.0) as f32
        }),
        Sample::F32(kind) => fold(frame, kind, &shares, left, right, |v: f32| v),
        Sample::F64(kind) => fold(frame, kind, &shares, left, right, |v: f64| v as f32),
        Sample::I64(_) | Sample::None => return Err("(its sample format is not read)".to_owned()),
    }
    Ok(())
}

fn fold<T: ff::frame::audio::Sample + Copy>(
    frame: &ff::frame::Audio,
    kind: Type,
    shares: &[(f32, f32)],
    left: &mut Vec<f32>,
    right: &mut Vec<f32>,
    value: impl Fn(T) -> f32,
) {
    let samples = frame.samples();
    left.resize(samples, 0.0);
    right.resize(samples, 0.0);
    for (channel, (to_left, to_right)) in shares.iter().enumerate() {
        let (plane, first, step) = match kind {
            Type::Planar if channel < frame.planes() => (frame.plane::<T>(channel), 0, 1),
            Type::Planar => continue,
            Type::Packed => (frame.plane::<T>(0), channel, shares.len()),
        };
        let values = plane.iter().skip(first).step_by(step);
        for ((left, right), raw) in left.iter_mut().zip(right.iter_mut()).zip(values) {
            let value = value(*raw);
            // A number that is none would spread through every later filter.
            let value = if value.is_finite() { value } else { 0.0 };
            *left += value * to_left;
            *right += value * to_right;
        }
    }
}
