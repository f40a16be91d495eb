//! Clips made for tests: each frame shows its own number.

use std::path::Path;

use ffmpeg_next::codec::{self, encoder};
use ffmpeg_next::format::Pixel;
use ffmpeg_next::{Dictionary, Packet, Rational, ffi, format, frame};

use crate::Picture;
use crate::probe::open::quiet;

/// Width and height of numbered frames: eight columns, one bit each.
pub(crate) const WIDTH: u32 = 128;
pub(crate) const HEIGHT: u32 = 48;

/// How to make a clip.
pub(crate) struct Clip<'a> {
    pub(crate) codec: &'a str,
    pub(crate) pixel: Pixel,
    pub(crate) size: (u32, u32),
    /// Ticks a second.
    pub(crate) hz: i32,
    /// Time stamps in ticks, rising.
    pub(crate) times: Vec<i64>,
    pub(crate) options: &'a [(&'a str, &'a str)],
    pub(crate) muxer: &'a [(&'a str, &'a str)],
    /// Matrix, primaries, transfer and range as FFmpeg numbers them.
    pub(crate) tags: [i32; 4],
    pub(crate) sample_aspect: (i32, i32),
}

impl Default for Clip<'_> {
    fn default() -> Self {
        Self {
            codec: "libx264",
            pixel: Pixel::YUV420P,
            size: (WIDTH, HEIGHT),
            hz: 25,
            times: (0..50).collect(),
            options: &[("preset", "ultrafast"), ("bf", "2"), ("g", "12")],
            muxer: &[],
            tags: [2, 2, 2, 0],
            sample_aspect: (1, 1),
        }
    }
}

fn dictionary<'a>(pairs: &[(&'a str, &'a str)]) -> Dictionary<'a> {
    let mut out = Dictionary::new();
    for (name, value) in pairs {
        out.set(name, value);
    }
    out
}

/// Encode a clip whose frame `i` is filled by `fill`.
pub(crate) fn make(path: &Path, clip: &Clip<'_>, mut fill: impl FnMut(&mut frame::Video, usize)) {
    quiet();
    let mut out = format::output(path).unwrap();
    let wants_header = out.format().flags().contains(format::Flags::GLOBAL_HEADER);
    let found = encoder::find_by_name(clip.codec).unwrap();
    let mut stream = out.add_stream(found).unwrap();
    let mut context = codec::Context::new_with_codec(found)
        .encoder()
        .video()
        .unwrap();
    let base = Rational(1, clip.hz);
    context.set_width(clip.size.0);
    context.set_height(clip.size.1);
    context.set_format(clip.pixel);
    context.set_time_base(base);
    context.set_aspect_ratio(Rational(clip.sample_aspect.0, clip.sample_aspect.1));
    if wants_header {
        context.set_flags(codec::Flags::GLOBAL_HEADER);
    }
    // SAFETY: the context is ours and not opened; the numbers are valid values of these enums.
    unsafe {
        let raw = context.as_mut_ptr();
        (*raw).colorspace = std::mem::transmute::<i32, ffi::AVColorSpace>(clip.tags[0]);
        (*raw).color_primaries = std::mem::transmute::<i32, ffi::AVColorPrimaries>(clip.tags[1]);
        (*raw).color_trc =
            std::mem::transmute::<i32, ffi::AVColorTransferCharacteristic>(clip.tags[2]);
        (*raw).color_range = std::mem::transmute::<i32, ffi::AVColorRange>(clip.tags[3]);
        (*raw).thread_count = 1;
    }
    let mut encoder = context.open_with(dictionary(clip.options)).unwrap();
    stream.set_parameters(&encoder);
    stream.set_time_base(base);
    // SAFETY: as above; the container keeps the ratio apart from the codec.
    unsafe {
        (*stream.as_mut_ptr()).sample_aspect_ratio = ffi::AVRational {
            num: clip.sample_aspect.0,
            den: clip.sample_aspect.1,
        };
    }
    out.write_header_with(dictionary(clip.muxer)).unwrap();
    let target = out.stream(0).unwrap().time_base();
    let steps: Vec<i64> = clip
        .times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    let last_step = steps.last().copied().unwrap_or(1);
    let mut write = |encoder: &mut encoder::Video| {
        let mut packet = Packet::empty();
        while encoder.receive_packet(&mut packet).is_ok() {
            packet.set_stream(0);
            let at = clip
                .times
                .iter()
                .position(|time| Some(*time) == packet.pts());
            packet.set_duration(
                at.and_then(|at| steps.get(at).copied())
                    .unwrap_or(last_step),
            );
            packet.rescale_ts(base, target);
            packet.write_interleaved(&mut out).unwrap();
        }
    };
    for (i, time) in clip.times.iter().enumerate() {
        let mut picture = frame::Video::new(clip.pixel, clip.size.0, clip.size.1);
        fill(&mut picture, i);
        picture.set_pts(Some(*time));
        encoder.send_frame(&picture).unwrap();
        write(&mut encoder);
    }
    encoder.send_eof().unwrap();
    write(&mut encoder);
    out.write_trailer().unwrap();
}

/// Draw the low eight bits of `number` as light and dark columns, in 8-bit planar YUV.
pub(crate) fn number(picture: &mut frame::Video, number: usize) {
    let stride = picture.stride(0);
    for row in picture.data_mut(0).chunks_mut(stride) {
        for (x, value) in row.iter_mut().take(WIDTH as usize).enumerate() {
            *value = if number >> (x / 16) & 1 == 1 { 210 } else { 40 };
        }
    }
    for plane in 1..3 {
        picture.data_mut(plane).fill(128);
    }
}

/// The number that [`number`] drew.
pub(crate) fn drawn(picture: &Picture) -> usize {
    (0..8)
        .filter(|bit| picture.at(bit * 16 + 8, HEIGHT / 2).unwrap()[1] > 32768)
        .map(|bit| 1 << bit)
        .sum()
}
