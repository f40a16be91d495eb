//! The machine on which a figure was measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// What a reader needs to judge a figure: processor, memory, system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the processor; "unknown" where the system doesn't say.
    pub cpu: String,
    /// Threads that may run at once.
    pub cores: usize,
    /// Memory of the machine in bytes; 0 where the system doesn't say.
    pub memory_bytes: u64,
    /// Name and version of the system.
    pub os: String,
    /// Instruction set, as in `x86_64`.
    pub arch: String,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (cpu, memory_bytes, os) = if cfg!(target_os = "macos") {
            let sysctl = |name| said(Command::new("sysctl").args(["-n", name]));
            let memory = sysctl("hw.memsize").and_then(|text| text.parse().ok());
            let version = said(Command::new("sw_vers").arg("-productVersion"));
            let os = format!("macOS {}", version.unwrap_or_default());
            (sysctl("machdep.cpu.brand_string"), memory, os)
        } else {
            let read = |path| fs::read_to_string(path).unwrap_or_default();
            let release = read("/etc/os-release");
            let os = shell_value(&release, "PRETTY_NAME");
            let memory = memory_of(&read("/proc/meminfo"));
            let os = os.unwrap_or_else(|| std::env::consts::OS.to_owned());
            (cpu_of(&read("/proc/cpuinfo")), memory, os)
        };
        Self {
            cpu: cpu
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "unknown".to_owned()),
            cores,
            memory_bytes: memory_bytes.unwrap_or(0),
            os: os.trim().to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
        }
    }
}

/// First line of what `command` prints; `None` when it fails.
pub(crate) fn said(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Commit of the checkout at `root`, with `+dirty` when tracked files differ from it; "unknown"
/// where there is no git.
pub(crate) fn commit_of(root: &Path) -> String {
    let git = || {
        let mut command = Command::new("git");
        command.current_dir(root);
        command
    };
    let Some(commit) = said(git().args(["rev-parse", "HEAD"])) else {
        return "unknown".to_owned();
    };
    let changed = said(git().args(["status", "--porcelain", "--untracked-files=no"]));
    match changed {
        Some(changes) if changes.is_empty() => commit,
        _ => commit + "+dirty",
    }
}

fn shell_value(text: &str, key: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// Name of the processor in a Linux cpuinfo file. Arm kernels give numbers instead of a name.
fn cpu_of(cpuinfo: &str) -> Option<String> {
    let mut values = BTreeMap::new();
    for line in cpuinfo.lines() {
        if let Some((key, value)) = line.split_once(':') {
            values.entry(key.trim()).or_insert_with(|| value.trim());
        }
    }
    if let Some(name) = values.get("model name").or_else(|| values.get("Model")) {
        return Some((*name).to_owned());
    }
    let part = values.get("CPU part")?;
    let maker = values.get("CPU implementer").copied().unwrap_or("?");
    Some(format!("Arm implementer {maker} part {part}"))
}

/// Bytes of memory in a Linux meminfo file.
fn memory_of(meminfo: &str) -> Option<u64> {
    let rest = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_named_on_intel_and_arm() {
        let intel =
            "processor\t: 0\nmodel name\t: A  Chip @ 2.1GHz\nprocessor : 1\nmodel name: B\n";
        assert_eq!(cpu_of(intel).as_deref(), Some("A  Chip @ 2.1GHz"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd87\n";
        assert_eq!(
            cpu_of(arm).as_deref(),
            Some("Arm implementer 0x41 part 0xd87")
        );
        assert_eq!(cpu_of(""), None);
    }

    #[test]
    fn memory_is_read_in_bytes_and_never_overflows() {
        assert_eq!(
            memory_of("MemFree: 1 kB\nMemTotal:  2048 kB\n"),
            Some(2_097_152)
        );
        assert_eq!(memory_of("MemTotal: 18446744073709551615 kB\n"), None);
        assert_eq!(memory_of("MemTotal: many kB\n"), None);
    }

    #[test]
    fn this_machine_has_a_system_and_a_core() {
        let machine = Machine::this();
        assert!(machine.cores >= 1 && !machine.os.is_empty() && !machine.cpu.is_empty());
    }

    #[test]
    fn a_folder_without_git_has_no_commit() {
        assert_eq!(commit_of(Path::new("/")), "unknown");
    }
}
