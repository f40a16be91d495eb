//! What jobs do: each kind of work, from what it was asked to what it gave.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash};
use engine_pipelines::SpeechRequest;
use flow_store::jobs::JobRow;
use serde_json::json;

use super::events::DeskEvent;
use super::export::ExportArgs;
use super::models::ModelArgs;
use super::queue::JobResult;
use super::render::{RenderArgs, RenderWhat};
use super::state::{DRAFTS, OpenProject, PREMISE, PROPOSAL};
use super::story::{HearArgs, WriteArgs};
use super::worker::request;
use super::{Desk, draw, proxy, rewriting, takes};
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::film::{FilmRequest, Given, Manner, PicturesWanted, format_of};
use crate::premise::PremiseRequest;
use crate::say::{Said, Say};
use crate::{models, premise, rewrite, speak};

/// Carry a job out.
pub(super) fn perform(
    desk: &Desk,
    row: &JobRow,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let is_film = matches!(
        row.kind.as_str(),
        "render.start" | "takes.make" | "export.start"
    );
    let _made_there = match is_film {
        true => desk.cluster_of_job(&format!("studio-{}", row.id))?,
        false => None,
    };
    match row.kind.as_str() {
        "story.write" => write(desk, &request(row)?, watcher, cancel),
        "story.rewrite" => rewriting::rewrite(desk, &request(row)?, watcher.as_ref(), cancel),
        "voice.hear" => hear(desk, &request(row)?, watcher, cancel),
        "render.start" => render(desk, &request(row)?, watcher, cancel),
        "takes.make" => takes::perform(desk, &request(row)?, watcher, cancel),
        "takes.draw" => draw::perform(desk, &request(row)?, watcher, cancel),
        "export.start" => write_film(desk, &request(row)?, watcher, cancel),
        "media.proxy" => proxy::make(desk, &request(row)?, watcher, cancel),
        "models.pull" => pull(&request(row)?, watcher, cancel),
        "models.verify" => verify(&request(row)?, watcher, cancel),
        other => {
            let message = format!("a job of a kind that this version does not know: {other:?}");
            Err(StudioError::new(Code::Refused, message))
        }
    }
}

/// Keep a script as the project's proposal, with the one that it would change.
pub(super) fn propose(
    desk: &Desk,
    open: &OpenProject,
    base: &flow_story::Script,
    script: &flow_story::Script,
    from: &str,
) -> Result<JobResult, StudioError> {
    let changes = flow_story::diff(base, script).len();
    let value = json!({
        "base": rewrite::to_value(base)?,
        "script": rewrite::to_value(script)?,
        "from": from,
        "at_unix_millis": desk.clock.unix_millis(),
    });
    open.project.db().set_setting(PROPOSAL, value)?;
    desk.tell(&DeskEvent::ProposalChanged {
        project: open.folder.display().to_string(),
    });
    desk.project_changed(&open.folder);
    Ok(JobResult::Proposal { changes })
}

fn write(
    desk: &Desk,
    args: &WriteArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let open = desk.project(&args.project)?;
    let length = args.length.as_deref().map(str::parse).transpose();
    let length = length.map_err(|error| {
        StudioError::new(Code::BadInput, format!("cannot read the length: {error}"))
    })?;
    let wanted = PremiseRequest {
        text: args.premise.clone(),
        length,
        seed: args.seed.unwrap_or(0),
        llm: args.llm.clone().or_else(|| desk.settings().llm),
    };
    let base = open.project.script()?;
    let format = format_of(&base)?;
    let pictures = desk.pictures_of(&open)?;
    let mut script = premise::new_script(&wanted, &format, pictures, watcher.as_ref(), cancel)?;
    // The frame is the project's: the producer does not choose it.
    script.film.size = base.film.size;
    script.film.fps = base.film.fps;
    script.film.sample_rate_hz = base.film.sample_rate_hz;
    let manner = desk.manner(&open)?;
    let script = desk
        .studio
        .fitted(script, &format, &manner.speaking, watcher, cancel)?;
    let told = json!({
        "premise": args.premise,
        "length": args.length,
        "seed": args.seed,
        "llm": args.llm,
    });
    open.project.db().set_setting(PREMISE, told)?;
    propose(desk, &open, &base, &script, &args.premise)
}

