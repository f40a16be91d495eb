//! What the machine must have before the product builds.

use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::Command;

use anyhow::{Result, bail};

use crate::steps::{answers, output, pass};

/// What `setup` may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Install what is missing (as root, or after asking).
    Install,
    /// Say what is missing and fail if anything is.
    Dry,
}

/// Debian and Ubuntu packages.
const DEBIAN: &[&str] = &[
    "build-essential",
    "pkg-config",
    "ffmpeg",
    "libavcodec-dev",
    "libavformat-dev",
    "libavutil-dev",
    "libavfilter-dev",
    "libavdevice-dev",
    "libswscale-dev",
    "libswresample-dev",
    "libpostproc-dev",
    "clang",
    "libclang-dev",
    "fonts-noto-core",
    "fonts-noto-cjk",
    "fonts-noto-color-emoji",
];

/// What the window and the tests of it and of the page need besides.
const DEBIAN_WINDOW: &[&str] = &[
    "libwebkit2gtk-4.1-dev",
    "libgtk-3-dev",
    "librsvg2-dev",
    "libsoup-3.0-dev",
    "gstreamer1.0-plugins-base",
    "gstreamer1.0-plugins-good",
    "gstreamer1.0-libav",
    "webkit2gtk-driver",
    "xvfb",
    "xauth",
    "dbus",
    "at-spi2-core",
    "python3-dbus",
    "python3-gi",
    "chromium",
    "libfaketime",
    "iproute2",
];

/// What packages are made and tried with.
const DEBIAN_PACKAGES: &[&str] = &[
    "dpkg-dev",
    "rpm",
    "desktop-file-utils",
    "lintian",
    "mmdebstrap",
];

/// What the machine is set up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// Films on the command line.
    Films,
    /// The window too, and every test.
    Everything,
    /// The packages of the studio.
    Packages,
}

impl For {
    fn packages(self) -> Vec<&'static str> {
        match self {
            Self::Films => DEBIAN.to_vec(),
            Self::Everything => [DEBIAN, DEBIAN_WINDOW].concat(),
            Self::Packages => [DEBIAN, DEBIAN_WINDOW, DEBIAN_PACKAGES].concat(),
        }
    }
}

/// Packages that newer releases no longer have, because FFmpeg dropped the part.
const DEBIAN_WHERE_OFFERED: &[&str] = &["libpostproc-dev"];

const FEDORA: &[&str] = &[
    "gcc",
    "gcc-c++",
    "make",
    "pkgconf-pkg-config",
    "ffmpeg",
    "ffmpeg-devel",
    "clang",
    "clang-devel",
    "google-noto-sans-fonts",
    "google-noto-sans-arabic-fonts",
    "google-noto-sans-cjk-fonts",
    "google-noto-color-emoji-fonts",
];

const ARCH: &[&str] = &[
    "base-devel",
    "pkgconf",
    "ffmpeg",
    "clang",
    "noto-fonts",
    "noto-fonts-cjk",
    "noto-fonts-emoji",
];

const HOMEBREW: &[&str] = &["pkgconf", "ffmpeg", "llvm"];

/// Libraries that must be found by pkg-config where there is no package list to ask.
const LIBRARIES: &[&str] = &[
    "libavcodec",
    "libavformat",
    "libavutil",
    "libavfilter",
    "libswscale",
    "libswresample",
];

/// Kinds of systems whose package names we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Debian,
    Fedora,
    Arch,
    Mac,
    Other,
}

/// Kind of system that an os-release file describes.
fn system_of(os_release: &str) -> System {
    let mut ids = BTreeSet::new();
    for line in os_release.lines() {
        if let Some((key, value)) = line.split_once('=')
            && matches!(key.trim(), "ID" | "ID_LIKE")
        {
            let value = value.trim().trim_matches(['"', '\'']);
            ids.extend(value.split_whitespace().map(str::to_ascii_lowercase));
        }
    }
    let any = |names: &[&str]| names.iter().any(|name| ids.contains(*name));
    if any(&["debian", "ubuntu"]) {
        System::Debian
    } else if any(&["fedora", "rhel", "centos"]) {
        System::Fedora
    } else if any(&["arch"]) {
        System::Arch
    } else {
        System::Other
    }
}

/// Of `wanted`, those that `dpkg-query -W -f '${Package} ${db:Status-Status}\n'` does not list as
/// installed; in the order of `wanted`.
fn missing_of<'a>(wanted: &[&'a str], listing: &str) -> Vec<&'a str> {
    let installed: BTreeSet<&str> = listing
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, status)| status.trim() == "installed")
        .map(|(name, _)| name)
        .collect();
    wanted
        .iter()
        .copied()
        .filter(|name| !installed.contains(name))
        .collect()
}

fn missing_on_debian(wanted: &[&'static str]) -> Result<Vec<&'static str>> {
    // dpkg-query ends with 1 when a name is unknown; what it prints is still right.
    let listing = Command::new("dpkg-query")
        .args(["-W", "-f", "${Package} ${db:Status-Status}\n"])
        .args(wanted)
        .output()?;
    let mut missing = missing_of(wanted, &String::from_utf8_lossy(&listing.stdout));
    if missing
        .iter()
        .any(|name| DEBIAN_WHERE_OFFERED.contains(name))
        && answers(Command::new("dpkg-query").args(["-W", "libavcodec-dev"]))
    {
        // The rest of FFmpeg is there: if this system does not offer the part, it is not needed.
        missing.retain(|name| !DEBIAN_WHERE_OFFERED.contains(name) || offered(name));
    }
    Ok(missing)
}

fn offered(package: &str) -> bool {
    let shown = Command::new("apt-cache")
        .args(["show", "--no-all-versions", package])
        .output();
    shown.is_ok_and(|shown| shown.status.success() && !shown.stdout.is_empty())
}

fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim_ascii() == b"0")
}

