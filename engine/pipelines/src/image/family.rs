//! What the drawing of pictures asks of a family.

use engine_base::CancelToken;

use super::{GivenPicture, ImageError};

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

/// `[4, height, width]` in -1..1, with its width and height.
pub(super) type SmallPicture = (Vec<f32>, (u32, u32));

/// A family of models that draw pictures.
pub(super) trait ImageFamily: std::fmt::Debug + Send + Sync {
    /// Its name.
    fn id(&self) -> &'static str;

    fn limits(&self) -> &ImageLimits;

    /// Rows, columns and channels of the latent of a picture.
    fn latent_size(&self, size_px: (u32, u32)) -> (usize, usize, usize);

    /// Noise levels of a run of `steps`, with the 0 at its end.
    fn sigmas(&self, steps: u32, latent: (usize, usize)) -> Result<Vec<f32>, ImageError>;

    /// Reads prompts, one after the other, each with all `references`; what was cut off is told in `notes`.
    fn begin<'a>(
        &'a self,
        prompts: &[&str],
        references: &[GivenPicture],
        notes: &mut Vec<String>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Denoiser + 'a>, ImageError>;

    /// Pictures that a prompt may speak of.
    fn most_references(&self) -> usize {
        0
    }

    /// `planes: [4, height, width]` in -1..1, straight alpha, to a latent as the network knows it.
    fn encode(
        &self,
        planes: Vec<f32>,
        size_px: (u32, u32),
        cancel: &CancelToken,
    ) -> Result<Latent, ImageError>;

    /// A picture's value at noise level `sigma`.
    fn noised(&self, clean: f32, noise: f32, sigma: f32) -> f32 {
        (1.0 - sigma) * clean + sigma * noise
    }

    /// What noise is multiplied by at the begin of a run at `sigma`.
    fn noise_scale(&self, _sigma: f32) -> f32 {
        1.0
    }

    /// What is walked along: of the velocity with the prompt and that with the negative one.
    fn guide(&self, with: Vec<f32>, without: &[f32], guidance: f32, _channels: usize) -> Vec<f32> {
        let mut velocity = with;
        for (with, without) in velocity.iter_mut().zip(without) {
            *with = without + guidance * (*with - without);
        }
        velocity
    }

    /// A small picture by a network made for that.
    fn small(&self, _latent: &Latent) -> Result<Option<SmallPicture>, ImageError> {
        Ok(None)
    }

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

impl Latent {
    /// Of `planes: [channels, height, width]`.
    pub(super) fn of_planes(planes: &[f32], (height, width): (usize, usize)) -> Self {
        let pixels = (height * width).max(1);
        let channels = planes.len() / pixels;
        let value = |at: usize| planes[at % channels.max(1) * pixels + at / channels.max(1)];
        Self {
            height,
            width,
            channels,
            values: (0..planes.len()).map(value).collect(),
        }
    }

    /// `[channels, height, width]`.
    pub(super) fn planes(&self) -> Vec<f32> {
        let pixels = (self.height * self.width).max(1);
        let value = |at: usize| self.values[at % pixels * self.channels + at / pixels];
        (0..self.values.len()).map(value).collect()
    }
}

/// `[3, pixels]` to `[4, pixels]`, opaque.
pub(super) fn opaque(mut planes: Vec<f32>) -> Vec<f32> {
    let pixels = planes.len() / 3;
    planes.resize(4 * pixels, 1.0);
    planes
}
