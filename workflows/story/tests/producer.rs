//! The producer with scripted models: what holds whatever the model says. Real models are tried
//! where they are loaded.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::BTreeSet;

use engine_base::{CancelToken, Code};
use flow_story::*;
use flow_timeline::FilmFormat;

const PREMISES: [&str; 10] = [
    "A lighthouse keeper finds a message in a bottle that was written by herself.",
    "Two rival chefs must share one kitchen on a night train across the desert.",
    "The last bus driver of a drowned city waits for a passenger.",
    "A deaf boy teaches an old violin maker to hear the forest again.",
    "Ada and Lin restore their grandfather's clock before the town floods.",
    "A robot in an abandoned factory plants a garden.",
    "A postman delivers a letter that is forty years late.",
    "Three sisters race a snowstorm to bring the sheep home.",
    "An astronaut repairs a radio while the station loses its light.",
    "A cat leads a lonely widow through the night market.",
];

/// A small random number by position.
fn mixed(seed: u64, at: u64) -> usize {
    let mut x = seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    x = (x ^ (x >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    (x ^ (x >> 33)) as usize
}

fn pick<'a>(list: &[&'a str], seed: u64, at: u64) -> &'a str {
    list[mixed(seed, at) % list.len()]
}

/// A model that mostly does as told: sentences of random words in the place of sense.
struct Scripted {
    kind: LlmKind,
    /// Of ten replies, how many are spoilt.
    spoilt: usize,
    asked: Vec<LlmRequest>,
}

impl Scripted {
    fn new(kind: LlmKind, spoilt: usize) -> Self {
        Self {
            kind,
            spoilt,
            asked: Vec::new(),
        }
    }
}

const ADVERBS: [&str; 12] = [
    "slowly", "twice", "again", "softly", "early", "alone", "outside", "below", "nearby",
    "upstairs", "first", "quickly",
];
const VERBS: [&str; 14] = [
    "opens", "lifts", "drops", "carries", "paints", "folds", "hides", "turns", "breaks", "lights",
    "ties", "wipes", "counts", "pushes",
];
const THINGS: [&str; 20] = [
    "gate", "rope", "candle", "basket", "window", "shovel", "blanket", "stone", "ladder", "wheel",
    "lantern", "kettle", "mirror", "boot", "hammer", "curtain", "barrel", "glove", "feather",
    "coin",
];
const PLACES: [&str; 14] = [
    "wall", "stairs", "river", "road", "bench", "roof", "cellar", "bridge", "market", "harbour",
    "meadow", "stove", "tower", "fence",
];

