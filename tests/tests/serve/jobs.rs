//! Jobs of a server that is a process of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use longtake_tests::film::SmallFilm;
use serde_json::{Value, json};

use crate::kit::{Process, small_project};

#[test]
fn a_server_killed_in_the_middle_of_jobs_loses_none() {
    let film = SmallFilm::new().unwrap();
    // Ends as by a power cut while a shot is half made.
    let mut server = Process::start(&film, Some("segment.underway:2"));
    let token = server.caller.token.clone();
    server.caller.call(
        "settings.set",
        json!({ "field": "resume_jobs", "value": false }),
    );
    let project = small_project(&film, &server.caller);
    let started = server.caller.call(
        "render.start",
        json!({ "project": project, "what": "missing" }),
    );
    let id = started["job"].as_i64().unwrap();
    assert!(
        !server.child.wait().unwrap().success(),
        "it ended at the fault point"
    );
    // The next one knows that it was lost, and lets the same token in.
    let server = Process::start(&film, None);
    assert_eq!(server.caller.token, token);
    let job = server.job(id);
    assert_eq!(job["state"], "interrupted", "{job}");
    let state = server
        .caller
        .call("project.state", json!({ "project": project }));
    let missing = |state: &Value| {
        let shots = state["shots"].as_object().unwrap().values();
        shots.filter(|shot| shot["state"] != "made").count()
    };
    assert!(missing(&state) > 0, "{}", state["shots"]);
    server.caller.call("queue.retry", json!({ "id": id }));
    let job = server.wait_for(id, "done");
    assert_eq!(job["result"]["type"], "render", "{job}");
    let state = server
        .caller
        .call("project.state", json!({ "project": project }));
    assert_eq!(missing(&state), 0, "{}", state["shots"]);
    let made = state["shots"]["lamp"]["made"].as_str().unwrap();
    let video = server
        .caller
        .get(&format!("/media/{made}"), &[("range", "bytes=0-99")]);
    assert_eq!(video.status(), 206);
    assert_eq!(video.headers()["content-type"], "video/mp4");
    let thumb = server.caller.get(&format!("/thumb/{made}"), &[]);
    assert_eq!(thumb.headers()["content-type"], "image/jpeg");
    server.caller.call(
        "settings.set",
        json!({ "field": "resume_jobs", "value": true }),
    );
    drop(server);
    // An export is cut off too; this one goes on by itself.
    let mut server = Process::start(&film, Some("export.before_rename"));
    let args = json!({ "project": project, "preset": "web", "upscale": false });
    let predicted = server.caller.call("export.predict", args.clone());
    assert!(predicted["bytes"].as_u64().unwrap() > 1_000, "{predicted}");
    let id = server.caller.call("export.start", args)["job"]
        .as_i64()
        .unwrap();
    assert!(!server.child.wait().unwrap().success());
    let out = Path::new(&project).join("exports");
    let films = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let named = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        named
            .filter(|name| !name.starts_with('.') && name.ends_with(".mp4"))
            .count()
    };
    assert_eq!(films(&out), 0, "no half of a film under its name");
    let server = Process::start(&film, None);
    let job = server.wait_for(id, "done");
    assert_eq!(films(&out), 1, "{job}");
    let listed = server
        .caller
        .call("export.list", json!({ "project": project }));
    assert_eq!(listed[0]["hash"], job["result"]["hash"]);
    let path = format!("/media/{}", job["result"]["hash"].as_str().unwrap());
    assert_eq!(
        server.caller.get(&path, &[]).headers()["content-type"],
        "video/mp4"
    );
    let lines = server.caller.call("queue.log", json!({ "id": id }));
    assert!(
        lines
            .to_string()
            .contains("the program ended while this ran"),
        "{lines}"
    );
}

