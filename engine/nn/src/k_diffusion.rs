//! Noise schedules of models that predict noise or velocity over a thousand timesteps, and the samplers that
//! walk along them: Euler and Euler ancestral, DPM-Solver++ of second order, DDIM, latent consistency.
//!
//! Sources: Song et al., arXiv 2010.02502 (DDIM); Karras et al., arXiv 2206.00364; Lu et al., arXiv
//! 2211.01095 (DPM-Solver++); Luo et al., arXiv 2310.04378 (LCM); Lin et al., arXiv 2305.08891 (zero
//! terminal SNR). Checked against diffusers 0.42.1.

/// Timesteps that models were trained on.
const TIMESTEPS: usize = 1000;
/// Exponent of Karras' schedule.
const KARRAS_RHO: f64 = 7.0;
/// Steps that latent consistency models were distilled from.
const LCM_STEPS: usize = 50;
/// What latent consistency models multiply timesteps by, and the deviation of their data.
const LCM_SCALE: f64 = 10.0;
const LCM_DEVIATION: f64 = 0.5;
/// What is left of the signal at the last timestep of a schedule with none.
const LEAST_SIGNAL: f64 = 1.0 / 16_777_216.0;

/// What a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// The noise.
    Noise,
    /// `alpha * noise - sigma * picture` (Salimans and Ho, arXiv 2202.00512).
    Velocity,
    /// `noise - picture`, of a latent `(1 - sigma) * picture + sigma * noise`.
    Flow,
}

/// Which of the trained timesteps are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// From the last to the first, ends included.
    Even,
    /// Multiples from 0 on, moved by so many.
    Leading(usize),
    /// Multiples back from the last.
    Trailing,
}

/// How much of the signal is left at each trained timestep.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedNoise {
    /// Products of `1 - beta`: `[1000]`.
    signal: Vec<f64>,
}

impl TrainedNoise {
    /// Roots of betas in a straight line from `first` to `last`, as Stable Diffusion has them. With
    /// `zero_end` they are scaled so that nothing is left at the end.
    pub fn scaled_linear(first: f64, last: f64, zero_end: bool) -> Self {
        // Rounded to f32 where the reference is: timesteps are looked up among these.
        let (first, last) = (first.sqrt() as f32, last.sqrt() as f32);
        let step = (last - first) / (TIMESTEPS - 1) as f32;
        let mut signal = Vec::with_capacity(TIMESTEPS);
        let mut product = 1.0;
        for at in 0..TIMESTEPS {
            let root = match at < TIMESTEPS / 2 {
                true => first + step * at as f32,
                false => last - step * (TIMESTEPS - 1 - at) as f32,
            };
            product *= f64::from(1.0 - root * root);
            signal.push(f64::from(product as f32));
        }
        if zero_end {
            let roots: Vec<f64> = signal.iter().map(|signal| signal.sqrt()).collect();
            let (most, least) = (roots[0], roots[TIMESTEPS - 1]);
            for (signal, root) in signal.iter_mut().zip(&roots) {
                *signal = ((root - least) * most / (most - least)).powi(2);
            }
            signal[TIMESTEPS - 1] = LEAST_SIGNAL;
        }
        Self { signal }
    }

    /// Noise over signal at a trained timestep.
    fn sigma(&self, timestep: usize) -> f64 {
        let signal = self.signal[timestep.min(TIMESTEPS - 1)] as f32;
        f64::from(((1.0 - signal) / signal).sqrt())
    }

    /// The same between trained timesteps.
    fn sigma_at(&self, timestep: f64) -> f64 {
        let low = timestep.clamp(0.0, (TIMESTEPS - 1) as f64).floor();
        let (below, above) = (self.sigma(low as usize), self.sigma(low as usize + 1));
        below + (above - below) * (timestep - low)
    }

    /// Where a sigma stands among the trained timesteps, by logarithms.
    pub fn timestep_of(&self, sigma: f64) -> f64 {
        let target = sigma.max(1e-10).ln();
        let of = |at: usize| f64::from((self.sigma(at) as f32).ln());
        let below = (0..TIMESTEPS).rev().find(|at| of(*at) <= target);
        let low = below.unwrap_or(0).min(TIMESTEPS - 2);
        let (a, b) = (of(low), of(low + 1));
        low as f64 + ((target - a) / (b - a)).clamp(0.0, 1.0)
    }

