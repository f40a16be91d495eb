//! A disk that is full, and one that cannot be written. Needs the right to mount; says so when it
//! has none.

use std::fs;
use std::path::Path;
use std::process::Command;

use engine_base::Code;
use flow_store::{Store, StoreError};

use crate::support::{adopt, commit_file, content, is_there, open, options, small};

struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn of(dir: &'a Path, size_kib: u32) -> Option<Self> {
        let mounted = mount(
            &["-t", "tmpfs", "-o", &format!("size={size_kib}k"), "tmpfs"],
            dir,
        );
        if !mounted {
            println!("skipped: not allowed to mount a small disk");
        }
        mounted.then_some(Self(dir))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(self.0).status());
    }
}

fn mount(arguments: &[&str], dir: &Path) -> bool {
    Command::new("mount")
        .args(arguments)
        .arg(dir)
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Fill the disk to the last byte; removing the file makes space again.
fn fill(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("filler");
    for piece in [1 << 16, 1 << 12, 1 << 6, 1] {
        let mut filler = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        while std::io::Write::write_all(&mut filler, &vec![7; piece]).is_ok() {}
    }
    path
}

#[test]
fn a_full_disk_breaks_nothing_and_work_goes_on_after() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::of(dir.path(), 6 << 10) else {
        return;
    };
    let store = open(dir.path());
    commit_file(&store, 0, 100_000);
    let source = tempfile::NamedTempFile::new().unwrap();
    fs::write(source.path(), content(1, 1_000_000)).unwrap();

    let filler = fill(dir.path());
    let refused = store.import(source.path(), "x/y").unwrap_err();
    assert_eq!(refused.code(), Code::DiskFull, "{refused}");
    assert_eq!(fs::read_dir(dir.path().join("temp")).unwrap().count(), 0);

    // The log of the database cannot grow either; some commits still find room in it.
    let text = "x".repeat(30_000);
    let mut kept = Vec::new();
    let mut full = None;
    for n in 100..400 {
        match store.commit(small(n, &text)) {
            Ok(_) => kept.push(n),
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    let full = full.expect("300 results found room on a full disk");
    assert_eq!(full.code(), Code::DiskFull, "{full}");
    assert!(matches!(full, StoreError::Database { .. }));
    assert!(is_there(&store, 0));

    fs::remove_file(&filler).unwrap();
    commit_file(&store, 1, 1_000_000);
    assert!(store.commit(small(500, &text)).unwrap().is_made());
    let report = store.check(true).unwrap();
    assert!(report.is_sound() && report.orphans.is_empty(), "{report:?}");

    // Full again, and the process starts anew: what was durable is there.
    let filler = fill(dir.path());
    drop(store);
    match Store::open(dir.path(), options()) {
        Ok(store) => assert!(is_there(&store, 1)),
        Err(error) => assert_eq!(error.code(), Code::DiskFull, "{error}"),
    }
    fs::remove_file(&filler).unwrap();
    let store = open(dir.path());
    for n in kept.into_iter().chain([0, 1, 500]) {
        assert!(is_there(&store, n), "result {n} was durable and is gone");
    }
    assert!(store.check(true).unwrap().is_sound());
    adopt(&store, b"room again");
}

#[test]
fn a_new_store_on_a_full_disk_is_refused_and_made_later() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::of(dir.path(), 1 << 10) else {
        return;
    };
    let filler = fill(dir.path());
    let refused = Store::open(dir.path(), options()).unwrap_err();
    assert_eq!(refused.code(), Code::DiskFull, "{refused}");
    fs::remove_file(&filler).unwrap();
    commit_file(&open(dir.path()), 1, 1000);
}

#[test]
fn a_disk_that_cannot_be_written_is_said_clearly() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::of(dir.path(), 4 << 10) else {
        return;
    };
    drop(open(dir.path()));
    assert!(mount(&["-o", "remount,ro"], dir.path()));
    for folder in [dir.path().to_owned(), dir.path().join("new")] {
        let refused = Store::open(&folder, options()).unwrap_err();
        assert_eq!(refused.code(), Code::NotPermitted, "{refused}");
        assert!(
            refused.to_string().contains(&folder.display().to_string()),
            "the error names no path: {refused}"
        );
    }
}
