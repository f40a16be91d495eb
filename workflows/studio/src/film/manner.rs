//! How a project's film is made, where the script does not say it.

use serde::{Deserialize, Serialize};

use super::FilmRequest;
use crate::error::StudioError;
use crate::project::Project;
use crate::voices::Speaking;

/// How a film's lines are spoken and its pictures used, as its project remembers it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Manner {
    pub(crate) speaking: Speaking,
    pub(crate) as_they_are: bool,
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
        let known = Self::known(project)?;
        if !new && asked == Self::default() {
            return Ok(known.unwrap_or_default());
        }
        if known.as_ref() != Some(&asked) {
            asked.remember(project)?;
        }
        Ok(asked)
    }

    /// As the project remembers it.
    pub(crate) fn known(project: &Project) -> Result<Option<Self>, StudioError> {
        let known = project.db().setting(Self::SETTING)?;
        Ok(known.and_then(|value| serde_json::from_value(value).ok()))
    }

    /// Let the project remember it.
    pub(crate) fn remember(&self, project: &Project) -> Result<(), StudioError> {
        let value = serde_json::to_value(self).unwrap_or_default();
        Ok(project.db().set_setting(Self::SETTING, value)?)
    }
}
