use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::*;

/// What the server does with one request after the other; the last goes on for ever.
#[derive(Clone)]
enum Act {
    Say(&'static str),
    Reply(u16, &'static str, &'static str),
    /// Sends this much of a stream and closes.
    Cut(&'static str),
    Hang,
    Close,
}

const GOOD: Act = Act::Say("{\"line\": \"We are late.\"}");

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let serve = move || {
            let mut held = Vec::new();
            for (at, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                log.lock().unwrap().push(request);
                match acts[at.min(acts.len() - 1)].clone() {
                    Act::Say(text) => {
                        let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
                        let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
                        respond(&mut stream, 200, "", &body);
                    }
                    Act::Reply(status, headers, body) => {
                        respond(&mut stream, status, headers, body)
                    }
                    Act::Cut(body) => {
                        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
                        write!(stream, "{head}{:x}\r\n{body}\r\n", body.len()).unwrap();
                    }
                    Act::Hang => held.push(stream),
                    Act::Close => {}
                }
            }
        };
        thread::Builder::new()
            .name("chat server".into())
            .spawn(serve)
            .unwrap();
        Self { url, seen }
    }

    fn asked(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn llm(&self) -> RemoteLlm {
        let mut options = RemoteOptions::new(
            format!("{}#tiny", self.url),
            Some(Key::new("s3cret".into())),
        );
        options.silence = Duration::from_millis(300);
        options.pause = Duration::from_millis(5);
        options.pause_max = Duration::from_millis(40);
        RemoteLlm::connect(options, &CancelToken::new()).unwrap()
    }
}

fn respond(stream: &mut TcpStream, status: u16, headers: &str, body: &str) {
    let length = body.len();
    // The client may have gone away already: that is its right.
    drop(write!(
        stream,
        "HTTP/1.1 {status} X\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).unwrap_or(0);
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        if count == 0 {
            return text;
        }
    }
}

fn request() -> LlmRequest {
    LlmRequest {
        system: "Write lines.".into(),
        messages: vec![flow_story::Message {
            role: Role::User,
            text: "A line".into(),
        }],
        schema: Some(json!({"type": "object"})),
        max_tokens: 50,
        temperature: 0.5,
        seed: 7,
        stop: Vec::new(),
    }
}

fn ask(acts: Vec<Act>) -> (Result<LlmReply, LlmError>, Vec<String>) {
    let server = Server::start(acts);
    let got = server.llm().complete(&request(), &CancelToken::new());
    (got, server.asked())
}

#[test]
fn a_good_server_is_asked_once_with_key_and_schema() {
    let (got, asked) = ask(vec![GOOD]);
    assert_eq!(got.unwrap().text, "{\"line\": \"We are late.\"}");
    assert_eq!(asked.len(), 1);
    assert!(
        asked[0].starts_with("POST /v1/chat/completions "),
        "{}",
        asked[0]
    );
    assert!(
        asked[0]
            .to_lowercase()
            .contains("authorization: bearer s3cret")
    );
    for part in [
        "\"json_schema\"",
        "\"model\":\"tiny\"",
        "\"seed\":7",
        "Write lines.",
    ] {
        assert!(asked[0].contains(part), "{part} is not in {}", asked[0]);
    }
}

#[test]
fn the_first_model_is_taken_when_none_is_named() {
    let server = Server::start(vec![Act::Reply(
        200,
        "",
        r#"{"data":[{"id":"qwen"},{"id":"b"}]}"#,
    )]);
    let llm =
        RemoteLlm::connect(RemoteOptions::new(&server.url, None), &CancelToken::new()).unwrap();
    assert!(llm.name().starts_with("qwen@127.0.0.1:"), "{}", llm.name());
    let server = Server::start(vec![Act::Reply(200, "", r#"{"data":[]}"#)]);
    let none = RemoteLlm::connect(RemoteOptions::new(&server.url, None), &CancelToken::new());
    assert!(none.err().unwrap().message.contains("names no model"));
}

#[test]
fn older_servers_are_asked_in_older_ways() {
    let old = Act::Reply(
        400,
        "",
        r#"{"error":{"message":"response_format is not supported"}}"#,
    );
    let server = Server::start(vec![old.clone(), old, GOOD]);
    let mut llm = server.llm();
    assert!(llm.complete(&request(), &CancelToken::new()).is_ok());
    assert!(llm.complete(&request(), &CancelToken::new()).is_ok());
    let asked = server.asked();
    let formats: Vec<bool> = asked
        .iter()
        .map(|each| each.contains("response_format"))
        .collect();
    assert_eq!(formats, [true, true, false, false]);
    assert!(asked[1].contains("json_object"));
}

#[test]
fn passing_trouble_is_outlasted() {
    for trouble in [
        Act::Reply(500, "", "oops"),
        Act::Reply(503, "Retry-After: 0\r\n", ""),
        Act::Reply(
            429,
            "Retry-After: 30\r\n",
            r#"{"error":{"message":"slow down"}}"#,
        ),
        Act::Cut("data: {\"choices\":[{\"delta\":{\"content\":\"{\"}}]}\n\n"),
        Act::Close,
        Act::Hang,
    ] {
        let (got, asked) = ask(vec![trouble.clone(), GOOD]);
        assert_eq!(got.unwrap().text, "{\"line\": \"We are late.\"}");
        assert_eq!(asked.len(), 2);
    }
}

#[test]
fn lasting_trouble_ends_with_its_cause_and_without_the_key() {
    for (trouble, code, tries, cause, passing) in [
        (Act::Reply(500, "", "oops"), Code::Io, 4, "500", false),
        (Act::Reply(429, "", "{}"), Code::Busy, 4, "429", false),
        (
            Act::Reply(401, "", "bad key"),
            Code::NotPermitted,
            1,
            "LONGTAKE_LLM_KEY",
            false,
        ),
        (
            Act::Reply(404, "", r#"{"error":"no such model"}"#),
            Code::NotFound,
            1,
            "no such model",
            false,
        ),
        (
            Act::Reply(302, "Location: http://127.0.0.1:1/\r\n", ""),
            Code::Refused,
            1,
            "302",
            false,
        ),
        (
            Act::Reply(200, "", "<html>hello</html>"),
            Code::BadInput,
            1,
            "<html>",
            true,
        ),
        (
            Act::Reply(
                200,
                "",
                r#"{"choices":[{"message":{"refusal":"No.","content":null}}]}"#,
            ),
            Code::Refused,
            1,
            "refused: No.",
            true,
        ),
        (Act::Close, Code::Io, 4, "cut off", false),
    ] {
        let (got, asked) = ask(vec![trouble]);
        let error = got.unwrap_err();
        assert_eq!((error.code, error.passing), (code, passing), "{error}");
        assert_eq!(asked.len(), tries, "{error}");
        assert!(error.message.contains(cause), "{error}");
        assert!(!format!("{error:?}").contains("s3cret"));
    }
    let options = RemoteOptions::new("http://127.0.0.1:9/v1", Some(Key::new("s3cret".into())));
    assert!(!format!("{options:?}").contains("s3cret"));
}

#[test]
fn a_server_that_hangs_is_left_when_cancelled() {
    let server = Server::start(vec![Act::Hang]);
    let mut llm = server.llm();
    llm.options.silence = Duration::from_secs(60);
    let cancel = CancelToken::new();
    let raise = cancel.clone();
    let raiser = thread::Builder::new()
        .name("canceller".into())
        .spawn(move || {
            thread::sleep(Duration::from_millis(60));
            raise.cancel();
        });
    let error = llm.complete(&request(), &cancel).unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    raiser.unwrap().join().unwrap();
}

#[test]
fn addresses_that_are_none_are_refused_without_repeating_them() {
    for url in [
        "",
        "localhost:8080/v1",
        "ftp://x/v1",
        "http://me:pass@host/v1",
        "file:///etc",
    ] {
        let error = address(url).unwrap_err();
        assert_eq!(error.code, Code::BadInput, "{url}");
        assert!(!error.message.contains("pass@"), "{error}");
    }
    let (url, model) = address("http://h:1/v1#org/model-7b").unwrap();
    assert_eq!(
        (url.as_str(), model.as_deref()),
        ("http://h:1/v1", Some("org/model-7b"))
    );
}
