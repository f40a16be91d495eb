//! The pictures of a project's shots, without its sound: which are made, and making them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash};
use flow_nodes::{FilmDocument, FilmOptions, film_document};
use flow_story::{Assets, FrameSize, Picture, Script, match_pictures};
use flow_timeline::{FilmPlan, SourceKind, SourceRef};

use super::drawn::Undrawn;
use super::{Manner, failures, faulty, format_of, sources, worst};
use crate::enlarge;
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::library::{Known, Library, setting_of};
use crate::project::Project;
use crate::say::{Said, Say};
use crate::studio::Studio;
use crate::voices::SpokenFilm;
use crate::workflow::{PlanReport, PlanState};

/// Which pictures to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PicturesWanted {
    /// Of these shots; absent means all.
    pub(crate) shots: Option<BTreeSet<String>>,
    /// Half as large and quick to make.
    pub(crate) draft: bool,
}

/// What was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PicturesDone {
    pub(crate) made: u64,
    pub(crate) reused: u64,
    pub(crate) warnings: Vec<Said>,
}

/// A shot in its film, and whether its pictures are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShotLook {
    pub(crate) first_frame: i64,
    pub(crate) frames: i64,
    pub(crate) is_made: bool,
    /// Why it cannot be made.
    pub(crate) why: Option<Said>,
    /// The pictures: final ones, else a draft.
    pub(crate) made: Option<ContentHash>,
    /// Whether they are a draft.
    pub(crate) is_draft: bool,
    /// The picture that was drawn for it, where nobody chose one.
    pub(crate) drawn: Option<ContentHash>,
    /// Whether a picture is drawn for it first.
    pub(crate) to_draw: bool,
}

/// Every shot of a project.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Look {
    pub(crate) shots: BTreeMap<String, ShotLook>,
    pub(crate) film_frames: i64,
    /// Why the film cannot be planned; the shots are empty then.
    pub(crate) faults: Vec<flow_story::Fault>,
}

/// Contents by what they belong to.
type Contents = BTreeMap<String, ContentHash>;

/// Pictures that are ready to run.
struct Pictures {
    plan: FilmPlan,
    /// Absent when no shot can be made.
    film: Option<FilmDocument>,
    /// Segments that cannot be made, and the file that each lacks.
    missing: BTreeMap<String, String>,
    /// Pictures that are drawn first.
    undrawn: Undrawn,
    warnings: Vec<Said>,
}

/// What makes a shot's picture, as the shot's `model` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureMaker {
    /// Chooses among the project's pictures by what both say.
    Stills,
    /// Draws with the small model that comes with the program.
    Drawn,
}

/// What a maker is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PictureAsked {
    /// What the picture is to show.
    pub(crate) prompt: String,
    /// Decides every draw.
    pub(crate) seed: u64,
    /// What the shot has already; another one is wanted.
    pub(crate) had: BTreeSet<ContentHash>,
}

/// A picture for a shot, in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PictureGiven {
    pub(crate) file: Known,
    /// The name under which the project has it already.
    pub(crate) name: Option<String>,
}

impl PictureMaker {
    /// What a shot's `model` calls the choice among the project's pictures.
    pub(crate) const STILLS: &'static str = "stills";
    /// What it calls the small model of our own.
    pub(crate) const SKETCH: &'static str = crate::draw::OWN_MODEL;

    /// The maker that a shot's `model` names; the default for an empty one.
    ///
    /// # Errors
    /// [`Code::Refused`] for a model that makes no pictures here yet.
    pub(crate) fn named(model: &str) -> Result<Self, StudioError> {
        match model {
            "" | Self::STILLS => Ok(Self::Stills),
            Self::SKETCH => Ok(Self::Drawn),
            other => {
                let message = format!(
                    "no pictures can be made with the model {other:?} here yet: choose {:?} or \
                     {:?} as the shot's model, or put a picture of your own on the shot",
                    Self::SKETCH,
                    Self::STILLS
                );
                Err(StudioError::new(Code::Refused, message))
            }
        }
    }
}

/// What a shot's picture is to show, in words: what the shot says of it, else what happens.
pub(crate) fn prompt_of(script: &Script, shot: &str) -> String {
    let found = script.scenes.iter().find_map(|scene| {
        let shot = scene.shots.iter().find(|each| each.id == shot)?;
        Some((scene, shot))
    });
    let Some((scene, shot)) = found else {
        return String::new();
    };
    let words = [
        &shot.depicts,
        &shot.action,
        &scene.heading,
        &scene.place,
        &scene.time_of_day,
    ];
    let words: Vec<&str> = words
        .into_iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .collect();
    words.join(" · ")
}

