//! Random scripts that hold together.

use engine_base::Rational;
use flow_story::*;
use flow_timeline::{Blend, CardRole, Easing, Fit};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Text with everything that could trip a reader: marks of the form, line breaks, spaces, escapes.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "the glass",
        "NOTE: x",
        " ",
        "  ",
        "\n",
        "\t",
        "\\",
        "\\n",
        "{at: 1 s}",
        "{",
        "}",
        ":",
        "- a",
        "# b",
        "> c",
        "---",
        "(V.O.)",
        "@",
        "é",
        "مرحبا",
        "灯台の光",
        "😀",
        "\u{a0}",
        "\u{2028}",
        ";",
        "a: b",
        "<!-- x -->",
        "\"q\"",
        "MARA: hi",
        "[read](/rɛd/)",
        "*",
        "\\u[41]",
    ]);
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn words() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("w{text}"))
}

fn name() -> impl Strategy<Value = String> {
    select(vec![
        "MARA",
        "McCLANE",
        "മീര",
        "THE NURSE #2",
        "ÉLODIE",
        "@home",
        "a:b (c)",
        "R2D2",
        "tom",
    ])
    .prop_map(str::to_owned)
}

fn file() -> impl Strategy<Value = String> {
    select(vec![
        "a.jpg",
        "sub/b.png",
        "ünï.webp",
        "c {x; y}.wav",
        "d\\e.mp4",
        "- f.ogg",
    ])
    .prop_map(str::to_owned)
}

pub(crate) fn length() -> impl Strategy<Value = Length> {
    prop_oneof![
        (
            1i64..200_000,
            select(vec![1i64, 3, 7, 10, 24, 100, 1000, 1001])
        )
            .prop_map(|(num, den)| { Length::Secs(Rational::new(num, 100 * den).unwrap()) }),
        (1i64..3000).prop_map(Length::Frames),
    ]
}

fn gain() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), -96.0..24.0f64, Just(-12.5)]
}

fn percent() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..=100.0f64, Just(50.0)]
}

fn point() -> impl Strategy<Value = Point> {
    (percent(), percent()).prop_map(|(x_percent, y_percent)| Point {
        x_percent,
        y_percent,
    })
}

fn framing() -> impl Strategy<Value = Framing> {
    let roll = prop_oneof![Just(0.0), -180.0..180.0f64];
    (point(), 0.25..16.0f64, roll).prop_map(|(at, zoom, roll)| Framing { at, zoom, roll })
}

fn camera() -> impl Strategy<Value = Move> {
    let kind = prop_oneof![
        framing().prop_map(MoveKind::Still),
        (0.25..8.0f64, 0.1..8.0f64, point()).prop_map(|(from, by, at)| MoveKind::Push {
            from,
            to: from + by,
            at
        }),
        (0.25..8.0f64, 0.1..8.0f64, point()).prop_map(|(to, by, at)| MoveKind::Pull {
            from: to + by,
            to,
            at
        }),
        (percent(), percent(), percent(), 0.25..16.0f64).prop_map(
            |(from_percent, to_percent, y_percent, zoom)| MoveKind::Pan {
                from_percent,
                to_percent,
                y_percent,
                zoom
            }
        ),
        (percent(), percent(), percent(), 0.25..16.0f64).prop_map(
            |(from_percent, to_percent, x_percent, zoom)| MoveKind::Tilt {
                from_percent,
                to_percent,
                x_percent,
                zoom
            }
        ),
        (-180.0..180.0f64, -180.0..180.0f64, point(), 0.25..16.0f64)
            .prop_map(|(from, to, at, zoom)| MoveKind::Roll { from, to, at, zoom }),
        (framing(), framing()).prop_map(|(from, to)| MoveKind::View { from, to }),
    ];
    let easing = select(vec![
        Easing::Linear,
        Easing::EaseIn,
        Easing::EaseOut,
        Easing::EaseInOut,
    ]);
    prop_oneof![
        Just(Move::STILL),
        (kind, easing).prop_map(|(kind, easing)| Move { kind, easing })
    ]
}

