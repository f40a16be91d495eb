//! Files that a script names: found in folders, kept in the project, known by content.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use engine_base::{Code, ContentHash};
use flow_nodes::{FilmFile, FilmFiles};
use flow_store::Store;
use flow_timeline::{SourceKind, SourceRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StudioError;
use crate::manifest::ManifestFile;
use crate::project::Project;
use crate::samples;

const STILL_ENDINGS: [&str; 6] = ["png", "jpg", "jpeg", "webp", "tif", "tiff"];
const VIDEO_ENDINGS: [&str; 7] = ["mp4", "mov", "m4v", "mkv", "webm", "ts", "avi"];
const SOUND_ENDINGS: [&str; 8] = ["wav", "flac", "opus", "ogg", "mp3", "m4a", "aac", "aiff"];

/// Whether a file of this name is a still picture.
pub(crate) fn is_still(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    STILL_ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

/// Setting under which a project remembers the file that is read as `kind` under `name`.
pub(crate) fn setting_of(kind: SourceKind, name: &str) -> String {
    format!("asset.{}.{name}", kind_name(kind))
}

/// An asset of a project, as remembered under its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) content: ContentHash,
    pub(crate) media_type: String,
    /// Whether a person brought it in by itself, not with a folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) brought: bool,
}

/// Finds files by the names of a script.
pub(crate) struct Library<'a> {
    project: &'a Project,
    store: &'a Store,
    folders: Vec<PathBuf>,
    /// Contents that files must have, by what they are read as and their names.
    pinned: BTreeMap<String, ManifestFile>,
    missing: BTreeMap<SourceRef, Vec<String>>,
    found: FilmFiles,
}

impl<'a> Library<'a> {
    /// A library over `folders`, searched in order, then the project, then the sounds we ship.
    pub(crate) fn new(project: &'a Project, store: &'a Store, folders: Vec<PathBuf>) -> Self {
        let (missing, found) = (BTreeMap::new(), BTreeMap::new());
        Self {
            project,
            store,
            folders,
            pinned: BTreeMap::new(),
            missing,
            found,
        }
    }

    /// Take only files of these contents, by [`file_name`]: from the store, else by their names.
    pub(crate) fn pin(&mut self, files: BTreeMap<String, ManifestFile>) {
        self.pinned = files;
    }

    /// The file of `source` as it is pinned: from the store, else what `find` comes upon, if it is
    /// the same.
    fn pinned(&self, source: &SourceRef) -> Option<Known> {
        let file = self.pinned.get(&file_name(source))?;
        if self.store.blob_path(&file.content).is_err() {
            // The cache was pruned; the project may still have the bytes.
            let kept = self.project.db().media_path(&file.content).ok()?;
            self.store.import(&kept, &file.media_type).ok()?;
        }
        Some(Known {
            content: file.content,
            media_type: file.media_type.clone(),
            brought: false,
        })
    }

    fn check_pinned(&self, source: &SourceRef, known: &Known) -> Result<(), StudioError> {
        match self.pinned.get(&file_name(source)) {
            Some(file) if file.content != known.content => {
                let message = format!(
                    "the {} {:?} is another file than the film was made from: expected content {}, \
                     got {}",
                    kind_name(source.kind),
                    source.name,
                    file.content.to_hex(),
                    known.content.to_hex()
                );
                Err(StudioError::new(Code::NotFound, message))
            }
            _ => Ok(()),
        }
    }

