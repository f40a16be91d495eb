//! Nodes that run picture models.

mod compose;
mod draw;
mod latents;
mod moving;
mod upscale;

use std::path::Path;
use std::sync::Arc;

use engine_base::{CancelToken, Datum, ProgressSink};
use engine_pipelines::{Raster, Samples, UpscaleError, Upscaler};
use flow_graph::{Node, NodeError};
use flow_media::still::{SavePicture, SaveSamples, StillOptions, load_still_noted, save_still};
use flow_media::{MediaError, Picture, Pixels};

pub use compose::picture_document;
pub use draw::{DrawnStill, ImageChoice, ImageModelSource, draw_still, given_picture};
pub use moving::{SegmentKeeper, SegmentName, VideoReport, VideoUpscale};

/// Opens upscalers by the id of their model, or the default one by an empty id.
pub trait UpscalerSource: Send + Sync {
    /// Open the upscaler called `id`.
    ///
    /// # Errors
    /// There is no such model, or it is not here.
    fn open(&self, id: &str) -> Result<Arc<Upscaler>, NodeError>;

    /// What decides the results of models: their content hashes.
    fn side_data(&self) -> Datum;
}

/// Types of this folder, which open their models with `source`.
pub fn picture_node_types(source: &Arc<dyn UpscalerSource>) -> Vec<Arc<dyn Node>> {
    vec![Arc::new(upscale::Upscale::new(Arc::clone(source)))]
}

/// Types that draw pictures, which open their models with `source`.
pub fn image_node_types(source: &Arc<dyn ImageModelSource>) -> Vec<Arc<dyn Node>> {
    let mut types: Vec<Arc<dyn Node>> = vec![
        Arc::new(draw::Draw::new(Arc::clone(source))),
        Arc::new(compose::Compose::new()),
    ];
    types.extend(latents::types(source));
    types
}

/// A still that was made larger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillReport {
    /// Width of the result.
    pub width_px: u32,
    /// Height of the result.
    pub height_px: u32,
    /// What was converted, is odd or could not be kept, for people.
    pub notes: Vec<String>,
}

/// Makes the still `from` `scale` times as large and writes it to `to`, by the ending of its name:
/// upright, sRGB; grey stays grey, 16 bits stay 16 where the file type has them.
///
/// # Errors
/// A picture that cannot be read or written; the upscaler's; cancelled.
pub fn upscale_still(
    upscaler: &Upscaler,
    (from, to): (&Path, &Path),
    scale: usize,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<StillReport, NodeError> {
    let loaded = load_still_noted(from, &StillOptions::default()).map_err(failed)?;
    let mut notes = loaded.notes;
    let small = raster(loaded.picture);
    let large = upscaler
        .upscale(&small, scale, cancel, progress)
        .map_err(refused)?;
    drop(small);
    let samples = match &large.samples {
        Samples::U8(values) => SaveSamples::U8(values),
        Samples::U16(values) => SaveSamples::U16(values),
    };
    let picture = SavePicture {
        width_px: large.width_px,
        height_px: large.height_px,
        channels: large.channels,
        samples,
    };
    notes.extend(upscaler.notes());
    notes.extend(save_still(&picture, to).map_err(failed)?);
    Ok(StillReport {
        width_px: large.width_px,
        height_px: large.height_px,
        notes,
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape of a map_err function"
)]
fn failed(error: MediaError) -> NodeError {
    NodeError::new(error.code(), error.to_string())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape of a map_err function"
)]
fn refused(error: UpscaleError) -> NodeError {
    NodeError::new(error.code(), error.to_string())
}

/// The picture with the channels that it needs: one colour where all are equal, alpha where something
/// is transparent.
fn raster(picture: Picture) -> Raster {
    let (width_px, height_px) = (picture.width_px, picture.height_px);
    let (channels, samples) = match picture.pixels {
        Pixels::Rgba8(values) => {
            let (channels, values) = needed(values, u8::MAX);
            (channels, Samples::U8(values))
        }
        Pixels::Rgba16(values) => {
            let (channels, values) = needed(values, u16::MAX);
            (channels, Samples::U16(values))
        }
    };
    Raster {
        width_px,
        height_px,
        channels,
        samples,
    }
}

fn needed<T: Copy + PartialEq>(mut values: Vec<T>, opaque: T) -> (u8, Vec<T>) {
    let pixels = values.as_chunks::<4>().0;
    let grey = pixels
        .iter()
        .all(|[red, green, blue, _]| red == green && green == blue);
    let solid = pixels.iter().all(|[_, _, _, alpha]| *alpha == opaque);
    let kept: &[usize] = match (grey, solid) {
        (true, true) => &[0],
        (true, false) => &[0, 3],
        (false, true) => &[0, 1, 2],
        (false, false) => return (4, values),
    };
    // In place: a large picture is there once.
    let count = values.len() / 4;
    for pixel in 0..count {
        for (at, channel) in kept.iter().enumerate() {
            values[pixel * kept.len() + at] = values[pixel * 4 + channel];
        }
    }
    values.truncate(count * kept.len());
    values.shrink_to_fit();
    (kept.len() as u8, values)
}

#[cfg(test)]
mod tests;
