//! Films whose lines are spoken: what is made again when a line changes, films made again from
//! their own files, and what is said where no voice can speak.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::fs;

use longtake_tests::film::{Made, SmallFilm, ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

fn made(of: &[(&str, usize)]) -> Made {
    of.iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

/// A small film with room for its lines.
fn spoken() -> SmallFilm {
    let mut film = SmallFilm::new().unwrap();
    film.script = film.script.replace("- length: 1", "- length: 3");
    film
}

fn speak(request: &mut flow_studio::FilmRequest) {
    request.speaking.off = false;
}

#[test]
fn a_changed_line_makes_itself_its_mix_and_the_sound_again_and_no_picture() {
    let mut film = spoken();
    let (report, first) = film.make(speak).unwrap();
    assert_eq!(report.errors, [""; 0]);
    let lines = first["speech.line"];
    assert!(lines >= 2, "{first:?}");
    let (_, again) = film.make(speak).unwrap();
    assert_eq!(again, Made::new());

    film.edit("> Up, then.", "> Up we go.");
    let (_, changed) = film.make(speak).unwrap();
    let expected = [
        ("speech.line", 1),
        ("film.sound_mix", 1),
        ("film.loudness", 1),
        ("film.sound_encode", 1),
        ("film.subtitles", 1),
        ("film.mux", 1),
    ];
    assert_eq!(changed, made(&expected));

    // Back again: everything is still there.
    film.edit("> Up we go.", "> Up, then.");
    let (_, back) = film.make(speak).unwrap();
    assert_eq!(back, Made::new());
}

#[test]
fn a_film_is_made_again_from_its_own_file_byte_for_byte() {
    let film = spoken();
    let (report, _) = film.make(speak).unwrap();
    let out = report.out.unwrap();
    let again = film.folder().join("again.mp4");
    let mut command = film.program(PROGRAM);
    command.arg("rebuild").arg(&out).arg("--out").arg(&again);
    let told = ran(command.arg("--json")).unwrap();
    assert_eq!(told.json()["same"], true, "{told:?}");
    assert_eq!(told.json()["made"], 0, "{told:?}");
    assert_eq!(fs::read(&out).unwrap(), fs::read(&again).unwrap());

    // On a machine with another cache the pictures come from a folder, by their content.
    let other = film.folder().join("other-cache");
    let mut command = film.program(PROGRAM);
    command.env("LONGTAKE_CACHE", &other);
    command.arg("rebuild").arg(&out).arg("--out").arg(&again);
    command.arg("--stills").arg(film.folder()).arg("--json");
    let told = ran(&mut command).unwrap();
    assert_eq!(told.json()["same"], true, "{told:?}");

    // Beside its project the film needs no folder: what it shows lies there by its content.
    film.paint("lamp", 77).unwrap();
    let mut command = film.program(PROGRAM);
    command.env("LONGTAKE_CACHE", film.folder().join("second-cache"));
    command.arg("rebuild").arg(&out).arg("--out").arg(&again);
    command.arg("--stills").arg(film.folder()).arg("--json");
    let told = ran(&mut command).unwrap();
    assert_eq!(told.json()["same"], true, "{told:?}");

    // Without it another picture under the same name is not taken for it.
    for project in [&out, &again].map(|film| film.with_extension("longtake")) {
        fs::remove_dir_all(&project).unwrap();
    }
    let mut command = film.program(PROGRAM);
    command.env("LONGTAKE_CACHE", film.folder().join("third-cache"));
    command.arg("rebuild").arg(&out).arg("--out").arg(&again);
    command.arg("--stills").arg(film.folder()).arg("--json");
    let told = ran(&mut command).unwrap();
    let text = format!("{told:?}");
    assert!(
        text.contains("another file than the film was made from"),
        "{text}"
    );
    assert!(text.contains("lamp.png"), "{text}");
}

#[test]
fn rebuild_refuses_what_holds_no_film_of_ours() {
    let film = SmallFilm::new().unwrap();
    for (name, bytes) in [
        ("empty.mp4", &b""[..]),
        ("text.mp4", b"no film at all, only words"),
    ] {
        let path = film.folder().join(name);
        fs::write(&path, bytes).unwrap();
        let mut command = film.program(PROGRAM);
        let told = ran(command.arg("rebuild").arg(&path).arg("--json")).unwrap();
        let text = format!("{told:?}");
        assert!(text.contains("without its manifest"), "{text}");
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn a_language_that_no_voice_speaks_is_told_and_the_film_is_silent() {
    let mut film = spoken();
    film.script = film.script.replace("language: en", "language: fi");
    let (report, first) = film.make(speak).unwrap();
    assert!(!first.contains_key("speech.line"), "{first:?}");
    let warnings = format!("{:?}", report.warnings);
    assert!(
        warnings.contains("no voice on this machine speaks"),
        "{warnings}"
    );
    assert!(
        warnings.contains("fi") && warnings.contains("en-US"),
        "{warnings}"
    );
    assert!(report.out.is_some());
}

#[test]
fn what_has_no_sound_is_told_once_for_the_film_and_rests_are_not_shown() {
    let mut film = spoken();
    film.edit(
        "> Up, then.",
        "> Up 🎉, <break time=\"300ms\"/> <em>then</em> 🎉.",
    );
    for _ in 0..2 {
        let (report, _) = film.make(speak).unwrap();
        assert_eq!(report.errors, [""; 0]);
        let told = report.warnings.iter();
        let told: Vec<&str> = told
            .map(|warning| warning.message.as_str())
            .filter(|message| message.contains("left out"))
            .collect();
        // Also when the sound is there already.
        assert_eq!(told, ["left out of what is spoken: \"🎉\", \"<em>\""]);
        let subtitles = fs::read_to_string(report.subtitles.unwrap()).unwrap();
        assert!(
            subtitles.contains("Up 🎉, <em>then</em> 🎉."),
            "{subtitles}"
        );
    }
}

#[test]
fn lines_in_another_script_stay_silent_and_are_named() {
    let mut film = spoken();
    film.edit("> Up, then.", "> Смотритель чинит лампу 12 раз.");
    let (report, first) = film.make(speak).unwrap();
    assert!(report.out.is_some(), "{:?}", report.errors);
    assert!(first["speech.line"] >= 1, "{first:?}");
    let warnings = format!("{:?}", report.warnings);
    for part in ["a line stays silent", "Cyrillic", "en-US", "Смотритель"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}

#[test]
fn the_command_speaks_odd_texts_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.wav");
    let speak = |text: &str, more: &[&str]| {
        let mut command = std::process::Command::new(PROGRAM);
        command.arg("speak").arg(text).arg("--out").arg(&out);
        ran(command.args(more)).unwrap()
    };
    for (text, part) in [
        ("", "0 bytes"),
        (" \n\t", "at least one word"),
        ("\u{1}\u{7f}", "at least one word"),
        ("🎉", "🎉"),
        ("Смотритель маяка", "Cyrillic"),
        ("灯台守はランプを直す。", "Japanese"),
    ] {
        let told = speak(text, &[]);
        told.ended(3, &[part]);
        assert!(!out.exists(), "{text:?}");
    }
    let told = speak("27,50 €", &["--language", "de"]);
    told.ended(3, &["\"de\"", "en-US"]);
    assert!(!out.exists());

    let told = speak(
        "a < b\u{7} <break time=\"1s\"/> 🎉 <speak>yes</speak> 🎉",
        &[],
    );
    told.ended(
        0,
        &["note: left out of what is spoken", "🎉", "<speak>", "u{7}"],
    );
    assert_eq!(told.err.matches("left out").count(), 1, "{}", told.err);
    assert!(out.exists());
    let told = speak("a < b 🎉", &["--show", "--json"]).json();
    assert_eq!(told["sentences"][0], "a less than b", "{told}");
    assert_eq!(told["left_out"][0], "🎉", "{told}");
}

#[test]
fn a_voice_that_is_not_there_is_refused_with_those_that_are() {
    let film = spoken();
    let error = film
        .make(|request| {
            speak(request);
            request.speaking.narrator = Some("kokoro:nobody".into());
        })
        .unwrap_err();
    assert!(error.message.contains("kokoro:nobody"), "{error}");
    assert!(error.message.contains("hibari:af_heart"), "{error}");
}
