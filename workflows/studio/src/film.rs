//! A film from a script: project, files, plan, run, export.

mod document;
mod drawn;
mod failing;
mod import;
mod made_from;
mod manner;
mod noting;
mod pictures;
mod range;
mod reading;
mod scouts;
mod stills;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use engine_base::{CancelToken, Code, Rational};
use flow_executor::RunReport;
use flow_graph::Value;
use flow_nodes::{FilmDocument, FilmFiles, FilmOptions, LoudnessTarget, film_document};
use flow_story::{FrameSize, Script};
use flow_timeline::{FilmFormat, FilmPlan, SourceKind, SourceRef};
use serde::Serialize;

use self::failing::faulty;
pub(crate) use self::failing::{failures, worst};
use self::import::{import, may_replace};
use self::made_from::{manifest_of, script_of};
pub(crate) use self::manner::Manner;
use self::noting::Noting;
pub(crate) use self::pictures::{Look, PictureAsked, PictureMaker, PicturesWanted, prompt_of};
pub(crate) use self::reading::{format_of, load_script};
use self::reading::{lengths, lint, name_files, read_script};
pub use self::scouts::{DrawWhat, DrawnTake, SCOUTS_MAX};
pub(crate) use self::scouts::{PictureWanted, drawn_seed};
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::library::Library;
use crate::manifest::Manifest;
use crate::premise::{self, PremiseRequest};
use crate::project::{EXTENSION, Project};
use crate::say::Say;
use crate::script::ScriptWarning;
use crate::studio::Studio;
use crate::voices::{self, Speaking, SpokenFilm};
use crate::{enlarge, export, fault, memory};

/// What film to make.
#[derive(Debug, Clone, Default)]
pub struct FilmRequest {
    /// Script to import first; absent makes the project's film again.
    pub script: Option<PathBuf>,
    /// Let the script replace edits made in the project since its script was read.
    pub replace: bool,
    /// Premise to write the script from, in the place of `script`.
    pub premise: Option<PremiseRequest>,
    /// Folders of pictures, videos and sounds that the script names.
    pub folders: Vec<PathBuf>,
    /// Frame size in the place of the script's.
    pub size: Option<FrameSize>,
    /// Frame rate in the place of the script's.
    pub fps: Option<Rational>,
    /// Project folder; absent means beside the film.
    pub project: Option<PathBuf>,
    /// Where the film goes; absent means the title in the current folder.
    pub out: Option<PathBuf>,
    /// Picture quality; absent means the default.
    pub crf: Option<u8>,
    /// Encoder effort; absent means the default.
    pub preset: Option<String>,
    /// Draw the subtitles into the picture too.
    pub burn_subtitles: bool,
    /// How loud the film becomes.
    pub loudness: LoudnessTarget,
    /// Who speaks the lines.
    pub speaking: Speaking,
    /// Use small pictures as they are, and do not make them twice as large first.
    pub as_they_are: bool,
    /// Only the shots from this one to that one.
    pub only: Option<(String, String)>,
}

/// What was made.
#[derive(Debug, Clone, Serialize)]
pub struct FilmReport {
    /// Results made, counted from the store.
    pub made: u64,
    /// Results that were there already.
    pub reused: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Wall time of everything.
    pub wall_secs: f64,
    /// Most memory taken.
    pub peak_bytes: u64,
    /// The film; absent when something failed.
    pub out: Option<PathBuf>,
    /// Its subtitles.
    pub subtitles: Option<PathBuf>,
    /// Its poster frame.
    pub poster: Option<PathBuf>,
    /// Its project.
    pub project: PathBuf,
    /// Length of the film.
    pub film_secs: f64,
    /// The kind of the failure that weighs most; absent when nothing failed.
    pub code: Option<Code>,
    /// Failures, by node.
    pub errors: Vec<String>,
    /// What could be better, and what a person should know.
    pub warnings: Vec<ScriptWarning>,
}

