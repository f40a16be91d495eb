#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use serde_json::json;

use super::script_form::ScriptForm;
use super::*;

pub(super) struct Bench {
    pub(super) desk: Arc<Desk>,
    pub(super) folder: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.desk.stop();
    }
}

fn open(folder: &Path) -> Arc<Desk> {
    Desk::open(DeskOptions {
        data_folder: folder.join("data"),
        cache_folder: Some(folder.join("cache")),
        projects_folder: Some(folder.join("projects")),
        confined_to: None,
        program: "test".into(),
    })
    .unwrap()
}

pub(super) fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let desk = open(folder.path());
    Bench { desk, folder }
}

impl Bench {
    #[track_caller]
    pub(super) fn call(&self, name: &str, args: Value) -> Value {
        self.desk.call(name, args).unwrap()
    }

    pub(super) fn create(&self, name: &str) -> (String, Value) {
        let state = self.call(
            "project.create",
            json!({ "name": name, "preset": "wide", "fps": "24", "language": "en" }),
        );
        (state["project"].as_str().unwrap().to_owned(), state)
    }
}

#[test]
fn a_script_is_of_the_form_that_other_languages_are_told() {
    let text = include_str!("../../../../assets/samples/the-door-left-open.md");
    let script = flow_story::parse_markdown(text).unwrap().script;
    let value = crate::rewrite::to_value(&script).unwrap();
    let form: ScriptForm = serde_json::from_value(value).unwrap();
    assert_eq!(form.scenes.len(), script.scenes.len());
    let all = r#"{"longtake": 1, "title": "T", "cast": [{"name": "A", "look": "x", "voice": "y",
        "by": {"look": "model"}}], "places": [{"id": "p", "name": "P", "look": "l"}],
        "music": [{"file": "bed-dawn", "gain": -3, "fade_in": "1 s"}],
        "scenes": [{"id": "s", "heading": "H", "place": "p", "time": "dusk", "note": "n",
        "shots": [{"id": "a", "length": "4 s", "video": {"file": "v.mp4", "from": "1 s",
        "sound": -6}, "titles": [{"role": "lower-third", "text": "T", "at": "1 s", "for": "2 s",
        "fade": "0.2 s"}], "sounds": [{"kind": "effect", "file": "s.wav", "at": "1 s"}],
        "lines": [{"speaker": "A", "extensions": ["V.O."], "text": "Hi.", "at": "1 s", "gain": 1}]},
        {"id": "b", "length": "4 s", "colour": "black", "transition": "cross-fade 1 s",
        "fade_out": "1 s", "move": "push 1 -> 1.2"}]}],
        "credits": {"length": "3 s", "lines": ["Z"]}}"#;
    let script = flow_story::parse_json(all).unwrap().script;
    let value = crate::rewrite::to_value(&script).unwrap();
    serde_json::from_value::<ScriptForm>(value).unwrap();
}

#[test]
fn a_project_is_made_edited_and_found_again() {
    let bench = bench();
    let (project, state) = bench.create("Boats");
    assert_eq!(state["script"]["title"], "Boats");
    assert_eq!(state["film"]["width_px"], 1920);
    assert_eq!(state["shots"]["shot-1"]["state"], "missing");
    let revision = state["revision"].as_u64().unwrap();
    let edit = json!({ "edit": "set", "kind": "shot", "id": "shot-1", "field": "/action",
        "value": "A Boat leaves." });
    let done = bench.call("project.edit", json!({ "project": project, "edit": edit }));
    assert_eq!(done["label"], "shot shot-1: action");
    assert!(done["revision"].as_u64().unwrap() > revision);
    let found = bench.call(
        "project.find",
        json!({ "project": project, "text": "boat" }),
    );
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
    bench.call(
        "project.snapshot",
        json!({ "project": project, "name": "first" }),
    );
    bench.call("project.undo", json!({ "project": project }));
    let state = bench.call("project.state", json!({ "project": project }));
    assert_eq!(state["redo"]["label"], "shot shot-1: action");
    assert_eq!(state["snapshots"][0]["name"], "first");
    let restored = bench.call(
        "project.restore",
        json!({ "project": project, "name": "first" }),
    );
    assert_eq!(restored["label"], "snapshot \"first\" restored");
    let recent = bench.call("app.recent", json!({}));
    assert_eq!(recent[0]["title"], "Boats");
    // The lint's own fixes are edits that are taken.
    let state = bench.call("project.state", json!({ "project": project }));
    for message in state["lint"].as_array().unwrap() {
        if let Some(fix) = message.get("fix") {
            let args = json!({ "project": project, "edit": fix["edit"] });
            bench.call("project.edit", args);
        }
    }
}

