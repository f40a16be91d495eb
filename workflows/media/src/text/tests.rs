use flow_timeline::{Card, CardRole, FilmFormat};

use super::script::is_silent;
use super::*;

fn card(text: &str, role: CardRole) -> Card {
    Card {
        text: text.into(),
        role,
        first_frame: 0,
        frames: 48,
        fade_frames: 8,
    }
}

const ROLES: [CardRole; 5] = [
    CardRole::Title,
    CardRole::Subtitle,
    CardRole::LowerThird,
    CardRole::Credits,
    CardRole::Caption,
];

/// Left edge of the first glyph of each character asked for.
fn places(text: &str, wanted: &[&str], fonts: &Fonts) -> Vec<f32> {
    let glyphs = card_glyphs(&card(text, CardRole::Caption), &FilmFormat::DEFAULT, fonts).unwrap();
    wanted
        .iter()
        .map(|wanted| {
            let found = glyphs.iter().find(|glyph| glyph.text == *wanted);
            found
                .unwrap_or_else(|| panic!("{wanted:?} in {text:?}"))
                .x_px
        })
        .collect()
}

/// Whether this machine has fonts for the scripts of the cases; without them the tests of those
/// say so and check that the lack is reported.
fn lacks(fonts: &Fonts, text: &str) -> bool {
    let missing = fonts.missing(text);
    if !missing.is_empty() {
        eprintln!("not run, no font for {missing:?}");
    }
    !missing.is_empty()
}

#[test]
fn sub_03_lines_run_from_the_side_they_are_read_from() {
    let fonts = Fonts::load(&[]);
    let all = "שלום, מה שלומך? הוא אמר מרחב";
    if lacks(&fonts, all) || lacks(&fonts, "مرحبًا بالعالم، كيف الحال؟") {
        return;
    }
    let one = places("שלום, מה שלומך?", &["?", "ש", ","], &fonts);
    assert!(one[0] < one[2] && one[2] < one[1], "1: {one:?}");
    let two = places(
        "הוא אמר: \"FILM 2\" (טוב).",
        &["F", "M", "2", ".", ")", "("],
        &fonts,
    );
    assert!(two[0] < two[1] && two[1] < two[2], "2, inside: {two:?}");
    assert!(
        two[3] < two[4] && two[4] < two[5] && two[5] < two[0],
        "2, ends: {two:?}"
    );
    let three = card_glyphs(
        &card("مرحبًا بالعالم، كيف الحال؟", CardRole::Caption),
        &FilmFormat::DEFAULT,
        &fonts,
    )
    .unwrap();
    let leftmost = three
        .iter()
        .min_by(|a, b| a.x_px.total_cmp(&b.x_px))
        .unwrap();
    assert_eq!(leftmost.text, "؟", "3");
    // Joined: a letter inside a word has another glyph than alone.
    let alone = card_glyphs(&card("ح", CardRole::Caption), &FilmFormat::DEFAULT, &fonts).unwrap();
    let joined = three
        .iter()
        .find(|glyph| glyph.text.starts_with('ح'))
        .unwrap();
    assert_ne!(alone[0].glyph, joined.glyph, "3: shaped");
    let four = places("المشهد 12 – INT. HOUSE.", &["1", "2", "I", "H"], &fonts);
    assert!(
        four[0] < four[1] && four[2] < four[3] && four[3] < four[0],
        "4: {four:?}"
    );
    let five = card_glyphs(
        &card("- לא.\n- כן!", CardRole::Caption),
        &FilmFormat::DEFAULT,
        &fonts,
    )
    .unwrap();
    for mark in [".", "!"] {
        let end = five.iter().find(|glyph| glyph.text == mark).unwrap();
        let line: Vec<_> = five
            .iter()
            .filter(|glyph| (glyph.y_px - end.y_px).abs() < 1.0)
            .collect();
        let dash = line.iter().find(|glyph| glyph.text == "-").unwrap();
        assert!(
            line.iter()
                .all(|g| g.x_px <= dash.x_px && g.x_px >= end.x_px),
            "5: {line:?}"
        );
    }
}

