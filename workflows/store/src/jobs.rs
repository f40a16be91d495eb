//! The studio's own database: jobs that were asked for, their last lines, and notes by name.
//!
//! One process uses it at a time (who, is its user's business); the calls here are atomic all the
//! same. What a state means is the user's business too: here it is a word.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::sqlite::SqliteRow;

use crate::db::{Access, Db, Desk, column, count, int};
use crate::error::StoreError;
use crate::faults::Faults;
use crate::files::make_dir;
use crate::migrate::{self, Schema, SchemaLock};

const SCHEMA: Schema = Schema {
    name: "a studio's jobs and notes",
    // "LtSt"
    application_id: 0x4c74_5374,
    migrations: &[include_str!("../migrations/studio/0001_begin.sql")],
};

const READ: &str = "read the jobs";
const WRITE: &str = "write the jobs";

/// Most lines that are kept of one job; older ones go.
pub const JOB_LINES_MAX: u64 = 500;

/// Longest line that is kept, in characters.
const LINE_CHARS_MAX: usize = 2_000;

/// Work that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    /// Its number, never used twice.
    pub id: i64,
    /// Order among those that wait.
    pub place: f64,
    /// What becomes of it, in a word.
    pub state: String,
    /// What sort of work it is.
    pub kind: String,
    /// How often it began since it was asked for or last asked for again.
    pub starts: u64,
    /// What was asked for.
    pub request: Value,
    /// What people are told of it.
    pub shown: Value,
}

/// The studio's own database. Cheap to clone.
#[derive(Clone)]
pub struct JobsDb {
    inner: Arc<Inner>,
}

/// Dropped in this order: the thread closes the database before the lock goes.
struct Inner {
    desk: Desk,
    _lock: SchemaLock,
}

impl std::fmt::Debug for JobsDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobsDb").finish_non_exhaustive()
    }
}

fn json(what: &'static str, text: &str) -> Result<Value, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::BadRow {
        what,
        message: error.to_string(),
    })
}

fn job(row: &SqliteRow) -> Result<JobRow, StoreError> {
    Ok(JobRow {
        id: column(row, 0)?,
        place: column(row, 1)?,
        state: column(row, 2)?,
        kind: column(row, 3)?,
        starts: count(row, 4)?,
        request: json("job", column(row, 5)?)?,
        shown: json("job", column(row, 6)?)?,
    })
}

impl JobsDb {
    /// Open the database in the folder `dir`; both are made when they are not there.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`], [`StoreError::NotADatabase`], [`StoreError::Io`] and
    /// [`StoreError::Database`] when the folder cannot be written.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("studio.db");
        migrate::refuse_newer(&path, &SCHEMA)?;
        make_dir(dir)?;
        let lock = migrate::ensure(&path, &SCHEMA, &Faults::none())?;
        let desk = Desk::start("studio", &path, Access::Write)?;
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

    /// All jobs, in order of their places.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::BadRow`].
    pub fn jobs(&self) -> Result<Vec<JobRow>, StoreError> {
        self.call(|db| {
            let query = sqlx::query(
                "SELECT id, place, state, kind, starts, request, shown FROM jobs \
                 ORDER BY place, id",
            );
            db.rows(READ, query)?.iter().map(job).collect()
        })
    }

