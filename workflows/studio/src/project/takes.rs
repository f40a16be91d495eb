//! Takes: what each shot could show, and what people think of it.
//!
//! What was made or brought in is noted once for each shot and content and never undone. What
//! people decide is: the take that a shot shows is the picture or video that its script names, and
//! ratings stand in settings that edits write.

use std::collections::BTreeMap;

use engine_base::{Code, ContentHash};
use flow_store::project::{Change, Entity, ProjectDb, TakeRow};
use flow_timeline::SourceKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ts_rs::TS;

use super::{Core, Project, by_user, lock};
use crate::command::{Edit, Kind};
use crate::error::StudioError;
use crate::library::{Known, setting_of};
use crate::rows::{self, Rows};

/// Settings that hold what people think of takes, before the shot's row and the content.
const OPINION: &str = "take.";
/// Most stars.
pub(crate) const RATING_MAX: u8 = 5;

/// What a take is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TakeKind {
    /// A still picture.
    Picture,
    /// Moving pictures.
    Video,
}

/// Where a take comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TakeBy {
    /// A file of the project's library, which the script named.
    Library,
    /// A file that a person brought in.
    Own,
    /// A picture of the library that was chosen for the shot by what both say.
    Stills,
    /// A model made it.
    Model,
}

/// How a take came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(optional_fields)]
pub struct TakeMade {
    /// What it is.
    pub kind: TakeKind,
    /// Name by which scripts call it.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Where it comes from.
    pub by: TakeBy,
    /// Id of the model that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What decided its draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What it was to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What it was not to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative: Option<String>,
}

/// A take of a shot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(optional_fields)]
pub struct Take {
    /// Its content: `/thumb/{take}`, `/media/{take}`.
    pub take: String,
    /// When it was made or first shown; absent for one that was there before takes were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_unix_millis: Option<u64>,
    /// How it came to be.
    #[serde(flatten)]
    pub made: TakeMade,
    /// Stars, 1 to 5; 0 when it is not rated.
    pub rating: u8,
    /// Whether the shot shows it: the film uses it.
    pub chosen: bool,
}

/// What people think of a take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Opinion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rating: Option<u8>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    off: bool,
}

impl Opinion {
    fn of(value: Option<&Value>) -> Self {
        let read = value.and_then(|value| serde_json::from_value(value.clone()).ok());
        read.unwrap_or_default()
    }
}

impl TakeKind {
    const fn source(self) -> SourceKind {
        match self {
            Self::Picture => SourceKind::Still,
            Self::Video => SourceKind::Video,
        }
    }
}

fn opinion_name(row: &str, take: &str) -> String {
    format!("{OPINION}{row}.{take}")
}

/// The picture or video that a shot's body names.
fn shown(body: &Value) -> Option<(TakeKind, &str)> {
    let video = body["video"]["file"].as_str();
    let picture = body["picture"].as_str().filter(|name| !name.is_empty());
    video
        .map(|name| (TakeKind::Video, name))
        .or_else(|| picture.map(|name| (TakeKind::Picture, name)))
}

/// The take that a file of the project would be.
fn of_file(kind: TakeKind, name: &str, known: &Known) -> TakeMade {
    TakeMade {
        kind,
        name: name.to_owned(),
        media_type: known.media_type.clone(),
        by: if known.brought {
            TakeBy::Own
        } else {
            TakeBy::Library
        },
        model: None,
        seed: None,
        prompt: None,
        negative: None,
    }
}

fn known(value: Option<&Value>) -> Option<Known> {
    serde_json::from_value(value?.clone()).ok()
}

fn row_of(shot: &str, content: ContentHash, made: &TakeMade, at_millis: u64) -> TakeRow {
    TakeRow {
        shot: shot.to_owned(),
        content,
        at_millis,
        made: serde_json::to_value(made).unwrap_or_default(),
    }
}

