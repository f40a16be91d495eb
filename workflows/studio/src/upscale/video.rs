//! Videos at twice their size: the cache keeps what is finished.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine_base::{CancelToken, Code, ContentHash, ContentHasher, Datum, Key, ProgressEvent};
use engine_pipelines::Upscaler;
use flow_graph::NodeError;
use flow_media::encode::{EncodeOptions, Preset};
use flow_nodes::{SegmentKeeper, SegmentName, VideoReport, VideoUpscale};
use flow_store::{
    Exactness, HoldGuard, NewResult, Provenance, Store, StoreError, StoredPort, StoredValue,
};

use super::UpscaleRequest;
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};

/// What a segment's key says it is. The version rises when the same input gives other bytes.
const WORK: &str = "video.upscale.segment";
const WORK_VERSION: u64 = 1;

/// Bytes read between two looks whether to stop.
const READ_BYTES: usize = 1 << 20;

/// Make the video larger with `upscaler`, whose weights `model` names.
pub(super) fn upscale(
    request: &UpscaleRequest,
    (upscaler, model): (&Upscaler, Datum),
    store: &Store,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<VideoReport, StudioError> {
    let stage = |what: &str| watcher.event(StudioEvent::Stage { what: what.into() });
    stage("reading the video");
    let video = VideoUpscale::open(&request.from, &request.to, &encode_options(request)?)?;
    for note in video.notes() {
        watcher.event(StudioEvent::Warning {
            what: note.as_str().into(),
        });
    }
    let mut notes = video.notes().to_vec();
    let keeper = Segments {
        store,
        content: content_of(&request.from, cancel)?,
        model,
        settings: video.settings(),
        held: Mutex::default(),
    };
    stage("upscaling");
    let hand_on = |event: ProgressEvent| {
        if event.what == "joining" {
            watcher.event(StudioEvent::Stage {
                what: "joining".into(),
            });
        }
        watcher.event(StudioEvent::Progress(event));
    };
    let mut report = video.run(upscaler, &keeper, cancel, &hand_on)?;
    drop(keeper);
    store.trim()?;
    for note in &report.notes {
        watcher.event(StudioEvent::Warning {
            what: note.as_str().into(),
        });
    }
    notes.append(&mut report.notes);
    report.notes = notes;
    Ok(report)
}

fn encode_options(request: &UpscaleRequest) -> Result<EncodeOptions, StudioError> {
    let mut options = EncodeOptions::default();
    if let Some(crf) = request.crf {
        options.crf = crf;
    }
    if let Some(name) = &request.preset {
        options.preset =
            serde_json::from_value::<Preset>(name.as_str().into()).map_err(|error| {
                StudioError::new(
                    Code::BadInput,
                    format!("encode with the preset {name:?}: {error}"),
                )
            })?;
    }
    Ok(options)
}

/// Hash of a file, with an end to it when asked to stop.
pub(super) fn content_of(path: &Path, cancel: &CancelToken) -> Result<ContentHash, StudioError> {
    let io = |error: std::io::Error| StudioError::io("read a file", path, &error);
    let mut file = File::open(path).map_err(io)?;
    let mut hasher = ContentHasher::new();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        cancel.check().map_err(NodeError::from)?;
        match file.read(&mut bytes) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => hasher
                .write_all(bytes.get(..count).unwrap_or_default())
                .map_err(io)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io(error)),
        }
    }
}

/// Segments in the store, by what they are made from.
struct Segments<'a> {
    store: &'a Store,
    content: ContentHash,
    model: Datum,
    settings: Datum,
    /// Keep the files from being pruned until they are joined.
    held: Mutex<Vec<HoldGuard>>,
}

impl Segments<'_> {
    fn key(&self, name: SegmentName) -> Result<Key, NodeError> {
        let work = Datum::map([
            ("work", Datum::from(WORK)),
            ("version", Datum::whole(WORK_VERSION)),
            ("content", Datum::from(self.content.to_hex().as_str())),
            ("model", self.model.clone()),
            ("settings", self.settings.clone()),
            ("segment", Datum::whole(name.index)),
            ("frames", Datum::whole(name.frames)),
        ]);
        let canonical = work.canonical().map_err(|error| {
            NodeError::new(Code::Internal, format!("cannot name a segment: {error}"))
        })?;
        Ok(Key::of_canonical(&canonical))
    }

    fn hold(&self, guard: HoldGuard) {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(guard);
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape of a map_err function"
)]
fn store_error(error: StoreError) -> NodeError {
    NodeError::new(error.code(), error.to_string())
}

impl SegmentKeeper for Segments<'_> {
    fn find(&self, name: SegmentName) -> Result<Option<PathBuf>, NodeError> {
        let key = self.key(name)?;
        let (found, guard) = self.store.lookup_held(&[key]).map_err(store_error)?;
        let Some(result) = found.into_iter().flatten().next() else {
            return Ok(None);
        };
        self.hold(guard);
        result
            .blobs()
            .next()
            .map(|blob| self.store.blob_path(&blob.hash).map_err(store_error))
            .transpose()
    }

    fn temp(&self) -> Result<PathBuf, NodeError> {
        self.store.temp("mp4").map_err(store_error)
    }

    fn keep(&self, name: SegmentName, file: &Path, wall: Duration) -> Result<PathBuf, NodeError> {
        let blob = self.store.adopt(file, "video/mp4").map_err(store_error)?;
        let result = NewResult {
            key: self.key(name)?,
            node_type: WORK.to_owned(),
            ports: vec![StoredPort::one(StoredValue::Blob(blob))],
            // Floats: another kind of processor may round otherwise.
            exactness: Exactness::Tolerant,
            provenance: Provenance {
                inputs: vec![self.content],
                engine_build: env!("CARGO_PKG_VERSION").to_owned(),
                device_class: "cpu".to_owned(),
                wall_millis: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            },
        };
        let kept = self.store.commit(result).map_err(store_error)?;
        let hashes: Vec<ContentHash> = kept.result().blobs().map(|blob| blob.hash).collect();
        self.hold(self.store.hold(&hashes).map_err(store_error)?);
        let missing = || NodeError::new(Code::Internal, "a kept segment has no file");
        let hash = hashes.first().ok_or_else(missing)?;
        self.store.blob_path(hash).map_err(store_error)
    }
}
