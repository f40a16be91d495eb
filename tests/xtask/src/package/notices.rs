//! What the programs hold of others: names, licences, and the texts that have to go along.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::check::{outside_of, reached_from};

/// Beginnings of the names of files with licences and notices, in small letters.
const FILES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];
/// A larger file is no licence.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Something of others that is built in.
#[derive(Debug)]
struct Part {
    /// Name and version.
    name: String,
    licence: String,
    folder: PathBuf,
}

/// The whole file.
pub(super) fn text(root: &Path) -> Result<String> {
    let crates = crates(root)?;
    let packages = packages(root)?;
    written(&crates, &packages)
}

/// Crates that the programs are built from, by normal dependencies at any depth.
fn crates(root: &Path) -> Result<Vec<Part>> {
    let metadata = outside_of(root)?;
    let all = metadata["packages"].as_array();
    let all = all.context("cargo metadata gives no packages")?;
    let ids = all.iter().filter_map(|package| {
        let is_ours = matches!(
            package["name"].as_str(),
            Some("longtake-desktop" | "flow-cli")
        );
        package["id"].as_str().filter(|_| is_ours)
    });
    let reached = reached_from(&metadata, ids)?;
    let mut parts = Vec::new();
    for package in all {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        // Ours have no source.
        if package["source"].is_null() || !reached.contains(text("id")) {
            continue;
        }
        parts.push(Part {
            name: format!("{} {}", text("name"), text("version")),
            licence: text("license").to_owned(),
            folder: Path::new(text("manifest_path"))
                .parent()
                .context("a manifest without a folder")?
                .to_owned(),
        });
    }
    Ok(parts)
}

/// Packages of the page: those of the lock file that are not for development only.
fn packages(root: &Path) -> Result<Vec<Part>> {
    let lock: Value = serde_json::from_slice(&fs::read(root.join("ui/package-lock.json"))?)?;
    let all = lock["packages"].as_object();
    let mut parts = Vec::new();
    for (path, package) in all.context("the page's lock file has no packages")? {
        if path.is_empty() || package["dev"] == true || package["optional"] == true {
            continue;
        }
        let name = path.rsplit("node_modules/").next().unwrap_or(path);
        let version = package["version"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        parts.push(Part {
            name: format!("{name} {version}"),
            licence: licence.to_owned(),
            folder: root.join("ui").join(path),
        });
    }
    Ok(parts)
}

/// Licences and notices that lie in a folder, by the names of their files.
fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut found = BTreeMap::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let about = entry.metadata()?;
        let is_text = about.is_file() && about.len() <= TEXT_BYTES_MAX;
        if is_text && FILES.iter().any(|start| name.starts_with(start)) {
            let bytes = fs::read(entry.path())?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            found.insert(name, text.trim().to_owned());
        }
    }
    Ok(found.into_values().collect())
}

fn written(crates: &[Part], packages: &[Part]) -> Result<String> {
    let mut out = String::from(
        "What others made that is built into Longtake's programs, with the licences that go along \
         with it.\nFFmpeg, GTK and WebKit are the system's own and are not in this package.\n",
    );
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut without = Vec::new();
    for (title, parts) in [("Crates", crates), ("Packages of the page", packages)] {
        writeln!(out, "\n{title}\n")?;
        let mut parts: Vec<&Part> = parts.iter().collect();
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        for part in parts {
            writeln!(out, "  {}: {}", part.name, part.licence)?;
            let found = texts_in(&part.folder)?;
            if found.is_empty() {
                without.push(part.name.as_str());
            }
            for text in found {
                texts.entry(text).or_default().push(&part.name);
            }
        }
    }
    if !without.is_empty() {
        let names = without.join(", ");
        writeln!(
            out,
            "\nThese carry no text of their own; the expressions above name their licences:\n{names}"
        )?;
    }
    for (text, of) in texts {
        let line = "-".repeat(79);
        writeln!(out, "\n{line}\nOf {}\n{line}\n\n{text}", of.join(", "))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_many_have_stands_once_with_all_their_names() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/xtask-tests/notices");
        let part = |name: &str, files: &[(&str, &str)]| {
            let folder = folder.join(name);
            fs::create_dir_all(&folder).unwrap();
            for (file, text) in files {
                fs::write(folder.join(file), text).unwrap();
            }
            Part {
                name: format!("{name} 1.0"),
                licence: "MIT".into(),
                folder,
            }
        };
        let crates = [
            part("b", &[("LICENSE-MIT", "Of B and A.\r\n"), ("readme", "no")]),
            part("a", &[("license", "Of B and A.\n")]),
        ];
        let pages = [part("c", &[])];
        let out = written(&crates, &pages).unwrap();
        assert_eq!(out.matches("Of B and A.").count(), 1, "{out}");
        assert!(out.contains("Of a 1.0, b 1.0\n"), "{out}");
        assert!(
            out.contains("no text of their own") && out.contains("\nc 1.0\n"),
            "{out}"
        );
        assert!(!out.contains("readme"));
    }
}
