//! Takes in SQL.

use engine_base::ContentHash;

use crate::db::{Db, column, count, hash_bytes, int};
use crate::error::StoreError;
use crate::project::entities::{check_depth, from_json, next_revision, to_json};
use crate::project::records::TakeRow;

const WHAT: &str = "keep a take";

pub(super) fn note(db: &mut Db, take: &TakeRow) -> Result<bool, StoreError> {
    check_depth("a take", &take.made)?;
    db.transaction(WHAT, true, |db| {
        let query = sqlx::query(
            "INSERT OR IGNORE INTO takes (shot, content, at_millis, seq, made) \
             VALUES (?, ?, ?, (SELECT COALESCE(MAX(seq), 0) + 1 FROM takes), ?)",
        )
        .bind(take.shot.clone())
        .bind(take.content.as_bytes().to_vec())
        .bind(int(take.at_millis))
        .bind(to_json("take", &take.made)?);
        let is_new = db.execute(WHAT, query)? > 0;
        if is_new {
            next_revision(db)?;
        }
        Ok(is_new)
    })
}

pub(super) fn all(db: &mut Db) -> Result<Vec<TakeRow>, StoreError> {
    let query = sqlx::query("SELECT shot, content, at_millis, made FROM takes ORDER BY seq");
    db.rows("read the takes", query)?
        .iter()
        .map(|row| {
            Ok(TakeRow {
                shot: column(row, 0)?,
                content: ContentHash::from_bytes(hash_bytes(row, 1)?),
                at_millis: count(row, 2)?,
                made: from_json("take", column(row, 3)?)?,
            })
        })
        .collect()
}
