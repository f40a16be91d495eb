//! The sample film that comes with the program.

use std::path::Path;
use std::sync::Arc;

use engine_base::Code;
use flow_timeline::SourceKind;
use rust_embed::RustEmbed;

use super::Desk;
use super::state::OpenProject;
use crate::command::Edit;
use crate::error::StudioError;
use crate::library::setting_of;
use crate::project::EXTENSION;
use crate::rewrite;

const SCRIPT: &str = include_str!("../../../../assets/samples/the-door-left-open.md");

/// Its pictures.
#[derive(RustEmbed)]
#[folder = "../../assets/samples/stills"]
struct Stills;

impl Desk {
    /// The project of the sample film, made when it is not there.
    pub(super) fn open_sample(&self) -> Result<Arc<OpenProject>, StudioError> {
        let name = format!("The Door Left Open.{EXTENSION}");
        let folder = self.projects_folder()?.join(name);
        if folder.join("project.db").is_file() {
            return self.project(&folder);
        }
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| StudioError::io("make the projects folder", parent, &error))?;
        }
        let parsed = flow_story::parse_markdown(SCRIPT).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            StudioError::new(Code::Internal, lines.join("\n"))
        })?;
        let open = self.open_project(&folder, true)?;
        for name in Stills::iter().filter(|name| name.ends_with(".jpg")) {
            let Some(file) = Stills::get(&name) else {
                continue;
            };
            self.bring_bytes(&open, &name, &file.data)?;
        }
        let script = rewrite::to_value(&parsed.script)?;
        open.project.edit(&Edit::ImportScript { script }, None)?;
        Ok(open)
    }

    /// Keep a picture that the program carries.
    fn bring_bytes(&self, open: &OpenProject, name: &str, bytes: &[u8]) -> Result<(), StudioError> {
        let media_type = crate::library::media_type(Path::new(name));
        let temp = self.studio.store.temp("jpg")?;
        std::fs::write(&temp, bytes)
            .map_err(|error| StudioError::io("write a sample picture", &temp, &error))?;
        let kept = open.project.db().keep_media(&temp, media_type);
        // A leftover is swept with the session's other temporary files.
        drop(std::fs::remove_file(&temp));
        let kept = kept?;
        self.cache_file(open, &kept)?;
        let known = crate::library::Known {
            content: kept.hash,
            media_type: media_type.to_owned(),
            brought: false,
        };
        let value = serde_json::to_value(&known).unwrap_or_default();
        let setting = setting_of(SourceKind::Still, name);
        Ok(open.project.db().set_setting(&setting, value)?)
    }
}
