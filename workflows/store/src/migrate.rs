//! Schemas and their migration on a copy.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::db::{Access, Db, column, sql};
use crate::error::{IoContext as _, StoreError};
use crate::faults::Faults;
use crate::files::{make_dir, sync_dir};

/// What a database of ours holds.
pub(crate) struct Schema {
    /// In words, for messages.
    pub(crate) name: &'static str,
    /// SQLite's `application_id`: tells our databases from each other and from others'.
    pub(crate) application_id: u32,
    /// Scripts from the empty database on; the schema's number is how many have run.
    pub(crate) migrations: &'static [&'static str],
}

impl Schema {
    fn newest(&self) -> u32 {
        u32::try_from(self.migrations.len()).unwrap_or(u32::MAX)
    }
}

/// Keeps other processes from migrating the database while it is open.
#[derive(Debug)]
pub(crate) struct SchemaLock {
    _file: File,
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Older,
    Newest,
}

/// How long a migration waits for others to close the database.
const EXCLUSIVE_WAIT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 10_000 });

/// Make sure that the database at `path` has the newest schema, migrating a copy and swapping it
/// in by a rename: a stop at any point leaves the old or the new one whole.
///
/// The schema's number is read from the file's header without SQLite, which could leave files
/// beside it. That is exact: the number changes in a copy only, which is closed before the swap.
pub(crate) fn ensure(
    path: &Path,
    schema: &Schema,
    faults: &Faults,
) -> Result<SchemaLock, StoreError> {
    refuse_newer(path, schema)?;
    let lock_path = beside(path, ".lock");
    let lock = open_lock(&lock_path)?;
    loop {
        lock.lock_shared().during("lock the database", &lock_path)?;
        if inspect(path, schema)? == Found::Newest {
            return Ok(SchemaLock { _file: lock });
        }
        lock.unlock().during("unlock the database", &lock_path)?;
        let what = "bring the database to a newer schema";
        lock_exclusively(&lock, &lock_path, what, EXCLUSIVE_WAIT)?;
        if inspect(path, schema)? != Found::Newest {
            build(path, schema, faults)?;
        }
        lock.unlock().during("unlock the database", &lock_path)?;
    }
}

/// Look at a database without touching anything beside it.
pub(crate) fn refuse_newer(path: &Path, schema: &Schema) -> Result<(), StoreError> {
    inspect(path, schema).map(drop)
}

/// Move a database that cannot be used, with its log, into `aside`, so that a new one is made.
pub(crate) fn set_aside(path: &Path, aside: &Path) -> Result<PathBuf, StoreError> {
    const WHAT: &str = "move the database aside";
    let lock_path = beside(path, ".lock");
    let lock = open_lock(&lock_path)?;
    lock_exclusively(&lock, &lock_path, WHAT, Duration::ZERO)?;
    make_dir(aside)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let mut number = 1;
    let target = loop {
        let target = aside.join(name).with_extension(format!("db.{number}"));
        if !target.exists() {
            break target;
        }
        number += 1;
    };
    // The database first: a log without its database is never played into a new one, because
    // making that one removes it.
    fs::rename(path, &target).during(WHAT, path)?;
    for suffix in ["-wal", "-shm"] {
        let from = beside(path, suffix);
        if from.exists() {
            fs::rename(&from, beside(&target, suffix)).during(WHAT, &from)?;
        }
    }
    sync_dir(aside)?;
    sync_dir(path.parent().unwrap_or(path))?;
    Ok(target)
}

fn open_lock(lock_path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock_path)
        .during("open the database's lock", lock_path)
}

fn lock_exclusively(
    lock: &File,
    lock_path: &Path,
    what: &'static str,
    wait: Duration,
) -> Result<(), StoreError> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                return Err(StoreError::io("lock the database", lock_path, &error));
            }
            Err(TryLockError::WouldBlock) if start.elapsed() < wait => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Busy {
                    what,
                    path: lock_path.to_owned(),
                });
            }
        }
    }
}

