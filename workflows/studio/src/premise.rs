//! A script from a premise: which model, which pictures, and what was written before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code, Datum, ProgressEvent};
use flow_graph::NodeError;
use flow_nodes::LlmSource;
use flow_story::{Length, Llm, Picture, ProduceError, ProduceOptions, Produced, Script, produce};
use flow_timeline::FilmFormat;
use serde_json::{Value, json};

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::llm_local::LocalLlm;
use crate::llm_remote::{Key, RemoteLlm, RemoteOptions};
use crate::project::Project;
use crate::say::Say;
use crate::{config, library, models, samples};

/// Setting of a project that holds the request its script was written for.
const WRITTEN_FOR: &str = "producer.request";
/// Files with captions that may lie beside pictures.
const CAPTIONS: [&str; 2] = ["captions.json", "captions.txt"];
/// Largest file of captions that is read, in bytes.
const CAPTIONS_BYTES_MAX: u64 = 4_000_000;

/// A film to be written from a premise.
#[derive(Debug, Clone, Default)]
pub struct PremiseRequest {
    /// The premise.
    pub text: String,
    /// Length of the film; absent means 45 s.
    pub length: Option<Length>,
    /// Decides every draw.
    pub seed: u64,
    /// URL of a server (`http://host:port/v1#model`), id of a model, or path of its weights;
    /// absent means the default model.
    pub llm: Option<String>,
}

impl PremiseRequest {
    /// Refuse what no film is made from, before anything is made or opened for it.
    pub(crate) fn check(&self) -> Result<(), StudioError> {
        flow_story::Premise::read(&self.text).map_err(refused)?;
        let length = self.length.unwrap_or(Length::secs(45));
        flow_story::check_film_length(length).map_err(refused)
    }

    /// A name for its film: the first words.
    pub(crate) fn stem(&self) -> String {
        let words: Vec<&str> = self.text.split_whitespace().take(6).collect();
        let short: String = words.join(" ").chars().take(48).collect();
        crate::export::file_stem(short.trim_end_matches(['.', '!', '?', ',']))
    }

    /// What decides the script, for comparison with what a project holds.
    fn identity(&self, format: &FilmFormat, pictures: &[Picture]) -> Value {
        json!({
            "premise": self.text,
            "length": self.length.map(|length| length.to_string()),
            "seed": self.seed,
            "llm": self.llm,
            "fps": format.fps.to_string(),
            "pictures": pictures.iter().map(|each| [&each.name, &each.caption]).collect::<Vec<_>>(),
        })
    }
}

