//! What a job tells while it runs, for the queue.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine_base::ProgressEvent;

use super::super::{Desk, lock};
use crate::events::{NodeState, StudioEvent, Watcher};

/// Shortest time between two reports of a job's progress.
const REPORT: Duration = Duration::from_millis(150);

/// Hands a job's events to its queue, not too many of them.
pub(super) struct Reporter {
    desk: Arc<Desk>,
    id: i64,
    last: Mutex<Duration>,
}

impl Reporter {
    pub(super) fn new(desk: &Arc<Desk>, id: i64) -> Self {
        Self {
            desk: Arc::clone(desk),
            id,
            last: Mutex::new(Duration::ZERO),
        }
    }

    fn is_due(&self) -> bool {
        let now = self.desk.clock.monotonic();
        let mut last = lock(&self.last);
        let due = now.saturating_sub(*last) >= REPORT;
        if due {
            *last = now;
        }
        due
    }
}

impl Watcher for Reporter {
    fn event(&self, event: StudioEvent) {
        match event {
            StudioEvent::Stage { what } => {
                self.desk.say(self.id, &what.text);
                self.desk.progress(self.id, |job| {
                    (job.step, job.step_coded) = (Some(what.text), what.coded);
                    (job.done, job.of, job.secs_left) = (0, 0, None);
                });
            }
            StudioEvent::Progress(ProgressEvent {
                step,
                of,
                secs_left,
                ..
            }) => {
                if step >= of || self.is_due() {
                    self.desk.progress(self.id, |job| {
                        (job.done, job.of, job.secs_left) = (step, of, secs_left);
                    });
                }
            }
            StudioEvent::Node { node, state, .. } => match state {
                NodeState::Made => self.desk.say(self.id, &format!("made {node}")),
                NodeState::Failed => self.desk.say(self.id, &format!("failed: {node}")),
                NodeState::Running | NodeState::Reused | NodeState::Skipped => {}
            },
            StudioEvent::Preview { node, picture } => self.desk.show(self.id, node, &picture),
            StudioEvent::Warning { what } => self.desk.say(self.id, &what.text),
        }
    }
}
