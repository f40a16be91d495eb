//! Edits of several clients, and odd input.

use serde_json::{Value, json};

use crate::kit::{Caller, studio};

#[test]
fn two_clients_see_each_others_edits_and_lose_none() {
    let studio = studio();
    let (first, address) = (&studio.caller, studio.shell.server().address());
    let second = Caller::new(address, studio.shell.server().token());
    let project = first.create("Together");
    let mut stream = second.follow(None);
    let (_, hello) = stream.next();
    assert_eq!(hello["type"], "hello");
    let set = |caller: &Caller, text: &str| {
        let edit = json!({ "edit": "set", "kind": "shot", "id": "shot-1", "field": "/action",
            "value": text });
        caller.call("project.edit", json!({ "project": project, "edit": edit }))
    };
    let action = |caller: &Caller| {
        let state = caller.call("project.state", json!({ "project": project }));
        let shot = &state["script"]["scenes"][0]["shots"][0];
        (
            shot["action"].as_str().unwrap_or_default().to_owned(),
            state["revision"].clone(),
        )
    };
    let done = set(first, "By the first.");
    let (seq, seen) = stream.until("project_changed").pop().unwrap();
    assert_eq!(seen["revision"], done["revision"]);
    assert_eq!(
        action(&second),
        ("By the first.".to_owned(), done["revision"].clone())
    );
    // One of them is away for a while.
    drop(stream);
    let mut revisions: Vec<Value> = Vec::new();
    for text in ["One.", "Two.", "Three."] {
        revisions.push(set(first, text)["revision"].clone());
    }
    let mut stream = second.follow(Some(seq));
    assert_eq!(stream.next().1["type"], "hello");
    let mut last = seq;
    for revision in &revisions {
        let (at, event) = stream.next();
        assert_eq!(at, last + 1, "no number is left out");
        assert_eq!(event["revision"], *revision);
        last = at;
    }
    second.call("project.undo", json!({ "project": project }));
    assert_eq!(stream.next().1["type"], "project_changed");
    assert_eq!(action(first).0, "Two.");
    // A number that this server never gave: everything has to be asked for again.
    let mut lost = second.follow(Some(1_000_000));
    assert_eq!(lost.next().1["type"], "hello");
    assert_eq!(lost.next().1["type"], "reset");
    // An edit sent again, as after a lost answer, is made once.
    let add = json!({ "edit": "add", "kind": "cast", "body": { "name": "Tom" } });
    let args = json!({ "project": project, "edit": add, "edit_key": "k1" });
    let once = first.call("project.edit", args.clone());
    assert_eq!(first.call("project.edit", args), once);
}

#[test]
fn large_and_odd_input_is_taken_or_refused_and_the_server_lives() {
    let studio = studio();
    let caller = &studio.caller;
    let project = caller.create("نص / 🐙");
    let before = caller.call("project.state", json!({ "project": project }));
    let long = "word ".repeat(1 << 18);
    let edit = json!({ "edit": "set", "kind": "shot", "id": "shot-1", "field": "/action",
        "value": long });
    let (status, answer) = caller.ask("project.edit", &json!({ "project": project, "edit": edit }));
    assert_eq!(status, 400, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().len() < 4_000);
    let after = caller.call("project.state", json!({ "project": project }));
    assert_eq!(after["script"], before["script"]);
    // A pasted script of a megabyte.
    let mut markdown = "---\nlongtake: 1\ntitle: Long\n---\n\n## Scene one\n".to_owned();
    for nth in 0..1_000 {
        let action = "The sea is grey. ".repeat(60);
        markdown += &format!("\n### Shot s{nth}\n\n- length: 2 s\n- colour: black\n\n{action}\n");
    }
    assert!(markdown.len() > 1_000_000);
    let read = caller.call("story.read", json!({ "text": markdown }));
    assert_eq!(
        read["script"]["scenes"][0]["shots"]
            .as_array()
            .unwrap()
            .len(),
        1_000
    );
    let import = json!({ "edit": "import_script", "script": read["script"] });
    caller.call(
        "project.edit",
        json!({ "project": project, "edit": import }),
    );
    let state = caller.call("project.state", json!({ "project": project }));
    assert_eq!(state["shots"].as_object().unwrap().len(), 1_000);
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    for body in ["{", "[]", "null", "\"x\"", &deep, "\u{0}"] {
        let url = format!("{}/api/call/project.state", caller.base);
        let sent = caller
            .http
            .post(url)
            .bearer_auth(&caller.token)
            .body(body.to_owned());
        let answer = sent.send().unwrap();
        assert_eq!(answer.status(), 400, "{}", &body[..body.len().min(20)]);
    }
    // On a line of its own: the server closes it.
    let other = Caller::new(studio.shell.server().address(), &caller.token);
    let too_large = other
        .http
        .post(format!("{}/api/call/app.state", caller.base));
    let body = vec![b' '; 17 << 20];
    let sent = too_large.bearer_auth(&caller.token).body(body).send();
    // The server may close the line before all of it is sent.
    assert!(sent.map_or(true, |answer| answer.status() == 400));
    assert_eq!(caller.ask("app.nothing", &json!({})).0, 404);
    caller.call("app.state", json!({}));
}
