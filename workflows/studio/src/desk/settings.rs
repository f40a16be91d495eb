//! Settings: folders, cache, language model, looks.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code};
use engine_hub::ModelState;
use flow_store::jobs::JobsDb;
use flow_story::{LlmRequest, Message, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ts_rs::TS;

use super::events::DeskEvent;
use super::list::{CommandEntry, CommandKind, NoArgs};
use super::{Desk, lock};
use crate::error::StudioError;
use crate::llm_remote::Key;
use crate::{models, premise};

/// Language of the studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum UiLanguage {
    /// English.
    #[default]
    En,
    /// German.
    De,
}

/// Colours of the studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// As the system has it.
    System,
    /// Dark.
    #[default]
    Dark,
    /// Light.
    Light,
}

/// What a person chose for this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(optional_fields)]
pub struct Settings {
    /// Language of the studio.
    pub language: UiLanguage,
    /// Its colours.
    pub theme: Theme,
    /// Size of its text; 1 is normal, 0.75 to 2.
    pub text_scale: f64,
    /// Where new projects go.
    pub projects_folder: PathBuf,
    /// Size to which the cache is pruned. Takes effect with the next start.
    pub cache_cap_bytes: u64,
    /// Language model that writes: URL of an OpenAI-compatible server, id of a model, or path of
    /// its weights; absent means our own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm: Option<String>,
    /// Voice of the narrator; absent means the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrator: Option<String>,
    /// Whether jobs that were interrupted go on by themselves.
    pub resume_jobs: bool,
    /// Whether the desktop is told when a job ends.
    pub notify: bool,
    /// Whether draft renders are made by default.
    pub draft_first: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            language: UiLanguage::default(),
            theme: Theme::default(),
            text_scale: 1.0,
            projects_folder: PathBuf::new(),
            cache_cap_bytes: crate::config::CACHE_CAP_BYTES,
            llm: None,
            narrator: None,
            resume_jobs: true,
            notify: true,
            draft_first: false,
        }
    }
}

/// Settings, and what else a page of settings shows.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct SettingsState {
    /// What a person chose.
    pub settings: Settings,
    /// Whether a key for the language model's server is kept.
    pub llm_key_set: bool,
    /// File that keeps it; only this user may read it.
    pub llm_key_file: PathBuf,
    /// Where results are kept.
    pub cache_folder: PathBuf,
    /// Size of what is kept.
    pub cache_bytes: u64,
    /// Where models lie.
    pub models_folder: PathBuf,
    /// Size of models that are here.
    pub models_bytes: u64,
    /// Where the studio keeps its queue and settings.
    pub data_folder: PathBuf,
    /// Devices that models run on.
    pub devices: Vec<String>,
}

/// A field to set.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SetArgs {
    /// Name of a field of `Settings`, or `llm_key`.
    pub field: String,
    /// Its value; null takes it back to its default.
    #[ts(type = "unknown")]
    pub value: Value,
}

/// A language model to ask.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct TestLlmArgs {
    /// As in the settings; absent means that of the settings.
    #[serde(default)]
    pub llm: Option<String>,
}

/// What a language model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct LlmTest {
    /// Whether it answered.
    pub ok: bool,
    /// Its name and its answer, or why there is none.
    pub what: String,
}

/// What was made room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
pub struct Pruned {
    /// Bytes given back.
    pub bytes: u64,
}

/// Size to bring the cache to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct PruneArgs {
    /// Absent means the cap.
    #[serde(default)]
    pub to_bytes: Option<u64>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct Written {
    /// Where it lies.
    pub path: PathBuf,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::System;
    vec![
        CommandEntry::new("settings.get", System, "Settings of this machine.", get),
        CommandEntry::new("settings.set", System, "Set one field.", set),
        CommandEntry::new(
            "settings.test_llm",
            System,
            "Ask the language model for a word.",
            test_llm,
        ),
        CommandEntry::new(
            "cache.prune",
            System,
            "Make room: remove what was used least recently.",
            prune,
        ),
        CommandEntry::new(
            "diagnostics.bundle",
            System,
            "Write what helps to find a fault into one file, without secrets.",
            bundle,
        ),
    ]
}

