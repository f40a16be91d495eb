#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use flow_media::still::{SavePicture, SaveSamples, save_still};
use serde_json::{Value, json};

use super::*;
use crate::desk::tests::{Bench, bench};

/// A picture of one colour as a file.
fn painted(folder: &Path, name: &str, grey: u8) -> PathBuf {
    let path = folder.join(name);
    let samples = vec![grey; 320 * 180 * 3];
    let picture = SavePicture {
        width_px: 320,
        height_px: 180,
        channels: 3,
        samples: SaveSamples::U8(&samples),
    };
    save_still(&picture, &path).unwrap();
    path
}

/// A project of three shots, each with a picture of its own that was brought in.
fn film(bench: &Bench) -> String {
    let (project, _) = bench.create("Takes");
    for (at, name) in ["boat.png", "lamp.png", "rain.png", "sea.png"]
        .iter()
        .enumerate()
    {
        let file = painted(bench.folder.path(), name, 40 + 50 * at as u8);
        bench.desk.bring(Path::new(&project), name, &file).unwrap();
    }
    let shot =
        |id: &str, name: &str| json!({ "id": id, "length": "1 s", "picture": name, "depicts": id });
    let script = json!({
        "longtake": 1, "title": "Takes", "size": "320x180", "fps": "12",
        "scenes": [{ "id": "one", "shots": [
            shot("boat", "boat.png"), shot("lamp", "lamp.png"), shot("rain", "rain.png"),
        ]}],
    });
    edit(
        bench,
        &project,
        json!({ "edit": "import_script", "script": script }),
    );
    project
}

fn edit(bench: &Bench, project: &str, edit: Value) -> Value {
    bench.call("project.edit", json!({ "project": project, "edit": edit }))
}

fn set(bench: &Bench, project: &str, shot: &str, field: &str, value: Value) {
    let set = json!({ "edit": "set", "kind": "shot", "id": shot, "field": field, "value": value });
    edit(bench, project, set);
}

fn takes(bench: &Bench, project: &str, shot: &str) -> Vec<Value> {
    let list = bench.call("takes.list", json!({ "project": project, "shot": shot }));
    list.as_array().unwrap().clone()
}

/// Names of the takes; the chosen one in brackets.
fn names(bench: &Bench, project: &str, shot: &str) -> Vec<String> {
    let name = |take: &Value| {
        let name = take["name"].as_str().unwrap();
        if take["chosen"] == true {
            format!("[{name}]")
        } else {
            name.to_owned()
        }
    };
    takes(bench, project, shot).iter().map(name).collect()
}

fn take(bench: &Bench, project: &str, shot: &str, name: &str) -> Value {
    let found = takes(bench, project, shot);
    let found = found.iter().find(|take| take["name"] == name).unwrap();
    json!({ "project": project, "shot": shot, "take": found["take"] })
}

