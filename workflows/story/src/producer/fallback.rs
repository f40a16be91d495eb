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

/// Plain doings of one language, and ways to do them.
struct Plain {
    language: &'static str,
    thing: bool,
    doings: &'static [&'static str],
    ways: &'static [&'static str],
}

const PLAIN: &[Plain] = &[
    Plain {
        language: "en",
        thing: false,
        doings: &[
            "walks in slowly",
            "stops and looks around",
            "bends down",
            "turns to the window",
            "sits down",
            "looks up",
        ],
        ways: &[
            "without a word",
            "as the light changes",
            "and waits for a moment",
            "in the wind",
            "close to the wall",
            "with both hands open",
            "and does not move",
        ],
    },
    Plain {
        language: "en",
        thing: true,
        doings: &[
            "lies there",
            "catches the light",
            "stands alone",
            "is close now",
            "rests",
        ],
        ways: &[
            "in the half dark",
            "while the wind rises",
            "with dust on it",
            "where it was left",
            "under a grey sky",
            "beside the open door",
            "as if nobody had seen it",
        ],
    },
    Plain {
        language: "zh",
        thing: false,
        doings: &["慢慢走来", "停在门口", "抬头望天", "静静等待", "转过身去"],
        ways: &[
            "，天色渐暗",
            "，风吹了起来",
            "，灯光亮着",
            "，四周无人",
            "，雨还没停",
            "，窗外很静",
        ],
    },
    Plain {
        language: "zh",
        thing: true,
        doings: &[
            "就在眼前",
            "静静留在原处",
            "映着微光",
            "落在地上",
            "离得很近",
        ],
        ways: &[
            "，天色渐暗",
            "，风吹了起来",
            "，灯光亮着",
            "，四周无人",
            "，雨还没停",
            "，窗外很静",
        ],
    },
    Plain {
        language: "ar",
        thing: false,
        doings: &[
            "هنا في الضوء",
            "قرب الباب",
            "تحت السماء",
            "عند النافذة",
            "في الظلام",
        ],
        ways: &[
            "والريح هادئة",
            "قبل المساء",
            "والمطر بعيد",
            "في الصباح",
            "دون كلام",
            "بعد الغروب",
        ],
    },
    Plain {
        language: "de",
        thing: false,
        doings: &[
            "kommt langsam näher",
            "bleibt stehen",
            "dreht sich um",
            "setzt sich ans Fenster",
            "blickt nach oben",
        ],
        ways: &[
            "ohne ein Wort",
            "im letzten Licht",
            "und wartet einen Moment",
            "im Wind",
            "dicht an der Wand",
            "und rührt sich nicht",
        ],
    },
    Plain {
        language: "de",
        thing: true,
        doings: &[
            "ist jetzt ganz nah",
            "liegt im Halbdunkel",
            "steht allein da",
            "glänzt im Regen",
            "bleibt zurück",
        ],
        ways: &[
            "ohne ein Geräusch",
            "im letzten Licht",
            "unter grauem Himmel",
            "vor der offenen Tür",
            "wie am ersten Tag",
            "während der Wind auffrischt",
        ],
    },
    Plain {
        language: "fr",
        thing: false,
        doings: &[
            "avance lentement",
            "s'arrête sur le seuil",
            "se retourne",
            "reste près de la fenêtre",
            "lève les yeux",
        ],
        ways: &[
            "sans un mot",
            "dans la dernière lumière",
            "et attend un instant",
            "dans le vent",
            "tout contre le mur",
            "sans faire un geste",
        ],
    },
    Plain {
        language: "es",
        thing: false,
        doings: &[
            "avanza despacio",
            "se detiene en la puerta",
            "se da la vuelta",
            "espera junto a la ventana",
            "mira hacia arriba",
        ],
        ways: &[
            "sin decir palabra",
            "con la última luz",
            "durante un momento",
            "en medio del viento",
            "muy cerca del muro",
            "sin hacer ruido",
        ],
    },
    Plain {
        language: "ja",
        thing: false,
        doings: &[
            "はゆっくり歩いてくる",
            "は戸口で立ち止まる",
            "は空を見上げる",
            "は静かに待つ",
            "は振り返る",
        ],
        ways: &[
            "、日が暮れていく",
            "、風が強くなる",
            "、明かりがともる",
            "、あたりには誰もいない",
            "、雨はまだやまない",
            "、窓の外は静かだ",
        ],
    },
    Plain {
        language: "ru",
        thing: false,
        doings: &[
            "медленно подходит ближе",
            "останавливается у двери",
            "смотрит в окно",
            "ждёт у стены",
            "смотрит вверх",
        ],
        ways: &[
            "без единого слова",
            "в последнем свете",
            "и не двигается",
            "на ветру",
            "под серым небом",
            "в полной тишине",
        ],
    },
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
    let stop = premise.writing.full_stop();
    let own = PLAIN
        .iter()
        .find(|plain| plain.language == premise.language && plain.thing == thing);
    // What holds for people and things alike is in the tables once, as people's.
    let own = own.or_else(|| {
        PLAIN
            .iter()
            .find(|plain| plain.language == premise.language)
    });
    let Some(Plain { doings, ways, .. }) = own else {
        return listed(premise, subject, number);
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
