//! What another script would change, field by field, so that a person can take a part of it.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::origin::By;
use crate::parse::parse_json;
use crate::script::Script;
use crate::write::to_json;

/// Lists of things with names of their own, and the field that names them.
const NAMED: [(&str, &str); 4] = [
    ("cast", "name"),
    ("places", "id"),
    ("scenes", "id"),
    ("shots", "id"),
];

/// One field, or one whole thing, that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// Where, as a JSON pointer in which scenes, shots, cast and places stand by their names:
    /// `/scenes/harbour/shots/boats/action`.
    pub path: String,
    /// What is there; absent when it would be added.
    pub old: Option<Value>,
    /// What would be there; absent when it would be taken away.
    pub new: Option<Value>,
    /// For a thing that is added to a list: the name of the one it comes after, if any.
    pub after: Option<String>,
    /// Who wrote the new value, where that is recorded.
    pub by: Option<By>,
}

/// Which thing a change is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangePlace {
    /// `film`, `cast`, `place`, `scene` or `shot`.
    pub kind: &'static str,
    /// Its name in the script; empty for the film.
    pub id: String,
    /// JSON pointer of the field in it; empty for the whole thing.
    pub field: String,
}

impl FieldChange {
    /// Which thing it is about, and which of its fields.
    pub fn place(&self) -> ChangePlace {
        let steps: Vec<&str> = self.path.split('/').skip(1).collect();
        let (kind, id, rest) = match steps.as_slice() {
            ["scenes", _, "shots", id, rest @ ..] => ("shot", *id, rest),
            ["scenes", id, rest @ ..] => ("scene", *id, rest),
            ["cast", id, rest @ ..] => ("cast", *id, rest),
            ["places", id, rest @ ..] => ("place", *id, rest),
            rest => ("film", "", rest),
        };
        ChangePlace {
            kind,
            id: plain(id),
            field: rest.iter().map(|step| format!("/{step}")).collect(),
        }
    }
}

/// Everything in which `new` differs from `old`, in script order. Who wrote a field is part of
/// its change, and no change of its own.
pub fn diff(old: &Script, new: &Script) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    objects("", &value_of(old), &value_of(new), &mut changes);
    changes
}

/// `script` with these changes.
///
/// # Errors
/// The faults of what comes out: a change that was left out was needed, or the script is another
/// one than the changes were made for.
pub fn apply(script: &Script, changes: &[FieldChange]) -> Result<Script, Vec<Fault>> {
    let mut value = value_of(script);
    for change in changes {
        if put(&mut value, change).is_none() {
            return Err(vec![Fault {
                place: change.path.clone(),
                problem: "there is no such place in the script".to_owned(),
                ..Fault::default()
            }]);
        }
    }
    parse_json(&value.to_string()).map(|parsed| parsed.script)
}

fn value_of(script: &Script) -> Value {
    serde_json::from_str(&to_json(script)).unwrap_or_default()
}

fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

fn plain(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn named(list: &str) -> Option<&'static str> {
    NAMED
        .iter()
        .find(|(name, _)| *name == list)
        .map(|(_, field)| *field)
}

fn objects(path: &str, old: &Value, new: &Value, changes: &mut Vec<FieldChange>) {
    let empty = Map::new();
    let (old_fields, new_fields) = (
        old.as_object().unwrap_or(&empty),
        new.as_object().unwrap_or(&empty),
    );
    let names: BTreeSet<&String> = old_fields.keys().chain(new_fields.keys()).collect();
    for name in names.into_iter().filter(|name| *name != "by") {
        let (before, after) = (old_fields.get(name), new_fields.get(name));
        if before == after {
            continue;
        }
        let place = format!("{path}/{}", escaped(name));
        let none = Vec::new();
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
        if let Some(field) = named(name) {
            let (before, after) = (list(before), list(after));
            things(
                &place,
                field,
                before.as_ref().unwrap_or(&none),
                after.as_ref().unwrap_or(&none),
                changes,
            );
            continue;
        }
        if let (Some(Value::Array(before)), Some(Value::Array(after))) = (before, after)
            && before.len() == after.len()
            && before.iter().chain(after).all(Value::is_object)
        {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                objects(&format!("{place}/{at}"), before, after, changes);
            }
            continue;
        }
        changes.push(FieldChange {
            path: place,
            old: before.cloned(),
            new: after.cloned(),
            after: None,
            by: new["by"][name.as_str()]
                .as_str()
                .and_then(|by| by.parse().ok()),
        });
    }
}

