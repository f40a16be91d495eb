//! Pictures that are handed in: begun with, masks, references.

use std::fmt;
use std::sync::Arc;

use engine_base::ContentHash;

use super::{ImageError, RgbaImage};

/// Most pixels of a picture that is handed in.
const MOST_PX: u64 = 1 << 28;

/// A picture of 8 bits a channel, straight alpha, rows from the top.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenPicture {
    width_px: u32,
    height_px: u32,
    rgba: Arc<[u8]>,
}

/// Says its content, so that what is made of it can be told from what is made of another.
impl fmt::Debug for GivenPicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = ContentHash::of(&self.rgba).to_hex();
        write!(
            f,
            "GivenPicture({} x {}, {hash})",
            self.width_px, self.height_px
        )
    }
}

impl GivenPicture {
    /// Of `rgba: [height, width, 4]`.
    ///
    /// # Errors
    /// `Given` for no pixels, too many, or other than they say.
    pub fn new(width_px: u32, height_px: u32, rgba: Vec<u8>) -> Result<Self, ImageError> {
        let pixels = u64::from(width_px) * u64::from(height_px);
        if pixels == 0 || pixels > MOST_PX || rgba.len() as u64 != 4 * pixels {
            return Err(ImageError::Given(format!(
                "a picture of {width_px} x {height_px} px has {} bytes, expected 1 to {MOST_PX} px of 4 bytes",
                rgba.len()
            )));
        }
        Ok(Self {
            width_px,
            height_px,
            rgba: rgba.into(),
        })
    }

    /// Width and height.
    pub fn size_px(&self) -> (u32, u32) {
        (self.width_px, self.height_px)
    }

    /// `[height, width, 4]`.
    pub fn rgba(&self) -> &[u8] {
        &self.rgba
    }

    /// The same picture, white where it lacks something, in the middle of a larger one; with the mask that
    /// has the rest drawn anew.
    ///
    /// # Errors
    /// `Given` for a size that does not hold it.
    pub fn outpainted(
        &self,
        (width_px, height_px): (u32, u32),
    ) -> Result<(Self, Self), ImageError> {
        if width_px < self.width_px || height_px < self.height_px {
            return Err(ImageError::Given(format!(
                "a picture of {} x {} px cannot be drawn further to {width_px} x {height_px} px: expected a \
                 larger size",
                self.width_px, self.height_px
            )));
        }
        let pixels = u64::from(width_px) * u64::from(height_px);
        if pixels > MOST_PX {
            return Err(ImageError::Given(format!(
                "{width_px} x {height_px} px are {pixels} px, expected at most {MOST_PX}"
            )));
        }
        let (left, top) = (
            (width_px - self.width_px) / 2,
            (height_px - self.height_px) / 2,
        );
        let (wide, inner) = (width_px as usize, self.width_px as usize);
        let mut picture = vec![u8::MAX; 4 * pixels as usize];
        let mut mask = picture.clone();
        // The nearest pixel of the picture stands where there is none yet.
        for (at, pixel) in picture.chunks_exact_mut(4).enumerate() {
            let clamp = |at: usize, start: u32, len: u32| {
                at.saturating_sub(start as usize).min(len as usize - 1)
            };
            let (y, x) = (at / wide, at % wide);
            let from = clamp(y, top, self.height_px) * inner + clamp(x, left, self.width_px);
            pixel.copy_from_slice(&self.rgba[4 * from..4 * from + 4]);
            let inside = |at: usize, start: u32, len: u32| {
                at >= start as usize && at < (start + len) as usize
            };
            if inside(y, top, self.height_px) && inside(x, left, self.width_px) {
                mask[4 * at..4 * at + 3].fill(0);
            }
        }
        Ok((
            Self::new(width_px, height_px, picture)?,
            Self::new(width_px, height_px, mask)?,
        ))
    }

    /// `[4, height, width]` in -1..1 at another size: what sticks out on two sides is cut off.
    pub(super) fn planes(&self, (width_px, height_px): (u32, u32)) -> Vec<f32> {
        let (wide, high) = (self.width_px as usize, self.height_px as usize);
        let scale = (f64::from(width_px) / wide as f64).max(f64::from(height_px) / high as f64);
        let across = taps((width_px as usize, wide), scale);
        let down = taps((height_px as usize, high), scale);
        let unit = |at: usize, channel: usize| f32::from(self.rgba[4 * at + channel]) / 127.5 - 1.0;
        let mut out = Vec::with_capacity(4 * across.len() * down.len());
        let mut rows = vec![0.0f32; high * across.len()];
        for channel in 0..4 {
            for (at, value) in rows.iter_mut().enumerate() {
                let (y, taps) = (at / across.len(), &across[at % across.len()]);
                *value = taps
                    .iter()
                    .map(|(x, share)| share * unit(y * wide + x, channel))
                    .sum();
            }
            for taps in &down {
                for x in 0..across.len() {
                    let of = |(y, share): &(usize, f32)| share * rows[y * across.len() + x];
                    out.push(taps.iter().map(of).sum());
                }
            }
        }
        out
    }

