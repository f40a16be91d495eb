//! What rules decide about a film whose words are written: camera, transitions, sound, colours.
//! Everything follows from the words and the seed.

use engine_base::Rational;
use flow_timeline::{Blend, CardRole, Easing};

use super::draw::Draw;
use super::premise::word_list;
use super::words::{BED_MOODS, PLACE_SOUNDS, things::holds};
use crate::length::Length;
use crate::moves::{Move, MoveKind, Point};
use crate::origin::By;
use crate::script::{Colour, MusicCue, Scene, Script, Shot, ShotSound, ShotSoundKind, Title};
use crate::transition::Transition;

const FRAMINGS: [&str; 5] = ["wide", "medium", "close", "medium close", "low angle"];
/// Levels of sound under speech, in dB.
///
/// Beds are made at -20 LUFS, ambiences at -22, and the default voice speaks at about -21: music is
/// 7 dB below speech in pauses and 13 dB below it while somebody speaks, ambience 21 dB.
const AMBIENCE_DB: f64 = -14.0;
const MUSIC_DB: f64 = -8.0;

pub(crate) fn secs(num: i64, den: i64) -> Length {
    Length::Secs(Rational::new(num, den).unwrap_or(Rational::ONE))
}

/// Framing of a shot: scenes open wide, people speak close.
pub(crate) fn framing(shot_in_scene: usize, speaks: bool, draw: &mut Draw) -> &'static str {
    match (shot_in_scene == 0, speaks) {
        (true, _) => "wide",
        (false, true) => ["close", "medium close"][draw.below(2)],
        (false, false) => FRAMINGS[1 + draw.below(FRAMINGS.len() - 1)],
    }
}

/// A camera move for a shot, never of the kind before.
pub(crate) fn camera(framing: &str, action: &str, last: usize, draw: &mut Draw) -> (Move, usize) {
    let lower = action.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let hint = if has(&["walk", "run", "cross", "drift", "roll", "sail", "follow"]) {
        2
    } else if has(&[
        "climb", "rise", "fall", "sink", "look up", "looks up", "tower",
    ]) {
        3
    } else if has(&["look", "stare", "find", "read", "pick", "open", "touch"]) || framing == "close"
    {
        0
    } else {
        [1, 0, 2, 3][draw.below(4)]
    };
    let kind = if hint == last {
        (hint + 1 + draw.below(3)) % 4
    } else {
        hint
    };
    let near = if framing == "wide" { 1.14 } else { 1.22 };
    let at = Point {
        x_percent: [38.0, 46.0, 50.0, 54.0, 62.0][draw.below(5)],
        y_percent: [42.0, 48.0, 55.0][draw.below(3)],
    };
    let (from, to) = if draw.below(2) == 0 {
        (42.0, 58.0)
    } else {
        (58.0, 42.0)
    };
    let kind_of = match kind {
        0 => MoveKind::Push {
            from: 1.0,
            to: near,
            at,
        },
        1 => MoveKind::Pull {
            from: near,
            to: 1.0,
            at,
        },
        2 => MoveKind::Pan {
            from_percent: from,
            to_percent: to,
            y_percent: 50.0,
            zoom: 1.25,
        },
        _ => MoveKind::Tilt {
            from_percent: to,
            to_percent: from,
            x_percent: 50.0,
            zoom: 1.25,
        },
    };
    let moved = Move {
        kind: kind_of,
        easing: Easing::EaseInOut,
    };
    (moved, kind)
}

/// The way into a shot: cuts inside a scene, something softer between scenes.
pub(crate) fn transition(shot_in_film: usize, shot_in_scene: usize, draw: &mut Draw) -> Transition {
    if shot_in_film == 0 || shot_in_scene > 0 {
        return Transition::Cut;
    }
    let (blend, length) = match draw.below(3) {
        0 => (Blend::ThroughBlack, secs(1, 1)),
        1 => (Blend::CrossFade, secs(1, 1)),
        _ => (Blend::CrossFade, secs(1, 2)),
    };
    Transition::Blend { blend, length }
}

