//! Still pictures looked at before any work starts: those that are none are told all at once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engine_base::Code;
use flow_media::still::still_size_px;
use flow_story::Script;
use flow_timeline::{SourceKind, SourceRef};

use super::reading::name_files;
use crate::error::StudioError;
use crate::library::{Library, is_still};
use crate::say::Say;

/// Most pictures that are told of.
const TOLD_MAX: usize = 50;

/// Faults of pictures, by what people call them.
#[derive(Debug, Default)]
struct Broken(Vec<String>);

impl Broken {
    fn look(&mut self, path: &Path, name: &str) {
        let Err(error) = still_size_px(path) else {
            return;
        };
        let mut text = error.to_string();
        name_files(&mut text, &[(path.to_owned(), format!("{name:?}"))]);
        self.0.push(format!("  {text}"));
    }

    fn told(mut self) -> Result<(), StudioError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let more = self.0.len().saturating_sub(TOLD_MAX);
        self.0.truncate(TOLD_MAX);
        if more > 0 {
            self.0.push(format!("  and {more} more"));
        }
        let files = self.0.join("\n");
        Err(StudioError::said(
            Code::BadInput,
            &Say::BrokenStills { files },
        ))
    }
}

/// Refuse folders with pictures that are none: a film from a premise may choose any of them.
pub(super) fn check_folders(folders: &[PathBuf]) -> Result<(), StudioError> {
    let mut broken = Broken::default();
    for folder in folders {
        let entries = std::fs::read_dir(folder)
            .map_err(|error| StudioError::io("read the folder", folder, &error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.is_file()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if is_still(&name) {
                broken.look(&path, &name);
            }
        }
    }
    broken.told()
}

/// Refuse a script whose pictures are none. What is missing is told later, with everything else
/// that is.
pub(super) fn check_named(script: &Script, library: &mut Library<'_>) -> Result<(), StudioError> {
    let names: BTreeSet<&str> = script.shots().map(|shot| shot.picture.as_str()).collect();
    let mut broken = Broken::default();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let source = SourceRef {
            kind: SourceKind::Still,
            name: name.to_owned(),
        };
        if let Some(path) = library.find(&source)? {
            broken.look(&path, name);
        }
    }
    broken.told()
}
