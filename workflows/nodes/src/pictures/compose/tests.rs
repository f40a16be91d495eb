#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use engine_base::{CancelToken, ContentHash, NoProgress};
use flow_graph::{Artifacts, BlobRef, PortOutput, TempBlob, Value};
use serde_json::json;

use super::*;

/// A folder of files by their hashes.
struct Folder {
    dir: tempfile::TempDir,
    count: AtomicU32,
}

impl Folder {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            count: AtomicU32::new(0),
        }
    }

    /// A square of one colour with a transparent border.
    fn square(&self, rgb: [u8; 3], side_px: u32) -> Value {
        let edge = side_px / 4;
        let mut samples = Vec::new();
        for y in 0..side_px {
            for x in 0..side_px {
                let inside =
                    (edge..side_px - edge).contains(&x) && (edge..side_px - edge).contains(&y);
                samples.extend([rgb[0], rgb[1], rgb[2], if inside { 255 } else { 0 }]);
            }
        }
        let file = self.temp("png").unwrap();
        let picture = SavePicture {
            width_px: side_px,
            height_px: side_px,
            channels: 4,
            samples: SaveSamples::U8(&samples),
        };
        save_still(&picture, file.path()).unwrap();
        Value::Blob(self.adopt(file, "image/png").unwrap())
    }
}

impl Artifacts for Folder {
    fn temp(&self, extension: &str) -> Result<TempBlob, NodeError> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let name = format!("{number}.{extension}");
        Ok(TempBlob::at(self.dir.path().join(name)))
    }

    fn adopt(&self, file: TempBlob, media_type: &str) -> Result<BlobRef, NodeError> {
        let path = file.into_adopted();
        let bytes = std::fs::read(&path).unwrap();
        let hash = ContentHash::of(&bytes);
        std::fs::rename(&path, self.dir.path().join(hash.to_hex())).unwrap();
        Ok(BlobRef {
            hash,
            bytes: bytes.len() as u64,
            media_type: media_type.to_owned(),
        })
    }

    fn path(&self, hash: &ContentHash) -> Result<PathBuf, NodeError> {
        let path = self.dir.path().join(hash.to_hex());
        let missing = || NodeError::new(Code::NotFound, "no such file");
        path.is_file().then_some(path).ok_or_else(missing)
    }
}

fn spec(ground: &str, subjects: &serde_json::Value) -> serde_json::Value {
    json!({
        "ground": ground, "light": "day", "weather": "clear", "lighthouse": false, "papers": 3,
        "seed": 7, "subjects": subjects,
    })
}

fn subject(centre: f64, base: f64, size: f64) -> serde_json::Value {
    json!({ "prompt": "a square", "seed": 1, "centre": centre, "base": base, "size": size, "flipped": false })
}

fn composed(
    folder: &Folder,
    spec: &serde_json::Value,
    size: (i64, i64),
    subjects: Vec<Value>,
) -> Result<BlobRef, NodeError> {
    let spec: Datum = serde_json::from_value(spec.clone()).unwrap();
    let inputs = [
        ("spec", vec![Value::data(spec)]),
        ("width_px", vec![Value::data(Datum::Int(size.0))]),
        ("height_px", vec![Value::data(Datum::Int(size.1))]),
        ("subjects", subjects),
    ];
    let inputs = inputs
        .map(|(name, values)| (name.to_owned(), values))
        .into();
    let context = NodeContext {
        artifacts: folder,
        cancel: &CancelToken::new(),
        progress: &NoProgress,
        threads: 1,
    };
    match Compose::new().run(&context, &Call { inputs })? {
        Outcome::Values(values) => match &values[0] {
            PortOutput::One(value) => Ok(value.as_blob().unwrap().clone()),
            PortOutput::Many(_) => panic!("a list"),
        },
        Outcome::Expand(_) => panic!("an expansion"),
    }
}

fn pixels(folder: &Folder, blob: &BlobRef) -> (u32, u32, Vec<u8>) {
    let path = folder.path(&blob.hash).unwrap();
    let loaded = load_still_noted(&path, &StillOptions::default()).unwrap();
    let size = (loaded.picture.width_px, loaded.picture.height_px);
    (size.0, size.1, bytes_of(loaded.picture))
}

const GROUNDS: [&str; 12] = [
    "sea",
    "beach",
    "forest",
    "meadow",
    "village",
    "mountains",
    "desert",
    "city",
    "room",
    "space",
    "underwater",
    "sky",
];

#[test]
fn every_ground_light_and_weather_is_painted_whole_and_alike_each_time() {
    let folder = Folder::new();
    let mut all = std::collections::BTreeSet::new();
    for ground in GROUNDS {
        let mut asked = spec(ground, &json!([]));
        let first = composed(&folder, &asked, (96, 54), vec![]).unwrap();
        let again = composed(&folder, &asked, (96, 54), vec![]).unwrap();
        assert_eq!(first.hash, again.hash, "{ground}");
        let (width_px, height_px, rgba) = pixels(&folder, &first);
        assert_eq!((width_px, height_px), (96, 54));
        assert!(
            rgba.chunks_exact(4).all(|pixel| pixel[3] == 255),
            "{ground} has holes"
        );
        assert!(all.insert(first.hash), "{ground} looks like another ground");
        for (field, values) in [
            ("light", &["dawn", "dusk", "night"][..]),
            ("weather", &["rain", "snow", "fog", "storm"]),
        ] {
            for value in values {
                asked[field] = json!(value);
                let other = composed(&folder, &asked, (96, 54), vec![]).unwrap();
                assert_ne!(other.hash, first.hash, "{ground} {value}");
            }
        }
    }
}

