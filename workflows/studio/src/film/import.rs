//! Scripts that come into a project, without what a person did there being lost unseen.

use engine_base::Code;
use flow_story::Script;

use crate::command::{Command, Edit};
use crate::error::StudioError;
use crate::project::Project;
use crate::rewrite;

/// Put `script` in the place of the project's.
///
/// # Errors
/// [`Code::Refused`] as [`may_replace`] unless the script says what the project says; a script
/// that cannot be read.
pub(super) fn import(project: &Project, script: &Script, replace: bool) -> Result<(), StudioError> {
    let same = project.script().is_ok_and(|present| present == *script);
    if !same {
        may_replace(project, replace)?;
    }
    let script = rewrite::to_value(script)?;
    project
        .command(Command::Edit(Edit::ImportScript { script }))
        .map(drop)
}

/// Whether another script may take the place of the project's: unless `replace` says so, only
/// while the last thing done to the project was reading a script.
///
/// # Errors
/// [`Code::Refused`], with the ways there are.
pub(crate) fn may_replace(project: &Project, replace: bool) -> Result<(), StudioError> {
    let last = project.db().undo_state()?.undo;
    let edited = last.is_some_and(|last| last.name != "import_script");
    if replace || !edited {
        return Ok(());
    }
    let folder = project.folder();
    let message = format!(
        "the project was edited after its script was read, and another script would replace the \
         edits: `longtake project diff` shows what differs, `longtake project take` takes changes \
         one by one, `--project` without a script makes the film with the edits, and `--replace` \
         takes the other script whole (`longtake project undo` brings the edits back): {folder:?}"
    );
    Err(StudioError::new(Code::Refused, message))
}
