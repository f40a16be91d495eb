//! What a premise says: its language, the people and things it names.

mod things;

use super::error::ProduceError;
use super::words::{EMOJI, FUNCTION_WORDS};
use things::named_things;

/// Longest premise that is given to a model as it is, in characters.
pub const PREMISE_CHARS_MAX: usize = 600;
/// Longest premise that is read at all, in bytes.
const PREMISE_BYTES_MAX: usize = 16_000_000;

/// Longest tag that is taken out of a premise.
const TAG_BYTES_MAX: usize = 200;

/// The letters a language is written in, as far as the producer tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// Latin letters.
    Latin,
    /// Chinese characters.
    Han,
    /// Japanese: kana with Chinese characters.
    Japanese,
    /// Korean.
    Hangul,
    /// Arabic letters.
    Arabic,
    /// Cyrillic letters.
    Cyrillic,
    /// Greek letters.
    Greek,
    /// Hebrew letters.
    Hebrew,
    /// Devanagari letters.
    Devanagari,
    /// Thai letters.
    Thai,
}

impl Writing {
    const ALL: [(Self, &'static str); 10] = [
        (Self::Latin, "en"),
        (Self::Han, "zh"),
        (Self::Japanese, "ja"),
        (Self::Hangul, "ko"),
        (Self::Arabic, "ar"),
        (Self::Cyrillic, "ru"),
        (Self::Greek, "el"),
        (Self::Hebrew, "he"),
        (Self::Devanagari, "hi"),
        (Self::Thai, "th"),
    ];

    fn of(character: char) -> Option<Self> {
        Some(match u32::from(character) {
            0x3040..=0x30ff => Self::Japanese,
            0x3400..=0x4dbf | 0x4e00..=0x9fff | 0x20000..=0x2ffff => Self::Han,
            0x1100..=0x11ff | 0xac00..=0xd7af => Self::Hangul,
            0x0600..=0x06ff | 0x0750..=0x077f => Self::Arabic,
            0x0400..=0x052f => Self::Cyrillic,
            0x0370..=0x03ff => Self::Greek,
            0x0590..=0x05ff => Self::Hebrew,
            0x0900..=0x097f => Self::Devanagari,
            0x0e00..=0x0e7f => Self::Thai,
            _ if character.is_alphabetic() => Self::Latin,
            _ => return None,
        })
    }

    /// Whether words stand without spaces between them.
    pub(crate) const fn is_unspaced(self) -> bool {
        matches!(self, Self::Han | Self::Japanese | Self::Thai)
    }

    /// Letters of a word, as a class of a regular expression without its brackets.
    pub(crate) const fn letters(self) -> &'static str {
        match self {
            Self::Latin => "a-zà-öø-ÿœšžčćęąłńśźżğışăâîțőű",
            Self::Han => "\u{4e00}-\u{9fff}",
            Self::Japanese => "\u{3041}-\u{3096}\u{30a1}-\u{30fa}ー\u{4e00}-\u{9fff}",
            Self::Hangul => "\u{ac00}-\u{d7a3}",
            Self::Arabic => "\u{0621}-\u{064a}",
            Self::Cyrillic => "\u{0430}-\u{044f}ё",
            Self::Greek => "\u{03ac}-\u{03ce}",
            Self::Hebrew => "\u{05d0}-\u{05ea}",
            Self::Devanagari => "\u{0904}-\u{0939}\u{093e}-\u{094d}",
            Self::Thai => "\u{0e01}-\u{0e3a}\u{0e40}-\u{0e4e}",
        }
    }

    /// The mark that ends a sentence.
    pub(crate) const fn full_stop(self) -> &'static str {
        match self {
            Self::Han | Self::Japanese => "。",
            Self::Devanagari => "।",
            _ => ".",
        }
    }

    /// The mark between parts of a sentence.
    pub(crate) const fn comma(self) -> &'static str {
        match self {
            Self::Han => "，",
            Self::Japanese => "、",
            Self::Arabic => "،",
            _ => ",",
        }
    }

    /// Whether most letters of `text` are of this writing.
    pub(crate) fn is_of(self, text: &str) -> bool {
        let (mut own, mut all) = (0, 0);
        for writing in text.chars().filter_map(Self::of) {
            let han = self == Self::Japanese && writing == Self::Han;
            own += usize::from(writing == self || han);
            all += 1;
        }
        own * 10 >= all * 8
    }
}

