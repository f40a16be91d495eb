//! The sample script that ships with the product.

use std::collections::BTreeSet;

use flow_story::{Assets, MoveKind, lint, parse, parse_json, plan_film, to_json, to_markdown};
use flow_timeline::{Blend, FilmFormat, SoundRole};

const SAMPLE: &[u8] = include_bytes!("../../../../assets/samples/the-door-left-open.md");

fn assets() -> Assets {
    let pictures = [
        "french-alpine-landscape",
        "acanthus-mollis",
        "airplane-from-above",
        "allium-oreophilum",
        "black-canyon",
        "dust-bowl-home",
        "locomotion-house-cat",
        "march-pastoral",
        "nagasaki-boats",
    ];
    let sounds = [
        "bed-dawn",
        "bed-tide",
        "bed-hearth",
        "ambience-sea",
        "ambience-forest",
        "ambience-room",
    ];
    let names: BTreeSet<String> = pictures
        .iter()
        .map(|name| format!("{name}.jpg"))
        .chain(sounds.iter().map(|name| (*name).to_owned()))
        .collect();
    Assets {
        names: Some(names),
        ..Assets::default()
    }
}

#[test]
fn the_sample_is_45_seconds_and_uses_every_picture_move_and_sound() {
    let parsed = parse(SAMPLE, "sample.md").unwrap();
    let script = &parsed.script;
    let format = script.format(FilmFormat::DEFAULT);
    let plan = plan_film(script, &format, &assets()).unwrap();
    plan.check().unwrap();
    assert_eq!((plan.frames, plan.samples), (1080, 2_160_000));
    assert_eq!((format.width_px, format.height_px), (1280, 720));
    let used: BTreeSet<String> = plan
        .segments
        .iter()
        .flat_map(|segment| segment.sources.iter().flatten())
        .chain(plan.sounds.iter().flat_map(|mix| &mix.sources))
        .map(|source| source.name.clone())
        .collect();
    assert_eq!(Some(used), assets().names);
    let moves: BTreeSet<u8> = script
        .shots()
        .map(|shot| match shot.camera.kind {
            MoveKind::Still(_) => 0,
            MoveKind::Push { .. } => 1,
            MoveKind::Pull { .. } => 2,
            MoveKind::Pan { .. } => 3,
            MoveKind::Tilt { .. } => 4,
            MoveKind::Roll { .. } => 5,
            MoveKind::View { .. } => 6,
        })
        .collect();
    assert_eq!(moves.len(), 7);
    for blend in [Blend::CrossFade, Blend::ThroughBlack] {
        assert!(
            plan.segments
                .iter()
                .any(|segment| segment.segment.blend == Some(blend))
        );
    }
    assert_eq!((plan.cues.len(), plan.chapters.len()), (10, 4));
    assert!(plan.sounds.iter().all(|mix| {
        mix.mix
            .clips
            .iter()
            .any(|clip| clip.role == SoundRole::Music)
    }));
}

#[test]
fn the_sample_has_no_warnings_and_its_subtitles_can_be_read() {
    let parsed = parse(SAMPLE, "sample.md").unwrap();
    let format = parsed.script.format(FilmFormat::DEFAULT);
    let warnings = lint(&parsed.script, &parsed.lines, &format, &assets());
    assert!(warnings.is_empty(), "{warnings:#?}");
    let plan = plan_film(&parsed.script, &format, &assets()).unwrap();
    for cue in &plan.cues {
        assert!(cue.frames >= 48, "{cue:?} is shown for less than 2 s");
    }
}

#[test]
fn the_sample_comes_back_from_both_forms() {
    let script = parse(SAMPLE, "sample.md").unwrap().script;
    assert_eq!(parse_json(&to_json(&script)).unwrap().script, script);
    // The file stands as our own writer writes it, so that a save changes nothing by itself.
    assert_eq!(to_markdown(&script), String::from_utf8_lossy(SAMPLE));
}

#[test]
fn views_stay_inside_the_pictures() {
    let sizes = [
        ("french-alpine-landscape.jpg", 1024.0, 484.0),
        ("acanthus-mollis.jpg", 790.0, 1024.0),
        ("airplane-from-above.jpg", 1024.0, 717.0),
        ("allium-oreophilum.jpg", 807.0, 1024.0),
        ("black-canyon.jpg", 1024.0, 750.0),
        ("dust-bowl-home.jpg", 1024.0, 788.0),
        ("locomotion-house-cat.jpg", 1024.0, 510.0),
        ("march-pastoral.jpg", 1024.0, 498.0),
        ("nagasaki-boats.jpg", 1024.0, 819.0),
    ];
    let script = parse(SAMPLE, "sample.md").unwrap().script;
    for shot in script.shots() {
        let (_, width, height) = sizes
            .iter()
            .find(|(name, ..)| *name == shot.picture)
            .unwrap();
        let frame = 1280.0 / 720.0;
        let (across, down): (f64, f64) = if width / height > frame {
            (frame * height / width, 1.0)
        } else {
            (1.0, width / (frame * height))
        };
        let camera = shot.camera.camera();
        for at in 0..100 {
            let view = camera.at(at, 100);
            let turn = view.roll.abs().to_radians();
            let (half_x, half_y) = (across / view.zoom / 2.0, down / view.zoom / 2.0);
            let reach_y = half_y * turn.cos() + half_y * frame * turn.sin();
            assert!(
                (half_x..=1.0 - half_x).contains(&view.x),
                "{}: {view:?}",
                shot.id
            );
            assert!(
                (reach_y - 1e-9..=1.0 - reach_y + 1e-9).contains(&view.y),
                "{}: {view:?}",
                shot.id
            );
        }
    }
}
