//! The studio as an agent's tools.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails there; its calls read like those of a client"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use longtake_tests::film::SmallFilm;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

struct Agent {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    asked: u64,
    /// As they were listed: what is asked and answered is held to their schemas.
    tools: Vec<Value>,
}

/// Whether `value` is what `schema` says; schemas hold their own definitions.
fn fits(schema: &Value, value: &Value) -> bool {
    valid(schema, schema, value)
}

fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str() {
        let def = &root["$defs"][name.strip_prefix("#/$defs/").unwrap()];
        assert!(def.is_object(), "{name}");
        return valid(root, def, value);
    }
    let of_type = match schema["type"].as_str() {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some(other) => panic!("a type that is not known: {other}"),
    };
    let one_of = |list: &Value| list.as_array().is_none_or(|list| list.contains(value));
    let any = |list: &Value| {
        let each = list.as_array();
        each.is_none_or(|each| each.iter().any(|one| valid(root, one, value)))
    };
    let required = schema["required"].as_array();
    let has_all = required.is_none_or(|names| {
        names
            .iter()
            .all(|name| value.get(name.as_str().unwrap()).is_some())
    });
    let properties = schema["properties"].as_object();
    let fields_fit = value.as_object().is_none_or(|fields| {
        fields.iter().all(|(name, field)| {
            match properties.and_then(|properties| properties.get(name)) {
                Some(schema) => valid(root, schema, field),
                None => match &schema["additionalProperties"] {
                    Value::Null => true,
                    schema => valid(root, schema, field),
                },
            }
        })
    });
    let items_fit = value.as_array().is_none_or(|items| {
        let schema = &schema["items"];
        schema.is_null() || items.iter().all(|item| valid(root, schema, item))
    });
    let constant = schema.get("const").is_none_or(|wanted| wanted == value);
    of_type
        && constant
        && one_of(&schema["enum"])
        && any(&schema["anyOf"])
        && has_all
        && fields_fit
        && items_fit
}

impl Agent {
    fn start(film: &SmallFilm) -> Self {
        let mut command = film.program(PROGRAM);
        command
            .arg("mcp")
            .arg("--data")
            .arg(film.folder().join("data"));
        command
            .arg("--projects")
            .arg(film.folder().join("projects"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            to: child.stdin.take(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
            asked: 0,
            tools: Vec::new(),
        }
    }

    fn line(&mut self, line: &str) -> Value {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answer = self.line(&asked.to_string());
        assert_eq!(answer["id"], id);
        answer
    }

    #[track_caller]
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let tool = self
            .tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap()
            .clone();
        assert!(
            fits(&tool["inputSchema"], &arguments),
            "{name}: {arguments}"
        );
        let answer = self.ask(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        );
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{name}: {answer}");
        let structured = &result["structuredContent"];
        assert!(
            fits(&tool["outputSchema"], structured),
            "{name}: {structured}"
        );
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }
}

#[test]
fn an_agent_makes_a_film() {
    let film = SmallFilm::new().unwrap();
    let mut agent = Agent::start(&film);
    let hello = agent.ask("initialize", json!({ "protocolVersion": "2025-03-26" }));
    assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(hello["result"]["serverInfo"]["name"], "longtake");
    let tools = agent.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let edit = tools
        .iter()
        .find(|tool| tool["name"] == "project_edit")
        .unwrap();
    let text = edit["description"].as_str().unwrap();
    assert!(text.contains("export type Edit ="), "{text}");
    for tool in &tools {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
        }
        assert!(
            tool["annotations"]["destructiveHint"].is_boolean(),
            "{tool}"
        );
    }
    let hints = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let hints = &tool["annotations"];
        [&hints["readOnlyHint"], &hints["destructiveHint"]].map(|hint| hint.as_bool().unwrap())
    };
    assert_eq!(hints("project_state"), [true, false]);
    assert_eq!(hints("project_edit"), [false, false], "undo brings it back");
    assert_eq!(hints("models_remove"), [false, true]);
    assert!(!fits(&edit["inputSchema"], &json!({ "project": "/x" })));
    let wrong_kind =
        json!({ "project": "/x", "edit": { "edit": "remove", "kind": "shoe", "id": "a" } });
    assert!(!fits(&edit["inputSchema"], &wrong_kind));
    agent.tools = tools;
    let project = json!({ "name": "By an agent", "preset": "wide", "fps": "12", "language": "en" });
    let state = agent.tool("project_create", project);
    let project = state["project"].as_str().unwrap().to_owned();
    let script = "---\nlongtake: 1\ntitle: By an agent\nsize: 160x90\nfps: 12\n---\n\n\
        ## Scene one\n\n### Shot a\n\n- length: 1 s\n- colour: #203040\n\
        - title: Made by tools\n\n### Shot b\n\n- length: 1 s\n- colour: white\n";
    let read = agent.tool("story_read", json!({ "text": script }));
    let import = json!({ "edit": "import_script", "script": read["script"] });
    agent.tool(
        "project_edit",
        json!({ "project": project, "edit": import }),
    );
    // What a command refuses comes back as its words.
    let wrong = json!({ "name": "project_edit", "arguments": { "project": project,
        "edit": { "edit": "remove", "kind": "shot", "id": "z" } } });
    let refused = agent.ask("tools/call", wrong);
    assert_eq!(refused["result"]["isError"], true);
    assert!(refused.to_string().contains("not_found"), "{refused}");
    let started = agent.tool(
        "export_start",
        json!({ "project": project, "preset": "web" }),
    );
    let begin = Instant::now();
    let job = loop {
        let jobs = agent.tool("queue_list", json!({}));
        let job = jobs[0].clone();
        assert_eq!(job["id"], started["job"]);
        if job["state"] == "done" {
            break job;
        }
        assert!(job["state"] != "failed", "{job}");
        assert!(begin.elapsed() < Duration::from_secs(180), "{job}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let out = std::path::PathBuf::from(job["result"]["out"].as_str().unwrap());
    let probe = flow_media::probe::probe(&out).unwrap();
    assert_eq!(probe.video[0].width_px, 160);
    assert!(
        (probe.video[0].duration_secs.as_f64() - 2.0).abs() < 0.05,
        "{probe:?}"
    );
    // Wrong lines are answered, and the next right one too.
    assert_eq!(agent.line("{")["error"]["code"], -32_700);
    assert_eq!(agent.ask("nothing", json!({}))["error"]["code"], -32_601);
    let unknown = agent.ask("tools/call", json!({ "name": "nothing" }));
    assert_eq!(unknown["error"]["code"], -32_602);
    assert_eq!(agent.ask("ping", json!({}))["result"], json!({}));
    agent.to = None;
    assert!(agent.child.wait().unwrap().success());
}
