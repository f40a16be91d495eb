//! What every crate states about itself.

use super::{Tree, Violation};

/// Longest crate documentation, in lines.
const DOC_LINES: usize = 30;

/// Whether the manifest takes its lints from the workspace.
fn takes_lints(manifest: &str) -> bool {
    let mut in_lints = false;
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            in_lints = line == "[lints]";
        }
        let spaceless: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        spaceless == "lints.workspace=true" || (in_lints && spaceless == "workspace=true")
    })
}

/// Lines of the `//!` documentation at the head of a source file; crate attributes may stand
/// before it.
fn doc_lines(source: &str) -> usize {
    let is_doc = |line: &&str| line.starts_with("//!");
    let before = |line: &&str| {
        line.trim().is_empty() || line.starts_with("#![") || line.starts_with([' ', ')', ']'])
    };
    source.lines().skip_while(before).take_while(is_doc).count()
}

/// Lints from the workspace, documentation at the head of each root file, no `mod.rs`.
pub(super) fn rule(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        let manifest = format!("{}/Cargo.toml", package.folder);
        if !tree.text(&manifest).is_some_and(takes_lints) {
            violations.push(Violation::new(
                manifest,
                "expected `workspace = true` under [lints]",
            ));
        }
        for path in &package.roots {
            match doc_lines(tree.text(path).unwrap_or_default()) {
                0 => violations.push(Violation::new(
                    path,
                    "expected `//!` documentation first: what the crate is for and must not know",
                )),
                lines if lines > DOC_LINES => violations.push(Violation::new(
                    path,
                    format!("crate documentation has {lines} lines, expected at most {DOC_LINES}"),
                )),
                _ => {}
            }
        }
    }
    for path in tree.files.keys().filter(|path| path.ends_with("/mod.rs")) {
        violations.push(Violation::new(
            path,
            "expected NAME.rs beside NAME/, not mod.rs",
        ));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_lints_and_documentation_are_found() {
        let long = "//! x\n".repeat(DOC_LINES + 1);
        let tree = Tree::of(&[
            (
                "a/Cargo.toml",
                "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n",
            ),
            (
                "a/src/lib.rs",
                "#![allow(\n    x\n)]\n//! What it is for.\n\nfn x() {}\n",
            ),
            ("a/src/part/mod.rs", ""),
            (
                "b/Cargo.toml",
                "[package]\nversion.workspace = true\n[dependencies]\nworkspace = true",
            ),
            ("b/src/lib.rs", "// no documentation\n"),
            ("c/Cargo.toml", "lints.workspace = true"),
            ("c/src/lib.rs", &long),
        ])
        .with("a", "a", &[], &[])
        .with("b", "b", &[], &[])
        .with("c", "c", &[], &[]);
        let mut places: Vec<String> = rule(&tree).into_iter().map(|one| one.place).collect();
        places.sort();
        assert_eq!(
            places,
            [
                "a/src/part/mod.rs",
                "b/Cargo.toml",
                "b/src/lib.rs",
                "c/src/lib.rs"
            ]
        );
    }
}
