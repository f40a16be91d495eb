//! Reads what [`Probe`] says.

use std::path::Path;

use engine_base::{Rational, RationalError};
use ffmpeg_next::codec::{self, Id};
use ffmpeg_next::format::stream::Disposition;
use ffmpeg_next::{Stream, ffi, frame, media};

use super::open::{self, Opened};
use super::rate::{pace, suggested};
use super::{AudioStream, ColourTags, Probe, SubtitleStream, VideoStream};
use crate::MediaError;
use crate::video::{Reader, display_matrix, display_size, end_ticks, last_end, orientation_of};

/// Packets and bytes from the start that decide whether the rate is variable.
const PACE_PACKETS: usize = 4000;
const PACE_BYTES: usize = 64 << 20;
/// Packets of sound that may be without an audible sample at the start.
const SILENT_PACKETS: usize = 200;

pub(super) fn probe(path: &Path) -> Result<Probe, MediaError> {
    let Opened {
        input,
        outline,
        len_bytes,
    } = open::open(path)?;
    let mut notes = Vec::new();
    if let Some(cut) = &outline.cut {
        notes.push(format!(
            "the end is missing, the file was not finished when it was written: {cut}"
        ));
    }
    let best = crate::video::best_video(&input);
    let mut start = None;
    let mut video = Vec::new();
    for stream in input.streams() {
        let is_picture = stream.parameters().medium() == media::Type::Video
            && !stream.disposition().contains(Disposition::ATTACHED_PIC);
        if !is_picture {
            continue;
        }
        if Some(stream.index()) == best {
            let (first, described) = shown_video(path, &mut notes)?;
            start = Some(first);
            video.insert(0, described);
        } else {
            notes.push(format!(
                "stream {} is a further picture, which is not used",
                stream.index()
            ));
        }
    }
    let sounds: Vec<(usize, Option<Rational>)> = input
        .streams()
        .filter(|stream| stream.parameters().medium() == media::Type::Audio)
        .map(|stream| Ok((stream.index(), audible_from(path, &stream)?)))
        .collect::<Result<_, MediaError>>()?;
    let start = start
        .or_else(|| sounds.iter().find_map(|(_, first)| *first))
        .unwrap_or(Rational::ZERO);
    let mut audio = Vec::new();
    for (index, first) in sounds {
        if let Some(stream) = input.stream(index) {
            audio.push(described_audio(path, &stream, first, start)?);
        }
    }
    if video.is_empty() && audio.is_empty() {
        return Err(MediaError::BadFile {
            what: "expected video or sound, the file has neither".to_owned(),
            path: path.to_owned(),
        });
    }
    let subtitles = input
        .streams()
        .filter(|stream| stream.parameters().medium() == media::Type::Subtitle)
        .map(|stream| described_subtitle(&stream))
        .collect();
    let lengths = video.iter().map(|stream| Some(stream.duration_secs));
    let duration_secs = lengths
        .chain(audio.iter().map(|stream| stream.duration_secs))
        .flatten()
        .max();
    Ok(Probe {
        container: input.format().name().to_owned(),
        len_bytes,
        duration_secs,
        start_secs: start,
        is_cut: outline.cut.is_some(),
        video,
        audio,
        subtitles,
        notes,
    })
}

fn out_of_range(error: &RationalError, path: &Path) -> MediaError {
    MediaError::BadFile {
        what: format!("the file is damaged, its time stamps are out of range: {error}"),
        path: path.to_owned(),
    }
}

fn seconds(ticks: i64, (num, den): (i64, i64), path: &Path) -> Result<Rational, MediaError> {
    Rational::new(num, den)
        .and_then(|tick| tick.checked_mul(Rational::whole(ticks)))
        .map_err(|error| out_of_range(&error, path))
}

fn base_of(stream: &Stream<'_>) -> (i64, i64) {
    let base = stream.time_base();
    (
        i64::from(base.numerator().max(1)),
        i64::from(base.denominator().max(1)),
    )
}

fn rate_of(rate: ffmpeg_next::Rational) -> Option<Rational> {
    (rate.numerator() > 0 && rate.denominator() > 0)
        .then(|| Rational::new(i64::from(rate.numerator()), i64::from(rate.denominator())).ok())
        .flatten()
}

