//! Pictures as the renderer holds them, and the separable resampler.

use super::kernel::{Axis, Kernel};
use super::light::{Coder, Light, linear_of_8, linear_of_16};
use crate::picture::{Picture, Pixels};

/// One sample: red, green, blue, and a lane that makes four of it.
pub(crate) type Rgbx = [f32; 4];

/// A picture without alpha in one kind of light, rows from the top.
#[derive(Debug, Clone)]
pub(crate) struct Surface {
    pub width: usize,
    pub height: usize,
    pub data: Vec<Rgbx>,
}

impl Surface {
    /// No picture.
    pub(crate) const EMPTY: Self = Self {
        width: 0,
        height: 0,
        data: Vec::new(),
    };

    pub(crate) fn row(&self, y: usize) -> &[Rgbx] {
        &self.data[y * self.width..(y + 1) * self.width]
    }

    /// `picture` over black (mixed in linear light), at its own size.
    pub(crate) fn of_picture(picture: &Picture, light: Light) -> Self {
        let (width, height) = (picture.width_px as usize, picture.height_px as usize);
        let mut data = vec![[0.0; 4]; width * height];
        for (y, row) in data.chunks_exact_mut(width.max(1)).enumerate() {
            fill_row(picture, y, light, row);
        }
        Self {
            width,
            height,
            data,
        }
    }

    /// `picture` over black, reduced to `width` x `height` in linear light, a few rows at a time,
    /// so that a very large picture is never held in floats.
    pub(crate) fn of_picture_reduced(
        picture: &Picture,
        width: usize,
        height: usize,
        light: Light,
    ) -> Self {
        let (from_w, from_h) = (picture.width_px as usize, picture.height_px as usize);
        let step = |from: usize, to: usize| from as f64 / to as f64;
        let across = Axis::new(Kernel::Lanczos3, width, from_w, 0.0, step(from_w, width));
        let down = Axis::new(Kernel::Lanczos3, height, from_h, 0.0, step(from_h, height));
        let mut ring = vec![(usize::MAX, vec![[0.0; 4]; from_w]); down.taps];
        let mut column = vec![[0.0; 4]; from_w];
        let mut data = vec![[0.0; 4]; width * height];
        let coder = Coder::new();
        for (y, out) in data.chunks_exact_mut(width).enumerate() {
            let first = down.first[y] as usize;
            for row in first..first + down.taps {
                let slot = &mut ring[row % down.taps];
                if slot.0 != row {
                    fill_row(picture, row, Light::Linear, &mut slot.1);
                    slot.0 = row;
                }
            }
            column.fill([0.0; 4]);
            for (k, weight) in down.weights_of(y).iter().enumerate() {
                add_row(&mut column, &ring[(first + k) % down.taps].1, *weight);
            }
            across_row(&across, &column, 0, out);
            if light == Light::Coded {
                coder.coded_row(out);
            }
        }
        Self {
            width,
            height,
            data,
        }
    }
}

fn fill_row(picture: &Picture, y: usize, light: Light, out: &mut [Rgbx]) {
    let width = picture.width_px as usize;
    let range = y * width * 4..(y + 1) * width * 4;
    match &picture.pixels {
        Pixels::Rgba8(values) => fill(&values[range], 255.0, linear_of_8(), light, out),
        Pixels::Rgba16(values) => fill(&values[range], 65535.0, linear_of_16(), light, out),
    }
}

fn fill<T: Copy + Into<f32>>(values: &[T], top: f32, linear: &[f32], light: Light, out: &mut [Rgbx])
where
    usize: From<T>,
{
    let coder = Coder::new();
    for (pixel, out) in values.chunks_exact(4).zip(out) {
        let alpha = pixel[3].into() / top;
        for c in 0..3 {
            out[c] = match light {
                Light::Linear => linear[usize::from(pixel[c])] * alpha,
                Light::Coded if alpha >= 1.0 => pixel[c].into() / top,
                Light::Coded => coder.coded(linear[usize::from(pixel[c])] * alpha),
            };
        }
    }
}

#[inline(always)]
fn add_row(out: &mut [Rgbx], row: &[Rgbx], weight: f32) {
    for (out, pixel) in out.iter_mut().zip(row) {
        for c in 0..4 {
            out[c] += weight * pixel[c];
        }
    }
}