impl Llm for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn kind(&self) -> LlmKind {
        self.kind
    }

    fn complete(&mut self, request: &LlmRequest, _: &CancelToken) -> Result<LlmReply, LlmError> {
        self.asked.push(request.clone());
        let schema = request.schema.as_ref().unwrap();
        let field = schema["required"][0].as_str().unwrap();
        // What is asked stands in the last question that has a story; advice may follow it.
        let question = request
            .messages
            .iter()
            .rev()
            .find(|m| m.text.starts_with("Story: "));
        let question = question.map_or("", |message| message.text.as_str());
        let after = |mark: &str| question.rsplit_once(mark).map(|(_, rest)| rest);
        let seed = request.seed;
        let of = |list: &[&'static str], at| pick(list, seed, at);
        let text = match field {
            "action" | "scene" => {
                let subject = after("\nShow: ").or_else(|| after("\nTell: ")).unwrap();
                format!(
                    "{subject} {} the {} {} by the {}.",
                    of(&VERBS, 1),
                    of(&THINGS, 2),
                    of(&ADVERBS, 3),
                    of(&PLACES, 4)
                )
            }
            "line" => format!(
                "{} {} my {} {} the {}.",
                of(&["We", "Nobody", "They", "Somebody", "Who"], 5),
                of(&["wanted", "sold", "found", "kept", "lost"], 6),
                of(&THINGS, 7),
                of(&["near", "behind", "under", "above"], 8),
                of(&PLACES, 9)
            ),
            "name" => of(&["Mira", "Petro", "Salim", "Greta", "Bo", "Anneke"], 10).to_owned(),
            "place" => format!(
                "the {} {}",
                of(&["stone", "wooden", "empty"], 11),
                of(&PLACES, 12)
            ),
            "look" => format!(
                "{} coat, {} eyes",
                of(&["red", "blue"], 13),
                of(&["dark", "tired"], 14)
            ),
            "title" => format!("The {} Door", of(&["Stone", "Quiet", "Other"], 15)),
            _ => format!(
                "Somebody {} a {} and leaves the {} behind.",
                of(&VERBS, 16),
                of(&THINGS, 17),
                of(&PLACES, 18)
            ),
        };
        let good = serde_json::json!({ field: text }).to_string();
        let reply = if mixed(seed, 99) % 10 < self.spoilt {
            match mixed(seed, 98) % 5 {
                0 => "As an AI language model I cannot.".to_owned(),
                1 => format!(
                    "```json\n{{'{field}': 'In this scene, the camera shows the audience.',}}"
                ),
                2 => format!("{{\"{field}\": 12}}"),
                3 => format!("{{\"{field}\": \"x\"}}"),
                _ => return Err(LlmError::passing(Code::Refused, "no")),
            }
        } else {
            good
        };
        Ok(LlmReply {
            tokens: reply.split(' ').count(),
            text: reply,
            mean_logprob: None,
        })
    }
}

fn options(secs: i64, seed: u64) -> ProduceOptions {
    ProduceOptions {
        seed,
        length: Length::secs(secs),
        sounds: ["ambience-sea", "ambience-room", "bed-dawn", "bed-tide"]
            .map(str::to_owned)
            .to_vec(),
        ..ProduceOptions::default()
    }
}

fn make(premise: &str, options: &ProduceOptions, llm: &mut Scripted) -> Produced {
    let made = produce(premise, options, llm, &mut |_| {}, &CancelToken::new());
    made.unwrap_or_else(|error| panic!("{premise}: {error}"))
}

/// What has to hold for every script: valid, to the frame, and the same after JSON.
fn sound(made: &Produced, options: &ProduceOptions) {
    let script = &made.script;
    let plan = plan_film(script, &options.format, &Assets::default()).unwrap();
    assert_eq!(plan.frames, options.length.frames(options.format.fps));
    let again = parse_json(&to_json(script)).unwrap().script;
    assert_eq!(&again, script, "origins and all survive JSON");
    let markdown = parse_markdown(&to_markdown(script)).unwrap().script;
    assert_eq!(markdown.shots().count(), script.shots().count());
    for shot in script.shots() {
        assert!(shot.by.get("action").is_some() && shot.by.get("move") == Some(By::Rule));
    }
    let warnings = lint(
        script,
        &Default::default(),
        &options.format,
        &Assets::default(),
    );
    let hard = warnings
        .iter()
        .filter(|each| !each.rule.starts_with("unused"));
    assert_eq!(hard.collect::<Vec<_>>(), Vec::<&Warning>::new());
}

fn distinct_2(script: &Script) -> f64 {
    let texts = script.shots().flat_map(|shot| {
        std::iter::once(shot.action.clone()).chain(shot.lines.iter().map(|line| line.text.clone()))
    });
    let (mut all, mut different) = (0, BTreeSet::new());
    for text in texts {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        for pair in words.windows(2) {
            all += 1;
            different.insert((pair[0].clone(), pair[1].clone()));
        }
    }
    different.len() as f64 / f64::from(all)
}

