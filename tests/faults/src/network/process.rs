//! A process that a test started and ends by its id.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::NetworkError;

/// How often a wait looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A started process with files for what it says. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Mutex<Child>,
    id: u32,
    out: PathBuf,
    err: PathBuf,
}

impl Process {
    /// Starts `command`; what it says goes to `LOGS/NAME.out` and `.err`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(name: &str, mut command: Command, logs: &Path) -> Result<Self, NetworkError> {
        let failed = |source| NetworkError::Io {
            what: format!("start {name}"),
            source,
        };
        let (out, err) = (
            logs.join(format!("{name}.out")),
            logs.join(format!("{name}.err")),
        );
        command.stdin(Stdio::null());
        command.stdout(File::create(&out).map_err(failed)?);
        command.stderr(File::create(&err).map_err(failed)?);
        let child = command.spawn().map_err(failed)?;
        Ok(Self {
            name: name.to_owned(),
            id: child.id(),
            child: Mutex::new(child),
            out,
            err,
        })
    }

    /// Its process id.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// What it wrote to standard output so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// The end of what it wrote to standard error.
    pub fn complained(&self) -> String {
        let text = fs::read_to_string(&self.err).unwrap_or_default();
        let from = text.len().saturating_sub(1500);
        let from = (from..text.len()).find(|at| text.is_char_boundary(*at));
        text[from.unwrap_or(0)..].trim().to_owned()
    }

    /// Its first whole line on standard output.
    ///
    /// # Errors
    /// [`NetworkError::Late`], also when it ended without one.
    pub fn line(&self, within: Duration) -> Result<String, NetworkError> {
        let start = Instant::now();
        loop {
            let said = self.said();
            if let Some((line, _)) = said.split_once('\n') {
                return Ok(line.to_owned());
            }
            if self.ended().is_some() || start.elapsed() > within {
                return Err(self.late("print a line", within));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// That something did not happen in time.
    pub fn late(&self, what: &str, within: Duration) -> NetworkError {
        NetworkError::Late {
            who: self.name.clone(),
            what: what.to_owned(),
            secs: within.as_secs(),
            said: self.complained(),
        }
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().ok()?.try_wait().ok().flatten()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`NetworkError::Late`].
    pub fn wait(&self, within: Duration) -> Result<ExitStatus, NetworkError> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if start.elapsed() > within {
                return Err(self.late("end", within));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends it a signal, unless it has ended: its id may be another's then.
    pub fn signal(&self, signal: Signal) {
        if self.ended().is_none() {
            send(self.id, signal);
        }
    }

    /// Ends it as a loss of power would.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        if let Ok(mut child) = self.child.lock() {
            drop(child.wait());
        }
    }

    /// Asks it to end, and kills it when it does not.
    pub fn stop(&self, within: Duration) {
        self.signal(Signal::TERM);
        if self.wait(within).is_err() {
            self.kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a process that we know to be ours.
pub fn send(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        kill_process(pid, signal).ok();
    }
}
