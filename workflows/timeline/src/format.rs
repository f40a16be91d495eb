//! Size, rate and sample rate of a film.

use engine_base::Rational;
use serde::{Deserialize, Serialize};

/// What every segment of one film shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilmFormat {
    /// Picture width.
    pub width_px: u32,
    /// Picture height.
    pub height_px: u32,
    /// Frames per second.
    pub fps: Rational,
    /// Sound sample rate; two channels always.
    pub sample_rate_hz: u32,
}

/// Why a format cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Size out of range or odd.
    #[error("cannot make a film of {width_px}x{height_px}: expected even sides from 16 to 8192 px")]
    Size {
        /// Width asked for.
        width_px: u32,
        /// Height asked for.
        height_px: u32,
    },
    /// Rate out of range.
    #[error("cannot make a film at {fps} frames a second: expected 1 to 120")]
    Rate {
        /// Rate asked for.
        fps: Rational,
    },
    /// Sample rate not supported.
    #[error("cannot make a film with {hz} Hz sound: expected 44100, 48000 or 96000")]
    SampleRate {
        /// Rate asked for.
        hz: u32,
    },
}

impl FilmFormat {
    /// 1280x720, 24 frames a second, 48 kHz.
    pub const DEFAULT: Self = Self {
        width_px: 1280,
        height_px: 720,
        fps: Rational::whole(24),
        sample_rate_hz: 48_000,
    };

    /// Check every limit.
    ///
    /// # Errors
    /// [`FormatError`] naming the first limit that does not hold.
    pub fn check(&self) -> Result<(), FormatError> {
        let side = |px: u32| (16..=8192).contains(&px) && px.is_multiple_of(2);
        if !side(self.width_px) || !side(self.height_px) {
            let (width_px, height_px) = (self.width_px, self.height_px);
            return Err(FormatError::Size {
                width_px,
                height_px,
            });
        }
        if self.fps < Rational::ONE || self.fps > Rational::whole(120) {
            return Err(FormatError::Rate { fps: self.fps });
        }
        if ![44_100, 48_000, 96_000].contains(&self.sample_rate_hz) {
            return Err(FormatError::SampleRate {
                hz: self.sample_rate_hz,
            });
        }
        Ok(())
    }

    /// First sample of frame `index`, by [`Rational::sample_of_frame`]. Saturates outside 64 bits.
    pub fn sample_of_frame(&self, index: i64) -> i64 {
        self.fps
            .sample_of_frame(index, self.sample_rate_hz)
            .unwrap_or(i64::MAX)
    }
}

impl Default for FilmFormat {
    fn default() -> Self {
        Self::DEFAULT
    }
}
