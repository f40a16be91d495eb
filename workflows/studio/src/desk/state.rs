//! A project as clients see it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use engine_base::Rational;
use flow_story::{Assets, Mend, Script, ScriptLines};
use flow_timeline::{FilmFormat, SourceKind};
use serde_json::{Value, json};

use super::project::{
    FilmShape, LintFix, LintLevel, LintMessage, MediaFile, MediaKind, ProjectState, ShotState,
    ShotStatus, Snapshot, UndoStep,
};
use super::{Desk, lock};
use crate::command::{Edit, Kind};
use crate::error::StudioError;
use crate::film::{Look, format_of};
use crate::library::{Known, kind_name, media_type};
use crate::project::{Project, label};
use crate::say::Say;
use crate::{rewrite, samples};

/// Setting that holds a snapshot, before its name.
pub(super) const SNAPSHOT: &str = "desk.snapshot.";
/// Setting that holds the proposal.
pub(super) const PROPOSAL: &str = "desk.proposal";
/// Setting that holds the premise that was last written from.
pub(super) const PREMISE: &str = "desk.premise";

/// Setting that says that drafts were made.
pub(super) const DRAFTS: &str = "desk.drafts";

/// A project that the desk owns.
pub(super) struct OpenProject {
    pub(super) folder: PathBuf,
    pub(super) project: Arc<Project>,
    /// What was last seen of its pictures, and of which project and cache.
    seen: Mutex<Option<Seen>>,
    /// Sizes of pictures and videos by content: they never change.
    sizes: Mutex<BTreeMap<String, Option<(u32, u32)>>>,
}

/// What was made of a project's shots at a revision of it and a commit of the cache.
type Seen = ((u64, u64), Arc<Look>);

impl OpenProject {
    pub(super) fn new(folder: PathBuf, project: Project) -> Self {
        Self {
            folder,
            project: Arc::new(project),
            seen: Mutex::default(),
            sizes: Mutex::default(),
        }
    }

    /// The folder's name without its ending.
    pub(super) fn name(&self) -> String {
        let stem = self.folder.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

/// Files that a script names, with what they are read as.
pub(super) fn named_files(script: &Script) -> BTreeSet<(SourceKind, String)> {
    let mut named = BTreeSet::new();
    let mut add = |kind, name: &str| {
        if !name.is_empty() {
            named.insert((kind, name.to_owned()));
        }
    };
    for shot in script.shots() {
        add(SourceKind::Still, &shot.picture);
        if let Some(video) = &shot.video {
            add(SourceKind::Video, &video.file);
        }
        for sound in &shot.sounds {
            add(SourceKind::Sound, &sound.file);
        }
        for line in &shot.lines {
            add(SourceKind::Sound, &line.voice);
        }
    }
    let of_cast = script.cast.iter().flat_map(|member| &member.references);
    let of_places = script.places.iter().flat_map(|place| &place.references);
    for name in of_cast.chain(of_places) {
        add(SourceKind::Still, name);
    }
    for cue in &script.music {
        add(SourceKind::Sound, &cue.file);
    }
    named
}

const fn media_kind(kind: SourceKind) -> MediaKind {
    match kind {
        SourceKind::Still => MediaKind::Picture,
        SourceKind::Video => MediaKind::Video,
        SourceKind::Sound | SourceKind::Speech => MediaKind::Sound,
    }
}

/// What a file of this media type can be read as.
pub(super) fn kind_of_type(media_type: &str) -> Option<SourceKind> {
    match media_type.split('/').next() {
        Some("image") => Some(SourceKind::Still),
        Some("video") => Some(SourceKind::Video),
        Some("audio") => Some(SourceKind::Sound),
        _ => None,
    }
}

impl Desk {
    /// A project as it is now.
    ///
    /// # Errors
    /// The project or the cache cannot be read.
    pub(super) fn state(&self, open: &OpenProject) -> Result<ProjectState, StudioError> {
        let project = &open.project;
        let db = project.db();
        let revision = db.revision()?;
        let script = project.script()?;
        let format = format_of(&script).unwrap_or(FilmFormat::DEFAULT);
        let look = self.seen(open, &script)?;
        let settings = db.settings()?;
        let pictures = self.files_of(open, &script, &settings)?;
        let mut lint = faults(&look);
        lint.extend(lint_of(&script, &format, &pictures));
        let steps = db.undo_state()?;
        let step = |record: flow_store::project::CommandRecord| {
            let said = label(&record.name, &record.body);
            UndoStep {
                label: said.text,
                label_coded: said.coded,
                at_unix_millis: record.at_millis,
            }
        };
        let mut snapshots: Vec<Snapshot> = settings
            .iter()
            .filter_map(|(name, value)| {
                Some(Snapshot {
                    name: name.strip_prefix(SNAPSHOT)?.to_owned(),
                    at_unix_millis: value["at_unix_millis"].as_u64()?,
                })
            })
            .collect();
        snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.at_unix_millis));
        let running = self.queue.shots_running(&open.folder);
        let premise = settings
            .get(PREMISE)
            .and_then(|value| value["premise"].as_str());
        Ok(ProjectState {
            project: open.folder.clone(),
            name: open.name(),
            revision,
            shots: shots(&script, &format, &look, &pictures, &running),
            film: FilmShape {
                width_px: format.width_px,
                height_px: format.height_px,
                fps: format.fps.to_string(),
                secs: secs(look.film_frames, format.fps),
            },
            script: rewrite::to_value(&script)?,
            undo: steps.undo.map(step),
            redo: steps.redo.map(step),
            pictures,
            lint,
            snapshots,
            premise: premise.map(str::to_owned),
            proposal: settings.get(PROPOSAL).is_some_and(|value| !value.is_null()),
        })
    }

