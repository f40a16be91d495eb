//! How much memory this process has taken.

/// Memory of this machine and what is free of it, in bytes; 0 where the system does not say.
pub(crate) fn machine_bytes() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
        kib.and_then(|kib| kib.trim().parse::<u64>().ok())
            .map_or(0, |kib| kib * 1024)
    };
    (of("MemTotal:"), of("MemAvailable:"))
}

/// What is free on the disk of `path`, and how large it is, in bytes; nothing where the system does
/// not say.
pub(crate) fn disk_bytes(path: &std::path::Path) -> Option<(u64, u64)> {
    let there = path.ancestors().find(|path| path.exists())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    Some((bytes(disk.f_bavail), bytes(disk.f_blocks)))
}

/// Most resident memory so far in bytes; 0 where the system does not say.
pub fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix("kB"))
        .map(str::trim);
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
