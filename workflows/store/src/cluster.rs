//! What an owner of runs on a cluster keeps: jobs that are out at workers, what work took, and
//! notes by name. With it a lost stream is filled again, and an owner that was started again goes on.

use std::path::Path;
use std::sync::Arc;

use engine_base::Key;
use serde_json::Value;
use sqlx::sqlite::SqliteRow;

use crate::db::{Access, Db, Desk, column, count, hash_bytes, int};
use crate::error::StoreError;
use crate::faults::Faults;
use crate::files::make_dir;
use crate::migrate::{self, Schema, SchemaLock};

const SCHEMA: Schema = Schema {
    name: "a cluster's jobs and costs",
    // "LtCl"
    application_id: 0x4c74_436c,
    migrations: &[include_str!("../migrations/cluster/0001_begin.sql")],
};

const READ: &str = "read the cluster's jobs";
const WRITE: &str = "write the cluster's jobs";

/// A job that is out at a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutJob {
    /// Names the work.
    pub key: Key,
    /// Node in the run, for people.
    pub node: String,
    /// The lease's number.
    pub lease: u64,
    /// Who has it.
    pub worker: String,
    /// Where its message went.
    pub subject: String,
    /// The message.
    pub message: Vec<u8>,
}

/// An owner's database. Cheap to clone.
#[derive(Clone)]
pub struct ClusterDb {
    inner: Arc<Inner>,
}

/// Dropped in this order: the thread closes the database before the lock goes.
struct Inner {
    desk: Desk,
    _lock: SchemaLock,
}

impl std::fmt::Debug for ClusterDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterDb").finish_non_exhaustive()
    }
}

fn out_job(row: &SqliteRow) -> Result<OutJob, StoreError> {
    Ok(OutJob {
        key: Key::from_bytes(hash_bytes(row, 0)?),
        node: column(row, 1)?,
        lease: count(row, 2)?,
        worker: column(row, 3)?,
        subject: column(row, 4)?,
        message: column(row, 5)?,
    })
}

fn json(text: &str) -> Result<Value, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::BadRow {
        what: "note",
        message: error.to_string(),
    })
}