    /// Put a job behind all others. Its number and place are given out here.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn add(&self, new: JobRow) -> Result<JobRow, StoreError> {
        self.call(move |db| {
            db.transaction(WRITE, true, |db| {
                let query = sqlx::query(
                    "INSERT INTO jobs (place, state, kind, starts, request, shown) VALUES \
                     ((SELECT coalesce(max(place), 0) + 1 FROM jobs), ?, ?, ?, ?, ?) \
                     RETURNING id, place",
                )
                .bind(new.state.clone())
                .bind(new.kind.clone())
                .bind(int(new.starts))
                .bind(new.request.to_string())
                .bind(new.shown.to_string());
                let row = db.row(WRITE, query)?.ok_or_else(crate::commit::no_state)?;
                Ok(JobRow {
                    id: column(&row, 0)?,
                    place: column(&row, 1)?,
                    ..new
                })
            })
        })
    }

    /// Write a job as it is now; one that is gone stays gone.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn update(&self, job: &JobRow) -> Result<(), StoreError> {
        let job = job.clone();
        self.call(move |db| {
            db.transaction(WRITE, true, |db| {
                let query = sqlx::query(
                    "UPDATE jobs SET place = ?, state = ?, starts = ?, request = ?, shown = ? \
                     WHERE id = ?",
                )
                .bind(job.place)
                .bind(job.state)
                .bind(int(job.starts))
                .bind(job.request.to_string())
                .bind(job.shown.to_string())
                .bind(job.id);
                db.execute(WRITE, query).map(drop)
            })
        })
    }

    /// Forget jobs and what they said.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn remove(&self, ids: Vec<i64>) -> Result<(), StoreError> {
        self.call(move |db| {
            db.transaction(WRITE, true, |db| {
                for id in ids {
                    let query = sqlx::query("DELETE FROM jobs WHERE id = ?").bind(id);
                    db.execute(WRITE, query)?;
                }
                Ok(())
            })
        })
    }

    /// Keep a line that a job said, cut to 2,000 characters. The job's oldest lines go when there
    /// are more than [`JOB_LINES_MAX`]. Survives the end of the process, not a loss of power.
    ///
    /// # Errors
    /// [`StoreError::Database`]; also when there is no such job.
    pub fn say(&self, id: i64, line: &str) -> Result<(), StoreError> {
        let line: String = line.chars().take(LINE_CHARS_MAX).collect();
        self.call(move |db| {
            db.transaction(WRITE, false, |db| {
                let query = sqlx::query("INSERT INTO job_lines (job, line) VALUES (?, ?)")
                    .bind(id)
                    .bind(line);
                db.execute(WRITE, query)?;
                let query = sqlx::query(
                    "DELETE FROM job_lines WHERE job = ? AND number <= (SELECT number FROM \
                     job_lines WHERE job = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
                )
                .bind(id)
                .bind(id)
                .bind(int(JOB_LINES_MAX));
                db.execute(WRITE, query).map(drop)
            })
        })
    }

    /// The last lines of a job, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn lines(&self, id: i64) -> Result<Vec<String>, StoreError> {
        self.call(move |db| {
            let query =
                sqlx::query("SELECT line FROM job_lines WHERE job = ? ORDER BY number").bind(id);
            db.rows(READ, query)?
                .iter()
                .map(|row| column(row, 0))
                .collect()
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
            db.row(READ, query)?
                .map(|row| json("note", column(&row, 0)?))
                .transpose()
        })
    }

    /// Remember a value under a name, in the place of an older one.
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

    fn new(kind: &str) -> JobRow {
        JobRow {
            id: 0,
            place: 0.0,
            state: "waiting".into(),
            kind: kind.into(),
            starts: 0,
            request: json!({ "what": kind }),
            shown: json!({ "title": "A film" }),
        }
    }

    #[test]
    fn jobs_and_notes_outlive_the_process_and_numbers_are_not_used_twice() {
        let dir = tempfile::tempdir().unwrap();
        let db = JobsDb::open(dir.path()).unwrap();
        let first = db.add(new("render")).unwrap();
        let mut second = db.add(new("export")).unwrap();
        assert!(second.id > first.id && second.place > first.place);
        second.place = first.place - 1.0;
        second.state = "running".into();
        db.update(&second).unwrap();
        db.set_note("recent", &json!(["a"])).unwrap();
        db.set_note("recent", &json!(["b"])).unwrap();
        drop(db);
        let db = JobsDb::open(dir.path()).unwrap();
        assert_eq!(db.jobs().unwrap(), [second.clone(), first.clone()]);
        assert_eq!(db.note("recent").unwrap(), Some(json!(["b"])));
        assert_eq!(db.note("other").unwrap(), None);
        db.remove(vec![second.id, first.id]).unwrap();
        db.update(&first).unwrap();
        assert_eq!(db.jobs().unwrap(), []);
        assert!(db.add(new("render")).unwrap().id > second.id);
    }

    #[test]
    fn only_the_last_lines_of_each_job_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let db = JobsDb::open(dir.path()).unwrap();
        let (one, two) = (db.add(new("a")).unwrap().id, db.add(new("b")).unwrap().id);
        db.say(two, "of the other").unwrap();
        for number in 0..JOB_LINES_MAX + 20 {
            db.say(one, &number.to_string()).unwrap();
        }
        let lines = db.lines(one).unwrap();
        assert_eq!(lines.len() as u64, JOB_LINES_MAX);
        assert_eq!(lines.first().map(String::as_str), Some("20"));
        assert_eq!(db.lines(two).unwrap(), ["of the other"]);
        db.say(two, &"ä".repeat(5_000)).unwrap();
        assert_eq!(db.lines(two).unwrap()[1].chars().count(), LINE_CHARS_MAX);
        assert!(db.say(99, "nobody").is_err());
        db.remove(vec![one]).unwrap();
        assert_eq!(db.lines(one).unwrap(), Vec::<String>::new());
    }
}
