//! The program as a person or a script would call it.

use std::path::PathBuf;

use longtake_tests::film::{Ran, SmallFilm, ran};
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

/// Run the program with these words.
#[track_caller]
pub(crate) fn say(film: &SmallFilm, words: &[&str]) -> Ran {
    ran(film.program(PROGRAM).current_dir(film.folder()).args(words)).unwrap()
}

/// Run it with `--json`; it must succeed.
#[track_caller]
pub(crate) fn ask(film: &SmallFilm, words: &[&str]) -> Value {
    let done = say(film, &[&["--json"], words].concat());
    assert!(done.status.success(), "{done:?}");
    done.json()
}

/// A film with its project, made by the program.
pub(crate) fn made() -> (SmallFilm, PathBuf) {
    let film = SmallFilm::new().unwrap();
    let done = ran(&mut film.film_command(PROGRAM).unwrap()).unwrap();
    assert!(done.status.success(), "{done:?}");
    let project = film.out().with_extension("longtake");
    (film, project)
}

pub(crate) fn action(script: &Value, shot: &str) -> String {
    let scenes = script["scenes"].as_array().unwrap();
    let mut shots = scenes
        .iter()
        .flat_map(|scene| scene["shots"].as_array().unwrap());
    let found = shots.find(|found| found["id"] == shot).unwrap();
    found["action"].as_str().unwrap().to_owned()
}
