//! Pictures that are drawn for shots to choose from: each becomes a take of its shot.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine_base::{CancelToken, Clock, Code, ContentHash, ProgressEvent};
use flow_nodes::picture_document;
use flow_story::{PictureSpec, Script, Seed, picture_spec_seeded, wants_picture};
use flow_timeline::SourceKind;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::drawn::DRAWN_TYPE;
use super::{PictureMaker, failures, format_of, worst};
use crate::draw;
use crate::error::StudioError;
use crate::events::{NodeState, StudioEvent, Watcher};
use crate::library::Known;
use crate::project::Project;
use crate::project::takes::{TakeBy, TakeKind, TakeMade};
use crate::say::Say;
use crate::studio::Studio;

/// Most pictures that are drawn for a shot at once.
pub const SCOUTS_MAX: u32 = 8;
/// Units in which the progress of one picture is told.
const PARTS: u64 = 100;
/// How much longer drawing a subject takes than laying a picture.
const SUBJECT_WEIGHT: f64 = 8.0;

/// Shots that pictures are drawn for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum DrawWhat {
    /// Every shot for which nobody chose a picture, video or colour.
    Missing,
    /// These shots.
    Shots(Vec<String>),
}

/// A picture that is wanted. Its seed was drawn when it was asked for: a job that goes on draws the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PictureWanted {
    pub(crate) shot: String,
    /// The shot's row: its id may be another's by the time that it is drawn.
    pub(crate) row: String,
    pub(crate) seed: u64,
}

/// A picture that was drawn for a shot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct DrawnTake {
    /// The shot.
    pub shot: String,
    /// Content of the picture.
    pub take: String,
    /// What decided its draws.
    pub seed: u64,
    /// Whether it is a take of the shot now: the shot may have gone meanwhile.
    pub kept: bool,
    /// Whether the shot did not have it before.
    pub new: bool,
}

/// A seed for one more take of a shot that had `count`.
pub(crate) fn drawn_seed(row: &str, count: usize) -> u64 {
    let drawn = ContentHash::of(format!("seed of take {count} of {row}").as_bytes());
    let [a, b, c, d, ..] = *drawn.as_bytes();
    u64::from(u32::from_be_bytes([a, b, c, d]))
}

/// What a picture is drawn from, in words: subjects, place, light, weather.
fn words_of(spec: &PictureSpec) -> String {
    let word = |value: serde_json::Result<serde_json::Value>| {
        let value = value.unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    };
    let subjects = spec.subjects.iter().map(|subject| {
        let plain = subject.prompt.strip_suffix(", flat style, cut out");
        plain.unwrap_or(&subject.prompt).to_owned()
    });
    let place = [
        spec.lighthouse.then(|| "lighthouse".to_owned()),
        Some(word(serde_json::to_value(spec.ground))),
        Some(word(serde_json::to_value(spec.light))),
        Some(word(serde_json::to_value(spec.weather))).filter(|word| word != "clear"),
    ];
    let all: Vec<String> = subjects.chain(place.into_iter().flatten()).collect();
    all.join(" · ")
}

/// Tells how far the drawing of several pictures has come, from the nodes of the one that is drawn now.
struct Progress {
    watcher: Arc<dyn Watcher>,
    clock: Arc<dyn Clock>,
    began: Duration,
    /// Pictures that are done.
    at: u64,
    count: u64,
    /// Weight of all nodes of this picture.
    weight: f64,
    parts: Mutex<BTreeMap<String, f64>>,
}

fn weight_of(node: &str) -> f64 {
    if node.starts_with("subject:") {
        SUBJECT_WEIGHT
    } else {
        1.0
    }
}

impl Progress {
    fn tell(&self, of_picture: f64) {
        let step = self.at * PARTS + (of_picture.clamp(0.0, 1.0) * PARTS as f64) as u64;
        let of = self.count * PARTS;
        let elapsed = self.clock.monotonic().saturating_sub(self.began);
        let secs_left = (step > 0)
            .then(|| elapsed.as_secs_f64() * of.saturating_sub(step) as f64 / step as f64);
        self.watcher.event(StudioEvent::Progress(ProgressEvent {
            what: "pictures".to_owned(),
            step,
            of,
            secs_left,
        }));
    }
}

