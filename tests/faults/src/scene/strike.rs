//! The faults themselves.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use longtake_faults::network::process::send;
use rustix::process::Signal;
use serde_json::Value;

use super::{Scene, Truth, lock};
use crate::fault::{Kind, Moment};

/// How long a killed process stays away.
const AWAY: Duration = Duration::from_secs(2);

/// Size of the disk that gets full.
const SMALL_DISK: &str = "size=24m";

impl Kind {
    /// Whether what the struck worker had finished could be asked for all the time.
    pub(crate) const fn leaves_workers_in_reach(self) -> bool {
        matches!(
            self,
            Self::Nothing
                | Self::ServerKilled
                | Self::OwnerKilled
                | Self::ServerWiped
                | Self::SlowLinks
                | Self::ClockOff
        )
    }
}

impl Scene {
    /// Strikes, and mends what a person would mend; gives how long that took at most.
    pub(super) fn strike(
        &self,
        kind: Kind,
        moment: &Moment,
        up: &Value,
        truth: &Truth,
    ) -> Result<Duration> {
        match kind {
            Kind::Nothing
            | Kind::SlowLinks
            | Kind::ClockOff
            | Kind::Corrupted
            | Kind::SlowWorker => Ok(Duration::ZERO),
            Kind::WorkerKilled => {
                if let Some(Some(worker)) = lock(&self.workers).get(moment.victim) {
                    worker.kill();
                }
                thread::sleep(AWAY);
                self.start_worker(moment.victim, up, kind, true)?;
                Ok(AWAY)
            }
            Kind::ServerKilled => {
                send(self.server_program()?, Signal::KILL);
                Ok(Duration::ZERO)
            }
            Kind::ServerWiped => {
                self.wipe_server()?;
                Ok(Duration::ZERO)
            }
            Kind::OwnerKilled => {
                if let Some(owner) = lock(&self.owner).as_ref() {
                    owner.kill();
                }
                thread::sleep(AWAY);
                self.start_owner(truth, 1)?;
                Ok(AWAY)
            }
            Kind::LinkCut(secs) => {
                let host = moment.victim + 1;
                self.network.set_link(host, false)?;
                let cut = moment.cut(secs);
                thread::sleep(cut);
                self.network.set_link(host, true)?;
                Ok(cut)
            }
            Kind::DiskFull => {
                let filler = self.worker_folder(moment.victim).join("cache/filler");
                fill(&filler)?;
                Ok(Duration::ZERO)
            }
        }
    }

    /// Process id of the nats-server that `cluster up` started.
    fn server_program(&self) -> Result<u32> {
        let path = self.server_folder().join("nats.pid");
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let id = text.trim().parse().context("expected a process id")?;
        ensure!(
            self.is_ours(id),
            "process {id} is not the server of this run"
        );
        Ok(id)
    }

    /// Whether a process has this run's folder in its command line.
    fn is_ours(&self, id: u32) -> bool {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains(&*self.folder.path().to_string_lossy())
    }

    /// Kills the server and removes all it has written, before it is started again.
    fn wipe_server(&self) -> Result<()> {
        let id = self.server_program()?;
        let Some(up) = lock(&self.server)
            .as_ref()
            .map(longtake_faults::network::Process::id)
        else {
            bail!("there is no server")
        };
        // Who would start it again stands still meanwhile.
        send(up, Signal::STOP);
        send(id, Signal::KILL);
        thread::sleep(Duration::from_millis(100));
        let wiped = fs::remove_dir_all(self.server_folder().join("jetstream"));
        send(up, Signal::CONT);
        wiped.context("cannot remove the server's store")
    }

    /// Ends a nats-server that its parent left behind.
    pub(super) fn end_server_program(&self) {
        if let Ok(id) = self.server_program() {
            send(id, Signal::KILL);
        }
    }

    /// Gives a worker a tenth of the time from now on.
    pub(super) fn slow_down(&self, worker: usize) -> Result<Slow> {
        let id = match lock(&self.workers).get(worker) {
            Some(Some(process)) => process.id(),
            _ => bail!("there is no worker {worker}"),
        };
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("slow".to_owned())
            .spawn(move || {
                while !seen.load(Ordering::Acquire) {
                    send(id, Signal::STOP);
                    thread::sleep(Duration::from_millis(90));
                    send(id, Signal::CONT);
                    thread::sleep(Duration::from_millis(10));
                }
            })?;
        Ok(Slow {
            over,
            thread: Some(thread),
        })
    }
}

/// A worker is slow until this is dropped.
pub(super) struct Slow {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Writes until nothing more can be written.
fn fill(path: &Path) -> Result<()> {
    let mut file = fs::File::create(path).context("cannot fill the disk")?;
    let mut size = 1 << 20;
    while size > 0 {
        match file.write(&vec![0_u8; size]) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => size /= 2,
            Err(error) => return Err(error).context("cannot fill the disk"),
        }
    }
    Ok(())
}

/// A small disk in memory; gone when dropped.
pub(super) struct Mount(PathBuf);

impl Mount {
    /// Whether this user may mount, and why not.
    pub(super) fn possible() -> Result<(), String> {
        if rustix::process::geteuid().is_root() {
            Ok(())
        } else {
            Err("needs root, for a disk of its own".to_owned())
        }
    }

    /// Mounts one at `path`.
    pub(super) fn small(path: &Path) -> Result<Self> {
        fs::create_dir_all(path)?;
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SMALL_DISK, "longtake-faults"])
            .arg(path)
            .status()
            .context("cannot mount a disk")?;
        ensure!(status.success(), "cannot mount a disk: {status}");
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a process that is about to end may still have it open.
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

/// The library that shifts a process's clock.
pub(super) fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.is_file())
}

/// Its wall clock is a day ahead; time that only runs is left alone.
pub(super) fn shift_clock(command: &mut Command) {
    if let Some(library) = faketime() {
        command.env("LD_PRELOAD", library);
        command.env("FAKETIME", "+1d");
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command.env("NO_FAKE_STAT", "1");
    }
}
