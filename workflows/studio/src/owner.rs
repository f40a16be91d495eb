//! One process owns an open project.
//!
//! The owner holds a lock that the system gives up when the process ends, however it ends, and
//! serves the project's commands on a loopback address that `owner.json` names. Requests carry a
//! token that only readers of that file (mode 0600) know.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use engine_base::{Clock, Code};
use serde::{Deserialize, Serialize};

use crate::error::StudioError;
use crate::say::Say;

const LOCK_FILE: &str = "owner.lock";
const INFO_FILE: &str = "owner.json";
/// A command with a whole script inside fits; anything longer is refused.
const REQUEST_MAX_BYTES: u64 = 16 * 1024 * 1024;
const CONNECTIONS_MAX: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Who owns a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerInfo {
    /// Its process id.
    pub pid: u32,
    /// The machine it runs on.
    pub host: String,
    /// What it is, such as `longtake film`.
    pub program: String,
    /// When it took the project, in milliseconds since 1970.
    pub since_unix_millis: u64,
    /// Loopback address of its command socket.
    pub address: SocketAddr,
    /// What a request has to carry.
    token: String,
}

/// One request to an owner.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    token: String,
    command: serde_json::Value,
}

/// One answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Done(serde_json::Value),
    Failed(StudioError),
}

/// Carries out one command sent to the owner.
pub(crate) type Handler =
    dyn Fn(serde_json::Value) -> Result<serde_json::Value, StudioError> + Send + Sync;

/// Ownership of a project folder, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Ownership {
    folder: PathBuf,
    _lock: File,
    info: OwnerInfo,
    listener: Option<TcpListener>,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Ownership {
    /// Take `folder` for this process.
    ///
    /// # Errors
    /// [`Code::Busy`] naming the owner when another process has it; input and output errors.
    pub(crate) fn take(
        folder: &Path,
        program: &str,
        clock: &dyn Clock,
    ) -> Result<Self, StudioError> {
        let path = folder.join(LOCK_FILE);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| StudioError::io("open the project's lock file", &path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(owned_by(folder)),
            Err(TryLockError::Error(error)) => {
                return Err(StudioError::io("lock the project", &path, &error));
            }
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .map_err(|error| StudioError::io("open a loopback socket for", folder, &error))?;
        let address = listener
            .local_addr()
            .map_err(|error| StudioError::io("open a loopback socket for", folder, &error))?;
        let info = OwnerInfo {
            pid: std::process::id(),
            host: crate::config::host_name(),
            program: program.to_owned(),
            since_unix_millis: clock.unix_millis(),
            address,
            token: random_token()?,
        };
        write_private(&folder.join(INFO_FILE), &info)?;
        Ok(Self {
            folder: folder.to_owned(),
            _lock: lock,
            info,
            listener: Some(listener),
            stop: Arc::new(AtomicBool::new(false)),
            server: None,
        })
    }

    /// Who this is.
    pub(crate) const fn info(&self) -> &OwnerInfo {
        &self.info
    }

    /// Begin to answer commands of other processes.
    ///
    /// # Errors
    /// No thread could be started.
    pub(crate) fn serve(&mut self, handler: Arc<Handler>) -> Result<(), StudioError> {
        let Some(listener) = self.listener.take() else {
            return Ok(());
        };
        let (token, stop) = (self.info.token.clone(), Arc::clone(&self.stop));
        let server = std::thread::Builder::new()
            .name("project-owner".into())
            .spawn(move || accept_all(&listener, &token, &handler, &stop))
            .map_err(|error| StudioError::io("start the owner's thread", &self.folder, &error))?;
        self.server = Some(server);
        Ok(())
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the accept loop; a failure means that it has already ended.
        drop(TcpStream::connect_timeout(
            &self.info.address,
            Duration::from_millis(200),
        ));
        if let Some(server) = self.server.take() {
            drop(server.join());
        }
        // The file is only a hint; the lock itself goes with the process.
        drop(std::fs::remove_file(self.folder.join(INFO_FILE)));
    }
}

/// Who owns `folder`, when a living process does.
///
/// # Errors
/// The folder cannot be read.
pub fn owner_of(folder: &Path) -> Result<Option<OwnerInfo>, StudioError> {
    let path = folder.join(LOCK_FILE);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(StudioError::io(
                "open the project's lock file",
                &path,
                &error,
            ));
        }
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => read_info(folder).map(Some),
        Err(TryLockError::Error(error)) => {
            Err(StudioError::io("look at the project's lock", &path, &error))
        }
    }
}

/// Send `command` to the owner and wait for its answer.
///
/// # Errors
/// The owner cannot be reached, or the command failed there.
pub(crate) fn ask(
    owner: &OwnerInfo,
    command: serde_json::Value,
) -> Result<serde_json::Value, StudioError> {
    let unreachable = |error: &dyn std::fmt::Display| {
        StudioError::new(
            Code::Busy,
            format!("cannot reach {}: {error}", describe(owner)),
        )
    };
    let mut stream =
        TcpStream::connect_timeout(&owner.address, TIMEOUT).map_err(|error| unreachable(&error))?;
    let request = Request {
        token: owner.token.clone(),
        command,
    };
    let mut line = serde_json::to_vec(&request).map_err(|error| unreachable(&error))?;
    line.push(b'\n');
    stream
        .write_all(&line)
        .map_err(|error| unreachable(&error))?;
    let mut answer = String::new();
    let limit = BufReader::new(stream)
        .take(REQUEST_MAX_BYTES)
        .read_to_string(&mut answer);
    limit.map_err(|error| unreachable(&error))?;
    match serde_json::from_str(&answer).map_err(|error| unreachable(&error))? {
        Answer::Done(value) => Ok(value),
        Answer::Failed(error) => Err(error),
    }
}

