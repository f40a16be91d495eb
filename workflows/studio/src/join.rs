//! A studio that runs on this machine already, as another process reaches it.
//!
//! Whoever serves a studio says so in `studio.json` of its data folder: process, program and
//! loopback address. The token lies beside it, for this user only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine_base::Code;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::desk::Desk;
use crate::error::StudioError;
use crate::say::Say;

const FILE: &str = "studio.json";
/// Longest time that a command of another process may take: a plan of a long film is below it.
const PATIENCE: Duration = Duration::from_secs(600);
/// Longest time that reaching it may take.
const REACH: Duration = Duration::from_secs(5);

/// What can carry out commands: the desk itself, or another process's.
pub trait Commands: Send + Sync {
    /// Carry out the command `name`.
    ///
    /// # Errors
    /// As [`Desk::call`].
    fn call(&self, name: &str, args: Value) -> Result<Value, StudioError>;
}

impl Commands for Desk {
    fn call(&self, name: &str, args: Value) -> Result<Value, StudioError> {
        Self::call(self, name, args)
    }
}

/// What stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    pid: u32,
    program: String,
    version: String,
    address: SocketAddr,
    /// Whether it serves pages too, not only commands.
    #[serde(default)]
    pages: bool,
}

/// A studio that another process runs.
#[derive(Debug)]
pub struct RunningStudio {
    told: Told,
    token: String,
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
}

/// Takes the file away when the server ends.
#[derive(Debug)]
pub(crate) struct Announced(PathBuf);

impl Drop for Announced {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Say that this process serves the studio of `folder` at `address`, with `pages` or commands only.
pub(crate) fn announce(
    folder: &Path,
    program: &str,
    address: SocketAddr,
    pages: bool,
) -> Result<Announced, StudioError> {
    let path = folder.join(FILE);
    let told = Told {
        pid: std::process::id(),
        program: program.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: here(address),
        pages,
    };
    let text = serde_json::to_string_pretty(&told).unwrap_or_default();
    std::fs::write(&path, text)
        .map_err(|error| StudioError::io("say where the studio is", &path, &error))?;
    Ok(Announced(path))
}

/// The address by which this machine reaches itself.
fn here(address: SocketAddr) -> SocketAddr {
    let loopback: IpAddr = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    (loopback, address.port()).into()
}

fn told_in(folder: &Path) -> Option<Told> {
    let bytes = std::fs::read(folder.join(FILE)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Why the studio of `folder` cannot be opened here: who has it, and what to do.
pub(crate) fn busy(folder: &Path) -> StudioError {
    let path = folder.display().to_string();
    let say = match told_in(folder) {
        Some(told) => Say::StudioRuns {
            program: told.program,
            pid: i64::from(told.pid),
            address: told.address.to_string(),
            path,
        },
        None => Say::StudioStarts { path },
    };
    StudioError::said(Code::Busy, &say)
}

impl RunningStudio {
    /// The studio that runs on the data folder, when it can be reached with the token in it.
    ///
    /// # Errors
    /// [`Code::Busy`] when there is none that answers, saying who should.
    pub fn find(folder: &Path) -> Result<Self, StudioError> {
        let told = told_in(folder).ok_or_else(|| busy(folder))?;
        let path = folder.join("token");
        let token = std::fs::read_to_string(&path)
            .map_err(|error| StudioError::io("read the studio's token", &path, &error))?;
        let internal = |error: &dyn std::fmt::Display| {
            StudioError::new(Code::Internal, format!("cannot ask the studio: {error}"))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| internal(&error))?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(REACH)
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| internal(&error))?;
        let found = Self {
            told,
            token: token.trim().to_owned(),
            http,
            runtime,
        };
        found
            .call("app.state", serde_json::json!({}))
            .map_err(|_no_answer| busy(folder))?;
        Ok(found)
    }

    /// Its process.
    pub const fn pid(&self) -> u32 {
        self.told.pid
    }

    /// What it is, such as `longtake serve`.
    pub fn program(&self) -> &str {
        &self.told.program
    }

    /// Version of the program that runs it.
    pub fn version(&self) -> &str {
        &self.told.version
    }

    /// Whether a browser or a window can show it.
    pub const fn has_pages(&self) -> bool {
        self.told.pages
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.told.address
    }

    /// What a request has to carry.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The address that lets a browser in, with the token. For the owner's eyes only.
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.told.address, self.token)
    }
}

impl Commands for RunningStudio {
    fn call(&self, name: &str, args: Value) -> Result<Value, StudioError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Answer {
            Ok(Value),
            Error(StudioError),
        }
        let away = |error: reqwest::Error| {
            let say = Say::StudioAway {
                program: self.told.program.clone(),
                pid: i64::from(self.told.pid),
                why: error.without_url().to_string(),
            };
            StudioError::said(Code::Busy, &say)
        };
        let url = format!("http://{}/api/call/{name}", self.told.address);
        let request = self.http.post(url).bearer_auth(&self.token).json(&args);
        let answer = self.runtime.block_on(async move {
            let answer = request.send().await?;
            answer.json::<Answer>().await
        });
        match answer.map_err(away)? {
            Answer::Ok(value) => Ok(value),
            Answer::Error(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_reached_on_this_machine() {
        let of = |text: &str| here(text.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:7700"), "127.0.0.1:7700");
        assert_eq!(of("[::]:7700"), "[::1]:7700");
        assert_eq!(of("192.0.2.1:7700"), "192.0.2.1:7700");
    }

    #[test]
    fn a_studio_that_does_not_answer_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = RunningStudio::find(folder.path()).unwrap_err();
        assert_eq!(error.code, Code::Busy);
        // A port that nobody listens on any more.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        std::fs::write(folder.path().join("token"), "x").unwrap();
        let told = announce(folder.path(), "longtake serve", address, true).unwrap();
        let error = RunningStudio::find(folder.path()).unwrap_err();
        assert_eq!(error.code, Code::Busy);
        let pid = std::process::id().to_string();
        let names = error.message.contains("longtake serve") && error.message.contains(&pid);
        assert!(names, "{error}");
        drop(told);
        assert!(!folder.path().join(FILE).exists());
    }
}