/// Note what shots showed and will show, where an edit changes that.
pub(super) fn note_shown(
    db: &ProjectDb,
    rows: &Rows,
    forward: &[Change],
    at_millis: u64,
) -> Result<(), StudioError> {
    let before: BTreeMap<&str, &Entity> = rows
        .of(Kind::Shot)
        .iter()
        .map(|row| (row.id.as_str(), row))
        .collect();
    let mut changed = Vec::new();
    for change in forward {
        let Change::Put { kind, id, body, .. } = change else {
            continue;
        };
        if kind != Kind::Shot.as_str() {
            continue;
        }
        let old = before.get(id.as_str()).and_then(|row| shown(&row.body));
        let new = shown(body);
        if old != new {
            changed.extend([old, new].into_iter().flatten().map(|each| (id, each)));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    let settings = db.settings()?;
    for (id, (kind, name)) in changed {
        if let Some(file) = known(settings.get(&setting_of(kind.source(), name))) {
            let made = of_file(kind, name, &file);
            db.note_take(row_of(id, file.content, &made, at_millis))?;
        }
    }
    Ok(())
}

/// What an edit reads of takes, and the settings that it writes, which later parts of the same
/// edit see.
pub(super) struct Book<'a> {
    db: &'a ProjectDb,
    written: BTreeMap<String, Option<Value>>,
}

impl<'a> Book<'a> {
    pub(super) fn new(db: &'a ProjectDb) -> Self {
        Self {
            db,
            written: BTreeMap::new(),
        }
    }

    /// The settings that differ from what is there.
    pub(super) fn changes(self) -> Result<Vec<Change>, StudioError> {
        let mut changes = Vec::new();
        for (name, value) in self.written {
            if self.db.setting(&name)? != value {
                changes.push(Change::Set { name, value });
            }
        }
        Ok(changes)
    }

    fn setting(&self, name: &str) -> Result<Option<Value>, StudioError> {
        match self.written.get(name) {
            Some(value) => Ok(value.clone()),
            None => Ok(self.db.setting(name)?),
        }
    }

    fn opinion(&self, row: &Entity, take: &str) -> Result<Opinion, StudioError> {
        let value = self.setting(&opinion_name(&row.id, take))?;
        Ok(Opinion::of(value.as_ref()))
    }

    fn think(&mut self, row: &Entity, take: &str, opinion: Opinion) {
        let value = (opinion != Opinion::default())
            .then(|| serde_json::to_value(opinion).unwrap_or_default());
        self.written.insert(opinion_name(&row.id, take), value);
    }

    /// Content of what the shot shows.
    fn chosen(&self, row: &Entity) -> Result<Option<(ContentHash, TakeMade)>, StudioError> {
        let Some((kind, name)) = shown(&row.body) else {
            return Ok(None);
        };
        let file = known(self.setting(&setting_of(kind.source(), name))?.as_ref());
        Ok(file.map(|file| (file.content, of_file(kind, name, &file))))
    }

    /// How the take of a shot was made; one that is off the list is none.
    fn made(&self, row: &Entity, take: &str) -> Result<(ContentHash, TakeMade), StudioError> {
        let unknown = || {
            let shot = rows::name_of(Kind::Shot, row);
            let message = format!("the shot {shot:?} has no take {take:?}");
            StudioError::new(Code::NotFound, message)
        };
        let content: ContentHash = take.parse().map_err(|_no_hash| unknown())?;
        if let Some(chosen) = self.chosen(row)?
            && chosen.0 == content
        {
            return Ok(chosen);
        }
        if self.opinion(row, take)?.off {
            return Err(unknown());
        }
        let mut noted = self.db.takes()?.into_iter();
        let found = noted.find(|noted| noted.shot == row.id && noted.content == content);
        let made = found.and_then(|noted| serde_json::from_value(noted.made).ok());
        Ok((content, made.ok_or_else(unknown)?))
    }

    pub(super) fn choose(&mut self, row: &Entity, take: &str) -> Result<Vec<Change>, StudioError> {
        let (content, made) = self.made(row, take)?;
        let chosen = self.chosen(row)?;
        if chosen.is_some_and(|(shown, _)| shown == content) {
            return Ok(Vec::new());
        }
        let name = self.named(content, &made)?;
        let mut body = row.body.clone();
        let Some(fields) = body.as_object_mut() else {
            return Ok(Vec::new());
        };
        fields.remove("colour");
        let field = match made.kind {
            TakeKind::Picture => {
                fields.remove("video");
                fields.insert("picture".into(), json!(name));
                "/picture"
            }
            TakeKind::Video => {
                fields.remove("picture");
                let mut video = json!({ "file": name });
                // How loud a video's own sound is stays as it was; where it starts does not.
                if let Some(gain) = fields.get("video").and_then(|video| video.get("sound")) {
                    video["sound"] = gain.clone();
                }
                fields.insert("video".into(), video);
                "/video"
            }
        };
        by_user(&mut body, field);
        Ok(vec![rows::put(row, row.order_key.clone(), body)])
    }

    /// The name under which scripts find `content`: another file may have taken its own since.
    fn named(&mut self, content: ContentHash, made: &TakeMade) -> Result<String, StudioError> {
        let (kind, mut number) = (made.kind.source(), 1);
        loop {
            let name = numbered(&made.name, number);
            let setting = setting_of(kind, &name);
            match known(self.setting(&setting)?.as_ref()) {
                Some(file) if file.content == content => return Ok(name),
                Some(_) => number += 1,
                None => {
                    let file = Known {
                        content,
                        media_type: made.media_type.clone(),
                        brought: made.by == TakeBy::Own,
                    };
                    let value = serde_json::to_value(file).unwrap_or_default();
                    self.written.insert(setting, Some(value));
                    return Ok(name);
                }
            }
        }
    }

    pub(super) fn rate(
        &mut self,
        row: &Entity,
        take: &str,
        rating: u8,
    ) -> Result<Vec<Change>, StudioError> {
        if rating > RATING_MAX {
            let message = format!("expected a rating from 0 to {RATING_MAX}, got {rating}");
            return Err(StudioError::new(Code::BadInput, message));
        }
        self.made(row, take)?;
        let opinion = Opinion {
            rating: (rating > 0).then_some(rating),
            ..self.opinion(row, take)?
        };
        self.think(row, take, opinion);
        Ok(Vec::new())
    }

    pub(super) fn remove(&mut self, row: &Entity, take: &str) -> Result<Vec<Change>, StudioError> {
        let (content, _) = self.made(row, take)?;
        if self.chosen(row)?.is_some_and(|(shown, _)| shown == content) {
            let message = "the shot shows this take: choose another one first";
            return Err(StudioError::new(Code::Refused, message));
        }
        let opinion = Opinion {
            off: true,
            ..self.opinion(row, take)?
        };
        self.think(row, take, opinion);
        Ok(Vec::new())
    }
}

/// `boat.png`, `boat-2.png`, `boat-3.png`, …
fn numbered(name: &str, number: usize) -> String {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) => (stem, format!(".{ending}")),
        None => (name, String::new()),
    };
    match number {
        1 => name.to_owned(),
        _ => format!("{stem}-{number}{ending}"),
    }
}

