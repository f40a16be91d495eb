//! Opens a layer's source file.

use std::path::PathBuf;
use std::sync::Arc;

use flow_timeline::{FilmFormat, Layer, LayerKind};

use super::layer::{FrameSource, LayerSource};
use crate::MediaError;
use crate::picture::Picture;
use crate::still::{StillOptions, load_still};
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

/// Open what `layer` shows.
pub(crate) fn open(
    layer: &Layer,
    path: Option<&PathBuf>,
    format: &FilmFormat,
) -> Result<LayerSource, MediaError> {
    if matches!(layer.source, LayerKind::Colour { .. }) {
        return Ok(LayerSource::Colour);
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
        return Ok(LayerSource::Video(Box::new(Video(video))));
    }
    let picture = load_still(path, &StillOptions { max_side_px })?;
    Ok(LayerSource::Still(Arc::new(picture)))
}
