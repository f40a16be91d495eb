//! A second process beside one that has the studio.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use longtake_tests::film::{Ran, SmallFilm, ran};
use serde_json::{Value, json};

use crate::kit::{PROGRAM, Process};

fn beside(film: &SmallFilm, words: &[&str]) -> Command {
    let mut command = film.program(PROGRAM);
    command.args(words).arg("--data");
    command.arg(film.folder().join("data"));
    command
}

#[test]
fn an_agent_joins_the_studio_of_another_process() {
    let film = SmallFilm::new().unwrap();
    let server = Process::start(&film, None);
    let project = server.caller.create("Shared");
    let mut agent = beside(&film, &["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = agent.stdin.take().unwrap();
    let mut from = BufReader::new(agent.stdout.take().unwrap());
    let mut tool = |name: &str, arguments: Value| {
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": name, "arguments": arguments } });
        writeln!(to, "{asked}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answer["result"].clone()
    };
    let edit = json!({ "edit": "set", "kind": "shot", "id": "shot-1", "field": "/action",
        "value": "Told by the agent." });
    let edited = tool("project_edit", json!({ "project": project, "edit": edit }));
    assert_eq!(edited["isError"], false, "{edited}");
    // What the owner refuses comes back as it is.
    let refused = tool("queue_cancel", json!({ "id": 99 }));
    assert_eq!(refused["isError"], true);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not_found") && text.contains("99"), "{text}");
    // One project, one owner: the other client sees the edit and takes it back.
    let state = server
        .caller
        .call("project.state", json!({ "project": project }));
    let shot = &state["script"]["scenes"][0]["shots"][0];
    assert_eq!(shot["action"], "Told by the agent.");
    server
        .caller
        .call("project.undo", json!({ "project": project }));
    let seen = tool("project_state", json!({ "project": project }));
    let shot = &seen["structuredContent"]["script"]["scenes"][0]["shots"][0];
    assert_eq!(shot["action"], Value::Null, "{shot}");
    drop(to);
    let done = agent.wait_with_output().unwrap();
    assert!(done.status.success());
    let said = String::from_utf8_lossy(&done.stderr);
    let pid = server.child.id().to_string();
    assert!(said.contains("joined") && said.contains(&pid), "{said}");
}

#[test]
fn a_second_server_leads_to_the_first_and_says_when_it_cannot() {
    let film = SmallFilm::new().unwrap();
    let mut server = Process::start(&film, None);
    let project = server.caller.create("Shared");
    let mut second = beside(&film, &["--json", "serve", "--ui", "--project", &project]);
    let joined = ran(&mut second).unwrap();
    assert!(joined.status.success(), "{joined:?}");
    let told = joined.json();
    assert_eq!(told["pid"], server.child.id());
    let base = format!("http://{}", told["address"].as_str().unwrap());
    assert_eq!(base, server.caller.base);
    assert_eq!(told["token"], server.caller.token.as_str());
    // The commands about a project reach it too, whoever owns it.
    let set = [
        "project",
        "set",
        &project,
        "shot",
        "shot-1",
        "/action",
        "From the shell.",
    ];
    assert!(
        ran(film.program(PROGRAM).args(set))
            .unwrap()
            .status
            .success()
    );
    let state = server
        .caller
        .call("project.state", json!({ "project": project }));
    let shot = &state["script"]["scenes"][0]["shots"][0];
    assert_eq!(shot["action"], "From the shell.");
    // Making a film of it in another process is refused: by whom it is open, and the way out.
    let mut make = film.program(PROGRAM);
    make.args(["film", "--project", &project, "--json", "--mute"]);
    let refused: Ran = ran(&mut make).unwrap();
    let pid = server.child.id().to_string();
    refused.ended(4, &["longtake serve", &pid, "Export"]);
    assert_eq!(refused.json()["error"]["code"], "busy");
    // Killed, it leaves its announcement behind: nobody is led astray, the studio opens again.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert!(film.folder().join("data/studio.json").exists());
    let again = Process::start(&film, None);
    let state = again
        .caller
        .call("project.state", json!({ "project": project }));
    let shot = &state["script"]["scenes"][0]["shots"][0];
    assert_eq!(shot["action"], "From the shell.");
}
