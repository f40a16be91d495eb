//! UniPC (Zhao et al., "UniPC: a unified predictor-corrector framework for fast sampling of diffusion
//! models", arXiv 2302.04867) in its second form (`B(h) = e^h - 1`), predicting pictures.
//!
//! Checked against diffusers 0.42.1 (`scheduling_unipc_multistep.py`).

use crate::k_diffusion::KRun;

/// Highest order that steps are taken with.
const MOST_ORDER: usize = 3;

/// A walk along a [`KRun`]: every step first corrects where it stands by what the model says there.
#[derive(Debug, Clone)]
pub struct UniPc {
    order: usize,
    /// Predicted pictures of the steps before, the last one last.
    pictures: Vec<Vec<f64>>,
    /// Where the last step began, and of which order it was.
    last: Option<(Vec<f64>, usize)>,
}

/// Coefficients of one step between two sigmas.
struct Span {
    /// What the latent keeps.
    keep: f64,
    alpha: f64,
    /// `e^-h - 1`.
    growth: f64,
    /// Distances of earlier steps in this one's, 1 at the end.
    ratios: Vec<f64>,
    /// Right-hand sides of the order conditions.
    sides: Vec<f64>,
}

impl UniPc {
    /// At the begin of a run, with steps of at most `order` (1 to 3).
    pub fn new(order: usize) -> Self {
        Self {
            order: order.clamp(1, MOST_ORDER),
            pictures: Vec::new(),
            last: None,
        }
    }

    /// One step; steps of a run follow each other.
    pub fn step(&mut self, run: &KRun, step: usize, x: &mut [f32], output: &[f32]) {
        let (signal, noise) = run.parts(run.sigmas[step]);
        let pairs = x.iter().zip(output);
        let picture: Vec<f64> = pairs
            .map(|(x, output)| {
                let rest = f64::from(*x) - noise * f64::from(*output);
                if run.is_flow() { rest } else { rest / signal }
            })
            .collect();
        let mut now: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        if let Some((before, order)) = self.last.take()
            && step > 0
        {
            now = self.corrected(run, step, &before, order, &picture);
        }
        self.pictures.push(picture);
        if self.pictures.len() > self.order {
            self.pictures.remove(0);
        }
        let left = run.sigmas.len() - 1 - step;
        let order = self.order.min(left).min(self.pictures.len()).max(1);
        let next = self.predicted(run, step, &now, order);
        for (x, next) in x.iter_mut().zip(&next) {
            *x = *next as f32;
        }
        self.last = Some((now, order));
    }

    /// The step from sigma `from` to the next, of `order`; earlier pictures are of the sigmas before `from`.
    fn span(run: &KRun, from: usize, order: usize) -> Span {
        let lambda = |at: usize| {
            let (signal, noise) = run.parts(run.sigmas[at]);
            signal.ln() - noise.ln()
        };
        let (alpha, noise_next) = run.parts(run.sigmas[from + 1]);
        let (_, noise_now) = run.parts(run.sigmas[from]);
        let h = lambda(from + 1) - lambda(from);
        let mut ratios: Vec<f64> = (1..order)
            .map(|back| (lambda(from - back) - lambda(from)) / h)
            .collect();
        ratios.push(1.0);
        let growth = (-h).exp_m1();
        let mut sides = Vec::new();
        let mut phi = growth / -h - 1.0;
        let mut factorial = 1.0;
        for index in 1..=order {
            sides.push(phi * factorial / growth);
            factorial *= (index + 1) as f64;
            phi = phi / -h - 1.0 / factorial;
        }
        Span {
            keep: noise_next / noise_now,
            alpha,
            growth,
            ratios,
            sides,
        }
    }

    /// Slopes between the last picture and those before it.
    fn slope(&self, back: usize, ratio: f64, at: usize) -> f64 {
        let last = self.pictures.len() - 1;
        (self.pictures[last - back][at] - self.pictures[last][at]) / ratio
    }

    fn predicted(&self, run: &KRun, step: usize, x: &[f64], order: usize) -> Vec<f64> {
        let span = Self::span(run, step, order);
        let weights = match order {
            1 => Vec::new(),
            2 => vec![0.5],
            _ => solved(&span.ratios[..order - 1], &span.sides[..order - 1]),
        };
        let last = self.pictures.len() - 1;
        let of = |(at, x): (usize, &f64)| {
            let slopes = weights.iter().enumerate();
            let sum: f64 = slopes
                .map(|(index, weight)| weight * self.slope(index + 1, span.ratios[index], at))
                .sum();
            span.keep * x - span.alpha * span.growth * (self.pictures[last][at] + sum)
        };
        x.iter().enumerate().map(of).collect()
    }

    /// Where step `step` begins, by `picture` that the model predicts there.
    fn corrected(
        &self,
        run: &KRun,
        step: usize,
        before: &[f64],
        order: usize,
        picture: &[f64],
    ) -> Vec<f64> {
        let span = Self::span(run, step - 1, order);
        let weights = match order {
            1 => vec![0.5],
            _ => solved(&span.ratios, &span.sides),
        };
        let last = self.pictures.len() - 1;
        let of = |(at, x): (usize, &f64)| {
            let slopes = weights[..order - 1].iter().enumerate();
            let sum: f64 = slopes
                .map(|(index, weight)| weight * self.slope(index + 1, span.ratios[index], at))
                .sum();
            let here = weights[order - 1] * (picture[at] - self.pictures[last][at]);
            span.keep * x - span.alpha * span.growth * (self.pictures[last][at] + sum + here)
        };
        before.iter().enumerate().map(of).collect()
    }
}

/// Weights `w` with `sum of w[j] * ratios[j]^i = sides[i]` for all `i`: Gauss with pivots, at most 3 x 3.
fn solved(ratios: &[f64], sides: &[f64]) -> Vec<f64> {
    let size = ratios.len();
    let mut rows: Vec<Vec<f64>> = (0..size)
        .map(|power| {
            let row = ratios.iter().map(|ratio| ratio.powi(power as i32));
            row.chain(std::iter::once(sides[power])).collect()
        })
        .collect();
    for column in 0..size {
        let largest = (column..size).max_by(|a, b| {
            let of = |row: &usize| rows[*row][column].abs();
            of(a).total_cmp(&of(b))
        });
        rows.swap(column, largest.unwrap_or(column));
        let pivot = rows[column].clone();
        for (at, row) in rows.iter_mut().enumerate() {
            if at == column {
                continue;
            }
            let factor = row[column] / pivot[column];
            for (value, pivot) in row.iter_mut().zip(&pivot) {
                *value -= factor * pivot;
            }
        }
    }
    let weights = rows.iter().enumerate();
    weights.map(|(at, row)| row[size] / row[at]).collect()
}
