//! One layer: a source seen through a camera move, row by row.
//!
//! The way of sampling is chosen once a shot from the move alone, so nothing changes its look in
//! the middle of it: kernel (still or moving), light (reducing or enlarging), working size, and
//! whether the camera rolls.

use std::sync::{Arc, Mutex, PoisonError};

use flow_timeline::{CameraMove, Fit, Layer, LayerKind};

use super::kernel::{Axis, Kernel, coverage};
use super::light::Light;
use super::surface::{Phases, Rgbx, Slant, Surface, resample_row, slant_row};
use super::view::{Sizes, Window};
use super::workers::Workers;
use crate::MediaError;
use crate::picture::Picture;

/// Gives a video's pictures by film frame.
pub trait FrameSource: Send {
    /// The picture shown at film frame `index` of the source; past the end the last is held.
    ///
    /// # Errors
    /// [`MediaError`] when the source cannot be decoded.
    fn frame(&mut self, index: i64) -> Result<Arc<Picture>, MediaError>;
}

/// The opened source of a layer.
pub enum LayerSource {
    /// A still.
    Still(Arc<Picture>),
    /// A video conformed to the film's rate.
    Video(Box<dyn FrameSource>),
    /// None, for a colour.
    Colour,
}

/// A working picture larger than this is reduced first, whatever the view: 384 MB in floats.
const WORKING_PIXELS: f64 = 24e6;
/// How much finer than the closest view a reduced working picture is kept.
const WORKING_MARGIN: f64 = 1.25;

/// What of the sampling is fixed for a shot.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    kernel: Kernel,
    light: Light,
    rolls: bool,
    holds: bool,
    /// Working pixels to a source pixel, at most 1.
    working: f64,
}

impl Way {
    fn of(sizes: &Sizes, fit: Fit, camera: &CameraMove) -> Self {
        let holds = camera.from == camera.to;
        let (closest, widest) = sizes.step_range(fit, camera);
        let pixels = sizes.picture.0 * sizes.picture.1;
        let mut working = 1.0_f64;
        if !holds && closest > 1.5 {
            working = WORKING_MARGIN / closest;
        }
        if pixels * working * working > WORKING_PIXELS {
            working = (WORKING_PIXELS / pixels).sqrt();
        }
        Self {
            kernel: if holds {
                Kernel::Lanczos3
            } else {
                Kernel::Mitchell
            },
            light: if widest > 1.001 {
                Light::Linear
            } else {
                Light::Coded
            },
            rolls: camera.from.roll != 0.0 || camera.to.roll != 0.0,
            holds,
            working,
        }
    }
}

enum State {
    Empty,
    Flat(Rgbx),
    /// The finished frame of a camera that does not move.
    Held(Surface),
    /// Whole-pixel copy.
    Copy {
        left: usize,
        top: usize,
    },
    Axes {
        across: Axis,
        down: Axis,
        cover: Option<(Vec<f32>, Vec<f32>)>,
    },
    Rolled {
        /// The visible part prefiltered so that a frame pixel is no larger than one of its own;
        /// the working picture itself where that holds already.
        reduced: Option<Surface>,
        slant: Slant,
        /// Step down a row.
        row_dx: f64,
        row_dy: f64,
        edges: Option<Edges>,
    },
}

/// The picture's sides in the units of a slant, and frame pixels to one of these.
struct Edges {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    per_unit: f64,
}

/// A layer ready to give rows.
pub(crate) struct LayerRenderer {
    layer: Layer,
    /// Behind a lock only so that rows may be read from many threads.
    source: Mutex<LayerSource>,
    frame: (usize, usize),
    /// Size of the source as read.
    source_size: (f64, f64),
    way: Way,
    working: Surface,
    phases: Phases,
    state: State,
}

impl LayerRenderer {
    pub(crate) fn new(
        layer: &Layer,
        source: LayerSource,
        frame: (usize, usize),
    ) -> Result<Self, MediaError> {
        let mut made = Self {
            layer: layer.clone(),
            source: Mutex::new(LayerSource::Colour),
            frame,
            source_size: (0.0, 0.0),
            way: Way {
                kernel: Kernel::Mitchell,
                light: Light::Coded,
                rolls: false,
                holds: true,
                working: 1.0,
            },
            working: Surface::EMPTY,
            phases: Phases::new(Kernel::Mitchell),
            state: State::Empty,
        };
        match (&layer.source, source) {
            (LayerKind::Colour { rgb }, _) => {
                let [r, g, b] = rgb.map(|v| f32::from(v) / 255.0);
                made.state = State::Flat([r, g, b, 0.0]);
            }
            (LayerKind::Still, LayerSource::Still(picture)) => {
                made.take_picture(&picture)?;
            }
            (LayerKind::Video { .. }, video @ LayerSource::Video(_)) => {
                made.source = Mutex::new(video);
            }
            (kind, _) => {
                return Err(MediaError::BadRequest(format!(
                    "render a layer of kind {kind:?}: got a source of another kind"
                )));
            }
        }
        Ok(made)
    }

