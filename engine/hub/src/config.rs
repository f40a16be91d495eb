//! Where models lie on this machine. The only module that reads environment variables.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::HubError;

/// Address of the model hub when `HF_ENDPOINT` names no other.
const HUB_ENDPOINT: &str = "https://huggingface.co";

/// How to work with models.
#[derive(Clone)]
pub struct HubOptions {
    /// The models folder.
    pub folder: PathBuf,
    /// Address of the model hub, without a path.
    pub endpoint: String,
    /// Token for the model hub; sent to `endpoint` only.
    pub token: Option<String>,
    /// Fetch nothing.
    pub offline: bool,
    /// Contact nothing but this machine, and no proxy.
    pub loopback_only: bool,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the next bytes.
    pub stall_timeout: Duration,
    /// Longest wait for a package client that writes nothing.
    pub client_timeout: Duration,
    /// Tries in a row that may bring (nearly) nothing.
    pub tries: u32,
    /// Wait after the first failed try; it doubles with each further one, up to half a minute.
    pub backoff: Duration,
    /// Python that has pip.
    pub python: PathBuf,
    /// The npm program.
    pub npm: PathBuf,
}

impl std::fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the token: debug output ends in logs.
        f.debug_struct("HubOptions")
            .field("folder", &self.folder)
            .field("endpoint", &self.endpoint)
            .field("offline", &self.offline)
            .finish_non_exhaustive()
    }
}

impl HubOptions {
    /// Defaults, with models in `folder`; reads no environment variables.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let (python, npm) = if cfg!(windows) {
            ("python", "npm.cmd")
        } else {
            ("python3", "npm")
        };
        Self {
            folder: folder.into(),
            endpoint: HUB_ENDPOINT.into(),
            token: None,
            offline: false,
            loopback_only: false,
            connect_timeout: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(30),
            client_timeout: Duration::from_secs(300),
            tries: 5,
            backoff: Duration::from_millis(500),
            python: python.into(),
            npm: npm.into(),
        }
    }

    /// What this machine's environment says: the folder by [`models_folder`], the model hub by
    /// `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE`.
    ///
    /// # Errors
    /// [`HubError::NoFolder`].
    pub fn of_this_machine() -> Result<Self, HubError> {
        let mut options = Self::in_folder(models_folder()?);
        if let Some(endpoint) = text("HF_ENDPOINT") {
            endpoint
                .trim_end_matches('/')
                .clone_into(&mut options.endpoint);
        }
        options.token = text("HF_TOKEN");
        options.offline = text("HF_HUB_OFFLINE").is_some_and(|value| {
            matches!(
                value.to_ascii_lowercase().as_str(),
                "1" | "true" | "yes" | "on"
            )
        });
        Ok(options)
    }
}

fn text(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
}

fn folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// The machine's models folder: `$LONGTAKE_MODELS`, else `longtake/models` in the system's place
/// for data.
///
/// # Errors
/// [`HubError::NoFolder`] when there is no home folder to put it in.
pub fn models_folder() -> Result<PathBuf, HubError> {
    if let Some(folder) = folder("LONGTAKE_MODELS") {
        return Ok(folder);
    }
    let base = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        folder("XDG_DATA_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("longtake").join("models"))
        .ok_or(HubError::NoFolder)
}
