//! What a person may hand in that cannot work: each is refused with what was tried, got and
//! expected, nothing is lost, and the rest goes on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use engine_base::{Clock, Key, ManualClock};
use flow_store::{
    CommitMark, Exactness, Faults, NewResult, Provenance, Store, StoreOptions, StoredPort,
    StoredValue,
};
use flow_studio::{Command as StudioCommand, Edit, Kind, Project, System};
use longtake_tests::film::{Ran, SmallFilm, ran};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

fn make(film: &SmallFilm) -> Ran {
    ran(&mut film.film_command(PROGRAM).unwrap()).unwrap()
}

/// As [`make`], with what people see instead of JSON.
fn make_in_words(film: &SmallFilm) -> Ran {
    film.write_script().unwrap();
    let mut command = film.program(PROGRAM);
    command.args(["film", "--preset", "ultrafast", "--mute", "--no-upscale"]);
    command.arg("--script").arg(film.script_path());
    command.arg("--stills").arg(film.folder());
    command.arg("--out").arg(film.out());
    ran(&mut command).unwrap()
}

/// Every file below `folder` with its bytes.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

fn committed(film: &SmallFilm) -> Vec<String> {
    let store = film.store().unwrap();
    let committed = store.committed_since(CommitMark(0)).unwrap();
    committed
        .into_iter()
        .map(|commit| commit.node_type)
        .collect()
}

