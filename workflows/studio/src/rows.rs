//! A script as rows of a project, and rows as a script.
//!
//! Rows keep their UUIDs while a script is imported again, so that what refers to a shot goes on
//! referring to it after its text was rewritten elsewhere.

use std::collections::BTreeMap;

use engine_base::Code;
use flow_store::project::{Change, Entity, Expected};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::command::Kind;
use crate::error::StudioError;
use crate::order;
use crate::say::Say;

/// Field of a shot row that names its scene's row.
const SCENE: &str = "scene_row";

/// What a script cannot say of a row is set by no field.
///
/// # Errors
/// [`Code::BadInput`] for such a field.
pub(crate) fn check_field(field: &str) -> Result<(), StudioError> {
    if field.split('/').nth(1) != Some(SCENE) {
        return Ok(());
    }
    let message = format!("cannot set the field {field:?}: move the shot instead");
    Err(StudioError::new(Code::BadInput, message))
}

/// All rows of a film, by kind, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rows {
    rows: BTreeMap<Kind, Vec<Entity>>,
}

impl Rows {
    /// Rows as read from the database.
    pub(crate) const fn new(rows: BTreeMap<Kind, Vec<Entity>>) -> Self {
        Self { rows }
    }

    /// Rows of `kind` in order.
    pub(crate) fn of(&self, kind: Kind) -> &[Entity] {
        self.rows.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// The row of `kind` that the script calls `id`.
    pub(crate) fn find(&self, kind: Kind, id: &str) -> Result<&Entity, StudioError> {
        let found = self
            .of(kind)
            .iter()
            .find(|row| kind == Kind::Film || name_of(kind, row) == id);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.of(kind).iter().map(|row| name_of(kind, row)).collect();
            let say = Say::NoRow {
                kind: kind.as_str().to_owned(),
                id: id.to_owned(),
                known: known.join(", "),
            };
            StudioError::said(Code::NotFound, &say)
        })
    }

    /// The script in its JSON form.
    pub(crate) fn script(&self) -> Value {
        let mut film = match self.of(Kind::Film).first().map(|row| row.body.clone()) {
            Some(Value::Object(film)) => film,
            _ => Map::new(),
        };
        for (kind, field) in [(Kind::Cast, "cast"), (Kind::Place, "places")] {
            let bodies: Vec<Value> = self.of(kind).iter().map(|row| row.body.clone()).collect();
            if !bodies.is_empty() {
                film.insert(field.into(), Value::Array(bodies));
            }
        }
        let scenes: Vec<Value> = self
            .of(Kind::Scene)
            .iter()
            .map(|row| self.scene(row))
            .collect();
        film.insert("scenes".into(), Value::Array(scenes));
        Value::Object(film)
    }

    fn scene(&self, scene: &Entity) -> Value {
        let shots: Vec<Value> = self
            .shots_of(&scene.id)
            .map(|row| {
                let mut body = row.body.clone();
                if let Value::Object(fields) = &mut body {
                    fields.remove(SCENE);
                }
                body
            })
            .collect();
        let mut body = scene.body.clone();
        if let Value::Object(fields) = &mut body {
            fields.insert("shots".into(), Value::Array(shots));
        }
        body
    }

    /// Shots of the scene whose row is `scene`, in order.
    pub(crate) fn shots_of<'a>(&'a self, scene: &'a str) -> impl Iterator<Item = &'a Entity> {
        let inside =
            move |row: &&Entity| row.body.get(SCENE).and_then(Value::as_str) == Some(scene);
        self.of(Kind::Shot).iter().filter(inside)
    }

    /// Whether `change` writes what is there already.
    pub(crate) fn has(&self, change: &Change) -> bool {
        let Change::Put {
            kind,
            id,
            order_key,
            body,
            ..
        } = change
        else {
            return false;
        };
        let rows = Kind::named(kind).map_or(&[][..], |kind| self.of(kind));
        let same = |row: &Entity| row.id == *id && row.order_key == *order_key && row.body == *body;
        rows.iter().any(same)
    }

    /// Rows as they will be after `changes`.
    pub(crate) fn after(&self, changes: &[Change]) -> Self {
        let mut rows = self.clone();
        for change in changes {
            match change {
                Change::Put {
                    kind,
                    id,
                    order_key,
                    body,
                    ..
                } => {
                    let Some(kind) = Kind::named(kind) else {
                        continue;
                    };
                    let list = rows.rows.entry(kind).or_default();
                    list.retain(|row| row.id != *id);
                    list.push(Entity {
                        kind: kind.as_str().into(),
                        id: id.clone(),
                        revision: 0,
                        order_key: order_key.clone(),
                        body: body.clone(),
                    });
                    list.sort_by(|a, b| (&a.order_key, &a.id).cmp(&(&b.order_key, &b.id)));
                }
                Change::Delete { kind, id, .. } => {
                    let Some(kind) = Kind::named(kind) else {
                        continue;
                    };
                    rows.rows
                        .entry(kind)
                        .or_default()
                        .retain(|row| row.id != *id);
                }
                Change::Set { .. } => {}
            }
        }
        rows
    }

    /// Changes that make these rows say what `script` (its JSON form) says.
    pub(crate) fn changes_to(&self, script: &Value) -> Vec<Change> {
        let mut wanted = Wanted {
            old: self,
            rows: Vec::new(),
        };
        let mut film = script.as_object().cloned().unwrap_or_default();
        let cast = take_array(&mut film, "cast");
        let places = take_array(&mut film, "places");
        let scenes = take_array(&mut film, "scenes");
        wanted.list(Kind::Film, vec![Value::Object(film)]);
        wanted.list(Kind::Cast, cast);
        wanted.list(Kind::Place, places);
        let mut all_shots = Vec::new();
        let mut bare_scenes = Vec::new();
        for mut scene in scenes {
            let shots = scene
                .as_object_mut()
                .map(|scene| take_array(scene, "shots"));
            all_shots.push(shots.unwrap_or_default());
            bare_scenes.push(scene);
        }
        let scene_rows = wanted.list(Kind::Scene, bare_scenes);
        let mut shots = Vec::new();
        for (scene_row, inside) in scene_rows.iter().zip(all_shots) {
            for mut shot in inside {
                if let Some(fields) = shot.as_object_mut() {
                    fields.insert(SCENE.into(), json!(scene_row));
                }
                shots.push(shot);
            }
        }
        wanted.list(Kind::Shot, shots);
        wanted.changes()
    }

    /// Changes that make these rows the `other` ones, by id: those that go, then those that come
    /// or differ, in the order of kinds and places.
    pub(crate) fn changes_into(&self, other: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for kind in Kind::ALL {
            let gone = |row: &&Entity| !other.of(kind).iter().any(|left| left.id == row.id);
            changes.extend(self.of(kind).iter().filter(gone).map(delete));
        }
        for kind in Kind::ALL {
            for row in other.of(kind) {
                let had = self.of(kind).iter().find(|had| had.id == row.id);
                let (order_key, body) = (row.order_key.clone(), row.body.clone());
                match had {
                    Some(had) if had.order_key == row.order_key && had.body == row.body => {}
                    Some(had) => changes.push(put(had, order_key, body)),
                    None => changes.push(Change::Put {
                        kind: kind.as_str().into(),
                        id: row.id.clone(),
                        order_key,
                        body,
                        expected: Expected::Absent,
                    }),
                }
            }
        }
        changes
    }

    /// A place for a new or moved row of `kind`: after the row called `after`, among `siblings`.
    pub(crate) fn place(siblings: &[&Entity], after: Option<&str>) -> String {
        let at = after.and_then(|id| siblings.iter().position(|row| row.id == id));
        let before = at.map(|at| siblings[at].order_key.as_str());
        let next = siblings
            .get(at.map_or(0, |at| at + 1))
            .map(|row| row.order_key.as_str());
        order::between(before, next)
    }
}

