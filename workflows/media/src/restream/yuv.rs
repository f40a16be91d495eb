//! Full-range RGB of 16 bits to the planes that are coded.

use ffmpeg_next::frame;
use rayon::prelude::*;

use super::RgbPicture;
use super::coding::{Chroma, Coding};

/// Weights of the pixels that a chroma sample stands for, as offset and share.
type Taps = &'static [(isize, f32)];

const AT_FIRST: Taps = &[(-1, 0.25), (0, 0.5), (1, 0.25)];
const BETWEEN: Taps = &[(0, 0.5), (1, 0.5)];
const AT_SECOND: Taps = &[(0, 0.25), (1, 0.5), (2, 0.25)];

const fn taps(place: i64) -> Taps {
    match place {
        0 => AT_FIRST,
        128 => BETWEEN,
        _ => AT_SECOND,
    }
}

/// Offset and steps of luma, and steps of chroma, for values of `bits`.
#[derive(Clone, Copy)]
struct Scale {
    black: f32,
    luma: f32,
    grey: f32,
    chroma: f32,
    most: f32,
}

impl Scale {
    fn of(coding: &Coding) -> Self {
        let steps = f32::from(1u16 << (coding.bits - 8));
        let most = 256.0 * steps - 1.0;
        if coding.writes_full_range {
            Self {
                black: 0.0,
                luma: most,
                grey: 128.0 * steps,
                chroma: most,
                most,
            }
        } else {
            Self {
                black: 16.0 * steps,
                luma: 219.0 * steps,
                grey: 128.0 * steps,
                chroma: 224.0 * steps,
                most,
            }
        }
    }

    fn stored(self, value: f32) -> u16 {
        (value + 0.5).clamp(0.0, self.most) as u16
    }
}

fn put(row: &mut [u8], x: usize, value: u16, is_wide: bool) {
    if is_wide {
        if let Some(place) = row.as_chunks_mut::<2>().0.get_mut(x) {
            *place = value.to_le_bytes();
        }
    } else if let Some(place) = row.get_mut(x) {
        *place = value as u8;
    }
}

/// Write `picture` into `frame`, which has its size and the coding's pixel format.
pub(super) fn fill(frame: &mut frame::Video, picture: &RgbPicture, coding: &Coding) {
    let (width, height) = (picture.width_px as usize, picture.height_px as usize);
    let scale = Scale::of(coding);
    let (red_share, blue_share) = coding.shares;
    let green_share = 1.0 - red_share - blue_share;
    let luma = move |[r, g, b]: [f32; 3]| red_share * r + green_share * g + blue_share * b;
    let pixels = picture.values.as_chunks::<3>().0;
    let at = |x: usize, y: usize| pixels[y * width + x].map(|value| f32::from(value) / 65_535.0);
    let is_wide = coding.bits > 8;

    let stride = frame.stride(0);
    let rows = frame.data_mut(0).par_chunks_mut(stride).take(height);
    rows.enumerate().for_each(|(y, row)| {
        for x in 0..width {
            let value = scale.black + scale.luma * luma(at(x, y));
            put(row, x, scale.stored(value), is_wide);
        }
    });

    let (across, down) = coding.chroma_place();
    let (step_x, taps_x): (usize, Taps) = match coding.chroma {
        Chroma::Full => (1, &[(0, 1.0)]),
        Chroma::Half | Chroma::Quarter => (2, taps(across)),
    };
    let (step_y, taps_y): (usize, Taps) = match coding.chroma {
        Chroma::Full | Chroma::Half => (1, &[(0, 1.0)]),
        Chroma::Quarter => (2, taps(down)),
    };
    let mean = |x: usize, y: usize| {
        let mut mean = [0.0f32; 3];
        for (dy, share_y) in taps_y {
            let y = y.saturating_add_signed(*dy).min(height - 1);
            for (dx, share_x) in taps_x {
                let x = x.saturating_add_signed(*dx).min(width - 1);
                for (mean, value) in mean.iter_mut().zip(at(x, y)) {
                    *mean += value * (share_x * share_y);
                }
            }
        }
        mean
    };
    for (plane, channel, share) in [(1, 2, blue_share), (2, 0, red_share)] {
        let stride = frame.stride(plane);
        let rows = frame.data_mut(plane).par_chunks_mut(stride);
        rows.take(height.div_ceil(step_y))
            .enumerate()
            .for_each(|(row_index, row)| {
                for x in 0..width.div_ceil(step_x) {
                    let mean = mean(x * step_x, row_index * step_y);
                    let difference = (mean[channel] - luma(mean)) / (2.0 * (1.0 - share));
                    let value = scale.grey + scale.chroma * difference;
                    put(row, x, scale.stored(value), is_wide);
                }
            });
    }
}
