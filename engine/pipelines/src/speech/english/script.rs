//! Scripts of writing, as far as they tell that a text is in no language of the Latin script.

/// Blocks of letters that are not Latin, from and to, with the name of their script.
const SCRIPTS: [(u32, u32, &str); 26] = [
    (0x0370, 0x03ff, "Greek"),
    (0x0400, 0x052f, "Cyrillic"),
    (0x0530, 0x058f, "Armenian"),
    (0x0590, 0x05ff, "Hebrew"),
    (0x0600, 0x06ff, "Arabic"),
    (0x0750, 0x077f, "Arabic"),
    (0x0900, 0x097f, "Devanagari"),
    (0x0980, 0x09ff, "Bengali"),
    (0x0a00, 0x0a7f, "Gurmukhi"),
    (0x0a80, 0x0aff, "Gujarati"),
    (0x0b80, 0x0bff, "Tamil"),
    (0x0c00, 0x0c7f, "Telugu"),
    (0x0c80, 0x0cff, "Kannada"),
    (0x0d00, 0x0d7f, "Malayalam"),
    (0x0e00, 0x0e7f, "Thai"),
    (0x0e80, 0x0eff, "Lao"),
    (0x1000, 0x109f, "Burmese"),
    (0x10a0, 0x10ff, "Georgian"),
    (0x1100, 0x11ff, "Korean"),
    (0x1200, 0x137f, "Ethiopic"),
    (0x1780, 0x17ff, "Khmer"),
    (0x1f00, 0x1fff, "Greek"),
    (0x3040, 0x30ff, "Japanese"),
    (0x3400, 0x9fff, "Chinese"),
    (0xac00, 0xd7af, "Korean"),
    (0x2_0000, 0x3_ffff, "Chinese"),
];

/// The share of a text's letters that are not Latin: 0 for English, 1 for Greek, Russian, Chinese.
/// A text without letters has none.
pub fn foreign_letters(text: &str) -> f64 {
    let (mut letters, mut foreign) = (0_u32, 0_u32);
    for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
        letters = letters.saturating_add(1);
        foreign = foreign.saturating_add(u32::from(!is_latin(letter)));
    }
    f64::from(foreign) / f64::from(letters.max(1))
}

/// The script that most letters of a text are of that are not Latin; nothing where all are Latin or
/// of no script named here. Kana among Chinese signs make a text Japanese.
///
/// Languages of one script are not told apart, and least those of the Latin one: a line of German
/// can look like English.
pub fn foreign_script(text: &str) -> Option<&'static str> {
    let mut counts: Vec<(&'static str, u32)> = Vec::new();
    for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
        let code = u32::from(letter);
        let row = SCRIPTS.iter().find(|row| (row.0..=row.1).contains(&code));
        let Some((_, _, name)) = row else { continue };
        match counts.iter_mut().find(|count| count.0 == *name) {
            Some(count) => count.1 = count.1.saturating_add(1),
            None => counts.push((name, 1)),
        }
    }
    let kana = counts.iter().any(|count| count.0 == "Japanese");
    let most = counts.into_iter().max_by_key(|count| count.1)?.0;
    Some(if kana && most == "Chinese" {
        "Japanese"
    } else {
        most
    })
}

/// Whether a letter is of the Latin script (or full-width Latin, which is read as such).
pub(super) fn is_latin(letter: char) -> bool {
    matches!(letter,
        'A'..='Z' | 'a'..='z' | 'ª' | 'º' | 'À'..='\u{2ff}' | '\u{1e00}'..='\u{1eff}'
        | '\u{212a}' | '\u{212b}' | '\u{2c60}'..='\u{2c7f}' | '\u{a720}'..='\u{a7ff}'
        | '\u{fb00}'..='\u{fb06}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_and_latin_languages_are_not() {
        for (text, script) in [
            ("Смотритель маяка чинит лампу", Some("Cyrillic")),
            ("يصلح حارس المنارة المصباح", Some("Arabic")),
            ("प्रकाशस्तंभ का रखवाला", Some("Devanagari")),
            ("灯台守はランプを直す", Some("Japanese")),
            ("漢字の", Some("Japanese")),
            ("灯塔看守人修理灯", Some("Chinese")),
            ("등대지기가 램프를 고친다", Some("Korean")),
            ("Ο φύλακας του φάρου", Some("Greek")),
            ("שומר המגדלור מתקן את המנורה", Some("Hebrew")),
            ("คนเฝ้าประภาคาร", Some("Thai")),
            ("Der Wärter repariert die Lampe", None),
            ("Hawaiʻi, Məmməd, Åland", None),
            ("12 + 3", None),
        ] {
            assert_eq!(foreign_script(text), script, "{text}");
            let foreign = foreign_letters(text) > 0.9;
            assert_eq!(foreign, script.is_some(), "{text}");
        }
    }
}
