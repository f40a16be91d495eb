//! Writing coded sound through FFmpeg.

use std::path::{Path, PathBuf};

use ff::format::Sample;
use ff::format::sample::Type;
use ffmpeg_next as ff;

use super::decode::ffmpeg_name;
use super::encode::SoundFormat;
use crate::MediaError;

/// Samples a packet for coders that take any number.
const PCM_FRAME: usize = 4_096;
/// Full scale of 24 bits.
const FULL_24: f32 = 8_388_607.0;

/// An encoder and its file. The file is not whole before [`Sink::finish`].
pub(super) struct Sink {
    path: PathBuf,
    output: ff::format::context::Output,
    encoder: ff::encoder::Audio,
    tick: ff::Rational,
    stream_tick: ff::Rational,
    rate_hz: u32,
    frame_len: usize,
    waiting: Vec<f32>,
    written: i64,
}

impl Sink {
    pub(super) fn create(
        path: &Path,
        format: SoundFormat,
        rate_hz: u32,
    ) -> Result<Self, MediaError> {
        // FFmpeg's own message would not say why a file cannot be made.
        std::fs::File::create(path).map_err(|source| MediaError::Io {
            what: "cannot begin a sound file",
            path: path.to_path_buf(),
            source,
        })?;
        let (coder, container) = match format {
            SoundFormat::Aac { .. } => ("aac", "ipod"),
            SoundFormat::Flac => ("flac", "flac"),
            SoundFormat::Wav => ("pcm_s24le", "wav"),
        };
        let failed = |what: &'static str| {
            move |source| MediaError::Codec {
                what: format!("cannot {what} ({coder} at {rate_hz} Hz)"),
                source,
            }
        };
        let mut output = ff::format::output_as(&ffmpeg_name(path)?, container)
            .map_err(failed("begin a sound file"))?;
        let codec = ff::encoder::find_by_name(coder)
            .ok_or(ff::Error::EncoderNotFound)
            .map_err(failed("find the sound encoder"))?;
        let mut context = ff::codec::Context::new_with_codec(codec);
        context.set_threading(ff::threading::Config::count(1));
        context.set_flags(ff::codec::Flags::GLOBAL_HEADER | ff::codec::Flags::BITEXACT);
        let mut encoder = context
            .encoder()
            .audio()
            .map_err(failed("set up the sound encoder"))?;
        let tick = ff::Rational::new(1, i32::try_from(rate_hz).unwrap_or(i32::MAX));
        encoder.set_rate(tick.denominator());
        encoder.set_channel_layout(ff::ChannelLayout::STEREO);
        encoder.set_time_base(tick);
        let mut options = ff::Dictionary::new();
        match format {
            SoundFormat::Aac { bitrate_bps } => {
                encoder.set_format(Sample::F32(Type::Planar));
                encoder.set_bit_rate(bitrate_bps as usize);
                // Substituted noise would decode to other values after a jump.
                options.set("aac_pns", "0");
            }
            SoundFormat::Flac | SoundFormat::Wav => {
                encoder.set_format(Sample::I32(Type::Packed));
                // SAFETY: the context is allocated and not yet opened; a plain field is written.
                unsafe { (*encoder.as_mut_ptr()).bits_per_raw_sample = 24 };
            }
        }
        let encoder = encoder
            .open_with(options)
            .map_err(failed("open the sound encoder"))?;
        {
            let mut stream = output
                .add_stream(codec)
                .map_err(failed("add a sound stream"))?;
            stream.set_parameters(&encoder);
            stream.set_time_base(tick);
        }
        let mut options = ff::Dictionary::new();
        options.set("fflags", "bitexact");
        match format {
            // Edit lists count in this scale: the default of milliseconds would round the length.
            SoundFormat::Aac { .. } => options.set("movie_timescale", &rate_hz.to_string()),
            SoundFormat::Wav => options.set("rf64", "auto"),
            SoundFormat::Flac => {}
        }
        output
            .write_header_with(options)
            .map_err(failed("write the head of a sound file"))?;
        let stream_tick = output.stream(0).map_or(tick, |stream| stream.time_base());
        let frame_len = match encoder.frame_size() {
            0 => PCM_FRAME,
            len => len as usize,
        };
        Ok(Self {
            path: path.to_path_buf(),
            output,
            encoder,
            tick,
            stream_tick,
            rate_hz,
            frame_len,
            waiting: Vec::with_capacity(frame_len * 4),
            written: 0,
        })
    }

    fn failed(&self, what: &str, source: ff::Error) -> MediaError {
        match source {
            ff::Error::Other { errno } => MediaError::Io {
                what: "cannot write coded sound",
                path: self.path.clone(),
                source: std::io::Error::from_raw_os_error(errno),
            },
            _ => MediaError::Codec {
                what: format!("cannot {what}"),
                source,
            },
        }
    }

    /// Code `samples` (interleaved).
    pub(super) fn write(&mut self, samples: &[f32]) -> Result<(), MediaError> {
        self.waiting.extend_from_slice(samples);
        let mut done = 0;
        while self.waiting.len() - done >= self.frame_len * 2 {
            self.send(done, self.frame_len)?;
            done += self.frame_len * 2;
        }
        self.waiting.drain(..done);
        Ok(())
    }

    /// Code `count` waiting samples from value `from` on.
    fn send(&mut self, from: usize, count: usize) -> Result<(), MediaError> {
        let values = &self.waiting[from..from + count * 2];
        let format = self.encoder.format();
        let mut frame = ff::frame::Audio::new(format, count, ff::ChannelLayout::STEREO);
        frame.set_rate(self.rate_hz);
        frame.set_pts(Some(self.written));
        if format.is_planar() {
            for channel in 0..2 {
                let plane = frame.plane_mut::<f32>(channel);
                for (to, pair) in plane.iter_mut().zip(values.chunks_exact(2)) {
                    *to = pair[channel];
                }
            }
        } else {
            for (to, value) in frame.plane_mut::<i32>(0).iter_mut().zip(values) {
                *to = ((value.clamp(-1.0, 1.0) * FULL_24).round() as i32) << 8;
            }
        }
        self.encoder
            .send_frame(&frame)
            .map_err(|source| self.failed("code sound", source))?;
        self.written += count as i64;
        self.take_packets()
    }

    fn take_packets(&mut self) -> Result<(), MediaError> {
        let mut packet = ff::Packet::empty();
        loop {
            match self.encoder.receive_packet(&mut packet) {
                Ok(()) => {}
                Err(ff::Error::Eof) => return Ok(()),
                Err(ff::Error::Other { errno }) if errno == ff::util::error::EAGAIN => {
                    return Ok(());
                }
                Err(source) => return Err(self.failed("code sound", source)),
            }
            packet.set_stream(0);
            packet.rescale_ts(self.tick, self.stream_tick);
            packet
                .write_interleaved(&mut self.output)
                .map_err(|source| self.failed("write coded sound", source))?;
        }
    }

    /// Code the rest and close the file.
    pub(super) fn finish(mut self) -> Result<(), MediaError> {
        let left = self.waiting.len() / 2;
        if left > 0 {
            self.send(0, left)?;
        }
        self.encoder
            .send_eof()
            .map_err(|source| self.failed("finish coding sound", source))?;
        self.take_packets()?;
        self.output
            .write_trailer()
            .map_err(|source| self.failed("finish the sound file", source))
    }
}
