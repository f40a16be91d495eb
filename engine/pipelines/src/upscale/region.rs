//! Tiles of a picture and what surrounds them.

use super::{Raster, Samples};

/// How far beyond its edge a picture is mirrored.
const EDGE_PX: usize = 8;
/// Corners of tiles and regions are multiples of this, at which convolutions take the same steps as in
/// the whole picture.
const GRID_PX: usize = 8;
/// Smallest side of a tile.
const SIDE_PX: usize = 32;

/// A part of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Tiles of about the same size, each of at most `pixels` with its margin where that is possible.
pub(super) fn tiles(width: usize, height: usize, pixels: usize, margin: usize) -> Vec<Tile> {
    let with_edge = |side: usize| side + 2 * EDGE_PX;
    let (across, down) = if with_edge(width).saturating_mul(with_edge(height)) <= pixels {
        (width, height)
    } else {
        // A side that is short leaves room for the other.
        let square = |pixels: usize| pixels.isqrt().saturating_sub(2 * margin);
        let fit = |side: usize, other: usize| {
            let other = (other + 2 * EDGE_PX).min(square(pixels) + 2 * margin);
            let longest = (pixels / other.max(1)).saturating_sub(2 * margin);
            let longest = longest.max(SIDE_PX) / GRID_PX * GRID_PX;
            let count = side.div_ceil(longest);
            side.div_ceil(count).next_multiple_of(GRID_PX)
        };
        (fit(width, height), fit(height, width))
    };
    let mut tiles = Vec::new();
    for y in (0..height).step_by(down) {
        for x in (0..width).step_by(across) {
            tiles.push(Tile {
                x,
                y,
                width: across.min(width - x),
                height: down.min(height - y),
            });
        }
    }
    tiles
}

/// A tile with its margin, in a picture that goes on mirrored beyond its edges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub(super) x: isize,
    pub(super) y: isize,
    pub(super) width: usize,
    pub(super) height: usize,
    picture: (usize, usize),
}

/// Where a coordinate beyond an edge is seen in the mirror there.
fn mirrored(at: isize, len: usize) -> usize {
    let period = 2 * (len as isize - 1).max(1);
    let at = at.rem_euclid(period);
    if len == 1 {
        0
    } else {
        at.min(period - at) as usize
    }
}

impl Region {
    pub(super) fn around(tile: &Tile, picture: (usize, usize), margin: usize, step: usize) -> Self {
        let span = |start: usize, len: usize, side: usize| {
            let first = (start as isize - margin as isize).max(-(EDGE_PX as isize));
            let end = (start + len + margin).min(side + EDGE_PX) as isize;
            (
                first,
                ((end - first) as usize).next_multiple_of(step.max(1)),
            )
        };
        let (x, width) = span(tile.x, tile.width, picture.0);
        let (y, height) = span(tile.y, tile.height, picture.1);
        Self {
            x,
            y,
            width,
            height,
            picture,
        }
    }

    /// The same with `margin` more on every side.
    pub(super) fn wider(&self, margin: usize) -> Self {
        Self {
            x: self.x - margin as isize,
            y: self.y - margin as isize,
            width: self.width + 2 * margin,
            height: self.height + 2 * margin,
            picture: self.picture,
        }
    }

    /// Height and width.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// One channel, 0 to 1.
    fn channel(&self, picture: &Raster, channel: usize) -> Vec<f32> {
        let columns: Vec<usize> = (0..self.width)
            .map(|x| mirrored(self.x + x as isize, self.picture.0))
            .collect();
        let channels = usize::from(picture.channels);
        let mut out = Vec::with_capacity(self.width * self.height);
        for y in 0..self.height {
            let row = mirrored(self.y + y as isize, self.picture.1) * self.picture.0;
            let places = columns.iter().map(|x| (row + x) * channels + channel);
            match &picture.samples {
                Samples::U8(values) => {
                    out.extend(places.map(|at| f32::from(values[at]) / 255.0));
                }
                Samples::U16(values) => {
                    out.extend(places.map(|at| f32::from(values[at]) / 65535.0));
                }
            }
        }
        out
    }

    /// `[3, height, width]`; grey three times.
    pub(super) fn colours(&self, picture: &Raster) -> Vec<f32> {
        if picture.channels < 3 {
            return self.channel(picture, 0).repeat(3);
        }
        let mut out = self.channel(picture, 0);
        out.extend(self.channel(picture, 1));
        out.extend(self.channel(picture, 2));
        out
    }

    /// `[height, width]`, where the picture has alpha.
    pub(super) fn alpha(&self, picture: &Raster) -> Option<Vec<f32>> {
        let last = usize::from(picture.channels) - 1;
        matches!(picture.channels, 2 | 4).then(|| self.channel(picture, last))
    }

