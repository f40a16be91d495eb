//! A server on this machine that misbehaves as told.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// One request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// First byte of the range asked for.
    pub(crate) from: Option<usize>,
    pub(crate) token: Option<String>,
}

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Length announced; none at all when `None`.
    pub(crate) length: Option<usize>,
    /// Close after these many bytes of the body.
    pub(crate) cut: Option<usize>,
    /// Write this many bytes, then wait, and so on.
    pub(crate) slow: Option<(usize, Duration)>,
    /// Wait before the first byte of the answer.
    pub(crate) late: Duration,
    /// Wait after the last byte, before the connection closes.
    pub(crate) linger: Duration,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            length: Some(0),
            cut: None,
            slow: None,
            late: Duration::ZERO,
            linger: Duration::ZERO,
        }
    }

    /// All of `body`.
    pub(crate) fn whole(body: &[u8]) -> Self {
        let (body, length) = (body.to_vec(), Some(body.len()));
        Self {
            body,
            length,
            ..Self::status(200)
        }
    }

    /// What was asked for of `body`, as a server with ranges does.
    pub(crate) fn ranged(body: &[u8], asked: &Asked) -> Self {
        let Some(from) = asked.from else {
            return Self::whole(body);
        };
        if from >= body.len() {
            let reply = Self::status(416);
            return reply.with("Content-Range", format!("bytes */{}", body.len()));
        }
        let range = format!("bytes {from}-{}/{}", body.len() - 1, body.len());
        let mut reply = Self::whole(&body[from..]).with("Content-Range", range);
        reply.status = 206;
        reply
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn cut(mut self, at: usize) -> Self {
        self.cut = Some(at);
        self
    }
}

/// Answers until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// `answer` gets each request and how many came before it.
    pub(crate) fn start(answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, stop) = (
            Arc::<Mutex<Vec<Asked>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (log, ended) = (Arc::clone(&asked), Arc::clone(&stop));
        let answer = Arc::new(answer);
        let serve = move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Acquire) {
                    break;
                }
                let (Ok(stream), log, answer) = (stream, Arc::clone(&log), Arc::clone(&answer))
                else {
                    continue;
                };
                std::thread::Builder::new()
                    .name("connection".into())
                    .spawn(move || {
                        let Some(request) = read(&stream) else { return };
                        let before = {
                            let mut log = log.lock().unwrap();
                            log.push(request.clone());
                            log.len() - 1
                        };
                        // The client may have gone: that is what some tests want.
                        drop(write(&stream, &answer(&request, before)));
                    })
                    .unwrap();
            }
        };
        let thread = std::thread::Builder::new()
            .name("server".into())
            .spawn(serve)
            .unwrap();
        Self {
            address,
            asked,
            stop,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut asked = Asked {
        path: first.split(' ').nth(1)?.to_owned(),
        from: None,
        token: None,
    };
    loop {
        let line = lines.next()?.ok()?;
        if line.is_empty() {
            return Some(asked);
        }
        let (name, value) = line.split_once(':')?;
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let from = value.trim().strip_prefix("bytes=")?.strip_suffix('-')?;
                asked.from = Some(from.parse().ok()?);
            }
            "authorization" => asked.token = Some(value.trim().to_owned()),
            _ => {}
        }
    }
}

fn write(mut stream: &TcpStream, reply: &Reply) -> std::io::Result<()> {
    std::thread::sleep(reply.late);
    let mut head = format!("HTTP/1.1 {} Because\r\nConnection: close\r\n", reply.status);
    if let Some(length) = reply.length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    let body = &reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())];
    match reply.slow {
        None => stream.write_all(body)?,
        Some((bytes, pause)) => {
            for piece in body.chunks(bytes) {
                stream.write_all(piece)?;
                std::thread::sleep(pause);
            }
        }
    }
    std::thread::sleep(reply.linger);
    Ok(())
}
