//! Models fetched by the queue, from a registry on this machine.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use longtake_tests::film::SmallFilm;
use serde_json::json;

use crate::kit::Process;

/// SHA-256 of [`weights`].
const SHA256: &str = "a5760c39f0d7d56b08bef00031e1ed04252c91334739a1b7b832c38c78157760";

fn weights() -> Vec<u8> {
    b"longtake".repeat(1024)
}

/// A registry of one file. The first answer breaks off in the middle; `asked` holds the first byte
/// that each request asks for.
struct Registry {
    endpoint: String,
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let serve = move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                drop(answer(&stream, &noted));
            }
        };
        let thread = std::thread::Builder::new().name("registry".into());
        thread.spawn(serve).unwrap();
        Self { endpoint, asked }
    }
}

fn answer(stream: &TcpStream, asked: &Mutex<Vec<usize>>) -> std::io::Result<()> {
    let mut from = 0;
    for line in BufReader::new(stream).lines() {
        let line = line?.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let is_first = {
        let mut asked = asked.lock().unwrap();
        asked.push(from);
        asked.len() == 1
    };
    let all = weights();
    let body = &all[from..];
    let status = if from > 0 {
        "206 Partial Content"
    } else {
        "200 OK"
    };
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n",
        body.len()
    )?;
    write!(out, "ETag: \"one\"\r\nConnection: close\r\n")?;
    if from > 0 {
        let last = all.len() - 1;
        write!(out, "Content-Range: bytes {from}-{last}/{}\r\n", all.len())?;
    }
    write!(out, "\r\n")?;
    let sent = if is_first { &body[..3000] } else { body };
    out.write_all(sent)?;
    out.flush()
}

#[test]
fn a_model_is_fetched_by_the_queue_and_a_broken_download_goes_on() {
    let film = SmallFilm::new().unwrap();
    let registry = Registry::start();
    let folder = film.folder().join("models");
    fs::create_dir_all(&folder).unwrap();
    let bytes = weights().len();
    let manifest = format!(
        "[[model]]\nid = \"tiny\"\ntitle = \"Tiny\"\nkind = \"text\"\nfamily = \"llama\"\n\
         licence = {{ spdx = \"MIT\", link = \"x\" }}\nmemory_bytes = 1\n\
         allows = {{ commercial = true, redistribution = true }}\n\
         files = [{{ name = \"tiny.gguf\", bytes = {bytes}, sha256 = \"{SHA256}\", from.hub = {{ \
         repo = \"owner/tiny\", revision = \"0123456789abcdef0123456789abcdef01234567\", \
         path = \"tiny.gguf\" }} }}]\n"
    );
    fs::write(folder.join("models.toml"), manifest).unwrap();
    let server = Process::start_with(&film, |command| {
        command.env("LONGTAKE_MODELS", &folder);
        command.env("HF_ENDPOINT", &registry.endpoint);
        command.env_remove("HF_HUB_OFFLINE").env_remove("HF_TOKEN");
        for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(proxy);
        }
    });
    let model = || {
        let models = server.caller.call("models.list", json!({}));
        let found = models
            .as_array()
            .unwrap()
            .iter()
            .find(|model| model["id"] == "tiny");
        found.unwrap().clone()
    };
    assert_eq!(model()["state"], "missing");
    let started = server.caller.call("models.pull", json!({ "id": "tiny" }));
    let id = started["job"].as_i64().unwrap();
    let job = server.wait_for(id, "done");
    assert_eq!(job["title"], "Fetch Tiny");
    assert_eq!(job["title_coded"]["code"], "fetch_model");
    assert_eq!(job["result"], json!({ "type": "model", "whole": true }));
    assert_eq!(fs::read(folder.join("tiny/tiny.gguf")).unwrap(), weights());
    let asked = registry.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked[0] == 0 && asked[1] > 0 && asked[1] <= 3000,
        "{asked:?}"
    );
    assert_eq!(model()["state"], "installed");
    // Fetched again it is there already; damaged it is found out; removed it is gone.
    let again = server.caller.call("models.pull", json!({ "id": "tiny" }));
    server.wait_for(again["job"].as_i64().unwrap(), "done");
    assert_eq!(registry.asked.lock().unwrap().len(), 2);
    let removed = server.caller.call("models.remove", json!({ "id": "tiny" }));
    assert_eq!(removed["bytes"], bytes);
    assert_eq!(model()["state"], "missing");
    let (status, answer) = server.caller.ask("models.pull", &json!({ "id": "none" }));
    assert_eq!(status, 404, "{answer}");
}
