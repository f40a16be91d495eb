//! `cargo xtask package`: the .deb and the .rpm of the studio, for the kind of system that builds
//! them, with the window, the command line program and what a desktop needs to know of them.
//!
//! The tools are the system's own: `dpkg-shlibdeps` reads from the programs which packages they
//! need, `rpmbuild` which libraries.

mod clean;
mod deb;
mod notices;
mod rpm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{film, setup, steps, ui};

/// Name of the package.
const NAME: &str = "longtake";
/// One line about it.
const SUMMARY: &str = "studio that turns a premise into a long film";
/// What it is, for those who look at packages.
const ABOUT: &str = "Longtake turns a premise or a script into a narrated, titled and scored film on \
                     hardware you own. This package has the studio's window and the command line \
                     program.";
/// Who made it. Nobody reads mail there: packages must name an address.
const MAKER: &str = "The Longtake developers <maintainers@longtake.invalid>";
const LICENCE: &str = "MIT OR Apache-2.0";

/// The programs, by the names of their files.
const PROGRAMS: [&str; 2] = ["longtake-desktop", "longtake"];

/// What packages hold besides the programs: file of the repository, its place, and its mode.
const FILES: [(&str, &str); 12] = [
    (
        "src-tauri/package/longtake-desktop.desktop",
        "usr/share/applications/longtake-desktop.desktop",
    ),
    (
        "src-tauri/package/longtake.xml",
        "usr/share/mime/packages/longtake.xml",
    ),
    (
        "src-tauri/icons/icon.svg",
        "usr/share/icons/hicolor/scalable/apps/longtake.svg",
    ),
    (
        "src-tauri/icons/32x32.png",
        "usr/share/icons/hicolor/32x32/apps/longtake.png",
    ),
    (
        "src-tauri/icons/64x64.png",
        "usr/share/icons/hicolor/64x64/apps/longtake.png",
    ),
    (
        "src-tauri/icons/128x128.png",
        "usr/share/icons/hicolor/128x128/apps/longtake.png",
    ),
    (
        "src-tauri/icons/256x256.png",
        "usr/share/icons/hicolor/256x256/apps/longtake.png",
    ),
    (
        "src-tauri/icons/512x512.png",
        "usr/share/icons/hicolor/512x512/apps/longtake.png",
    ),
    ("NOTICE", "usr/share/doc/longtake/NOTICE"),
    (
        "assets/models/sketch/config.json",
        "usr/share/longtake/models/sketch/config.json",
    ),
    (
        "assets/models/sketch/sketch.safetensors",
        "usr/share/longtake/models/sketch/sketch.safetensors",
    ),
    (
        "assets/models/sketch/README.md",
        "usr/share/longtake/models/sketch/README.md",
    ),
];

/// What to build.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    /// Profile of the programs.
    pub(crate) profile: &'a str,
    /// Install the .deb in a clean system, start it there and remove it.
    pub(crate) test: bool,
    /// Take the programs as they were built last.
    pub(crate) built: bool,
}

/// Where packages are made.
#[derive(Debug)]
struct Place<'a> {
    root: &'a Path,
    /// Folder of packages and of what they are made from.
    folder: PathBuf,
    /// The tree that they install.
    stage: PathBuf,
    version: String,
    /// Whether packing may take long to make small files.
    small: bool,
}

impl Place<'_> {
    fn deb(&self) -> Result<PathBuf> {
        let name = format!("{NAME}_{}_{}.deb", self.version, deb::architecture()?);
        Ok(self.folder.join(name))
    }
}

/// Builds the programs and the packages, checks what these hold, and tries the .deb where asked.
///
/// # Errors
/// A tool is missing, a step failed, or a package is not as it should be.
pub(crate) fn run(root: &Path, order: &Order<'_>) -> Result<()> {
    setup::run(setup::Mode::Install, setup::For::Packages)?;
    let place = place(root, order.profile)?;
    if !order.built {
        ui::build(root)?;
        steps::pass(
            Command::new(film::cargo())
                .args(["build", "--locked", "--profile", order.profile])
                .args(["--package", "longtake-desktop", "--package", "flow-cli"])
                .current_dir(root),
        )?;
    }
    stage(&place, order.profile)?;
    deb::build(&place)?;
    rpm::build(&place)?;
    deb::check(&place)?;
    rpm::check(&place)?;
    if order.test {
        clean::run(&place)?;
    }
    println!("packages: {}", place.folder.display());
    Ok(())
}

/// The .deb of programs that are built already, and what is in it: a check that takes seconds.
///
/// # Errors
/// As of [`run`].
pub(crate) fn quick(root: &Path) -> Result<()> {
    let place = place(root, "dev")?;
    stage(&place, "dev")?;
    deb::build(&place)?;
    deb::check(&place)
}

/// Whether this system can make .deb packages.
pub(crate) fn can_make_deb() -> bool {
    ["dpkg-deb", "dpkg-shlibdeps"]
        .into_iter()
        .all(|tool| steps::answers(Command::new(tool).arg("--version")))
}

