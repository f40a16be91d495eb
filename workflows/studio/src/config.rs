//! Where things lie on this machine. The only module that reads environment variables.

use std::path::PathBuf;

use engine_base::Code;
use engine_pipelines::Affinity;

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

/// The machine's folder for what the studio remembers: `$LONGTAKE_DATA`, else the system's place
/// for data.
///
/// # Errors
/// [`Code::NotFound`] when there is no home folder to put it in.
pub(crate) fn data_folder() -> Result<PathBuf, StudioError> {
    if let Some(folder) = set("LONGTAKE_DATA") {
        return Ok(folder);
    }
    let base = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("longtake/studio"))
        .ok_or_else(|| {
            let message =
                "cannot tell where the studio's data belongs: set LONGTAKE_DATA to a folder";
            StudioError::new(Code::NotFound, message)
        })
}

/// The folder of this machine's cluster: below [`data_folder`].
///
/// # Errors
/// As [`data_folder`].
pub(crate) fn cluster_folder() -> Result<PathBuf, StudioError> {
    data_folder().map(|folder| folder.join("cluster"))
}

/// The cluster that films go to unless told otherwise, from `LONGTAKE_CLUSTER`.
pub fn cluster_of_environment() -> Option<String> {
    let cluster = std::env::var("LONGTAKE_CLUSTER").ok()?;
    (!cluster.trim().is_empty()).then(|| cluster.trim().to_owned())
}

/// The server program of a cluster, from `LONGTAKE_NATS_SERVER`, in the place of looking for it.
pub(crate) fn nats_server() -> Option<PathBuf> {
    set("LONGTAKE_NATS_SERVER")
}

/// Folders in which a cluster's server program may lie besides the PATH: beside this program, and
/// where setup puts it.
pub(crate) fn program_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Ok(program) = std::env::current_exe()
        && let Some(folder) = program.parent()
    {
        folders.push(folder.to_owned());
        // A build's folder is below the target folder, in which setup makes `nats`.
        let above = folder.ancestors().take(4);
        folders.extend(above.map(|folder| folder.join("nats/bin")));
    }
    folders.extend(set("HOME").map(|home| home.join(".local/bin")));
    folders
}

/// Where new projects go unless the settings say otherwise: `$LONGTAKE_PROJECTS`, else `Longtake`
/// in the home folder.
pub(crate) fn projects_folder() -> Option<PathBuf> {
    let home = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    set("LONGTAKE_PROJECTS").or_else(|| set(home).map(|home| home.join("Longtake")))
}

/// Threads of a model, from `LONGTAKE_THREADS`; 0 for one per processor.
///
/// # Errors
/// Another value than a number.
pub(crate) fn threads() -> Result<usize, StudioError> {
    number_of("LONGTAKE_THREADS", std::env::var("LONGTAKE_THREADS").ok())
}

/// Whether each thread of a model has a processor of its own, from `LONGTAKE_PIN`.
///
/// # Errors
/// Another value than 0 or 1.
pub(crate) fn affinity() -> Result<Affinity, StudioError> {
    match number_of("LONGTAKE_PIN", std::env::var("LONGTAKE_PIN").ok())? {
        0 => Ok(Affinity::Free),
        1 => Ok(Affinity::Pinned),
        other => {
            let message = format!("LONGTAKE_PIN is {other}, expected 0 or 1");
            Err(StudioError::new(Code::BadInput, message))
        }
    }
}

fn number_of(name: &str, value: Option<String>) -> Result<usize, StudioError> {
    let value = value.unwrap_or_default();
    match value.trim() {
        "" => Ok(0),
        digits => digits.parse().map_err(|_not_a_number| {
            let message = format!("{name} is {value:?}, expected a number");
            StudioError::new(Code::BadInput, message)
        }),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_environment_are_read_or_named() {
        let of = |value: &str| number_of("LONGTAKE_THREADS", Some(value.to_owned()));
        assert_eq!(number_of("LONGTAKE_THREADS", None), Ok(0));
        assert_eq!((of(""), of(" 2 ")), (Ok(0), Ok(2)));
        for wrong in ["two", "-1", "1.5"] {
            let message = of(wrong).unwrap_err().message;
            assert!(
                message.contains("LONGTAKE_THREADS") && message.contains(wrong),
                "{message}"
            );
        }
    }
}
