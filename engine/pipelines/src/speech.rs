//! Speech: a text in, sound and the times of its words out.

mod english;
mod error;

pub use english::{
    Accent, English, Pause, Sentence, UnknownWords, Word, foreign_letters, printed_text, spoken_text,
};
pub use error::SpeechError;
