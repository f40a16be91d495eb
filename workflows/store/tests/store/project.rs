//! Entities, undo, settings, kept media.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine_base::{Clock, Code, ContentHash, ManualClock};
use flow_store::project::{Change, CommandRecord, Entity, Expected, ProjectDb, TakeRow};
use flow_store::{StoreError, StoredPort, StoredValue};
use serde_json::{Value, json};

use crate::support::{adopt, commit_file, key, open, result, snapshot};

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::at(1_700_000_000_000))
}

fn create(dir: &Path) -> ProjectDb {
    ProjectDb::create(&dir.join("Film.longtake"), clock()).unwrap()
}

fn put(id: &str, order_key: &str, body: Value, expected: Expected) -> Change {
    Change::Put {
        kind: "shot".to_owned(),
        id: id.to_owned(),
        order_key: order_key.to_owned(),
        body,
        expected,
    }
}

fn delete(id: &str, expected: Expected) -> Change {
    Change::Delete {
        kind: "shot".to_owned(),
        id: id.to_owned(),
        expected,
    }
}

fn set(name: &str, value: Value) -> Change {
    Change::Set {
        name: name.to_owned(),
        value: Some(value),
    }
}

fn edit(project: &ProjectDb, id: &str, forward: Vec<Change>) -> CommandRecord {
    let command = CommandRecord {
        id: id.to_owned(),
        kind: "edit".to_owned(),
        name: "shot.change".to_owned(),
        body: json!({"why": id}),
        backward: project.inverse_of(&forward).unwrap(),
        forward,
        at_millis: 5,
    };
    project.record(command.clone()).unwrap();
    command
}

fn bodies(project: &ProjectDb) -> Vec<(String, Value)> {
    let shots = project.list("shot").unwrap();
    shots.into_iter().map(|shot| (shot.id, shot.body)).collect()
}

#[test]
fn entities_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let project = create(dir.path());
    let changes = vec![
        put(
            "c",
            "m",
            json!({"version": 1, "name": "dusk"}),
            Expected::Absent,
        ),
        put("a", "z", json!(2), Expected::Absent),
        put("b", "a", json!([0.1, u64::MAX, "é"]), Expected::Any),
        set("fps", json!("24000/1001")),
    ];
    let written = project.apply(changes).unwrap();
    assert_eq!(written.len(), 3);
    drop(project);
    let project = ProjectDb::open(&dir.path().join("Film.longtake"), clock()).unwrap();
    let shots = project.list("shot").unwrap();
    let ids: Vec<_> = shots.iter().map(|shot| shot.id.as_str()).collect();
    assert_eq!(ids, ["b", "c", "a"]);
    assert_eq!(shots[0].body, json!([0.1, u64::MAX, "é"]));
    assert_eq!(
        project.get("shot", "c").unwrap().as_ref(),
        Some(&written[0])
    );
    assert_eq!(project.get("scene", "c").unwrap(), None);
    assert_eq!(project.setting("fps").unwrap(), Some(json!("24000/1001")));
    assert_eq!(project.settings().unwrap().len(), 1);
}

#[test]
fn a_conflict_changes_nothing_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let project = create(dir.path());
    let first = project
        .apply(vec![put("a", "a", json!(1), Expected::Absent)])
        .unwrap()
        .remove(0);
    let second = project
        .apply(vec![put(
            "a",
            "a",
            json!(2),
            Expected::Revision(first.revision),
        )])
        .unwrap()
        .remove(0);
    assert!(second.revision > first.revision);
    let stale = Expected::Revision(first.revision);
    for conflicting in [
        put("a", "a", json!(3), stale),
        put("a", "a", json!(3), Expected::Absent),
        put("none", "a", json!(3), stale),
        delete("a", stale),
    ] {
        let changes = vec![put("b", "b", json!(0), Expected::Any), conflicting.clone()];
        let refused = project.apply(changes).unwrap_err();
        assert!(
            matches!(refused, StoreError::Conflict { .. }),
            "{conflicting:?}: {refused}"
        );
        assert_eq!(bodies(&project), [("a".to_owned(), json!(2))]);
    }
    project
        .apply(vec![delete("a", Expected::Revision(second.revision))])
        .unwrap();
    let again: Entity = project
        .apply(vec![put("a", "a", json!(9), Expected::Absent)])
        .unwrap()
        .remove(0);
    assert!(
        again.revision > second.revision,
        "a revision was used twice"
    );
}