/// A premise as the producer works with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Premise {
    /// The text given to the model, on one line.
    pub text: String,
    /// BCP-47 tag.
    pub language: String,
    /// Its letters.
    pub writing: Writing,
    /// Things and people that it names, most telling first, as it writes them.
    pub nouns: Vec<String>,
    /// Those of `nouns` that can act and speak.
    pub people: Vec<String>,
    /// Names of people.
    pub names: Vec<String>,
    /// What a person should know about how it was read.
    pub notes: Vec<String>,
}

impl Premise {
    /// Read a premise.
    ///
    /// # Errors
    /// [`ProduceError::NoWords`] and [`ProduceError::TooLong`].
    pub fn read(text: &str) -> Result<Self, ProduceError> {
        if text.len() > PREMISE_BYTES_MAX {
            return Err(ProduceError::TooLong {
                got_bytes: text.len(),
                max_bytes: PREMISE_BYTES_MAX,
            });
        }
        let plain = plain(text);
        let named = |c: char| EMOJI.iter().any(|(emoji, _)| *emoji == c);
        if !plain.chars().any(|c| c.is_alphabetic() || named(c)) {
            return Err(ProduceError::NoWords {
                got: plain.chars().take(40).collect(),
            });
        }
        let mut notes = Vec::new();
        let plain = match of_pictures(&plain) {
            Some(words) => {
                notes.push(format!(
                    "the premise is pictures only; they are read as {words:?}"
                ));
                words
            }
            None => plain,
        };
        let (writing, language) = language(&plain);
        let chars = plain.chars().count();
        let text = if chars > PREMISE_CHARS_MAX {
            let short = summary(&plain);
            let kept = short.chars().count();
            notes.push(format!(
                "the premise has {chars} characters; the model is given {kept} of them, from its \
                 beginning and its fullest sentences"
            ));
            short
        } else {
            plain
        };
        let (nouns, people, names) = named_things(&text, writing, &language);
        Ok(Self {
            text,
            language,
            writing,
            nouns,
            people,
            names,
            notes,
        })
    }
}

/// One line without control characters and without what a model or a template could take for its
/// own marks: tags such as `<b>` and `<|im_end|>`, braces, brackets of more than one.
fn plain(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        cleaned.push_str(&rest[..open]);
        let inside = &rest[open + 1..];
        let starts = inside.starts_with(|c: char| c.is_ascii_alphabetic() || "/!|?".contains(c));
        let close = inside.bytes().take(TAG_BYTES_MAX).position(|b| b == b'>');
        cleaned.push(' ');
        rest = match close.filter(|_| starts) {
            Some(close) => &inside[close + 1..],
            None => inside,
        };
    }
    cleaned.push_str(rest);
    let cleaned: String = cleaned
        .chars()
        .map(|c| {
            let mark = matches!(c, '>' | '{' | '}' | '[' | ']' | '|' | '`' | '*' | '#' | '\\' | '_' | '~');
            if c.is_control() || mark { ' ' } else { c }
        })
        .filter(|c| !matches!(u32::from(*c), 0x200b..=0x200f | 0x202a..=0x202e | 0x2066..=0x2069 | 0xfe00..=0xfe0f | 0xfeff))
        .collect();
    cleaned.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// "An octopus and a rocket.", where a premise is picture characters only.
fn of_pictures(text: &str) -> Option<String> {
    if text.chars().any(char::is_alphabetic) {
        return None;
    }
    let words: Vec<String> = text
        .chars()
        .filter_map(|c| EMOJI.iter().find(|(emoji, _)| *emoji == c))
        .map(|(_, word)| {
            let vowel = word.starts_with(['a', 'e', 'i', 'o', 'u']);
            format!("{} {word}", if vowel { "an" } else { "a" })
        })
        .collect();
    Some(format!("{}.", super::stages::capital(&words.join(" and "))))
}

