//! A cluster of processes on this machine, for tests: a server, workers and films as `longtake` starts
//! them. Whatever was started ends with it, by its process.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::film::Ran;

/// How long a process may take to say that it is ready.
const READY: Duration = Duration::from_secs(60);

/// A `longtake` process that says one line of JSON when it is ready and then runs on.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    /// What it said when it was ready.
    pub said: Value,
}

fn error(text: impl Into<String>) -> std::io::Error {
    std::io::Error::other(text.into())
}

impl Running {
    /// Start `command` and wait for its line.
    ///
    /// # Errors
    /// It cannot be started, ends before, or says no JSON; its own error is in the text.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (sender, lines) = sync_channel(1024);
        if let Some(out) = child.stdout.take() {
            std::thread::Builder::new()
                .name("out".into())
                .spawn(move || {
                    for line in BufReader::new(out).lines().map_while(Result::ok) {
                        if sender.send(line).is_err() {
                            return;
                        }
                    }
                })?;
        }
        let first = lines.recv_timeout(READY);
        let said = first
            .ok()
            .and_then(|line| serde_json::from_str::<Value>(&line).ok());
        let Some(said) = said.filter(|said| said.get("error").is_none()) else {
            drop(child.kill());
            let mut text = String::new();
            if let Some(mut err) = child.stderr.take() {
                err.read_to_string(&mut text)?;
            }
            drop(child.wait());
            return Err(error(format!("it did not become ready: {text}")));
        };
        // Whatever it complains of is seen in the test's output.
        if let Some(err) = child.stderr.take() {
            std::thread::Builder::new()
                .name("err".into())
                .spawn(move || {
                    let out = std::io::stderr();
                    for line in BufReader::new(err).lines().map_while(Result::ok) {
                        drop(writeln!(out.lock(), "  | {line}"));
                    }
                })?;
        }
        Ok(Self { child, lines, said })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// End it at once, as a loss of power would.
    pub fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Ask it to end, and wait; gives its exit status.
    ///
    /// # Errors
    /// It does not end within 20 seconds.
    pub fn end(&mut self) -> std::io::Result<Option<i32>> {
        signal(self.pid(), rustix::process::Signal::TERM)?;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(error("it was asked to end and did not"))
    }

    /// A line that it has said since it was ready.
    pub fn line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(signal(self.pid(), rustix::process::Signal::TERM));
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(5) {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            self.kill();
        }
    }
}

/// Send a signal to a process that this test has started.
///
/// # Errors
/// There is no such process.
pub fn signal(pid: u32, signal: rustix::process::Signal) -> std::io::Result<()> {
    let raw = i32::try_from(pid).map_err(|_too_large| error("no process number"))?;
    let pid = rustix::process::Pid::from_raw(raw).ok_or_else(|| error("no process number"))?;
    rustix::process::kill_process(pid, signal).map_err(Into::into)
}

/// A server and workers in a folder of their own.
pub struct Cluster {
    program: PathBuf,
    folder: PathBuf,
    server: Option<Running>,
    /// Workers by name.
    pub workers: BTreeMap<String, Running>,
    lease_secs: f64,
}

impl Cluster {
    /// Start a server in `folder`, with `program` as `longtake`.
    ///
    /// # Errors
    /// No server program (`cargo xtask setup` fetches it), no port.
    pub fn start(program: &str, folder: &Path, lease_secs: f64) -> std::io::Result<Self> {
        let mut cluster = Self {
            program: program.into(),
            folder: folder.to_owned(),
            server: None,
            workers: BTreeMap::new(),
            lease_secs,
        };
        cluster.start_server()?;
        Ok(cluster)
    }

    /// Where the server has its files.
    pub fn dir(&self) -> PathBuf {
        self.folder.join("cluster")
    }

    /// Start the server, or start it again.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_server(&mut self) -> std::io::Result<()> {
        let mut command = self.command();
        command.args(["--json", "cluster", "up", "--lease-secs"]);
        command.arg(self.lease_secs.to_string());
        command.arg("--dir").arg(self.dir());
        self.server = Some(Running::start(&mut command)?);
        Ok(())
    }

    /// The process that runs the server.
    ///
    /// # Errors
    /// It does not run.
    pub fn server(&mut self) -> std::io::Result<&mut Running> {
        self.server.as_mut().ok_or_else(|| error("no server runs"))
    }

    /// The program with folders of the test.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LONGTAKE_DATA", self.folder.join("data"));
        command.env("LONGTAKE_CACHE", self.folder.join("cache"));
        command.env_remove("LONGTAKE_CLUSTER");
        command
    }

    /// The line that joins workers.
    pub fn join(&self) -> String {
        let server = self.server.as_ref();
        let line = server.and_then(|server| server.said["join"].as_str());
        line.unwrap_or_default().to_owned()
    }

    /// Where a worker has its store.
    pub fn store_of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The command that starts a worker.
    pub fn worker_command(&self, name: &str) -> Command {
        let mut command = self.command();
        command.args(["--json", "worker", "--name", name, "--join", &self.join()]);
        command.arg("--data").arg(self.store_of(name));
        command
    }

    /// Start a worker, or start it again.
    ///
    /// # Errors
    /// It does not join.
    pub fn worker(&mut self, name: &str) -> std::io::Result<()> {
        let running = Running::start(&mut self.worker_command(name))?;
        self.workers.insert(name.to_owned(), running);
        Ok(())
    }

    /// What the cluster does now.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn status(&self) -> std::io::Result<Value> {
        let mut command = self.command();
        command.args(["--json", "cluster", "status", "--cluster"]);
        let ran = crate::film::ran(command.arg(self.dir()))?;
        if !ran.status.success() {
            return Err(error(format!("{ran:?}")));
        }
        Ok(ran.json())
    }

    /// Carry out `longtake cluster WORDS --cluster DIR`.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn ask(&self, words: &[&str]) -> std::io::Result<Ran> {
        let mut command = self.command();
        command.args(["--json", "cluster"]).args(words);
        crate::film::ran(command.arg("--cluster").arg(self.dir()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Workers first: they take leave of a server that is still there.
        self.workers.clear();
        self.server = None;
    }
}
