//! The people and things that a premise names.

use super::super::words::{
    ADJECTIVES, DETERMINERS, EMOJI, FUNCTION_WORDS, HAN_FUNCTION, PEOPLE, THINGS_LIKE_PEOPLE, VERBS,
};
use super::{Writing, sentences, word_list};

/// Most things that are taken from a premise.
const NOUNS_MAX: usize = 12;

type Named = (Vec<String>, Vec<String>, Vec<String>);

pub(super) fn named_things(text: &str, writing: Writing, language: &str) -> Named {
    let mut found = Found::default();
    for (emoji, word) in EMOJI {
        if text.contains(*emoji) {
            found.noun(word);
            if PEOPLE.contains(word) {
                found.person(word);
            }
        }
    }
    for sentence in sentences(text) {
        match (writing, language) {
            (Writing::Latin, "en") => english(sentence, &mut found),
            (Writing::Han | Writing::Japanese | Writing::Thai, _) => unspaced(sentence, &mut found),
            _ => spaced(sentence, language, &mut found),
        }
    }
    found.nouns.truncate(NOUNS_MAX);
    (found.nouns, found.people, found.names)
}

#[derive(Default)]
struct Found {
    nouns: Vec<String>,
    people: Vec<String>,
    names: Vec<String>,
}

impl Found {
    fn noun(&mut self, word: &str) {
        if !self.nouns.iter().any(|known| known == word) {
            self.nouns.push(word.to_owned());
        }
    }

    fn person(&mut self, phrase: &str) {
        if !self.people.iter().any(|known| known == phrase) {
            self.people.push(phrase.to_owned());
        }
    }

    fn name(&mut self, word: &str) {
        if !self.names.iter().any(|known| known == word) {
            self.names.push(word.to_owned());
        }
    }
}

fn is_person(word: &str) -> bool {
    let like = ["er", "or", "ist", "man", "woman", "ess"];
    PEOPLE.contains(&word)
        || (word.chars().count() > 4
            && like.iter().any(|ending| word.ends_with(ending))
            && !THINGS_LIKE_PEOPLE.contains(&word))
}

fn is_adjective(word: &str) -> bool {
    let like = [
        "ous", "ful", "less", "ing", "ed", "ive", "able", "ible", "ish", "ic", "ly", "est",
    ];
    let kept = [
        "bed", "ring", "king", "wedding", "building", "music", "attic", "wing", "spring",
    ];
    ADJECTIVES.contains(&word)
        || (!kept.contains(&word)
            && word.len() > 4
            && like.iter().any(|ending| word.ends_with(ending)))
}

/// Things after words that announce them, and names in capitals.
fn english(sentence: &str, found: &mut Found) {
    let function = FUNCTION_WORDS[0].1;
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let mut phrase: Vec<String> = Vec::new();
    let mut open = true;
    let mut single = false;
    let flush = |phrase: &mut Vec<String>, found: &mut Found| {
        if let Some(head) = phrase.last() {
            let one = head.strip_suffix('s').filter(|one| is_person(one));
            if is_person(head) {
                found.person(&phrase.join(" "));
            } else if let Some(one) = one {
                let before = phrase[..phrase.len() - 1].join(" ");
                found.person(format!("{before} {one}").trim_start());
            }
            found.noun(head);
            for word in &phrase[..phrase.len() - 1] {
                found.noun(word);
            }
        }
        phrase.clear();
    };
    for (at, raw) in words.iter().enumerate() {
        let bare = raw.trim_matches(|c: char| !c.is_alphanumeric());
        let possessive = bare.ends_with("'s") || bare.ends_with("’s");
        let Some(word) = word_list(raw).into_iter().next() else {
            continue;
        };
        let capital = bare.chars().next().is_some_and(char::is_uppercase);
        let closes = raw.ends_with([',', '.', ';', ':', '!', '?']);
        let announces = DETERMINERS.contains(&word.as_str());
        if function.contains(&word.as_str()) || announces || word.chars().count() < 3 {
            flush(&mut phrase, found);
            open = announces;
            single = ["a", "an", "each", "every", "one"].contains(&word.as_str());
        } else if capital && at > 0 {
            flush(&mut phrase, found);
            let name = bare.trim_end_matches("'s").trim_end_matches("’s");
            let before = words[at - 1].to_lowercase();
            if ["in", "at", "from", "to", "near", "of", "the", "on"].contains(&before.as_str()) {
                // Where it is, not who.
                found.noun(name);
            } else {
                found.name(name);
            }
        } else if VERBS.contains(&word.as_str()) && (!phrase.is_empty() || !open) {
            flush(&mut phrase, found);
            open = false;
        } else if open && !VERBS.contains(&word.as_str()) {
            let plural = |word: &String| {
                word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end))
            };
            let after_plural = phrase.last().is_some_and(plural) && !is_person(&word);
            let acts = phrase
                .last()
                .is_some_and(|last| is_person(last) && !is_person(&word));
            // "A factory plants": one thing, so the word in -s is what it does.
            let does = single && !phrase.is_empty() && plural(&word);
            if (after_plural || acts || does) && !possessive {
                // What stands after a whole name for something is what it does.
                flush(&mut phrase, found);
                open = false;
            } else if !is_adjective(&word) {
                phrase.push(word);
            }
        }
        if possessive || closes {
            flush(&mut phrase, found);
            open = possessive || closes;
        }
    }
    flush(&mut phrase, found);
}

/// Words that are no function words; in German those in capitals.
fn spaced(sentence: &str, language: &str, found: &mut Found) {
    let function = FUNCTION_WORDS.iter().find(|(tag, _)| *tag == language);
    let function = function.map_or(&[][..], |(_, words)| *words);
    for (at, raw) in sentence.split_whitespace().enumerate() {
        let bare = raw.trim_matches(|c: char| !c.is_alphanumeric());
        let lower = bare.to_lowercase();
        let capital = bare.chars().next().is_some_and(char::is_uppercase);
        if bare.chars().count() < 3 || function.contains(&lower.as_str()) {
            continue;
        }
        if language == "de" {
            if capital && at > 0 {
                found.noun(bare);
            }
        } else if capital && at > 0 {
            found.name(bare);
        } else if bare.chars().count() > 3 {
            found.noun(bare);
        }
    }
}

/// Runs of characters between those that join words, of two to four characters.
fn unspaced(sentence: &str, found: &mut Found) {
    let joins = |c: char| {
        HAN_FUNCTION.contains(c)
            || !matches!(
                Writing::of(c),
                Some(Writing::Han | Writing::Japanese | Writing::Thai)
            )
            || ('\u{3041}'..='\u{3096}').contains(&c)
    };
    for run in sentence.split(joins) {
        let chars: Vec<char> = run.chars().collect();
        match chars.len() {
            0 | 1 => {}
            2..=4 => found.noun(run),
            _ => {
                found.noun(&chars[..2].iter().collect::<String>());
                found.noun(&chars[chars.len() - 2..].iter().collect::<String>());
            }
        }
    }
}
