//! The package of Fedora and its kin. It asks for libraries by their own names, so that it installs
//! where there are those of the same versions.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{ABOUT, LICENCE, MAKER, NAME, Place, SUMMARY, check_paths, expected, megabytes};
use crate::steps;

/// As of the .deb, by Fedora's names.
const REQUIRES: [&str; 3] = [
    "gstreamer1-plugins-good",
    "gstreamer1-plugin-libav",
    "python3-pip",
];
const RECOMMENDS: [&str; 3] = [
    "google-noto-sans-fonts",
    "google-noto-sans-cjk-fonts",
    "google-noto-color-emoji-fonts",
];

fn architecture() -> Result<String> {
    let told = steps::output(Command::new("rpm").args(["--eval", "%{_arch}"]))?;
    Ok(String::from_utf8_lossy(&told).trim().to_owned())
}

fn path(place: &Place<'_>) -> Result<PathBuf> {
    let name = format!("{NAME}-{}-1.{}.rpm", place.version, architecture()?);
    Ok(place.folder.join(name))
}

fn spec(place: &Place<'_>) -> String {
    let lines = |word: &str, names: &[&str]| -> String {
        names
            .iter()
            .map(|name| format!("{word}: {name}\n"))
            .collect()
    };
    let (requires, recommends) = (
        lines("Requires", &REQUIRES),
        lines("Recommends", &RECOMMENDS),
    );
    let files: String = expected().iter().map(|path| format!("/{path}\n")).collect();
    let (version, stage) = (&place.version, place.stage.display());
    // Nothing is stripped or packed again, and no build ids are linked: the tree is as it should be.
    format!(
        "%global debug_package %{{nil}}\n%global __os_install_post %{{nil}}\n\
         %define _build_id_links none\n%define _binary_payload {}\n\
         Name: {NAME}\nVersion: {version}\nRelease: 1\nSummary: {SUMMARY}\nLicense: {LICENCE}\n\
         Group: Applications/Multimedia\nVendor: {MAKER}\n{requires}{recommends}\n\
         %description\n{ABOUT}\n\n%install\ncp -a \"{stage}/.\" \"%{{buildroot}}/\"\n\n\
         %files\n%defattr(-,root,root)\n{files}",
        if place.small { "w2.xzdio" } else { "w1.gzdio" },
    )
}

/// Packs the staged tree.
pub(super) fn build(place: &Place<'_>) -> Result<()> {
    let work = place.folder.join("rpmbuild");
    fs::create_dir_all(&work)?;
    let file = work.join("longtake.spec");
    fs::write(&file, spec(place))?;
    let top = format!("_topdir {}", work.display());
    let out = format!("_rpmdir {}", place.folder.display());
    steps::pass(
        Command::new("rpmbuild")
            .args(["-bb", "--quiet", "--define", &top, "--define", &out])
            .args([
                "--define",
                "_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
            ])
            .arg(&file),
    )?;
    fs::remove_dir_all(work).context("cannot tidy up after rpmbuild")
}

/// Checks what the package holds and asks for.
pub(super) fn check(place: &Place<'_>) -> Result<()> {
    let rpm = path(place)?;
    let ask = |what: &str| -> Result<String> {
        let told = steps::output(Command::new("rpm").args(["-qp", what]).arg(&rpm))?;
        Ok(String::from_utf8_lossy(&told).into_owned())
    };
    check_paths("the .rpm", &ask("-l")?)?;
    let requires = ask("-R")?;
    for library in [
        "libavcodec.so.",
        "libavformat.so.",
        "libwebkit2gtk-4.1.so.",
        "libgtk-3.so.",
        "libc.so.6(GLIBC_",
        "python3-pip",
    ] {
        if !requires.lines().any(|line| line.starts_with(library)) {
            bail!("the .rpm does not ask for {library}:\n{requires}");
        }
    }
    let scripts = ask("--scripts")?;
    if !scripts.trim().is_empty() {
        bail!("the .rpm runs scripts, expected none:\n{scripts}");
    }
    steps::pass(Command::new("rpm").args(["-K", "--nosignature"]).arg(&rpm))?;
    println!(
        ".rpm: {:.1} MB\n  needs {}",
        megabytes(&rpm)?,
        requires.lines().collect::<Vec<_>>().join(", ")
    );
    Ok(())
}