/// Shots that a segment shows: `boats`, or both of `boats~lamp`.
pub(crate) fn shots_of(segment: &str) -> impl Iterator<Item = &str> {
    segment.split('~')
}

fn node_of(segment: &str) -> String {
    format!("segment:{segment}")
}

impl Pictures {
    fn targets(&self, wanted: &PicturesWanted) -> Vec<String> {
        let is_wanted = |id: &str| match &wanted.shots {
            Some(shots) => shots_of(id).any(|shot| shots.contains(shot)),
            None => true,
        };
        let segments = self.plan.segments.iter().map(|planned| &planned.id);
        segments
            .filter(|id| is_wanted(id) && !self.missing.contains_key(*id))
            .map(|id| node_of(id))
            .collect()
    }
}

impl Studio {
    fn pictures(
        &self,
        project: &Project,
        script: &Script,
        draft: bool,
    ) -> Result<Result<Pictures, Vec<flow_story::Fault>>, StudioError> {
        let mut script = script.clone();
        let full = format_of(&script)?;
        // A draft shows the picture that the film will have.
        let mut undrawn = self.undrawn(project, &mut script, &full)?;
        if draft {
            // Even sides, as coded pictures need them.
            let half = |side_px: u32| (side_px / 4 * 2).max(16);
            script.film.size = Some(FrameSize {
                width_px: half(full.width_px),
                height_px: half(full.height_px),
            });
        }
        let format = format_of(&script)?;
        let mut plan = match flow_story::plan_film(&script, &format, &Assets::default()) {
            Ok(plan) => plan,
            Err(faults) => return Ok(Err(faults)),
        };
        plan.sounds.clear();
        plan.cues.clear();
        let drawn = |source: &SourceRef| {
            undrawn.known.contains_key(source) || undrawn.waiting.contains_key(source)
        };
        let mut library = Library::new(project, &self.store, Vec::new());
        for source in sources(&plan).filter(|source| !drawn(source)) {
            library.find(source)?;
        }
        let mut files = library.found();
        let mut missing = BTreeMap::new();
        for planned in &plan.segments {
            let lacks = planned
                .sources
                .iter()
                .flatten()
                .find(|source| !files.contains_key(source) && !drawn(source));
            if let Some(source) = lacks {
                missing.insert(planned.id.clone(), source.name.clone());
            }
        }
        let mut warnings = std::mem::take(&mut undrawn.notes);
        let manner = Manner::known(project)?.unwrap_or_default();
        if !draft && !manner.as_they_are {
            warnings.extend(enlarge::choose(&plan, &mut files, &self.store)?);
        }
        files.extend(undrawn.known.clone());
        files.extend(undrawn.waiting.clone());
        let mut there = plan.clone();
        there
            .segments
            .retain(|planned| !missing.contains_key(&planned.id));
        let options = if draft {
            FilmOptions {
                crf: 28,
                preset: "ultrafast",
                burn_subtitles: false,
                ..FilmOptions::default()
            }
        } else {
            FilmOptions::default()
        };
        let spoken = SpokenFilm::default();
        let film = if there.segments.is_empty() {
            None
        } else {
            let film = film_document(&there, &files, &spoken.lines, &options, &self.fonts);
            let mut film =
                film.map_err(|error| StudioError::new(Code::BadInput, error.to_string()))?;
            undrawn.join(&mut film.document);
            Some(film)
        };
        Ok(Ok(Pictures {
            plan,
            film,
            missing,
            undrawn,
            warnings,
        }))
    }

