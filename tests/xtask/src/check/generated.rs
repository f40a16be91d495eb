//! Files that code in the tree writes: their stamp must be of the code that is there now.
//!
//! A generator writes, beside what it made, a stamp: the fingerprint of its own sources. When the
//! sources change and the files are not made again, the two differ.

use super::{Tree, Violation};

/// A generator in the tree.
struct Generator {
    /// Folder of its sources.
    sources: &'static str,
    /// File that holds the fingerprint of the sources that made the files beside it.
    stamp: &'static str,
    /// What makes them again.
    command: &'static str,
}

const GENERATORS: &[Generator] = &[Generator {
    sources: "tests/tools/score/src/",
    stamp: "assets/samples/sound/score.stamp",
    command: "cargo run --release --manifest-path tests/tools/score/Cargo.toml",
}];

/// 64-bit FNV-1a over the path below the folder, a zero, the text and a zero of each file, in
/// order of paths; 16 hex digits. Guards against forgetting, not against intent.
fn fingerprint<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (path, text) in files {
        for byte in path.bytes().chain([0]).chain(text.bytes()).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

fn check(tree: &Tree, generator: &Generator) -> Option<Violation> {
    let sources = tree
        .texts()
        .filter_map(|(path, text)| Some((path.strip_prefix(generator.sources)?, text)));
    let now = fingerprint(sources);
    let again = format!("make the files again: {}", generator.command);
    match tree.text(generator.stamp).map(str::trim) {
        None => Some(Violation::new(
            generator.stamp,
            format!("the stamp is missing; {again}"),
        )),
        Some(then) if then == now => None,
        Some(then) => {
            let text = format!("made by sources {then:?}, which are {now:?} now; {again}");
            Some(Violation::new(generator.stamp, text))
        }
    }
}

/// Generators whose files are of older sources.
pub(super) fn rule(tree: &Tree) -> Vec<Violation> {
    GENERATORS
        .iter()
        .filter_map(|generator| check(tree, generator))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Generator = Generator {
        sources: "gen/src/",
        stamp: "out/stamp",
        command: "run gen",
    };

    #[test]
    fn changed_sources_make_the_files_old() {
        let made = fingerprint([("main.rs", "fn main() {}")].into_iter());
        let stamp = format!("{made}\n");
        let fresh = Tree::of(&[("gen/src/main.rs", "fn main() {}"), ("out/stamp", &stamp)]);
        assert_eq!(check(&fresh, &ONE), None);
        let old = Tree::of(&[
            ("gen/src/main.rs", "fn main() { x() }"),
            ("out/stamp", &stamp),
        ]);
        assert!(check(&old, &ONE).unwrap().text.contains("run gen"));
        let none = Tree::of(&[("gen/src/main.rs", "fn main() {}")]);
        assert!(check(&none, &ONE).unwrap().text.contains("missing"));
    }

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        // The published vector for the empty input.
        assert_eq!(fingerprint(std::iter::empty()), "cbf29ce484222325");
        let apart = fingerprint([("a", "bc")].into_iter());
        assert_ne!(apart, fingerprint([("ab", "c")].into_iter()));
    }
}
