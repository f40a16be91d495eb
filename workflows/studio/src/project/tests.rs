#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner};

use engine_base::ContentHash;

use super::*;
use crate::studio::system_clock;

/// A project of two scenes with three shots, in memory where the system has a folder for that:
/// thousands of edits are synced one by one.
fn project() -> (tempfile::TempDir, Project) {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    };
    let path = folder.path().join("Test.longtake");
    let project = Project::open(&path, true, "test", &system_clock()).unwrap();
    for (name, content) in pictures() {
        let file = json!({ "content": content, "media_type": "image/png" });
        let setting = format!("asset.picture.{name}");
        project.core.db.set_setting(&setting, file).unwrap();
    }
    let script = json!({
        "longtake": 1, "title": "T", "cast": [{ "name": "Ada" }],
        "scenes": [
            { "id": "one", "shots": [
                { "id": "a", "length": "2 s", "colour": "black", "action": "A." },
                { "id": "b", "length": "2 s", "colour": "black" },
            ]},
            { "id": "two", "shots": [{ "id": "c", "length": "2 s", "colour": "white" }] },
        ],
    });
    project.edit(&Edit::ImportScript { script }, None).unwrap();
    (folder, project)
}

/// Pictures that the project knows, by name.
fn pictures() -> [(&'static str, ContentHash); 3] {
    ["p1.png", "p2.png", "p3.png"].map(|name| (name, ContentHash::of(name.as_bytes())))
}

type PlainRows = Vec<(Kind, String, String, Value)>;
type State = (PlainRows, BTreeMap<String, Value>);

/// Everything of the rows but their revisions, which only ever rise, and what is thought of takes.
fn state(project: &Project) -> State {
    let mut settings = project.core.db.settings().unwrap();
    settings.retain(|name, _| name.starts_with("take."));
    (plain(&project.core.rows().unwrap()), settings)
}

fn plain(rows: &Rows) -> PlainRows {
    let of = |kind: Kind| {
        let row = move |row: &Entity| {
            (
                kind,
                row.id.clone(),
                row.order_key.clone(),
                row.body.clone(),
            )
        };
        rows.of(kind).iter().map(row).collect::<Vec<_>>()
    };
    Kind::ALL.into_iter().flat_map(of).collect()
}

/// The state that the log gives when its commands are made again on nothing.
fn replayed(project: &Project) -> State {
    let log = project.core.db.log().unwrap();
    let rows = log.iter().fold(Rows::default(), |rows, command| {
        rows.after(&command.forward)
    });
    let mut settings = BTreeMap::new();
    for change in log.iter().flat_map(|command| &command.forward) {
        match change {
            Change::Set {
                name,
                value: Some(value),
            } => drop(settings.insert(name.clone(), value.clone())),
            Change::Set { name, value: None } => drop(settings.remove(name)),
            Change::Put { .. } | Change::Delete { .. } => {}
        }
    }
    (plain(&rows), settings)
}

fn one_edit() -> impl Strategy<Value = Edit> {
    let shot = prop::sample::select(vec!["a", "b", "c", "d", "nobody"]);
    let scene = prop::sample::select(vec!["one", "two", "one", "two", "three"]);
    let text = prop::sample::select(vec!["", "Rain.", "🐙 / שלום", "a\tb", "ende\n"]);
    // Most fit their field; some do not, and are refused.
    let field = prop::sample::select(vec![
        ("/action", json!("Rain.")),
        ("/action", json!("🐙 / שלום")),
        ("/note", json!("a\tb")),
        ("/framing", json!("wide")),
        ("/framing", Value::Null),
        ("/length", json!("3 s")),
        ("/length", json!("soon")),
        ("/lines", json!([{ "text": "Hello." }])),
        ("/lines/0/text", json!("Good night.")),
        ("/titles", json!("none")),
        ("/negative", json!("no people")),
        ("/seed", json!("7 locked")),
        ("/seed", json!("often")),
        ("/model", json!("stills")),
        ("/id", json!("e")),
    ]);
    let after = prop::option::of(prop::sample::select(vec!["a", "b", "c", "d"]));
    let set = (shot.clone(), field).prop_map(|(id, (field, value))| Edit::Set {
        kind: Kind::Shot,
        id: id.into(),
        field: field.into(),
        value,
    });
    let title = text.prop_map(|text| Edit::Set {
        kind: Kind::Film,
        id: String::new(),
        field: "/title".into(),
        value: json!(text),
    });
    let new = prop::sample::select(vec!["d", "e", "f", "g", "a"]);
    let add =
        (new.clone(), scene.clone(), after.clone()).prop_map(|(id, scene, after)| Edit::Add {
            kind: Kind::Shot,
            body: json!({ "id": id, "length": "1 s", "colour": "#102030" }),
            scene: Some(scene.into()),
            after: after.map(str::to_owned),
        });
    let new_scene = prop::sample::select(vec!["three", "four", "one"]);
    let add_scene = (new_scene, new).prop_map(|(id, shot)| Edit::Add {
        kind: Kind::Scene,
        body: json!({ "id": id, "shots": [{ "id": shot, "length": "1 s", "colour": "black" }] }),
        scene: None,
        after: None,
    });
    let remove = shot.clone().prop_map(|id| Edit::Remove {
        kind: Kind::Shot,
        id: id.into(),
    });
    let remove_scene = scene.clone().prop_map(|id| Edit::Remove {
        kind: Kind::Scene,
        id: id.into(),
    });
    let put = (shot, prop::option::of(scene), after).prop_map(|(id, scene, after)| Edit::Move {
        kind: Kind::Shot,
        id: id.into(),
        scene: scene.map(str::to_owned),
        after: after.map(str::to_owned),
    });
    let shows = (prop::sample::select(vec!["a", "b", "c"]), 0..3usize).prop_map(|(id, at)| {
        let set = |field: &str, value: Value| Edit::Set {
            kind: Kind::Shot,
            id: id.into(),
            field: field.into(),
            value,
        };
        Edit::Several {
            label: "picture".into(),
            edits: vec![
                set("/colour", Value::Null),
                set("/picture", json!(pictures()[at].0)),
            ],
        }
    });
    let of_take = (prop::sample::select(vec!["a", "b", "c"]), 0..3usize, 0..8u8);
    let take = of_take.prop_map(|(shot, at, what)| {
        let (shot, take) = (shot.to_owned(), pictures()[at].1.to_hex());
        match what {
            0..3 => Edit::ChooseTake { shot, take },
            3 => Edit::RemoveTake { shot, take },
            rating => Edit::RateTake {
                shot,
                take,
                rating: rating - 1,
            },
        }
    });
    prop_oneof![
        4 => shows, 6 => take, 4 => set, 1 => title, 4 => add, 2 => add_scene, 2 => remove, 1 => remove_scene, 3 => put
    ]
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let several = prop::collection::vec(one_edit(), 1..4).prop_map(|edits| Edit::Several {
        label: "together".into(),
        edits,
    });
    prop::collection::vec(prop_oneof![5 => one_edit(), 1 => several], 1..4)
}

fn edit_parts(edit: &Edit) -> Vec<&Edit> {
    match edit {
        Edit::Several { edits, .. } => edits.iter().collect(),
        one => vec![one],
    }
}

/// Make the edits; take all of them back step by step; do them again.
fn there_and_back(
    project: &Project,
    edits: &[Edit],
    kinds: &mut BTreeMap<&'static str, usize>,
) -> Result<usize, TestCaseError> {
    let mut states = vec![state(project)];
    for edit in edits {
        let before = states.last().cloned().unwrap_or_default();
        match project.edit(edit, None) {
            Ok(done) if done.changed > 0 => {
                let after = state(project);
                prop_assert_ne!(&after, &before, "{:?}", edit);
                prop_assert!(project.script().is_ok(), "{:?}", edit);
                for each in edit_parts(edit) {
                    let seen = kinds.entry(each.name()).or_insert(0usize);
                    *seen += 1;
                }
                states.push(after);
            }
            Ok(_) | Err(_) => prop_assert_eq!(&state(project), &before, "{:?}", edit),
        }
    }
    let made = states.len() - 1;
    prop_assert_eq!(&replayed(project), &states[made]);
    for former in states[..made].iter().rev() {
        prop_assert!(project.step(true).unwrap().is_some());
        prop_assert_eq!(&state(project), former);
    }
    prop_assert_eq!(&replayed(project), &states[0]);
    for _ in 0..made {
        prop_assert!(project.step(false).unwrap().is_some());
    }
    prop_assert_eq!(&state(project), &states[made]);
    prop_assert_eq!(&replayed(project), &states[made]);
    for _ in 0..made {
        project.step(true).unwrap();
    }
    prop_assert_eq!(&state(project), &states[0]);
    Ok(made)
}

#[test]
fn a_thousand_sequences_of_edits_go_there_and_back() {
    let (_folder, project) = project();
    let config = ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let made = std::cell::Cell::new(0);
    let kinds = std::cell::RefCell::new(BTreeMap::new());
    runner
        .run(&edits(), |edits| {
            let kinds = &mut kinds.borrow_mut();
            made.set(made.get() + there_and_back(&project, &edits, kinds)?);
            Ok(())
        })
        .unwrap();
    let kinds = kinds.into_inner();
    for kind in [
        "choose_take",
        "rate_take",
        "remove_take",
        "set",
        "add",
        "remove",
        "move",
    ] {
        assert!(kinds.get(kind).is_some_and(|made| *made >= 20), "{kinds:?}");
    }
    // Most are right ones: a generator of refused edits would show nothing.
    assert!(made.get() > 700, "{} edits were made", made.get());
}

#[test]
fn several_edits_are_one_step_or_none() {
    let (_folder, project) = project();
    let before = state(&project);
    let set = |id: &str, text: &str| Edit::Set {
        kind: Kind::Shot,
        id: id.into(),
        field: "/action".into(),
        value: json!(text),
    };
    let several = |edits| Edit::Several {
        label: "two texts".into(),
        edits,
    };
    let wrong = several(vec![set("a", "New."), set("nobody", "New.")]);
    let error = project.edit(&wrong, None).unwrap_err();
    assert!(error.message.contains("edit 2 of 2"), "{error}");
    assert_eq!(state(&project), before);
    let right = several(vec![set("a", "One."), set("a", "Two."), set("b", "Three.")]);
    let done = project.edit(&right, None).unwrap();
    assert_eq!((done.changed, done.label.text.as_str()), (2, "two texts"));
    assert_eq!(
        project.step(true).unwrap().map(|said| said.text).as_deref(),
        Some("two texts")
    );
    assert_eq!(state(&project), before);
}

#[test]
fn an_edit_that_is_sent_again_is_made_once() {
    let (_folder, project) = project();
    let add = Edit::Add {
        kind: Kind::Cast,
        body: json!({ "name": "Tom" }),
        scene: None,
        after: None,
    };
    assert_eq!(project.edit(&add, Some("key-1")).unwrap().changed, 1);
    let once = state(&project);
    let again = project.edit(&add, Some("key-1")).unwrap();
    assert_eq!(
        (again.changed, again.label.text.as_str()),
        (0, "cast Tom added")
    );
    assert_eq!(state(&project), once);
    // As another edit it is refused: the name is taken.
    assert!(project.edit(&add, Some("key-2")).is_err());
    assert!(project.edit(&add, Some(&"x".repeat(65))).is_err());
}

#[test]
fn revisions_rise_with_every_change_and_listeners_are_told() {
    let (_folder, project) = project();
    let told = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&told);
    project.on_change(Arc::new(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }));
    let revision = || project.core.db.revision().unwrap();
    let mut last = revision();
    let remove = Edit::Remove {
        kind: Kind::Shot,
        id: "b".into(),
    };
    let steps: [&dyn Fn(); 3] = [
        &|| drop(project.edit(&remove, None).unwrap()),
        &|| drop(project.step(true).unwrap()),
        &|| drop(project.step(false).unwrap()),
    ];
    for step in steps {
        step();
        assert!(revision() > last);
        last = revision();
    }
    assert_eq!(project.step(false).unwrap(), None);
    assert_eq!(told.load(std::sync::atomic::Ordering::Relaxed), 3);
}
