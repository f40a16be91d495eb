//! `cargo xtask film`: the sample film, or any film, with what this tree builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{models, setup, steps};

/// Folder of the sample's script, pictures and sounds, from the root.
const SAMPLES: &str = "assets/samples";

/// Markdown beside the sample that is no script.
const NOT_A_SCRIPT: &[&str] = &["ORIGINS.md", "README.md"];

/// The one script in `folder`.
fn script_in(folder: &Path) -> Result<PathBuf> {
    let mut scripts = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        if is_markdown && !name.is_some_and(|name| NOT_A_SCRIPT.contains(&name.as_str())) {
            scripts.push(path);
        }
    }
    scripts.sort();
    match scripts.as_slice() {
        [script] => Ok(script.clone()),
        [] => bail!(
            "no sample script: expected one .md file, got none in {}",
            folder.display()
        ),
        [first, second, ..] => bail!(
            "more than one sample script: {} and {}; name one with --script",
            first.display(),
            second.display()
        ),
    }
}

/// Arguments that make the sample film, paths from the root.
fn sample_arguments(root: &Path) -> Result<Vec<String>> {
    let script = script_in(&root.join(SAMPLES))?;
    let name = script
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let script = script
        .strip_prefix(root)
        .unwrap_or(&script)
        .to_string_lossy()
        .into_owned();
    let words = [
        "--script".to_owned(),
        script,
        "--stills".to_owned(),
        format!("{SAMPLES}/stills"),
        "--project".to_owned(),
        format!("films/{name}.longtake"),
        "--out".to_owned(),
        format!("films/{name}.mp4"),
    ];
    Ok(words.into())
}

/// Arguments with what a film of a premise lacks: a place in films/. Without --stills it is drawn.
fn premise_arguments(root: &Path, args: &[String]) -> Vec<String> {
    let mut args = args.to_vec();
    let Some(premise) = args.first().filter(|word| !word.starts_with('-')) else {
        return args;
    };
    let name = file_name(premise);
    let has = |args: &[String], option: &str| {
        args.iter()
            .any(|word| word == option || word.starts_with(&format!("{option}=")))
    };
    if !has(&args, "--out") && !has(&args, "--project") {
        let film = root.join("films").join(format!("{name}.mp4"));
        args.extend(["--out".to_owned(), film.to_string_lossy().into_owned()]);
    }
    args
}

/// The first words of a premise as the name of a file.
pub(crate) fn file_name(premise: &str) -> String {
    let words = premise
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(6)
        .map(str::to_lowercase);
    let name = words.collect::<Vec<_>>().join("-");
    if name.is_empty() {
        return "film".to_owned();
    }
    name.chars().take(60).collect()
}

/// Sets up, builds and runs `longtake film`. Relative paths in `args` are taken from where the
/// task was started; those of the sample from the root.
///
/// # Errors
/// Setup, the build or the film failed.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    setup::run(setup::Mode::Install, setup::For::Films)?;
    models::run(setup::Mode::Install)?;
    let mut film = Command::new(build(root)?);
    film.arg("film");
    fs::create_dir_all(root.join("films")).context("cannot make the folder films")?;
    if args.is_empty() {
        film.args(sample_arguments(root)?).current_dir(root);
    } else {
        film.args(premise_arguments(root, args));
    }
    steps::pass(&mut film)
}

/// Builds `longtake` and gives its path.
///
/// # Errors
/// The build failed.
pub(crate) fn build(root: &Path) -> Result<PathBuf> {
    // The development profile: crates in which time goes are optimized there too, and a fresh
    // clone is at its first film in half the time of a release build.
    steps::pass(
        Command::new(cargo())
            .args([
                "build",
                "--locked",
                "--package",
                "flow-cli",
                "--bin",
                "longtake",
            ])
            .current_dir(root),
    )?;
    Ok(target_folder(root)?.join("debug/longtake"))
}

/// The cargo that started this task.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Where cargo builds; may be moved by its configuration or environment.
///
/// # Errors
/// `cargo metadata` failed or says something unexpected.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf> {
    let metadata = crate::check::metadata(root)?;
    let folder = metadata["target_directory"].as_str();
    Ok(folder
        .context("cargo metadata names no target_directory")?
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fresh folder under this crate's build folder.
    fn folder(name: &str) -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../target/xtask-tests")
            .join(name);
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(path.join(SAMPLES)).unwrap();
        path
    }

    #[test]
    fn a_premise_gets_a_place_and_is_drawn() {
        let words = |args: &[&str]| -> Vec<String> {
            let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
            premise_arguments(Path::new("tree"), &args)
        };
        let film = words(&["Ada's clock, before the town floods again", "--seed", "3"]);
        assert!(!film.contains(&"--stills".to_owned()));
        assert!(
            film[4].ends_with("films/ada-s-clock-before-the-town.mp4"),
            "{film:?}"
        );
        let given = ["A premise", "--stills", "my", "--out", "b.mp4"];
        assert_eq!(words(&given), given);
        let script = ["--script", "a.md"];
        assert_eq!(words(&script), script);
        assert_eq!(file_name("🐙"), "film");
    }

    #[test]
    fn the_one_script_is_found_beside_the_origins() {
        let root = folder("one-script");
        fs::write(root.join(SAMPLES).join("ORIGINS.md"), "x").unwrap();
        let error = sample_arguments(&root).unwrap_err().to_string();
        assert!(error.contains("got none"), "{error}");
        fs::write(root.join(SAMPLES).join("the-crossing.md"), "x").unwrap();
        let args = sample_arguments(&root).unwrap();
        assert_eq!(args[..2], ["--script", "assets/samples/the-crossing.md"]);
        assert_eq!(args[6..], ["--out", "films/the-crossing.mp4"]);
    }

    #[test]
    fn two_scripts_are_not_chosen_from() {
        let root = folder("two-scripts");
        fs::write(root.join(SAMPLES).join("a.md"), "x").unwrap();
        fs::write(root.join(SAMPLES).join("b.md"), "x").unwrap();
        let error = sample_arguments(&root).unwrap_err().to_string();
        assert!(error.contains("a.md") && error.contains("b.md"), "{error}");
    }
}
