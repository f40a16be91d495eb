//! Between a film's manifest and what a film is prepared from.

use flow_nodes::{FilmFile, FilmFiles, FilmOptions};
use flow_story::Script;
use flow_timeline::SourceRef;

use super::{FilmRequest, faulty};
use crate::error::StudioError;
use crate::library::file_name;
use crate::manifest::{Manifest, ManifestFile};
use crate::rewrite;
use crate::voices::SpokenFilm;

pub(super) fn script_of(manifest: &Manifest) -> Result<Script, StudioError> {
    let text = manifest.script.to_string();
    let parsed = flow_story::parse_json(&text).map_err(|faults| faulty(&faults))?;
    Ok(parsed.script)
}

pub(super) fn manifest_of(
    request: &FilmRequest,
    script: &Script,
    files: &FilmFiles,
    spoken: &SpokenFilm,
) -> Result<Manifest, StudioError> {
    let defaults = FilmOptions::default();
    let file = |(source, file): (&SourceRef, &FilmFile)| {
        let kept = ManifestFile {
            content: file.content,
            media_type: file.media_type.clone(),
            enlarge: file.enlarge.clone(),
        };
        (file_name(source), kept)
    };
    Ok(Manifest {
        files: files.iter().map(file).collect(),
        spoken: spoken.lines.clone(),
        crf: request.crf.unwrap_or(defaults.crf),
        preset: request
            .preset
            .clone()
            .unwrap_or_else(|| defaults.preset.to_owned()),
        burn_subtitles: request.burn_subtitles,
        loudness: request.loudness,
        ..Manifest::new(rewrite::to_value(script)?)
    })
}