fn things(path: &str, field: &str, old: &[Value], new: &[Value], changes: &mut Vec<FieldChange>) {
    fn name<'v>(value: &'v Value, field: &str) -> &'v str {
        value[field].as_str().unwrap_or("")
    }
    let find = |list: &[Value], wanted: &str| -> Option<usize> {
        list.iter().position(|each| name(each, field) == wanted)
    };
    for gone in old
        .iter()
        .filter(|each| find(new, name(each, field)).is_none())
    {
        changes.push(FieldChange {
            path: format!("{path}/{}", escaped(name(gone, field))),
            old: Some(gone.clone()),
            new: None,
            after: None,
            by: None,
        });
    }
    for (at, each) in new.iter().enumerate() {
        let place = format!("{path}/{}", escaped(name(each, field)));
        match find(old, name(each, field)) {
            Some(before) => objects(&place, &old[before], each, changes),
            None => changes.push(FieldChange {
                path: place,
                old: None,
                new: Some(each.clone()),
                after: at.checked_sub(1).map(|at| name(&new[at], field).to_owned()),
                by: None,
            }),
        }
    }
}

/// Make one change; `None` when its place is not there.
fn put(value: &mut Value, change: &FieldChange) -> Option<()> {
    let steps: Vec<String> = change.path.split('/').skip(1).map(plain).collect();
    let (last, way) = steps.split_last()?;
    let mut place = value;
    let mut list = None;
    for step in way {
        place = match place {
            Value::Array(items) => {
                let at = match list {
                    Some(field) => items.iter().position(|each| each[field] == step.as_str())?,
                    None => step.parse().ok()?,
                };
                items.get_mut(at)?
            }
            Value::Object(fields) => {
                list = named(step);
                let missing = || Value::Array(Vec::new());
                match list {
                    Some(_) => fields.entry(step.clone()).or_insert_with(missing),
                    None => fields.get_mut(step)?,
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    match place {
        Value::Array(items) => {
            let field = list?;
            items.retain(|each| each[field] != last.as_str());
            if let Some(new) = &change.new {
                let after = change.after.as_deref();
                let before =
                    after.and_then(|after| items.iter().position(|each| each[field] == after));
                let at = match (after, before) {
                    (None, _) => 0,
                    (Some(_), Some(before)) => before + 1,
                    (Some(_), None) => items.len(),
                };
                items.insert(at, new.clone());
            }
        }
        Value::Object(fields) => {
            match &change.new {
                Some(new) => fields.insert(last.clone(), new.clone()),
                None => fields.remove(last),
            };
            // Only things that record who wrote their fields come with a `by`: others refuse it.
            match change.by {
                Some(who) => {
                    let none = || Value::Object(Map::new());
                    if let Value::Object(by) = fields.entry("by").or_insert_with(none) {
                        by.insert(last.clone(), who.as_str().into());
                    }
                }
                None => {
                    if let Some(Value::Object(by)) = fields.get_mut("by") {
                        by.remove(last);
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::length::Length;
    use crate::origin::Origins;
    use crate::script::{CastMember, Line, Scene, Shot};

    fn script(shots: &[(&str, &str)]) -> Script {
        let json = r#"{"longtake": 1, "title": "Lamp", "scenes": []}"#;
        let value: Value = serde_json::from_str(json).unwrap();
        let mut made = parse_json(
            r#"{"longtake": 1, "title": "Lamp", "scenes": [{"id": "one", "shots": [{"id": "x", "length": "4 s"}]}]}"#,
        )
        .unwrap()
        .script;
        assert_eq!(value["title"], made.title);
        made.scenes = vec![Scene {
            id: "one".to_owned(),
            heading: String::new(),
            place: String::new(),
            time_of_day: String::new(),
            note: String::new(),
            shots: shots
                .iter()
                .map(|(id, action)| {
                    let mut shot = Shot::new(*id, Length::secs(4));
                    shot.action = (*action).to_owned();
                    shot.by.set("action", By::Model);
                    shot
                })
                .collect(),
            by: Origins::default(),
        }];
        made
    }

    #[test]
    fn all_changes_together_make_the_new_script() {
        let old = script(&[("a", "A door."), ("b", "A lamp."), ("c", "Rain.")]);
        let mut new = script(&[("a", "A door."), ("d", "A dog."), ("b", "A lamp goes out.")]);
        new.title = "Dark/Lamp".to_owned();
        new.cast.push(CastMember {
            name: "MARA".to_owned(),
            ..CastMember::default()
        });
        new.scenes[0].shots[0].lines.push(Line {
            text: "Who is there?".to_owned(),
            ..Line::default()
        });
        let changes = diff(&old, &new);
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "/cast/MARA",
                "/scenes/one/shots/c",
                "/scenes/one/shots/a/lines",
                "/scenes/one/shots/d",
                "/scenes/one/shots/b/action",
                "/title",
            ]
        );
        assert_eq!(changes[4].by, Some(By::Model));
        assert_eq!(diff(&apply(&old, &changes).unwrap(), &new), []);
        assert_eq!(diff(&new, &new), []);
    }

    #[test]
    fn what_records_no_writers_is_changed_without_one() {
        let with_music = |gain: &str| {
            let json = format!(
                r#"{{"longtake": 1, "title": "Lamp", "music": [{{"file": "a.flac", "gain": "{gain}"}}],
                    "scenes": [{{"id": "one", "shots": [{{"id": "x", "length": "4 s"}}]}}]}}"#
            );
            parse_json(&json).unwrap().script
        };
        let (old, new) = (with_music("-6 dB"), with_music("-9 dB"));
        let changes = diff(&old, &new);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(apply(&old, &changes).unwrap(), new);
    }

    #[test]
    fn changes_say_what_they_are_about() {
        let of = |path: &str| {
            let change = FieldChange {
                path: path.to_owned(),
                old: None,
                new: None,
                after: None,
                by: None,
            };
            let place = change.place();
            format!("{} {} {}", place.kind, place.id, place.field)
        };
        assert_eq!(of("/title"), "film  /title");
        assert_eq!(of("/film/size"), "film  /film/size");
        assert_eq!(of("/cast/MARA~1TOM"), "cast MARA/TOM ");
        assert_eq!(of("/places/quay/about"), "place quay /about");
        assert_eq!(of("/scenes/one"), "scene one ");
        assert_eq!(
            of("/scenes/one/shots/a/lines/0/text"),
            "shot a /lines/0/text"
        );
    }

    #[test]
    fn a_part_of_the_changes_is_taken_alone() {
        let old = script(&[("a", "A door."), ("b", "A lamp.")]);
        let mut new = script(&[("a", "A gate."), ("b", "The sea.")]);
        new.scenes[0].shots[1].by.set("action", By::Rule);
        let changes = diff(&old, &new);
        let taken = apply(&old, &changes[1..]).unwrap();
        assert_eq!(taken.scenes[0].shots[0].action, "A door.");
        assert_eq!(taken.scenes[0].shots[1].action, "The sea.");
        assert_eq!(taken.scenes[0].shots[1].by.get("action"), Some(By::Rule));
        let other = script(&[("z", "Another film.")]);
        assert!(apply(&other, &changes).is_err());
    }
}
