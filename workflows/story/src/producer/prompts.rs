//! What the model is asked at each step: instructions, examples, and the shape of the reply.

use serde_json::{Value, json};

use super::premise::{Premise, Writing};
use super::schema;

/// One kind of question to the model. System text and examples are the same for all questions of
/// a kind, so that a local model reads them once.
pub(crate) struct Step {
    /// Standing instructions.
    pub(crate) system: &'static str,
    /// Name of the one field of the reply.
    pub(crate) field: &'static str,
    /// Questions and the texts replied.
    pub(crate) examples: &'static [(&'static str, &'static str)],
}

const BAKERS: &str = "Story: Two rival bakers share one oven in a snowed-in village.";

pub(crate) const LOGLINE: Step = Step {
    system: "You tell what a film is about in one plain sentence.",
    field: "logline",
    examples: &[
        (
            BAKERS,
            "Rosa and Emil must bake for a whole village with one oven and no kind word left.",
        ),
        (
            "Story: A boy finds a map in his grandmother's attic.",
            "A boy follows an old map through his own town and learns who drew it.",
        ),
    ],
};

pub(crate) const TITLE: Step = Step {
    system: "You give films short titles.",
    field: "title",
    examples: &[
        (BAKERS, "One Oven"),
        (
            "Story: A boy finds a map in his grandmother's attic.",
            "The Attic Map",
        ),
        (
            "Story: The last bus driver of a drowned city waits for a passenger.",
            "Last Stop Before the Sea",
        ),
    ],
};

pub(crate) const NAME: Step = Step {
    system: "You give the people in films their first names.",
    field: "name",
    examples: &[
        (
            "Story: Two rival bakers share one oven in a snowed-in village.\nName of the baker",
            "Rosa",
        ),
        (
            "Story: A boy finds a map in his grandmother's attic.\nName of the boy",
            "Jonas",
        ),
        (
            "Story: The last bus driver of a drowned city waits for a passenger.\nName of the bus driver",
            "Marek",
        ),
    ],
};

pub(crate) const LOOK: Step = Step {
    system: "You describe how people and places in films look, in a few plain words.",
    field: "look",
    examples: &[
        (
            "Look of Rosa, the baker",
            "grey braid, flour on both sleeves, heavy wool coat",
        ),
        (
            "Look of Jonas, the boy",
            "ten years old, thin, torn jacket, scratched knees",
        ),
        (
            "Look of the bus stop",
            "rusty shelter, a cracked bench, water up to the kerb",
        ),
    ],
};

pub(crate) const PLACE: Step = Step {
    system: "You name the places where films happen.",
    field: "place",
    examples: &[
        (
            "Story: Two rival bakers share one oven in a snowed-in village.\nThe bakery, and also",
            "the frozen mill",
        ),
        (
            "Story: A boy finds a map in his grandmother's attic.\nThe attic, and also",
            "the old harbour wall",
        ),
        (
            "Story: The last bus driver of a drowned city waits for a passenger.\nThe bus stop, and also",
            "the flooded station",
        ),
    ],
};

pub(crate) const SCENE: Step = Step {
    system: "You tell what happens in a scene of a film, in one short sentence.",
    field: "scene",
    examples: &[
        (
            "Story: Two rival bakers share one oven in a snowed-in village.\nPlace: the bakery\nThe story begins\nTell: Rosa",
            "Rosa finds the oven already hot and another name on the flour.",
        ),
        (
            "Story: A boy finds a map in his grandmother's attic.\nPlace: the old harbour wall\nSomething goes wrong\nTell: Jonas",
            "Jonas follows the map to a wall where the door should be.",
        ),
        (
            "Story: The last bus driver of a drowned city waits for a passenger.\nPlace: the bus stop\nThe story ends\nTell: Marek",
            "Marek opens the doors for a child and starts the engine.",
        ),
    ],
};

pub(crate) const ACTION: Step = Step {
    system: "You write what a film shows, one short sentence at a time. Only what a camera can \
             see.",
    field: "action",
    examples: &[
        (
            "Story: Two rival bakers share one oven in a snowed-in village.\nPlace: the bakery at dawn\nShow: Rosa",
            "Rosa ties her apron and drags a sack of flour to the oven.",
        ),
        (
            "Story: A boy finds a map in his grandmother's attic.\nPlace: the attic in the rain\nShow: The map",
            "The map lies open on the floor while water drips on one corner.",
        ),
        (
            "Story: The last bus driver of a drowned city waits for a passenger.\nPlace: the bus stop at night\nShow: Marek",
            "Marek wipes the fogged window and stares down the empty street.",
        ),
    ],
};

