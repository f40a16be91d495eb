//! The studio killed (`kill -9`) at five moments drawn from a seed: while edits come in, while they
//! are taken back, in a render, in an export, and in a render during which edits come in and other
//! jobs wait. After each: every edit that was confirmed is there and can be taken back, no job is
//! lost or called done that is not, nothing that was finished is made twice, and the film is in the
//! end that of a studio which nobody killed.
//!
//! `LONGTAKE_KILL_SEED=N` draws the moments of another run again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flow_media::mux::stream_hashes;
use flow_store::CommitMark;
use longtake_tests::film::SmallFilm;
use serde_json::{Value, json};

use self::served::{Caller, Server};

const SHOTS: [&str; 4] = ["shore", "lamp", "stair", "sea"];

/// A job that had ended before the kill came tells nothing: it is tried again, this often.
const TRIES_MAX: usize = 6;

/// Numbers out of a seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..below`.
    fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }
}

fn seed() -> u64 {
    let given = std::env::var("LONGTAKE_KILL_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_nanos() as u64 % 1_000_000
    })
}

/// An edit that was sent.
#[derive(Clone)]
struct Sent {
    shot: &'static str,
    text: String,
    key: String,
    /// The project's revision, once the edit was confirmed.
    confirmed: Option<u64>,
}

impl Sent {
    fn args(&self, project: &str) -> Value {
        let edit = json!({ "edit": "set", "kind": "shot", "id": self.shot, "field": "/note",
            "value": self.text });
        json!({ "project": project, "edit": edit, "edit_key": self.key })
    }
}

/// A way to be killed; says what was seen.
type Kill = fn(&mut Killed) -> String;

/// Notes of the shots, by shot.
type Notes = BTreeMap<String, String>;

/// A studio with the small film, and what has been confirmed of it.
struct Killed {
    film: SmallFilm,
    server: Server,
    project: String,
    draw: Draw,
    /// Every edit of a note that is made, in order.
    history: Vec<Sent>,
    /// Edits that were sent so far, for names that are never used twice.
    sent: usize,
    /// Quarters of a second that each shot has been made longer by.
    longer: u32,
    /// Films that were exported.
    exports: usize,
}

/// The small film as a project of a studio; gives its folder.
fn small_project(film: &SmallFilm, caller: &Caller) -> String {
    let new = json!({ "name": "Small", "preset": "wide", "fps": "24", "language": "en" });
    let state = caller.call("project.create", &new);
    let project = state["project"].as_str().unwrap().to_owned();
    for name in SHOTS.map(|shot| format!("{shot}.png")) {
        let bytes = std::fs::read(film.folder().join(&name)).unwrap();
        caller.upload(&project, &name, bytes);
    }
    project
}

fn import(caller: &Caller, project: &str, script: &Value) {
    let edit = json!({ "edit": "import_script", "script": script });
    caller.call("project.edit", &json!({ "project": project, "edit": edit }));
}

fn notes_of(state: &Value) -> Notes {
    let scenes = state["script"]["scenes"].as_array().unwrap().iter();
    let shots = scenes.flat_map(|scene| scene["shots"].as_array().unwrap());
    let note = |shot: &Value| {
        let text = shot["note"].as_str().unwrap_or_default();
        (shot["id"].as_str().unwrap().to_owned(), text.to_owned())
    };
    shots.map(note).collect()
}

/// What the notes are after these edits.
fn notes_after(history: &[Sent]) -> Notes {
    let mut notes: Notes = SHOTS.map(|shot| (shot.to_owned(), String::new())).into();
    for sent in history {
        notes.insert(sent.shot.to_owned(), sent.text.clone());
    }
    notes
}

impl Killed {
    fn new(seed: u64) -> Self {
        let film = SmallFilm::new().unwrap();
        let server = Server::start(&film);
        let project = small_project(&film, &server.caller);
        // Without the lines: no voice is needed to make it.
        let silent = film.script.lines().filter(|line| !line.starts_with("> "));
        let text: String = silent.map(|line| format!("{line}\n")).collect();
        let text = text.replace("size: 160x90", "size: 320x180");
        let read = server.caller.call("story.read", &json!({ "text": text }));
        import(&server.caller, &project, &read["script"]);
        Self {
            film,
            server,
            project,
            draw: Draw(seed),
            history: Vec::new(),
            sent: 0,
            longer: 0,
            exports: 0,
        }
    }

    fn state(&self) -> Value {
        let args = json!({ "project": self.project });
        self.server.caller.call("project.state", &args)
    }

    fn revision(&self) -> u64 {
        self.state()["revision"].as_u64().unwrap()
    }

    fn kill_and_start(&mut self) {
        self.server.kill();
        self.server = Server::start(&self.film);
    }

