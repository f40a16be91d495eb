//! Entities and settings in SQL.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::sqlite::SqliteRow;

use crate::db::{Db, column, count, int};
use crate::error::StoreError;
use crate::project::records::{Change, Entity, Expected};

const READ: &str = "read the project";
const WRITE: &str = "change the project";

pub(super) fn from_json<T: DeserializeOwned>(
    what: &'static str,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::BadRow {
        what,
        message: error.to_string(),
    })
}

pub(super) fn to_json<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::BadRow {
        what,
        message: error.to_string(),
    })
}

/// Most levels of lists and maps in one value: less than the reader takes (128), so that what is
/// written, alone or inside a command, can be read again.
const DEPTH_MAX: usize = 100;

fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|field| fits(field, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Refuses a value that could be written and not be read again.
pub(super) fn check_depth(what: &'static str, value: &Value) -> Result<(), StoreError> {
    if fits(value, DEPTH_MAX) {
        return Ok(());
    }
    Err(StoreError::TooDeep {
        what,
        most: DEPTH_MAX,
    })
}

fn entity(row: &SqliteRow) -> Result<Entity, StoreError> {
    Ok(Entity {
        kind: column(row, 0)?,
        id: column(row, 1)?,
        revision: count(row, 2)?,
        order_key: column(row, 3)?,
        body: from_json("entity", column(row, 4)?)?,
    })
}

pub(super) fn list(db: &mut Db, kind: String) -> Result<Vec<Entity>, StoreError> {
    let query = sqlx::query(
        "SELECT kind, id, revision, order_key, body FROM entities WHERE kind = ? \
         ORDER BY order_key, id",
    )
    .bind(kind);
    db.rows(READ, query)?.iter().map(entity).collect()
}

pub(super) fn get(db: &mut Db, kind: &str, id: &str) -> Result<Option<Entity>, StoreError> {
    let query = sqlx::query(
        "SELECT kind, id, revision, order_key, body FROM entities WHERE kind = ? AND id = ?",
    )
    .bind(kind.to_owned())
    .bind(id.to_owned());
    db.row(READ, query)?.as_ref().map(entity).transpose()
}

fn revision(db: &mut Db, kind: &str, id: &str) -> Result<Option<u64>, StoreError> {
    let query = sqlx::query("SELECT revision FROM entities WHERE kind = ? AND id = ?")
        .bind(kind.to_owned())
        .bind(id.to_owned());
    db.row(READ, query)?.map(|row| count(&row, 0)).transpose()
}

fn expect(db: &mut Db, kind: &str, id: &str, expected: Expected) -> Result<(), StoreError> {
    let conflict = |expected: String, got: Option<u64>| StoreError::Conflict {
        kind: kind.to_owned(),
        id: id.to_owned(),
        expected,
        got: got.map_or("nothing there".to_owned(), |got| format!("revision {got}")),
    };
    match expected {
        Expected::Any => Ok(()),
        Expected::Absent => match revision(db, kind, id)? {
            None => Ok(()),
            got => Err(conflict("nothing there".to_owned(), got)),
        },
        Expected::Revision(expected) => match revision(db, kind, id)? {
            Some(got) if got == expected => Ok(()),
            got => Err(conflict(format!("revision {expected}"), got)),
        },
    }
}

/// Make changes inside the caller's transaction. `strict` holds them to their expectations; undo
/// and redo do not, because every write, also their own, has raised the revisions since.
pub(super) fn apply(
    db: &mut Db,
    changes: &[Change],
    strict: bool,
) -> Result<Vec<Entity>, StoreError> {
    let mut written = Vec::new();
    for change in changes {
        match change {
            Change::Put {
                kind,
                id,
                order_key,
                body,
                expected,
            } => {
                if strict {
                    expect(db, kind, id, *expected)?;
                }
                written.push(put(db, kind, id, order_key, body)?);
            }
            Change::Delete { kind, id, expected } => {
                if strict {
                    expect(db, kind, id, *expected)?;
                }
                let query = sqlx::query("DELETE FROM entities WHERE kind = ? AND id = ?")
                    .bind(kind.clone())
                    .bind(id.clone());
                db.execute(WRITE, query)?;
                next_revision(db)?;
            }
            Change::Set { name, value } => {
                set(db, name, value.as_ref())?;
                next_revision(db)?;
            }
        }
    }
    Ok(written)
}

/// Every change raises it, so that it also tells states of the project apart.
pub(super) fn next_revision(db: &mut Db) -> Result<u64, StoreError> {
    let next = db.row(
        WRITE,
        sqlx::query("UPDATE state SET revision = revision + 1 RETURNING revision"),
    )?;
    next.map_or(Err(crate::commit::no_state()), |row| count(&row, 0))
}

/// Revision of the last change.
pub(super) fn last_revision(db: &mut Db) -> Result<u64, StoreError> {
    let row = db.row(READ, sqlx::query("SELECT revision FROM state"))?;
    row.map_or(Err(crate::commit::no_state()), |row| count(&row, 0))
}

fn put(
    db: &mut Db,
    kind: &str,
    id: &str,
    order_key: &str,
    body: &Value,
) -> Result<Entity, StoreError> {
    check_depth("an entity", body)?;
    let revision = next_revision(db)?;
    let query = sqlx::query(
        "INSERT INTO entities (kind, id, revision, order_key, body) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, \
         order_key = excluded.order_key, body = excluded.body",
    )
    .bind(kind.to_owned())
    .bind(id.to_owned())
    .bind(int(revision))
    .bind(order_key.to_owned())
    .bind(to_json("entity", body)?);
    db.execute(WRITE, query)?;
    Ok(Entity {
        kind: kind.to_owned(),
        id: id.to_owned(),
        revision,
        order_key: order_key.to_owned(),
        body: body.clone(),
    })
}

fn set(db: &mut Db, name: &str, value: Option<&Value>) -> Result<(), StoreError> {
    if let Some(value) = value {
        check_depth("a setting", value)?;
    }
    let query = match value {
        Some(value) => sqlx::query(
            "INSERT INTO settings (name, value) VALUES (?, ?) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )
        .bind(name.to_owned())
        .bind(to_json("setting", value)?),
        None => sqlx::query("DELETE FROM settings WHERE name = ?").bind(name.to_owned()),
    };
    db.execute(WRITE, query).map(drop)
}

/// Changes that bring back what `changes` are about to overwrite, first occurrence of each thing.
pub(super) fn inverse_of(db: &mut Db, changes: &[Change]) -> Result<Vec<Change>, StoreError> {
    let mut seen = HashSet::new();
    let mut inverse = Vec::new();
    for change in changes {
        match change {
            Change::Put { kind, id, .. } | Change::Delete { kind, id, .. } => {
                if seen.insert((Some(kind), id)) {
                    inverse.push(match get(db, kind, id)? {
                        Some(had) => Change::Put {
                            kind: had.kind,
                            id: had.id,
                            order_key: had.order_key,
                            body: had.body,
                            expected: Expected::Any,
                        },
                        None => Change::Delete {
                            kind: kind.clone(),
                            id: id.clone(),
                            expected: Expected::Any,
                        },
                    });
                }
            }
            Change::Set { name, .. } => {
                if seen.insert((None, name)) {
                    inverse.push(Change::Set {
                        name: name.clone(),
                        value: setting(db, name)?,
                    });
                }
            }
        }
    }
    inverse.reverse();
    Ok(inverse)
}

pub(super) fn setting(db: &mut Db, name: &str) -> Result<Option<Value>, StoreError> {
    let query = sqlx::query("SELECT value FROM settings WHERE name = ?").bind(name.to_owned());
    db.row(READ, query)?
        .map(|row| from_json("setting", column(&row, 0)?))
        .transpose()
}

pub(super) fn settings(db: &mut Db) -> Result<BTreeMap<String, Value>, StoreError> {
    db.rows(READ, sqlx::query("SELECT name, value FROM settings"))?
        .iter()
        .map(|row| Ok((column(row, 0)?, from_json("setting", column(row, 1)?)?)))
        .collect()
}
