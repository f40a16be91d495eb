//! A film survives being killed at any moment: nothing that was finished is made again, and the
//! film is the same as of a run that nobody killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flow_media::mux::{StreamHashes, stream_hashes};
use flow_store::{CommitMark, CommitRecord, Faults, Store, StoreOptions};
use longtake_tests::film::{Ran, SmallFilm, ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

/// Moments drawn over the wall time.
const MOMENTS: usize = 10;

/// Fault points: each ends the program by itself at the given pass.
const POINTS: &[(&str, u32)] = &[
    // The cache's database is made, then the project's.
    ("migrate.before_rename", 1),
    ("migrate.after_rename", 2),
    ("project.imported", 1),
    // The stills are copied into the project and the cache.
    ("blob.half_written", 2),
    ("media.renamed_before_commit", 2),
    // A result's file is in its place, and nothing says so yet.
    ("blob.renamed_before_commit", 7),
    // The second segment that tells of a frame, with some of its frames still to come.
    ("segment.underway", 2),
    ("commit.before_transaction", 2),
    ("commit.in_transaction", 3),
    ("commit.after_transaction", 3),
    // The film itself, the last of all files.
    ("blob.renamed_before_commit", 19),
    // Subtitles, poster and film are written in this order.
    ("export.before_rename", 1),
    ("export.before_rename", 3),
    ("export.after_rename", 2),
];

/// What stood at the film's place before.
const OLD_FILM: &[u8] = b"an older film";

/// One run's folders. The film's folder holds the script and the stills for all of them.
struct Place {
    folder: PathBuf,
    old_film: bool,
}

impl Place {
    fn new(film: &SmallFilm, name: &str, old_film: bool) -> Self {
        let folder = film.folder().join("runs").join(name);
        fs::create_dir_all(&folder).unwrap();
        let place = Self { folder, old_film };
        if old_film {
            fs::write(place.out(), OLD_FILM).unwrap();
        }
        place
    }

    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    fn out(&self) -> PathBuf {
        self.folder.join("film.mp4")
    }

    fn command(&self, film: &SmallFilm) -> Command {
        let mut command = film.program(PROGRAM);
        command.arg("--cache").arg(self.cache());
        command.args(["film", "--json", "--preset", "medium"]);
        command.arg("--script").arg(film.script_path());
        command.arg("--stills").arg(film.folder());
        command.arg("--out").arg(self.out());
        command
    }

    /// What the cache has committed, read from a copy of its database: to open the cache itself
    /// would tidy up what a kill left.
    fn committed(&self) -> Vec<CommitRecord> {
        let copy = self.folder.join("copy");
        fs::create_dir_all(&copy).unwrap();
        if let Ok(entries) = fs::read_dir(self.cache()) {
            for entry in entries.flatten() {
                if entry.file_type().unwrap().is_file() {
                    fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
                }
            }
        }
        let options = StoreOptions {
            cap_bytes: u64::MAX,
            clock: flow_studio::system_clock(),
            faults: Faults::none(),
        };
        let store = Store::open(&copy, options).unwrap();
        let committed = store.committed_since(CommitMark(0)).unwrap();
        assert_eq!(store.counts().unwrap().commits_ever, committed.len() as u64);
        drop(store);
        fs::remove_dir_all(&copy).unwrap();
        committed
    }

    /// The film's place holds nothing, the old film, or a whole one.
    fn assert_never_half(&self, whole: &Whole, stage: &str) -> &'static str {
        match fs::read(self.out()) {
            Err(_) => {
                assert!(!self.old_film, "{stage}: the old film is gone");
                "none"
            }
            Ok(bytes) if bytes == OLD_FILM => "old",
            Ok(_) => {
                assert_eq!(stream_hashes(&self.out()).unwrap(), whole.hashes, "{stage}");
                "whole"
            }
        }
    }

    /// Nothing lies about: no temporary file in the cache, the project or beside the film.
    fn assert_tidy(&self, stage: &str) {
        let names: BTreeSet<String> = fs::read_dir(&self.folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let expected = ["cache", "film.longtake", "film.mp4", "film.png", "film.srt"];
        assert_eq!(names, expected.map(String::from).into(), "{stage}");
        let project = self.folder.join("film.longtake");
        for temp in [self.cache().join("temp"), project.join("media/temp")] {
            let left: Vec<_> = fs::read_dir(&temp).unwrap().flatten().collect();
            assert!(left.is_empty(), "{stage}: {left:?}");
        }
        let sessions: Vec<_> = fs::read_dir(self.cache().join("sessions"))
            .unwrap()
            .flatten()
            .collect();
        assert!(sessions.is_empty(), "{stage}: {sessions:?}");
        for folder in [self.cache(), project] {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                let partial = [".new", ".part", ".json"]
                    .iter()
                    .any(|end| name.ends_with(end));
                assert!(!partial || name == "costs.json", "{stage}: {name}");
            }
        }
    }

    fn assert_free(&self, stage: &str) {
        let owner = flow_studio::owner_of(&self.folder.join("film.longtake"));
        assert_eq!(owner.unwrap(), None, "{stage}");
    }
}

