//! Bytes as they come: hashed and written on a thread of their own, so that the network, the hash
//! and the disk work at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use engine_base::{ContentHash, ContentHasher};

/// What has come of an artifact so far. The temporary file goes with it, unless it was adopted.
pub(super) struct Partial {
    path: PathBuf,
    file: File,
    hasher: ContentHasher,
}

impl Partial {
    /// Nothing yet, to be written to `path`.
    pub(super) fn begin(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        Ok(Self {
            path,
            file,
            hasher: ContentHasher::new(),
        })
    }

    pub(super) const fn received_bytes(&self) -> u64 {
        self.hasher.len_bytes()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Hash of what has come.
    pub(super) fn hash(&self) -> ContentHash {
        self.hasher.finish()
    }

    /// The disk first: what cannot be written is not counted as received.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.write_all(bytes)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Renamed when it was adopted; else the sweep of the next open removes it too.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Chunks that may wait for the disk.
const WAITING_CHUNKS: usize = 16;

/// Writes what is sent to it.
pub(super) struct Receiver {
    sender: tokio::sync::mpsc::Sender<Vec<u8>>,
    writer: tokio::task::JoinHandle<(Partial, io::Result<()>)>,
}

impl Receiver {
    /// Go on writing `partial`.
    pub(super) fn start(mut partial: Partial) -> Self {
        let (sender, mut chunks) = tokio::sync::mpsc::channel::<Vec<u8>>(WAITING_CHUNKS);
        let writer = tokio::task::spawn_blocking(move || {
            while let Some(chunk) = chunks.blocking_recv() {
                if let Err(error) = partial.write(&chunk) {
                    return (partial, Err(error));
                }
            }
            (partial, Ok(()))
        });
        Self { sender, writer }
    }

    /// Takes the next bytes; waits while the disk is behind. Gives whether it still writes: why
    /// not, [`Receiver::end`] says.
    pub(super) async fn take(&self, chunk: Vec<u8>) -> bool {
        self.sender.send(chunk).await.is_ok()
    }

    /// Everything written, or why not. `None` when the writing thread broke down.
    pub(super) async fn end(self) -> Option<(Partial, io::Result<()>)> {
        drop(self.sender);
        self.writer.await.ok()
    }
}
