//! The examples that start workers elsewhere are well formed, and name options that there are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/cluster")
}

fn text(name: &str) -> String {
    fs::read_to_string(assets().join(name)).unwrap()
}

#[test]
fn the_unit_passes_systemd() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("longtake-worker.service");
    // It looks for the program too, which is not installed here.
    let text = text("longtake-worker.service").replace("/usr/local/bin/longtake", "/bin/true");
    fs::write(&unit, text).unwrap();
    let mut command = Command::new("systemd-analyze");
    let Ok(output) = command.arg("verify").arg(&unit).output() else {
        println!("no systemd-analyze here: the unit was not looked at");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("longtake"),
        "{said}"
    );
}

#[test]
fn scripts_are_read_by_their_shells() {
    for (shell, name) in [("sh", "ssh.sh"), ("bash", "slurm.sbatch")] {
        let status = Command::new(shell)
            .arg("-n")
            .arg(assets().join(name))
            .status();
        assert!(status.unwrap().success(), "{name}");
    }
}

#[test]
fn every_option_of_a_worker_is_one_of_the_program() {
    let help = Command::new(PROGRAM)
        .args(["worker", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for name in [
        "longtake-worker.service",
        "ssh.sh",
        "slurm.sbatch",
        "kubernetes.yaml",
    ] {
        let text = text(name);
        let (_, after) = text
            .split_once("worker --join")
            .or(text.split_once("- worker"))
            .unwrap();
        let words = after.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
        for option in words.take(20).filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{name}: {option} is not in\n{help}");
        }
        assert!(help.contains("--join"));
    }
}
