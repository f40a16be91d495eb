//! The nats-server of a cluster: found, configured, started as a child and kept running.

mod config;
mod find;
mod secrets;

use std::fs::OpenOptions;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use engine_base::CancelToken;

pub use find::{ServerProgram, find};

use self::secrets::Secrets;
use crate::join::JoinLine;
use crate::names::WorkerId;
use crate::transport::{BUCKET, ClusterError, Link, Settings, ensure};
use crate::version::PROTOCOL;

/// How to run the server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Folder of its configuration, its streams and its secrets.
    pub dir: PathBuf,
    /// Where it listens. Beyond this machine only with TLS, which is then set up.
    pub bind: IpAddr,
    /// Its port; 0 takes the one of last time, else a free one.
    pub tcp_port: u16,
    /// Address by which other machines reach it; absent means `bind`, or this machine's own
    /// address when that is unspecified.
    pub advertise: Option<String>,
    /// Seconds without a sign of life after which a lease is lost.
    pub lease_secs: f64,
    /// Workers that get a line, a token and rights of their own.
    pub workers: Vec<WorkerId>,
    /// Release of the program, for the join line.
    pub release: String,
    /// Folders in which the server program may lie besides the PATH.
    pub program_folders: Vec<PathBuf>,
    /// The program itself, in the place of looking for it.
    pub program: Option<PathBuf>,
}

/// How often a starting server is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long a server may take to start: it reads its streams first.
const START: Duration = Duration::from_secs(30);

/// How long a server may take to end after it was asked to.
const STOP: Duration = Duration::from_secs(5);

/// A running server. Ends with it.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    program: ServerProgram,
    address: SocketAddr,
    shown_address: String,
    fingerprint: String,
    secrets: Secrets,
    child: Child,
    starts: u64,
}

