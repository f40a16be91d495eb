//! Least recently used results go first; what is pinned or held stays.

use std::collections::{HashMap, HashSet};

use engine_base::ContentHash;

use crate::db::{Db, count, hash_bytes, int, sql};
use crate::error::StoreError;
use crate::writer::Writer;

const WHAT: &str = "prune the store";

/// Results removed in one transaction: others wait for the write lock no longer than that takes.
const CHUNK: usize = 64;

/// What pruning removed, or would remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct PruneReport {
    /// Results removed.
    pub results: u64,
    /// Files removed, orphans with them.
    pub blobs: u64,
    /// Bytes freed, files and rows together.
    pub bytes_freed: u64,
    /// Bytes left.
    pub bytes_left: u64,
    /// Bytes left because they are pinned or in use.
    pub bytes_kept: u64,
}

/// A result as pruning sees it.
struct Candidate {
    number: u64,
    last_used: u64,
    bytes: u64,
    blobs: Vec<ContentHash>,
}

/// Everything pruning decides over, read in one go.
struct Survey {
    /// In order of use.
    results: Vec<Candidate>,
    blob_bytes: HashMap<ContentHash, u64>,
    references: HashMap<ContentHash, u32>,
    orphans: Vec<(ContentHash, u64)>,
    kept: HashSet<ContentHash>,
}

/// Sizes in a damaged database may be anything.
fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Bytes of rows and of the files they name.
pub(crate) fn held_bytes(db: &mut Db) -> Result<u64, StoreError> {
    let row = db.row(
        WHAT,
        sqlx::query(
            "SELECT (SELECT coalesce(sum(bytes), 0) FROM results) \
                  + (SELECT coalesce(sum(bytes), 0) FROM blobs)",
        ),
    )?;
    row.map_or(Ok(0), |row| count(&row, 0))
}

impl Writer {
    /// Remove orphans, then results by last use, until at most `to_bytes` are left.
    pub(crate) fn prune(
        &mut self,
        to_bytes: u64,
        dry_run: bool,
    ) -> Result<PruneReport, StoreError> {
        self.write_notes()?;
        self.sweep_holds()?;
        let mut survey = self.survey()?;
        let rows = total(survey.results.iter().map(|result| result.bytes));
        let files = total(survey.blob_bytes.values().copied());
        let orphans = total(survey.orphans.iter().map(|(_, bytes)| *bytes));
        let mut report = PruneReport {
            bytes_left: total([rows, files, orphans]),
            ..PruneReport::default()
        };
        self.prune_orphans(&survey, to_bytes, dry_run, &mut report)?;
        let mut chunk = Vec::with_capacity(CHUNK);
        for result in std::mem::take(&mut survey.results) {
            if report.bytes_left <= to_bytes {
                break;
            }
            if result.blobs.iter().any(|hash| survey.kept.contains(hash)) {
                let kept = total([report.bytes_kept, result.bytes, survey.sole_bytes(&result)]);
                report.bytes_kept = kept;
                continue;
            }
            let freed = survey.take_out(&result, &mut report);
            report.results += 1;
            report.bytes_freed = report.bytes_freed.saturating_add(freed);
            report.bytes_left = report.bytes_left.saturating_sub(freed);
            chunk.push(result);
            if chunk.len() == CHUNK && !dry_run {
                self.remove(&chunk)?;
                chunk.clear();
            }
        }
        if !dry_run && !chunk.is_empty() {
            self.remove(&chunk)?;
        }
        if !dry_run {
            let orphans = self.folder_orphans()?;
            let orphans = total(orphans.iter().map(|(_, bytes)| *bytes));
            report.bytes_left = held_bytes(&mut self.db)?.saturating_add(orphans);
        }
        Ok(report)
    }

