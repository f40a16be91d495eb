//! Named points at which a kill test ends the process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use flow_executor::RunEvent;
use flow_store::Faults;

use crate::config;

/// The point that `LONGTAKE_FAULT` names, and how often it was passed. One for the process:
/// what a kill test counts are passes of the whole program.
struct Point {
    name: String,
    count: u64,
    passes: AtomicU64,
}

static POINT: OnceLock<Option<Point>> = OnceLock::new();

/// Pass a point. In production nothing happens. A kill test names a point and a count; the
/// process ends there as by a power cut: nothing is flushed, closed or unwound.
///
/// Besides the store's there are `KIND.underway` (a call of the film's node `KIND:...` tells
/// that it has done some of its work), `export.before_rename`, `export.after_rename` and
/// `project.imported`.
pub(crate) fn pass(name: &str) {
    let point = POINT.get_or_init(|| {
        config::fault_point().map(|(name, count)| Point {
            name,
            count,
            passes: AtomicU64::new(0),
        })
    });
    let Some(point) = point else { return };
    if point.name == name && point.passes.fetch_add(1, Ordering::AcqRel) + 1 == point.count {
        stop(name);
    }
}

/// Says where it ends, so that a test can tell this end from any other.
fn stop(name: &str) -> ! {
    use std::io::Write as _;
    drop(writeln!(
        std::io::stderr(),
        "ended at the fault point {name}"
    ));
    std::process::abort();
}

/// The store's points.
pub(crate) fn of_store() -> Faults {
    if config::fault_point().is_none() {
        return Faults::none();
    }
    Faults::new(pass)
}

/// The points in the middle of a node's work.
pub(crate) fn in_run(event: &RunEvent) {
    if let RunEvent::NodeProgress {
        display, progress, ..
    } = event
        && (1..progress.of).contains(&progress.step)
    {
        let kind = display.split_once(':').map_or(&**display, |(kind, _)| kind);
        pass(&format!("{kind}.underway"));
    }
}
