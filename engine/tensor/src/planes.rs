//! Channels of a picture, sixteen to a block.

use std::ops::Range;

use crate::TensorError;
use crate::error::expect;
use crate::lanes::Values;

/// Channels of a block.
pub(crate) const BLOCK: usize = 16;
/// Outputs of one step of a convolution, along each side.
pub(crate) const STEP: usize = 4;

/// Channels of a picture: blocks of 16, each a plane of pixels of 16 neighbouring values.
///
/// A border of zeros surrounds every plane (1 px above and to the left; below and to the right as
/// much as whole steps of a convolution need), so that padding costs nothing. Ops never write there.
#[derive(Clone)]
pub struct Planes {
    data: Vec<Values>,
    size: Size,
}

/// How planes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) blocks: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// Pixels from one row to the next.
    pub(crate) pitch: usize,
    /// Pixels from one block to the next.
    pub(crate) plane: usize,
}

impl Size {
    /// Where a pixel lies.
    pub(crate) fn at(&self, block: usize, y: usize, x: usize) -> usize {
        block * self.plane + (y + 1) * self.pitch + x + 1
    }
}

impl std::fmt::Debug for Planes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Size {
            blocks,
            height,
            width,
            ..
        } = self.size;
        write!(f, "Planes({blocks} x 16 x {height} x {width})")
    }
}

/// Some blocks of [`Planes`].
#[derive(Clone, Copy)]
pub struct PlanesRef<'a> {
    pub(crate) data: &'a [Values],
    pub(crate) size: Size,
}

/// Some blocks of [`Planes`], to write.
pub struct PlanesMut<'a> {
    pub(crate) data: &'a mut [Values],
    pub(crate) size: Size,
}

impl std::fmt::Debug for PlanesRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlanesRef({:?})", self.size)
    }
}

impl std::fmt::Debug for PlanesMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlanesMut({:?})", self.size)
    }
}

impl Planes {
    /// Zeros: `blocks` of 16 channels, each `height` x `width`.
    ///
    /// # Errors
    /// `Picture` for a picture without pixels, or one whose size does not fit memory.
    pub fn zeros(blocks: usize, height: usize, width: usize) -> Result<Self, TensorError> {
        let refuse = |why| TensorError::Picture {
            channels: blocks * BLOCK,
            width,
            height,
            why,
        };
        if blocks == 0 || height == 0 || width == 0 {
            return Err(refuse("expected at least one pixel and channel"));
        }
        let padded = |side: usize| side.checked_next_multiple_of(STEP)?.checked_add(2);
        let total = padded(width).zip(padded(height)).and_then(|(pitch, rows)| {
            let plane = pitch.checked_mul(rows)?;
            let total = plane.checked_mul(blocks)?;
            let bytes = total.checked_mul(size_of::<Values>())?;
            (bytes <= isize::MAX as usize).then_some((pitch, plane, total))
        });
        let (pitch, plane, total) = total.ok_or_else(|| refuse("its bytes cannot be counted"))?;
        let mut data = Vec::new();
        data.try_reserve_exact(total)
            .map_err(|_full| refuse("there is not enough memory"))?;
        data.resize(total, Values::ZERO);
        let size = Size {
            blocks,
            height,
            width,
            pitch,
            plane,
        };
        Ok(Self { data, size })
    }

    /// Blocks of 16 channels.
    pub fn blocks(&self) -> usize {
        self.size.blocks
    }

    /// Rows of a plane.
    pub fn height(&self) -> usize {
        self.size.height
    }

    /// Pixels of a row.
    pub fn width(&self) -> usize {
        self.size.width
    }

    /// Puts `values`, `[channels, height, width]`, into the first channels.
    ///
    /// # Errors
    /// `Shape` when there are more channels than planes, or `values` are not whole channels.
    pub fn fill(&mut self, values: &[f32]) -> Result<(), TensorError> {
        let pixels = self.size.height * self.size.width;
        let channels = values.len() / pixels;
        expect(
            "planes",
            "values of whole channels",
            values.len(),
            channels * pixels,
        )?;
        if channels > self.size.blocks * BLOCK {
            expect("planes", "channels", channels, self.size.blocks * BLOCK)?;
        }
        for (channel, plane) in values.chunks_exact(pixels).enumerate() {
            for (y, row) in plane.chunks_exact(self.size.width).enumerate() {
                let start = self.size.at(channel / BLOCK, y, 0);
                let to = &mut self.data[start..start + row.len()];
                for (to, value) in to.iter_mut().zip(row) {
                    to.0[channel % BLOCK] = *value;
                }
            }
        }
        Ok(())
    }

