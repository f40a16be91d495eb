//! When each line is said, and the subtitles that show it.

use engine_base::Rational;
use flow_timeline::{Cue, FilmFormat};

use crate::layout::Laid;
use crate::length::Length;
use crate::plan::Assets;
use crate::script::Line;
use crate::spoken::{Clock, SpokenLine, letters, speech_name};

/// Longest row of a subtitle, in columns; wide characters take two.
pub const CUE_COLUMNS_MAX: usize = 42;
/// Most rows of a subtitle.
pub const CUE_ROWS_MAX: usize = 2;
/// Reading speed at which unvoiced lines are shown, in columns a second.
const COLUMNS_PER_SEC: i64 = 15;
/// Rest between lines.
const GAP_MILLIS: i64 = 160;

/// A line in its place in the film.
pub(crate) struct Said<'s> {
    /// Index among the laid shots.
    pub(crate) shot: usize,
    /// Number of the line in its shot, from 1.
    pub(crate) number: usize,
    pub(crate) line: &'s Line,
    /// Frame of the film at which it begins.
    pub(crate) first_frame: i64,
    /// How long it is said or shown.
    pub(crate) frames: i64,
    /// Name and times of its sound, when a voice of the machine speaks it.
    pub(crate) spoken: Option<(&'s str, &'s SpokenLine)>,
}

/// Columns that a text takes: two for wide (Chinese, Japanese, Korean, emoji) characters.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn width(character: char) -> usize {
    match u32::from(character) {
        0x0300..=0x036f | 0x200b..=0x200f | 0x2060 | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff => 2,
        0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

fn frames_of_millis(format: &FilmFormat, millis: i64) -> i64 {
    let secs = Rational::new(millis, 1000).unwrap_or(Rational::ONE);
    Length::Secs(secs).frames(format.fps).max(1)
}

/// Time in which a text is read in comfort, in milliseconds.
pub(crate) fn reading_millis(text: &str) -> i64 {
    let columns = i64::try_from(columns(&shown(text))).unwrap_or(i64::MAX / 2000);
    (columns * 1000 / COLUMNS_PER_SEC + 700).max(1200)
}

/// Lines of all shots in their places. A spoken line that runs on into the next shot is heard out
/// before that shot's own begin.
pub(crate) fn place_all<'s>(
    laid: &[Laid<'s>],
    format: &FilmFormat,
    assets: &'s Assets,
) -> Vec<Said<'s>> {
    let mut said = Vec::new();
    let mut free = 0;
    for (index, each) in laid.iter().enumerate() {
        for mut line in place_lines(index, each, format, assets) {
            if line.spoken.is_some() {
                if line.line.start.is_none() {
                    line.first_frame = line.first_frame.max(free);
                }
                free = line.first_frame + line.frames + frames_of_millis(format, GAP_MILLIS);
            }
            said.push(line);
        }
    }
    said
}

