//! Compiled kernels on disk.
//!
//! A file's name is the hash of what it was made from: source, architecture, compiler. Its first line is the
//! hash of its content, so that a torn or foreign file is made anew instead of loaded.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use engine_base::ContentHash;

use crate::CudaError;

const MAGIC: &[u8] = b"longtake cubin 1 ";
/// Larger files are none of ours.
const LIMIT_BYTES: u64 = 64 << 20;

/// A folder of compiled kernels. Without a folder, or where it cannot be written, kernels are compiled each time.
#[derive(Debug, Clone, Default)]
pub struct CubinCache {
    folder: Option<PathBuf>,
}

impl CubinCache {
    /// In `folder`, which is made when something is first kept.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// In the user's cache: `$LONGTAKE_CACHE/kernels`, else `kernels` under the system's place for caches.
    pub fn of_user() -> Self {
        let set = |name| std::env::var_os(name).map(PathBuf::from);
        let folder = set("LONGTAKE_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("longtake")))
            .or_else(|| set("HOME").map(|home| home.join(".cache/longtake")));
        Self::new(folder.map(|folder| folder.join("kernels")))
    }

    /// The name under which `source` for `arch` by compiler `version` is kept.
    pub fn key(source: &str, arch: &str, version: (i32, i32)) -> ContentHash {
        let (major, minor) = version;
        ContentHash::of(format!("{arch}\n{major}.{minor}\n{source}").as_bytes())
    }

    /// What is kept under `key`, else what `compile` makes, which is then kept. Files that are damaged or not
    /// ours, and folders that cannot be read or written, cost a compilation and no more.
    ///
    /// # Errors
    /// Those of `compile`.
    pub fn get_or_compile(
        &self,
        key: ContentHash,
        compile: impl FnOnce() -> Result<Vec<u8>, CudaError>,
    ) -> Result<Vec<u8>, CudaError> {
        if let Some(cubin) = self.kept(key) {
            return Ok(cubin);
        }
        let cubin = compile()?;
        if let Some(path) = self.path(key)
            && let Err(error) = keep(&path, &cubin)
        {
            tracing::debug!("compiled kernels are not kept: {error}: {}", path.display());
        }
        Ok(cubin)
    }

    /// What is kept under `key` and whole.
    pub fn kept(&self, key: ContentHash) -> Option<Vec<u8>> {
        let path = self.path(key)?;
        let about = fs::metadata(&path).ok()?;
        if !about.is_file() || about.len() > LIMIT_BYTES {
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        let whole = checked(&bytes).map(<[u8]>::to_vec);
        if whole.is_none() {
            tracing::debug!("a file of compiled kernels is damaged: {}", path.display());
        }
        whole
    }

    /// Forgets what is kept under `key`: the driver refused it.
    pub fn forget(&self, key: ContentHash) {
        if let Some(path) = self.path(key)
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::debug!(
                "a file of compiled kernels stays: {error}: {}",
                path.display()
            );
        }
    }

    fn path(&self, key: ContentHash) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("{}.cubin", key.to_hex())))
    }
}

/// The machine code in `bytes`; `None` unless its hash is the one stated.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (hash, rest) = rest.split_at_checked(64)?;
    let cubin = rest.strip_prefix(b"\n")?;
    (hash == ContentHash::of(cubin).to_hex().as_bytes()).then_some(cubin)
}

fn keep(path: &Path, cubin: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let temporary = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = fs::File::create(&temporary)?;
    file.write_all(MAGIC)?;
    file.write_all(ContentHash::of(cubin).to_hex().as_bytes())?;
    file.write_all(b"\n")?;
    file.write_all(cubin)?;
    drop(file);
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled() -> Result<Vec<u8>, CudaError> {
        Ok(b"machine code".to_vec())
    }

    fn never() -> Result<Vec<u8>, CudaError> {
        panic!("compiled again")
    }

    #[test]
    fn what_was_compiled_is_kept_by_source_target_and_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::new(Some(folder.path().join("new/kernels")));
        let key = CubinCache::key("x", "sm_90a", (13, 0));
        assert_eq!(
            cache.get_or_compile(key, compiled).unwrap(),
            b"machine code"
        );
        assert_eq!(cache.get_or_compile(key, never).unwrap(), b"machine code");
        for other in [
            CubinCache::key("y", "sm_90a", (13, 0)),
            CubinCache::key("x", "sm_121", (13, 0)),
            CubinCache::key("x", "sm_90a", (13, 1)),
        ] {
            assert_eq!(cache.kept(other), None);
        }
        cache.forget(key);
        assert_eq!(cache.kept(key), None);
    }

    #[test]
    fn damaged_and_foreign_files_are_compiled_anew() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::new(Some(folder.path().to_owned()));
        let key = CubinCache::key("x", "sm_90a", (13, 0));
        cache.get_or_compile(key, compiled).unwrap();
        let path = cache.path(key).unwrap();
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let foreign = b"\x7fELF another program's".to_vec();
        let torn = whole[..whole.len() - 3].to_vec();
        for bytes in [flipped, foreign, torn, Vec::new(), MAGIC.to_vec()] {
            fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.kept(key), None, "{bytes:?}");
            assert_eq!(
                cache.get_or_compile(key, compiled).unwrap(),
                b"machine code"
            );
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_a_compilation() {
        // A file where the folder should be refuses every user, root too.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let cache = CubinCache::new(Some(file.join("kernels")));
        let key = CubinCache::key("x", "sm_90a", (13, 0));
        for _ in 0..2 {
            assert_eq!(
                cache.get_or_compile(key, compiled).unwrap(),
                b"machine code"
            );
        }
        assert_eq!(CubinCache::new(None).kept(key), None);
    }
}
