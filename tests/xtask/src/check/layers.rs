//! Which crate may name which, directly.

use super::{Tree, Violation};

/// The layer table: a crate, its layer and the crates of ours that it may name directly, all of
/// lower layers.
struct Layer {
    name: &'static str,
    level: u8,
    may_use: &'static [&'static str],
}

/// `engine-base` may be named by all, and an engine crate may name any engine crate of a lower
/// layer; those edges are not listed.
const LAYERS: &[Layer] = &[
    Layer {
        name: "engine-base",
        level: 0,
        may_use: &[],
    },
    Layer {
        name: "engine-tensor",
        level: 1,
        may_use: &[],
    },
    Layer {
        name: "engine-weights",
        level: 2,
        may_use: &[],
    },
    Layer {
        name: "engine-comm",
        level: 2,
        may_use: &[],
    },
    Layer {
        name: "engine-hub",
        level: 2,
        may_use: &[],
    },
    Layer {
        name: "engine-onnx",
        level: 2,
        may_use: &[],
    },
    Layer {
        name: "engine-cuda",
        level: 3,
        may_use: &[],
    },
    Layer {
        name: "engine-wgpu",
        level: 3,
        may_use: &[],
    },
    Layer {
        name: "engine-nn",
        level: 3,
        may_use: &[],
    },
    Layer {
        name: "engine-models",
        level: 4,
        may_use: &[],
    },
    Layer {
        name: "engine-pipelines",
        level: 5,
        may_use: &[],
    },
    // Measures; nothing is built on it.
    Layer {
        name: "engine-bench",
        level: 5,
        may_use: &[],
    },
    Layer {
        name: "engine-serve",
        level: 6,
        may_use: &[],
    },
    Layer {
        name: "flow-graph",
        level: 1,
        may_use: &[],
    },
    Layer {
        name: "flow-timeline",
        level: 1,
        may_use: &[],
    },
    Layer {
        name: "flow-media",
        level: 2,
        may_use: &["flow-timeline"],
    },
    Layer {
        name: "flow-store",
        level: 1,
        may_use: &[],
    },
    Layer {
        name: "flow-story",
        level: 2,
        may_use: &["flow-timeline"],
    },
    Layer {
        name: "flow-nodes",
        level: 6,
        may_use: &[
            "flow-graph",
            "flow-timeline",
            "flow-media",
            "flow-story",
            "engine-pipelines",
        ],
    },
    Layer {
        name: "flow-executor",
        level: 2,
        may_use: &["flow-graph", "flow-store"],
    },
    Layer {
        name: "flow-http",
        level: 2,
        may_use: &["flow-store"],
    },
    Layer {
        name: "flow-cluster",
        level: 3,
        may_use: &["flow-graph", "flow-executor", "flow-store", "flow-http"],
    },
    Layer {
        name: "flow-studio",
        level: 7,
        may_use: &[
            "flow-graph",
            "flow-timeline",
            "flow-media",
            "flow-store",
            "flow-story",
            "flow-nodes",
            "flow-executor",
            "flow-http",
            "flow-cluster",
            "engine-pipelines",
            "engine-hub",
        ],
    },
    Layer {
        name: "flow-cli",
        level: 8,
        may_use: &["flow-studio", "engine-serve"],
    },
    Layer {
        name: "longtake-desktop",
        level: 8,
        may_use: &["flow-studio"],
    },
    // Strikes the program from outside and reads its stores.
    Layer {
        name: "longtake-faults",
        level: 9,
        may_use: &["flow-store"],
    },
    // Setup fetches the default models.
    Layer {
        name: "xtask",
        level: 9,
        may_use: &["engine-hub"],
    },
];

/// May name any crate, and none may name it.
const TESTS: &str = "longtake-tests";

/// Outside crates that belong in one place: name and the crates of ours that may name it.
const PLACES: &[(&str, &[&str])] = &[
    ("ffmpeg-next", &["flow-media"]),
    ("ffmpeg-sys-next", &["flow-media"]),
    ("sqlx", &["flow-store"]),
    ("rusqlite", &["flow-store"]),
    ("libsqlite3-sys", &["flow-store"]),
    ("tauri", &["longtake-desktop"]),
    ("cudarc", &["engine-cuda"]),
    ("wgpu", &["engine-wgpu"]),
    ("ort", &["engine-onnx"]),
    ("async-nats", &["flow-cluster"]),
    ("rcgen", &["flow-cluster"]),
    ("rustls", &["flow-cluster"]),
    ("axum", &["flow-http", "engine-serve", "flow-studio"]),
    ("rust-embed", &["flow-studio"]),
    ("ts-rs", &["flow-studio"]),
    ("tokenizers", &["engine-pipelines"]),
    ("minijinja", &["engine-pipelines"]),
    ("llguidance", &["engine-pipelines"]),
    ("cosmic-text", &["flow-media"]),
    ("clap", &["flow-cli", "longtake-faults", "xtask"]),
    ("indicatif", &["flow-cli"]),
    ("hound", &["flow-studio"]),
    ("realfft", &["engine-pipelines"]),
    ("zip", &["engine-hub"]),
    ("object_store", &["flow-cluster"]),
];

