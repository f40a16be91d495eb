//! The head of a new file: streams, tags and chapters as the source has them.

use std::path::Path;

use ffmpeg_next as av;
use ffmpeg_next::ffi;
use ffmpeg_next::format::context::{Input, Output};

use super::others::Others;
use super::{Container, Source, failed, ff};
use crate::MediaError;

/// A file whose head is written.
pub(super) struct Head {
    pub(super) output: Output,
    /// Place of each stream of the source.
    pub(super) rows: Vec<Option<usize>>,
}

/// Tags that tell of the container or of what was coded before.
const STALE_TAGS: [&str; 7] = [
    "major_brand",
    "minor_version",
    "compatible_brands",
    "encoder",
    "duration",
    "alpha_mode",
    "_statistics",
];
/// Beginnings of Matroska's statistics of a stream.
const STATISTICS: [&str; 4] = ["BPS", "NUMBER_OF_FRAMES", "NUMBER_OF_BYTES", "_STATISTICS"];

/// Names that MP4's customary tags have; others need QuickTime's, which keep any name.
const CUSTOMARY_TAGS: [&str; 24] = [
    "title",
    "artist",
    "album_artist",
    "composer",
    "album",
    "date",
    "comment",
    "genre",
    "copyright",
    "grouping",
    "lyrics",
    "description",
    "synopsis",
    "show",
    "episode_id",
    "network",
    "keywords",
    "track",
    "disc",
    "compilation",
    "hd_video",
    "media_type",
    "gapless_playback",
    "creation_time",
];

/// Largest tick rate that a film as a whole is given.
const MAX_TICKS_HZ: u64 = 1_000_000_000;

/// Write the head of a file at `path`, with `parameters` for the picture's stream.
pub(super) fn write(
    source: &Source,
    parameters: av::codec::Parameters,
    others: &Others,
    path: &Path,
) -> Result<Head, MediaError> {
    ff::init()?;
    let container = source.container;
    let mut output = av::format::output_as(&ff::url_of(path)?, container.muxer())
        .map_err(failed(format!("make the video file {path:?}")))?;
    let mut rows: Vec<Option<usize>> = vec![None; others.input.nb_streams() as usize];
    for (row, index) in others.kept.iter().enumerate() {
        let Some(from) = others.input.stream(*index) else {
            continue;
        };
        if let Some(place) = rows.get_mut(*index) {
            *place = Some(row);
        }
        let picture = (*index == source.video).then_some(&parameters);
        add_stream(&mut output, &from, picture, source)?;
    }
    drop(parameters);
    let tags = kept_tags(&others.input.metadata());
    let has_odd_tags = tags
        .iter()
        .any(|(name, _)| !CUSTOMARY_TAGS.contains(&name.as_str()));
    output.set_metadata(tags.into_iter().collect());
    add_chapters(&mut output, others)?;
    // SAFETY: the output context is alive and its header not written yet. Without the flag the
    // muxer would write chance numbers and its own version. FLAC in MP4 counts as experimental,
    // and plays everywhere.
    unsafe {
        let raw = output.as_mut_ptr();
        (*raw).flags |= ffi::AVFMT_FLAG_BITEXACT;
        (*raw).strict_std_compliance = ffi::FF_COMPLIANCE_EXPERIMENTAL;
    }
    let mut options = av::Dictionary::new();
    match container {
        Container::Mp4 | Container::Mov => {
            let more = if has_odd_tags {
                "+use_metadata_tags"
            } else {
                ""
            };
            options.set("movflags", &format!("+faststart{more}"));
            let ticks = whole_ticks_hz(&others.input, &others.kept);
            options.set("movie_timescale", &ticks.to_string());
        }
        Container::Mkv => {}
    }
    let unused = output
        .write_header_with(options)
        .map_err(failed(format!("write the head of the video {path:?}")))?;
    drop(unused);
    Ok(Head { output, rows })
}

