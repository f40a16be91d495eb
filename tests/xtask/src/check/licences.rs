//! Licences of the crates of others that the product is built from.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Outside, Tree, Violation};
use crate::film::cargo;
use crate::steps;

/// Where the licences stand that may be used; `cargo deny` reads the same list.
const LIST: &str = "deny.toml";

/// What our crates are built from on this machine, by normal dependencies at any depth. Those of
/// tests and build scripts are not in what we give away.
///
/// # Errors
/// cargo failed or its answer is not what it is known to be.
pub(super) fn read_outside(root: &Path) -> Result<Vec<Outside>> {
    built_from(&metadata(root)?)
}

/// Cargo's whole answer about what is built on this machine.
///
/// # Errors
/// cargo failed or its answer is not what it is known to be.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let about = steps::output(Command::new("rustc").arg("-vV").current_dir(root))?;
    let about = String::from_utf8_lossy(&about).into_owned();
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc -vV names no host")?;
    // Without the filter cargo wants the sources of every platform's crates.
    let args = ["metadata", "--format-version", "1", "--locked"];
    let answer = steps::output(
        Command::new(cargo())
            .args(args)
            .args(["--filter-platform", host])
            .current_dir(root),
    )?;
    serde_json::from_slice(&answer).context("cannot read the answer of cargo metadata")
}

fn list<'a>(value: &'a Value, what: &str) -> Result<&'a Vec<Value>> {
    value
        .as_array()
        .with_context(|| format!("cargo metadata gives no {what}"))
}

/// Ids of `start` and of all that these are built from, by normal dependencies at any depth.
///
/// # Errors
/// The answer is not what it is known to be.
pub(crate) fn reached<'a>(
    metadata: &'a Value,
    start: impl IntoIterator<Item = &'a str>,
) -> Result<HashSet<&'a str>> {
    let mut edges: BTreeMap<&str, &Value> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"], "dependency graph")? {
        edges.insert(node["id"].as_str().unwrap_or_default(), &node["deps"]);
    }
    let mut reached: HashSet<&str> = start.into_iter().collect();
    let mut open: Vec<&str> = reached.iter().copied().collect();
    while let Some(id) = open.pop() {
        let edges = edges
            .get(id)
            .with_context(|| format!("{id:?} is not in cargo's dependency graph"))?;
        for edge in list(edges, "dependencies")? {
            let kinds = list(&edge["dep_kinds"], "kinds of dependencies")?;
            let is_normal = kinds.iter().any(|kind| kind["kind"].is_null());
            if let Some(used) = edge["pkg"].as_str().filter(|_| is_normal)
                && reached.insert(used)
            {
                open.push(used);
            }
        }
    }
    Ok(reached)
}

fn built_from(metadata: &Value) -> Result<Vec<Outside>> {
    let members = list(&metadata["workspace_members"], "members")?;
    let reached = reached(metadata, members.iter().filter_map(Value::as_str))?;
    let ours: HashSet<&str> = members.iter().filter_map(Value::as_str).collect();
    let mut outside = Vec::new();
    for package in list(&metadata["packages"], "packages")? {
        let id = package["id"].as_str().unwrap_or_default();
        if reached.contains(id) && !ours.contains(id) {
            let text = |field: &str| package[field].as_str().map(str::to_owned);
            outside.push(Outside {
                name: text("name").unwrap_or_default(),
                version: text("version").unwrap_or_default(),
                licence: text("license"),
            });
        }
    }
    Ok(outside)
}

/// The quoted words of `allow = [...]` under `[licenses]`.
fn allowed(list: &str) -> Vec<&str> {
    let section = list.split("[licenses]").nth(1).unwrap_or_default();
    let start = section.split("allow = [").nth(1).unwrap_or_default();
    let words = start.split(']').next().unwrap_or_default();
    words.split('"').skip(1).step_by(2).collect()
}

/// Expressions of crates that name none themselves: `[[licenses.clarify]]`, by crate.
fn clarified(list: &str) -> BTreeMap<&str, &str> {
    let sections = list.split("[[licenses.clarify]]").skip(1);
    let of = |section: &'_ str| -> Option<(usize, usize, usize, usize)> {
        let value = |field: &str| {
            let at = section.find(&format!("{field} = \""))? + field.len() + 4;
            Some((at, at + section.get(at..)?.find('"')?))
        };
        let ((a, b), (c, d)) = (value("crate")?, value("expression")?);
        Some((a, b, c, d))
    };
    sections
        .filter_map(|section| {
            let section = section.split("\n[").next().unwrap_or_default();
            let (a, b, c, d) = of(section)?;
            Some((section.get(a..b)?, section.get(c..d)?))
        })
        .collect()
}

/// Reads an SPDX expression; the old `/` between licences means `OR`.
struct Expression<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [&'a str],
}

impl<'a> Expression<'a> {
    fn takes(&mut self, word: &str) -> bool {
        let here = self.words.get(self.at) == Some(&word);
        self.at += usize::from(here);
        here
    }

    fn either(&mut self) -> Option<bool> {
        let mut holds = self.both()?;
        while self.takes("OR") {
            holds |= self.both()?;
        }
        Some(holds)
    }

    fn both(&mut self) -> Option<bool> {
        let mut holds = self.one()?;
        while self.takes("AND") {
            holds &= self.one()?;
        }
        Some(holds)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let holds = self.either()?;
            return self.takes(")").then_some(holds);
        }
        let name = *self.words.get(self.at)?;
        self.at += 1;
        if ["(", ")", "AND", "OR", "WITH"].contains(&name) {
            return None;
        }
        if self.takes("WITH") {
            let exception = *self.words.get(self.at)?;
            self.at += 1;
            let whole = format!("{name} WITH {exception}");
            return Some(self.allowed.contains(&whole.as_str()));
        }
        Some(self.allowed.contains(&name))
    }
}

