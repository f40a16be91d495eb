//! Commands: everything that a button, a script or another process can ask of a project.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::rewrite::Accepted;

/// A command to a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Changes the film; can be undone.
    Edit(Edit),
    /// Makes something; can be cancelled, is never undone.
    Job(Job),
    /// Looks or keeps house; neither undone nor cancelled.
    System(System),
}

/// What a row of a project is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Title, language, settings, music and credits. One row.
    Film,
    /// Somebody who speaks or is seen.
    Cast,
    /// Somewhere.
    Place,
    /// Shots in one place and time.
    Scene,
    /// One continuous view.
    Shot,
}

impl Kind {
    /// All kinds, in the order in which they stand in a script.
    pub const ALL: [Self; 5] = [Self::Film, Self::Cast, Self::Place, Self::Scene, Self::Shot];

    /// Its name in the database and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Film => "film",
            Self::Cast => "cast",
            Self::Place => "place",
            Self::Scene => "scene",
            Self::Shot => "shot",
        }
    }

    /// The kind called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The field by which a script tells rows of this kind apart.
    pub(crate) const fn id_field(self) -> &'static str {
        match self {
            Self::Cast => "name",
            Self::Film | Self::Place | Self::Scene | Self::Shot => "id",
        }
    }
}

/// A change to the film.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "edit", deny_unknown_fields)]
#[ts(optional_fields)]
pub enum Edit {
    /// Put a whole script in the place of the present one. Rows of the same id are kept.
    ImportScript {
        /// The script in its JSON form.
        #[ts(type = "Script")]
        script: Value,
    },
    /// Take some of the changes that another script would make.
    Take {
        /// The other script in its JSON form.
        #[ts(type = "Script")]
        script: Value,
        /// Which of its differences from the present script.
        accepted: Accepted,
    },
    /// Set one field of one row.
    Set {
        /// What the row is.
        kind: Kind,
        /// Its id in the script; anything for the film.
        id: String,
        /// JSON pointer of the field.
        field: String,
        /// The new value; null takes the field away.
        #[ts(type = "unknown")]
        value: Value,
    },
    /// Add a row.
    Add {
        /// What it is.
        kind: Kind,
        /// Its fields; a scene's `shots` are added with it.
        #[ts(type = "unknown")]
        body: Value,
        /// For a shot: the scene it goes into.
        #[serde(default)]
        scene: Option<String>,
        /// The row it comes after; absent means first.
        #[serde(default)]
        after: Option<String>,
    },
    /// Take a row away; a scene goes with its shots.
    Remove {
        /// What it is.
        kind: Kind,
        /// Its id in the script.
        id: String,
    },
    /// Put a row in another place.
    Move {
        /// What it is.
        kind: Kind,
        /// Its id in the script.
        id: String,
        /// For a shot: the scene it goes into; absent means its own.
        #[serde(default)]
        scene: Option<String>,
        /// The row it comes after; absent means first.
        #[serde(default)]
        after: Option<String>,
    },
    /// Bring the script back to a named state.
    Restore {
        /// The state's name.
        name: String,
        /// The script in its JSON form.
        #[ts(type = "Script")]
        script: Value,
    },
    /// Let a shot show one of its takes.
    ChooseTake {
        /// The shot.
        shot: String,
        /// The take's content.
        take: String,
    },
    /// Say how good a take of a shot is.
    RateTake {
        /// The shot.
        shot: String,
        /// The take's content.
        take: String,
        /// Stars, 1 to 5; 0 takes the rating back.
        rating: u8,
    },
    /// Take a take off its shot's list; its bytes stay.
    RemoveTake {
        /// The shot.
        shot: String,
        /// The take's content.
        take: String,
    },
    /// Several edits as one: all of them are made, or none.
    Several {
        /// What they do together, in a few words.
        label: String,
        /// The edits, each on what the one before left.
        edits: Vec<Edit>,
    },
}

impl Edit {
    /// Its name on the undo log.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ImportScript { .. } => "import_script",
            Self::Take { .. } => "take",
            Self::Set { .. } => "set",
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
            Self::Move { .. } => "move",
            Self::Restore { .. } => "restore",
            Self::ChooseTake { .. } => "choose_take",
            Self::RateTake { .. } => "rate_take",
            Self::RemoveTake { .. } => "remove_take",
            Self::Several { .. } => "several",
        }
    }
}

/// Work on a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "job", deny_unknown_fields)]
pub enum Job {
    /// Stop what the owner makes now; what was made is kept.
    Cancel,
}

/// Looking and housekeeping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "system", deny_unknown_fields)]
pub enum System {
    /// The whole script in its JSON form.
    Script,
    /// In what another script differs from the present one: a list of
    /// [`ScriptChange`](crate::ScriptChange).
    Diff {
        /// The other script in its JSON form.
        script: Value,
    },
    /// What the owner does now.
    Status,
    /// Take back the last edit.
    Undo,
    /// Do again what was taken back.
    Redo,
    /// What can be undone and redone next.
    History,
}
