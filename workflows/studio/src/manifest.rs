//! What a film was made from, kept in the film's own file, and the film made again from it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash};
use flow_nodes::{LoudnessTarget, SpeechLines};
use serde::{Deserialize, Serialize};

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::film::{FilmReport, FilmRequest, Given};
use crate::project::{EXTENSION, Project};
use crate::studio::Studio;

/// Newest form of the manifest that is read, and the one that is written.
const FORM: u32 = 1;

/// Everything that a film was made from, but the bytes of its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of this form.
    pub(crate) longtake: u32,
    /// Version of the program.
    pub(crate) program: String,
    /// The script, in its JSON form.
    pub(crate) script: serde_json::Value,
    /// Content of each file, by what it is read as and its name in the script.
    pub(crate) files: BTreeMap<String, ManifestFile>,
    /// Lines that voices of the machine spoke.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) spoken: SpeechLines,
    /// Picture quality.
    pub(crate) crf: u8,
    /// Encoder effort.
    pub(crate) preset: String,
    /// Whether subtitles were drawn into the picture.
    pub(crate) burn_subtitles: bool,
    /// How loud it was made.
    #[serde(default)]
    pub(crate) loudness: LoudnessTarget,
}

/// A file of a film.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    /// Its content.
    pub(crate) content: ContentHash,
    /// Its media type.
    pub(crate) media_type: String,
    /// Id of the model that made it twice as large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) enlarge: Option<String>,
}

impl Manifest {
    pub(crate) fn new(script: serde_json::Value) -> Self {
        Self {
            longtake: FORM,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            script,
            files: BTreeMap::new(),
            spoken: SpeechLines::new(),
            crf: 0,
            preset: String::new(),
            burn_subtitles: false,
            loudness: LoudnessTarget::default(),
        }
    }

    /// The manifest of a film file.
    pub(crate) fn read(film: &Path) -> Result<Self, StudioError> {
        let bad = |what: String| StudioError::new(Code::BadInput, format!("{what}: {film:?}"));
        let text = flow_media::manifest::read_manifest(film)
            .map_err(|error| StudioError::new(error.code(), error.to_string()))?;
        let Some(text) = text else {
            return Err(bad(
                "expected a film made by longtake, got a file without its manifest".into(),
            ));
        };
        #[derive(Deserialize)]
        struct Form {
            longtake: u32,
            program: Option<String>,
        }
        let form: Form = serde_json::from_str(&text)
            .map_err(|error| bad(format!("the film's manifest is faulty: {error}")))?;
        if form.longtake != FORM {
            return Err(bad(format!(
                "expected a manifest of form {FORM}, got {} (written by longtake {})",
                form.longtake,
                form.program.unwrap_or_else(|| "unknown".into()),
            )));
        }
        serde_json::from_str(&text)
            .map_err(|error| bad(format!("the film's manifest is faulty: {error}")))
    }

    /// What is put behind a film's last byte.
    pub(crate) fn to_box(&self) -> Result<Vec<u8>, StudioError> {
        let refused = |why: String| {
            let message = format!("cannot write the film's manifest: {why}");
            StudioError::new(Code::Internal, message)
        };
        let text = serde_json::to_string(self).map_err(|error| refused(error.to_string()))?;
        let most = flow_media::manifest::MANIFEST_BYTES_MAX;
        flow_media::manifest::manifest_box(&text).ok_or_else(|| {
            refused(format!(
                "it has {} bytes, expected at most {most}",
                text.len()
            ))
        })
    }
}

/// A film that was made again.
#[derive(Debug, Clone, Serialize)]
pub struct RebuildReport {
    /// What was made.
    #[serde(flatten)]
    pub film: FilmReport,
    /// Whether it is the given file, byte for byte.
    pub same: bool,
}

impl Studio {
    /// Make the film `of` again from the manifest in it. Its pictures and sounds are taken from
    /// the cache, else from `request.folders` where their bytes are the same.
    ///
    /// # Errors
    /// The file holds no manifest; files that are missing or others; what [`Studio::film`] is
    /// refused for.
    pub fn rebuild(
        &self,
        of: &Path,
        mut request: FilmRequest,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<RebuildReport, StudioError> {
        let out = request.out.get_or_insert_with(|| {
            let stem = of.file_stem().unwrap_or_default().to_string_lossy();
            of.with_file_name(format!("{stem}-again.mp4"))
        });
        if std::path::absolute(&*out).ok() == std::path::absolute(of).ok() {
            let message = format!("expected another file than the film itself, got {out:?}");
            return Err(StudioError::new(Code::BadInput, message));
        }
        let manifest = Manifest::read(of)?;
        if manifest.program != env!("CARGO_PKG_VERSION") {
            let what = format!(
                "the film was made by longtake {}, this is {}: its bytes may differ",
                manifest.program,
                env!("CARGO_PKG_VERSION")
            );
            let what = what.into();
            watcher.event(StudioEvent::Warning { what });
        }
        self.bring_back(&manifest, of)?;
        let film = self.make(&request, Given::Manifest(&manifest), watcher, cancel)?;
        let hash = |path: &Path| {
            std::fs::File::open(path)
                .and_then(ContentHash::of_reader)
                .map_err(|error| StudioError::io("read the film", path, &error))
        };
        let same = match &film.out {
            Some(made) => hash(made)? == hash(of)?,
            None => false,
        };
        Ok(RebuildReport { film, same })
    }

    /// Bring files that the cache lost back from the film's own project, where that lies beside it and nobody
    /// has it open.
    fn bring_back(&self, manifest: &Manifest, film: &Path) -> Result<(), StudioError> {
        let lost = |file: &&ManifestFile| self.store.blob_path(&file.content).is_err();
        let mut lost = manifest.files.values().filter(lost).peekable();
        let folder = film.with_extension(EXTENSION);
        if lost.peek().is_none() || !folder.join("project.db").is_file() {
            return Ok(());
        }
        let project = match Project::open(&folder, false, "longtake rebuild", &self.clock) {
            Ok(project) => project,
            Err(error) => {
                tracing::info!(%error, "the film's project is not looked into");
                return Ok(());
            }
        };
        for file in lost {
            if let Ok(kept) = project.db().media_path(&file.content) {
                self.store.import(&kept, &file.media_type)?;
            }
        }
        Ok(())
    }
}