pub(crate) const DIALOGUE: Step = Step {
    system: "You write what people in a film say. One short line, plain words.",
    field: "line",
    examples: &[
        (
            "Story: Two rival bakers share one oven in a snowed-in village.\nSeen: Rosa ties her apron and drags a sack of flour to the oven.\nRosa says",
            "You can have the oven when my bread is done.",
        ),
        (
            "Story: A boy finds a map in his grandmother's attic.\nSeen: Jonas climbs through the attic window.\nJonas says",
            "Somebody drew our street before it was built.",
        ),
        (
            "Story: The last bus driver of a drowned city waits for a passenger.\nSeen: Marek wipes the fogged window.\nMarek says",
            "Somebody will come before the water does.",
        ),
    ],
};

pub(crate) const NARRATION: Step = Step {
    system: "You write what the narrator of a film says. One short line, plain words.",
    field: "line",
    examples: &[
        (
            "Story: Two rival bakers share one oven in a snowed-in village.\nSeen: Snow covers the door of the bakery.\nThe narrator says",
            "That winter the whole village lived on one fire.",
        ),
        (
            "Story: A boy finds a map in his grandmother's attic.\nSeen: The map lies open on the floor while water drips on one corner.\nThe narrator says",
            "The map had waited there longer than he had been alive.",
        ),
        (
            "Story: The last bus driver of a drowned city waits for a passenger.\nSeen: The bus stands in the rain with its lights on.\nThe narrator says",
            "Every night he kept the engine warm for nobody.",
        ),
    ],
};

/// Verbs of what people can be seen doing.
pub(crate) const PERSON_VERBS: &[&str] = &[
    "walks",
    "runs",
    "climbs",
    "kneels",
    "stands",
    "sits",
    "lifts",
    "carries",
    "opens",
    "closes",
    "holds",
    "drops",
    "throws",
    "pulls",
    "pushes",
    "turns",
    "looks at",
    "stares at",
    "points at",
    "reaches for",
    "picks up",
    "puts down",
    "wipes",
    "ties",
    "cuts",
    "digs",
    "writes",
    "paints",
    "knocks on",
    "leans on",
    "waits by",
    "hides",
    "follows",
    "smiles at",
    "whispers to",
    "waves",
    "steps into",
    "crosses",
    "lights",
    "washes",
    "breaks",
    "folds",
    "counts",
    "touches",
    "unlocks",
    "sweeps",
    "pours",
    "packs",
    "hammers",
    "watches",
    "searches",
    "shakes",
    "hangs",
    "burns",
];

/// Verbs of what things can be seen doing.
pub(crate) const THING_VERBS: &[&str] = &[
    "lies",
    "stands",
    "hangs",
    "glows",
    "shines",
    "rolls",
    "swings",
    "falls",
    "rests",
    "shakes",
    "gleams",
    "floats",
    "leans",
    "drifts",
    "rises",
    "sinks",
    "turns",
    "burns",
    "fades",
    "moves",
    "drips",
    "creaks",
    "rattles",
    "waits",
    "trembles",
    "flickers",
    "slides",
    "sways",
    "tips",
    "catches the light",
];

/// Ways in which a spoken line may begin, in groups of which one is taken for each line.
pub(crate) const SPEECH_STARTS: &[&[&str]] = &[
    &["I", "We", "You", "They"],
    &["Who", "Why", "What", "Where", "How"],
    &["Look", "Come", "Wait", "Listen", "Tell", "Give"],
    &["This", "That", "There", "It"],
    &["My", "Your", "Our"],
    &["If", "When", "Before", "Nobody"],
];

/// Ways in which a narrated line may begin.
pub(crate) const NARRATION_STARTS: &[&[&str]] = &[
    &["The", "Every", "Each"],
    &["Nobody", "Somebody", "Everyone", "Nothing"],
    &["That", "This", "Those"],
    &["Once", "Before", "After", "Long"],
    &["In", "At", "On", "Under", "Beyond"],
    &["It", "There", "Some", "Only"],
];

/// English names of languages for instructions.
pub(crate) fn language_name(tag: &str) -> &str {
    match tag {
        "de" => "German",
        "fr" => "French",
        "es" => "Spanish",
        "it" => "Italian",
        "pt" => "Portuguese",
        "nl" => "Dutch",
        "zh" => "Chinese",
        "ja" => "Japanese",
        "ko" => "Korean",
        "ar" => "Arabic",
        "fa" => "Persian",
        "ru" => "Russian",
        "uk" => "Ukrainian",
        "el" => "Greek",
        "he" => "Hebrew",
        "hi" => "Hindi",
        "th" => "Thai",
        _ => "English",
    }
}

