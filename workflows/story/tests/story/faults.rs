//! What is wrong with a script is said with line, field, what stands there and what may.

use std::time::{Duration, Instant};

use flow_story::{FAULTS_MAX, Fault, parse, parse_json, parse_markdown};

fn markdown(body: &str) -> String {
    format!("---\nlongtake: 1\ntitle: T\n---\n\n## Scene a: A\n\n{body}")
}

fn faults(body: &str) -> Vec<Fault> {
    parse_markdown(&markdown(body)).unwrap_err()
}

#[test]
fn an_unknown_field_names_its_line_and_the_nearest() {
    let found = faults("### Shot x\n\n- length: 5 s\n- pictur: a.jpg\n");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].line, found[0].column), (Some(11), Some(3)));
    let said = found[0].to_string();
    assert!(
        said.starts_with("line 11, column 3: shot x: field 'pictur': unknown field"),
        "{said}"
    );
    assert!(said.ends_with("did you mean 'picture'?"), "{said}");
    let found = faults("### Shot x\n\n- length: 5 s\n- titel: A\n- lowr third: B\n");
    let near: Vec<_> = found
        .iter()
        .map(|fault| fault.suggestion.as_deref().unwrap())
        .collect();
    assert_eq!(near, ["title", "lower third"]);
}

#[test]
fn all_faults_are_reported_at_once_in_file_order() {
    let found = faults(
        "### Shot x\n\n- length: 0 s\n- move: psuh 1 -> 2\n- transition: cut\n\n\
         ### Shot x\n\n- length: five\n- title: T {at: 1 s; fro: 2 s}\n- continuity: continue y\n\n\
         ### Shto z\n",
    );
    let lines: Vec<_> = found.iter().map(|fault| fault.line.unwrap()).collect();
    assert_eq!(lines, [10, 11, 14, 16, 17, 18, 20], "{found:#?}");
    assert!(found[0].to_string().contains("it has no length"));
    assert_eq!(found[1].suggestion.as_deref(), Some("push"));
    assert!(
        found[2].to_string().contains("twice, first in line 8"),
        "{}",
        found[2]
    );
    assert_eq!(
        (found[4].column, found[4].suggestion.as_deref()),
        (Some(22), Some("for"))
    );
    assert_eq!(found[6].suggestion.as_deref(), Some("Shot"));
}

#[test]
fn circles_are_spelled_out() {
    let found = faults(
        "### Shot x\n- length: 1 s\n- continuity: continue z\n\
         ### Shot y\n- length: 1 s\n- continuity: continue x\n\
         ### Shot z\n- length: 1 s\n- continuity: re-anchor y\n",
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].got, "x -> z -> y -> x");
    assert_eq!(found[0].line, Some(10));
}

#[test]
fn references_to_nothing_name_the_nearest() {
    let text = "---\nlongtake: 1\ntitle: T\n---\n# Music\n- bed {from: boat; to: nowhere}\n\
                # Places\n- harbour\n## Scene a\n- place: harbor\n### Shot boats\n- length: 1 s\n";
    let found = parse_markdown(text).unwrap_err();
    let said: Vec<_> = found
        .iter()
        .map(|fault| (fault.line.unwrap(), fault.suggestion.as_deref()))
        .collect();
    assert_eq!(said, [(6, Some("boats")), (6, None), (10, Some("harbour"))]);
}

#[test]
fn json_faults_have_lines_too() {
    let text = "{\n \"longtake\": 2,\n \"title\": 5,\n \"scenes\": [\n  {\"id\": \"a\", \"shots\": \
                [{\"id\": \"x\",\n \"lenght\": 5}]}]\n}";
    let found = parse_json(text).unwrap_err();
    let lines: Vec<_> = found.iter().filter_map(|fault| fault.line).collect();
    assert_eq!(lines, [2, 3, 3, 5, 6], "{found:#?}");
    assert_eq!(found[0].expected, "a version from 1 to 1");
    assert_eq!(found.last().unwrap().suggestion.as_deref(), Some("length"));
    let found = parse_json("{\"title\": }").unwrap_err();
    assert_eq!((found[0].line, found[0].column), (Some(1), Some(11)));
}

#[test]
fn files_that_are_no_scripts_are_refused() {
    for (bytes, expected) in [
        (b"".as_slice(), "the file is empty"),
        (b"\xff\xfe-\0", "UTF-16"),
        (b"---\ntitle: \xe9\n", "byte 0xe9"),
        (b"hello", "the settings are missing"),
        (b"{}", "'longtake': the field is missing"),
        (b"---\nlongtake: 1\n# Cast\n", "the settings do not end"),
        (b"---\nlongtake: 1\ntitle: a\0b\n---\n", "control character"),
    ] {
        let found = parse(bytes, "film").unwrap_err();
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|text| text.contains(expected)), "{said:?}");
    }
    let found = parse(b"---\ntitle: \xe9\n", "film.md").unwrap_err();
    assert_eq!((found[0].line, found[0].column), (Some(2), Some(8)));
}