#[test]
fn undo_and_redo_walk_the_log_and_survive_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut project = create(dir.path());
    let mut states = vec![(bodies(&project), project.settings().unwrap())];
    let edits = [
        vec![
            put("a", "a", json!(1), Expected::Absent),
            set("lang", json!("en")),
        ],
        vec![
            put("a", "b", json!(2), Expected::Any),
            put("b", "a", json!(3), Expected::Any),
        ],
        vec![delete("a", Expected::Any), set("lang", json!("ar"))],
    ];
    let mut commands = Vec::new();
    for (at, forward) in edits.into_iter().enumerate() {
        commands.push(edit(&project, &format!("{at}"), forward));
        states.push((bodies(&project), project.settings().unwrap()));
    }
    let reopen = |project: ProjectDb| {
        let dir = project.dir().to_owned();
        drop(project);
        ProjectDb::open(&dir, clock()).unwrap()
    };
    for at in (0..3).rev() {
        assert_eq!(project.undo().unwrap().as_ref(), Some(&commands[at]));
        assert_eq!((bodies(&project), project.settings().unwrap()), states[at]);
        project = reopen(project);
    }
    assert_eq!(project.undo().unwrap(), None);
    for at in 0..3 {
        assert_eq!(
            project.undo_state().unwrap().redo.as_ref(),
            Some(&commands[at])
        );
        assert_eq!(project.redo().unwrap().as_ref(), Some(&commands[at]));
        assert_eq!(
            (bodies(&project), project.settings().unwrap()),
            states[at + 1]
        );
        project = reopen(project);
    }
    assert_eq!(project.redo().unwrap(), None);

    project.undo().unwrap();
    project.undo().unwrap();
    edit(
        &project,
        "other",
        vec![put("c", "c", json!(5), Expected::Any)],
    );
    assert_eq!(
        project.redo().unwrap(),
        None,
        "a new edit drops what could be redone"
    );
    assert_eq!(project.undo_state().unwrap().undo.unwrap().id, "other");
    project.undo().unwrap();
    assert_eq!(bodies(&project), states[1].0);
}

#[test]
fn a_command_that_conflicts_leaves_the_log_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let project = create(dir.path());
    edit(
        &project,
        "1",
        vec![put("a", "a", json!(1), Expected::Absent)],
    );
    edit(&project, "2", vec![put("a", "a", json!(2), Expected::Any)]);
    project.undo().unwrap();
    let before = project.undo_state().unwrap();
    let conflicting = CommandRecord {
        forward: vec![put("a", "a", json!(3), Expected::Absent)],
        id: "3".to_owned(),
        ..before.undo.clone().unwrap()
    };
    assert!(project.record(conflicting).is_err());
    // The same id twice would make the log ambiguous.
    assert!(project.record(before.undo.clone().unwrap()).is_err());
    assert_eq!(project.undo_state().unwrap(), before);
    assert_eq!(bodies(&project), [("a".to_owned(), json!(1))]);
}

#[test]
fn projects_are_made_once_and_found_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let absent = ProjectDb::open(&dir.path().join("Film.longtake"), clock()).unwrap_err();
    assert_eq!(absent.code(), Code::NotFound);
    assert!(
        snapshot(dir.path()).is_empty(),
        "looking for a project made something"
    );
    drop(create(dir.path()));
    let twice = ProjectDb::create(&dir.path().join("Film.longtake"), clock()).unwrap_err();
    assert_eq!(twice.code(), Code::Refused);
}

#[test]
fn a_project_of_a_newer_version_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    drop(create(dir.path()));
    let path = dir.path().join("Film.longtake/project.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&3u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    let before = snapshot(dir.path());
    let refused = ProjectDb::open(&dir.path().join("Film.longtake"), clock()).unwrap_err();
    assert!(
        matches!(refused, StoreError::NewerSchema { got: 3, .. }),
        "{refused}"
    );
    assert_eq!(snapshot(dir.path()), before);
    // Nor is a cache taken for a project.
    drop(open(&dir.path().join("cache")));
    fs::copy(dir.path().join("cache/cache.db"), &path).unwrap();
    let refused = ProjectDb::open(&dir.path().join("Film.longtake"), clock()).unwrap_err();
    assert!(
        matches!(refused, StoreError::NotADatabase { .. }),
        "{refused}"
    );
}

