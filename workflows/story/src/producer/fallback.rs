//! Texts by rule, for where the model gives none that will do.

use super::draw::Draw;
use super::premise::{Premise, Writing};

/// Names by writing; Latin ones do for every language written so.
const NAMES: &[(Writing, &[&str])] = &[
    (
        Writing::Latin,
        &[
            "Mara", "Ilan", "Noor", "Tomas", "Edda", "Ravi", "Lena", "Otto",
        ],
    ),
    (
        Writing::Han,
        &["林岚", "周明", "陈雨", "沈青", "何远", "苏叶"],
    ),
    (
        Writing::Japanese,
        &["ハル", "ミナト", "アオイ", "ソラ", "リン"],
    ),
    (Writing::Hangul, &["지우", "하린", "민준", "서연"]),
    (Writing::Arabic, &["ليلى", "سامر", "نور", "هدى", "يوسف"]),
    (Writing::Cyrillic, &["Мира", "Илья", "Нина", "Тимур"]),
    (Writing::Greek, &["Ελένη", "Νίκος", "Άννα"]),
    (Writing::Hebrew, &["נועה", "אורי", "תמר"]),
    (Writing::Devanagari, &["मीरा", "अर्जुन", "नीला"]),
    (Writing::Thai, &["มาลี", "ธาน", "นภา"]),
];

/// A name that is not among `taken`.
pub(crate) fn name(premise: &Premise, taken: &[String], draw: &mut Draw) -> String {
    let names = NAMES
        .iter()
        .find(|(writing, _)| *writing == premise.writing)
        .map_or(NAMES[0].1, |(_, names)| *names);
    let first = draw.below(names.len());
    let free = (0..names.len())
        .map(|at| names[(first + at) % names.len()])
        .find(|name| !taken.iter().any(|each| each == name));
    free.map_or_else(
        || format!("{} {}", names[first], taken.len() + 1),
        str::to_owned,
    )
}

/// Something seen of `subject`, plain enough for any film. `number` keeps them apart.
pub(crate) fn action(premise: &Premise, subject: &str, thing: bool, number: usize) -> String {
    let (english, stop) = (premise.language == "en", premise.writing.full_stop());
    let (doings, ways): (&[&str], &[&str]) = match (premise.writing, english, thing) {
        (Writing::Latin, true, false) => (
            &[
                "walks in slowly",
                "stops and looks around",
                "bends down",
                "turns to the window",
                "sits down",
                "looks up",
            ],
            &[
                "without a word",
                "as the light changes",
                "and waits for a moment",
                "in the wind",
                "close to the wall",
                "with both hands open",
                "and does not move",
            ],
        ),
        (Writing::Latin, true, true) => (
            &[
                "lies there",
                "catches the light",
                "stands alone",
                "is close now",
                "rests",
            ],
            &[
                "in the half dark",
                "while the wind rises",
                "with dust on it",
                "where it was left",
                "under a grey sky",
                "beside the open door",
                "as if nobody had seen it",
            ],
        ),
        (Writing::Han, ..) => (
            &["慢慢走来", "停在门口", "抬头望天", "静静等待", "转过身去"],
            &[
                "，天色渐暗",
                "，风吹了起来",
                "，灯光亮着",
                "，四周无人",
                "，雨还没停",
                "，窗外很静",
            ],
        ),
        (Writing::Arabic, ..) => (
            &[
                "هنا في الضوء",
                "قرب الباب",
                "تحت السماء",
                "عند النافذة",
                "في الظلام",
            ],
            &[
                "والريح هادئة",
                "قبل المساء",
                "والمطر بعيد",
                "في الصباح",
                "دون كلام",
                "بعد الغروب",
            ],
        ),
        _ => return listed(premise, subject, number),
    };
    let doing = doings[number % doings.len()];
    // For one doing the ways come round one after the other, so that no pair comes twice before all.
    let way = ways[(number / doings.len() + 2 * (number % doings.len())) % ways.len()];
    let space = if premise.writing.is_unspaced() {
        ""
    } else {
        " "
    };
    let round = number / (doings.len() * ways.len());
    let again = if round > 0 {
        format!(" ({})", round + 1)
    } else {
        String::new()
    };
    format!("{subject}{space}{doing}{space}{way}{again}{stop}")
}

/// In other languages: the subject with words of the premise, which at least are of the language.
fn listed(premise: &Premise, subject: &str, number: usize) -> String {
    let stop = premise.writing.full_stop();
    let nouns: Vec<&String> = premise
        .nouns
        .iter()
        .filter(|noun| *noun != subject)
        .collect();
    if nouns.is_empty() {
        return format!("{subject} ({}){stop}", number + 1);
    }
    let (one, two) = (
        number % nouns.len(),
        (number / nouns.len() + number + 1) % nouns.len(),
    );
    let round = number / (nouns.len() * nouns.len());
    let again = if round > 0 {
        format!(" ({})", round + 1)
    } else {
        String::new()
    };
    format!(
        "{subject}: {}{} {}{again}{stop}",
        nouns[one],
        premise.writing.comma(),
        nouns[two]
    )
}

/// A first sentence of the premise for a logline.
pub(crate) fn logline(premise: &Premise) -> String {
    super::premise::sentences(&premise.text)
        .first()
        .map_or_else(|| premise.text.clone(), |first| (*first).to_owned())
}

/// A title of what the premise names.
pub(crate) fn title(premise: &Premise) -> String {
    let capital = |word: &str| -> String {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(chars).collect()
        })
    };
    match (premise.nouns.as_slice(), premise.language.as_str()) {
        ([], _) => premise.text.chars().take(24).collect(),
        ([one], "en") => format!("The {}", capital(one)),
        ([one, two, ..], "en") => format!("The {} and the {}", capital(one), capital(two)),
        ([one, ..], _) => capital(one),
    }
}
