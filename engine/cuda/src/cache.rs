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
/// Ending of files that hold a chosen algorithm.
const CHOICE: &str = "choice";
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
        self.path_of(key, "cubin")
    }

    fn path_of(&self, key: ContentHash, ending: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("{}.{ending}", key.to_hex())))
    }

    /// The name under which the algorithm of a product is kept: `library` is cuBLASLt's version, whose builds alone read
    /// each other's choices; `shape` tells outputs, inputs, types and class.
    pub fn choice_key(device: &str, library: usize, shape: &str) -> ContentHash {
        ContentHash::of(format!("cublaslt {library}\n{device}\n{shape}").as_bytes())
    }

    /// The choice under `key`; `None` where none is kept, or what is kept is damaged or of another length.
    pub fn choice(&self, key: ContentHash) -> Option<[u64; 8]> {
        let path = self.path_of(key, CHOICE)?;
        let about = fs::metadata(&path).ok()?;
        if !about.is_file() || about.len() > 4096 {
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        let (words, rest) = checked(&bytes)?.as_chunks::<8>();
        let words: [[u8; 8]; 8] = words.try_into().ok()?;
        rest.is_empty().then(|| words.map(u64::from_le_bytes))
    }

    /// Keeps a choice; a folder that cannot be written costs asking again and no more.
    pub fn keep_choice(&self, key: ContentHash, choice: [u64; 8]) {
        let bytes = choice.map(u64::to_le_bytes);
        if let Some(path) = self.path_of(key, CHOICE)
            && let Err(error) = keep(&path, bytes.as_flattened())
        {
            tracing::debug!(
                "a chosen algorithm is not kept: {error}: {}",
                path.display()
            );
        }
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

    #[test]
    fn choices_are_kept_by_library_device_and_shape() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::new(Some(folder.path().join("new")));
        let key = CubinCache::choice_key("H200 sm_90a", 130_100, "4096 4096 4096 Store");
        assert_eq!(cache.choice(key), None);
        let choice = [1, u64::MAX, 3, 0, 5, 6, 7, 8];
        cache.keep_choice(key, choice);
        assert_eq!(cache.choice(key), Some(choice));
        for other in [
            CubinCache::choice_key("H200 sm_90a", 130_200, "4096 4096 4096 Store"),
            CubinCache::choice_key("GB10 sm_121", 130_100, "4096 4096 4096 Store"),
            CubinCache::choice_key("H200 sm_90a", 130_100, "4096 4096 4096 Add"),
        ] {
            assert_eq!(cache.choice(other), None);
        }
        // Choices and machine code of one name do not meet.
        assert_eq!(cache.kept(key), None);
    }

    #[test]
    fn damaged_choices_and_those_of_another_build_are_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::new(Some(folder.path().to_owned()));
        let key = CubinCache::choice_key("H200", 1, "a");
        cache.keep_choice(key, [7; 8]);
        let path = cache.path_of(key, CHOICE).unwrap();
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        // Whole by its hash, but of a build whose choices are longer or shorter.
        let framed = |bytes: &[u8]| {
            let other = folder.path().join("other");
            keep(&other, bytes).unwrap();
            fs::read(other).unwrap()
        };
        let (long, short) = (framed(&[1; 72]), framed(&[1; 63]));
        for bytes in [
            flipped,
            long,
            short,
            b"text".to_vec(),
            Vec::new(),
            vec![0; 9000],
        ] {
            fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.choice(key), None, "{} bytes", bytes.len());
            cache.keep_choice(key, [7; 8]);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn choices_in_a_folder_that_cannot_be_written_are_not_missed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        for cache in [
            CubinCache::new(Some(file.join("kernels"))),
            CubinCache::new(None),
        ] {
            let key = CubinCache::choice_key("H200", 1, "a");
            cache.keep_choice(key, [7; 8]);
            assert_eq!(cache.choice(key), None);
        }
    }
}
