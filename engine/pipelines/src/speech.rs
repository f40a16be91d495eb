//! Speech: a text in, sound and the times of its words out.
//!
//! A text becomes sentences of sounds ([`English`]), a sentence pieces that a network takes, a
//! piece sound with the length of every token, which the networks predict themselves: the times of
//! words are the voice's own. Pieces are cut free of silence, faded and brought to one level, and
//! joined with rests.

mod english;
mod error;
mod files;
mod hibari;
mod kokoro;
mod levels;
mod network;
mod noise;
mod unknown;
mod vocabulary;
mod voices;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use engine_base::{CancelToken, ProgressEvent, ProgressSink, SecondsLeft};
use serde::{Deserialize, Serialize};

pub use english::{
    Accent, English, LeftOut, Pause, Sentence, UnknownWords, Word, foreign_letters, foreign_script,
    printed_text, spoken_text,
};
pub use error::SpeechError;

use self::english::{Plan, Planned};
use self::network::{Network, RATE_HZ};
use self::vocabulary::Piece;
use self::voices::Voices;

/// Rest at a comma where a sentence had to be cut, as part of the rest after a sentence.
const CLAUSE_REST: f64 = 0.45;
/// Rest between paragraphs, as part of it.
const PARAGRAPH_REST: f64 = 2.0;
/// Where a sentence had to be cut without a comma.
const NO_REST: f64 = 0.0;

/// Longest rest after a sentence.
const REST_LIMIT_SECS: f64 = 10.0;

/// A text with a larger part of letters that are not Latin is in no language spoken here. In others
/// the words of those letters are left out.
const FOREIGN_LIMIT: f64 = 0.25;

/// Longest sound that is held at once, 2 hours.
const HELD_SAMPLES_MAX: usize = 2 * 3600 * RATE_HZ as usize;

/// Slowest and fastest rate.
const RATES: Range<f64> = 0.5..2.0;

/// The files of the voices.
#[derive(Debug, Clone)]
pub struct SpeechFiles {
    /// The ONNX Runtime library.
    pub runtime: PathBuf,
    /// Folder of hibari-tts's files; its letter networks serve all voices.
    pub hibari: PathBuf,
    /// Folder of Kokoro's files, where it is installed.
    pub kokoro: Option<PathBuf>,
}

/// A voice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceInfo {
    /// Its name in requests: "hibari:af_heart".
    pub id: String,
    /// Its language: "en-US".
    pub language: String,
    /// Its name for people.
    pub title: String,
    /// Licence of its weights, as SPDX expression.
    pub licence: String,
}

/// A text to speak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeechRequest {
    /// The text.
    pub text: String,
    /// The voice's id; without it, the first that speaks the language.
    pub voice: Option<String>,
    /// The text's language: "en", "en-GB".
    pub language: String,
    /// 1 is the voice's own pace, 0.5 half and 2 twice as fast.
    pub rate: f64,
    /// Rest after a sentence at rate 1.
    pub sentence_pause_secs: f64,
}

impl SpeechRequest {
    /// English at the pace of the first voice.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            voice: None,
            language: "en".into(),
            rate: 1.0,
            sentence_pause_secs: 0.4,
        }
    }

    fn check(&self) -> Result<(), SpeechError> {
        let refused = |what, got: f64, expected: &str| SpeechError::Request {
            what,
            got: got.to_string(),
            expected: expected.to_owned(),
        };
        if !(RATES.start..=RATES.end).contains(&self.rate) {
            return Err(refused("a rate of", self.rate, "0.5 to 2"));
        }
        if !(0.0..=REST_LIMIT_SECS).contains(&self.sentence_pause_secs) {
            let got = self.sentence_pause_secs;
            return Err(refused("a sentence pause of", got, "0 to 10 seconds"));
        }
        Ok(())
    }
}

/// A word as it was spoken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpokenWord {
    /// Its bytes in the request's text. Words of one expression ("1984") share them.
    pub source: Range<usize>,
    /// What was said.
    pub spoken: String,
    /// Where it begins in the sound.
    pub start_secs: f64,
    /// Where it ends.
    pub end_secs: f64,
}

/// A spoken sentence, its times from its own beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct SpokenSentence {
    /// Its bytes in the request's text.
    pub source: Range<usize>,
    /// One channel.
    pub samples: Vec<f32>,
    /// Its words in order.
    pub words: Vec<SpokenWord>,
    /// Rest after it, which `samples` does not hold; 0 after the last, unless the text ends with one.
    pub rest_secs: f64,
}

/// A spoken text.
#[derive(Debug, Clone, PartialEq)]
pub struct Speech {
    /// One channel.
    pub samples: Vec<f32>,
    /// Its sampling rate.
    pub rate_hz: u32,
    /// Its words in order.
    pub words: Vec<SpokenWord>,
}

/// Voices, ready to speak. Networks are opened when first used.
pub struct SpeechPipeline {
    voices: Voices,
}

