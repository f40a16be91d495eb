//! Joins segments, sound, subtitles and chapters into a film, without coding anything again.
//!
//! Nothing of the pictures is touched: packets are copied with new time stamps, so the film
//! decodes to exactly what the segments decode to, one after the other. Everything is checked
//! before a byte is written: parameter sets, size, frame counts. Equal inputs give equal bytes.

pub(crate) mod copy;
mod cues;
mod decoded;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, ProgressEvent, ProgressSink, Rational};
use ffmpeg_next as av;
use flow_timeline::{Chapter, Cue, FilmFormat};

use crate::MediaError;
use crate::ff::{self, PartFile, failed};

pub use decoded::{StreamHashes, poster, stream_hashes};

use copy::{SegmentFile, SoundFile};

/// What a film is joined from.
#[derive(Debug, Clone)]
pub struct MuxRequest<'a> {
    /// Segment files of one format and one set of encode options, in order.
    pub segments: &'a [PathBuf],
    /// AAC in MP4, as long as the film, its priming in the edit list.
    pub sound: Option<&'a Path>,
    /// Soft subtitles.
    pub cues: &'a [Cue],
    /// Language of speech and subtitles, such as `en` or `eng`.
    pub language: Option<&'a str>,
    /// Named places.
    pub chapters: &'a [Chapter],
    /// Free tags by name: `title`, `comment`, or any other; values may be long.
    pub metadata: BTreeMap<String, String>,
    /// Size and rate of every segment.
    pub format: FilmFormat,
    /// The film, MP4.
    pub out: &'a Path,
}

/// What was joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmReport {
    /// Frames in all.
    pub frames: i64,
    /// Length of the picture in seconds, exactly.
    pub secs: Rational,
    /// Size of the file.
    pub bytes: u64,
}

/// Packets between two reports of progress.
const REPORT_EVERY: i64 = 64;

/// Join a film. At `request.out` there is a whole file or none.
///
/// # Errors
/// [`MediaError::BadFile`] for a segment that is damaged or doesn't match the first or the format,
/// [`MediaError::BadRequest`] without segments, [`MediaError::Codec`] or [`MediaError::Io`] when
/// the film can't be written, [`MediaError::Cancelled`].
pub fn mux_film(
    request: &MuxRequest<'_>,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<FilmReport, MediaError> {
    ff::init()?;
    cancel.check()?;
    request
        .format
        .check()
        .map_err(|error| MediaError::BadRequest(error.to_string()))?;
    let segments = check_segments(request, cancel)?;
    let frames: i64 = segments.iter().map(|segment| segment.frames).sum();
    // Frames by which decoding runs ahead of showing; the same all over the film.
    let delay = segments.iter().map(|s| s.delay).max().unwrap_or(0);
    let frame_base = ff::rational(request.format.fps)?.invert();

    let part = PartFile::new(request.out)?;
    let mut output = av::format::output_as(&ff::url_of(part.path())?, "mp4")
        .map_err(failed(format!("make the film file {:?}", request.out)))?;
    let mut sound = request.sound.map(SoundFile::open).transpose()?;
    if let Some(sound) = &mut sound {
        sound.fit(
            request.format.sample_of_frame(frames),
            request.format.sample_rate_hz,
        )?;
    }
    let cues = cues::flatten(request.cues, frames);
    let rows = Rows {
        sound: sound.is_some().then_some(1),
        cues: (!cues.is_empty()).then_some(1 + usize::from(sound.is_some())),
    };
    add_streams(&mut output, request, sound.as_ref(), &rows, frame_base)?;
    add_tags(&mut output, request, frames, frame_base)?;
    let mut options = av::Dictionary::new();
    options.set("movflags", "+faststart+use_metadata_tags");
    let unused = output.write_header_with(options).map_err(failed(format!(
        "write the head of the film {:?}",
        request.out
    )))?;
    drop(unused);

    let mut writer = Writer {
        output: &mut output,
        rows,
        frame_base,
        cues,
        cue: 0,
        path: request.out,
    };
    let mut first = 0;
    for (segment, path) in segments.iter().zip(request.segments) {
        let mut packets = segment.reopen(path)?;
        let mut index = 0;
        while let Some((mut packet, pts)) = packets.next()? {
            if index % REPORT_EVERY == 0 {
                cancel.check()?;
                progress.report(ProgressEvent {
                    what: "join".into(),
                    step: (first + index) as u64,
                    of: frames as u64,
                    secs_left: None,
                });
            }
            let dts = first + index - delay;
            writer.catch_up(dts, sound.as_mut())?;
            packet.set_pts(Some(first + pts));
            packet.set_dts(Some(dts));
            packet.set_duration(1);
            writer.write(packet, 0, frame_base)?;
            index += 1;
        }
        first += segment.frames;
    }
    writer.catch_up(i64::MAX, sound.as_mut())?;
    cancel.check()?;
    crate::encode::close(output, part.path())?;
    let report = FilmReport {
        frames,
        secs: crate::encode::seconds(frames, request.format.fps)?,
        bytes: part.keep()?,
    };
    progress.report(ProgressEvent {
        what: "join".into(),
        step: frames as u64,
        of: frames as u64,
        secs_left: None,
    });
    Ok(report)
}

fn check_segments(
    request: &MuxRequest<'_>,
    cancel: &CancelToken,
) -> Result<Vec<SegmentFile>, MediaError> {
    let mut checked: Vec<SegmentFile> = Vec::with_capacity(request.segments.len());
    for path in request.segments {
        cancel.check()?;
        let segment = SegmentFile::check(path, &request.format)?;
        if let Some(first) = checked.first()
            && first.parameter_sets != segment.parameter_sets
        {
            return Err(MediaError::BadFile {
                what: format!(
                    "join segments: the parameter sets differ from those of {:?}, expected segments of one format and one set of encode options",
                    request.segments[0]
                ),
                path: path.clone(),
            });
        }
        checked.push(segment);
    }
    if checked.is_empty() {
        return Err(MediaError::BadRequest(
            "join a film: got no segments, expected at least 1".into(),
        ));
    }
    Ok(checked)
}