    /// Find `source` and bring its bytes into the store and the project. What is not found is
    /// noted for [`Library::finish`].
    ///
    /// # Errors
    /// A name that leaves its folder; files that cannot be read or kept.
    pub(crate) fn find(&mut self, source: &SourceRef) -> Result<Option<PathBuf>, StudioError> {
        if let Some(file) = self.found.get(source) {
            return Ok(Some(self.store.blob_path(&file.content)?));
        }
        check_name(&source.name)?;
        let setting = setting_of(source.kind, &source.name);
        let known = if let Some(known) = self.pinned(source) {
            let path = self.store.blob_path(&known.content)?;
            let known = self.keep(&path, &known.media_type)?;
            let value = serde_json::to_value(&known).unwrap_or(Value::Null);
            self.project.db().set_setting(&setting, value)?;
            known
        } else if let Some(path) = self.in_folders(source) {
            let known = self.keep(&path, media_type(&path))?;
            if self.project.db().setting(&setting)? != serde_json::to_value(&known).ok() {
                let value = serde_json::to_value(&known).unwrap_or(Value::Null);
                self.project.db().set_setting(&setting, value)?;
            }
            known
        } else if let Some(known) = self.remembered(&setting)? {
            known
        } else if let Some(bytes) = samples::sound(&source.name) {
            self.keep_bytes(bytes, "opus")?
        } else {
            let near = self.near(source);
            self.missing.insert(source.clone(), near);
            return Ok(None);
        };
        self.check_pinned(source, &known)?;
        let path = self.store.blob_path(&known.content)?;
        let file = FilmFile {
            content: known.content,
            media_type: known.media_type,
            enlarge: self
                .pinned
                .get(&file_name(source))
                .and_then(|file| file.enlarge.clone()),
        };
        self.found.insert(source.clone(), file);
        Ok(Some(path))
    }

    /// Contents of what was found; what is missing is not told.
    pub(crate) fn found(self) -> FilmFiles {
        self.found
    }

    /// Contents of everything found.
    ///
    /// # Errors
    /// [`Code::NotFound`] naming everything that is missing at once.
    pub(crate) fn finish(self) -> Result<FilmFiles, StudioError> {
        if self.missing.is_empty() {
            return Ok(self.found);
        }
        let mut lines = Vec::new();
        for (source, near) in &self.missing {
            let hint = match near.as_slice() {
                [] => String::new(),
                near => format!(" (did you mean {}?)", near.join(" or ")),
            };
            lines.push(format!(
                "  {} {:?}{hint}",
                kind_name(source.kind),
                source.name
            ));
        }
        let looked: Vec<String> = self
            .folders
            .iter()
            .map(|folder| format!("{folder:?}"))
            .collect();
        let looked = match looked.as_slice() {
            [] => "no folder was given (--stills, --sounds)".to_owned(),
            looked => format!("looked in {}", looked.join(", ")),
        };
        let message = format!(
            "the script names files that are not there; {looked}:\n{}",
            lines.join("\n")
        );
        Err(StudioError::new(Code::NotFound, message))
    }

    fn in_folders(&self, source: &SourceRef) -> Option<PathBuf> {
        let with_endings = || {
            let given = std::iter::once(source.name.clone());
            let endings = endings(source.kind)
                .iter()
                .map(|ending| format!("{}.{ending}", source.name));
            given.chain(endings)
        };
        self.folders
            .iter()
            .flat_map(|folder| with_endings().map(move |name| folder.join(name)))
            .find(|path| path.is_file())
    }

    fn remembered(&self, setting: &str) -> Result<Option<Known>, StudioError> {
        let Some(value) = self.project.db().setting(setting)? else {
            return Ok(None);
        };
        let Ok(known) = serde_json::from_value::<Known>(value) else {
            return Ok(None);
        };
        if self.store.blob_path(&known.content).is_err() {
            // The cache was pruned; the project still has the bytes.
            let Ok(kept) = self.project.db().media_path(&known.content) else {
                return Ok(None);
            };
            self.store.import(&kept, &known.media_type)?;
        }
        Ok(Some(known))
    }

    fn keep(&self, path: &Path, media_type: &str) -> Result<Known, StudioError> {
        let blob = self.project.db().keep_media(path, media_type)?;
        if self.store.blob_path(&blob.hash).is_err() {
            let kept = self.project.db().media_path(&blob.hash)?;
            self.store.import(&kept, media_type)?;
        }
        Ok(Known {
            content: blob.hash,
            media_type: media_type.to_owned(),
            brought: false,
        })
    }

