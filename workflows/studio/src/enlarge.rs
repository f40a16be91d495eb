//! Which pictures of a film are made twice as large before the camera moves over them.

use std::collections::BTreeMap;

use engine_hub::ModelKind;
use flow_nodes::FilmFiles;
use flow_store::Store;
use flow_timeline::{FilmFormat, FilmPlan, Fit, SourceKind, SourceRef};

use crate::error::StudioError;
use crate::models::hub;
use crate::say::{Said, Say};

/// A picture that is shown at most this many times larger than it is stays as it is.
const LARGEST_SCALE: f64 = 1.05;

/// Mark the stills that a film shows larger than they are. Gives what a person is told.
///
/// # Errors
/// The model list cannot be read.
pub(crate) fn choose(
    plan: &FilmPlan,
    files: &mut FilmFiles,
    store: &Store,
) -> Result<Vec<Said>, StudioError> {
    let zooms = zooms(plan);
    let mut small: Vec<SourceRef> = Vec::new();
    for (source, file) in files.iter() {
        let Some((zoom, fit)) = zooms.get(source) else {
            continue;
        };
        // What cannot be read fails its own shot, when that is made.
        let path = store.blob_path(&file.content)?;
        let size = flow_media::still::still_size_px(&path).ok();
        if size.is_some_and(|size| scale(size, &plan.format, *fit) * zoom > LARGEST_SCALE) {
            small.push(source.clone());
        }
    }
    if small.is_empty() {
        return Ok(Vec::new());
    }
    let hub = hub()?;
    let default =
        |entry: &&engine_hub::ModelEntry| entry.kind == ModelKind::Upscale && entry.default;
    let Some(entry) = hub.entries().iter().find(default) else {
        return Ok(Vec::new());
    };
    if hub.path(&entry.id).is_none() {
        let say = Say::SmallPictures {
            count: small.len() as i64,
            model: entry.id.clone(),
        };
        return Ok(vec![say.into()]);
    }
    for source in small {
        if let Some(file) = files.get_mut(&source) {
            file.enlarge = Some(entry.id.clone());
        }
    }
    Ok(Vec::new())
}

/// Widest zoom at which each still is seen, and how it fills the frame.
fn zooms(plan: &FilmPlan) -> BTreeMap<&SourceRef, (f64, Fit)> {
    let mut zooms: BTreeMap<&SourceRef, (f64, Fit)> = BTreeMap::new();
    for planned in &plan.segments {
        for (layer, source) in planned.segment.layers.iter().zip(&planned.sources) {
            let Some(source) = source
                .as_ref()
                .filter(|source| source.kind == SourceKind::Still)
            else {
                continue;
            };
            let zoom = layer.camera.from.zoom.max(layer.camera.to.zoom);
            let widest = zooms.entry(source).or_insert((zoom, layer.fit));
            widest.0 = widest.0.max(zoom);
        }
    }
    zooms
}

/// How many times larger than it is a picture is shown at zoom 1.
fn scale((width_px, height_px): (u32, u32), format: &FilmFormat, fit: Fit) -> f64 {
    let across = f64::from(format.width_px) / f64::from(width_px.max(1));
    let down = f64::from(format.height_px) / f64::from(height_px.max(1));
    match fit {
        Fit::Cover => across.max(down),
        Fit::Contain => across.min(down),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_scaled_to_cover_the_frame_or_to_lie_within_it() {
        let format = FilmFormat::DEFAULT;
        let size = (format.width_px / 2, format.height_px);
        assert!((scale(size, &format, Fit::Cover) - 2.0).abs() < 1e-9);
        assert!((scale(size, &format, Fit::Contain) - 1.0).abs() < 1e-9);
        assert!(scale((8000, 8000), &format, Fit::Cover) < LARGEST_SCALE);
    }
}
