//! Lines that a voice of the machine speaks: their sounds' lengths, the times of their words, and
//! shots made long enough for them.

use engine_base::Rational;
use flow_timeline::FilmFormat;

use crate::layout::{Laid, lay};
use crate::length::Length;
use crate::origin::By;
use crate::plan::Assets;
use crate::script::Script;
use crate::speech::{place_lines, shown};
use crate::tree::Faults;

/// Shortest that a shot becomes when it gives time to another, in milliseconds.
const SHORTEST_MILLIS: i64 = 2500;

/// The sound of a line, as a voice of the machine spoke it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenLine {
    /// Length of the sound.
    pub secs: Rational,
    /// Its words in order.
    pub words: Vec<WordTime>,
}

/// When a word of a line is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordTime {
    /// Byte of the line's text behind the word.
    pub end_byte: usize,
    /// Where it begins, from the sound's start.
    pub start_millis: i64,
    /// Where it ends.
    pub end_millis: i64,
}

/// Name of a spoken line's sound: its shot's id and its number in the shot, from 1.
pub fn speech_name(shot: &str, number: usize) -> String {
    format!("{shot}/{number}")
}

/// When the parts of a text are heard, by how many of its letters came before.
pub(crate) struct Clock<'l> {
    line: &'l SpokenLine,
    /// Letters up to the end of each word, spaces not counted.
    letters: Vec<usize>,
}

pub(crate) fn letters(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

impl<'l> Clock<'l> {
    /// Of a line with this text; nothing without words.
    pub(crate) fn new(text: &str, line: &'l SpokenLine) -> Option<Self> {
        let before = |word: &WordTime| text.get(..word.end_byte).map(|part| letters(&shown(part)));
        let letters: Option<Vec<usize>> = line.words.iter().map(before).collect();
        let letters = letters.filter(|letters| !letters.is_empty())?;
        Some(Self { line, letters })
    }

    /// Start of the first word that ends behind `letters`, in milliseconds.
    pub(crate) fn start_millis(&self, letters: usize) -> i64 {
        let at = self.letters.partition_point(|end| *end <= letters);
        let words = &self.line.words;
        let last = words.last().map_or(0, |word| word.end_millis);
        words.get(at).map_or(last, |word| word.start_millis)
    }

    /// End of the last word that ends within `letters`, punctuation behind it included.
    pub(crate) fn end_millis(&self, letters: usize) -> i64 {
        let at = self.letters.partition_point(|end| *end <= letters);
        let word = self.line.words.get(at.saturating_sub(1));
        word.map_or(0, |word| word.end_millis)
    }
}

/// What [`fit_lines`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fitted {
    /// Shots whose length changed, with frames before and after.
    pub shots: Vec<(String, i64, i64)>,
    /// Frames by which the film grew, since no shot had them to spare.
    pub grown_frames: i64,
}

/// Make each shot long enough for its spoken lines. The time comes from the nearest shots that
/// have more than they need, so that the film keeps its length where it can.
pub fn fit_lines(script: &mut Script, format: &FilmFormat, assets: &Assets) -> Fitted {
    let mut faults = Faults::default();
    let laid = lay(script, format, &mut faults);
    let had: Vec<i64> = laid
        .iter()
        .filter(|each| each.shot.is_some())
        .map(|each| each.frames)
        .collect();
    let wanted: Vec<i64> = laid
        .iter()
        .enumerate()
        .filter(|(_, each)| each.shot.is_some())
        .map(|(index, each)| needed_frames(index, each, format, assets))
        .collect();
    drop(laid);
    let mut frames = had.clone();
    let mut fitted = Fitted::default();
    for at in 0..frames.len() {
        let mut missing = wanted[at] - frames[at];
        if missing <= 0 {
            continue;
        }
        frames[at] = wanted[at];
        let mut others: Vec<usize> = (0..frames.len()).filter(|other| *other != at).collect();
        others.sort_by_key(|other| other.abs_diff(at));
        for other in others {
            let spare = (frames[other] - wanted[other]).clamp(0, missing);
            frames[other] -= spare;
            missing -= spare;
        }
        fitted.grown_frames += missing;
    }
    let shots = script.scenes.iter_mut().flat_map(|scene| &mut scene.shots);
    for (shot, (had, frames)) in shots.zip(had.iter().zip(&frames)) {
        if had != frames {
            shot.length = secs_of(*frames, format);
            shot.by.set("length", By::Rule);
            fitted.shots.push((shot.id.clone(), *had, *frames));
        }
    }
    fitted
}