    /// The light of the rows given.
    pub(crate) fn light(&self) -> Light {
        self.way.light
    }

    fn take_picture(&mut self, picture: &Picture) -> Result<(), MediaError> {
        let (w, h) = (f64::from(picture.width_px), f64::from(picture.height_px));
        if w < 1.0 || h < 1.0 {
            return Err(MediaError::BadRequest(
                "render a picture without pixels: expected at least 1x1".into(),
            ));
        }
        if self.source_size != (w, h) {
            self.source_size = (w, h);
            self.way = Way::of(&self.sizes(), self.layer.fit, &self.layer.camera);
        }
        self.working = if self.way.working < 1.0 {
            let side = |px: f64| ((px * self.way.working).round() as usize).max(1);
            Surface::of_picture_reduced(picture, side(w), side(h), self.way.light)
        } else {
            Surface::of_picture(picture, self.way.light)
        };
        Ok(())
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            frame: (self.frame.0 as f64, self.frame.1 as f64),
            picture: self.source_size,
        }
    }

    /// Make ready for frame `index` of the segment.
    pub(crate) fn prepare(&mut self, index: i64, workers: &Workers) -> Result<(), MediaError> {
        let source = self
            .source
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let is_video = match (&self.layer.source, source) {
            (LayerKind::Colour { .. }, _) => return Ok(()),
            (LayerKind::Video { first_frame }, LayerSource::Video(source)) => {
                let at = first_frame
                    .saturating_add(self.layer.shot_first_frame)
                    .saturating_add(index);
                let picture = source.frame(at)?;
                self.take_picture(&picture)?;
                true
            }
            _ => false,
        };
        if matches!(self.state, State::Held(_)) && !is_video {
            return Ok(());
        }
        let at = self.layer.shot_first_frame.saturating_add(index);
        let view = self.layer.camera.at(at, self.layer.shot_frames);
        let window = self.sizes().window(self.layer.fit, view);
        self.state = if self.way.rolls {
            let spare = match std::mem::replace(&mut self.state, State::Empty) {
                State::Rolled { reduced, .. } => reduced.map(|surface| surface.data),
                _ => None,
            };
            self.rolled(window, workers, spare.unwrap_or_default())
        } else {
            self.axes(window)
        };
        if self.way.holds && !is_video {
            self.state = State::Held(self.whole_frame(workers));
            // Nothing but that frame is read from here on.
            self.working = Surface::EMPTY;
        }
        Ok(())
    }

    fn whole_frame(&self, workers: &Workers) -> Surface {
        let (width, height) = self.frame;
        let mut data = vec![[0.0; 4]; width * height];
        let rows: Vec<&mut [Rgbx]> = data.chunks_exact_mut(width).collect();
        workers.each(rows, Vec::new, |y, row, column| self.row(y, column, row));
        Surface {
            width,
            height,
            data,
        }
    }

    /// Working pixels to a source pixel along each axis.
    fn scale(&self) -> (f64, f64) {
        (
            self.working.width as f64 / self.source_size.0,
            self.working.height as f64 / self.source_size.1,
        )
    }

    fn axes(&self, window: Window) -> State {
        let (scale_x, scale_y) = self.scale();
        let (width, height) = self.frame;
        let (step_x, step_y) = (window.step * scale_x, window.step * scale_y);
        let left = window.centre_x * scale_x - width as f64 / 2.0 * step_x;
        let top = window.centre_y * scale_y - height as f64 / 2.0 * step_y;
        let whole = |v: f64| (v - v.round()).abs() < 1e-9 && v >= -1e-9;
        let (source_w, source_h) = (self.working.width, self.working.height);
        let unscaled = (step_x - 1.0).abs() < 1e-12 && (step_y - 1.0).abs() < 1e-12;
        if self.way.kernel == Kernel::Lanczos3 && unscaled && whole(left) && whole(top) {
            let (left, top) = (left.round() as usize, top.round() as usize);
            if left + width <= source_w && top + height <= source_h {
                return State::Copy { left, top };
            }
        }
        let cover = (self.layer.fit == Fit::Contain).then(|| {
            (
                coverage(width, source_w as f64, left, step_x),
                coverage(height, source_h as f64, top, step_y),
            )
        });
        State::Axes {
            across: Axis::new(self.way.kernel, width, source_w, left, step_x),
            down: Axis::new(self.way.kernel, height, source_h, top, step_y),
            cover,
        }
    }

    /// `spare` is room that an earlier frame left; every pixel of it is written anew.
    fn rolled(&self, window: Window, workers: &Workers, spare: Vec<Rgbx>) -> State {
        let (scale_x, scale_y) = self.scale();
        let (sin, cos) = window.roll_radians.sin_cos();
        let (half_w, half_h) = (self.frame.0 as f64 / 2.0, self.frame.1 as f64 / 2.0);
        // Working pixels to a frame pixel: the prefilter widens with it and is the identity at 1.
        let (wide_x, wide_y) = (
            (window.step * scale_x).max(1.0),
            (window.step * scale_y).max(1.0),
        );
        let mut origin = (0_i64, 0_i64);
        let reduced = (wide_x > 1.0 || wide_y > 1.0).then(|| {
            let reach_x = (half_w * cos.abs() + half_h * sin.abs()) * window.step;
            let reach_y = (half_w * sin.abs() + half_h * cos.abs()) * window.step;
            let span = |centre: f64, reach: f64, scale: f64, wide: f64, side: usize| {
                let last = (side as f64 / wide).ceil().max(1.0);
                let low = ((centre - reach) * scale / wide - 3.0)
                    .floor()
                    .clamp(0.0, last - 1.0);
                let high = ((centre + reach) * scale / wide + 3.0)
                    .ceil()
                    .clamp(low + 1.0, last);
                (low as i64, (high - low) as usize)
            };
            let (x, width) = span(
                window.centre_x,
                reach_x,
                scale_x,
                wide_x,
                self.working.width,
            );
            let (y, height) = span(
                window.centre_y,
                reach_y,
                scale_y,
                wide_y,
                self.working.height,
            );
            origin = (x, y);
            // The grid hangs on the picture's corner, so it does not swim with the centre.
            let (left, top) = (x as f64 * wide_x, y as f64 * wide_y);
            let kernel = Kernel::CatmullRom;
            let across = Axis::new(kernel, width, self.working.width, left, wide_x);
            let down = Axis::new(kernel, height, self.working.height, top, wide_y);
            let mut data = spare;
            data.resize(width * height, [0.0; 4]);
            let rows: Vec<&mut [Rgbx]> = data.chunks_exact_mut(width).collect();
            workers.each(rows, Vec::new, |y, row, column| {
                resample_row(&self.working, &across, &down, y, column, row);
            });
            Surface {
                width,
                height,
                data,
            }
        });
        let (unit_x, unit_y) = (scale_x / wide_x, scale_y / wide_y);
        let place = |dx: f64, dy: f64| {
            let x = window.centre_x + window.step * (dx * cos - dy * sin);
            let y = window.centre_y + window.step * (dx * sin + dy * cos);
            (x * unit_x - origin.0 as f64, y * unit_y - origin.1 as f64)
        };
        let (x, y) = place(0.5 - half_w, 0.5 - half_h);
        let edges = (self.layer.fit == Fit::Contain).then(|| {
            let (left, top) = (-origin.0 as f64, -origin.1 as f64);
            Edges {
                left,
                top,
                right: left + self.source_size.0 * unit_x,
                bottom: top + self.source_size.1 * unit_y,
                per_unit: 1.0 / (window.step * unit_x),
            }
        });
        State::Rolled {
            reduced,
            slant: Slant {
                x,
                y,
                dx: window.step * cos * unit_x,
                dy: window.step * sin * unit_y,
            },
            row_dx: -window.step * sin * unit_x,
            row_dy: window.step * cos * unit_y,
            edges,
        }
    }

    /// Row `y` of the prepared frame in [`Self::light`]; `column` is scratch.
    pub(crate) fn row(&self, y: usize, column: &mut Vec<Rgbx>, out: &mut [Rgbx]) {
        match &self.state {
            State::Empty => out.fill([0.0; 4]),
            State::Flat(colour) => out.fill(*colour),
            State::Held(surface) => out.copy_from_slice(surface.row(y)),
            State::Copy { left, top } => {
                out.copy_from_slice(&self.working.row(y + top)[*left..left + out.len()]);
            }
            State::Axes {
                across,
                down,
                cover,
            } => {
                if let Some((_, down_cover)) = cover
                    && down_cover[y] <= 0.0
                {
                    out.fill([0.0; 4]);
                    return;
                }
                resample_row(&self.working, across, down, y, column, out);
                if let Some((across_cover, down_cover)) = cover {
                    for (pixel, cover) in out.iter_mut().zip(across_cover) {
                        *pixel = pixel.map(|v| v.clamp(0.0, 1.0) * cover * down_cover[y]);
                    }
                }
            }
            State::Rolled {
                reduced,
                slant,
                row_dx,
                row_dy,
                edges,
            } => {
                let line = Slant {
                    x: slant.x + row_dx * y as f64,
                    y: slant.y + row_dy * y as f64,
                    ..*slant
                };
                slant_row(
                    reduced.as_ref().unwrap_or(&self.working),
                    &self.phases,
                    line,
                    out,
                );
                if let Some(edges) = edges {
                    for (i, pixel) in out.iter_mut().enumerate() {
                        let (x, y) = (line.x + line.dx * i as f64, line.y + line.dy * i as f64);
                        let near_x = (x - edges.left).min(edges.right - x);
                        let near_y = (y - edges.top).min(edges.bottom - y);
                        let inside = near_x.min(near_y) * edges.per_unit + 0.5;
                        let cover = inside.clamp(0.0, 1.0) as f32;
                        *pixel = pixel.map(|v| v.clamp(0.0, 1.0) * cover);
                    }
                }
            }
        }
    }
}