impl Watcher for Progress {
    fn event(&self, event: StudioEvent) {
        let StudioEvent::Node {
            node,
            state,
            progress,
        } = &event
        else {
            // The run's own count of nodes is not what is told.
            if !matches!(event, StudioEvent::Progress(_)) {
                self.watcher.event(event);
            }
            return;
        };
        let part = match (state, progress) {
            (NodeState::Made | NodeState::Reused, _) => 1.0,
            (_, Some(progress)) => progress.step as f64 / progress.of.max(1) as f64,
            _ => 0.0,
        };
        let done: f64 = {
            let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.insert(node.clone(), part);
            let parts = parts.iter();
            parts.map(|(node, part)| part * weight_of(node)).sum()
        };
        self.watcher.event(event);
        self.tell(done / self.weight.max(1.0));
    }
}

impl Studio {
    /// The pictures that are to be drawn: `count` for each shot, with a seed of its own each; one where the
    /// shot's seed is locked. `waiting` says how many are asked for already, by a shot's row.
    ///
    /// # Errors
    /// [`Code::BadInput`] for a count that is not from 1 to [`SCOUTS_MAX`]; [`Code::NotFound`] for a shot that is
    /// not there, or without a model; [`Code::Refused`] when there is nothing to draw or a shot wants a model
    /// that makes no pictures here.
    pub(crate) fn pictures_wanted(
        &self,
        project: &Project,
        what: &DrawWhat,
        count: Option<u32>,
        waiting: &dyn Fn(&str) -> usize,
    ) -> Result<Vec<PictureWanted>, StudioError> {
        let count = count.unwrap_or(1);
        if !(1..=SCOUTS_MAX).contains(&count) {
            let (most, got) = (i64::from(SCOUTS_MAX), i64::from(count));
            return Err(StudioError::said(
                Code::BadInput,
                &Say::DrawCount { most, got },
            ));
        }
        let script = project.script()?;
        if let DrawWhat::Shots(ids) = what
            && let Some(id) = ids
                .iter()
                .find(|id| !script.shots().any(|shot| shot.id == **id))
        {
            let say = Say::NoShot { id: id.clone() };
            return Err(StudioError::said(Code::NotFound, &say));
        }
        let mut wanted = Vec::new();
        for shot in script.shots() {
            let is_meant = match what {
                DrawWhat::Missing => wants_picture(shot),
                DrawWhat::Shots(ids) => ids.contains(&shot.id),
            };
            if !is_meant {
                continue;
            }
            // Refused here, where a person looks, and not later in the queue.
            PictureMaker::named(&shot.model)?;
            let (row, ever) = project.takes_ever(&shot.id)?;
            let had = ever.len() + waiting(&row);
            let seeds: Vec<u64> = match shot.seed {
                Some(Seed {
                    value,
                    locked: true,
                }) => vec![value],
                _ => (0..count as usize)
                    .map(|more| drawn_seed(&row, had + more))
                    .collect(),
            };
            wanted.extend(seeds.into_iter().map(|seed| PictureWanted {
                shot: shot.id.clone(),
                row: row.clone(),
                seed,
            }));
        }
        if wanted.is_empty() {
            return Err(StudioError::said(Code::Refused, &Say::NothingToDraw {}));
        }
        if !draw::own_model_is_here() {
            return Err(StudioError::said(Code::NotFound, &Say::NoPictureModel {}));
        }
        Ok(wanted)
    }

