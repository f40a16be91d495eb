//! Takes of shots: which there are, which the film uses, how good they are, making another.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash};
use engine_hub::ModelKind;
use flow_story::Seed;
use flow_timeline::SourceKind;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Desk;
use super::draw::{self, DrawArgs};
use super::list::{CommandEntry, CommandKind, NoArgs};
use super::project::{Edited, edited};
use super::queue::{JobResult, JobStarted};
use super::worker::kept;
use crate::command::Edit;
use crate::draw::own_model_is_here;
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::film::{DrawWhat, PictureAsked, PictureMaker, drawn_seed, prompt_of};
use crate::models;
pub use crate::project::takes::{Take, TakeBy, TakeKind, TakeMade};
use crate::say::Say;

/// A shot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ShotArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The shot.
    pub shot: String,
}

/// A take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TakeOfShot {
    /// The project's folder.
    pub project: PathBuf,
    /// The shot.
    pub shot: String,
    /// The take's content.
    pub take: String,
}

/// How good a take is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RateArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The shot.
    pub shot: String,
    /// The take's content.
    pub take: String,
    /// Stars, 1 to 5; 0 takes the rating back.
    pub rating: u8,
}

/// A picture to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct MakeArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// The shot that it is for.
    pub shot: String,
}

/// Something that makes pictures for shots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(optional_fields)]
pub struct PictureModel {
    /// What a shot's `model` calls it: `stills`, or a model's id.
    pub id: String,
    /// Its name for people; empty for `stills`.
    pub name: String,
    /// Whether it can make pictures here now.
    pub ready: bool,
    /// Why it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether shots that name no model use it.
    pub default: bool,
    /// Whether it draws new pictures; otherwise it chooses among those that are there.
    pub draws: bool,
    /// Whether it heeds what a picture must not show.
    pub negative: bool,
    /// Whether it looks at reference pictures of people and places.
    pub references: bool,
}

/// What people call the small model of our own.
const SKETCH_NAME: &str = "Sketch";

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::{Edit, Job, System};
    vec![
        CommandEntry::new(
            "takes.list",
            System,
            "Takes of a shot, in the order in which they came.",
            list,
        ),
        CommandEntry::new(
            "takes.choose",
            Edit,
            "Let a shot show one of its takes; only this shot is made again.",
            choose,
        ),
        CommandEntry::new("takes.rate", Edit, "Say how good a take is.", rate),
        CommandEntry::new(
            "takes.remove",
            Edit,
            "Take a take off its shot's list; its bytes stay.",
            remove,
        ),
        CommandEntry::new(
            "takes.make",
            Job,
            "Make another picture for a shot, as a take beside those it has.",
            make,
        ),
        CommandEntry::new(
            "makers.list",
            System,
            "What can make pictures for shots, and what cannot yet.",
            makers,
        ),
    ]
}

fn list(desk: &Desk, args: ShotArgs) -> Result<Vec<Take>, StudioError> {
    desk.project(&args.project)?.project.takes(&args.shot)
}

fn do_edit(desk: &Desk, project: &std::path::Path, edit: &Edit) -> Result<Edited, StudioError> {
    let open = desk.project(project)?;
    let done = open.project.edit(edit, None)?;
    edited(&open, (done.changed > 0).then_some(done.label))
}

fn choose(desk: &Desk, args: TakeOfShot) -> Result<Edited, StudioError> {
    let (shot, take) = (args.shot, args.take);
    do_edit(desk, &args.project, &Edit::ChooseTake { shot, take })
}

fn rate(desk: &Desk, args: RateArgs) -> Result<Edited, StudioError> {
    let edit = Edit::RateTake {
        shot: args.shot,
        take: args.take,
        rating: args.rating,
    };
    do_edit(desk, &args.project, &edit)
}

fn remove(desk: &Desk, args: TakeOfShot) -> Result<Edited, StudioError> {
    let (shot, take) = (args.shot, args.take);
    do_edit(desk, &args.project, &Edit::RemoveTake { shot, take })
}

fn make(desk: &Desk, args: MakeArgs) -> Result<JobStarted, StudioError> {
    let open = desk.project(&args.project)?;
    let script = open.project.script()?;
    let shot = script.shots().find(|shot| shot.id == args.shot);
    let shot = shot.ok_or_else(|| no_shot(&args.shot))?;
    // Refused here, where a person looks, and not later in the queue.
    if PictureMaker::named(&shot.model)? == PictureMaker::Drawn {
        let args = DrawArgs {
            project: args.project,
            what: DrawWhat::Shots(vec![args.shot]),
            count: None,
        };
        return draw::draw(desk, args);
    }
    let title = Say::AnotherPicture {
        shot: shot.id.clone(),
    };
    let folder = Some(open.folder.clone());
    let job = desk.add_job("takes.make", title, folder, kept(&args))?;
    Ok(JobStarted { job })
}