    fn timesteps(steps: usize, spacing: Spacing) -> Vec<f64> {
        let all = TIMESTEPS as f64;
        let of = |at: usize| match spacing {
            Spacing::Even if steps < 2 => 0.0,
            Spacing::Even => (steps - 1 - at) as f64 * (all - 1.0) / (steps - 1) as f64,
            Spacing::Leading(offset) => {
                ((steps - 1 - at) * (TIMESTEPS / steps.max(1)) + offset) as f64
            }
            Spacing::Trailing => (all - at as f64 * all / steps as f64).round_ties_even() - 1.0,
        };
        (0..steps).map(of).collect()
    }

    /// Sigmas and timesteps of a run of Euler's samplers; sigmas end with 0.
    pub fn euler_run(&self, steps: usize, spacing: Spacing, karras: bool) -> KRun {
        let mut timesteps = Self::timesteps(steps, spacing);
        let mut sigmas: Vec<f64> = timesteps.iter().map(|t| self.sigma_at(*t)).collect();
        if karras && let (Some(first), Some(last)) = (sigmas.first(), sigmas.last()) {
            sigmas = karras_sigmas(*first, *last, steps);
            timesteps = sigmas
                .iter()
                .map(|sigma| self.timestep_of(*sigma))
                .collect();
        }
        sigmas.push(0.0);
        KRun {
            sigmas,
            timesteps,
            flow: false,
        }
    }

    /// Sigmas and timesteps of a run of DPM-Solver++; sigmas end with 0.
    pub fn dpm_run(&self, steps: usize, karras: bool) -> KRun {
        let (mut sigmas, timesteps): (Vec<f64>, Vec<f64>) = if karras {
            let sigmas = karras_sigmas(self.sigma(TIMESTEPS - 1), self.sigma(0), steps);
            let of = |sigma: &f64| self.timestep_of(*sigma).round_ties_even();
            let timesteps = sigmas.iter().map(of).collect();
            (sigmas, timesteps)
        } else {
            let even = Self::timesteps(steps + 1, Spacing::Even);
            let whole = even[..steps].iter().map(|t| t.round_ties_even());
            let timesteps: Vec<f64> = whole.collect();
            let sigmas = timesteps.iter().map(|t| self.sigma_at(*t)).collect();
            (sigmas, timesteps)
        };
        sigmas.push(0.0);
        KRun {
            sigmas,
            timesteps,
            flow: false,
        }
    }
}

/// Sigmas from `most` to `least` whose seventh roots fall in a straight line.
pub fn karras_sigmas(most: f64, least: f64, steps: usize) -> Vec<f64> {
    let (most, least) = (most.powf(1.0 / KARRAS_RHO), least.powf(1.0 / KARRAS_RHO));
    let last = steps.saturating_sub(1).max(1) as f64;
    let of = |at: usize| (most + at as f64 / last * (least - most)).powf(KARRAS_RHO);
    (0..steps).map(of).collect()
}

/// Sigmas and timesteps of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct KRun {
    /// Noise over signal before each step, then 0; of flows the noise level itself.
    pub sigmas: Vec<f64>,
    /// What the model is told at each step.
    pub timesteps: Vec<f64>,
    flow: bool,
}

impl KRun {
    /// A run of DPM-Solver++ along a flow.
    pub fn flow(steps: usize, shift: f64) -> Self {
        let all = TIMESTEPS as f64;
        let alpha = |at: usize| 1.0 + at as f64 * (1.0 / all - 1.0) / steps as f64;
        let shifted = |at: usize| {
            let sigma = 1.0 - alpha(at);
            shift * sigma / (1.0 + (shift - 1.0) * sigma)
        };
        let mut sigmas: Vec<f64> = (1..=steps).rev().map(shifted).collect();
        let timesteps = sigmas.iter().map(|sigma| (sigma * all).floor()).collect();
        sigmas.push(0.0);
        Self {
            sigmas,
            timesteps,
            flow: true,
        }
    }