/// A film that is ready to run.
struct Prepared {
    project: Arc<Project>,
    film: FilmDocument,
    plan: FilmPlan,
    /// Lines that were spoken for it.
    spoken: u64,
    /// Names that people know the stored files by.
    names: Vec<(PathBuf, String)>,
    /// What the film is made from, for its file.
    manifest: Manifest,
    out: PathBuf,
    warnings: Vec<ScriptWarning>,
}

/// A film whose results are in the cache.
pub(crate) struct Ran {
    prepared: Prepared,
    report: RunReport,
}

/// What is there of a film already.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    /// What the request says.
    Request,
    /// What another film's own file holds.
    Manifest(&'a Manifest),
    /// A project that this process owns, and how its film is made.
    Project(&'a Arc<Project>, &'a Manner),
}

/// What a film is prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// To be made.
    Film,
    /// To say what would be made.
    Plan,
}

impl Studio {
    /// Make a film. Stopped at any time, the same request goes on where it stopped.
    ///
    /// # Errors
    /// What the request or the script is refused for; failures of single shots are in the report.
    pub fn film(
        &self,
        request: &FilmRequest,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<FilmReport, StudioError> {
        self.make(request, Given::Request, watcher, cancel)
    }

    /// Make a film, from what is there of it already.
    pub(crate) fn make(
        &self,
        request: &FilmRequest,
        given: Given<'_>,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<FilmReport, StudioError> {
        let began = self.clock.monotonic();
        let (mut done, ran) = self.run_film(request, given, watcher, cancel)?;
        let Ran { prepared, report } = &ran;
        if let Some(film) = self.result(report, &prepared.film.film, "film")? {
            watcher.event(StudioEvent::Stage {
                what: Say::WritingFilm {}.into(),
            });
            let out = &prepared.out;
            if let Some(id) = &prepared.film.subtitles {
                done.subtitles =
                    self.export(report, id, "file", &out.with_extension("srt"), cancel)?;
            }
            let poster = out.with_extension("png");
            done.poster = self.export(report, &prepared.film.poster, "picture", &poster, cancel)?;
            export::copy_out_with(&film, &prepared.manifest.to_box()?, out, cancel)?;
            done.out = Some(out.clone());
        }
        self.store.trim()?;
        done.wall_secs = (self.clock.monotonic() - began).as_secs_f64();
        done.peak_bytes = memory::peak_bytes();
        Ok(done)
    }

    /// Make all results of a film into the cache, and write none of them out.
    pub(crate) fn run_film(
        &self,
        request: &FilmRequest,
        given: Given<'_>,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<(FilmReport, Ran), StudioError> {
        let mut prepared = self.prepare(request, given, Wanted::Film, watcher, cancel)?;
        let running = Arc::new(prepared.project.begin(cancel));
        watcher.event(StudioEvent::Stage {
            what: Say::MakingFilm {}.into(),
        });
        let targets = targets(&prepared.film);
        let report = self.execute(
            &prepared.film.document,
            &targets,
            watcher,
            Some(&running),
            cancel,
        )?;
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "the film was stopped"));
        }
        let mut errors = failures(&report);
        for error in &mut errors {
            name_files(error, &prepared.names);
        }
        let done = FilmReport {
            made: report.made + prepared.spoken,
            reused: report.reused - prepared.spoken.min(report.reused),
            failed: report.failed,
            wall_secs: 0.0,
            peak_bytes: 0,
            out: None,
            subtitles: None,
            poster: None,
            project: prepared.project.folder().to_owned(),
            film_secs: prepared.plan.frames as f64 / prepared.plan.format.fps.as_f64(),
            code: worst(&report),
            errors,
            warnings: std::mem::take(&mut prepared.warnings),
        };
        Ok((done, Ran { prepared, report }))
    }

    /// Say what [`Studio::film`] would make.
    ///
    /// # Errors
    /// As [`Studio::film`].
    pub fn film_plan(
        &self,
        request: &FilmRequest,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<crate::PlanReport, StudioError> {
        self.plan_from(request, Given::Request, watcher)
            .map(|(plan, _secs)| plan)
    }

    /// As [`Studio::film_plan`], of what is there of it already; gives the film's length too.
    pub(crate) fn plan_from(
        &self,
        request: &FilmRequest,
        given: Given<'_>,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<(crate::PlanReport, f64), StudioError> {
        let prepared = self.prepare(request, given, Wanted::Plan, watcher, &CancelToken::new())?;
        let mut plan = self.plan_of(&prepared.film.document, &targets(&prepared.film))?;
        plan.warnings = prepared.warnings;
        let secs = prepared.plan.frames as f64 / prepared.plan.format.fps.as_f64();
        Ok((plan, secs))
    }

    fn prepare(
        &self,
        request: &FilmRequest,
        given: Given<'_>,
        wanted: Wanted,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<Prepared, StudioError> {
        let noting = Arc::new(Noting {
            watcher: Arc::clone(watcher),
            warnings: Mutex::default(),
        });
        let watcher: Arc<dyn Watcher> = Arc::clone(&noting) as Arc<dyn Watcher>;
        let watcher = &watcher;
        let manifest = match given {
            Given::Manifest(manifest) => Some(manifest),
            Given::Request | Given::Project(..) => None,
        };
        let imported = match (&request.script, manifest) {
            (_, Some(manifest)) => Some(script_of(manifest)?),
            (Some(path), None) => Some(read_script(path, &noting)?),
            (None, None) => None,
        };
        let (folder, out) = places(request, imported.as_ref())?;
        let writes = match given {
            // Looking at a project of ours, or making only what lies in the cache, needs no file.
            Given::Project(..) => wanted == Wanted::Film && request.out.is_some(),
            Given::Request | Given::Manifest(_) => true,
        };
        if let Some(premise) = &request.premise {
            premise.check()?;
            stills::check_folders(&request.folders)?;
        }
        if writes {
            export::check_writable(&out)?;
        }
        let new = imported.is_some() || request.premise.is_some();
        let project = match given {
            Given::Project(project, _) => Arc::clone(project),
            Given::Request | Given::Manifest(_) => {
                let program = "longtake film";
                Arc::new(Project::open(&folder, new, program, &self.clock)?)
            }
        };
        if let Some(premise) = &request.premise {
            self.write_script(premise, request, &project, &out, watcher, cancel)?;
        }
        if let Some(mut script) = imported {
            script.film.size = request.size.or(script.film.size);
            script.film.fps = request.fps.or(script.film.fps);
            let replace = request.replace || matches!(given, Given::Manifest(_));
            import(&project, &script, replace)?;
            fault::pass("project.imported");
        }
        let mut script = range::only(project.script()?, request.only.as_ref())?;
        if request.script.is_none() {
            // Who reads the file again is told; here the report is for whoever asks for it.
            lint(&script)
                .into_iter()
                .for_each(|found| noting.keep(found));
        }
        script.film.size = request.size.or(script.film.size);
        script.film.fps = request.fps.or(script.film.fps);
        let manner = match given {
            Given::Project(_, manner) => manner.clone(),
            Given::Request | Given::Manifest(_) => Manner::of(request, new, &project)?,
        };
        let mut looked = Library::new(&project, &self.store, folders(request));
        if let Some(manifest) = manifest {
            looked.pin(manifest.files.clone());
        }
        stills::check_named(&script, &mut looked)?;
        let cast = match manifest {
            Some(manifest) => SpokenFilm::of(manifest.spoken.clone()),
            None => voices::cast(&script, &manner.speaking)?,
        };
        let spoken = match wanted {
            Wanted::Film => self.speak_lines(cast, watcher, cancel)?,
            Wanted::Plan => self.spoken_lines(cast, watcher)?,
        };
        for what in &spoken.notes {
            watcher.event(StudioEvent::Warning { what: what.clone() });
        }
        watcher.event(StudioEvent::Stage {
            what: Say::ReadingFiles {}.into(),
        });
        let mut library = Library::new(&project, &self.store, folders(request));
        if let Some(manifest) = manifest {
            library.pin(manifest.files.clone());
        }
        let format = format_of(&script)?;
        let (drawn, undrawn) =
            self.drawn_for(wanted, &project, (&mut script, &format), watcher, cancel)?;
        let mut assets = lengths(&script, &format, &mut library)?;
        spoken.tell(&mut assets);
        let plan =
            flow_story::plan_film(&script, &format, &assets).map_err(|faults| faulty(&faults))?;
        let mut files = all_files(&plan, library, drawn, &undrawn.waiting)?;
        if manifest.is_none() && !manner.as_they_are {
            for what in enlarge::choose(&plan, &mut files, &self.store)? {
                watcher.event(StudioEvent::Warning { what });
            }
        }
        let names = self.names(&files)?;
        self.note_media(&plan, &files, &noting)?;
        files.extend(undrawn.waiting.clone());
        let manifest = match manifest {
            Some(manifest) => manifest.clone(),
            None => manifest_of(request, &script, &files, &spoken)?,
        };
        let options = FilmOptions {
            crf: manifest.crf,
            preset: &manifest.preset,
            burn_subtitles: manifest.burn_subtitles,
            loudness: manifest.loudness,
        };
        let mut film = film_document(&plan, &files, &spoken.lines, &options, &self.fonts).map_err(
            |error| StudioError::new(Code::BadInput, format!("cannot compile the film: {error}")),
        )?;
        undrawn.join(&mut film.document);
        Ok(Prepared {
            project,
            film,
            plan,
            spoken: spoken.made,
            names,
            manifest,
            out,
            warnings: noting.take(),
        })
    }

    /// Bring a script for `premise` into the project, unless the project's was written for it.
    fn write_script(
        &self,
        premise: &PremiseRequest,
        request: &FilmRequest,
        project: &Project,
        out: &Path,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<(), StudioError> {
        let mut format = FilmFormat::DEFAULT;
        if let Some(size) = request.size {
            (format.width_px, format.height_px) = (size.width_px, size.height_px);
        }
        format.fps = request.fps.unwrap_or(format.fps);
        let folders = &request.folders;
        let may_write = || may_replace(project, request.replace);
        let watching = watcher.as_ref();
        let written = premise::script(
            premise, &format, folders, project, may_write, watching, cancel,
        )?;
        if let Some(script) = written {
            let script = self.fitted(script, &format, &request.speaking, watcher, cancel)?;
            import(project, &script, request.replace)?;
            premise::remember(premise, &format, folders, project)?;
            let path = premise::write_beside(&script, out)?;
            watcher.event(StudioEvent::Stage {
                what: Say::ScriptIsIn {
                    path: path.display().to_string(),
                }
                .into(),
            });
        }
        Ok(())
    }

    /// `script` with shots long enough for its lines, which are spoken for it.
    pub(crate) fn fitted(
        &self,
        mut script: Script,
        format: &FilmFormat,
        speaking: &Speaking,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<Script, StudioError> {
        let cast = voices::cast(&script, speaking)?;
        let spoken = self.speak_lines(cast, watcher, cancel)?;
        voices::fit(&mut script, format, &spoken, watcher.as_ref());
        Ok(script)
    }

    /// Where the files of a film lie in the store, and what its script calls them.
    fn names(&self, files: &FilmFiles) -> Result<Vec<(PathBuf, String)>, StudioError> {
        let mut names: BTreeMap<PathBuf, Vec<&str>> = BTreeMap::new();
        for (source, file) in files {
            let names = names
                .entry(self.store.blob_path(&file.content)?)
                .or_default();
            names.push(&source.name);
        }
        let quoted = |names: Vec<&str>| {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            names.join(", also called ")
        };
        Ok(names
            .into_iter()
            .map(|(path, names)| (path, quoted(names)))
            .collect())
    }

    fn export(
        &self,
        report: &RunReport,
        node: &str,
        output: &str,
        out: &Path,
        cancel: &CancelToken,
    ) -> Result<Option<PathBuf>, StudioError> {
        let Some(source) = self.result(report, node, output)? else {
            return Ok(None);
        };
        export::copy_out(&source, out, cancel)?;
        Ok(Some(out.to_owned()))
    }

    /// Path of the file that `output` of target `node` gave.
    fn result(
        &self,
        report: &RunReport,
        node: &str,
        output: &str,
    ) -> Result<Option<PathBuf>, StudioError> {
        let blob = report.output(node, output).and_then(|list| list.first());
        match blob.and_then(Value::as_blob) {
            Some(blob) => Ok(Some(self.store.blob_path(&blob.hash)?)),
            None => Ok(None),
        }
    }
}

/// Project folder and film file.
fn places(
    request: &FilmRequest,
    script: Option<&Script>,
) -> Result<(PathBuf, PathBuf), StudioError> {
    let title = script.map(|script| export::file_stem(&script.title));
    let out = match (&request.out, &request.project, title) {
        (Some(out), _, _) if out.extension().is_none_or(|ending| ending != "mp4") => {
            let message = format!("expected a film file ending in .mp4, got {out:?}");
            return Err(StudioError::new(Code::BadInput, message));
        }
        (Some(out), _, _) => out.clone(),
        (None, Some(project), _) => project.with_extension("mp4"),
        (None, None, Some(title)) => PathBuf::from(format!("{title}.mp4")),
        (None, None, None) if request.premise.is_some() => {
            let stem = request.premise.as_ref().map(PremiseRequest::stem);
            PathBuf::from(format!("{}.mp4", stem.unwrap_or_default()))
        }
        (None, None, None) => {
            let message = "expected a premise, --script FILE or --project DIR.longtake, got none";
            return Err(StudioError::new(Code::BadInput, message));
        }
    };
    let project = request
        .project
        .clone()
        .unwrap_or_else(|| out.with_extension(EXTENSION));
    Ok((project, out))
}

/// The request's folders, then the script's own.
fn folders(request: &FilmRequest) -> Vec<PathBuf> {
    let beside = request
        .script
        .as_deref()
        .and_then(Path::parent)
        .map(|folder| {
            if folder.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                folder.to_owned()
            }
        });
    let mut folders = request.folders.clone();
    folders.extend(beside.filter(|beside| !request.folders.contains(beside)));
    folders
}

fn sources(plan: &FilmPlan) -> impl Iterator<Item = &SourceRef> {
    let pictures = plan
        .segments
        .iter()
        .flat_map(|planned| planned.sources.iter().flatten());
    pictures.chain(plan.sounds.iter().flat_map(|planned| &planned.sources))
}

/// The files that a plan names: those that were drawn for it, the others looked for, without those that wait
/// to be drawn.
fn all_files(
    plan: &FilmPlan,
    mut library: Library<'_>,
    drawn: FilmFiles,
    waiting: &FilmFiles,
) -> Result<FilmFiles, StudioError> {
    let is_drawn = |source: &SourceRef| drawn.contains_key(source) || waiting.contains_key(source);
    let given = |source: &&SourceRef| source.kind != SourceKind::Speech && !is_drawn(source);
    for source in sources(plan).filter(given) {
        library.find(source)?;
    }
    let mut files = library.finish()?;
    files.extend(drawn);
    Ok(files)
}

fn texts(plan: &FilmPlan) -> String {
    let cards = plan
        .segments
        .iter()
        .flat_map(|planned| &planned.segment.cards);
    cards
        .map(|card| card.text.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

fn targets(film: &FilmDocument) -> Vec<String> {
    let all = [
        Some(&film.film),
        film.subtitles.as_ref(),
        Some(&film.poster),
    ];
    all.into_iter().flatten().cloned().collect()
}
