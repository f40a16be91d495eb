//! `longtake speak`.

use std::path::PathBuf;

use clap::Args;
use engine_base::{CancelToken, Code};
use flow_studio::{SpeechRequest, StudioError, StudioEvent, Watcher as _};
use serde_json::json;

use super::{say, say_json};
use crate::args::Cli;
use crate::bars::{Bars, clock};

pub(crate) const SPEAK_EXAMPLES: &str = "Examples:
  longtake speak \"The lamp went out at 9:30.\" -o lamp.wav
  longtake speak --file chapter.txt -o chapter.wav --voice kokoro:bm_george --rate 0.9
  longtake speak \"Dr. Smith paid $5.\" --show            print the words that would be said
  longtake speak --list                                 list the voices of this machine

<break/>, <break time=\"500ms\"/> and <break strength=\"strong\"/> in the text are pauses of up to 10
seconds; other tags, and signs that have no name such as emoji, are left out, and a note names them.
[word](/sounds/) gives a word its sounds, [1984](nineteen eighty-four) the words to say.

More voices: longtake models pull kokoro-82m-int8";

#[derive(Debug, Args)]
pub(crate) struct SpeakArgs {
    /// The text
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "list"])]
    pub(crate) text: Option<String>,

    /// Read the text from a file (UTF-8)
    #[arg(long, value_name = "TEXTFILE", conflicts_with = "text")]
    pub(crate) file: Option<PathBuf>,

    /// Where the sound goes: WAV, 24 kHz, one channel
    #[arg(short, long, value_name = "FILE.wav", required_unless_present_any = ["list", "show"])]
    pub(crate) out: Option<PathBuf>,

    /// The voice, as --list shows it (default: the first that speaks the language)
    #[arg(long, value_name = "ID")]
    pub(crate) voice: Option<String>,

    /// The text's language, such as en or en-GB. One that no voice speaks is refused; text in Latin
    /// letters is read as this language whatever it is in, since a line alone does not tell
    #[arg(long, value_name = "LANGUAGE", default_value = "en")]
    pub(crate) language: String,

    /// Pace: 0.5 is half as fast as the voice's own, 2 twice as fast
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    pub(crate) rate: f64,

    /// List the voices, and say nothing
    #[arg(long)]
    pub(crate) list: bool,

    /// Print the words that would be said, and say nothing
    #[arg(long)]
    pub(crate) show: bool,
}

/// Carry out the command; gives the exit status.
pub(super) fn speak(cli: &Cli, args: &SpeakArgs, cancel: &CancelToken) -> Result<u8, StudioError> {
    if args.list {
        return list(cli);
    }
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => flow_studio::text_to_speak(file)?,
        (None, None) => {
            return Err(StudioError::new(
                Code::BadInput,
                "there is no text to speak",
            ));
        }
    };
    let request = SpeechRequest {
        voice: args.voice.clone(),
        language: args.language.clone(),
        rate: args.rate,
        ..SpeechRequest::new(text)
    };
    if args.show {
        let lines = flow_studio::words_to_speak(&request)?;
        if cli.json {
            say_json(&serde_json::to_value(&lines).unwrap_or_default());
            return Ok(0);
        }
        if let Some(what) = lines.note {
            Bars::new(cli.quiet).event(StudioEvent::Warning { what: what.into() });
        }
        lines.sentences.iter().for_each(|line| say(line));
        return Ok(0);
    }
    let Some(out) = &args.out else {
        return Err(StudioError::new(Code::BadInput, "expected -o FILE.wav"));
    };
    let bars = Bars::new(cli.quiet || cli.json);
    let report = flow_studio::speak(&request, out, &bars, cancel);
    bars.finish();
    let report = report?;
    if cli.json {
        say_json(&serde_json::to_value(&report).unwrap_or_default());
    } else if !cli.quiet {
        let words = report.words.len();
        let length = clock(report.secs);
        say(&format!(
            "{}  ({length}, {words} words)",
            report.out.display()
        ));
    }
    Ok(0)
}

fn list(cli: &Cli) -> Result<u8, StudioError> {
    let voices = flow_studio::voices()?;
    if cli.json {
        say_json(&json!({ "voices": voices }));
        return Ok(0);
    }
    for voice in &voices {
        say(&format!(
            "{:20} {}  {}  {}",
            voice.id, voice.language, voice.title, voice.licence
        ));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    fn parse(words: &[&str]) -> Result<SpeakArgs, clap::Error> {
        let words = ["longtake", "speak"].iter().chain(words);
        match Cli::try_parse_from(words)?.command {
            Command::Speak(args) => Ok(*args),
            other => panic!("not a command to speak: {other:?}"),
        }
    }

    #[test]
    fn a_text_wants_a_place_and_a_list_wants_nothing() {
        let args = parse(&["Hello there.", "-o", "out.wav", "--rate", "0.8"]).unwrap();
        assert_eq!(args.text.as_deref(), Some("Hello there."));
        assert!((args.rate - 0.8).abs() < 1e-9);
        assert!(parse(&["--list"]).unwrap().list);
        assert!(parse(&["Hello", "--show"]).unwrap().out.is_none());
        assert!(parse(&["--file", "a.txt", "--out", "b.wav"]).is_ok());
        for wrong in [
            &[][..],
            &["Hello"],
            &["-o", "x.wav"],
            &["a", "--file", "b", "-o", "c"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