/// Note that holds the settings.
const NOTE: &str = "settings";
/// File of the key, for this user only.
const KEY_FILE: &str = "llm.key";
/// Smallest cache that a film can be made with.
const CACHE_BYTES_MIN: u64 = 1 << 30;

/// Settings as they are kept; fields that cannot be read take their defaults.
pub(super) fn read(db: &JobsDb) -> Result<Settings, StudioError> {
    let kept = db.note(NOTE)?;
    Ok(kept
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default())
}

/// Use the key that is kept, if any.
pub(super) fn use_kept_key(folder: &Path) -> Result<(), StudioError> {
    let path = folder.join(KEY_FILE);
    let key = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(StudioError::io("read the key", &path, &error)),
    };
    premise::keep_key(key.map(Key::new));
    Ok(())
}

fn write_key(folder: &Path, key: Option<&str>) -> Result<(), StudioError> {
    let path = folder.join(KEY_FILE);
    let failed = |error: &std::io::Error| StudioError::io("keep the key", &path, error);
    // A new file each time: its mode is set when it is made, before the key is in it.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(&error)),
        _ => {}
    }
    if let Some(key) = key {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(|error| failed(&error))?;
        file.write_all(key.as_bytes())
            .map_err(|error| failed(&error))?;
    }
    use_kept_key(folder)
}

fn get(desk: &Desk, _: NoArgs) -> Result<SettingsState, StudioError> {
    let mut settings = desk.settings();
    settings.projects_folder = desk.projects_folder()?;
    let models = models::models_list().unwrap_or_default();
    let models_bytes = models.iter().map(|row| match row.state {
        ModelState::Installed | ModelState::Unverified => row.bytes,
        ModelState::Partial { bytes_here } => bytes_here,
        ModelState::Missing => 0,
    });
    Ok(SettingsState {
        settings,
        llm_key_set: desk.options.data_folder.join(KEY_FILE).is_file(),
        llm_key_file: desk.options.data_folder.join(KEY_FILE),
        cache_folder: desk.studio.store.dir().to_owned(),
        cache_bytes: desk.studio.store.counts()?.bytes,
        models_folder: engine_hub::models_folder()?,
        models_bytes: models_bytes.sum(),
        data_folder: desk.options.data_folder.clone(),
        devices: vec!["cpu".to_owned()],
    })
}

fn set(desk: &Desk, args: SetArgs) -> Result<SettingsState, StudioError> {
    let field = args.field.as_str();
    let refused = |what: String| StudioError::new(Code::BadInput, format!("{field}: {what}"));
    if field == "llm_key" {
        let key = match &args.value {
            Value::Null => None,
            Value::String(key) if !key.trim().is_empty() && !key.contains(char::is_control) => {
                Some(key.trim())
            }
            _ => return Err(refused("expected a key as text, or null".into())),
        };
        write_key(&desk.options.data_folder, key)?;
    } else {
        let mut settings = lock(&desk.settings);
        let mut value = serde_json::to_value(&*settings).unwrap_or_default();
        let defaults = serde_json::to_value(Settings::default()).unwrap_or_default();
        let is_optional = matches!(field, "llm" | "narrator");
        let Value::Object(fields) = &mut value else {
            return Err(StudioError::new(Code::Internal, "settings are no object"));
        };
        if defaults.get(field).is_none() && !is_optional {
            return Err(refused("there is no such setting".into()));
        }
        let is_empty = args
            .value
            .as_str()
            .is_some_and(|text| text.trim().is_empty());
        if args.value.is_null() || (is_optional && is_empty) {
            match defaults.get(field) {
                Some(default) => fields.insert(field.to_owned(), default.clone()),
                None => fields.remove(field),
            };
        } else {
            fields.insert(field.to_owned(), args.value);
        }
        let new: Settings =
            serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        check(&new).map_err(refused)?;
        desk.db
            .set_note(NOTE, &serde_json::to_value(&new).unwrap_or_default())?;
        *settings = new;
    }
    desk.tell(&DeskEvent::SettingsChanged);
    get(desk, NoArgs {})
}

