//! A server with an owner and three workers on four hosts, a film, and one fault.

mod strike;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use engine_base::Key;
use longtake_faults::network::{Kind as NetKind, Links, Network, Process};
use serde_json::Value;

use crate::count::{self, Worker};
use crate::fault::{Fault, Kind, Moment};

/// Workers, on hosts 1 to 3; the server and the owner are on host 0.
pub(crate) const WORKERS: usize = 3;

/// The six-shot film.
const SCRIPT: &str = include_str!("film.md");

/// Its pictures.
const STILLS: &[&str] = &["shore", "lamp", "stair", "sea", "door", "light"];

/// How long a lease lasts without a sign of life.
const LEASE_SECS: u64 = 3;

/// How long a process may take to say that it is there.
const START: Duration = Duration::from_secs(40);

/// How long the film may take under any fault, besides the length of a cut.
const FILM: Duration = Duration::from_secs(150);

/// What a day is, in milliseconds, for the clock that is off.
const DAY_MILLIS: u64 = 86_400_000;

pub(crate) fn worker_name(worker: usize) -> String {
    format!("w{}", worker + 1)
}

/// A still in colours and lines of its own.
fn paint(path: &Path, nth: usize) -> Result<()> {
    let filter = format!("hue=h={}", nth * 60);
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-f", "lavfi"])
        .args(["-i", "testsrc2=size=320x200:rate=1"])
        .args(["-vf", &filter, "-frames:v", "1"])
        .arg(path)
        .status()
        .context("cannot start ffmpeg")?;
    ensure!(
        status.success(),
        "cannot paint {}: {status}",
        path.display()
    );
    Ok(())
}

/// Hashes of what each stream of a film holds, whatever its container says of when it was made.
fn stream_hashes(film: &Path) -> Result<String> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(film)
        .args(["-map", "0", "-c", "copy", "-f", "streamhash", "-"])
        .output()
        .context("cannot start ffmpeg")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && !text.is_empty(),
        "cannot read the film: {}: {}",
        String::from_utf8_lossy(&output.stderr).trim(),
        film.display()
    );
    Ok(text)
}

/// A folder for what a run leaves, on the disk of the build.
fn scratch() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let target = this.ancestors().nth(2).unwrap_or(&this);
    let folder = target.join("scratch");
    fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(folder)
}

/// The product's program: `named`, or the one built beside this one.
fn program(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        return named
            .canonicalize()
            .with_context(|| format!("no such program: {}", named.display()));
    }
    let this = std::env::current_exe().context("cannot find this program")?;
    let program = this.with_file_name("longtake");
    ensure!(program.is_file(), "not built yet: {}", program.display());
    Ok(program)
}

/// The film without a cluster.
pub(crate) struct Truth {
    program: PathBuf,
    film: tempfile::TempDir,
    hashes: String,
    pub(crate) keys: BTreeSet<Key>,
    pub(crate) wall: Duration,
    /// Files in its store.
    pub(crate) files: usize,
}

/// Files in the store in `cache`, at any depth.
fn files_of(cache: &Path) -> usize {
    let mut folders = vec![cache.join("blobs")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => files += 1,
            }
        }
    }
    files
}

impl Truth {
    /// Makes it.
    pub(crate) fn make(named: Option<&Path>) -> Result<Self> {
        let program = program(named)?;
        let film = tempfile::Builder::new()
            .prefix("longtake-faults-film-")
            .tempdir_in(scratch()?)?;
        fs::write(film.path().join("film.md"), SCRIPT)?;
        for (nth, name) in STILLS.iter().enumerate() {
            paint(&film.path().join(format!("{name}.png")), nth)?;
        }
        let place = film.path().join("alone");
        fs::create_dir_all(&place)?;
        let mut command = Command::new(&program);
        film_arguments(&mut command, film.path(), &place);
        let begun = Instant::now();
        let output = command.output().context("cannot start the program")?;
        let wall = begun.elapsed();
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let keys = count::results(&place.join("cache"))?.into_keys().collect();
        Ok(Self {
            program,
            hashes: stream_hashes(&place.join("film.mp4"))?,
            film,
            keys,
            wall,
            files: files_of(&place.join("cache")),
        })
    }
}

fn film_arguments(command: &mut Command, film: &Path, place: &Path) {
    command.env("LONGTAKE_CACHE", place.join("cache"));
    command.env_remove("LONGTAKE_FAULT");
    command.args([
        "film",
        "--json",
        "--preset",
        "ultrafast",
        "--mute",
        "--no-upscale",
    ]);
    command.arg("--script").arg(film.join("film.md"));
    command.arg("--stills").arg(film);
    command.arg("--out").arg(place.join("film.mp4"));
}

/// What was seen of a run.
pub(crate) struct Seen {
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    pub(crate) identical: bool,
    pub(crate) wall: Duration,
    pub(crate) notes: String,
}