/// What the script calls a row.
pub(crate) fn name_of(kind: Kind, row: &Entity) -> &str {
    row.body
        .get(kind.id_field())
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// A `Put` of a row at the revision that was seen.
pub(crate) fn put(row: &Entity, order_key: String, body: Value) -> Change {
    Change::Put {
        kind: row.kind.clone(),
        id: row.id.clone(),
        order_key,
        body,
        expected: Expected::Revision(row.revision),
    }
}

/// A `Put` of a row that is not there yet.
pub(crate) fn put_new(kind: Kind, order_key: String, body: Value) -> Change {
    Change::Put {
        kind: kind.as_str().into(),
        id: Uuid::now_v7().to_string(),
        order_key,
        body,
        expected: Expected::Absent,
    }
}

/// `Put`s of a new scene and of the shots in its body, if any.
pub(crate) fn put_new_scene(order_key: String, mut body: Value) -> Vec<Change> {
    let shots = body
        .as_object_mut()
        .map(|fields| take_array(fields, "shots"))
        .unwrap_or_default();
    let scene = put_new(Kind::Scene, order_key, body);
    let id = match &scene {
        Change::Put { id, .. } => id.clone(),
        Change::Delete { .. } | Change::Set { .. } => String::new(),
    };
    let keys = order::spread(shots.len());
    let shots = keys
        .into_iter()
        .zip(shots)
        .map(|(key, shot)| put_new(Kind::Shot, key, in_scene(shot, &id)));
    std::iter::once(scene).chain(shots).collect()
}

/// A shot's body inside the scene whose row is `scene`.
pub(crate) fn in_scene(mut body: Value, scene: &str) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(SCENE.into(), json!(scene));
    }
    body
}

