//! Which of several candidates is the best, by rules.

use std::collections::BTreeSet;

use super::premise::{Premise, word_list};
use super::words::{FUNCTION_WORDS, META, UNFILMABLE};

/// What a text is for; decides what it is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Something seen.
    Action,
    /// Something said.
    Speech,
    /// A title or a name: short and free.
    Label,
    /// What somebody or something looks like.
    Look,
}

/// What candidates for one text are held to.
pub(crate) struct Wanted<'w> {
    pub(crate) used_for: Use,
    pub(crate) premise: &'w Premise,
    /// The text has to name this; empty for nothing.
    pub(crate) subject: &'w str,
    /// Fewest and most words; characters in writings without spaces.
    pub(crate) words: (usize, usize),
    /// Most columns on screen.
    pub(crate) columns_max: usize,
    /// Texts of the examples given to the model.
    pub(crate) examples: &'w [(&'static str, &'static str)],
    /// Texts that it may not be.
    pub(crate) taken: &'w [String],
}

/// Texts written before, for comparison.
#[derive(Default)]
pub(crate) struct Written {
    texts: BTreeSet<String>,
    pairs: BTreeSet<(String, String)>,
    content: Vec<BTreeSet<String>>,
    openings: BTreeSet<String>,
}

/// What is wrong with a candidate, and how good it is otherwise; more is better.
pub(crate) struct Verdict {
    pub(crate) complaints: Vec<String>,
    pub(crate) score: i64,
}

/// Words of a text for comparison: single characters where words stand without spaces.
pub(crate) fn units(text: &str, premise: &Premise) -> Vec<String> {
    if premise.writing.is_unspaced() {
        return text
            .chars()
            .filter(|c| c.is_alphanumeric())
            .map(String::from)
            .collect();
    }
    word_list(text)
}

fn pairs(units: &[String]) -> impl Iterator<Item = (String, String)> {
    units
        .windows(2)
        .map(|pair| (pair[0].clone(), pair[1].clone()))
}

pub(crate) fn is_function(word: &str, premise: &Premise) -> bool {
    FUNCTION_WORDS
        .iter()
        .find(|(tag, _)| *tag == premise.language)
        .is_some_and(|(_, words)| words.contains(&word))
}

fn content(units: &[String], premise: &Premise) -> BTreeSet<String> {
    let kept = units.iter().filter(|word| !is_function(word, premise));
    kept.cloned().collect()
}

impl Written {
    pub(crate) fn add(&mut self, text: &str, premise: &Premise) {
        let units = units(text, premise);
        self.texts.insert(units.join(" "));
        self.pairs.extend(pairs(&units));
        self.content.push(content(&units, premise));
        self.openings.extend(opening(&units));
    }

    /// How much of what `units` say has been said in one earlier text, 0 to 100.
    fn nearness(&self, own: &BTreeSet<String>) -> usize {
        let nearness = |other: &BTreeSet<String>| {
            let shared = own.intersection(other).count();
            shared * 100 / own.union(other).count().max(1)
        };
        self.content.iter().map(nearness).max().unwrap_or(0)
    }
}

/// The first words of a text.
fn opening(units: &[String]) -> Option<String> {
    units.get(..2).map(|first| first.join(" "))
}

