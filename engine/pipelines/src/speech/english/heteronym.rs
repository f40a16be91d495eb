//! Words of one spelling and several sounds, decided by the words around them.
//!
//! The tagger in front of the lexicon is right about most of them. Here stand the words that it
//! gets wrong by itself, or that differ in meaning and not in part of speech (lead, bass, row).

use super::Accent;

/// A word of a sentence as the rules see it.
pub(super) struct Tagged<'a> {
    /// The word in small letters.
    pub lower: String,
    /// As it is spoken.
    pub text: &'a str,
    /// The Penn Treebank tag.
    pub tag: String,
    /// What stands behind it.
    pub after: &'a str,
}

/// What a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The lexicon's sounds for another tag.
    As(&'static str),
    /// These sounds.
    Sounds(&'static str),
}

use Choice::{As, Sounds};

/// Words that the lexicon has as a noun or adjective and as a verb.
const PAIRS: &str = " abuse advocate alternate articulate associate attribute compound conduct conflict \
    console content contest contract converse convict delegate deliberate desert dictate digest discount \
    duplicate elaborate entrance estimate excuse export extract graduate import incense increase insert \
    insult intimate moderate object perfect permit present produce progress project rebel recall record \
    refuse reject rerun separate sow subject survey suspect tear transfer transport upset use wind ";

const VERB_AFTER: &str = " will would can could shall should may might must do does did don't doesn't \
    didn't won't can't cannot couldn't wouldn't shouldn't mustn't let's i we they you who i'll we'll \
    you'll they'll he'll she'll it'll i'd please let help helped make makes made ";

const NOUN_AFTER: &str = " a an the my your his her its our their this these those some any no every \
    each another of with in for by from such ";

/// Words of one kind that stand between an auxiliary and its verb.
const BETWEEN: &str = " not never always also ever often then just only still soon really all both even \
    now quickly slowly gently i you he she it we they ";

/// In front of "to" where a noun follows it.
const NOUN_AFTER_TO: &str = " due according contrary response addition access exposed close next led leads \
    amount amounts subject thanks prior reaction ";

const OBJECTS: &str = " the a an my your his her its our their this that these those it them him me us \
    yourself himself herself themselves everything all ";

fn listed(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_ascii_whitespace().any(|listed| listed == word)
}

/// A word of a sentence, and the words around it.
struct Place<'a> {
    words: &'a [Tagged<'a>],
    at: usize,
}

impl Place<'_> {
    /// The word so many places in front, 1 for the next before.
    fn back(&self, by: usize) -> &str {
        let word = self.at.checked_sub(by).and_then(|at| self.words.get(at));
        word.map_or("", |word| word.lower.as_str())
    }

    fn next(&self) -> &str {
        let behind = self
            .words
            .get(self.at)
            .is_some_and(|word| !word.after.is_empty());
        let word = self.words.get(self.at + 1).filter(|_| !behind);
        word.map_or("", |word| word.lower.as_str())
    }

    fn tag(&self) -> &str {
        self.words.get(self.at).map_or("", |word| word.tag.as_str())
    }

    fn tag_before(&self) -> &str {
        let word = self.at.checked_sub(1).and_then(|at| self.words.get(at));
        word.map_or("", |word| word.tag.as_str())
    }

    /// Whether the word begins a clause.
    fn begins(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.words.get(at));
        before.is_none_or(|word| !word.after.is_empty())
    }

    /// Whether any other word of the sentence is in the list.
    fn near(&self, list: &str) -> bool {
        self.words
            .iter()
            .enumerate()
            .any(|(at, word)| at != self.at && listed(list, &word.lower))
    }

    /// The nearest word in front that is not between an auxiliary and its verb, within the clause.
    fn governor(&self) -> &str {
        for by in 1..=4 {
            let at = self.at.checked_sub(by).and_then(|at| self.words.get(at));
            let Some(word) = at.filter(|word| word.after.is_empty()) else {
                return "";
            };
            if !listed(BETWEEN, &word.lower) {
                return &word.lower;
            }
        }
        ""
    }

    /// Verb or noun by the word in front, where that is clear.
    fn is_verb(&self) -> Option<bool> {
        if self.begins() {
            return listed(OBJECTS, self.next()).then_some(true);
        }
        let before = self.back(1);
        if before == "to" {
            return Some(!listed(NOUN_AFTER_TO, self.back(2)));
        }
        if listed(VERB_AFTER, before) {
            return Some(true);
        }
        if listed(NOUN_AFTER, before) {
            return Some(false);
        }
        if listed(BETWEEN, before) {
            let governor = self.governor();
            return (governor == "to" || listed(VERB_AFTER, governor)).then_some(true);
        }
        let described = self.tag_before().starts_with("JJ") && listed(NOUN_AFTER, self.back(2));
        described.then_some(false)
    }
}

