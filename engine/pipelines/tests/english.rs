//! English, from written text to sounds: the cases of tests/cases, and that nothing is lost.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use engine_pipelines::{
    Accent, English, Pause, SpeechError, UnknownWords, foreign_letters, printed_text, spoken_text,
};
use proptest::prelude::*;

static AMERICAN: LazyLock<English> = LazyLock::new(|| English::new(Accent::Us, None));
static BRITISH: LazyLock<English> = LazyLock::new(|| English::new(Accent::Gb, None));

/// The rows of a table of cases, without its head.
fn rows(path: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/cases")
        .join(path);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {path:?}"));
    text.lines()
        .skip(1)
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

/// Without case and punctuation.
fn plain(text: &str) -> String {
    let kept: String = text
        .to_lowercase()
        .chars()
        .map(|sign| if sign == '-' { ' ' } else { sign })
        .filter(|sign| sign.is_alphanumeric() || *sign == ' ')
        .collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sounds of the words of a text that are `word`, in their order.
fn sounds(english: &English, text: &str, word: &str) -> Vec<String> {
    let sentences = english.sentences(text).unwrap();
    let words = sentences.iter().flat_map(|sentence| &sentence.words);
    words
        .filter(|spoken| spoken.spoken.eq_ignore_ascii_case(word))
        .map(|spoken| spoken.phonemes.clone())
        .collect()
}

#[test]
fn written_forms_are_spoken_as_people_do() {
    let rows = rows("tts-01/cases.tsv");
    assert_eq!(rows.len(), 37);
    let mut wrong = Vec::new();
    for row in &rows {
        let spoken = plain(&spoken_text(&row[0], Accent::Us));
        let right = match row[1].as_str() {
            // American order, and no sign is read out.
            note if note.starts_with("(one documented order") => {
                spoken == "march fourth twenty twenty six"
            }
            note if note.starts_with("(digit by digit") => {
                spoken.split(' ').count() == row[0].len() && !spoken.contains('1')
            }
            variants => variants
                .split('|')
                .map(|variant| variant.split('(').next().unwrap())
                .any(|variant| plain(variant) == spoken),
        };
        if !right {
            wrong.push(format!("{:?}: {spoken:?} is none of {:?}", row[0], row[1]));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

const VOWELS: &str = "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻɐᵊ";

/// From the vowel of the last stress to the end.
fn rhyme(sounds: &str) -> &str {
    let stressed = sounds.rsplit('ˈ').next().unwrap();
    let vowel = stressed.find(|sign| VOWELS.contains(sign)).unwrap();
    &stressed[vowel..]
}

/// Which syllable has the stress, from 1.
fn stressed_syllable(sounds: &str) -> usize {
    let (front, _) = sounds.split_once('ˈ').unwrap();
    front.chars().filter(|sign| VOWELS.contains(*sign)).count() + 1
}

/// What is asked of each place of a row's word: a rhyme, or a syllable with the stress.
fn asked(row: &[String]) -> (String, usize, Vec<String>) {
    let (word, from) = match row[1].split_once(' ') {
        Some((word, number)) => (word.to_owned(), number.parse::<usize>().unwrap() - 1),
        None => (row[1].clone(), 0),
    };
    let asked = match row[2].as_str() {
        "stress 2nd, then 1st" => vec!["2".into(), "1".into()],
        "my-NEWT, then MIN-it" => vec!["newt".into(), "in it".into()],
        other => other
            .split(';')
            .next()
            .unwrap()
            .split(", then ")
            .map(str::to_owned)
            .collect(),
    };
    (word, from, asked)
}

fn fits(english: &English, sounds: &str, asked: &str) -> bool {
    match asked {
        "1" | "2" => stressed_syllable(sounds).to_string() == asked,
        "newt" => sounds.starts_with("mIn") && stressed_syllable(sounds) == 2,
        "in it" => sounds.starts_with("mˈɪn"),
        _ => {
            let model = self::sounds(english, asked, asked).remove(0);
            sounds.ends_with(rhyme(&model)) && rhyme(sounds) == rhyme(&model)
        }
    }
}

#[test]
fn words_of_several_sounds_are_told_apart() {
    let rows = rows("tts-03/cases.tsv");
    assert_eq!(rows.len(), 24);
    for (name, english, least) in [("American", &*AMERICAN, 24), ("British", &*BRITISH, 24)] {
        let mut wrong = Vec::new();
        for row in &rows {
            let (word, from, asked) = asked(row);
            let said = sounds(english, &row[0], &word);
            let right = asked.iter().enumerate().all(|(at, asked)| {
                said.get(from + at)
                    .is_some_and(|said| fits(english, said, asked))
            });
            if !right {
                wrong.push(format!("{:?}: {word}: {said:?}, asked {asked:?}", row[0]));
            }
        }
        let right = rows.len() - wrong.len();
        assert!(
            right >= least,
            "{name}: {right} of {}: {wrong:#?}",
            rows.len()
        );
    }
}

#[test]
fn a_writer_overrules_every_word() {
    for row in rows("tts-03/cases.tsv") {
        let (word, _, _) = asked(&row);
        let start = row[0].to_lowercase().find(&word).unwrap();
        let written = &row[0][start..start + word.len()];
        let marked = row[0].replacen(written, &format!("[{written}](/zˈuʒ/)"), 1);
        let sentences = AMERICAN.sentences(&marked).unwrap();
        let given: Vec<_> = sentences
            .iter()
            .flat_map(|sentence| &sentence.words)
            .filter(|spoken| spoken.phonemes == "zˈuʒ")
            .collect();
        assert_eq!(given.len(), 1, "{marked}");
        assert_eq!(given[0].spoken, written);
        assert_eq!(
            &marked[given[0].source.clone()],
            format!("[{written}](/zˈuʒ/)")
        );
        assert_eq!(printed_text(&marked), row[0]);
        assert_eq!(
            spoken_text(&marked, Accent::Us),
            spoken_text(&row[0], Accent::Us)
        );
    }
}

#[test]
fn more_words_of_several_sounds() {
    let cases = [
        (
            "He read the letter twice before he burned it.",
            "read",
            "ɹˈɛd",
        ),
        ("She will read it tomorrow.", "read", "ɹˈid"),
        ("They read it to me every night.", "read", "ɹˈid"),
        ("Have you read it?", "read", "ɹˈɛd"),
        ("The letter was read aloud.", "read", "ɹˈɛd"),
        ("Read this.", "read", "ɹˈid"),
        ("The path wound through the hills.", "wound", "wˈWnd"),
        ("His wounds healed but the wound stayed.", "wound", "wˈund"),
        ("The roof is made of lead.", "lead", "lˈɛd"),
        ("They lead the way.", "lead", "lˈid"),
        ("She took the lead.", "lead", "lˈid"),
        ("He caught a bass in the lake.", "bass", "bˈæs"),
        ("She plays the bass.", "bass", "bˈAs"),
        ("They object to it.", "object", "əbʤˈɛkt"),
        ("A strange object fell.", "object", "ˈɑbʤəkt"),
        ("We must record a song.", "record", "ɹəkˈɔɹd"),
        ("It broke the record.", "record", "ɹˈɛkəɹd"),
        ("The farms produce milk.", "produce", "pɹədˈus"),
        ("I refuse to go.", "refuse", "ɹəfjˈuz"),
        ("What is the use of it?", "use", "jˈus"),
        ("You can use it.", "use", "jˈuz"),
        ("Wind up the clock.", "wind", "wˈInd"),
        ("The wind blew.", "wind", "wˈɪnd"),
        ("The sow had six piglets.", "sow", "sˈW"),
        ("They sow seeds.", "sow", "sˈO"),
        ("He drew his bow and shot an arrow.", "bow", "bˈO"),
        ("The actors bow to the crowd.", "bow", "bˈW"),
        ("The ship's bow rose.", "bow", "bˈW"),
        ("A Polish sailor.", "Polish", "pˈOlɪʃ"),
        ("Polish the lens.", "Polish", "pˈɑlɪʃ"),
        ("They resume work.", "resume", "ɹəzˈum"),
        ("She sent her resume.", "resume", "ɹˈɛzəmˌA"),
        ("Cats have nine lives.", "lives", "lˈIvz"),
        ("He lives here.", "lives", "lˈɪvz"),
        ("There is a tear in the sail.", "tear", "tˈɛɹ"),
        ("We went live at noon.", "live", "lˈIv"),
        ("Where do you live?", "live", "lˈɪv"),
        ("The close of day.", "close", "klˈOz"),
        ("They came close to the rocks.", "close", "klˈOs"),
    ];
    let mut wrong = Vec::new();
    for (text, word, right) in cases {
        let said = sounds(&AMERICAN, text, word);
        if said.first().map(String::as_str) != Some(right) {
            wrong.push(format!("{text:?}: {said:?}, expected {right}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn sentences_end_where_they_end() {
    let cases: [(&str, &[&str]); 12] = [
        ("Dr. Smith left. He ran.", &["Dr. Smith left.", "He ran."]),
        (
            "It cost 3.50 in the U.S. Army store.",
            &["It cost 3.50 in the U.S. Army store."],
        ),
        (
            "He lives in the U.S. She does not.",
            &["He lives in the U.S.", "She does not."],
        ),
        (
            "At 7:30 p.m. The door shut.",
            &["At 7:30 p.m.", "The door shut."],
        ),
        (
            "J. R. R. Tolkien wrote it.",
            &["J. R. R. Tolkien wrote it."],
        ),
        (
            "\"Stop!\" he cried. \"Now.\"",
            &["Stop!\" he cried.", "Now"],
        ),
        ("Wait... what? Yes!", &["Wait... what?", "Yes!"]),
        ("Well... Then we left.", &["Well...", "Then we left."]),
        (
            "Cats, dogs, etc. Then birds.",
            &["Cats, dogs, etc.", "Then birds."],
        ),
        ("One\n\nTwo", &["One", "Two"]),
        ("The Storm\nIt was dark.", &["The Storm", "It was dark."]),
        (
            "this line of the text was wrapped by the program\nthat wrote it",
            &["this line of the text was wrapped by the program\nthat wrote it"],
        ),
    ];
    for (text, ends) in cases {
        let sentences = AMERICAN.sentences(text).unwrap();
        let got: Vec<&str> = sentences
            .iter()
            .map(|sentence| &text[sentence.source.clone()])
            .collect();
        let trim = |text: &str| text.trim_end_matches(['.', '!', '?', '"']).to_owned();
        let got: Vec<String> = got.into_iter().map(trim).collect();
        let ends: Vec<String> = ends.iter().map(|text| trim(text)).collect();
        assert_eq!(got, ends, "{text:?}");
    }
    let pauses = |text: &str| -> Vec<Pause> {
        let sentences = AMERICAN.sentences(text).unwrap();
        sentences.iter().map(|sentence| sentence.pause).collect()
    };
    assert_eq!(pauses("One.\n\nTwo."), [Pause::Paragraph, Pause::Sentence]);
    let long = "word ".repeat(60);
    assert_eq!(pauses(&long), [Pause::None, Pause::Sentence]);
    let marked = "word word word word word word, ".repeat(10);
    assert_eq!(pauses(&marked), [Pause::Clause, Pause::Sentence]);
}

struct Teller;

impl UnknownWords for Teller {
    fn phonemes(&self, word: &str) -> Result<String, SpeechError> {
        match word {
            "gostak" | "Gostak" => Ok("ɡˈɑstæk".into()),
            "brulee" => Ok("bɹulˈA❓".into()),
            "北京" => Ok("bˌAʤˈɪŋ".into()),
            "refused" | "Zzyzx" => Err(SpeechError::Unspeakable {
                text: word.into(),
                reason: "the teller refuses".into(),
            }),
            _ => Ok(String::new()),
        }
    }
}

#[test]
fn unknown_words_are_told_or_spelled_and_never_dropped() {
    let english = English::new(Accent::Us, Some(Box::new(Teller)));
    let said = |text: &str| -> Vec<String> {
        let sentences = english.sentences(text).unwrap();
        let words = sentences.into_iter().flat_map(|sentence| sentence.words);
        words.map(|word| word.phonemes).collect()
    };
    assert_eq!(said("the gostak"), ["ðə", "ɡˈɑstæk"]);
    assert_eq!(said("Gostak's 北京"), ["ɡˈɑstæks", "bˌAʤˈɪŋ"]);
    assert_eq!(said("qxv"), ["kjˌuˌɛksvˈi"]);
    assert_eq!(said("the FBI"), ["ði", "ˌɛfbˌiˈI"]);
    assert_eq!(said("two TVs"), ["tˈu", "tˌivˈiz"]);
    let refused = english.sentences("a Zzyzx road").unwrap_err().to_string();
    assert!(
        refused.contains("Zzyzx") && refused.contains("the teller refuses"),
        "{refused}"
    );
    let foreign = english.sentences("Привет, мир").unwrap_err().to_string();
    assert!(foreign.contains("Привет"), "{foreign}");
    assert_eq!(said("[Привет](/pɹivjˈɛt/)"), ["pɹivjˈɛt"]);
    assert_eq!(english.sentences("").unwrap(), []);
    assert_eq!(
        english.sentences(" \u{0}<break time=\"1s\"/>…").unwrap(),
        []
    );
}

#[test]
fn letters_of_other_scripts_are_counted() {
    assert!(foreign_letters("A café, 12 µm") < 0.2);
    assert!(foreign_letters("Привет, мир") > 0.99);
    assert!(foreign_letters("漢字とかな and Latin") > 0.3);
    assert_eq!(foreign_letters("12 + 3"), 0.0);
}

#[test]
fn a_long_text_takes_as_long_as_it_is() {
    let pieces = [
        "1,",
        "a.",
        ". ",
        "((",
        "[a](",
        "<!--",
        "<a b",
        "@a",
        "1-",
        "A ",
        "'s",
        "\n",
        "9",
        "a-",
        "$1",
        "x",
        "!?",
        "1/",
        "MIX ",
        "I.",
        "e\u{301}",
        "☃",
        "— ",
        "https://a.b/",
    ];
    let all = pieces.concat();
    assert!(!spoken_text(&all.repeat(100_000 / all.len()), Accent::Us).is_empty());
    for piece in pieces {
        let text = piece.repeat(12_000 / piece.len());
        let spoken = spoken_text(&text, Accent::Us);
        assert!(
            !spoken.contains(|sign: char| sign.is_ascii_digit()),
            "{piece:?}"
        );
    }
}

fn holds(text: &str, accent: Accent) {
    let spoken = spoken_text(text, accent);
    assert!(
        !spoken.contains(|sign: char| sign.is_ascii_digit()),
        "{text:?}: {spoken:?}"
    );
    assert!(!spoken.contains(char::is_control), "{text:?}: {spoken:?}");
    assert_eq!(spoken.trim(), spoken, "{text:?}");
    assert!(printed_text(text).len() <= text.len());
    let english = match accent {
        Accent::Us => &AMERICAN,
        Accent::Gb => &BRITISH,
    };
    let Ok(sentences) = english.sentences(text) else {
        return;
    };
    let mut end = 0;
    for sentence in &sentences {
        assert!(!sentence.words.is_empty());
        assert!(
            text.get(sentence.source.clone()).is_some(),
            "{text:?}: {sentence:?}"
        );
        assert!(
            sentence.source.start >= end || sentence.source.end >= end,
            "{text:?}"
        );
        end = sentence.source.end;
        for word in &sentence.words {
            assert!(
                text.get(word.source.clone()).is_some(),
                "{text:?}: {word:?}"
            );
            assert!(!word.source.is_empty(), "{text:?}: {word:?}");
            assert!(
                word.phonemes.chars().any(char::is_alphabetic),
                "{text:?}: {word:?}"
            );
            assert!(!word.phonemes.contains('❓'), "{text:?}: {word:?}");
            assert!(!word.spoken.is_empty(), "{text:?}: {word:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_text_holds(text in any::<String>()) {
        holds(&text, Accent::Us);
    }

    #[test]
    fn any_english_like_text_holds(
        text in "([ -~]|[0-9.,:/$£€%°½²–—…'’\"“”\n-]|Dr\\.|St\\.|IV|p\\.m\\.|March|BC){0,40}"
    ) {
        holds(&text, Accent::Gb);
    }
}
