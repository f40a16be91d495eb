//! Takes of shots over HTTP, and the film that uses the chosen ones.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::time::{Duration, Instant};

use flow_studio::desk::DeskOptions;
use flow_studio::{Pages, ServeOptions, Shell};
use longtake_tests::film::SmallFilm;
use reqwest::blocking::Client;
use serde_json::{Value, json};

struct Studio {
    shell: Shell,
    http: Client,
    /// Removed last.
    _folder: tempfile::TempDir,
}

impl Studio {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let desk = DeskOptions {
            data_folder: folder.path().join("data"),
            cache_folder: Some(folder.path().join("cache")),
            projects_folder: Some(folder.path().join("projects")),
            confined_to: None,
            program: "test".into(),
        };
        let options = ServeOptions {
            pages: Pages::Off,
            ..ServeOptions::default()
        };
        let http = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(120));
        Self {
            shell: Shell::start(desk, &options).unwrap(),
            http: http.build().unwrap(),
            _folder: folder,
        }
    }

    fn ask(&self, name: &str, args: &Value) -> (u16, Value) {
        let server = self.shell.server();
        let url = format!("http://{}/api/call/{name}", server.address());
        let sent = self.http.post(url).bearer_auth(server.token()).json(args);
        let answer = sent.send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    #[track_caller]
    fn call(&self, name: &str, args: &Value) -> Value {
        let (status, answer) = self.ask(name, args);
        assert_eq!(status, 200, "{name}: {answer}");
        answer["ok"].clone()
    }

    fn upload(&self, project: &str, name: &str, bytes: Vec<u8>) {
        let server = self.shell.server();
        let base = format!("http://{}/api/upload", server.address());
        let query = [("project", project), ("name", name)];
        let url = reqwest::Url::parse_with_params(&base, query).unwrap();
        let sent = self.http.post(url).bearer_auth(server.token()).body(bytes);
        assert_eq!(sent.send().unwrap().status(), 200);
    }

    /// What a job gave, once it has ended well.
    #[track_caller]
    fn done(&self, name: &str, args: &Value) -> Value {
        let job = self.call(name, args)["job"].clone();
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let list = self.call("queue.list", &json!({}));
            let found = list
                .as_array()
                .unwrap()
                .iter()
                .find(|each| each["id"] == job);
            let found = found.unwrap();
            if found["state"] == "done" {
                return found["result"].clone();
            }
            let goes_on = found["state"] == "waiting" || found["state"] == "running";
            assert!(goes_on && Instant::now() < end, "{found}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn takes_are_made_chosen_and_rated_over_http_and_one_choice_makes_one_segment() {
    let studio = Studio::start();
    let new = json!({ "name": "Takes", "preset": "wide", "fps": "24", "language": "en" });
    let state = studio.call("project.create", &new);
    let project = state["project"].as_str().unwrap();
    let film = SmallFilm::new().unwrap();
    for name in ["shore", "lamp", "stair", "sea"] {
        let bytes = std::fs::read(film.folder().join(format!("{name}.png"))).unwrap();
        studio.upload(project, &format!("{name}.png"), bytes);
    }
    // Of lengths of their own: the same picture for as long is the same segment, and made once.
    let shot = |id: &str, secs: u32| json!({ "id": id, "length": format!("{secs} s"), "picture": format!("{id}.png") });
    let script = json!({
        "longtake": 1, "title": "Takes", "size": "128x72", "fps": "12",
        "scenes": [{ "id": "one", "shots": [shot("shore", 1), shot("lamp", 2), shot("stair", 3)] }],
    });
    let edit = json!({ "edit": "import_script", "script": script });
    studio.call("project.edit", &json!({ "project": project, "edit": edit }));
    let render = json!({ "project": project, "what": "all" });
    let first = studio.done("render.start", &render);
    assert!(first["made"].as_u64().unwrap() > 3, "{first}");
    let again = studio.done("render.start", &render);
    assert_eq!(again["made"], 0, "{again}");

    let of_lamp = json!({ "project": project, "shot": "lamp" });
    let given = studio.done("takes.make", &of_lamp);
    assert_eq!(
        (&given["kept"], &given["new"]),
        (&json!(true), &json!(true)),
        "{given}"
    );
    let takes = studio.call("takes.list", &of_lamp);
    assert_eq!(takes.as_array().unwrap().len(), 2, "{takes}");
    assert_eq!(
        (&takes[0]["chosen"], &takes[1]["chosen"]),
        (&json!(true), &json!(false))
    );
    // A take that nobody chose makes nothing of the film again.
    assert_eq!(studio.done("render.start", &render)["made"], 0);
    let take = |take: &Value| json!({ "project": project, "shot": "lamp", "take": take });
    let chosen = studio.call("takes.choose", &take(&takes[1]["take"]));
    assert_eq!(chosen["label"], "shot lamp: another take");
    let missing = json!({ "project": project, "what": "missing" });
    let plan = studio.call("render.plan", &missing);
    let nodes = plan["nodes"].as_array().unwrap().iter();
    let runs: Vec<&str> = nodes
        .filter(|node| node["state"] == "will_run")
        .filter_map(|node| node["shot"].as_str())
        .collect();
    assert_eq!(runs, ["lamp"], "one segment: {plan}");
    let pictures = studio.done("render.start", &missing);
    assert_eq!(pictures["made"], plan["to_make"], "{pictures}");
    assert!(pictures["reused"].as_u64().unwrap() >= 2, "{pictures}");
    // The bytes of a take lie in the project.
    let hash = takes[1]["take"].as_str().unwrap();
    let kept = std::path::Path::new(project)
        .join("media")
        .join(&hash[..2])
        .join(hash);
    assert!(kept.is_file(), "{kept:?}");

    let mut rated = take(&takes[0]["take"]);
    rated["rating"] = json!(4);
    studio.call("takes.rate", &rated);
    rated["rating"] = json!(9);
    assert_eq!(studio.ask("takes.rate", &rated).0, 400);
    assert_eq!(studio.ask("takes.remove", &take(&takes[1]["take"])).0, 422);
    studio.call("takes.remove", &take(&takes[0]["take"]));
    assert_eq!(studio.ask("takes.choose", &take(&takes[0]["take"])).0, 404);
    let undo = json!({ "project": project });
    studio.call("project.undo", &undo);
    let back = studio.call("takes.list", &of_lamp);
    assert_eq!(back[0]["rating"], 4, "{back}");
    studio.call("project.undo", &undo);
    studio.call("project.undo", &undo);
    let back = studio.call("takes.list", &of_lamp);
    assert_eq!(
        (&back[0]["rating"], &back[0]["chosen"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(
        studio.done("render.start", &render)["made"],
        0,
        "as it was at first"
    );
    for (name, args, status) in [
        (
            "takes.list",
            json!({ "project": project, "shot": "nobody" }),
            404,
        ),
        (
            "takes.make",
            json!({ "project": project, "shot": "nobody" }),
            404,
        ),
        ("takes.choose", take(&json!("../../etc/passwd")), 404),
        ("takes.choose", take(&json!("ü")), 404),
        ("takes.list", json!({ "project": project }), 400),
    ] {
        assert_eq!(studio.ask(name, &args).0, status, "{name} {args}");
    }
}
