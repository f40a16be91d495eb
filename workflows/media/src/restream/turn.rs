//! Pictures turned upright, for containers that cannot say that they should be.

use super::RgbPicture;

/// `picture` upright, where EXIF `orientation` (1 to 8) is how it lies.
pub(super) fn upright(picture: RgbPicture, orientation: u8) -> RgbPicture {
    if !(2..=8).contains(&orientation) {
        return picture;
    }
    let (width, height) = (picture.width_px as usize, picture.height_px as usize);
    let is_across = orientation >= 5;
    let (out_width, out_height) = if is_across {
        (height, width)
    } else {
        (width, height)
    };
    let pixels = picture.values.as_chunks::<3>().0;
    let mut values = Vec::with_capacity(picture.values.len());
    for y in 0..out_height {
        for x in 0..out_width {
            let (last_x, last_y) = (width - 1, height - 1);
            let (from_x, from_y) = match orientation {
                2 => (last_x - x, y),
                3 => (last_x - x, last_y - y),
                4 => (x, last_y - y),
                5 => (y, x),
                6 => (y, last_y - x),
                7 => (last_x - y, last_y - x),
                _ => (last_x - y, x),
            };
            values.extend_from_slice(&pixels[from_y * width + from_x]);
        }
    }
    RgbPicture {
        width_px: out_width as u32,
        height_px: out_height as u32,
        values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_turn_as_exif_says() {
        // a b c
        // d e f
        let lying = RgbPicture {
            width_px: 3,
            height_px: 2,
            values: (0..6).flat_map(|value| [value; 3]).collect(),
        };
        let turned = |orientation| {
            let picture = upright(lying.clone(), orientation);
            let values: Vec<u16> = picture.values.chunks(3).map(|pixel| pixel[0]).collect();
            (picture.width_px, picture.height_px, values)
        };
        assert_eq!(turned(1), (3, 2, vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(turned(2), (3, 2, vec![2, 1, 0, 5, 4, 3]));
        assert_eq!(turned(3), (3, 2, vec![5, 4, 3, 2, 1, 0]));
        assert_eq!(turned(4), (3, 2, vec![3, 4, 5, 0, 1, 2]));
        assert_eq!(turned(5), (2, 3, vec![0, 3, 1, 4, 2, 5]));
        // Lies on its left side: turned clockwise, the left column becomes the top row.
        assert_eq!(turned(6), (2, 3, vec![3, 0, 4, 1, 5, 2]));
        assert_eq!(turned(7), (2, 3, vec![5, 2, 4, 1, 3, 0]));
        assert_eq!(turned(8), (2, 3, vec![2, 5, 1, 4, 0, 3]));
    }
}
