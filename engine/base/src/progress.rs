//! Progress reports and the estimate of seconds left.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One report of how far work has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressEvent {
    /// What is being worked on, for people.
    pub what: String,
    /// Units done.
    pub step: u64,
    /// Units in all; 0 when not known.
    pub of: u64,
    /// Estimated seconds left, when there is enough to estimate from.
    pub secs_left: Option<f64>,
}

/// Longest side of a [`Preview`].
pub const PREVIEW_SIDE_PX: u32 = 320;

/// A small picture of what is being made, to look at meanwhile; never a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Width, at most [`PREVIEW_SIDE_PX`].
    pub width_px: u32,
    /// Height, at most [`PREVIEW_SIDE_PX`].
    pub height_px: u32,
    /// `width_px * height_px` pixels of red, green and blue, rows from the top.
    pub rgb: Vec<u8>,
}

impl Preview {
    /// A picture of `size_px` (width, height) made smaller: `at` gives the colour of one of its
    /// pixels by column and row. Nothing for a picture without pixels.
    pub fn sampled(size_px: (usize, usize), at: impl Fn(usize, usize) -> [u8; 3]) -> Option<Self> {
        let (width, height) = size_px;
        let longer = width.max(height);
        if width == 0 || height == 0 {
            return None;
        }
        let side = longer.min(PREVIEW_SIDE_PX as usize);
        let scaled = |length: usize| (length * side / longer).max(1);
        let (small_width, small_height) = (scaled(width), scaled(height));
        let mut rgb = Vec::with_capacity(small_width * small_height * 3);
        for y in 0..small_height {
            for x in 0..small_width {
                let column = (2 * x + 1) * width / (2 * small_width);
                let row = (2 * y + 1) * height / (2 * small_height);
                rgb.extend_from_slice(&at(column, row));
            }
        }
        Some(Self {
            width_px: u32::try_from(small_width).ok()?,
            height_px: u32::try_from(small_height).ok()?,
            rgb,
        })
    }
}

/// Takes progress reports. Called from any thread, often; it must return quickly.
pub trait ProgressSink: Send + Sync {
    /// Take one report.
    fn report(&self, event: ProgressEvent);

    /// Whether a picture of what is being made would be looked at now. To be asked before one is
    /// made, which costs time.
    fn wants_preview(&self) -> bool {
        false
    }

    /// Take a picture of what is being made.
    fn preview(&self, _picture: Preview) {}
}

/// Takes reports and drops them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _event: ProgressEvent) {}
}

impl<F: Fn(ProgressEvent) + Send + Sync> ProgressSink for F {
    fn report(&self, event: ProgressEvent) {
        self(event);
    }
}

/// Estimates seconds left from the rate over the last half minute, so that a slow start or a
/// cached first half does not distort it.
#[derive(Debug, Clone)]
pub struct SecondsLeft {
    of: f64,
    seen: VecDeque<(Duration, f64)>,
}

impl SecondsLeft {
    const WINDOW: Duration = Duration::from_secs(30);

    /// An estimate towards `of` units.
    pub fn new(of: f64) -> Self {
        Self {
            of,
            seen: VecDeque::new(),
        }
    }

    /// Change the total, as when work is found to be done already.
    pub const fn set_of(&mut self, of: f64) {
        self.of = of;
    }

    /// Note that `done` units are done at monotonic time `at`; gives the estimate, `None` until
    /// half a second of work was seen.
    pub fn update(&mut self, at: Duration, done: f64) -> Option<f64> {
        if self.seen.back().is_none_or(|(last, _)| at >= *last) {
            self.seen.push_back((at, done));
        }
        while self.seen.len() > 2 && at.saturating_sub(self.seen[1].0) > Self::WINDOW {
            self.seen.pop_front();
        }
        let (first_at, first_done) = *self.seen.front()?;
        let secs = at.saturating_sub(first_at).as_secs_f64();
        let units = done - first_done;
        if secs < 0.5 || units <= 0.0 {
            return None;
        }
        Some(((self.of - done).max(0.0)) * secs / units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_small_and_keeps_the_shape() {
        let of = |size: (usize, usize)| Preview::sampled(size, |x, y| [x as u8, y as u8, 0]);
        let wide = of((1280, 720)).unwrap();
        assert_eq!((wide.width_px, wide.height_px), (320, 180));
        assert_eq!(wide.rgb.len(), 320 * 180 * 3);
        let small = of((3, 2)).unwrap();
        assert_eq!(small.rgb[..9], [0, 0, 0, 1, 0, 0, 2, 0, 0]);
        let thin = of((10_000, 1)).unwrap();
        assert_eq!((thin.width_px, thin.height_px), (320, 1));
        assert_eq!(of((0, 5)), None);
    }

    #[test]
    fn estimates_from_the_recent_rate() {
        let mut left = SecondsLeft::new(100.0);
        assert_eq!(left.update(Duration::ZERO, 0.0), None);
        assert_eq!(left.update(Duration::from_secs(10), 10.0), Some(90.0));
        // Twice as fast from here on: after the window has moved, only the new rate counts.
        let mut last = None;
        for second in 11..=50 {
            last = left.update(
                Duration::from_secs(second),
                10.0 + 2.0 * (second - 10) as f64,
            );
        }
        let secs = last.unwrap();
        assert!(
            (secs - 5.0).abs() < 0.5,
            "expected about 5 s left, got {secs}"
        );
    }
}