/// A PNG header that promises this many pixels, and nothing behind it.
fn png_of(width_px: u32, height_px: u32) -> Vec<u8> {
    let mut chunk = b"IHDR".to_vec();
    chunk.extend_from_slice(&width_px.to_be_bytes());
    chunk.extend_from_slice(&height_px.to_be_bytes());
    chunk.extend_from_slice(&[8, 6, 0, 0, 0]);
    let mut crc = u32::MAX;
    for byte in &chunk {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    png.extend_from_slice(&chunk);
    png.extend_from_slice(&(!crc).to_be_bytes());
    // Rows are announced and do not come.
    png.extend_from_slice(&1000u32.to_be_bytes());
    png.extend_from_slice(b"IDAT");
    png
}

#[test]
fn a_bad_still_stops_its_own_shot_only() {
    let film = SmallFilm::new().unwrap();
    // Its head is right, and nothing is behind it.
    fs::write(film.folder().join("lamp.png"), png_of(320, 200)).unwrap();
    let done = make_in_words(&film);
    // The node, and the file as the person knows it.
    done.ended(3, &["segment:lamp", "\"lamp.png\""]);
    assert!(
        !done.err.contains("blobs"),
        "a path in the cache says nothing: {}",
        done.err
    );
    assert!(!film.out().exists() && !film.out().with_extension("srt").exists());
    let made = committed(&film);
    let segments = made.iter().filter(|name| *name == "film.segment").count();
    assert_eq!(segments, 3, "the other three shots: {made:?}");
    assert!(
        made.iter().any(|name| name == "film.sound_encode"),
        "{made:?}"
    );

    for (bytes, status, expected) in [
        // More than is read is refused on purpose.
        (png_of(50_000, 40), 4, "50000"),
        (png_of(600_000, 400_000), 4, "600000"),
    ] {
        fs::write(film.folder().join("lamp.png"), bytes).unwrap();
        let again = make(&film);
        assert_eq!(again.status.code(), Some(status), "{again:?}");
        let told = again.json();
        assert_eq!(
            (&told["made"], &told["failed"]),
            (&json!(0), &json!(2)),
            "{told}"
        );
        let error = told["errors"][0].as_str().unwrap();
        for text in ["segment:lamp", "\"lamp.png\"", expected] {
            assert!(error.contains(text), "expected {text:?} in {error:?}");
        }
    }
    // Mended, only what the shot held up is made.
    film.paint("lamp", 1).unwrap();
    let told = make(&film).json();
    assert_eq!(
        told["made"], 3,
        "the shot, its cross-fade and the film: {told}"
    );
    assert!(film.out().exists());
}

#[test]
fn files_that_are_no_pictures_are_told_at_once_before_any_work() {
    let film = SmallFilm::new().unwrap();
    fs::write(film.folder().join("lamp.png"), "no picture at all").unwrap();
    fs::write(film.folder().join("sea.png"), Vec::new()).unwrap();
    let done = make_in_words(&film);
    done.ended(3, &["cannot be read", "\"lamp.png\"", "\"sea.png\""]);
    assert!(
        !done.err.contains("blobs") && !done.err.contains("segment:"),
        "{}",
        done.err
    );
    assert_eq!(committed(&film), Vec::<String>::new(), "nothing was made");
    // A film from a premise may choose any picture of the folder: all are looked at.
    let mut premise = film.program(PROGRAM);
    premise.args([
        "film",
        "A lamp is lit",
        "--length",
        "10s",
        "--llm",
        "http://127.0.0.1:9/v1",
    ]);
    premise.arg("--stills").arg(film.folder());
    premise.arg("--out").arg(film.folder().join("premise.mp4"));
    ran(&mut premise)
        .unwrap()
        .ended(3, &["\"lamp.png\"", "\"sea.png\""]);
    assert!(!film.folder().join("premise.longtake").exists());
    film.paint("lamp", 1).unwrap();
    film.paint("sea", 3).unwrap();
    assert!(make(&film).status.success());
}

#[test]
fn a_length_that_no_film_has_leaves_nothing_behind() {
    let film = SmallFilm::new().unwrap();
    for length in ["0s", "4s", "11m", "2 days", "1000000s", "x"] {
        let mut make = film.program(PROGRAM);
        make.args(["film", "A lamp is lit", "--length", length]);
        make.arg("--out").arg(film.folder().join("premise.mp4"));
        // One range, whatever is wrong with it.
        ran(&mut make).unwrap().ended(3, &["5 s to 10 min", length]);
        assert!(!film.folder().join("premise.longtake").exists(), "{length}");
    }
}

#[test]
fn a_faulty_script_is_refused_with_its_lines() {
    type Change = fn(&mut SmallFilm);
    let cases: &[(&str, Change, &[&str])] = &[
        (
            "an unknown field",
            |film| {
                film.edit(
                    "- length: 1 s\n- picture: lamp.png",
                    "- lenght: 1 s\n- picture: lamp.png",
                )
            },
            &["small.md", "line 36", "'lenght'", "did you mean 'length'"],
        ),
        (
            "two shots of one id",
            |film| film.edit("### Shot lamp", "### Shot shore"),
            &["\"shore\"", "line 32"],
        ),
        (
            "shots that wait for each other",
            |film| {
                film.edit(
                    "- picture: lamp.png",
                    "- picture: lamp.png\n- continuity: continue sea",
                );
                film.edit(
                    "- picture: sea.png",
                    "- picture: sea.png\n- continuity: continue lamp",
                );
            },
            &["lamp", "sea", "circle"],
        ),
        (
            "a script of 5 MB",
            |film| film.script.push_str(&"and nothing else, ".repeat(300_000)),
            &["5400", "at most"],
        ),
        ("no script", |film| film.script.clear(), &["small.md"]),
    ];
    for (what, change, texts) in cases {
        let mut film = SmallFilm::new().unwrap();
        change(&mut film);
        let refused = make(&film);
        println!("{what}: {}", refused.err.trim());
        refused.ended(3, texts);
        assert_eq!(refused.json()["error"]["code"], "bad_input", "{what}");
        assert!(!film.out().exists(), "{what}");
        let project = film.out().with_extension("longtake");
        assert!(!project.exists(), "{what}: a project was begun for it");
    }
}

#[test]
fn a_video_cut_in_the_middle_is_named() {
    let mut film = SmallFilm::new().unwrap();
    assert!(make(&film).status.success());
    // The film itself is a video; half of it has no index, or no end.
    let whole = fs::read(film.out()).unwrap();
    fs::write(film.folder().join("clip.mp4"), &whole).unwrap();
    film.edit(
        "- picture: lamp.png\n- move: pan 45% -> 55% at 50% zoom 1.2",
        "- video: clip.mp4",
    );
    let made = make(&film);
    assert!(made.status.success(), "{made:?}");
    // The first half is longer than the shot: it is used, and a person is told.
    let half = &whole[..whole.len() / 2];
    fs::write(film.folder().join("clip.mp4"), half).unwrap();
    let used = make_in_words(&film);
    used.ended(0, &["the end of \"clip.mp4\" is missing"]);
    // Cut within its head there is nothing to use.
    for bytes in [&whole[..40], &whole[..400]] {
        fs::write(film.folder().join("clip.mp4"), bytes).unwrap();
        let cut = make(&film);
        println!("{}", cut.out.trim());
        assert_eq!(cut.status.code(), Some(3), "{cut:?}");
        let told = cut.json();
        let error = told["errors"][0].as_str().unwrap();
        assert!(
            error.contains("segment:lamp") && error.contains("\"clip.mp4\""),
            "{error}"
        );
        assert_eq!(fs::read(film.folder().join("clip.mp4")).unwrap(), bytes);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_said_before_the_work() {
    let film = SmallFilm::new().unwrap();
    film.write_script().unwrap();
    let below_a_file = film.folder().join("lamp.png").join("film.mp4");
    let outs = [
        (below_a_file, 3),
        (PathBuf::from("/proc/film.mp4"), 3),
        (film.folder().join("film.mkv"), 3),
    ];
    for (out, status) in outs {
        let mut command = film.program(PROGRAM);
        command
            .args(["--json", "film", "--mute", "--no-upscale", "--script"])
            .arg(film.script_path());
        command
            .arg("--stills")
            .arg(film.folder())
            .arg("--out")
            .arg(&out);
        let refused = ran(&mut command).unwrap();
        println!("{}", refused.err.trim());
        refused.ended(status, &[out.file_name().unwrap().to_str().unwrap()]);
        assert!(refused.json()["error"]["message"].is_string());
        assert!(!out.exists());
    }
    assert_eq!(committed(&film), Vec::<String>::new());
}

#[test]
fn missing_files_are_named_all_at_once_with_near_names() {
    let mut film = SmallFilm::new().unwrap();
    film.edit("picture: lamp.png", "picture: lmap.png");
    film.edit("picture: sea.png", "picture: nothing-like-it.png");
    film.edit("- bed-dawn {gain: -12 dB", "- bed-dwan {gain: -12 dB");
    let refused = make(&film);
    println!("{}", refused.err.trim());
    refused.ended(
        3,
        &[
            "picture \"lmap.png\" (did you mean \"lamp.png\"?)",
            "nothing-like-it.png",
            "bed-dwan",
        ],
    );
    assert_eq!(refused.json()["error"]["code"], "not_found");
}

#[test]
fn names_stay_inside_the_folders() {
    for name in ["../lamp.png", "/etc/hostname"] {
        let mut film = SmallFilm::new().unwrap();
        film.edit("picture: lamp.png", &format!("picture: {name}"));
        let refused = make(&film);
        println!("{}", refused.err.trim());
        refused.ended(3, &[name, "inside"]);
    }
}

#[test]
fn a_second_owner_is_refused_and_told_who() {
    let film = SmallFilm::new().unwrap();
    assert!(make(&film).status.success());
    let project = film.out().with_extension("longtake");
    let clock = flow_studio::system_clock();
    let held = Project::open(&project, false, "the test", &clock).unwrap();
    let before = held.command(StudioCommand::System(System::Script)).unwrap();
    let refused = make(&film);
    let pid = std::process::id().to_string();
    refused.ended(4, &["\"the test\"", &pid, "small.longtake"]);
    assert_eq!(refused.json()["error"]["code"], "busy");
    let after = held.command(StudioCommand::System(System::Script)).unwrap();
    assert_eq!(before, after);
    drop(held);
    assert!(make(&film).status.success());
}

#[test]
fn a_project_of_a_newer_version_is_left_untouched() {
    let film = SmallFilm::new().unwrap();
    assert!(make(&film).status.success());
    let project = film.out().with_extension("longtake");
    // The schema's number stands at byte 60 of the database, most significant byte first.
    let path = project.join("project.db");
    let mut database = fs::read(&path).unwrap();
    assert_eq!(database[60..64], 2u32.to_be_bytes());
    database[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&path, database).unwrap();
    let before = snapshot(&project);
    let show = film
        .program(PROGRAM)
        .args(["--json", "project", "show"])
        .arg(&project)
        .output();
    let shown = show.unwrap();
    assert_eq!(shown.status.code(), Some(4), "{shown:?}");
    let refused = make(&film);
    refused.ended(4, &["99", "newer", "project.db"]);
    assert_eq!(refused.json()["error"]["code"], "refused");
    assert!(snapshot(&project) == before, "the project was touched");
}

fn mount(folder: &Path, options: &str) -> bool {
    let mut command = Command::new("mount");
    command
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(folder);
    command.output().is_ok_and(|done| done.status.success())
}

/// A small disk, gone when dropped.
struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.0).status();
        assert!(
            done.is_ok_and(|done| done.success()),
            "still mounted: {:?}",
            self.0
        );
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let film = SmallFilm::new().unwrap();
    fs::create_dir_all(film.cache()).unwrap();
    if !mount(&film.cache(), "size=2m") {
        println!("SKIPPED: a small disk can be mounted by root only");
        return;
    }
    let disk = SmallDisk(film.cache());
    let (mut size_kib, mut runs, mut before) = (0, 0, Vec::new());
    // Grows until the film fits; each time the disk is full somewhere else.
    let done = loop {
        size_kib += 500;
        runs += 1;
        assert!(runs < 30, "it never fits");
        let grown = mount(&film.cache(), &format!("remount,size={size_kib}k"));
        assert!(grown);
        let done = make_in_words(&film);
        if done.status.success() {
            break done;
        }
        println!("{size_kib} KiB: {}", done.err.trim());
        assert_eq!(done.status.code(), Some(5), "{size_kib} KiB: {done:?}");
        assert!(!film.out().exists());
        let Ok(store) = film.store() else { continue };
        let check = store.check(true).unwrap();
        assert!(check.is_sound(), "{size_kib} KiB: {check:?}");
        let now = store.committed_since(CommitMark(0)).unwrap();
        let now: Vec<Key> = now.into_iter().map(|commit| commit.key).collect();
        assert!(
            now.starts_with(&before),
            "{size_kib} KiB: something was made again"
        );
        before = now;
    };
    println!("{size_kib} KiB: {}", done.out.trim());
    assert!(runs > 2, "it was never full in the middle");
    let store = film.store().unwrap();
    let all = store.committed_since(CommitMark(0)).unwrap();
    let all: Vec<Key> = all.into_iter().map(|commit| commit.key).collect();
    assert!(all.starts_with(&before));
    let unique: std::collections::BTreeSet<String> =
        all.iter().map(|key| format!("{key:?}")).collect();
    assert_eq!(unique.len(), all.len());
    drop(store);
    drop(disk);
}

fn result(number: u8) -> NewResult {
    let mut key = [0; 32];
    key[0] = number;
    NewResult {
        key: Key::from_bytes(key),
        node_type: "test.bytes".into(),
        ports: vec![StoredPort::one(StoredValue::Small(
            engine_base::Datum::from("x".repeat(1000)),
        ))],
        exactness: Exactness::Exact,
        provenance: Provenance::default(),
    }
}

#[test]
fn a_clock_set_back_reorders_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let manual = Arc::new(ManualClock::at(2_000_000_000_000));
    let clock: Arc<dyn Clock> = Arc::clone(&manual) as Arc<dyn Clock>;

    // The cache: what was used last stays, whatever the clock said then.
    let options = StoreOptions {
        cap_bytes: u64::MAX,
        clock: Arc::clone(&clock),
        faults: Faults::none(),
    };
    let store = Store::open(&folder.path().join("cache"), options).unwrap();
    for number in 1..=4 {
        store.commit(result(number)).unwrap();
        manual.set_unix_millis(2_000_000_000_000 - u64::from(number) * 86_400_000);
    }
    let key = |number| result(number).key;
    assert!(store.lookup(&[key(1)]).unwrap()[0].is_some());
    let each = store.counts().unwrap().bytes / 4;
    store.prune(2 * each + each / 2, false).unwrap();
    let there: Vec<bool> = store
        .lookup(&[key(1), key(2), key(3), key(4)])
        .unwrap()
        .iter()
        .map(Option::is_some)
        .collect();
    assert_eq!(there, [true, false, false, true]);

    // The project: edits are taken back in the order in which they were made.
    let path = folder.path().join("clock.longtake");
    let project = Project::open(&path, true, "test", &clock).unwrap();
    let script = flow_story::parse(longtake_tests::film::SCRIPT.as_bytes(), "small.md").unwrap();
    let script: Value = serde_json::from_str(&flow_story::to_json(&script.script)).unwrap();
    let edit = |edit| project.command(StudioCommand::Edit(edit)).unwrap();
    edit(Edit::ImportScript { script });
    for (nth, action) in ["one", "two", "three"].iter().enumerate() {
        manual.set_unix_millis(1_000_000_000_000 - nth as u64 * 3_600_000);
        edit(Edit::Set {
            kind: Kind::Shot,
            id: "lamp".into(),
            field: "/action".into(),
            value: json!(action),
        });
    }
    let action = |project: &Project| {
        let script = project.script().unwrap();
        let mut shots = script.scenes.iter().flat_map(|scene| &scene.shots);
        shots.find(|shot| shot.id == "lamp").unwrap().action.clone()
    };
    let mut seen = vec![action(&project)];
    for _ in 0..3 {
        project
            .command(StudioCommand::System(System::Undo))
            .unwrap();
        seen.push(action(&project));
    }
    assert_eq!(seen, ["three", "two", "one", "The lamp is lit."]);
}