impl ClusterDb {
    /// Open the database in the folder `dir`; both are made when they are not there.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`], [`StoreError::NotADatabase`], [`StoreError::Io`] and
    /// [`StoreError::Database`] when the folder cannot be written.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("cluster.db");
        migrate::refuse_newer(&path, &SCHEMA)?;
        make_dir(dir)?;
        let lock = migrate::ensure(&path, &SCHEMA, &Faults::none())?;
        let desk = Desk::start("cluster", &path, Access::Write)?;
        Ok(Self {
            inner: Arc::new(Inner { desk, _lock: lock }),
        })
    }

    fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.desk.call(work)
    }

    /// Jobs that are out, in order of their leases.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn jobs(&self) -> Result<Vec<OutJob>, StoreError> {
        self.call(|db| {
            let query = sqlx::query(
                "SELECT key, node, lease, worker, subject, message FROM jobs ORDER BY lease",
            );
            db.rows(READ, query)?.iter().map(out_job).collect()
        })
    }

    /// Note that a job goes out; an earlier note of its key is replaced. Durable.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn put_job(&self, job: OutJob) -> Result<(), StoreError> {
        self.call(move |db| {
            db.transaction(WRITE, true, |db| {
                let query = sqlx::query(
                    "INSERT INTO jobs (key, node, lease, worker, subject, message) \
                     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET \
                     node = excluded.node, lease = excluded.lease, worker = excluded.worker, \
                     subject = excluded.subject, message = excluded.message",
                )
                .bind(job.key.as_bytes().to_vec())
                .bind(job.node)
                .bind(int(job.lease))
                .bind(job.worker)
                .bind(job.subject)
                .bind(job.message);
                db.execute(WRITE, query).map(drop)
            })
        })
    }

    /// Note that a job has ended. May come back after a loss of power, which is harmless: its
    /// result is in the store.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn remove_job(&self, key: Key) -> Result<(), StoreError> {
        self.call(move |db| {
            db.transaction(WRITE, false, |db| {
                let query =
                    sqlx::query("DELETE FROM jobs WHERE key = ?").bind(key.as_bytes().to_vec());
                db.execute(WRITE, query).map(drop)
            })
        })
    }

    /// As [`ClusterDb::remove_job`], unless the job is noted under another lease by now.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn remove_lease(&self, key: Key, lease: u64) -> Result<(), StoreError> {
        self.call(move |db| {
            db.transaction(WRITE, false, |db| {
                let query = sqlx::query("DELETE FROM jobs WHERE key = ? AND lease = ?")
                    .bind(key.as_bytes().to_vec())
                    .bind(int(lease));
                db.execute(WRITE, query).map(drop)
            })
        })
    }

    /// What work took, as it was kept.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn costs(&self) -> Result<Vec<Value>, StoreError> {
        self.call(|db| {
            let query = sqlx::query("SELECT measured FROM costs ORDER BY kind");
            let rows = db.rows(READ, query)?;
            rows.iter().map(|row| json(column(row, 0)?)).collect()
        })
    }

    /// Keep what work of this kind took, in the place of what was kept before.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn keep_cost(&self, kind: &str, measured: &Value) -> Result<(), StoreError> {
        let (kind, measured) = (kind.to_owned(), measured.to_string());
        self.call(move |db| {
            db.transaction(WRITE, false, |db| {
                let query = sqlx::query(
                    "INSERT INTO costs (kind, measured) VALUES (?, ?) \
                     ON CONFLICT (kind) DO UPDATE SET measured = excluded.measured",
                )
                .bind(kind)
                .bind(measured);
                db.execute(WRITE, query).map(drop)
            })
        })
    }

    /// What is remembered under a name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn note(&self, name: &str) -> Result<Option<Value>, StoreError> {
        let name = name.to_owned();
        self.call(move |db| {
            let query = sqlx::query("SELECT value FROM notes WHERE name = ?").bind(name);
            let row = db.row(READ, query)?;
            row.map(|row| json(column(&row, 0)?)).transpose()
        })
    }

    /// Remember a value under a name, in the place of an older one. Durable.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn set_note(&self, name: &str, value: &Value) -> Result<(), StoreError> {
        let (name, value) = (name.to_owned(), value.to_string());
        self.call(move |db| {
            db.transaction(WRITE, true, |db| {
                let query = sqlx::query(
                    "INSERT INTO notes (name, value) VALUES (?, ?) \
                     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                )
                .bind(name)
                .bind(value);
                db.execute(WRITE, query).map(drop)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn jobs_that_are_out_and_costs_outlive_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let db = ClusterDb::open(dir.path()).unwrap();
        let job = |work: &[u8], lease: u64| OutJob {
            key: Key::of_canonical(work),
            node: "segment_1".into(),
            lease,
            worker: "spark-1".into(),
            subject: "lt.jobs.spark-1".into(),
            message: vec![0, 255, 3],
        };
        db.put_job(job(b"b", 8)).unwrap();
        db.put_job(job(b"a", 3)).unwrap();
        db.put_job(job(b"b", 9)).unwrap();
        db.keep_cost("film.segment/cpu/40", &json!({ "secs": [1.5] }))
            .unwrap();
        db.set_note("owner", &json!("studio")).unwrap();
        drop(db);
        let db = ClusterDb::open(dir.path()).unwrap();
        assert_eq!(db.jobs().unwrap(), [job(b"a", 3), job(b"b", 9)]);
        assert_eq!(db.costs().unwrap(), [json!({ "secs": [1.5] })]);
        assert_eq!(db.note("owner").unwrap(), Some(json!("studio")));
        assert_eq!(db.note("other").unwrap(), None);
        db.remove_job(Key::of_canonical(b"a")).unwrap();
        assert_eq!(db.jobs().unwrap(), [job(b"b", 9)]);
    }
}
