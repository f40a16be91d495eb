//! Any bytes as a text to speak: no panic, no digit and no control character left to speak, what is
//! left out is in the text, and the text without marks is no longer than with them.
//!
//! The first byte chooses the accent; the rest is the text, bytes that are no UTF-8 replaced.

#![no_main]

use engine_pipelines::{
    Accent, LeftOut, foreign_letters, foreign_script, printed_text, spoken_text,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let accent = match bytes.first() {
        Some(first) if first % 2 == 1 => Accent::Gb,
        _ => Accent::Us,
    };
    let text = String::from_utf8_lossy(bytes.get(1..).unwrap_or_default());
    let spoken = spoken_text(&text, accent);
    assert!(
        !spoken.contains(|sign: char| sign.is_ascii_digit() || sign.is_control()),
        "{spoken:?}"
    );
    assert_eq!(spoken.trim(), spoken);
    assert!(printed_text(&text).len() <= text.len());
    let foreign = foreign_letters(&text);
    assert!((0.0..=1.0).contains(&foreign));
    assert!(foreign_script(&text).is_none() || foreign > 0.0);
    for part in LeftOut::of(&text).parts() {
        assert!(
            part.starts_with('<') || text.contains(part.as_str()),
            "{part:?}"
        );
    }
});