/// What a text begins with.
pub(crate) enum Start<'s> {
    /// Anything.
    Any,
    /// This, then a verb of the list.
    Subject(&'s str, &'s [&'s str]),
    /// One of these words.
    Words(&'s [&'s str]),
}

/// A regular expression for a sentence of `least` to `most` words in the premise's writing.
pub(crate) fn sentence_pattern(
    premise: &Premise,
    start: &Start<'_>,
    words: (usize, usize),
    question: bool,
) -> String {
    let writing = premise.writing;
    let letters = writing.letters();
    let (least, most) = words;
    let stop = if question && writing == Writing::Latin {
        "[?]".to_owned()
    } else {
        format!("[{}]", writing.full_stop())
    };
    let comma = writing.comma();
    if writing.is_unspaced() {
        let first = match start {
            Start::Subject(subject, _) => escaped(subject),
            Start::Any | Start::Words(_) => String::new(),
        };
        return format!("{first}[{letters}]{{3,{most}}}({comma}[{letters}]{{3,{most}}})?{stop}");
    }
    // One more word than wanted is allowed and then refused: it tells an end from a cut.
    let rest = |used: usize| {
        let (least, most) = (
            least.saturating_sub(used).max(2),
            most.saturating_sub(used).max(3),
        );
        format!("(,? [{letters}]{{1,12}}){{{least},{}}}{stop}", most + 1)
    };
    match start {
        Start::Any if writing == Writing::Latin => {
            format!("[A-ZÀ-Þ][{letters}]{{0,11}}{}", rest(1))
        }
        Start::Any => format!("[{letters}]{{1,12}}{}", rest(1)),
        Start::Subject(subject, []) => {
            format!("{}{}", escaped(subject), rest(subject.split(' ').count()))
        }
        Start::Subject(subject, verbs) => {
            let verbs: Vec<String> = verbs.iter().map(|verb| escaped(verb)).collect();
            let used = subject.split(' ').count() + 1;
            format!("{} ({}){}", escaped(subject), verbs.join("|"), rest(used))
        }
        Start::Words(words) => format!("({}){}", words.join("|"), rest(1)),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_alphanumeric() && c != ' ' {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Schema of a reply with one text; the pattern is for models that are held to it.
pub(crate) fn reply_schema(field: &str, pattern: Option<&str>, chars_max: usize) -> Value {
    let mut text = json!({ "type": "string" });
    match pattern {
        Some(pattern) => text["pattern"] = json!(format!("^{pattern}$")),
        None => {
            text["minLength"] = json!(1);
            text["maxLength"] = json!(chars_max);
        }
    }
    schema::object(&[(field, text)])
}

/// The verb as it goes with more than one: "walks" to "walk".
pub(crate) fn plural_verb(verb: &str) -> String {
    let (first, rest) = verb
        .split_once(' ')
        .map_or((verb, ""), |(first, rest)| (first, rest));
    let stem = if let Some(stem) = first.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        format!("{stem}y")
    } else if ["shes", "ches", "sses"]
        .iter()
        .any(|ending| first.ends_with(ending))
    {
        first[..first.len() - 2].to_owned()
    } else {
        first.strip_suffix('s').unwrap_or(first).to_owned()
    };
    if rest.is_empty() {
        stem
    } else {
        format!("{stem} {rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_follow_their_subject() {
        for (one, many) in [
            ("walks", "walk"),
            ("carries", "carry"),
            ("lies", "lie"),
            ("pushes", "push"),
            ("catches the light", "catch the light"),
            ("closes", "close"),
        ] {
            assert_eq!(plural_verb(one), many);
        }
    }

    #[test]
    fn patterns_name_the_subject_and_the_writing() {
        let premise = Premise::read("A keeper finds a bottle.").unwrap();
        let start = Start::Subject("Mr. Ito", &["walks", "looks at"]);
        let pattern = sentence_pattern(&premise, &start, (5, 12), false);
        assert!(
            pattern.starts_with("Mr\\. Ito (walks|looks at)(,? ["),
            "{pattern}"
        );
        assert!(pattern.ends_with("{2,10}[.]"), "{pattern}");
        let chinese = Premise::read("守塔人发现了一个漂流瓶。").unwrap();
        let pattern = sentence_pattern(&chinese, &Start::Any, (6, 20), false);
        assert!(pattern.ends_with("[。]"), "{pattern}");
    }
}
