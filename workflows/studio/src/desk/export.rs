//! Export: the film as a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use engine_base::{CancelToken, Code, ContentHash, Rational};
use engine_hub::ModelKind;
use flow_media::sound::FileLoudness;
use flow_nodes::LoudnessTarget;
use flow_story::FrameSize;
use serde::{Deserialize, Serialize};
use serde_json::json;
use ts_rs::TS;

use super::app::PathArgs;
use super::list::{CommandEntry, CommandKind, Done, NoArgs};
use super::project::{ProjectArgs, ShotState};
use super::queue::JobStarted;
use super::state::OpenProject;
use super::worker::kept;
use super::{Desk, lock};
use crate::error::StudioError;
use crate::events::Watcher;
use crate::film::{FilmRequest, Given, Manner};
use crate::say::{Said, Say};
use crate::script::ScriptWarning;
use crate::{export, models, speak, voices};

/// A way to write the film.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(optional_fields)]
pub struct ExportPreset {
    /// Its id: `web`, `vertical`, `cinema`, `archive`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is good for.
    pub docs: String,
    /// Frame size in the place of the script's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Picture quality (x264 CRF): lower is better and larger.
    pub crf: u8,
    /// Encoder effort.
    pub effort: String,
}

/// How loud the film becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ExportLoudness {
    /// -16 LUFS: phones and browsers.
    #[default]
    Web,
    /// -14 LUFS: large video sites.
    Streaming,
    /// -23 LUFS: television in Europe (EBU R 128).
    Broadcast,
    /// -24 LUFS: television in America (ATSC A/85).
    Television,
    /// As the mix is; only its peaks are held down.
    Off,
}

impl From<ExportLoudness> for LoudnessTarget {
    fn from(loudness: ExportLoudness) -> Self {
        match loudness {
            ExportLoudness::Web => Self::Web,
            ExportLoudness::Streaming => Self::Streaming,
            ExportLoudness::Broadcast => Self::Broadcast,
            ExportLoudness::Television => Self::Television,
            ExportLoudness::Off => Self::AsItIs,
        }
    }
}

/// A stretch of the film, by shots; both are in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ShotRange {
    /// Id of the first shot.
    pub from: String,
    /// Id of the last shot.
    pub to: String,
}

/// How to write the film.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct ExportArgs {
    /// The project's folder.
    pub project: PathBuf,
    /// Id of the preset.
    pub preset: String,
    /// Only these shots.
    #[serde(default)]
    pub range: Option<ShotRange>,
    /// Make small pictures twice as large first; absent means yes.
    #[serde(default)]
    pub upscale: Option<bool>,
    /// How loud the film becomes; absent means `web`.
    #[serde(default)]
    pub loudness: Option<ExportLoudness>,
    /// Draw the subtitles into the picture too; absent means no.
    #[serde(default)]
    pub burn_subtitles: Option<bool>,
    /// Whether the film is to earn money: what does not allow it is refused.
    #[serde(default)]
    pub commercial: Option<bool>,
    /// Name of the file without its ending; absent means the film's title.
    #[serde(default)]
    pub name: Option<String>,
}

/// A licence that the film stands under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct LicenceNote {
    /// The model or voice.
    pub what: String,
    /// SPDX expression.
    pub licence: String,
    /// Whether the film may earn money.
    pub commercial: bool,
    /// Conditions, for people.
    pub note: String,
}

/// What an export would take.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct ExportPrediction {
    /// Time it takes, when every kind of step was measured here before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secs_to_make: Option<f64>,
    /// Steps that run.
    pub to_make: u64,
    /// Size of the file, roughly: by the shots that are made, else by a mean.
    pub bytes: u64,
    /// Length of the film.
    pub film_secs: f64,
    /// Where it would go.
    pub out: PathBuf,
    /// Licences of what made it.
    pub licence: Vec<LicenceNote>,
    /// What a person should know.
    pub warnings: Vec<Said>,
}

