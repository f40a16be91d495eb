#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use engine_base::Code;
use serde_json::{Value, json};

use super::*;
use crate::desk::tests::{Bench, bench};
use crate::events::StudioEvent;

/// Shots that show places alone need no model; the fox does.
fn film(bench: &Bench) -> String {
    let (project, _) = bench.create("Drawn");
    let shot = |id: &str, action: &str| json!({ "id": id, "length": "1 s", "action": action });
    let script = json!({
        "longtake": 1, "title": "Drawn", "size": "320x180", "fps": "12",
        "scenes": [{ "id": "one", "heading": "A forest", "shots": [
            shot("fox", "A red fox in the snow at night."),
            shot("trees", "Trees in the morning."),
            shot("rain", "Rain falls."),
        ]}],
    });
    let edit = json!({ "edit": "import_script", "script": script });
    bench.call("project.edit", json!({ "project": project, "edit": edit }));
    // "Trees" are a thing; the place alone is what is wanted here.
    set(bench, &project, "trees", "/negative", &json!("trees"));
    project
}

fn set(bench: &Bench, project: &str, shot: &str, field: &str, value: &Value) {
    let set = json!({ "edit": "set", "kind": "shot", "id": shot, "field": field, "value": value });
    bench.call("project.edit", json!({ "project": project, "edit": set }));
}

fn takes(bench: &Bench, project: &str, shot: &str) -> Vec<Value> {
    let list = bench.call("takes.list", json!({ "project": project, "shot": shot }));
    list.as_array().unwrap().clone()
}