/// Words in lower case, without the marks around them.
pub(crate) fn word_list(text: &str) -> Vec<String> {
    let trim = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let word = word
            .strip_suffix("'s")
            .or(word.strip_suffix("’s"))
            .unwrap_or(word);
        word.to_lowercase()
    };
    text.split(|c: char| c.is_whitespace() || matches!(c, '—' | '–' | '/'))
        .map(trim)
        .filter(|word| !word.is_empty())
        .collect()
}

fn language(text: &str) -> (Writing, String) {
    let mut counts = [0usize; Writing::ALL.len()];
    for writing in text.chars().filter_map(Writing::of) {
        if let Some(at) = Writing::ALL.iter().position(|(known, _)| *known == writing) {
            counts[at] += 1;
        }
    }
    // Some kana make Chinese characters Japanese; three letters of Latin weigh as one character.
    if counts[2] * 8 > counts[1] && counts[2] > 0 {
        counts[2] += counts[1];
        counts[1] = 0;
    }
    counts[0] /= 3;
    let most = counts.iter().copied().max().unwrap_or(0);
    let at = counts.iter().position(|count| *count == most).unwrap_or(0);
    let (writing, tag) = if most == 0 {
        Writing::ALL[0]
    } else {
        Writing::ALL[at]
    };
    if writing == Writing::Arabic {
        let persian = text.contains(['پ', 'چ', 'گ', 'ژ']);
        return (writing, if persian { "fa" } else { tag }.to_owned());
    }
    if writing == Writing::Cyrillic {
        let ukrainian = text.contains(['і', 'ї', 'є', 'ґ']);
        return (writing, if ukrainian { "uk" } else { tag }.to_owned());
    }
    if writing != Writing::Latin {
        return (writing, tag.to_owned());
    }
    let words = word_list(text);
    let hits = |known: &[&str]| {
        words
            .iter()
            .filter(|word| known.contains(&word.as_str()))
            .count()
    };
    let mut best = ("en", hits(FUNCTION_WORDS[0].1));
    for (tag, known) in &FUNCTION_WORDS[1..] {
        let count = hits(known);
        if count > best.1 {
            best = (tag, count);
        }
    }
    (writing, best.0.to_owned())
}