/// Lines of one shot in their places. Lines without a start follow each other from shortly after
/// the shot is fully seen; those without a voice are shortened together when the shot is too
/// short for them.
pub(crate) fn place_lines<'s>(
    shot: usize,
    laid: &Laid<'s>,
    format: &FilmFormat,
    assets: &'s Assets,
) -> Vec<Said<'s>> {
    let Some(source) = laid.shot else {
        return Vec::new();
    };
    let mut from = laid.start + laid.frames_in.max(laid.fade_in);
    let mut to = laid.end() - laid.frames_out.max(laid.fade_out);
    if from >= to {
        (from, to) = (laid.start, laid.end());
    }
    let spoken: Vec<Option<(&'s str, &'s SpokenLine)>> = (1..=source.lines.len())
        .map(|number| {
            let (name, spoken) = assets
                .spoken
                .get_key_value(&speech_name(&source.id, number))?;
            Some((name.as_str(), spoken))
        })
        .collect();
    let voiced = |index: usize, line: &Line| match spoken.get(index).copied().flatten() {
        Some((_, spoken)) => Some(spoken.secs),
        None => assets.sound_secs.get(&line.voice).copied(),
    };
    let wanted = |index: usize, line: &Line| match voiced(index, line) {
        Some(secs) => Length::Secs(secs).frames(format.fps).max(1),
        None => frames_of_millis(format, reading_millis(&line.text)),
    };
    let gap = frames_of_millis(format, GAP_MILLIS);
    let lines = || source.lines.iter().enumerate();
    let (mut fixed, mut flexible, mut count) = (0, 0, 0);
    for (index, line) in lines().filter(|(_, line)| line.start.is_none()) {
        count += 1;
        let sum = if voiced(index, line).is_some() {
            &mut fixed
        } else {
            &mut flexible
        };
        *sum += wanted(index, line);
    }
    let lead = frames_of_millis(format, 250);
    let mut room = (to - from - fixed - gap * count).max(0);
    let mut cursor = from;
    if flexible + lead <= room {
        cursor += lead;
        room -= lead;
    }
    let mut placed: Vec<Said<'s>> = Vec::new();
    for (index, line) in lines() {
        let mut frames = wanted(index, line);
        if voiced(index, line).is_none() && line.start.is_none() && flexible > room {
            frames = (i128::from(frames) * i128::from(room) / i128::from(flexible)) as i64;
        }
        let first_frame = match line.start {
            Some(start) => laid.start + start.frames(format.fps),
            None => cursor,
        };
        if voiced(index, line).is_none() {
            // What is only read goes with its shot.
            frames = frames.min(laid.end() - first_frame);
        }
        let frames = frames.max(1);
        cursor = first_frame + frames + gap;
        placed.push(Said {
            shot,
            number: index + 1,
            line,
            first_frame,
            frames,
            spoken: spoken.get(index).copied().flatten(),
        });
    }
    placed
}

