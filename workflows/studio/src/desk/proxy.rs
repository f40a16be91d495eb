//! Copies of videos that a page cannot play: small H.264 and AAC, made in the background.

use std::path::Path;
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash, Rational};
use flow_media::probe::{Probe, VideoStream, probe};
use flow_nodes::{FilmDocument, FilmFile, FilmFiles, FilmOptions, LoudnessTarget, SpeechLines};
use flow_story::Assets;
use flow_timeline::{SourceKind, SourceRef};
use serde::{Deserialize, Serialize};
use serde_json::json;
use ts_rs::TS;

use super::list::{CommandEntry, CommandKind};
use super::queue::JobResult;
use super::worker::kept;
use super::{Desk, lock};
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::film::{failures, format_of, worst};
use crate::project::parse;
use crate::say::{Said, Say};
use crate::workflow::PlanState;

/// Longest side of a copy.
const SIDE_PX: u32 = 1_280;
/// Frames of a part that is kept when the work is stopped.
const PART_SECS: i64 = 20;
/// What the copy's only file is called in the script that it is made by.
const SOURCE: &str = "source";

/// A file to be played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct PlayArgs {
    /// Its content.
    pub hash: String,
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
}

/// Whether a page can play a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case", tag = "state")]
#[ts(optional_fields)]
pub enum PlayState {
    /// It plays: `/media/{hash}`.
    Ready {
        /// The file itself, or a copy of it.
        hash: String,
        /// Whether it is a copy.
        is_copy: bool,
    },
    /// A copy that plays is being made.
    Making {
        /// By this job.
        job: i64,
    },
    /// It cannot be played.
    Never {
        /// Why.
        why: Said,
    },
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    vec![CommandEntry::new(
        "media.play",
        CommandKind::System,
        "What of a file plays on a page: itself, or a copy, which is made when it is not there.",
        play,
    )]
}

/// Whether browsers and the window's view play a file of these streams.
fn plays(about: &Probe) -> bool {
    let holds = |names: &[&str]| {
        let mut container = about.container.split(',');
        container.any(|name| names.contains(&name))
    };
    let container = holds(&[
        "mp4", "mov", "matroska", "webm", "ogg", "wav", "mp3", "flac", "aac",
    ]);
    let picture = |stream: &VideoStream| {
        let codec = matches!(stream.codec.as_str(), "h264" | "vp8" | "vp9" | "av1");
        codec && matches!(stream.pixel_format.as_str(), "yuv420p" | "yuvj420p")
    };
    let sound = |codec: &str| {
        let known = ["aac", "mp3", "opus", "vorbis", "flac"];
        known.contains(&codec) || codec.starts_with("pcm_s16le")
    };
    container
        && about.video.iter().take(1).all(picture)
        && about.audio.iter().all(|stream| sound(&stream.codec))
}

fn play(desk: &Desk, args: PlayArgs) -> Result<PlayState, StudioError> {
    let hash: ContentHash = args.hash.parse().map_err(|_no_hash| {
        let hash = args.hash.clone();
        StudioError::said(Code::NotFound, &Say::NoMedia { hash })
    })?;
    let ready = |hash: ContentHash, is_copy| PlayState::Ready {
        hash: hash.to_hex(),
        is_copy,
    };
    let known = lock(&desk.proxies).get(&hash).cloned();
    match known {
        Some(Ok(copy)) if desk.media_path(&copy).is_ok() => return Ok(ready(copy, copy != hash)),
        Some(Err(why)) => return Ok(PlayState::Never { why }),
        Some(Ok(_)) | None => {}
    }
    let path = desk.media_path(&hash)?;
    let about = match probe(&path) {
        Ok(about) => about,
        Err(error) => {
            let why = error.to_string().into();
            return Ok(PlayState::Never { why });
        }
    };
    if plays(&about) || about.video.is_empty() {
        lock(&desk.proxies).insert(hash, Ok(hash));
        return Ok(ready(hash, false));
    }
    if let Some(job) = desk.queue.job_of_proxy(&args.hash) {
        return Ok(PlayState::Making { job });
    }
    let copy = copy_of(desk, hash, &about)?;
    if let Some(made) = copy.made(desk)? {
        lock(&desk.proxies).insert(hash, Ok(made));
        return Ok(ready(made, true));
    }
    let short: String = args.hash.chars().take(8).collect();
    let name = args.name.clone().unwrap_or(short);
    let job = desk.add_job("media.proxy", Say::ProxyOf { name }, None, kept(&args))?;
    Ok(PlayState::Making { job })
}

/// Carry out the job `media.proxy`.
pub(super) fn make(
    desk: &Desk,
    args: &PlayArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let hash: ContentHash = args
        .hash
        .parse()
        .map_err(|error| StudioError::new(Code::BadInput, format!("{error}")))?;
    let made = made_now(desk, hash, watcher, cancel);
    // What cannot be copied is not tried again and again while somebody looks at it.
    let known = match &made {
        Ok(copy) => Ok(*copy),
        Err(error) => Err(error.as_said()),
    };
    lock(&desk.proxies).insert(hash, known);
    let hash = made?.to_hex();
    Ok(JobResult::Proxy { hash })
}

