//! Which streams of a file its remake takes over, and which it cannot.

use std::path::Path;

use ffmpeg_next::format::context::Input;
use ffmpeg_next::{Stream, codec, ffi, media};

use super::Container;
use crate::MediaError;

/// The streams of a source.
pub(super) struct Copies {
    /// Indices of those that are copied, and of the picture among them.
    pub(super) kept: Vec<usize>,
    /// The others, in words.
    pub(super) notes: Vec<String>,
}

/// Decide what becomes of every stream.
///
/// # Errors
/// [`MediaError::BadFile`] for sound that the container cannot hold: a film without its sound is
/// not what anybody wants.
pub(super) fn plan(
    input: &Input,
    video: usize,
    container: Container,
    path: &Path,
) -> Result<Copies, MediaError> {
    let mut copies = Copies {
        kept: Vec::new(),
        notes: Vec::new(),
    };
    for stream in input.streams() {
        let index = stream.index();
        if index == video {
            copies.kept.push(index);
            continue;
        }
        let kind = stream.parameters().medium();
        if holds(container, &stream, kind) {
            let is_moving = kind == media::Type::Video && !is_cover(&stream);
            if is_moving {
                copies.notes.push(format!(
                    "{} stays at its size: only the first moving picture is made larger",
                    described(&stream)
                ));
            }
            copies.kept.push(index);
        } else if kind == media::Type::Audio {
            return Err(MediaError::BadFile {
                what: format!(
                    "{} cannot hold {}: give the result another ending, .mkv holds most kinds",
                    container.name(),
                    described(&stream)
                ),
                path: path.to_owned(),
            });
        } else if !is_written_anew(input, &stream, container) {
            copies.notes.push(format!(
                "{} is not kept: {} cannot hold it",
                described(&stream),
                container.name()
            ));
        }
    }
    Ok(copies)
}

pub(super) fn is_cover(stream: &Stream<'_>) -> bool {
    use ffmpeg_next::format::stream::Disposition;
    stream.disposition().contains(Disposition::ATTACHED_PIC)
}

/// Four letters that a container gives a stream's kind.
fn tag_of(stream: &Stream<'_>) -> [u8; 4] {
    // SAFETY: the parameters live as long as the stream; the field is a plain integer.
    unsafe { (*(*stream.as_ptr()).codecpar).codec_tag }.to_le_bytes()
}

/// What a muxer makes itself: the track behind chapters, and time code from its text.
fn is_written_anew(input: &Input, stream: &Stream<'_>, container: Container) -> bool {
    match &tag_of(stream) {
        b"text" => input.nb_chapters() > 0,
        b"tmcd" => {
            let has_text = input
                .streams()
                .any(|stream| stream.metadata().get("timecode").is_some());
            container != Container::Mkv && has_text
        }
        _ => false,
    }
}

fn holds(container: Container, stream: &Stream<'_>, kind: media::Type) -> bool {
    let id = stream.parameters().id();
    let of_matroska = container == Container::Mkv;
    match kind {
        media::Type::Attachment => return of_matroska,
        media::Type::Data | media::Type::Unknown if of_matroska => return false,
        _ if id == codec::Id::None => return false,
        // The text track behind chapters.
        media::Type::Data if &tag_of(stream) == b"text" => return false,
        _ => {}
    }
    muxer(container).is_some_and(|muxer| {
        // SAFETY: the muxer's description is static.
        let answer =
            unsafe { ffi::avformat_query_codec(muxer, id.into(), ffi::FF_COMPLIANCE_EXPERIMENTAL) };
        answer == 1
    })
}

/// FFmpeg's description of a container's muxer.
pub(super) fn muxer(container: Container) -> Option<*const ffi::AVOutputFormat> {
    let name = match container {
        Container::Mp4 => c"mp4",
        Container::Mov => c"mov",
        Container::Mkv => c"matroska",
    };
    // SAFETY: takes C strings, or null for what is not asked.
    let found = unsafe { ffi::av_guess_format(name.as_ptr(), std::ptr::null(), std::ptr::null()) };
    (!found.is_null()).then_some(found)
}

fn described(stream: &Stream<'_>) -> String {
    let kind = match stream.parameters().medium() {
        media::Type::Video if is_cover(stream) => "the cover picture",
        media::Type::Video => "the video",
        media::Type::Audio => "the sound",
        media::Type::Subtitle => "the subtitles",
        media::Type::Attachment => "the attached file",
        media::Type::Data | media::Type::Unknown => "the data",
    };
    let name = match stream.parameters().id() {
        codec::Id::None | codec::Id::BIN_DATA => String::from_utf8_lossy(&tag_of(stream))
            .trim_matches('\0')
            .to_owned(),
        id => id.name().to_owned(),
    };
    let metadata = stream.metadata();
    let said: Vec<&str> = ["language", "title", "filename"]
        .iter()
        .filter_map(|name| metadata.get(name))
        .filter(|said| *said != "und")
        .collect();
    let index = stream.index();
    match said.as_slice() {
        [] => format!("{kind} of stream {index} ({name})"),
        said => format!("{kind} of stream {index} ({name}, {})", said.join(", ")),
    }
}
