//! Models on this machine, as commands.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use engine_base::{CancelToken, Code, ProgressEvent};
use engine_hub::{
    FileFormat, FileInfo, FileState, FileVerdict, Hub, HubError, HubOptions, ModelEntry,
    ModelState, Removed, inspect_file,
};
use engine_pipelines::{ModelInspection, inspect_model};
use serde::Serialize;

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::upscale;

impl From<HubError> for StudioError {
    fn from(error: HubError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A model that is known, and how much of it is here.
#[derive(Debug, Clone, Serialize)]
pub struct ModelRow {
    /// What the manifest says.
    #[serde(flatten)]
    pub entry: ModelEntry,
    /// Size of its files together.
    pub bytes: u64,
    /// What is here.
    #[serde(flatten)]
    pub state: ModelState,
    /// Its folder, whether it is there or not.
    pub folder: PathBuf,
}

/// A model brought here.
#[derive(Debug, Clone, Serialize)]
pub struct ModelPulled {
    /// The model.
    pub id: String,
    /// Its file, or its folder when it has several.
    pub path: PathBuf,
}

/// A model whose files were hashed again.
#[derive(Debug, Clone, Serialize)]
pub struct ModelVerified {
    /// The model.
    pub id: String,
    /// Whether every file is whole.
    pub whole: bool,
    /// Its files.
    pub files: Vec<FileVerdict>,
}

/// A model removed.
#[derive(Debug, Clone, Serialize)]
pub struct ModelRemoved {
    /// The model.
    pub id: String,
    /// What was removed and what stays.
    #[serde(flatten)]
    pub removed: Removed,
}

/// A file looked at.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedFile {
    /// The file.
    pub path: PathBuf,
    /// What its first bytes say; nothing when it is not there.
    #[serde(flatten)]
    pub info: Option<FileInfo>,
    /// What the weights in it are; nothing when it holds none, or none that can be read.
    pub weights: Option<ModelInspection>,
    /// Why the weights cannot be read.
    pub fault: Option<String>,
}

/// What is known of a model or a file.
#[derive(Debug, Clone, Serialize)]
pub struct ModelInspected {
    /// The model, when one was named.
    pub model: Option<ModelRow>,
    /// Its files, or the file named.
    pub files: Vec<InspectedFile>,
}

pub(crate) fn hub() -> Result<Hub, StudioError> {
    Ok(Hub::open(HubOptions::of_this_machine()?)?)
}

fn row(hub: &Hub, entry: &ModelEntry) -> Result<ModelRow, StudioError> {
    Ok(ModelRow {
        entry: entry.clone(),
        bytes: entry.bytes(),
        state: hub.state(&entry.id)?,
        folder: hub.folder_of(entry),
    })
}

/// Hands a hub's progress on; a new stage whenever it works on something else.
pub(crate) fn handing_on<'a>(
    watcher: &'a dyn Watcher,
) -> impl Fn(ProgressEvent) + Send + Sync + use<'a> {
    let last = Mutex::new(String::new());
    move |event| {
        let mut last = last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if *last != event.what {
            last.clone_from(&event.what);
            let what = event.what.as_str().into();
            watcher.event(StudioEvent::Stage { what });
        }
        watcher.event(StudioEvent::Progress(event));
    }
}

/// Every model that is known.
///
/// # Errors
/// A manifest cannot be read.
pub fn models_list() -> Result<Vec<ModelRow>, StudioError> {
    let hub = hub()?;
    hub.entries().iter().map(|entry| row(&hub, entry)).collect()
}

/// Bring models here; without names the default ones.
///
/// # Errors
/// An unknown name, before anything is fetched; a fetch that failed.
pub fn models_pull(
    ids: &[String],
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<Vec<ModelPulled>, StudioError> {
    let hub = hub()?;
    let ids: Vec<String> = if ids.is_empty() {
        let defaults = hub.entries().iter().filter(|entry| entry.default);
        defaults.map(|entry| entry.id.clone()).collect()
    } else {
        ids.to_vec()
    };
    for id in &ids {
        hub.entry(id)?;
    }
    let mut pulled = Vec::new();
    for id in ids {
        let path = hub.pull(&id, cancel, &handing_on(watcher))?;
        upscale::prepare(hub.entry(&id)?, &path)?;
        pulled.push(ModelPulled { id, path });
    }
    Ok(pulled)
}

/// Hash the files of models again; without names of every model of which something is here.
///
/// # Errors
/// An unknown name; a file that cannot be read.
pub fn models_verify(
    ids: &[String],
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<Vec<ModelVerified>, StudioError> {
    let hub = hub()?;
    let mut chosen = Vec::new();
    if ids.is_empty() {
        for entry in hub.entries() {
            if hub.state(&entry.id)? != ModelState::Missing {
                chosen.push(entry.id.clone());
            }
        }
    } else {
        chosen.extend_from_slice(ids);
    }
    let mut verified = Vec::new();
    for id in chosen {
        let files = hub.verify(&id, cancel, &handing_on(watcher))?;
        let whole = files.iter().all(|file| file.state == FileState::Whole);
        verified.push(ModelVerified { id, whole, files });
    }
    Ok(verified)
}

/// What is known of the model `what`, or of the file or folder at the path `what`.
///
/// # Errors
/// Neither a model nor a file is called so; a file named by its path holds no weights that can be
/// read.
pub fn models_inspect(what: &str) -> Result<ModelInspected, StudioError> {
    let hub = hub()?;
    if let Ok(entry) = hub.entry(what) {
        let model = row(&hub, entry)?;
        let names = entry.files.iter().map(|file| &file.name);
        let files = names.map(|name| look(model.folder.join(name))).collect();
        let model = Some(model);
        return Ok(ModelInspected { model, files });
    }
    let path = Path::new(what);
    if !path.exists() {
        let message = format!("there is neither a model nor a file called {what:?}");
        return Err(StudioError::new(Code::NotFound, message));
    }
    let info = path.is_file().then(|| inspect_file(path)).transpose()?;
    let weights =
        inspect_model(path).map_err(|error| StudioError::new(error.code(), error.to_string()))?;
    Ok(ModelInspected {
        model: None,
        files: vec![InspectedFile {
            path: path.to_owned(),
            info,
            weights: Some(weights),
            fault: None,
        }],
    })
}

/// A file of a model: what is wrong with it is part of the answer.
fn look(path: PathBuf) -> InspectedFile {
    let info = inspect_file(&path).ok();
    let holds_weights = info.as_ref().is_some_and(|info| {
        matches!(
            info.format,
            FileFormat::Gguf { .. } | FileFormat::Safetensors { .. }
        )
    });
    let (weights, fault) = match holds_weights.then(|| inspect_model(&path)) {
        None => (None, None),
        Some(Ok(weights)) => (Some(weights), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    InspectedFile {
        path,
        info,
        weights,
        fault,
    }
}

/// Remove models from this machine.
///
/// # Errors
/// An unknown name, before anything is removed; another process works on one.
pub fn models_remove(ids: &[String]) -> Result<Vec<ModelRemoved>, StudioError> {
    let hub = hub()?;
    for id in ids {
        hub.entry(id)?;
    }
    let mut all = Vec::new();
    for id in ids {
        let removed = hub.remove(id)?;
        let id = id.clone();
        all.push(ModelRemoved { id, removed });
    }
    Ok(all)
}