impl SpeechPipeline {
    /// Look for the voices' files; `threads` sentences are spoken at once.
    ///
    /// # Errors
    /// [`SpeechError::Onnx`] for the library, [`SpeechError::Io`] and [`SpeechError::BadFile`] for
    /// a voice's file that is missing or of another size.
    pub fn open(files: &SpeechFiles, threads: usize) -> Result<Self, SpeechError> {
        Ok(Self {
            voices: Voices::open(files, threads)?,
        })
    }

    /// Sampling rate of all voices.
    pub const fn rate_hz(&self) -> u32 {
        RATE_HZ
    }

    /// The voices there are; the first is the default.
    pub fn voices(&self) -> &[VoiceInfo] {
        self.voices.infos()
    }

    /// What will be said: the sentences of a request, with the sounds of their words.
    ///
    /// # Errors
    /// As [`SpeechPipeline::speak`].
    pub fn sentences(&self, request: &SpeechRequest) -> Result<Vec<Sentence>, SpeechError> {
        let (english, plan) = self.plan(request)?;
        let sentences = plan.sentences.iter();
        sentences.map(|planned| english.sounded(planned)).collect()
    }

    /// What will be said, for people: the words of each sentence in a line. Quick for any text.
    ///
    /// # Errors
    /// As [`SpeechPipeline::speak`].
    pub fn lines(&self, request: &SpeechRequest) -> Result<Vec<String>, SpeechError> {
        let (_, plan) = self.plan(request)?;
        Ok(plan.sentences.iter().map(Planned::line).collect())
    }

    /// The sentences of a request that can be met; never none.
    fn plan(&self, request: &SpeechRequest) -> Result<(Arc<English>, Plan), SpeechError> {
        request.check()?;
        let voice = self.voices.pick(request)?;
        if foreign_letters(&request.text) > FOREIGN_LIMIT {
            return Err(SpeechError::Unspeakable {
                text: request.text.chars().take(unknown::SHOWN).collect(),
                reason: format!(
                    "too many of its letters are {}; voices here speak {}",
                    foreign_script(&request.text).unwrap_or("not Latin"),
                    self.voices.languages()
                ),
            });
        }
        let english = self.voices.english(voice)?;
        let plan = english.plan(&request.text)?;
        if plan.sentences.is_empty() {
            return Err(SpeechError::NothingToSpeak {
                bytes: request.text.len(),
                left_out: LeftOut::of(&request.text),
            });
        }
        Ok((english, plan))
    }