/// Hold `text` against what is wanted and what is written.
pub(crate) fn judge(text: &str, wanted: &Wanted<'_>, written: &Written) -> Verdict {
    let premise = wanted.premise;
    let mut complaints = Vec::new();
    let mut score = 100;
    let units = units(text, premise);
    let lower = text.to_lowercase();
    let (least, most) = wanted.words;
    let what = if premise.writing.is_unspaced() {
        "characters"
    } else {
        "words"
    };
    if units.len() < least {
        complaints.push(format!("write at least {least} {what}"));
    }
    let columns = crate::speech::columns(text);
    if units.len() > most || columns > wanted.columns_max {
        complaints.push(format!(
            "write at most {most} {what} and {} characters",
            wanted.columns_max
        ));
    }
    if !premise.writing.is_of(text) {
        complaints.push(format!("write in the language {}", premise.language));
    }
    if !wanted.subject.is_empty() && !lower.contains(&wanted.subject.to_lowercase()) {
        complaints.push(format!("name {:?}", wanted.subject));
    }
    let told = premise.text.to_lowercase();
    let of = |list: &'static [&'static str]| {
        list.iter()
            .find(|mark| lower.contains(**mark) && !told.contains(**mark))
    };
    if let Some(mark) = of(META) {
        complaints.push(format!(
            "do not write {mark:?}: write only what belongs to the film"
        ));
    }
    if wanted.used_for == Use::Action
        && let Some(mark) = of(UNFILMABLE)
    {
        complaints.push(format!("{mark:?} cannot be filmed: write what is seen"));
    }
    if wanted
        .taken
        .iter()
        .any(|taken| taken.to_lowercase() == lower)
    {
        complaints.push("this is taken: write something else".to_owned());
    }
    let odd = text.contains([
        '{', '}', '<', '>', '*', '#', '|', '_', '\n', '"', '[', ']', '\\',
    ]) || [",.", " .", " ,", "''", "..", ",,", "' ", " '"]
        .iter()
        .any(|mark| text.contains(mark));
    if odd {
        complaints.push("write plain words without marks".to_owned());
    }
    if premise.language == "en" && units.iter().any(|word| is_run_together(word)) {
        complaints.push("write words apart".to_owned());
    }
    if matches!(wanted.used_for, Use::Look | Use::Label) {
        repeats(&units, wanted, &mut complaints, &mut score);
    }
    if matches!(wanted.used_for, Use::Action | Use::Speech) {
        sentence(text, &units, wanted, written, &mut complaints, &mut score);
    }
    Verdict { complaints, score }
}

/// "themessage": what a model writes that was not let put a space.
fn is_run_together(word: &str) -> bool {
    let whole = [
        "theatr", "theate", "theirs", "themse", "theory", "theori", "therap", "there", "therm",
        "thesis", "theses", "theft", "themed", "theme",
    ];
    let joined = |start: &str, whole: &[&str]| {
        word.starts_with(start) && !whole.iter().any(|known| word.starts_with(known))
    };
    (word.len() > 5 && joined("the", &whole))
        || (word.len() > 4 && joined("of", &["offe", "offi", "ofte", "offs", "offb"]))
}

/// The same words again within one text.
fn repeats(units: &[String], wanted: &Wanted<'_>, complaints: &mut Vec<String>, score: &mut i64) {
    let premise = wanted.premise;
    let spaced = !premise.writing.is_unspaced();
    let mut counts = std::collections::BTreeMap::new();
    for word in units.iter().filter(|word| !is_function(word, premise)) {
        *counts.entry(word).or_insert(0usize) += 1;
    }
    let often = if spaced { 2 } else { 4 };
    let doubled = spaced && units.windows(2).any(|pair| pair[0] == pair[1]);
    if doubled || counts.values().any(|count| *count > often) {
        complaints.push("do not repeat words".to_owned());
    }
    *score -= 12 * counts.values().filter(|count| **count > 1).count() as i64;
}

