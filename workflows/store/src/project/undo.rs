//! The undo log in SQL. Rows in order of `seq`: done ones, then undone ones.

use sqlx::sqlite::SqliteRow;

use crate::db::{Db, Sql, column, count, int};
use crate::error::StoreError;
use crate::project::entities::{apply, check_depth, from_json, to_json};
use crate::project::records::{Change, CommandRecord, Entity, UndoState};

const WHAT: &str = "write the undo log";

fn command(row: &SqliteRow) -> Result<(i64, CommandRecord), StoreError> {
    let record = CommandRecord {
        id: column(row, 1)?,
        kind: column(row, 2)?,
        name: column(row, 3)?,
        at_millis: count(row, 4)?,
        body: from_json("command", column(row, 5)?)?,
        forward: from_json("command", column(row, 6)?)?,
        backward: from_json("command", column(row, 7)?)?,
    };
    Ok((column(row, 0)?, record))
}

fn last_done() -> Sql {
    sqlx::query(
        "SELECT seq, id, kind, name, at_millis, body, forward, backward FROM commands \
         WHERE undone = 0 ORDER BY seq DESC LIMIT 1",
    )
}

fn first_undone() -> Sql {
    sqlx::query(
        "SELECT seq, id, kind, name, at_millis, body, forward, backward FROM commands \
         WHERE undone = 1 ORDER BY seq LIMIT 1",
    )
}

fn mark(db: &mut Db, seq: i64, undone: bool) -> Result<(), StoreError> {
    let query = sqlx::query("UPDATE commands SET undone = ? WHERE seq = ?")
        .bind(i64::from(undone))
        .bind(seq);
    db.execute(WHAT, query).map(drop)
}

pub(super) fn record(db: &mut Db, command: &CommandRecord) -> Result<Vec<Entity>, StoreError> {
    check_depth("a command", &command.body)?;
    for change in &command.backward {
        if let Change::Put { body, .. } = change {
            check_depth("an entity", body)?;
        } else if let Change::Set {
            value: Some(value), ..
        } = change
        {
            check_depth("a setting", value)?;
        }
    }
    db.transaction(WHAT, true, |db| {
        let written = apply(db, &command.forward, true)?;
        db.execute(WHAT, sqlx::query("DELETE FROM commands WHERE undone = 1"))?;
        let query = sqlx::query(
            "INSERT INTO commands (id, undone, kind, name, at_millis, body, forward, backward) \
             VALUES (?, 0, ?, ?, ?, ?, ?, ?)",
        )
        .bind(command.id.clone())
        .bind(command.kind.clone())
        .bind(command.name.clone())
        .bind(int(command.at_millis))
        .bind(to_json("command", &command.body)?)
        .bind(to_json("command", &command.forward)?)
        .bind(to_json("command", &command.backward)?);
        db.execute(WHAT, query)?;
        Ok(written)
    })
}

pub(super) fn undo(db: &mut Db) -> Result<Option<CommandRecord>, StoreError> {
    db.transaction(WHAT, true, |db| {
        let Some(row) = db.row(WHAT, last_done())? else {
            return Ok(None);
        };
        let (seq, record) = command(&row)?;
        apply(db, &record.backward, false)?;
        mark(db, seq, true)?;
        Ok(Some(record))
    })
}

pub(super) fn redo(db: &mut Db) -> Result<Option<CommandRecord>, StoreError> {
    db.transaction(WHAT, true, |db| {
        let Some(row) = db.row(WHAT, first_undone())? else {
            return Ok(None);
        };
        let (seq, record) = command(&row)?;
        apply(db, &record.forward, false)?;
        mark(db, seq, false)?;
        Ok(Some(record))
    })
}

pub(super) fn log(db: &mut Db) -> Result<Vec<CommandRecord>, StoreError> {
    let query = sqlx::query(
        "SELECT seq, id, kind, name, at_millis, body, forward, backward FROM commands \
         WHERE undone = 0 ORDER BY seq",
    );
    db.rows(WHAT, query)?
        .iter()
        .map(|row| command(row).map(|(_, record)| record))
        .collect()
}

pub(super) fn recorded(db: &mut Db, id: String) -> Result<Option<CommandRecord>, StoreError> {
    let query = sqlx::query(
        "SELECT seq, id, kind, name, at_millis, body, forward, backward FROM commands \
         WHERE id = ?",
    )
    .bind(id);
    db.row(WHAT, query)?
        .map(|row| command(&row).map(|(_, record)| record))
        .transpose()
}

pub(super) fn state(db: &mut Db) -> Result<UndoState, StoreError> {
    let read = |row: Option<SqliteRow>| {
        row.map(|row| command(&row).map(|(_, record)| record))
            .transpose()
    };
    Ok(UndoState {
        undo: read(db.row(WHAT, last_done())?)?,
        redo: read(db.row(WHAT, first_undone())?)?,
    })
}