#[test]
fn ten_premises_become_films_by_the_model() {
    let mut films = BTreeSet::new();
    for premise in PREMISES {
        let options = options(45, 1);
        let made = make(
            premise,
            &options,
            &mut Scripted::new(LlmKind::Constrained, 2),
        );
        sound(&made, &options);
        let told = Premise::read(premise).unwrap();
        let script = &made.script;
        for scene in &script.scenes {
            let seen: String = scene
                .shots
                .iter()
                .map(|shot| shot.action.to_lowercase() + " ")
                .collect();
            let named = told
                .nouns
                .iter()
                .any(|noun| seen.contains(&noun.to_lowercase()))
                || script
                    .cast
                    .iter()
                    .any(|member| seen.contains(&member.name.to_lowercase()));
            assert!(named, "{premise}: {} names nothing of it: {seen}", scene.id);
        }
        let mut texts = BTreeSet::new();
        for shot in script.shots() {
            assert!(
                texts.insert(shot.action.clone()),
                "{premise}: twice {:?}",
                shot.action
            );
            assert_eq!(shot.by.get("action"), Some(By::Model));
            for line in &shot.lines {
                assert!(
                    texts.insert(line.text.clone()),
                    "{premise}: twice {:?}",
                    line.text
                );
                assert_eq!(line.by.get("text"), Some(By::Model));
            }
        }
        assert!(
            distinct_2(script) >= 0.6,
            "{premise}: {}",
            distinct_2(script)
        );
        assert!(
            made.counts.shots_clean * 10 >= made.counts.shots * 9,
            "{:?}",
            made.counts
        );
        assert!(
            films.insert(to_json(script)),
            "{premise}: the same as another"
        );
    }
}

#[test]
fn seeds_decide_and_nothing_else_does() {
    let film = |premise: &str, seed| {
        to_json(
            &make(
                premise,
                &options(30, seed),
                &mut Scripted::new(LlmKind::Constrained, 3),
            )
            .script,
        )
    };
    assert_eq!(film(PREMISES[0], 5), film(PREMISES[0], 5));
    assert_ne!(film(PREMISES[0], 5), film(PREMISES[0], 6));
    assert_ne!(film(PREMISES[0], 5), film(PREMISES[1], 5));
}

#[test]
fn every_length_and_rate_is_met_to_the_frame() {
    for (secs, rate) in [
        (5, "24"),
        (15, "24"),
        (45, "30000/1001"),
        (61, "25"),
        (97, "50"),
        (600, "24"),
    ] {
        let mut options = options(secs, 3);
        options.format = FilmFormat {
            fps: rate.parse().unwrap(),
            ..FilmFormat::DEFAULT
        };
        let made = make(
            PREMISES[1],
            &options,
            &mut Scripted::new(LlmKind::Constrained, 1),
        );
        sound(&made, &options);
    }
    for secs in [0, 4, 601] {
        let got = produce(
            PREMISES[0],
            &options(secs, 0),
            &mut Scripted::new(LlmKind::Remote, 0),
            &mut |_| {},
            &CancelToken::new(),
        );
        assert!(
            matches!(got, Err(ProduceError::Length { .. })),
            "{secs}: {got:?}"
        );
    }
}

#[test]
fn a_remote_model_is_told_what_was_wrong() {
    let mut llm = Scripted::new(LlmKind::Remote, 5);
    let options = options(30, 2);
    sound(&make(PREMISES[2], &options, &mut llm), &options);
    let advised = llm.asked.iter().filter(|request| {
        request
            .messages
            .last()
            .is_some_and(|last| last.text.starts_with("That will not do: "))
    });
    assert!(advised.count() > 5);
    assert!(
        llm.asked
            .iter()
            .all(|request| request.system.contains("Reply with JSON"))
    );
    assert!(llm.asked.iter().all(|request| {
        !request
            .schema
            .as_ref()
            .unwrap()
            .to_string()
            .contains("pattern")
    }));
}

