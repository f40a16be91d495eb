//! Text over the picture: cards of every role, drawn once and blended frame by frame.
//!
//! Layout is cosmic-text's (shaping, both directions, line breaking), outlines are swash's, drawing
//! is tiny-skia's. The fonts that come with the program are asked first, the system's where those
//! lack a glyph; which ones a text uses, and what none of them has, can be asked before rendering.

mod draw;
mod fonts;
mod layout;
mod look;
mod script;

use flow_timeline::{Card, CardRole, FilmFormat};

use crate::MediaError;
use crate::render::Rgbx;

pub use fonts::Fonts;
pub use layout::PlacedGlyph;

use layout::Block;
use look::{Look, Place};

/// A drawn card: coded sRGB, alpha multiplied in, as large as its ink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardPicture {
    /// Left edge in the frame.
    pub x_px: usize,
    /// Top edge in the frame.
    pub y_px: usize,
    /// Width; 0 for a card without ink.
    pub width_px: usize,
    /// Height.
    pub height_px: usize,
    /// RGBA, `width_px * height_px * 4` values.
    pub rgba: Vec<u8>,
}

impl CardPicture {
    /// Lay row `y` of the frame over `row`, coded values 0 to 1.
    pub(crate) fn blend_row(&self, y: usize, opacity: f32, row: &mut [Rgbx]) {
        let Some(line) = y
            .checked_sub(self.y_px)
            .filter(|line| *line < self.height_px)
        else {
            return;
        };
        let from = line * self.width_px * 4;
        let ink = self.rgba[from..from + self.width_px * 4].chunks_exact(4);
        let part = opacity / 255.0;
        for (out, ink) in row.iter_mut().skip(self.x_px).zip(ink) {
            if ink[3] == 0 {
                continue;
            }
            let keep = 1.0 - f32::from(ink[3]) * part;
            for c in 0..3 {
                out[c] = out[c].clamp(0.0, 1.0) * keep + f32::from(ink[c]) * part;
            }
        }
    }
}

/// How much of `card` shows at frame `index` of its segment, 0 to 1. It comes and goes over
/// `fade_frames`, smoothly, and shows at least a little in each of its frames.
pub fn card_opacity(card: &Card, index: i64) -> f32 {
    let at = index.saturating_sub(card.first_frame);
    if at < 0 || at >= card.frames {
        return 0.0;
    }
    let over = card.fade_frames.max(0) as f32 + 1.0;
    let near_end = at.min(card.frames - 1 - at) as f32 + 1.0;
    let part = (near_end / over).min(1.0);
    part * part * (3.0 - 2.0 * part)
}

/// The title under which a subtitle card stands: one that shows at the same time.
pub(crate) fn card_above<'a>(card: &Card, cards: &'a [Card]) -> Option<&'a Card> {
    if card.role != CardRole::Subtitle {
        return None;
    }
    let end = |card: &Card| card.first_frame.saturating_add(card.frames);
    cards.iter().find(|other| {
        other.role == CardRole::Title
            && other.first_frame < end(card)
            && card.first_frame < end(other)
    })
}

/// Draw `card` for frames of `format`; `above` is the title that shows over a subtitle.
///
/// # Errors
/// [`MediaError::BadRequest`] for text too long to be a card.
pub fn draw_card(
    card: &Card,
    above: Option<&Card>,
    format: &FilmFormat,
    fonts: &Fonts,
) -> Result<CardPicture, MediaError> {
    let look = Look::of(card.role);
    let block = fit_card(card, format, fonts)?;
    let top_px = match above {
        Some(title) => {
            let title_block = fit_card(title, format, fonts)?;
            let title_top = place(&Look::of(title.role), &title_block, format).1;
            Some(title_top + title_block.height + 0.022 * format.height_px as f32)
        }
        None => None,
    };
    let (left, mut top) = place(&look, &block, format);
    if let Some(below) = top_px {
        let lowest = format.height_px as f32 * 0.95 - block.height;
        top = below.min(lowest);
    }
    draw::draw(&block, &look, (left, top), format, fonts)
}

/// Where every glyph of a card stands in the frame, in drawing order, for tests and editors.
///
/// # Errors
/// As [`draw_card`].
pub fn card_glyphs(
    card: &Card,
    format: &FilmFormat,
    fonts: &Fonts,
) -> Result<Vec<PlacedGlyph>, MediaError> {
    let block = fit_card(card, format, fonts)?;
    let (left, top) = place(&Look::of(card.role), &block, format);
    Ok(block.placed(left, top))
}

fn fit_card(card: &Card, format: &FilmFormat, fonts: &Fonts) -> Result<Block, MediaError> {
    layout::fit(&card.text, &Look::of(card.role), format, fonts)
}

fn place(look: &Look, block: &Block, format: &FilmFormat) -> (f32, f32) {
    let (width, height) = (format.width_px as f32, format.height_px as f32);
    let centred = (width - block.width) / 2.0;
    match look.place {
        Place::Middle(at) => {
            let top = height * at - block.height / 2.0;
            (centred, top.clamp(0.0, (height - block.height).max(0.0)))
        }
        Place::Bottom(at) => (centred, (height * at - block.height).max(0.0)),
        Place::Corner(at) => {
            let margin = 0.075 * width;
            let left = if block.rtl {
                width - margin - block.width
            } else {
                margin
            };
            (left, (height * at - block.height).max(0.0))
        }
    }
}

#[cfg(test)]
mod tests;