/// What an uninterrupted run gave.
struct Whole {
    hashes: StreamHashes,
    srt: String,
    keys: BTreeSet<String>,
    wall: Duration,
}

fn keys(committed: &[CommitRecord]) -> Vec<String> {
    committed
        .iter()
        .map(|commit| format!("{:?}", commit.key))
        .collect()
}

fn uninterrupted(film: &SmallFilm) -> Whole {
    let place = Place::new(film, "whole", false);
    let began = Instant::now();
    let done = ran(&mut place.command(film)).unwrap();
    let wall = began.elapsed();
    assert!(done.status.success(), "{done:?}");
    let committed = place.committed();
    assert_eq!(done.json()["made"], committed.len());
    place.assert_tidy("whole");
    place.assert_free("whole");
    Whole {
        hashes: stream_hashes(&place.out()).unwrap(),
        srt: fs::read_to_string(place.out().with_extension("srt")).unwrap(),
        keys: keys(&committed).into_iter().collect(),
        wall,
    }
}

fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait(mut child: Child) -> Ran {
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    let status = child.wait().unwrap();
    Ran { status, out, err }
}

/// A line of the table.
struct Row {
    stage: String,
    film: &'static str,
    before: usize,
    after: usize,
    last: String,
}

/// After a kill: look at what is there, run again to the end, look again.
fn go_on(film: &SmallFilm, place: &Place, whole: &Whole, stage: String) -> Row {
    let found = place.assert_never_half(whole, &stage);
    if place.folder.join("film.longtake").exists() {
        place.assert_free(&stage);
    }
    let before = place.committed();
    let last = before
        .last()
        .map_or("-", |commit| commit.node_type.as_str());
    let done = ran(&mut place.command(film)).unwrap();
    assert!(done.status.success(), "{stage}: {done:?}");
    let after = place.committed();
    let (had, have) = (keys(&before), keys(&after));
    assert_eq!(
        have[..had.len()],
        had,
        "{stage}: a finished result was made again"
    );
    let made = have.len() - had.len();
    assert_eq!(done.json()["made"], made, "{stage}");
    assert_eq!(have.len(), whole.keys.len(), "{stage}: commits ever");
    assert_eq!(
        have.into_iter().collect::<BTreeSet<_>>(),
        whole.keys,
        "{stage}"
    );
    assert_eq!(
        stream_hashes(&place.out()).unwrap(),
        whole.hashes,
        "{stage}"
    );
    let srt = fs::read_to_string(place.out().with_extension("srt")).unwrap();
    assert_eq!(srt, whole.srt, "{stage}");
    place.assert_tidy(&stage);
    place.assert_free(&stage);
    let row = Row {
        last: last.to_owned(),
        stage,
        film: found,
        before: before.len(),
        after: made,
    };
    fs::remove_dir_all(&place.folder).unwrap();
    row
}

