//! Coded RGB rows to 8-bit 4:2:0, BT.709, limited range.
//!
//! Rounding is dithered by place alone: a value between two steps becomes a fine even mixture of
//! both, the same in every frame, so slow fades and skies show no bands; a value on a step stays
//! exactly there. Chroma is sited left, as H.264 players assume.

use engine_base::Preview;

use super::surface::Rgbx;

/// A frame as the encoder takes it: planes without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YuvFrame {
    /// Width, even.
    pub width_px: usize,
    /// Height, even.
    pub height_px: usize,
    /// `width_px * height_px` of luma, 16 to 235.
    pub y: Vec<u8>,
    /// Blue difference, a quarter as many.
    pub u: Vec<u8>,
    /// Red difference, a quarter as many.
    pub v: Vec<u8>,
}

impl YuvFrame {
    /// A black frame.
    pub fn new(width_px: usize, height_px: usize) -> Self {
        let quarter = (width_px / 2) * (height_px / 2);
        Self {
            width_px,
            height_px,
            y: vec![16; width_px * height_px],
            u: vec![128; quarter],
            v: vec![128; quarter],
        }
    }

    /// A small picture of it.
    pub(crate) fn preview(&self) -> Option<Preview> {
        let value = |plane: &[u8], at: usize| f32::from(plane.get(at).copied().unwrap_or(128));
        Preview::sampled((self.width_px, self.height_px), |x, y| {
            let chroma = (y / 2) * (self.width_px / 2) + x / 2;
            let luma = (value(&self.y, y * self.width_px + x) - 16.0) / 219.0;
            let blue = (value(&self.u, chroma) - 128.0) / 224.0;
            let red = (value(&self.v, chroma) - 128.0) / 224.0;
            let r = luma + 2.0 * (1.0 - KR) * red;
            let b = luma + 2.0 * (1.0 - KB) * blue;
            let g = (luma - KR * r - KB * b) / KG;
            [r, g, b].map(|value| (value.clamp(0.0, 1.0) * 255.0).round() as u8)
        })
    }
}

pub(crate) const KR: f32 = 0.2126;
pub(crate) const KB: f32 = 0.0722;
pub(crate) const KG: f32 = 1.0 - KR - KB;

/// Even spread over the plane (the R2 sequence of Roberts, 2018), 0.02 to 0.98: the margin keeps
/// values that stand on a step there in spite of rounding errors.
#[inline(always)]
fn dither(x: u32, y: u32) -> f32 {
    let place = x
        .wrapping_mul(3_242_174_889)
        .wrapping_add(y.wrapping_mul(2_447_445_414));
    0.02 + (place >> 8) as f32 * (0.96 / 16_777_216.0)
}

#[inline(always)]
fn luma_row(row: &[Rgbx], place: u32, out: &mut [u8]) {
    for (x, (pixel, out)) in row.iter().zip(out).enumerate() {
        let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(|v| v.clamp(0.0, 1.0));
        let value = 16.0 + 219.0 * (KR * r + KG * g + KB * b);
        *out = (value + dither(x as u32, place)) as u8;
    }
}

/// Scratch for one pair of rows.
#[derive(Default)]
pub(crate) struct ChromaRow {
    mean: Vec<Rgbx>,
}

#[inline(always)]
fn pair_body(
    rows: (&[Rgbx], &[Rgbx]),
    pair: usize,
    scratch: &mut ChromaRow,
    luma: &mut [u8],
    chroma: (&mut [u8], &mut [u8]),
) {
    let place = pair as u32 * 2;
    let (top, bottom) = luma.split_at_mut(rows.0.len());
    luma_row(rows.0, place, top);
    luma_row(rows.1, place + 1, bottom);
    let mean = &mut scratch.mean;
    mean.clear();
    mean.extend(rows.0.iter().zip(rows.1).map(|(a, b)| {
        let mut mean = [0.0; 4];
        for c in 0..4 {
            mean[c] = (a[c].clamp(0.0, 1.0) + b[c].clamp(0.0, 1.0)) * 0.5;
        }
        mean
    }));
    for (i, (u, v)) in chroma.0.iter_mut().zip(chroma.1).enumerate() {
        let (here, next) = (mean[2 * i], mean[2 * i + 1]);
        let before = mean[(2 * i).saturating_sub(1)];
        let mix = |c: usize| 0.25 * before[c] + 0.5 * here[c] + 0.25 * next[c];
        let (r, g, b) = (mix(0), mix(1), mix(2));
        let y = KR * r + KG * g + KB * b;
        let blue = 128.0 + (b - y) * (112.0 / (1.0 - KB));
        let red = 128.0 + (r - y) * (112.0 / (1.0 - KR));
        *u = (blue + dither(i as u32 + 1013, pair as u32)) as u8;
        *v = (red + dither(i as u32, pair as u32 + 2027)) as u8;
    }
}