/// One cluster on one network; everything is ended and removed when it is dropped.
pub(crate) struct Scene {
    // Dropped in this order: whoever uses a thing goes before it.
    owner: Mutex<Option<Process>>,
    workers: Mutex<Vec<Option<Process>>>,
    flips: Mutex<Vec<Process>>,
    server: Mutex<Option<Process>>,
    mounts: Mutex<Vec<strike::Mount>>,
    network: Network,
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Scene {
    /// The hosts, with nobody on them yet.
    pub(crate) fn open(fault: &Fault, truth: &Truth) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("longtake-faults-")
            .tempdir_in(scratch()?)?;
        fs::create_dir_all(folder.path().join("logs"))?;
        let links = match fault.kind {
            Kind::SlowLinks => Links::Slow {
                delay: Duration::from_millis(50),
                loss_percent: 5,
            },
            _ => Links::Plain,
        };
        let this = std::env::current_exe()?;
        let logs = folder.path().join("logs");
        let network = Network::open(1 + WORKERS as u8, links, &this, &logs)?;
        Ok(Self {
            owner: Mutex::default(),
            workers: Mutex::new((0..WORKERS).map(|_| None).collect()),
            flips: Mutex::default(),
            server: Mutex::default(),
            mounts: Mutex::default(),
            network,
            program: truth.program.clone(),
            folder,
        })
    }

    /// What it runs on, in a few words.
    pub(crate) fn about(&self) -> String {
        match self.network.kind() {
            NetKind::Namespaces => format!("{} hosts, each a network namespace", 1 + WORKERS),
            NetKind::Loopback => format!(
                "{} addresses of the loopback, no namespaces here: {}",
                1 + WORKERS,
                self.network.why_loopback().unwrap_or_default()
            ),
        }
    }

    /// Why a fault cannot be shown here.
    pub(crate) fn cannot(&self, fault: &Fault) -> Option<String> {
        let loopback = self.network.kind() == NetKind::Loopback;
        match fault.kind {
            Kind::LinkCut(_) | Kind::SlowLinks if loopback => {
                Some("links of the loopback can be neither cut nor slowed down".to_owned())
            }
            Kind::ClockOff if strike::faketime().is_none() => {
                Some("needs libfaketime (Debian package libfaketime)".to_owned())
            }
            Kind::DiskFull => strike::Mount::possible().err(),
            _ => None,
        }
    }

    fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    fn server_folder(&self) -> PathBuf {
        self.folder.path().join("server")
    }

    fn owner_folder(&self) -> PathBuf {
        self.folder.path().join("owner")
    }

    fn worker_folder(&self, worker: usize) -> PathBuf {
        self.folder.path().join(worker_name(worker))
    }

    /// Puts the logs where they outlive the run.
    pub(crate) fn keep_logs(&self, name: &str, nth: u32) {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = name.chars().map(plain).collect();
        let Ok(scratch) = scratch() else { return };
        let to = scratch.join(format!("faults-logs/{name}-{nth}"));
        if fs::create_dir_all(&to).is_err() {
            return;
        }
        for entry in fs::read_dir(self.logs()).into_iter().flatten().flatten() {
            // A log that cannot be kept is no reason to stop.
            drop(fs::copy(entry.path(), to.join(entry.file_name())));
        }
        drop(fs::copy(
            self.server_folder().join("nats.log"),
            to.join("nats.log"),
        ));
        println!("{:<34} logs: {}", "", to.display());
    }

    fn start_server(&self) -> Result<Value> {
        let mut command = self.network.command(0, &self.program);
        command.args(["cluster", "up", "--json", "--dir"]);
        command.arg(self.server_folder());
        command.args(["--bind", self.network.address(0), "--port", "4222"]);
        command.args(["--lease-secs", &LEASE_SECS.to_string()]);
        for worker in 0..WORKERS {
            command.args(["--worker", &worker_name(worker)]);
        }
        let server = Process::start("server", command, &self.logs())?;
        let line = server.line(START)?;
        *lock(&self.server) = Some(server);
        serde_json::from_str(&line).with_context(|| format!("the server said {line:?}"))
    }

    fn start_worker(&self, worker: usize, up: &Value, kind: Kind, is_victim: bool) -> Result<()> {
        let name = worker_name(worker);
        let host = worker + 1;
        let join = up["workers"][&name].as_str().or(up["join"].as_str());
        let Some(join) = join else {
            bail!("the server gave no line for {name}: {up}")
        };
        let mut command = self.network.command(host, &self.program);
        if is_victim && kind == Kind::ClockOff {
            strike::shift_clock(&mut command);
        }
        let folder = self.worker_folder(worker);
        fs::create_dir_all(&folder)?;
        command.env("LONGTAKE_CACHE", folder.join("cache"));
        let address = self.network.address(host);
        command.args(["worker", "--json", "--join", join, "--name", &name]);
        command.arg("--data").arg(folder.join("cache"));
        command.args(["--listen", &format!("{address}:7411")]);
        if is_victim && kind == Kind::Corrupted {
            // Others reach it through a relay at its other address.
            self.start_flip(host)?;
            command.args(["--advertise", self.network.other_address(host)]);
        }
        let process = Process::start(&name, command, &self.logs())?;
        process.line(START)?;
        if let Some(place) = lock(&self.workers).get_mut(worker) {
            *place = Some(process);
        }
        Ok(())
    }

