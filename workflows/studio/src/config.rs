//! Where things lie on this machine. The only module that reads environment variables.

use std::path::PathBuf;

use engine_base::Code;

use crate::error::StudioError;
use crate::llm_remote::Key;

/// Default size of the cache.
pub(crate) const CACHE_CAP_BYTES: u64 = 50 * 1024 * 1024 * 1024;

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// The machine's cache folder: `$LONGTAKE_CACHE`, else the system's place for caches.
///
/// # Errors
/// [`Code::NotFound`] when there is no home folder to put it in.
pub fn cache_folder() -> Result<PathBuf, StudioError> {
    if let Some(folder) = set("LONGTAKE_CACHE") {
        return Ok(folder);
    }
    let base = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Caches"))
    } else {
        set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("longtake")).ok_or_else(|| {
        let message = "cannot tell where the cache belongs: set LONGTAKE_CACHE to a folder";
        StudioError::new(Code::NotFound, message)
    })
}

/// Fault asked for by a kill test, `NAME` or `NAME:COUNT`: the process ends at the COUNT-th pass
/// of the point NAME.
pub(crate) fn fault_point() -> Option<(String, u64)> {
    let text = std::env::var("LONGTAKE_FAULT").ok()?;
    let (name, count) = text.rsplit_once(':').unwrap_or((&text, "1"));
    Some((name.to_owned(), count.parse().ok()?))
}

/// Key for the language model's server, from `LONGTAKE_LLM_KEY`.
pub(crate) fn llm_key() -> Option<Key> {
    let key = std::env::var("LONGTAKE_LLM_KEY").ok()?;
    (!key.trim().is_empty()).then(|| Key::new(key.trim().to_owned()))
}

/// The machine's name.
pub(crate) fn host_name() -> String {
    #[cfg(unix)]
    {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    }
    #[cfg(not(unix))]
    {
        std::env::var("COMPUTERNAME").unwrap_or_else(|_| "this machine".into())
    }
}