#[test]
fn a_subject_stands_where_the_spec_says_and_only_what_is_opaque_shows() {
    let folder = Folder::new();
    let magenta = folder.square([255, 0, 255], 64);
    let bare = spec("desert", &json!([]));
    let bare = composed(&folder, &bare, (200, 100), vec![]).unwrap();
    let (_, _, without) = pixels(&folder, &bare);
    let placed = |centre: f64| {
        let asked = spec("desert", &json!([subject(centre, 0.9, 0.4)]));
        let blob = composed(&folder, &asked, (200, 100), vec![magenta.clone()]).unwrap();
        let (_, _, with) = pixels(&folder, &blob);
        // The columns in which the square itself is seen, by its colour.
        let columns: Vec<usize> = (0..200)
            .filter(|x| {
                (0..100).any(|y| {
                    let at = (y * 200 + x) * 4;
                    with[at] > 180 && with[at + 1] < 90 && with[at + 2] > 180
                })
            })
            .collect();
        let untouched = (0..100).all(|y| {
            let at = (y * 200 + if centre < 0.5 { 199 } else { 0 }) * 4;
            with[at..at + 4] == without[at..at + 4]
        });
        assert!(untouched, "far from it the place is as it was");
        assert!(!columns.is_empty());
        (columns[0] + columns[columns.len() - 1]) as f64 / 2.0 / 200.0
    };
    for centre in [0.3, 0.7] {
        let got = placed(centre);
        assert!((got - centre).abs() < 0.06, "expected {centre}, got {got}");
    }
}

#[test]
fn sizes_and_places_out_of_bounds_are_held_and_wrong_specs_refused() {
    let folder = Folder::new();
    let square = folder.square([10, 200, 10], 32);
    for (centre, base, size) in [(-50.0, 40.0, 900.0), (9.0, -9.0, 0.0), (0.5, 2.0, -4.0)] {
        let asked = spec("sea", &json!([subject(centre, base, size)]));
        let blob = composed(&folder, &asked, (33, 17), vec![square.clone()]).unwrap();
        assert_eq!(pixels(&folder, &blob).0, 33);
    }
    for (width, height) in [(16, 16), (17, 301)] {
        let blob = composed(&folder, &spec("city", &json!([])), (width, height), vec![]).unwrap();
        let (width_px, height_px, _) = pixels(&folder, &blob);
        assert_eq!((i64::from(width_px), i64::from(height_px)), (width, height));
    }
    let refused = |asked: &serde_json::Value, size: (i64, i64), subjects: Vec<Value>| {
        let error = composed(&folder, asked, size, subjects).unwrap_err();
        assert_eq!(error.code, Code::BadInput, "{error}");
        error.to_string()
    };
    let plain = spec("sea", &json!([]));
    for size in [(15, 100), (100, 8193), (-1, 100), (i64::MAX, 100)] {
        assert!(refused(&plain, size, vec![]).contains("_px"));
    }
    let text = refused(&plain, (64, 64), vec![square.clone()]);
    assert!(
        text.contains("expected 0 pictures") && text.contains("got 1"),
        "{text}"
    );
    let one = spec("sea", &json!([subject(0.5, 0.9, 0.3)]));
    assert!(refused(&one, (64, 64), vec![]).contains("expected 1 pictures"));
    for wrong in [
        json!({}),
        json!("sea"),
        json!(null),
        spec("moon", &json!([])),
        spec("sea", &json!([{ "prompt": "x" }])),
        spec("sea", &json!("none")),
    ] {
        refused(&wrong, (64, 64), vec![]);
    }
}

#[test]
fn what_is_not_wanted_is_another_drawing_and_shared_subjects_are_drawn_once() {
    let of = |negative: &str| {
        let mut asked = spec("sea", &json!([subject(0.4, 0.9, 0.3)]));
        asked["negative"] = json!(negative);
        serde_json::from_value::<PictureSpec>(asked).unwrap()
    };
    let specs = BTreeMap::from([
        ("a".to_owned(), of("")),
        ("b".to_owned(), of("")),
        ("c".to_owned(), of("blur")),
    ]);
    let (document, nodes) = picture_document(&specs, (64, 36)).unwrap();
    let draws = |node: &&DocNode| node.type_name == "image.draw";
    assert_eq!(document.nodes.values().filter(draws).count(), 2);
    assert_eq!(nodes["b"], "picture:b");
    let negatives = document.nodes.values().filter(draws);
    let negatives: Vec<_> = negatives
        .filter_map(|node| node.widgets.get("negative"))
        .collect();
    assert_eq!(negatives, [&Datum::from("blur")]);
}
