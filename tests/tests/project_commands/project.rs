//! Commands about a project.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use flow_studio::{Command as StudioCommand, Project, System};
use longtake_tests::film::SmallFilm;
use serde_json::{Value, json};

use crate::kit::{action, ask, made, say};

#[test]
fn a_project_is_shown_edited_taken_back_and_done_again() {
    let (film, project) = made();
    let project = project.to_str().unwrap();
    let show = || ask(&film, &["project", "show", project]);
    let markdown = say(&film, &["project", "show", project]).out;
    assert!(markdown.contains("### Shot lamp"), "{markdown}");
    // Each command is a process of its own: the undo log outlives them.
    let lit = "The lamp burns.";
    let set = ["project", "set", project, "shot", "lamp", "/action", lit];
    assert_eq!(ask(&film, &set), json!({ "changed": 1 }));
    assert_eq!(ask(&film, &set), json!({ "changed": 0 }));
    assert_eq!(action(&show(), "lamp"), lit);
    let history = say(&film, &["project", "history", project]);
    assert_eq!(history.out, "undo: shot lamp: /action set\nredo: nothing\n");
    let undone = say(&film, &["project", "undo", project]);
    assert_eq!(undone.out, "took back: shot lamp: /action set\n");
    assert_eq!(action(&show(), "lamp"), "The lamp is lit.");
    assert_eq!(ask(&film, &["project", "redo", project])["name"], "set");
    assert_eq!(action(&show(), "lamp"), lit);
    assert_eq!(ask(&film, &["project", "redo", project]), Value::Null);
    let none = say(&film, &["project", "redo", project]);
    assert_eq!(none.out, "there is nothing to redo\n");
}

#[test]
fn a_whole_script_is_not_taken_back_unasked() {
    let (film, project) = made();
    let project = project.to_str().unwrap();
    let before = ask(&film, &["project", "show", project]);
    let refused = say(&film, &["project", "undo", project]);
    refused.ended(4, &["whole script", "The Small Film", "--yes"]);
    assert_eq!(ask(&film, &["project", "show", project]), before);
    let undone = say(&film, &["project", "undo", project, "--yes"]);
    assert!(undone.out.contains("The Small Film"), "{undone:?}");
    assert!(!say(&film, &["project", "show", project]).status.success());
    ask(&film, &["project", "redo", project]);
    assert_eq!(ask(&film, &["project", "show", project]), before);
}

#[test]
fn an_edit_that_breaks_the_script_changes_nothing() {
    let (film, project) = made();
    let project = project.to_str().unwrap();
    let show = || ask(&film, &["project", "show", project]);
    let before = show();
    let cases: &[(&[&str], &[&str])] = &[
        (&["shot", "lamp", "/lenght", "2"], &["lenght", "length"]),
        (&["shot", "lamp", "/id", "shore"], &["shore"]),
        (&["shot", "lamp", "/length", "a while"], &["a while"]),
        (&["shot", "lamb", "/action", "x"], &["lamb"]),
        (
            &["lamp", "lamp", "/action", "x"],
            &["expected film, cast, place, scene or shot"],
        ),
        (&["shot", "lamp", "action", "x"], &["JSON pointer"]),
    ];
    for (words, texts) in cases {
        let refused = say(&film, &[&["project", "set", project], *words].concat());
        println!("{}", refused.err.trim());
        refused.ended(3, texts);
        assert_eq!(show(), before, "{words:?}");
    }
    let history = ask(&film, &["project", "history", project]);
    assert_eq!(history["undo"]["name"], "import_script", "{history}");
}

#[test]
fn a_command_reaches_a_living_owner() {
    let (film, folder) = made();
    let clock = flow_studio::system_clock();
    let owner = Project::open(&folder, false, "the test", &clock).unwrap();
    let project = folder.to_str().unwrap();
    let lit = "Told from outside.";
    ask(
        &film,
        &["project", "set", project, "shot", "lamp", "/action", lit],
    );
    let script = owner
        .command(StudioCommand::System(System::Script))
        .unwrap();
    assert_eq!(action(&script, "lamp"), lit, "the owner carried it out");
    // What the owner refuses comes back as it is.
    let refused = say(
        &film,
        &["project", "set", project, "shot", "lamb", "/action", "x"],
    );
    refused.ended(3, &["lamb"]);
    ask(&film, &["project", "undo", project]);
    let script = owner
        .command(StudioCommand::System(System::Script))
        .unwrap();
    assert_eq!(action(&script, "lamp"), "The lamp is lit.");
}

/// The small film's script with three changes, in a file of its own.
fn another(film: &SmallFilm) -> PathBuf {
    let path = film.folder().join("another.md");
    let changed = film
        .script
        .replace("\ntitle: The Small Film\n", "\ntitle: The Other Film\n")
        .replace("The lamp is lit.", "The lamp goes out.");
    assert_ne!(changed, film.script);
    fs::write(&path, changed).unwrap();
    path
}