    /// Every shot of a project: where it stands, and whether its pictures are made. Drafts are
    /// looked for where `drafts` says that some were made.
    ///
    /// # Errors
    /// The project or the cache cannot be read.
    pub(crate) fn look(
        &self,
        project: &Project,
        script: &Script,
        drafts: bool,
    ) -> Result<Look, StudioError> {
        let pictures = match self.pictures(project, script, false)? {
            Ok(pictures) => pictures,
            Err(faults) => {
                return Ok(Look {
                    faults,
                    ..Look::default()
                });
            }
        };
        let (made, drawn) = self.made(&pictures)?;
        let mut look = Look {
            film_frames: pictures.plan.frames,
            ..Look::default()
        };
        for planned in &pictures.plan.segments {
            let (first, frames) = (planned.first_frame, planned.segment.frames);
            let is_made = made.contains_key(&planned.id);
            for id in shots_of(&planned.id) {
                let shot = look.shots.entry(id.to_owned()).or_insert(ShotLook {
                    first_frame: first,
                    frames: 0,
                    is_made: true,
                    ..ShotLook::default()
                });
                shot.frames = first + frames - shot.first_frame;
                shot.is_made &= is_made;
                if let Some(file) = pictures.missing.get(&planned.id) {
                    shot.why = Some(Say::NoFile { name: file.clone() }.into());
                }
                if id == planned.id {
                    shot.made = made.get(id).copied();
                }
                shot.drawn = drawn.get(id).copied();
                shot.to_draw = pictures.undrawn.nodes.contains_key(id) && shot.drawn.is_none();
            }
        }
        if drafts
            && look.shots.values().any(|shot| !shot.is_made)
            && let Ok(draft) = self.pictures(project, script, true)?
        {
            let (drafts, _drawn) = self.made(&draft)?;
            for (id, shot) in &mut look.shots {
                if shot.made.is_none() {
                    shot.made = drafts.get(id).copied();
                    shot.is_draft = shot.made.is_some();
                }
            }
        }
        Ok(look)
    }

    /// Contents of the segments that are made, by their ids, and of pictures that are drawn, by shot.
    fn made(&self, pictures: &Pictures) -> Result<(Contents, Contents), StudioError> {
        let undrawn = &pictures.undrawn;
        let known = undrawn.known.iter().filter_map(|(source, file)| {
            let shot = super::drawn::shot_of(source)?;
            Some((shot.to_owned(), file.content))
        });
        let mut drawn: Contents = known.collect();
        let Some(film) = &pictures.film else {
            return Ok((Contents::new(), drawn));
        };
        let mut targets = pictures.targets(&PicturesWanted::default());
        targets.extend(undrawn.nodes.values().cloned());
        let plan = self.plan_of(&film.document, &targets)?;
        let reused: BTreeSet<&str> = plan
            .nodes
            .iter()
            .filter(|node| node.state == PlanState::Reused)
            .map(|node| node.node.as_str())
            .collect();
        let there: Vec<String> = targets
            .into_iter()
            .filter(|target| reused.contains(target.as_str()))
            .collect();
        if there.is_empty() {
            return Ok((Contents::new(), drawn));
        }
        // All of it is there: the run only gathers what the results are.
        let request = self.request(&there);
        let silent = Arc::new(|_event: &flow_executor::RunEvent| {});
        let executor = self.executor();
        let report = executor.run(&film.document, &request, silent, &CancelToken::new())?;
        let segments = pictures.plan.segments.iter();
        let made = segments.filter_map(|planned| {
            let video = report.output(&node_of(&planned.id), "video")?.first()?;
            Some((planned.id.clone(), video.as_blob()?.hash))
        });
        drawn.extend(undrawn.given(&report));
        Ok((made.collect(), drawn))
    }

    /// Choose a picture of the project for a shot.
    ///
    /// # Errors
    /// [`Code::NotFound`] when there is none to choose from.
    pub(crate) fn choose_still(
        &self,
        project: &Project,
        asked: &PictureAsked,
    ) -> Result<PictureGiven, StudioError> {
        let prefix = setting_of(SourceKind::Still, "");
        let settings = project.db().settings()?;
        let mut there = 0;
        let mut pictures = Vec::new();
        let mut files: Vec<Known> = Vec::new();
        for (setting, value) in settings.range(prefix.clone()..) {
            let Some(name) = setting.strip_prefix(&prefix) else {
                break;
            };
            let Ok(file) = serde_json::from_value::<Known>(value.clone()) else {
                continue;
            };
            there += 1;
            let is_known = |content| files.iter().any(|file| file.content == content);
            if asked.had.contains(&file.content) || is_known(file.content) {
                continue;
            }
            pictures.push(Picture {
                name: name.to_owned(),
                caption: String::new(),
            });
            files.push(file);
        }
        // The seed stands in the text: what fits equally well is drawn by it.
        let text = format!("{} {}", asked.prompt, asked.seed);
        let chosen = match_pictures(&[text], &pictures).first().copied();
        let found = chosen.and_then(|at| Some((pictures.get(at)?, files.get(at)?)));
        let Some((picture, file)) = found else {
            let message = if there == 0 {
                "the project has no picture to choose from: bring some in, or choose another model"
            } else {
                "the shot has every picture of the project as a take already: bring in others, or \
                 choose another model"
            };
            return Err(StudioError::new(Code::NotFound, message));
        };
        Ok(PictureGiven {
            file: file.clone(),
            name: Some(picture.name.clone()),
        })
    }