fn at_point(film: &SmallFilm, whole: &Whole, point: &str, count: u32) -> Row {
    let stage = format!("{point}:{count}");
    let place = Place::new(film, &stage.replace([':', '.'], "-"), count % 2 == 1);
    let killed = wait(start(place.command(film).env("LONGTAKE_FAULT", &stage)));
    assert_eq!(killed.status.signal(), Some(6), "{stage}: {killed:?}");
    let said = format!("ended at the fault point {point}");
    assert!(killed.err.contains(&said), "{stage}: {killed:?}");
    go_on(film, &place, whole, stage)
}

/// Killed at `part` of the wall time; `None` and its own wall time when it was faster than that.
fn at_moment(film: &SmallFilm, whole: &Whole, part: f64, wall: Duration) -> Result<Row, Duration> {
    let moment = wall.mul_f64(part);
    let stage = format!("kill -9 at {:.2} s", moment.as_secs_f64());
    let place = Place::new(film, &format!("{}", moment.as_micros()), part > 0.5);
    let began = Instant::now();
    let mut child = start(&mut place.command(film));
    while began.elapsed() < moment {
        if child.try_wait().unwrap().is_some() {
            return Err(began.elapsed());
        }
        std::thread::sleep((moment - began.elapsed().min(moment)).min(Duration::from_millis(20)));
    }
    child.kill().unwrap();
    let killed = wait(child);
    if killed.status.signal() != Some(9) {
        return Err(began.elapsed());
    }
    Ok(go_on(film, &place, whole, stage))
}

#[test]
fn what_memory_held_before_decides_nothing() {
    let mut film = SmallFilm::new().unwrap();
    // Not a multiple of 128 px wide: an encoder's code looked past the end of its rows.
    film.edit("size: 160x90\nfps: 12", "size: 320x180\nfps: 24");
    film.write_script().unwrap();
    let contents = |fill: &str| {
        let place = Place::new(&film, fill, false);
        // The C library fills new memory with this byte's complement.
        let done = ran(place.command(&film).env("MALLOC_PERTURB_", fill)).unwrap();
        assert!(done.status.success(), "{done:?}");
        let mut contents: Vec<String> = place
            .committed()
            .iter()
            .map(|commit| format!("{} {:?}", commit.node_type, commit.content))
            .collect();
        contents.sort();
        contents
    };
    let first = contents("1");
    for fill in ["85", "170"] {
        assert_eq!(contents(fill), first, "filled with {fill}");
    }
}

/// Numbers in 0..1 out of a seed.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn seed() -> u64 {
    let given = std::env::var("LONGTAKE_TEST_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_nanos() as u64
    })
}

#[test]
fn a_film_survives_kills() {
    let mut film = SmallFilm::new().unwrap();
    film.edit("size: 160x90\nfps: 12", "size: 320x180\nfps: 24");
    film.write_script().unwrap();
    let whole = uninterrupted(&film);
    let seed = seed();
    println!(
        "an uninterrupted run makes {} results in {:.2} s; LONGTAKE_TEST_SEED={seed}",
        whole.keys.len(),
        whole.wall.as_secs_f64()
    );
    let mut rows: Vec<Row> = POINTS
        .iter()
        .map(|(point, count)| at_point(&film, &whole, point, *count))
        .collect();
    let stages: BTreeSet<&str> = POINTS.iter().map(|(point, _)| *point).collect();
    assert!(stages.len() >= 6);
    let mut draw = Draw(seed);
    let (mut killed, mut tries, mut wall) = (0, 0, whole.wall);
    while killed < MOMENTS {
        tries += 1;
        assert!(tries <= 3 * MOMENTS, "the program ends before it is killed");
        match at_moment(&film, &whole, draw.next(), wall) {
            Ok(row) => {
                rows.push(row);
                killed += 1;
            }
            // The machine was busier when the wall time was measured.
            Err(faster) => wall = faster,
        }
    }
    println!(
        "{:34} {:>6} {:>6} {:>6}  last made before",
        "stage", "before", "after", "film"
    );
    for row in &rows {
        let Row {
            stage,
            film,
            before,
            after,
            last,
        } = row;
        println!("{stage:34} {before:>6} {after:>6} {film:>6}  {last}");
    }
}
