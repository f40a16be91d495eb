//! From text to cues.

use super::{SrtCue, SrtNote};

/// Most notes kept of one file.
const MAX_NOTES: usize = 200;

/// Lines of `text` whatever ends them: `\n`, `\r\n` or `\r`.
fn lines(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        out.push(&rest[..at]);
        let step = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[at + step..];
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    out
}

/// Without invisible marks and blanks at both ends; for telling what a line is, not for its text.
fn bare(line: &str) -> &str {
    line.trim_matches(|c: char| {
        c.is_whitespace()
            || matches!(c, '\u{FEFF}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
                | '\u{2066}'..='\u{2069}' | '\0')
    })
}

fn is_blank(line: &str) -> bool {
    bare(line).is_empty()
}

fn is_number(line: &str) -> bool {
    let line = bare(line);
    !line.is_empty() && line.len() <= 9 && line.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_dash(c: char) -> bool {
    matches!(
        c,
        '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE63}' | '\u{FF0D}'
    )
}

/// The two sides of an arrow: dashes of any kind, then `>` (or one arrow sign).
fn split_arrow(line: &str) -> Option<(&str, &str)> {
    if let Some(at) = line.find(['\u{2192}', '\u{27F6}']) {
        let sign = line[at..].chars().next().map_or(0, char::len_utf8);
        return Some((&line[..at], &line[at + sign..]));
    }
    let at = line.find('>')?;
    let left = line[..at].trim_end_matches(|c: char| is_dash(c) || c == ' ');
    let dashes = line[left.len()..at].chars().filter(|c| is_dash(*c)).count();
    (dashes > 0).then(|| (left, &line[at + 1..]))
}

/// Milliseconds of `h:m:s,f`, `m:s,f`, with a dot for the comma or no fraction at all. The fraction
/// is a decimal: `.5` is half a second.
fn millis(text: &str) -> Option<i64> {
    let text = bare(text);
    let (clock, fraction) = match text.find([',', '.']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let parts: Vec<&str> = clock.split(':').map(bare).collect();
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let mut secs = 0_i64;
    for part in parts {
        let digits =
            !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
        secs = secs * 60 + part.parse::<i64>().ok().filter(|_| digits)?;
    }
    let fraction = bare(fraction);
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some(secs * 1000 + thousandths.parse::<i64>().ok()?)
}

/// Times of a line, if it has the form of one: `Some(None)` when the form is there and the times
/// can't be read.
fn times(line: &str) -> Option<Option<(i64, i64)>> {
    let line = bare(line);
    let (left, right) = split_arrow(line)?;
    // A line of speech may hold an arrow too; a time line starts with a time.
    if !left.contains(':') || !left.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // Places and settings may follow the second time.
    let end = bare(right).split_whitespace().next().unwrap_or("");
    Some(millis(left).zip(millis(end)))
}

/// Cues and notes of `text`, and how many lines it has.
pub(crate) fn parse(text: &str) -> (Vec<SrtCue>, Vec<SrtNote>, usize) {
    let lines = lines(text);
    let mut cues = Vec::new();
    let mut notes: Vec<SrtNote> = Vec::new();
    let mut report = |line: usize, what: String| {
        if notes.len() < MAX_NOTES {
            notes.push(SrtNote { line, what });
        }
    };
    let mut at = 0;
    while at < lines.len() {
        let Some(found) = times(lines[at]) else {
            let starts_cue =
                is_number(lines[at]) && lines.get(at + 1).is_some_and(|next| times(next).is_some());
            if !is_blank(lines[at]) && !starts_cue {
                let shown: String = bare(lines[at]).chars().take(60).collect();
                report(at + 1, format!("got {shown:?} outside a cue; left out"));
            }
            at += 1;
            continue;
        };
        let time_line = at;
        at += 1;
        let mut words = Vec::new();
        while at < lines.len() {
            if times(lines[at]).is_some() {
                break;
            }
            let numbered =
                is_number(lines[at]) && lines.get(at + 1).is_some_and(|next| times(next).is_some());
            if numbered && (words.is_empty() || words.last().is_some_and(|l: &&str| is_blank(l))) {
                break;
            }
            words.push(lines[at]);
            at += 1;
            // Only the last of several blank lines looks on, so that a million of them stay quick.
            let last_blank = is_blank(words[words.len() - 1])
                && lines.get(at).is_none_or(|next| !is_blank(next));
            if last_blank && ends_cue(&lines[at..]) {
                break;
            }
        }
        let text = join(&words);
        match found {
            Some((start, end)) if end > start => cues.push(SrtCue {
                start_millis: start,
                end_millis: end,
                text,
            }),
            Some((start, end)) => {
                let what = format!(
                    "the cue ends at {end} ms, not after its start at {start} ms; left out"
                );
                report(time_line + 1, what);
            }
            None => {
                let shown: String = bare(lines[time_line]).chars().take(60).collect();
                let what = format!(
                    "got the times {shown:?}, expected 00:00:01,000 --> 00:00:02,000; the cue is left out"
                );
                report(time_line + 1, what);
            }
        }
    }
    (cues, notes, lines.len())
}

/// Whether a cue ends at a blank line before `rest`, which begins with no other blank line: what
/// follows is a new cue or the end. A blank line inside a text stays part of it.
fn ends_cue(rest: &[&str]) -> bool {
    match (rest.first(), rest.get(1)) {
        (None, _) => true,
        (Some(first), second) => {
            times(first).is_some()
                || is_number(first) && second.is_none_or(|second| times(second).is_some())
        }
    }
}

fn join(words: &[&str]) -> String {
    let mut words = words;
    while let [first, rest @ ..] = words
        && is_blank(first)
    {
        words = rest;
    }
    while let [rest @ .., last] = words
        && is_blank(last)
    {
        words = rest;
    }
    let trimmed: Vec<&str> = words
        .iter()
        .map(|line| {
            line.trim_end_matches([' ', '\t', '\0'])
                .trim_start_matches('\u{FEFF}')
        })
        .collect();
    trimmed.join("\n")
}