    /// What is made of the project's shots; looked up again only when it or the cache changed.
    fn seen(&self, open: &OpenProject, script: &Script) -> Result<Arc<Look>, StudioError> {
        let at = (open.project.db().revision()?, self.studio.store.mark()?.0);
        if let Some((seen, look)) = &*lock(&open.seen)
            && *seen == at
        {
            return Ok(Arc::clone(look));
        }
        let drafts = open.project.db().setting(DRAFTS)?.is_some();
        let look = Arc::new(self.studio.look(&open.project, script, drafts)?);
        *lock(&open.seen) = Some((at, Arc::clone(&look)));
        Ok(look)
    }

    /// Files that the script names or the project keeps, by name.
    fn files_of(
        &self,
        open: &OpenProject,
        script: &Script,
        settings: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, MediaFile>, StudioError> {
        let kept = open.project.db().media()?;
        let bytes: BTreeMap<String, u64> = kept
            .iter()
            .map(|blob| (blob.hash.to_hex(), blob.bytes))
            .collect();
        let mut files = BTreeMap::new();
        let all = [SourceKind::Still, SourceKind::Video, SourceKind::Sound];
        for kind in all {
            let prefix = format!("asset.{}.", kind_name(kind));
            for (name, value) in settings.range(prefix.clone()..) {
                let Some(name) = name.strip_prefix(&prefix) else {
                    break;
                };
                let Ok(known) = serde_json::from_value::<Known>(value.clone()) else {
                    continue;
                };
                let hash = known.content.to_hex();
                let missing = open.project.db().media_path(&known.content).is_err()
                    && self.studio.store.blob_path(&known.content).is_err();
                let size = self.size_of(open, &known, kind);
                let file = MediaFile {
                    kind: media_kind(kind),
                    bytes: bytes.get(&hash).copied().unwrap_or(0),
                    hash: Some(hash),
                    media_type: known.media_type,
                    width_px: size.map(|(width_px, _)| width_px),
                    height_px: size.map(|(_, height_px)| height_px),
                    missing,
                    used: false,
                    shipped: false,
                };
                files.insert(name.to_owned(), file);
            }
        }
        for (kind, name) in named_files(script) {
            let shipped = samples::sound(&name).filter(|_| kind == SourceKind::Sound);
            let file = files.entry(name.clone()).or_insert_with(|| MediaFile {
                kind: media_kind(kind),
                hash: None,
                media_type: shipped.map_or("", |_| "audio/ogg").to_owned(),
                bytes: shipped.map_or(0, |bytes| bytes.len() as u64),
                width_px: None,
                height_px: None,
                missing: shipped.is_none(),
                used: true,
                shipped: shipped.is_some(),
            });
            file.used = true;
        }
        Ok(files)
    }

    fn size_of(&self, open: &OpenProject, known: &Known, kind: SourceKind) -> Option<(u32, u32)> {
        if matches!(kind, SourceKind::Sound | SourceKind::Speech) {
            return None;
        }
        let hash = known.content.to_hex();
        if let Some(size) = lock(&open.sizes).get(&hash) {
            return *size;
        }
        let path = open.project.db().media_path(&known.content).ok();
        let path = path.or_else(|| self.studio.store.blob_path(&known.content).ok())?;
        let size = if kind == SourceKind::Video {
            let probe = flow_media::probe::probe(&path).ok();
            let stream = probe.and_then(|probe| probe.video.into_iter().next());
            stream.map(|stream| (stream.display_width_px, stream.display_height_px))
        } else {
            flow_media::still::still_size_px(&path).ok()
        };
        lock(&open.sizes).insert(hash, size);
        size
    }
}

pub(super) fn secs(frames: i64, fps: Rational) -> f64 {
    frames as f64 / fps.as_f64()
}

fn shots(
    script: &Script,
    format: &FilmFormat,
    look: &Look,
    pictures: &BTreeMap<String, MediaFile>,
    running: &Running,
) -> BTreeMap<String, ShotStatus> {
    let mut at = 0;
    let mut shots = BTreeMap::new();
    for shot in script.shots() {
        let frames = shot.length.frames(format.fps);
        let seen = look.shots.get(&shot.id);
        let (first, length) = seen.map_or((at, frames), |seen| (seen.first_frame, seen.frames));
        at += frames;
        let file = shot
            .video
            .as_ref()
            .map_or(&shot.picture, |video| &video.file);
        let state = match seen {
            Some(seen) if seen.is_made => ShotState::Made,
            _ if running.covers(&shot.id) => ShotState::Running,
            Some(seen) if seen.why.is_some() => ShotState::Failed,
            Some(_) => ShotState::Missing,
            None => ShotState::Failed,
        };
        let why = seen.and_then(|seen| seen.why.as_ref());
        let chosen = pictures.get(file).and_then(|file| file.hash.clone());
        let status = ShotStatus {
            state,
            why: why.map(|said| said.text.clone()),
            why_coded: why.and_then(|said| said.coded.clone()),
            start_secs: secs(first, format.fps),
            length_secs: secs(length, format.fps),
            picture: chosen.or_else(|| Some(seen?.drawn?.to_hex())),
            to_draw: seen.is_some_and(|seen| seen.to_draw),
            made: seen.and_then(|seen| Some(seen.made?.to_hex())),
            draft: seen.is_some_and(|seen| seen.is_draft),
        };
        shots.insert(shot.id.clone(), status);
    }
    shots
}

/// Shots that a job makes now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Running {
    /// None.
    #[default]
    Nothing,
    /// All that are not made.
    All,
    /// These.
    Shots(Vec<String>),
}

