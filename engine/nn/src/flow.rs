//! Noise schedules of flow matching (Lipman et al., arXiv 2210.02747), and Euler's step along them.
//!
//! A latent at noise level sigma is `(1 - sigma) * picture + sigma * noise`; models predict the velocity
//! `noise - picture`. Checked against diffusers 0.42.1 (`FlowMatchEulerDiscreteScheduler`).

use engine_base::Code;

/// How sigmas are shifted towards noise.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum FlowShift {
    /// `s * sigma / (1 + (s - 1) * sigma)`.
    Constant(f64),
    /// `e^mu / (e^mu + 1 / sigma - 1)`.
    Exponential(f64),
    /// `mu / (mu + 1 / sigma - 1)`.
    Linear(f64),
}

impl FlowShift {
    fn of(self, sigma: f64) -> f64 {
        match self {
            Self::Constant(shift) => shift * sigma / (1.0 + (shift - 1.0) * sigma),
            Self::Exponential(mu) => mu.exp() / (mu.exp() + (1.0 / sigma - 1.0)),
            Self::Linear(mu) => mu / (mu + (1.0 / sigma - 1.0)),
        }
    }
}

/// `mu` that grows in a straight line with the tokens of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowMu {
    /// `base_image_seq_len`.
    pub base_tokens: f64,
    /// `max_image_seq_len`.
    pub max_tokens: f64,
    /// `base_shift`: `mu` at `base_tokens`.
    pub base: f64,
    /// `max_shift`: `mu` at `max_tokens`.
    pub max: f64,
}

impl FlowMu {
    /// `mu` of a picture of `tokens`.
    pub fn of(&self, tokens: usize) -> f64 {
        let slope = (self.max - self.base) / (self.max_tokens - self.base_tokens);
        tokens as f64 * slope + self.base - slope * self.base_tokens
    }
}

/// `mu` of FLUX.2 for a picture of `tokens` in `steps`: a line through two fitted ones, for 10 and for 200
/// steps; the latter alone for large pictures.
pub fn flux2_mu(tokens: usize, steps: usize) -> f64 {
    const LARGE_TOKENS: usize = 4300;
    let tokens_f = tokens as f64;
    let of_200 = 0.000_169_27 * tokens_f + 0.456_666_66;
    if tokens > LARGE_TOKENS {
        return of_200;
    }
    let of_10 = 8.738_095_24e-5 * tokens_f + 1.898_333_33;
    let slope = (of_200 - of_10) / 190.0;
    of_200 + slope * (steps as f64 - 200.0)
}

/// A schedule that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("cannot make a noise schedule: {what} is {got}, expected {expected}")]
pub struct ScheduleError {
    /// Which value.
    pub what: String,
    /// Its value.
    pub got: String,
    /// What it has to be.
    pub expected: String,
}

impl ScheduleError {
    /// The kind of failure.
    pub const fn code(&self) -> Code {
        Code::BadInput
    }
}

/// Sigmas `1, (n - 1) / n, ..., 1 / n`: what pipelines hand to a schedule.
pub fn linear_sigmas(steps: usize) -> Vec<f64> {
    let last = 1.0 / steps.max(1) as f64;
    if steps < 2 {
        return vec![1.0; steps];
    }
    let stride = (last - 1.0) / (steps - 1) as f64;
    (0..steps).map(|at| 1.0 + stride * at as f64).collect()
}

/// Sigmas in even steps between the ends of a shifted schedule of a thousand trained timesteps: what a
/// schedule takes when it is given a count of steps only.
pub fn even_sigmas(steps: usize, shift: FlowShift) -> Vec<f64> {
    let (most, least) = (shift.of(1.0), shift.of(0.001));
    let last = steps.saturating_sub(1).max(1) as f64;
    let of = |at: usize| most + at as f64 * (least - most) / last;
    (0..steps).map(of).collect()
}

/// `u + guidance * (c - u)` of the velocities `c` with the prompt and `u` without, each token of `cols`
/// brought back to the length that it has in `c`.
pub fn guided_keeping_norm(with: &[f32], without: &[f32], guidance: f32, cols: usize) -> Vec<f32> {
    let mut guided = Vec::with_capacity(with.len());
    let cols = cols.max(1);
    for (with, without) in with.chunks(cols).zip(without.chunks(cols)) {
        let pairs = with.iter().zip(without);
        let mixed: Vec<f32> = pairs.map(|(c, u)| u + guidance * (c - u)).collect();
        let length = |row: &[f32]| row.iter().map(|x| x * x).sum::<f32>().sqrt();
        let now = length(&mixed);
        let scale = if now > 0.0 { length(with) / now } else { 1.0 };
        guided.extend(mixed.iter().map(|x| x * scale));
    }
    guided
}

