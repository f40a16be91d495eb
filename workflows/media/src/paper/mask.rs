//! Shapes cut from paper: coverage of pixels by polygons.

/// A shape: coverage 0..1 of the pixels of a rectangle of the frame.
#[derive(Debug, Clone)]
pub(super) struct Mask {
    pub(super) left_px: i32,
    pub(super) top_px: i32,
    pub(super) width_px: usize,
    pub(super) height_px: usize,
    /// `[height_px, width_px]`.
    pub(super) cover: Vec<f32>,
}

/// Lines of samples in a row of pixels.
const LINES: usize = 4;

impl Mask {
    /// An empty rectangle.
    pub(super) fn empty(left_px: i32, top_px: i32, width_px: usize, height_px: usize) -> Self {
        let cover = vec![0.0; width_px * height_px];
        Self {
            left_px,
            top_px,
            width_px,
            height_px,
            cover,
        }
    }

    /// The union of closed polygons, each filled by the even-odd rule, cut off at a frame of
    /// `frame_px` (width, height).
    pub(super) fn of(polygons: &[Vec<(f32, f32)>], frame_px: (usize, usize)) -> Self {
        let points = || polygons.iter().flatten();
        let low = |of: fn(&(f32, f32)) -> f32| points().map(of).fold(f32::MAX, f32::min);
        let high = |of: fn(&(f32, f32)) -> f32| points().map(of).fold(f32::MIN, f32::max);
        let clip = |value: f32, top: usize| value.clamp(0.0, top as f32) as i32;
        let left = clip(low(|p| p.0).floor(), frame_px.0);
        let right = clip(high(|p| p.0).ceil(), frame_px.0);
        let top = clip(low(|p| p.1).floor(), frame_px.1);
        let bottom = clip(high(|p| p.1).ceil(), frame_px.1);
        let (width, height) = ((right - left).max(0), (bottom - top).max(0));
        let mut mask = Self::empty(left, top, width as usize, height as usize);
        let mut row = vec![0.0_f32; mask.width_px];
        for polygon in polygons {
            for y in 0..mask.height_px {
                row.fill(0.0);
                for line in 0..LINES {
                    let at = top as f32 + y as f32 + (line as f32 + 0.5) / LINES as f32;
                    mask.line(polygon, at, &mut row);
                }
                let start = y * mask.width_px;
                let covered = mask.cover.iter_mut().skip(start);
                for (cover, &new) in covered.zip(&row) {
                    *cover = cover.max(new.min(1.0));
                }
            }
        }
        mask
    }

    /// Adds what the line at height `at` covers of a row.
    fn line(&self, polygon: &[(f32, f32)], at: f32, row: &mut [f32]) {
        let next = polygon.iter().cycle().skip(1);
        let mut crossings: Vec<f32> = polygon
            .iter()
            .zip(next)
            .filter(|(a, b)| (a.1 <= at) != (b.1 <= at))
            .map(|(a, b)| a.0 + (at - a.1) / (b.1 - a.1) * (b.0 - a.0) - self.left_px as f32)
            .collect();
        crossings.sort_by(f32::total_cmp);
        for pair in crossings.as_chunks::<2>().0 {
            let from = pair[0].clamp(0.0, row.len() as f32);
            let to = pair[1].clamp(0.0, row.len() as f32);
            let (first, last) = (from as usize, to.ceil() as usize);
            for (x, cover) in row.iter_mut().enumerate().take(last).skip(first) {
                let share = (to.min(x as f32 + 1.0) - from.max(x as f32)).max(0.0);
                *cover += share / LINES as f32;
            }
        }
    }

    /// Coverage of the pixel at `x`, `y` of the frame.
    pub(super) fn at(&self, x: i32, y: i32) -> f32 {
        let (x, y) = (x - self.left_px, y - self.top_px);
        if x < 0 || y < 0 || x >= self.width_px as i32 {
            return 0.0;
        }
        let at = y as usize * self.width_px + x as usize;
        self.cover.get(at).copied().unwrap_or(0.0)
    }

    /// What of it lies outside `other`.
    pub(super) fn without(mut self, other: &Self) -> Self {
        for (at, cover) in self.cover.iter_mut().enumerate() {
            let x = self.left_px + (at % self.width_px) as i32;
            let y = self.top_px + (at / self.width_px) as i32;
            *cover *= 1.0 - other.at(x, y);
        }
        self
    }

    /// What of it lies inside `other`.
    pub(super) fn within(mut self, other: &Self) -> Self {
        for (at, cover) in self.cover.iter_mut().enumerate() {
            let x = self.left_px + (at % self.width_px) as i32;
            let y = self.top_px + (at / self.width_px) as i32;
            *cover *= other.at(x, y);
        }
        self
    }

    /// It and what lies within `reach_px` of it, softly: two running means each way.
    pub(super) fn blurred(&self, reach_px: usize) -> Self {
        let pad = reach_px * 2;
        let (width, height) = (self.width_px + 2 * pad, self.height_px + 2 * pad);
        let mut out = Self::empty(
            self.left_px - pad as i32,
            self.top_px - pad as i32,
            width,
            height,
        );
        if self.width_px == 0 || self.height_px == 0 {
            return out;
        }
        for (from, to) in self
            .cover
            .chunks_exact(self.width_px)
            .zip(out.cover.chunks_exact_mut(width).skip(pad))
        {
            if let Some(to) = to.get_mut(pad..pad + self.width_px) {
                to.copy_from_slice(from);
            }
        }
        let mut line = Vec::new();
        for _ in 0..2 {
            for row in out.cover.chunks_exact_mut(width) {
                line.clear();
                line.extend_from_slice(row);
                mean(&line, reach_px, row.iter_mut());
            }
            for x in 0..width {
                line.clear();
                line.extend(out.cover.iter().skip(x).step_by(width));
                mean(&line, reach_px, out.cover.iter_mut().skip(x).step_by(width));
            }
        }
        out
    }
}

/// Means of `line` over `reach` to both sides, into `to`; beyond the ends the last value goes on.
fn mean<'a>(line: &[f32], reach: usize, to: impl Iterator<Item = &'a mut f32>) {
    let last = line.len().saturating_sub(1);
    let value = |at: isize| {
        let at = at.clamp(0, last as isize) as usize;
        line.get(at).copied().unwrap_or(0.0)
    };
    let reach = reach as isize;
    let mut sum: f32 = (-reach..=reach).map(value).sum();
    let count = (2 * reach + 1) as f32;
    for (at, to) in to.enumerate() {
        *to = sum / count;
        sum += value(at as isize + reach + 1) - value(at as isize - reach);
    }
}

/// Points of a circle.
pub(super) fn circle(x: f32, y: f32, radius: f32) -> Vec<(f32, f32)> {
    oval(x, y, radius, radius)
}

/// Points of an oval.
pub(super) fn oval(x: f32, y: f32, across: f32, up: f32) -> Vec<(f32, f32)> {
    let turn = |at: i32| at as f32 / 56.0 * std::f32::consts::TAU;
    (0..56)
        .map(|at| (x + across * turn(at).cos(), y + up * turn(at).sin()))
        .collect()
}

/// Corners of a rectangle.
pub(super) fn rect(left: f32, top: f32, width: f32, height: f32) -> Vec<(f32, f32)> {
    let (right, bottom) = (left + width, top + height);
    vec![(left, top), (right, top), (right, bottom), (left, bottom)]
}