impl Server {
    /// Write the configuration, start the server and wait until it answers.
    ///
    /// # Errors
    /// [`ClusterError::NoServer`], [`ClusterError::PortTaken`], [`ClusterError::ServerEnded`],
    /// [`ClusterError::File`].
    pub fn start(options: ServerOptions) -> Result<Self, ClusterError> {
        let program = find(options.program.as_deref(), &options.program_folders)?;
        let dir = &options.dir;
        std::fs::create_dir_all(dir)
            .map_err(|error| ClusterError::file("make the cluster's folder", dir, &error))?;
        end_leftover(dir);
        let mut secrets = Secrets::kept(dir, &options.workers)?;
        let tcp_port = free_port(options.bind, options.tcp_port, secrets.tcp_port)?;
        secrets.tcp_port = tcp_port;
        secrets.keep(dir)?;
        let address = SocketAddr::new(options.bind, tcp_port);
        let is_loopback = options.bind.is_loopback();
        let fingerprint = if is_loopback {
            String::new()
        } else {
            config::certificate(dir)?
        };
        let shown_address = match &options.advertise {
            Some(host) => format!("{host}:{tcp_port}"),
            None if options.bind.is_unspecified() => format!("{}:{tcp_port}", own_address()),
            None => address.to_string(),
        };
        config::write(dir, address, !is_loopback, &secrets)?;
        let child = spawn(&program, dir)?;
        let mut server = Self {
            options,
            program,
            address,
            shown_address,
            fingerprint,
            secrets,
            child,
            starts: 1,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<(), ClusterError> {
        let mut at = self.address;
        if at.ip().is_unspecified() {
            at.set_ip(if at.is_ipv4() {
                std::net::Ipv4Addr::LOCALHOST.into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        let began = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                let said = last_lines(&self.options.dir.join(config::LOG));
                if said.contains("address already in use") {
                    return Err(ClusterError::PortTaken {
                        address: self.address.to_string(),
                        why: "address already in use".to_owned(),
                    });
                }
                let why = format!("it ended with {status}: {said}");
                return Err(ClusterError::ServerEnded { why });
            }
            if let Ok(mut stream) = TcpStream::connect_timeout(&at, Duration::from_secs(1)) {
                let mut first = [0u8; 5];
                let timeout = stream.set_read_timeout(Some(Duration::from_secs(1)));
                if timeout.is_ok() && stream.read_exact(&mut first).is_ok() && &first == b"INFO " {
                    return Ok(());
                }
            }
            if began.elapsed() > START {
                let said = last_lines(&self.options.dir.join(config::LOG));
                let why = format!("it does not answer at {at} after 30 s: {said}");
                return Err(ClusterError::ServerEnded { why });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Make what the cluster needs in the server: streams, buckets, settings.
    ///
    /// # Errors
    /// As [`Link::connect`]; [`ClusterError::Stream`].
    pub async fn prepare(&self) -> Result<Link, ClusterError> {
        let link = Link::connect(&self.owner_line(), "cluster up").await?;
        ensure(&link).await?;
        self.write_settings(&link).await?;
        Ok(link)
    }

    /// Write the settings, keeping whether the cluster is paused.
    ///
    /// # Errors
    /// [`ClusterError::Stream`].
    pub async fn write_settings(&self, link: &Link) -> Result<(), ClusterError> {
        let before: Option<Settings> = link.get(BUCKET, "settings").await?;
        let settings = Settings {
            protocol: PROTOCOL,
            release: self.options.release.clone(),
            lease_secs: self.options.lease_secs,
            paused: before.is_some_and(|before| before.paused),
        };
        link.put(BUCKET, "settings", &settings).await
    }

    /// Run until `cancel` asks to stop: a server that ended is started again, streams that were
    /// deleted are made again.
    ///
    /// # Errors
    /// The server ends again and again.
    pub async fn keep(&mut self, link: &Link, cancel: &CancelToken) -> Result<(), ClusterError> {
        let mut looked = Instant::now();
        let mut ended = Vec::new();
        while !cancel.is_cancelled() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if let Ok(Some(status)) = self.child.try_wait() {
                tracing::warn!("nats-server ended with {status}; starting it again");
                ended.retain(|at: &Instant| at.elapsed() < Duration::from_secs(60));
                ended.push(Instant::now());
                if ended.len() > 20 {
                    let why = "it ended 20 times within a minute".to_owned();
                    return Err(ClusterError::ServerEnded { why });
                }
                self.child = spawn(&self.program, &self.options.dir)?;
                self.starts += 1;
                if let Err(error) = self.wait_until_ready() {
                    tracing::warn!("{error}");
                }
            }
            if looked.elapsed() > Duration::from_secs(2) && link.is_connected() {
                looked = Instant::now();
                let made = ensure(link).await;
                let missing = link.get::<Settings>(BUCKET, "settings").await;
                if matches!(made, Ok(true)) || matches!(missing, Ok(None)) {
                    tracing::warn!("the cluster's streams were gone and were made again");
                    drop(self.write_settings(link).await);
                }
            }
        }
        Ok(())
    }

    fn line(&self, token: String) -> JoinLine {
        JoinLine {
            address: self.shown_address.clone(),
            token,
            fingerprint: self.fingerprint.clone(),
            version: self.options.release.clone(),
        }
    }

    /// What lets an owner of films in.
    pub fn owner_line(&self) -> JoinLine {
        let mut line = self.line(format!("owner:{}", self.secrets.owner));
        // The owner who started it is on this machine.
        if self.options.advertise.is_none() && !self.options.bind.is_unspecified() {
            line.address = self.address.to_string();
        }
        line
    }

    /// What lets any worker in.
    pub fn worker_line(&self) -> JoinLine {
        self.line(format!("worker:{}", self.secrets.worker))
    }

    /// What lets the named workers in, each by itself.
    pub fn named_lines(&self) -> Vec<(WorkerId, JoinLine)> {
        let named = self.secrets.named.iter();
        named
            .map(|(name, secret)| {
                let line = self.line(format!("w-{name}:{secret}"));
                (name.clone(), line)
            })
            .collect()
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its program and version.
    pub const fn program(&self) -> &ServerProgram {
        &self.program
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        ask_to_end(pid);
        let began = Instant::now();
        while began.elapsed() < STOP {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // It had its time.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn ask_to_end(pid: rustix::process::Pid) {
    if let Err(error) = rustix::process::kill_process(pid, rustix::process::Signal::TERM) {
        tracing::debug!(%error, "nats-server had ended already");
    }
}

/// A server that an earlier start left behind when it was killed is ended: it holds the streams'
/// files. Told by its process and by the configuration that it was started with.
fn end_leftover(dir: &Path) {
    let text = std::fs::read_to_string(dir.join("nats.pid")).unwrap_or_default();
    let Some(pid) = text
        .trim()
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    else {
        return;
    };
    let shown = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    let ours = dir.join(config::NAME);
    let is_ours = || {
        let command = std::fs::read(&shown).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        words.any(|word| word == ours.as_os_str().as_encoded_bytes())
    };
    if !is_ours() {
        return;
    }
    tracing::warn!("a nats-server of an earlier start still runs; it is ended");
    ask_to_end(pid);
    let began = Instant::now();
    while is_ours() && began.elapsed() < STOP {
        std::thread::sleep(LOOK);
    }
}

fn spawn(program: &ServerProgram, dir: &Path) -> Result<Child, ClusterError> {
    let log = dir.join(config::LOG);
    let file = OpenOptions::new().create(true).append(true).open(&log);
    let file = file.map_err(|error| ClusterError::file("open the server's log", &log, &error))?;
    Command::new(&program.path)
        .arg("-c")
        .arg(dir.join(config::NAME))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file)
        .spawn()
        .map_err(|error| ClusterError::file("start nats-server", &program.path, &error))
}

/// The port to take: the one asked for, else last time's if it is free, else any.
fn free_port(bind: IpAddr, asked: u16, last: u16) -> Result<u16, ClusterError> {
    let try_port = |port: u16| {
        TcpListener::bind(SocketAddr::new(bind, port))
            .and_then(|listener| listener.local_addr())
            .map(|address| address.port())
    };
    let taken = |error: std::io::Error| ClusterError::PortTaken {
        address: SocketAddr::new(bind, asked).to_string(),
        why: error.to_string(),
    };
    if asked != 0 {
        return try_port(asked).map_err(taken);
    }
    if last != 0
        && let Ok(port) = try_port(last)
    {
        return Ok(port);
    }
    try_port(0).map_err(taken)
}

/// This machine's address in its network: the one it would send from. Nothing is sent.
fn own_address() -> String {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0));
    let address = socket.and_then(|socket| {
        // Documentation's network: only the route is looked up.
        socket.connect(("192.0.2.1", 9))?;
        socket.local_addr()
    });
    address.map_or_else(|_no_route| "127.0.0.1".to_owned(), |a| a.ip().to_string())
}

/// The end of a log.
fn last_lines(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}