fn level(name: &str) -> Option<u8> {
    let found = LAYERS.iter().find(|layer| layer.name == name);
    found.map(|layer| layer.level)
}

fn allowed(user: &Layer, used: &str) -> bool {
    let both_engine = user.name.starts_with("engine-") && used.starts_with("engine-");
    used == "engine-base"
        || user.may_use.contains(&used)
        || (both_engine && level(used).is_some_and(|used| used < user.level))
}

/// Edges between our crates that the table does not have; dependencies of tests count too.
pub(super) fn ours(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in tree.packages.iter().filter(|package| package.name != TESTS) {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name) else {
            let text = format!("crate {:?} is not in the layer table", package.name);
            violations.push(Violation::new(manifest, text));
            continue;
        };
        for dependency in &package.dependencies {
            let used = dependency.name.as_str();
            let is_ours = used == TESTS || tree.packages.iter().any(|other| other.name == used);
            if is_ours && used != package.name && !allowed(layer, used) {
                let may = ["engine-base"].iter().chain(layer.may_use).copied();
                let text = format!(
                    "{} may not name {used} directly; it may name {}",
                    package.name,
                    may.collect::<Vec<_>>().join(", ")
                );
                violations.push(Violation::new(&manifest, text));
            }
        }
    }
    violations
}

/// Outside crates named where they don't belong. The tests' crate may name them all.
pub(super) fn outside(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in tree.packages.iter().filter(|package| package.name != TESTS) {
        for dependency in &package.dependencies {
            let place = PLACES.iter().find(|(name, _)| *name == dependency.name);
            if let Some((name, places)) = place
                && !places.contains(&package.name.as_str())
            {
                let dev = if dependency.dev {
                    " (in its tests)"
                } else {
                    ""
                };
                let text = format!(
                    "{} names {name}{dev}, which belongs only in {}",
                    package.name,
                    places.join(", ")
                );
                violations.push(Violation::new(
                    format!("{}/Cargo.toml", package.folder),
                    text,
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_outside_the_table_is_found() {
        let tree = Tree::default()
            .with("engine-base", "engine/base", &["serde"], &[])
            .with(
                "flow-store",
                "workflows/store",
                &["engine-base", "sqlx"],
                &[],
            )
            .with(
                "flow-graph",
                "workflows/graph",
                &["engine-base"],
                &["flow-store"],
            )
            .with(
                "flow-executor",
                "workflows/executor",
                &["flow-graph", "flow-store"],
                &[],
            );
        let violations = ours(&tree);
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert_eq!(violations[0].place, "workflows/graph/Cargo.toml");
        assert!(
            violations[0]
                .text
                .contains("flow-graph may not name flow-store")
        );
    }

    #[test]
    fn upward_and_level_edges_and_unknown_crates_are_found() {
        let tree = Tree::default()
            .with("engine-base", "engine/base", &["engine-nn"], &[])
            .with("engine-nn", "engine/nn", &["engine-base"], &[])
            .with("engine-models", "engine/models", &["engine-nn"], &[])
            .with("engine-cuda", "engine/cuda", &["engine-nn"], &[])
            .with("flow-extra", "workflows/extra", &[], &[])
            .with("longtake-tests", "tests", &["engine-nn", "flow-extra"], &[])
            .with("xtask", "tests/xtask", &["longtake-tests"], &[]);
        let texts: Vec<String> = ours(&tree).into_iter().map(|one| one.text).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts[0].contains("engine-base may not name engine-nn"));
        // Both are of layer 3.
        assert!(texts[1].contains("engine-cuda may not name engine-nn"));
        assert!(texts[2].contains("\"flow-extra\" is not in the layer table"));
        assert!(texts[3].contains("xtask may not name longtake-tests"));
    }

    #[test]
    fn outside_crates_keep_to_their_place() {
        let tree = Tree::default()
            .with("flow-store", "workflows/store", &["sqlx"], &[])
            .with("flow-media", "workflows/media", &["ffmpeg-next"], &["sqlx"])
            .with("longtake-tests", "tests", &[], &["ffmpeg-next"]);
        let violations = outside(&tree);
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert!(
            violations[0]
                .text
                .contains("flow-media names sqlx (in its tests)")
        );
    }

    #[test]
    fn the_table_names_only_itself_and_only_downwards() {
        for layer in LAYERS {
            for used in layer.may_use {
                let below = level(used).is_some_and(|used| used < layer.level);
                assert!(below, "{} -> {used}", layer.name);
            }
        }
        for (name, places) in PLACES {
            assert!(
                places.iter().all(|place| level(place).is_some()),
                "{name}: {places:?}"
            );
        }
    }
}
