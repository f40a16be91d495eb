//! How long a file may be.

use super::{Tree, Violation};

/// Files over this are kept out of git unless they are text.
const BINARY_LIMIT_BYTES: u64 = 1 << 20;

/// Files that ship with the program though they are larger, with what each may have.
const SHIPPED_BYTES: [(&str, u64); 1] = [("assets/models/sketch/sketch.safetensors", 16_000_000)];

fn binary_limit_bytes(path: &str) -> u64 {
    let shipped = SHIPPED_BYTES.iter().find(|(shipped, _)| *shipped == path);
    shipped.map_or(BINARY_LIMIT_BYTES, |(_, bytes)| *bytes)
}

/// The window stays thin: lines of all its Rust together.
const SHELL_LINES_MAX: usize = 2_000;
/// Folder of the window.
const SHELL: &str = "src-tauri/";

/// Kinds of source files, with the lines from which a file is noted and refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    kind: &'static str,
    noted_lines: usize,
    refused_lines: usize,
}

fn limit_of(path: &str) -> Option<Limit> {
    let (_, extension) = path.rsplit_once('.')?;
    let in_tests = path.contains("/tests/") || path.starts_with("tests/");
    let limit = |kind, noted_lines, refused_lines| Limit {
        kind,
        noted_lines,
        refused_lines,
    };
    match extension {
        "rs" if in_tests => Some(limit("test file", 800, 1500)),
        "rs" => Some(limit("Rust source", 600, 1000)),
        "cu" | "cuh" | "wgsl" => Some(limit("kernel source", 800, 1500)),
        "tsx" => Some(limit("UI component", 250, 400)),
        _ => None,
    }
}

fn measured(tree: &Tree) -> impl Iterator<Item = (&str, usize, Limit)> {
    tree.texts()
        .filter_map(|(path, text)| Some((path, text.lines().count(), limit_of(path)?)))
}

/// Source files that are too long, and a window that knows too much.
pub(super) fn sources(tree: &Tree) -> Vec<Violation> {
    let shell: usize = tree
        .texts()
        .filter(|(path, _)| path.starts_with(SHELL) && path.ends_with(".rs"))
        .map(|(_, text)| text.lines().count())
        .sum();
    let too_thick = (shell >= SHELL_LINES_MAX).then(|| {
        let text = format!("{shell} lines of Rust, expected fewer than {SHELL_LINES_MAX}");
        Violation::new(SHELL, text)
    });
    let too_long = measured(tree)
        .filter(|(_, lines, limit)| *lines > limit.refused_lines)
        .map(|(path, lines, limit)| {
            let text = format!(
                "{} of {lines} lines, expected at most {}",
                limit.kind, limit.refused_lines
            );
            Violation::new(path, text)
        });
    too_thick.into_iter().chain(too_long).collect()
}

/// Source files that are getting long; no violations.
pub(super) fn notes(tree: &Tree) -> Vec<String> {
    measured(tree)
        .filter(|(_, lines, limit)| (limit.noted_lines + 1..=limit.refused_lines).contains(lines))
        .map(|(path, lines, limit)| {
            format!(
                "{path}: {} of {lines} lines, aim for under {}",
                limit.kind, limit.noted_lines
            )
        })
        .collect()
}

/// Large files that are no text.
pub(super) fn binaries(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|(_, file)| file.text.is_none())
        .filter(|(path, file)| file.bytes > binary_limit_bytes(path))
        .map(|(path, file)| {
            let text = format!(
                "binary file of {} bytes, expected at most {} in git",
                file.bytes,
                binary_limit_bytes(path)
            );
            Violation::new(path, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    #[test]
    fn each_kind_has_its_limit() {
        let of = |lines: usize| "x\n".repeat(lines);
        let tree = Tree::of(&[
            ("engine/a/src/fits.rs", &of(600)),
            ("engine/a/src/noted.rs", &of(601)),
            ("engine/a/src/last.rs", &of(1000)),
            ("engine/a/src/over.rs", &of(1001)),
            ("engine/a/tests/fits.rs", &of(1500)),
            ("tests/tests/over.rs", &of(1501)),
            ("engine/cuda/kernels/over.cu", &of(1501)),
            ("ui/src/panels/Over.tsx", &of(401)),
            ("assets/list.txt", &of(5000)),
        ]);
        let mut places: Vec<String> = sources(&tree).into_iter().map(|one| one.place).collect();
        places.sort();
        let expected = [
            "engine/a/src/over.rs",
            "engine/cuda/kernels/over.cu",
            "tests/tests/over.rs",
            "ui/src/panels/Over.tsx",
        ];
        assert_eq!(places, expected);
        let noted = notes(&tree);
        assert_eq!(noted.len(), 3, "{noted:?}");
        assert!(
            noted.iter().any(|note| note.contains("noted.rs")),
            "{noted:?}"
        );
    }

    #[test]
    fn the_window_stays_thin() {
        let of = |lines: usize| "x\n".repeat(lines);
        let tree = |lines| {
            Tree::of(&[
                ("src-tauri/src/a.rs", &of(1_000)),
                ("src-tauri/src/b.rs", &of(lines)),
                ("src-tauri/icons/icon.svg", &of(900)),
            ])
        };
        assert_eq!(sources(&tree(999)), []);
        let places: Vec<String> = sources(&tree(1_000))
            .into_iter()
            .map(|one| one.place)
            .collect();
        assert_eq!(places, [SHELL]);
    }

    #[test]
    fn large_binaries_are_found_and_large_texts_are_not() {
        let mut tree = Tree::of(&[(
            "assets/words.txt",
            &"w".repeat(BINARY_LIMIT_BYTES as usize + 1),
        )]);
        for (path, bytes) in [
            ("a.bin", BINARY_LIMIT_BYTES),
            ("b.bin", BINARY_LIMIT_BYTES + 1),
            (SHIPPED_BYTES[0].0, SHIPPED_BYTES[0].1),
        ] {
            tree.files
                .insert(path.to_owned(), File { bytes, text: None });
        }
        let violations = binaries(&tree);
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert_eq!(violations[0].place, "b.bin");
    }
}
