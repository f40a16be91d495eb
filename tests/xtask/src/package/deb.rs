//! The package of Debian and its kin.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{ABOUT, MAKER, NAME, PROGRAMS, Place, SUMMARY, check_paths, megabytes};
use crate::steps;

/// What the programs need while they run, beyond the libraries that they are linked with: the
/// window's player takes MP4 apart and decodes it, pip fetches the models, and the system's tools
/// enter the type of projects into their lists.
const DEPENDS: [&str; 5] = [
    "gstreamer1.0-plugins-good",
    "gstreamer1.0-libav",
    "python3-pip",
    "desktop-file-utils",
    "shared-mime-info",
];
/// Letters and pictures that the fonts which come along lack, notices, and a keyring.
const RECOMMENDS: [&str; 4] = [
    "fonts-noto-core",
    "fonts-noto-cjk",
    "fonts-noto-color-emoji",
    "dbus-user-session | dbus-x11",
];
/// A further voice comes as packages of npm.
const SUGGESTS: [&str; 1] = ["npm"];

/// Faults that the distribution's own checker finds and that stay, with why: our packages come from
/// outside of the distribution.
const LINT_KEPT: [&str; 8] = [
    // No page of the old manual: `longtake help` has it.
    "no-manual-page",
    // There is no bug of the distribution to close, and no mail address.
    "initial-upload-closes-no-bugs",
    "bogus-mail-host",
    "wrong-changelog",
    // The project's own list of changes, as it is everywhere else.
    "syntax-error-in-debian-changelog",
    // The licences' texts go along whole: the package is not only for systems that have them.
    "copyright-file-contains-full-apache-2-license",
    "copyright-not-using-common-license-for-apache2",
    // SQLite and zlib are linked in, of the versions that were tested.
    "embedded-library",
];

pub(super) fn architecture() -> Result<String> {
    let told = steps::output(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(String::from_utf8_lossy(&told).trim().to_owned())
}

/// The packages that hold the libraries which the programs are linked with, as `Depends` has them.
fn linked(place: &Place<'_>) -> Result<String> {
    // The tool wants the tree of a source package.
    let work = place.folder.join("source");
    fs::create_dir_all(work.join("debian"))?;
    fs::write(
        work.join("debian/control"),
        format!("Source: {NAME}\n\nPackage: {NAME}\nArchitecture: any\n"),
    )?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.arg("-O").current_dir(&work);
    for program in PROGRAMS {
        command
            .arg("-e")
            .arg(place.stage.join("usr/bin").join(program));
    }
    let told = String::from_utf8_lossy(&steps::output(&mut command)?).into_owned();
    let depends = told
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="))
        .context("dpkg-shlibdeps names no packages")?;
    Ok(depends.to_owned())
}

fn installed_kilobytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += match about.is_dir() {
            true => 1 + installed_kilobytes(&entry.path())?,
            false => about.len().div_ceil(1024),
        };
    }
    Ok(sum)
}

/// `text` in lines that a control file takes, each behind one space.
fn folded(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, String::len);
        if line + word.len() > 76 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn control(place: &Place<'_>) -> Result<String> {
    let (version, architecture) = (&place.version, architecture()?);
    let kilobytes = installed_kilobytes(&place.stage)?;
    let depends = format!("{}, {}", linked(place)?, DEPENDS.join(", "));
    let (recommends, suggests) = (RECOMMENDS.join(", "), SUGGESTS.join(", "));
    let about = folded(ABOUT);
    Ok(format!(
        "Package: {NAME}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {MAKER}\n\
         Installed-Size: {kilobytes}\nDepends: {depends}\nRecommends: {recommends}\n\
         Suggests: {suggests}\nSection: video\nPriority: optional\nDescription: {SUMMARY}\n{about}\n"
    ))
}

/// Packs the staged tree.
pub(super) fn build(place: &Place<'_>) -> Result<()> {
    let control_folder = place.stage.join("DEBIAN");
    let text = control(place)?;
    fs::create_dir_all(&control_folder)?;
    fs::write(control_folder.join("control"), text)?;
    let packed = steps::pass(
        Command::new("dpkg-deb")
            .args(["--build", "--root-owner-group"])
            .args(match place.small {
                true => ["-Zxz", "-z2"],
                false => ["-Zgzip", "-z1"],
            })
            .arg(&place.stage)
            .arg(place.deb()?),
    );
    // The tree is the other package's too.
    fs::remove_dir_all(control_folder)?;
    packed
}

/// Checks what the package holds and asks for.
pub(super) fn check(place: &Place<'_>) -> Result<()> {
    let deb = place.deb()?;
    let archive = steps::output(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&deb))?;
    let listing = place.folder.join("files.tar");
    fs::write(&listing, archive)?;
    let paths = steps::output(Command::new("tar").arg("-tf").arg(&listing))?;
    fs::remove_file(listing)?;
    check_paths("the .deb", &String::from_utf8_lossy(&paths))?;
    let field = |name: &str| -> Result<String> {
        let told = steps::output(Command::new("dpkg-deb").arg("-f").arg(&deb).arg(name))?;
        Ok(String::from_utf8_lossy(&told).trim().to_owned())
    };
    let depends = field("Depends")?;
    for library in [
        "libavcodec",
        "libavformat",
        "libwebkit2gtk-4.1",
        "libgtk-3",
        "libc6",
    ] {
        if !depends.split(", ").any(|one| one.starts_with(library)) {
            bail!("the .deb does not ask for {library}: {depends}");
        }
    }
    println!(
        ".deb: {:.1} MB, {} kB installed\n  needs {depends}",
        megabytes(&deb)?,
        field("Installed-Size")?
    );
    if steps::answers(Command::new("desktop-file-validate").arg("--help")) {
        let desktop = place
            .root
            .join("src-tauri/package/longtake-desktop.desktop");
        steps::pass(Command::new("desktop-file-validate").arg(desktop))?;
    }
    lint(&deb)
}

/// The distribution's own checker, where it is here.
fn lint(deb: &Path) -> Result<()> {
    if !steps::answers(Command::new("lintian").arg("--version")) {
        println!("lintian is not here: the .deb is not linted");
        return Ok(());
    }
    let told = Command::new("lintian")
        .args(["--allow-root", "--tag-display-limit", "0"])
        .arg(deb)
        .output()?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let faults: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("E:") || line.starts_with("W:"))
        .filter(|line| !LINT_KEPT.iter().any(|kept| line.contains(kept)))
        .collect();
    if !faults.is_empty() {
        bail!("lintian finds faults in the .deb:\n{}", faults.join("\n"));
    }
    println!("lintian finds no fault that does not stay on purpose");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_folded_as_control_files_want_it() {
        let lines = folded(&"word ".repeat(40));
        assert!(lines.lines().count() > 2);
        for line in lines.lines() {
            assert!(line.starts_with(" word") && line.len() <= 77, "{line:?}");
        }
    }
}