/// Places of the streams beside the picture's, which is 0.
struct Rows {
    sound: Option<usize>,
    cues: Option<usize>,
}

fn add_streams(
    output: &mut av::format::context::Output,
    request: &MuxRequest<'_>,
    sound: Option<&SoundFile>,
    rows: &Rows,
    frame_base: av::Rational,
) -> Result<(), MediaError> {
    let none = || av::encoder::find(av::codec::Id::None);
    let add = |output: &mut av::format::context::Output| {
        output
            .add_stream(none())
            .map(|stream| stream.index())
            .map_err(failed("add a stream to the film"))
    };
    let picture = av::format::input(&ff::url_of(&request.segments[0])?).map_err(failed(
        format!("open the segment {:?}", request.segments[0]),
    ))?;
    let language = request.language.map(cues::language_code);
    let describe = |output: &mut av::format::context::Output,
                    parameters: av::codec::Parameters,
                    base: av::Rational,
                    spoken: bool|
     -> Result<(), MediaError> {
        let index = add(output)?;
        let Some(mut stream) = output.stream_mut(index) else {
            return Ok(());
        };
        stream.set_parameters(parameters);
        stream.set_time_base(base);
        // SAFETY: the stream's parameters are its own copy; the tag of the source's container is
        // cleared so that the muxer chooses its own.
        unsafe { (*(*stream.as_mut_ptr()).codecpar).codec_tag = 0 };
        if spoken && let Some(code) = &language {
            let mut tags = av::Dictionary::new();
            tags.set("language", code);
            stream.set_metadata(tags);
        }
        Ok(())
    };
    if let Some(stream) = picture.streams().best(av::media::Type::Video) {
        describe(output, stream.parameters(), frame_base, false)?;
    }
    if let Some(mut stream) = output.stream_mut(0) {
        stream.set_rate(frame_base.invert());
        stream.set_avg_frame_rate(frame_base.invert());
    }
    if let Some(sound) = sound {
        describe(output, sound.parameters(), sound.base(), true)?;
    }
    if rows.cues.is_some() {
        let parameters = cues::parameters(request.format.width_px, request.format.height_px)?;
        let base = av::Rational::new(1, frame_base.denominator());
        describe(output, parameters, base, true)?;
    }
    Ok(())
}

fn add_tags(
    output: &mut av::format::context::Output,
    request: &MuxRequest<'_>,
    frames: i64,
    frame_base: av::Rational,
) -> Result<(), MediaError> {
    let mut tags = av::Dictionary::new();
    for (name, value) in &request.metadata {
        if name.is_empty() || name.contains('\0') || value.contains('\0') {
            return Err(MediaError::BadRequest(format!(
                "tag a film: got the name {name:?} or its value with a zero character or no name"
            )));
        }
        tags.set(name, value);
    }
    output.set_metadata(tags);
    let mut chapters: Vec<&Chapter> = request
        .chapters
        .iter()
        .filter(|chapter| (0..frames).contains(&chapter.first_frame))
        .collect();
    chapters.sort_by_key(|chapter| chapter.first_frame);
    for (index, chapter) in chapters.iter().enumerate() {
        let end = chapters
            .get(index + 1)
            .map_or(frames, |next| next.first_frame);
        let title = chapter.title.replace('\0', " ");
        output
            .add_chapter(index as i64, frame_base, chapter.first_frame, end, title)
            .map_err(failed(format!("add the chapter {:?}", chapter.title)))?;
    }
    // SAFETY: the output context is alive and its header not written yet. Without the flag the
    // muxer would write the time and its own version.
    unsafe { (*output.as_mut_ptr()).flags |= av::ffi::AVFMT_FLAG_BITEXACT };
    Ok(())
}

struct Writer<'a> {
    output: &'a mut av::format::context::Output,
    rows: Rows,
    frame_base: av::Rational,
    cues: Vec<cues::FlatCue>,
    cue: usize,
    path: &'a Path,
}

impl Writer<'_> {
    fn write(
        &mut self,
        mut packet: av::Packet,
        row: usize,
        base: av::Rational,
    ) -> Result<(), MediaError> {
        if let Some(stream) = self.output.stream(row) {
            packet.rescale_ts(base, stream.time_base());
        }
        packet.set_stream(row);
        packet.set_position(-1);
        packet
            .write_interleaved(self.output)
            .map_err(failed(format!("write to the film {:?}", self.path)))
    }

    /// Write sound and subtitles that come before frame `until`.
    fn catch_up(&mut self, until: i64, sound: Option<&mut SoundFile>) -> Result<(), MediaError> {
        if let (Some(row), Some(sound)) = (self.rows.sound, sound) {
            let base = sound.base();
            while let Some(packet) = sound.next_before(until, self.frame_base)? {
                self.write(packet, row, base)?;
            }
        }
        let Some(row) = self.rows.cues else {
            return Ok(());
        };
        while let Some(cue) = self
            .cues
            .get(self.cue)
            .filter(|cue| cue.first_frame <= until)
        {
            let mut packet = cues::packet(&cue.text)?;
            packet.set_pts(Some(cue.first_frame));
            packet.set_dts(Some(cue.first_frame));
            packet.set_duration(cue.frames);
            self.cue += 1;
            self.write(packet, row, self.frame_base)?;
        }
        Ok(())
    }
}
