//! One SQLite connection, driven from the thread that owns it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, Sqlite};
use tokio::runtime::{Builder, Runtime};

use crate::error::{IoContext as _, SqlContext as _, StoreError};

/// A statement with its values.
pub(crate) type Sql = sqlx::query::Query<'static, Sqlite, SqliteArguments>;

/// Other processes hold the write lock for one transaction at a time; under a loaded disk that
/// can take seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Pages of 4 KiB after which a commit also checkpoints.
const CHECKPOINT_PAGES: u32 = 4000;

/// Rows that SQLite's thread may be ahead of ours: few hand-overs for long answers.
const ROW_BUFFER: usize = 1024;

/// How a connection is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    Read,
}

/// Statement text that is assembled here from fixed parts; values are always bound.
pub(crate) fn sql(text: String) -> Sql {
    sqlx::query(sqlx::AssertSqlSafe(text))
}

pub(crate) struct Db {
    runtime: Runtime,
    connection: SqliteConnection,
    path: PathBuf,
    durable: bool,
}

impl Db {
    /// Open the database at `path`, which must be there and be in WAL mode.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string())
            .pragma(
                "query_only",
                if access == Access::Read { "ON" } else { "OFF" },
            );
        Self::connect(path, options)
    }

    /// Open the database at `path` for building: no WAL, made if it is not there.
    pub(crate) fn open_to_build(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .journal_mode(SqliteJournalMode::Delete)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(false)
            .create_if_missing(true);
        Self::connect(path, options)
    }

    fn connect(path: &Path, options: SqliteConnectOptions) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread()
            .build()
            .during("start the database's runtime", path)?;
        let options = options
            .filename(path)
            .busy_timeout(BUSY_TIMEOUT)
            .row_buffer_size(ROW_BUFFER)
            .disable_statement_logging();
        let connection = runtime
            .block_on(SqliteConnection::connect_with(&options))
            .during_sql("open the database", path)?;
        Ok(Self {
            runtime,
            connection,
            path: path.to_owned(),
            durable: true,
        })
    }

    pub(crate) fn execute(&mut self, what: &'static str, query: Sql) -> Result<u64, StoreError> {
        self.runtime
            .block_on(query.execute(&mut self.connection))
            .map(|done| done.rows_affected())
            .during_sql(what, &self.path)
    }

    pub(crate) fn rows(
        &mut self,
        what: &'static str,
        query: Sql,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        self.runtime
            .block_on(query.fetch_all(&mut self.connection))
            .during_sql(what, &self.path)
    }

    pub(crate) fn row(
        &mut self,
        what: &'static str,
        query: Sql,
    ) -> Result<Option<SqliteRow>, StoreError> {
        self.runtime
            .block_on(query.fetch_optional(&mut self.connection))
            .during_sql(what, &self.path)
    }

    /// Several statements without values.
    pub(crate) fn script(
        &mut self,
        what: &'static str,
        script: &'static str,
    ) -> Result<(), StoreError> {
        self.runtime
            .block_on(sqlx::raw_sql(script).execute(&mut self.connection))
            .map(drop)
            .during_sql(what, &self.path)
    }

    /// Run `work` in one write transaction; any error rolls it back. A transaction that is not
    /// `durable` survives the end of the process but maybe not a loss of power.
    pub(crate) fn transaction<T>(
        &mut self,
        what: &'static str,
        durable: bool,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.durable != durable {
            let level = if durable {
                "PRAGMA synchronous = FULL"
            } else {
                "PRAGMA synchronous = NORMAL"
            };
            self.execute(what, sqlx::query(level))?;
            self.durable = durable;
        }
        self.execute(what, sqlx::query("BEGIN IMMEDIATE"))?;
        let worked = work(self).and_then(|value| {
            self.execute(what, sqlx::query("COMMIT"))?;
            Ok(value)
        });
        if worked.is_err() {
            // SQLite has rolled back by itself after some errors (a full disk among them); then
            // this one fails and there is nothing left to take back.
            drop(self.execute(what, sqlx::query("ROLLBACK")));
        }
        worked
    }

    pub(crate) fn close(self) -> Result<(), StoreError> {
        self.runtime
            .block_on(self.connection.close())
            .during_sql("close the database", &self.path)
    }
}

/// A column of a row.
pub(crate) fn column<'r, T>(row: &'r SqliteRow, at: usize) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(at).map_err(|error| StoreError::BadRow {
        what: "column",
        message: error.to_string(),
    })
}

/// A column that holds a count.
pub(crate) fn count(row: &SqliteRow, at: usize) -> Result<u64, StoreError> {
    let value: i64 = column(row, at)?;
    u64::try_from(value).map_err(|_negative| StoreError::BadRow {
        what: "count",
        message: format!("expected 0 or more, got {value}"),
    })
}

/// A column that holds the 32 bytes of a hash or key.
pub(crate) fn hash_bytes(row: &SqliteRow, at: usize) -> Result<[u8; 32], StoreError> {
    let bytes: &[u8] = column(row, at)?;
    bytes.try_into().map_err(|_length| StoreError::BadRow {
        what: "hash",
        message: format!("expected 32 bytes, got {}", bytes.len()),
    })
}

/// SQLite's integers are `i64`; counts of ours never come near its end.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// `(?, ?), (?, ?)` for `rows` rows of `columns` values.
pub(crate) fn placeholders(rows: usize, columns: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(", "));
    vec![row; rows].join(", ")
}

/// Splits `items` into runs of 512, 64, 8 and 1, so that only four statements are prepared for
/// all counts.
pub(crate) fn runs<T>(mut items: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = [512, 64, 8, 1]
            .into_iter()
            .find(|size| *size <= items.len())?;
        let (run, rest) = items.split_at(size);
        items = rest;
        Some(run)
    })
}

type Job = Box<dyn FnOnce(&mut Db) + Send>;

/// A named thread that owns a connection and does one job after another.
pub(crate) struct Desk {
    inbox: Option<SyncSender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Desk {
    pub(crate) fn start(name: &str, path: &Path, access: Access) -> Result<Self, StoreError> {
        let (inbox, jobs) = sync_channel::<Job>(64);
        let (ready, opened) = sync_channel(1);
        let owned = path.to_owned();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || match Db::open(&owned, access) {
                Ok(db) => {
                    if ready.send(Ok(())).is_ok() {
                        serve(db, &jobs);
                    }
                }
                Err(error) => drop(ready.send(Err(error))),
            })
            .during("start the database's thread", path)?;
        opened
            .recv()
            .map_err(|_ended_early| StoreError::Closed)
            .flatten()?;
        Ok(Self {
            inbox: Some(inbox),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Do `work` on the thread and wait for what it gives.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = sync_channel(1);
        let job: Job = Box::new(move |db| drop(reply.send(work(db))));
        self.inbox
            .as_ref()
            .and_then(|inbox| inbox.send(job).ok())
            .ok_or(StoreError::Closed)?;
        answer.recv().map_err(|_ended| StoreError::Closed).flatten()
    }
}

fn serve(mut db: Db, jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        job(&mut db);
    }
    if let Err(error) = db.close() {
        tracing::warn!(%error, "closing failed; everything committed is in the log");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.inbox = None;
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a database thread of the store panicked");
        }
    }
}
