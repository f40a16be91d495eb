//! Cues of a film as SRT.

use engine_base::Rational;
use flow_timeline::Cue;

use crate::MediaError;

/// How an SRT file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SrtStyle {
    /// `\r\n` for `\n`.
    pub crlf: bool,
    /// A byte order mark at the start.
    pub bom: bool,
}

/// Time of frame `frame` at `fps`, rounded to the nearest millisecond from the exact fraction.
///
/// # Errors
/// [`MediaError::BadRequest`] for a rate of 0 or a frame outside 64 bits of milliseconds.
pub fn frame_to_millis(frame: i64, fps: Rational) -> Result<i64, MediaError> {
    let millis = Rational::whole(frame)
        .checked_mul(Rational::whole(1000))
        .and_then(|millis| millis.checked_div(fps));
    millis.map(Rational::round).map_err(|error| {
        MediaError::BadRequest(format!("time of frame {frame} at {fps} a second: {error}"))
    })
}

fn clock(millis: i64) -> String {
    let millis = millis.max(0);
    let (secs, ms) = (millis / 1000, millis % 1000);
    format!(
        "{:02}:{:02}:{:02},{ms:03}",
        secs / 3600,
        secs / 60 % 60,
        secs % 60
    )
}

/// `cues` as an SRT file: numbered from 1, UTF-8, in logical order without added marks. Cues
/// without length or words are left out; blank lines inside a text, which would end it, close up.
///
/// # Errors
/// As [`frame_to_millis`].
pub fn write_srt(cues: &[Cue], fps: Rational, style: &SrtStyle) -> Result<String, MediaError> {
    let end = if style.crlf { "\r\n" } else { "\n" };
    let mut out = String::new();
    if style.bom {
        out.push('\u{FEFF}');
    }
    let mut number = 0;
    for cue in cues {
        let text = cue.text.replace("\r\n", "\n").replace('\r', "\n");
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        if cue.frames <= 0 || lines.is_empty() {
            continue;
        }
        number += 1;
        let start = frame_to_millis(cue.first_frame, fps)?;
        let stop = frame_to_millis(cue.first_frame.saturating_add(cue.frames), fps)?;
        let head = format!("{number}{end}{} --> {}{end}", clock(start), clock(stop));
        out.push_str(&head);
        for line in lines {
            out.push_str(line);
            out.push_str(end);
        }
        out.push_str(end);
    }
    Ok(out)
}