    /// The tile's part of `large`, `[3, 2 * height, 2 * width]`, as colours of `out`.
    pub(super) fn put_colours(&self, tile: &Tile, large: &[f32], out: &mut Raster) {
        let plane = 4 * self.width * self.height;
        let colours = if out.channels < 3 { 1 } else { 3 };
        let channels = usize::from(out.channels);
        for (_, from, to) in self.rows(tile, out) {
            for x in 0..2 * tile.width {
                let at = from + x;
                if colours == 1 {
                    let sum = large[at] + large[plane + at] + large[2 * plane + at];
                    put(&mut out.samples, to + x * channels, sum / 3.0);
                } else {
                    for colour in 0..3 {
                        let value = large[colour * plane + at];
                        put(&mut out.samples, to + x * channels + colour, value);
                    }
                }
            }
        }
    }

    /// The tile's alpha. Where all nine neighbours are opaque, or all are transparent, it stays so,
    /// and under the latter colours become 0; elsewhere it is the mean of `large`'s channels.
    pub(super) fn put_alpha(
        &self,
        tile: &Tile,
        alpha: &[f32],
        large: Option<&[f32]>,
        out: &mut Raster,
    ) {
        let plane = 4 * self.width * self.height;
        let channels = usize::from(out.channels);
        for (y, from, to) in self.rows(tile, out) {
            for x in 0..2 * tile.width {
                let at = to + x * channels;
                let value = match self.settled(alpha, tile, (x / 2, y / 2)) {
                    Some(0.0) => {
                        for colour in 0..channels - 1 {
                            put(&mut out.samples, at + colour, 0.0);
                        }
                        0.0
                    }
                    Some(value) => value,
                    None => large.map_or(1.0, |large| {
                        let at = from + x;
                        (large[at] + large[plane + at] + large[2 * plane + at]) / 3.0
                    }),
                };
                put(&mut out.samples, at + channels - 1, value);
            }
        }
    }

    /// 0 or 1 where all of the nine pixels around one of the tile are so.
    fn settled(&self, alpha: &[f32], tile: &Tile, (x, y): (usize, usize)) -> Option<f32> {
        let left = (tile.x as isize - self.x) as usize + x;
        let top = (tile.y as isize - self.y) as usize + y;
        // The margin is mirrored already; only at its own end is it cut off.
        let rows = top.saturating_sub(1)..(top + 2).min(self.height);
        let columns = left.saturating_sub(1)..(left + 2).min(self.width);
        let first = alpha[top * self.width + left];
        let settled = matches!(first, 0.0 | 1.0)
            && rows.into_iter().all(|row| {
                let start = row * self.width;
                let row = &alpha[start + columns.start..start + columns.end];
                row.iter().all(|value| *value == first)
            });
        settled.then_some(first)
    }

    /// For each row of the tile's double: its number, where it begins in a plane of the region's double,
    /// and where it begins in `out`.
    fn rows(
        &self,
        tile: &Tile,
        out: &Raster,
    ) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let left = 2 * (tile.x as isize - self.x) as usize;
        let top = 2 * (tile.y as isize - self.y) as usize;
        let (from_pitch, to_pitch) = (2 * self.width, out.width_px as usize);
        let channels = usize::from(out.channels);
        let (x, y) = (2 * tile.x, 2 * tile.y);
        (0..2 * tile.height).map(move |row| {
            let from = (top + row) * from_pitch + left;
            (row, from, ((y + row) * to_pitch + x) * channels)
        })
    }
}

fn put(samples: &mut Samples, at: usize, value: f32) {
    match samples {
        Samples::U8(out) => out[at] = (value * 255.0).round().clamp(0.0, 255.0) as u8,
        Samples::U16(out) => out[at] = (value * 65535.0).round().clamp(0.0, 65535.0) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_repeat_neither_edge() {
        let seen: Vec<usize> = (-4..8).map(|at| mirrored(at, 4)).collect();
        assert_eq!(seen, [2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1]);
        assert!((-9..9).all(|at| mirrored(at, 1) == 0));
        assert_eq!((mirrored(-1, 2), mirrored(2, 2)), (1, 0));
    }

    #[test]
    fn tiles_cover_the_picture_once_within_their_budget() {
        for (width, height, pixels) in [
            (640, 360, 1 << 30),
            (640, 360, 40_000),
            (1, 1, 10_000),
            (50_000, 1, 20_000),
            (1, 5000, 10_000),
            (333, 777, 20_000),
        ] {
            let tiles = tiles(width, height, pixels, 24);
            let area: usize = tiles.iter().map(|tile| tile.width * tile.height).sum();
            assert_eq!(area, width * height);
            for tile in &tiles {
                assert!(tile.x % GRID_PX == 0 && tile.y % GRID_PX == 0);
                let region = Region::around(tile, (width, height), 24, 1);
                let limit = pixels.max((SIDE_PX + 56) * (SIDE_PX + 56));
                let got = region.width * region.height;
                assert!(
                    got <= limit + limit / 4,
                    "{got} px of {pixels} in {width} x {height}"
                );
            }
        }
    }
}
