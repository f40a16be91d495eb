//! The fonts: those that come with the program, then the system's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cosmic_text::fontdb::{self, Source};
use cosmic_text::{
    Attrs, Buffer, Family, FontSystem, LetterSpacing, Metrics, Shaping, Weight, Wrap,
};
use engine_base::ContentHash;

use super::look::{DISPLAY, SANS};
use super::script::{EMOJI_FAMILY, Kind, is_silent, stretches};

/// Faces in the program itself, so that a film looks the same where no font is installed.
const BUNDLED: [&[u8]; 3] = [
    include_bytes!("../../../../assets/fonts/NotoSans-Regular.ttf"),
    include_bytes!("../../../../assets/fonts/NotoSans-Bold.ttf"),
    include_bytes!("../../../../assets/fonts/NotoSerifDisplay-Regular.ttf"),
];

/// Fonts for cards. Shared: one call draws at a time.
pub struct Fonts {
    system: Mutex<State>,
}

pub(crate) struct State {
    pub system: FontSystem,
    pub scale: swash::scale::ScaleContext,
    hashes: BTreeMap<fontdb::ID, ContentHash>,
}

impl std::fmt::Debug for Fonts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fonts").finish_non_exhaustive()
    }
}

impl Fonts {
    /// The fonts of the program, those in `extra_dirs`, and the system's, asked in this order.
    /// Folders that cannot be read count as empty. Faces of the program's families come from the
    /// program alone, whatever version the system has.
    pub fn load(extra_dirs: &[PathBuf]) -> Self {
        let mut db = fontdb::Database::new();
        for dir in extra_dirs {
            db.load_fonts_dir(dir);
        }
        db.load_system_fonts();
        Self::of(&db)
    }

    /// The program's own fonts alone: the same on every machine.
    pub fn bundled() -> Self {
        Self::of(&fontdb::Database::new())
    }

    fn of(found: &fontdb::Database) -> Self {
        let mut db = fontdb::Database::new();
        for bytes in BUNDLED {
            db.load_font_source(Source::Binary(Arc::new(bytes)));
        }
        let ours = |face: &fontdb::FaceInfo| {
            face.families
                .iter()
                .any(|(name, _)| name == SANS || name == DISPLAY)
        };
        for face in found.faces().filter(|face| !ours(face)) {
            db.push_face_info(face.clone());
        }
        db.set_sans_serif_family(SANS);
        db.set_serif_family(DISPLAY);
        Self {
            system: Mutex::new(State {
                // A fixed locale: the machine's must not choose glyphs.
                system: FontSystem::new_with_locale_and_db("en".into(), db),
                scale: swash::scale::ScaleContext::new(),
                hashes: BTreeMap::new(),
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Characters of `text` that no font has, each once, in order of their first place. Colour
    /// emoji count as missing where the font holds them in a form that cannot be drawn.
    pub fn missing(&self, text: &str) -> Vec<char> {
        let mut state = self.lock();
        let mut missing = Vec::new();
        let shaped = state.shape(text, SANS, false);
        for run in shaped.layout_runs() {
            for glyph in run.glyphs {
                let Some(cluster) = run.text.get(glyph.start..glyph.end) else {
                    continue;
                };
                let emoji = glyph.metadata == EMOJI_MARK;
                let blank = glyph.glyph_id == 0 || emoji && !state.has_ink(glyph);
                if blank {
                    missing.extend(cluster.chars().filter(|c| !is_silent(*c)));
                }
            }
        }
        let mut seen = BTreeSet::new();
        missing.retain(|c| seen.insert(*c));
        missing
    }

    /// Contents of all font files that cards of `text` may draw from, sorted. They belong in keys.
    pub fn used_hashes(&self, text: &str) -> Vec<ContentHash> {
        let mut state = self.lock();
        let mut used = BTreeSet::new();
        for (family, bold) in [(SANS, false), (SANS, true), (DISPLAY, false)] {
            let shaped = state.shape(text, family, bold);
            for run in shaped.layout_runs() {
                for glyph in run.glyphs {
                    used.extend(state.hash_of(glyph.font_id));
                }
            }
        }
        used.into_iter().collect()
    }
}

/// Marks glyphs of colour emoji in a layout.
pub(crate) const EMOJI_MARK: usize = 1;

impl State {
    fn hash_of(&mut self, id: fontdb::ID) -> Option<ContentHash> {
        if let Some(hash) = self.hashes.get(&id) {
            return Some(*hash);
        }
        let db = self.system.db();
        let hash = db.with_face_data(id, |bytes, _| ContentHash::of(bytes))?;
        self.hashes.insert(id, hash);
        Some(hash)
    }

    fn has_ink(&mut self, glyph: &cosmic_text::LayoutGlyph) -> bool {
        let Some(font) = self.system.get_font(glyph.font_id, glyph.font_weight) else {
            return false;
        };
        let mut scaler = self.scale.builder(font.as_swash()).size(32.0).build();
        let strike = swash::scale::StrikeWith::BestFit;
        scaler.scale_color_bitmap(glyph.glyph_id, strike).is_some()
            || scaler
                .scale_color_outline(glyph.glyph_id)
                .is_some_and(|outline| !outline.is_empty())
            || scaler
                .scale_outline(glyph.glyph_id)
                .is_some_and(|outline| !outline.is_empty())
    }

    fn shape(&mut self, text: &str, family: &'static str, bold: bool) -> Buffer {
        let mut buffer = Buffer::new(&mut self.system, Metrics::new(32.0, 40.0));
        buffer.set_wrap(Wrap::None);
        buffer.set_size(None, None);
        set_text(&mut buffer, text, family, bold, 0.0, None);
        buffer.shape_until_scroll(&mut self.system, false);
        buffer
    }
}

/// Give `buffer` its text with a face for each stretch.
pub(crate) fn set_text(
    buffer: &mut Buffer,
    text: &str,
    family: &'static str,
    bold: bool,
    tracking: f32,
    align: Option<cosmic_text::Align>,
) {
    let mut plain = Attrs::new().family(Family::Name(family));
    if bold {
        plain = plain.weight(Weight::BOLD);
    }
    if tracking > 0.0 {
        plain.letter_spacing_opt = Some(LetterSpacing(tracking));
    }
    let spans = stretches(text).into_iter().map(|(text, kind)| {
        let attrs = match kind {
            Kind::Plain => plain.clone(),
            Kind::Emoji => Attrs::new()
                .family(Family::Name(EMOJI_FAMILY))
                .metadata(EMOJI_MARK),
            Kind::Han(family) => plain.clone().family(Family::Name(family)),
        };
        (text, attrs)
    });
    buffer.set_rich_text(spans, &plain, Shaping::Advanced, align);
}