/// Wait for a job to end well; what it gave.
fn done(bench: &Bench, started: &Value) -> Value {
    let end = Instant::now() + Duration::from_secs(180);
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

fn drawn(bench: &Bench, project: &str, shot: &str, count: u32) -> Vec<Value> {
    let args = json!({ "project": project, "what": { "shots": [shot] }, "count": count });
    let result = done(bench, &bench.call("takes.draw", args));
    assert_eq!(result["type"], "drawn");
    result["takes"].as_array().unwrap().clone()
}

fn picture_of(bench: &Bench, project: &str, shot: &str) -> Value {
    let state = bench.call("project.state", json!({ "project": project }));
    state["shots"][shot]["picture"].clone()
}

#[test]
fn scouts_differ_and_the_chosen_one_is_what_the_shot_shows() {
    let bench = bench();
    let project = film(&bench);
    let scouts = drawn(&bench, &project, "rain", 3);
    let different = |field: &str| {
        let all: BTreeSet<String> = scouts.iter().map(|take| take[field].to_string()).collect();
        all.len()
    };
    assert_eq!((different("seed"), different("take")), (3, 3), "{scouts:?}");
    let list = takes(&bench, &project, "rain");
    assert_eq!(list.len(), 3);
    for (take, scout) in list.iter().zip(&scouts) {
        assert_eq!(
            (&take["take"], &take["seed"], &take["by"], &take["model"]),
            (
                &scout["take"],
                &scout["seed"],
                &json!("model"),
                &json!("sketch")
            )
        );
        assert_eq!(take["prompt"], "forest · day · rain");
    }
    // The first is shown by a shot that showed nothing; another one is chosen, and undo takes it back.
    assert_eq!(picture_of(&bench, &project, "rain"), scouts[0]["take"]);
    let choose = json!({ "project": project, "shot": "rain", "take": scouts[2]["take"] });
    bench.call("takes.choose", choose);
    assert_eq!(picture_of(&bench, &project, "rain"), scouts[2]["take"]);
    bench.call("project.undo", json!({ "project": project }));
    assert_eq!(picture_of(&bench, &project, "rain"), scouts[0]["take"]);
    // More of them are others again.
    let more = drawn(&bench, &project, "rain", 1);
    assert!(more[0]["new"] == true && !scouts.iter().any(|one| one["seed"] == more[0]["seed"]));
    // The bytes are the project's own.
    let open = bench.desk.project(std::path::Path::new(&project)).unwrap();
    for take in takes(&bench, &project, "rain") {
        let hash = take["take"].as_str().unwrap().parse().unwrap();
        assert!(open.project.db().media_path(&hash).is_ok());
    }
}

#[test]
fn a_locked_seed_draws_the_same_picture_and_only_once() {
    let bench = bench();
    let project = film(&bench);
    set(&bench, &project, "rain", "/seed", &json!("77 locked"));
    let (one, again) = (
        drawn(&bench, &project, "rain", 4),
        drawn(&bench, &project, "rain", 1),
    );
    assert_eq!((one.len(), again.len()), (1, 1));
    assert_eq!(
        (&one[0]["seed"], &one[0]["take"]),
        (&json!(77), &again[0]["take"])
    );
    assert_eq!(
        (&one[0]["new"], &again[0]["new"]),
        (&json!(true), &json!(false))
    );
    set(&bench, &project, "rain", "/seed", &json!("78 locked"));
    let other = drawn(&bench, &project, "rain", 1);
    assert_ne!(other[0]["take"], one[0]["take"]);
}

#[test]
fn what_a_picture_must_not_show_is_left_out_and_reaches_the_model() {
    let bench = bench();
    let project = film(&bench);
    let args = json!({ "project": project, "what": { "shots": ["fox"] } });
    set(&bench, &project, "fox", "/negative", &json!("snow, blur"));
    done(&bench, &bench.call("takes.draw", args.clone()));
    let list = takes(&bench, &project, "fox");
    assert_eq!(list[0]["prompt"], "a fox · forest · night");
    assert_eq!(list[0]["negative"], "snow, blur");
    let open = bench.desk.project(std::path::Path::new(&project)).unwrap();
    let script = open.project.script().unwrap();
    let spec = flow_story::picture_spec(&script, &script.scenes[0], &script.scenes[0].shots[0]);
    let specs = std::collections::BTreeMap::from([("fox".to_owned(), spec)]);
    let (document, _) = flow_nodes::picture_document(&specs, (320, 180)).unwrap();
    let draws = document
        .nodes
        .values()
        .filter(|node| node.type_name == "image.draw");
    let negatives: Vec<&str> = draws
        .filter_map(|node| node.widgets["negative"].as_str())
        .collect();
    assert_eq!(negatives, ["snow, blur"]);
    // Without the fox only the place is left.
    set(&bench, &project, "fox", "/negative", &json!("foxes"));
    done(&bench, &bench.call("takes.draw", args));
    let list = takes(&bench, &project, "fox");
    assert_eq!(list[1]["prompt"], "forest · night · snow");
}

#[test]
fn a_drawing_that_is_stopped_keeps_what_is_finished_and_goes_on() {
    let bench = bench();
    let project = film(&bench);
    let open = bench.desk.project(std::path::Path::new(&project)).unwrap();
    let what = DrawWhat::Shots(vec!["rain".to_owned()]);
    let studio = &bench.desk.studio;
    let pictures = studio
        .pictures_wanted(&open.project, &what, Some(3), &|_row| 0)
        .unwrap();
    let job = DrawJob {
        project: PathBuf::from(&project),
        pictures,
    };
    let cancel = CancelToken::new();
    let (stop, stages) = (cancel.clone(), Mutex::new(0));
    let watcher: Arc<dyn Watcher> = Arc::new(move |event: StudioEvent| {
        if let StudioEvent::Stage { .. } = event {
            *stages.lock().unwrap() += 1;
            if *stages.lock().unwrap() == 2 {
                stop.cancel();
            }
        }
    });
    let stopped = perform(&bench.desk, &job, &watcher, &cancel).unwrap_err();
    assert_eq!(stopped.code, Code::Cancelled);
    let first = takes(&bench, &project, "rain");
    assert_eq!(first.len(), 1);
    // The same job again: the first is the same, the others come.
    let last = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&last);
    let watcher: Arc<dyn Watcher> = Arc::new(move |event: StudioEvent| {
        if let StudioEvent::Progress(progress) = event {
            let mut last = seen.lock().unwrap();
            assert!(progress.step >= last.0, "progress goes on: {progress:?}");
            *last = (progress.step, progress.of);
        }
    });
    perform(&bench.desk, &job, &watcher, &CancelToken::new()).unwrap();
    assert_eq!(*last.lock().unwrap(), (300, 300));
    let all = takes(&bench, &project, "rain");
    assert_eq!((all.len(), &all[0]["take"]), (3, &first[0]["take"]));
}