#[test]
fn wrong_arguments_and_names_are_said() {
    let bench = bench();
    let error = |name: &str, args: Value| bench.desk.call(name, args).unwrap_err();
    assert_eq!(error("app.nothing", json!({})).code, Code::NotFound);
    assert_eq!(error("project.state", json!({})).code, Code::BadInput);
    let relative = error("project.open", json!({ "project": "a.longtake" }));
    assert!(relative.message.contains("absolute"), "{relative}");
    let extra = error("app.state", json!({ "x": 1 }));
    assert!(extra.message.contains("app.state"), "{extra}");
    for preset in [
        json!({ "fps": "0" }),
        json!({ "fps": "soon" }),
        json!({ "name": "" }),
    ] {
        let mut args = json!({ "name": "N", "preset": "tall", "fps": "24", "language": "en" });
        for (key, value) in preset.as_object().unwrap() {
            args[key] = value.clone();
        }
        assert_eq!(
            error("project.create", args).code,
            Code::BadInput,
            "{preset}"
        );
    }
    let left = std::fs::read_dir(bench.folder.path().join("projects"));
    assert!(
        left.map_or(0, Iterator::count) == 0,
        "no folder is left of a refused project"
    );
}

#[test]
fn names_of_any_kind_make_folders_that_can_be() {
    let bench = bench();
    let mut seen = std::collections::BTreeSet::new();
    for name in [
        "a/b\\c",
        "🐙 film",
        "שלום עולם",
        "..",
        "con.",
        "Boats",
        "Boats",
    ] {
        let (project, state) = bench.create(name);
        let parent = Path::new(&project).parent().unwrap().to_owned();
        let projects = bench.folder.path().join("projects").canonicalize().unwrap();
        assert_eq!(parent, projects, "{name}");
        assert_eq!(state["script"]["title"], name.trim());
        assert!(seen.insert(project), "{name}");
    }
}

#[test]
fn a_confined_desk_opens_nothing_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(DeskOptions {
        data_folder: folder.path().join("data"),
        cache_folder: Some(folder.path().join("cache")),
        projects_folder: Some(folder.path().join("projects")),
        confined_to: Some(Vec::new()),
        program: "test".into(),
    })
    .unwrap();
    std::fs::create_dir_all(folder.path().join("projects")).unwrap();
    let outside = folder.path().join("Out.longtake");
    let dotted = folder.path().join("projects/../Out.longtake");
    for path in [&outside, &dotted] {
        let args = json!({ "project": path });
        let error = desk.call("project.open", args).unwrap_err();
        assert_eq!(error.code, Code::NotPermitted, "{error}");
    }
    let inside = json!({ "project": folder.path().join("projects/In.longtake") });
    assert_eq!(
        desk.call("project.open", inside).unwrap_err().code,
        Code::NotFound
    );
    desk.stop();
}

#[test]
fn a_second_desk_on_the_same_folder_is_refused() {
    let bench = bench();
    let again = Desk::open(DeskOptions {
        data_folder: bench.folder.path().join("data"),
        cache_folder: None,
        projects_folder: None,
        confined_to: None,
        program: "test".into(),
    });
    assert_eq!(again.unwrap_err().code, Code::Busy);
}

