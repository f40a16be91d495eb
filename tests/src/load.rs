//! What a process took of the processor, and how busy the machine was meanwhile.
//!
//! Wall time on a machine that does other things beside says more about these. Processor time
//! of both sides of a comparison, taken in turn, hardly changes with them.

use std::fs;

/// Hundredths of a second: what Linux counts these times in on every common machine.
const TICKS_A_SEC: f64 = 100.0;

/// Processor seconds of this process and of its children that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuTime {
    /// All threads of this process, ended ones too.
    pub own_secs: f64,
    /// Children that were waited for, and theirs.
    pub children_secs: f64,
}

impl CpuTime {
    /// Until now; `None` where the system does not say.
    pub fn now() -> Option<Self> {
        Self::of_stat(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// From the text of a Linux `stat` file of a process.
    fn of_stat(stat: &str) -> Option<Self> {
        // The second field is the program's name, in which anything may stand.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut ticks = fields.split_whitespace().skip(11);
        let mut pair = || -> Option<f64> {
            let user: f64 = ticks.next()?.parse().ok()?;
            let system: f64 = ticks.next()?.parse().ok()?;
            Some((user + system) / TICKS_A_SEC)
        };
        Some(Self {
            own_secs: pair()?,
            children_secs: pair()?,
        })
    }

    /// What came to it since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            own_secs: self.own_secs - earlier.own_secs,
            children_secs: self.children_secs - earlier.children_secs,
        }
    }
}

/// Processor seconds of the calling thread, to the nanosecond; `None` where the system does not
/// say.
pub fn thread_secs() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}

/// Threads that ran or waited to run over the last minute; `None` where the system does not say.
pub fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_program_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 300 25 20 0 1 0";
        let time = CpuTime::of_stat(stat).unwrap();
        assert_eq!((time.own_secs, time.children_secs), (2.0, 3.25));
        assert_eq!(CpuTime::of_stat("7 (a) S 1 2"), None);
        assert_eq!(CpuTime::of_stat(""), None);
    }

    #[test]
    fn differences_are_of_each_part() {
        let earlier = CpuTime {
            own_secs: 1.0,
            children_secs: 2.0,
        };
        let later = CpuTime {
            own_secs: 1.5,
            children_secs: 4.0,
        };
        let since = later.since(earlier);
        assert_eq!((since.own_secs, since.children_secs), (0.5, 2.0));
    }
}
