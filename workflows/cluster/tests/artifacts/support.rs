//! Stores on one disk, each served like a worker's.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine_base::{ContentHash, ManualClock};
use flow_cluster::artifacts::{ArtifactOptions, Artifacts, Holder, StoreArtifacts};
use flow_http::{Token, serve_artifacts};
use flow_store::{Faults, Store, StoreOptions};

/// `count` bytes that no compressor and no chance repeats.
pub(crate) fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(count + 8);
    while out.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(count);
    out
}

/// Options with which nothing takes long.
pub(crate) fn quick() -> ArtifactOptions {
    ArtifactOptions {
        cap_bytes: 1 << 30,
        shared: None,
        connect_timeout: Duration::from_millis(500),
        idle_timeout: Duration::from_millis(500),
        patience: Duration::from_millis(700),
    }
}

pub(crate) fn store(dir: &Path) -> Store {
    let options = StoreOptions {
        cap_bytes: 1 << 30,
        clock: Arc::new(ManualClock::at(0)),
        faults: Faults::none(),
    };
    // Opening waits for a runtime of its own, which a thread of another one may not.
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| Store::open(dir, options).unwrap());
        opening.join().unwrap()
    })
}

/// A folder for the stores of a test.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    own: Arc<Store>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = Arc::new(store(&folder.path().join("own")));
        Self { folder, own }
    }

    pub(crate) fn own_store(&self) -> &Store {
        &self.own
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn artifacts(&self, options: ArtifactOptions) -> Artifacts {
        Artifacts::new(Arc::clone(&self.own), options)
    }

    /// A worker that has one artifact, and serves it until the test's runtime ends.
    pub(crate) async fn holder(&self, name: &str, content: &[u8]) -> (ContentHash, Holder) {
        let store = Arc::new(store(&self.folder.path().join(name)));
        let temp = store.temp("bin").unwrap();
        std::fs::write(&temp, content).unwrap();
        let hash = store.adopt(&temp, "application/octet-stream").unwrap().hash;
        assert_eq!(hash, ContentHash::of(content));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let token = Token::random().unwrap();
        let source = Arc::new(StoreArtifacts(store));
        tokio::spawn(serve_artifacts(
            listener,
            source,
            token.clone(),
            std::future::pending(),
        ));
        let holder = Holder {
            id: name.parse().unwrap(),
            url: format!("http://{address}"),
            token,
        };
        (hash, holder)
    }

    /// Nothing half received lies about.
    pub(crate) fn assert_no_temps(&self) {
        let temp = self.folder.path().join("own/temp");
        let left: Vec<_> = std::fs::read_dir(temp).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
