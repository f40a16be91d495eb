//! Artifacts between machines: fetched from whoever holds them, verified while they come, kept in
//! a bounded store.
//!
//! [`Artifacts::fetch`] asks the holders one after another, goes on where a cut left off, also at
//! another holder, and names those that gave other bytes than the hash says. [`StoreArtifacts`]
//! serves a store to others, through [`flow_http::artifact_routes`]. A [`SharedStore`], a folder
//! or a bucket, is asked last and written by [`Artifacts::publish`].

mod cache;
mod error;
mod receive;
mod serve;
mod shared;
mod transfer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine_base::{CancelToken, ContentHash};
use flow_http::Token;
use flow_store::{HoldGuard, Store};

pub use self::error::{ArtifactError, CorruptHolder, Origin, Tried};
pub use self::serve::StoreArtifacts;
pub use self::shared::{S3Options, SharedStore};
use crate::names::WorkerId;

/// Somebody who has artifacts and serves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Who it is.
    pub id: WorkerId,
    /// Where its routes begin, as `http://10.0.0.2:7411`, from its advert.
    pub url: String,
    /// What lets us in; never printed.
    pub token: Token,
}

/// How artifacts are fetched and how many are kept.
#[derive(Debug, Clone)]
pub struct ArtifactOptions {
    /// Bytes of files that [`Artifacts::make_room`] leaves at most.
    pub cap_bytes: u64,
    /// A folder or bucket that every machine sees.
    pub shared: Option<SharedStore>,
    /// How long to wait for a holder to take up a connection.
    pub connect_timeout: Duration,
    /// How long a holder that has begun may send nothing before it counts as cut off.
    pub idle_timeout: Duration,
    /// How long to go on asking while nobody sends anything.
    pub patience: Duration,
}

impl Default for ArtifactOptions {
    fn default() -> Self {
        Self {
            cap_bytes: 64 << 30,
            shared: None,
            connect_timeout: Duration::from_secs(3),
            idle_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(30),
        }
    }
}

/// An artifact that is in our store now, and stays at least as long as this value lives.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Where its bytes lie.
    pub path: PathBuf,
    /// Its size.
    pub length_bytes: u64,
    /// Who gave the last byte; `None` when it was there already.
    pub from: Option<Origin>,
    /// How often it was cut off and gone on with.
    pub resumed: u32,
    /// Who gave other bytes before: nothing they say may be believed.
    pub corrupt: Vec<CorruptHolder>,
    /// Keeps it from being pruned by anybody.
    pub hold: Arc<HoldGuard>,
}

/// Fetches, publishes and bounds the artifacts of one store. Shared by reference; calls may run at
/// the same time, and of several for one hash only one transfers.
#[derive(Debug)]
pub struct Artifacts {
    store: Arc<Store>,
    options: ArtifactOptions,
    client: Result<reqwest::Client, String>,
    cache: cache::Cache,
    /// One lock for each hash that is on its way.
    under_way: Mutex<HashMap<ContentHash, Arc<tokio::sync::Mutex<()>>>>,
}

impl Artifacts {
    /// Artifacts of `store`.
    pub fn new(store: Arc<Store>, options: ArtifactOptions) -> Self {
        // No proxy and no redirect: the token goes to the holder and nowhere else.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| error.to_string());
        Self {
            store,
            options,
            client,
            cache: cache::Cache::default(),
            under_way: Mutex::default(),
        }
    }

    /// The store they lie in.
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Bring the artifact into our store: not at all when it is there, else from the first holder
    /// that can give it whole, else from the shared store. Goes on where a cut left off; what
    /// came is hashed as it comes and is in the store only when it is right.
    ///
    /// # Errors
    /// [`ArtifactError::Gone`] when nobody has it, [`ArtifactError::Unreachable`] when somebody
    /// who may have it sends nothing for as long as [`ArtifactOptions::patience`],
    /// [`ArtifactError::Corrupt`] when all who have it gave other bytes,
    /// [`ArtifactError::DiskFull`], [`ArtifactError::Cancelled`] and [`ArtifactError::Store`].
    pub async fn fetch(
        &self,
        hash: &ContentHash,
        length_bytes: u64,
        holders: &[Holder],
        cancel: &CancelToken,
    ) -> Result<Fetched, ArtifactError> {
        let turn = self.turn(hash);
        let outcome = {
            let _mine = turn.lock().await;
            self.fetch_alone(hash, length_bytes, holders, cancel).await
        };
        self.end_turn(hash, &turn);
        outcome
    }

    /// Put the artifact into the shared store, if there is one and it is not there yet.
    ///
    /// # Errors
    /// [`ArtifactError::Store`] when it is not in our store, [`ArtifactError::Shared`] when it
    /// cannot be written.
    pub async fn publish(&self, hash: &ContentHash) -> Result<(), ArtifactError> {
        let Some(shared) = &self.options.shared else {
            return Ok(());
        };
        let path = self.store.blob_path(hash)?;
        shared.put(hash, &path).await
    }

    /// Keep the artifact until it is unpinned as often as it was pinned, or this process ends.
    ///
    /// # Errors
    /// [`ArtifactError::Store`] when that cannot be noted.
    pub fn pin(&self, hash: &ContentHash) -> Result<(), ArtifactError> {
        self.cache.pin(&self.store, hash)
    }

    /// Take one pin back.
    pub fn unpin(&self, hash: &ContentHash) {
        self.cache.unpin(hash);
    }

    /// Remove least recently used artifacts until no more than [`ArtifactOptions::cap_bytes`] are
    /// left. Never what is pinned here, pinned or held in the store by anybody, or what `keep`
    /// says is held nowhere else. Gives the bytes that became free.
    ///
    /// # Errors
    /// [`ArtifactError::Store`].
    pub fn make_room(&self, keep: &dyn Fn(&ContentHash) -> bool) -> Result<u64, ArtifactError> {
        self.cache
            .make_room(&self.store, self.options.cap_bytes, keep)
    }

    fn turn(&self, hash: &ContentHash) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(*hash).or_default())
    }

    /// Forgets the lock when nobody else waits for it.
    fn end_turn(&self, hash: &ContentHash, turn: &Arc<tokio::sync::Mutex<()>>) {
        let mut turns = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(turn) <= 2 {
            turns.remove(hash);
        }
    }
}
