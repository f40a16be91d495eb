//! Pictures laid of cut paper: a place painted by code in layers, with cut-out subjects standing in it.
//!
//! The same scene gives the same picture on every machine: all that looks like chance comes from its seed.

mod mask;
mod palette;
mod places;

use self::mask::{Mask, oval};
use self::palette::{Rgb, mix, palette, tint};

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Open water.
    Sea,
    /// Sand by the sea.
    Beach,
    /// Among trees.
    Forest,
    /// Grass and hills.
    Meadow,
    /// Houses in hills.
    Village,
    /// Peaks.
    Mountains,
    /// Dunes.
    Desert,
    /// Tall houses and a road.
    City,
    /// Between walls.
    Room,
    /// Above a planet.
    Space,
    /// Under the sea.
    Underwater,
    /// Among clouds.
    Sky,
}

/// Time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    /// Full light.
    Day,
    /// Morning.
    Dawn,
    /// Evening.
    Dusk,
    /// Moon and stars.
    Night,
}

/// Weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// None to speak of.
    Clear,
    /// Rain.
    Rain,
    /// Falling and lying snow.
    Snow,
    /// Fog.
    Fog,
    /// Rain and wind out of dark clouds.
    Storm,
}

/// The place of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backdrop {
    /// Where.
    pub ground: Ground,
    /// When.
    pub light: Light,
    /// Weather.
    pub weather: Weather,
    /// A lighthouse stands on the coast.
    pub lighthouse: bool,
    /// Set of papers; the same for a whole film.
    pub papers: u64,
    /// Decides where hills, trees and houses stand; the same for all pictures of one place.
    pub seed: u64,
}

/// A subject with transparency around it, straight alpha.
#[derive(Debug, Clone, Copy)]
pub struct Cutout<'a> {
    /// `[height_px, width_px, 4]`.
    pub rgba: &'a [u8],
    /// Width.
    pub width_px: usize,
    /// Height.
    pub height_px: usize,
    /// Middle, as a share of the frame's width.
    pub centre: f32,
    /// Where it stands, as a share of the frame's height.
    pub base: f32,
    /// Its larger side, as a share of the frame's height.
    pub size: f32,
    /// Left and right are exchanged.
    pub flipped: bool,
}

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// 0..1
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1_u32 << 24) as f32
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.next()
    }
}

/// The picture so far.
struct Sheet {
    width_px: usize,
    height_px: usize,
    rgb: Vec<Rgb>,
}

impl Sheet {
    /// Lays `mask` of one paper down; its shadow falls `depth` (a share of the frame's height) beside it.
    fn lay(&mut self, mask: &Mask, paper: Rgb, depth: f32) {
        self.shade(mask, depth, 0.3);
        let rim = 0.05;
        self.each(mask, |x, y, cover, rgb| {
            // The cut edge catches the light from above.
            let edge = (cover - mask.at(x, y - 2)).max(0.0) * rim;
            let paper = paper.map(|part| (part + edge) * grain(x, y));
            mix(rgb, paper, cover)
        });
    }

    /// The shadow that `mask` throws.
    fn shade(&mut self, mask: &Mask, depth: f32, strength: f32) {
        let reach = (depth * self.height_px as f32).round();
        if reach < 1.0 {
            return;
        }
        let mut shadow = mask.blurred(reach as usize);
        shadow.left_px += (reach * 0.5) as i32;
        shadow.top_px += (reach * 0.7) as i32;
        self.each(&shadow, |x, y, cover, rgb| {
            let dark = 1.0 - strength * cover * (1.0 - mask.at(x, y));
            rgb.map(|part| part * dark)
        });
    }

    /// Lays light or mist: `paper` through `mask` at `share`.
    fn glow(&mut self, mask: &Mask, paper: Rgb, share: f32) {
        self.each(mask, |_, _, cover, rgb| mix(rgb, paper, cover * share));
    }

