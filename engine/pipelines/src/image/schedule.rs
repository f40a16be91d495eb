//! Noise schedules as folders of models describe them.

use engine_nn::{FlowMu, FlowShift, even_sigmas, flow_sigmas, linear_sigmas};
use serde_json::Value;

use super::ImageError;

/// Which sigmas a pipeline hands to its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grid {
    /// `1, (n - 1) / n, ..., 1 / n`.
    Linear,
    /// A count only: even steps between the shifted ends.
    Even,
}

/// `scheduler/scheduler_config.json` of a flow.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FlowSchedule {
    shift: f64,
    by_size: Option<FlowMu>,
    by_line: bool,
    terminal: Option<f64>,
    grid: Grid,
}

impl FlowSchedule {
    /// # Errors
    /// `Schedule` for numbers that cannot be.
    pub(super) fn of(config: &Value, grid: Grid) -> Result<Self, ImageError> {
        let number = |key: &str| config[key].as_f64();
        let positive = |key: &str, otherwise: f64| {
            let got = number(key).unwrap_or(otherwise);
            match got.is_finite() && got > 0.0 {
                true => Ok(got),
                false => Err(ImageError::Request {
                    what: "a number of the schedule",
                    got: format!("{key} = {got}"),
                    expected: "a number over 0".to_owned(),
                }),
            }
        };
        let by_size = match config["use_dynamic_shifting"].as_bool() {
            Some(true) => Some(FlowMu {
                base_tokens: positive("base_image_seq_len", 256.0)?,
                max_tokens: positive("max_image_seq_len", 4096.0)?,
                base: positive("base_shift", 0.5)?,
                max: positive("max_shift", 1.15)?,
            }),
            _ => None,
        };
        Ok(Self {
            shift: positive("shift", 1.0)?,
            by_size,
            by_line: config["time_shift_type"].as_str() == Some("linear"),
            terminal: number("shift_terminal").filter(|end| (0.0..1.0).contains(end)),
            grid,
        })
    }

    /// Sigmas of a run of `steps` for a picture of `tokens`; `mu` where a family has its own.
    pub(super) fn sigmas(
        &self,
        steps: u32,
        tokens: usize,
        mu: Option<f64>,
    ) -> Result<Vec<f32>, ImageError> {
        let mu = mu.or(self.by_size.as_ref().map(|by| by.of(tokens)));
        let shift = match mu {
            Some(mu) if self.by_line => FlowShift::Linear(mu),
            Some(mu) => FlowShift::Exponential(mu),
            None => FlowShift::Constant(self.shift),
        };
        let steps = steps as usize;
        let grid = match self.grid {
            Grid::Even if mu.is_none() => even_sigmas(steps, shift),
            _ => linear_sigmas(steps),
        };
        Ok(flow_sigmas(&grid, shift, self.terminal)?)
    }
}