fn check(settings: &Settings) -> Result<(), String> {
    let scale = settings.text_scale;
    if !(0.75..=2.0).contains(&scale) {
        return Err(format!("expected a size from 0.75 to 2, got {scale}"));
    }
    let cap = settings.cache_cap_bytes;
    if cap < CACHE_BYTES_MIN {
        return Err(format!(
            "expected at least {CACHE_BYTES_MIN} bytes, got {cap}"
        ));
    }
    let folder = &settings.projects_folder;
    if !folder.as_os_str().is_empty() && (!folder.is_absolute() || folder.is_file()) {
        return Err(format!(
            "expected the absolute path of a folder, got {folder:?}"
        ));
    }
    Ok(())
}

fn test_llm(desk: &Desk, args: TestLlmArgs) -> Result<LlmTest, StudioError> {
    let llm = args.llm.or_else(|| desk.settings().llm);
    let cancel = CancelToken::new();
    let asked = || -> Result<String, StudioError> {
        let mut llm = premise::model(llm.as_deref(), &cancel)?;
        let request = LlmRequest {
            system: "You answer with one word.".to_owned(),
            messages: vec![Message {
                role: Role::User,
                text: "Say hello.".to_owned(),
            }],
            schema: None,
            max_tokens: 12,
            temperature: 0.0,
            seed: 0,
            stop: Vec::new(),
        };
        let reply = llm
            .complete(&request, &cancel)
            .map_err(|error| StudioError::new(error.code, error.message))?;
        Ok(format!("{}: {:?}", llm.name(), reply.text.trim()))
    };
    Ok(match asked() {
        Ok(what) => LlmTest { ok: true, what },
        Err(error) => LlmTest {
            ok: false,
            what: error.message,
        },
    })
}

fn prune(desk: &Desk, args: PruneArgs) -> Result<Pruned, StudioError> {
    let report = desk.studio.cache_prune(args.to_bytes, false)?;
    Ok(Pruned {
        bytes: report.bytes_freed,
    })
}

fn bundle(desk: &Desk, _: NoArgs) -> Result<Written, StudioError> {
    let now = desk.clock.unix_millis();
    let mut settings = desk.settings();
    // An address may carry a name and a password.
    settings.llm = settings.llm.map(|llm| match llm.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit('@').next().unwrap_or_default();
            let host = host.split(['/', '?', '#']).next().unwrap_or_default();
            format!("{scheme}://{host}/…")
        }
        None => llm,
    });
    let jobs: Vec<Value> = desk
        .queue
        .list()
        .into_iter()
        .take(50)
        .map(|job| {
            let lines = desk.queue.lines(job.id).unwrap_or_default();
            let last = lines.len().saturating_sub(100);
            json!({ "job": job, "lines": lines.get(last..).unwrap_or_default() })
        })
        .collect();
    let models = models::models_list().unwrap_or_default();
    let models: Vec<Value> = models
        .iter()
        .map(|row| json!({ "id": row.entry.id, "state": row.state, "bytes": row.bytes }))
        .collect();
    let told = json!({
        "program": env!("CARGO_PKG_VERSION"),
        "at_unix_millis": now,
        "machine": super::app::machine(desk),
        "settings": settings,
        "cache": desk.studio.store.counts()?,
        "models": models,
        "jobs": jobs,
        "codecs": flow_media::codec_versions(),
    });
    let path = desk
        .options
        .data_folder
        .join(format!("diagnostics-{now}.json"));
    let text = serde_json::to_string_pretty(&told).unwrap_or_default();
    std::fs::write(&path, text)
        .map_err(|error| StudioError::io("write the diagnostics", &path, &error))?;
    Ok(Written { path })
}
