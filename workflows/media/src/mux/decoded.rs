//! What a film decodes to.

use std::io::Write as _;
use std::path::Path;

use engine_base::{ContentHash, ContentHasher};
use ffmpeg_next as av;

use crate::MediaError;
use crate::ff::{self, PartFile, failed};
use crate::render::{YuvFrame, yuv_to_rgb};

/// Hashes of everything a file decodes to: equal hashes, equal pictures and sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamHashes {
    /// Over all planes of all frames in showing order.
    pub video: ContentHash,
    /// Frames.
    pub frames: u64,
    /// Over all samples, channel by channel within a packet; `None` without sound.
    pub audio: Option<ContentHash>,
    /// Samples a channel.
    pub samples: u64,
}

fn bad(path: &Path, what: impl Into<String>) -> MediaError {
    MediaError::BadFile {
        what: what.into(),
        path: path.to_owned(),
    }
}

fn open(path: &Path) -> Result<av::format::context::Input, MediaError> {
    ff::init()?;
    av::format::input(&ff::url_of(path)?).map_err(failed(format!("open {path:?}")))
}

fn context(
    stream: &av::format::stream::Stream<'_>,
) -> Result<av::codec::context::Context, MediaError> {
    let mut context = av::codec::context::Context::from_parameters(stream.parameters())
        .map_err(failed("make a decoder"))?;
    context.set_threading(av::codec::threading::Config {
        kind: av::codec::threading::Type::Frame,
        count: 2,
        safe: true,
    });
    Ok(context)
}

/// Decode all pictures and sound of `path` and hash them, in bounded memory.
///
/// # Errors
/// [`MediaError::Codec`] when the file can't be opened or decoded, [`MediaError::BadFile`] without
/// pictures.
pub fn stream_hashes(path: &Path) -> Result<StreamHashes, MediaError> {
    let mut input = open(path)?;
    let Some(stream) = input.streams().best(av::media::Type::Video) else {
        return Err(bad(path, "hash a film: it holds no pictures"));
    };
    let video_index = stream.index();
    let mut video = context(&stream)?
        .decoder()
        .video()
        .map_err(failed("open a picture decoder"))?;
    let mut audio = match input.streams().best(av::media::Type::Audio) {
        Some(stream) => Some((
            stream.index(),
            context(&stream)?
                .decoder()
                .audio()
                .map_err(failed("open a sound decoder"))?,
        )),
        None => None,
    };
    let (mut pictures, mut sound) = (Pictures::default(), Sound::default());
    let decoding = || failed(format!("decode {path:?}"));
    loop {
        let mut packet = av::Packet::empty();
        match packet.read(&mut input) {
            Ok(()) => {}
            Err(av::Error::Eof) => break,
            Err(error) => return Err(failed(format!("read {path:?}"))(error)),
        }
        if packet.stream() == video_index {
            video.send_packet(&packet).map_err(decoding())?;
            pictures.drain(&mut video).map_err(decoding())?;
        } else if let Some((index, audio)) = &mut audio
            && packet.stream() == *index
        {
            audio.send_packet(&packet).map_err(decoding())?;
            sound.drain(audio).map_err(decoding())?;
        }
    }
    video.send_eof().map_err(decoding())?;
    pictures.drain(&mut video).map_err(decoding())?;
    if let Some((_, audio)) = &mut audio {
        audio.send_eof().map_err(decoding())?;
        sound.drain(audio).map_err(decoding())?;
    }
    Ok(StreamHashes {
        video: pictures.hasher.finish(),
        frames: pictures.frames,
        audio: audio.is_some().then(|| sound.hasher.finish()),
        samples: sound.samples,
    })
}

/// Whether a decoder only wants more input or has ended.
fn is_dry(error: av::Error) -> bool {
    error == av::Error::Eof
        || matches!(error, av::Error::Other { errno } if errno == av::error::EAGAIN)
}

#[derive(Default)]
struct Pictures {
    hasher: ContentHasher,
    frames: u64,
}

impl Pictures {
    fn drain(&mut self, decoder: &mut av::decoder::Video) -> Result<(), av::Error> {
        let mut frame = av::frame::Video::empty();
        loop {
            match decoder.receive_frame(&mut frame) {
                Ok(()) => {}
                Err(error) if is_dry(error) => return Ok(()),
                Err(error) => return Err(error),
            }
            self.frames += 1;
            for_each_row(&frame, |row| {
                // A hasher takes everything.
                let _taken = self.hasher.write_all(row);
            });
        }
    }
}

#[derive(Default)]
struct Sound {
    hasher: ContentHasher,
    samples: u64,
}

impl Sound {
    fn drain(&mut self, decoder: &mut av::decoder::Audio) -> Result<(), av::Error> {
        let mut frame = av::frame::Audio::empty();
        loop {
            match decoder.receive_frame(&mut frame) {
                Ok(()) => {}
                Err(error) if is_dry(error) => return Ok(()),
                Err(error) => return Err(error),
            }
            self.samples += frame.samples() as u64;
            let unit = frame.format().bytes() * frame.samples();
            let packed = if frame.is_packed() {
                usize::from(frame.channels())
            } else {
                1
            };
            for plane in 0..frame.planes() {
                let bytes = frame.data(plane);
                let _taken = self
                    .hasher
                    .write_all(&bytes[..(unit * packed).min(bytes.len())]);
            }
        }
    }
}