    /// Let a drawn moment pass, shorter than what a command takes.
    fn a_moment(&mut self) -> Duration {
        let micros = self.draw.below(12_000);
        let moment = Duration::from_micros(micros);
        std::thread::sleep(moment);
        moment
    }

    /// A client that edits notes until the server is gone.
    fn edit_on(&mut self) -> (Arc<Mutex<Vec<Sent>>>, JoinHandle<()>) {
        let sent: Vec<Sent> = (0..400)
            .map(|_| {
                self.sent += 1;
                let shot = SHOTS[self.draw.below(4) as usize];
                let text = format!("note {} on {shot}", self.sent);
                let key = format!("kill-{}", self.sent);
                Sent {
                    shot,
                    text,
                    key,
                    confirmed: None,
                }
            })
            .collect();
        let log: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let (caller, project) = (self.server.caller.clone(), self.project.clone());
        let told = Arc::clone(&log);
        let thread = client(move || {
            for one in sent {
                let args = one.args(&project);
                told.lock().unwrap().push(one);
                let Ok(done) = caller.ask("project.edit", &args) else {
                    return;
                };
                let mut told = told.lock().unwrap();
                told.last_mut().unwrap().confirmed = Some(done["revision"].as_u64().unwrap());
            }
        });
        (log, thread)
    }

    /// After a kill and a new start: the confirmed edits are there, the one that was under way is
    /// there whole or not at all and can be sent again, and all can be taken back.
    fn check_edits(&mut self, log: Vec<Sent>) -> String {
        let confirmed = log.iter().filter(|sent| sent.confirmed.is_some()).count();
        assert!(
            log.len() - confirmed <= 1 && log[..confirmed].iter().all(|s| s.confirmed.is_some()),
            "one after the other"
        );
        let state = self.state();
        let last = log[..confirmed].last().and_then(|sent| sent.confirmed);
        assert!(state["revision"].as_u64() >= last, "{last:?}: {state}");
        let with = |made: usize| {
            let mut with = self.history.clone();
            with.extend_from_slice(&log[..made]);
            notes_after(&with)
        };
        let found = notes_of(&state);
        let was_made = log.len() > confirmed && found == with(log.len());
        assert!(
            was_made || found == with(confirmed),
            "{confirmed} edits were confirmed, {} sent: {found:?}",
            log.len()
        );
        // What a client does whose answer was lost. Made once: see how much there is to take back.
        if let Some(last) = log.last() {
            let args = last.args(&self.project);
            self.server.caller.call("project.edit", &args);
        }
        let first = self.history.len();
        self.history.extend(log);
        let whole = notes_after(&self.history);
        assert_eq!(notes_of(&self.state()), whole);
        let args = json!({ "project": self.project });
        for _ in first..self.history.len() {
            self.server.caller.call("project.undo", &args);
        }
        let earlier = notes_after(&self.history[..first]);
        assert_eq!(notes_of(&self.state()), earlier, "taken back");
        for _ in first..self.history.len() {
            self.server.caller.call("project.redo", &args);
        }
        assert_eq!(notes_of(&self.state()), whole, "made again");
        let way = if was_made { "kept" } else { "not there" };
        match self.history.len() - first - confirmed {
            0 => format!("{confirmed} edits confirmed"),
            _ => format!("{confirmed} edits confirmed, one under way ({way})"),
        }
    }

    /// Killed while edits come in.
    fn in_edits(&mut self) -> String {
        let (log, thread) = self.edit_on();
        let wanted = 1 + self.draw.below(20) as usize;
        wait_for(|| log.lock().unwrap().len() > wanted);
        self.a_moment();
        self.kill_and_start();
        thread.join().unwrap();
        let log = log.lock().unwrap().clone();
        self.check_edits(log)
    }