/// The one line that installs `packages`.
fn apt_line(packages: &[&str]) -> String {
    format!(
        "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y \
         --no-install-recommends {}",
        packages.join(" ")
    )
}

fn ask(question: &str) -> bool {
    print!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdout().flush().is_ok()
        && std::io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn install_on_debian(missing: &[&'static str]) -> Result<()> {
    if is_root() {
        pass(Command::new("apt-get").arg("update"))?;
        let still = |name: &&&str| !DEBIAN_WHERE_OFFERED.contains(*name) || offered(name);
        let packages: Vec<&str> = missing.iter().filter(still).copied().collect();
        return pass(
            Command::new("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["install", "-y", "--no-install-recommends"])
                .args(packages),
        );
    }
    let line = apt_line(missing);
    let can_ask = std::io::stdin().is_terminal() && answers(Command::new("sudo").arg("-V"));
    if can_ask && ask("run it now with sudo?") {
        return pass(Command::new("sudo").args(["sh", "-c", &line]));
    }
    bail!(
        "system packages are missing and this user may not install them: run the line above as root"
    )
}

/// What is missing, by trying: for systems whose package list is not asked.
fn missing_by_probe() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !answers(Command::new("cc").arg("--version")) {
        missing.push("a C compiler");
    }
    if !answers(Command::new("pkg-config").arg("--version")) {
        missing.push("pkg-config");
    }
    if !answers(Command::new("ffmpeg").arg("-version")) {
        missing.push("ffmpeg");
    }
    if !answers(Command::new("clang").arg("--version")) {
        missing.push("clang");
    }
    for library in LIBRARIES {
        if !answers(Command::new("pkg-config").args(["--exists", library])) {
            missing.push(library);
        }
    }
    missing
}

fn install_line(system: System) -> String {
    match system {
        System::Debian => apt_line(DEBIAN),
        System::Fedora => format!("sudo dnf install {}", FEDORA.join(" ")),
        System::Arch => format!("sudo pacman -S --needed {}", ARCH.join(" ")),
        System::Mac => format!("brew install {}", HOMEBREW.join(" ")),
        System::Other => format!(
            "install what your system calls the Debian packages {}",
            DEBIAN.join(" ")
        ),
    }
}

/// Brings the machine to where the product builds, or says how.
///
/// # Errors
/// Something is missing and may not (`Mode::Dry`, no root) or could not be installed.
pub(crate) fn run(mode: Mode, purpose: For) -> Result<()> {
    let system = if cfg!(target_os = "macos") {
        System::Mac
    } else {
        system_of(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
    };
    if system != System::Debian {
        let missing = missing_by_probe();
        if missing.is_empty() {
            println!("setup: compilers and FFmpeg are here");
            return Ok(());
        }
        println!("{}", install_line(system));
        bail!(
            "missing on this machine: {}; the line above installs them",
            missing.join(", ")
        );
    }
    let wanted = purpose.packages();
    let missing = missing_on_debian(&wanted)?;
    if missing.is_empty() {
        println!("setup: all {} system packages are here", wanted.len());
        return Ok(());
    }
    println!("{}", apt_line(&missing));
    if mode == Mode::Dry {
        bail!(
            "{} system packages are missing; the line above installs them",
            missing.len()
        );
    }
    install_on_debian(&missing)?;
    let left = missing_on_debian(&wanted)?;
    if !left.is_empty() {
        bail!("still missing after the installation: {}", left.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_told_by_id_and_by_likeness() {
        assert_eq!(system_of("NAME=x\nID=debian\n"), System::Debian);
        assert_eq!(
            system_of("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
            System::Debian
        );
        assert_eq!(
            system_of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\""),
            System::Fedora
        );
        assert_eq!(system_of("ID=manjaro\nID_LIKE=arch"), System::Arch);
        assert_eq!(system_of("VERSION_ID=debian\n"), System::Other);
        assert_eq!(system_of(""), System::Other);
    }

    #[test]
    fn only_installed_packages_count() {
        let listing = "clang installed\nffmpeg config-files\npkg-config not-installed\n";
        let missing = missing_of(&["clang", "ffmpeg", "pkg-config", "libclang-dev"], listing);
        assert_eq!(missing, ["ffmpeg", "pkg-config", "libclang-dev"]);
        assert_eq!(missing_of(&["clang"], "clang installed\n"), [""; 0]);
    }

    #[test]
    fn the_line_names_the_missing_packages_only() {
        let line = apt_line(&["clang", "ffmpeg"]);
        assert!(line.starts_with("apt-get update && "), "{line}");
        assert!(
            line.ends_with("--no-install-recommends clang ffmpeg"),
            "{line}"
        );
        for system in [
            System::Debian,
            System::Fedora,
            System::Arch,
            System::Mac,
            System::Other,
        ] {
            assert!(install_line(system).contains("ffmpeg"), "{system:?}");
        }
    }
}
