//! Ink: outlines, edge, shadow and colour glyphs.

use flow_timeline::FilmFormat;
use swash::scale::StrikeWith;
use swash::scale::image::Image;
use swash::zeno::{Command, PathData as _};
use tiny_skia::{
    FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, PixmapPaint, Rect, Stroke,
    Transform,
};

use super::CardPicture;
use super::fonts::{Fonts, State};
use super::layout::{Block, Glyph};
use super::look::Look;
use crate::MediaError;

/// A colour glyph and its top left corner.
struct ColourGlyph {
    pixmap: Pixmap,
    x: f32,
    y: f32,
}

/// Draw `block` with its top left corner at `at` in the frame.
pub(crate) fn draw(
    block: &Block,
    look: &Look,
    at: (f32, f32),
    format: &FilmFormat,
    fonts: &Fonts,
) -> Result<CardPicture, MediaError> {
    let unit = format.height_px as f32;
    let (radius, strength) = look.shadow;
    let radius_px = (radius * unit).max(1.0);
    // Room for accents, swashes, edge and shadow.
    let pad = block.font_px * 0.6 + radius_px * 3.0 + look.outline * unit;
    let clip = |v: f32, top: u32| v.clamp(0.0, top as f32) as usize;
    let x0 = clip((at.0 - pad).floor(), format.width_px);
    let y0 = clip((at.1 - pad).floor(), format.height_px);
    let x1 = clip((at.0 + block.width + pad).ceil(), format.width_px);
    let y1 = clip((at.1 + block.height + pad).ceil(), format.height_px);
    let (width, height) = (x1.saturating_sub(x0), y1.saturating_sub(y0));
    let (Some(mut ink), false) = (
        Pixmap::new(width as u32, height as u32),
        block.glyphs.is_empty(),
    ) else {
        return Ok(CardPicture {
            x_px: 0,
            y_px: 0,
            width_px: 0,
            height_px: 0,
            rgba: Vec::new(),
        });
    };
    let origin = (at.0 - x0 as f32, at.1 - y0 as f32);
    let (outlines, colours) = gather(block, origin, &mut fonts.lock());

    let mut bar = None;
    if look.bar {
        let (thick, gap) = ((0.004 * unit).max(1.0), 0.018 * unit);
        let x = if block.rtl {
            origin.0 + block.width + gap - thick
        } else {
            origin.0 - gap
        };
        let inset = block.font_px * 0.16;
        bar = Rect::from_xywh(x, origin.1 + inset, thick, block.height - 2.0 * inset);
    }

    let mut dark = Paint::default();
    dark.set_color_rgba8(0, 0, 0, 255);
    let mut light = Paint::default();
    light.set_color_rgba8(look.rgb[0], look.rgb[1], look.rgb[2], 255);
    let edge = (look.outline > 0.0).then(|| Stroke {
        width: (2.0 * look.outline * unit).max(1.5),
        line_cap: LineCap::Round,
        line_join: LineJoin::Round,
        ..Stroke::default()
    });

    let still = Transform::identity();
    if let (Some(path), Some(edge)) = (&outlines, &edge) {
        ink.stroke_path(path, &dark, edge, still, None);
    }
    if let Some(path) = &outlines {
        ink.fill_path(path, &light, FillRule::Winding, still, None);
    }
    if let Some(bar) = bar {
        ink.fill_rect(bar, &light, still, None);
    }
    for glyph in &colours {
        let paint = PixmapPaint {
            quality: tiny_skia::FilterQuality::Bilinear,
            ..PixmapPaint::default()
        };
        let place = Transform::from_translate(glyph.x, glyph.y);
        ink.draw_pixmap(0, 0, glyph.pixmap.as_ref(), &paint, place, None);
    }
    let shadow = blurred_alpha(&ink, radius_px, (0.0025 * unit).round() as usize);
    let data = ink.data_mut();
    for (pixel, shade) in data.chunks_exact_mut(4).zip(shadow) {
        // Ink over a black shadow: only alpha grows. The blur is thin under fine strokes; doubled,
        // it carries them.
        let shade = (shade * 2.0).min(1.0) * strength;
        let alpha = f32::from(pixel[3]) / 255.0;
        pixel[3] = ((alpha + shade * (1.0 - alpha)) * 255.0 + 0.5) as u8;
    }
    Ok(CardPicture {
        x_px: x0,
        y_px: y0,
        width_px: width,
        height_px: height,
        rgba: ink.take(),
    })
}

