//! Which stretches of a text need a face of their own.

/// What a stretch of text asks of its font.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The card's own face, with fallback.
    Plain,
    /// Emoji shown in colour. Named outright: general fallback would take a black and white
    /// glyph from a symbol font first.
    Emoji,
    /// Han characters in a text that is plainly Japanese or Korean.
    Han(&'static str),
}

pub(crate) const EMOJI_FAMILY: &str = "Noto Color Emoji";

/// Characters shown as colour emoji without being asked (Unicode's Emoji_Presentation).
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{231A}'..='\u{231B}' | '\u{23E9}'..='\u{23EC}' | '\u{23F0}' | '\u{23F3}'
        | '\u{25FD}'..='\u{25FE}' | '\u{2614}'..='\u{2615}' | '\u{2648}'..='\u{2653}'
        | '\u{267F}' | '\u{2693}' | '\u{26A1}' | '\u{26AA}'..='\u{26AB}'
        | '\u{26BD}'..='\u{26BE}' | '\u{26C4}'..='\u{26C5}' | '\u{26CE}' | '\u{26D4}'
        | '\u{26EA}' | '\u{26F2}'..='\u{26F3}' | '\u{26F5}' | '\u{26FA}' | '\u{26FD}'
        | '\u{2705}' | '\u{270A}'..='\u{270B}' | '\u{2728}' | '\u{274C}' | '\u{274E}'
        | '\u{2753}'..='\u{2755}' | '\u{2757}' | '\u{2795}'..='\u{2797}' | '\u{27B0}'
        | '\u{27BF}' | '\u{2B1B}'..='\u{2B1C}' | '\u{2B50}' | '\u{2B55}' | '\u{1F004}'
        | '\u{1F0CF}' | '\u{1F18E}' | '\u{1F191}'..='\u{1F19A}' | '\u{1F1E6}'..='\u{1F1FF}'
        | '\u{1F201}' | '\u{1F21A}' | '\u{1F22F}' | '\u{1F232}'..='\u{1F236}'
        | '\u{1F238}'..='\u{1F23A}' | '\u{1F250}'..='\u{1F251}' | '\u{1F300}'..='\u{1F320}'
        | '\u{1F32D}'..='\u{1F335}' | '\u{1F337}'..='\u{1F37C}' | '\u{1F37E}'..='\u{1F393}'
        | '\u{1F3A0}'..='\u{1F3CA}' | '\u{1F3CF}'..='\u{1F3D3}' | '\u{1F3E0}'..='\u{1F3F0}'
        | '\u{1F3F4}' | '\u{1F3F8}'..='\u{1F43E}' | '\u{1F440}' | '\u{1F442}'..='\u{1F4FC}'
        | '\u{1F4FF}'..='\u{1F53D}' | '\u{1F54B}'..='\u{1F54E}' | '\u{1F550}'..='\u{1F567}'
        | '\u{1F57A}' | '\u{1F595}'..='\u{1F596}' | '\u{1F5A4}' | '\u{1F5FB}'..='\u{1F64F}'
        | '\u{1F680}'..='\u{1F6C5}' | '\u{1F6CC}' | '\u{1F6D0}'..='\u{1F6D2}'
        | '\u{1F6D5}'..='\u{1F6D7}' | '\u{1F6DC}'..='\u{1F6DF}' | '\u{1F6EB}'..='\u{1F6EC}'
        | '\u{1F6F4}'..='\u{1F6FC}' | '\u{1F7E0}'..='\u{1F7EB}' | '\u{1F7F0}'
        | '\u{1F90C}'..='\u{1F93A}' | '\u{1F93C}'..='\u{1F945}' | '\u{1F947}'..='\u{1F9FF}'
        | '\u{1FA70}'..='\u{1FAFF}')
}

/// Marks that belong to the emoji before them.
fn joins_emoji(c: char) -> bool {
    matches!(c, '\u{FE0F}' | '\u{20E3}' | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}')
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{2FDF}' | '\u{3000}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{323AF}')
}

/// The face for Han characters where other letters tell the language; none for Chinese, which
/// general fallback takes them for.
fn han_family(text: &str) -> Option<&'static str> {
    if text
        .chars()
        .any(|c| matches!(c, '\u{3041}'..='\u{30FA}' | '\u{FF66}'..='\u{FF9D}'))
    {
        Some("Noto Sans CJK JP")
    } else if text.chars().any(|c| matches!(c, '\u{AC00}'..='\u{D7A3}')) {
        Some("Noto Sans CJK KR")
    } else {
        None
    }
}

/// `text` cut into stretches of one kind, in order and whole.
pub(crate) fn stretches(text: &str) -> Vec<(&str, Kind)> {
    let han = han_family(text);
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut kinds = Vec::with_capacity(chars.len());
    for (i, (_, c)) in chars.iter().enumerate() {
        let next = chars.get(i + 1).map(|(_, c)| *c);
        let after_emoji = kinds.last() == Some(&Kind::Emoji);
        let keycap = c.is_ascii_digit() || matches!(c, '#' | '*');
        let kind = if is_emoji(*c) && next != Some('\u{FE0E}')
            || next == Some('\u{FE0F}') && (!c.is_ascii() || keycap)
            || after_emoji && (joins_emoji(*c) || *c == '\u{200D}')
            || after_emoji && i > 0 && chars[i - 1].1 == '\u{200D}'
        {
            Kind::Emoji
        } else if let Some(family) = han
            && is_han(*c)
        {
            Kind::Han(family)
        } else {
            Kind::Plain
        };
        kinds.push(kind);
    }
    let mut out = Vec::new();
    let mut start = 0;
    for i in 1..=kinds.len() {
        if i == kinds.len() || kinds[i] != kinds[start] {
            let end = chars.get(i).map_or(text.len(), |(at, _)| *at);
            out.push((&text[chars[start].0..end], kinds[start]));
            start = i;
        }
    }
    out
}

/// Whether letters stand apart, so that space may be put between them.
pub(crate) fn takes_tracking(text: &str) -> bool {
    text.chars()
        .all(|c| !c.is_alphabetic() || c < '\u{0590}' || matches!(c, '\u{1E00}'..='\u{1FFF}'))
}

/// Characters without ink of their own, never reported as missing.
pub(crate) fn is_silent(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180B}'..='\u{180E}'
            | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_are_cut_out_whole() {
        let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}";
        let text = format!("a{family}b\u{2764}\u{FE0F}\u{1F44D}\u{1F3FD} 1\u{FE0F}\u{20E3}2");
        let cut = stretches(&text);
        let kinds: Vec<_> = cut.iter().map(|(_, kind)| *kind).collect();
        let (p, e) = (Kind::Plain, Kind::Emoji);
        assert_eq!(kinds, [p, e, p, e, p, e, p]);
        assert_eq!(cut[1].0, family);
        assert_eq!(cut.iter().map(|(text, _)| *text).collect::<String>(), text);
        assert_eq!(stretches("5 + 7 * #").len(), 1);
    }

    #[test]
    fn han_follows_the_language_around_it() {
        assert_eq!(stretches("\u{6F22}\u{5B57}")[0].1, Kind::Plain);
        assert!(matches!(
            stretches("\u{6F22}\u{306E}")[0].1,
            Kind::Han("Noto Sans CJK JP")
        ));
        assert!(takes_tracking("Ça va?") && !takes_tracking("\u{645}\u{631}"));
    }
}
