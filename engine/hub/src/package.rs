//! Files in packages, by the registries' ordinary clients.
//!
//! No registry is contacted from here: `pip download` and `npm pack` do, as the person has set them
//! up (mirrors, proxies, accounts). Neither runs code of the package: pip is held to wheels, npm to
//! no scripts.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use engine_base::{CancelToken, SecondsLeft};

use crate::archive;
use crate::config::HubOptions;
use crate::error::HubError;
use crate::manifest::{ModelFile, PackageRegistry, PackageSource};
use crate::meter::Meter;
use crate::part;

/// How often a running client is looked at.
const LOOK: Duration = Duration::from_millis(25);

/// End of a client's output that an error shows.
const TAIL_BYTES: u64 = 600;

/// Bring `members`, all of one package, into `folder`.
pub(crate) fn fetch(
    options: &HubOptions,
    by_hand: &str,
    folder: &Path,
    members: &[(&ModelFile, &PackageSource)],
    cancel: &CancelToken,
    meter: &mut Meter<'_>,
) -> Result<(), HubError> {
    let Some(&(_, source)) = members.first() else {
        return Ok(());
    };
    let work = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(&options.folder)
        .map_err(HubError::io("make a working folder", &options.folder))?;
    let client = ClientRun::new(options, source, work.path())?;
    client.run(by_hand, cancel, meter)?;
    let archive = client.archive()?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    for (_, source) in members {
        check_archive(&archive, &name, source, cancel)?;
    }
    archive::take(source.registry, &archive, folder, members, cancel, meter)
}

fn check_archive(
    archive: &Path,
    name: &str,
    source: &PackageSource,
    cancel: &CancelToken,
) -> Result<(), HubError> {
    if let Some(expected) = source.archive_bytes {
        let got = crate::hub::size_of(archive).unwrap_or(0);
        if got != expected {
            let what = format!("{name:?}");
            return Err(HubError::WrongSize {
                what,
                expected,
                got,
            });
        }
    }
    if let Some(expected) = &source.archive_sha256 {
        let got = part::hash_quietly(archive, cancel)?;
        if got != *expected {
            return Err(HubError::WrongHash {
                what: format!("{name:?}"),
                expected: expected.clone(),
                got,
            });
        }
    }
    Ok(())
}

/// One run of a client.
struct ClientRun<'a> {
    options: &'a HubOptions,
    source: &'a PackageSource,
    /// Where the archive goes.
    out: PathBuf,
    /// The client's own place for temporary files.
    scratch: PathBuf,
    log: PathBuf,
}

impl<'a> ClientRun<'a> {
    fn new(
        options: &'a HubOptions,
        source: &'a PackageSource,
        work: &Path,
    ) -> Result<Self, HubError> {
        let (out, scratch) = (work.join("out"), work.join("scratch"));
        for folder in [&out, &scratch] {
            fs::create_dir(folder).map_err(HubError::io("make a working folder", folder))?;
        }
        Ok(Self {
            options,
            source,
            out,
            scratch,
            log: work.join("log"),
        })
    }