fn sentence(
    text: &str,
    units: &[String],
    wanted: &Wanted<'_>,
    written: &Written,
    complaints: &mut Vec<String>,
    score: &mut i64,
) {
    let premise = wanted.premise;
    let spaced = !premise.writing.is_unspaced();
    let loose = [
        "his", "her", "my", "your", "our", "their", "its", "a", "an", "the", "very", "so",
    ];
    let open = |word: &String| {
        (is_function(word, premise) && premise.language != "en")
            || loose.contains(&word.as_str())
            || [
                "and", "or", "but", "of", "with", "that", "is", "as", "into", "from", "at", "by",
                "for", "to", "who", "which", "when", "where", "while", "if", "than", "was", "are",
                "were", "has", "have", "been", "be", "because", "until", "not", "without",
            ]
            .contains(&word.as_str())
    };
    if spaced && units.last().is_some_and(open) {
        complaints.push("end the sentence".to_owned());
    }
    repeats(units, wanted, complaints, score);
    if written.texts.contains(&units.join(" ")) {
        complaints.push("this has been said already: write something else".to_owned());
    }
    if wanted.used_for == Use::Speech
        && opening(units).is_some_and(|first| written.openings.contains(&first))
    {
        *score -= 25;
    }
    let own = content(units, premise);
    let nearness = written.nearness(&own);
    if nearness > 60 {
        complaints.push("this is too near to what was written before".to_owned());
    }
    *score -= nearness as i64 / 2;
    let all = pairs(units).count().max(1);
    let known = pairs(units)
        .filter(|pair| written.pairs.contains(pair))
        .count();
    *score -= (known * 60 / all) as i64;
    let lower = units.join(" ");
    let run = if spaced { 4 } else { 8 };
    let copied = |source: &str| {
        let source = format!(" {} ", word_list(source).join(" "));
        units
            .windows(run)
            .any(|words| source.contains(&format!(" {} ", words.join(" "))))
    };
    if wanted.examples.iter().any(|(_, reply)| copied(reply)) {
        complaints.push("do not copy the examples".to_owned());
    }
    if copied(&premise.text) {
        *score -= 25;
    }
    if spaced && units.iter().any(|word| word.chars().count() > 13) {
        *score -= 20;
    }
    // Other things of the premise make it belong to this film.
    let subject = wanted.subject.to_lowercase();
    let more = premise.nouns.iter().filter(|noun| {
        let noun = noun.to_lowercase();
        !subject.contains(&noun) && lower.contains(&noun)
    });
    *score += 12 * more.count().min(2) as i64;
    let (least, most) = wanted.words;
    let middle = (least + most) / 2;
    *score -= units.len().abs_diff(middle) as i64 * if spaced { 2 } else { 1 };
    // "is written", "is found": told, not seen.
    let passive = ["is", "are", "was", "were", "has", "had"];
    let told = units
        .iter()
        .take(4)
        .any(|word| passive.contains(&word.as_str()));
    if wanted.used_for == Use::Action && told {
        *score -= 15;
    }
    if text.contains(',') {
        *score -= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, written: &[&str]) -> Verdict {
        let premise = Premise::read("A lighthouse keeper finds a message in a bottle.").unwrap();
        let wanted = Wanted {
            used_for: Use::Action,
            premise: &premise,
            subject: "Mara",
            words: (5, 14),
            columns_max: 90,
            examples: &[(
                "",
                "Rosa ties her apron and drags a sack of flour to the oven.",
            )],
            taken: &[],
        };
        let mut before = Written::default();
        for text in written {
            before.add(text, &premise);
        }
        judge(text, &wanted, &before)
    }

    #[test]
    fn what_will_not_do_is_named() {
        let good = verdict("Mara opens the bottle and looks at the paper inside.", &[]);
        assert_eq!(good.complaints, [""; 0]);
        for (text, complaint) in [
            ("Mara walks.", "at least 5 words"),
            ("The keeper opens the bottle with a knife.", "name \"Mara\""),
            (
                "Mara wonders what the message means to her.",
                "cannot be filmed",
            ),
            (
                "Mara is the main character of this film.",
                "belongs to the film",
            ),
            (
                "Mara opens the bottle and looks at the.",
                "end the sentence",
            ),
            ("Mara opens opens the bottle and looks up.", "repeat words"),
            (
                "Mara drags a sack of flour to the oven.",
                "copy the examples",
            ),
            ("Mara 打开了瓶子，看着里面的纸条。", "language en"),
            ("Mara opens the bottle, looks at it,.", "plain words"),
        ] {
            let got = verdict(text, &[]).complaints.join("; ");
            assert!(got.contains(complaint), "{text}: {got:?}");
        }
    }

    #[test]
    fn what_was_written_before_counts_against_a_text() {
        let text = "Mara opens the bottle and looks at the paper.";
        let same = verdict(text, &["mara opens the bottle, and looks at the paper!"]);
        assert!(
            same.complaints
                .iter()
                .any(|each| each.contains("said already"))
        );
        let near = verdict(text, &["Mara drops the bottle and runs to the door."]);
        assert!(near.complaints.is_empty());
        assert!(near.score < verdict(text, &[]).score);
    }
}