fn line() -> impl Strategy<Value = Line> {
    let speaker = prop_oneof![Just(String::new()), name()];
    let marks = vec(select(vec!["V.O.", "CONT'D", "O.S. (far)", "a:b"]), 0..3);
    let voice = prop_oneof![Just(String::new()), file()];
    (speaker, marks, words(), voice, option::of(length()), gain()).prop_map(
        |(speaker, marks, text, voice, start, gain_db)| Line {
            extensions: marks
                .into_iter()
                .filter(|_| !speaker.is_empty())
                .map(str::to_owned)
                .collect(),
            speaker,
            text,
            voice,
            start,
            gain_db,
            by: Origins::default(),
        },
    )
}

fn title() -> impl Strategy<Value = Title> {
    let role = select(vec![
        CardRole::Title,
        CardRole::Subtitle,
        CardRole::LowerThird,
        CardRole::Credits,
        CardRole::Caption,
    ]);
    (
        role,
        words(),
        option::of(length()),
        option::of(length()),
        option::of(length()),
    )
        .prop_map(|(role, text, start, length, fade)| Title {
            role,
            text,
            start,
            length,
            fade,
        })
}

fn sound() -> impl Strategy<Value = ShotSound> {
    (any::<bool>(), file(), option::of(length()), gain()).prop_map(
        |(effect, file, start, gain_db)| ShotSound {
            kind: if effect {
                ShotSoundKind::Effect
            } else {
                ShotSoundKind::Ambience
            },
            file,
            start: start.filter(|_| effect),
            gain_db,
        },
    )
}

fn shot() -> impl Strategy<Value = Shot> {
    let shows = prop_oneof![
        file().prop_map(|file| (file, None, None)),
        any::<[u8; 3]>().prop_map(|rgb| (String::new(), None, Some(Colour { rgb }))),
        (file(), option::of(length()), option::of(gain())).prop_map(
            |(file, from, sound_gain_db)| {
                (
                    String::new(),
                    Some(VideoUse {
                        file,
                        from,
                        sound_gain_db,
                    }),
                    None,
                )
            }
        ),
    ];
    let blend = select(vec![Blend::CrossFade, Blend::ThroughBlack]);
    let transition = prop_oneof![
        Just(Transition::Cut),
        (blend, length()).prop_map(|(blend, length)| Transition::Blend { blend, length }),
    ];
    let texts = (text(), text(), text(), text());
    let parts = (vec(title(), 0..3), vec(sound(), 0..3), vec(line(), 0..4));
    (
        length(),
        shows,
        camera(),
        transition,
        texts,
        parts,
        any::<[bool; 2]>(),
        0usize..3,
    )
        .prop_map(
            |(
                length,
                (picture, video, colour),
                camera,
                transition,
                texts,
                parts,
                flags,
                follows,
            )| Shot {
                framing: texts.0,
                action: texts.1,
                seed: flags[0].then(|| Seed {
                    value: texts.2.len() as u64 * 1_234_567,
                    locked: flags[1],
                }),
                model: if flags[1] { "stills" } else { "" }.to_owned(),
                negative: texts.2.clone(),
                depicts: texts.2,
                note: texts.3,
                picture,
                video,
                colour,
                camera,
                fade_in: (flags[1] && transition == Transition::Cut).then_some(length),
                transition,
                fit: if flags[0] { Fit::Cover } else { Fit::Contain },
                titles: parts.0,
                sounds: parts.1,
                lines: parts.2,
                continuity: match follows {
                    0 => Continuity::Cut,
                    1 => Continuity::Continue("first".to_owned()),
                    _ => Continuity::ReAnchor("first".to_owned()),
                },
                ..Shot::new("", length)
            },
        )
}

/// Who wrote what, with names of fields that could trip a reader.
fn origins() -> impl Strategy<Value = Origins> {
    let field = select(vec![
        "action", "move", "fade_in", "model", "by", "a b", "x,y", "{z}", ";", "é", "\\s", "a: b",
    ]);
    vec((field, select(vec![By::Model, By::Rule, By::User])), 0..6).prop_map(|fields| {
        let mut by = Origins::default();
        for (field, who) in fields {
            by.set(field, who);
        }
        by
    })
}

