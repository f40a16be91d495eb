//! A script never takes the place of edits that nobody said to replace.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use longtake_tests::film::{Ran, SmallFilm, ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

#[track_caller]
fn say(film: &SmallFilm, words: &[&str]) -> Ran {
    ran(film.program(PROGRAM).current_dir(film.folder()).args(words)).unwrap()
}

#[test]
fn another_script_replaces_no_edits_unless_it_is_told_to() {
    let film = SmallFilm::new().unwrap();
    let make = |more: &[&str]| ran(film.film_command(PROGRAM).unwrap().args(more)).unwrap();
    assert!(make(&[]).status.success());
    let folder = film.out().with_extension("longtake");
    let project = folder.to_str().unwrap();
    let shown = || say(&film, &["project", "show", project]).out;
    // The same script, and an edited one while nothing was done in the project: as before.
    assert!(make(&[]).status.success());

    let edited = "The lamp burns all night.";
    let set = ["project", "set", project, "shot", "lamp", "/action", edited];
    assert!(say(&film, &set).status.success());
    let refused = make(&[]);
    assert!(!refused.status.success(), "{refused:?}");
    for words in ["was edited", "project diff", "project take", "--replace"] {
        assert!(refused.err.contains(words), "{words}: {refused:?}");
    }
    assert!(shown().contains(edited));

    let replaced = make(&["--replace"]);
    assert!(replaced.status.success(), "{replaced:?}");
    assert!(!shown().contains(edited));
    assert!(
        say(&film, &["project", "undo", project, "--yes"])
            .status
            .success()
    );
    assert!(shown().contains(edited), "the edits can be brought back");
}