fn secs_of(frames: i64, format: &FilmFormat) -> Length {
    let secs = frames
        .checked_mul(format.fps.den())
        .and_then(|num| Rational::new(num, format.fps.num()).ok());
    secs.map_or(Length::Frames(frames), Length::Secs)
}

/// Frames that a shot needs for its spoken lines, its transitions and a look.
fn needed_frames(index: usize, laid: &Laid<'_>, format: &FilmFormat, assets: &Assets) -> i64 {
    let millis = |millis: i64| {
        let secs = Rational::new(millis, 1000).unwrap_or(Rational::ONE);
        Length::Secs(secs).frames(format.fps).max(1)
    };
    let said = place_lines(index, laid, format, assets);
    let spoken = said.iter().filter(|line| line.spoken.is_some());
    let end = spoken.map(|line| line.first_frame + line.frames).max();
    let edges = laid.frames_in.max(laid.fade_in) + laid.frames_out.max(laid.fade_out);
    let shortest = millis(SHORTEST_MILLIS) + edges;
    let Some(end) = end else {
        // Without speech it has what it has, and gives what is more than a look.
        return shortest.max(read_frames(&said)).min(laid.frames);
    };
    let rest = millis(200) + laid.frames_out.max(laid.fade_out);
    // `place_lines` drops the lead where the shot is short: it is part of what is needed.
    let lead = millis(250);
    let begun = laid.start + laid.frames_in.max(laid.fade_in);
    let first = said.first().map_or(begun, |line| line.first_frame);
    let lead = (lead - (first - begun)).max(0);
    (end - laid.start + lead + rest).max(shortest.min(laid.frames))
}