#[inline(always)]
fn dot<const TAPS: usize>(weights: &[f32], pixels: &[Rgbx]) -> Rgbx {
    let mut sum = [0.0; 4];
    for k in 0..TAPS {
        for c in 0..4 {
            sum[c] += weights[k] * pixels[k][c];
        }
    }
    sum
}

#[inline(always)]
fn across_fixed<const TAPS: usize>(
    axis: &Axis,
    column: &[Rgbx],
    column_first: usize,
    out: &mut [Rgbx],
) {
    let rows = axis.weights.chunks_exact(TAPS).zip(&axis.first);
    for (out, (weights, first)) in out.iter_mut().zip(rows) {
        let at = *first as usize - column_first;
        *out = dot::<TAPS>(weights, &column[at..at + TAPS]);
    }
}

/// Filter `column` (source samples from `column_first` on) across into `out`.
#[inline(always)]
fn across_row(axis: &Axis, column: &[Rgbx], column_first: usize, out: &mut [Rgbx]) {
    match axis.taps {
        4 => across_fixed::<4>(axis, column, column_first, out),
        5 => across_fixed::<5>(axis, column, column_first, out),
        6 => across_fixed::<6>(axis, column, column_first, out),
        8 => across_fixed::<8>(axis, column, column_first, out),
        taps => {
            let rows = axis.weights.chunks_exact(taps).zip(&axis.first);
            for (out, (weights, first)) in out.iter_mut().zip(rows) {
                let at = *first as usize - column_first;
                let mut sum = [0.0; 4];
                for (weight, pixel) in weights.iter().zip(&column[at..at + taps]) {
                    for c in 0..4 {
                        sum[c] += weight * pixel[c];
                    }
                }
                *out = sum;
            }
        }
    }
}

/// Output row `y` of a separable resample.
#[inline(always)]
fn resample_row_body(
    source: &Surface,
    across: &Axis,
    down: &Axis,
    y: usize,
    column: &mut Vec<Rgbx>,
    out: &mut [Rgbx],
) {
    let (low, high) = across.span();
    column.clear();
    column.resize(high - low, [0.0; 4]);
    let first = down.first[y] as usize;
    let row = |k: usize| &source.row(first + k)[low..high];
    let weights = down.weights_of(y);
    let mut k = 0;
    // Four rows at a time: the sums stay in registers.
    while k + 4 <= weights.len() {
        let (a, b, c, d) = (row(k), row(k + 1), row(k + 2), row(k + 3));
        let w = [weights[k], weights[k + 1], weights[k + 2], weights[k + 3]];
        let inputs = a.iter().zip(b).zip(c.iter().zip(d));
        for (out, ((a, b), (c, d))) in column.iter_mut().zip(inputs) {
            for i in 0..4 {
                out[i] += (w[0] * a[i] + w[1] * b[i]) + (w[2] * c[i] + w[3] * d[i]);
            }
        }
        k += 4;
    }
    while k < weights.len() {
        add_row(column, row(k), weights[k]);
        k += 1;
    }
    across_row(across, column, low, out);
}

super::wide_fn! {
    /// Output row `y` of `source` filtered along both axes; `column` is scratch.
    pub(crate) fn resample_row(
        source: &Surface,
        across: &Axis,
        down: &Axis,
        y: usize,
        column: &mut Vec<Rgbx>,
        out: &mut [Rgbx]
    ) = resample_row_body / resample_row_avx2;
}

/// Cubic weights by sub-pixel offset, in 1/1024 px.
pub(crate) struct Phases {
    weights: Vec<[f32; 4]>,
}

impl Phases {
    const STEPS: usize = 1024;

    pub(crate) fn new(kernel: Kernel) -> Self {
        let weights = (0..=Self::STEPS)
            .map(|i| {
                let f = i as f64 / Self::STEPS as f64;
                let w = [-1.0, 0.0, 1.0, 2.0].map(|k: f64| kernel.at(k - f));
                let sum: f64 = w.iter().sum();
                w.map(|w| (w / sum) as f32)
            })
            .collect();
        Self { weights }
    }

    #[inline(always)]
    fn of(&self, part: f64) -> [f32; 4] {
        self.weights[((part * Self::STEPS as f64 + 0.5) as usize).min(Self::STEPS)]
    }
}

/// A line of source places: `(x, y)` at its first sample and how they move from one to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slant {
    pub x: f64,
    pub y: f64,
    pub dx: f64,
    pub dy: f64,
}

