//! Sample rate conversion whose output is a pure function of the output sample's index.
//!
//! A Kaiser-windowed sinc, evaluated at exact rational places: no running phase, so reading from
//! the middle gives the bits that reading from the start gives, on every machine with the same
//! floating point.

/// Zero crossings of the sinc on each side, at the lower of the two rates.
const HALF: usize = 64;
/// Stop band about -100 dB.
const KAISER_BETA: f64 = 10.0;
/// Cutoff as a part of the lower Nyquist frequency: the pass band ends at about 0.91 of it.
const ROLLOFF: f64 = 0.96;
/// Above this many phases, neighbours of a table of this size are blended.
const MAX_PHASES: u64 = 2_048;
const LANES: usize = 16;

/// Converts between two rates.
#[derive(Debug)]
pub(super) struct Resampler {
    /// Output samples a period.
    up: u64,
    /// Source samples a period.
    down: u64,
    half: usize,
    /// Phases in the table; `up`, or [`MAX_PHASES`] with blending.
    phases: u64,
    /// `phases + 1` rows of `2 * half` weights.
    table: Vec<f32>,
}

impl Resampler {
    /// From `source_hz` to `out_hz`, both above 0.
    pub(super) fn new(source_hz: u32, out_hz: u32) -> Self {
        let divisor = gcd(source_hz, out_hz);
        let (up, down) = (u64::from(out_hz / divisor), u64::from(source_hz / divisor));
        if up == down {
            return Self {
                up,
                down,
                half: 0,
                phases: 1,
                table: Vec::new(),
            };
        }
        // Below 1 when the rate goes down: the filter gets as much longer.
        let scale = (up as f64 / down as f64).min(1.0);
        let half = ((HALF as f64 / scale).ceil() as usize).next_multiple_of(LANES / 2);
        let phases = up.min(MAX_PHASES);
        let taps = half * 2;
        let mut table = Vec::with_capacity((phases as usize + 1) * taps);
        for phase in 0..=phases {
            let frac = phase as f64 / phases as f64;
            let row: Vec<f64> = (0..taps)
                .map(|tap| {
                    let at = tap as f64 - (half as f64 - 1.0) - frac;
                    kernel(at * scale, half as f64 * scale)
                })
                .collect();
            // Each phase passes a constant exactly, so that steady parts carry no ripple.
            let sum: f64 = row.iter().sum();
            table.extend(row.iter().map(|weight| (weight / sum) as f32));
        }
        Self {
            up,
            down,
            half,
            phases,
            table,
        }
    }

    /// Length at the output rate of `source` samples.
    pub(super) fn out_len(&self, source: i64) -> i64 {
        scaled_up(source, self.up, self.down)
    }

    /// First source sample and number of source samples that `count` outputs from `first` need.
    pub(super) fn window(&self, first: i64, count: usize) -> (i64, usize) {
        let start = self.place(first).0;
        let end = self.place(first + count.max(1) as i64 - 1).0;
        if self.half == 0 {
            return (start, (end - start) as usize + 1);
        }
        (
            start - self.half as i64 + 1,
            (end - start) as usize + 2 * self.half,
        )
    }

    /// Whole source sample and phase of output sample `out`.
    fn place(&self, out: i64) -> (i64, u64) {
        let at = i128::from(out) * i128::from(self.down);
        let up = i128::from(self.up);
        (at.div_euclid(up) as i64, at.rem_euclid(up) as u64)
    }

    /// Outputs `first..first + out.len() / 2`, interleaved. `left` and `right` hold the source
    /// from [`Resampler::window`] on.
    pub(super) fn run(&self, first: i64, left: &[f32], right: &[f32], out: &mut [f32]) {
        if self.half == 0 {
            for ((to, left), right) in out.chunks_exact_mut(2).zip(left).zip(right) {
                to[0] = *left;
                to[1] = *right;
            }
            return;
        }
        let start = self.place(first).0;
        let taps = self.half * 2;
        let row = |phase: u64| &self.table[phase as usize * taps..][..taps];
        let mut blended = vec![0.0f32; if self.phases == self.up { 0 } else { taps }];
        for (index, to) in out.chunks_exact_mut(2).enumerate() {
            let (at, phase) = self.place(first + index as i64);
            let from = (at - start) as usize;
            let weights = if self.phases == self.up {
                row(phase)
            } else {
                let fine = phase as f64 * self.phases as f64 / self.up as f64;
                let low = (fine.floor() as u64).min(self.phases - 1);
                let mix = (fine - low as f64) as f32;
                for ((to, a), b) in blended.iter_mut().zip(row(low)).zip(row(low + 1)) {
                    *to = a + (b - a) * mix;
                }
                &blended
            };
            to[0] = dot(weights, &left[from..from + taps]);
            to[1] = dot(weights, &right[from..from + taps]);
        }
    }
}