/// A film that was written.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct ExportedFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its file name.
    pub name: String,
    /// Its content: `/media/{hash}`.
    pub hash: String,
    /// Its size.
    pub bytes: u64,
    /// When it was made.
    pub made_unix_millis: u64,
    /// Its integrated loudness, as measured; absent for a film without sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lufs: Option<f64>,
    /// Its true peak, as measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_peak_dbtp: Option<f64>,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::{Job, System};
    vec![
        CommandEntry::new("export.presets", System, "Ways to write the film.", presets),
        CommandEntry::new(
            "export.predict",
            System,
            "What an export would take.",
            predict,
        ),
        CommandEntry::new(
            "export.start",
            Job,
            "Make the film and write it into the project's exports.",
            start,
        ),
        CommandEntry::new(
            "export.list",
            System,
            "Films that were written, latest first.",
            list,
        ),
        CommandEntry::new(
            "export.reveal",
            System,
            "Show a file in the desktop's file browser.",
            reveal,
        ),
    ]
}

/// Folder of a project that films are written into.
const FOLDER: &str = "exports";

struct Written {
    id: &'static str,
    name: &'static str,
    docs: &'static str,
    size: Option<FrameSize>,
    crf: u8,
    effort: &'static str,
}

/// `web` encodes as renders do, so that what was rendered is not made again.
const PRESETS: [Written; 4] = [
    Written {
        id: "web",
        name: "Web",
        docs: "For sites and sending around: the film's own size, good quality.",
        size: None,
        crf: 18,
        effort: "medium",
    },
    Written {
        id: "vertical",
        name: "Vertical",
        docs: "For phones: 1080 x 1920, every picture filling the tall frame.",
        size: Some(FrameSize {
            width_px: 1080,
            height_px: 1920,
        }),
        crf: 18,
        effort: "medium",
    },
    Written {
        id: "cinema",
        name: "Cinema",
        docs: "For projection and editing: fine quality, larger files.",
        size: None,
        crf: 12,
        effort: "slow",
    },
    Written {
        id: "archive",
        name: "Archive",
        docs: "To keep: hardly any loss, by far the largest files.",
        size: None,
        crf: 6,
        effort: "slow",
    },
];

fn presets(_: &Desk, _: NoArgs) -> Result<Vec<ExportPreset>, StudioError> {
    let each = |preset: &Written| ExportPreset {
        id: preset.id.to_owned(),
        name: preset.name.to_owned(),
        docs: preset.docs.to_owned(),
        size: preset.size.map(|size| size.to_string()),
        crf: preset.crf,
        effort: preset.effort.to_owned(),
    };
    Ok(PRESETS.iter().map(each).collect())
}

fn preset(id: &str) -> Result<&'static Written, StudioError> {
    PRESETS
        .iter()
        .find(|preset| preset.id == id)
        .ok_or_else(|| {
            let known: Vec<&str> = PRESETS.iter().map(|preset| preset.id).collect();
            let message = format!("there is no preset {id:?}; there are: {}", known.join(", "));
            StudioError::new(Code::NotFound, message)
        })
}