/// Reads the header (<https://sqlite.org/fileformat2.html#the_database_header>) only.
fn inspect(path: &Path, schema: &Schema) -> Result<Found, StoreError> {
    let mut header = Vec::with_capacity(100);
    match File::open(path) {
        Ok(file) => {
            file.take(100)
                .read_to_end(&mut header)
                .during("read the database", path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(StoreError::io("read the database", path, &error)),
    }
    let wrong = |got: String| StoreError::NotADatabase {
        expected: schema.name,
        got,
        path: path.to_owned(),
    };
    if header.is_empty() {
        return Ok(Found::Nothing);
    }
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(wrong("a file that is no SQLite database".to_owned()));
    }
    let number = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (version, application_id) = (number(60), number(68));
    if application_id != schema.application_id {
        return Err(wrong(format!(
            "a database with the application id {application_id:#010x}"
        )));
    }
    match version.cmp(&schema.newest()) {
        std::cmp::Ordering::Less => Ok(Found::Older),
        std::cmp::Ordering::Equal => Ok(Found::Newest),
        std::cmp::Ordering::Greater => Err(StoreError::NewerSchema {
            got: version,
            newest: schema.newest(),
            path: path.to_owned(),
        }),
    }
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove a leftover", path, &error))
        }
        _ => Ok(()),
    }
}

fn build(path: &Path, schema: &Schema, faults: &Faults) -> Result<(), StoreError> {
    let copy = beside(path, ".new");
    for suffix in ["", "-journal", "-wal", "-shm"] {
        remove_if_there(&beside(&copy, suffix))?;
    }
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) {
        copy_whole(path, &copy)?;
        faults.pass("migrate.copied");
    } else {
        // A log without its database: left by a stop while one was moved aside.
        for suffix in ["-wal", "-shm"] {
            remove_if_there(&beside(path, suffix))?;
        }
    }
    migrate(&copy, schema)?;
    File::open(&copy)
        .and_then(|file| file.sync_all())
        .during("sync the migrated database", &copy)?;
    faults.pass("migrate.before_rename");
    fs::rename(&copy, path).during("swap in the migrated database", path)?;
    sync_dir(path.parent().unwrap_or(path))?;
    faults.pass("migrate.after_rename");
    Ok(())
}

/// Copies all that is committed, also what still stands in the log, and leaves no log behind: a
/// log beside the swapped-in file would be played into it.
fn copy_whole(path: &Path, copy: &Path) -> Result<(), StoreError> {
    const WHAT: &str = "copy the database for migration";
    let mut db = Db::open(path, Access::Write)?;
    db.rows(WHAT, sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)"))?;
    let target = copy.to_str().ok_or_else(|| StoreError::NotADatabase {
        expected: "a path in UTF-8",
        got: "another encoding".to_owned(),
        path: copy.to_owned(),
    })?;
    db.execute(WHAT, sqlx::query("VACUUM INTO ?").bind(target.to_owned()))?;
    db.close()?;
    let log = beside(path, "-wal");
    if fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 0) {
        return Err(StoreError::Busy {
            what: WHAT,
            path: path.to_owned(),
        });
    }
    remove_if_there(&log)?;
    remove_if_there(&beside(path, "-shm"))
}

