//! What the drawing of pictures asks of a family.

use engine_base::CancelToken;

use super::ImageError;

/// A picture in the compressed space of an autoencoder: `values: [height * width, channels]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Latent {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Channels.
    pub channels: usize,
    /// `[height * width, channels]`.
    pub values: Vec<f32>,
}

/// What a family draws when nothing else is asked for, and what it can draw.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageLimits {
    /// Sides are multiples of this.
    pub step_px: u32,
    /// Smallest side.
    pub least_side_px: u32,
    /// Most pixels.
    pub most_px: u64,
    /// Width and height when none are asked for.
    pub size_px: (u32, u32),
    /// Steps when none are asked for.
    pub steps: u32,
    /// Guidance when none is asked for; 1 means none.
    pub guidance: f32,
}

/// A family of models that draw pictures.
pub(super) trait ImageFamily: std::fmt::Debug + Send + Sync {
    /// Its name.
    fn id(&self) -> &'static str;

    fn limits(&self) -> &ImageLimits;

    /// Rows, columns and channels of the latent of a picture.
    fn latent_size(&self, size_px: (u32, u32)) -> (usize, usize, usize);

    /// Noise levels of a run of `steps`, with the 0 at its end.
    fn sigmas(&self, steps: u32, latent: (usize, usize)) -> Result<Vec<f32>, ImageError>;

    /// Reads prompts, one after the other; what was cut off is told in `notes`.
    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError>;

    /// To `[4, height, width]` in -1..1, straight alpha.
    fn decode(&self, latent: &Latent, cancel: &CancelToken) -> Result<Vec<f32>, ImageError>;

    /// Weights of channels in red, green and blue (-1..1) with a constant behind them, for previews:
    /// `[channels + 1, 3]`, where the model says so.
    fn preview_weights(&self) -> Option<&[[f32; 3]]> {
        None
    }
}

/// Predicts velocities for the prompts it was begun with.
pub(super) trait Denoiser {
    /// One velocity for each prompt, at noise level `sigma`; the next level is `next`.
    fn velocities(
        &mut self,
        latent: &Latent,
        sigma: f32,
        next: f32,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ImageError>;
}
