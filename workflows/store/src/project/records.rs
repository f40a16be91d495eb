//! Rows of a project and changes to them.

use engine_base::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A row of the film model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    /// What it is, such as `shot`.
    pub kind: String,
    /// Its id, a UUIDv7 in text form; unique within the kind.
    pub id: String,
    /// Raised by every write, never set back, not even by undo.
    pub revision: u64,
    /// Place among its siblings: compared as text.
    pub order_key: String,
    /// Its content, versioned by the writer.
    pub body: Value,
}

/// What a change was made against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// Whatever is there.
    #[default]
    Any,
    /// Nothing is there.
    Absent,
    /// The entity at this revision.
    Revision(u64),
}

/// One change to a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Write an entity, new or not.
    Put {
        /// What it is.
        kind: String,
        /// Its id.
        id: String,
        /// Place among its siblings.
        order_key: String,
        /// Its content.
        body: Value,
        /// What must be there before.
        #[serde(default)]
        expected: Expected,
    },
    /// Remove an entity.
    Delete {
        /// What it is.
        kind: String,
        /// Its id.
        id: String,
        /// What must be there before.
        #[serde(default)]
        expected: Expected,
    },
    /// Write a setting, or remove it.
    Set {
        /// Its name.
        name: String,
        /// Its value; `None` removes it.
        value: Option<Value>,
    },
}

/// A command on the undo log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Its id, a UUIDv7 in text form.
    pub id: String,
    /// Its sort; only `edit` is undone.
    pub kind: String,
    /// Its name, such as `shot.rename`.
    pub name: String,
    /// What it was called with.
    pub body: Value,
    /// What it changes.
    pub forward: Vec<Change>,
    /// What takes it back.
    pub backward: Vec<Change>,
    /// When it was given, for people.
    pub at_millis: u64,
}

/// Something that a shot could show.
#[derive(Debug, Clone, PartialEq)]
pub struct TakeRow {
    /// Id of the shot's entity.
    pub shot: String,
    /// Its bytes: a picture or video in `media/`.
    pub content: ContentHash,
    /// When it was made or brought in, for people.
    pub at_millis: u64,
    /// How it was made; the writer's own form.
    pub made: Value,
}

/// What undo and redo would do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UndoState {
    /// The last command not undone.
    pub undo: Option<CommandRecord>,
    /// The last command undone.
    pub redo: Option<CommandRecord>,
}