    fn keep_bytes(&self, bytes: &[u8], ending: &str) -> Result<Known, StudioError> {
        let media_type = media_type(Path::new(&format!("sample.{ending}")));
        let content = ContentHash::of(bytes);
        if self.store.blob_path(&content).is_err() {
            let temp = self.store.temp(ending)?;
            std::fs::write(&temp, bytes)
                .map_err(|error| StudioError::io("write a sample sound", &temp, &error))?;
            self.store.adopt(&temp, media_type)?;
        }
        Ok(Known {
            content,
            media_type: media_type.to_owned(),
            brought: false,
        })
    }

    /// Names of the folders' files that are close to what was asked for.
    fn near(&self, source: &SourceRef) -> Vec<String> {
        let wanted = source.name.to_lowercase();
        let wanted_stem = wanted
            .rsplit_once('.')
            .map_or(wanted.as_str(), |(stem, _)| stem);
        let files = self
            .folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flat_map(|entries| entries.flatten().take(10_000))
            .filter_map(|entry| entry.file_name().into_string().ok());
        // Sounds that we ship are named without a folder.
        let shipped = samples::names()
            .filter(|_| source.kind == SourceKind::Sound)
            .map(str::to_owned);
        let mut near: Vec<(usize, String)> = files
            .chain(shipped)
            .filter_map(|name| {
                let lower = name.to_lowercase();
                let stem = lower
                    .rsplit_once('.')
                    .map_or(lower.as_str(), |(stem, _)| stem);
                let distance = strsim::damerau_levenshtein(&wanted, &lower)
                    .min(strsim::damerau_levenshtein(&wanted, stem));
                // Counted without the ending: "sea.png" is not near "lmap.png" for its ".png".
                let most = 1 + wanted_stem.chars().count() / 4;
                (distance <= most).then_some((distance, name))
            })
            .collect();
        near.sort();
        near.dedup();
        near.into_iter()
            .take(3)
            .map(|(_, name)| format!("{name:?}"))
            .collect()
    }
}

/// A script may come from anybody: its names stay inside the folders that a person gave.
pub(crate) fn check_name(name: &str) -> Result<(), StudioError> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !name.is_empty() && !name.contains('\\') && Path::new(name).components().all(inside) {
        return Ok(());
    }
    let message = format!("expected the name of a file inside the given folders, got {name:?}");
    Err(StudioError::new(Code::BadInput, message))
}

/// Name of a file in a film's manifest.
pub(crate) fn file_name(source: &SourceRef) -> String {
    format!("{}/{}", kind_name(source.kind), source.name)
}

pub(crate) const fn kind_name(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Still => "picture",
        SourceKind::Video => "video",
        SourceKind::Sound => "sound",
        SourceKind::Speech => "spoken line",
    }
}

const fn endings(kind: SourceKind) -> &'static [&'static str] {
    match kind {
        SourceKind::Still => &STILL_ENDINGS,
        SourceKind::Video => &VIDEO_ENDINGS,
        SourceKind::Sound | SourceKind::Speech => &SOUND_ENDINGS,
    }
}

/// Media type by ending; for people and servers, no result depends on it.
pub(crate) fn media_type(path: &Path) -> &'static str {
    let ending = path
        .extension()
        .map(|e| e.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "tif" | "tiff" => "image/tiff",
        "mp4" | "m4v" => "video/mp4",
        "mov" => "video/quicktime",
        "mkv" => "video/x-matroska",
        "webm" => "video/webm",
        "ts" => "video/mp2t",
        "avi" => "video/x-msvideo",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "opus" | "ogg" => "audio/ogg",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "aac" => "audio/aac",
        "aiff" => "audio/aiff",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        for name in ["a.jpg", "pictures/a.jpg", "./a.jpg"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "/etc/passwd",
            "../a.jpg",
            "a/../../b",
            "C:\\a.jpg",
            "..\\a",
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