/// Colour of a shot for which there is no picture, by its time of day.
pub(crate) fn colour(time_of_day: &str, draw: &mut Draw) -> Colour {
    let base: [u8; 3] = match time_of_day {
        "dawn" => [88, 66, 74],
        "morning" => [74, 92, 104],
        "noon" => [104, 98, 80],
        "afternoon" => [98, 82, 62],
        "dusk" => [70, 48, 66],
        _ => [22, 28, 44],
    };
    let lift = draw.below(18) as u8;
    Colour {
        rgb: base.map(|channel| channel.saturating_add(lift)),
    }
}

/// The shipped sound of what `text` tells of: the name in `known` that ends in it.
fn sound_of(text: &str, prefix: &str, known: &[String]) -> Option<String> {
    let words = word_list(text);
    let names = |list: &[&str]| {
        list.iter()
            .filter(|name| {
                let spaced = name.is_ascii();
                let plural = format!("{name}s");
                (!spaced && text.contains(*name))
                    || words.iter().any(|word| word == *name || *word == plural)
            })
            .count()
    };
    let mut best: Option<(usize, &str)> = None;
    for (sound, list) in PLACE_SOUNDS {
        let count = names(list);
        if count > best.map_or(0, |(most, _)| most) {
            best = Some((count, sound));
        }
    }
    let name = format!("{prefix}{}", best?.1);
    known.contains(&name).then_some(name)
}

/// Ambience of every scene by what is seen in it; the same through the scene, so that it runs on.
pub(crate) fn ambience(script: &mut Script, premise: &str, known: &[String]) {
    for scene in &mut script.scenes {
        let seen: Vec<&str> = scene
            .shots
            .iter()
            .map(|shot| shot.action.as_str())
            .collect();
        let place = format!("{} {}", scene.heading, seen.join(" "));
        let file = sound_of(&place, "ambience-", known)
            .or_else(|| sound_of(premise, "ambience-", known))
            .or_else(|| known.iter().find(|name| *name == "ambience-room").cloned());
        let Some(file) = file else { continue };
        for shot in &mut scene.shots {
            shot.sounds.push(ShotSound {
                kind: ShotSoundKind::Ambience,
                file: file.clone(),
                start: None,
                gain_db: AMBIENCE_DB,
            });
            shot.by.set("sounds", By::Rule);
        }
    }
}

/// How far draws may outweigh the words of a scene in the choice of its music.
const MOOD_CHANCE: usize = 5;

/// How many words of `text` a bed of music goes with.
fn mood_of(text: &str, bed: &str) -> usize {
    let words = word_list(text);
    let moods = BED_MOODS.iter().find(|(name, _)| *name == bed);
    moods.map_or(0, |(_, list)| {
        words.iter().filter(|word| holds(list, word)).count()
    })
}