fn gather(
    block: &Block,
    origin: (f32, f32),
    state: &mut State,
) -> (Option<Path>, Vec<ColourGlyph>) {
    let mut builder = PathBuilder::new();
    let mut colours = Vec::new();
    for glyph in &block.glyphs {
        let Some(font) = state.system.get_font(glyph.font, glyph.weight) else {
            continue;
        };
        let scaler = state.scale.builder(font.as_swash()).size(glyph.size);
        let mut scaler = scaler.hint(false).build();
        let (x, y) = (origin.0 + glyph.x, origin.1 + glyph.y);
        if glyph.emoji
            && let Some(image) = scaler.scale_color_bitmap(glyph.id, StrikeWith::LargestSize)
            && let Some(colour) = colour_glyph(&image, glyph, x, y)
        {
            colours.push(colour);
            continue;
        }
        if let Some(outline) = scaler.scale_outline(glyph.id) {
            for command in outline.path().commands() {
                match command {
                    Command::MoveTo(p) => builder.move_to(x + p.x, y - p.y),
                    Command::LineTo(p) => builder.line_to(x + p.x, y - p.y),
                    Command::QuadTo(c, p) => {
                        builder.quad_to(x + c.x, y - c.y, x + p.x, y - p.y);
                    }
                    Command::CurveTo(c, d, p) => {
                        builder.cubic_to(x + c.x, y - c.y, x + d.x, y - d.y, x + p.x, y - p.y);
                    }
                    Command::Close => builder.close(),
                }
            }
        }
    }
    (builder.finish(), colours)
}

fn colour_glyph(image: &Image, glyph: &Glyph, x: f32, y: f32) -> Option<ColourGlyph> {
    let place = image.placement;
    let mut pixmap = Pixmap::new(place.width, place.height)?;
    let out = pixmap.data_mut();
    if out.len() != image.data.len() || glyph.size <= 0.0 {
        return None;
    }
    for (out, pixel) in out.chunks_exact_mut(4).zip(image.data.chunks_exact(4)) {
        let alpha = u32::from(pixel[3]);
        for c in 0..3 {
            out[c] = ((u32::from(pixel[c]) * alpha + 127) / 255) as u8;
        }
        out[3] = pixel[3];
    }
    Some(ColourGlyph {
        pixmap,
        x: x + place.left as f32,
        y: y - place.top as f32,
    })
}

/// Alpha of `ink`, 0 to 1, blurred over about `radius_px` and moved `down_px`.
fn blurred_alpha(ink: &Pixmap, radius_px: f32, down_px: usize) -> Vec<f32> {
    let (width, height) = (ink.width() as usize, ink.height() as usize);
    let mut plane = vec![0.0_f32; width * height];
    for y in down_px.min(height)..height {
        for x in 0..width {
            plane[y * width + x] =
                f32::from(ink.data()[((y - down_px) * width + x) * 4 + 3]) / 255.0;
        }
    }
    // Three passes of a box come close to a bell.
    let reach = (radius_px / 1.7).round().max(1.0) as usize;
    let mut line = Vec::new();
    for _ in 0..3 {
        for row in plane.chunks_exact_mut(width) {
            box_blur(row, 1, reach, &mut line);
        }
        for x in 0..width {
            box_blur(&mut plane[x..], width, reach, &mut line);
        }
    }
    plane
}

fn box_blur(values: &mut [f32], stride: usize, reach: usize, line: &mut Vec<f32>) {
    line.clear();
    line.extend(values.iter().step_by(stride));
    let count = line.len();
    let part = 1.0 / (2 * reach + 1) as f32;
    // Summed from whole values each time a window starts anew would cost; f64 keeps the running
    // sum clean.
    let mut sum: f64 = line.iter().take(reach).map(|v| f64::from(*v)).sum();
    for i in 0..count {
        if let Some(next) = line.get(i + reach) {
            sum += f64::from(*next);
        }
        if i > reach {
            sum -= f64::from(line[i - reach - 1]);
        }
        values[i * stride] = sum as f32 * part;
    }
}