#[test]
fn a_job_is_paused_and_goes_on_and_the_server_ends_cleanly() {
    let film = SmallFilm::new().unwrap();
    let mut server = Process::start(&film, None);
    let project = small_project(&film, &server.caller);
    let mut stream = server.caller.follow(None);
    let args = json!({ "project": project, "what": { "shots": ["lamp", "sea"] }, "draft": true });
    let plan = server.caller.call("render.plan", args.clone());
    assert!(plan["to_make"].as_u64().unwrap() >= 2, "{plan}");
    let id = server.caller.call("render.start", args)["job"]
        .as_i64()
        .unwrap();
    let (_, event) = stream.until("job").pop().unwrap();
    assert_eq!(event["job"]["id"], id);
    let (status, _) = server.caller.ask("queue.pause", &json!({ "id": id }));
    if status == 200 {
        // It may have ended before the pause was heard.
        let begin = Instant::now();
        loop {
            let state = server.job(id)["state"].as_str().unwrap().to_owned();
            if state == "paused" {
                server.caller.call("queue.resume", json!({ "id": id }));
                break;
            }
            if state == "done" {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{state}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    server.wait_for(id, "done");
    let state = server
        .caller
        .call("project.state", json!({ "project": project }));
    assert!(
        state["shots"]["lamp"]["made"].is_string(),
        "a draft can be looked at"
    );
    assert_eq!(
        state["shots"]["lamp"]["state"], "missing",
        "and is not the film's"
    );
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(server.child.wait().unwrap().success());
    assert!(
        !Path::new(&project).join("owner.json").exists(),
        "the project is given back"
    );
}

#[test]
fn what_is_being_made_can_be_seen_and_is_kept_nowhere() {
    let mut film = SmallFilm::new().unwrap();
    // Long enough to be looked at.
    film.edit("size: 160x90\nfps: 12", "size: 1280x720\nfps: 24");
    let server = Process::start(&film, None);
    let project = small_project(&film, &server.caller);
    let mut stream = server.caller.follow(None);
    let args = json!({ "project": project, "what": "missing" });
    let id = server.caller.call("render.start", args)["job"]
        .as_i64()
        .unwrap();
    let shown = loop {
        let (_, event) = stream.until("job").pop().unwrap();
        let job = &event["job"];
        assert!(
            job["state"] == "waiting" || job["state"] == "running",
            "{job}"
        );
        // Small pictures may be made larger first: their tiles are shown then.
        let of = job["preview"]["of"].as_str();
        if of.is_some_and(|of| of.starts_with("segment:")) {
            break job.clone();
        }
    };
    assert!(
        shown["device"].as_str().unwrap().ends_with(" · cpu"),
        "{shown}"
    );
    assert_eq!(shown["step_coded"]["code"], "making_pictures");
    let path = format!("/preview/{id}?n={}", shown["preview"]["number"]);
    let picture = server.caller.get(&path, &[]);
    assert_eq!(picture.status(), 200);
    assert_eq!(picture.headers()["cache-control"], "no-store");
    let jpeg = film.folder().join("shown.jpg");
    std::fs::write(&jpeg, picture.bytes().unwrap()).unwrap();
    assert_eq!(flow_media::still::still_size_px(&jpeg).unwrap(), (320, 180));
    server.caller.call("queue.cancel", json!({ "id": id }));
    let begin = Instant::now();
    while server.job(id)["state"] != "cancelled" {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.job(id)["preview"], Value::Null);
    assert_eq!(server.caller.get(&path, &[]).status(), 404);
    let commits = film
        .store()
        .unwrap()
        .committed_since(flow_store::CommitMark(0))
        .unwrap();
    let kept: Vec<&str> = commits
        .iter()
        .map(|commit| commit.node_type.as_str())
        .collect();
    assert!(
        kept.iter().all(|name| !name.contains("preview")),
        "{kept:?}"
    );
}

#[test]
fn an_export_is_as_loud_as_was_asked_for_and_says_so() {
    let film = SmallFilm::new().unwrap();
    let server = Process::start(&film, None);
    let project = small_project(&film, &server.caller);
    let mut measured = Vec::new();
    for (loudness, lufs) in [
        ("streaming", Some(-14.0)),
        ("broadcast", Some(-23.0)),
        ("off", None),
    ] {
        let args = json!({ "project": project, "preset": "web", "upscale": false,
            "loudness": loudness, "name": loudness });
        let id = server.caller.call("export.start", args)["job"]
            .as_i64()
            .unwrap();
        let job = server.wait_for(id, "done");
        let got = job["result"]["lufs"].as_f64().unwrap();
        if let Some(lufs) = lufs {
            assert!((got - lufs).abs() < 1.5, "{loudness}: {got:.1} LUFS");
        }
        assert!(
            job["result"]["true_peak_dbtp"].as_f64().unwrap() < -0.9,
            "{job}"
        );
        measured.push(got);
    }
    println!("streaming, broadcast, off: {measured:.1?} LUFS");
    let listed = server
        .caller
        .call("export.list", json!({ "project": project }));
    let heard: Vec<f64> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|film| film["lufs"].as_f64().unwrap())
        .collect();
    assert_eq!(heard.len(), 3);
    assert!(
        measured.iter().all(|lufs| heard.contains(lufs)),
        "{heard:?}"
    );
    let (status, answer) = server.caller.ask(
        "export.start",
        &json!({ "project": project, "preset": "web", "loudness": "deafening" }),
    );
    assert_eq!(status, 400, "{answer}");
}
