//! As much of S3 as an upload in parts and a ranged download need, kept in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Held {
    objects: BTreeMap<String, Vec<u8>>,
    parts: BTreeMap<u32, Vec<u8>>,
    parts_ever: usize,
}

/// Answers until the test's runtime ends.
pub(crate) struct Bucket {
    pub(crate) url: String,
    held: Arc<Mutex<Held>>,
}

impl Bucket {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let held = Arc::new(Mutex::new(Held::default()));
        let shared = Arc::clone(&held);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer_all(stream, Arc::clone(&shared)));
            }
        });
        Self { url, held }
    }

    pub(crate) fn object(&self, name: &str) -> Option<Vec<u8>> {
        self.held.lock().unwrap().objects.get(name).cloned()
    }

    pub(crate) fn parts(&self) -> usize {
        self.held.lock().unwrap().parts_ever
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream
        .read_line(&mut line)
        .await
        .ok()
        .filter(|got| *got > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body,
    })
}

fn answer(held: &mut Held, request: Request) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let signed = request.headers.get("authorization");
    if !signed.is_some_and(|text| text.contains("Credential=id/")) {
        return (403, Vec::new(), Vec::new());
    }
    let tag = || vec![("etag".to_owned(), "\"tag\"".to_owned())];
    let xml = |text: &str| (200, tag(), text.as_bytes().to_vec());
    match (request.method.as_str(), request.query.as_str()) {
        ("POST", query) if query.starts_with("uploads") => xml(
            "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>",
        ),
        ("POST", _) => {
            let whole = std::mem::take(&mut held.parts)
                .into_values()
                .flatten()
                .collect();
            held.objects.insert(request.path, whole);
            xml("<CompleteMultipartUploadResult><ETag>tag</ETag></CompleteMultipartUploadResult>")
        }
        ("PUT", query) if query.contains("partNumber=") => {
            let number = query
                .split('&')
                .find_map(|pair| pair.strip_prefix("partNumber="))
                .unwrap();
            held.parts.insert(number.parse().unwrap(), request.body);
            held.parts_ever += 1;
            (200, tag(), Vec::new())
        }
        ("PUT", _) => {
            held.objects.insert(request.path, request.body);
            (200, tag(), Vec::new())
        }
        ("GET" | "HEAD", _) => {
            let Some(object) = held.objects.get(&request.path) else {
                return (
                    404,
                    Vec::new(),
                    b"<Error><Code>NoSuchKey</Code></Error>".to_vec(),
                );
            };
            let mut headers = tag();
            headers.push((
                "last-modified".to_owned(),
                "Tue, 01 Dec 2026 00:00:00 GMT".to_owned(),
            ));
            let range = request.headers.get("range").and_then(|text| {
                let (first, _) = text.strip_prefix("bytes=")?.split_once('-')?;
                first.parse::<usize>().ok()
            });
            match range {
                Some(first) => {
                    let len = object.len();
                    let said = format!("bytes {first}-{}/{len}", len - 1);
                    headers.push(("content-range".to_owned(), said));
                    (206, headers, object[first..].to_vec())
                }
                None => (200, headers, object.clone()),
            }
        }
        _ => (405, Vec::new(), Vec::new()),
    }
}

async fn answer_all(stream: TcpStream, held: Arc<Mutex<Held>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await {
        let is_head = request.method == "HEAD";
        let (status, headers, body) = answer(&mut held.lock().unwrap(), request);
        let mut text = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        let mut bytes = (text + "\r\n").into_bytes();
        if !is_head {
            bytes.extend(body);
        }
        if stream.get_mut().write_all(&bytes).await.is_err() {
            return;
        }
    }
}
