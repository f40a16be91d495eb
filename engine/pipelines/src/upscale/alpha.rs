//! Colours under transparency.

use super::Raster;
use super::region::Region;

/// Pixels less opaque than this show nothing of their colour.
pub(super) const HIDDEN: f32 = 1.0 / 64.0;

/// How far visible colours are carried: as far as a model looks, about.
const REACH_PX: usize = 16;

/// The region's colours, hidden ones replaced by the mean of those beside them, from the visible ones
/// outwards, so that what nobody saw does not come into sight at an edge.
///
/// The same for a pixel whatever the region it is seen in.
pub(super) fn visible_colours(picture: &Raster, region: &Region) -> Vec<f32> {
    let wide = region.wider(REACH_PX);
    let mut colours = wide.colours(picture);
    let alpha = wide.alpha(picture).unwrap_or_default();
    let mut known: Vec<bool> = alpha.iter().map(|alpha| *alpha >= HIDDEN).collect();
    let (height, width) = wide.size();
    let plane = height * width;
    for (at, known) in known.iter().enumerate() {
        if !known {
            for channel in 0..3 {
                colours[channel * plane + at] = 0.0;
            }
        }
    }
    for _ in 0..REACH_PX {
        let mut found = Vec::new();
        for at in (0..plane).filter(|at| !known[*at]) {
            if let Some(colour) = mean_beside(&colours, &known, at, (height, width)) {
                found.push((at, colour));
            }
        }
        if found.is_empty() {
            break;
        }
        for (at, colour) in found {
            known[at] = true;
            for (channel, value) in colour.into_iter().enumerate() {
                colours[channel * plane + at] = value;
            }
        }
    }
    let mut out = Vec::with_capacity(3 * region.width * region.height);
    for channel in 0..3 {
        for y in 0..region.height {
            let start = channel * plane + (y + REACH_PX) * width + REACH_PX;
            out.extend_from_slice(&colours[start..start + region.width]);
        }
    }
    out
}

/// The mean of the colours known around a pixel; nothing where none is.
fn mean_beside(
    colours: &[f32],
    known: &[bool],
    at: usize,
    (height, width): (usize, usize),
) -> Option<[f32; 3]> {
    let (y, x) = (at / width, at % width);
    let columns = x.saturating_sub(1)..(x + 2).min(width);
    let rows = y.saturating_sub(1)..(y + 2).min(height);
    let beside = rows.flat_map(|row| columns.clone().map(move |column| row * width + column));
    let (mut sums, mut count) = ([0.0f32; 3], 0);
    for beside in beside.filter(|beside| known[*beside]) {
        count += 1;
        for (channel, sum) in sums.iter_mut().enumerate() {
            *sum += colours[channel * height * width + beside];
        }
    }
    (count > 0).then(|| sums.map(|sum| sum / count as f32))
}
