//! The .deb in a system that has nothing else: installed with what it asks for and no more,
//! started, looked at, removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{NAME, PROGRAMS, Place, expected};
use crate::{steps, ui};

/// What the test needs inside besides: a display, WebKit's driver, a camera.
const TOOLS: [&str; 6] = [
    "xvfb",
    "xauth",
    "dbus",
    "dbus-x11",
    "webkit2gtk-driver",
    "imagemagick",
];

/// Where the system keeps packages that it downloaded.
const ARCHIVES: &str = "var/cache/apt/archives";

/// Who starts the program there.
const MAKER: &str = "maker";
/// Where what they make lies.
const MAKER_HOME: &str = "/srv/maker";

/// Goes into the folder `$1` as the user `$2` with the home `$3`, and runs the rest there. Not in
/// the shell's place: the first process of a namespace is told of less than others are.
const ENTER: &str = "mount -t proc proc \"$1/proc\" && mount --rbind /dev \"$1/dev\" || exit 125
folder=$1 user=$2 home=$3; shift 3
chroot --userspec=\"$user\" \"$folder\" env -i HOME=\"$home\" LANG=C.UTF-8 \\
  PATH=/usr/bin:/bin:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive \"$@\"
exit $?
";

/// Namespaces that take what was mounted and started with them when they end.
const APART: [&str; 5] = ["unshare", "--mount", "--pid", "--fork", "--kill-child"];

/// A Debian in a folder.
struct Clean {
    folder: PathBuf,
    /// The script that goes into it.
    enter: PathBuf,
}

impl Clean {
    /// A command inside, with kernel file systems that are gone when it ends.
    fn command(&self, user: &str, words: &[&str]) -> Command {
        let (program, rest) = APART.split_first().unwrap_or((&"unshare", &[]));
        let mut command = Command::new(program);
        command
            .args(rest)
            .arg("sh")
            .args(self.way_in(user))
            .args(words);
        command
    }

    /// The script with its arguments, to go in as `user`.
    fn way_in(&self, user: &str) -> [PathBuf; 4] {
        let home = match user {
            MAKER => MAKER_HOME,
            _ => "/tmp",
        };
        let (enter, folder) = (self.enter.clone(), self.folder.clone());
        [enter, folder, user.into(), home.into()]
    }

    fn run(&self, words: &[&str]) -> Result<()> {
        steps::pass(&mut self.command("root", words))
    }

    fn told(&self, user: &str, words: &[&str]) -> Result<String> {
        let told = steps::output(&mut self.command(user, words))?;
        Ok(String::from_utf8_lossy(&told).into_owned())
    }

    fn has(&self, path: &str) -> bool {
        self.folder.join(path).symlink_metadata().is_ok()
    }

    /// Whether a list that the system keeps has these words in one line.
    fn lists(&self, path: &str, words: &str) -> bool {
        let text = fs::read_to_string(self.folder.join(path)).unwrap_or_default();
        text.lines().any(|line| line.contains(words))
    }
}

/// This system's release, by name.
fn release() -> Result<String> {
    let about = fs::read_to_string("/etc/os-release")?;
    let name = about
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(name.context("/etc/os-release names no release")?.to_owned())
}

/// A fresh system of this release. What it is unpacked from is made once.
fn fresh(place: &Place<'_>) -> Result<Clean> {
    let release = release()?;
    let base = place.folder.join(format!("{release}.tar"));
    if !base.is_file() {
        let partial = place.folder.join(format!("{release}.partial.tar"));
        steps::pass(
            Command::new("mmdebstrap")
                .args(["--variant=minbase", "--include=ca-certificates", &release])
                .arg(&partial),
        )?;
        fs::rename(partial, &base)?;
    }
    let folder = place.folder.join("clean");
    // What the last one downloaded is not downloaded again.
    let (archives, kept) = (folder.join(ARCHIVES), place.folder.join("archives"));
    if archives.is_dir() {
        if kept.exists() {
            fs::remove_dir_all(&kept)?;
        }
        fs::rename(&archives, &kept)?;
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the last clean system")?;
    }
    fs::create_dir_all(&folder)?;
    steps::pass(
        Command::new("tar")
            .args([
                "--extract",
                "--numeric-owner",
                "--exclude=./dev/*",
                "--file",
            ])
            .arg(&base)
            .arg("--directory")
            .arg(&folder),
    )?;
    if kept.is_dir() {
        fs::remove_dir_all(&archives)?;
        fs::rename(&kept, &archives)?;
    }
    fs::copy("/etc/resolv.conf", folder.join("etc/resolv.conf"))?;
    // Nothing is started by installing it.
    let policy = folder.join("usr/sbin/policy-rc.d");
    fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
    super::set_mode(&policy, 0o755)?;
    let enter = place.folder.join("enter.sh");
    fs::write(&enter, ENTER)?;
    Ok(Clean { folder, enter })
}