    /// `[3, height, width]` in -1..1, laid on white.
    pub(super) fn on_white(&self, size_px: (u32, u32)) -> Vec<f32> {
        on_white(self.planes(size_px))
    }

    /// How much of each pixel is drawn anew, 0 to 1: white is all, black and transparent nothing.
    pub(super) fn shares(&self) -> Vec<f32> {
        let pixels = self.rgba.as_chunks::<4>().0.iter();
        let share = |[red, green, blue, alpha]: &[u8; 4]| {
            let light =
                (u32::from(*red) + u32::from(*green) + u32::from(*blue)) * u32::from(*alpha);
            light as f32 / (3 * 255 * 255) as f32
        };
        pixels.map(share).collect()
    }
}

/// `[4, pixels]` to `[3, pixels]`, laid on white.
pub(super) fn on_white(mut planes: Vec<f32>) -> Vec<f32> {
    let pixels = planes.len() / 4;
    let alphas = planes.split_off(3 * pixels);
    for (at, value) in planes.iter_mut().enumerate() {
        let alpha = f32::midpoint(alphas[at % pixels.max(1)], 1.0);
        *value = (*value - 1.0) * alpha + 1.0;
    }
    planes
}

/// For each of `to` places, which of `from` count how much: a triangle as wide as what is left out.
fn taps((to, from): (usize, usize), scale: f64) -> Vec<Vec<(usize, f32)>> {
    let reach = (1.0 / scale).max(1.0);
    let begin = (from as f64 - to as f64 / scale) / 2.0;
    let of = |at: usize| {
        let centre = begin + (at as f64 + 0.5) / scale;
        let first = (centre - reach).floor().max(0.0) as usize;
        let last = ((centre + reach).ceil() as usize).min(from);
        let share = |at: usize| (1.0 - ((at as f64 + 0.5 - centre) / reach).abs()).max(0.0);
        let mut taps: Vec<(usize, f64)> = (first..last).map(|at| (at, share(at))).collect();
        taps.retain(|(_, share)| *share > 0.0);
        if taps.is_empty() {
            taps.push(((centre as usize).min(from - 1), 1.0));
        }
        let sum: f64 = taps.iter().map(|(_, share)| share).sum();
        let shares = taps.iter().map(|(at, share)| (*at, (share / sum) as f32));
        shares.collect()
    };
    (0..to).map(of).collect()
}

impl RgbaImage {
    /// The same as a picture to be handed in.
    ///
    /// # Errors
    /// As [`GivenPicture::new`].
    pub fn given(&self) -> Result<GivenPicture, ImageError> {
        GivenPicture::new(self.width_px, self.height_px, self.rgba.clone())
    }
}

/// A picture that is begun with.
#[derive(Debug, Clone, PartialEq)]
pub struct InitPicture {
    /// The picture.
    pub picture: GivenPicture,
    /// How far it may be left: 1 keeps nothing of it, near 0 nearly all.
    pub strength: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32) -> GivenPicture {
        let bytes = (0..4 * width * height).map(|at| (at * 37 % 251) as u8);
        GivenPicture::new(width, height, bytes.collect()).unwrap()
    }

    #[test]
    fn a_picture_at_its_own_size_is_itself_and_smaller_ones_are_means() {
        let given = picture(6, 4);
        let planes = given.planes((6, 4));
        for (at, value) in planes.iter().enumerate() {
            let byte = given.rgba()[4 * (at % 24) + at / 24];
            assert!((value * 127.5 + 127.5 - f32::from(byte)).abs() < 1e-3);
        }
        let flat = GivenPicture::new(9, 7, vec![100; 4 * 63]).unwrap();
        for size in [(3, 2), (1, 1), (20, 30)] {
            let values = flat.planes(size);
            assert_eq!(values.len(), 4 * (size.0 * size.1) as usize);
            assert!(
                values.iter().all(|v| (v * 127.5 + 27.5).abs() < 1e-3),
                "{size:?}"
            );
        }
    }

    #[test]
    fn a_picture_drawn_further_stays_in_the_middle() {
        let given = picture(4, 2);
        let (large, mask) = given.outpainted((8, 6)).unwrap();
        assert_eq!(&large.rgba()[4 * (2 * 8 + 2)..][..16], &given.rgba()[..16]);
        let shares = mask.shares();
        assert_eq!(shares.iter().filter(|share| **share == 0.0).count(), 8);
        assert_eq!(shares.iter().filter(|share| **share == 1.0).count(), 40);
        assert!(given.outpainted((3, 6)).is_err());
        assert!(given.outpainted((u32::MAX, u32::MAX)).is_err());
        assert!(GivenPicture::new(3, 3, vec![0; 35]).is_err());
        assert!(GivenPicture::new(0, 3, Vec::new()).is_err());
    }
}
