//! Small pieces over FFmpeg that the making side shares.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use engine_base::Rational;

use crate::MediaError;

/// Start FFmpeg once and keep it from writing to the terminal: errors come back as values.
pub(crate) fn init() -> Result<(), MediaError> {
    static STARTED: OnceLock<Result<(), ffmpeg_next::Error>> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        ffmpeg_next::init()?;
        ffmpeg_next::log::set_level(ffmpeg_next::log::Level::Fatal);
        Ok(())
    });
    started.map_err(|source| MediaError::Codec {
        what: "start FFmpeg".into(),
        source,
    })
}

/// Name `what` failed.
pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(ffmpeg_next::Error) -> MediaError {
    let what = what.into();
    |source| MediaError::Codec { what, source }
}

/// `path` as FFmpeg takes it: never read as a protocol, whatever its name.
pub(crate) fn url_of(path: &Path) -> Result<String, MediaError> {
    match path.to_str() {
        Some(text) if !text.contains('\0') => Ok(format!("file:{text}")),
        _ => Err(MediaError::BadFile {
            what: "hand a file name to FFmpeg: got bytes that are not UTF-8".into(),
            path: path.to_owned(),
        }),
    }
}

/// A rate as FFmpeg holds it.
pub(crate) fn rational(value: Rational) -> Result<ffmpeg_next::Rational, MediaError> {
    match (i32::try_from(value.num()), i32::try_from(value.den())) {
        (Ok(num), Ok(den)) => Ok(ffmpeg_next::Rational::new(num, den)),
        _ => Err(MediaError::BadRequest(format!(
            "hand the rate {value} to FFmpeg: expected numbers up to 2147483647"
        ))),
    }
}

/// Seconds a tick, as FFmpeg holds it.
pub(crate) fn ticks((num, den): (i64, i64)) -> Result<ffmpeg_next::Rational, MediaError> {
    match (i32::try_from(num), i32::try_from(den)) {
        (Ok(num), Ok(den)) => Ok(ffmpeg_next::Rational::new(num, den)),
        _ => Err(MediaError::BadRequest(format!(
            "hand the tick {num}/{den} to FFmpeg: expected numbers up to 2147483647"
        ))),
    }
}

/// A file in the making: written beside its place under another name, and moved there only whole
/// and synced. Dropped unfinished, it is removed.
pub(crate) struct PartFile {
    part: PathBuf,
    place: PathBuf,
    kept: bool,
}

impl PartFile {
    pub(crate) fn new(place: &Path) -> Result<Self, MediaError> {
        let Some(name) = place.file_name() else {
            return Err(MediaError::BadFile {
                what: "write a file: got a path without a name".into(),
                path: place.to_owned(),
            });
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".part");
        Ok(Self {
            part: place.with_file_name(hidden),
            place: place.to_owned(),
            kept: false,
        })
    }

    /// Where to write.
    pub(crate) fn path(&self) -> &Path {
        &self.part
    }

    /// Sync and move to its place; gives the size in bytes.
    pub(crate) fn keep(mut self) -> Result<u64, MediaError> {
        let io = |what| {
            let path = self.place.clone();
            move |source| MediaError::Io { what, path, source }
        };
        let file = std::fs::File::open(&self.part).map_err(io("open a finished file"))?;
        file.sync_all().map_err(io("sync a finished file"))?;
        let bytes = file.metadata().map_err(io("size a finished file"))?.len();
        std::fs::rename(&self.part, &self.place)
            .map_err(io("move a finished file to its place"))?;
        self.kept = true;
        Ok(bytes)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = std::fs::remove_file(&self.part)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = ?self.part, "an unfinished file could not be removed");
        }
    }
}