/// Every file of the system, but for what its own tools keep.
fn files(folder: &Path, below: &str, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = match below {
            "" => name,
            _ => format!("{below}/{name}"),
        };
        if matches!(
            path.as_str(),
            "proc" | "sys" | "dev" | "tmp" | "srv" | "var"
        ) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            files(folder, &path, found)?;
        }
        found.insert(path);
    }
    Ok(())
}

/// Installs, starts, looks at and removes the package.
///
/// # Errors
/// Something is not as a user of a fresh system must find it.
pub(super) fn run(place: &Place<'_>) -> Result<()> {
    let clean = fresh(place)?;
    clean.run(&["apt-get", "update", "-q"])?;
    let mut before = BTreeSet::new();
    files(&clean.folder, "", &mut before)?;
    let deb = place.deb()?;
    fs::copy(&deb, clean.folder.join("tmp/longtake.deb"))?;
    let install = ["apt-get", "install", "-q", "-y", "--no-install-recommends"];
    clean.run(&[&install[..], &["/tmp/longtake.deb"]].concat())?;
    installed(&clean)?;
    clean.run(&[&install[..], &TOOLS[..]].concat())?;
    clean.run(&["useradd", "--create-home", "--home-dir", MAKER_HOME, MAKER])?;
    // What this machine trusts: its network may have certificates of its own.
    let certificates = "etc/ssl/certs/ca-certificates.crt";
    if let Ok(trusted) = fs::read(Path::new("/").join(certificates)) {
        fs::write(clean.folder.join(certificates), trusted)?;
    }
    let out = ui::pictures_folder(place.root)?;
    fs::create_dir_all(&out)?;
    steps::pass(
        Command::new("node")
            .arg(place.root.join("ui/tests/e2e/installed.mjs"))
            .arg(out.join("installed.png"))
            .args(APART)
            .arg("sh")
            .args(clean.way_in(MAKER)),
    )?;
    removed(&clean, &before)
}

/// After the installation: with nothing of the test's own tools, all is there.
fn installed(clean: &Clean) -> Result<()> {
    for program in PROGRAMS {
        let path = format!("/usr/bin/{program}");
        let libraries = clean.told("root", &["ldd", &path])?;
        let lacking: Vec<&str> = libraries
            .lines()
            .filter(|line| line.contains("not found"))
            .collect();
        if !lacking.is_empty() {
            bail!("{program} lacks libraries:\n{}", lacking.join("\n"));
        }
    }
    let help = clean.told("root", &["longtake", "--help"])?;
    let models = clean.told("root", &["longtake", "models", "list"])?;
    for (told, word) in [(&help, "serve"), (&models, "kokoro")] {
        if !told.contains(word) {
            bail!("the program does not tell of {word}:\n{told}");
        }
    }
    for (list, words) in [
        ("usr/share/mime/globs2", "application/x-longtake:*.longtake"),
        (
            "usr/share/applications/mimeinfo.cache",
            "application/x-longtake=longtake-desktop.desktop",
        ),
    ] {
        if !clean.lists(list, words) {
            bail!("{list} does not have {words}");
        }
    }
    println!("installed: no library lacks, the programs answer, .longtake is known");
    Ok(())
}

/// After the removal: nothing of the package is left but what the maker made.
fn removed(clean: &Clean, before: &BTreeSet<String>) -> Result<()> {
    clean.run(&["apt-get", "purge", "-q", "-y", NAME])?;
    let left: Vec<String> = expected()
        .into_iter()
        .filter(|path| clean.has(path))
        .collect();
    let mut after = BTreeSet::new();
    files(&clean.folder, "", &mut after)?;
    let named: Vec<&String> = after
        .difference(before)
        .filter(|path| path.contains(NAME))
        .collect();
    if !left.is_empty() || !named.is_empty() {
        bail!("the removal leaves {left:?} {named:?}");
    }
    for list in [
        "usr/share/mime/globs2",
        "usr/share/applications/mimeinfo.cache",
    ] {
        if clean.lists(list, "x-longtake") {
            bail!("the removal leaves a line in {list}");
        }
    }
    let kept = format!(
        "{}/.local/share/longtake",
        MAKER_HOME.trim_start_matches('/')
    );
    if !clean.has(&kept) {
        bail!("the removal took what the maker made: {kept}");
    }
    println!("removed: nothing is left but the maker's own folders");
    Ok(())
}
