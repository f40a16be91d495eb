//! `cargo xtask check`: the rules of the tree, each a function from the tree to its violations.
//!
//! Adding a rule is one function and one line in `RULES`.

mod commands;
mod crates;
mod generated;
pub(crate) mod gpu_results;
mod layers;
mod licences;
mod receipts;
mod sizes;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

pub(crate) use self::licences::{metadata as outside_of, reached as reached_from};
use crate::film::cargo;
use crate::steps;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// File or crate, from the root.
    place: String,
    /// Line, where there is one.
    line: Option<usize>,
    /// What is wrong, what is expected.
    text: String,
}

impl Violation {
    fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            line: None,
            text: text.into(),
        }
    }

    fn at(place: impl Into<String>, line: usize, text: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            line: Some(line),
            text: text.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.text),
            None => write!(f, "{}: {}", self.place, self.text),
        }
    }
}

/// A file that git has or would take.
#[derive(Debug, Clone)]
struct File {
    bytes: u64,
    /// Its content where that is UTF-8 of at most `TEXT_LIMIT_BYTES`.
    text: Option<String>,
}

/// Larger files are not read as text.
const TEXT_LIMIT_BYTES: u64 = 4 << 20;

/// A crate of the workspace.
#[derive(Debug, Clone)]
struct Package {
    name: String,
    /// Folder, from the root.
    folder: String,
    /// Root source files of its library and programs, from the root.
    roots: Vec<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone)]
struct Dependency {
    name: String,
    /// Only for tests, examples and benches.
    dev: bool,
}

/// A crate of others that the product is built from.
#[derive(Debug, Clone)]
struct Outside {
    name: String,
    version: String,
    /// SPDX expression, where its manifest gives one.
    licence: Option<String>,
}

/// What the rules look at. Paths are from the root, with `/`.
#[derive(Debug, Default)]
struct Tree {
    files: BTreeMap<String, File>,
    packages: Vec<Package>,
    outside: Vec<Outside>,
}

impl Tree {
    /// Every text file with its path.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, file)| Some((path.as_str(), file.text.as_deref()?)))
    }

    /// Text of the file at `path`.
    fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.text.as_deref()
    }
}

type Rule = fn(&Tree) -> Vec<Violation>;

const RULES: &[(&str, Rule)] = &[
    ("layers", layers::ours),
    ("places of outside crates", layers::outside),
    ("crates", crates::rule),
    ("licences", licences::rule),
    ("file sizes", sizes::sources),
    ("large binaries", sizes::binaries),
    ("work marks", words::marks),
    ("private paths", words::paths),
    ("generated files", generated::rule),
    ("command list", commands::list),
    ("controls", commands::controls),
    ("receipts", receipts::rule),
    ("figures from GPUs", gpu_results::rule),
];

/// What `cargo metadata --no-deps` says of the workspace.
///
/// # Errors
/// cargo failed or its answer is no JSON.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let answer = steps::output(
        Command::new(cargo())
            .args([
                "metadata",
                "--no-deps",
                "--format-version",
                "1",
                "--locked",
                "--offline",
            ])
            .current_dir(root),
    )?;
    serde_json::from_slice(&answer).context("cannot read the answer of cargo metadata")
}

/// `path` from `root`, with `/`; `None` where it lies elsewhere.
fn from_root(root: &Path, path: &str) -> Option<String> {
    let relative = Path::new(path).strip_prefix(root).ok()?;
    Some(relative.to_string_lossy().replace('\\', "/"))
}

fn read_packages(root: &Path) -> Result<Vec<Package>> {
    let metadata = metadata(root)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    let mut read = Vec::new();
    for package in packages {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let name = text(&package["name"]).context("a package without a name")?;
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let folder = from_root(root, manifest)
            .and_then(|path| path.strip_suffix("/Cargo.toml").map(str::to_owned))
            .with_context(|| format!("package {name:?} lies outside the repository: {manifest}"))?;
        let list = |key: &str| package[key].as_array().cloned().unwrap_or_default();
        let is_root = |target: &&Value| {
            let kinds = target["kind"].as_array().cloned().unwrap_or_default();
            kinds
                .iter()
                .any(|kind| matches!(kind.as_str(), Some("lib" | "bin" | "proc-macro")))
        };
        read.push(Package {
            folder,
            roots: list("targets")
                .iter()
                .filter(is_root)
                .filter_map(|target| from_root(root, target["src_path"].as_str()?))
                .collect(),
            dependencies: list("dependencies")
                .iter()
                .filter_map(|dependency| {
                    Some(Dependency {
                        name: text(&dependency["name"])?,
                        dev: dependency["kind"] == "dev",
                    })
                })
                .collect(),
            name,
        });
    }
    Ok(read)
}

