//! What a commit does inside its transaction.

use std::collections::HashMap;

use engine_base::{ContentHash, Key};

use crate::db::{Db, column, count, hash_bytes, int, placeholders, runs, sql};
use crate::error::StoreError;
use crate::files::BlobFolder;
use crate::values::{
    Committed, EncodedPorts, Exactness, NewResult, StoredPort, StoredResult, blobs_of, decode_ports,
};

const WHAT: &str = "commit results";

#[derive(Default)]
struct Counters {
    commits_ever: u64,
    uses: u64,
    duplicates_dropped: u64,
    duplicates_differing: u64,
    mismatches: u64,
}

struct Row {
    number: u64,
    last_used: u64,
    result: NewResult,
    encoded: EncodedPorts,
}

/// Commit results in order; the first of a key wins, also within one call. The outer error undoes
/// all of them, an inner one is of one result only.
pub(crate) fn commit(
    db: &mut Db,
    folder: &BlobFolder,
    now_millis: u64,
    results: Vec<(NewResult, EncodedPorts)>,
) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
    let keys: Vec<Key> = results.iter().map(|(result, _)| result.key).collect();
    let mut known = existing(db, &keys)?;
    let mut counters = read_counters(db)?;
    let mut rows = Vec::with_capacity(results.len());
    let mut outcomes = Vec::with_capacity(results.len());
    for (result, encoded) in results {
        if let Some(had) = known.get(&result.key) {
            if had.is_alive(folder) {
                outcomes.push(duplicate(&mut counters, had, &result, &encoded));
                continue;
            }
            // Its files are gone or its row is damaged: it holds nothing that could win.
            let number = had.result.commit_number;
            db.execute(
                WHAT,
                sqlx::query("DELETE FROM results WHERE number = ?").bind(int(number)),
            )?;
        }
        if let Some(gone) =
            blobs_of(&result.ports).find(|blob| !folder.holds(&blob.hash, blob.bytes))
        {
            outcomes.push(Err(StoreError::MissingBlob {
                key: result.key,
                node_type: result.node_type,
                hash: gone.hash,
            }));
            continue;
        }
        counters.commits_ever += 1;
        counters.uses += 1;
        let made = StoredResult {
            key: result.key,
            ports: result.ports.clone(),
            content: encoded.content,
            commit_number: counters.commits_ever,
        };
        known.insert(
            result.key,
            Known {
                result: made.clone(),
                damaged: false,
            },
        );
        rows.push(Row {
            number: counters.commits_ever,
            last_used: counters.uses,
            result,
            encoded,
        });
        outcomes.push(Ok(Committed::Made(made)));
    }
    insert(db, now_millis, &rows)?;
    write_counters(db, &counters)?;
    Ok(outcomes)
}

fn duplicate(
    counters: &mut Counters,
    had: &Known,
    result: &NewResult,
    encoded: &EncodedPorts,
) -> Result<Committed, StoreError> {
    let differs = had.result.content != encoded.content;
    if differs && result.exactness == Exactness::Exact {
        counters.mismatches += 1;
        return Err(StoreError::ExactMismatch {
            key: result.key,
            node_type: result.node_type.clone(),
            had: had.result.content,
            got: encoded.content,
        });
    }
    counters.duplicates_dropped += 1;
    counters.duplicates_differing += u64::from(differs);
    Ok(Committed::Kept(had.result.clone()))
}

struct Known {
    result: StoredResult,
    damaged: bool,
}

impl Known {
    fn is_alive(&self, folder: &BlobFolder) -> bool {
        !self.damaged
            && self
                .result
                .blobs()
                .all(|blob| folder.holds(&blob.hash, blob.bytes))
    }
}

/// A result as it stands in a row, not decoded yet.
pub(crate) struct RawResult {
    pub(crate) number: u64,
    pub(crate) key: Key,
    pub(crate) content: ContentHash,
    pub(crate) ports: Vec<u8>,
}

impl RawResult {
    /// Decode, and see that the ports are those that were committed.
    pub(crate) fn decode(&self) -> Result<StoredResult, StoreError> {
        let ports = decode_ports(&self.ports)?;
        let content = crate::values::content_of(&ports)?;
        if content != self.content {
            return Err(StoreError::BadRow {
                what: "result",
                message: format!("expected content {}, got {content}", self.content),
            });
        }
        Ok(self.with_ports(ports))
    }

    fn with_ports(&self, ports: Vec<StoredPort>) -> StoredResult {
        StoredResult {
            key: self.key,
            ports,
            content: self.content,
            commit_number: self.number,
        }
    }
}

/// Rows of `keys`, in no order.
pub(crate) fn raw_results(db: &mut Db, keys: &[Key]) -> Result<Vec<RawResult>, StoreError> {
    let mut found = Vec::new();
    let mut unique = keys.to_vec();
    unique.sort_unstable();
    unique.dedup();
    for run in runs(&unique) {
        let mut query = sql(format!(
            "SELECT number, key, content, ports FROM results WHERE key IN ({})",
            vec!["?"; run.len()].join(", ")
        ));
        for key in run {
            query = query.bind(key.as_bytes().to_vec());
        }
        for row in db.rows("look up results", query)? {
            found.push(RawResult {
                number: count(&row, 0)?,
                key: Key::from_bytes(hash_bytes(&row, 1)?),
                content: ContentHash::from_bytes(hash_bytes(&row, 2)?),
                ports: column(&row, 3)?,
            });
        }
    }
    Ok(found)
}