fn made_now(
    desk: &Desk,
    hash: ContentHash,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<ContentHash, StudioError> {
    watcher.event(StudioEvent::Stage {
        what: Say::MakingProxy {}.into(),
    });
    let path = desk.media_path(&hash)?;
    let about = probe(&path).map_err(|error| StudioError::new(error.code(), error.to_string()))?;
    let copy = copy_of(desk, hash, &about)?;
    desk.studio.store.import(&path, "video/mp4")?;
    let targets = [copy.film.clone()];
    let report = desk
        .studio
        .execute(&copy.document, &targets, watcher, None, cancel)?;
    if cancel.is_cancelled() {
        return Err(StudioError::new(Code::Cancelled, "the copy was stopped"));
    }
    if let Some(code) = worst(&report) {
        return Err(StudioError::new(code, failures(&report).join("\n")));
    }
    let file = report
        .output(&copy.film, "film")
        .and_then(|list| list.first());
    let blob = file.and_then(|value| value.as_blob());
    blob.map(|blob| blob.hash)
        .ok_or_else(|| StudioError::new(Code::Internal, "the copy has no file: a fault of ours"))
}

/// The nodes that make a copy.
struct Copy {
    document: flow_graph::Document,
    film: String,
}

impl Copy {
    /// The copy, when it is in the cache.
    fn made(&self, desk: &Desk) -> Result<Option<ContentHash>, StudioError> {
        let targets = [self.film.clone()];
        let plan = desk.studio.plan_of(&self.document, &targets)?;
        let film = plan.nodes.iter().find(|node| node.node == self.film);
        if film.is_none_or(|film| film.state != PlanState::Reused) {
            return Ok(None);
        }
        let silent = Arc::new(|_event: &flow_executor::RunEvent| {});
        let request = desk.studio.request(&targets);
        let executor = desk.studio.executor();
        let report = executor.run(&self.document, &request, silent, &CancelToken::new())?;
        let file = report
            .output(&self.film, "film")
            .and_then(|list| list.first());
        Ok(file.and_then(|value| value.as_blob()).map(|blob| blob.hash))
    }
}

/// The copy of a video as a film of one file: what makes films makes it, and keeps its parts.
fn copy_of(desk: &Desk, hash: ContentHash, about: &Probe) -> Result<Copy, StudioError> {
    let Some(stream) = about.video.first() else {
        return Err(StudioError::new(Code::BadInput, "expected a video"));
    };
    let size = small(stream);
    let fps = stream
        .suggested_fps
        .min(Rational::whole(60))
        .max(Rational::ONE);
    let frames = (stream.duration_secs.as_f64() * fps.as_f64()).floor() as i64;
    let part = (PART_SECS as f64 * fps.as_f64()).round().max(1.0) as i64;
    let mut shots = Vec::new();
    let mut first = 0;
    while first < frames.max(1) {
        let length = part.min(frames - first).max(1);
        let mut video = json!({ "file": SOURCE, "from": format!("{first} frames") });
        if !about.audio.is_empty() {
            video["sound"] = json!("0 dB");
        }
        shots.push(json!({
            "id": format!("part-{}", shots.len() + 1),
            "length": format!("{length} frames"),
            "fit": "contain",
            "video": video,
        }));
        first += length;
    }
    let script = parse(&json!({
        "longtake": 1,
        "title": "Copy",
        "size": format!("{}x{}", size.0, size.1),
        "fps": fps.to_string(),
        "scenes": [{ "id": "copy", "shots": shots }],
    }))?;
    let format = format_of(&script)?;
    let plan = flow_story::plan_film(&script, &format, &Assets::default()).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        StudioError::new(Code::Internal, lines.join("\n"))
    })?;
    let files: FilmFiles = [SourceKind::Video, SourceKind::Sound]
        .into_iter()
        .map(|kind| {
            let name = SOURCE.to_owned();
            let file = FilmFile {
                content: hash,
                media_type: "video/mp4".to_owned(),
                enlarge: None,
            };
            (SourceRef { kind, name }, file)
        })
        .collect();
    let options = FilmOptions {
        crf: 26,
        preset: "veryfast",
        burn_subtitles: false,
        loudness: LoudnessTarget::AsItIs,
    };
    let spoken = SpeechLines::new();
    let fonts = &desk.studio.fonts;
    let made = flow_nodes::film_document(&plan, &files, &spoken, &options, fonts);
    let FilmDocument { document, film, .. } =
        made.map_err(|error| StudioError::new(Code::Internal, error.to_string()))?;
    Ok(Copy { document, film })
}

/// Even sides in the shape of the picture, none longer than a copy's.
fn small(stream: &VideoStream) -> (u32, u32) {
    let (width, height) = (
        stream.display_width_px.max(1),
        stream.display_height_px.max(1),
    );
    let longer = width.max(height);
    let part = f64::from(longer.min(SIDE_PX)) / f64::from(longer);
    let even = |side_px: u32| ((f64::from(side_px) * part / 2.0).round() as u32 * 2).max(16);
    (even(width), even(height))
}

impl Desk {
    /// Begin to make a copy of a file that was brought in, when pages cannot play it.
    pub(crate) fn make_playable(&self, hash: &str, name: &str, path: &Path) {
        let is_video = probe(path).is_ok_and(|about| !about.video.is_empty() && !plays(&about));
        if !is_video {
            return;
        }
        let args = PlayArgs {
            hash: hash.to_owned(),
            name: Some(name.to_owned()),
        };
        if let Err(error) = play(self, args) {
            tracing::warn!(%error, "a copy that plays cannot be made");
        }
    }
}