impl Project {
    /// Let scripts call a kept file `name`, or `name` with a number where another content has it;
    /// gives the name.
    ///
    /// # Errors
    /// The database cannot be written; [`Code::Refused`] when thousands are called so.
    pub(crate) fn name_file(
        &self,
        kind: SourceKind,
        name: &str,
        file: &Known,
    ) -> Result<String, StudioError> {
        for number in 1..10_000 {
            let name = numbered(name, number);
            let setting = setting_of(kind, &name);
            let had = self.db().setting(&setting)?;
            match known(had.as_ref()) {
                Some(had) if had.content == file.content => return Ok(name),
                Some(_) => {}
                None => {
                    let value = serde_json::to_value(file).unwrap_or_default();
                    self.db().set_setting(&setting, value)?;
                    return Ok(name);
                }
            }
        }
        let message = format!("there are too many files called {name:?}");
        Err(StudioError::new(Code::Refused, message))
    }

    /// Takes of a shot, in the order in which they came.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a shot that is not there; the database cannot be read.
    pub(crate) fn takes(&self, shot: &str) -> Result<Vec<Take>, StudioError> {
        let rows = self.core.rows()?;
        let row = rows.find(Kind::Shot, shot)?;
        let db = self.db();
        let book = Book::new(db);
        let chosen = book.chosen(row)?;
        let chosen_content = chosen.as_ref().map(|(content, _)| *content);
        let mut takes = Vec::new();
        let take = |content: ContentHash, at, made| -> Result<Option<Take>, StudioError> {
            let (take, is_chosen) = (content.to_hex(), chosen_content == Some(content));
            let opinion = book.opinion(row, &take)?;
            Ok((is_chosen || !opinion.off).then(|| Take {
                take,
                at_unix_millis: at,
                made,
                rating: opinion.rating.unwrap_or(0),
                chosen: is_chosen,
            }))
        };
        for noted in db.takes()?.into_iter().filter(|noted| noted.shot == row.id) {
            // One of a form that this version cannot read is left alone.
            if let Ok(made) = serde_json::from_value(noted.made) {
                takes.extend(take(noted.content, Some(noted.at_millis), made)?);
            }
        }
        if let Some((content, made)) = chosen
            && !takes.iter().any(|take: &Take| take.chosen)
        {
            takes.extend(take(content, None, made)?);
        }
        Ok(takes)
    }