/// Sum of products in a fixed order that suits vector units.
fn dot(weights: &[f32], values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (weights, values) in weights.chunks_exact(LANES).zip(values.chunks_exact(LANES)) {
        for lane in 0..LANES {
            lanes[lane] += weights[lane] * values[lane];
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The filter at `at` zero crossings of the lower rate, 0 at `reach` and beyond.
pub(super) fn kernel_with(at: f64, reach: f64, rolloff: f64, beta: f64) -> f64 {
    let part = at / reach;
    if part.abs() >= 1.0 {
        return 0.0;
    }
    let window = bessel_i0(beta * (1.0 - part * part).sqrt()) / bessel_i0(beta);
    let turn = std::f64::consts::PI * at * rolloff;
    let sinc = if turn == 0.0 { 1.0 } else { turn.sin() / turn };
    sinc * window
}

fn kernel(at: f64, reach: f64) -> f64 {
    kernel_with(at, reach, ROLLOFF, KAISER_BETA)
}

/// Modified Bessel function of the first kind, order 0, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..60 {
        term *= quarter / f64::from(k * k);
        sum += term;
    }
    sum
}

/// ceil(n * up / down) without overflow.
fn scaled_up(n: i64, up: u64, down: u64) -> i64 {
    let (n, up, down) = (i128::from(n), i128::from(up), i128::from(down));
    i64::try_from((n * up + down - 1).div_euclid(down)).unwrap_or(i64::MAX)
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signal to error in dB of a sine at `hz` converted, against the sine itself.
    fn snr(source_hz: u32, out_hz: u32, hz: f64) -> f64 {
        let resampler = Resampler::new(source_hz, out_hz);
        let (first, count) = (i64::from(out_hz), 4_800);
        let (start, len) = resampler.window(first, count);
        let wave = |at: f64, rate: u32| (at * hz / f64::from(rate) * std::f64::consts::TAU).sin();
        let source: Vec<f32> = (0..len)
            .map(|n| (0.5 * wave((start + n as i64) as f64, source_hz)) as f32)
            .collect();
        let mut out = vec![0.0; count * 2];
        resampler.run(first, &source, &source, &mut out);
        let (mut signal, mut error) = (0.0, 0.0);
        for (n, got) in out.chunks_exact(2).enumerate() {
            let right = 0.5 * wave((first + n as i64) as f64, out_hz);
            signal += right * right;
            error += (f64::from(got[0]) - right).powi(2);
        }
        10.0 * (signal / error).log10()
    }

    #[test]
    fn a_sine_comes_out_clean() {
        for (source_hz, out_hz, hz, floor) in [
            (44_100, 48_000, 1_000.0, 110.0),
            (44_100, 48_000, 15_000.0, 95.0),
            (48_000, 44_100, 1_000.0, 110.0),
            (96_000, 48_000, 1_000.0, 110.0),
            (22_050, 48_000, 1_000.0, 110.0),
            (44_056, 48_000, 1_000.0, 95.0),
            (8_000, 48_000, 1_000.0, 110.0),
        ] {
            let snr = snr(source_hz, out_hz, hz);
            assert!(
                snr > floor,
                "{source_hz} -> {out_hz} at {hz} Hz: {snr:.1} dB"
            );
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_carry_is_gone() {
        let resampler = Resampler::new(96_000, 48_000);
        let (start, len) = resampler.window(10_000, 4_800);
        let source: Vec<f32> = (0..len)
            .map(|n| {
                ((start + n as i64) as f64 * 30_000.0 / 96_000.0 * std::f64::consts::TAU).sin()
                    as f32
            })
            .collect();
        let mut out = vec![0.0; 9_600];
        resampler.run(10_000, &source, &source, &mut out);
        let peak = out.iter().fold(0.0f32, |peak, value| peak.max(value.abs()));
        assert!(peak < 2e-5, "30 kHz folds back at {peak}");
    }

    #[test]
    fn the_middle_equals_the_whole() {
        for (source_hz, out_hz) in [(44_100, 48_000), (48_000, 44_100), (44_056, 48_000)] {
            let resampler = Resampler::new(source_hz, out_hz);
            let noise = |n: i64| ((n * 7919) % 1009) as f32 / 1009.0 - 0.5;
            let run = |first: i64, count: usize| {
                let (start, len) = resampler.window(first, count);
                let source: Vec<f32> = (0..len as i64).map(|n| noise(start + n)).collect();
                let mut out = vec![0.0; count * 2];
                resampler.run(first, &source, &source, &mut out);
                out
            };
            let whole = run(100, 3_000);
            assert_eq!(run(1_101, 500), whole[2_002..3_002]);
        }
    }
}