fn references(look: &str) -> Vec<String> {
    let files = ["a b.png", "faces/#1 {x}.jpg"];
    let some = if look.is_empty() { 0 } else { files.len() };
    files
        .iter()
        .take(some)
        .map(|file| (*file).to_owned())
        .collect()
}

fn here(by: Origins) -> Place {
    Place {
        id: "here".to_owned(),
        name: "Here".to_owned(),
        look: String::new(),
        references: vec!["here.png".to_owned()],
        by,
    }
}

/// Scripts that are read back from both forms; they may still have shots too short to plan.
pub(crate) fn script() -> impl Strategy<Value = Script> {
    let scenes = vec((text(), text(), text(), vec(shot(), 1..5)), 1..4);
    let film = (
        option::of((8u32..4096, 8u32..4096)),
        option::of(select(vec!["24", "23.976", "30000/1001", "2.5"])),
        option::of(select(vec![44_100u32, 48_000, 96_000])),
        option::of(length()),
    );
    let members = vec((text(), text()), 0..4);
    let music = vec(
        (
            file(),
            any::<[bool; 2]>(),
            gain(),
            option::of(length()),
            option::of(length()),
        ),
        0..3,
    );
    let credits = option::of((length(), vec(words(), 1..30)));
    (
        words(),
        text(),
        film,
        members,
        music,
        scenes,
        credits,
        origins(),
    )
        .prop_map(
            |(title, logline, film, members, music, scenes, credits, by)| {
                let mut number = 0;
                let mut made = Vec::new();
                for (index, (heading, time_of_day, note, shots)) in scenes.into_iter().enumerate() {
                    let shots = shots.into_iter().map(|mut shot| {
                        shot.id = if number == 0 {
                            "first".to_owned()
                        } else {
                            format!("s{number}.é-x")
                        };
                        if number == 0 {
                            shot.transition = Transition::Cut;
                            shot.continuity = Continuity::Cut;
                        }
                        number += 1;
                        shot.by = by.clone();
                        for line in &mut shot.lines {
                            line.by = by.clone();
                        }
                        shot
                    });
                    made.push(Scene {
                        id: format!("scene_{index}"),
                        heading,
                        place: if index == 0 {
                            "here".to_owned()
                        } else {
                            String::new()
                        },
                        time_of_day,
                        note,
                        shots: shots.collect(),
                        by: by.clone(),
                    });
                }
                let names = ["MARA", "tom", "മീര", "a:b (c)"];
                Script {
                    version: SCRIPT_VERSION,
                    title,
                    style: logline.clone(),
                    logline,
                    language: "pt-BR".to_owned(),
                    film: FilmSettings {
                        size: film.0.map(|(width, height)| FrameSize {
                            width_px: width * 2,
                            height_px: height * 2,
                        }),
                        fps: film.1.map(|rate| rate.parse().unwrap()),
                        sample_rate_hz: film.2,
                        length: film.3,
                    },
                    cast: members
                        .into_iter()
                        .zip(names)
                        .map(|((look, voice), name)| CastMember {
                            name: name.to_owned(),
                            references: references(&look),
                            look,
                            voice,
                            by: by.clone(),
                        })
                        .collect(),
                    places: vec![here(by.clone())],
                    music: music
                        .into_iter()
                        .map(|(file, ends, gain_db, fade_in, fade_out)| MusicCue {
                            file,
                            from: if ends[0] {
                                "first".to_owned()
                            } else {
                                String::new()
                            },
                            to: if ends[1] {
                                "first".to_owned()
                            } else {
                                String::new()
                            },
                            gain_db,
                            fade_in,
                            fade_out,
                        })
                        .collect(),
                    scenes: made,
                    credits: credits.map(|(length, lines)| Credits { length, lines }),
                    by: by.clone(),
                }
            },
        )
}