    /// Draw pictures and add each to the takes of its shot as soon as it is there. Stopped at any time, those
    /// that are finished stay, and the same call goes on with the others. The model is opened once.
    ///
    /// # Errors
    /// A picture cannot be drawn or kept; [`Code::Cancelled`].
    pub(crate) fn draw_takes(
        &self,
        project: &Project,
        wanted: &[PictureWanted],
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<Vec<DrawnTake>, StudioError> {
        let began = self.clock.monotonic();
        let mut drawn = Vec::new();
        for (at, picture) in wanted.iter().enumerate() {
            let script = project.script()?;
            if !script.shots().any(|shot| shot.id == picture.shot) {
                tracing::info!(
                    shot = picture.shot,
                    "a shot went before its picture was drawn"
                );
                continue;
            }
            watcher.event(StudioEvent::Stage {
                what: Say::DrawingPicture {
                    number: at as i64 + 1,
                    count: wanted.len() as i64,
                    shot: picture.shot.clone(),
                }
                .into(),
            });
            let progress = Progress {
                watcher: Arc::clone(watcher),
                clock: Arc::clone(&self.clock),
                began,
                at: at as u64,
                count: wanted.len() as u64,
                weight: 0.0,
                parts: Mutex::default(),
            };
            progress.tell(0.0);
            drawn.push(self.draw_take(project, &script, picture, progress, cancel)?);
        }
        Ok(drawn)
    }

    fn draw_take(
        &self,
        project: &Project,
        script: &Script,
        picture: &PictureWanted,
        mut progress: Progress,
        cancel: &CancelToken,
    ) -> Result<DrawnTake, StudioError> {
        let found = script.scenes.iter().find_map(|scene| {
            let shot = scene.shots.iter().find(|shot| shot.id == picture.shot)?;
            Some((scene, shot))
        });
        let Some((scene, shot)) = found else {
            let id = picture.shot.clone();
            return Err(StudioError::said(Code::NotFound, &Say::NoShot { id }));
        };
        let spec = picture_spec_seeded(script, scene, shot, Some(picture.seed));
        let prompt = words_of(&spec);
        let format = format_of(script)?;
        let specs = BTreeMap::from([(shot.id.clone(), spec)]);
        let size_px = (format.width_px, format.height_px);
        let (document, nodes) = picture_document(&specs, size_px)
            .map_err(|error| StudioError::new(error.code, error.message))?;
        progress.weight = document.nodes.keys().map(|node| weight_of(node)).sum();
        let targets: Vec<String> = nodes.values().cloned().collect();
        let watching: Arc<dyn Watcher> = Arc::new(progress);
        let report = self.execute(&document, &targets, &watching, None, cancel)?;
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "the drawing was stopped"));
        }
        let made = targets
            .first()
            .and_then(|node| report.output(node, "picture"))
            .and_then(|list| list.first())
            .and_then(flow_graph::Value::as_blob);
        let Some(blob) = made else {
            let why = failures(&report).join("\n");
            let message = format!("shot {:?} could not be drawn: {why}", shot.id);
            let code = worst(&report).unwrap_or(Code::Internal);
            return Err(StudioError::new(code, message));
        };
        let content = blob.hash;
        let (_, ever) = project.takes_ever(&shot.id)?;
        let new = !ever.iter().any(|take| take.content == content);
        // A shot that went meanwhile, by an edit or an undo, leaves the picture to the cache.
        let mut kept = project.has_shot(&picture.row)?;
        if kept {
            // The bytes are the project's own: pruning the cache takes no take away.
            let path = self.store.blob_path(&content)?;
            project.db().keep_media(&path, DRAWN_TYPE)?;
            let file = Known {
                content,
                media_type: DRAWN_TYPE.to_owned(),
                brought: false,
            };
            let name = format!("{} drawn.png", shot.id);
            let name = project.name_file(SourceKind::Still, &name, &file)?;
            let made = TakeMade {
                kind: TakeKind::Picture,
                name,
                media_type: file.media_type,
                by: TakeBy::Model,
                model: Some(PictureMaker::SKETCH.to_owned()),
                seed: Some(picture.seed),
                prompt: Some(prompt),
                negative: (!shot.negative.is_empty()).then(|| shot.negative.clone()),
            };
            kept = project.add_take(&picture.row, content, &made)?;
        }
        Ok(DrawnTake {
            shot: shot.id.clone(),
            take: content.to_hex(),
            seed: picture.seed,
            kept,
            new,
        })
    }

    /// Draw pictures for shots of the project in `folder`, as takes beside those that they have.
    ///
    /// # Errors
    /// The project is open elsewhere or cannot be read; a count or shot that is none; there is no model; a
    /// picture cannot be drawn; cancelled, which keeps those that are finished.
    pub fn draw_for(
        &self,
        folder: &Path,
        what: &DrawWhat,
        count: Option<u32>,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<Vec<DrawnTake>, StudioError> {
        let project = Project::open(folder, false, "longtake project draw", &self.clock)?;
        let wanted = self.pictures_wanted(&project, what, count, &|_row| 0)?;
        self.draw_takes(&project, &wanted, watcher, cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_picture_is_drawn_from_is_told_in_words() {
        let text = "---\nlongtake: 1\ntitle: T\n---\n\n## Scene one: A forest\n\n### Shot a\n\nA fox in the snow at night.\n\n- length: 2 s\n";
        let script = flow_story::parse(text.as_bytes(), "t.md").unwrap().script;
        let (scene, shot) = (&script.scenes[0], &script.scenes[0].shots[0]);
        let spec = picture_spec_seeded(&script, scene, shot, Some(3));
        assert_eq!(words_of(&spec), "a fox · forest · night · snow");
    }

    #[test]
    fn seeds_of_a_shot_differ_and_are_told_again() {
        let seeds: Vec<u64> = (0..8).map(|count| drawn_seed("row", count)).collect();
        let once: std::collections::BTreeSet<&u64> = seeds.iter().collect();
        assert_eq!(once.len(), 8);
        assert_eq!(drawn_seed("row", 3), seeds[3]);
        assert_ne!(drawn_seed("other", 3), seeds[3]);
    }
}
