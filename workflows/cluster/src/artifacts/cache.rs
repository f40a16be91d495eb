//! What stays and what goes: pins, and the order of last use.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine_base::ContentHash;
use flow_store::{HoldGuard, Store};

use super::ArtifactError;

/// Pins and last uses of this process.
#[derive(Debug, Default)]
pub(super) struct Cache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// How often each is pinned, and what keeps it in the store.
    pins: HashMap<ContentHash, (u32, HoldGuard)>,
    /// Counts uses; the greatest is the latest.
    uses: u64,
    last_used: HashMap<ContentHash, u64>,
}

impl Cache {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn used(&self, hash: &ContentHash) {
        let mut inner = self.inner();
        inner.uses += 1;
        let now = inner.uses;
        inner.last_used.insert(*hash, now);
    }

    pub(super) fn pin(&self, store: &Store, hash: &ContentHash) -> Result<(), ArtifactError> {
        if let Some((count, _)) = self.inner().pins.get_mut(hash) {
            *count += 1;
            return Ok(());
        }
        // Not under the lock: it waits for the store's writer.
        let guard = store.hold(&[*hash])?;
        let mut inner = self.inner();
        inner.pins.entry(*hash).or_insert((0, guard)).0 += 1;
        Ok(())
    }

    pub(super) fn unpin(&self, hash: &ContentHash) {
        let mut inner = self.inner();
        let gone = match inner.pins.get_mut(hash) {
            Some((count, _)) if *count > 1 => {
                *count -= 1;
                None
            }
            Some(_) => inner.pins.remove(hash),
            None => None,
        };
        drop(inner);
        drop(gone);
    }

    /// Removes artifacts, those unused since the start of this process first (in order of hash:
    /// nothing is known of their use), then by last use.
    pub(super) fn make_room(
        &self,
        store: &Store,
        cap_bytes: u64,
        keep: &dyn Fn(&ContentHash) -> bool,
    ) -> Result<u64, ArtifactError> {
        let mut held = store.files()?;
        let mut left: u64 = held
            .iter()
            .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
        if left <= cap_bytes {
            return Ok(0);
        }
        {
            let inner = self.inner();
            held.sort_by_key(|(hash, _)| (inner.last_used.get(hash).copied().unwrap_or(0), *hash));
        }
        let mut freed = 0_u64;
        for (hash, bytes) in held {
            if left <= cap_bytes {
                break;
            }
            // Asked for each one anew: a pin may have come meanwhile. The store itself refuses
            // what is held or pinned by any process.
            if keep(&hash) || self.inner().pins.contains_key(&hash) {
                continue;
            }
            if store.discard(&hash)? {
                self.inner().last_used.remove(&hash);
                left = left.saturating_sub(bytes);
                freed = freed.saturating_add(bytes);
            }
        }
        Ok(freed)
    }
}
