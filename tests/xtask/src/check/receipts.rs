//! Receipts that tables of figures refer to.

use serde_json::Value;

use super::{Tree, Violation};

/// Folder of kept receipts.
const FOLDER: &str = "tests/receipts/";

/// Paths of receipts that `line` names.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(FOLDER).filter_map(|(at, _)| {
        let rest = &line[at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-')));
        let path = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        path.ends_with(".json").then_some(path)
    })
}

/// What a receipt lacks.
fn lacks(receipt: &str) -> Option<String> {
    let receipt: Value = match serde_json::from_str(receipt) {
        Ok(receipt) => receipt,
        Err(error) => return Some(format!("not a receipt: {error}")),
    };
    let keys = ["commit", "binary", "machine", "rows", "samples"];
    let lacking: Vec<&str> = keys
        .into_iter()
        .filter(|key| receipt.get(key).is_none_or(Value::is_null))
        .collect();
    (!lacking.is_empty()).then(|| format!("a receipt without {}", lacking.join(", ")))
}

/// Receipts that Markdown names are there, and every kept receipt is whole.
pub(super) fn rule(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts() {
        if path.ends_with(".md") {
            for (index, line) in text.lines().enumerate() {
                for receipt in named(line).filter(|receipt| !tree.files.contains_key(*receipt)) {
                    let text = format!("names a receipt that is not kept: {receipt}");
                    violations.push(Violation::at(path, index + 1, text));
                }
            }
        }
        if path.starts_with(FOLDER)
            && path.ends_with(".json")
            && let Some(text) = lacks(text)
        {
            violations.push(Violation::new(path, text));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_receipts_must_be_kept_and_whole() {
        let whole = r#"{"commit":"a","binary":"b","machine":{},"rows":[],"samples":{}}"#;
        let tree = Tree::of(&[
            (
                "README.md",
                "| 41 us | [r](tests/receipts/graph.json) |\n| 2 s | `tests/receipts/gone.json`. |",
            ),
            ("notes.txt", "tests/receipts/unread.json"),
            ("tests/receipts/graph.json", whole),
            (
                "tests/receipts/half.json",
                r#"{"commit":"a","rows":[],"machine":null}"#,
            ),
            ("tests/receipts/torn.json", "{"),
        ]);
        let shown: Vec<String> = rule(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 3, "{shown:?}");
        assert!(shown[0].starts_with("README.md:2:") && shown[0].ends_with("gone.json"));
        assert!(shown[1].contains("half.json: a receipt without binary, machine, samples"));
        assert!(shown[2].contains("torn.json: not a receipt"));
    }
}
