//! A decoded picture in memory.

/// Pixel storage: rows from the top, RGBA interleaved, sRGB transfer, straight alpha.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pixels {
    /// 8 bits a channel.
    Rgba8(Vec<u8>),
    /// 16 bits a channel.
    Rgba16(Vec<u16>),
}

/// A decoded picture: upright, sRGB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
    /// `width_px * height_px * 4` values.
    pub pixels: Pixels,
}

impl Picture {
    /// The four channels of one pixel as 16-bit values (8-bit ones times 257), or nothing outside.
    pub fn at(&self, x: u32, y: u32) -> Option<[u16; 4]> {
        if x >= self.width_px || y >= self.height_px {
            return None;
        }
        let first = (y as usize * self.width_px as usize + x as usize) * 4;
        match &self.pixels {
            Pixels::Rgba8(data) => {
                let pixel = data.get(first..first + 4)?;
                Some([0, 1, 2, 3].map(|channel| u16::from(pixel[channel]) * 257))
            }
            Pixels::Rgba16(data) => {
                let pixel = data.get(first..first + 4)?;
                Some([pixel[0], pixel[1], pixel[2], pixel[3]])
            }
        }
    }

    /// The same picture with 8 bits a channel, rounded to nearest.
    #[must_use]
    pub fn into_8_bit(self) -> Self {
        let pixels = match self.pixels {
            Pixels::Rgba8(data) => data,
            Pixels::Rgba16(data) => data
                .iter()
                .map(|value| ((u32::from(*value) + 128) / 257) as u8)
                .collect(),
        };
        Self {
            pixels: Pixels::Rgba8(pixels),
            ..self
        }
    }

    /// Turned and mirrored as an EXIF orientation says (1 to 8; any other value changes nothing).
    #[must_use]
    pub fn oriented(self, orientation: u8) -> Self {
        if !(2..=8).contains(&orientation) {
            return self;
        }
        let (width, height) = (self.width_px as usize, self.height_px as usize);
        let pixels = match &self.pixels {
            Pixels::Rgba8(data) => Pixels::Rgba8(turn(data, width, height, orientation)),
            Pixels::Rgba16(data) => Pixels::Rgba16(turn(data, width, height, orientation)),
        };
        let (width_px, height_px) = if orientation >= 5 {
            (self.height_px, self.width_px)
        } else {
            (self.width_px, self.height_px)
        };
        Self {
            width_px,
            height_px,
            pixels,
        }
    }
}

fn turn<T: Copy>(data: &[T], width: usize, height: usize, orientation: u8) -> Vec<T> {
    let (out_width, out_height) = if orientation >= 5 {
        (height, width)
    } else {
        (width, height)
    };
    let mut out = Vec::with_capacity(data.len());
    for y in 0..out_height {
        for x in 0..out_width {
            let (from_x, from_y) = match orientation {
                2 => (width - 1 - x, y),
                3 => (width - 1 - x, height - 1 - y),
                4 => (x, height - 1 - y),
                5 => (y, x),
                6 => (y, height - 1 - x),
                7 => (width - 1 - y, height - 1 - x),
                8 => (width - 1 - y, x),
                _ => (x, y),
            };
            let first = (from_y * width + from_x) * 4;
            out.extend_from_slice(&data[first..first + 4]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 x 2 picture whose red channel numbers its pixels.
    fn numbered() -> Picture {
        Picture {
            width_px: 3,
            height_px: 2,
            pixels: Pixels::Rgba8((0..6).flat_map(|n| [n, 0, 0, 255]).collect()),
        }
    }

    fn reds(picture: &Picture) -> Vec<u8> {
        let Pixels::Rgba8(data) = &picture.pixels else {
            panic!("expected 8 bits")
        };
        data.chunks_exact(4).map(|pixel| pixel[0]).collect()
    }

    #[test]
    fn all_eight_orientations_turn_as_exif_says() {
        let expected: [(u8, u32, [u8; 6]); 8] = [
            (1, 3, [0, 1, 2, 3, 4, 5]),
            (2, 3, [2, 1, 0, 5, 4, 3]),
            (3, 3, [5, 4, 3, 2, 1, 0]),
            (4, 3, [3, 4, 5, 0, 1, 2]),
            (5, 2, [0, 3, 1, 4, 2, 5]),
            (6, 2, [3, 0, 4, 1, 5, 2]),
            (7, 2, [5, 2, 4, 1, 3, 0]),
            (8, 2, [2, 5, 1, 4, 0, 3]),
        ];
        for (orientation, width_px, order) in expected {
            let turned = numbered().oriented(orientation);
            assert_eq!(turned.width_px, width_px, "orientation {orientation}");
            assert_eq!(reds(&turned), order, "orientation {orientation}");
        }
    }

    #[test]
    fn sixteen_bits_round_to_the_nearest_of_eight() {
        let picture = Picture {
            width_px: 1,
            height_px: 1,
            pixels: Pixels::Rgba16(vec![0, 128, 129, 65535]),
        };
        assert_eq!(
            picture.into_8_bit().pixels,
            Pixels::Rgba8(vec![0, 0, 1, 255])
        );
    }
}
