//! Pictures and videos at twice their size, as a command, and pictures for nodes.

mod video;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use engine_base::{CancelToken, Code, Datum, ProgressEvent};
use engine_hub::{Hub, ModelEntry, ModelKind};
use engine_pipelines::{DeviceChoice, Upscaler};
use flow_graph::NodeError;
use flow_media::restream::Container;
use flow_nodes::UpscalerSource;
use serde::Serialize;

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::studio::{self, Studio, StudioOptions};
use crate::{memory, models};

/// A picture or video to be made larger.
#[derive(Debug, Clone)]
pub struct UpscaleRequest {
    /// The picture (PNG, JPEG, WebP or TIFF) or video.
    pub from: PathBuf,
    /// Where the result goes; its ending says what type of file it is: of pictures those above, of
    /// videos MP4, QuickTime or Matroska.
    pub to: PathBuf,
    /// How many times larger. 2.
    pub scale: usize,
    /// Id of the model, or path of its weights; without one the default of the model list.
    pub model: Option<String>,
    /// Quality of a video, 0 (lossless) to 51; without it the default of films.
    pub crf: Option<u8>,
    /// Encoder effort of a video, such as `medium`.
    pub preset: Option<String>,
    /// The device; without it the environment's `LONGTAKE_DEVICE`, without that a GPU where one can be used. It changes
    /// results by less than 1/255, and no key.
    pub device: Option<DeviceChoice>,
    /// Folder of the cache, which keeps the finished parts of a video; without it this machine's.
    pub cache_folder: Option<PathBuf>,
}

/// A picture or video that was made larger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpscaleReport {
    /// The result.
    pub out: PathBuf,
    /// Its width.
    pub width_px: u32,
    /// Its height.
    pub height_px: u32,
    /// Frames of a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Frames of a video that were made now; the others were kept from a run before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_frames: Option<u64>,
    /// The model.
    pub model: String,
    /// What it ran on in the end.
    pub device: String,
    /// What was converted, is odd or could not be kept.
    pub notes: Vec<String>,
    /// Time it took.
    pub wall_secs: f64,
    /// Most memory that this process has taken.
    pub peak_bytes: u64,
}

/// An upscaler and what it is called.
struct Opened {
    name: String,
    upscaler: Upscaler,
    /// Where its weights lie.
    path: PathBuf,
    /// Content of its weights, where the model list tells.
    listed: Option<Datum>,
}

/// The upscaler called `what`: an id of the model list, a path to weights, or the list's default.
fn open(
    what: Option<&str>,
    device: Option<DeviceChoice>,
    hub: &Hub,
) -> Result<Opened, StudioError> {
    let device = match device {
        Some(device) => device,
        None => DeviceChoice::of_environment()
            .map_err(|error| StudioError::new(error.code(), error.to_string()))?,
    };
    let refused = |error: engine_pipelines::UpscaleError, path: &Path| {
        StudioError::new(error.code(), format!("{error}: {path:?}"))
    };
    if let Some(path) = what.map(Path::new).filter(|path| path.exists()) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok(Opened {
            name: name.into_owned(),
            upscaler: Upscaler::open_on(path, 0, device).map_err(|error| refused(error, path))?,
            path: path.to_owned(),
            listed: None,
        });
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
    Ok(Opened {
        name: id.clone(),
        upscaler: Upscaler::open_on(&path, 0, device).map_err(|error| refused(error, &path))?,
        path,
        listed: Some(listed(entry)),
    })
}

/// Content of the files of a model.
fn listed(entry: &ModelEntry) -> Datum {
    let files = entry.files.iter();
    Datum::List(
        files
            .map(|file| Datum::from(file.sha256.as_str()))
            .collect(),
    )
}