    /// The first `channels` as `[channels, height, width]`.
    ///
    /// # Errors
    /// `Shape` when there are fewer.
    pub fn values(&self, channels: usize) -> Result<Vec<f32>, TensorError> {
        if channels > self.size.blocks * BLOCK {
            expect("planes", "channels", channels, self.size.blocks * BLOCK)?;
        }
        let mut out = Vec::with_capacity(channels * self.size.height * self.size.width);
        for channel in 0..channels {
            for y in 0..self.size.height {
                let start = self.size.at(channel / BLOCK, y, 0);
                let row = &self.data[start..start + self.size.width];
                out.extend(row.iter().map(|pixel| pixel.0[channel % BLOCK]));
            }
        }
        Ok(out)
    }

    /// Puts `rows`, `[height * width, channels]`, into the first channels.
    ///
    /// # Errors
    /// `Shape` when there are more channels than planes, or `rows` are not whole pixels.
    pub fn fill_rows(&mut self, rows: &[f32]) -> Result<(), TensorError> {
        let pixels = self.size.height * self.size.width;
        let channels = rows.len() / pixels;
        expect(
            "planes",
            "rows of whole pixels",
            rows.len(),
            channels * pixels,
        )?;
        if channels == 0 || channels > self.size.blocks * BLOCK {
            expect("planes", "channels", channels, self.size.blocks * BLOCK)?;
        }
        for (pixel, row) in rows.chunks_exact(channels).enumerate() {
            let (y, x) = (pixel / self.size.width, pixel % self.size.width);
            for (block, values) in row.chunks(BLOCK).enumerate() {
                let at = self.size.at(block, y, x);
                self.data[at].0[..values.len()].copy_from_slice(values);
            }
        }
        Ok(())
    }

    /// The first `channels` as `[height * width, channels]`.
    ///
    /// # Errors
    /// `Shape` when there are fewer.
    pub fn rows(&self, channels: usize) -> Result<Vec<f32>, TensorError> {
        if channels > self.size.blocks * BLOCK {
            expect("planes", "channels", channels, self.size.blocks * BLOCK)?;
        }
        let mut out = Vec::with_capacity(channels * self.size.height * self.size.width);
        for y in 0..self.size.height {
            for x in 0..self.size.width {
                for first in (0..channels).step_by(BLOCK) {
                    let at = self.size.at(first / BLOCK, y, x);
                    let count = BLOCK.min(channels - first);
                    out.extend_from_slice(&self.data[at].0[..count]);
                }
            }
        }
        Ok(out)
    }

    /// All blocks.
    pub fn all(&self) -> PlanesRef<'_> {
        PlanesRef {
            data: &self.data,
            size: self.size,
        }
    }

    /// All blocks, to write.
    pub fn all_mut(&mut self) -> PlanesMut<'_> {
        PlanesMut {
            size: self.size,
            data: &mut self.data,
        }
    }

    /// Some blocks; blocks beyond the last are left out.
    pub fn part(&self, blocks: Range<usize>) -> PlanesRef<'_> {
        let end = blocks.end.min(self.size.blocks);
        let start = blocks.start.min(end);
        PlanesRef {
            data: &self.data[start * self.size.plane..end * self.size.plane],
            size: Size {
                blocks: end - start,
                ..self.size
            },
        }
    }

    /// Some blocks, to write; blocks beyond the last are left out.
    pub fn part_mut(&mut self, blocks: Range<usize>) -> PlanesMut<'_> {
        let end = blocks.end.min(self.size.blocks);
        let start = blocks.start.min(end);
        PlanesMut {
            data: &mut self.data[start * self.size.plane..end * self.size.plane],
            size: Size {
                blocks: end - start,
                ..self.size
            },
        }
    }

    /// The blocks before `at`, and those from it on, to write.
    pub fn split(&mut self, at: usize) -> (PlanesRef<'_>, PlanesMut<'_>) {
        let at = at.min(self.size.blocks);
        let (before, after) = self.data.split_at_mut(at * self.size.plane);
        let part = |blocks| Size {
            blocks,
            ..self.size
        };
        let before = PlanesRef {
            data: before,
            size: part(at),
        };
        let after = PlanesMut {
            data: after,
            size: part(self.size.blocks - at),
        };
        (before, after)
    }
}

