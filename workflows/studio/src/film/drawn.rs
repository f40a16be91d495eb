//! Pictures for shots that nobody gave one: drawn by the small model, laid of paper.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_base::{CancelToken, Code};
use flow_nodes::{FilmFile, FilmFiles, picture_document};
use flow_story::{By, Script, Shot};
use flow_timeline::{FilmFormat, SourceKind, SourceRef};

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::say::Say;
use crate::studio::Studio;

/// How a shot's drawn picture is called in the plan.
fn name_of(shot: &str) -> String {
    format!("{shot} (drawn).png")
}

/// Whether nobody chose what the shot shows: a colour by rule is what there was without pictures.
fn is_bare(shot: &Shot) -> bool {
    let chosen = shot.colour.is_some() && shot.by.get("colour") != Some(By::Rule);
    shot.picture.is_empty() && shot.video.is_none() && !chosen
}

impl Studio {
    /// Draws a picture for every shot of `script` for which nobody chose a picture, video or colour, and
    /// enters it there. Those that are in the cache are not drawn again. A shot that cannot be drawn keeps
    /// the colour that it has by rule, and a warning says why.
    ///
    /// # Errors
    /// A shot that has nothing else cannot be drawn; the run was stopped.
    pub(super) fn draw_pictures(
        &self,
        script: &mut Script,
        format: &FilmFormat,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<FilmFiles, StudioError> {
        let mut specs = BTreeMap::new();
        for scene in &script.scenes {
            for shot in &scene.shots {
                if is_bare(shot) {
                    let spec = flow_story::picture_spec(script, scene, shot);
                    specs.insert(shot.id.clone(), spec);
                }
            }
        }
        if specs.is_empty() {
            return Ok(FilmFiles::new());
        }
        watcher.event(StudioEvent::Stage {
            what: Say::DrawingPictures {}.into(),
        });
        let (document, nodes) = picture_document(&specs, (format.width_px, format.height_px))
            .map_err(|error| StudioError::new(error.code, error.message))?;
        let targets: Vec<String> = nodes.values().cloned().collect();
        let report = self.execute(&document, &targets, watcher, None, cancel)?;
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "the film was stopped"));
        }
        let mut files = FilmFiles::new();
        for shot in script.scenes.iter_mut().flat_map(|scene| &mut scene.shots) {
            let Some(node) = nodes.get(&shot.id) else {
                continue;
            };
            let made = report.output(node, "picture").and_then(|list| list.first());
            let Some(blob) = made.and_then(flow_graph::Value::as_blob) else {
                let why = super::failures(&report).join("\n");
                let code = super::worst(&report).unwrap_or(Code::Internal);
                let message = format!("shot {:?} could not be drawn: {why}", shot.id);
                if shot.colour.is_some() {
                    watcher.event(StudioEvent::Warning {
                        what: message.into(),
                    });
                    continue;
                }
                return Err(StudioError::new(code, message));
            };
            let source = SourceRef {
                kind: SourceKind::Still,
                name: name_of(&shot.id),
            };
            shot.picture.clone_from(&source.name);
            shot.colour = None;
            let file = FilmFile {
                content: blob.hash,
                media_type: "image/png".to_owned(),
                enlarge: None,
            };
            files.insert(source, file);
        }
        Ok(files)
    }
}