/// The sigmas of a run: `grid` shifted, stretched so that the last is `terminal` where there is one, then 0.
///
/// # Errors
/// [`ScheduleError`] for an empty grid, or sigmas that are not in 0..=1 and falling.
pub fn flow_sigmas(
    grid: &[f64],
    shift: FlowShift,
    terminal: Option<f64>,
) -> Result<Vec<f32>, ScheduleError> {
    let falling = grid.windows(2).all(|pair| pair[0] > pair[1]);
    let inside = grid.iter().all(|sigma| *sigma > 0.0 && *sigma <= 1.0);
    if grid.is_empty() || !falling || !inside {
        return Err(ScheduleError {
            what: "the list of sigmas".to_owned(),
            got: format!("{grid:?}"),
            expected: "one or more, falling, over 0 and up to 1".to_owned(),
        });
    }
    let mut sigmas: Vec<f32> = match terminal {
        None => grid.iter().map(|sigma| shift.of(*sigma) as f32).collect(),
        Some(terminal) => stretched(grid, shift, terminal as f32),
    };
    sigmas.push(0.0);
    Ok(sigmas)
}

/// In f32 step by step, as the reference rounds: models are told a thousand times these.
fn stretched(grid: &[f64], shift: FlowShift, terminal: f32) -> Vec<f32> {
    let of = |sigma: &f64| match shift {
        FlowShift::Exponential(mu) => {
            let grown = mu.exp() as f32;
            grown / (grown + (1.0 / *sigma as f32 - 1.0))
        }
        FlowShift::Constant(_) | FlowShift::Linear(_) => shift.of(*sigma) as f32,
    };
    let mut sigmas: Vec<f32> = grid.iter().map(of).collect();
    let scale = (1.0 - sigmas.last().copied().unwrap_or(0.0)) / (1.0 - terminal);
    if scale > 0.0 {
        for sigma in &mut sigmas {
            *sigma = 1.0 - (1.0 - *sigma) / scale;
        }
    }
    sigmas
}

/// Euler's step: `latent += (next - sigma) * velocity`.
pub fn flow_step(latent: &mut [f32], velocity: &[f32], sigma: f32, next: f32) {
    let step = next - sigma;
    for (latent, velocity) in latent.iter_mut().zip(velocity) {
        *latent += step * velocity;
    }
}

/// Sigmas of MiniMax H3 for `points`, ends included: one step fewer than points. Its models are told `1 - sigma`.
pub fn h3_sigmas(points: usize, shift: f64) -> Vec<f32> {
    let last = points.saturating_sub(1).max(1) as f64;
    let shift = FlowShift::Constant(shift);
    (0..points)
        .map(|at| shift.of(1.0 - at as f64 / last) as f32)
        .collect()
}

/// MiniMax H3's step: its velocity points from noise to the picture, the other way round than elsewhere here.
pub fn h3_step(latent: &mut [f32], velocity: &[f32], sigma: f32, next: f32) {
    let kept = next / sigma;
    for (latent, velocity) in latent.iter_mut().zip(velocity) {
        let picture = *latent + sigma * velocity;
        *latent = kept * *latent + (1.0 - kept) * picture;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmas_begin_with_noise_and_end_without() {
        let sigmas = flow_sigmas(&linear_sigmas(4), FlowShift::Constant(3.0), None).unwrap();
        assert_eq!(sigmas, [1.0, 0.9, 0.75, 0.5, 0.0]);
        let ended = flow_sigmas(&linear_sigmas(4), FlowShift::Exponential(0.5), Some(0.02));
        let ended = ended.unwrap();
        assert!((ended[3] - 0.02).abs() < 1e-7, "{ended:?}");
        for grid in [&[][..], &[0.5, 0.7], &[1.5], &[f64::NAN]] {
            assert!(flow_sigmas(grid, FlowShift::Constant(1.0), None).is_err());
        }
        assert_eq!(linear_sigmas(1), [1.0]);
    }
}