    /// Changes every pixel that `mask` covers.
    fn each(&mut self, mask: &Mask, change: impl Fn(i32, i32, f32, Rgb) -> Rgb) {
        let (width, height) = (self.width_px as i32, self.height_px as i32);
        for row in 0..mask.height_px as i32 {
            let y = mask.top_px + row;
            if y < 0 || y >= height {
                continue;
            }
            for column in 0..mask.width_px as i32 {
                let x = mask.left_px + column;
                let at = row as usize * mask.width_px + column as usize;
                let cover = mask.cover.get(at).copied().unwrap_or(0.0);
                if x < 0 || x >= width || cover <= 0.0 {
                    continue;
                }
                if let Some(rgb) = self.rgb.get_mut((y * width + x) as usize) {
                    *rgb = change(x, y, cover, *rgb);
                }
            }
        }
    }
}

/// A hash of a place, 0..1.
fn speck(x: i32, y: i32) -> f32 {
    let mut z = (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca6b);
    z = (z ^ (z >> 15)).wrapping_mul(0x2c1b_3c6d);
    z = (z ^ (z >> 12)).wrapping_mul(0x297a_2d39);
    (z ^ (z >> 15)) as f32 / u32::MAX as f32
}

/// Brightness of paper at a pixel: fine grain and slow fibres.
fn grain(x: i32, y: i32) -> f32 {
    let fibre = speck(x / 3 + y / 7, y / 2);
    0.985 + 0.018 * speck(x, y) + 0.016 * fibre
}

