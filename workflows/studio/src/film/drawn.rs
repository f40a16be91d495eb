//! Pictures for shots that nobody gave one: drawn by the small model, laid of paper.
//!
//! A picture that was drawn is kept in its project under what it shows, so that the same film has the same
//! picture again with an emptied cache and with another model.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_base::{CancelToken, Code, ContentHash};
use flow_executor::RunReport;
use flow_graph::{Document, Link, NodeId};
use flow_nodes::{FilmFile, FilmFiles, picture_document};
use flow_story::{PictureSpec, Script, wants_picture};
use flow_timeline::{FilmFormat, SourceKind, SourceRef};

use super::{PictureMaker, Wanted};
use crate::draw;
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::library::Known;
use crate::project::Project;
use crate::say::{Said, Say};
use crate::studio::Studio;

/// Type of what is drawn.
pub(super) const DRAWN_TYPE: &str = "image/png";

/// Ending of the name that a shot's drawn picture has in the plan.
const DRAWN: &str = " (drawn).png";

fn source_of(shot: &str) -> SourceRef {
    SourceRef {
        kind: SourceKind::Still,
        name: format!("{shot}{DRAWN}"),
    }
}

/// The shot whose drawn picture `source` is.
pub(super) fn shot_of(source: &SourceRef) -> Option<&str> {
    source.name.strip_suffix(DRAWN)
}

fn file_of(content: ContentHash) -> FilmFile {
    FilmFile {
        content,
        media_type: DRAWN_TYPE.to_owned(),
        enlarge: None,
    }
}

/// Setting under which a project knows the picture that was drawn from `spec`.
fn setting_of(spec: &PictureSpec, size_px: (u32, u32)) -> String {
    let text = serde_json::to_string(spec).unwrap_or_default();
    let (width_px, height_px) = size_px;
    let key = ContentHash::of(format!("{width_px}x{height_px} {text}").as_bytes());
    format!("drawn.{}", key.to_hex())
}

/// Pictures that a film needs and that are not known yet, as nodes that draw them.
#[derive(Debug, Default)]
pub(super) struct Undrawn {
    /// Pictures that the project knows.
    pub(super) known: FilmFiles,
    /// Pictures that are to be drawn, under contents that stand for them.
    pub(super) waiting: FilmFiles,
    document: Document,
    /// Nodes that give them, by shot.
    pub(super) nodes: BTreeMap<String, NodeId>,
    /// The same by the content that stands for each.
    by_content: BTreeMap<String, NodeId>,
    settings: BTreeMap<String, String>,
    /// What a person should know.
    pub(super) notes: Vec<Said>,
}

impl Undrawn {
    /// Let the nodes that show the pictures take them from the nodes that draw them.
    pub(super) fn join(&self, film: &mut Document) {
        let mut drawn_by: BTreeMap<NodeId, &NodeId> = BTreeMap::new();
        for (id, node) in &film.nodes {
            let content = node.widgets.get("content").and_then(|datum| datum.as_str());
            let drawn = content.and_then(|content| self.by_content.get(content));
            if let Some(drawn) = drawn.filter(|_| node.type_name == "asset.file") {
                drawn_by.insert(id.clone(), drawn);
            }
        }
        film.nodes.retain(|id, _| !drawn_by.contains_key(id));
        let links = film.nodes.values_mut().flat_map(|node| &mut node.links);
        for (_, link) in links {
            if let Some(drawn) = drawn_by.get(&link.node) {
                *link = Link::new((*drawn).clone(), "picture");
            }
        }
        film.nodes.extend(self.document.nodes.clone());
    }

    /// Content of the picture of each shot that `report` gave.
    pub(super) fn given(&self, report: &RunReport) -> BTreeMap<String, ContentHash> {
        let given = self.nodes.iter().filter_map(|(shot, node)| {
            let picture = report.output(node, "picture")?.first()?.as_blob()?.hash;
            Some((shot.clone(), picture))
        });
        given.collect()
    }
}

impl Studio {
    /// The picture that the project keeps under `setting`, in the cache.
    fn kept_picture(
        &self,
        project: &Project,
        setting: &str,
    ) -> Result<Option<ContentHash>, StudioError> {
        let known = project.db().setting(setting)?;
        let known = known.and_then(|value| serde_json::from_value::<Known>(value).ok());
        let Some(known) = known else {
            return Ok(None);
        };
        if self.store.blob_path(&known.content).is_err() {
            let Ok(kept) = project.db().media_path(&known.content) else {
                return Ok(None);
            };
            self.store.import(&kept, &known.media_type)?;
        }
        Ok(Some(known.content))
    }

    /// Keep a drawn picture's bytes in the project.
    fn keep_picture(
        &self,
        project: &Project,
        setting: &str,
        content: ContentHash,
    ) -> Result<(), StudioError> {
        let path = self.store.blob_path(&content)?;
        project.db().keep_media(&path, DRAWN_TYPE)?;
        let known = Known {
            content,
            media_type: DRAWN_TYPE.to_owned(),
            brought: false,
        };
        let value = serde_json::to_value(known).unwrap_or_default();
        Ok(project.db().set_setting(setting, value)?)
    }

    /// Keep in the project what a run drew.
    ///
    /// # Errors
    /// The project cannot be written.
    pub(super) fn keep_drawn(
        &self,
        project: &Project,
        undrawn: &Undrawn,
        report: &RunReport,
    ) -> Result<(), StudioError> {
        for (shot, content) in undrawn.given(report) {
            if let Some(setting) = undrawn.settings.get(&shot) {
                self.keep_picture(project, setting, content)?;
            }
        }
        Ok(())
    }

