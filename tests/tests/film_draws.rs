//! A film without pictures draws its own: subjects by the small model, places laid of paper.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::collections::BTreeSet;
use std::path::Path;

use flow_media::Pixels;
use flow_media::still::StillOptions;
use flow_store::CommitMark;
use longtake_tests::film::{Ran, SmallFilm, ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

const SCRIPT: &str = "---\nlongtake: 1\ntitle: Snow\nsize: 320x180\nfps: 12\n---\n\n\
    ## Scene field: A field in winter\n\n\
    ### Shot fox\n\nA red fox stands in the snow at night.\n\n- length: 1 s\n\n\
    ### Shot again\n\nThe fox looks at the moon over the snow.\n\n- length: 1 s\n";

fn make(film: &SmallFilm, script: &str) -> Ran {
    let path = film.folder().join("snow.md");
    std::fs::write(&path, script).unwrap();
    let mut command = film.program(PROGRAM);
    command.args(["--json", "film", "--preset", "ultrafast", "--mute"]);
    command.arg("--script").arg(&path);
    command
        .arg("--project")
        .arg(film.folder().join("snow.longtake"));
    command.arg("--out").arg(film.out());
    ran(&mut command).unwrap()
}

fn count(film: &SmallFilm, node_type: &str) -> usize {
    let store = film.store().unwrap();
    let committed = store.committed_since(CommitMark(0)).unwrap();
    committed
        .iter()
        .filter(|commit| commit.node_type == node_type)
        .count()
}

#[test]
fn shots_that_nobody_gave_a_picture_are_drawn_once() {
    let film = SmallFilm::new().unwrap();
    let first = make(&film, SCRIPT);
    assert!(first.status.success(), "{first:?}");
    let drawn = count(&film, "image.draw");
    assert!((1..=4).contains(&drawn), "{drawn} subjects were drawn");
    assert_eq!(count(&film, "picture.compose"), 2, "one picture a shot");
    // A plain colour would have one.
    let poster = film.out().with_extension("png");
    let picture = image_colours(&poster);
    assert!(picture > 200, "{picture} colours");

    let again = make(&film, SCRIPT).json();
    assert_eq!(again["made"], 0, "{again}");

    // Another place: its picture is laid anew, and the fox stays as it was.
    let changed = SCRIPT.replace("stands in the snow at night", "stands on a beach at sunset");
    assert!(make(&film, &changed).status.success());
    assert_eq!(count(&film, "image.draw"), drawn);
    assert_eq!(count(&film, "picture.compose"), 3);
}

fn image_colours(path: &Path) -> usize {
    let options = StillOptions::default();
    let picture = flow_media::still::load_still(path, &options).unwrap();
    let Pixels::Rgba8(pixels) = picture.pixels else {
        panic!("a poster of 8 bits")
    };
    let colours: BTreeSet<&[u8]> = pixels.chunks(4).collect();
    colours.len()
}

/// A place alone: nothing of it needs the model.
const PLACE: &str = "---\nlongtake: 1\ntitle: Rain\nsize: 320x180\nfps: 12\n---\n\n\
    ## Scene wood: A forest\n\n### Shot rain\n\nRain falls.\n\n- length: 1 s\n";

fn asked(film: &SmallFilm, args: &[&str]) -> Ran {
    let mut command = film.program(PROGRAM);
    command.arg("--json").args(args);
    ran(&mut command).unwrap()
}

/// Content of a picture of the film, as its own file tells it.
fn picture_in(path: &Path, name: &str) -> String {
    let text = flow_media::manifest::read_manifest(path).unwrap().unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let content = &manifest["files"][format!("picture/{name}")]["content"];
    content.as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_was_drawn_is_kept_with_the_film_and_a_drawn_take_is_used_as_it_is() {
    let film = SmallFilm::new().unwrap();
    let script = film.folder().join("rain.md");
    std::fs::write(&script, PLACE).unwrap();
    let project = film.out().with_extension("longtake");
    let (out, project) = (film.out(), project.display().to_string());
    let first = asked(
        &film,
        &[
            "film",
            "--mute",
            "--script",
            &script.display().to_string(),
            "--project",
            &project,
            "--out",
            &out.display().to_string(),
        ],
    );
    assert!(first.status.success(), "{first:?}");
    let drawn = picture_in(&out, "rain (drawn).png");
    assert!(!drawn.is_empty());

    // An emptied cache takes nothing away: neither from the film's own file nor from its project.
    std::fs::remove_dir_all(film.cache()).unwrap();
    let again = asked(&film, &["rebuild", &out.display().to_string()]).json();
    assert_eq!(again["same"], true, "{again}");
    assert_eq!(
        count(&film, "picture.compose"),
        0,
        "nothing was drawn again"
    );
    std::fs::remove_dir_all(film.cache()).unwrap();
    let remade = asked(&film, &["film", "--mute", "--project", &project]);
    assert!(remade.status.success(), "{remade:?}");
    assert_eq!(picture_in(&out, "rain (drawn).png"), drawn);
    assert_eq!(
        count(&film, "picture.compose"),
        0,
        "nothing was drawn again"
    );

    // A take that is drawn for a shot without a picture is what the film then shows, to the byte.
    let takes = asked(
        &film,
        &[
            "project", "draw", &project, "--shot", "rain", "--count", "2",
        ],
    )
    .json();
    let chosen = takes["takes"][0]["take"].as_str().unwrap().to_owned();
    assert_ne!(takes["takes"][1]["take"], chosen);
    assert!(
        asked(&film, &["film", "--mute", "--project", &project])
            .status
            .success()
    );
    assert_eq!(picture_in(&out, "rain drawn.png"), chosen);
    let none = asked(&film, &["project", "draw", &project, "--missing"]);
    assert!(!none.status.success(), "every shot has a picture: {none:?}");
}
