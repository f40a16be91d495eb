//! Projects and disks that are not as they should be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use longtake_tests::film::{SmallFilm, ran};
use serde_json::json;

use crate::kit::{PROGRAM, png, studio};

/// Every file below a folder with its bytes.
fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            files.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn a_newer_project_is_refused_by_its_code_and_untouched() {
    let studio = studio();
    let caller = &studio.caller;
    let project = caller.create("Newer");
    caller.call("project.close", json!({ "project": project }));
    // The schema's number stands at byte 60 of the database, most significant byte first.
    let path = Path::new(&project).join("project.db");
    let mut database = fs::read(&path).unwrap();
    database[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&path, database).unwrap();
    let before = snapshot(Path::new(&project));
    let (status, answer) = caller.ask("project.open", &json!({ "project": project }));
    assert_eq!(status, 422, "{answer}");
    let error = &answer["error"];
    assert_eq!(error["code"], "refused");
    assert_eq!(error["coded"]["code"], "newer_project", "{error}");
    assert!(snapshot(Path::new(&project)) == before, "it was touched");
    let (status, answer) = caller.ask(
        "project.open",
        &json!({ "project": format!("{project}.none.longtake") }),
    );
    assert_eq!(
        (status, &answer["error"]["coded"]["code"]),
        (404, &json!("no_project"))
    );
}

/// A disk of this size, gone when dropped; nothing without root.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at);
        let done = mount.output().is_ok_and(|done| done.status.success());
        done.then(|| Self(at.to_owned()))
    }

    fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        mount
            .args(["-o", &format!("remount,{options}")])
            .arg(&self.0);
        assert!(mount.status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.0).status();
        assert!(done.is_ok_and(|done| done.success()), "still mounted");
    }
}

#[test]
fn a_read_only_folder_is_said_to_be_one_and_its_project_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk"), "size=8m") else {
        println!("SKIPPED: a disk can be mounted by root only");
        return;
    };
    let studio = studio();
    let caller = &studio.caller;
    let project = caller.call(
        "project.create",
        json!({ "name": "On a card", "preset": "wide", "fps": "24", "language": "en",
            "folder": disk.0 }),
    );
    let project = project["project"].as_str().unwrap().to_owned();
    caller.call("project.close", json!({ "project": project }));
    disk.remount("ro");
    let before = snapshot(Path::new(&project));
    let (_, answer) = caller.ask("project.open", &json!({ "project": project }));
    let error = &answer["error"];
    assert_eq!(error["coded"]["code"], "read_only", "{error}");
    assert!(error["message"].as_str().unwrap().contains("On a card"));
    let new = json!({ "name": "Another", "preset": "wide", "fps": "24", "language": "en",
        "folder": disk.0 });
    let (_, answer) = caller.ask("project.create", &new);
    assert_eq!(answer["error"]["coded"]["code"], "read_only", "{answer}");
    // Looking needs no writing: a copy is read.
    let film = SmallFilm::new().unwrap();
    let program = |words: &[&str]| ran(film.program(PROGRAM).args(words)).unwrap();
    let shown = program(&["project", "show", &project]);
    assert!(shown.status.success(), "{shown:?}");
    assert!(shown.out.contains("On a card"), "{}", shown.out);
    let refused = program(&["project", "set", &project, "film", "film", "/title", "X"]);
    assert!(!refused.status.success());
    assert!(
        refused.err.contains("ead-only") || refused.err.contains("only be read"),
        "{refused:?}"
    );
    assert!(snapshot(Path::new(&project)) == before);
    drop(studio);
}

#[test]
fn a_full_disk_is_said_and_what_was_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk"), "size=2m") else {
        println!("SKIPPED: a disk can be mounted by root only");
        return;
    };
    let studio = studio();
    let caller = &studio.caller;
    let project = caller.call(
        "project.create",
        json!({ "name": "Tight", "preset": "wide", "fps": "24", "language": "en",
            "folder": disk.0 }),
    );
    let project = project["project"].as_str().unwrap().to_owned();
    let (status, file) = caller.upload(&project, "lamp.png", png());
    assert_eq!(status, 200, "{file}");
    // Whatever room is left is taken.
    let ballast = disk.0.join("ballast");
    assert!(fs::write(&ballast, vec![1u8; 4 << 20]).is_err());
    let mut large = png();
    large.extend(std::iter::repeat_n(0, 512 << 10));
    let (status, answer) = caller.upload(&project, "large.png", large);
    assert_eq!(status, 507, "{answer}");
    assert_eq!(answer["error"]["code"], "disk_full");
    assert_eq!(answer["error"]["coded"]["code"], "disk_full", "{answer}");
    let state = caller.call("project.state", json!({ "project": project }));
    assert_eq!(state["pictures"]["large.png"], serde_json::Value::Null);
    assert_eq!(state["pictures"]["lamp.png"]["missing"], false);
    // With room again the same works.
    fs::remove_file(ballast).unwrap();
    let edit = json!({ "edit": "set", "kind": "shot", "id": "shot-1", "field": "/action",
        "value": "It goes on." });
    caller.call("project.edit", json!({ "project": project, "edit": edit }));
    drop(studio);
}
