//! Pictures from prompts, as a command, and picture models for nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine_base::{CancelToken, Code, ContentHash, Datum, ProgressEvent};
use engine_hub::Hub;
use engine_pipelines::{ImageOptions, ImagePipeline, ImageRequest, InitPicture};
use flow_graph::NodeError;
use flow_nodes::{ImageChoice, ImageModelSource, draw_still, given_picture};
use flow_story::FrameSize;
use serde::Serialize;

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::{memory, models, studio};

/// The picture model that comes with the program.
pub(crate) const OWN_MODEL: &str = "sketch";
/// What reads prompts for it.
const OWN_TEXT_ENCODER: &str = "smollm2-135m-instruct-q4_1";
/// Where it lies beside the program, from the program's folder or one above.
const BESIDE: &[&str] = &["share/longtake/models", "assets/models", "models"];

/// Pictures to be drawn.
#[derive(Debug, Clone, Default)]
pub struct DrawRequest {
    /// What is to be seen.
    pub prompt: String,
    /// What is not to be seen.
    pub negative: String,
    /// Where the picture goes (PNG, JPEG, WebP or TIFF); with a count over 1, `-1`, `-2` and so on stand
    /// before the ending.
    pub out: PathBuf,
    /// How many.
    pub count: u32,
    /// Seed of the first; they count up.
    pub seed: u64,
    /// Id of the model, or its folder; without one the model that comes with the program.
    pub model: Option<String>,
    /// Weights of the text encoder, for models that come without one.
    pub text_encoder: Option<PathBuf>,
    /// Folder of the autoencoder, instead of the model's own.
    pub vae: Option<PathBuf>,
    /// Adapters with their weights.
    pub adapters: Vec<(PathBuf, f32)>,
    /// Pictures that the prompt speaks of.
    pub references: Vec<PathBuf>,
    /// A picture that is begun with.
    pub init: Option<PathBuf>,
    /// How far it may be left; 1 with a mask and 0.6 without when `None`.
    pub strength: Option<f32>,
    /// Where it is drawn anew (white).
    pub mask: Option<PathBuf>,
    /// Whether it is drawn further on all sides, to `size`.
    pub outpaint: bool,
    /// Size; without one the model's own.
    pub size: Option<FrameSize>,
    /// Steps; without them the model's own.
    pub steps: Option<u32>,
    /// Guidance; without one the model's own.
    pub guidance: Option<f32>,
}

/// A picture that was drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DrawnPicture {
    /// Its file.
    pub out: PathBuf,
    /// Its seed.
    pub seed: u64,
    /// Steps that were taken from a run before.
    pub kept_steps: u32,
}

/// Pictures that were drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawReport {
    /// All of them.
    pub pictures: Vec<DrawnPicture>,
    /// Their width.
    pub width_px: u32,
    /// Their height.
    pub height_px: u32,
    /// The model.
    pub model: String,
    /// Its family.
    pub family: &'static str,
    /// What went on differently.
    pub notes: Vec<String>,
    /// Time it took.
    pub wall_secs: f64,
    /// Most memory that this process has taken.
    pub peak_bytes: u64,
}

/// Folders in which a model called `id` may lie.
fn places(id: &str, hub: &Hub) -> Vec<PathBuf> {
    let mut places = vec![hub.folder().join(id)];
    let program = std::env::current_exe().unwrap_or_default();
    for folder in program.ancestors().skip(1) {
        places.extend(BESIDE.iter().map(|beside| folder.join(beside).join(id)));
    }
    places
}

/// Whether a path is a file of weights.
fn is_weights(path: &Path) -> bool {
    let ends = |end: &str| path.extension().is_some_and(|found| found == end);
    path.is_file() && (ends("safetensors") || ends("gguf"))
}

/// A model's name and folder: a folder (or file of weights) as it is given, or an id.
fn find(what: Option<&str>, hub: &Hub) -> Result<(String, PathBuf), StudioError> {
    if let Some(folder) = what
        .map(Path::new)
        .filter(|path| path.is_dir() || is_weights(path))
    {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        return Ok((name.into_owned(), folder.to_owned()));
    }
    let id = what.unwrap_or(OWN_MODEL);
    let plain = !id.is_empty() && !id.contains(['/', '\\']) && id != "." && id != "..";
    let found = places(id, hub)
        .into_iter()
        .find(|folder| plain && folder.is_dir());
    found.map(|folder| (id.to_owned(), folder)).ok_or_else(|| {
        let looked = hub.folder().join(id);
        let message = format!(
            "there is neither a picture model nor a folder called {id:?}; looked in {looked:?} and \
             beside the program"
        );
        StudioError::new(Code::NotFound, message)
    })
}