/// Subtitles of all lines, in order, never overlapping, inside the film. Lines for which no frame
/// is left come back as an error with their place in `said`.
pub(crate) fn cues(
    said: &[Said<'_>],
    format: &FilmFormat,
    film_frames: i64,
) -> Result<Vec<Cue>, Vec<usize>> {
    let (shortest, longest) = (
        frames_of_millis(format, 830),
        frames_of_millis(format, 7000),
    );
    let mut order: Vec<usize> = (0..said.len()).collect();
    order.sort_by_key(|index| said[*index].first_frame);
    let mut cues: Vec<Cue> = Vec::new();
    let mut lost = Vec::new();
    for index in order {
        let line = &said[index];
        let texts = split(&shown(&line.line.text));
        let whole: usize = texts.iter().map(|text| columns(text).max(1)).sum();
        let clock = line
            .spoken
            .and_then(|(_, spoken)| Clock::new(&line.line.text, spoken));
        let (mut before, mut heard) = (0, 0);
        for text in texts {
            let share = |columns: usize| {
                let part = i128::from(line.frames) * columns as i128 / whole.max(1) as i128;
                line.first_frame + part as i64
            };
            let mut first_frame = share(before);
            before += columns(&text).max(1);
            let mut end = share(before);
            if let Some(clock) = &clock {
                let at = |millis: i64| line.first_frame + frames_of_millis(format, millis) - 1;
                first_frame = at(clock.start_millis(heard));
                heard += letters(&text);
                end = at(clock.end_millis(heard)) + 1;
            }
            if let Some(last) = cues.last_mut()
                && last.first_frame + last.frames > first_frame
            {
                if first_frame - last.first_frame >= shortest {
                    last.frames = first_frame - last.first_frame;
                } else {
                    first_frame = last.first_frame + last.frames;
                }
            }
            if first_frame >= film_frames {
                lost.push(index);
                break;
            }
            let end = end.max(first_frame + 1).min(film_frames);
            cues.push(Cue {
                first_frame,
                frames: (end - first_frame).min(longest),
                text,
            });
        }
    }
    // A short one stays until it can be read, where nothing follows.
    for index in 0..cues.len() {
        let free = cues
            .get(index + 1)
            .map_or(film_frames, |next| next.first_frame);
        let cue = &mut cues[index];
        cue.frames = cue.frames.max(shortest.min(free - cue.first_frame)).max(1);
    }
    if lost.is_empty() { Ok(cues) } else { Err(lost) }
}

/// Tags that only a voice understands.
const VOICE_TAGS: [&str; 14] = [
    "audio", "break", "desc", "emphasis", "lang", "mark", "p", "phoneme", "prosody", "s", "say-as",
    "speak", "sub", "voice",
];

/// The words as shown: without what is said to the voice alone, the sounds or words given for a word
/// as in `[read](/rɛd/)` and tags such as `<break/>`.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '<']) {
        let (front, back) = rest.split_at(at);
        out.push_str(front);
        let taken = match (marked(back), voice_tag(back)) {
            (Some((word, bytes)), _) => {
                out.push_str(word);
                bytes
            }
            (None, Some(bytes)) => {
                let spaced = out.is_empty() || out.ends_with(' ');
                let after = back.get(bytes..).unwrap_or_default();
                bytes + usize::from(spaced && after.starts_with(' '))
            }
            (None, None) => {
                out.push_str(&back[..1]);
                1
            }
        };
        rest = back.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Longest mark or tag that is taken for one.
const MARK_BYTES_MAX: usize = 400;

/// The word of `[word](said)` at the front, and the length of the whole.
fn marked(text: &str) -> Option<(&str, usize)> {
    let text = text.get(..text.floor_char_boundary(MARK_BYTES_MAX))?;
    let (word, after) = text.strip_prefix('[')?.split_once("](")?;
    let (said, _) = after.split_once(')')?;
    let plain = |part: &str, not: &[char]| !part.trim().is_empty() && !part.contains(not);
    (plain(word, &['[', ']', '\n']) && plain(said, &['\n']))
        .then(|| (word, word.len() + said.len() + 4))
}

/// Length of a tag for the voice at the front.
fn voice_tag(text: &str) -> Option<usize> {
    let text = text.get(..text.floor_char_boundary(MARK_BYTES_MAX))?;
    let (inside, _) = text.strip_prefix('<')?.split_once('>')?;
    let name = inside.trim_start_matches('/');
    let end = name.find(|next: char| !(next.is_ascii_alphanumeric() || next == '-'));
    let name = name.get(..end.unwrap_or(name.len()))?.to_ascii_lowercase();
    let known = VOICE_TAGS.contains(&name.as_str()) && !inside.contains(['<', '\n']);
    known.then_some(inside.len() + 2)
}

/// Split a text into subtitles of at most [`CUE_ROWS_MAX`] rows of [`CUE_COLUMNS_MAX`] columns,
/// at the ends of sentences where they lie well, else between words.
pub(crate) fn split(text: &str) -> Vec<String> {
    let words = words(text);
    let mut texts = Vec::new();
    let mut from = 0;
    while from < words.len() {
        let mut to = from + 1;
        while to < words.len() && rows(&words[from..=to]).len() <= CUE_ROWS_MAX {
            to += 1;
        }
        if to < words.len() {
            let whole = words[from..to].len();
            let sentence = (from + 1..=to)
                .rev()
                .find(|end| ends_sentence(words[end - 1].text));
            if let Some(end) = sentence
                && (end - from) * 5 >= whole * 2
            {
                to = end;
            }
        }
        texts.push(balanced(&words[from..to]));
        from = to;
    }
    texts
}

#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    /// Whether a space stands before it.
    spaced: bool,
}

/// Words, and pieces of what is too long for a row or written without spaces.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let mut spaced = true;
        let mut start = 0;
        let mut taken = 0;
        for (at, character) in word.char_indices() {
            let columns = width(character);
            let breaks =
                taken + columns > CUE_COLUMNS_MAX || (columns == 2 && may_break(character));
            if breaks && at > start {
                let text = &word[start..at];
                words.push(Word { text, spaced });
                (start, taken, spaced) = (at, 0, false);
            }
            taken += columns;
        }
        let text = &word[start..];
        words.push(Word { text, spaced });
    }
    words
}

/// Whether a row may begin with a wide character; closing marks stay with what they close.
fn may_break(character: char) -> bool {
    !"、。，．！？：；）」』】〕》〉ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ".contains(character)
}

fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches(['"', '\'', '”', '’', ')', '»', '」', '』']);
    word.ends_with(['.', '?', '!', '…', '。', '？', '！', '؟', '।'])
}