/// Wait for a job to end well; what it gave.
fn done(bench: &Bench, started: &Value) -> Value {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let list = bench.call("queue.list", json!({}));
        let jobs = list.as_array().unwrap().clone();
        let job = jobs
            .into_iter()
            .find(|job| job["id"] == started["job"])
            .unwrap();
        match job["state"].as_str().unwrap() {
            "done" => return job["result"].clone(),
            "waiting" | "running" => {}
            _ => panic!("{job}"),
        }
        assert!(Instant::now() < end, "{job}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn made(bench: &Bench, project: &str, shot: &str) -> Value {
    let started = bench.call("takes.make", json!({ "project": project, "shot": shot }));
    done(bench, &started)
}

fn rendered(bench: &Bench, project: &str) -> (u64, u64) {
    let args = json!({ "project": project, "what": "missing" });
    let plan = bench.call("render.plan", args.clone());
    let result = done(bench, &bench.call("render.start", args));
    let figures = (
        result["made"].as_u64().unwrap(),
        result["reused"].as_u64().unwrap(),
    );
    assert_eq!(plan["to_make"], figures.0, "what was planned was made");
    figures
}

#[test]
fn every_picture_that_a_shot_showed_stays_a_take() {
    let bench = bench();
    let project = film(&bench);
    // The script named it: it is a take without a record of its own making.
    assert_eq!(names(&bench, &project, "boat"), ["[boat.png]"]);
    assert_eq!(takes(&bench, &project, "boat")[0]["by"], "own");
    set(&bench, &project, "boat", "/picture", json!("sea.png"));
    assert_eq!(names(&bench, &project, "boat"), ["boat.png", "[sea.png]"]);
    let undo = || bench.call("project.undo", json!({ "project": project }));
    let redo = || bench.call("project.redo", json!({ "project": project }));
    // What an undo takes off the shot can still be chosen.
    undo();
    assert_eq!(names(&bench, &project, "boat"), ["[boat.png]", "sea.png"]);
    redo();
    let boat = take(&bench, &project, "boat", "boat.png");
    let chosen = bench.call("takes.choose", boat.clone());
    assert_eq!(chosen["label"], "shot boat: another take");
    assert_eq!(names(&bench, &project, "boat"), ["[boat.png]", "sea.png"]);
    let state = bench.call("project.state", json!({ "project": project }));
    assert_eq!(
        state["script"]["scenes"][0]["shots"][0]["picture"],
        "boat.png"
    );
    // Chosen again it changes nothing.
    assert_eq!(bench.call("takes.choose", boat.clone()).get("label"), None);
    undo();
    assert_eq!(names(&bench, &project, "boat"), ["boat.png", "[sea.png]"]);

    let rate = |rating: u64| {
        let mut args = boat.clone();
        args["rating"] = json!(rating);
        bench.desk.call("takes.rate", args)
    };
    rate(4).unwrap();
    rate(5).unwrap();
    let rating = || {
        takes(&bench, &project, "boat")[0]["rating"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(rating(), 5);
    undo();
    assert_eq!(rating(), 4);
    rate(0).unwrap();
    assert_eq!(rating(), 0);
    assert_eq!(rate(6).unwrap_err().code, Code::BadInput);

    let sea = take(&bench, &project, "boat", "sea.png");
    let refused = bench.desk.call("takes.remove", sea).unwrap_err();
    assert_eq!(refused.code, Code::Refused, "{refused}");
    bench.call("takes.remove", boat.clone());
    assert_eq!(names(&bench, &project, "boat"), ["[sea.png]"]);
    let gone = bench.desk.call("takes.choose", boat.clone()).unwrap_err();
    assert_eq!(gone.code, Code::NotFound, "{gone}");
    // Its bytes stay, and undo brings it back.
    let hash: ContentHash = boat["take"].as_str().unwrap().parse().unwrap();
    assert!(bench.desk.media_path(&hash).is_ok());
    undo();
    assert_eq!(names(&bench, &project, "boat"), ["boat.png", "[sea.png]"]);
    let strange = json!({ "project": project, "shot": "boat", "take": "zz" });
    assert_eq!(
        bench.desk.call("takes.choose", strange).unwrap_err().code,
        Code::NotFound
    );
}

#[test]
fn another_take_makes_only_its_shot_again() {
    let bench = bench();
    let project = film(&bench);
    set(&bench, &project, "lamp", "/picture", json!("sea.png"));
    let (all, _) = rendered(&bench, &project);
    assert!(all >= 3, "{all}");
    assert_eq!(rendered(&bench, &project).0, 0);
    bench.call("takes.choose", take(&bench, &project, "lamp", "lamp.png"));
    let state = bench.call("project.state", json!({ "project": project }));
    let of = |state: &Value, shot: &str| state["shots"][shot]["state"].clone();
    assert_eq!(
        [of(&state, "boat"), of(&state, "lamp"), of(&state, "rain")],
        ["made", "missing", "made"]
    );
    let plan = bench.call(
        "render.plan",
        json!({ "project": project, "what": "missing" }),
    );
    let runs: Vec<&str> = plan["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["state"] == "will_run")
        .filter_map(|node| node["shot"].as_str())
        .collect();
    assert_eq!(runs, ["lamp"]);
    let (again, reused) = rendered(&bench, &project);
    assert!(
        again < all && reused >= 2,
        "{again} made, {reused} reused of {all}"
    );
    // Back to the one before: all of it is there.
    bench.call("takes.choose", take(&bench, &project, "lamp", "sea.png"));
    assert_eq!(rendered(&bench, &project).0, 0);
}

#[test]
fn making_another_adds_a_take_with_its_own_seed_unless_the_seed_is_locked() {
    let bench = bench();
    let project = film(&bench);
    let (one, two) = (
        made(&bench, &project, "boat"),
        made(&bench, &project, "boat"),
    );
    for each in [&one, &two] {
        assert_eq!(
            (&each["kept"], &each["new"]),
            (&json!(true), &json!(true)),
            "{each}"
        );
    }
    assert_ne!(one["seed"], two["seed"]);
    assert_ne!(one["take"], two["take"]);
    let list = takes(&bench, &project, "boat");
    assert_eq!(list.len(), 3);
    let found = list
        .iter()
        .find(|take| take["take"] == one["take"])
        .unwrap();
    assert_eq!(
        (&found["by"], &found["seed"]),
        (&json!("stills"), &one["seed"])
    );
    assert!(
        found["prompt"].as_str().unwrap().starts_with("boat"),
        "{found}"
    );
    // The shot shows what it showed: a new take replaces nothing.
    assert_eq!(names(&bench, &project, "boat")[0], "[boat.png]");
    // The last picture, then there is no other one.
    made(&bench, &project, "boat");
    let started = bench.call("takes.make", json!({ "project": project, "shot": "boat" }));
    let end = Instant::now() + Duration::from_secs(60);
    let job = loop {
        let list = bench.call("queue.list", json!({}));
        let job = list
            .as_array()
            .unwrap()
            .iter()
            .find(|job| job["id"] == started["job"]);
        let job = job.unwrap().clone();
        if job["state"] == "failed" || Instant::now() > end {
            break job;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(
        job["error"].as_str().unwrap().contains("every picture"),
        "{job}"
    );
    set(&bench, &project, "rain", "/seed", json!("77 locked"));
    let (first, again) = (
        made(&bench, &project, "rain"),
        made(&bench, &project, "rain"),
    );
    assert_eq!((&first["seed"], &again["seed"]), (&json!(77), &json!(77)));
    assert_eq!(first["take"], again["take"]);
    assert_eq!(again["new"], false);
    let state = bench.call("project.state", json!({ "project": project }));
    assert_eq!(
        state["script"]["scenes"][0]["shots"][2]["seed"],
        "77 locked"
    );
    // A model that makes no pictures yet is refused at once, by name.
    set(&bench, &project, "rain", "/model", json!("painter-9"));
    let refused = bench
        .desk
        .call("takes.make", json!({ "project": project, "shot": "rain" }));
    let refused = refused.unwrap_err();
    assert!(refused.message.contains("painter-9"), "{refused}");
    let makers = bench.call("makers.list", json!({}));
    assert_eq!(
        (&makers[0]["id"], &makers[0]["ready"]),
        (&json!("stills"), &json!(true))
    );
}

#[test]
fn a_shot_that_shows_nothing_takes_the_first_picture_made() {
    let bench = bench();
    let project = film(&bench);
    set(&bench, &project, "rain", "/picture", Value::Null);
    assert_eq!(names(&bench, &project, "rain"), ["rain.png"]);
    let given = made(&bench, &project, "rain");
    let list = takes(&bench, &project, "rain");
    let chosen = list.iter().find(|take| take["chosen"] == true).unwrap();
    assert_eq!(chosen["take"], given["take"]);
}

#[test]
fn a_picture_for_a_shot_that_went_meanwhile_is_no_take() {
    let bench = bench();
    let project = film(&bench);
    let remove = json!({ "edit": "remove", "kind": "shot", "id": "lamp" });
    let asked = Mutex::new(0);
    let watching = Arc::clone(&bench.desk);
    let folder = project.clone();
    // The shot is taken away while its picture is made.
    let watcher: Arc<dyn Watcher> = Arc::new(move |event: StudioEvent| {
        if let StudioEvent::Stage { .. } = event {
            *asked.lock().unwrap() += 1;
            let args = json!({ "project": folder, "edit": remove });
            watching.call("project.edit", args).unwrap();
        }
    });
    let args = MakeArgs {
        project: PathBuf::from(&project),
        shot: "lamp".to_owned(),
    };
    let result = perform(&bench.desk, &args, &watcher, &CancelToken::new()).unwrap();
    let JobResult::Take { kept, .. } = result else {
        panic!("{result:?}");
    };
    assert!(!kept);
    bench.call("project.undo", json!({ "project": project }));
    assert_eq!(names(&bench, &project, "lamp"), ["[lamp.png]"]);
    // While it is there it gets one, under whatever name it goes by then.
    assert_eq!(made(&bench, &project, "lamp")["kept"], true);
    assert_eq!(takes(&bench, &project, "lamp").len(), 2);
}

#[test]
fn a_project_of_the_first_schema_opens_with_its_pictures_as_takes() {
    let bench = bench();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = kept.join("../../tests/fixtures/projects/schema-1/project");
    let folder = bench.folder.path().join("projects/Boats.longtake");
    copy(&kept, &folder);
    let version = || {
        let bytes = std::fs::read(folder.join("project.db")).unwrap();
        u32::from_be_bytes(bytes[60..64].try_into().unwrap())
    };
    assert_eq!(version(), 1);
    let state = bench.call("project.open", json!({ "project": folder }));
    assert_eq!(version(), 2);
    assert_eq!(state["script"]["title"], "Boats");
    assert_eq!(state["undo"]["label"], "shot boats: action");
    let project = state["project"].as_str().unwrap();
    assert_eq!(names(&bench, project, "boats"), ["[boats.png]"]);
    assert_eq!(
        takes(&bench, project, "boats")[0].get("at_unix_millis"),
        None
    );
    let mut args = take(&bench, project, "boats", "boats.png");
    args["rating"] = json!(3);
    bench.call("takes.rate", args);
    assert_eq!(takes(&bench, project, "boats")[0]["rating"], 3);
    bench.call("project.undo", json!({ "project": project }));
    bench.call("project.undo", json!({ "project": project }));
    let state = bench.call("project.state", json!({ "project": project }));
    assert_eq!(
        state["script"]["scenes"][0]["shots"][0]["action"],
        "The boats wait."
    );
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn an_own_video_is_a_take_and_is_held_to_the_length_of_its_shot() {
    let bench = bench();
    let project = film(&bench);
    rendered(&bench, &project);
    let state = bench.call("project.state", json!({ "project": project }));
    // A second of pictures as the program writes them is a video like any other.
    let made: ContentHash = state["shots"]["boat"]["made"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let video = bench.desk.media_path(&made).unwrap();
    bench
        .desk
        .bring(Path::new(&project), "own.mp4", &video)
        .unwrap();
    let put = |field: &str, value: Value| json!({ "edit": "set", "kind": "shot", "id": "lamp", "field": field, "value": value });
    let edits = [
        put("/picture", Value::Null),
        put("/video", json!({ "file": "own.mp4" })),
        put("/length", json!("2 s")),
    ];
    edit(
        &bench,
        &project,
        json!({ "edit": "several", "label": "video", "edits": edits }),
    );
    assert_eq!(names(&bench, &project, "lamp"), ["lamp.png", "[own.mp4]"]);
    assert_eq!(takes(&bench, &project, "lamp")[1]["kind"], "video");
    rendered(&bench, &project);
    let state = bench.call("project.state", json!({ "project": project }));
    let made: ContentHash = state["shots"]["lamp"]["made"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let probe = flow_media::probe::probe(&bench.desk.media_path(&made).unwrap()).unwrap();
    assert!(
        (probe.video[0].duration_secs.as_f64() - 2.0).abs() < 0.01,
        "{probe:?}"
    );
    // Back to the picture, and to the video, as one step each.
    bench.call("takes.choose", take(&bench, &project, "lamp", "lamp.png"));
    bench.call("takes.choose", take(&bench, &project, "lamp", "own.mp4"));
    assert_eq!(names(&bench, &project, "lamp"), ["lamp.png", "[own.mp4]"]);
    assert_eq!(rendered(&bench, &project).0, 0);
}
