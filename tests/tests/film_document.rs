//! The document that a film compiles to is pinned: a change of it changes keys.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::path::Path;

use engine_base::ContentHash;
use flow_nodes::{FilmFile, FilmFiles, FilmOptions, Fonts, SpeechLines, film_document};
use flow_story::Assets;
use flow_timeline::FilmFormat;

fn compiled() -> String {
    let script = flow_story::parse_markdown(longtake_tests::film::SCRIPT)
        .unwrap()
        .script;
    let plan = flow_story::plan_film(
        &script,
        &script.format(FilmFormat::DEFAULT),
        &Assets::default(),
    )
    .unwrap();
    let pictures = plan
        .segments
        .iter()
        .flat_map(|planned| planned.sources.iter().flatten());
    let sounds = plan.sounds.iter().flat_map(|planned| &planned.sources);
    let files: FilmFiles = pictures
        .chain(sounds)
        .map(|source| {
            let content = ContentHash::of(source.name.as_bytes());
            (
                source.clone(),
                FilmFile {
                    content,
                    media_type: "test/file".into(),
                    enlarge: None,
                },
            )
        })
        .collect();
    let film = film_document(
        &plan,
        &files,
        &SpeechLines::new(),
        &FilmOptions::default(),
        &Fonts::bundled(),
    )
    .unwrap();
    let registry = flow_nodes::registry(&std::sync::Arc::new(Fonts::bundled())).unwrap();
    let problems = flow_graph::validate(&film.document, &registry);
    assert!(problems.is_empty(), "{problems:#?}");
    film.document.to_json().unwrap()
}

fn golden() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/film_document.json")
}

#[test]
fn a_film_compiles_to_the_pinned_document() {
    let expected = std::fs::read_to_string(golden()).unwrap();
    assert_eq!(
        compiled(),
        expected,
        "the compiled film changed: raise the versions of the nodes whose meaning changed, then \
         remake the file with: cargo test -p longtake-tests --test film_document -- --ignored"
    );
}

#[test]
#[ignore = "rewrites the pinned document"]
fn remake() {
    std::fs::write(golden(), compiled()).unwrap();
}

#[test]
fn every_node_type_describes_itself_without_fault() {
    let registry = flow_nodes::registry(&std::sync::Arc::new(Fonts::bundled())).unwrap();
    for node in registry.iter() {
        let spec = node.spec();
        let faults = spec.faults();
        assert!(faults.is_empty(), "{}: {faults:?}", spec.type_name);
    }
}