fn read_files(root: &Path) -> Result<BTreeMap<String, File>> {
    let listing = steps::output(
        Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root),
    )
    .context("cannot list the files of the tree (a git checkout is expected)")?;
    let mut files = BTreeMap::new();
    for path in listing
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
    {
        let path = String::from_utf8_lossy(path).into_owned();
        let full = root.join(&path);
        // Gone from the folder but still in the index; a folder is another checkout.
        let Ok(about) = fs::symlink_metadata(&full) else {
            continue;
        };
        if !about.is_file() {
            continue;
        }
        let text = if about.len() <= TEXT_LIMIT_BYTES {
            let bytes = fs::read(&full)
                .with_context(|| format!("cannot read a file of the tree: {}", full.display()))?;
            String::from_utf8(bytes).ok()
        } else {
            None
        };
        files.insert(
            path,
            File {
                bytes: about.len(),
                text,
            },
        );
    }
    Ok(files)
}

/// Prints every violation of every rule.
///
/// # Errors
/// A rule is broken, or the tree cannot be read.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree {
        files: read_files(root)?,
        packages: read_packages(root)?,
        outside: licences::read_outside(root)?,
    };
    for note in sizes::notes(&tree) {
        println!("note: {note}");
    }
    let mut count = 0;
    for (name, rule) in RULES {
        let mut violations = rule(&tree);
        violations.sort();
        for violation in &violations {
            println!("{name}: {violation}");
        }
        count += violations.len();
    }
    if count > 0 {
        bail!("{count} rules of the tree are broken, see above");
    }
    println!(
        "check: {} rules hold over {} files, {} crates, {} crates of others",
        RULES.len(),
        tree.files.len(),
        tree.packages.len(),
        tree.outside.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tree {
        /// A tree of these text files.
        pub(super) fn of(files: &[(&str, &str)]) -> Self {
            let mut tree = Self::default();
            for (path, text) in files {
                let file = File {
                    bytes: text.len() as u64,
                    text: Some((*text).to_owned()),
                };
                tree.files.insert((*path).to_owned(), file);
            }
            tree
        }

        /// The same with a crate that depends on `normal`, and in its tests on `dev`.
        pub(super) fn with(
            mut self,
            name: &str,
            folder: &str,
            normal: &[&str],
            dev: &[&str],
        ) -> Self {
            let named = |names: &[&str], dev| {
                let each = |name: &&str| Dependency {
                    name: (*name).to_owned(),
                    dev,
                };
                names.iter().map(each).collect::<Vec<_>>()
            };
            self.packages.push(Package {
                name: name.to_owned(),
                folder: folder.to_owned(),
                roots: vec![format!("{folder}/src/lib.rs")],
                dependencies: [named(normal, false), named(dev, true)].concat(),
            });
            self
        }
    }

    #[test]
    fn a_violation_shows_place_line_and_text() {
        assert_eq!(
            Violation::at("a/b.rs", 7, "too odd").to_string(),
            "a/b.rs:7: too odd"
        );
        assert_eq!(
            Violation::new("a/b.rs", "too odd").to_string(),
            "a/b.rs: too odd"
        );
    }

    #[test]
    fn the_real_tree_is_read_whole() {
        let root = crate::root().unwrap();
        let packages = read_packages(&root).unwrap();
        let base = packages
            .iter()
            .find(|package| package.name == "engine-base")
            .unwrap();
        assert_eq!(base.folder, "engine/base");
        assert_eq!(base.roots, ["engine/base/src/lib.rs"]);
        assert!(
            base.dependencies
                .iter()
                .any(|one| one.name == "serde_json" && one.dev)
        );
        let files = read_files(&root).unwrap();
        assert!(files["Cargo.lock"].text.is_some());
        assert!(files.keys().all(|path| !path.starts_with("target/")));
    }
}