fn add_stream(
    output: &mut Output,
    from: &av::Stream<'_>,
    picture: Option<&av::codec::Parameters>,
    source: &Source,
) -> Result<(), MediaError> {
    // SAFETY: the output context and its format's static description are alive.
    let known_tags = unsafe { (*(*output.as_ptr()).oformat).codec_tag };
    let mut stream = output
        .add_stream(av::encoder::find(av::codec::Id::None))
        .map_err(failed("add a stream to the video file"))?;
    stream.set_parameters(picture.cloned().unwrap_or_else(|| from.parameters()));
    stream.set_time_base(from.time_base());
    let stale: &[&str] = if picture.is_some() { &STATISTICS } else { &[] };
    let tags = kept_tags(&from.metadata());
    let tags = tags.into_iter().filter(|(name, _)| {
        !stale
            .iter()
            .any(|stale| name.to_ascii_uppercase().starts_with(stale))
    });
    stream.set_metadata(tags.collect());
    let mut is_even = true;
    if picture.is_some() {
        is_even = !source.format.is_vfr;
    }
    // A variable rate has no usual length of a frame.
    if is_even {
        stream.set_rate(from.rate());
        stream.set_avg_frame_rate(from.avg_frame_rate());
    }
    // SAFETY: both streams and their parameters are alive, and the header is not written yet; all
    // are plain fields.
    unsafe {
        let (raw, old) = (stream.as_mut_ptr(), from.as_ptr());
        (*raw).disposition = (*old).disposition;
        (*raw).id = (*old).id;
        let parameters = (*raw).codecpar;
        if picture.is_some() {
            let aspect = ff::rational(source.format.sample_aspect)?;
            (*raw).sample_aspect_ratio = aspect.into();
            (*parameters).sample_aspect_ratio = aspect.into();
            (*parameters).codec_tag = 0;
        } else {
            (*raw).sample_aspect_ratio = (*old).sample_aspect_ratio;
            let tag = (*(*old).codecpar).codec_tag;
            let meant = ffi::av_codec_get_id(known_tags, tag);
            (*parameters).codec_tag = if meant == (*parameters).codec_id {
                tag
            } else {
                0
            };
        }
    }
    if picture.is_some() {
        for (kind, bytes) in &source.side_data {
            add_side_data(&mut stream, *kind, bytes)?;
        }
    } else {
        for data in from.side_data() {
            add_side_data(&mut stream, data.kind().into(), data.data())?;
        }
    }
    Ok(())
}

fn add_side_data(
    stream: &mut av::format::stream::StreamMut<'_>,
    kind: ffi::AVPacketSideDataType,
    bytes: &[u8],
) -> Result<(), MediaError> {
    // SAFETY: the stream is alive; FFmpeg gives a block of at least this size that belongs to the
    // stream, or null.
    unsafe {
        let place = ffi::av_stream_new_side_data(stream.as_mut_ptr(), kind, bytes.len() as _);
        if place.is_null() {
            let errno = av::error::ENOMEM;
            return Err(failed("copy a stream's side data")(av::Error::Other {
                errno,
            }));
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
    }
    Ok(())
}

fn kept_tags(tags: &av::DictionaryRef<'_>) -> Vec<(String, String)> {
    tags.iter()
        .filter(|(name, _)| !STALE_TAGS.contains(&name.to_ascii_lowercase().as_str()))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn add_chapters(output: &mut Output, others: &Others) -> Result<(), MediaError> {
    use av::Rescale as _;
    for (index, from) in others.input.chapters().enumerate() {
        let micros = av::Rational::new(1, 1_000_000);
        let shift = others.start_micros.rescale(micros, from.time_base());
        let title = from.metadata().get("title").unwrap_or_default().to_owned();
        let tags = kept_tags(&from.metadata());
        let mut chapter = output
            .add_chapter(
                index as i64 + 1,
                from.time_base(),
                from.start().saturating_sub(shift),
                from.end().saturating_sub(shift),
                &title,
            )
            .map_err(failed(format!("add the chapter {title:?}")))?;
        for (name, value) in tags {
            chapter.set_metadata(name, value);
        }
    }
    Ok(())
}

/// A tick rate in which the start of every stream is a whole number; the picture's where there is
/// none of usable size.
fn whole_ticks_hz(input: &Input, kept: &[usize]) -> u64 {
    let mut common = 1000u64;
    for index in kept {
        let Some(stream) = input.stream(*index) else {
            continue;
        };
        let hz = u64::from(stream.time_base().denominator().unsigned_abs()).max(1);
        let (mut a, mut b) = (common, hz);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let both = common / a * hz;
        if both <= MAX_TICKS_HZ {
            common = both;
        }
    }
    common
}