/// Whether some way to read `licence` needs only allowed ones; `None` where it is no expression.
fn may_be_used(licence: &str, allowed: &[&str]) -> Option<bool> {
    let spaced = licence
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut expression = Expression {
        words: spaced.split_whitespace().collect(),
        at: 0,
        allowed,
    };
    let holds = expression.either()?;
    (expression.at == expression.words.len()).then_some(holds)
}

/// Crates of others under licences that the list does not have.
pub(super) fn rule(tree: &Tree) -> Vec<Violation> {
    let list = tree.text(LIST).unwrap_or_default();
    let (allowed, clarified) = (allowed(list), clarified(list));
    let mut violations = Vec::new();
    for package in &tree.outside {
        let told = || clarified.get(package.name.as_str()).copied();
        let licence = package.licence.as_deref().or_else(told);
        let place = format!("{} {}", package.name, package.version);
        let got = match licence.map(|licence| may_be_used(licence, &allowed)) {
            Some(Some(true)) => continue,
            Some(Some(false)) => format!("its licence is {:?}", licence.unwrap_or_default()),
            Some(None) => format!("cannot read its licence {:?}", licence.unwrap_or_default()),
            None => "it names no licence".to_owned(),
        };
        let text = format!("{got}, expected one that {LIST} allows");
        violations.push(Violation::new(place, text));
    }
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALLOW: [&str; 4] = [
        "MIT",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "Unicode-3.0",
    ];

    #[test]
    fn a_crate_without_an_expression_takes_the_one_that_was_read_for_it() {
        let list = "[licenses]\nallow = [\"MIT\"]\n\n[[licenses.clarify]]\ncrate = \"one\"\n\
                    expression = \"WTFPL\"\nlicense-files = []\n\n[[licenses.clarify]]\n\
                    crate = \"two\"\nexpression = \"MIT\"\n\n[bans]\ncrate = \"three\"\n\
                    expression = \"MIT\"\n";
        let clarified = clarified(list);
        assert_eq!(clarified.get("one"), Some(&"WTFPL"));
        assert_eq!(clarified.get("two"), Some(&"MIT"));
        assert_eq!(clarified.len(), 2);
    }

    #[test]
    fn expressions_hold_when_some_reading_is_allowed() {
        for (licence, expected) in [
            ("MIT", Some(true)),
            ("MIT/GPL-3.0", Some(true)),
            ("Apache-2.0 OR GPL-2.0-only", Some(true)),
            ("(MIT OR AGPL-3.0) AND Unicode-3.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("GPL-3.0-or-later", Some(false)),
            ("AGPL-3.0-only", Some(false)),
            ("MIT AND GPL-3.0", Some(false)),
            ("MIT AND GPL-3.0 OR Apache-2.0", Some(true)),
            ("GPL-2.0 WITH Classpath-exception-2.0", Some(false)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT)", None),
            ("MIT Apache-2.0", None),
        ] {
            assert_eq!(may_be_used(licence, &ALLOW), expected, "{licence:?}");
        }
    }

    #[test]
    fn crates_under_other_licences_or_none_are_found() {
        let mut tree = Tree::of(&[(
            LIST,
            "[bans]\nallow = [\"GPL-3.0\"]\n[licenses]\nallow = [\n    \"MIT\",\n]\n",
        )]);
        for (name, licence) in [
            ("good", Some("MIT OR GPL-3.0")),
            ("bad", Some("GPL-3.0")),
            ("mute", None),
        ] {
            tree.outside.push(Outside {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                licence: licence.map(str::to_owned),
            });
        }
        let found: Vec<String> = rule(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "bad 1.0.0: its licence is \"GPL-3.0\", expected one that deny.toml allows",
                "mute 1.0.0: it names no licence, expected one that deny.toml allows",
            ]
        );
    }

    #[test]
    fn only_what_the_product_is_built_from_counts() {
        let edge = |to: &str, kind: Value| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
        let package =
            |id: &str| json!({"id": id, "name": id, "version": "1.0.0", "license": "MIT"});
        let metadata = json!({
            "workspace_members": ["ours"],
            "packages": (["ours", "near", "far", "of-tests", "of-build"].map(package)),
            "resolve": {"nodes": [
                {"id": "ours", "deps": [
                    edge("near", Value::Null),
                    edge("of-tests", "dev".into()),
                    edge("of-build", "build".into()),
                ]},
                {"id": "near", "deps": [edge("far", Value::Null)]},
                {"id": "far", "deps": []},
                {"id": "of-tests", "deps": []},
                {"id": "of-build", "deps": []},
            ]},
        });
        let names: Vec<String> = built_from(&metadata)
            .unwrap()
            .into_iter()
            .map(|package| package.name)
            .collect();
        assert_eq!(names, ["near", "far"]);
        assert!(built_from(&json!({})).is_err());
    }

    #[test]
    fn the_real_list_and_tree_are_read() {
        let root = crate::root().unwrap();
        let list = std::fs::read_to_string(root.join(LIST)).unwrap();
        assert!(allowed(&list).contains(&"MIT"), "{:?}", allowed(&list));
        let outside = read_outside(&root).unwrap();
        let names: HashSet<&str> = outside.iter().map(|one| one.name.as_str()).collect();
        assert!(names.contains("serde") && !names.contains("engine-base"));
    }
}
