//! Kinds of fault, and when they strike.

use std::time::Duration;

use engine_base::ContentHash;

use crate::scene::WORKERS;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing, on four hosts.
    Nothing,
    /// A worker is killed and started again five seconds later.
    WorkerKilled,
    /// The server is killed; `cluster up` starts it again.
    ServerKilled,
    /// The owner is killed and started again.
    OwnerKilled,
    /// A worker's link is cut for so many seconds.
    LinkCut(u64),
    /// Every link loses 5 % and holds each packet back for 50 ms on each way.
    SlowLinks,
    /// A worker's disk is full.
    DiskFull,
    /// A worker's clock is a day ahead.
    ClockOff,
    /// A worker returns other bytes than it announced.
    Corrupted,
    /// A worker gets a tenth of a processor.
    SlowWorker,
    /// The server is killed and its store removed.
    ServerWiped,
}

impl Kind {
    /// Whether it strikes at a moment; others hold from the beginning.
    pub(crate) const fn strikes(self) -> bool {
        !matches!(
            self,
            Self::Nothing | Self::SlowLinks | Self::ClockOff | Self::Corrupted | Self::SlowWorker
        )
    }
}

/// A kind of fault as a row.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "no fault, four hosts",
        kind: Kind::Nothing,
    },
    Fault {
        name: "worker killed",
        kind: Kind::WorkerKilled,
    },
    Fault {
        name: "server killed",
        kind: Kind::ServerKilled,
    },
    Fault {
        name: "owner killed",
        kind: Kind::OwnerKilled,
    },
    Fault {
        name: "link cut 5 s",
        kind: Kind::LinkCut(5),
    },
    Fault {
        name: "link cut 60 s",
        kind: Kind::LinkCut(60),
    },
    Fault {
        name: "loss 5 %, delay 100 ms",
        kind: Kind::SlowLinks,
    },
    Fault {
        name: "disk full",
        kind: Kind::DiskFull,
    },
    Fault {
        name: "clock a day off",
        kind: Kind::ClockOff,
    },
    Fault {
        name: "corrupted bytes",
        kind: Kind::Corrupted,
    },
    Fault {
        name: "slow worker",
        kind: Kind::SlowWorker,
    },
    Fault {
        name: "server's store wiped",
        kind: Kind::ServerWiped,
    },
];

/// When a fault strikes, and whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Part of the film's files that the owner has by then, in thousandths.
    permille: u32,
    /// The worker that it strikes.
    pub(crate) victim: usize,
    /// Whether long cuts last as long as they are called.
    full: bool,
}

impl Moment {
    /// The same for the same seed, kind and number, on every machine.
    pub(crate) fn draw(seed: u64, kind: &str, nth: u32, full: bool) -> Self {
        let hash = ContentHash::of(format!("{seed} {kind} {nth}").as_bytes());
        let [a, b, c, d, victim, ..] = *hash.as_bytes();
        Self {
            // From the first jobs to about the last.
            permille: 100 + u32::from_le_bytes([a, b, c, d]) % 800,
            victim: usize::from(victim) % WORKERS,
            full,
        }
    }

    /// How many of `files` the owner has by then. Not a time: how fast a film gets on differs
    /// between machines, and a fault that strikes after its end shows nothing.
    pub(crate) const fn after(&self, files: usize) -> usize {
        files * self.permille as usize / 1000
    }

    /// How long a cut of `secs` lasts: long ones are shortened to a fifth where time is short, and
    /// still outlast every lease.
    pub(crate) fn cut(&self, secs: u64) -> Duration {
        if secs > 10 && !self.full {
            Duration::from_secs(secs / 5)
        } else {
            Duration::from_secs(secs)
        }
    }
}