/// The scene row that a shot row names.
pub(crate) fn scene_of(shot: &Entity) -> &str {
    shot.body.get(SCENE).and_then(Value::as_str).unwrap_or("")
}

/// A `Delete` of a row at the revision that was seen.
pub(crate) fn delete(row: &Entity) -> Change {
    let expected = Expected::Revision(row.revision);
    Change::Delete {
        kind: row.kind.clone(),
        id: row.id.clone(),
        expected,
    }
}

fn take_array(object: &mut Map<String, Value>, field: &str) -> Vec<Value> {
    match object.remove(field) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

struct Wanted<'a> {
    old: &'a Rows,
    rows: Vec<Change>,
}

impl Wanted<'_> {
    /// Rows of `kind` with these bodies, in this order; gives their ids.
    fn list(&mut self, kind: Kind, bodies: Vec<Value>) -> Vec<String> {
        let mut old: BTreeMap<&str, &Entity> = self
            .old
            .of(kind)
            .iter()
            .map(|row| (name_of(kind, row), row))
            .collect();
        let mut ids = Vec::with_capacity(bodies.len());
        for (order_key, body) in order::spread(bodies.len()).into_iter().zip(bodies) {
            let name = body
                .get(kind.id_field())
                .and_then(Value::as_str)
                .unwrap_or("");
            match old.remove(name) {
                Some(row) => {
                    ids.push(row.id.clone());
                    if row.body != body || row.order_key != order_key {
                        self.rows.push(put(row, order_key, body));
                    }
                }
                None => {
                    let change = put_new(kind, order_key, body);
                    if let Change::Put { id, .. } = &change {
                        ids.push(id.clone());
                    }
                    self.rows.push(change);
                }
            }
        }
        self.rows.extend(old.into_values().map(delete));
        ids
    }

    fn changes(self) -> Vec<Change> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> Value {
        json!({
            "longtake": 1, "title": "Lamp", "cast": [{"name": "MARA"}],
            "scenes": [
                {"id": "one", "heading": "Shore", "shots": [{"id": "1a"}, {"id": "1b"}]},
                {"id": "two", "shots": [{"id": "2a"}]},
            ],
        })
    }

    #[test]
    fn a_script_round_trips_through_rows() {
        let empty = Rows::default();
        let rows = empty.after(&empty.changes_to(&script()));
        assert_eq!(rows.script(), script());
        assert_eq!(rows.changes_to(&script()), []);
    }

    #[test]
    fn rows_keep_their_ids_when_a_script_is_imported_again() {
        let empty = Rows::default();
        let rows = empty.after(&empty.changes_to(&script()));
        let mut edited = script();
        edited["scenes"][0]["shots"][1]["action"] = json!("The wind drops.");
        let changes = rows.changes_to(&edited);
        assert_eq!(changes.len(), 1, "one row changes: {changes:?}");
        let after = rows.after(&changes);
        let id = |rows: &Rows| rows.find(Kind::Shot, "1b").unwrap().id.clone();
        assert_eq!(id(&rows), id(&after));
        assert_eq!(after.script(), edited);
    }

    #[test]
    fn what_a_script_no_longer_has_goes() {
        let empty = Rows::default();
        let rows = empty.after(&empty.changes_to(&script()));
        let mut shorter = script();
        shorter["scenes"].as_array_mut().unwrap().pop();
        let after = rows.after(&rows.changes_to(&shorter));
        assert_eq!(after.script(), shorter);
        assert!(after.find(Kind::Shot, "2a").is_err());
    }
}