super::wide_fn! {
    /// Two rows of picture into two of luma and one of each chroma. `pair` counts pairs from the
    /// top.
    pub(crate) fn rows_to_yuv(
        rows: (&[Rgbx], &[Rgbx]),
        pair: usize,
        scratch: &mut ChromaRow,
        luma: &mut [u8],
        chroma: (&mut [u8], &mut [u8])
    ) = pair_body / pair_avx2;
}

/// One picture back to coded RGB, 8 bits, as a player does it: chroma sited left, straight between
/// samples.
pub(crate) fn yuv_to_rgb(frame: &YuvFrame) -> Vec<u8> {
    let (width, height) = (frame.width_px, frame.height_px);
    let (half_w, half_h) = (width / 2, height / 2);
    let mut out = Vec::with_capacity(width * height * 3);
    let at = |plane: &[u8], x: usize, y: usize| {
        let (x0, x1) = (x / 2, (x / 2 + x % 2).min(half_w - 1));
        let (y0, near) = (y / 2, if y.is_multiple_of(2) { -1 } else { 1 });
        let y1 = (y0 as i64 + near).clamp(0, half_h as i64 - 1) as usize;
        let get = |x: usize, y: usize| f32::from(plane[y * half_w + x]);
        let line = |y: usize| (get(x0, y) + get(x1, y)) * 0.5;
        0.75 * line(y0) + 0.25 * line(y1) - 128.0
    };
    for y in 0..height {
        for x in 0..width {
            let luma = (f32::from(frame.y[y * width + x]) - 16.0) / 219.0;
            let blue = at(&frame.u, x, y) / 112.0 * (1.0 - KB);
            let red = at(&frame.v, x, y) / 112.0 * (1.0 - KR);
            let green = (-KR * red - KB * blue) / KG;
            for value in [luma + red, luma + green, luma + blue] {
                out.push((value * 255.0 + 0.5).clamp(0.0, 255.0) as u8);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(rgb: [f32; 3]) -> YuvFrame {
        let (width, height) = (64, 16);
        let row = vec![[rgb[0], rgb[1], rgb[2], 0.0]; width];
        let mut frame = YuvFrame::new(width, height);
        let mut scratch = ChromaRow::default();
        for pair in 0..height / 2 {
            let luma = &mut frame.y[pair * 2 * width..][..2 * width];
            let at = pair * width / 2;
            rows_to_yuv(
                (&row, &row),
                pair,
                &mut scratch,
                luma,
                (
                    &mut frame.u[at..at + width / 2],
                    &mut frame.v[at..at + width / 2],
                ),
            );
        }
        frame
    }

    #[test]
    fn flat_patches_are_exact_within_one() {
        for rgb in [
            [255, 0, 0],
            [0, 255, 0],
            [0, 0, 255],
            [255, 255, 0],
            [255, 0, 255],
            [0, 255, 255],
            [235, 180, 150],
            [90, 60, 50],
            [128, 128, 128],
            [16, 16, 16],
            [255, 255, 255],
            [0, 0, 0],
        ] {
            let [r, g, b] = rgb.map(|v| f64::from(v) / 255.0);
            let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
            let want = [
                16.0 + 219.0 * y,
                128.0 + 224.0 * (b - y) / 1.8556,
                128.0 + 224.0 * (r - y) / 1.5748,
            ];
            let frame = flat([r as f32, g as f32, b as f32]);
            for (plane, want) in [&frame.y, &frame.u, &frame.v].into_iter().zip(want) {
                let mean = plane.iter().map(|v| f64::from(*v)).sum::<f64>() / plane.len() as f64;
                assert!((mean - want).abs() < 0.08, "{rgb:?}: {mean} for {want}");
                for value in plane {
                    assert!((f64::from(*value) - want).abs() < 1.0, "{rgb:?}");
                }
            }
        }
        assert!(flat([1.0; 3]).y.iter().all(|v| *v == 235));
        assert!(flat([0.0; 3]).y.iter().all(|v| *v == 16));
        assert!(flat([0.3; 3]).u.iter().all(|v| *v == 128));
    }

    #[test]
    fn a_slow_ramp_has_no_bands() {
        let (width, height) = (1024, 2);
        let row: Vec<Rgbx> = (0..width).map(|x| [0.2 + x as f32 * 2e-5; 4]).collect();
        let mut frame = YuvFrame::new(width, height);
        let luma = &mut frame.y[..];
        let chroma = (&mut frame.u[..], &mut frame.v[..]);
        rows_to_yuv((&row, &row), 0, &mut ChromaRow::default(), luma, chroma);
        for start in (0..width - 64).step_by(32) {
            let part = &frame.y[start..start + 64];
            let mean = part.iter().map(|v| f64::from(*v)).sum::<f64>() / 64.0;
            let want = 16.0 + 219.0 * (0.2 + (start as f64 + 31.5) * 2e-5);
            assert!((mean - want).abs() < 0.06, "at {start}: {mean} for {want}");
        }
    }
}
