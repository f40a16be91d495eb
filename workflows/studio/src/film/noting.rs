//! Warnings of a film, told as they come and kept for its report.

use std::sync::{Arc, Mutex, PoisonError};

use crate::events::{StudioEvent, Watcher};
use crate::script::ScriptWarning;

/// Hands events on and keeps the warnings among them.
pub(super) struct Noting {
    pub(super) watcher: Arc<dyn Watcher>,
    pub(super) warnings: Mutex<Vec<ScriptWarning>>,
}

impl Noting {
    pub(super) fn keep(&self, warning: ScriptWarning) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(warning);
    }

    pub(super) fn take(&self) -> Vec<ScriptWarning> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut warnings)
    }

    pub(super) fn warn(&self, warning: ScriptWarning) {
        let what = warning.clone().said();
        self.watcher.event(StudioEvent::Warning { what });
        self.keep(warning);
    }
}

impl Watcher for Noting {
    fn event(&self, event: StudioEvent) {
        match event {
            StudioEvent::Warning { what } => self.warn(ScriptWarning::of_film("note", what)),
            other => self.watcher.event(other),
        }
    }
}
