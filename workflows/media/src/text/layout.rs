//! Lines of a card: size, breaking and balance.

use cosmic_text::fontdb;
use cosmic_text::{Align, Buffer, Metrics, Wrap};
use flow_timeline::FilmFormat;

use super::fonts::{EMOJI_MARK, Fonts, State, set_text};
use super::look::{Look, Place};
use super::script::takes_tracking;
use crate::MediaError;

/// Longest text of a card, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// A glyph in its block; places in pixels.
#[derive(Debug, Clone)]
pub(crate) struct Glyph {
    pub font: fontdb::ID,
    pub weight: fontdb::Weight,
    pub id: u16,
    pub size: f32,
    /// Origin from the block's left edge.
    pub x: f32,
    /// Baseline from the block's top edge.
    pub y: f32,
    pub width: f32,
    pub emoji: bool,
    pub text: String,
}

/// Laid out text.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub width: f32,
    pub height: f32,
    pub font_px: f32,
    /// Whether the first line reads from the right.
    pub rtl: bool,
    pub glyphs: Vec<Glyph>,
}

/// Where a glyph stands in the frame.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedGlyph {
    /// The characters it stands for.
    pub text: String,
    /// Left edge.
    pub x_px: f32,
    /// Baseline.
    pub y_px: f32,
    /// Advance.
    pub width_px: f32,
    /// Glyph in its font; 0 is the box for missing ones.
    pub glyph: u16,
}

impl Block {
    pub(crate) fn placed(&self, left: f32, top: f32) -> Vec<PlacedGlyph> {
        let place = |glyph: &Glyph| PlacedGlyph {
            text: glyph.text.clone(),
            x_px: left + glyph.x,
            y_px: top + glyph.y,
            width_px: glyph.width,
            glyph: glyph.id,
        };
        self.glyphs.iter().map(place).collect()
    }
}

/// One try at laying out: what came of it.
struct Measured {
    buffer: Buffer,
    lines: usize,
    widest: f32,
    height: f32,
}

/// How a try is made.
#[derive(Clone, Copy)]
struct Try {
    font_px: f32,
    width: f32,
    wrap: Wrap,
    tracking: f32,
}

fn measure(state: &mut State, text: &str, look: &Look, asked: Try) -> Measured {
    let metrics = Metrics::new(asked.font_px, asked.font_px * look.line_height);
    let mut buffer = Buffer::new(&mut state.system, metrics);
    buffer.set_wrap(asked.wrap);
    buffer.set_size(Some(asked.width), None);
    let align = match look.place {
        Place::Middle(_) | Place::Bottom(_) => Some(Align::Center),
        // Without one, lines start at the side where they are read from.
        Place::Corner(_) => None,
    };
    set_text(
        &mut buffer,
        text,
        look.family,
        look.bold,
        asked.tracking,
        align,
    );
    buffer.shape_until_scroll(&mut state.system, false);
    let (mut lines, mut widest, mut height) = (0, 0.0_f32, 0.0_f32);
    for run in buffer.layout_runs() {
        lines += 1;
        widest = widest.max(run.line_w);
        height = height.max(run.line_top + run.line_height);
    }
    Measured {
        buffer,
        lines,
        widest,
        height,
    }
}

/// Lay out `text` for a frame of `format`: as large as the look says, smaller until it fits its
/// lines and space, with words broken only at the least size; then as narrow as the same lines
/// allow, so that they are of like length.
pub(crate) fn fit(
    text: &str,
    look: &Look,
    format: &FilmFormat,
    fonts: &Fonts,
) -> Result<Block, MediaError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(MediaError::BadRequest(format!(
            "draw a card of {} bytes of text: expected at most {MAX_TEXT_BYTES}",
            text.len()
        )));
    }
    let text = text
        .trim_matches(['\n', '\r', ' '])
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let (frame_w, frame_h) = (format.width_px as f32, format.height_px as f32);
    // A frame taller than wide is measured by its width, or a line would hold three words.
    let unit = frame_h.min(frame_w * 0.75);
    let (width, room) = (look.max_width * frame_w, look.max_height * frame_h);
    let explicit = text.lines().count();
    let max_lines = look.max_lines.max(explicit);
    let tracking = if takes_tracking(&text) {
        look.tracking
    } else {
        0.0
    };
    let mut state = fonts.lock();
    let mut asked = Try {
        font_px: look.size * unit,
        width,
        wrap: Wrap::Word,
        tracking,
    };
    let least = look.least_size * unit;
    let mut measured = measure(&mut state, &text, look, asked);
    loop {
        let fits = measured.lines <= max_lines && measured.height <= room;
        if fits && measured.widest <= width + 0.5 {
            break;
        }
        // With words broken, lines may be as many as the space holds.
        let broken = asked.wrap == Wrap::WordOrGlyph;
        if broken && (measured.height <= room || asked.font_px < 1.0) {
            break;
        }
        if asked.font_px <= least {
            asked.wrap = Wrap::WordOrGlyph;
        }
        asked.font_px = if asked.font_px > least {
            (asked.font_px * 0.94).max(least)
        } else {
            asked.font_px * 0.94
        };
        measured = measure(&mut state, &text, look, asked);
    }
    if measured.lines > 1 && asked.wrap == Wrap::Word {
        let (mut low, mut high) = (width / (measured.lines as f32 + 1.0), width);
        for _ in 0..8 {
            let width = (low + high) / 2.0;
            let narrow = measure(&mut state, &text, look, Try { width, ..asked });
            if narrow.lines == measured.lines && narrow.widest <= width {
                high = width;
            } else {
                low = width;
            }
        }
        asked.width = high;
        measured = measure(&mut state, &text, look, asked);
    }
    Ok(block_of(&measured, asked.font_px))
}

fn block_of(measured: &Measured, font_px: f32) -> Block {
    let (mut left, mut right) = (f32::INFINITY, 0.0_f32);
    let mut glyphs = Vec::new();
    let mut rtl = None;
    for run in measured.buffer.layout_runs() {
        rtl.get_or_insert(run.rtl);
        for glyph in run.glyphs {
            left = left.min(glyph.x);
            right = right.max(glyph.x + glyph.w);
            glyphs.push(Glyph {
                font: glyph.font_id,
                weight: glyph.font_weight,
                id: glyph.glyph_id,
                size: glyph.font_size,
                x: glyph.x + glyph.x_offset * glyph.font_size,
                y: run.line_y + glyph.y - glyph.y_offset * glyph.font_size,
                width: glyph.w,
                emoji: glyph.metadata == EMOJI_MARK,
                text: run.text.get(glyph.start..glyph.end).unwrap_or("").into(),
            });
        }
    }
    let left = if left.is_finite() { left } else { 0.0 };
    for glyph in &mut glyphs {
        glyph.x -= left;
    }
    Block {
        width: (right - left).max(0.0),
        height: measured.height,
        font_px,
        rtl: rtl.unwrap_or(false),
        glyphs,
    }
}
