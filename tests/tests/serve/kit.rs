//! Those who ask a server, and servers to be asked.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flow_studio::desk::DeskOptions;
use flow_studio::{Pages, ServeOptions, Shell};
use longtake_tests::film::SmallFilm;
use reqwest::blocking::{Client, Response};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::stream::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

/// One who asks a server.
pub(crate) struct Caller {
    pub(crate) http: Client,
    pub(crate) base: String,
    pub(crate) token: String,
}

impl Caller {
    pub(crate) fn new(address: impl std::fmt::Display, token: &str) -> Self {
        let http = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(120))
            .redirect(reqwest::redirect::Policy::none());
        Self {
            http: http.build().unwrap(),
            base: format!("http://{address}"),
            token: token.to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let url = format!("{}{path}", self.base);
        let mut request = self.http.get(url).bearer_auth(&self.token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().unwrap()
    }

    pub(crate) fn ask(&self, name: &str, args: &Value) -> (u16, Value) {
        let url = format!("{}/api/call/{name}", self.base);
        let answer = self.http.post(url).bearer_auth(&self.token).json(args);
        let answer = answer.send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    #[track_caller]
    pub(crate) fn call(&self, name: &str, args: Value) -> Value {
        let (status, answer) = self.ask(name, &args);
        assert_eq!(status, 200, "{name}: {answer}");
        answer["ok"].clone()
    }

    pub(crate) fn create(&self, name: &str) -> String {
        let state = self.call(
            "project.create",
            json!({ "name": name, "preset": "wide", "fps": "24", "language": "en" }),
        );
        state["project"].as_str().unwrap().to_owned()
    }

    pub(crate) fn upload(&self, project: &str, name: &str, bytes: Vec<u8>) -> (u16, Value) {
        let url = reqwest::Url::parse_with_params(
            &format!("{}/api/upload", self.base),
            [("project", project), ("name", name)],
        );
        let sent = self.http.post(url.unwrap()).bearer_auth(&self.token);
        let answer = sent.body(bytes).send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    /// The event stream from `since` on.
    pub(crate) fn follow(&self, since: Option<u64>) -> Stream {
        let host = self.base.trim_start_matches("http://");
        let query = since.map_or(String::new(), |since| format!("?since={since}"));
        let url = format!("ws://{host}/api/events{query}");
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {}", self.token);
        request
            .headers_mut()
            .insert("authorization", bearer.parse().unwrap());
        let stream = TcpStream::connect(host).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let stream = MaybeTlsStream::Plain(stream);
        let (socket, _) = tokio_tungstenite::tungstenite::client(request, stream).unwrap();
        Stream { socket }
    }
}

pub(crate) struct Stream {
    pub(crate) socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

impl Stream {
    pub(crate) fn next(&mut self) -> (u64, Value) {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let message: Value = serde_json::from_str(text.as_str()).unwrap();
                return (message["seq"].as_u64().unwrap(), message["event"].clone());
            }
        }
    }

    /// Events up to the first of this type.
    pub(crate) fn until(&mut self, kind: &str) -> Vec<(u64, Value)> {
        let mut events = Vec::new();
        loop {
            events.push(self.next());
            if events.last().unwrap().1["type"] == kind {
                return events;
            }
        }
    }
}

/// A studio in this process, with folders of its own.
pub(crate) struct Studio {
    pub(crate) shell: Shell,
    pub(crate) caller: Caller,
    /// Removed last.
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn studio_with(pages: impl FnOnce(&Path) -> Pages) -> Studio {
    let folder = tempfile::tempdir().unwrap();
    let desk = DeskOptions {
        data_folder: folder.path().join("data"),
        cache_folder: Some(folder.path().join("cache")),
        projects_folder: Some(folder.path().join("projects")),
        confined_to: None,
        program: "test".into(),
    };
    let options = ServeOptions {
        pages: pages(folder.path()),
        ..ServeOptions::default()
    };
    let shell = Shell::start(desk, &options).unwrap();
    let caller = Caller::new(shell.server().address(), shell.server().token());
    Studio {
        shell,
        caller,
        folder,
    }
}

pub(crate) fn studio() -> Studio {
    studio_with(|_| Pages::Off)
}

/// A PNG of the small film.
pub(crate) fn png() -> Vec<u8> {
    let film = SmallFilm::new().unwrap();
    std::fs::read(film.folder().join("lamp.png")).unwrap()
}

/// `longtake serve` as a process of its own.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) caller: Caller,
}

impl Process {
    pub(crate) fn start(film: &SmallFilm, fault: Option<&str>) -> Self {
        Self::start_with(film, |command| {
            if let Some(fault) = fault {
                command.env("LONGTAKE_FAULT", fault);
            }
        })
    }

    pub(crate) fn start_with(film: &SmallFilm, change: impl FnOnce(&mut Command)) -> Self {
        let mut command: Command = film.program(PROGRAM);
        command.args(["--json", "serve", "--data"]);
        command.arg(film.folder().join("data"));
        command
            .arg("--projects")
            .arg(film.folder().join("projects"));
        change(&mut command);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let caller = Caller::new(
            told["address"].as_str().unwrap(),
            told["token"].as_str().unwrap(),
        );
        Self { child, caller }
    }

    pub(crate) fn job(&self, id: i64) -> Value {
        let jobs = self.caller.call("queue.list", json!({}));
        let found = jobs.as_array().unwrap().iter().find(|job| job["id"] == id);
        found.unwrap().clone()
    }

    /// The job once it is in this state.
    pub(crate) fn wait_for(&self, id: i64, state: &str) -> Value {
        let begin = Instant::now();
        loop {
            let job = self.job(id);
            if job["state"] == state {
                return job;
            }
            let over = matches!(job["state"].as_str(), Some("failed" | "cancelled"));
            assert!(!over && begin.elapsed() < Duration::from_secs(180), "{job}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The small film as a project of the studio; gives its folder.
pub(crate) fn small_project(film: &SmallFilm, caller: &Caller) -> String {
    let project = caller.create("Small");
    for name in ["shore", "lamp", "stair", "sea"] {
        let path: PathBuf = film.folder().join(format!("{name}.png"));
        let (status, answer) = caller.upload(
            &project,
            &format!("{name}.png"),
            std::fs::read(path).unwrap(),
        );
        assert_eq!(status, 200, "{answer}");
    }
    // Without the lines: no voice is needed to make it.
    let silent = film.script.lines().filter(|line| !line.starts_with("> "));
    let text: String = silent.map(|line| format!("{line}\n")).collect();
    let read = caller.call("story.read", json!({ "text": text }));
    let import = json!({ "edit": "import_script", "script": read["script"] });
    caller.call(
        "project.edit",
        json!({ "project": project, "edit": import }),
    );
    project
}