#[inline(always)]
fn slant_row_body(source: &Surface, phases: &Phases, line: Slant, out: &mut [Rgbx]) {
    let (last_x, last_y) = (source.width as i64 - 1, source.height as i64 - 1);
    for (i, out) in out.iter_mut().enumerate() {
        let x = line.x + line.dx * i as f64 - 0.5;
        let y = line.y + line.dy * i as f64 - 0.5;
        let (ix, iy) = (x.floor(), y.floor());
        let (wx, wy) = (phases.of(x - ix), phases.of(y - iy));
        let (ix, iy) = (ix as i64, iy as i64);
        let mut sum = [0.0; 4];
        if ix >= 1 && iy >= 1 && ix + 2 <= last_x && iy + 2 <= last_y {
            for (k, wy) in wy.iter().enumerate() {
                let at = (iy as usize + k - 1) * source.width + ix as usize - 1;
                let across = dot::<4>(&wx, &source.data[at..at + 4]);
                for c in 0..4 {
                    sum[c] += wy * across[c];
                }
            }
        } else {
            for (k, wy) in wy.iter().enumerate() {
                let row = (iy - 1 + k as i64).clamp(0, last_y) as usize;
                for (j, wx) in wx.iter().enumerate() {
                    let col = (ix - 1 + j as i64).clamp(0, last_x) as usize;
                    let pixel = source.data[row * source.width + col];
                    for c in 0..4 {
                        sum[c] += wy * wx * pixel[c];
                    }
                }
            }
        }
        *out = sum;
    }
}

super::wide_fn! {
    /// Samples `source` along a slanted line, edge held.
    pub(crate) fn slant_row(
        source: &Surface,
        phases: &Phases,
        line: Slant,
        out: &mut [Rgbx]
    ) = slant_row_body / slant_row_avx2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_lies_over_black_and_sixteen_bits_are_kept() {
        let picture = Picture {
            width_px: 2,
            height_px: 1,
            pixels: Pixels::Rgba16(vec![65535, 65535, 65535, 0, 32768, 1, 65535, 65535]),
        };
        let surface = Surface::of_picture(&picture, Light::Coded);
        assert_eq!(surface.data[0][..3], [0.0; 3]);
        assert!((surface.data[1][1] - 1.0 / 65535.0).abs() < 1e-9);
    }

    #[test]
    fn wide_and_plain_ways_are_equal_to_the_bit() {
        let picture = Picture {
            width_px: 61,
            height_px: 40,
            pixels: Pixels::Rgba8((0..61 * 40 * 4).map(|i| (i * 37 % 251) as u8).collect()),
        };
        let source = Surface::of_picture(&picture, Light::Linear);
        for step in [0.37, 1.0, 1.6, 3.3] {
            let across = Axis::new(Kernel::Mitchell, 90, 61, -1.3, step);
            let down = Axis::new(Kernel::Lanczos3, 30, 40, 2.1, step);
            let (mut a, mut b) = (vec![[0.0; 4]; 90], vec![[0.0; 4]; 90]);
            for y in 0..30 {
                resample_row(&source, &across, &down, y, &mut Vec::new(), &mut a);
                resample_row_body(&source, &across, &down, y, &mut Vec::new(), &mut b);
                assert!(a == b, "step {step} row {y}");
            }
            let phases = Phases::new(Kernel::Mitchell);
            let line = Slant {
                x: -2.0,
                y: 3.3,
                dx: 0.8,
                dy: 0.31,
            };
            slant_row(&source, &phases, line, &mut a);
            slant_row_body(&source, &phases, line, &mut b);
            assert!(a == b);
        }
    }

    #[test]
    fn reducing_keeps_the_light_of_a_fine_grating() {
        let mut values = Vec::new();
        for i in 0..64 * 64 {
            let v = if (i % 64 + i / 64) % 2 == 0 { 255 } else { 0 };
            values.extend([v, v, v, 255]);
        }
        let picture = Picture {
            width_px: 64,
            height_px: 64,
            pixels: Pixels::Rgba8(values),
        };
        let surface = Surface::of_picture_reduced(&picture, 16, 16, Light::Linear);
        for pixel in &surface.data {
            assert!((pixel[0] - 0.5).abs() < 0.02, "{pixel:?}");
        }
    }
}
