//! Small pictures of latents without the autoencoder: one pixel for each of the latent's.

use engine_base::CancelToken;

use super::family::ImageFamily;
use super::noise::noise;
use super::{ImageError, Latent};

/// Side of the latent of noise that weights are fitted on, where a model brings none.
const SIDE: usize = 8;
/// Added to the diagonal of the fit, in samples.
const RIDGE: f64 = 2.0;
const SEED: u64 = 1;

/// Weights of channels in red, green and blue, with a constant behind them: `[channels + 1]`.
pub(super) type PreviewWeights = Vec<[f32; 3]>;

/// The weights that fit best what the autoencoder makes of noise.
pub(super) fn fit(family: &dyn ImageFamily) -> Result<PreviewWeights, ImageError> {
    let step = family.limits().step_px;
    let side_px = SIDE as u32 * step;
    let (height, width, channels) = family.latent_size((side_px, side_px));
    let latent = Latent {
        height,
        width,
        channels,
        values: noise(SEED, height * width * channels),
    };
    let rgba = family.decode(&latent, &CancelToken::new())?;
    let side = rgba.len() / 4;
    let scale = side_px as usize / width.max(1);
    let mean = |channel: usize, y: usize, x: usize| -> f64 {
        let mut sum = 0.0;
        for row in scale * y..scale * (y + 1) {
            let start = channel * side + row * side_px as usize + scale * x;
            sum += rgba[start..start + scale]
                .iter()
                .map(|v| f64::from(*v))
                .sum::<f64>();
        }
        sum / (scale * scale) as f64
    };
    let size = channels + 1;
    // Normal equations, with three right-hand sides.
    let mut rows = vec![vec![0.0; size + 3]; size];
    for (at, token) in latent.values.chunks_exact(channels.max(1)).enumerate() {
        let inputs: Vec<f64> = token
            .iter()
            .map(|v| f64::from(*v))
            .chain(std::iter::once(1.0))
            .collect();
        let colour: [f64; 3] = std::array::from_fn(|c| mean(c, at / width, at % width));
        for (row, a) in rows.iter_mut().zip(&inputs) {
            for (value, b) in row.iter_mut().zip(inputs.iter().chain(&colour)) {
                *value += a * b;
            }
        }
    }
    for (at, row) in rows.iter_mut().enumerate().take(channels) {
        row[at] += RIDGE;
    }
    Ok(solve(rows))
}

/// Gauss and Jordan with the largest pivot; `rows: [n][n + 3]`.
fn solve(mut rows: Vec<Vec<f64>>) -> PreviewWeights {
    let size = rows.len();
    for column in 0..size {
        let largest = (column..size).max_by(|a, b| {
            let of = |row: &usize| rows[*row][column].abs();
            of(a).total_cmp(&of(b))
        });
        rows.swap(column, largest.unwrap_or(column));
        let pivot = rows[column][column];
        if pivot.abs() < 1e-12 {
            continue;
        }
        let of_pivot: Vec<f64> = rows[column].iter().map(|value| value / pivot).collect();
        for (at, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if at == column {
                row.copy_from_slice(&of_pivot);
            } else {
                for (value, pivot) in row.iter_mut().zip(&of_pivot) {
                    *value -= factor * pivot;
                }
            }
        }
    }
    let colour = |row: &Vec<f64>| std::array::from_fn(|c| row[size + c] as f32);
    rows.iter().map(colour).collect()
}

/// `[height, width, 4]` in 8 bits.
pub(super) fn draw(weights: &[[f32; 3]], latent: &Latent) -> Vec<u8> {
    let (constant, weights) = match weights.split_last() {
        Some((constant, weights)) => (*constant, weights),
        None => ([0.0; 3], weights),
    };
    let mut rgba = Vec::with_capacity(4 * latent.height * latent.width);
    for token in latent.values.chunks_exact(latent.channels.max(1)) {
        let mut colour = constant;
        for (value, weights) in token.iter().zip(weights) {
            for (colour, weight) in colour.iter_mut().zip(weights) {
                *colour += value * weight;
            }
        }
        rgba.extend(colour.map(super::to_byte));
        rgba.push(u8::MAX);
    }
    rgba
}