#[test]
fn takes_are_noted_once_and_outlive_undo_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let project = create(dir.path());
    let take = |name: &str, at_millis: u64| TakeRow {
        shot: "boats".to_owned(),
        content: ContentHash::of(name.as_bytes()),
        at_millis,
        made: json!({ "name": name }),
    };
    edit(
        &project,
        "1",
        vec![put("boats", "a", json!({}), Expected::Absent)],
    );
    let before = project.revision().unwrap();
    assert!(project.note_take(take("one", 7)).unwrap());
    assert!(project.note_take(take("another", 8)).unwrap());
    let after = project.revision().unwrap();
    assert!(after > before);
    // The first account of how it was made stays.
    let mut again = take("one", 9);
    again.made = json!({ "name": "told otherwise" });
    assert!(!project.note_take(again).unwrap());
    assert_eq!(project.revision().unwrap(), after);
    project.undo().unwrap().unwrap();
    assert_eq!(project.get("shot", "boats").unwrap(), None);
    let expected = [take("one", 7), take("another", 8)];
    assert_eq!(project.takes().unwrap(), expected);
    drop(project);
    let project = ProjectDb::open(&dir.path().join("Film.longtake"), clock()).unwrap();
    assert_eq!(project.takes().unwrap(), expected);
}

#[test]
fn kept_results_outlive_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let project = create(dir.path());
    let store = open(&dir.path().join("cache"));
    let take = commit_file(&store, 1, 50_000);
    let other = adopt(&store, b"a mask");
    let mut new = result(
        2,
        flow_store::Exactness::Recorded,
        vec![
            StoredValue::Small("a reply".into()),
            StoredValue::Blob(other.clone()),
        ],
    );
    new.ports.push(StoredPort {
        list: true,
        elements: vec![StoredValue::Blob(take.clone())],
    });
    store.commit(new).unwrap();
    let found = store.lookup(&[key(1), key(2)]).unwrap();
    for result in found.iter().flatten() {
        project.keep_result(&store, "test.node", result).unwrap();
    }
    assert_eq!(
        project.restore_kept(&store).unwrap(),
        0,
        "the cache has them"
    );
    store.prune(0, false).unwrap();
    assert!(store.blob_path(&take.hash).is_err());
    assert_eq!(project.media().unwrap().len(), 2);
    let bytes = fs::read(project.media_path(&take.hash).unwrap()).unwrap();
    assert_eq!(ContentHash::of(&bytes), take.hash);

    let fresh = open(&dir.path().join("another machine"));
    assert_eq!(project.restore_kept(&fresh).unwrap(), 2);
    let restored = fresh.lookup(&[key(1), key(2)]).unwrap();
    for (had, got) in found.iter().flatten().zip(restored.iter().flatten()) {
        assert_eq!((&had.ports, had.content), (&got.ports, got.content));
    }
    assert!(restored.iter().all(Option::is_some) && fresh.check(true).unwrap().is_sound());
}

#[test]
fn a_damaged_file_of_the_cache_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let project = create(dir.path());
    let store = open(&dir.path().join("cache"));
    let blob = commit_file(&store, 1, 1000);
    let path = store.blob_path(&blob.hash).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, vec![0; 1000]).unwrap();
    let refused = project.keep_blob(&store, &blob).unwrap_err();
    assert_eq!(refused.code(), Code::Corrupt, "{refused}");
    assert!(project.media().unwrap().is_empty());
    assert!(project.media_path(&blob.hash).is_err());
}

/// `levels` lists in each other.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn values_too_deep_to_be_read_again_are_refused_and_the_deepest_others_are_undone() {
    let dir = tempfile::tempdir().unwrap();
    let project = create(dir.path());
    let any = |body| vec![put("a", "m", body, Expected::Any)];
    edit(&project, "first", any(nested(100)));
    edit(&project, "second", any(json!({"flat": true})));
    // Inside a command the value stands two levels deeper.
    project.undo().unwrap().unwrap();
    let read = project.get("shot", "a").unwrap().unwrap();
    assert_eq!(read.body, nested(100));
    let command = |body: Value, forward: Vec<Change>| CommandRecord {
        id: "third".to_owned(),
        kind: "edit".to_owned(),
        name: "shot.change".to_owned(),
        body,
        backward: Vec::new(),
        forward,
        at_millis: 5,
    };
    for refused in [
        project.apply(any(nested(101))),
        project.apply(vec![set("size", nested(101))]),
        project.record(command(nested(101), Vec::new())),
        project.record(command(json!({}), any(nested(101)))),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, StoreError::TooDeep { .. }), "{error}");
        assert_eq!(error.code(), Code::BadInput);
    }
    assert_eq!(project.list("shot").unwrap(), [read]);
    assert_eq!(project.setting("size").unwrap(), None);
}
