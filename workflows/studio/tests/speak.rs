//! Text into a sound file: needs the packs that `cargo xtask setup` fetches.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of a test ends it; helpers count as test code"
)]

use std::fs;
use std::sync::Mutex;

use engine_base::{CancelToken, Code};
use flow_studio::{
    SpeechRequest, StudioEvent, Watcher, speak, text_to_speak, voices, words_to_speak,
};

struct Quiet;

impl Watcher for Quiet {
    fn event(&self, _event: StudioEvent) {}
}

#[test]
fn a_text_becomes_a_wave_file_with_the_times_of_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("lamp.wav");
    let request = SpeechRequest::new("The lamp went out at 9:30. She lit it again.");
    let report = speak(&request, &out, &Quiet, &CancelToken::new()).unwrap();
    let mut wave = hound::WavReader::open(&out).unwrap();
    let spec = wave.spec();
    assert_eq!(
        (spec.channels, spec.sample_rate, spec.bits_per_sample),
        (1, 24_000, 16)
    );
    assert!((f64::from(wave.duration()) / 24_000.0 - report.secs).abs() < 1e-9);
    let loudest = wave
        .samples::<i16>()
        .map(|sample| sample.unwrap().unsigned_abs())
        .max();
    assert!((4_000..29_500).contains(&loudest.unwrap()), "{loudest:?}");
    let said: Vec<&str> = report
        .words
        .iter()
        .map(|word| word.spoken.as_str())
        .collect();
    assert_eq!(said[4..8], ["at", "nine", "thirty", "She"]);
    assert!(
        report
            .words
            .windows(2)
            .all(|two| two[0].end_secs <= two[1].start_secs + 1e-9)
    );

    // A stop leaves the file that was there, and nothing beside it.
    let before = fs::read(&out).unwrap();
    let cancel = CancelToken::new();
    cancel.cancel();
    let stopped = speak(&request, &out, &Quiet, &cancel).unwrap_err();
    assert_eq!(stopped.code, Code::Cancelled);
    assert_eq!(fs::read(&out).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let nowhere = folder.path().join("none/x.wav");
    let error = speak(&request, &nowhere, &Quiet, &CancelToken::new()).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
}

#[test]
fn what_will_be_said_is_shown_and_voices_are_listed() {
    let shown = words_to_speak(&SpeechRequest::new("Dr. Smith paid $5. He left.")).unwrap();
    let lines = &shown.sentences;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("five dollars."), "{lines:?}");
    assert_eq!(shown.note, None);
    let shown = words_to_speak(&SpeechRequest::new("It <b>works</b> 🎉\u{7}")).unwrap();
    assert_eq!(shown.sentences, ["It works"]);
    assert_eq!(shown.left_out, ["<b>", "🎉", "\u{7}"]);
    let note = shown.note.unwrap();
    assert!(note.contains("\"🎉\"") && note.contains("\\u{7}"), "{note}");
    assert_eq!(voices().unwrap()[0].id, "hibari:af_heart");
}

/// Keeps warnings.
#[derive(Default)]
struct Warned(Mutex<Vec<String>>);

impl Watcher for Warned {
    fn event(&self, event: StudioEvent) {
        if let StudioEvent::Warning { what } = event {
            self.0.lock().unwrap().push(what.text);
        }
    }
}

#[test]
fn what_has_no_sound_is_said_once_and_rests_are_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.wav");
    let warned = Warned::default();
    let speak = |text: &str| {
        let request = SpeechRequest::new(text);
        speak(&request, &out, &warned, &CancelToken::new())
    };
    let report = speak("We won 🎉. <em>Again</em> 🎉. And again.<break time='2s'/>").unwrap();
    assert_eq!(report.left_out, ["🎉", "<em>"]);
    assert_eq!(
        *warned.0.lock().unwrap(),
        ["left out of what is spoken: \"🎉\", \"<em>\""]
    );
    let last = report.words.last().unwrap();
    assert!(report.secs - last.end_secs > 1.999, "{report:?}");
    let plain = speak("We won. Again. And again.").unwrap();
    assert!((report.secs - plain.secs - 2.0).abs() < 1e-6);
    assert_eq!(warned.0.lock().unwrap().len(), 1);

    // A text of no word makes no file.
    std::fs::remove_file(&out).unwrap();
    for text in ["", "\u{0}\u{1b}", "🎉🎉", "<break/>"] {
        let error = speak(text).unwrap_err();
        assert_eq!(error.code, Code::BadInput);
        assert_eq!(text.contains('🎉'), error.message.contains('🎉'), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(warned.0.lock().unwrap().len(), 1, "the error says it");
}

#[test]
fn texts_in_files_are_utf_8() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    fs::write(&path, "Wind — and rain.").unwrap();
    assert_eq!(text_to_speak(&path).unwrap(), "Wind — and rain.");
    fs::write(&path, b"caf\xe9").unwrap();
    assert_eq!(text_to_speak(&path).unwrap_err().code, Code::BadInput);
    let none = text_to_speak(&folder.path().join("none.txt")).unwrap_err();
    assert_eq!(none.code, Code::NotFound);
}