/// Music under the film in one to four stretches of scenes, by what is told in them; the bed that
/// has been heard least comes first where the words do not say, and none follows itself.
pub(crate) fn music(script: &mut Script, premise: &str, known: &[String], draw: &mut Draw) {
    let mut beds: Vec<&String> = known
        .iter()
        .filter(|name| name.starts_with("bed-"))
        .collect();
    if beds.is_empty() {
        return;
    }
    let turn = draw.below(beds.len());
    beds.rotate_left(turn);
    let scenes = script.scenes.len();
    let parts = (1 + scenes / 8 + draw.below(3)).min(4).min(scenes);
    let mut heard = vec![0usize; beds.len()];
    let mut last = None;
    for part in 0..parts {
        let (from, to) = (scenes * part / parts, scenes * (part + 1) / parts);
        let told: Vec<String> = script.scenes[from..to].iter().map(told_in).collect();
        let told = told.join(" ");
        let fits: Vec<i64> = (0..beds.len())
            .map(|at| {
                let mood = mood_of(&told, beds[at]) + 2 * mood_of(premise, beds[at]);
                (mood + draw.below(MOOD_CHANCE)) as i64 - 4 * heard[at] as i64
            })
            .collect();
        let free = (0..beds.len()).filter(|at| Some(*at) != last || beds.len() == 1);
        let bed = free
            .max_by_key(|at| (fits[*at], std::cmp::Reverse(*at)))
            .unwrap_or(0);
        heard[bed] += 1;
        last = Some(bed);
        let shot = |scene: usize, last: bool| {
            let shots = &script.scenes[scene].shots;
            let shot = if last { shots.last() } else { shots.first() };
            shot.map(|shot| shot.id.clone()).unwrap_or_default()
        };
        let last_part = part + 1 == parts;
        script.music.push(MusicCue {
            file: beds[bed].clone(),
            from: if part == 0 {
                String::new()
            } else {
                shot(from, false)
            },
            to: if last_part {
                String::new()
            } else {
                shot(to - 1, true)
            },
            gain_db: MUSIC_DB,
            fade_in: Some(secs(3, 2)),
            fade_out: Some(secs(2, 1)),
        });
    }
    script.by.set("music", By::Rule);
}

/// All words of a scene.
fn told_in(scene: &Scene) -> String {
    let mut told = format!("{} {}", scene.heading, scene.note);
    for shot in &scene.shots {
        let lines = shot.lines.iter().map(|line| line.text.as_str());
        for text in std::iter::once(shot.action.as_str()).chain(lines) {
            told.push(' ');
            told.push_str(text);
        }
    }
    told
}

/// The film's title over its first shot, and its ends from and to black.
pub(crate) fn ends(script: &mut Script) {
    let title = script.title.clone();
    let credits = script.credits.is_some();
    if let Some(shot) = script
        .scenes
        .first_mut()
        .and_then(|scene| scene.shots.first_mut())
    {
        shot.titles.push(Title {
            role: CardRole::Title,
            text: title,
            start: Some(secs(1, 2)),
            length: None,
            fade: None,
        });
        shot.fade_in = Some(secs(1, 2));
        rule(shot, &["titles", "fade_in"]);
    }
    if let Some(shot) = script
        .scenes
        .last_mut()
        .and_then(|scene| scene.shots.last_mut())
    {
        shot.fade_out = Some(if credits { secs(1, 2) } else { secs(1, 1) });
        rule(shot, &["fade_out"]);
    }
}

fn rule(shot: &mut Shot, fields: &[&str]) {
    for field in fields {
        shot.by.set(field, By::Rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_follow_the_action_and_never_repeat() {
        let mut draw = Draw::new(7, "camera");
        let mut last = usize::MAX;
        let mut kinds = std::collections::BTreeSet::new();
        for _ in 0..40 {
            let (moved, kind) = camera("wide", "Mara walks to the door.", last, &mut draw);
            assert_ne!(kind, last);
            // Every move has to be one that a script can say and read.
            assert_eq!(moved.to_string().parse::<Move>().unwrap(), moved);
            kinds.insert(kind);
            last = kind;
        }
        assert!(kinds.len() > 1);
    }

    #[test]
    fn places_have_their_sounds() {
        let known = ["ambience-sea", "ambience-forest", "bed-dawn"].map(str::to_owned);
        let sound = |text| sound_of(text, "ambience-", &known);
        assert_eq!(sound("the beach at dusk").as_deref(), Some("ambience-sea"));
        assert_eq!(
            sound("two foxes in the woods").as_deref(),
            Some("ambience-forest")
        );
        assert_eq!(sound("守塔人在灯塔").as_deref(), Some("ambience-sea"));
        assert_eq!(sound("the kitchen"), None, "not among the known ones");
        assert_eq!(
            sound("a seashell season"),
            None,
            "words, not parts of words"
        );
    }
}