    /// A run of UniPC along a flow; it begins with the least trace of a picture.
    pub fn flow_from_noise(steps: usize, shift: f64) -> Self {
        const TRACE: f64 = 1e-6;
        let all = TIMESTEPS as f64;
        let shifted = |at: usize| {
            let sigma = 1.0 + at as f64 * (1.0 / all - 1.0) / steps as f64;
            (shift * sigma / (1.0 + (shift - 1.0) * sigma)).min(1.0 - TRACE)
        };
        let mut sigmas: Vec<f64> = (0..steps).map(shifted).collect();
        let timesteps = sigmas.iter().map(|sigma| (sigma * all).floor()).collect();
        sigmas.push(0.0);
        Self {
            sigmas,
            timesteps,
            flow: true,
        }
    }

    /// Whether sigmas are noise levels of a flow.
    pub(crate) fn is_flow(&self) -> bool {
        self.flow
    }

    /// Signal and noise at a sigma.
    pub(crate) fn parts(&self, sigma: f64) -> (f64, f64) {
        if self.flow {
            return (1.0 - sigma, sigma);
        }
        let alpha = 1.0 / (sigma * sigma + 1.0).sqrt();
        (alpha, sigma * alpha)
    }

    /// What a model of Euler's samplers is shown: `x / sqrt(sigma^2 + 1)`.
    pub fn euler_shown(&self, step: usize, x: &[f32]) -> Vec<f32> {
        let sigma = self.sigmas[step];
        let scale = (1.0 / (sigma * sigma + 1.0).sqrt()) as f32;
        x.iter().map(|x| x * scale).collect()
    }

    /// Euler's step from the model's `output`.
    pub fn euler_step(&self, step: usize, kind: Prediction, x: &mut [f32], output: &[f32]) {
        let (sigma, next) = (self.sigmas[step], self.sigmas[step + 1]);
        walk(sigma, next, kind, x, output);
    }

    /// Euler's step to less noise than asked for, and fresh `noise` on top.
    pub fn ancestral_step(&self, step: usize, x: &mut [f32], output: &[f32], noise: &[f32]) {
        let (sigma, next) = (self.sigmas[step], self.sigmas[step + 1]);
        let up = (next * next * (sigma * sigma - next * next) / (sigma * sigma)).sqrt();
        let down = (next * next - up * up).sqrt();
        walk(sigma, down, Prediction::Noise, x, output);
        for (x, noise) in x.iter_mut().zip(noise) {
            *x += noise * up as f32;
        }
    }
}

/// In f32 and in the order of the reference: without any signal at the begin, what cancels is thousands of
/// times larger than what is left.
fn walk(sigma: f64, next: f64, kind: Prediction, x: &mut [f32], output: &[f32]) {
    let (sigma, next) = (sigma as f32, next as f32);
    let square = sigma * sigma + 1.0;
    for (x, output) in x.iter_mut().zip(output) {
        let picture = match kind {
            Prediction::Noise | Prediction::Flow => *x - sigma * output,
            Prediction::Velocity => output * (-sigma / square.sqrt()) + *x / square,
        };
        let slope = (*x - picture) / sigma;
        *x += slope * (next - sigma);
    }
}

/// DPM-Solver++ of second order (midpoint), with fresh noise at every step or without.
#[derive(Debug, Clone, Default)]
pub struct DpmSolver {
    /// The picture that the step before predicted.
    before: Vec<f64>,
}

impl DpmSolver {
    /// At the begin of a run.
    pub fn new() -> Self {
        Self::default()
    }