/// The owner in words.
pub fn describe(owner: &OwnerInfo) -> String {
    let (program, pid, host) = (&owner.program, owner.pid, &owner.host);
    format!("{program:?} (process {pid} on {host})")
}

fn owned_by(folder: &Path) -> StudioError {
    let Ok(info) = read_info(folder) else {
        let message = format!("cannot open the project: another process opens it now: {folder:?}");
        return StudioError::new(Code::Busy, message);
    };
    let say = Say::OpenIn {
        program: info.program,
        pid: i64::from(info.pid),
        host: info.host,
        path: folder.display().to_string(),
    };
    StudioError::said(Code::Busy, &say)
}

fn read_info(folder: &Path) -> Result<OwnerInfo, StudioError> {
    let path = folder.join(INFO_FILE);
    let bytes = std::fs::read(&path)
        .map_err(|error| StudioError::io("read who owns the project", &path, &error))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        StudioError::new(
            Code::Corrupt,
            format!("cannot read who owns the project: {error}: {path:?}"),
        )
    })
}

fn write_private(path: &Path, info: &OwnerInfo) -> Result<(), StudioError> {
    let failed =
        |error: &std::io::Error| StudioError::io("write who owns the project", path, error);
    // A new file each time: its mode is set when it is made, before the token is in it.
    drop(std::fs::remove_file(path));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| failed(&error))?;
    let bytes = serde_json::to_vec_pretty(info).unwrap_or_default();
    file.write_all(&bytes).map_err(|error| failed(&error))
}

fn random_token() -> Result<String, StudioError> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        StudioError::new(
            Code::Internal,
            format!("cannot draw a random token: {error}"),
        )
    })?;
    Ok(engine_base::ContentHash::of(&bytes).to_hex())
}

fn accept_all(listener: &TcpListener, token: &str, handler: &Arc<Handler>, stop: &Arc<AtomicBool>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (token, handler, open_here) =
            (token.to_owned(), Arc::clone(handler), Arc::clone(&open));
        let thread = std::thread::Builder::new()
            .name("project-client".into())
            .spawn(move || {
                if let Err(error) = answer_one(&stream, &token, &handler) {
                    tracing::debug!("a client of the project went away: {error}");
                }
                open_here.fetch_sub(1, Ordering::AcqRel);
            });
        if thread.is_err() {
            open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn answer_one(stream: &TcpStream, token: &str, handler: &Arc<Handler>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(REQUEST_MAX_BYTES)).read_until(b'\n', &mut line)?;
    let answer = match serde_json::from_slice::<Request>(&line) {
        Ok(request) if same_token(&request.token, token) => match handler(request.command) {
            Ok(value) => Answer::Done(value),
            Err(error) => Answer::Failed(error),
        },
        Ok(_) => Answer::Failed(StudioError::new(Code::NotPermitted, "wrong token")),
        Err(error) => {
            let message = format!("cannot read the request: {error}");
            Answer::Failed(StudioError::new(Code::BadInput, message))
        }
    };
    let mut writer = stream;
    writer.write_all(&serde_json::to_vec(&answer)?)
}

/// Compares hashes, so that the time taken says nothing about how much was right.
fn same_token(got: &str, expected: &str) -> bool {
    use engine_base::ContentHash;
    ContentHash::of(got.as_bytes()) == ContentHash::of(expected.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine_base::SystemClock;

    #[test]
    fn a_second_owner_is_refused_and_told_who() {
        let folder = tempfile::tempdir().unwrap();
        let first = Ownership::take(folder.path(), "longtake film", &SystemClock::new()).unwrap();
        let second = Ownership::take(folder.path(), "longtake edit", &SystemClock::new());
        let error = second.unwrap_err();
        assert_eq!(error.code, Code::Busy);
        let pid = std::process::id().to_string();
        assert!(
            error.message.contains("longtake film") && error.message.contains(&pid),
            "{error}"
        );
        assert_eq!(
            owner_of(folder.path()).unwrap().as_ref(),
            Some(first.info())
        );
        drop(first);
        assert_eq!(owner_of(folder.path()).unwrap(), None);
        Ownership::take(folder.path(), "longtake edit", &SystemClock::new()).unwrap();
    }

    #[test]
    fn commands_need_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let mut owner = Ownership::take(folder.path(), "test", &SystemClock::new()).unwrap();
        owner
            .serve(Arc::new(|command| {
                Ok(serde_json::json!({ "echo": command }))
            }))
            .unwrap();
        let mut info = owner.info().clone();
        let answer = ask(&info, serde_json::json!("hello")).unwrap();
        assert_eq!(answer, serde_json::json!({ "echo": "hello" }));
        info.token = "x".into();
        assert_eq!(
            ask(&info, serde_json::json!("hello")).unwrap_err().code,
            Code::NotPermitted
        );
        let mut raw = TcpStream::connect(info.address).unwrap();
        raw.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        raw.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("bad_input"), "{answer}");
    }

    #[cfg(unix)]
    #[test]
    fn the_token_is_for_this_user_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let _owner = Ownership::take(folder.path(), "test", &SystemClock::new()).unwrap();
        let mode = std::fs::metadata(folder.path().join(INFO_FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