fn joined(words: &[Word<'_>]) -> String {
    let mut out = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 && word.spaced {
            out.push(' ');
        }
        out.push_str(word.text);
    }
    out
}

fn columns_of(words: &[Word<'_>]) -> usize {
    let spaces = words.iter().skip(1).filter(|word| word.spaced).count();
    spaces + words.iter().map(|word| columns(word.text)).sum::<usize>()
}

/// Greedy rows, as ends of ranges.
fn rows(words: &[Word<'_>]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    for end in 1..=words.len() {
        if end - start > 1 && columns_of(&words[start..end]) > CUE_COLUMNS_MAX {
            ends.push(end - 1);
            start = end - 1;
        }
    }
    ends.push(words.len());
    ends
}

/// One row when it fits, else two of nearly the same length.
fn balanced(words: &[Word<'_>]) -> String {
    if columns_of(words) <= CUE_COLUMNS_MAX {
        return joined(words);
    }
    let fits = |at: &usize| {
        columns_of(&words[..*at]) <= CUE_COLUMNS_MAX && columns_of(&words[*at..]) <= CUE_COLUMNS_MAX
    };
    let uneven = |at: &usize| columns_of(&words[..*at]).abs_diff(columns_of(&words[*at..]));
    match (1..words.len()).filter(fits).min_by_key(uneven) {
        Some(at) => format!("{}\n{}", joined(&words[..at]), joined(&words[at..])),
        None => joined(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_become_subtitles_of_two_rows_without_losing_a_word() {
        let text = "We had been told that the river was wide, and it was. Nobody had told us that \
                    it would be quiet, or that the quiet would follow us over the mountains and sit \
                    down beside us in the evenings like a relative who has nowhere else to go.";
        let cues = split(text);
        assert!(cues.len() >= 3);
        for cue in &cues {
            assert!(cue.lines().count() <= CUE_ROWS_MAX, "{cue}");
            assert!(
                cue.lines().all(|row| columns(row) <= CUE_COLUMNS_MAX),
                "{cue}"
            );
        }
        let again: Vec<&str> = cues.iter().flat_map(|cue| cue.split_whitespace()).collect();
        assert_eq!(again, text.split_whitespace().collect::<Vec<_>>());
        assert!(cues[0].ends_with("it was."), "{}", cues[0]);
    }

    #[test]
    fn text_without_spaces_and_endless_words_are_broken() {
        let chinese = "灯台の光が消えた夜、海は静かだった。".repeat(6);
        let cues = split(&chinese);
        assert_eq!(cues.concat().replace('\n', ""), chinese);
        for text in [chinese, "x".repeat(500)] {
            for cue in split(&text) {
                assert!(cue.lines().count() <= CUE_ROWS_MAX, "{cue}");
                assert!(
                    cue.lines().all(|row| columns(row) <= CUE_COLUMNS_MAX),
                    "{cue}"
                );
                assert!(
                    cue.lines().all(|row| !row.starts_with(['、', '。'])),
                    "{cue}"
                );
            }
        }
    }

    #[test]
    fn sounds_given_for_words_are_not_shown() {
        assert_eq!(
            shown("I [read](/rɛd/) it. [Bass](/beɪs/)!"),
            "I read it. Bass!"
        );
        assert_eq!(shown("a [b] (c) ](/d/) e](/"), "a [b] (c) ](/d/) e](/");
        assert_eq!(shown("In [1984](nineteen eighty-four)."), "In 1984.");
    }

    #[test]
    fn tags_for_the_voice_are_not_shown_and_others_are() {
        for (text, seen) in [
            ("Wait <break time=\"1s\"/> here.", "Wait here."),
            ("<speak>Wait.<break/></speak>", "Wait."),
            ("<prosody rate='slow'>So</prosody> slow", "So slow"),
            ("an <i>idea</i>, a < b > c", "an <i>idea</i>, a < b > c"),
            ("if a<sum and b>c", "if a<sum and b>c"),
            ("<break", "<break"),
        ] {
            assert_eq!(shown(text), seen);
        }
    }
}