    fn program(&self) -> &'a Path {
        match self.source.registry {
            PackageRegistry::Pypi => &self.options.python,
            PackageRegistry::Npm => &self.options.npm,
        }
    }

    fn client(&self) -> &'static str {
        match self.source.registry {
            PackageRegistry::Pypi => "pip",
            PackageRegistry::Npm => "npm",
        }
    }

    fn no_client(&self, reason: impl Into<String>) -> HubError {
        let install = match self.source.registry {
            PackageRegistry::Pypi => {
                "install Python 3 with pip (Debian, Ubuntu: apt-get install python3-pip)"
            }
            PackageRegistry::Npm => {
                "install Node.js with npm (Debian, Ubuntu: apt-get install npm)"
            }
        };
        HubError::NoClient {
            program: self.program().to_string_lossy().into_owned(),
            reason: reason.into(),
            install: install.to_owned(),
        }
    }

    fn command(&self) -> Command {
        let (name, version) = (&self.source.name, &self.source.version);
        let mut command = Command::new(self.program());
        match self.source.registry {
            PackageRegistry::Pypi => command
                .args(["-m", "pip", "download", "--no-deps"])
                .args(["--only-binary=:all:", "--no-input", "--no-cache-dir"])
                .args(["--disable-pip-version-check", "--progress-bar=off", "-d"])
                .arg(&self.out)
                .args(self.wheel_tags())
                .arg(format!("{name}=={version}")),
            PackageRegistry::Npm => command
                .args(["pack", "--ignore-scripts", "--silent"])
                .arg("--pack-destination")
                .arg(&self.out)
                .arg(format!("{name}@{version}")),
        };
        command
            .current_dir(&self.out)
            .env("TMPDIR", &self.scratch)
            .env("TEMP", &self.scratch)
            .env("TMP", &self.scratch)
            .stdin(Stdio::null());
        // Ctrl-C is ours to handle; the client ends when we say so.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    /// What makes pip take the wheel of another machine.
    fn wheel_tags(&self) -> Vec<&'a str> {
        match &self.source.wheel {
            None => Vec::new(),
            Some(tags) => vec![
                "--implementation=cp",
                "--python-version",
                &tags.python,
                "--platform",
                &tags.platform,
            ],
        }
    }

    fn run(
        &self,
        by_hand: &str,
        cancel: &CancelToken,
        meter: &mut Meter<'_>,
    ) -> Result<(), HubError> {
        let log = || File::options().append(true).create(true).open(&self.log);
        let (out, err) = log()
            .and_then(|out| Ok((out, log()?)))
            .map_err(HubError::io("open the client's log", &self.log))?;
        let mut command = self.command();
        let child = command.stdout(out).stderr(err).spawn();
        let mut child = Running(child.map_err(|error| self.no_client(error.to_string()))?);
        let what = format!("{} ({})", self.source.shown(), self.client());
        let of = self.source.archive_bytes.unwrap_or(0);
        let (began, mut left) = (Instant::now(), SecondsLeft::new(of as f64));
        let (mut grown, mut most) = (Instant::now(), 0);
        let status = loop {
            if let Some(status) = child.ended()? {
                break status;
            }
            cancel.check()?;
            // A client fetches into one file and copies it: the largest file is what has come.
            let bytes = largest_file(&self.scratch).max(largest_file(&self.out));
            if bytes > most {
                (grown, most) = (Instant::now(), bytes);
            }
            if grown.elapsed() >= self.options.client_timeout {
                return Err(HubError::Unreachable {
                    what,
                    reason: format!(
                        "{} brought nothing for {} s",
                        self.client(),
                        self.options.client_timeout.as_secs_f32()
                    ),
                    by_hand: by_hand.to_owned(),
                });
            }
            let shown = if of == 0 { most } else { most.min(of) };
            let secs = left.update(began.elapsed(), shown as f64);
            meter.beside(&what, shown, of, secs.filter(|_| of > 0));
            std::thread::sleep(LOOK);
        };
        if status.success() {
            return Ok(());
        }
        Err(self.failed(status, what, by_hand))
    }

    /// Why the client failed, by what it said last.
    fn failed(&self, status: ExitStatus, what: String, by_hand: &str) -> HubError {
        let said = tail(&self.log);
        if said.contains("No module named pip") {
            return self.no_client("this Python has no pip");
        }
        let unknown = [
            "No matching distribution",
            "E404",
            "ETARGET",
            "No matching version",
        ];
        let reached = ["(from versions: none)", "ENOTFOUND", "ECONNREFUSED"];
        if unknown.iter().any(|text| said.contains(text))
            && !reached.iter().any(|text| said.contains(text))
        {
            return HubError::NotThere { what, reason: said };
        }
        HubError::Unreachable {
            what,
            reason: format!("{} ended with {status}: {said}", self.client()),
            by_hand: by_hand.to_owned(),
        }
    }

    /// The one archive the client brought.
    fn archive(&self) -> Result<PathBuf, HubError> {
        let ending = match self.source.registry {
            PackageRegistry::Pypi => "whl",
            PackageRegistry::Npm => "tgz",
        };
        let read = |error| HubError::io("read the folder", &self.out)(error);
        let mut found = Vec::new();
        for item in fs::read_dir(&self.out).map_err(read)? {
            let item = item.map_err(read)?;
            if item.file_type().map_err(read)?.is_file() {
                found.push(item.path());
            }
        }
        match found.as_slice() {
            [only] if only.extension().is_some_and(|got| got == ending) => Ok(only.clone()),
            _ => Err(HubError::BadAnswer {
                what: self.source.shown(),
                reason: format!(
                    "expected one .{ending} from {}, got {} files",
                    self.client(),
                    found.len()
                ),
            }),
        }
    }
}

/// A child process that does not outlive its owner's interest.
struct Running(Child);

impl Running {
    fn ended(&mut self) -> Result<Option<ExitStatus>, HubError> {
        let looked = self.0.try_wait();
        looked.map_err(HubError::io("wait for the client", Path::new("")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // The client's own children too, where they can be named.
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.0.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let killed = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            if let Err(error) = killed {
                tracing::debug!("the client's group is not ended: {error}");
            }
        }
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn largest_file(folder: &Path) -> u64 {
    let mut largest = 0;
    // Files come and go while a client works: what cannot be read is not there.
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = item.file_type() else { continue };
        let bytes = if kind.is_dir() {
            largest_file(&item.path())
        } else {
            item.metadata().map_or(0, |found| found.len())
        };
        largest = largest.max(bytes);
    }
    largest
}

fn tail(log: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
