//! The three music beds.

use anyhow::Result;

use crate::music::{Chord, Note, Part, Piece, chords, ladder, melody, sustained, voice};
use crate::sound::Room;

const PIANO: (u16, u16) = (8, 0);
const CELESTA: (u16, u16) = (0, 8);
const VIBRAPHONE: (u16, u16) = (0, 11);
const GUITAR: (u16, u16) = (0, 24);
const CELLO: (u16, u16) = (0, 42);
const PIZZICATO: (u16, u16) = (0, 45);
const HARP: (u16, u16) = (0, 46);
const STRINGS: (u16, u16) = (0, 49);
const CHOIR: (u16, u16) = (0, 52);
const HORNS: (u16, u16) = (0, 60);
const ENGLISH_HORN: (u16, u16) = (0, 69);
const CLARINET: (u16, u16) = (0, 71);
const FLUTE: (u16, u16) = (0, 73);

/// Presets the beds play on.
pub const PRESETS: &[(u16, u16)] = &[
    PIANO,
    CELESTA,
    VIBRAPHONE,
    GUITAR,
    CELLO,
    PIZZICATO,
    HARP,
    STRINGS,
    CHOIR,
    HORNS,
    ENGLISH_HORN,
    CLARINET,
    FLUTE,
];

/// A pattern over a ladder of chord tones, one step every `step` beats, each left to ring.
fn arpeggio(chords: &[Chord], low: i32, pattern: &[usize], step: f64, ring: f64) -> Vec<Note> {
    let top = pattern.iter().copied().max().unwrap_or(0) + 1;
    let mut notes = Vec::new();
    for chord in chords {
        let rungs = ladder(chord, low, top);
        let steps = (chord.beats / step).round() as usize;
        for at in 0..steps {
            let force = if at == 0 {
                0.56
            } else {
                0.46 + 0.05 * ((at % 2) as f64)
            };
            notes.push(Note {
                start: chord.start + at as f64 * step,
                beats: ring,
                key: rungs[pattern[at % pattern.len()]],
                force,
            });
        }
    }
    notes
}

/// The basses, `shift` keys away, held.
fn basses(chords: &[Chord], shift: i32, force: f64) -> Vec<Note> {
    sustained(chords, |at| chords[at].bass + shift, force)
}

fn join(parts: impl IntoIterator<Item = Vec<Note>>) -> Vec<Note> {
    parts.into_iter().flatten().collect()
}

/// First light: D major, slow, harp and strings, a flute that climbs.
pub fn dawn() -> Result<Piece> {
    let chords = chords(
        "d2: d f# a e /4\n c#3: a c# e b /4\n b2: b d f# a /4\n g2: g b d f# /4\n
         f#2: d f# a /4\n e2: e g b d /4\n g2: g b d a /4\n a2: a d e /2\n a2: a c# e /2\n
         d2: d f# a /4\n f#2: f# a c# e /4\n g2: g b d f# /4\n f#2: d f# a /4\n
         e2: g b d f# /4\n b2: b d f# /4\n g2: g b d a /4\n a2: a d e g /4",
    )?;
    let voices = voice(&chords, 55, 76);
    let mut strings: Vec<Note> = Vec::new();
    for line in 0..4 {
        strings.extend(sustained(&chords, |at| voices[at][line], 0.5));
    }
    let flute = join([
        melody(
            16.0,
            4.0,
            "f#5/2 e5/1 d5/1 | b4/3 d5/1 | a5/2 g5/1 f#5/1 | e5/3 -/1",
        )?,
        melody(
            32.0,
            4.0,
            "d5/1 f#5/1 a5/2 | c#6/1.5 b5/.5 a5/2 | b5/2 a5/1 g5/1 | f#5/3 a5/1",
        )?,
        melody(
            48.0,
            4.0,
            "g5/2 f#5/1 e5/1 | d5/2 f#5/1 b4/1 | d5/2 e5/1 d5/1 | d5/2 e5/2",
        )?,
    ]);
    let cello = melody(
        32.0,
        4.0,
        "f#3/4 | a3/2 c#4/2 | d4/3 b3/1 | a3/4 | g3/2 b3/2 | f#3/2 b3/2 | b3/2 g3/2 | a3/4",
    )?;
    let horns = melody(48.0, 4.0, "b3/4 | d4/4 | d4/4 | d4/2 e4/2")?;
    let celesta = join([
        melody(0.0, 4.0, "-/2 a5/1 e6/1 | -/4 | -/2 d6/1 f#6/1 | -/4")?,
        melody(28.0, 4.0, "-/1 e6/1 c#6/1 a5/1")?,
        melody(44.0, 4.0, "-/2 d6/1 a6/1")?,
        melody(60.0, 4.0, "-/2 g6/1 e6/1")?,
    ]);
    let swell = (16.0, 0.62, 0.98);
    let part = |name, preset, pan, gain_db, send, loose_secs, notes| Part {
        name,
        preset,
        pan,
        gain_db,
        send,
        loose_secs,
        swell,
        notes,
    };
    Ok(Piece {
        name: "bed-dawn",
        beats: 64.0,
        bpm: 60.0,
        phrase: 16.0,
        room: Room {
            decay_secs: 2.6,
            damp_hz: 5200.0,
            size: 1.0,
            predelay_secs: 0.028,
        },
        parts: vec![
            part("strings", STRINGS, 0.0, 0.0, 0.35, 0.018, strings),
            part(
                "basses",
                STRINGS,
                0.25,
                0.0,
                0.25,
                0.018,
                basses(&chords, 0, 0.5),
            ),
            part(
                "harp",
                HARP,
                -0.35,
                4.0,
                0.35,
                0.009,
                arpeggio(&chords, 50, &[0, 1, 2, 3, 4, 3, 2, 1], 0.5, 2.5),
            ),
            part("flute", FLUTE, 0.2, -2.0, 0.5, 0.014, flute),
            part("cello", CELLO, 0.4, -3.0, 0.4, 0.014, cello),
            part("horns", HORNS, -0.25, -6.0, 0.5, 0.014, horns),
            part("celesta", CELESTA, -0.55, 3.0, 0.6, 0.01, celesta),
        ],
    })
}