/// The script of the premise: the project's own when it was written for the same request, else a
/// new one by the model. Gives whether it is new.
pub(crate) fn script(
    request: &PremiseRequest,
    format: &FilmFormat,
    folders: &[PathBuf],
    project: &Project,
    may_write: impl FnOnce() -> Result<(), StudioError>,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<Option<Script>, StudioError> {
    let pictures = pictures(folders)?;
    let identity = request.identity(format, &pictures);
    if project.db().setting(WRITTEN_FOR)?.as_ref() == Some(&identity) && project.script().is_ok() {
        return Ok(None);
    }
    may_write()?;
    new_script(request, format, pictures, watcher, cancel).map(Some)
}

/// A new script of the premise, which may use these pictures.
pub(crate) fn new_script(
    request: &PremiseRequest,
    format: &FilmFormat,
    pictures: Vec<Picture>,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<Script, StudioError> {
    // A premise without words is refused before any model is loaded.
    flow_story::Premise::read(&request.text).map_err(refused)?;
    watcher.event(StudioEvent::Stage {
        what: Say::LoadingLanguageModel {}.into(),
    });
    let mut llm = model(request.llm.as_deref(), cancel)?;
    let options = ProduceOptions {
        seed: request.seed,
        length: request.length.unwrap_or(Length::secs(45)),
        format: *format,
        pictures,
        sounds: samples::names().map(str::to_owned).collect(),
        ..ProduceOptions::default()
    };
    let made = write(&request.text, &options, llm.as_mut(), watcher, cancel)?;
    for note in &made.notes {
        watcher.event(StudioEvent::Warning {
            what: note.as_str().into(),
        });
    }
    Ok(made.script)
}

/// Remember what the project's script was written for, once the project holds it.
pub(crate) fn remember(
    request: &PremiseRequest,
    format: &FilmFormat,
    folders: &[PathBuf],
    project: &Project,
) -> Result<(), StudioError> {
    let identity = request.identity(format, &pictures(folders)?);
    Ok(project.db().set_setting(WRITTEN_FOR, identity)?)
}

pub(crate) fn model(what: Option<&str>, cancel: &CancelToken) -> Result<Box<dyn Llm>, StudioError> {
    if let Some(url) = what.filter(|what| what.contains("://")) {
        let options = RemoteOptions::new(url, config::llm_key().or_else(kept_key));
        return Ok(Box::new(RemoteLlm::connect(options, cancel)?));
    }
    Ok(Box::new(LocalLlm::open(what, &models::hub()?)?))
}

/// The key that the studio's settings keep, when this process runs a studio.
static KEPT_KEY: std::sync::Mutex<Option<Key>> = std::sync::Mutex::new(None);

fn kept_key() -> Option<Key> {
    let kept = KEPT_KEY.lock();
    kept.unwrap_or_else(std::sync::PoisonError::into_inner)
        .clone()
}

/// Use this key for servers from now on, unless the environment gives one.
pub(crate) fn keep_key(key: Option<Key>) {
    let kept = KEPT_KEY.lock();
    *kept.unwrap_or_else(std::sync::PoisonError::into_inner) = key;
}

/// Opens models for nodes as `--llm` does.
pub(crate) struct Models;

impl LlmSource for Models {
    fn open(&self, what: &str, cancel: &CancelToken) -> Result<Box<dyn Llm>, NodeError> {
        let what = (!what.is_empty()).then_some(what);
        model(what, cancel).map_err(|error| NodeError::new(error.code, error.message))
    }

    fn side_data(&self) -> Datum {
        // A model list that cannot be read gives no models either, so nothing is kept under it.
        let hub = models::hub().ok();
        let hashes = hub.iter().flat_map(|hub| hub.entries()).map(|entry| {
            let hashes = entry
                .files
                .iter()
                .map(|file| Datum::from(file.sha256.to_string()));
            Datum::map([
                ("id", Datum::from(entry.id.as_str())),
                ("files", Datum::List(hashes.collect())),
            ])
        });
        Datum::List(hashes.collect())
    }
}

fn write(
    premise: &str,
    options: &ProduceOptions,
    llm: &mut dyn Llm,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<Produced, StudioError> {
    let mut stage = "";
    let mut watch = |event: &flow_story::ProduceEvent<'_>| {
        if stage != event.stage {
            stage = event.stage;
            let stage = stage.to_owned();
            let what = Say::WritingScript { stage }.into();
            watcher.event(StudioEvent::Stage { what });
        }
        watcher.event(StudioEvent::Progress(ProgressEvent {
            what: if event.text.is_empty() {
                event.stage
            } else {
                event.text
            }
            .to_owned(),
            step: event.step as u64,
            of: event.of as u64,
            secs_left: None,
        }));
    };
    produce(premise, options, llm, &mut watch, cancel).map_err(refused)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape of a map_err function"
)]
fn refused(error: ProduceError) -> StudioError {
    StudioError::new(error.code(), error.to_string())
}

/// Pictures of all folders by name, with captions where there are some. The first folder with a
/// name wins, as it does when the film is made.
pub(crate) fn pictures(folders: &[PathBuf]) -> Result<Vec<Picture>, StudioError> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for folder in folders {
        let captions = captions(folder)?;
        let entries = std::fs::read_dir(folder)
            .map_err(|error| StudioError::io("read the folder", folder, &error))?;
        for entry in entries {
            let entry =
                entry.map_err(|error| StudioError::io("read the folder", folder, &error))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if library::is_still(&name) && !name.starts_with('.') && entry.path().is_file() {
                let caption = captions.get(&name).cloned().unwrap_or_default();
                found.entry(name).or_insert(caption);
            }
        }
    }
    let pictures = found.into_iter();
    Ok(pictures
        .map(|(name, caption)| Picture { name, caption })
        .collect())
}