    /// Killed while edits are taken back and made again.
    fn in_undo(&mut self) -> String {
        // Something to take back.
        for text in ["one", "two", "three", "four", "five", "six"] {
            self.sent += 1;
            let one = Sent {
                shot: SHOTS[self.draw.below(4) as usize],
                text: format!("{text}, {}", self.sent),
                key: format!("kill-{}", self.sent),
                confirmed: None,
            };
            let args = one.args(&self.project);
            self.server.caller.call("project.edit", &args);
            self.history.push(one);
        }
        let before = self.revision();
        let steps: Arc<Mutex<Vec<bool>>> = Arc::default();
        let told = Arc::clone(&steps);
        let (caller, args) = (
            self.server.caller.clone(),
            json!({ "project": self.project }),
        );
        // Five back, three on, and so on: never past either end.
        let thread = client(move || {
            let back_and_on = [
                true, true, true, true, true, false, false, false, true, false,
            ];
            let then = [true, false, false, true].into_iter().cycle();
            for back in back_and_on.into_iter().chain(then).take(400) {
                let name = if back { "project.undo" } else { "project.redo" };
                if caller.ask(name, &args).is_err() {
                    return;
                }
                told.lock().unwrap().push(back);
            }
        });
        let wanted = 1 + self.draw.below(24) as usize;
        wait_for(|| steps.lock().unwrap().len() >= wanted);
        self.a_moment();
        self.kill_and_start();
        thread.join().unwrap();
        let steps = steps.lock().unwrap().clone();
        let back_by = |steps: &[bool]| {
            let back = steps.iter().filter(|back| **back).count();
            2 * back - steps.len()
        };
        let here = back_by(&steps);
        let made = (self.revision() - before) as usize;
        assert!(made == steps.len() || made == steps.len() + 1, "{made}");
        let found = notes_of(&self.state());
        let at = |back: usize| notes_after(&self.history[..self.history.len() - back]);
        // The step under way goes back or on by one.
        let places: Vec<usize> = match made == steps.len() {
            true => vec![here],
            false => vec![here + 1, here.saturating_sub(1)],
        };
        let place = places.into_iter().find(|place| at(*place) == found);
        let place = place.unwrap_or_else(|| panic!("{found:?} after {steps:?}"));
        let args = json!({ "project": self.project });
        for _ in 0..place {
            self.server.caller.call("project.redo", &args);
        }
        assert_eq!(notes_of(&self.state()), notes_after(&self.history));
        format!("{} steps confirmed, {made} made", steps.len())
    }

    /// Make every shot longer than it ever was, so that all have to be made.
    fn make_longer(&mut self) {
        self.longer += 1;
        let secs = 1.0 + f64::from(self.longer) * 0.25;
        for shot in SHOTS {
            let edit = json!({ "edit": "set", "kind": "shot", "id": shot, "field": "/length",
                "value": format!("{secs} s") });
            let args = json!({ "project": self.project, "edit": edit });
            self.server.caller.call("project.edit", &args);
        }
    }

    /// Start a job and kill the program at a drawn part of it. Gives what it looked like.
    fn kill_in(&mut self, id: i64) -> Value {
        let part = self.draw.below(1000) as f64 / 1000.0;
        let seen = self.server.until(id, |job| {
            let (done, of) = (&job["done"], job["of"].as_f64().unwrap());
            job["state"] == "running" && of > 0.0 && done.as_f64().unwrap() >= part * of
        });
        self.a_moment();
        self.kill_and_start();
        seen
    }

    /// What a job that was killed has become: it goes on by itself and is done in the end. False
    /// when it had ended before.
    fn check_job(&self, id: i64, seen: &Value) -> bool {
        let now = self.server.job(id);
        let interrupted = self.server.interruptions(id);
        if seen["state"] == "done" || interrupted == 0 {
            assert_eq!(now["state"], "done", "{now}");
            assert!(now["result"].is_object(), "{now}");
            return false;
        }
        assert_eq!(interrupted, 1, "{now}");
        let is_honest = matches!(
            now["state"].as_str(),
            Some("interrupted" | "running" | "done")
        );
        assert!(is_honest, "{now}");
        let done = self.server.done(id);
        assert!(done["result"].is_object(), "{done}");
        true
    }

    fn check_all_made(&self) {
        let state = self.state();
        for (shot, status) in state["shots"].as_object().unwrap() {
            assert_eq!(status["state"], "made", "{shot}: {status}");
        }
    }

    fn start(&self, name: &str, args: &Value) -> i64 {
        self.server.caller.call(name, args)["job"].as_i64().unwrap()
    }

    /// Killed in a render.
    fn in_render(&mut self) -> String {
        for tried in 1..=TRIES_MAX {
            self.make_longer();
            let args = json!({ "project": self.project, "what": "missing" });
            let id = self.start("render.start", &args);
            let seen = self.kill_in(id);
            let was_killed = self.check_job(id, &seen);
            self.check_all_made();
            if was_killed {
                return format!("at {} of {} (try {tried})", seen["done"], seen["of"]);
            }
        }
        panic!("the render ends before it is killed");
    }

    fn exports_folder(&self) -> PathBuf {
        Path::new(&self.project).join("exports")
    }

    /// Killed in an export.
    fn in_export(&mut self) -> String {
        for tried in 1..=TRIES_MAX {
            self.make_longer();
            let args = json!({ "project": self.project, "preset": "web", "upscale": false });
            let id = self.start("export.start", &args);
            let seen = self.kill_in(id);
            let was_killed = self.check_job(id, &seen);
            self.exports += 1;
            let films = films_in(&self.exports_folder());
            assert_eq!(films.len(), self.exports, "{films:?}");
            let job = self.server.job(id);
            let out = Path::new(job["result"]["out"].as_str().unwrap());
            assert!(out.is_file(), "{job}");
            if was_killed {
                return format!("at {} of {} (try {tried})", seen["done"], seen["of"]);
            }
        }
        panic!("the export ends before it is killed");
    }