#[test]
fn a_model_that_never_does_as_told_leaves_a_film_by_rule() {
    for premise in [
        PREMISES[0],
        "灯塔守塔人发现了一个漂流瓶。",
        "حارس المنارة يجد رسالة في زجاجة.",
        "🐙🚀",
        "Ein Leuchtturmwärter findet eine Flasche.",
        "등대지기가 병을 발견한다.",
        "Смотритель маяка находит бутылку.",
    ] {
        let options = ProduceOptions {
            tries: 3,
            ..options(45, 1)
        };
        struct Silent;
        impl Llm for Silent {
            fn name(&self) -> &str {
                "silent"
            }
            fn kind(&self) -> LlmKind {
                LlmKind::Remote
            }
            fn complete(&mut self, _: &LlmRequest, _: &CancelToken) -> Result<LlmReply, LlmError> {
                Ok(LlmReply {
                    text: "I would rather not.".into(),
                    tokens: 4,
                    mean_logprob: None,
                })
            }
        }
        let made = produce(
            premise,
            &options,
            &mut Silent,
            &mut |_| {},
            &CancelToken::new(),
        )
        .unwrap();
        sound(&made, &options);
        let actions: BTreeSet<&str> = made
            .script
            .shots()
            .map(|shot| shot.action.as_str())
            .collect();
        assert_eq!(actions.len(), made.counts.shots, "{premise}: {actions:?}");
        assert!(
            made.script
                .shots()
                .all(|shot| shot.by.get("action") == Some(By::Rule))
        );
        assert_eq!(made.script.lines().count(), 0);
        assert_eq!(
            made.script.language,
            Premise::read(premise).unwrap().language
        );
    }
}

#[test]
fn a_model_that_is_gone_and_a_person_who_stops_end_the_work() {
    struct Gone;
    impl Llm for Gone {
        fn name(&self) -> &str {
            "gone"
        }
        fn kind(&self) -> LlmKind {
            LlmKind::Remote
        }
        fn complete(&mut self, _: &LlmRequest, _: &CancelToken) -> Result<LlmReply, LlmError> {
            Err(LlmError::new(Code::Io, "nobody answers"))
        }
    }
    let got = produce(
        PREMISES[0],
        &options(30, 0),
        &mut Gone,
        &mut |_| {},
        &CancelToken::new(),
    );
    let error = got.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().contains("nobody answers")),
        (Code::Io, true)
    );
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let mut steps = 0;
    let got = produce(
        PREMISES[0],
        &options(30, 0),
        &mut Scripted::new(LlmKind::Constrained, 0),
        &mut |event| {
            steps += 1;
            assert!(event.step <= event.of);
            if steps == 5 {
                stop.cancel();
            }
        },
        &cancel,
    );
    assert_eq!(got.unwrap_err().code(), Code::Cancelled);
    assert_eq!(steps, 5);
}

#[test]
fn pictures_go_to_shots_and_colours_to_the_rest() {
    let names = ["harbour-boats.jpg", "stone-tower.png", "old-road.jpg"];
    let mut options = options(30, 4);
    options.pictures = names
        .map(|name| Picture {
            name: name.to_owned(),
            caption: String::new(),
        })
        .to_vec();
    let made = make(
        PREMISES[0],
        &options,
        &mut Scripted::new(LlmKind::Constrained, 0),
    );
    sound(&made, &options);
    let used: Vec<&str> = made
        .script
        .shots()
        .map(|shot| shot.picture.as_str())
        .collect();
    assert_eq!(used.iter().collect::<BTreeSet<_>>().len(), 3, "{used:?}");
    assert!(used.windows(2).all(|pair| pair[0] != pair[1]), "{used:?}");
    assert!(
        made.script
            .shots()
            .all(|shot| shot.by.get("picture") == Some(By::Rule) && shot.colour.is_none())
    );
    let without = make(
        PREMISES[0],
        &ProduceOptions {
            pictures: Vec::new(),
            ..options
        },
        &mut Scripted::new(LlmKind::Constrained, 0),
    );
    assert!(
        without
            .notes
            .iter()
            .any(|note| note.contains("draws its own"))
    );
}