/// The stream that [`crate::video::VideoFrames`] shows, and when it starts in the file's time.
fn shown_video(
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<(Rational, VideoStream), MediaError> {
    let mut reader = Reader::open(path)?;
    let Some(mut first) = reader.next()? else {
        return Err(MediaError::BadFile {
            what: "the video has no picture that can be decoded".to_owned(),
            path: path.to_owned(),
        });
    };
    let base = reader.time_base;
    let end = end_ticks(&reader, path, first.pts)?;
    let duration_secs = seconds(end.saturating_sub(first.pts), base, path)?;
    let sample_aspect = reader.sample_aspect(&mut first.frame);
    let Some(stream) = reader.stream() else {
        return Err(MediaError::BadFile {
            what: "the video stream is gone after opening".to_owned(),
            path: path.to_owned(),
        });
    };
    let pace = pace(packet_times(path, stream.index())?);
    let is_vfr = pace.as_ref().is_some_and(|pace| pace.is_vfr);
    let frames = u64::try_from(stream.frames())
        .ok()
        .filter(|count| *count > 0 && reader.outline.cut.is_none());
    let base_fps = rate_of(stream.rate());
    let average_fps = average(&stream, frames.filter(|_| is_vfr), duration_secs);
    let largest_fps = match &pace {
        Some(pace) if is_vfr => largest(pace.shortest, base, base_fps),
        _ => average_fps,
    };
    if is_vfr {
        let show = |rate: Option<Rational>| {
            rate.map_or_else(|| "?".to_owned(), |rate| format!("{:.2}", rate.as_f64()))
        };
        notes.push(format!(
            "variable frame rate: {} frames a second on average, {} at most",
            show(average_fps),
            show(largest_fps)
        ));
    }
    let matrix = display_matrix(&stream);
    let orientation = matrix.as_ref().and_then(orientation_of).unwrap_or(1);
    let (width_px, height_px) = (first.frame.width(), first.frame.height());
    let shown = display_size(width_px, height_px, sample_aspect, None);
    let (display_width_px, display_height_px) = if orientation >= 5 {
        (shown.1, shown.0)
    } else {
        shown
    };
    if first.frame.is_interlaced() {
        notes.push("interlaced: both fields are shown in one picture".to_owned());
    }
    let colour = colour_tags(&first.frame);
    if colour.is_hdr {
        notes.push("HDR: shown with a simple tone curve".to_owned());
    }
    let (pixel_format, bit_depth) = pixel_format(&first.frame);
    let described = VideoStream {
        index: stream.index(),
        codec: codec_name(&stream),
        width_px,
        height_px,
        sample_aspect: Rational::new(sample_aspect.0, sample_aspect.1)
            .map_err(|error| out_of_range(&error, path))?,
        display_width_px,
        display_height_px,
        orientation,
        display_matrix: matrix,
        average_fps,
        largest_fps,
        base_fps,
        is_vfr,
        suggested_fps: suggested(average_fps, is_vfr),
        frames,
        duration_secs,
        pixel_format,
        bit_depth,
        colour,
    };
    Ok((seconds(first.pts, base, path)?, described))
}

/// Frames over time: counted where the container's own average is thrown off by gaps.
fn average(stream: &Stream<'_>, frames: Option<u64>, duration_secs: Rational) -> Option<Rational> {
    let counted = frames
        .and_then(|count| i64::try_from(count).ok())
        .and_then(|count| Rational::whole(count).checked_div(duration_secs).ok());
    counted
        .or_else(|| rate_of(stream.avg_frame_rate()))
        .or_else(|| rate_of(stream.rate()))
}

/// Rate of the shortest distance; FFmpeg's figure where both agree but for the ticks' rounding.
fn largest(shortest: i64, (num, den): (i64, i64), base_fps: Option<Rational>) -> Option<Rational> {
    let ticks = num.checked_mul(shortest.max(1))?;
    let measured = Rational::new(den, ticks).ok()?;
    match base_fps {
        Some(base) if (base.as_f64() / measured.as_f64() - 1.0).abs() < 0.05 => Some(base),
        _ => Some(measured),
    }
}

fn packet_times(path: &Path, index: usize) -> Result<Vec<i64>, MediaError> {
    let mut opened = open::open(path)?;
    open::only(&mut opened.input, index);
    let mut times = Vec::new();
    let mut bytes = 0usize;
    while let Some(packet) = open::next_packet(&mut opened.input) {
        bytes = bytes.saturating_add(packet.size());
        if packet.stream() == index
            && let Some(time) = packet.pts()
        {
            times.push(time);
        }
        if times.len() >= PACE_PACKETS || bytes >= PACE_BYTES {
            // The last ones may come before others that were not read.
            times.sort_unstable();
            let keep = times.len() - times.len() / 16;
            times.truncate(keep);
            break;
        }
    }
    Ok(times)
}

/// File time of the first sample that a decoder gives. Decoders drop encoder delay where the
/// container marks it; unmarked delay is silence that is part of the sound.
fn audible_from(path: &Path, stream: &Stream<'_>) -> Result<Option<Rational>, MediaError> {
    let ticks = first_sample(path, stream.index())?.or_else(|| known(stream.start_time()));
    ticks
        .map(|ticks| seconds(ticks, base_of(stream), path))
        .transpose()
}

fn known(ticks: i64) -> Option<i64> {
    (ticks != ffi::AV_NOPTS_VALUE).then_some(ticks)
}

fn first_sample(path: &Path, index: usize) -> Result<Option<i64>, MediaError> {
    let mut opened = open::open(path)?;
    open::only(&mut opened.input, index);
    let Some(stream) = opened.input.stream(index) else {
        return Ok(None);
    };
    let Ok(mut context) = codec::Context::from_parameters(stream.parameters()) else {
        return Ok(None);
    };
    // SAFETY: the context is ours and not opened yet; the stream is alive; both are plain fields.
    unsafe { (*context.as_mut_ptr()).pkt_timebase = (*stream.as_ptr()).time_base };
    // No decoder for it: the container's word is used.
    let Ok(mut decoder) = context.decoder().audio() else {
        return Ok(None);
    };
    for _ in 0..SILENT_PACKETS {
        let Some(packet) = open::next_packet(&mut opened.input) else {
            break;
        };
        if packet.stream() != index {
            continue;
        }
        if decoder.send_packet(&packet).is_err() {
            continue;
        }
        let mut frame = frame::Audio::empty();
        if decoder.receive_frame(&mut frame).is_ok() {
            return Ok(frame.pts().or_else(|| frame.timestamp()));
        }
    }
    Ok(None)
}

fn described_audio(
    path: &Path,
    stream: &Stream<'_>,
    first: Option<Rational>,
    start: Rational,
) -> Result<AudioStream, MediaError> {
    let base = base_of(stream);
    let from = first.unwrap_or(start);
    let end = if stream.duration() > 0 {
        let begin = known(stream.start_time()).unwrap_or(0);
        Some(begin.saturating_add(stream.duration()))
    } else {
        last_end(path, stream.index(), 0, None)?
    };
    let duration_secs = end
        .map(|end| seconds(end, base, path))
        .transpose()?
        .and_then(|end| end.checked_sub(from).ok())
        .filter(|length| *length > Rational::ZERO);
    // SAFETY: the parameters live as long as the stream; these are plain fields.
    let (hz, channels) = unsafe {
        let parameters = (*stream.as_ptr()).codecpar;
        (
            (*parameters).sample_rate,
            (*parameters).ch_layout.nb_channels,
        )
    };
    Ok(AudioStream {
        index: stream.index(),
        codec: codec_name(stream),
        sample_rate_hz: u32::try_from(hz).unwrap_or(0),
        channels: u32::try_from(channels).unwrap_or(0),
        language: tag(stream, "language"),
        start_secs: from
            .checked_sub(start)
            .map_err(|error| out_of_range(&error, path))?,
        duration_secs,
    })
}

fn described_subtitle(stream: &Stream<'_>) -> SubtitleStream {
    SubtitleStream {
        index: stream.index(),
        codec: codec_name(stream),
        language: tag(stream, "language"),
        title: tag(stream, "title"),
        is_forced: stream.disposition().contains(Disposition::FORCED),
    }
}

fn tag(stream: &Stream<'_>, name: &str) -> Option<String> {
    let metadata = stream.metadata();
    let value = metadata.get(name)?.trim();
    (!value.is_empty() && value != "und").then(|| value.chars().take(200).collect())
}

fn codec_name(stream: &Stream<'_>) -> String {
    match stream.parameters().id() {
        Id::None => "unknown".to_owned(),
        id => id.name().to_owned(),
    }
}

fn colour_tags(frame: &frame::Video) -> ColourTags {
    use ffmpeg_next::color::TransferCharacteristic as Transfer;
    let transfer = frame.color_transfer_characteristic();
    let owned = |name: Option<&'static str>| name.map(str::to_owned);
    ColourTags {
        matrix: owned(frame.color_space().name()),
        primaries: owned(frame.color_primaries().name()),
        transfer: owned(transfer.name()),
        range: owned(frame.color_range().name()),
        is_hdr: matches!(transfer, Transfer::SMPTE2084 | Transfer::ARIB_STD_B67),
    }
}

fn pixel_format(frame: &frame::Video) -> (String, u8) {
    let Some(descriptor) = frame.format().descriptor() else {
        return ("unknown".to_owned(), 8);
    };
    // SAFETY: descriptors are static in FFmpeg; each has four components, of which the first is
    // always filled.
    let depth = unsafe { (*descriptor.as_ptr()).comp[0].depth };
    (
        descriptor.name().to_owned(),
        u8::try_from(depth).unwrap_or(8),
    )
}