/// Whether pictures can be drawn here: our own model and what reads prompts for it are there.
pub(crate) fn own_model_is_here() -> bool {
    let Ok(hub) = models::hub() else {
        return false;
    };
    let weights = find(None, &hub).is_ok_and(|(_, folder)| folder.join("config.json").is_file());
    weights && hub.path(OWN_TEXT_ENCODER).is_some()
}

/// Strength without a mask, when none is asked for.
const STRENGTH: f32 = 0.6;

fn open(folder: &Path, options: ImageOptions, hub: &Hub) -> Result<ImagePipeline, StudioError> {
    let own = || {
        let entry = hub.entry(OWN_TEXT_ENCODER).ok()?;
        Some(
            hub.path(OWN_TEXT_ENCODER)
                .unwrap_or_else(|| hub.folder_of(entry)),
        )
    };
    // Other models come with theirs, or name what is missing.
    let needs_own = folder.join("sketch.safetensors").is_file();
    let options = ImageOptions {
        text_encoder: options.text_encoder.or_else(|| own().filter(|_| needs_own)),
        ..options
    };
    ImagePipeline::open(folder, &options).map_err(|error| {
        let hint = if error.code() == Code::NotFound && needs_own {
            format!("; `longtake models pull {OWN_TEXT_ENCODER}` fetches our own text encoder")
        } else {
            String::new()
        };
        StudioError::new(error.code(), format!("{error}{hint}"))
    })
}

/// `out` for picture `index` of `count`.
fn name_of(out: &Path, index: u32, count: u32) -> PathBuf {
    if count == 1 {
        return out.to_owned();
    }
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let ending = out.extension().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{stem}-{}.{ending}", index + 1))
}

/// The pictures that a request hands in.
fn pictures(request: &DrawRequest) -> Result<ImageRequest, StudioError> {
    let wrong = |message: &str| Err(StudioError::new(Code::BadInput, message.to_owned()));
    let given = |path: &PathBuf| given_picture(path).map_err(StudioError::from);
    let references = request.references.iter().map(given);
    let mut pictures = ImageRequest {
        references: references.collect::<Result<_, _>>()?,
        mask: request.mask.as_ref().map(given).transpose()?,
        ..ImageRequest::default()
    };
    let Some(init) = &request.init else {
        return match (&request.mask, request.outpaint, request.strength) {
            (None, false, None) => Ok(pictures),
            _ => wrong(
                "a mask, a strength and drawing further belong to a picture: expected one to begin with",
            ),
        };
    };
    let mut picture = given(init)?;
    if request.outpaint {
        if request.mask.is_some() {
            return wrong("drawing further has a mask of its own: expected no other");
        }
        let Some(size) = request.size else {
            return wrong("drawing further needs a size: expected one larger than the picture");
        };
        let (large, mask) = picture
            .outpainted((size.width_px, size.height_px))
            .map_err(|error| StudioError::new(error.code(), error.to_string()))?;
        picture = large;
        pictures.mask = Some(mask);
    }
    let usual = if pictures.mask.is_some() {
        1.0
    } else {
        STRENGTH
    };
    pictures.init = Some(InitPicture {
        picture,
        strength: request.strength.unwrap_or(usual),
    });
    Ok(pictures)
}

