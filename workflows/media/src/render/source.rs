//! Opens a layer's source.

use std::path::PathBuf;

use flow_timeline::{FilmFormat, Layer, LayerKind};

use super::layer::LayerSource;
use crate::MediaError;

pub(crate) fn open(
    layer: &Layer,
    path: Option<&PathBuf>,
    _format: &FilmFormat,
) -> Result<LayerSource, MediaError> {
    if matches!(layer.source, LayerKind::Colour { .. }) {
        return Ok(LayerSource::Colour);
    }
    Err(MediaError::BadRequest(format!("open {path:?}")))
}
