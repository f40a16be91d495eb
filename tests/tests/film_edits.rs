//! What is made again after an edit, and what is not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::fmt::Write as _;

use longtake_tests::film::{Made, SmallFilm};

/// An edit, what it does and which nodes run for it.
struct Case {
    edit: &'static str,
    apply: fn(&mut SmallFilm),
    runs: &'static [(&'static str, usize)],
}

const SOUND: [(&str, usize); 3] = [
    ("film.loudness", 1),
    ("film.sound_encode", 1),
    ("film.mux", 1),
];

/// Each case starts from the film as the cases before it left it.
const CASES: &[Case] = &[
    Case {
        edit: "nothing",
        apply: |_| {},
        runs: &[],
    },
    Case {
        edit: "another picture for a shot between cuts",
        apply: |film| film.paint("shore", 9).unwrap(),
        runs: &[("film.segment", 1), ("film.mux", 1)],
    },
    Case {
        edit: "another picture for a shot on one side of a cross-fade",
        apply: |film| film.paint("stair", 9).unwrap(),
        // The shot's own frames, and the cross-fade that it shares with the shot before.
        runs: &[("film.segment", 2), ("film.mux", 1)],
    },
    Case {
        edit: "a title's text",
        apply: |film| film.edit("- title: The Small Film", "- title: The Smaller Film"),
        runs: &[("film.segment", 1), ("film.mux", 1)],
    },
    Case {
        edit: "a subtitle's text",
        apply: |film| film.edit("> Up, then.", "> Up then."),
        runs: &[("film.subtitles", 1), ("film.mux", 1)],
    },
    Case {
        edit: "a shot's name",
        apply: |film| film.edit("### Shot stair", "### Shot steps"),
        runs: &[],
    },
    Case {
        edit: "a picture's file name",
        apply: |film| {
            let folder = film.folder().to_owned();
            std::fs::rename(folder.join("lamp.png"), folder.join("light.png")).unwrap();
            film.edit("picture: lamp.png", "picture: light.png");
        },
        runs: &[],
    },
    Case {
        edit: "what a shot's action says",
        apply: |film| film.edit("Steps, upward.", "Steps that go up."),
        runs: &[],
    },
    Case {
        edit: "the film's name",
        apply: |film| film.edit("title: The Small Film\nlogline", "title: The Lamp\nlogline"),
        runs: &[("film.mux", 1)],
    },
    Case {
        edit: "a camera move",
        apply: |film| film.edit("push 1 -> 1.2", "push 1 -> 1.3"),
        runs: &[("film.segment", 1), ("film.mux", 1)],
    },
    Case {
        edit: "the level of the music",
        apply: |film| film.edit("bed-dawn {gain: -12 dB", "bed-dawn {gain: -9 dB"),
        runs: &[("film.sound_mix", 4), SOUND[0], SOUND[1], SOUND[2]],
    },
    Case {
        edit: "the length of the last shot",
        apply: |film| {
            let at = film.script.rfind("- length: 1 s").unwrap();
            film.script.replace_range(at..at + 13, "- length: 1.5 s");
        },
        // Its own frames and sound. Only the last stretch of sound ends elsewhere, with the
        // music's fade.
        runs: &[
            ("film.segment", 1),
            ("film.sound_mix", 1),
            SOUND[0],
            SOUND[1],
            SOUND[2],
        ],
    },
    Case {
        edit: "the order of two shots between cuts",
        apply: |film| {
            film.edit("- picture: shore.png", "- picture: (first)");
            film.edit("- picture: light.png", "- picture: shore.png");
            film.edit("- picture: (first)", "- picture: light.png");
        },
        runs: &[("film.segment", 3), ("film.mux", 1)],
    },
];

#[test]
fn an_edit_runs_only_what_it_changes() {
    let mut film = SmallFilm::new().unwrap();
    let (report, made) = film.make(|_| {}).unwrap();
    assert_eq!(report.failed, 0, "{:?}", report.errors);
    assert_eq!(
        made.get("film.segment"),
        Some(&5),
        "four shots and one cross-fade: {made:?}"
    );
    let mut wrong = String::new();
    for case in CASES {
        (case.apply)(&mut film);
        let (report, made) = film.make(|_| {}).unwrap();
        assert_eq!(report.failed, 0, "{}: {:?}", case.edit, report.errors);
        // The poster is a frame of one shot: it follows that shot and is no part of the film.
        let made: Made = made
            .into_iter()
            .filter(|(name, _)| name != "film.poster")
            .collect();
        let runs: Made = case
            .runs
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect();
        if made != runs {
            writeln!(wrong, "{}: expected {runs:?}, got {made:?}", case.edit).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