fn existing(db: &mut Db, keys: &[Key]) -> Result<HashMap<Key, Known>, StoreError> {
    Ok(raw_results(db, keys)?
        .into_iter()
        .map(|raw| {
            let known = match raw.decode() {
                Ok(result) => Known {
                    result,
                    damaged: false,
                },
                Err(error) => {
                    tracing::warn!(%error, key = %raw.key, "a damaged row is replaced");
                    Known {
                        result: raw.with_ports(Vec::new()),
                        damaged: true,
                    }
                }
            };
            (raw.key, known)
        })
        .collect())
}

fn read_counters(db: &mut Db) -> Result<Counters, StoreError> {
    let row = db.row(
        WHAT,
        sqlx::query(
            "SELECT commits_ever, uses, duplicates_dropped, duplicates_differing, mismatches \
             FROM state",
        ),
    )?;
    let row = row.ok_or_else(no_state)?;
    Ok(Counters {
        commits_ever: count(&row, 0)?,
        uses: count(&row, 1)?,
        duplicates_dropped: count(&row, 2)?,
        duplicates_differing: count(&row, 3)?,
        mismatches: count(&row, 4)?,
    })
}

pub(crate) fn no_state() -> StoreError {
    StoreError::BadRow {
        what: "counters",
        message: "expected one row, got none".to_owned(),
    }
}

fn write_counters(db: &mut Db, counters: &Counters) -> Result<(), StoreError> {
    let query = sqlx::query(
        "UPDATE state SET commits_ever = ?, uses = ?, duplicates_dropped = ?, \
         duplicates_differing = ?, mismatches = ?",
    );
    let query = [
        counters.commits_ever,
        counters.uses,
        counters.duplicates_dropped,
        counters.duplicates_differing,
        counters.mismatches,
    ]
    .into_iter()
    .fold(query, |query, value| query.bind(int(value)));
    db.execute(WHAT, query).map(drop)
}

fn insert(db: &mut Db, now_millis: u64, rows: &[Row]) -> Result<(), StoreError> {
    let mut blobs: Vec<(ContentHash, u64, &str)> = Vec::new();
    let mut links: Vec<(u64, ContentHash)> = Vec::new();
    for row in rows {
        for blob in blobs_of(&row.result.ports) {
            blobs.push((blob.hash, blob.bytes, &blob.media_type));
            links.push((row.number, blob.hash));
        }
    }
    links.sort_unstable();
    links.dedup();
    for run in runs(&blobs) {
        let mut query = sql(format!(
            "INSERT OR IGNORE INTO blobs (hash, bytes, media_type) VALUES {}",
            placeholders(run.len(), 3)
        ));
        for (hash, bytes, media_type) in run {
            query = query
                .bind(hash.as_bytes().to_vec())
                .bind(int(*bytes))
                .bind((*media_type).to_owned());
        }
        db.execute(WHAT, query)?;
    }
    for run in runs(rows) {
        let mut query = sql(format!(
            "INSERT INTO results (number, key, node_type, exactness, content, last_used, bytes, \
             made_millis, wall_millis, engine_build, device_class, inputs, ports) VALUES {}",
            placeholders(run.len(), 13)
        ));
        for row in run {
            let provenance = &row.result.provenance;
            query = query
                .bind(int(row.number))
                .bind(row.result.key.as_bytes().to_vec())
                .bind(row.result.node_type.clone())
                .bind(exactness_code(row.result.exactness))
                .bind(row.encoded.content.as_bytes().to_vec())
                .bind(int(row.last_used))
                .bind(int(row.encoded.bytes.len() as u64))
                .bind(int(now_millis))
                .bind(int(provenance.wall_millis))
                .bind(provenance.engine_build.clone())
                .bind(provenance.device_class.clone())
                .bind(
                    provenance
                        .inputs
                        .iter()
                        .flat_map(|hash| *hash.as_bytes())
                        .collect::<Vec<u8>>(),
                )
                .bind(row.encoded.bytes.clone());
        }
        db.execute(WHAT, query)?;
    }
    for run in runs(&links) {
        let mut query = sql(format!(
            "INSERT INTO result_blobs (number, hash) VALUES {}",
            placeholders(run.len(), 2)
        ));
        for (number, hash) in run {
            query = query.bind(int(*number)).bind(hash.as_bytes().to_vec());
        }
        db.execute(WHAT, query)?;
    }
    Ok(())
}

const fn exactness_code(exactness: Exactness) -> i64 {
    match exactness {
        Exactness::Exact => 0,
        Exactness::Tolerant => 1,
        Exactness::Recorded => 2,
    }
}
