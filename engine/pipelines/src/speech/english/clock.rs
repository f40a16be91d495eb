//! Times of day and lengths of time.

use super::Accent;
use super::cursor::Cursor;
use super::number::{cardinal, digit_by_digit};
use super::scan::{At, SPELL};

/// Reads "a.m.", "pm" and the like, with a blank before it or without.
fn half_of_day(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    const HALVES: [(&str, &str); 10] = [
        ("a.m.", "AM"),
        ("p.m.", "PM"),
        ("A.M.", "AM"),
        ("P.M.", "PM"),
        ("a.m", "AM"),
        ("p.m", "PM"),
        ("am", "AM"),
        ("pm", "PM"),
        ("AM", "AM"),
        ("PM", "PM"),
    ];
    let mut ahead = *cursor;
    ahead.blanks();
    let (_, said) = ahead.eat_word(&HALVES, |row| row.0)?;
    *cursor = ahead;
    Some(said)
}

fn two_digits(digits: &str, accent: Accent) -> String {
    match digits.strip_prefix('0') {
        Some("0") => "hundred".to_owned(),
        Some(digit) => format!("oh {}", digit_by_digit(digit, "oh")),
        None => cardinal(digits.parse().unwrap_or(0), accent),
    }
}

/// Hour and minutes, and whether a half of the day was said with them.
struct Time {
    said: String,
    /// Whether the hour stands alone, without minutes.
    bare: bool,
    half: Option<&'static str>,
}

fn time(cursor: &mut Cursor<'_>, accent: Accent) -> Option<Time> {
    let mut ahead = *cursor;
    let hour = ahead.digits(1, 2)?;
    let n: u64 = hour.parse().ok().filter(|n| *n < 25)?;
    let mut minutes = None;
    let mut colon = ahead;
    let sign = colon.eat_any(":.");
    if sign.is_some()
        && let Some(digits) = colon.digits(2, 2)
        && digits < "60"
    {
        let mut half = colon;
        // A point stands between hours and minutes only where the half of the day shows a time.
        if sign == Some(':') || half_of_day(&mut half).is_some() {
            minutes = Some(digits);
            ahead = colon;
        }
    }
    let half = half_of_day(&mut ahead);
    if half.is_some() && !(1..=12).contains(&n) {
        return None;
    }
    let hours = cardinal(n, accent);
    let said = match minutes {
        None => hours,
        Some("00") if half.is_some() => hours,
        Some("00") if (1..=12).contains(&n) => format!("{hours} o'clock"),
        Some(digits) => format!("{hours} {}", two_digits(digits, accent)),
    };
    *cursor = ahead;
    Some(Time {
        said,
        bare: minutes.is_none(),
        half,
    })
}

impl Time {
    fn words(&self) -> String {
        match self.half {
            Some(half) => format!("{} {SPELL}{half}", self.said),
            None => self.said.clone(),
        }
    }
}

/// "7:30", "7:30 p.m.", "19:05", "8:00", "9–5 pm", "9:00-17:30".
pub(super) fn clock(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let from = time(&mut cursor, at.accent)?;
    let mut ranged = cursor;
    if ranged.range_dash()
        && let Some(to) = time(&mut ranged, at.accent)
        && ranged.at_word_end()
        && !(from.bare && to.half.is_none() && to.bare)
    {
        return Some((
            ranged.taken(),
            format!("{} to {}", from.words(), to.words()),
        ));
    }
    let colon = ahead_is_more(cursor);
    if from.bare && from.half.is_none() || !cursor.at_word_end() || colon {
        return None;
    }
    Some((cursor.taken(), from.words()))
}

fn ahead_is_more(cursor: Cursor<'_>) -> bool {
    let mut ahead = cursor;
    ahead.eat(":") && ahead.digits(1, usize::MAX).is_some()
}

/// "00:07:30": hours, minutes and seconds; parts that are nothing are left out.
pub(super) fn length_of_time(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let hours = cursor.digits(1, 2)?;
    let minutes = cursor.eat(":").then(|| cursor.digits(2, 2)).flatten()?;
    let seconds = cursor.eat(":").then(|| cursor.digits(2, 2)).flatten()?;
    let mut frames = cursor;
    let frames = frames
        .eat_any(":;")
        .and_then(|_| frames.digits(2, 2))
        .inspect(|_| cursor = frames);
    if !cursor.at_word_end() || minutes > "59" || seconds > "59" {
        return None;
    }
    let parts = [
        (Some(hours), "hour"),
        (Some(minutes), "minute"),
        (Some(seconds), "second"),
        (frames, "frame"),
    ];
    let mut said = Vec::new();
    for (digits, unit) in parts {
        let n: u64 = digits.unwrap_or("0").parse().ok()?;
        if n > 0 {
            let plural = if n == 1 { "" } else { "s" };
            said.push(format!("{} {unit}{plural}", cardinal(n, at.accent)));
        }
    }
    if said.is_empty() {
        said.push("zero seconds".to_owned());
    }
    Some((cursor.taken(), said.join(" ")))
}

/// "16:9", "3:1", "1920x1080": two numbers that belong together.
pub(super) fn ratio(at: &At<'_>) -> Option<(usize, String)> {
    const FRAMES: [(&str, &str); 6] = [
        ("16", "9"),
        ("4", "3"),
        ("21", "9"),
        ("9", "16"),
        ("3", "2"),
        ("16", "10"),
    ];
    let mut cursor = Cursor::new(at.rest);
    let first = super::number::Number::read(&mut cursor)?;
    let tight = !cursor.blanks();
    let sign = cursor.eat_any(":x×")?;
    let also_tight = !cursor.blanks();
    if sign != '×' && tight != also_tight || sign == ':' && !tight {
        return None;
    }
    let second = super::number::Number::read(&mut cursor)?;
    if !cursor.at_word_end() {
        return None;
    }
    let frame = FRAMES.contains(&(first.whole.as_str(), second.whole.as_str()));
    let between = if sign != ':' || frame { "by" } else { "to" };
    let (first, second) = (first.say(at.accent), second.say(at.accent));
    Some((cursor.taken(), format!("{first} {between} {second}")))
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn times_are_said() {
        let cases = [
            ("Meet at 8:00.", "Meet at eight o'clock."),
            ("at 7:30", "at seven thirty"),
            ("4:05 PM", "four oh five P M"),
            ("7:30 p.m. sharp", "seven thirty P M sharp"),
            ("8.15am", "eight fifteen A M"),
            ("19:05", "nineteen oh five"),
            ("20:00", "twenty hundred"),
            ("7 o'clock", "seven o'clock"),
            ("8:00 a.m.", "eight A M."),
            ("9-5 pm", "nine to five P M"),
            ("9:00–17:30", "nine o'clock to seventeen thirty"),
            ("from 9am to noon", "from nine A M to noon"),
            ("00:07:30", "seven minutes thirty seconds"),
            ("01:00:01", "one hour one second"),
            (
                "01:02:03:04",
                "one hour two minutes three seconds four frames",
            ),
            ("a 16:9 frame", "a sixteen by nine frame"),
            ("odds of 3:1", "odds of three to one"),
            (
                "1920x1080",
                "one thousand nine hundred twenty by one thousand eighty",
            ),
            ("3 × 4", "three by four"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}
