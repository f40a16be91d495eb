//! Where a video stream ends, without decoding it.

use std::path::Path;

use ffmpeg_next::ffi;

use super::reader::Reader;
use crate::MediaError;
use crate::probe::open;

/// How far before the container's end the last packets are looked for.
const TAIL_SECS: i64 = 5;

/// End of the last frame in ticks of the stream. `start`: ticks of the first frame.
///
/// MP4 indexes are believed while their file is whole. Everything else is asked for its last
/// packets; a file that cannot be asked there is read through.
pub(crate) fn end_ticks(reader: &Reader, path: &Path, start: i64) -> Result<i64, MediaError> {
    let at_least = start.saturating_add(1);
    let Some(stream) = reader.stream() else {
        return Ok(at_least);
    };
    let outline = &reader.outline;
    let is_whole_index = outline.is_mp4 && !outline.is_fragmented && outline.cut.is_none();
    let known = stream.duration();
    if is_whole_index && known > 0 {
        let from = match stream.start_time() {
            ffi::AV_NOPTS_VALUE => start,
            time => time,
        };
        return Ok(from.saturating_add(known).max(at_least));
    }
    let index = stream.index();
    let (num, den) = reader.time_base;
    let micros = reader.input().duration();
    // SAFETY: the format context lives as long as the reader; the field is a plain integer.
    let start_micros = unsafe { (*reader.input().as_ptr()).start_time };
    let tail = (outline.cut.is_none() && micros > 0 && start_micros != ffi::AV_NOPTS_VALUE)
        .then(|| {
            let end_micros =
                i128::from(start_micros) + i128::from(micros) - i128::from(TAIL_SECS) * 1_000_000;
            let ticks = end_micros * i128::from(den) / (i128::from(num) * 1_000_000);
            i64::try_from(ticks).ok()
        })
        .flatten()
        .filter(|tail| *tail > start);
    if let Some(tail) = tail
        && let Some(end) = last_end(path, index, reader.frame_ticks, Some(tail))?
    {
        return Ok(end.max(at_least));
    }
    let end = last_end(path, index, reader.frame_ticks, None)?;
    Ok(end.unwrap_or(at_least).max(at_least))
}

/// Largest end of the packets of a stream, from about `from` on.
pub(crate) fn last_end(
    path: &Path,
    index: usize,
    frame_ticks: i64,
    from: Option<i64>,
) -> Result<Option<i64>, MediaError> {
    let mut opened = open::open(path)?;
    open::only(&mut opened.input, index);
    if let Some(from) = from {
        let stream = i32::try_from(index).unwrap_or(0);
        // SAFETY: the input is alive and borrowed mutably; the call takes plain numbers beside it.
        let answer = unsafe {
            ffi::av_seek_frame(
                opened.input.as_mut_ptr(),
                stream,
                from,
                ffi::AVSEEK_FLAG_BACKWARD,
            )
        };
        if answer < 0 {
            return Ok(None);
        }
    }
    let is_cut = opened.outline.cut.is_some();
    let mut last = None;
    while let Some(packet) = open::next_packet(&mut opened.input) {
        if packet.stream() != index || (is_cut && packet.is_corrupt()) {
            continue;
        }
        let Some(time) = packet.pts().or_else(|| packet.dts()) else {
            continue;
        };
        let ticks = if packet.duration() > 0 {
            packet.duration()
        } else {
            frame_ticks
        };
        last = last.max(Some(time.saturating_add(ticks)));
    }
    Ok(last)
}