#[test]
fn settings_are_kept_and_wrong_ones_refused() {
    let bench = bench();
    let set = |field: &str, value: Value| {
        let args = json!({ "field": field, "value": value });
        bench.desk.call("settings.set", args)
    };
    assert_eq!(
        set("theme", json!("dark")).unwrap()["settings"]["theme"],
        "dark"
    );
    assert_eq!(
        set("llm", json!("http://127.0.0.1:9/v1")).unwrap()["settings"]["llm"],
        "http://127.0.0.1:9/v1"
    );
    for (field, value) in [
        ("theme", json!("pink")),
        ("text_scale", json!(9)),
        ("cache_cap_bytes", json!(5)),
        ("nothing", json!(1)),
        ("projects_folder", json!("relative")),
    ] {
        assert_eq!(
            set(field, value).unwrap_err().code,
            Code::BadInput,
            "{field}"
        );
    }
    let with_key = set("llm_key", json!("sk-secret")).unwrap();
    assert_eq!(with_key["llm_key_set"], true);
    assert!(!with_key.to_string().contains("sk-secret"));
    let file = with_key["llm_key_file"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "sk-secret");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only this user reads it");
    }
    // An address may carry secrets of its own.
    let address = "http://maker:pass-77@127.0.0.1:9/v1?key=query-77";
    set("llm", json!(address)).unwrap();
    let bundle = bench.call("diagnostics.bundle", json!({}));
    let text = std::fs::read_to_string(bundle["path"].as_str().unwrap()).unwrap();
    assert!(
        !text.contains("sk-secret") && !text.contains("-77") && text.contains("127.0.0.1:9/…"),
        "{text}"
    );
    assert_eq!(set("llm_key", Value::Null).unwrap()["llm_key_set"], false);
    let asked = bench.call("settings.test_llm", json!({}));
    assert_eq!(asked["ok"], false, "nobody listens there: {asked}");
    assert_eq!(
        set("llm", Value::Null).unwrap()["settings"].get("llm"),
        None
    );
}

#[test]
fn waiting_jobs_are_moved_paused_cancelled_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let desk = open(folder.path());
    desk.call(
        "settings.set",
        json!({ "field": "resume_jobs", "value": false }),
    )
    .unwrap();
    // Nobody carries these out.
    desk.stop_workers();
    let ids: Vec<i64> = ["one", "two", "three"]
        .iter()
        .map(|text| {
            let job = desk.call("voice.hear", json!({ "text": text })).unwrap();
            job["job"].as_i64().unwrap()
        })
        .collect();
    let order = |desk: &Desk| -> Vec<(i64, String)> {
        let list = desk.call("queue.list", json!({})).unwrap();
        let job = |job: &Value| {
            let state = job["state"].as_str().unwrap().to_owned();
            (job["id"].as_i64().unwrap(), state)
        };
        list.as_array().unwrap().iter().map(job).collect()
    };
    desk.call("queue.move", json!({ "id": ids[2], "before": ids[0] }))
        .unwrap();
    desk.call("queue.pause", json!({ "id": ids[0] })).unwrap();
    desk.call("queue.cancel", json!({ "id": ids[1] })).unwrap();
    let expected = [
        (ids[2], "waiting".to_owned()),
        (ids[0], "paused".to_owned()),
        (ids[1], "cancelled".to_owned()),
    ];
    assert_eq!(order(&desk), expected);
    let refused = desk
        .call("queue.resume", json!({ "id": ids[1] }))
        .unwrap_err();
    assert_eq!(refused.code, Code::Refused);
    assert_eq!(
        desk.call("queue.log", json!({ "id": 99 }))
            .unwrap_err()
            .code,
        Code::NotFound
    );
    // A process that was killed while one ran leaves this behind.
    let mut row = desk.db.jobs().unwrap().remove(0);
    row.state = "running".into();
    row.shown["state"] = json!("running");
    desk.db.update(&row).unwrap();
    desk.stop();
    drop(desk);
    let desk = open(folder.path());
    let mut after = expected.clone();
    after[0].1 = "interrupted".into();
    assert_eq!(
        order(&desk),
        after,
        "a lost job is never shown as done, nor as running"
    );
    let lines = desk.call("queue.log", json!({ "id": ids[2] })).unwrap();
    assert_eq!(lines, json!(["the program ended while this ran"]));
    desk.call("queue.cancel", json!({ "id": ids[2] })).unwrap();
    desk.call("queue.clear", json!({})).unwrap();
    assert_eq!(order(&desk), [(ids[0], "paused".to_owned())]);
    desk.stop();
}
