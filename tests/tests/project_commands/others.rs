//! Commands about documents, the cache, scripts and films.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use flow_store::CommitMark;
use longtake_tests::film::{Ran, SmallFilm, ran};
use serde_json::{Value, json};

use crate::kit::{PROGRAM, ask, made, say};

#[test]
fn plans_say_what_would_be_made_and_make_nothing() {
    let (mut film, project) = made();
    let project = project.to_str().unwrap();
    let plan = ask(&film, &["plan", project]);
    // The program's own defaults, not the test's quick encoder: all pictures, no sound.
    assert!(plan["will_run"].as_u64().unwrap() >= 5, "{plan}");
    film.edit("- title: The Small Film", "- title: Another");
    film.write_script().unwrap();
    let script = film.script_path();
    let words = [
        "film",
        "--plan",
        "--preset",
        "ultrafast",
        "--script",
        script.to_str().unwrap(),
    ];
    let out = film.out();
    let words = [
        &words[..],
        &["--stills", ".", "--out", out.to_str().unwrap()],
    ]
    .concat();
    let before = film.store().unwrap().counts().unwrap().commits_ever;
    let plan = say(&film, &words);
    assert!(
        plan.out
            .contains("to make        segment:shore (film.segment)"),
        "{}",
        plan.out
    );
    assert!(!plan.out.contains("segment:lamp"), "{}", plan.out);
    assert_eq!(film.store().unwrap().counts().unwrap().commits_ever, before);
}

const DOCUMENT: &str = r#"{
  "longtake": 1,
  "nodes": {
    "numbers": {"type": "list.range", "version": 1, "widgets": {"first": 3, "count": 4}},
    "text": {"type": "text.join", "version": 1, "widgets": {"between": ", "},
             "links": {"items": ["numbers", "numbers"]}}
  },
  "targets": ["text"]
}"#;

#[test]
fn a_document_runs() {
    let film = SmallFilm::new().unwrap();
    fs::write(film.folder().join("flow.json"), DOCUMENT).unwrap();
    let done = say(&film, &["run", "flow.json"]);
    assert!(
        done.status.success() && done.out.contains("text.text: \"3, 4, 5, 6\""),
        "{done:?}"
    );
    let told = ask(
        &film,
        &[
            "run",
            "flow.json",
            "--set",
            "text.between=-",
            "--set",
            "numbers.count=2",
        ],
    );
    assert_eq!(told["outputs"][0]["shown"], "\"3-4\"", "{told}");
    let plan = ask(&film, &["plan", "flow.json"]);
    assert_eq!(plan["nodes"].as_array().map(Vec::len), Some(2), "{plan}");

    for (from, to, texts) in [
        (
            "\"between\": \", \"",
            "\"betwen\": \", \"",
            ["betwen", "between"],
        ),
        (
            "[\"numbers\", \"numbers\"]",
            "[\"nombers\", \"numbers\"]",
            ["nombers", "numbers"],
        ),
        ("list.range", "list.rang", ["list.rang", "list.range"]),
        (
            "{\"first\": 3, \"count\": 4}",
            "{\"count\": -4}",
            ["count", "-4"],
        ),
        ("\"targets\"", "\"target\"", ["target", "flow.json"]),
    ] {
        let document = DOCUMENT.replace(from, to);
        assert_ne!(document, DOCUMENT);
        fs::write(film.folder().join("flow.json"), document).unwrap();
        let refused = say(&film, &["run", "flow.json"]);
        println!("{}", refused.err.trim());
        refused.ended(3, &texts);
    }
    // All that is wrong is said at once.
    let document = DOCUMENT
        .replace("list.range", "list.rang")
        .replace("between", "betwen");
    fs::write(film.folder().join("flow.json"), document).unwrap();
    say(&film, &["run", "flow.json"]).ended(3, &["list.rang", "betwen"]);
    let refused = say(&film, &["--json", "run", "none.json"]);
    refused.ended(3, &["none.json"]);
    assert_eq!(refused.json()["error"]["code"], "not_found");
}