#[test]
fn changes_are_shown_before_they_are_taken_and_can_be_taken_back() {
    let (film, project) = made();
    let project = project.to_str().unwrap();
    let other = another(&film);
    let other = other.to_str().unwrap();
    let show = || ask(&film, &["project", "show", project]);
    let before = show();

    let diff = ask(&film, &["project", "diff", project, other]);
    assert_eq!(diff, ask(&film, &["script", "diff", "small.md", other]));
    let changes = diff["changes"].as_array().unwrap();
    let find = |kind: &str| {
        changes
            .iter()
            .find(|change| change["kind"] == kind)
            .unwrap()
    };
    let (shot, title) = (find("shot"), find("film"));
    assert_eq!(
        (&shot["id"], &shot["field"], &shot["old"], &shot["new"]),
        (
            &json!("lamp"),
            &json!("/action"),
            &json!("The lamp is lit."),
            &json!("The lamp goes out.")
        )
    );
    assert_eq!(
        (&title["field"], &title["new"]),
        (&json!("/title"), &json!("The Other Film"))
    );
    assert_eq!(show(), before, "looking changes nothing");
    let said = say(&film, &["project", "diff", project, other]).out;
    assert!(
        said.contains("shot lamp /action\n     - The lamp is lit.\n     + The lamp goes out.\n"),
        "{said}"
    );

    // One of them, by its path.
    let path = shot["path"].as_str().unwrap();
    let take =
        |accept: &str| ["project", "take", project, other, "--accept", accept].map(str::to_owned);
    let taken = |accept: &str| {
        let words = take(accept);
        ask(&film, &words.each_ref().map(String::as_str))
    };
    assert_eq!(taken(path)["changed"], 1);
    assert_eq!(action(&show(), "lamp"), "The lamp goes out.");
    assert_eq!(show()["title"], before["title"]);
    let history = say(&film, &["project", "history", project]).out;
    assert!(
        history.starts_with("undo: changes taken from another script"),
        "{history}"
    );
    ask(&film, &["project", "undo", project]);
    assert_eq!(show(), before);
    // All of them, by numbers.
    let numbers: Vec<String> = changes
        .iter()
        .map(|change| change["number"].to_string())
        .collect();
    taken(&numbers.join(","));
    let left = ask(&film, &["project", "diff", project, other]);
    assert_eq!(left, json!({ "changes": [] }));
    ask(&film, &["project", "undo", project]);
    taken("all");
    assert_eq!(
        say(&film, &["project", "diff", project, other]).out,
        "no changes\n"
    );

    for (accept, words) in [
        ("9", "\"9\""),
        ("/scenes/none", "/scenes/none"),
        (" , ", "expected all"),
    ] {
        let words_of = take(accept);
        let refused = say(&film, &words_of.each_ref().map(String::as_str));
        refused.ended(3, &[words]);
    }
}

#[test]
fn a_faulty_script_is_told_of_and_changes_nothing() {
    let (film, project) = made();
    let project = project.to_str().unwrap();
    let script = ask(&film, &["project", "show", project]);
    let mut other = script.clone();
    other["scenes"][0]["shots"][0]["lenght"] = json!("2 s");
    let path = film.folder().join("other.json");
    fs::write(&path, other.to_string()).unwrap();
    let path = path.to_str().unwrap();
    for words in [
        &["project", "diff", project, path][..],
        &["project", "take", project, path, "--accept", "all"],
        &["script", "diff", "small.md", path],
    ] {
        say(&film, words).ended(3, &["lenght", "length"]);
    }
    assert_eq!(ask(&film, &["project", "show", project]), script);
}

/// A server that answers every chat with the same words, so that rules write most of the script.
fn dull_server() -> String {
    use std::io::Write as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1#dull", listener.local_addr().unwrap());
    let serve = move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut piece = [0; 4096];
            let mut seen = Vec::new();
            loop {
                let count = stream.read(&mut piece).unwrap_or(0);
                seen.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&seen);
                let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                    let length = head.lines().find_map(|line| {
                        let (name, value) = line.split_once(':')?;
                        name.eq_ignore_ascii_case("content-length")
                            .then(|| value.trim().parse::<usize>().ok())?
                    });
                    body.len() >= length.unwrap_or(0)
                });
                if whole || count == 0 {
                    break;
                }
            }
            let reply = json!({"choices": [{"delta": {"content": "{\"text\": \"no\"}"}, "finish_reason": "stop"}]});
            let body = format!("data: {reply}\n\ndata: [DONE]\n\n");
            drop(write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    };
    std::thread::Builder::new()
        .name("dull server".into())
        .spawn(serve)
        .unwrap();
    url
}

#[test]
fn a_rewriting_is_shown_and_taken_in_part() {
    let (film, project) = made();
    let project = project.to_str().unwrap();
    let before = ask(&film, &["project", "show", project]);
    let url = dull_server();
    let premise = "A lighthouse keeper finds a message in a bottle";
    let rewrite = [
        "project", "rewrite", project, premise, "--length", "10s", "--llm", &url,
    ];
    let told = ask(&film, &rewrite);
    let changes = told["changes"].as_array().unwrap();
    assert!(changes.len() >= 3, "{told}");
    assert_eq!(told["changed"], Value::Null);
    assert_eq!(
        ask(&film, &["project", "show", project]),
        before,
        "nothing is replaced yet"
    );
    let proposal = told["proposal"].as_str().unwrap();
    let title = changes
        .iter()
        .find(|change| change["field"] == "/title")
        .unwrap();
    assert!(
        ["rule", "model"].contains(&title["by"].as_str().unwrap()),
        "{title}"
    );
    let number = title["number"].to_string();
    ask(
        &film,
        &["project", "take", project, proposal, "--accept", &number],
    );
    let after = ask(&film, &["project", "show", project]);
    assert_eq!(after["title"], title["new"]);
    assert_eq!(after["scenes"], before["scenes"]);
    ask(&film, &["project", "undo", project]);
    assert_eq!(ask(&film, &["project", "show", project]), before);
    // All at once.
    let all = [&rewrite[..], &["--accept", "all"]].concat();
    assert!(ask(&film, &all)["changed"].as_u64().unwrap() > 3);
    let proposed: Value = serde_json::from_slice(&fs::read(proposal).unwrap()).unwrap();
    let got = ask(&film, &["project", "show", project]);
    assert_eq!(got["title"], proposed["title"]);
    ask(&film, &["project", "undo", project]);
    assert_eq!(ask(&film, &["project", "show", project]), before);
}