#[test]
fn missing_pictures_are_counted_in_the_plan_drawn_and_kept() {
    let bench = bench();
    let project = film(&bench);
    // Colours are chosen for two: the fox's picture alone would need the model.
    set(&bench, &project, "fox", "/colour", &json!("black"));
    let args = json!({ "project": project, "what": "missing" });
    let plan = bench.call("render.plan", args.clone());
    let draws = |plan: &Value| {
        let nodes = plan["nodes"].as_array().unwrap().clone();
        let runs = nodes
            .into_iter()
            .filter(|node| node["type_name"] == "picture.compose" && node["state"] == "will_run");
        let mut shots: Vec<String> = runs
            .map(|node| node["shot"].as_str().unwrap().to_owned())
            .collect();
        shots.sort();
        shots
    };
    assert_eq!(draws(&plan), ["rain", "trees"]);
    let all = bench.call("render.plan", json!({ "project": project, "what": "all" }));
    assert_eq!(draws(&all), ["rain", "trees"]);
    let state = bench.call("project.state", json!({ "project": project }));
    let of = |state: &Value, shot: &str| {
        let shot = &state["shots"][shot];
        (shot["state"].clone(), shot["to_draw"].clone())
    };
    assert_eq!(of(&state, "rain"), (json!("missing"), json!(true)));
    assert_eq!(of(&state, "fox"), (json!("missing"), json!(false)));
    let made = done(&bench, &bench.call("render.start", args.clone()));
    let planned = plan["to_make"].as_u64().unwrap() + plan["unknown"].as_u64().unwrap();
    assert_eq!(made["made"], planned, "what was planned was made: {made}");
    let state = bench.call("project.state", json!({ "project": project }));
    assert_eq!(of(&state, "rain"), (json!("made"), json!(false)));
    // What was drawn is the project's own, though no script names it.
    let picture = picture_of(&bench, &project, "rain");
    let open = bench.desk.project(std::path::Path::new(&project)).unwrap();
    let hash = picture.as_str().unwrap().parse().unwrap();
    assert!(open.project.db().media_path(&hash).is_ok());
    let again = bench.call("render.plan", args);
    assert_eq!(again["to_make"], 0, "{again}");
    // The board draws for those that have nothing, and for no others.
    let missing = json!({ "project": project, "what": "missing" });
    let result = done(&bench, &bench.call("takes.draw", missing.clone()));
    let shots: Vec<&str> = result["takes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|take| take["shot"].as_str().unwrap())
        .collect();
    assert_eq!(shots, ["trees", "rain"]);
    let refused = bench.desk.call("takes.draw", missing).unwrap_err();
    assert_eq!(refused.code, Code::Refused, "{refused}");
}

#[test]
fn what_cannot_be_drawn_is_refused_by_name() {
    let bench = bench();
    let project = film(&bench);
    let refused = |shots: Value, count: u32| {
        let what = json!({ "shots": shots });
        let args = json!({ "project": project, "what": what, "count": count });
        bench.desk.call("takes.draw", args).unwrap_err()
    };
    assert_eq!(refused(json!(["rain"]), 9).code, Code::BadInput);
    assert_eq!(refused(json!(["rain"]), 0).code, Code::BadInput);
    assert_eq!(refused(json!(["nobody"]), 1).code, Code::NotFound);
    assert_eq!(refused(json!([]), 1).code, Code::Refused);
    set(&bench, &project, "rain", "/model", &json!("painter-9"));
    let strange = refused(json!(["rain"]), 1);
    assert!(strange.message.contains("painter-9"), "{strange}");
    assert_eq!(strange.code, Code::Refused);
    // A film draws it all the same, and says with what.
    let plan = bench.call(
        "render.plan",
        json!({ "project": project, "what": { "shots": ["rain"] } }),
    );
    let warnings = plan["warnings"].to_string();
    assert!(
        warnings.contains("painter-9") && warnings.contains("our own model"),
        "{warnings}"
    );
    let makers = bench.call("makers.list", json!({}));
    let sketch = &makers[1];
    assert_eq!(
        (
            &sketch["id"],
            &sketch["ready"],
            &sketch["negative"],
            &sketch["references"]
        ),
        (&json!("sketch"), &json!(true), &json!(true), &json!(false))
    );
    let app = bench.call("app.state", json!({}));
    assert_eq!(app["ready"]["pictures"], true);
}

#[test]
fn seeds_of_pictures_that_wait_are_not_drawn_twice() {
    let bench = bench();
    let project = film(&bench);
    let args = json!({ "project": project, "what": { "shots": ["rain"] }, "count": 2 });
    let (one, two) = (
        bench.call("takes.draw", args.clone()),
        bench.call("takes.draw", args),
    );
    done(&bench, &one);
    done(&bench, &two);
    assert_eq!(takes(&bench, &project, "rain").len(), 4);
}