    fn survey(&mut self) -> Result<Survey, StoreError> {
        let db = &mut self.db;
        let mut blobs_of: HashMap<u64, Vec<ContentHash>> = HashMap::new();
        let mut references: HashMap<ContentHash, u32> = HashMap::new();
        for row in db.rows(WHAT, sqlx::query("SELECT number, hash FROM result_blobs"))? {
            let hash = ContentHash::from_bytes(hash_bytes(&row, 1)?);
            *references.entry(hash).or_default() += 1;
            blobs_of.entry(count(&row, 0)?).or_default().push(hash);
        }
        let mut results = Vec::new();
        let query =
            sqlx::query("SELECT number, last_used, bytes FROM results ORDER BY last_used, number");
        for row in db.rows(WHAT, query)? {
            let number = count(&row, 0)?;
            results.push(Candidate {
                number,
                last_used: count(&row, 1)?,
                bytes: count(&row, 2)?,
                blobs: blobs_of.remove(&number).unwrap_or_default(),
            });
        }
        let mut blob_bytes = HashMap::new();
        for row in db.rows(WHAT, sqlx::query("SELECT hash, bytes FROM blobs"))? {
            let hash = ContentHash::from_bytes(hash_bytes(&row, 0)?);
            if references.contains_key(&hash) {
                blob_bytes.insert(hash, count(&row, 1)?);
            }
        }
        Ok(Survey {
            results,
            kept: kept(db)?,
            orphans: self.orphans_beside(&blob_bytes)?,
            blob_bytes,
            references,
        })
    }

    fn orphans_beside(
        &self,
        named: &HashMap<ContentHash, u64>,
    ) -> Result<Vec<(ContentHash, u64)>, StoreError> {
        let mut all = self.folder.all()?;
        all.retain(|(hash, _)| !named.contains_key(hash));
        Ok(all)
    }

    fn folder_orphans(&mut self) -> Result<Vec<(ContentHash, u64)>, StoreError> {
        let named = named(&mut self.db)?;
        self.orphans_beside(&named)
    }

    fn prune_orphans(
        &mut self,
        survey: &Survey,
        to_bytes: u64,
        dry_run: bool,
        report: &mut PruneReport,
    ) -> Result<(), StoreError> {
        let folder = std::sync::Arc::clone(&self.folder);
        let mut work = |mut db: Option<&mut Db>| {
            for (hash, bytes) in &survey.orphans {
                if report.bytes_left <= to_bytes {
                    break;
                }
                // With the write lock held, nobody can take hold of it or commit it meanwhile.
                let stays = match db.as_deref_mut() {
                    Some(db) => is_kept_or_named(db, hash)?,
                    None => survey.kept.contains(hash),
                };
                if stays {
                    report.bytes_kept = report.bytes_kept.saturating_add(*bytes);
                    continue;
                }
                if db.is_some() {
                    folder.remove(hash)?;
                }
                report.blobs += 1;
                report.bytes_freed = report.bytes_freed.saturating_add(*bytes);
                report.bytes_left = report.bytes_left.saturating_sub(*bytes);
            }
            Ok(())
        };
        if dry_run {
            work(None)
        } else {
            self.db.transaction(WHAT, false, |db| {
                // A row without results holds no file; its content may come back later.
                db.execute(
                    WHAT,
                    sqlx::query(
                        "DELETE FROM blobs WHERE NOT EXISTS \
                         (SELECT 1 FROM result_blobs WHERE result_blobs.hash = blobs.hash)",
                    ),
                )?;
                work(Some(db))
            })
        }
    }

    /// Remove results and the files that nothing else names. What another process has used, held
    /// or committed since the survey stays. Files go first: a stop in between leaves rows without
    /// files, which a lookup passes over, never files that nobody accounts for.
    fn remove(&mut self, results: &[Candidate]) -> Result<(), StoreError> {
        let folder = std::sync::Arc::clone(&self.folder);
        let faults = self.faults.clone();
        self.db.transaction(WHAT, false, |db| {
            let kept = kept(db)?;
            let mut loosened = HashSet::new();
            for result in results {
                if result.blobs.iter().any(|hash| kept.contains(hash)) {
                    continue;
                }
                let query = sqlx::query("DELETE FROM results WHERE number = ? AND last_used = ?")
                    .bind(int(result.number))
                    .bind(int(result.last_used));
                if db.execute(WHAT, query)? > 0 {
                    loosened.extend(result.blobs.iter().copied());
                }
            }
            let mut loosened: Vec<ContentHash> = loosened.into_iter().collect();
            loosened.sort_unstable();
            for hash in loosened {
                let query = sqlx::query(
                    "DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS \
                     (SELECT 1 FROM result_blobs WHERE hash = ?1)",
                )
                .bind(hash.as_bytes().to_vec());
                if db.execute(WHAT, query)? > 0 {
                    folder.remove(&hash)?;
                }
            }
            faults.pass("prune.files_removed");
            Ok(())
        })
    }

