//! `cargo xtask kernels`: compiles every kernel of the GPU for every target. No device is needed: NVIDIA's
//! run-time compiler comes as a package, by name and version, into a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{film, steps};

/// Hopper, and the GB10 of a DGX Spark.
pub(crate) const TARGETS: &str = "sm_90a,sm_121";

/// The package, with its version.
const REQUIREMENT: &str = "tests/tools/kernels.txt";

/// Compiles for each of `archs`, names joined by commas.
///
/// # Errors
/// The package cannot be fetched, or a kernel does not compile.
pub(crate) fn run(root: &Path, archs: &str, verbose: bool) -> Result<()> {
    let compiler = fetch(root)?;
    let mut bench = Command::new(film::cargo());
    bench
        .args(["run", "--quiet", "--locked", "--package", "engine-bench"])
        .args(["--", "kernels", "--arch", archs])
        .env("LD_LIBRARY_PATH", loader_path(&compiler))
        .current_dir(root);
    if verbose {
        bench.args(["--verbose", "yes"]);
    }
    steps::pass(&mut bench)
}

/// The folder first, then what was there.
fn loader_path(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(before) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(before);
    }
    path
}

/// The folder of the compiler's library, fetched once into the target folder.
fn fetch(root: &Path) -> Result<PathBuf> {
    let folder = film::target_folder(root)?.join("kernels");
    let wanted = std::fs::read_to_string(root.join(REQUIREMENT)).with_context(|| {
        format!("cannot read the name of the compiler's package: {REQUIREMENT}")
    })?;
    let done = folder.join("fetched");
    if std::fs::read_to_string(&done).is_ok_and(|fetched| fetched == wanted)
        && let Some(library) = library_in(&folder)
    {
        return Ok(library);
    }
    steps::pass(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    steps::pass(
        Command::new(folder.join("bin/python"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--requirement",
            ])
            .arg(root.join(REQUIREMENT)),
    )?;
    let library = library_in(&folder)
        .with_context(|| format!("the package {} brought no libnvrtc", wanted.trim()))?;
    std::fs::write(&done, wanted)?;
    Ok(library)
}

/// The folder below `folder` that holds libnvrtc.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((at, depth)) = open.pop() {
        let mut entries: Vec<PathBuf> = at
            .read_dir()
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        entries.sort();
        let is_library = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with("libnvrtc.so"))
        };
        if entries.iter().any(is_library) {
            return Some(at);
        }
        if depth < 8 {
            let folders = entries
                .into_iter()
                .filter(|path| path.is_dir() && !path.is_symlink());
            open.extend(folders.map(|path| (path, depth + 1)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_pinned() {
        let root = crate::root().unwrap();
        let wanted = std::fs::read_to_string(root.join(REQUIREMENT)).unwrap();
        let last = wanted.trim().lines().last().unwrap();
        let (name, version) = last.split_once("==").unwrap();
        assert_eq!(name, "nvidia-cuda-nvrtc");
        assert_eq!(version.split('.').count(), 3, "{version}");
    }

    #[test]
    fn the_library_is_found_where_the_package_puts_it() {
        let root = crate::root().unwrap();
        let name = format!("xtask-kernels-{}", std::process::id());
        let folder = film::target_folder(&root).unwrap().join(name);
        let lib = folder.join("lib/python3/site-packages/nvidia/cu13/lib");
        std::fs::create_dir_all(&lib).unwrap();
        assert_eq!(library_in(&folder), None);
        std::fs::write(lib.join("libnvrtc.so.13"), b"").unwrap();
        assert_eq!(library_in(&folder), Some(lib));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