/// The sea under a grey sky: E minor in three, piano that rolls, cello, a far choir.
pub fn tide() -> Result<Piece> {
    let chords = chords(
        "e2: e g b f# /3\n e2: e g b /3\n c3: c e g b /3\n c3: c e g d /3\n
         b2: g b d /3\n f#2: d f# a /3\n a2: a c e b /3\n f#2: d f# a /3\n
         e2: e g b d /3\n c3: c e g b /3\n g2: g b d /3\n f#2: d f# a /3\n
         a2: a c e g /3\n g2: e g b /3\n f#2: f# a c e /3\n b2: b e f# /1.5\n b2: b d# f# /1.5\n
         c3: c e g d /3\n d3: d f# a /3\n b2: b d f# a /3\n e2: e g b /3\n
         a2: a c e g /3\n c3: c e g b /3\n d3: d g a /3\n b2: b e f# a /3",
    )?;
    let voices = voice(&chords, 52, 72);
    let mut strings: Vec<Note> = Vec::new();
    for line in 0..4 {
        strings.extend(sustained(&chords, |at| voices[at][line], 0.44));
    }
    let choir = sustained(&chords, |at| voices[at][3], 0.42);
    let cello = melody(
        12.0,
        3.0,
        "b3/2 d4/1 | a3/3 | c4/1 b3/1 a3/1 | f#3/2 a3/1 | g3/1.5 a3/.5 b3/1 | e4/2 d4/1 |
         d4/1 b3/2 | a3/3 | c4/1.5 d4/.5 e4/1 | b3/2 g3/1 | a3/1 c4/2 | b3/3",
    )?;
    let horn = melody(
        48.0,
        3.0,
        "g4/2 e4/1 | f#4/2 a4/1 | b4/1.5 a4/.5 f#4/1 | g4/3 | e4/1 g4/1 c5/1 | b4/2 g4/1 |
         a4/1.5 g4/.5 d4/1 | e4/2 f#4/1",
    )?;
    let mut low_piano = Vec::new();
    for chord in &chords {
        for shift in [-12, 0] {
            let key = chord.bass + shift;
            low_piano.push(Note {
                start: chord.start,
                beats: chord.beats,
                key,
                force: 0.42,
            });
        }
    }
    let swell = (12.0, 0.55, 0.95);
    let part = |name, preset, pan, gain_db, send, loose_secs, notes| Part {
        name,
        preset,
        pan,
        gain_db,
        send,
        loose_secs,
        swell,
        notes,
    };
    Ok(Piece {
        name: "bed-tide",
        beats: 72.0,
        bpm: 66.0,
        phrase: 12.0,
        room: Room {
            decay_secs: 3.1,
            damp_hz: 3600.0,
            size: 1.15,
            predelay_secs: 0.035,
        },
        parts: vec![
            part(
                "piano",
                PIANO,
                -0.15,
                14.0,
                0.3,
                0.010,
                arpeggio(&chords, 57, &[0, 2, 3, 4, 3, 2], 0.5, 2.0),
            ),
            part("low piano", PIANO, -0.15, 12.0, 0.25, 0.008, low_piano),
            part("strings", STRINGS, 0.1, 1.0, 0.4, 0.02, strings),
            part(
                "basses",
                STRINGS,
                0.3,
                -1.0,
                0.25,
                0.02,
                basses(&chords, 0, 0.48),
            ),
            part("choir", CHOIR, 0.0, 2.0, 0.7, 0.02, choir),
            part("cello", CELLO, 0.35, -3.0, 0.4, 0.014, cello),
            part("english horn", ENGLISH_HORN, -0.3, 5.0, 0.5, 0.014, horn),
        ],
    })
}

