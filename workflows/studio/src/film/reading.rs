//! What a film is read from: its script, its format, the lengths of recorded voices.

use std::path::{Path, PathBuf};

use engine_base::{Code, Rational};
use flow_story::{Assets, Parsed, Script};
use flow_timeline::{FilmFormat, SourceKind, SourceRef};

use super::noting::Noting;
use crate::error::StudioError;
use crate::library::Library;
use crate::script::ScriptWarning;

/// A script from a file, its warnings told.
pub(super) fn read_script(path: &Path, noting: &Noting) -> Result<Script, StudioError> {
    let parsed = load_script(path)?;
    let format = format_of(&parsed.script)?;
    for warning in flow_story::lint(&parsed.script, &parsed.lines, &format, &Assets::default()) {
        noting.warn(ScriptWarning::of(&warning));
    }
    Ok(parsed.script)
}

/// Warnings about a script that comes from no file.
pub(super) fn lint(script: &Script) -> Vec<ScriptWarning> {
    let lines = flow_story::ScriptLines::default();
    let found = format_of(script)
        .map(|format| flow_story::lint(script, &lines, &format, &Assets::default()));
    // A format that is refused is told of when the film is planned.
    let found = found.unwrap_or_default();
    found.iter().map(ScriptWarning::of).collect()
}

/// A script from a file.
pub(crate) fn load_script(path: &Path) -> Result<Parsed, StudioError> {
    let bytes =
        std::fs::read(path).map_err(|error| StudioError::io("read the script", path, &error))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    flow_story::parse(&bytes, &name).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let message = format!("the script {path:?} is faulty:\n  {}", lines.join("\n  "));
        StudioError::new(Code::BadInput, message)
    })
}

pub(crate) fn format_of(script: &Script) -> Result<FilmFormat, StudioError> {
    let mut format = FilmFormat::DEFAULT;
    if let Some(size) = script.film.size {
        (format.width_px, format.height_px) = (size.width_px, size.height_px);
    }
    format.fps = script.film.fps.unwrap_or(format.fps);
    format.sample_rate_hz = script.film.sample_rate_hz.unwrap_or(format.sample_rate_hz);
    format
        .check()
        .map_err(|error| StudioError::new(Code::BadInput, error.to_string()))?;
    Ok(format)
}

/// Lengths of the recorded voices, which decide when subtitles show.
pub(super) fn lengths(
    script: &Script,
    format: &FilmFormat,
    library: &mut Library<'_>,
) -> Result<Assets, StudioError> {
    let mut assets = Assets::default();
    for (_, line) in script.lines().filter(|(_, line)| !line.voice.is_empty()) {
        let source = SourceRef {
            kind: SourceKind::Sound,
            name: line.voice.clone(),
        };
        if let Some(path) = library.find(&source)? {
            let samples = flow_media::sound::SoundReader::open(&path, format.sample_rate_hz)
                .and_then(|mut reader| reader.samples())
                .map_err(|error| StudioError::new(error.code(), error.to_string()))?;
            let secs = Rational::new(samples, i64::from(format.sample_rate_hz))
                .map_err(|error| StudioError::new(Code::BadInput, error.to_string()))?;
            assets.sound_secs.insert(line.voice.clone(), secs);
        }
    }
    Ok(assets)
}

/// Put the names of a script in the place of paths in the store, which say nothing to a person.
pub(super) fn name_files(message: &mut String, names: &[(PathBuf, String)]) {
    for (path, name) in names {
        for written in [format!("{path:?}"), path.display().to_string()] {
            if message.contains(&written) {
                *message = message.replace(&written, name);
            }
        }
    }
}
