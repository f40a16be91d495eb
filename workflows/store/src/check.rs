//! Looking for damage, and dropping what is damaged so that it is made again.

use std::collections::HashSet;
use std::path::Path;

use engine_base::{ContentHash, Key};

use crate::commit::RawResult;
use crate::db::{Db, column, count, hash_bytes, int};
use crate::error::StoreError;
use crate::files::{BlobFolder, State};
use crate::writer::Writer;

const WHAT: &str = "check the store";

/// Rows read at a time; one may take [`crate::RESULT_MAX_BYTES`], most take some hundred bytes.
const PAGE: i64 = 64;

/// What [`Store::check`](crate::Store::check) found.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct CheckReport {
    /// Results looked at.
    pub results: u64,
    /// Files looked at.
    pub blobs: u64,
    /// Whether every file was hashed, or only its size compared.
    pub deep: bool,
    /// What SQLite says about the database; empty when it is sound.
    pub database: Vec<String>,
    /// Keys whose row cannot be read back.
    pub rows_unreadable: Vec<Key>,
    /// Contents that results name and that are not there.
    pub missing: Vec<ContentHash>,
    /// Contents whose file has another size or hash.
    pub corrupt: Vec<ContentHash>,
    /// Whole files that no result names: left by a stop between rename and commit. Harmless.
    pub orphans: Vec<ContentHash>,
    /// Results that [`Store::repair`](crate::Store::repair) dropped.
    pub results_dropped: u64,
    /// Files that [`Store::repair`](crate::Store::repair) moved to `quarantine/`.
    pub files_quarantined: u64,
}

impl CheckReport {
    /// Whether nothing is wrong. Orphans are not wrong.
    pub fn is_sound(&self) -> bool {
        self.database.is_empty()
            && self.rows_unreadable.is_empty()
            && self.missing.is_empty()
            && self.corrupt.is_empty()
    }
}

/// Look at everything; changes nothing.
pub(crate) fn check(
    db: &mut Db,
    folder: &BlobFolder,
    deep: bool,
) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport {
        deep,
        ..CheckReport::default()
    };
    for row in db.rows(WHAT, sqlx::query("PRAGMA integrity_check(100)"))? {
        let line: String = column(&row, 0)?;
        if line != "ok" {
            report.database.push(line);
        }
    }
    for row in db.rows(WHAT, sqlx::query("PRAGMA foreign_key_check"))? {
        let (table, parent): (String, String) = (column(&row, 0)?, column(&row, 2)?);
        report.database.push(format!(
            "a row of {table} names a row of {parent} that is not there"
        ));
    }
    check_rows(db, &mut report)?;
    let mut named = crate::prune::named(db)?.into_iter().collect::<Vec<_>>();
    named.sort_unstable();
    report.blobs = named.len() as u64;
    for (hash, bytes) in &named {
        match folder.state(hash, *bytes, deep)? {
            State::Whole => {}
            State::Missing => report.missing.push(*hash),
            State::Corrupt => report.corrupt.push(*hash),
        }
    }
    let named: HashSet<ContentHash> = named.into_iter().map(|(hash, _)| hash).collect();
    for (hash, bytes) in folder.all()? {
        if named.contains(&hash) {
            continue;
        }
        // An orphan's size is not written anywhere; only its content can tell.
        match folder.state(&hash, bytes, deep)? {
            State::Corrupt => report.corrupt.push(hash),
            State::Whole | State::Missing => report.orphans.push(hash),
        }
    }
    Ok(report)
}

fn check_rows(db: &mut Db, report: &mut CheckReport) -> Result<(), StoreError> {
    let mut last = 0;
    loop {
        let query = sqlx::query(
            "SELECT number, key, content, ports FROM results WHERE number > ? \
             ORDER BY number LIMIT ?",
        )
        .bind(int(last))
        .bind(PAGE);
        let rows = db.rows(WHAT, query)?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in &rows {
            let raw = RawResult {
                number: count(row, 0)?,
                key: Key::from_bytes(hash_bytes(row, 1)?),
                content: ContentHash::from_bytes(hash_bytes(row, 2)?),
                ports: column(row, 3)?,
            };
            last = raw.number;
            report.results += 1;
            if raw.decode().is_err() {
                report.rows_unreadable.push(raw.key);
            }
        }
    }
}

impl Writer {
    /// Drop what `report` found damaged, if it still is.
    pub(crate) fn repair(
        &mut self,
        mut report: CheckReport,
        quarantine: &Path,
    ) -> Result<CheckReport, StoreError> {
        const WHAT: &str = "repair the store";
        let folder = std::sync::Arc::clone(&self.folder);
        self.db.transaction(WHAT, true, |db| {
            for key in &report.rows_unreadable {
                let query =
                    sqlx::query("DELETE FROM results WHERE key = ?").bind(key.as_bytes().to_vec());
                report.results_dropped += db.execute(WHAT, query)?;
            }
            let named = crate::prune::named(db)?;
            for hash in report.missing.iter().chain(&report.corrupt) {
                let bytes = named.get(hash).copied();
                let state = match bytes {
                    Some(bytes) => folder.state(hash, bytes, report.deep)?,
                    None => State::Corrupt,
                };
                if state == State::Whole {
                    continue;
                }
                if state == State::Corrupt {
                    folder.quarantine(hash, quarantine)?;
                    report.files_quarantined += 1;
                }
                let results = sqlx::query(
                    "DELETE FROM results WHERE number IN \
                     (SELECT number FROM result_blobs WHERE hash = ?)",
                )
                .bind(hash.as_bytes().to_vec());
                report.results_dropped += db.execute(WHAT, results)?;
            }
            let loose = sqlx::query(
                "DELETE FROM blobs WHERE NOT EXISTS \
                 (SELECT 1 FROM result_blobs WHERE result_blobs.hash = blobs.hash)",
            );
            db.execute(WHAT, loose).map(drop)
        })?;
        Ok(report)
    }
}
