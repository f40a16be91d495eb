//! Memory of machines whose device has no memory of its own: what the host can spare.
//!
//! There a system that runs out of memory freezes before anything fails, so memory is refused early: what is asked for has
//! to fit into what the system calls available (`MemAvailable`: free, and pages of files that it can drop), less a reserve.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes left to everything else, at least, and parts of the whole memory where that is more.
const RESERVE_BYTES: u64 = 4 << 30;
const RESERVE_PART: u64 = 16;

/// Where the system tells of its memory.
#[derive(Debug, Clone)]
pub struct HostMemory {
    place: PathBuf,
    reserve_bytes: Option<u64>,
}

/// What the system told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostFigures {
    /// All memory.
    pub total_bytes: u64,
    /// What could be taken without swapping.
    pub available_bytes: u64,
    /// What has to be left.
    pub reserve_bytes: u64,
}

impl HostFigures {
    /// What may be taken now.
    pub fn spare_bytes(&self) -> u64 {
        self.available_bytes.saturating_sub(self.reserve_bytes)
    }
}

impl Default for HostMemory {
    fn default() -> Self {
        Self::at(Path::new("/proc/meminfo"))
    }
}

/// The number of kilobytes of the line that begins with `name`.
fn line(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

impl HostMemory {
    /// As told by the file at `place`.
    pub fn at(place: &Path) -> Self {
        Self {
            place: place.to_owned(),
            reserve_bytes: None,
        }
    }

    /// With another reserve.
    #[must_use]
    pub fn with_reserve(mut self, bytes: u64) -> Self {
        self.reserve_bytes = Some(bytes);
        self
    }

    /// What the system tells now; `None` where it does not.
    pub fn figures(&self) -> Option<HostFigures> {
        let text = fs::read_to_string(&self.place).ok()?;
        let total_bytes = line(&text, "MemTotal:")?;
        let reserve = RESERVE_BYTES.max(total_bytes / RESERVE_PART);
        Some(HostFigures {
            total_bytes,
            available_bytes: line(&text, "MemAvailable:")?,
            reserve_bytes: self.reserve_bytes.unwrap_or(reserve),
        })
    }

    /// `Ok` when `bytes` may be taken now.
    ///
    /// # Errors
    /// What was asked for and what there is, for people. A system that does not tell refuses nothing.
    pub fn admit(&self, bytes: usize) -> Result<(), String> {
        let Some(figures) = self.figures() else {
            return Ok(());
        };
        if bytes as u64 <= figures.spare_bytes() {
            return Ok(());
        }
        Err(format!(
            "the device's memory is the host's: {} of {} bytes are available and {} stay free",
            figures.available_bytes, figures.total_bytes, figures.reserve_bytes
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (tempfile::TempDir, HostMemory) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("meminfo");
        fs::write(&place, text).unwrap();
        let memory = HostMemory::at(&place);
        (folder, memory)
    }

    #[test]
    fn what_the_system_can_drop_counts_and_the_reserve_stays() {
        // A machine of 128 GiB, most of it pages of files.
        let (_kept, memory) = told(
            "MemTotal:       134217728 kB\nMemFree:          1048576 kB\n\
             MemAvailable:   104857600 kB\nCached:         100000000 kB\n",
        );
        let figures = memory.figures().unwrap();
        assert_eq!(figures.available_bytes, 100 << 30);
        assert_eq!(figures.reserve_bytes, 8 << 30);
        assert_eq!(figures.spare_bytes(), 92 << 30);
        memory.admit(92 << 30).unwrap();
        let refused = memory.admit((92 << 30) + 1).unwrap_err();
        for figure in [100u64 << 30, 128 << 30, 8 << 30] {
            assert!(refused.contains(&figure.to_string()), "{refused}");
        }
        let small = memory.with_reserve(1 << 30);
        small.admit(99 << 30).unwrap();
    }

    #[test]
    fn it_is_asked_again_each_time() {
        let (kept, memory) = told("MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\n");
        memory.admit(8 << 30).unwrap();
        let less = "MemTotal: 16777216 kB\nMemAvailable: 5242880 kB\n";
        fs::write(kept.path().join("meminfo"), less).unwrap();
        assert!(memory.admit(2 << 30).is_err());
        memory.admit(1 << 30).unwrap();
    }

    #[test]
    fn a_system_that_does_not_tell_refuses_nothing() {
        for text in [
            "",
            "MemTotal: much kB\n",
            "MemTotal: 1 kB\n",
            "MemAvailable: 99999999999999999999 kB\n",
        ] {
            let (_kept, memory) = told(text);
            assert_eq!(memory.figures(), None, "{text:?}");
            memory.admit(usize::MAX).unwrap();
        }
        HostMemory::at(Path::new("/nowhere/meminfo"))
            .admit(1)
            .unwrap();
    }
}
