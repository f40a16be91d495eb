//! Kept files and results in SQL.

use engine_base::{ContentHash, Key};

use crate::db::{Db, Desk, column, count, hash_bytes, int};
use crate::error::StoreError;
use crate::files::BlobFolder;
use crate::store::Store;
use crate::values::{
    Exactness, NewResult, Provenance, StoredBlob, StoredResult, blobs_of, decode_ports,
    encode_ports,
};

const WHAT: &str = "keep media";

pub(super) fn note(db: &mut Db, blob: StoredBlob, now_millis: u64) -> Result<(), StoreError> {
    db.transaction(WHAT, true, |db| {
        let query = sqlx::query(
            "INSERT OR IGNORE INTO media (hash, bytes, media_type, kept_millis) \
             VALUES (?, ?, ?, ?)",
        )
        .bind(blob.hash.as_bytes().to_vec())
        .bind(int(blob.bytes))
        .bind(blob.media_type)
        .bind(int(now_millis));
        db.execute(WHAT, query).map(drop)
    })
}

pub(super) fn all(db: &mut Db) -> Result<Vec<StoredBlob>, StoreError> {
    db.rows(
        WHAT,
        sqlx::query("SELECT hash, bytes, media_type FROM media ORDER BY hash"),
    )?
    .iter()
    .map(|row| {
        Ok(StoredBlob {
            hash: ContentHash::from_bytes(hash_bytes(row, 0)?),
            bytes: count(row, 1)?,
            media_type: column(row, 2)?,
        })
    })
    .collect()
}

pub(super) fn keep_result(
    db: &mut Db,
    node_type: String,
    result: &StoredResult,
) -> Result<(), StoreError> {
    let ports = encode_ports(&result.ports)?;
    db.transaction(WHAT, true, |db| {
        let query = sqlx::query(
            "INSERT OR IGNORE INTO kept_results (key, node_type, content, ports) \
             VALUES (?, ?, ?, ?)",
        )
        .bind(result.key.as_bytes().to_vec())
        .bind(node_type)
        .bind(result.content.as_bytes().to_vec())
        .bind(ports);
        db.execute(WHAT, query).map(drop)
    })
}

fn kept(db: &mut Db) -> Result<Vec<NewResult>, StoreError> {
    db.rows(
        WHAT,
        sqlx::query("SELECT key, node_type, ports FROM kept_results ORDER BY key"),
    )?
    .iter()
    .map(|row| {
        Ok(NewResult {
            key: Key::from_bytes(hash_bytes(row, 0)?),
            node_type: column(row, 1)?,
            ports: decode_ports(column(row, 2)?)?,
            exactness: Exactness::Recorded,
            provenance: Provenance::default(),
        })
    })
    .collect()
}

pub(super) fn restore(desk: &Desk, media: &BlobFolder, store: &Store) -> Result<u64, StoreError> {
    let kept = desk.call(kept)?;
    let keys: Vec<Key> = kept.iter().map(|result| result.key).collect();
    let there = store.lookup(&keys)?;
    let mut restored = 0;
    for (result, there) in kept.into_iter().zip(there) {
        if there.is_some() {
            continue;
        }
        for blob in blobs_of(&result.ports) {
            store.import_as(&media.find(&blob.hash)?, blob)?;
        }
        restored += u64::from(store.commit(result)?.is_made());
    }
    Ok(restored)
}