impl Running {
    pub(super) fn add(&mut self, more: impl IntoIterator<Item = String>) {
        match self {
            Self::All => {}
            Self::Shots(shots) => shots.extend(more),
            Self::Nothing => *self = Self::Shots(more.into_iter().collect()),
        }
    }

    fn covers(&self, shot: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Shots(shots) => shots.iter().any(|id| id == shot),
        }
    }
}

fn faults(look: &Look) -> Vec<LintMessage> {
    let each = look.faults.iter().map(|fault| {
        let (kind, id) = row_of(&fault.place);
        LintMessage {
            level: LintLevel::Fault,
            rule: "plan".to_owned(),
            what: fault.to_string(),
            advice: fault.expected.clone(),
            what_coded: fault.coded.as_deref().cloned(),
            advice_coded: None,
            field: kind.and_then(|kind| pointer_of(kind, &fault.place, &fault.field)),
            kind,
            id,
            fix: None,
        }
    });
    each.collect()
}

/// What could be better in a script, with what would mend it.
pub(super) fn lint_of(
    script: &Script,
    format: &FilmFormat,
    pictures: &BTreeMap<String, MediaFile>,
) -> Vec<LintMessage> {
    let there = pictures.iter().filter(|(_, file)| !file.missing);
    let mut names: BTreeSet<String> = there.map(|(name, _)| name.clone()).collect();
    names.extend(samples::names().map(str::to_owned));
    let assets = Assets {
        names: Some(names),
        ..Assets::default()
    };
    let found = flow_story::lint(script, &ScriptLines::default(), format, &assets);
    found.iter().map(message).collect()
}