#[test]
fn the_cache_is_shown_checked_and_pruned() {
    let (film, _project) = made();
    let shown = ask(&film, &["cache", "show"]);
    let results = shown["counts"]["results"].as_u64().unwrap();
    assert!(results > 8, "{shown}");
    let checked = ask(&film, &["cache", "check", "--deep"]);
    assert_eq!(checked["results"], results, "{checked}");
    // A damaged file is found, and made again once it is mended.
    let store = film.store().unwrap();
    let segment = store.committed_since(CommitMark(0)).unwrap();
    let segment = segment
        .iter()
        .find(|commit| commit.node_type == "film.segment")
        .unwrap();
    let found = store.lookup(&[segment.key]).unwrap().remove(0).unwrap();
    let hash = found
        .ports
        .iter()
        .flat_map(|port| &port.elements)
        .find_map(|value| match value {
            flow_store::StoredValue::Blob(blob) => Some(blob.hash),
            _ => None,
        })
        .unwrap();
    let path = store.blob_path(&hash).unwrap();
    drop(store);
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"damaged").unwrap();
    let damaged = say(&film, &["cache", "check"]);
    assert_eq!(damaged.status.code(), Some(6), "{damaged:?}");
    assert!(damaged.out.contains("1 files damaged") || damaged.out.contains("1 file damaged"));
    assert!(say(&film, &["cache", "check", "--repair"]).status.success());
    let again = ran(&mut film.film_command(PROGRAM).unwrap())
        .unwrap()
        .json();
    assert_eq!(
        again["made"], 1,
        "the segment; the film made of it is the same: {again}"
    );

    let would = ask(&film, &["cache", "prune", "--to", "0", "--dry-run"]);
    assert!(would["results"].as_u64().unwrap() >= results, "{would}");
    assert_eq!(ask(&film, &["cache", "show"])["counts"]["results"], results);
    ask(&film, &["cache", "prune", "--to", "0"]);
    assert_eq!(ask(&film, &["cache", "show"])["counts"]["results"], 0);
    say(&film, &["cache", "prune", "--to", "ten"]).ended(3, &["\"ten\"", "500MB"]);
}

#[test]
fn scripts_are_checked_and_converted() {
    let film = SmallFilm::new().unwrap();
    film.write_script().unwrap();
    let checked = ask(&film, &["script", "check", "small.md", "--stills", "."]);
    let warnings = checked["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{checked}");
    let warning = &warnings[0];
    assert_eq!(
        (&warning["line"], &warning["place"], &warning["code"]),
        (&json!(29), &json!("shot shore"), &json!("title-too-short")),
        "{warning}"
    );
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.starts_with("line 29: shot shore: the title"),
        "{message}"
    );
    assert!(!warning["fix"].as_str().unwrap().is_empty(), "{warning}");
    let said = say(&film, &["script", "check", "small.md", "--stills", "."]).out;
    assert!(said.contains(message), "{said}");
    ask(&film, &["script", "convert", "small.md", "small.json"]);
    ask(&film, &["script", "convert", "small.json", "again.md"]);
    ask(&film, &["script", "convert", "again.md", "again.json"]);
    let read = |name: &str| fs::read_to_string(film.folder().join(name)).unwrap();
    assert_eq!(read("small.json"), read("again.json"));
    let refused = say(&film, &["script", "convert", "small.md", "small.txt"]);
    refused.ended(3, &[".md or .json", "small.txt"]);
    let refused = say(&film, &["--json", "script", "check", "none.md"]);
    refused.ended(3, &["none.md"]);
    assert_eq!(refused.json()["error"]["code"], "not_found");
}

#[test]
fn node_types_are_listed_and_described() {
    let film = SmallFilm::new().unwrap();
    let listed = say(&film, &["nodes"]).out;
    for name in ["film.segment", "film.mux", "list.range", "text.join"] {
        assert!(
            listed.lines().any(|line| line.starts_with(name)),
            "{listed}"
        );
    }
    let one = say(&film, &["nodes", "film.mux"]).out;
    assert!(one.contains("segments") && one.contains("film"), "{one}");
    assert_eq!(ask(&film, &["nodes", "film.mux"])["type_name"], "film.mux");
    say(&film, &["nodes", "film.mix"]).ended(3, &["film.mix"]);
}

