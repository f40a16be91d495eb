//! Runs that begin with a picture: how much of the way is left, and what stays as it was.

use engine_base::CancelToken;

use super::family::ImageFamily;
use super::{ImageError, ImageRequest, Latent, bytes_of};

/// A part of a pixel over this is drawn anew.
const ANEW: f32 = 0.5 / 255.0;

/// The last part of `sigmas`, as long as `strength` says, at least one step.
pub(super) fn begun_at(sigmas: &[f32], strength: f32) -> Vec<f32> {
    let steps = sigmas.len().saturating_sub(1);
    let left = (steps as f32 * strength).round().max(1.0) as usize;
    sigmas[steps.saturating_sub(left)..].to_vec()
}

/// A picture that is begun with.
pub(super) struct Ground {
    /// Its latent.
    clean: Latent,
    strength: f32,
    mask: Option<Mask>,
}

/// What is drawn anew.
struct Mask {
    /// For each pixel of the latent.
    latent: Vec<bool>,
    /// For each pixel, how much of it.
    shares: Vec<f32>,
    /// The picture at the size that is drawn: `[pixels, 4]`.
    rgba: Vec<u8>,
}

impl Ground {
    /// Of a request whose sizes are settled.
    pub(super) fn of(
        family: &dyn ImageFamily,
        request: &ImageRequest,
        cancel: &CancelToken,
    ) -> Result<Option<Self>, ImageError> {
        let Some(init) = &request.init else {
            return Ok(None);
        };
        let size_px = (request.width_px, request.height_px);
        let planes = init.picture.planes(size_px);
        let rgba = bytes_of(&planes);
        let clean = family.encode(planes, size_px, cancel)?;
        let mask = request.mask.as_ref().map(|mask| {
            let wide = size_px.0 as usize;
            // White and opaque at the size that is drawn.
            let planes = mask.on_white(size_px);
            let opaque = bytes_of(&mask.planes(size_px));
            let pixels = planes.len() / 3;
            let shares: Vec<f32> = if mask.size_px() == size_px {
                mask.shares()
            } else {
                let light = |at: usize| (0..3).map(|c| planes[c * pixels + at]).sum::<f32>();
                let share =
                    |at: usize| (light(at) / 6.0 + 0.5) * f32::from(opaque[4 * at + 3]) / 255.0;
                (0..pixels).map(share).collect()
            };
            let (across, down) = (
                wide / clean.width.max(1),
                size_px.1 as usize / clean.height.max(1),
            );
            let mut latent = vec![false; clean.height * clean.width];
            for (at, share) in shares.iter().enumerate() {
                let (y, x) = (at / wide / down.max(1), at % wide / across.max(1));
                if *share > ANEW
                    && let Some(cell) = latent.get_mut(y * clean.width + x)
                {
                    *cell = true;
                }
            }
            Mask {
                latent,
                shares,
                rgba,
            }
        });
        Ok(Some(Self {
            clean,
            strength: init.strength,
            mask,
        }))
    }

    /// Of a latent alone.
    pub(super) fn of_latent(clean: Latent, strength: f32) -> Self {
        Self {
            clean,
            strength,
            mask: None,
        }
    }

    /// How far it may be left.
    pub(super) fn strength(&self) -> f32 {
        self.strength
    }

    /// Puts back what stays, at noise level `sigma`.
    pub(super) fn keep(
        &self,
        family: &dyn ImageFamily,
        latent: &mut Latent,
        noise: &[f32],
        sigma: f32,
    ) {
        let Some(mask) = &self.mask else {
            return;
        };
        let channels = latent.channels.max(1);
        for (at, value) in latent.values.iter_mut().enumerate() {
            if !mask.latent[at / channels] {
                *value = family.noised(self.clean.values[at], noise[at], sigma);
            }
        }
    }

    /// Puts back the pixels that stay.
    pub(super) fn restore(&self, rgba: &mut [u8]) {
        let Some(mask) = &self.mask else {
            return;
        };
        for (at, byte) in rgba.iter_mut().enumerate() {
            let share = mask.shares[at / 4];
            let mixed = share * f32::from(*byte) + (1.0 - share) * f32::from(mask.rgba[at]);
            *byte = mixed.round() as u8;
        }
    }
}

/// The latent a run begins with.
pub(super) fn begin(
    family: &dyn ImageFamily,
    ground: Option<&Ground>,
    noise: &[f32],
    sigmas: &[f32],
) -> Vec<f32> {
    let sigma = sigmas.first().copied().unwrap_or(1.0);
    match ground.filter(|ground| ground.strength < 1.0) {
        Some(ground) => {
            let pairs = ground.clean.values.iter().zip(noise);
            pairs
                .map(|(clean, noise)| family.noised(*clean, *noise, sigma))
                .collect()
        }
        None => {
            let scale = family.noise_scale(sigma);
            noise.iter().map(|noise| scale * noise).collect()
        }
    }
}