    /// Remove one file and the results that name it, unless it or another file of theirs is
    /// kept. Gives whether it is gone.
    pub(crate) fn discard(&mut self, hash: &ContentHash) -> Result<bool, StoreError> {
        self.write_notes()?;
        self.sweep_holds()?;
        let folder = std::sync::Arc::clone(&self.folder);
        self.db.transaction(WHAT, false, |db| {
            let query = sql(
                "SELECT 1 WHERE EXISTS (SELECT 1 FROM (SELECT ?1 AS hash UNION \
                 SELECT also.hash FROM result_blobs AS also JOIN result_blobs AS named \
                 ON also.number = named.number WHERE named.hash = ?1) AS together \
                 WHERE together.hash IN (SELECT hash FROM pins UNION SELECT hash FROM holds))"
                    .to_owned(),
            )
            .bind(hash.as_bytes().to_vec());
            if db.row(WHAT, query)?.is_some() {
                return Ok(false);
            }
            for statement in [
                "DELETE FROM results WHERE number IN \
                 (SELECT number FROM result_blobs WHERE hash = ?1)",
                "DELETE FROM blobs WHERE hash = ?1",
            ] {
                let query = sqlx::query(statement).bind(hash.as_bytes().to_vec());
                db.execute(WHAT, query)?;
            }
            folder.remove(hash)?;
            Ok(true)
        })
    }

    /// Drop holds of sessions that have ended.
    pub(crate) fn sweep_holds(&mut self) -> Result<(), StoreError> {
        // Holders first, then who lives: one that begins in between is not in the list.
        let holders = self
            .db
            .rows(WHAT, sqlx::query("SELECT DISTINCT session FROM holds"))?;
        let living = self.folder.session().living()?;
        for row in holders {
            let session: String = crate::db::column(&row, 0)?;
            if living.binary_search(&session).is_err() {
                self.db.transaction(WHAT, false, |db| {
                    db.execute(
                        WHAT,
                        sqlx::query("DELETE FROM holds WHERE session = ?").bind(session),
                    )
                })?;
            }
        }
        Ok(())
    }
}

impl Survey {
    /// Bytes of files that only this result names.
    fn sole_bytes(&self, result: &Candidate) -> u64 {
        let sole = result
            .blobs
            .iter()
            .filter(|hash| self.references.get(hash) == Some(&1));
        total(sole.filter_map(|hash| self.blob_bytes.get(hash).copied()))
    }

    /// Take a result off the books; gives the bytes that become free.
    fn take_out(&mut self, result: &Candidate, report: &mut PruneReport) -> u64 {
        let mut freed = result.bytes;
        for hash in &result.blobs {
            if let Some(count) = self.references.get_mut(hash) {
                *count -= 1;
                if *count == 0 {
                    freed = total([freed, self.blob_bytes.get(hash).copied().unwrap_or(0)]);
                    report.blobs += 1;
                }
            }
        }
        freed
    }
}

fn kept(db: &mut Db) -> Result<HashSet<ContentHash>, StoreError> {
    db.rows(
        WHAT,
        sqlx::query("SELECT hash FROM pins UNION SELECT hash FROM holds"),
    )?
    .iter()
    .map(|row| hash_bytes(row, 0).map(ContentHash::from_bytes))
    .collect()
}

/// Files that rows name, with their sizes.
pub(crate) fn named(db: &mut Db) -> Result<HashMap<ContentHash, u64>, StoreError> {
    db.rows(WHAT, sqlx::query("SELECT hash, bytes FROM blobs"))?
        .iter()
        .map(|row| Ok((ContentHash::from_bytes(hash_bytes(row, 0)?), count(row, 1)?)))
        .collect()
}

fn is_kept_or_named(db: &mut Db, hash: &ContentHash) -> Result<bool, StoreError> {
    let query = sql(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM pins WHERE hash = ?1) \
         OR EXISTS (SELECT 1 FROM holds WHERE hash = ?1) \
         OR EXISTS (SELECT 1 FROM blobs WHERE hash = ?1)"
            .to_owned(),
    )
    .bind(hash.as_bytes().to_vec());
    Ok(db.row(WHAT, query)?.is_some())
}