/// Frames that lines without a voice are shown for.
fn read_frames(said: &[crate::speech::Said<'_>]) -> i64 {
    said.iter().map(|line| line.frames).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(secs: i64, words: &[(usize, i64, i64)]) -> SpokenLine {
        let words = words
            .iter()
            .map(|(end_byte, start_millis, end_millis)| WordTime {
                end_byte: *end_byte,
                start_millis: *start_millis,
                end_millis: *end_millis,
            });
        SpokenLine {
            secs: Rational::whole(secs),
            words: words.collect(),
        }
    }

    fn film(shots: &[(&str, i64, &str)]) -> Script {
        let mut text =
            String::from("---\nlongtake: 1\ntitle: Film\nlanguage: en\n---\n\n## Scene one\n");
        for (id, secs, said) in shots {
            text += &format!("\n### Shot {id}\n\n- length: {secs} s\n- colour: black\n");
            if !said.is_empty() {
                text += &format!("\n> {said}\n");
            }
        }
        crate::parse(text.as_bytes(), "film.md").unwrap().script
    }

    fn assets(lines: &[(&str, i64)]) -> Assets {
        let spoken = lines
            .iter()
            .map(|(shot, secs)| (speech_name(shot, 1), line(*secs, &[])));
        Assets {
            spoken: spoken.collect(),
            ..Assets::default()
        }
    }

    #[test]
    fn time_for_long_lines_comes_from_the_nearest_shots_that_have_it() {
        let said = "These are the words.";
        let mut script = film(&[("a", 8, ""), ("b", 4, said), ("c", 5, ""), ("d", 9, "")]);
        let fitted = fit_lines(&mut script, &FilmFormat::DEFAULT, &assets(&[("b", 6)]));
        let secs: Vec<String> = script.shots().map(|shot| shot.length.to_string()).collect();
        // 6 s of speech, 0.25 s before it and 0.2 s behind it: 155 frames of 24 a second.
        assert_eq!(fitted.grown_frames, 0);
        assert_eq!(
            script
                .shots()
                .nth(1)
                .unwrap()
                .length
                .frames(Rational::whole(24)),
            155
        );
        let total: i64 = script
            .shots()
            .map(|shot| shot.length.frames(Rational::whole(24)))
            .sum();
        assert_eq!(total, 26 * 24, "{secs:?}");
        assert_eq!(secs[3], "9 s", "the far shot kept its time: {secs:?}");
        assert_eq!(
            script.shots().nth(1).unwrap().by.get("length"),
            Some(By::Rule)
        );
        let again = fit_lines(&mut script, &FilmFormat::DEFAULT, &assets(&[("b", 6)]));
        assert_eq!(again, Fitted::default());
    }

    #[test]
    fn a_film_without_spare_time_grows_and_says_so() {
        let said = "These are the words.";
        let mut script = film(&[("a", 3, said), ("b", 3, said)]);
        let lines = assets(&[("a", 5), ("b", 2)]);
        let fitted = fit_lines(&mut script, &FilmFormat::DEFAULT, &lines);
        let plan = crate::plan_film(&script, &FilmFormat::DEFAULT, &lines).unwrap();
        assert_eq!(plan.frames, 6 * 24 + fitted.grown_frames);
        // 131 frames are needed and 72 there; the other shot spares 12.
        assert_eq!(fitted.grown_frames, 47, "{fitted:?}");
        let voices: Vec<_> = plan.sounds.iter().flat_map(|mix| &mix.sources).collect();
        assert!(
            voices
                .iter()
                .all(|source| source.kind == flow_timeline::SourceKind::Speech)
        );
        assert_eq!(voices[0].name, "a/1");
    }

    #[test]
    fn a_line_that_runs_on_is_heard_out_before_the_next() {
        let script = film(&[("a", 3, "One two three."), ("b", 6, "Four five.")]);
        let lines = assets(&[("a", 5), ("b", 2)]);
        let plan = crate::plan_film(&script, &FilmFormat::DEFAULT, &lines).unwrap();
        let [first, second] = &plan.cues[..] else {
            panic!("two lines: {:?}", plan.cues)
        };
        assert!(
            second.first_frame >= first.first_frame + 5 * 24,
            "{:?}",
            plan.cues
        );
    }

    #[test]
    fn subtitles_come_and_go_with_the_words() {
        let words = "The keeper climbed the narrow stair with the lamp in one hand and his \
                     father's tools in the other. Then the wind fell.";
        let script = film(&[("a", 20, words)]);
        let mut ends = Vec::new();
        for (at, letter) in words.char_indices() {
            if letter == ' ' {
                ends.push(at);
            }
        }
        ends.push(words.len());
        // A tenth of a second a word, after a second of silence.
        let times: Vec<(usize, i64, i64)> = ends
            .iter()
            .enumerate()
            .map(|(at, end)| {
                let start = 100 * at as i64 + 1000;
                (*end, start, start + 90)
            })
            .collect();
        let spoken = [(speech_name("a", 1), line(8, &times))];
        let lines = Assets {
            spoken: spoken.into(),
            ..Assets::default()
        };
        let plan = crate::plan_film(&script, &FilmFormat::DEFAULT, &lines).unwrap();
        let begun = plan.sounds[0].mix.clips[0].start * 24 / 48_000;
        let last = plan.cues.last().unwrap();
        assert!(last.text.starts_with("tools in the other."), "{last:?}");
        let heard = begun + (100 * 15 + 1000) * 24 / 1000;
        assert!(
            (last.first_frame - heard).abs() <= 1,
            "{} {heard}",
            last.first_frame
        );
        assert!((plan.cues[0].first_frame - begun - 24).abs() <= 1);
    }

    #[test]
    fn words_with_given_sounds_count_by_what_is_shown() {
        let text = "I [read](/ɹˈɛd/) it.";
        let override_end = text.find(')').unwrap() + 1;
        let spoken = line(
            2,
            &[
                (1, 0, 100),
                (override_end, 200, 500),
                (text.len(), 600, 800),
            ],
        );
        let clock = Clock::new(text, &spoken).unwrap();
        assert_eq!(letters(&shown(text)), 8);
        assert_eq!(clock.start_millis(1), 200);
        assert_eq!(clock.end_millis(8), 800);
        assert!(Clock::new(text, &line(2, &[])).is_none());
    }
}