fn no_shot(id: &str) -> StudioError {
    StudioError::new(Code::NotFound, format!("there is no shot called {id:?}"))
}

/// Make a picture for a shot and add it to its takes.
pub(super) fn perform(
    desk: &Desk,
    args: &MakeArgs,
    watcher: &Arc<dyn Watcher>,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let open = desk.project(&args.project)?;
    let script = open.project.script()?;
    let shot = script.shots().find(|shot| shot.id == args.shot);
    let shot = shot.ok_or_else(|| no_shot(&args.shot))?;
    let maker = PictureMaker::named(&shot.model)?;
    if maker == PictureMaker::Drawn {
        // The shot was given to another model since it was asked for.
        let what = DrawWhat::Shots(vec![shot.id.clone()]);
        let wanted = desk
            .studio
            .pictures_wanted(&open.project, &what, None, &|_row| 0)?;
        let takes = desk
            .studio
            .draw_takes(&open.project, &wanted, watcher, cancel)?;
        return Ok(JobResult::Drawn { takes });
    }
    let (row, ever) = open.project.takes_ever(&shot.id)?;
    let listed = open.project.takes(&shot.id)?;
    let shown = listed
        .iter()
        .filter_map(|take| take.take.parse::<ContentHash>().ok());
    let had: BTreeSet<ContentHash> = ever.iter().map(|take| take.content).chain(shown).collect();
    let before = had.clone();
    // A locked seed gives the same picture again: what the shot has already does not turn it away.
    let (seed, had) = match shot.seed {
        Some(Seed {
            value,
            locked: true,
        }) => (value, BTreeSet::new()),
        _ => (drawn_seed(&row, ever.len()), had),
    };
    watcher.event(StudioEvent::Stage {
        what: Say::ChoosingPicture {}.into(),
    });
    let asked = PictureAsked {
        prompt: prompt_of(&script, &shot.id),
        seed,
        had,
    };
    let given = desk.studio.choose_still(&open.project, &asked)?;
    if cancel.is_cancelled() {
        return Err(StudioError::new(Code::Cancelled, "the picture was stopped"));
    }
    let content = given.file.content;
    // A shot that went meanwhile, by an edit or an undo, leaves the picture to the cache.
    let mut kept = open.project.has_shot(&row)?;
    if kept {
        let name = match given.name {
            Some(name) => name,
            None => {
                // The bytes are the project's own: pruning the cache takes no take away.
                let path = desk.studio.store.blob_path(&content)?;
                open.project
                    .db()
                    .keep_media(&path, &given.file.media_type)?;
                let ending = ending_of(&given.file.media_type);
                let name = format!("{} take.{ending}", shot.id);
                open.project
                    .name_file(SourceKind::Still, &name, &given.file)?
            }
        };
        let made = TakeMade {
            kind: TakeKind::Picture,
            name,
            media_type: given.file.media_type.clone(),
            by: TakeBy::Stills,
            model: None,
            seed: Some(seed),
            prompt: Some(asked.prompt),
            negative: None,
        };
        kept = open.project.add_take(&row, content, &made)?;
    }
    Ok(JobResult::Take {
        shot: args.shot.clone(),
        take: content.to_hex(),
        seed,
        kept,
        new: !before.contains(&content),
    })
}

/// Ending of a picture's file name.
fn ending_of(media_type: &str) -> &'static str {
    match media_type {
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        _ => "png",
    }
}

fn makers(_: &Desk, _: NoArgs) -> Result<Vec<PictureModel>, StudioError> {
    let stills = PictureModel {
        id: PictureMaker::STILLS.to_owned(),
        name: String::new(),
        ready: true,
        why: None,
        default: true,
        draws: false,
        negative: false,
        references: false,
    };
    let is_here = own_model_is_here();
    let sketch = PictureModel {
        id: PictureMaker::SKETCH.to_owned(),
        name: SKETCH_NAME.to_owned(),
        ready: is_here,
        why: (!is_here).then(|| Say::NoPictureModel {}.to_string()),
        default: false,
        draws: true,
        negative: true,
        references: false,
    };
    let models = models::models_list()?.into_iter().filter(|model| {
        model.entry.kind == ModelKind::Image && model.entry.id != PictureMaker::SKETCH
    });
    let model = |model: models::ModelRow| {
        let refused = PictureMaker::named(&model.entry.id).err();
        PictureModel {
            ready: refused.is_none(),
            why: refused.map(|error| error.message),
            id: model.entry.id,
            name: model.entry.title,
            default: false,
            draws: true,
            negative: true,
            references: false,
        }
    };
    let ours = [stills, sketch].into_iter();
    Ok(ours.chain(models.map(model)).collect())
}
