//! Which names and paths a manifest may hold. Everything that becomes a path, a part of an address
//! or an argument of another program passes here first.

use crate::manifest::PackageRegistry;

/// Longest name or path taken.
const NAME_LIMIT: usize = 255;

fn all(text: &str, also: &[u8]) -> bool {
    !text.is_empty()
        && text.len() <= NAME_LIMIT
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || also.contains(&byte))
}

fn begins_plainly(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// A model's id.
pub(crate) fn is_id(text: &str) -> bool {
    all(text, b"._-")
        && text.len() <= 64
        && begins_plainly(text)
        && !text.ends_with('.')
        && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// A kind of machine, `ARCHITECTURE-SYSTEM`.
pub(crate) fn is_machine(text: &str) -> bool {
    let part = |part: &str| all(part, b"_") && begins_plainly(part);
    text.split_once('-')
        .is_some_and(|(architecture, system)| part(architecture) && part(system))
}

/// `length` lower-case hex digits.
pub(crate) fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Names that Windows keeps for devices, whatever follows a dot.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.to_ascii_lowercase();
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul")
        || (stem.len() == 4
            && (stem.starts_with("com") || stem.starts_with("lpt"))
            && stem.ends_with(|last: char| last.is_ascii_digit()))
}

/// A path below a model's folder, on every system.
pub(crate) fn is_file_path(text: &str) -> bool {
    let part = |part: &str| {
        all(part, b"._-+ ")
            && !part.starts_with(['.', ' '])
            && !part.ends_with(['.', ' '])
            && !is_device(part)
    };
    text.len() <= NAME_LIMIT
        && text.split('/').all(part)
        && !text.to_ascii_lowercase().ends_with(".part")
}

/// Whether files of this name hold pickles by custom.
pub(crate) fn is_pickle(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default();
    let ending = ending.to_ascii_lowercase();
    matches!(
        ending.as_str(),
        "pt" | "pth" | "ckpt" | "pkl" | "pickle" | "joblib" | "py"
    )
}

/// A path in a repository or an archive.
pub(crate) fn is_member_path(text: &str) -> bool {
    text.len() <= NAME_LIMIT
        && text
            .split('/')
            .all(|part| all(part, b"._-+@ ") && part != "." && part != "..")
}

/// `owner/name`.
pub(crate) fn is_repo(text: &str) -> bool {
    let part = |part: &str| all(part, b"._-") && begins_plainly(part) && !part.contains("..");
    text.split_once('/')
        .is_some_and(|(owner, name)| part(owner) && part(name))
}

/// A package's name in a registry.
pub(crate) fn is_package(text: &str, registry: PackageRegistry) -> bool {
    let plain = |text: &str| all(text, b"._-") && begins_plainly(text);
    match (registry, text.strip_prefix('@')) {
        (PackageRegistry::Npm, Some(scoped)) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| plain(scope) && plain(name)),
        _ => plain(text),
    }
}

/// One version, not a range.
pub(crate) fn is_version(text: &str) -> bool {
    all(text, b".+-!_") && text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for inside in [
            "a.gguf",
            "voices/af_heart.bin",
            "model-00001-of-00002.safetensors",
        ] {
            assert!(is_file_path(inside), "{inside}");
        }
        for outside in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            ".hidden",
            "C:/a",
            "a\\b",
            "nul",
            "COM1.gguf",
            "a.",
            "a ",
            "a\0b",
            "é.gguf",
            "x.PART",
        ] {
            assert!(!is_file_path(outside), "{outside:?}");
        }
        assert!(!is_file_path(&"a/".repeat(200)));
    }

    #[test]
    fn scopes_belong_to_npm() {
        assert!(is_package("@scope/name", PackageRegistry::Npm));
        assert!(!is_package("@scope/name", PackageRegistry::Pypi));
        assert!(!is_package("@scope/../x", PackageRegistry::Npm));
        assert!(is_version("0.1.2") && is_version("1!2.0+local") && !is_version("latest"));
    }
}