    /// A relay before the worker on `host`.
    fn start_flip(&self, host: usize) -> Result<()> {
        let mut command = self.network.command(host, &std::env::current_exe()?);
        let listen = format!("{}:7411", self.network.other_address(host));
        command.args(["flip", "--listen", &listen]);
        command.args(["--to", &format!("{}:7411", self.network.address(host))]);
        let flip = Process::start("flip", command, &self.logs())?;
        flip.line(START)?;
        lock(&self.flips).push(flip);
        Ok(())
    }

    fn start_owner(&self, truth: &Truth, nth: u32) -> Result<()> {
        let mut command = self.network.command(0, &self.program);
        fs::create_dir_all(self.owner_folder())?;
        film_arguments(&mut command, truth.film.path(), &self.owner_folder());
        command.arg("--cluster").arg(self.server_folder());
        let owner = Process::start(&format!("owner{nth}"), command, &self.logs())?;
        *lock(&self.owner) = Some(owner);
        Ok(())
    }

    fn owner_ended(&self) -> Option<std::process::ExitStatus> {
        lock(&self.owner).as_ref().and_then(Process::ended)
    }

    /// The film under one fault.
    pub(crate) fn play(&self, fault: &Fault, moment: &Moment, truth: &Truth) -> Result<Seen> {
        let kind = fault.kind;
        if kind == Kind::DiskFull {
            let cache = self.worker_folder(moment.victim).join("cache");
            lock(&self.mounts).push(strike::Mount::small(&cache)?);
        }
        let up = self.start_server()?;
        for worker in 0..WORKERS {
            self.start_worker(worker, &up, kind, worker == moment.victim)?;
        }
        let begun = Instant::now();
        self.start_owner(truth, 0)?;
        let slow = (kind == Kind::SlowWorker)
            .then(|| self.slow_down(moment.victim))
            .transpose()?;
        let mut end = FILM;
        if kind.strikes() {
            let cache = self.owner_folder().join("cache");
            let wanted = moment.after(truth.files);
            while files_of(&cache) < wanted {
                ensure!(
                    self.owner_ended().is_none() && begun.elapsed() < FILM,
                    "the film ended with {} of {wanted} files before it was struck",
                    files_of(&cache)
                );
                std::thread::sleep(Duration::from_millis(10));
            }
            end += self.strike(kind, moment, &up, truth)?;
        }
        let status = match lock(&self.owner).as_ref() {
            Some(owner) => owner.wait(end)?,
            None => bail!("there is no owner"),
        };
        let wall = begun.elapsed();
        drop(slow);
        if !status.success() {
            let said = lock(&self.owner).as_ref().map(Process::complained);
            bail!("the film ended with {status}: {}", said.unwrap_or_default());
        }
        self.stop_all();
        self.look(kind, moment, truth, wall)
    }

    /// Ends everybody, so that their stores can be read.
    fn stop_all(&self) {
        let patience = Duration::from_secs(10);
        for worker in lock(&self.workers).iter().flatten() {
            worker.signal(rustix::process::Signal::CONT);
            worker.stop(patience);
        }
        if let Some(server) = lock(&self.server).as_ref() {
            server.stop(patience);
        }
    }

    /// Counts what was made, and compares the film.
    fn look(&self, kind: Kind, moment: &Moment, truth: &Truth, wall: Duration) -> Result<Seen> {
        let owner = count::results(&self.owner_folder().join("cache"))?;
        let mut workers = Vec::new();
        for worker in 0..WORKERS {
            let is_victim = worker == moment.victim;
            let mut made = count::results(&self.worker_folder(worker).join("cache"))?;
            if is_victim && kind == Kind::ClockOff {
                for made in made.values_mut() {
                    made.began_millis = made.began_millis.saturating_sub(DAY_MILLIS);
                    made.ended_millis = made.ended_millis.saturating_sub(DAY_MILLIS);
                }
            }
            workers.push(Worker {
                made,
                healthy: !is_victim || kind.leaves_workers_in_reach(),
            });
        }
        let by_workers: usize = workers.iter().map(|worker| worker.made.len()).sum();
        ensure!(by_workers > 0, "no worker made anything: nothing was shown");
        if kind == Kind::Corrupted {
            let flips = lock(&self.flips);
            // One line says that it is ready.
            let changed: usize = flips
                .iter()
                .map(|flip| flip.said().lines().count().saturating_sub(1))
                .sum();
            ensure!(
                changed > 0,
                "no artifact of the victim was asked for: nothing was shown"
            );
        }
        let each: Vec<String> = workers.iter().map(|w| w.made.len().to_string()).collect();
        Ok(Seen {
            lost: count::lost(&truth.keys, &owner),
            twice: count::made_twice(&owner, &workers),
            identical: stream_hashes(&self.owner_folder().join("film.mp4"))? == truth.hashes,
            wall,
            notes: format!(
                "made by the workers {}, {} by several",
                each.join(" + "),
                count::made_by_several(&workers)
            ),
        })
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop_all();
        self.end_server_program();
    }
}

/// What a poisoned lock holds is still to be ended.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