fn migrate(copy: &Path, schema: &Schema) -> Result<(), StoreError> {
    const WHAT: &str = "migrate the database";
    let mut db = Db::open_to_build(copy)?;
    let done: i64 = db
        .row(WHAT, sqlx::query("PRAGMA user_version"))?
        .map_or(Ok(0), |row| column(&row, 0))?;
    let first = usize::try_from(done).unwrap_or(0);
    for (at, script) in schema.migrations.iter().enumerate().skip(first) {
        db.script(WHAT, script)?;
        db.execute(WHAT, sql(format!("PRAGMA user_version = {}", at + 1)))?;
    }
    let id = schema.application_id;
    db.execute(WHAT, sql(format!("PRAGMA application_id = {id}")))?;
    let wrong = db
        .rows(WHAT, sqlx::query("PRAGMA foreign_key_check"))?
        .len();
    let sound: String = db
        .row(WHAT, sqlx::query("PRAGMA quick_check(1)"))?
        .map_or(Ok("no answer".to_owned()), |row| column(&row, 0))?;
    if wrong > 0 || sound != "ok" {
        return Err(StoreError::BadRow {
            what: "database after migration",
            message: format!("{wrong} broken references, quick check says {sound:?}"),
        });
    }
    // The mode stands in the file: set here, while nobody else can have it open.
    db.row(WHAT, sqlx::query("PRAGMA journal_mode = WAL"))?;
    db.close()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const NAMES: &str = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT";
    const AGES: &str = "ALTER TABLE people ADD COLUMN age INTEGER NOT NULL DEFAULT 7";
    const WRONG: &str = "ALTER TABLE nobody ADD COLUMN age INTEGER";

    const fn schema(migrations: &'static [&'static str]) -> Schema {
        Schema {
            name: "a test database",
            application_id: 0x4c74_5465,
            migrations,
        }
    }

    const OLD: Schema = schema(&[NAMES]);
    const NEW: Schema = schema(&[NAMES, AGES]);

    /// A database of the old schema with a name that stands in its log only, as after a stop.
    fn old_database(dir: &Path) -> PathBuf {
        let path = dir.join("people.db");
        drop(ensure(&path, &OLD, &Faults::none()).unwrap());
        let mut db = Db::open(&path, Access::Write).unwrap();
        db.execute(
            "test",
            sqlx::query("INSERT INTO people (name) VALUES ('Ada')"),
        )
        .unwrap();
        let log = fs::read(beside(&path, "-wal")).unwrap();
        let main = fs::read(&path).unwrap();
        db.close().unwrap();
        fs::write(&path, main).unwrap();
        fs::write(beside(&path, "-wal"), log).unwrap();
        path
    }

    fn names(path: &Path, column_name: &'static str) -> Vec<String> {
        let mut db = Db::open(path, Access::Read).unwrap();
        let query = sql(format!("SELECT CAST({column_name} AS TEXT) FROM people"));
        let rows = db.rows("test", query).unwrap();
        db.close().unwrap();
        rows.iter().map(|row| column(row, 0).unwrap()).collect()
    }

    #[test]
    fn migrates_what_stands_in_the_log_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = old_database(dir.path());
        assert!(fs::metadata(beside(&path, "-wal")).unwrap().len() > 0);
        drop(ensure(&path, &NEW, &Faults::none()).unwrap());
        assert_eq!(names(&path, "name"), ["Ada"]);
        assert_eq!(names(&path, "age"), ["7"]);
        assert_eq!(inspect(&path, &NEW), Ok(Found::Newest));
    }

    #[test]
    fn a_migration_that_fails_leaves_the_old_database() {
        const BROKEN: Schema = schema(&[NAMES, AGES, WRONG]);
        let dir = tempfile::tempdir().unwrap();
        let path = old_database(dir.path());
        assert!(ensure(&path, &BROKEN, &Faults::none()).is_err());
        assert_eq!(inspect(&path, &NEW), Ok(Found::Older));
        assert_eq!(names(&path, "name"), ["Ada"]);
        drop(ensure(&path, &NEW, &Faults::none()).unwrap());
        assert_eq!(names(&path, "age"), ["7"]);
        assert!(!beside(&path, ".new").exists());
    }

    #[test]
    fn a_log_without_its_database_is_not_played_into_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = old_database(dir.path());
        fs::remove_file(&path).unwrap();
        drop(ensure(&path, &NEW, &Faults::none()).unwrap());
        assert_eq!(names(&path, "name"), Vec::<String>::new());
    }

    #[test]
    fn an_open_database_is_not_migrated_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = old_database(dir.path());
        let in_use = ensure(&path, &OLD, &Faults::none()).unwrap();
        let before = fs::read(&path).unwrap();
        let refused = ensure(&path, &NEW, &Faults::none()).unwrap_err();
        assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), before);
        drop(in_use);
        drop(ensure(&path, &NEW, &Faults::none()).unwrap());
        assert_eq!(names(&path, "age"), ["7"]);
    }

    /// Not a test: the process that ends in the middle of a migration.
    #[test]
    fn child() {
        let Ok(orders) = std::env::var("LONGTAKE_MIGRATE_TEST") else {
            return;
        };
        let (path, point) = orders.split_once('|').unwrap();
        let point = point.to_owned();
        let faults = Faults::new(move |at| {
            if at == point {
                std::process::abort();
            }
        });
        drop(ensure(Path::new(path), &NEW, &faults));
    }

    #[test]
    fn a_stop_at_any_point_leaves_old_or_new_whole() {
        for (point, expected) in [
            ("migrate.copied", Found::Older),
            ("migrate.before_rename", Found::Older),
            ("migrate.after_rename", Found::Newest),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = old_database(dir.path());
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "migrate::tests::child", "--test-threads=1"])
                .env(
                    "LONGTAKE_MIGRATE_TEST",
                    format!("{}|{point}", path.display()),
                )
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(!status.success(), "{point} was not passed");
            assert_eq!(inspect(&path, &NEW), Ok(expected), "{point}");
            assert_eq!(names(&path, "name"), ["Ada"], "{point}");
            drop(ensure(&path, &NEW, &Faults::none()).unwrap());
            assert_eq!(names(&path, "name"), ["Ada"], "{point}");
            assert_eq!(names(&path, "age"), ["7"], "{point}");
            assert!(!beside(&path, ".new").exists(), "{point}");
        }
    }
}