    /// Enters a picture for every shot of `script` for which nobody chose a picture, video or colour: one that
    /// the project knows, else one that is still to be drawn. Draws nothing. Where nothing can be drawn here, a
    /// shot keeps the colour that it has by rule.
    ///
    /// # Errors
    /// The project cannot be read.
    pub(super) fn undrawn(
        &self,
        project: &Project,
        script: &mut Script,
        format: &FilmFormat,
    ) -> Result<Undrawn, StudioError> {
        let size_px = (format.width_px, format.height_px);
        let can_draw = draw::own_model_is_here();
        let mut undrawn = Undrawn::default();
        let mut specs = BTreeMap::new();
        for scene in &script.scenes {
            for shot in scene.shots.iter().filter(|shot| wants_picture(shot)) {
                let spec = flow_story::picture_spec(script, scene, shot);
                let setting = setting_of(&spec, size_px);
                if let Some(content) = self.kept_picture(project, &setting)? {
                    let file = file_of(content);
                    undrawn.known.insert(source_of(&shot.id), file);
                } else if can_draw || shot.colour.is_none() {
                    undrawn.settings.insert(shot.id.clone(), setting);
                    specs.insert(shot.id.clone(), spec);
                } else {
                    continue;
                }
                if let Err(error) = PictureMaker::named(&shot.model) {
                    let shot = shot.id.clone();
                    let why = error.message;
                    undrawn.notes.push(Say::DrawnByOurs { shot, why }.into());
                }
            }
        }
        (undrawn.document, undrawn.nodes) = picture_document(&specs, size_px)
            .map_err(|error| StudioError::new(error.code, error.message))?;
        for (shot, node) in &undrawn.nodes {
            let stands_for = ContentHash::of(format!("{shot} {node} is not drawn yet").as_bytes());
            undrawn.by_content.insert(stands_for.to_hex(), node.clone());
            undrawn.waiting.insert(source_of(shot), file_of(stands_for));
        }
        for shot in script.scenes.iter_mut().flat_map(|scene| &mut scene.shots) {
            let source = source_of(&shot.id);
            let has = |files: &FilmFiles| files.contains_key(&source);
            if wants_picture(shot) && (has(&undrawn.known) || has(&undrawn.waiting)) {
                shot.picture = source.name;
                shot.colour = None;
            }
        }
        Ok(undrawn)
    }

    /// The pictures that were drawn for a film, and those that are not drawn yet: none for a film that is made.
    ///
    /// # Errors
    /// As [`Studio::draw_pictures`].
    pub(super) fn drawn_for(
        &self,
        wanted: Wanted,
        project: &Project,
        (script, format): (&mut Script, &FilmFormat),
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<(FilmFiles, Undrawn), StudioError> {
        if wanted == Wanted::Film {
            let drawn = self.draw_pictures(project, script, format, watcher, cancel)?;
            return Ok((drawn, Undrawn::default()));
        }
        let mut undrawn = self.undrawn(project, script, format)?;
        for what in undrawn.notes.drain(..) {
            watcher.event(StudioEvent::Warning { what });
        }
        Ok((undrawn.known.clone(), undrawn))
    }

    /// Draws a picture for every shot of `script` for which nobody chose a picture, video or colour, enters it
    /// there and keeps it in the project. Those that the project knows or that are in the cache are not drawn
    /// again. A shot that cannot be drawn keeps the colour that it has by rule, and a warning says why.
    ///
    /// # Errors
    /// A shot that has nothing else cannot be drawn; the run was stopped.
    fn draw_pictures(
        &self,
        project: &Project,
        script: &mut Script,
        format: &FilmFormat,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<FilmFiles, StudioError> {
        let colours: BTreeMap<String, _> = script
            .shots()
            .map(|shot| (shot.id.clone(), shot.colour))
            .collect();
        let undrawn = self.undrawn(project, script, format)?;
        for what in &undrawn.notes {
            watcher.event(StudioEvent::Warning { what: what.clone() });
        }
        let mut files = undrawn.known.clone();
        if undrawn.nodes.is_empty() {
            return Ok(files);
        }
        watcher.event(StudioEvent::Stage {
            what: Say::DrawingPictures {}.into(),
        });
        let targets: Vec<String> = undrawn.nodes.values().cloned().collect();
        let report = self.execute(&undrawn.document, &targets, watcher, None, cancel)?;
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "the film was stopped"));
        }
        self.keep_drawn(project, &undrawn, &report)?;
        let given = undrawn.given(&report);
        for shot in script.scenes.iter_mut().flat_map(|scene| &mut scene.shots) {
            if !undrawn.nodes.contains_key(&shot.id) {
                continue;
            }
            if let Some(content) = given.get(&shot.id) {
                files.insert(source_of(&shot.id), file_of(*content));
                continue;
            }
            let why = super::failures(&report).join("\n");
            let code = super::worst(&report).unwrap_or(Code::Internal);
            let message = format!("shot {:?} could not be drawn: {why}", shot.id);
            let Some(colour) = colours.get(&shot.id).copied().flatten() else {
                return Err(StudioError::new(code, message));
            };
            shot.picture.clear();
            shot.colour = Some(colour);
            watcher.event(StudioEvent::Warning {
                what: message.into(),
            });
        }
        Ok(files)
    }
}
