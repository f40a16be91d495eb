//! From bytes to text.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::{EncodingChoice, SrtNote, SubtitleError};

/// Text and how it was come by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The text, without a byte order mark.
    pub text: String,
    /// Name of the encoding.
    pub encoding: &'static str,
    /// What was odd.
    pub notes: Vec<SrtNote>,
}

/// Bytes above ASCII below which a code page is a guess.
const ENOUGH_BYTES: usize = 4;
const SAMPLE_CHARS: usize = 40;
/// Asked about where nothing better is known, most used first.
const COMMON: [&str; 8] = [
    "windows-1252",
    "gbk",
    "big5",
    "shift_jis",
    "euc-kr",
    "windows-1251",
    "windows-1250",
    "windows-1256",
];

fn whole(text: impl Into<String>, encoding: &'static Encoding, notes: Vec<SrtNote>) -> Decoded {
    Decoded {
        text: text.into(),
        encoding: encoding.name(),
        notes,
    }
}

fn note(what: String) -> SrtNote {
    SrtNote { line: 0, what }
}

/// Decode `bytes` from the encoding of that name.
///
/// # Errors
/// [`SubtitleError::UnknownEncoding`].
pub fn decode(bytes: &[u8], label: &str) -> Result<Decoded, SubtitleError> {
    let encoding = Encoding::for_label(label.as_bytes())
        .ok_or_else(|| SubtitleError::UnknownEncoding(label.into()))?;
    Ok(decode_with(bytes, encoding))
}

fn decode_with(bytes: &[u8], encoding: &'static Encoding) -> Decoded {
    let (text, used, broken) = encoding.decode(bytes);
    let mut notes = Vec::new();
    if broken {
        notes.push(note(format!(
            "some bytes are not {}; each is shown as a replacement character",
            used.name()
        )));
    }
    whole(text, used, notes)
}

/// Decode `bytes` from the encoding that they show.
pub(crate) fn detect(bytes: &[u8]) -> Result<Decoded, SubtitleError> {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return Ok(decode_with(bytes, encoding));
    }
    if let Some(encoding) = utf16_without_mark(bytes) {
        let mut decoded = decode_with(bytes, encoding);
        let what = format!("no byte order mark; read as {}", encoding.name());
        decoded.notes.push(note(what));
        return Ok(decoded);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(whole(text, UTF_8, Vec::new()));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let (text, _, broken) = guess.decode(bytes);
    let high = bytes.iter().filter(|byte| **byte >= 0x80).count();
    if !broken && high >= ENOUGH_BYTES && is_plausible(&text) && !has_rival(bytes, guess, &text) {
        let what = format!(
            "the file does not say its encoding; read as {}",
            guess.name()
        );
        return Ok(whole(text, guess, vec![note(what)]));
    }
    // UTF-8 with a few broken bytes is still UTF-8.
    let (lossy, _, _) = UTF_8.decode(bytes);
    let wrong = lossy.chars().filter(|c| *c == '\u{FFFD}').count();
    let right = lossy
        .chars()
        .filter(|c| !c.is_ascii() && *c != '\u{FFFD}')
        .count();
    if right > 4 * wrong {
        return Ok(decode_with(bytes, UTF_8));
    }
    Err(SubtitleError::EncodingUnclear(choices(bytes, guess)))
}

/// UTF-16 shows itself by zero bytes on one side of most pairs.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let pairs = bytes.chunks_exact(2).take(4096);
    let (mut count, mut even, mut odd) = (0, 0, 0);
    for pair in pairs {
        count += 1;
        even += usize::from(pair[0] == 0);
        odd += usize::from(pair[1] == 0);
    }
    if count < 4 {
        return None;
    }
    // Numbers, times and line ends are ASCII in every language's file.
    match (even * 4 > count, odd * 4 > count) {
        (true, false) => Some(UTF_16BE),
        (false, true) => Some(UTF_16LE),
        _ => None,
    }
}

/// Whether nothing speaks against `text`: no control characters and no private ones.
fn is_plausible(text: &str) -> bool {
    text.chars().all(|c| {
        !(c.is_control() && !matches!(c, '\n' | '\r' | '\t')
            || matches!(c, '\u{E000}'..='\u{F8FF}' | '\u{FFFD}'))
    })
}

/// Whether another multi-byte code page reads the same bytes as plain running text too.
fn has_rival(bytes: &[u8], guess: &'static Encoding, text: &str) -> bool {
    const WIDE: [&str; 4] = ["gbk", "big5", "shift_jis", "euc-kr"];
    if guess.is_single_byte() {
        return false;
    }
    let rare = |text: &str| {
        let (mut rare, mut all) = (0, 0);
        for c in text.chars().filter(|c| !c.is_ascii()) {
            all += 1;
            // Half-width kana, rare Han and single symbols are what wrong readings are made of.
            rare += usize::from(
                matches!(c, '\u{FF61}'..='\u{FF9F}' | '\u{3400}'..='\u{4DBF}'
                | '\u{2500}'..='\u{257F}' | '\u{F900}'..='\u{FAFF}'),
            );
        }
        rare * 8 > all
    };
    if rare(text) {
        return true;
    }
    // Punctuation of the language set where sentences pause settles it.
    if text.contains([
        '\u{3002}', '\u{FF0C}', '\u{3001}', '\u{FF01}', '\u{FF1F}', '\u{3041}',
    ]) || text
        .chars()
        .any(|c| matches!(c, '\u{3041}'..='\u{30FA}' | '\u{AC00}'..='\u{D7A3}'))
    {
        return false;
    }
    WIDE.iter()
        .filter_map(|label| Encoding::for_label(label.as_bytes()))
        .filter(|other| *other != guess)
        .any(|other| {
            let (text, _, broken) = other.decode(bytes);
            !broken && is_plausible(&text) && !rare(&text)
        })
}

fn choices(bytes: &[u8], guess: &'static Encoding) -> Vec<EncodingChoice> {
    let mut encodings = vec![guess];
    for encoding in COMMON
        .iter()
        .filter_map(|label| Encoding::for_label(label.as_bytes()))
    {
        if !encodings.contains(&encoding) {
            encodings.push(encoding);
        }
    }
    let readable = encodings.into_iter().filter_map(|encoding| {
        let (text, _, broken) = encoding.decode(bytes);
        let sample: String = text
            .lines()
            .find(|line| !line.is_ascii())?
            .chars()
            .take(SAMPLE_CHARS)
            .collect();
        (!broken).then_some(EncodingChoice {
            encoding: encoding.name(),
            sample,
        })
    });
    let mut readable: Vec<EncodingChoice> = readable.collect();
    if readable.is_empty() {
        let (text, _, _) = guess.decode(bytes);
        let line = text.lines().find(|line| !line.is_ascii()).unwrap_or("");
        readable.push(EncodingChoice {
            encoding: guess.name(),
            sample: line.chars().take(SAMPLE_CHARS).collect(),
        });
    }
    readable
}
