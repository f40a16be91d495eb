//! Files of a project that are gone: found again by their content.

use std::path::{Path, PathBuf};

use engine_base::{Code, ContentHash};
use flow_timeline::SourceKind;
use serde::Deserialize;
use ts_rs::TS;

use super::Desk;
use super::list::{CommandEntry, CommandKind};
use super::project::Uploaded;
use super::state::OpenProject;
use crate::error::StudioError;
use crate::library::{Known, setting_of};
use crate::say::Say;

/// Files that are looked at in a folder and those below it.
const FILES_MAX: usize = 20_000;
/// Folders below a folder that are looked into, one in the other.
const DEPTH_MAX: usize = 8;

/// A file that is missing, and where it may be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RelinkArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// What the script calls the file.
    pub name: String,
    /// A file, or a folder to look in, on the machine that does the work.
    pub path: PathBuf,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    vec![CommandEntry::new(
        "media.relink",
        CommandKind::System,
        "Bring a missing file of a project back: a file, or a folder to look in. Its content \
         decides whether it is the one.",
        relink,
    )]
}

fn relink(desk: &Desk, args: RelinkArgs) -> Result<Uploaded, StudioError> {
    let open = desk.project(&args.project)?;
    let about = std::fs::metadata(&args.path)
        .map_err(|error| StudioError::io("look for the file", &args.path, &error))?;
    if desk.options.confined_to.is_some() {
        desk.confined(&args.path)?;
    }
    let known = missing(desk, &open, &args.name)?;
    let path = if about.is_dir() {
        found_in(&open, &args.path, &known.content)?
    } else {
        args.path
    };
    desk.brought_back(&open, &args.name, &known, &path)
}

/// What a missing file of this name was.
fn missing(desk: &Desk, open: &OpenProject, name: &str) -> Result<Known, StudioError> {
    let mut there = false;
    for kind in [SourceKind::Still, SourceKind::Video, SourceKind::Sound] {
        let kept = open.project.db().setting(&setting_of(kind, name))?;
        let known = kept.and_then(|value| serde_json::from_value::<Known>(value).ok());
        let Some(known) = known else { continue };
        if desk.media_path(&known.content).is_err() {
            return Ok(known);
        }
        there = true;
    }
    let name = name.to_owned();
    Err(if there {
        StudioError::said(Code::Refused, &Say::NotMissing { name })
    } else {
        StudioError::said(Code::NotFound, &Say::NothingToLookFor { name })
    })
}

/// The file of this content in `folder` or below it. Only files of its size are read.
fn found_in(
    open: &OpenProject,
    folder: &Path,
    content: &ContentHash,
) -> Result<PathBuf, StudioError> {
    let kept = open.project.db().media()?;
    let bytes = kept.iter().find(|blob| blob.hash == *content);
    let bytes = bytes.map(|blob| blob.bytes);
    let mut looked = 0;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // The same one is found whatever order the system lists them in.
        paths.sort();
        for path in paths {
            let Ok(about) = std::fs::symlink_metadata(&path) else {
                continue;
            };
            if about.is_dir() {
                if depth < DEPTH_MAX {
                    folders.push((path, depth + 1));
                }
                continue;
            }
            if !about.is_file() || looked >= FILES_MAX {
                continue;
            }
            looked += 1;
            if bytes.is_some_and(|bytes| bytes != about.len()) {
                continue;
            }
            let hash = std::fs::File::open(&path).and_then(ContentHash::of_reader);
            if hash.is_ok_and(|hash| hash == *content) {
                return Ok(path);
            }
        }
    }
    let say = Say::NotFoundInFolder {
        path: folder.display().to_string(),
        looked: looked as i64,
    };
    Err(StudioError::said(Code::NotFound, &say))
}

impl Desk {
    /// Take `path` as the missing file `name` of a project, if it has its content.
    fn brought_back(
        &self,
        open: &OpenProject,
        name: &str,
        known: &Known,
        path: &Path,
    ) -> Result<Uploaded, StudioError> {
        let got = std::fs::File::open(path)
            .and_then(ContentHash::of_reader)
            .map_err(|error| StudioError::io("read the file", path, &error))?;
        if got != known.content {
            let say = Say::OtherContent {
                name: name.to_owned(),
                expected: known.content.to_hex(),
                got: got.to_hex(),
            };
            return Err(StudioError::said(Code::Refused, &say));
        }
        let blob = open.project.db().keep_media(path, &known.media_type)?;
        self.cache_file(open, &blob)?;
        self.project_changed(&open.folder);
        Ok(Uploaded {
            name: name.to_owned(),
            hash: blob.hash.to_hex(),
            media_type: blob.media_type,
            bytes: blob.bytes,
        })
    }

    /// As the command `media.relink`, with a file that was sent.
    ///
    /// # Errors
    /// [`Code::Refused`] for another file than the missing one, with both contents.
    pub fn bring_back(
        &self,
        project: &Path,
        name: &str,
        path: &Path,
    ) -> Result<Uploaded, StudioError> {
        let open = self.project(project)?;
        let known = missing(self, &open, name)?;
        self.brought_back(&open, name, &known, path)
    }
}