    /// How many takes a shot ever had, and its row.
    ///
    /// # Errors
    /// As [`Project::takes`].
    pub(crate) fn takes_ever(&self, shot: &str) -> Result<(String, Vec<TakeRow>), StudioError> {
        let row = self.core.rows()?.find(Kind::Shot, shot)?.id.clone();
        let mut takes = self.db().takes()?;
        takes.retain(|noted| noted.shot == row);
        Ok((row, takes))
    }

    /// Whether there is a shot whose row is `row`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) fn has_shot(&self, row: &str) -> Result<bool, StudioError> {
        Ok(self.db().get(Kind::Shot.as_str(), row)?.is_some())
    }

    /// Add a take to the shot whose row is `row`: it is chosen when the shot shows nothing yet.
    /// Gives whether the shot still is there; nothing is kept for one that went.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(crate) fn add_take(
        &self,
        row: &str,
        content: ContentHash,
        made: &TakeMade,
    ) -> Result<bool, StudioError> {
        let shot = self.core.add_take(row, content, made)?;
        let Some((shot, shows)) = shot else {
            return Ok(false);
        };
        if !shows {
            let take = content.to_hex();
            self.edit(&Edit::ChooseTake { shot, take }, None)?;
        }
        Ok(true)
    }
}

impl Core {
    /// The shot's name, and whether it shows something.
    fn add_take(
        &self,
        row: &str,
        content: ContentHash,
        made: &TakeMade,
    ) -> Result<Option<(String, bool)>, StudioError> {
        let told = {
            let _one_at_a_time = lock(&self.editing);
            let rows = self.rows()?;
            let Some(found) = rows.of(Kind::Shot).iter().find(|found| found.id == row) else {
                return Ok(None);
            };
            let is_new = self
                .db
                .note_take(row_of(row, content, made, self.clock.unix_millis()))?;
            let colour = found.body["colour"].is_string();
            let name = rows::name_of(Kind::Shot, found).to_owned();
            (is_new, Some((name, colour || shown(&found.body).is_some())))
        };
        if told.0 {
            self.tell();
        }
        Ok(told.1)
    }
}