/// Draws pictures; the model is opened once.
///
/// # Errors
/// A model that is not there or cannot be read; a request that it cannot draw; a file that cannot be
/// written; cancelled. Finished pictures stay, and the latent of one that was begun: the same request goes
/// on from there.
pub fn draw(
    request: &DrawRequest,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<DrawReport, StudioError> {
    let clock = studio::system_clock();
    let began = clock.monotonic();
    flow_media::return_large_blocks();
    flow_media::still::check_still_name(&request.out)
        .map_err(|error| StudioError::new(error.code(), error.to_string()))?;
    watcher.event(StudioEvent::Stage {
        what: "loading the picture model".into(),
    });
    let hub = models::hub()?;
    let (model, folder) = find(request.model.as_deref(), &hub)?;
    let options = ImageOptions {
        text_encoder: request.text_encoder.clone(),
        vae: request.vae.clone(),
        adapters: request.adapters.clone(),
        ..ImageOptions::default()
    };
    let pictures = pictures(request)?;
    let pipeline = open(&folder, options, &hub)?;
    let mut report = DrawReport {
        pictures: Vec::new(),
        width_px: 0,
        height_px: 0,
        model,
        family: pipeline.family(),
        notes: Vec::new(),
        wall_secs: 0.0,
        peak_bytes: 0,
    };
    watcher.event(StudioEvent::Stage {
        what: "drawing".into(),
    });
    for index in 0..request.count.max(1) {
        let seed = request.seed.wrapping_add(u64::from(index));
        let wanted = ImageRequest {
            prompt: request.prompt.clone(),
            negative: request.negative.clone(),
            width_px: request.size.map_or(0, |size| size.width_px),
            height_px: request.size.map_or(0, |size| size.height_px),
            seed,
            steps: request.steps,
            guidance: request.guidance,
            ..pictures.clone()
        };
        let out = name_of(&request.out, index, request.count);
        let kept = out.with_extension("latent.safetensors");
        let (before, all) = (u64::from(index), u64::from(request.count));
        let started = clock.monotonic();
        let first = AtomicU64::new(u64::MAX);
        let hand_on = |event: ProgressEvent| {
            // A picture that goes on where it was begins with a later step.
            first.fetch_min(event.step.saturating_sub(1), Ordering::Relaxed);
            let begun = first.load(Ordering::Relaxed);
            let done = event.step.saturating_sub(begun).max(1) as f64;
            let taken = clock.monotonic().saturating_sub(started).as_secs_f64();
            let left = all * event.of - (before * event.of + event.step);
            watcher.event(StudioEvent::Progress(ProgressEvent {
                step: before * event.of + event.step,
                of: all * event.of,
                secs_left: Some(taken / done * left as f64),
                ..event
            }));
        };
        let files = (out.as_path(), Some(kept.as_path()));
        let drawn = draw_still(&pipeline, &wanted, files, cancel, &hand_on)?;
        for note in drawn.notes {
            watcher.event(StudioEvent::Warning {
                what: note.clone().into(),
            });
            if !report.notes.contains(&note) {
                report.notes.push(note);
            }
        }
        (report.width_px, report.height_px) = (drawn.width_px, drawn.height_px);
        report.pictures.push(DrawnPicture {
            out,
            seed,
            kept_steps: drawn.kept_steps,
        });
    }
    report.wall_secs = clock.monotonic().saturating_sub(began).as_secs_f64();
    report.peak_bytes = memory::peak_bytes();
    Ok(report)
}

/// Opens picture models for nodes, each once.
#[derive(Debug, Default)]
pub(crate) struct ImageModels {
    opened: Mutex<BTreeMap<String, Arc<ImagePipeline>>>,
    own_content: Mutex<Option<Datum>>,
}

impl ImageModelSource for ImageModels {
    fn open(&self, id: &str) -> Result<Arc<ImagePipeline>, NodeError> {
        let refused = |error: StudioError| NodeError::new(error.code, error.message);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let id = if id.is_empty() { OWN_MODEL } else { id };
        if let Some(pipeline) = opened.get(id) {
            return Ok(Arc::clone(pipeline));
        }
        if id != OWN_MODEL {
            // Only models whose content is in the node's key.
            let message =
                format!("there is no picture model {id:?} for workflows: expected {OWN_MODEL:?}");
            return Err(NodeError::new(Code::NotFound, message));
        }
        let hub = models::hub().map_err(refused)?;
        let (_, folder) = find(Some(id), &hub).map_err(refused)?;
        let options = ImageOptions::default();
        let pipeline = Arc::new(self::open(&folder, options, &hub).map_err(refused)?);
        opened.insert(id.to_owned(), Arc::clone(&pipeline));
        Ok(pipeline)
    }

    fn open_choice(&self, choice: &ImageChoice) -> Result<Arc<ImagePipeline>, NodeError> {
        let refused = |error: StudioError| NodeError::new(error.code, error.message);
        let name = format!("{choice:?}");
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = opened.get(&name) {
            return Ok(Arc::clone(pipeline));
        }
        let hub = models::hub().map_err(refused)?;
        let folder = folder_of(choice, &hub).map_err(refused)?;
        let beside = |path: &PathBuf| hub.folder().join(path);
        let adapters = choice.adapters.iter();
        let options = ImageOptions {
            text_encoder: choice.text_encoder.as_ref().map(beside),
            vae: choice.vae.as_ref().map(beside),
            adapters: adapters
                .map(|(path, weight)| (beside(path), *weight))
                .collect(),
            ..ImageOptions::default()
        };
        let pipeline = Arc::new(self::open(&folder, options, &hub).map_err(refused)?);
        // Models are large: one is kept besides our own.
        opened.retain(|id, _| id == OWN_MODEL);
        opened.insert(name, Arc::clone(&pipeline));
        Ok(pipeline)
    }

    fn content_of(&self, choice: &ImageChoice) -> Result<ContentHash, NodeError> {
        let refused = |error: StudioError| NodeError::new(error.code, error.message);
        let hub = models::hub().map_err(refused)?;
        let mut paths = vec![folder_of(choice, &hub).map_err(refused)?];
        let named = choice.text_encoder.iter().chain(&choice.vae);
        let named = named.chain(choice.adapters.iter().map(|(path, _)| path));
        paths.extend(named.map(|path| hub.folder().join(path)));
        let mut parts: Vec<Datum> = choice
            .adapters
            .iter()
            .map(|(_, weight)| Datum::Float(f64::from(*weight)))
            .collect();
        for path in &paths {
            content_below(path, FOLDERS_DEEP, &mut parts).map_err(|error| {
                let what = format!(
                    "cannot read a picture model: {error}, at {}",
                    path.display()
                );
                NodeError::new(Code::of_io(&error), what)
            })?;
        }
        if choice.model.is_empty() {
            parts.push(self.side_data());
        }
        let parts = Datum::List(parts).content_hash();
        parts.map_err(|error| NodeError::new(Code::BadInput, error.to_string()))
    }

    fn side_data(&self) -> Datum {
        let mut content = self
            .own_content
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        content.get_or_insert_with(own_content).clone()
    }
}

/// Folders inside each other that belong to a model.
const FOLDERS_DEEP: usize = 3;

/// Where the model of a choice lies: only in the model folder, or beside the program.
fn folder_of(choice: &ImageChoice, hub: &Hub) -> Result<PathBuf, StudioError> {
    if choice.model.is_empty() || choice.model == OWN_MODEL {
        return find(None, hub).map(|(_, folder)| folder);
    }
    let path = hub.folder().join(&choice.model);
    match path.exists() {
        true => Ok(path),
        false => Err(StudioError::new(
            Code::NotFound,
            format!(
                "there is no picture model called {:?} in {}",
                choice.model,
                hub.folder().display()
            ),
        )),
    }
}

/// Names and content of all files of a model, in the order of their names.
fn content_below(path: &Path, deep: usize, parts: &mut Vec<Datum>) -> std::io::Result<()> {
    if path.is_dir() {
        let mut inner = Vec::new();
        for entry in path.read_dir()? {
            inner.push(entry?.path());
        }
        inner.sort();
        for path in inner.iter().filter(|path| deep > 0 || path.is_file()) {
            content_below(path, deep.saturating_sub(1), parts)?;
        }
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hash = ContentHash::of_reader(std::fs::File::open(path)?)?;
    parts.push(Datum::from(name.as_ref()));
    parts.push(Datum::from(hash.to_hex().as_str()));
    Ok(())
}

/// Content of our own model and its text encoder. A model that cannot be read draws nothing, so nothing is
/// kept under its empty content.
fn own_content() -> Datum {
    let Ok(hub) = models::hub() else {
        return Datum::List(Vec::new());
    };
    let mut hashes = Vec::new();
    if let Ok((_, folder)) = find(None, &hub) {
        for name in ["config.json", "sketch.safetensors"] {
            let file = std::fs::File::open(folder.join(name));
            let hash = file
                .and_then(ContentHash::of_reader)
                .map(|hash| hash.to_hex());
            hashes.push(Datum::from(hash.unwrap_or_default().as_str()));
        }
    }
    let encoder = hub.entry(OWN_TEXT_ENCODER);
    let files = encoder.iter().flat_map(|entry| &entry.files);
    hashes.extend(files.map(|file| Datum::from(file.sha256.as_str())));
    Datum::List(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_pictures_have_numbers_before_the_ending() {
        let out = Path::new("folder/scout.png");
        assert_eq!(name_of(out, 0, 1), out);
        assert_eq!(name_of(out, 2, 4), Path::new("folder/scout-3.png"));
    }
}