/// Content and size of the file at `path`.
pub(super) fn hash_of(path: &Path) -> Result<(ContentHash, u64), StudioError> {
    let failed = |error: std::io::Error| StudioError::io("read the film", path, &error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    Ok((ContentHash::of_reader(file).map_err(failed)?, bytes))
}

impl Desk {
    /// The film that an export makes.
    pub(super) fn film_wanted(
        &self,
        open: &OpenProject,
        args: &ExportArgs,
    ) -> Result<FilmRequest, StudioError> {
        let preset = preset(&args.preset)?;
        let title = open.project.script()?.title;
        let name = args
            .name
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let mut stem = export::file_stem(name.unwrap_or(&title));
        if name.is_none() && preset.id != "web" {
            stem = format!("{stem} - {}", preset.id);
        }
        if let (None, Some(range)) = (name, &args.range) {
            stem = format!("{stem} - {} to {}", range.from, range.to);
        }
        Ok(FilmRequest {
            project: Some(open.folder.clone()),
            out: Some(open.folder.join(FOLDER).join(format!("{stem}.mp4"))),
            size: preset.size,
            crf: Some(preset.crf),
            preset: Some(preset.effort.to_owned()),
            burn_subtitles: args.burn_subtitles == Some(true),
            loudness: args.loudness.unwrap_or_default().into(),
            only: args
                .range
                .as_ref()
                .map(|range| (range.from.clone(), range.to.clone())),
            ..FilmRequest::default()
        })
    }

    /// How an export's film is made, where the script does not say it.
    pub(super) fn manner_of_export(
        &self,
        open: &OpenProject,
        args: &ExportArgs,
    ) -> Result<Manner, StudioError> {
        let mut manner = self.manner(open)?;
        if let Some(upscale) = args.upscale {
            manner.as_they_are = !upscale;
        }
        Ok(manner)
    }

    /// Refuse a film that is to earn money when something in it does not allow that.
    pub(super) fn check_licences(
        &self,
        open: &OpenProject,
        args: &ExportArgs,
    ) -> Result<(), StudioError> {
        if args.commercial != Some(true) {
            return Ok(());
        }
        let notes = self.licences(open, args)?;
        let against: Vec<String> = notes
            .iter()
            .filter(|note| !note.commercial)
            .map(|note| format!("{} ({})", note.what, note.licence))
            .collect();
        if against.is_empty() {
            return Ok(());
        }
        let against = against.join(", ");
        Err(StudioError::said(
            Code::Refused,
            &Say::NotForMoney { against },
        ))
    }

    /// Licences of the models that the film is made with.
    fn licences(
        &self,
        open: &OpenProject,
        args: &ExportArgs,
    ) -> Result<Vec<LicenceNote>, StudioError> {
        let manner = self.manner_of_export(open, args)?;
        let hub = models::hub()?;
        let mut ids = BTreeSet::new();
        let lines = voices::cast(&open.project.script()?, &manner.speaking)?.lines;
        for line in lines.values() {
            ids.extend(
                speak::models_of(&line.voice)
                    .iter()
                    .copied()
                    .map(str::to_owned),
            );
        }
        if !manner.as_they_are {
            let mut upscalers = hub.entries().iter();
            let default = upscalers.find(|entry| entry.kind == ModelKind::Upscale && entry.default);
            let here = default.filter(|entry| hub.path(&entry.id).is_some());
            ids.extend(here.map(|entry| entry.id.clone()));
        }
        let mut notes = Vec::new();
        for id in ids {
            let entry = hub.entry(&id)?;
            notes.push(LicenceNote {
                what: entry.title.clone(),
                licence: entry.licence.spdx.clone(),
                commercial: entry.allows.commercial,
                note: entry.allows.note.clone(),
            });
        }
        Ok(notes)
    }

    /// Size of a film's file: by its rendered shots where it encodes as they do, else by a mean
    /// of films of slow moves over stills.
    fn bytes_of(
        &self,
        open: &OpenProject,
        preset: &Written,
        secs: f64,
    ) -> Result<u64, StudioError> {
        /// Bits a pixel at quality 18, measured on the sample film (1.9 Mbit/s at 1280 x 720 and 24
        /// frames a second).
        const BITS_A_PIXEL: f64 = 0.087;
        /// Quality steps that halve a file.
        const HALVING: f64 = 6.0;
        const SOUND_BYTES_A_SEC: f64 = 24_000.0;
        let state = self.state(open)?;
        let made = state.shots.values().filter_map(|shot| {
            let hash = shot.made.as_deref()?.parse::<ContentHash>().ok()?;
            let bytes = std::fs::metadata(self.studio.store.blob_path(&hash).ok()?)
                .ok()?
                .len();
            (shot.state == ShotState::Made).then_some((bytes as f64, shot.length_secs))
        });
        let (bytes, seen) = made.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let finer = 2f64.powf((18.0 - f64::from(preset.crf)) / HALVING);
        let a_sec = if seen > 0.0 && preset.size.is_none() {
            bytes / seen
        } else {
            let (width_px, height_px) = match preset.size {
                Some(size) => (size.width_px, size.height_px),
                None => (state.film.width_px, state.film.height_px),
            };
            let fps = state
                .film
                .fps
                .parse::<Rational>()
                .map_or(24.0, Rational::as_f64);
            f64::from(width_px) * f64::from(height_px) * fps * BITS_A_PIXEL / 8.0
        };
        Ok((secs * (a_sec * finer + SOUND_BYTES_A_SEC)) as u64)
    }

    /// A film that was written: its content is read once, as long as it stays as it is.
    pub(super) fn exported(&self, path: &Path) -> Result<ExportedFile, StudioError> {
        let failed = |error: std::io::Error| StudioError::io("read the film", path, &error);
        let about = std::fs::metadata(path).map_err(failed)?;
        let since = about
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let made_unix_millis = since.map_or(0, |since| since.as_millis() as u64);
        let note = format!("film.{}", path.display());
        let as_it_is = json!([about.len(), made_unix_millis]);
        let known = self
            .db
            .note(&note)?
            .filter(|known| known["as_it_is"] == as_it_is);
        let hash = known
            .as_ref()
            .and_then(|known| known["hash"].as_str()?.parse::<ContentHash>().ok());
        let heard = known
            .as_ref()
            .and_then(|known| serde_json::from_value(known["loudness"].clone()).ok());
        let (hash, heard): (ContentHash, Option<FileLoudness>) = match hash {
            Some(hash) => (hash, heard),
            None => {
                let (hash, _bytes) = hash_of(path)?;
                // A film without sound is not loud at all.
                let heard = flow_media::sound::loudness_of(path, &CancelToken::new()).ok();
                let told =
                    json!({ "as_it_is": as_it_is, "hash": hash.to_hex(), "loudness": heard });
                self.db.set_note(&note, &told)?;
                (hash, heard)
            }
        };
        self.know_file(hash, path);
        Ok(ExportedFile {
            path: path.to_owned(),
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            hash: hash.to_hex(),
            bytes: about.len(),
            made_unix_millis,
            lufs: heard.map(|heard| heard.lufs),
            true_peak_dbtp: heard.map(|heard| heard.true_peak_dbtp),
        })
    }
}

fn predict(desk: &Desk, args: ExportArgs) -> Result<ExportPrediction, StudioError> {
    let open = desk.project(&args.project)?;
    let wanted = desk.film_wanted(&open, &args)?;
    let manner = desk.manner_of_export(&open, &args)?;
    let silent: Arc<dyn Watcher> = Arc::new(|_event| {});
    let given = Given::Project(&open.project, &manner);
    let (plan, film_secs) = desk.studio.plan_from(&wanted, given, &silent)?;
    Ok(ExportPrediction {
        secs_to_make: plan.secs,
        to_make: plan.will_run + plan.unknown,
        bytes: desk.bytes_of(&open, preset(&args.preset)?, film_secs)?,
        film_secs,
        out: wanted.out.unwrap_or_default(),
        licence: desk.licences(&open, &args)?,
        warnings: plan.warnings.into_iter().map(ScriptWarning::said).collect(),
    })
}

fn start(desk: &Desk, args: ExportArgs) -> Result<JobStarted, StudioError> {
    let open = desk.project(&args.project)?;
    let wanted = desk.film_wanted(&open, &args)?;
    desk.check_licences(&open, &args)?;
    let out = wanted.out.unwrap_or_default();
    let name = out
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let title = Say::ExportTo { name };
    let job = desk.add_job(
        "export.start",
        title,
        Some(open.folder.clone()),
        kept(&args),
    )?;
    Ok(JobStarted { job })
}

fn list(desk: &Desk, args: ProjectArgs) -> Result<Vec<ExportedFile>, StudioError> {
    let open = desk.project(&args.project)?;
    let folder = open.folder.join(FOLDER);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StudioError::io("read the folder of films", &folder, &error)),
    };
    let mut films = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let hidden = path
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.extension().is_some_and(|ending| ending == "mp4") {
            films.push(desk.exported(&path)?);
        }
    }
    films.sort_by_key(|film| std::cmp::Reverse(film.made_unix_millis));
    Ok(films)
}

fn reveal(desk: &Desk, args: PathArgs) -> Result<Done, StudioError> {
    let path = args
        .path
        .canonicalize()
        .map_err(|error| StudioError::io("find the file", &args.path, &error))?;
    let ours = lock(&desk.projects)
        .keys()
        .any(|folder| path.starts_with(folder));
    if !ours {
        let message = format!("expected a file of an open project, got {path:?}");
        return Err(StudioError::new(Code::NotPermitted, message));
    }
    let folder = if path.is_dir() {
        path.as_path()
    } else {
        path.parent().unwrap_or(&path)
    };
    let program = if cfg!(windows) {
        "explorer"
    } else if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = Command::new(program)
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let waits = |mut child: std::process::Child| {
        let thread = std::thread::Builder::new().name("reveal".into());
        thread.spawn(move || drop(child.wait()))
    };
    match started.and_then(waits) {
        Ok(_thread) => Ok(Done {}),
        Err(error) => {
            let message = format!("cannot show the folder with {program}: {error}: {folder:?}");
            Err(StudioError::new(Code::Refused, message))
        }
    }
}