/// The picture, `[height_px, width_px, 4]`, opaque. Nothing for an empty frame.
pub fn paint(backdrop: &Backdrop, cutouts: &[Cutout<'_>], size_px: (usize, usize)) -> Vec<u8> {
    let (width_px, height_px) = size_px;
    let papers = palette(backdrop.papers, backdrop.light, backdrop.weather);
    let mut sheet = Sheet {
        width_px,
        height_px,
        rgb: vec![papers.sky[3]; width_px * height_px],
    };
    places::lay(&mut sheet, backdrop, &papers);
    for cutout in cutouts {
        stand(&mut sheet, cutout, backdrop);
    }
    places::front(&mut sheet, backdrop, &papers);
    finish(&sheet)
}

/// Darker towards the corners, and to bytes.
fn finish(sheet: &Sheet) -> Vec<u8> {
    let (width, height) = (sheet.width_px as f32, sheet.height_px as f32);
    let mut out = Vec::with_capacity(sheet.rgb.len() * 4);
    for (at, rgb) in sheet.rgb.iter().enumerate() {
        let x = (at % sheet.width_px) as f32 / width - 0.5;
        let y = (at / sheet.width_px) as f32 / height - 0.5;
        let dark = 1.0 - 0.34 * (x * x + y * y).powi(2) * 4.0;
        out.extend(rgb.map(|part| (part * dark * 255.0).clamp(0.0, 255.0).round() as u8));
        out.push(255);
    }
    out
}

/// Straight colour and alpha of a cut-out between its pixels, at `u`, `v` in pixels.
fn read(cutout: &Cutout<'_>, u: f32, v: f32) -> (Rgb, f32) {
    let pixel = |x: i32, y: i32| {
        let inside = x >= 0 && y >= 0 && x < cutout.width_px as i32 && y < cutout.height_px as i32;
        let at = (y.max(0) as usize * cutout.width_px + x.max(0) as usize) * 4;
        match cutout.rgba.get(at..at + 4) {
            Some(&[r, g, b, a]) if inside => {
                let [r, g, b, a] = [r, g, b, a].map(|part| f32::from(part) / 255.0);
                [r * a, g * a, b * a, a]
            }
            _ => [0.0; 4],
        }
    };
    let (x, y) = ((u - 0.5).floor(), (v - 0.5).floor());
    let (fx, fy) = (u - 0.5 - x, v - 0.5 - y);
    // Edges stay sharp when made larger: the way between two pixels is walked faster in its middle.
    let sharp = |f: f32| f * f * (3.0 - 2.0 * f);
    let (fx, fy) = (sharp(fx), sharp(fy));
    let mut sum = [0.0; 4];
    for (dx, dy, share) in [
        (0, 0, (1.0 - fx) * (1.0 - fy)),
        (1, 0, fx * (1.0 - fy)),
        (0, 1, (1.0 - fx) * fy),
        (1, 1, fx * fy),
    ] {
        let part = pixel(x as i32 + dx, y as i32 + dy);
        for (sum, part) in sum.iter_mut().zip(part) {
            *sum += part * share;
        }
    }
    let [r, g, b, a] = sum;
    let straight = |part: f32| if a > 0.0 { (part / a).min(1.0) } else { 1.0 };
    ([straight(r), straight(g), straight(b)], a)
}

/// First and last row and column that hold something.
fn bounds(cutout: &Cutout<'_>) -> Option<(usize, usize, usize, usize)> {
    let solid = |at: usize| cutout.rgba.get(at * 4 + 3).is_some_and(|alpha| *alpha > 96);
    let all = (0..cutout.width_px * cutout.height_px).filter(|at| solid(*at));
    all.fold(None, |found, at| {
        let (x, y) = (at % cutout.width_px, at / cutout.width_px);
        let (x0, y0, x1, y1) = found.unwrap_or((x, y, x, y));
        Some((x0.min(x), y0.min(y), x1.max(x), y1.max(y)))
    })
}

/// Puts a subject into the picture: its shadow on the ground, a white edge of paper, itself.
fn stand(sheet: &mut Sheet, cutout: &Cutout<'_>, backdrop: &Backdrop) {
    let Some((x0, y0, x1, y1)) = bounds(cutout) else {
        return;
    };
    let (wide, high) = ((x1 - x0 + 1) as f32, (y1 - y0 + 1) as f32);
    let scale = cutout.size * sheet.height_px as f32 / wide.max(high);
    let (width, height) = (wide * scale, high * scale);
    let left = cutout.centre * sheet.width_px as f32 - width / 2.0;
    let top = cutout.base * sheet.height_px as f32 - height;
    let frame = (sheet.width_px, sheet.height_px);
    let floats = matches!(
        backdrop.ground,
        Ground::Space | Ground::Underwater | Ground::Sky
    );
    if !floats {
        let ground = oval(
            left + width * 0.53,
            top + height,
            width * 0.5,
            height * 0.045,
        );
        let shadow = Mask::of(&[ground], frame).blurred((scale * 3.0) as usize + 2);
        sheet.glow(&shadow, [0.08, 0.09, 0.16], 0.36);
    }
    let pad = (height * 0.03 + 6.0) as i32;
    let (columns, rows) = (
        width as usize + 2 * pad as usize,
        height as usize + 2 * pad as usize,
    );
    let mut mask = Mask::empty(left as i32 - pad, top as i32 - pad, columns, rows);
    let mut colours = vec![[0.0; 3]; columns * rows];
    for (at, (cover, colour)) in mask.cover.iter_mut().zip(&mut colours).enumerate() {
        let x = (at % columns) as f32 - pad as f32 + 0.5;
        let y = (at / columns) as f32 - pad as f32 + 0.5;
        let across = if cutout.flipped { width - x } else { x };
        let (rgb, alpha) = read(cutout, x0 as f32 + across / scale, y0 as f32 + y / scale);
        *colour = rgb;
        *cover = ((alpha - 0.5) * scale.clamp(1.0, 4.0) * 1.4 + 0.5).clamp(0.0, 1.0);
    }
    let edge_px = (sheet.height_px as f32 * 0.0042).max(1.5);
    let mut border = mask.blurred(edge_px.round() as usize);
    for cover in &mut border.cover {
        *cover = ((*cover - 0.12) * 7.0).clamp(0.0, 1.0);
    }
    let white = tint(backdrop.light, backdrop.weather);
    let indoors = backdrop.ground == Ground::Room;
    // Subjects keep more of their colour than the land: they are what is looked at.
    let white = mix(white, [1.0; 3], if indoors { 0.75 } else { 0.5 });
    sheet.lay(&border, [0, 1, 2].map(|at| 0.985 * white[at]), 0.011);
    let left_px = mask.left_px;
    let top_px = mask.top_px;
    sheet.each(&mask, |x, y, cover, rgb| {
        let at = (y - top_px) as usize * columns + (x - left_px) as usize;
        let colour = colours.get(at).copied().unwrap_or(rgb);
        let colour = [0, 1, 2].map(|at| colour[at] * white[at] * grain(x, y));
        mix(rgb, colour, cover)
    });
}

#[cfg(test)]
mod tests;