impl Opened {
    /// Content of the weights, for keys.
    fn content(&self, cancel: &CancelToken) -> Result<Datum, StudioError> {
        if let Some(listed) = &self.listed {
            return Ok(listed.clone());
        }
        let mut files = vec![self.path.clone(), self.path.with_extension("bin")];
        if self.path.is_dir() {
            let io = |error: std::io::Error| StudioError::io("read a folder", &self.path, &error);
            let entries = std::fs::read_dir(&self.path).map_err(io)?;
            files = entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()
                .map_err(io)?;
        }
        files.sort();
        files.dedup();
        let hashes = files.iter().filter(|file| file.is_file()).map(|file| {
            let hash = video::content_of(file, cancel)?;
            Ok(Datum::from(hash.to_hex().as_str()))
        });
        Ok(Datum::List(hashes.collect::<Result<_, StudioError>>()?))
    }
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

/// Make a picture or a video larger.
///
/// # Errors
/// A picture, video or model that is not there or cannot be read; a file that cannot be written;
/// cancelled. The finished parts of a video are kept: the same request goes on from there.
pub fn upscale(
    request: &UpscaleRequest,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<UpscaleReport, StudioError> {
    let clock = studio::system_clock();
    let began = clock.monotonic();
    flow_media::return_large_blocks();
    let is_video = Container::of(&request.to).is_some();
    check_names(request, is_video)?;
    watcher.event(StudioEvent::Stage {
        what: "loading the upscaler".into(),
    });
    let opened = open(request.model.as_deref(), request.device, &models::hub()?)?;
    let told = opened.upscaler.notes();
    for note in &told {
        watcher.event(StudioEvent::Warning {
            what: note.clone().into(),
        });
    }
    let mut report = UpscaleReport {
        out: request.to.clone(),
        width_px: 0,
        height_px: 0,
        frames: None,
        made_frames: None,
        model: opened.name.clone(),
        device: String::new(),
        notes: Vec::new(),
        wall_secs: 0.0,
        peak_bytes: 0,
    };
    if is_video {
        let mut options = StudioOptions::of_this_machine()?;
        if let Some(folder) = &request.cache_folder {
            options.cache_folder.clone_from(folder);
        }
        let studio = Studio::open(&options)?;
        let model = opened.content(cancel)?;
        let with = (&opened.upscaler, model);
        let done = video::upscale(request, with, &studio.store, watcher, cancel)?;
        (report.width_px, report.height_px) = (done.width_px, done.height_px);
        (report.frames, report.made_frames) = (Some(done.frames), Some(done.made_frames));
        report.notes = done.notes;
    } else {
        watcher.event(StudioEvent::Stage {
            what: "upscaling".into(),
        });
        let hand_on = |event: ProgressEvent| watcher.event(StudioEvent::Progress(event));
        let files = (request.from.as_path(), request.to.as_path());
        let done =
            flow_nodes::upscale_still(&opened.upscaler, files, request.scale, cancel, &hand_on)?;
        for note in &done.notes {
            watcher.event(StudioEvent::Warning {
                what: note.as_str().into(),
            });
        }
        (report.width_px, report.height_px) = (done.width_px, done.height_px);
        report.notes = done.notes;
    }
    report.notes.splice(0..0, told);
    report.device = opened.upscaler.device();
    report.wall_secs = clock.monotonic().saturating_sub(began).as_secs_f64();
    report.peak_bytes = memory::peak_bytes();
    Ok(report)
}

/// Refuse, before anything is done, what could not be written or would replace what is read.
fn check_names(request: &UpscaleRequest, is_video: bool) -> Result<(), StudioError> {
    let bad = |message: String| Err(StudioError::new(Code::BadInput, message));
    if !is_video && let Err(error) = flow_media::still::check_still_name(&request.to) {
        return Err(StudioError::new(
            error.code(),
            format!("{error}; of a video, to .mp4, .mov or .mkv"),
        ));
    }
    if is_video && request.scale != 2 {
        return bad(format!("cannot upscale {}x: expected 2", request.scale));
    }
    let same = |path: &Path| std::fs::canonicalize(path).ok();
    if let (Some(from), Some(to)) = (same(&request.from), same(&request.to))
        && from == to
    {
        let what = if is_video { "video" } else { "picture" };
        return bad(format!(
            "the result would replace the {what} itself, {from:?}"
        ));
    }
    Ok(())
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
        let opened_now = self::open(Some(&entry.id), None, &hub).map_err(refused)?;
        for note in opened_now.upscaler.notes() {
            tracing::warn!("{note}");
        }
        let upscaler = Arc::new(opened_now.upscaler);
        opened.insert(id.to_owned(), Arc::clone(&upscaler));
        Ok(upscaler)
    }

    fn side_data(&self) -> Datum {
        // A model list that cannot be read gives no models either, so nothing is kept under it.
        let hub = models::hub().ok();
        let entries = hub.iter().flat_map(|hub| hub.entries());
        let upscalers = entries.filter(|entry| entry.kind == ModelKind::Upscale);
        let hashes = upscalers.map(|entry| {
            Datum::map([
                ("id", Datum::from(entry.id.as_str())),
                ("default", Datum::from(entry.default)),
                ("files", listed(entry)),
            ])
        });
        Datum::List(hashes.collect())
    }
}