fn message(warning: &flow_story::Warning) -> LintMessage {
    let (kind, id) = row_of(&warning.place);
    let field = pointer_of(kind.unwrap_or(Kind::Film), &warning.place, &warning.field);
    let fix = warning
        .mend
        .as_ref()
        .and_then(|mend| fix(mend, kind?, id.clone()?, field.as_deref()));
    LintMessage {
        level: LintLevel::Warning,
        rule: warning.rule.to_owned(),
        what: warning.problem.clone(),
        advice: warning.fix.clone(),
        what_coded: Some(warning.problem_coded.clone()),
        advice_coded: Some(warning.fix_coded.clone()),
        kind,
        id,
        field,
        fix,
    }
}

/// `shot boats` as its kind and id; whatever belongs to the film as the film.
fn row_of(place: &str) -> (Option<Kind>, Option<String>) {
    let (word, name) = place.split_once(' ').unwrap_or((place, ""));
    let name = name.trim_matches('"').to_owned();
    match Kind::named(word) {
        Some(kind) if kind != Kind::Film => (Some(kind), Some(name)),
        _ => (None, None),
    }
}

/// JSON pointer of a field as the linter calls it: `line 2`, `title 1`, `sound 1`, `length`.
fn pointer_of(kind: Kind, place: &str, field: &str) -> Option<String> {
    if kind == Kind::Film {
        let (word, number) = place.split_once(' ').unwrap_or((place, ""));
        let at = number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        return match (word, at, field) {
            ("music", Some(at), field) => Some(format!("/music/{at}/{field}")),
            ("credits", _, field) => Some(format!("/credits/{field}")),
            (_, _, "") => None,
            (_, _, field) => Some(format!("/{field}")),
        };
    }
    let (word, number) = field.split_once(' ').unwrap_or((field, ""));
    let at = number
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_sub(1));
    match (word, at) {
        ("", _) => None,
        ("line", Some(at)) => Some(format!("/lines/{at}/text")),
        ("title", Some(at)) => Some(format!("/titles/{at}/text")),
        ("sound", Some(at)) => Some(format!("/sounds/{at}/file")),
        _ => Some(format!("/{field}")),
    }
}

fn fix(mend: &Mend, kind: Kind, id: String, field: Option<&str>) -> Option<LintFix> {
    let set = |field: &str, value: Value, id: String| Edit::Set {
        kind,
        id,
        field: field.to_owned(),
        value,
    };
    let (label, edit) = match mend {
        Mend::Remove => {
            let label = Say::RemoveRow { id: id.clone() };
            (label, Edit::Remove { kind, id })
        }
        Mend::Set(text) => {
            let label = Say::SetTo {
                value: text.clone(),
            };
            (label, set(field?, json!(text), id))
        }
        Mend::Length(length) => {
            let label = Say::LengthenTo {
                length: length.to_string(),
            };
            (label, set("/length", json!(length.to_string()), id))
        }
        Mend::Colour(colour) => {
            let label = Say::ShowColour {
                colour: colour.clone(),
            };
            (label, set("/colour", json!(colour), id))
        }
        Mend::AddCast(name) => {
            let edit = Edit::Add {
                kind: Kind::Cast,
                body: json!({ "name": name }),
                scene: None,
                after: None,
            };
            (Say::AddToCastLabel { name: name.clone() }, edit)
        }
    };
    Some(LintFix {
        label: label.to_string(),
        label_coded: Some(label.coded()),
        edit,
    })
}

/// A name for a file brought in: its last part, without what a name in a script cannot have.
pub(super) fn plain_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last
        .chars()
        .map(|c| if c.is_control() || c == ':' { '_' } else { c })
        .collect();
    let clean = clean.trim().trim_start_matches('.').trim();
    let short: String = clean.chars().rev().take(200).collect();
    let short: String = short.chars().rev().collect();
    (!short.is_empty()).then_some(short)
}

/// Media type by name, where that tells one.
pub(super) fn type_of(name: &str) -> Option<&'static str> {
    let known = media_type(Path::new(name));
    (known != "application/octet-stream").then_some(known)
}
