//! The linter finds what it is for, with the line and a way to mend it.

use flow_story::{Assets, Warning, lint, parse_markdown};
use flow_timeline::FilmFormat;

fn warnings(text: &str) -> Vec<Warning> {
    let parsed = parse_markdown(text).unwrap();
    let names = ["harbour.jpg", "bed"].map(str::to_owned);
    let assets = Assets {
        names: Some(names.into()),
        ..Assets::default()
    };
    lint(&parsed.script, &parsed.lines, &FilmFormat::DEFAULT, &assets)
}

#[test]
fn every_rule_fires_with_its_line() {
    let text = "---\nlongtake: 1\ntitle: T\nlength: 20 s\n---\n\
        # Cast\n- MARA\n- TOM\n# Places\n- quay\n# Music\n- bed\n\
        ## Scene a\n### Shot x\n- length: 2 s\n- picture: harbor.jpg\n\
        - title: A very long title for so short a time {for: 1 s}\n\
        - move: roll -5 -> 5 at 50% 50% zoom 1.01\n\
        > MAAR: One two three four five six seven eight nine ten eleven twelve.\n\
        ### Shot y\n- length: 8 frames\n";
    let found = warnings(text);
    let rules: Vec<(&str, Option<u32>)> = found
        .iter()
        .map(|warning| (warning.rule, warning.line))
        .collect();
    assert_eq!(
        rules,
        [
            ("film-length", Some(4)),
            ("unknown-speaker", Some(19)),
            ("unused-cast", Some(7)),
            ("unused-cast", Some(8)),
            ("unused-place", Some(10)),
            ("missing-file", Some(16)),
            ("speech-rate", Some(19)),
            ("title-too-short", Some(17)),
            ("roll-corners", Some(18)),
            ("missing-picture", Some(20)),
            ("short-shot", Some(21)),
            ("subtitle-too-fast", Some(19)),
        ],
        "{found:#?}"
    );
    assert_eq!(found[1].fix, "write MARA, or add MAAR to the cast");
    assert_eq!(found[5].fix, "did you mean \"harbour.jpg\"?");
    assert!(
        found[0]
            .to_string()
            .starts_with("line 4: the film is 56 frames (2.33 s), 480")
    );
}

#[test]
fn a_sound_script_has_no_warnings() {
    let text = "---\nlongtake: 1\ntitle: T\nlength: 5 s\n---\n# Cast\n- MARA\n# Music\n- bed\n\
        ## Scene a\n### Shot x\n- length: 5 s\n- picture: harbour.jpg\n- title: The Glass\n\
        > MARA (V.O.): The glass is falling.\n";
    assert_eq!(warnings(text), []);
}