impl<'a> PlanesMut<'a> {
    /// Puts `from`, of the same size, here.
    ///
    /// # Errors
    /// `Shape` when sizes differ.
    pub fn copy_from(self, from: PlanesRef<'_>) -> Result<(), TensorError> {
        expect("planes", "blocks", from.size.blocks, self.size.blocks)?;
        same_size("planes", from.size, self.size)?;
        self.data.copy_from_slice(from.data);
        Ok(())
    }

    /// Puts the window of `from` here whose upper left pixel is at row `y`, column `x`; it has the size
    /// of these planes.
    ///
    /// # Errors
    /// `Shape` when blocks differ or the window reaches outside.
    pub fn copy_window(
        self,
        from: PlanesRef<'_>,
        (y, x): (usize, usize),
    ) -> Result<(), TensorError> {
        let (to, size) = (self.size, from.size);
        expect("planes", "blocks", size.blocks, to.blocks)?;
        for (what, end, limit) in [
            (
                "end of the window's rows",
                y.saturating_add(to.height),
                size.height,
            ),
            (
                "end of the window's columns",
                x.saturating_add(to.width),
                size.width,
            ),
        ] {
            if end > limit {
                expect("planes", what, end, limit)?;
            }
        }
        for block in 0..to.blocks {
            for row in 0..to.height {
                let (start, first) = (to.at(block, row, 0), size.at(block, y + row, x));
                self.data[start..start + to.width]
                    .copy_from_slice(&from.data[first..first + to.width]);
            }
        }
        Ok(())
    }

    /// The first `blocks` of these.
    #[must_use]
    pub fn first(self, blocks: usize) -> PlanesMut<'a> {
        let blocks = blocks.min(self.size.blocks);
        PlanesMut {
            data: &mut self.data[..blocks * self.size.plane],
            size: Size {
                blocks,
                ..self.size
            },
        }
    }
}

/// `Ok` when two sets of planes have the same height and width.
pub(crate) fn same_size(op: &'static str, got: Size, expected: Size) -> Result<(), TensorError> {
    expect(op, "height", got.height, expected.height)?;
    expect(op, "width", got.width, expected.width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_in_and_come_out_and_borders_stay_zero() {
        let values: Vec<f32> = (1..=18 * 5 * 3).map(|value| value as f32).collect();
        let mut planes = Planes::zeros(2, 5, 3).unwrap();
        planes.fill(&values).unwrap();
        assert_eq!(planes.values(18).unwrap(), values);
        let rows = planes.rows(18).unwrap();
        let turned: Vec<f32> = (0..15 * 18)
            .map(|at| values[at % 18 * 15 + at / 18])
            .collect();
        assert_eq!(rows, turned);
        planes.fill_rows(&rows).unwrap();
        assert_eq!(planes.values(18).unwrap(), values);
        let sum: f32 = planes.data.iter().flat_map(|pixel| pixel.0).sum();
        assert_eq!(sum, values.iter().sum());
        assert!(planes.fill(&vec![0.0; 33 * 15]).is_err());
        assert!(planes.fill(&[0.0; 16]).is_err());
        assert!(planes.values(33).is_err());
    }

    #[test]
    fn windows_are_cut_out() {
        let values: Vec<f32> = (0..16 * 5 * 7).map(|value| value as f32).collect();
        let mut whole = Planes::zeros(1, 5, 7).unwrap();
        whole.fill(&values).unwrap();
        let mut window = Planes::zeros(1, 2, 3).unwrap();
        window.all_mut().copy_window(whole.all(), (3, 4)).unwrap();
        assert_eq!(
            window.values(1).unwrap(),
            [25.0, 26.0, 27.0, 32.0, 33.0, 34.0]
        );
        for at in [(4, 4), (3, 5), (usize::MAX, 0)] {
            assert!(window.all_mut().copy_window(whole.all(), at).is_err());
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for (blocks, height, width) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (4, usize::MAX, 2)] {
            assert!(Planes::zeros(blocks, height, width).is_err());
        }
        assert!(Planes::zeros(1 << 20, 1 << 20, 1 << 20).is_err());
    }
}