/// Rows of all planes of an 8-bit 4:2:0 or any planar 8-bit frame, without padding.
fn for_each_row(frame: &av::frame::Video, mut take: impl FnMut(&[u8])) {
    let descriptor = frame.format().descriptor();
    let (shift_w, shift_h) = descriptor.map_or((0, 0), |d| (d.log2_chroma_w(), d.log2_chroma_h()));
    for plane in 0..frame.planes() {
        let chroma = plane == 1 || plane == 2;
        let shrink = |px: u32, shift: u8| if chroma { px.div_ceil(1 << shift) } else { px };
        let width = shrink(frame.width(), shift_w) as usize;
        let height = shrink(frame.height(), shift_h) as usize;
        let stride = frame.stride(plane);
        for row in frame.data(plane).chunks(stride).take(height) {
            take(&row[..width.min(row.len())]);
        }
    }
}

/// Decode frame `index` of the film at `path`.
pub(crate) fn decode_frame(path: &Path, index: i64) -> Result<YuvFrame, MediaError> {
    let mut input = open(path)?;
    let Some(stream) = input.streams().best(av::media::Type::Video) else {
        return Err(bad(path, "take a frame of a film: it holds no pictures"));
    };
    let (row, base, rate) = (stream.index(), stream.time_base(), stream.avg_frame_rate());
    let start = stream.start_time().max(0);
    let mut decoder = context(&stream)?
        .decoder()
        .video()
        .map_err(failed("open a picture decoder"))?;
    let frame_base = rate.invert();
    let time = |frame: i64| {
        use av::Rescale as _;
        start + frame.rescale(frame_base, base)
    };
    // SAFETY: the input context is alive. The nearest key frame at or before is sought; when that
    // fails decoding starts at the beginning, which gives the same frame.
    let _sought = unsafe {
        av::ffi::av_seek_frame(
            input.as_mut_ptr(),
            row as i32,
            time(index),
            av::ffi::AVSEEK_FLAG_BACKWARD,
        )
    };
    let wanted = time(index);
    let mut frame = av::frame::Video::empty();
    let mut ended = false;
    loop {
        match decoder.receive_frame(&mut frame) {
            Ok(()) if frame.timestamp().is_some_and(|at| at >= wanted) => {
                return yuv_of(&frame, path);
            }
            Ok(()) => continue,
            Err(av::Error::Eof) => {
                return Err(bad(
                    path,
                    format!("take frame {index} of a film: it ends before"),
                ));
            }
            Err(error) if is_dry(error) => {}
            Err(error) => return Err(failed(format!("decode {path:?}"))(error)),
        }
        let mut packet = av::Packet::empty();
        match packet.read(&mut input) {
            Ok(()) if packet.stream() == row => decoder
                .send_packet(&packet)
                .map_err(failed(format!("decode {path:?}")))?,
            Ok(()) => {}
            Err(av::Error::Eof) if !ended => {
                ended = true;
                decoder
                    .send_eof()
                    .map_err(failed(format!("decode {path:?}")))?;
            }
            Err(error) => return Err(failed(format!("read {path:?}"))(error)),
        }
    }
}

fn yuv_of(frame: &av::frame::Video, path: &Path) -> Result<YuvFrame, MediaError> {
    if frame.format() != av::format::Pixel::YUV420P {
        let got = frame.format();
        return Err(bad(
            path,
            format!("take a frame of a film: got {got:?}, expected YUV420P"),
        ));
    }
    let mut planes = Vec::new();
    let (width, height) = (frame.width() as usize, frame.height() as usize);
    for_each_row(frame, |row| planes.extend_from_slice(row));
    let (luma, quarter) = (width * height, width.div_ceil(2) * height.div_ceil(2));
    let v = planes.split_off(luma + quarter);
    let u = planes.split_off(luma);
    Ok(YuvFrame {
        width_px: width,
        height_px: height,
        y: planes,
        u,
        v,
    })
}

/// Write frame `frame` of the film at `path` as a PNG file.
///
/// # Errors
/// [`MediaError::BadFile`] when the film is shorter or no film of ours, [`MediaError::Codec`],
/// [`MediaError::Io`] when the PNG can't be written.
pub fn poster(path: &Path, frame: i64, out_png: &Path) -> Result<(), MediaError> {
    let yuv = decode_frame(path, frame)?;
    let rgb = yuv_to_rgb(&yuv);
    let part = PartFile::new(out_png)?;
    image::save_buffer_with_format(
        part.path(),
        &rgb,
        yuv.width_px as u32,
        yuv.height_px as u32,
        image::ExtendedColorType::Rgb8,
        image::ImageFormat::Png,
    )
    .map_err(|error| MediaError::Io {
        what: "write a poster",
        path: out_png.to_owned(),
        source: std::io::Error::other(error),
    })?;
    part.keep()?;
    Ok(())
}