/// `{"name": "caption"}`, or lines of `name: caption`.
fn captions(folder: &Path) -> Result<BTreeMap<String, String>, StudioError> {
    let mut found = BTreeMap::new();
    for name in CAPTIONS {
        let path = folder.join(name);
        let Ok(about) = std::fs::metadata(&path) else {
            continue;
        };
        if about.len() > CAPTIONS_BYTES_MAX {
            let message = format!(
                "the captions are {} bytes, expected at most {CAPTIONS_BYTES_MAX}: {path:?}",
                about.len()
            );
            return Err(StudioError::new(Code::BadInput, message));
        }
        let bytes = std::fs::read(&path)
            .map_err(|error| StudioError::io("read the captions", &path, &error))?;
        let text = String::from_utf8_lossy(&bytes);
        if name.ends_with(".json") {
            let read: BTreeMap<String, String> = serde_json::from_str(&text).map_err(|error| {
                let message = format!(
                    "cannot read the captions: {error}, expected {{\"picture.jpg\": \"what it \
                     shows\"}}: {path:?}"
                );
                StudioError::new(Code::BadInput, message)
            })?;
            found.extend(read);
        } else {
            for line in text.lines() {
                if let Some((name, caption)) = line.split_once([':', '\t']) {
                    found.insert(name.trim().to_owned(), caption.trim().to_owned());
                }
            }
        }
    }
    Ok(found)
}

/// Write the script beside the film for people, never over what a person may have changed there.
/// Gives where it is.
pub(crate) fn write_beside(script: &Script, out: &Path) -> Result<PathBuf, StudioError> {
    let text = flow_story::to_markdown(script);
    let stem = out
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for number in 1..1000 {
        let name = if number == 1 {
            format!("{stem}.md")
        } else {
            format!("{stem}-{number}.md")
        };
        let path = out.with_file_name(name);
        match std::fs::read(&path) {
            Ok(there) if there == text.as_bytes() => return Ok(path),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::write(&path, text)
                    .map_err(|error| StudioError::io("write the script", &path, &error))?;
                return Ok(path);
            }
            Err(error) => return Err(StudioError::io("read the script", &path, &error)),
        }
    }
    let message = format!("there are too many scripts beside the film: {out:?}");
    Err(StudioError::new(Code::Refused, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_come_with_their_captions_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.jpg", "a.PNG", "notes.txt", ".hidden.jpg", "film.mp4"] {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        std::fs::write(
            folder.path().join("captions.txt"),
            "b.jpg: a boat\nz.jpg: nothing\n",
        )
        .unwrap();
        let folders = [folder.path().to_owned()];
        let got = pictures(&folders).unwrap();
        let names: Vec<(&str, &str)> = got
            .iter()
            .map(|each| (each.name.as_str(), each.caption.as_str()))
            .collect();
        assert_eq!(names, [("a.PNG", ""), ("b.jpg", "a boat")]);
        std::fs::write(folder.path().join("captions.json"), "[1]").unwrap();
        assert!(
            pictures(&folders)
                .unwrap_err()
                .message
                .contains("cannot read the captions")
        );
    }

    #[test]
    fn a_script_that_a_person_changed_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("Lamp.mp4");
        let json = r#"{"longtake": 1, "title": "Lamp", "scenes": [{"id": "one", "shots": [{"id": "x", "length": "4 s", "colour": "black"}]}]}"#;
        let script = flow_story::parse_json(json).unwrap().script;
        let first = write_beside(&script, &out).unwrap();
        assert_eq!(write_beside(&script, &out).unwrap(), first);
        std::fs::write(&first, "mine").unwrap();
        let second = write_beside(&script, &out).unwrap();
        assert_eq!(std::fs::read(&first).unwrap(), b"mine");
        assert!(second.ends_with("Lamp-2.md"), "{second:?}");
    }
}