/// The sounds of the word at a place, where a rule knows better than the tagger.
pub(super) fn choose(words: &[Tagged<'_>], at: usize, accent: Accent) -> Option<Choice> {
    let place = Place { words, at };
    let word = words.get(at)?;
    let gb = accent == Accent::Gb;
    match word.lower.as_str() {
        "read" | "reread" => Some(read(&place)),
        "wound" => Some(wound(&place)),
        "lead" => lead(&place),
        "bass" => Some(bass(&place)),
        "close" => close(&place),
        "live" => live(&place),
        "lives" => lives(&place),
        "dove" => Some(dove(&place)),
        "row" => row(&place),
        "bow" => bow(&place),
        "bows" | "bowed" => bent(&place),
        "minute" => Some(minute(&place)),
        "polish" => polish(&place, word.text, gb),
        "resume" => resume(&place),
        "tear" if place.back(1) == "a" && matches!(place.next(), "in" | "up") => Some(As("VB")),
        "content" if matches!(place.next(), "with" | "to") => Some(As("JJ")),
        "wind" if matches!(place.next(), "up" | "down") && !listed(NOUN_AFTER, place.back(1)) => {
            Some(As("VB"))
        }
        "use" if matches!(place.next(), "of") => Some(As("NN")),
        "moderate" | "separate" | "elaborate" | "deliberate" | "intimate" | "perfect"
        | "present"
            if place.tag() == "JJ" =>
        {
            Some(As("JJ"))
        }
        lower if listed(PAIRS, lower) => match place.is_verb()? {
            true => Some(As("VB")),
            false if place.tag().starts_with("JJ") => Some(As("JJ")),
            false => Some(As("NN")),
        },
        _ => None,
    }
}

/// Present as "seed", past as "bed".
fn read(place: &Place<'_>) -> Choice {
    const PRESENT: Choice = As("VB");
    const PAST: Choice = As("VBD");
    const PERFECT: &str = " have has had having be been being was were is are am isn't wasn't weren't \
        haven't hasn't hadn't i've you've we've they've he's she's it's got gets being well ";
    const PAST_TIME: &str =
        " yesterday ago last once earlier then twice when before after while already ";
    const PRESENT_TIME: &str = " every always often usually sometimes daily weekly monthly now today \
        tomorrow mostly rarely seldom whenever ";
    let governor = place.governor();
    if listed(PERFECT, governor) && governor != "well" {
        return PAST;
    }
    if governor == "to" || listed(VERB_AFTER, governor) && !listed(" i we they you who ", governor)
    {
        return PRESENT;
    }
    if listed(NOUN_AFTER, place.back(1)) || place.tag().starts_with("NN") && place.back(2) == "a" {
        return PRESENT;
    }
    if place.near(PRESENT_TIME) {
        return PRESENT;
    }
    if place.near(PAST_TIME) {
        return PAST;
    }
    if listed(" he she it ", place.back(1)) {
        return PAST;
    }
    let past_elsewhere = place
        .words
        .iter()
        .enumerate()
        .any(|(at, word)| at != place.at && word.tag == "VBD");
    if past_elsewhere {
        return PAST;
    }
    if place.begins() {
        return if place.tag() == "VBN" { PAST } else { PRESENT };
    }
    if listed(" i you we they ", place.back(1)) {
        let past = matches!(place.tag(), "VBD" | "VBN");
        return if past { PAST } else { PRESENT };
    }
    // A name or noun in the singular would have "reads".
    let singular = matches!(place.tag_before(), "NN" | "NNP");
    if singular || matches!(place.tag(), "VBD" | "VBN") {
        PAST
    } else {
        PRESENT
    }
}

/// Of winding as "sound", of injuries as "mooned".
fn wound(place: &Place<'_>) -> Choice {
    const WINDING: Choice = As("VBD");
    const INJURY: Choice = As("NN");
    const ONWARD: &str = " up down around round through along its back past between across into ";
    let before = place.back(1);
    if before == "to" || listed(" will would can could might may did not ", before) {
        return INJURY;
    }
    if listed(ONWARD, place.next()) {
        return WINDING;
    }
    if listed(NOUN_AFTER, before) || place.tag_before().starts_with("JJ") {
        return INJURY;
    }
    let subject = listed(
        " he she it they we i you who and that then slowly carefully ",
        before,
    ) || place.tag_before().starts_with("NN");
    if subject && (listed(OBJECTS, place.next()) || place.tag().starts_with("VB")) {
        return WINDING;
    }
    if listed(" was were been is tightly ", before) && place.tag().starts_with("VB") {
        return WINDING;
    }
    INJURY
}

/// The metal as "bed".
fn lead(place: &Place<'_>) -> Option<Choice> {
    const METAL: Choice = Sounds("lˈɛd");
    const OF_METAL: &str = " pipe pipes paint poisoning roof roofs weight weights pencil pencils bullet bullets \
        crystal shot sheet sheets foil glass acid mine mines ore coffin soldier soldiers lined free shield \
        ingot ingots apron plates dust level levels content ";
    const IN_FRONT: &str = " molten melted liquid white solid pure heavy pencil ";
    if listed(OF_METAL, place.next()) || listed(IN_FRONT, place.back(1)) {
        return Some(METAL);
    }
    let like = place.back(1) == "as" && place.back(3) == "as" || place.back(1) == "like";
    let material = listed(" of from into ", place.back(1)) && !listed(OBJECTS, place.next());
    (like
        || material
        || place.back(1) == "and" && place.near(" tin zinc copper iron steel mercury "))
    .then_some(METAL)
}

/// The fish as "mass", the music as "face".
fn bass(place: &Place<'_>) -> Choice {
    const MUSIC: Choice = Sounds("bˈAs");
    const FISH: Choice = As("NN");
    const PLAYED: &str = " player players guitar guitars drum drums line lines clef voice note notes solo \
        singer boost string strings amp part tone and ";
    const SWIMMING: &str =
        " swam swims swim swimming fishing boat boats lake fillet fillets season bit ";
    const FISHED: &str = " fish fishing fisherman caught catch lake river pond sea water trout rod bait grilled \
        fried swam swim largemouth striped smallmouth perch salmon hook ";
    if listed(SWIMMING, place.next()) || listed(" sea striped grilled fried ", place.back(1)) {
        return FISH;
    }
    if listed(PLAYED, place.next())
        || listed(" double electric upright plays played play ", place.back(1))
    {
        return MUSIC;
    }
    if place.near(FISHED) { FISH } else { MUSIC }
}

/// To shut as "nose", near as "dose".
fn close(place: &Place<'_>) -> Option<Choice> {
    const SHUT: Choice = As("VB");
    const NEAR: Choice = As("JJ");
    if listed(
        " to by enough behind together friend friends call ",
        place.next(),
    ) && place.back(1) != "to"
    {
        return Some(NEAR);
    }
    if listed(
        " stay stayed stand stood come came keep kept get got too so very how as pretty is was were are \
         be been held hold drew draw sat sit up this that ",
        place.back(1),
    ) {
        return Some(NEAR);
    }
    if place.is_verb() == Some(true) || listed(OBJECTS, place.next()) {
        return Some(SHUT);
    }
    if place.back(1) == "a" || place.back(1) == "the" && place.next() != "of" {
        return place.next().is_empty().then_some(SHUT).or(Some(NEAR));
    }
    None
}

/// To be alive as "give", not recorded as "five".
fn live(place: &Place<'_>) -> Option<Choice> {
    const DWELL: Choice = As("VB");
    const ALIVE: Choice = As("JJ");
    const SHOWN: &str = " show shows music audience audiences broadcast broadcasts concert concerts performance \
        performances wire wires ammunition stream streams coverage band bands recording recordings version \
        album event events action animals animal fire rounds bait television tv radio report reports feed ";
    if listed(SHOWN, place.next()) {
        return Some(ALIVE);
    }
    if listed(
        " go goes going went broadcast recorded streamed performed streaming reporting ",
        place.back(1),
    ) {
        return Some(ALIVE);
    }
    if place.is_verb() == Some(true)
        || listed(
            " in on at with by for here there alone together ",
            place.next(),
        )
    {
        return Some(DWELL);
    }
    listed(" a the ", place.back(1)).then_some(ALIVE)
}

fn lives(place: &Place<'_>) -> Option<Choice> {
    if listed(
        " he she it who nobody everyone everybody somebody someone one that ",
        place.back(1),
    ) {
        return Some(As("VBZ"));
    }
    let noun = listed(NOUN_AFTER, place.back(1)) || place.tag_before() == "CD";
    noun.then_some(As("NNS"))
}

/// The bird as "love", went under as "stove".
fn dove(place: &Place<'_>) -> Choice {
    let noun = listed(NOUN_AFTER, place.back(1)) || place.tag_before().starts_with("JJ");
    let moves = listed(
        " into in under down for from off through deep beneath below ",
        place.next(),
    );
    let subject = listed(" he she it they we i who that and then ", place.back(1));
    if !noun && (subject || moves) {
        As("VBD")
    } else {
        As("NN")
    }
}

/// A quarrel as "cow", a line as "go".
fn row(place: &Place<'_>) -> Option<Choice> {
    const QUARREL: &str = " about over with between broke erupted ";
    const LOUD: &str =
        " blazing furious terrible bitter angry almighty flaming violent family huge ";
    let counted = listed(
        " in front back first second third last each every per ",
        place.back(1),
    );
    let quarrel = listed(QUARREL, place.next()) || listed(LOUD, place.back(1));
    let had = listed(" a another ", place.back(1))
        && listed(" had have having started ", place.back(2))
        && !matches!(place.next(), "of");
    (!counted && (quarrel || had)).then_some(Sounds("ɹˈW"))
}

/// To bend, and a ship's front, as "cow"; of arrows, strings and ribbons as "go".
fn bow(place: &Place<'_>) -> Option<Choice> {
    const SHIP: &str = " ship ships ship's boat boat's stern hull deck port starboard sailor sailors waves vessel ";
    const STRUNG: &str = " arrow arrows violin cello tie ties ribbon string archer archers hair ";
    if place.near(STRUNG) {
        return Some(As("NN"));
    }
    let taken = listed(" take takes took taking ", place.back(2)) && place.back(1) == "a"
        || listed(" deep final low polite last slight ", place.back(1));
    let bends = place.is_verb() == Some(true) || listed(" down before to ", place.next());
    (taken || bends || place.near(SHIP)).then_some(As("VB"))
}

fn bent(place: &Place<'_>) -> Option<Choice> {
    let bends = listed(
        " down before to his her their out low deeply and ",
        place.next(),
    );
    let lower = place
        .words
        .get(place.at)
        .map_or("", |word| word.lower.as_str());
    match lower {
        "bowed" => Some(Sounds("bˈWd")),
        _ => bends.then_some(Sounds("bˈWz")),
    }
}

/// Tiny as "my-NEWT", of time as "MIN-it".
fn minute(place: &Place<'_>) -> Choice {
    const TINY: &str = " detail details amount amounts particle particles trace traces quantity quantities \
        difference differences fraction fractions changes creature creatures crack cracks specks grains ";
    let tiny = listed(TINY, place.next()) || listed(" very so too most ", place.back(1));
    if tiny { As("JJ") } else { As("NN") }
}

/// Of Poland with a capital inside a sentence, or at its start before a noun.
fn polish(place: &Place<'_>, text: &str, gb: bool) -> Option<Choice> {
    let capital = text.starts_with('P');
    let verb = place.at == 0 && listed(OBJECTS, place.next());
    let of_poland = Sounds(if gb { "pˈQlɪʃ" } else { "pˈOlɪʃ" });
    let plain = Sounds(if gb { "pˈɒlɪʃ" } else { "pˈɑlɪʃ" });
    Some(if capital && !verb { of_poland } else { plain })
}

/// A summary of a life with its last letter said.
fn resume(place: &Place<'_>) -> Option<Choice> {
    let noun = listed(NOUN_AFTER, place.back(1)) || place.tag_before().starts_with("JJ");
    noun.then_some(Sounds("ɹˈɛzəmˌA"))
}
