//! Opens a media file for reading, safely and quietly.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::Once;

use ffmpeg_next::format::context::{Input, StreamIo};
use ffmpeg_next::{Dictionary, Discard, Packet};

use super::boxes::{self, Outline};
use crate::MediaError;
use crate::still::sniff;

/// Containers that are read. Playlists, image sequences, network and device formats are not among
/// them: a file must never make FFmpeg open another one.
const FORMATS: &str = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,mpegvideo,avi,flv,asf,ogg,\
wav,w64,mp3,flac,aac,ac3,eac3,aiff,caf,amr,mxf,nut,ivf,h264,hevc,m4v,yuv4mpegpipe,dv,gif,rm,au,\
mpegtsraw,obu,vc1,dts,opus";

/// FFmpeg's own buffer for reading.
const IO_BUFFER_BYTES: usize = 256 << 10;

/// Prepare FFmpeg once: nothing of its log reaches the terminal.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Cannot fail on the FFmpeg versions that are linked.
        if let Err(error) = ffmpeg_next::init() {
            tracing::warn!(%error, "FFmpeg did not initialise");
        }
        ffmpeg_next::log::set_level(ffmpeg_next::log::Level::Quiet);
    });
}

/// An opened media file.
pub(crate) struct Opened {
    pub(crate) input: Input,
    pub(crate) outline: Outline,
    pub(crate) len_bytes: u64,
}

/// Open a media file and find its streams.
pub(crate) fn open(path: &Path) -> Result<Opened, MediaError> {
    quiet();
    let io = |source| MediaError::Io {
        what: "cannot open a media file",
        path: path.to_owned(),
        source,
    };
    let bad = |what: String| MediaError::BadFile {
        what,
        path: path.to_owned(),
    };
    let meta = std::fs::metadata(path).map_err(io)?;
    if meta.is_dir() {
        return Err(bad("expected video or sound, got a folder".to_owned()));
    }
    if meta.len() == 0 {
        return Err(bad("expected video or sound, got an empty file".to_owned()));
    }
    let mut file = File::open(path).map_err(io)?;
    let mut head = Vec::with_capacity(sniff::HEAD_BYTES);
    (&mut file)
        .take(sniff::HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(io)?;
    let outline = boxes::outline(&mut file, meta.len()).map_err(io)?;
    if outline.is_mp4 && !outline.has_moov {
        let how = outline.cut.as_deref().unwrap_or("only media data is there");
        return Err(bad(format!(
            "the video was not finished when it was written: it has no index (moov), {how}"
        )));
    }
    file.rewind().map_err(io)?;
    let stream = StreamIo::from_read_seek_with_capacity(file, IO_BUFFER_BYTES)
        .map_err(|source| codec("cannot prepare reading", source))?;
    let mut options = Dictionary::new();
    options.set("format_whitelist", FORMATS);
    options.set("protocol_whitelist", "file");
    let input =
        ffmpeg_next::format::input_from_stream(stream, None, Some(options)).map_err(|error| {
            match error {
                ffmpeg_next::Error::Other { errno } if errno == ffmpeg_next::error::ENOMEM => {
                    codec("cannot open a media file", error)
                }
                error => {
                    let got = sniff::looks_like(&head);
                    let cut = outline
                        .cut
                        .as_deref()
                        .map(|cut| format!("; {cut}"))
                        .unwrap_or_default();
                    bad(format!(
                        "expected video or sound, got {got} that cannot be read ({error}){cut}"
                    ))
                }
            }
        })?;
    Ok(Opened {
        input,
        outline,
        len_bytes: meta.len(),
    })
}

/// Damaged packets in a row after which a file is taken to be over.
const MAX_DAMAGED: usize = 1000;

/// The next packet of any stream; nothing at the end of the file or where it cannot be read on.
pub(crate) fn next_packet(input: &mut Input) -> Option<Packet> {
    let mut packet = Packet::empty();
    for _ in 0..MAX_DAMAGED {
        match packet.read(input) {
            Ok(()) => return Some(packet),
            // The demuxer goes on behind what it could not understand.
            Err(ffmpeg_next::Error::InvalidData) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Read packets of one stream only.
pub(crate) fn only(input: &mut Input, index: usize) {
    for (at, mut other) in input.streams_mut().enumerate() {
        if at != index {
            // SAFETY: the stream is alive while the input is borrowed; the field is a plain
            // integer that the demuxer reads for each packet.
            unsafe { (*other.as_mut_ptr()).discard = Discard::All.into() };
        }
    }
}

pub(crate) fn codec(what: &str, source: ffmpeg_next::Error) -> MediaError {
    MediaError::Codec {
        what: what.to_owned(),
        source,
    }
}
