//! Camera moves over a picture.

use serde::{Deserialize, Serialize};

/// What part of a picture is seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Centre across, as a fraction of the picture's width (0 left, 1 right).
    pub x: f64,
    /// Centre down, as a fraction of the picture's height (0 top, 1 bottom).
    pub y: f64,
    /// 1 shows as much of the picture as fits the frame; 2 shows half as much each way.
    pub zoom: f64,
    /// Turn of the camera in degrees, clockwise.
    #[serde(default)]
    pub roll: f64,
}

impl View {
    /// The whole picture, upright.
    pub const WHOLE: Self = Self {
        x: 0.5,
        y: 0.5,
        zoom: 1.0,
        roll: 0.0,
    };
}

/// How a move speeds up and slows down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Easing {
    /// Even speed.
    Linear,
    /// Starts slowly.
    EaseIn,
    /// Ends slowly.
    EaseOut,
    /// Starts and ends slowly.
    #[default]
    EaseInOut,
}

impl Easing {
    /// Place on the way (0 to 1) at time `t` (0 to 1). Cubic (smoothstep for in-out).
    pub fn at(self, t: f64) -> f64 {
        let t = t.clamp(0.0, 1.0);
        match self {
            Self::Linear => t,
            Self::EaseIn => t * t,
            Self::EaseOut => t * (2.0 - t),
            Self::EaseInOut => t * t * (3.0 - 2.0 * t),
        }
    }
}

/// A move from one view to another over a whole shot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CameraMove {
    /// View at the first frame.
    pub from: View,
    /// View at the last frame.
    pub to: View,
    /// Speed along the way.
    #[serde(default)]
    pub easing: Easing,
}

impl CameraMove {
    /// No move.
    pub const STILL: Self = Self {
        from: View::WHOLE,
        to: View::WHOLE,
        easing: Easing::Linear,
    };

    /// View at frame `frame` of a shot of `frames` frames. Zoom runs evenly in the eye, that is
    /// in its logarithm; frames outside the shot hold the first or last view.
    pub fn at(&self, frame: i64, frames: i64) -> View {
        let last = (frames - 1).max(1) as f64;
        let p = self.easing.at(frame as f64 / last);
        let mix = |a: f64, b: f64| a + (b - a) * p;
        let zoom =
            (self.from.zoom.max(1e-3).ln() * (1.0 - p) + self.to.zoom.max(1e-3).ln() * p).exp();
        View {
            x: mix(self.from.x, self.to.x),
            y: mix(self.from.y, self.to.y),
            zoom,
            roll: mix(self.from.roll, self.to.roll),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_starts_and_ends_where_it_says() {
        let push = CameraMove {
            from: View::WHOLE,
            to: View {
                x: 0.4,
                y: 0.6,
                zoom: 2.0,
                roll: 3.0,
            },
            easing: Easing::EaseInOut,
        };
        assert_eq!(push.at(0, 48), push.from);
        let end = push.at(47, 48);
        assert!((end.zoom - 2.0).abs() < 1e-12 && (end.roll - 3.0).abs() < 1e-12);
        assert_eq!(push.at(500, 48).x, end.x);
        assert_eq!(CameraMove::STILL.at(0, 1), View::WHOLE);
    }
}