/// Sentences of a text, with their marks.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let wide = matches!(c, '。' | '！' | '？' | '।' | '؟');
        let ends = wide
            || (matches!(c, '.' | '!' | '?' | '…')
                && chars.peek().is_none_or(|(_, next)| next.is_whitespace()));
        if ends {
            let end = at + c.len_utf8();
            sentences.push(text[start..end].trim());
            start = end;
        }
    }
    sentences.push(text[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// At most [`PREMISE_CHARS_MAX`] characters of a long premise: its first sentence, then those
/// with most of the words that the whole repeats, in their order.
fn summary(text: &str) -> String {
    let sentences = sentences(text);
    let mut counts = std::collections::BTreeMap::new();
    let lists: Vec<Vec<String>> = sentences.iter().map(|each| word_list(each)).collect();
    for word in lists
        .iter()
        .flatten()
        .filter(|word| word.chars().count() > 3)
    {
        *counts.entry(word.as_str()).or_insert(0usize) += 1;
    }
    let weight = |at: usize| -> usize {
        let words = &lists[at];
        let sum: usize = words
            .iter()
            .filter_map(|word| counts.get(word.as_str()))
            .sum();
        sum * 100 / (words.len() + 5)
    };
    let mut order: Vec<usize> = (1..sentences.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(weight(*at)), *at));
    let mut left = PREMISE_CHARS_MAX;
    let mut kept = Vec::new();
    for at in std::iter::once(0).chain(order) {
        let chars = sentences.get(at).map_or(0, |each| each.chars().count() + 1);
        let repeated = kept
            .iter()
            .any(|each: &usize| sentences[*each] == sentences[at]);
        if chars > 1 && chars <= left && !repeated {
            left -= chars;
            kept.push(at);
        }
    }
    kept.sort_unstable();
    if kept.is_empty() {
        // One endless sentence: its beginning, to the last whole word.
        let start: String = text.chars().take(PREMISE_CHARS_MAX).collect();
        let end = start.rfind(char::is_whitespace).unwrap_or(start.len());
        return start[..end].to_owned();
    }
    kept.iter()
        .map(|at| sentences[*at])
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_people_and_names_are_found() {
        let read = |text| Premise::read(text).unwrap();
        let keeper =
            read("A lighthouse keeper finds a message in a bottle that she wrote herself.");
        assert_eq!(keeper.nouns, ["keeper", "lighthouse", "message", "bottle"]);
        assert_eq!(keeper.people, ["lighthouse keeper"]);
        let bus = read("The last bus driver of a drowned city waits for a passenger.");
        assert_eq!(bus.nouns, ["driver", "bus", "city", "passenger"]);
        assert_eq!(bus.people, ["bus driver", "passenger"]);
        let named = read("Two sisters, Ada and Lin, restore their grandfather's clock.");
        assert_eq!(named.names, ["Ada", "Lin"]);
        assert!(
            named.nouns.contains(&"clock".to_owned()),
            "{:?}",
            named.nouns
        );
        let robots = read("Two robots fall in love in an abandoned factory.");
        assert_eq!(robots.nouns, ["robots", "love", "factory"]);
        let garden = read("A robot in an abandoned factory plants a garden.");
        assert_eq!(garden.nouns, ["robot", "factory", "garden"]);
    }

    #[test]
    fn languages_are_told_apart() {
        for (text, language) in [
            ("A baker wins.", "en"),
            ("Lighthouse", "en"),
            (
                "Ein Leuchtturmwärter findet eine Flasche mit einer Nachricht.",
                "de",
            ),
            (
                "Un gardien de phare trouve une bouteille sur la plage.",
                "fr",
            ),
            ("El farero encuentra una botella en la playa.", "es"),
            ("守塔人在海边发现了一个漂流瓶。", "zh"),
            ("灯台守は海辺で瓶を見つける。", "ja"),
            ("등대지기가 병을 발견한다.", "ko"),
            ("حارس المنارة يجد رسالة في زجاجة.", "ar"),
            ("Смотритель маяка находит бутылку.", "ru"),
            ("🐙🚀", "en"),
        ] {
            let premise = Premise::read(text).unwrap();
            assert_eq!(premise.language, language, "{text}");
            assert!(
                !premise.nouns.is_empty() || text.len() < 15,
                "{text}: nothing found"
            );
        }
        let chinese = Premise::read("守塔人在海边发现了一个漂流瓶。").unwrap();
        assert_eq!(chinese.nouns, ["守塔人", "海边发现", "漂流瓶"]);
    }

    #[test]
    fn empty_ones_are_refused_and_endless_ones_shortened() {
        for text in ["", "  \n ", "...", "1234", "\u{200b}"] {
            let error = Premise::read(text).unwrap_err();
            assert!(error.to_string().contains("expected a sentence"), "{error}");
        }
        let long = "A lighthouse keeper finds a bottle. It rained for days on the island. "
            .to_owned()
            + &"The keeper reads the message again and the bottle rolls away over rock 7. "
                .repeat(3000);
        assert!(long.len() > 200_000);
        let premise = Premise::read(&long).unwrap();
        assert!(
            premise
                .text
                .starts_with("A lighthouse keeper finds a bottle.")
        );
        assert!(premise.text.chars().count() <= PREMISE_CHARS_MAX);
        assert!(
            premise.notes[0].contains("characters"),
            "{:?}",
            premise.notes
        );
        let endless = Premise::read(&"keeper of the light ".repeat(10_000)).unwrap();
        assert!((300..=PREMISE_CHARS_MAX).contains(&endless.text.chars().count()));
    }
}