fn hear(
    desk: &Desk,
    args: &HearArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let language = match (&args.language, &args.voice) {
        (Some(language), _) => language.clone(),
        (None, Some(voice)) => {
            let voices = speak::voices()?;
            let found = voices.iter().find(|known| known.id == *voice);
            found.map_or_else(|| "en".to_owned(), |voice| voice.language.clone())
        }
        (None, None) => "en".to_owned(),
    };
    let spoken = SpeechRequest {
        voice: args.voice.clone(),
        language,
        rate: args.pace.unwrap_or(1.0),
        ..SpeechRequest::new(args.text.as_str())
    };
    let temp = desk.studio.store.temp("wav")?;
    let report = speak::speak(&spoken, &temp, watcher.as_ref(), cancel)?;
    let blob = desk.studio.store.adopt(&temp, "audio/wav")?;
    Ok(JobResult::Sound {
        hash: blob.hash.to_hex(),
        secs: report.secs,
    })
}

fn render(
    desk: &Desk,
    args: &RenderArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let open = desk.project(&args.project)?;
    if args.what == RenderWhat::All && args.draft != Some(true) {
        let wanted = FilmRequest {
            project: Some(open.folder.clone()),
            ..FilmRequest::default()
        };
        let manner = desk.manner(&open)?;
        let given = Given::Project(&open.project, &manner);
        let (report, _ran) = desk.studio.run_film(&wanted, given, watcher, cancel)?;
        if let Some(code) = report.code {
            return Err(StudioError::new(code, report.errors.join("\n")));
        }
        return Ok(JobResult::Render {
            made: report.made,
            reused: report.reused,
            warnings: messages(&report.warnings),
        });
    }
    let wanted = pictures_wanted(args);
    if wanted.draft && open.project.db().setting(DRAFTS)?.is_none() {
        open.project.db().set_setting(DRAFTS, json!(true))?;
    }
    let done = desk
        .studio
        .make_pictures(&open.project, &wanted, watcher, cancel)?;
    Ok(JobResult::Render {
        made: done.made,
        reused: done.reused,
        warnings: done.warnings,
    })
}

pub(super) fn pictures_wanted(args: &RenderArgs) -> PicturesWanted {
    PicturesWanted {
        shots: match &args.what {
            RenderWhat::All | RenderWhat::Missing => None,
            RenderWhat::Shots(shots) => Some(shots.iter().cloned().collect::<BTreeSet<_>>()),
        },
        draft: args.draft == Some(true),
    }
}

fn messages(warnings: &[crate::ScriptWarning]) -> Vec<Said> {
    warnings
        .iter()
        .map(|warning| warning.clone().said())
        .collect()
}

fn write_film(
    desk: &Desk,
    args: &ExportArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let open = desk.project(&args.project)?;
    let wanted = desk.film_wanted(&open, args)?;
    desk.check_licences(&open, args)?;
    let manner = desk.manner_of_export(&open, args)?;
    if args.upscale.is_some() {
        // Renders do as the last export did, so that they agree on what is made.
        manner.remember(&open.project)?;
    }
    let given = Given::Project(&open.project, &manner);
    let report = desk.studio.make(&wanted, given, watcher, cancel)?;
    if let Some(code) = report.code {
        return Err(StudioError::new(code, report.errors.join("\n")));
    }
    let Some(out) = report.out else {
        let message = "the film was made without a file: a fault of ours";
        return Err(StudioError::new(Code::Internal, message));
    };
    watcher.event(StudioEvent::Stage {
        what: Say::ReadingFilmAgain {}.into(),
    });
    let film = desk.exported(&out)?;
    Ok(JobResult::Export {
        out,
        hash: film.hash,
        bytes: film.bytes,
        lufs: film.lufs,
        true_peak_dbtp: film.true_peak_dbtp,
        subtitles: report.subtitles,
        warnings: messages(&report.warnings),
    })
}

fn pull(
    args: &ModelArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let ids = [args.id.clone()];
    models::models_pull(&ids, watcher.as_ref(), cancel)?;
    Ok(JobResult::Model { whole: true })
}

fn verify(
    args: &ModelArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let ids = [args.id.clone()];
    let verified = models::models_verify(&ids, watcher.as_ref(), cancel)?;
    Ok(JobResult::Model {
        whole: verified.iter().all(|model| model.whole),
    })
}

impl Desk {
    /// How the project's film is made: as it remembers it, else as the settings say.
    pub(super) fn manner(&self, open: &OpenProject) -> Result<Manner, StudioError> {
        let mut manner = Manner::known(&open.project)?.unwrap_or_default();
        if manner.speaking.narrator.is_none() {
            manner.speaking.narrator = self.settings().narrator;
        }
        Ok(manner)
    }

    /// Remember where the file of this content lies, so that it can be played.
    pub(super) fn know_file(&self, hash: ContentHash, path: &std::path::Path) {
        super::lock(&self.files).insert(hash, path.to_owned());
    }
}
