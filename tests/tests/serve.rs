//! The studio over HTTP, as a browser or an agent would use it.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails there; its calls read like those of a client"
)]

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

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

/// One who asks a server.
struct Caller {
    http: Client,
    base: String,
    token: String,
}

impl Caller {
    fn new(address: impl std::fmt::Display, token: &str) -> Self {
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

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let url = format!("{}{path}", self.base);
        let mut request = self.http.get(url).bearer_auth(&self.token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().unwrap()
    }

    fn ask(&self, name: &str, args: &Value) -> (u16, Value) {
        let url = format!("{}/api/call/{name}", self.base);
        let answer = self.http.post(url).bearer_auth(&self.token).json(args);
        let answer = answer.send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    #[track_caller]
    fn call(&self, name: &str, args: Value) -> Value {
        let (status, answer) = self.ask(name, &args);
        assert_eq!(status, 200, "{name}: {answer}");
        answer["ok"].clone()
    }

    fn create(&self, name: &str) -> String {
        let state = self.call(
            "project.create",
            json!({ "name": name, "preset": "wide", "fps": "24", "language": "en" }),
        );
        state["project"].as_str().unwrap().to_owned()
    }

    fn upload(&self, project: &str, name: &str, bytes: Vec<u8>) -> (u16, Value) {
        let url = reqwest::Url::parse_with_params(
            &format!("{}/api/upload", self.base),
            [("project", project), ("name", name)],
        );
        let sent = self.http.post(url.unwrap()).bearer_auth(&self.token);
        let answer = sent.body(bytes).send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    /// The event stream from `since` on.
    fn follow(&self, since: Option<u64>) -> Stream {
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

struct Stream {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

impl Stream {
    fn next(&mut self) -> (u64, Value) {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let message: Value = serde_json::from_str(text.as_str()).unwrap();
                return (message["seq"].as_u64().unwrap(), message["event"].clone());
            }
        }
    }

    /// Events up to the first of this type.
    fn until(&mut self, kind: &str) -> Vec<(u64, Value)> {
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
struct Studio {
    shell: Shell,
    caller: Caller,
    /// Removed last.
    _folder: tempfile::TempDir,
}

fn studio_with(pages: impl FnOnce(&Path) -> Pages) -> Studio {
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
        _folder: folder,
    }
}

fn studio() -> Studio {
    studio_with(|_| Pages::Off)
}

/// A PNG of the small film.
fn png() -> Vec<u8> {
    let film = SmallFilm::new().unwrap();
    std::fs::read(film.folder().join("lamp.png")).unwrap()
}

#[test]
fn without_the_token_or_from_elsewhere_nothing_is_answered() {
    let studio = studio();
    let base = &studio.caller.base;
    let http = &studio.caller.http;
    for path in [
        "/",
        "/index.html",
        "/media/x",
        "/thumb/x",
        "/api/events",
        "/nothing",
    ] {
        let answer = http.get(format!("{base}{path}")).send().unwrap();
        assert_eq!(answer.status(), 401, "{path}");
        let with_wrong = http
            .get(format!("{base}{path}?token=wrong"))
            .send()
            .unwrap();
        assert_eq!(with_wrong.status(), 401, "{path}");
    }
    let call = format!("{base}/api/call/app.state");
    assert_eq!(http.post(&call).send().unwrap().status(), 401);
    let wrong = http.post(&call).bearer_auth("wrong").send().unwrap();
    assert_eq!(wrong.status(), 401);
    let answer: Value = wrong.json().unwrap();
    assert_eq!(answer["error"]["code"], "not_permitted");
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "127.0.0.1.evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
    ] {
        let answer = studio.caller.get("/", &[(name, value)]);
        assert_eq!(answer.status(), 403, "{name}: {value}");
    }
    // The printed address lets a browser in: a cookie, and no token in the address any more.
    let entered = http.get(studio.shell.url()).send().unwrap();
    assert_eq!(entered.status(), 303);
    assert_eq!(entered.headers()["location"], "/");
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    let with_cookie = http
        .post(&call)
        .header("cookie", pair)
        .body("{}")
        .send()
        .unwrap();
    assert_eq!(with_cookie.status(), 200);
    let of_a_page = http
        .post(&call)
        .header("cookie", pair)
        .header("origin", base);
    assert_eq!(of_a_page.send().unwrap().status(), 200);
}

#[test]
fn pages_stay_in_their_folder() {
    let studio = studio_with(|folder| {
        let ui = folder.join("ui");
        std::fs::create_dir_all(ui.join("assets")).unwrap();
        std::fs::write(ui.join("index.html"), "<title>Pages</title>").unwrap();
        std::fs::write(ui.join("assets/a.js"), "1").unwrap();
        std::fs::write(folder.join("secret.txt"), "secret").unwrap();
        Pages::Folder(ui)
    });
    let get = |path: &str| studio.caller.get(path, &[]);
    for path in ["/", "/index.html", "/story"] {
        let page = get(path);
        assert_eq!(page.status(), 200, "{path}");
        assert!(page.headers().contains_key("content-security-policy"));
        assert!(page.text().unwrap().contains("Pages"), "{path}");
    }
    assert_eq!(
        get("/assets/a.js").headers()["content-type"],
        "text/javascript; charset=utf-8"
    );
    // As bytes on the line: a client would tidy these up before it sends them.
    for path in [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "//secret.txt",
        "/etc/passwd.txt",
    ] {
        let answer = raw(&studio.caller, path);
        assert!(
            !answer.contains("secret\n") && !answer.ends_with("secret"),
            "{path}: {answer}"
        );
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    for hash in [
        "../../secret.txt",
        "x",
        "..%2f..%2fsecret.txt",
        &"0".repeat(63),
    ] {
        let status = get(&format!("/media/{hash}")).status().as_u16();
        assert!(matches!(status, 400 | 404), "{hash}: {status}");
    }
}

/// The answer to a GET of exactly this path.
fn raw(caller: &Caller, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let host = caller.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let token = &caller.token;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn media_comes_by_content_in_ranges_and_as_small_pictures() {
    let studio = studio();
    let project = studio.caller.create("Media");
    let bytes = png();
    let (status, file) = studio
        .caller
        .upload(&project, "../pictures/🐙 שלום.png", bytes.clone());
    assert_eq!(status, 200, "{file}");
    let (name, hash) = (&file["ok"]["name"], file["ok"]["hash"].as_str().unwrap());
    assert_eq!(
        name, "🐙 שלום.png",
        "the name alone, whatever folder it said"
    );
    let path = format!("/media/{hash}");
    let whole = studio.caller.get(&path, &[]);
    assert_eq!(whole.status(), 200);
    assert_eq!(whole.headers()["content-type"], "image/png");
    assert_eq!(whole.headers()["accept-ranges"], "bytes");
    assert_eq!(whole.bytes().unwrap().to_vec(), bytes);
    let part = studio.caller.get(&path, &[("range", "bytes=10-29")]);
    assert_eq!(part.status(), 206);
    let range = format!("bytes 10-29/{}", bytes.len());
    assert_eq!(part.headers()["content-range"], range.as_str());
    assert_eq!(part.bytes().unwrap().to_vec(), bytes[10..30]);
    let tail = studio.caller.get(&path, &[("range", "bytes=-5")]);
    assert_eq!(tail.bytes().unwrap().to_vec(), bytes[bytes.len() - 5..]);
    let past = studio.caller.get(&path, &[("range", "bytes=99999999-")]);
    assert_eq!(past.status(), 416);
    let tag = format!("\"{hash}\"");
    let known = studio.caller.get(&path, &[("if-none-match", &tag)]);
    assert_eq!(known.status(), 304);
    let thumb = studio.caller.get(&format!("/thumb/{hash}?w=100"), &[]);
    assert_eq!(thumb.status(), 200);
    assert_eq!(thumb.headers()["content-type"], "image/jpeg");
    let small = thumb.bytes().unwrap();
    assert!(small.starts_with(b"\xff\xd8") && small.len() < bytes.len());
    let again = studio.caller.get(&format!("/thumb/{hash}?w=160"), &[]);
    assert_eq!(again.bytes().unwrap(), small, "made once for both widths");
    // The same bytes under another name are another name; other bytes don't take a name.
    let (_, twice) = studio.caller.upload(&project, "b.png", bytes.clone());
    assert_eq!(twice["ok"]["hash"], hash);
    let film = SmallFilm::new().unwrap();
    let other = std::fs::read(film.folder().join("sea.png")).unwrap();
    let (_, other) = studio.caller.upload(&project, "b.png", other);
    assert_eq!(other["ok"]["name"], "b-2.png");
    let state = studio
        .caller
        .call("project.state", json!({ "project": project }));
    assert_eq!(state["pictures"]["b.png"]["width_px"], 320);
    assert_eq!(state["pictures"]["b.png"]["used"], false);
    for (name, bytes) in [("a.exe", b"MZ..".to_vec()), ("", png()), ("..", png())] {
        let (status, answer) = studio.caller.upload(&project, name, bytes);
        assert_eq!(status, 400, "{name}: {answer}");
    }
    let none = studio
        .caller
        .get(&format!("/media/{}", "0".repeat(64)), &[]);
    assert_eq!(none.status(), 404);
}

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

/// `longtake serve` as a process of its own.
struct Process {
    child: Child,
    caller: Caller,
}

impl Process {
    fn start(film: &SmallFilm, fault: Option<&str>) -> Self {
        let mut command: Command = film.program(PROGRAM);
        command.args(["--json", "serve", "--data"]);
        command.arg(film.folder().join("data"));
        command
            .arg("--projects")
            .arg(film.folder().join("projects"));
        if let Some(fault) = fault {
            command.env("LONGTAKE_FAULT", fault);
        }
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

    fn job(&self, id: i64) -> Value {
        let jobs = self.caller.call("queue.list", json!({}));
        let found = jobs.as_array().unwrap().iter().find(|job| job["id"] == id);
        found.unwrap().clone()
    }

    /// The job once it is in this state.
    fn wait_for(&self, id: i64, state: &str) -> Value {
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
fn small_project(film: &SmallFilm, caller: &Caller) -> String {
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
fn the_bindings_are_of_the_command_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/api/generated.ts");
    let there = std::fs::read_to_string(path).unwrap();
    let fresh = flow_studio::desk::typescript();
    assert_eq!(there, fresh, "make them again: cargo xtask bindings");
}