    /// One step; steps of a run follow each other. With `noise` it is the stochastic solver.
    pub fn step(
        &mut self,
        run: &KRun,
        step: usize,
        x: &mut [f32],
        (output, noise): (&[f32], Option<&[f32]>),
    ) {
        let sigma = |at: usize| run.sigmas[at];
        let (alpha_now, noise_now) = run.parts(sigma(step));
        let (alpha, noise_next) = run.parts(sigma(step + 1));
        let lambda = |at: usize| {
            let (alpha, noise) = run.parts(sigma(at));
            alpha.ln() - noise.ln()
        };
        let predicted: Vec<f64> = x
            .iter()
            .zip(output)
            .map(|(x, output)| {
                let product = noise_now * f64::from(*output);
                match run.flow {
                    true => f64::from(*x) - product,
                    false => (f64::from(*x) - product) / alpha_now,
                }
            })
            .collect();
        let h = lambda(step + 1) - lambda(step);
        let decay = (-h).exp();
        let last = step + 2 == run.sigmas.len();
        let ratio = if step == 0 || last || self.before.len() != predicted.len() {
            None
        } else {
            Some((lambda(step) - lambda(step - 1)) / h)
        };
        let (keep, gain, fresh) = match noise {
            None => (noise_next / noise_now, alpha * (1.0 - decay), 0.0),
            Some(_) => {
                let gain = 1.0 - decay * decay;
                (
                    noise_next / noise_now * decay,
                    alpha * gain,
                    noise_next * gain.sqrt(),
                )
            }
        };
        for (at, x) in x.iter_mut().enumerate() {
            let picture = predicted[at];
            let slope = ratio.map_or(0.0, |ratio| (picture - self.before[at]) / ratio);
            let drawn = noise.map_or(0.0, |noise| f64::from(noise[at]));
            let value = keep * f64::from(*x) + gain * (picture + 0.5 * slope) + fresh * drawn;
            *x = value as f32;
        }
        self.before = predicted;
    }
}

impl TrainedNoise {
    /// Timesteps of a run of DDIM.
    pub fn ddim_timesteps(steps: usize, offset: usize) -> Vec<usize> {
        let of = Self::timesteps(steps, Spacing::Leading(offset));
        of.into_iter().map(|t| t as usize).collect()
    }

    /// A step of DDIM, without noise of its own, of a run of `steps`.
    pub fn ddim_step(&self, (timestep, steps): (usize, usize), x: &mut [f32], output: &[f32]) {
        let signal = self.signal[timestep.min(TIMESTEPS - 1)];
        let before = timestep.checked_sub(TIMESTEPS / steps.max(1));
        let next = self.signal[before.unwrap_or(0)];
        for (x, output) in x.iter_mut().zip(output) {
            let (at, noise) = (f64::from(*x), f64::from(*output));
            let picture = (at - (1.0 - signal).sqrt() * noise) / signal.sqrt();
            *x = (next.sqrt() * picture + (1.0 - next).sqrt() * noise) as f32;
        }
    }

    /// Timesteps of a run of a latent consistency model.
    pub fn lcm_timesteps(steps: usize) -> Vec<usize> {
        let every = TIMESTEPS / LCM_STEPS;
        let of = |at: usize| {
            let index = at * LCM_STEPS / steps;
            (LCM_STEPS - index) * every - 1
        };
        (0..steps).map(of).collect()
    }

    /// A step of a latent consistency model: gives the picture that it predicts. `next`: the next timestep
    /// and fresh noise, where there is a next step.
    pub fn lcm_step(
        &self,
        timestep: usize,
        x: &mut [f32],
        output: &[f32],
        next: Option<(usize, &[f32])>,
    ) -> Vec<f32> {
        let signal = self.signal[timestep.min(TIMESTEPS - 1)];
        let scaled = timestep as f64 * LCM_SCALE;
        let squares = scaled * scaled + LCM_DEVIATION * LCM_DEVIATION;
        let (skip, take) = (
            LCM_DEVIATION * LCM_DEVIATION / squares,
            scaled / squares.sqrt(),
        );
        let denoised: Vec<f32> = x
            .iter()
            .zip(output)
            .map(|(x, output)| {
                let (at, noise) = (f64::from(*x), f64::from(*output));
                let picture = (at - (1.0 - signal).sqrt() * noise) / signal.sqrt();
                (take * picture + skip * at) as f32
            })
            .collect();
        x.copy_from_slice(&denoised);
        if let Some((next, noise)) = next {
            let signal = self.signal[next.min(TIMESTEPS - 1)];
            for (x, noise) in x.iter_mut().zip(noise) {
                let value =
                    signal.sqrt() * f64::from(*x) + (1.0 - signal).sqrt() * f64::from(*noise);
                *x = value as f32;
            }
        }
        denoised
    }
}
