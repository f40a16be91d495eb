//! Segments and the source's other streams to one file, nothing of either coded again.

use std::path::{Path, PathBuf};

use engine_base::{CancelToken, ProgressEvent, ProgressSink};
use ffmpeg_next as av;

use super::source::{FrameTimes, Source};
use super::{Container, copies};
use crate::MediaError;
use crate::encode::close;
use crate::ff::{self, PartFile, failed};
use crate::mux::copy::SegmentFile;
use crate::probe::open;

mod head;
mod others;

use head::Head;
use others::Others;

/// What a file is joined from.
pub struct JoinRequest<'a> {
    /// The source, all of whose frames were taken.
    pub source: &'a Source,
    /// Segments in order, which together hold as many frames.
    pub segments: &'a [PathBuf],
    /// The new file.
    pub out: &'a Path,
}

/// What was joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinReport {
    /// Frames in all.
    pub frames: u64,
    /// Size of the file.
    pub bytes: u64,
    /// What is odd, for people.
    pub notes: Vec<String>,
}

/// Packets between two reports of progress.
const REPORT_EVERY: usize = 256;

/// Join a file. At `request.out` there is a whole file or what was there before.
///
/// # Errors
/// [`MediaError::BadFile`] for segments that are damaged or do not fit the source,
/// [`MediaError::Codec`] or [`MediaError::Io`] when the file cannot be written,
/// [`MediaError::Cancelled`].
pub fn join(
    request: &JoinRequest<'_>,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<JoinReport, MediaError> {
    let source = request.source;
    let times = source.times();
    let segments = checked(request, times.begins.len(), cancel)?;
    let delay = segments.iter().map(|s| s.delay).max().unwrap_or(0);
    let delay = usize::try_from(delay).unwrap_or(0);

    let part = PartFile::new(request.out)?;
    let parameters = match request.segments.first() {
        Some(path) => parameters_of(path)?,
        None => av::codec::Parameters::new(),
    };
    let mut others = Others::open(source.path(), source.video, source.container)?;
    let Head { mut output, rows } = head::write(source, parameters, &others, part.path())?;
    others.aim(rows);

    let base = ff::ticks(times.time_base)?;
    let picture_row = others.row(source.video).unwrap_or(0);
    let of = times.begins.len();
    let mut first = 0usize;
    let mut written = 0usize;
    for (segment, path) in segments.iter().zip(request.segments) {
        let mut packets = segment.reopen(path)?;
        while let Some((mut packet, shown)) = packets.next()? {
            if written.is_multiple_of(REPORT_EVERY) {
                cancel.check()?;
                progress.report(ProgressEvent {
                    what: "joining".into(),
                    step: written as u64,
                    of: of as u64,
                    secs_left: None,
                });
            }
            let shown = first + usize::try_from(shown).unwrap_or(0);
            let (Some(&pts), Some(dts)) = (times.begins.get(shown), dts(&times, written, delay))
            else {
                return Err(does_not_fit(path, of, shown));
            };
            let shift = others.shift(source.video);
            let until = times.begins.get(shown + 1).copied().unwrap_or(times.end);
            others.write_until(&mut output, Some((dts, base)))?;
            packet.set_pts(Some(pts.saturating_sub(shift)));
            packet.set_dts(Some(dts.saturating_sub(shift)));
            packet.set_duration(until.saturating_sub(pts));
            others::write(&mut output, packet, picture_row, base)?;
            written += 1;
        }
        first += usize::try_from(segment.frames).unwrap_or(0);
    }
    others.write_until(&mut output, None)?;
    cancel.check()?;
    close(output, part.path())?;
    Ok(JoinReport {
        frames: written as u64,
        bytes: part.keep()?,
        notes: others.notes(),
    })
}

/// See [`Source::try_out`].
pub(super) fn try_head(source: &Source, out: &Path) -> Result<(), MediaError> {
    let encoder = source.format.encoder()?;
    let part = PartFile::new(out)?;
    let others = Others::open(source.path(), source.video, source.container)?;
    let head = head::write(
        source,
        av::codec::Parameters::from(&encoder),
        &others,
        part.path(),
    )?;
    drop(head);
    drop(part);
    Ok(())
}

/// Decoding time of the packet `index`: frames come `delay` frames before they are shown.
fn dts(times: &FrameTimes, index: usize, delay: usize) -> Option<i64> {
    if let Some(at) = index.checked_sub(delay) {
        return times.begins.get(at).copied();
    }
    let ahead = times
        .begins
        .get(delay)?
        .saturating_sub(*times.begins.first()?);
    Some(times.begins.get(index)?.saturating_sub(ahead))
}

fn does_not_fit(path: &Path, of: usize, got: usize) -> MediaError {
    MediaError::BadFile {
        what: format!("join segments: expected {of} frames in all, got {got} and more"),
        path: path.to_owned(),
    }
}

fn checked(
    request: &JoinRequest<'_>,
    frames: usize,
    cancel: &CancelToken,
) -> Result<Vec<SegmentFile>, MediaError> {
    let format = request.source.format.film_format();
    let mut segments: Vec<SegmentFile> = Vec::with_capacity(request.segments.len());
    let mut held = 0i64;
    for path in request.segments {
        cancel.check()?;
        let segment = SegmentFile::check(path, &format)?;
        if segments
            .first()
            .is_some_and(|first| first.parameter_sets != segment.parameter_sets)
        {
            return Err(MediaError::BadFile {
                what: "join segments: the parameter sets differ from those of the first".to_owned(),
                path: path.clone(),
            });
        }
        held += segment.frames;
        segments.push(segment);
    }
    if usize::try_from(held) != Ok(frames) || frames == 0 {
        return Err(MediaError::BadRequest(format!(
            "join segments: expected {frames} frames in all, got {held}"
        )));
    }
    Ok(segments)
}

fn parameters_of(path: &Path) -> Result<av::codec::Parameters, MediaError> {
    let opened = open::open(path)?;
    let stream = opened.input.streams().best(av::media::Type::Video);
    stream
        .map(|stream| stream.parameters())
        .ok_or_else(|| MediaError::BadFile {
            what: "join a segment: it holds no pictures".to_owned(),
            path: path.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_times_rise_and_come_before_showing() {
        let times = FrameTimes {
            time_base: (1, 1000),
            begins: vec![100, 133, 200, 201, 300, 1300],
            end: 1400,
        };
        for delay in 0..6 {
            let dts: Vec<i64> = (0..6).map(|n| dts(&times, n, delay).unwrap()).collect();
            assert!(dts.windows(2).all(|pair| pair[0] < pair[1]), "{dts:?}");
            for (index, dts) in dts.iter().enumerate() {
                // The earliest frame that this packet may show.
                let shown = index.saturating_sub(delay);
                assert!(*dts <= times.begins[shown], "{delay} {index}");
            }
        }
        assert_eq!(dts(&times, 6, 0), None);
    }
}
