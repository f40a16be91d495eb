//! Which words of a text speak of something that is to be seen there.
//!
//! A word of the lexicon need not be the thing: "she watches the sea" has no watch, "the train station" no
//! train, "no ship in sight" no ship, "like a bear" no bear. Rules decide it, from the words around.

use super::is_word;

/// Words that stand before a noun.
const DETERMINERS: &[&str] = &[
    "a", "an", "the", "this", "that", "these", "those", "his", "her", "its", "my", "our", "your",
    "their", "one", "two", "three", "four", "five", "some", "many", "several", "every", "each",
    "another", "with", "of", "by", "and",
];
/// Who does what the next word says.
const PRONOUNS: &[&str] = &[
    "i", "you", "he", "she", "it", "we", "they", "who", "to", "will", "can", "would", "could",
    "must", "let", "cannot", "not",
];
/// Words that are as often something done as something seen.
const DOUBTFUL: &[&str] = &[
    "watch", "ring", "rose", "bear", "post", "note", "train", "star", "fire", "plant", "seed",
    "page", "ship", "book", "box", "drum", "fish", "map", "horn", "bed", "pot", "cup", "mail",
    "present", "fly", "anchor", "scroll", "phone", "bloom", "blossom", "flower", "crown", "paper",
    "cook", "fox", "dog", "duck", "mouse", "sail", "bell",
];
/// Nouns that the noun before them only names more closely.
const HEADS: &[&str] = &[
    "station", "office", "shop", "store", "room", "house", "yard", "tower", "stop", "hall",
    "market", "garden", "park", "factory", "museum", "school", "stand", "rack", "box", "case",
    "shelf", "bed", "pot", "light", "works", "workshop", "bench", "party", "sound", "song",
    "smell", "story", "name", "trail", "track", "line", "journey", "ride", "engine", "eared",
    "driver", "maker", "keeper", "seller", "player", "rider", "owner", "captain", "builder",
    "lover", "stall", "deck", "wheel", "horn", "bell", "rope", "field", "tree", "bush", "water",
    "hour", "time",
];
/// What follows is not there.
const ABSENT: &[&str] = &[
    "no",
    "without",
    "nobody",
    "not",
    "never",
    "neither",
    "nor",
    "about",
    "like",
    "than",
    "resembling",
    "imagines",
    "imagine",
    "remembers",
    "dreams",
    "promised",
    "lost",
];
/// How many words further on that still holds.
const ABSENT_WORDS: usize = 3;

/// Words of a text, small; a possessive is followed by a word of its own: `ship`, `'s`.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let text = text.replace('\u{2019}', "'");
    let split = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let mut tokens = Vec::new();
    for word in split.map(|word| word.trim_matches('\'').to_lowercase()) {
        match word.strip_suffix("'s") {
            Some(owner) => tokens.extend([owner.to_owned(), "'s".to_owned()]),
            None if word.is_empty() => {}
            None => tokens.push(word),
        }
    }
    tokens
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.contains(&word)
}

fn is_any(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| is_word(word, known))
}

/// Whether the word at `at` is something that is seen. `is_actor` says whether a word names somebody or
/// something that acts: what follows it is done by it.
pub(super) fn is_seen(tokens: &[String], at: usize, is_actor: &dyn Fn(&str) -> bool) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", String::as_str);
    let (here, next) = (word(Some(at)), word(at.checked_add(1)));
    let (before, ahead) = (word(at.checked_sub(1)), word(at.checked_sub(2)));
    if is_any(next, HEADS) || next == "'s" {
        return false;
    }
    let first = at.saturating_sub(ABSENT_WORDS);
    let around = tokens.get(first..at).unwrap_or_default();
    if around.iter().any(|word| is_one_of(word, ABSENT)) {
        return false;
    }
    if !is_any(here, DOUBTFUL) {
        return true;
    }
    if is_one_of(before, PRONOUNS) || is_actor(before) {
        return false;
    }
    let does = is_one_of(next, DETERMINERS) && !matches!(next, "with" | "of" | "by" | "and");
    if is_one_of(before, DETERMINERS) {
        return true;
    }
    // A text may begin with it, and one word may stand between.
    !does && (at == 0 || is_one_of(ahead, DETERMINERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, wanted: &str) -> bool {
        let tokens = tokens(text);
        let is_actor = |word: &str| ["keeper", "mara", "woman"].contains(&word);
        let at = tokens.iter().position(|word| is_word(word, wanted));
        is_seen(&tokens, at.unwrap(), &is_actor)
    }

    #[test]
    fn a_word_is_the_thing_only_where_it_stands_for_it() {
        for (text, word) in [
            ("A ship waits.", "ship"),
            ("An old watch on the table", "watch"),
            ("Watch on a table", "watch"),
            ("Mara holds a bottle with a letter.", "bottle"),
            ("The bell rings", "bell"),
            ("She paints two red ships", "ship"),
            ("the apple tree", "tree"),
        ] {
            assert!(seen(text, word), "{word:?} is seen in {text:?}");
        }
        for (text, word) in [
            ("She watches the sea.", "watch"),
            ("The keeper watches from the window.", "watch"),
            ("Mara rose early.", "rose"),
            ("They ship everything home.", "ship"),
            ("The train station at night", "train"),
            ("the ship's wheel", "ship"),
            ("The ship\u{2019}s wheel", "ship"),
            ("No ship in sight", "ship"),
            ("A sea without a single ship", "ship"),
            ("The cloud looks like a bear.", "bear"),
            ("They talk about the violin.", "violin"),
            ("the apple tree", "apple"),
            ("He learns to fish.", "fish"),
            ("Watch the sea", "watch"),
        ] {
            assert!(!seen(text, word), "{word:?} is not seen in {text:?}");
        }
    }
}