fn place<'a>(root: &'a Path, profile: &str) -> Result<Place<'a>> {
    let mut folder = film::target_folder(root)?.join("packages");
    if profile != "dist" {
        folder.push(profile);
    }
    let metadata = crate::check::metadata(root)?;
    let packages = metadata["packages"].as_array();
    let ours = packages.and_then(|all| all.iter().find(|one| one["name"] == "longtake-desktop"));
    let version = ours.and_then(|one| one["version"].as_str());
    Ok(Place {
        root,
        stage: folder.join("stage"),
        folder,
        version: version
            .context("cargo metadata names no version")?
            .to_owned(),
        small: profile == "dist",
    })
}

/// Puts together the tree that the packages install.
fn stage(place: &Place<'_>, profile: &str) -> Result<()> {
    if place.stage.exists() {
        fs::remove_dir_all(&place.stage)?;
    }
    let target = film::target_folder(place.root)?;
    let built = target.join(if profile == "dev" { "debug" } else { profile });
    for program in PROGRAMS {
        let to = place.stage.join("usr/bin").join(program);
        put(&built.join(program), &to)?;
        steps::pass(Command::new("strip").arg("--strip-unneeded").arg(&to))?;
        set_mode(&to, 0o755)?;
    }
    for (from, to) in FILES {
        put(&place.root.join(from), &place.stage.join(to))?;
    }
    let doc = place.stage.join("usr/share/doc").join(NAME);
    let copyright = format!(
        "Longtake\nCopyright 2026 {}\nLicence: {LICENCE}\n\nOf what others made: NOTICE and \
         third-party.txt.gz beside this file.\n\n{}",
        MAKER.split(" <").next().unwrap_or_default(),
        fs::read_to_string(place.root.join("LICENSE"))?
    );
    fs::write(doc.join("copyright"), copyright)?;
    fs::write(doc.join("third-party.txt"), notices::text(place.root)?)?;
    steps::pass(
        Command::new("gzip")
            .arg("-9n")
            .arg(doc.join("third-party.txt")),
    )?;
    let changes = doc.join("changelog");
    fs::copy(place.root.join("CHANGELOG.md"), &changes)?;
    set_mode(&changes, 0o644)?;
    steps::pass(Command::new("gzip").arg("-9n").arg(&changes))
}

fn put(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file without a folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    set_mode(to, 0o644)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    Ok(fs::set_permissions(path, mode)?)
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> Result<()> {
    bail!("packages are built on Linux")
}

/// Paths that every package must hold, from the root of the system.
fn expected() -> Vec<String> {
    let programs = PROGRAMS.map(|name| format!("usr/bin/{name}"));
    let files = FILES.map(|(_, to)| to.to_owned());
    let doc = ["copyright", "third-party.txt.gz", "changelog.gz"];
    let doc = doc.map(|name| format!("usr/share/doc/{NAME}/{name}"));
    programs.into_iter().chain(files).chain(doc).collect()
}

/// Fails when `listed` (one path a line, with or without `/` or `./` ahead) is not what is expected.
fn check_paths(package: &str, listed: &str) -> Result<()> {
    let paths: Vec<&str> = listed
        .lines()
        .map(|path| path.trim_start_matches(['.', '/']))
        .collect();
    let expected = expected();
    for path in &expected {
        if !paths.contains(&path.as_str()) {
            bail!("{package} lacks {path}");
        }
    }
    for path in paths {
        let is_folder =
            path.ends_with('/') || expected.iter().any(|e| e.starts_with(&format!("{path}/")));
        if !is_folder && !path.is_empty() && !expected.iter().any(|e| e == path) {
            bail!("{package} holds {path}, which nobody put there");
        }
    }
    Ok(())
}

/// Size of a file in megabytes, for people.
fn megabytes(path: &Path) -> Result<f64> {
    Ok(fs::metadata(path)?.len() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_holds_exactly_what_is_expected() {
        let whole: String = expected()
            .iter()
            .map(|path| format!("./{path}\n"))
            .collect();
        let listed = format!("./\n./usr/\n./usr/bin/\n{whole}");
        check_paths("x", &listed).unwrap();
        let lacking = whole.replace("./usr/bin/longtake-desktop\n", "");
        let error = check_paths("x", &lacking).unwrap_err().to_string();
        assert_eq!(error, "x lacks usr/bin/longtake-desktop");
        let more = format!("{whole}/usr/share/doc/longtake/notes.txt\n");
        let error = check_paths("x", &more).unwrap_err().to_string();
        assert!(
            error.contains("notes.txt, which nobody put there"),
            "{error}"
        );
    }

    #[test]
    fn every_file_of_a_package_is_in_the_repository() {
        let root = crate::root().unwrap();
        for (from, _) in FILES {
            assert!(root.join(from).is_file(), "{from}");
        }
    }

    #[test]
    fn the_desktop_knows_the_type_that_the_program_opens() {
        let root = crate::root().unwrap();
        let desktop = fs::read_to_string(root.join(FILES[0].0)).unwrap();
        let types = fs::read_to_string(root.join(FILES[1].0)).unwrap();
        assert!(desktop.contains("MimeType=application/x-longtake;"));
        assert!(types.contains("type=\"application/x-longtake\"") && types.contains("*.longtake"));
        let store = fs::read_to_string(root.join("workflows/store/src/project.rs")).unwrap();
        // "LtPr", as the type's magic has it.
        assert!(store.contains("application_id: 0x4c74_5072"));
        assert!(types.contains("offset=\"68\" value=\"LtPr\""));
    }
}