#[test]
fn folders_may_be_given_relative_to_this_one() {
    let film = SmallFilm::new().unwrap();
    film.write_script().unwrap();
    let words = [
        "--cache",
        "near",
        "film",
        "--json",
        "--preset",
        "ultrafast",
        "--script",
        "small.md",
    ];
    let told = say(&film, &words).json();
    assert_eq!(told["out"], "The Small Film.mp4", "{told}");
    assert!(film.folder().join("near/cache.db").is_file());
    assert!(
        film.folder()
            .join("The Small Film.longtake/project.db")
            .is_file()
    );
}

#[test]
fn wrong_usage_is_one_line_of_json_too() {
    let film = SmallFilm::new().unwrap();
    let wrong = say(&film, &["film", "--json", "--sise", "1x1"]);
    wrong.ended(2, &["--sise", "--size"]);
    assert_eq!(wrong.json()["error"]["code"], "bad_input");
    let neither = say(&film, &["film", "--json"]);
    neither.ended(3, &["--script"]);
    neither.json();
    let words = ["film", "--json", "--llm", "no-such-model", "a lamp is lit"];
    let premise = say(&film, &words);
    premise.ended(3, &["no-such-model"]);
    premise.json();
    assert!(say(&film, &["--help"]).status.success());
    assert!(say(&film, &["--version"]).out.starts_with("longtake "));
}

#[test]
fn ctrl_c_ends_soon_and_keeps_what_was_made() {
    let mut film = SmallFilm::new().unwrap();
    // Long enough that it cannot be done before it is stopped.
    film.edit("size: 160x90\nfps: 12", "size: 1280x720\nfps: 24");
    let mut command = film.film_command(PROGRAM).unwrap();
    command.args(["--preset", "slow"]);
    let mut words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    // One preset only.
    words.retain(|word| word != "ultrafast");
    let at = words.iter().position(|word| word == "--preset").unwrap();
    words.remove(at);
    let mut command = film.program(PROGRAM);
    command
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Something is made, and the work goes on.
    let began = Instant::now();
    while !film.cache().join("cache.db").exists() || committed(&film) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is made");
        assert!(child.try_wait().unwrap().is_none(), "it is done already");
        std::thread::sleep(Duration::from_millis(50));
    }
    let stopped = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let took = stopped.elapsed();
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    let ran = Ran { status, out, err };
    println!("ended {:.2} s after the signal", took.as_secs_f64());
    ran.ended(130, &["What was made is kept"]);
    assert_eq!(ran.json()["error"]["code"], "cancelled");
    assert!(took < Duration::from_millis(1500), "{took:?}");
    assert!(!film.out().exists());
    let kept = committed(&film);
    assert!(kept >= 1);
    let temp: Vec<_> = fs::read_dir(film.cache().join("temp"))
        .unwrap()
        .flatten()
        .collect();
    assert!(temp.is_empty(), "{temp:?}");
}

fn committed(film: &SmallFilm) -> u64 {
    film.store().unwrap().counts().unwrap().commits_ever
}

#[test]
fn films_and_plans_tell_their_warnings_in_json() {
    let (film, project) = made();
    let codes = |told: &Value| -> Vec<String> {
        let warnings = told["warnings"].as_array().unwrap();
        let code = |warning: &Value| warning["code"].as_str().unwrap().to_owned();
        warnings.iter().map(code).collect()
    };
    let again = ran(&mut film.film_command(PROGRAM).unwrap())
        .unwrap()
        .json();
    assert_eq!(codes(&again), ["title-too-short"], "{again}");
    assert_eq!(again["warnings"][0]["line"], 29);
    let plan = ask(&film, &["plan", project.to_str().unwrap()]);
    assert_eq!(codes(&plan), ["title-too-short"], "{plan}");
    assert_eq!(
        plan["warnings"][0]["line"],
        Value::Null,
        "a project has no lines"
    );
    assert_eq!(plan["warnings"][0]["place"], "shot shore");
}
