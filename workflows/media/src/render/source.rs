//! Opens a layer's source file.

use std::path::PathBuf;
use std::sync::Arc;

use flow_timeline::{FilmFormat, Fit, Layer, LayerKind};

use super::layer::{FrameSource, LayerSource};
use crate::MediaError;
use crate::picture::Picture;
use crate::still::{StillOptions, load_still_noted};
use crate::video::{VideoFrames, VideoOptions};

/// Longer side beyond which no view of an 8192 px frame gains.
const MAX_SIDE_PX: u32 = 16_384;

struct Video(VideoFrames);

impl FrameSource for Video {
    fn frame(&mut self, index: i64) -> Result<Arc<Picture>, MediaError> {
        // A transition may reach a little before the source's start; its first picture is held.
        self.0.frame(index.max(0))
    }
}

/// Open what `layer` shows; notes say what of the file was converted or is odd.
pub(crate) fn open(
    layer: &Layer,
    path: Option<&PathBuf>,
    format: &FilmFormat,
) -> Result<(LayerSource, Vec<String>), MediaError> {
    if matches!(layer.source, LayerKind::Colour { .. }) {
        return Ok((LayerSource::Colour, Vec::new()));
    }
    let Some(path) = path else {
        return Err(MediaError::BadRequest(format!(
            "render a layer of kind {:?}: got no source file for it",
            layer.source
        )));
    };
    let max_side_px = Some(MAX_SIDE_PX);
    if matches!(layer.source, LayerKind::Video { .. }) {
        let video = VideoFrames::open(path, format.fps, &VideoOptions { max_side_px })?;
        let notes = video.notes();
        return Ok((LayerSource::Video(Box::new(Video(video))), notes));
    }
    let loaded = load_still_noted(path, &StillOptions { max_side_px })?;
    let (picture, mut notes) = (loaded.picture, loaded.notes);
    let (width, height) = (picture.width_px, picture.height_px);
    if width % 2 + height % 2 > 0 {
        let what = match layer.fit {
            Fit::Cover => "scaled to fill the frame and cut where the shapes differ",
            Fit::Contain => "scaled into the frame whole",
        };
        notes.push(format!(
            "the picture is {width}x{height} px, an odd size that films can't have; it is {what}"
        ));
    }
    Ok((LayerSource::Still(Arc::new(picture)), notes))
}
