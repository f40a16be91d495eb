//! Where each frame looks: from a camera view to source coordinates.

use flow_timeline::{CameraMove, Fit, View};

/// What a frame sees of a picture. Source coordinates in pixels, 0 at the picture's left or top edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    /// Source place at the middle of the frame.
    pub centre_x: f64,
    /// Source place at the middle of the frame.
    pub centre_y: f64,
    /// Source pixels to a frame pixel.
    pub step: f64,
    /// Clockwise turn of the camera.
    pub roll_radians: f64,
}

/// Sizes of a frame and the picture in it, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sizes {
    pub frame: (f64, f64),
    pub picture: (f64, f64),
}

impl Sizes {
    /// The window of `view`. For [`Fit::Cover`] the window never leaves the picture: the camera
    /// comes as close as that needs, then the centre moves in. For [`Fit::Contain`] it may.
    pub(crate) fn window(&self, fit: Fit, view: View) -> Window {
        let ((fw, fh), (pw, ph)) = (self.frame, self.picture);
        let finite = |v: f64, or: f64| if v.is_finite() { v } else { or };
        let roll = finite(view.roll, 0.0).to_radians();
        let zoom = finite(view.zoom, 1.0).clamp(1e-3, 1e3);
        let (x, y) = (finite(view.x, 0.5) * pw, finite(view.y, 0.5) * ph);
        let (sin, cos) = (roll.sin().abs(), roll.cos().abs());
        match fit {
            Fit::Contain => {
                let scale = (fw / pw).min(fh / ph) * zoom;
                Window {
                    centre_x: x.clamp(0.0, pw),
                    centre_y: y.clamp(0.0, ph),
                    step: 1.0 / scale,
                    roll_radians: roll,
                }
            }
            Fit::Cover => {
                let (need_w, need_h) = (fw * cos + fh * sin, fw * sin + fh * cos);
                let scale = ((fw / pw).max(fh / ph) * zoom)
                    .max(need_w / pw)
                    .max(need_h / ph);
                let step = 1.0 / scale;
                let inside = |at: f64, half: f64, side: f64| {
                    if half * 2.0 >= side {
                        side / 2.0
                    } else {
                        at.clamp(half, side - half)
                    }
                };
                Window {
                    centre_x: inside(x, need_w * step / 2.0, pw),
                    centre_y: inside(y, need_h * step / 2.0, ph),
                    step,
                    roll_radians: roll,
                }
            }
        }
    }

    /// Smallest and largest step over a whole move.
    pub(crate) fn step_range(&self, fit: Fit, camera: &CameraMove) -> (f64, f64) {
        let mut range = (f64::INFINITY, 0.0_f64);
        // Roll makes the step uneven along the way, so the ends alone do not do.
        const SAMPLES: i64 = 33;
        for i in 0..SAMPLES {
            let step = self.window(fit, camera.at(i, SAMPLES)).step;
            range = (range.0.min(step), range.1.max(step));
        }
        range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        frame: (1280.0, 720.0),
        picture: (1024.0, 683.0),
    };

    fn corners(window: Window) -> Vec<(f64, f64)> {
        let (sin, cos) = window.roll_radians.sin_cos();
        [
            (-640.0, -360.0),
            (640.0, -360.0),
            (-640.0, 360.0),
            (640.0, 360.0),
        ]
        .map(|(dx, dy)| {
            (
                window.centre_x + window.step * (dx * cos - dy * sin),
                window.centre_y + window.step * (dx * sin + dy * cos),
            )
        })
        .to_vec()
    }

    #[test]
    fn cover_never_leaves_the_picture() {
        for i in 0..4000_i32 {
            let v = |k: i32| f64::from((i * k) % 97) / 48.0 - 0.5;
            let view = View {
                x: v(13),
                y: v(29),
                zoom: 0.3 + f64::from(i % 11) / 3.0,
                roll: f64::from(i % 181) - 90.0,
            };
            for (x, y) in corners(SIZES.window(Fit::Cover, view)) {
                assert!((-1e-6..=1_024.000_001).contains(&x), "{view:?} sees x {x}");
                assert!((-1e-6..=683.000_001).contains(&y), "{view:?} sees y {y}");
            }
        }
    }

    #[test]
    fn contain_shows_all_and_bad_numbers_do_no_harm() {
        let window = SIZES.window(Fit::Contain, View::WHOLE);
        assert!((window.step - 683.0 / 720.0).abs() < 1e-12);
        let odd = View {
            x: f64::NAN,
            y: f64::INFINITY,
            zoom: f64::NAN,
            roll: f64::NAN,
        };
        let window = SIZES.window(Fit::Cover, odd);
        assert!(window.centre_x.is_finite() && window.centre_y.is_finite() && window.step > 0.0);
    }
}
