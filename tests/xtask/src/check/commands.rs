//! The studio's command list: its bindings are of the list that is there now, and every command
//! has a control in the pages, as every control has a command.

use std::collections::BTreeSet;

use super::{Tree, Violation};
use crate::bindings::FILE;

/// Sources that hold the list.
const LIST: &str = "workflows/studio/src/desk/";
/// Commands without a control, each with a reason: `name: reason`, a line each.
const EXCEPTIONS: &str = "ui/commands-without-control.txt";
/// Sources of the pages.
const PAGES: &str = "ui/src/";

/// Text in double quotes at the head of `rest`, after white space.
fn quoted(rest: &str) -> Option<&str> {
    let (text, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(text)
}

/// Names in the calls `CommandEntry::new("name", ...)`.
fn names_in_list(tree: &Tree) -> BTreeSet<&str> {
    let sources = tree.texts().filter(|(path, _)| path.starts_with(LIST));
    sources
        .flat_map(|(_, text)| text.split("CommandEntry::new(").skip(1))
        .filter_map(quoted)
        .filter(|name| name.contains('.'))
        .collect()
}

/// Names in the array of the bindings.
fn names_in_bindings(text: &str) -> BTreeSet<&str> {
    let array = text
        .split_once("export const COMMANDS")
        .map_or("", |(_, array)| array);
    array.split("{ name:").skip(1).filter_map(quoted).collect()
}

/// Bindings that name other commands than the list. That their types are the list's too, a test
/// of the product holds; this one needs no build.
pub(super) fn list(tree: &Tree) -> Vec<Violation> {
    let listed = names_in_list(tree);
    let again = "make it again: cargo xtask bindings";
    let Some(text) = tree.text(FILE) else {
        return match listed.is_empty() {
            true => Vec::new(),
            false => vec![Violation::new(FILE, format!("it is missing; {again}"))],
        };
    };
    let bound = names_in_bindings(text);
    let differ = listed.symmetric_difference(&bound);
    differ
        .map(|name| {
            let place = if bound.contains(name) {
                "only here"
            } else {
                "not here"
            };
            Violation::new(FILE, format!("the command {name:?} is {place}; {again}"))
        })
        .collect()
}

/// Names of commands that a page's source mentions as text: `call("name"` and the like.
fn mentioned<'a>(text: &'a str, names: &BTreeSet<&str>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices(['"', '\'']) {
        let rest = &text[at + 1..];
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || matches!(c, '.' | '_')));
        let word = &rest[..end.unwrap_or(rest.len())];
        if names.contains(word) && rest[word.len()..].starts_with(['"', '\'']) {
            found.insert(word);
        }
    }
    found
}

/// Names in calls of the transport that are no command's.
fn unknown<'a>(text: &'a str, names: &BTreeSet<&str>) -> Vec<&'a str> {
    let calls = ["call(", "useCall(", "useCommand(", "useQuery("];
    let mut unknown = Vec::new();
    for call in calls {
        for rest in text.split(call).skip(1) {
            if let Some(name) = quoted(rest).filter(|name| name.contains('.'))
                && !names.contains(name)
            {
                unknown.push(name);
            }
        }
    }
    unknown
}

/// Commands without a control and without a reason for it, and controls without a command.
pub(super) fn controls(tree: &Tree) -> Vec<Violation> {
    let names = names_in_list(tree);
    let is_page = |path: &str| {
        path.starts_with(PAGES)
            && path != FILE
            && (path.ends_with(".ts") || path.ends_with(".tsx"))
            && !path.contains(".test.")
    };
    let pages: Vec<(&str, &str)> = tree.texts().filter(|(path, _)| is_page(path)).collect();
    if pages.is_empty() {
        return Vec::new();
    }
    let mut violations = Vec::new();
    let mut used = BTreeSet::new();
    for (path, text) in &pages {
        used.extend(mentioned(text, &names));
        for name in unknown(text, &names) {
            violations.push(Violation::new(
                *path,
                format!("there is no command {name:?}"),
            ));
        }
    }
    let mut excused = BTreeSet::new();
    for (at, line) in tree
        .text(EXCEPTIONS)
        .unwrap_or_default()
        .lines()
        .enumerate()
    {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, reason) = line.split_once(':').unwrap_or((line, ""));
        let wrong = if reason.trim().is_empty() {
            Some("expected `name: reason`".to_owned())
        } else if !names.contains(name) {
            Some(format!("there is no command {name:?}"))
        } else if used.contains(name) {
            Some(format!("the command {name:?} has a control now"))
        } else {
            None
        };
        excused.insert(name);
        violations.extend(wrong.map(|text| Violation::at(EXCEPTIONS, at + 1, text)));
    }
    for name in names
        .difference(&used)
        .filter(|name| !excused.contains(*name))
    {
        let text = format!("the command {name:?} has no control: add one, or a reason here");
        violations.push(Violation::new(EXCEPTIONS, text));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESK: (&str, &str) = (
        "workflows/studio/src/desk/app.rs",
        "CommandEntry::new(\n  \"app.state\",\n), CommandEntry::new(\"app.forget\", x)",
    );

    fn texts(violations: &[Violation]) -> Vec<&str> {
        violations.iter().map(|one| one.text.as_str()).collect()
    }

    #[test]
    fn bindings_of_another_list_are_found() {
        let stale = "export const COMMANDS = [ { name: \"app.state\" }, { name: \"app.old\" } ]";
        let found = list(&Tree::of(&[DESK, (FILE, stale)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(texts(&found)[0].contains("\"app.forget\" is not here"));
        assert!(texts(&found)[1].contains("\"app.old\" is only here"));
        let fresh = "export const COMMANDS = [{ name: \"app.state\" }, { name: \"app.forget\" }]";
        assert!(list(&Tree::of(&[DESK, (FILE, fresh)])).is_empty());
        assert_eq!(list(&Tree::of(&[DESK])).len(), 1);
    }

    #[test]
    fn commands_without_control_and_controls_without_command_are_found() {
        let page = (
            "ui/src/a.tsx",
            "call(\"app.state\", {}); call(\"app.stat\", {})",
        );
        let found = controls(&Tree::of(&[DESK, page]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(texts(&found)[0].contains("no command \"app.stat\""));
        assert!(texts(&found)[1].contains("\"app.forget\" has no control"));
        let excused = (
            EXCEPTIONS,
            "# why\napp.forget: the list forgets by itself\n",
        );
        let page = ("ui/src/a.tsx", "call(\"app.state\", {})");
        assert!(controls(&Tree::of(&[DESK, page, excused])).is_empty());
        let stale = (EXCEPTIONS, "app.state: x\napp.forget:\napp.gone: x\n");
        let found = controls(&Tree::of(&[DESK, page, stale]));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(controls(&Tree::of(&[DESK])).is_empty(), "no pages yet");
    }
}
