//! How a project's film is made, where the script does not say it.

use serde::{Deserialize, Serialize};

use super::FilmRequest;
use crate::error::StudioError;
use crate::project::Project;
use crate::voices::Speaking;

/// How a film's lines are spoken and its pictures used, as its project remembers it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Manner {
    pub(super) speaking: Speaking,
    pub(super) as_they_are: bool,
}

impl Manner {
    const SETTING: &str = "film.manner";

    /// As the request says; one that brings no script and says nothing leaves it as it was.
    pub(super) fn of(
        request: &FilmRequest,
        new: bool,
        project: &Project,
    ) -> Result<Self, StudioError> {
        let asked = Self {
            speaking: request.speaking.clone(),
            as_they_are: request.as_they_are,
        };
        let known = project.db().setting(Self::SETTING)?;
        let known = known.and_then(|value| serde_json::from_value::<Self>(value).ok());
        if !new && asked == Self::default() {
            return Ok(known.unwrap_or_default());
        }
        if known.as_ref() != Some(&asked) {
            let value = serde_json::to_value(&asked).unwrap_or_default();
            project.db().set_setting(Self::SETTING, value)?;
        }
        Ok(asked)
    }
}
