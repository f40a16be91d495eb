//! Pictures at twice their size, as a command and for nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use engine_base::{CancelToken, Code, Datum, ProgressEvent};
use engine_hub::{Hub, ModelEntry, ModelKind};
use engine_pipelines::Upscaler;
use flow_graph::NodeError;
use flow_nodes::UpscalerSource;
use serde::Serialize;

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::{memory, models, studio};

/// A picture to be made larger.
#[derive(Debug, Clone)]
pub struct UpscaleRequest {
    /// The picture: PNG, JPEG, WebP or TIFF.
    pub from: PathBuf,
    /// Where the result goes; its ending says what type of file it is.
    pub to: PathBuf,
    /// How many times larger. 2.
    pub scale: usize,
    /// Id of the model, or path of its weights; without one the default of the model list.
    pub model: Option<String>,
}

/// A picture that was made larger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpscaleReport {
    /// The result.
    pub out: PathBuf,
    /// Its width.
    pub width_px: u32,
    /// Its height.
    pub height_px: u32,
    /// The model.
    pub model: String,
    /// What was converted, is odd or could not be kept.
    pub notes: Vec<String>,
    /// Time it took.
    pub wall_secs: f64,
    /// Most memory that this process has taken.
    pub peak_bytes: u64,
}

/// The upscaler called `what`: an id of the model list, a path to weights, or the list's default.
/// Gives its name too.
fn open(what: Option<&str>, hub: &Hub) -> Result<(String, Upscaler), StudioError> {
    let refused = |error: engine_pipelines::UpscaleError, path: &Path| {
        StudioError::new(error.code(), format!("{error}: {path:?}"))
    };
    if let Some(path) = what.map(Path::new).filter(|path| path.exists()) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let upscaler = Upscaler::open(path, 0).map_err(|error| refused(error, path))?;
        return Ok((name.into_owned(), upscaler));
    }
    let entry = entry(what, hub)?;
    let id = &entry.id;
    let Some(path) = hub.path(id) else {
        let folder = hub.folder_of(entry);
        let message = format!(
            "the upscaler {id} is not here: fetch it with `longtake models pull {id}`; looked in \
             {folder:?}"
        );
        return Err(StudioError::new(Code::NotFound, message));
    };
    let upscaler = Upscaler::open(&path, 0).map_err(|error| refused(error, &path))?;
    Ok((id.clone(), upscaler))
}

fn entry<'a>(what: Option<&str>, hub: &'a Hub) -> Result<&'a ModelEntry, StudioError> {
    let upscalers = || {
        hub.entries()
            .iter()
            .filter(|entry| entry.kind == ModelKind::Upscale)
    };
    let found = match what {
        Some(id) => upscalers().find(|entry| entry.id == id),
        None => upscalers().find(|entry| entry.default),
    };
    found.ok_or_else(|| {
        let ids: Vec<&str> = upscalers().map(|entry| entry.id.as_str()).collect();
        let asked = what.map_or("no default upscaler".to_owned(), |what| {
            format!("neither an upscaler nor a file called {what:?}")
        });
        let message = format!("there is {asked}; the upscalers are {}", ids.join(", "));
        StudioError::new(Code::NotFound, message)
    })
}

/// Write what a fetched upscaler is read from, where it comes as another kind of file.
pub(crate) fn prepare(entry: &ModelEntry, path: &Path) -> Result<(), StudioError> {
    if entry.kind != ModelKind::Upscale {
        return Ok(());
    }
    let opened = Upscaler::open(path, 1).map(drop);
    opened.map_err(|error| StudioError::new(error.code(), format!("{error}: {path:?}")))
}

/// Make a picture larger.
///
/// # Errors
/// A picture or model that is not there or cannot be read; a file that cannot be written.
pub fn upscale(
    request: &UpscaleRequest,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<UpscaleReport, StudioError> {
    let clock = studio::system_clock();
    let began = clock.monotonic();
    flow_media::return_large_blocks();
    flow_media::still::check_still_name(&request.to)
        .map_err(|error| StudioError::new(error.code(), error.to_string()))?;
    let same = |path: &Path| std::fs::canonicalize(path).ok();
    if let (Some(from), Some(to)) = (same(&request.from), same(&request.to))
        && from == to
    {
        let message = format!("the result would replace the picture itself, {from:?}");
        return Err(StudioError::new(Code::BadInput, message));
    }
    watcher.event(StudioEvent::Stage {
        what: "loading the upscaler".into(),
    });
    let (model, upscaler) = open(request.model.as_deref(), &models::hub()?)?;
    let hand_on = |event: ProgressEvent| watcher.event(StudioEvent::Progress(event));
    let report = flow_nodes::upscale_still(
        &upscaler,
        (&request.from, &request.to),
        request.scale,
        cancel,
        &hand_on,
    )?;
    for note in &report.notes {
        watcher.event(StudioEvent::Warning { what: note.clone() });
    }
    Ok(UpscaleReport {
        out: request.to.clone(),
        width_px: report.width_px,
        height_px: report.height_px,
        model,
        notes: report.notes,
        wall_secs: clock.monotonic().saturating_sub(began).as_secs_f64(),
        peak_bytes: memory::peak_bytes(),
    })
}

/// Opens upscalers for nodes, each once.
#[derive(Debug, Default)]
pub(crate) struct Upscalers {
    opened: Mutex<BTreeMap<String, Arc<Upscaler>>>,
}

impl UpscalerSource for Upscalers {
    fn open(&self, id: &str) -> Result<Arc<Upscaler>, NodeError> {
        let refused = |error: StudioError| NodeError::new(error.code, error.message);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(upscaler) = opened.get(id) {
            return Ok(Arc::clone(upscaler));
        }
        let hub = models::hub().map_err(refused)?;
        // Only models of the list: their content is in the node's key.
        let entry = entry((!id.is_empty()).then_some(id), &hub).map_err(refused)?;
        let (_, upscaler) = self::open(Some(&entry.id), &hub).map_err(refused)?;
        let upscaler = Arc::new(upscaler);
        opened.insert(id.to_owned(), Arc::clone(&upscaler));
        Ok(upscaler)
    }

    fn side_data(&self) -> Datum {
        // A model list that cannot be read gives no models either, so nothing is kept under it.
        let hub = models::hub().ok();
        let entries = hub.iter().flat_map(|hub| hub.entries());
        let upscalers = entries.filter(|entry| entry.kind == ModelKind::Upscale);
        let hashes = upscalers.map(|entry| {
            let files = entry.files.iter();
            let files = files.map(|file| Datum::from(file.sha256.as_str()));
            Datum::map([
                ("id", Datum::from(entry.id.as_str())),
                ("default", Datum::from(entry.default)),
                ("files", Datum::List(files.collect())),
            ])
        });
        Datum::List(hashes.collect())
    }
}