#[test]
fn file_names_stay_inside_their_folder() {
    for name in [
        "../a.jpg",
        "/etc/a.jpg",
        "C:/a.jpg",
        "a/../../b.jpg",
        "..\\\\a.jpg",
    ] {
        let found = faults(&format!("### Shot x\n- length: 1 s\n- picture: {name}\n"));
        assert!(
            found[0].to_string().contains("inside the folder"),
            "{name}: {}",
            found[0]
        );
    }
}

#[test]
fn two_of_what_may_be_once_and_over_long_texts_are_refused() {
    let long = "x".repeat(2001);
    for (body, expected) in [
        ("- length: 2 s\n", "given twice"),
        ("- picture: a.jpg\n- colour: black\n", "shows two things"),
        (
            "- transition: cross-fade 1 s\n",
            "nothing is before the first shot",
        ),
        ("- ambience: sea {at: 1 s}\n", "no 'at'"),
        (
            &format!("> {long}\n"),
            "got \"2001 characters\", expected at most 2000",
        ),
        ("> MARA:\n", "there are no words"),
        ("<!-- x -->\n", "comments are not kept"),
        ("- fit: covr\n", "did you mean 'cover'"),
        ("- effect: a.wav {gain: 100 dB}\n", "-96 to 24"),
    ] {
        let found = faults(&format!("### Shot x\n- length: 1 s\n{body}"));
        assert!(
            found[0].to_string().contains(expected),
            "{expected}: {}",
            found[0]
        );
    }
}

/// Refused or read, the answer to a large file comes within a second.
#[test]
fn large_files_are_quick() {
    let shots = |count: usize| {
        let shot =
            |i| format!("### Shot s{i}\n- length: 5 s\n- picture: a.jpg\n\n> MARA: Words.\n\n");
        markdown(&(0..count).map(shot).collect::<String>())
    };
    let chain = |count: usize| {
        let shot = |i: usize| {
            format!(
                "### Shot s{i}\n- length: 5 s\n- continuity: continue s{}\n",
                (i + 1) % count
            )
        };
        markdown(&(0..count).map(shot).collect::<String>())
    };
    let fill = |piece: &str| piece.repeat(3_900_000 / piece.len());
    let one_shot = |piece: &str| markdown(&format!("### Shot x\n- length: 5 s\n{}", fill(piece)));
    let mut slow = Vec::new();
    for (what, text, refused) in [
        ("ten thousand shots", shots(10_000), None),
        (
            "too many shots",
            shots(50_000),
            Some("got \"50000 shots\", expected at most 10000"),
        ),
        ("a circle of ten thousand", chain(10_000), Some("s0 -> s1")),
        (
            "5 MB",
            " ".repeat(5_000_000),
            Some("got \"5000000 bytes\", expected at most 4000000"),
        ),
        (
            "unknown fields",
            one_shot("- a: b\n"),
            Some("unknown field"),
        ),
        (
            "titles",
            one_shot("- title: b\n"),
            Some("more than 10000 lines"),
        ),
        (
            "titles after unknown fields",
            one_shot("- a: b\n- title: c\n"),
            Some("unknown field"),
        ),
        (
            "one quote",
            one_shot("> X (a) (b) (c): d\n"),
            Some("at most 200"),
        ),
        (
            "brackets",
            one_shot("> ()()()()()()()()()()()()()()()()()()()()X: d\n"),
            Some(""),
        ),
        ("one long line", markdown(&fill("()")), Some("too long")),
        (
            "one long field",
            one_shot("{a: b;").replace('\n', "\n- title: "),
            Some(""),
        ),
        (
            "headings",
            markdown(&fill("# x\n")),
            Some("unknown section"),
        ),
        (
            "names",
            format!("---\nlongtake: 1\n{}", fill("x: y\n")),
            Some("unknown field"),
        ),
        (
            "json names",
            format!("{{{}\"a\":1}}", fill("\"a\":1,")),
            Some("at most"),
        ),
        (
            "json shots",
            format!(
                "{{\"scenes\":[{}{{}}]}}",
                fill("{\"id\":\"a\",\"shots\":0},")
            ),
            Some(""),
        ),
        ("json open brackets", fill("["), Some("levels")),
    ] {
        let start = Instant::now();
        let read = parse(
            text.as_bytes(),
            if what.contains("json") {
                "x.json"
            } else {
                "x.md"
            },
        );
        let took = start.elapsed();
        match (refused, read) {
            (None, read) => assert!(read.is_ok(), "{what}: {}", read.unwrap_err()[0]),
            (Some(_), Ok(_)) => panic!("{what} was read"),
            (Some(expected), Err(found)) => {
                let said: Vec<String> = found.iter().map(ToString::to_string).collect();
                assert!(
                    said.iter().any(|text| text.contains(expected)),
                    "{what}: {said:#?}"
                );
                assert!(found.len() <= FAULTS_MAX + 1);
            }
        }
        println!("{what}: {took:?}");
        if took > Duration::from_secs(1) {
            slow.push((what, took));
        }
    }
    assert!(slow.is_empty(), "took longer than a second: {slow:?}");
}