    /// Speak a text of up to 2 hours. The same request gives the same samples on the same kind of
    /// processor.
    ///
    /// # Errors
    /// [`SpeechError::TooLong`], [`SpeechError::Request`], [`SpeechError::NoVoice`], [`SpeechError::NoLanguage`],
    /// [`SpeechError::NothingToSpeak`], [`SpeechError::Unspeakable`], [`SpeechError::Onnx`],
    /// [`SpeechError::BadSound`], [`SpeechError::Cancelled`].
    pub fn speak(
        &self,
        request: &SpeechRequest,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<Speech, SpeechError> {
        let mut speech = Speech {
            samples: Vec::new(),
            rate_hz: RATE_HZ,
            words: Vec::new(),
        };
        self.speak_each(request, cancel, progress, &mut |sentence| {
            let begin = speech.samples.len() as f64 / f64::from(RATE_HZ);
            speech
                .words
                .extend(sentence.words.into_iter().map(|word| SpokenWord {
                    start_secs: begin + word.start_secs,
                    end_secs: begin + word.end_secs,
                    ..word
                }));
            let rest = levels::samples_of(sentence.rest_secs);
            if speech.samples.len() + sentence.samples.len() + rest > HELD_SAMPLES_MAX {
                return Err(SpeechError::TooLong);
            }
            speech.samples.extend(sentence.samples);
            speech.samples.resize(speech.samples.len() + rest, 0.0);
            Ok(())
        })?;
        Ok(speech)
    }

    /// Speak a text sentence by sentence, in order: what is held at once does not grow with the
    /// text's sound.
    ///
    /// # Errors
    /// As [`SpeechPipeline::speak`], and those of `take`.
    pub fn speak_each(
        &self,
        request: &SpeechRequest,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
        take: &mut dyn FnMut(SpokenSentence) -> Result<(), SpeechError>,
    ) -> Result<(), SpeechError> {
        cancel.check()?;
        let (english, plan) = self.plan(request)?;
        let voice = self.voices.pick(request)?;
        let speaker = Speaker {
            network: self.voices.network(voice)?,
            english,
            request,
            cancel,
        };
        let (began, of) = (Instant::now(), plan.sentences.len());
        let mut left = SecondsLeft::new(of as f64);
        let mut report = |done: usize| {
            let secs_left = left.update(began.elapsed(), done as f64);
            progress.report(ProgressEvent {
                what: format!("speaking as {}", self.voices.id(voice)),
                step: done as u64,
                of: of as u64,
                secs_left,
            });
        };
        let mut done = 0;
        report(done);
        for some in plan.sentences.chunks(self.voices.threads()) {
            for spoken in self.beside(some, &speaker) {
                let (mut spoken, pause) = spoken?;
                done += 1;
                if done < of || matches!(pause, Pause::Millis(_)) {
                    spoken.rest_secs = rest_secs(pause, request);
                }
                take(spoken)?;
                report(done);
            }
        }
        Ok(())
    }

    /// Speak a few sentences at once, each on a thread of its own.
    fn beside(
        &self,
        sentences: &[Planned],
        speaker: &Speaker<'_>,
    ) -> Vec<Result<(SpokenSentence, Pause), SpeechError>> {
        let speak = |planned: &Planned| {
            speaker.cancel.check()?;
            let sentence = speaker.english.sounded(planned)?;
            let spoken = self.sentence(&sentence, speaker)?;
            Ok((spoken, planned.pause()))
        };
        if let [only] = sentences {
            return vec![speak(only)];
        }
        std::thread::scope(|scope| {
            let speak = &speak;
            let work: Vec<_> = sentences
                .iter()
                .map(|sentence| {
                    std::thread::Builder::new()
                        .name("speech".into())
                        .spawn_scoped(scope, move || speak(sentence))
                        // A machine out of threads still speaks.
                        .map_err(|_no_thread| sentence)
                })
                .collect();
            work.into_iter()
                .map(|work| match work {
                    Ok(work) => work
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    Err(sentence) => speak(sentence),
                })
                .collect()
        })
    }

    fn sentence(
        &self,
        sentence: &Sentence,
        speaker: &Speaker<'_>,
    ) -> Result<SpokenSentence, SpeechError> {
        let mut times: Vec<Option<(usize, usize)>> = vec![None; sentence.words.len()];
        let lead = levels::samples_of(f64::from(sentence.lead_millis) / 1000.0);
        let mut samples: Vec<f32> = vec![0.0; lead];
        let mut rest = 0.0;
        for piece in self.voices.vocabulary().pieces(&sentence.words) {
            speaker.cancel.check()?;
            if samples.len() > lead {
                let length = samples.len() + levels::samples_of(rest);
                samples.resize(length, 0.0);
            }
            add(&mut samples, &mut times, &piece, speaker)?;
            let pause = if piece.ends_clause {
                Pause::Clause
            } else {
                Pause::None
            };
            rest = rest_secs(pause, speaker.request);
        }
        levels::even(&mut samples);
        let secs = |sample: usize| sample as f64 / f64::from(RATE_HZ);
        let words = sentence
            .words
            .iter()
            .zip(times)
            .filter_map(|(word, times)| {
                let (begin, end) = times?;
                Some(SpokenWord {
                    source: word.source.clone(),
                    spoken: word.spoken.clone(),
                    start_secs: secs(begin),
                    end_secs: secs(end),
                })
            });
        Ok(SpokenSentence {
            source: sentence.source.clone(),
            words: words.collect(),
            samples,
            rest_secs: 0.0,
        })
    }
}

/// What a request is spoken with.
struct Speaker<'r> {
    english: Arc<English>,
    network: Arc<dyn Network>,
    request: &'r SpeechRequest,
    cancel: &'r CancelToken,
}

/// Speak one piece behind `samples`, and note where its words are.
fn add(
    samples: &mut Vec<f32>,
    times: &mut [Option<(usize, usize)>],
    piece: &Piece,
    speaker: &Speaker<'_>,
) -> Result<(), SpeechError> {
    let rate = speaker.request.rate as f32;
    let sound = speaker.network.sound(&piece.tokens, rate, speaker.cancel)?;
    let at = |token: usize| {
        sound
            .begins
            .get(token)
            .copied()
            .unwrap_or(sound.samples.len())
    };
    let first = piece
        .words
        .first()
        .map_or(0, |(_, tokens)| at(tokens.start));
    let last = piece.words.last().map_or(0, |(_, tokens)| at(tokens.start));
    let (begin, end) = levels::kept(&sound.samples, (first, last));
    let offset = samples.len();
    let mut kept = sound.samples.get(begin..end).unwrap_or_default().to_vec();
    levels::fade(&mut kept);
    samples.append(&mut kept);
    let place = |token: usize| offset + at(token).clamp(begin, end) - begin;
    for (word, tokens) in &piece.words {
        let (begin, end) = (place(tokens.start), place(tokens.end));
        if let Some(time) = times.get_mut(*word) {
            // A word that was cut goes on in this piece.
            *time = Some((time.map_or(begin, |(begin, _)| begin), end));
        }
    }
    Ok(())
}

fn rest_secs(pause: Pause, request: &SpeechRequest) -> f64 {
    let part = match pause {
        Pause::None => NO_REST,
        Pause::Clause => CLAUSE_REST,
        Pause::Sentence => 1.0,
        Pause::Paragraph => PARAGRAPH_REST,
        Pause::Millis(millis) => return f64::from(millis) / 1000.0,
    };
    part * request.sentence_pause_secs / request.rate
}
