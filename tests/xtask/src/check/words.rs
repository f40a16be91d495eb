//! Words that must not be in the tree.

use super::{Tree, Violation};

/// Marks of unfinished work, in halves so that this file does not hold them.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Folders of one person's machine, in halves for the same reason.
const PRIVATE_ROOTS: &[&str] = &[
    concat!("/wo", "rk"),
    concat!("/ro", "ot"),
    concat!("/ho", "me"),
];

/// A folder beside the checkout.
const BESIDE: &str = concat!("../", "shared");

/// Files that other programs write.
fn is_written_by_tools(path: &str) -> bool {
    matches!(
        path.rsplit('/').next(),
        Some("Cargo.lock" | "package-lock.json")
    )
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Where `word` stands in `line` with `before` and `after` accepting its neighbours.
fn stands(
    line: &str,
    word: &str,
    before: impl Fn(Option<char>) -> bool,
    after: impl Fn(&str) -> bool,
) -> bool {
    line.match_indices(word)
        .any(|(at, _)| before(line[..at].chars().next_back()) && after(&line[at + word.len()..]))
}

/// Whether `rest` goes on with the number of an issue, as in `(#12)` or ` #12`.
fn names_an_issue(rest: &str) -> bool {
    let rest = rest.trim_start_matches(['(', ' ', ':']);
    rest.strip_prefix('#')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn lines(tree: &Tree) -> impl Iterator<Item = (&str, usize, &str)> {
    tree.texts()
        .filter(|(path, _)| !is_written_by_tools(path))
        .flat_map(|(path, text)| {
            text.lines()
                .enumerate()
                .map(move |(index, line)| (path, index + 1, line))
        })
}

/// Marks of unfinished work without the number of an issue.
pub(super) fn marks(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, number, line) in lines(tree) {
        for mark in MARKS {
            let alone = |c: Option<char>| !c.is_some_and(is_word);
            let unnamed = |rest: &str| !rest.starts_with(is_word) && !names_an_issue(rest);
            if stands(line, mark, alone, unnamed) {
                let text = format!("{mark} without an issue's number, expected {mark}(#12)");
                violations.push(Violation::at(path, number, text));
            }
        }
    }
    violations
}

/// Absolute paths of somebody's machine.
pub(super) fn paths(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, number, line) in lines(tree) {
        for folder in PRIVATE_ROOTS {
            // After a word, a dot or a bracket it is the tail of a relative path or an address.
            let starts = |c: Option<char>| {
                !c.is_some_and(|c| {
                    is_word(c) || matches!(c, '.' | '/' | '~' | '}' | ')' | ']' | '$')
                })
            };
            if stands(line, folder, starts, |rest| !rest.starts_with(is_word)) {
                let text = format!("path of one machine ({folder:?}), expected a relative one");
                violations.push(Violation::at(path, number, text));
            }
        }
        if line.contains(BESIDE) {
            let text = format!("{BESIDE:?} is outside the repository, which stands alone");
            violations.push(Violation::at(path, number, text));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(violations: &[Violation]) -> Vec<usize> {
        violations
            .iter()
            .filter_map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn marks_need_an_issue() {
        let mark = MARKS[0];
        let text = format!(
            "// {mark}: later\n// {mark}(#41): later\n// {mark} #7\nlet {mark}S = 1;\n/* {mark} */\n\
             // {mark}(#): which?\n{}\nhXXXh\n",
            MARKS[2]
        );
        let tree = Tree::of(&[("a.rs", &text), ("Cargo.lock", &text)]);
        assert_eq!(lines_of(&marks(&tree)), [1, 5, 6, 7]);
    }

    #[test]
    fn private_paths_are_found_and_look_alikes_are_not() {
        let [work, root, home] = [PRIVATE_ROOTS[0], PRIVATE_ROOTS[1], PRIVATE_ROOTS[2]];
        let text = format!(
            "open(\"{work}/film.mp4\")\nsee {root}/.cache\ncp x {home}/anna/film\n`{work}`\n\
             read {BESIDE}/cases\n{work}flows/graph\nmy{work}/x\nhttps://a.org{home}/x\n\
             {{dir}}{work}/x\n.{home}/x\n~{root}\n"
        );
        let tree = Tree::of(&[("a.md", &text)]);
        assert_eq!(lines_of(&paths(&tree)), [1, 2, 3, 4, 5]);
    }
}