/// By the fire: F major, a slow waltz for guitar, clarinet and vibraphone.
pub fn hearth() -> Result<Piece> {
    let theme = "f2: f a c /3\n e2: c e g /3\n d2: d f a c /3\n bb2: bb d f a /3\n
                 a2: f a c /3\n g2: g bb d f /3\n c3: c f g bb /3\n c3: c e g bb /3\n";
    let middle = "d2: d f a /3\n c#3: a c# e g /3\n c3: f a c /3\n b2: g b d f /3\n
                  bb2: bb d f /3\n a2: f a c /3\n g2: g bb d /3\n c3: c e g bb /3\n";
    let close = "bb2: bb d f a /3\n a2: f a c /3\n g2: g bb d f /3\n d2: d f a /3\n
                 bb2: bb d f g /3\n c3: c f g bb /3\n f2: f a c g /3\n c3: c f g bb /3\n";
    let chords = chords(&[theme, middle, theme, close].concat())?;
    let voices = voice(&chords, 52, 69);
    let mut strings: Vec<Note> = Vec::new();
    for line in 0..3 {
        strings.extend(sustained(&chords, |at| voices[at][line], 0.4));
    }
    let mut guitar = arpeggio(&chords, 55, &[0, 1, 2, 3, 2, 1], 0.5, 1.6);
    // The thumb has the first stroke of each bar.
    for (at, note) in guitar.iter_mut().enumerate() {
        if at % 6 == 0 {
            *note = Note {
                key: chords[at / 6].bass + 12,
                beats: 2.6,
                force: 0.6,
                ..*note
            };
        }
    }
    let mut plucked = Vec::new();
    for chord in &chords {
        let key = if chord.bass < 36 {
            chord.bass + 12
        } else {
            chord.bass
        };
        plucked.push(Note {
            start: chord.start,
            beats: 1.2,
            key,
            force: 0.5,
        });
    }
    let clarinet = join([
        melody(
            0.0,
            3.0,
            "a4/2 c5/1 | g4/2 e4/1 | f4/1 a4/1 c5/1 | d5/3 | c5/2 a4/1 | bb4/1 a4/1 g4/1 |
             f4/2 g4/1 | e4/3",
        )?,
        melody(
            48.0,
            3.0,
            "a4/1 bb4/1 c5/1 | g4/1.5 f4/.5 e4/1 | f4/1 a4/1 d5/1 | f5/2 d5/1 | c5/2 a4/1 |
             bb4/1.5 a4/.5 g4/1 | f4/1 g4/1 bb4/1 | g4/2 e4/1",
        )?,
        melody(
            72.0,
            3.0,
            "d5/2 bb4/1 | a4/3 | g4/1 bb4/1 d5/1 | f4/2 -/1 | g4/1 f4/1 d4/1 | f4/2 g4/1 | a4/3",
        )?,
    ]);
    let vibraphone = join([
        melody(
            24.0,
            3.0,
            "f5/1 e5/1 d5/1 | c#5/2 e5/1 | c5/1 a4/2 | b4/2 d5/1 | d5/1 f5/1 d5/1 | c5/3 |
             bb4/1 d5/1 g5/1 | e5/2 -/1",
        )?,
        melody(90.0, 3.0, "-/1 c5/1 g5/1 | -/1 bb4/1 g5/1")?,
    ]);
    let swell = (12.0, 0.7, 0.95);
    let part = |name, preset, pan, gain_db, send, loose_secs, notes| Part {
        name,
        preset,
        pan,
        gain_db,
        send,
        loose_secs,
        swell,
        notes,
    };
    Ok(Piece {
        name: "bed-hearth",
        beats: 96.0,
        bpm: 88.0,
        phrase: 12.0,
        room: Room {
            decay_secs: 1.5,
            damp_hz: 4200.0,
            size: 0.62,
            predelay_secs: 0.014,
        },
        parts: vec![
            part("guitar", GUITAR, -0.25, 4.0, 0.22, 0.008, guitar),
            part("plucked", PIZZICATO, 0.2, 0.0, 0.2, 0.01, plucked),
            part("strings", STRINGS, 0.1, -6.0, 0.4, 0.02, strings),
            part("clarinet", CLARINET, 0.15, -2.0, 0.35, 0.014, clarinet),
            part("vibraphone", VIBRAPHONE, -0.45, 0.0, 0.4, 0.01, vibraphone),
        ],
    })
}