    /// Killed in a render while edits come in, one more job waits and one is paused.
    fn in_all_of_it(&mut self) -> String {
        for tried in 1..=TRIES_MAX {
            self.make_longer();
            let render = |what: Value, draft: bool| json!({ "project": self.project, "what": what, "draft": draft });
            let missing = self.start("render.start", &render(json!("missing"), false));
            let draft = self.start("render.start", &render(json!({ "shots": ["sea"] }), true));
            let paused = self.start("render.start", &render(json!({ "shots": ["lamp"] }), true));
            let args = json!({ "id": paused });
            self.server.caller.call("queue.pause", &args);
            let (log, thread) = self.edit_on();
            let seen = self.kill_in(missing);
            thread.join().unwrap();
            let log = log.lock().unwrap().clone();
            let was_killed = self.check_job(missing, &seen);
            let edits = self.check_edits(log);
            let drawn = self.server.done(draft);
            let made = self.server.job(missing);
            assert!(
                made["started_unix_millis"].as_u64() <= drawn["started_unix_millis"].as_u64(),
                "in their order: {made} {drawn}"
            );
            assert_eq!(self.server.job(paused)["state"], "paused");
            self.server.caller.call("queue.resume", &args);
            self.server.done(paused);
            self.check_all_made();
            if was_killed {
                let (done, of) = (&seen["done"], &seen["of"]);
                return format!("at {done} of {of}, {edits} (try {tried})");
            }
        }
        panic!("the render ends before it is killed");
    }

    /// Nothing was made twice in the whole life of the cache, and nothing lies about.
    fn check_cache(self) {
        let Self { film, server, .. } = self;
        server.stop();
        let store = film.store().unwrap();
        let commits = store.committed_since(CommitMark(0)).unwrap();
        assert_eq!(store.counts().unwrap().commits_ever, commits.len() as u64);
        let keys: BTreeSet<String> = commits.iter().map(|one| format!("{:?}", one.key)).collect();
        assert_eq!(keys.len(), commits.len(), "something was made twice");
        drop(store);
        let temp = std::fs::read_dir(film.cache().join("temp")).unwrap();
        assert_eq!(temp.count(), 0, "files of work that was cut off");
    }
}

fn films_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.collect();
    for name in &names {
        assert!(!name.ends_with(".part"), "half a file: {names:?}");
    }
    names
        .into_iter()
        .filter(|name| name.ends_with(".mp4"))
        .collect()
}

/// One who asks beside this one.
fn client(work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Builder::new().name("client".into()).spawn(work).unwrap()
}

fn wait_for(is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing comes");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The film that `script` makes in a studio which nobody kills.
fn uninterrupted(script: &Value) -> (SmallFilm, PathBuf) {
    let film = SmallFilm::new().unwrap();
    let server = Server::start(&film);
    let project = small_project(&film, &server.caller);
    import(&server.caller, &project, script);
    let args = json!({ "project": project, "preset": "web", "upscale": false });
    let started = server.caller.call("export.start", &args);
    let done = server.done(started["job"].as_i64().unwrap());
    let out = done["result"]["out"].as_str().unwrap().into();
    (film, out)
}

#[test]
fn the_studio_survives_five_kills() {
    let seed = seed();
    println!("LONGTAKE_KILL_SEED={seed}");
    let mut studio = Killed::new(seed);
    let mut moments: Vec<(&str, Kill)> = vec![
        ("edits", Killed::in_edits),
        ("undo", Killed::in_undo),
        ("render", Killed::in_render),
        ("export", Killed::in_export),
        ("render, edits, waiting jobs", Killed::in_all_of_it),
    ];
    while !moments.is_empty() {
        let next = studio.draw.below(moments.len() as u64) as usize;
        let (name, kill) = moments.remove(next);
        let began = Instant::now();
        let what = kill(&mut studio);
        println!("{name:28} {:5.2} s  {what}", began.elapsed().as_secs_f64());
    }
    let script = studio.state()["script"].clone();
    let args = json!({ "project": studio.project, "preset": "web", "upscale": false });
    let id = studio.start("export.start", &args);
    let done = studio.server.done(id);
    let out = Path::new(done["result"]["out"].as_str().unwrap());
    let (_film, whole) = uninterrupted(&script);
    assert_eq!(
        stream_hashes(out).unwrap(),
        stream_hashes(&whole).unwrap(),
        "the film of a studio that nobody killed"
    );
    studio.check_cache();
}