    /// Say what [`Studio::make_pictures`] would make.
    ///
    /// # Errors
    /// As [`Studio::make_pictures`].
    pub(crate) fn plan_pictures(
        &self,
        project: &Project,
        wanted: &PicturesWanted,
    ) -> Result<PlanReport, StudioError> {
        let pictures = self
            .pictures(project, &project.script()?, wanted.draft)?
            .map_err(|faults| faulty(&faults))?;
        let targets = pictures.targets(wanted);
        let mut plan = match &pictures.film {
            Some(film) if !targets.is_empty() => self.plan_of(&film.document, &targets)?,
            _ => PlanReport::default(),
        };
        let notes = pictures
            .warnings
            .into_iter()
            .chain(lacks(&pictures.missing));
        plan.warnings = notes
            .map(|what| crate::script::ScriptWarning::of_film("note", what))
            .collect();
        Ok(plan)
    }

    /// Make the pictures of shots into the cache. Stopped at any time, the same call goes on
    /// where it stopped.
    ///
    /// # Errors
    /// What the script is refused for; every failure of a shot, together; [`Code::Cancelled`].
    pub(crate) fn make_pictures(
        &self,
        project: &Project,
        wanted: &PicturesWanted,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<PicturesDone, StudioError> {
        watcher.event(StudioEvent::Stage {
            what: Say::ReadingFiles {}.into(),
        });
        let pictures = self
            .pictures(project, &project.script()?, wanted.draft)?
            .map_err(|faults| faulty(&faults))?;
        let mut done = PicturesDone {
            warnings: pictures.warnings.clone(),
            ..PicturesDone::default()
        };
        done.warnings.extend(lacks(&pictures.missing));
        for what in &done.warnings {
            watcher.event(StudioEvent::Warning { what: what.clone() });
        }
        let mut targets = pictures.targets(wanted);
        let Some(film) = pictures.film.filter(|_| !targets.is_empty()) else {
            return match done.warnings.first() {
                Some(first) => {
                    let texts: Vec<&str> = done
                        .warnings
                        .iter()
                        .map(|said| said.text.as_str())
                        .collect();
                    let error = StudioError::new(Code::NotFound, texts.join("; "));
                    Err(StudioError {
                        coded: first.coded.clone().map(Box::new),
                        ..error
                    })
                }
                None => Ok(done),
            };
        };
        let running = Arc::new(project.begin(cancel));
        watcher.event(StudioEvent::Stage {
            what: Say::MakingPictures {}.into(),
        });
        // Those that these shots show, so that the run tells what they are.
        let undrawn = &pictures.undrawn;
        let wants = |shot: &str| wanted.shots.as_ref().is_none_or(|ids| ids.contains(shot));
        let drawn = undrawn.nodes.iter().filter(|(shot, _)| wants(shot));
        targets.extend(drawn.map(|(_, node)| node.clone()));
        let report = self.execute(&film.document, &targets, watcher, Some(&running), cancel)?;
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "the render was stopped"));
        }
        self.keep_drawn(project, undrawn, &report)?;
        self.store.trim()?;
        if let Some(code) = worst(&report) {
            return Err(StudioError::new(code, failures(&report).join("\n")));
        }
        (done.made, done.reused) = (report.made, report.reused);
        Ok(done)
    }
}

/// One sentence for each file that is missing.
fn lacks(missing: &BTreeMap<String, String>) -> Vec<Said> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (segment, file) in missing {
        files.entry(file).or_default().push(segment);
    }
    let sentence = |(file, segments): (&str, Vec<&str>)| {
        Say::FileNeededBy {
            name: file.to_owned(),
            shots: segments.join(", "),
        }
        .into()
    };
    files.into_iter().map(sentence).collect()
}
