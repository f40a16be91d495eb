//! How far music and ambience stand back for speech, as a pure function of time.

use flow_timeline::{DuckRule, SoundClip, SoundMix, SoundRole};

/// How far from a stretch, in samples, a voice clip still shapes the stretch's ducking curve: a
/// mix that is to join its neighbours without a step has to list every voice clip this near.
pub fn duck_reach(rule: &DuckRule) -> i64 {
    rule.attack.saturating_add(rule.release)
}

/// The ducking curve of a mix.
#[derive(Debug)]
pub(super) struct Duck {
    /// Stretches of speech `[start, end)` in order, apart by at least attack + release.
    spans: Vec<(i64, i64)>,
    rule: DuckRule,
    /// First span that may still matter; reads go forward.
    next: usize,
}

impl Duck {
    pub(super) fn new(mix: &SoundMix) -> Self {
        let mut voices: Vec<(i64, i64)> = mix
            .clips
            .iter()
            .filter(|clip| clip.role == SoundRole::Voice && clip.samples > 0)
            .map(|clip: &SoundClip| (clip.start, clip.start + clip.samples))
            .collect();
        voices.sort_unstable();
        let mut spans: Vec<(i64, i64)> = Vec::with_capacity(voices.len());
        for (start, end) in voices {
            match spans.last_mut() {
                // In a pause too short to come up and go down again the level stays down.
                Some(last) if start - last.1 < duck_reach(&mix.duck) => last.1 = last.1.max(end),
                _ => spans.push((start, end)),
            }
        }
        Self {
            spans,
            rule: mix.duck,
            next: 0,
        }
    }

    /// Factors for the samples from `first` on, into `out`. Calls go forward in time.
    pub(super) fn curve(&mut self, first: i64, out: &mut [f64]) {
        let rule = self.rule;
        let full = super::factor_of_db(rule.depth_db);
        for (index, factor) in out.iter_mut().enumerate() {
            let at = first + index as i64;
            while self
                .spans
                .get(self.next)
                .is_some_and(|span| at >= span.1.saturating_add(rule.release))
            {
                self.next += 1;
            }
            *factor = match self.spans.get(self.next) {
                Some((start, end)) if at >= start - rule.attack => {
                    if at < *start {
                        self.eased((at - (start - rule.attack)) as f64 + 0.5, rule.attack)
                    } else if at < *end {
                        full
                    } else {
                        self.eased((end + rule.release - at) as f64 - 0.5, rule.release)
                    }
                }
                _ => 1.0,
            };
        }
    }

    /// Factor `done` samples into a way of `of` samples: raised cosine in decibels.
    fn eased(&self, done: f64, of: i64) -> f64 {
        let part = 0.5 - 0.5 * (std::f64::consts::PI * done / of as f64).cos();
        super::factor_of_db(self.rule.depth_db * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(start: i64, samples: i64) -> SoundClip {
        SoundClip {
            source: 0,
            role: SoundRole::Voice,
            start,
            samples,
            source_start: 0,
            looped: false,
            gain_db: 0.0,
            fade_in: 0,
            fade_out: 0,
        }
    }

    fn curve(clips: Vec<SoundClip>, samples: usize) -> Vec<f64> {
        let mix = SoundMix {
            sample_rate_hz: 48_000,
            samples: samples as i64,
            clips,
            duck: DuckRule {
                depth_db: -12.0,
                attack: 100,
                release: 200,
            },
        };
        let mut out = vec![0.0; samples];
        Duck::new(&mix).curve(0, &mut out);
        out
    }

    #[test]
    fn short_pauses_stay_down_and_long_ones_come_up() {
        let low = super::super::factor_of_db(-12.0);
        let near = curve(vec![voice(500, 100), voice(899, 100)], 1_300);
        assert!(near[500..999].iter().all(|factor| *factor == low));
        let far = curve(vec![voice(500, 100), voice(900, 100)], 1_300);
        assert!(far[800] > 0.99 && far[700] > 0.4 && far[700] < 0.6);
        assert!(far[..400].iter().all(|factor| *factor == 1.0));
        assert!(far[1_200..].iter().all(|factor| *factor == 1.0));
        let step = far
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).abs())
            .fold(0.0, f64::max);
        assert!(step < 0.02, "the curve jumps by {step}");
    }
}
