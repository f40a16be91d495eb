//! Warnings of a film, told as they come and kept for its report.

use std::sync::{Arc, Mutex, PoisonError};

use flow_nodes::FilmFiles;
use flow_timeline::{FilmPlan, SourceKind};

use super::texts;
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::say::Say;
use crate::script::ScriptWarning;
use crate::studio::Studio;

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

impl Studio {
    /// Say which videos end early, and which characters will be boxes.
    pub(super) fn note_media(
        &self,
        plan: &FilmPlan,
        files: &FilmFiles,
        noting: &Noting,
    ) -> Result<(), StudioError> {
        for (source, file) in files.iter().filter(|(s, _)| s.kind == SourceKind::Video) {
            // What cannot be read at all fails its own shot only, when that is made.
            let probed = flow_media::probe::probe(&self.store.blob_path(&file.content)?);
            if probed.is_ok_and(|probed| probed.is_cut) {
                let name = source.name.clone();
                let what = Say::CutVideo { name };
                noting.warn(ScriptWarning::of_film("cut-video", what));
            }
        }
        for missing in self.fonts.missing(&texts(plan)) {
            let character = missing.to_string();
            let what = Say::NoFontHas { character };
            noting.warn(ScriptWarning::of_film("missing-character", what));
        }
        Ok(())
    }
}