#[test]
fn cards_of_every_length_stay_in_the_frame() {
    let fonts = Fonts::load(&[]);
    let long = "the ship that sailed past the last lighthouse and was never seen again ".repeat(6);
    let texts = [
        "Dawn",
        "The Longest Crossing of the Northern Winter Sea",
        &long,
        "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnungsentwurf",
        "ÀÉÎ\nQgjp\n\nÅ",
        "",
        " \n ",
    ];
    for (width_px, height_px) in [(1280, 720), (720, 1280), (64, 36)] {
        let format = FilmFormat {
            width_px,
            height_px,
            ..FilmFormat::DEFAULT
        };
        for role in ROLES {
            for text in texts {
                let card = card(text, role);
                let drawn = draw_card(&card, None, &format, &fonts).unwrap();
                assert!(drawn.x_px + drawn.width_px <= width_px as usize);
                assert!(drawn.y_px + drawn.height_px <= height_px as usize);
                let (w, h) = (width_px as f32, height_px as f32);
                for glyph in card_glyphs(&card, &format, &fonts).unwrap() {
                    let inside = glyph.x_px > 0.03 * w
                        && glyph.x_px + glyph.width_px < 0.97 * w
                        && glyph.y_px > 0.02 * h
                        && glyph.y_px < 0.97 * h;
                    assert!(
                        inside,
                        "{role:?} {width_px}x{height_px} {text:?}: {glyph:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn lines_are_of_like_length() {
    let fonts = Fonts::bundled();
    let text = "She had waited eleven years for a letter that said only one word.";
    let look = Look::of(CardRole::Caption);
    let block = layout::fit(text, &look, &FilmFormat::DEFAULT, &fonts).unwrap();
    let mut widths = std::collections::BTreeMap::new();
    for glyph in &block.glyphs {
        let ends = widths
            .entry(glyph.y as i32)
            .or_insert((f32::INFINITY, 0.0_f32));
        *ends = (ends.0.min(glyph.x), ends.1.max(glyph.x + glyph.width));
    }
    assert_eq!(widths.len(), 2);
    let widths: Vec<f32> = widths.values().map(|(left, right)| right - left).collect();
    assert!(
        widths[0].min(widths[1]) > 0.75 * widths[0].max(widths[1]),
        "{widths:?}"
    );
}

#[test]
fn what_no_font_has_is_reported_once_each() {
    let fonts = Fonts::bundled();
    assert_eq!(fonts.missing("Grüße, Ωмир\u{200D}\n"), []);
    assert_eq!(
        fonts.missing("a\u{4E2D}b\u{6587}\u{4E2D}"),
        ['\u{4E2D}', '\u{6587}']
    );
    assert!(!fonts.missing("\u{1F600}").is_empty());
    assert!(is_silent('\u{200F}'));
}

#[test]
fn fonts_used_are_named_by_content() {
    let fonts = Fonts::bundled();
    let latin = fonts.used_hashes("Hello");
    assert_eq!(latin.len(), 3);
    assert_eq!(latin, Fonts::bundled().used_hashes("other words"));
    let wide = Fonts::load(&[]);
    // Bundled faces come first: what the system has changes nothing for Latin.
    assert_eq!(wide.used_hashes("Hello"), latin);
    if !lacks(&wide, "\u{1F600}") {
        assert_eq!(wide.used_hashes("Hello \u{1F600}").len(), 4);
    }
}

#[test]
fn cards_come_and_go_smoothly() {
    let mut card = card("x", CardRole::Caption);
    (card.first_frame, card.frames, card.fade_frames) = (10, 20, 4);
    let at: Vec<f32> = (9..31).map(|n| card_opacity(&card, n)).collect();
    assert_eq!((at[0], at[21]), (0.0, 0.0));
    assert!(at[1] > 0.0 && at[1] < at[2] && (at[6] - 1.0).abs() < 1e-6);
    for (early, late) in at[1..11].iter().zip(at[11..21].iter().rev()) {
        assert!((early - late).abs() < 1e-6);
    }
    card.fade_frames = 0;
    assert!((card_opacity(&card, 10) - 1.0).abs() < 1e-6);
    (card.first_frame, card.frames) = (i64::MAX - 1, i64::MAX);
    assert!(card_opacity(&card, 5).abs() < 1e-6);
}

#[test]
fn emoji_are_drawn_in_colour() {
    let fonts = Fonts::load(&[]);
    if lacks(&fonts, "\u{2764}\u{FE0F}\u{1F600}") {
        return;
    }
    let drawn = draw_card(
        &card("\u{2764}\u{FE0F}", CardRole::Title),
        None,
        &FilmFormat::DEFAULT,
        &fonts,
    )
    .unwrap();
    let red = drawn
        .rgba
        .chunks_exact(4)
        .filter(|p| p[0] > 150 && p[1] < 110 && p[3] > 200);
    assert!(red.count() > 500);
}

#[test]
fn a_subtitle_stands_under_its_title() {
    let fonts = Fonts::bundled();
    let title = card("The Crossing", CardRole::Title);
    let line = card("Iceland, 1912", CardRole::Subtitle);
    let cards = [title.clone(), line.clone()];
    let above = card_above(&line, &cards);
    assert_eq!(above, Some(&title));
    assert!(card_above(&title, &cards).is_none());
    let format = FilmFormat::DEFAULT;
    let ink = |card: &CardPicture| {
        let rows = card.rgba.chunks_exact(card.width_px * 4).enumerate();
        let bright = rows.filter(|(_, row)| row.chunks_exact(4).any(|p| p[0] > 128));
        let rows: Vec<usize> = bright.map(|(y, _)| y + card.y_px).collect();
        (rows[0], rows[rows.len() - 1])
    };
    let (_, bottom) = ink(&draw_card(&title, None, &format, &fonts).unwrap());
    let (top, _) = ink(&draw_card(&line, above, &format, &fonts).unwrap());
    assert!(
        top > bottom + 10 && top < bottom + 90,
        "{bottom} then {top}"
    );
}
