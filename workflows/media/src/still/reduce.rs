//! From decoded samples to a picture, made smaller on the way by an area filter in linear light.

use rayon::prelude::*;

use super::colour::{ColourSample, RowConverter, Scratch};
use super::raw::{linear_to_srgb, srgb_to_linear};

/// Size that fits `max_side_px`, never larger than the source, at least 1 x 1.
pub(super) fn fitted(width_px: u32, height_px: u32, max_side_px: Option<u32>) -> (u32, u32) {
    let long = width_px.max(height_px);
    let Some(limit) = max_side_px
        .map(|side| side.max(1))
        .filter(|side| *side < long)
    else {
        return (width_px, height_px);
    };
    let scaled = |side: u32| {
        let exact = u64::from(side) * u64::from(limit);
        (((exact + u64::from(long / 2)) / u64::from(long)) as u32).max(1)
    };
    (scaled(width_px), scaled(height_px))
}

/// Every row converted, same size.
pub(super) fn whole<T: ColourSample>(
    samples: &[T],
    width: usize,
    height: usize,
    converter: &RowConverter<T>,
) -> Vec<T> {
    let mut out = vec![T::default(); width * height * 4];
    let channels = samples.len() / (width * height);
    out.par_chunks_mut(width * 4)
        .zip(samples.par_chunks(width * channels))
        .for_each_init(Scratch::default, |scratch, (to, from)| {
            converter.row(from, to, scratch);
        });
    out
}

/// The part of the source that one output position covers: first index and weights that sum to 1.
struct Cover {
    first: usize,
    weights: Vec<f32>,
}

fn covers(from: usize, to: usize) -> Vec<Cover> {
    // Whole numbers: position i covers [i * from, (i + 1) * from) in units of 1 / to source pixels.
    (0..to)
        .map(|i| {
            let (start, end) = (i * from, (i + 1) * from);
            let first = start / to;
            let weights = (first..end.div_ceil(to))
                .map(|at| {
                    let overlap = end.min((at + 1) * to) - start.max(at * to);
                    (overlap as f64 / from as f64) as f32
                })
                .collect();
            Cover { first, weights }
        })
        .collect()
}

/// Averages over areas, alpha-weighted, in linear light. Each output row depends on its own
/// source rows only, so that the result is the same however rows are shared among threads.
pub(super) fn smaller<T: ColourSample>(
    samples: &[T],
    (width, height): (usize, usize),
    (out_width, out_height): (usize, usize),
    converter: &RowConverter<T>,
) -> Vec<T> {
    let channels = samples.len() / (width * height);
    let across = covers(width, out_width);
    let down = covers(height, out_height);
    let max = f64::from(T::MAX);
    let light: Vec<f32> = (0..=T::MAX)
        .map(|value| srgb_to_linear(f64::from(value) / max) as f32)
        .collect();
    let mut out = vec![T::default(); out_width * out_height * 4];
    out.par_chunks_mut(out_width * 4).zip(&down).for_each_init(
        || (Scratch::default(), vec![T::default(); width * 4]),
        |(scratch, row), (to, rows)| {
            let mut sums = vec![[0f32; 4]; out_width];
            for (at, weight) in rows.weights.iter().enumerate() {
                let first = (rows.first + at) * width * channels;
                converter.row(&samples[first..first + width * channels], row, scratch);
                for (sum, cover) in sums.iter_mut().zip(&across) {
                    add(
                        sum,
                        &row[cover.first * 4..],
                        &cover.weights,
                        *weight,
                        &light,
                    );
                }
            }
            for (sum, pixel) in sums.iter().zip(to.chunks_exact_mut(4)) {
                pixel.copy_from_slice(&settled::<T>(*sum));
            }
        },
    );
    out
}

fn add<T: ColourSample>(
    sum: &mut [f32; 4],
    row: &[T],
    weights: &[f32],
    row_weight: f32,
    light: &[f32],
) {
    for (pixel, weight) in row.chunks_exact(4).zip(weights) {
        let alpha = weight * row_weight * (pixel[3].wide() as f32 / T::MAX as f32);
        for (total, value) in sum.iter_mut().zip(&pixel[..3]) {
            *total += light[value.wide() as usize] * alpha;
        }
        sum[3] += alpha;
    }
}

fn settled<T: ColourSample>(sum: [f32; 4]) -> [T; 4] {
    let max = f64::from(T::MAX);
    let alpha = f64::from(sum[3]);
    let coded = |value: f64| T::narrow((value.clamp(0.0, 1.0) * max + 0.5) as u32);
    if coded(alpha) == T::default() {
        return [T::default(); 4];
    }
    let colour = |at: usize| coded(linear_to_srgb((f64::from(sum[at]) / alpha).clamp(0.0, 1.0)));
    [colour(0), colour(1), colour(2), coded(alpha)]
}

#[cfg(test)]
mod tests {
    use super::super::raw::{Colour, Model};
    use super::*;

    #[test]
    fn fits_the_long_side() {
        assert_eq!(fitted(4000, 1000, Some(1000)), (1000, 250));
        assert_eq!(fitted(1000, 4000, Some(1000)), (250, 1000));
        assert_eq!(fitted(300, 200, Some(1000)), (300, 200));
        assert_eq!(fitted(30_000, 2, Some(100)), (100, 1));
        assert_eq!(fitted(7, 7, None), (7, 7));
    }

    #[test]
    fn weights_cover_each_source_pixel_once() {
        for (from, to) in [(10, 3), (7, 7), (100, 1), (9, 4)] {
            let mut total = vec![0.0; from];
            for cover in covers(from, to) {
                for (at, weight) in cover.weights.iter().enumerate() {
                    total[cover.first + at] += f64::from(*weight);
                }
            }
            for weight in total {
                assert!(
                    (weight - to as f64 / from as f64).abs() < 1e-6,
                    "{from} to {to}"
                );
            }
        }
    }

    #[test]
    fn hidden_colour_does_not_bleed_and_light_is_averaged() {
        let converter = RowConverter::<u8>::new(Model::Rgba, &Colour::default(), &mut Vec::new());
        let from = [255u8, 0, 255, 0, 0, 200, 0, 255];
        assert_eq!(
            smaller(&from, (2, 1), (1, 1), &converter),
            [0, 200, 0, 128],
            "transparent magenta beside green"
        );
        let checker = [0u8, 0, 0, 255, 255, 255, 255, 255];
        // Half the light of white is 188 in sRGB.
        assert_eq!(
            smaller(&checker, (2, 1), (1, 1), &converter),
            [188, 188, 188, 255]
        );
    }
}
