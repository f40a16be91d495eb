//! Who speaks the lines of a film, and how they sound.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine_base::{CancelToken, Code, ContentHash, Datum, ProgressSink};
use engine_hub::Hub;
use engine_pipelines::{LeftOut, SpeechPipeline, SpeechRequest, VoiceInfo};
use flow_graph::NodeError;
use flow_nodes::{
    HeardWord, SpeechLine, SpeechLines, SpeechSound, SpeechSource, line_sound, speech_document,
};
use flow_story::{Assets, Script, SpokenLine, WordTime, speech_name};
use flow_timeline::FilmFormat;
use serde::{Deserialize, Serialize};

use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::models::hub;
use crate::say::{Said, Say};
use crate::speak::{models_of, note_of, open_speech};
use crate::studio::Studio;

/// Rest between the sentences of a line.
const SENTENCE_PAUSE_SECS: f64 = 0.35;

/// The voices of this machine for nodes, opened when the first speaks.
#[derive(Default)]
pub(crate) struct Voices {
    open: Mutex<Option<Arc<SpeechPipeline>>>,
}

fn failed(error: &StudioError) -> NodeError {
    NodeError::new(error.code, error.message.clone())
}

impl Voices {
    fn pipeline(&self) -> Result<Arc<SpeechPipeline>, StudioError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = &*open {
            return Ok(Arc::clone(pipeline));
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pipeline = Arc::new(open_speech(threads)?);
        *open = Some(Arc::clone(&pipeline));
        Ok(pipeline)
    }
}

impl SpeechSource for Voices {
    fn weights(&self, voice: &str) -> Result<ContentHash, NodeError> {
        let hub = hub().map_err(|error| failed(&error))?;
        weights(&hub, voice).map_err(|error| failed(&error))
    }

    fn speak(
        &self,
        line: &SpeechLine,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<SpeechSound, NodeError> {
        let pipeline = self.pipeline().map_err(|error| failed(&error))?;
        let request = SpeechRequest {
            voice: (!line.voice.is_empty()).then(|| line.voice.clone()),
            language: line.language.clone(),
            rate: line.rate,
            sentence_pause_secs: SENTENCE_PAUSE_SECS,
            ..SpeechRequest::new(&line.text)
        };
        let speech = pipeline
            .speak(&request, cancel, progress)
            .map_err(|error| NodeError::new(error.code(), error.to_string()))?;
        let words = speech.words.into_iter().map(|word| HeardWord {
            source: word.source,
            start_secs: word.start_secs,
            end_secs: word.end_secs,
        });
        Ok(SpeechSound {
            samples: speech.samples,
            rate_hz: speech.rate_hz,
            words: words.collect(),
        })
    }
}

/// Content hash of the files that decide how `voice` sounds, as the model list states them.
fn weights(hub: &Hub, voice: &str) -> Result<ContentHash, StudioError> {
    let mut files = Vec::new();
    for id in models_of(voice) {
        for file in &hub.entry(id)?.files {
            files.push(Datum::from(format!("{id}/{} {}", file.name, file.sha256)));
        }
    }
    Datum::List(files).content_hash().map_err(|error| {
        StudioError::new(
            Code::Internal,
            format!("cannot hash a voice's files: {error}"),
        )
    })
}

/// The lines of a film, spoken.
#[derive(Debug, Default)]
pub(crate) struct SpokenFilm {
    /// What is said, for the film's document.
    pub(crate) lines: SpeechLines,
    /// The sounds' lengths and words, for its plan.
    pub(crate) sounds: BTreeMap<String, SpokenLine>,
    /// Lines that were made now.
    pub(crate) made: u64,
    /// What was said about lines that stay silent.
    pub(crate) notes: Vec<Said>,
}

impl SpokenFilm {
    /// These lines, not spoken yet.
    pub(crate) fn of(lines: SpeechLines) -> Self {
        Self {
            lines,
            ..Self::default()
        }
    }

    /// Enter the sounds into what a plan knows.
    pub(crate) fn tell(&self, assets: &mut Assets) {
        assets.spoken.clone_from(&self.sounds);
    }
}

/// How the lines of a film are spoken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Speaking {
    /// Leave all lines silent.
    pub off: bool,
    /// Voice of the narrator; absent for the default voice.
    pub narrator: Option<String>,
    /// Pace of every voice; absent for 1.
    pub rate: Option<f64>,
}

impl Studio {
    /// Speak the lines of a film. Those whose sound is in the cache are not spoken again.
    ///
    /// # Errors
    /// The run was stopped. Everything else that keeps a line silent is a note.
    pub(crate) fn speak_lines(
        &self,
        mut spoken: SpokenFilm,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<SpokenFilm, StudioError> {
        if spoken.lines.is_empty() {
            return Ok(spoken);
        }
        watcher.event(StudioEvent::Stage {
            what: Say::SpeakingLines {}.into(),
        });
        let (document, nodes) = speech_document(&spoken.lines);
        let targets: Vec<String> = nodes.values().cloned().collect();
        let report = self.execute(&document, &targets, watcher, None, cancel)?;
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "the film was stopped"));
        }
        spoken.made = report.made;
        for (name, node) in &nodes {
            let sound = report.output(node, "sound").and_then(|list| list.first());
            let words = report.output(node, "words").and_then(|list| list.first());
            let both = sound
                .and_then(|sound| sound.as_blob())
                .zip(words.and_then(|words| words.as_datum()));
            let Some((sound, words)) = both else {
                let line = spoken.lines.remove(name);
                let error = report.errors.iter().find(|error| error.node == *node);
                let say = Say::LineSilent {
                    why: error
                        .map_or("it gave no sound", |error| error.message.as_str())
                        .to_owned(),
                    text: line.map(|line| line.text).unwrap_or_default(),
                };
                spoken.notes.push(say.into());
                continue;
            };
            let sound = line_sound(sound, words)
                .map_err(|error| StudioError::new(error.code, error.message))?;
            let word = |(end_byte, start_millis, end_millis): &(usize, i64, i64)| WordTime {
                end_byte: *end_byte,
                start_millis: *start_millis,
                end_millis: *end_millis,
            };
            spoken.sounds.insert(
                name.clone(),
                SpokenLine {
                    secs: sound.secs,
                    words: sound.words.iter().map(word).collect(),
                },
            );
        }
        Ok(spoken)
    }

    /// As [`Studio::speak_lines`], but for a plan: nothing is spoken. Lines that are not in the
    /// cache yet have no sound, and a note says how many.
    pub(crate) fn spoken_lines(
        &self,
        spoken: SpokenFilm,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<SpokenFilm, StudioError> {
        if spoken.lines.is_empty() {
            return Ok(spoken);
        }
        let (document, nodes) = speech_document(&spoken.lines);
        let targets: Vec<String> = nodes.into_values().collect();
        let missing = self.plan_of(&document, &targets)?.will_run;
        if missing == 0 {
            return self.speak_lines(spoken, watcher, &CancelToken::new());
        }
        let mut notes = spoken.notes;
        notes.push(match missing {
            1 => Say::OneLineToSpeak {}.into(),
            _ => Say::LinesToSpeak {
                count: missing as i64,
            }
            .into(),
        });
        Ok(SpokenFilm {
            notes,
            ..SpokenFilm::default()
        })
    }
}

/// Who speaks which line: those of `script` that have no recorded voice.
///
/// # Errors
/// A voice that was asked for by name is not here.
pub(crate) fn cast(script: &Script, speaking: &Speaking) -> Result<SpokenFilm, StudioError> {
    let mut film = SpokenFilm::default();
    let silent = |line: &flow_story::Line| line.voice.is_empty() && !line.text.trim().is_empty();
    if speaking.off || !script.lines().any(|(_, line)| silent(line)) {
        return Ok(film);
    }
    let hub = hub()?;
    let voices = match open_speech(1) {
        Ok(pipeline) => pipeline.voices().to_vec(),
        Err(error) if speaking.narrator.is_some() => return Err(error),
        Err(error) => {
            let say = Say::NotSpoken { why: error.message };
            film.notes.push(say.into());
            return Ok(film);
        }
    };
    let fitting = speakers_of(&voices, &script.language);
    let narrator = match &speaking.narrator {
        Some(id) => Some(named(&voices, id)?),
        None => fitting.first().copied(),
    };
    let Some(narrator) = narrator else {
        let known: Vec<&str> = voices.iter().map(|voice| voice.language.as_str()).collect();
        let say = Say::NoVoiceSpeaks {
            language: script.language.clone(),
            languages: unique(&known).join(", "),
        };
        film.notes.push(say.into());
        return Ok(film);
    };
    let who = assign(script, &fitting, narrator);
    let rate = speaking.rate.unwrap_or(1.0);
    let mut left_out = LeftOut::default();
    for shot in script.shots() {
        for (at, line) in shot
            .lines
            .iter()
            .enumerate()
            .filter(|(_, line)| silent(line))
        {
            let (voice, pace) = who
                .get(line.speaker.as_str())
                .copied()
                .unwrap_or((narrator, 1.0));
            left_out.add(&line.text);
            let said = SpeechLine {
                text: line.text.clone(),
                voice: voice.id.clone(),
                language: script.language.clone(),
                rate: (rate * pace).clamp(0.5, 2.0),
                weights: weights(&hub, &voice.id)?,
            };
            film.lines.insert(speech_name(&shot.id, at + 1), said);
        }
    }
    film.notes.extend(note_of(&left_out).map(Said::from));
    Ok(film)
}

/// Make the shots of a script long enough for its spoken lines.
pub(crate) fn fit(
    script: &mut Script,
    format: &FilmFormat,
    spoken: &SpokenFilm,
    watcher: &dyn Watcher,
) {
    let mut assets = Assets::default();
    spoken.tell(&mut assets);
    let fitted = flow_story::fit_lines(script, format, &assets);
    if fitted.grown_frames > 0 {
        let secs = flow_story::figure(fitted.grown_frames as f64 / format.fps.as_f64(), 1);
        let what = Say::LongerThanAsked { secs }.into();
        watcher.event(StudioEvent::Warning { what });
    }
}

fn unique<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut unique: Vec<&str> = names.to_vec();
    unique.sort_unstable();
    unique.dedup();
    unique
}

fn named<'v>(voices: &'v [VoiceInfo], id: &str) -> Result<&'v VoiceInfo, StudioError> {
    voices.iter().find(|voice| voice.id == id).ok_or_else(|| {
        let known: Vec<&str> = voices.iter().map(|voice| voice.id.as_str()).collect();
        let message = format!(
            "there is no voice {id:?}; voices here: {}",
            known.join(", ")
        );
        StudioError::new(Code::NotFound, message)
    })
}

/// Voices of a language, those of the same region first.
fn speakers_of<'v>(voices: &'v [VoiceInfo], language: &str) -> Vec<&'v VoiceInfo> {
    let main = |tag: &str| tag.split('-').next().unwrap_or_default().to_lowercase();
    let mut fitting: Vec<&VoiceInfo> = voices
        .iter()
        .filter(|voice| main(&voice.language) == main(language))
        .collect();
    fitting.sort_by_key(|voice| {
        !voice.language.eq_ignore_ascii_case(language) && language.contains('-')
    });
    fitting
}

/// Words for people that tell which voices suit them.
const SHE: &[&str] = &[
    "she",
    "her",
    "woman",
    "girl",
    "female",
    "mother",
    "daughter",
    "sister",
    "wife",
    "grandmother",
    "aunt",
    "queen",
    "lady",
    "nun",
    "widow",
    "actress",
    "waitress",
];
const HE: &[&str] = &[
    "he",
    "his",
    "him",
    "man",
    "boy",
    "male",
    "father",
    "son",
    "brother",
    "husband",
    "grandfather",
    "uncle",
    "king",
    "gentleman",
    "monk",
    "widower",
    "actor",
    "waiter",
];

/// A voice and a pace for each member of the cast: the voice that a script names by its id, else
/// one that suits how they are described, another than the narrator's and than those already
/// given while there are any. Where one voice has to do for several, their paces differ a little.
fn assign<'s, 'v>(
    script: &'s Script,
    fitting: &[&'v VoiceInfo],
    narrator: &'v VoiceInfo,
) -> BTreeMap<&'s str, (&'v VoiceInfo, f64)> {
    let mut given: Vec<&str> = vec![&narrator.id];
    let mut who = BTreeMap::new();
    for (at, member) in script.cast.iter().enumerate() {
        if let Some(voice) = fitting.iter().find(|voice| voice.id == member.voice.trim()) {
            who.insert(member.name.as_str(), (*voice, 1.0));
            given.push(&voice.id);
        }
        let pace = 1.0 + [0.06, -0.05, 0.03, -0.03][at % 4];
        if who.contains_key(member.name.as_str()) {
            continue;
        }
        let about = format!("{} {}", member.voice, member.look).to_lowercase();
        let words: Vec<&str> = about.split(|c: char| !c.is_alphanumeric()).collect();
        let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
        let wanted = match (has(SHE), has(HE)) {
            (true, false) => Some('f'),
            (false, true) => Some('m'),
            _ => None,
        };
        let suits = |voice: &&&VoiceInfo| wanted.is_none() || sex(voice) == wanted;
        let new = |voice: &&&VoiceInfo| !given.contains(&voice.id.as_str());
        let voice = fitting
            .iter()
            .filter(new)
            .find(suits)
            .or_else(|| fitting.iter().find(new))
            .or_else(|| fitting.iter().find(suits))
            .copied()
            .unwrap_or(narrator);
        let alone = !given.contains(&voice.id.as_str());
        given.push(&voice.id);
        who.insert(
            member.name.as_str(),
            (voice, if alone { 1.0 } else { pace }),
        );
    }
    who
}

/// `f` or `m`, as Kokoro's voices are named: `af_heart`, `bm_george`.
fn sex(voice: &VoiceInfo) -> Option<char> {
    let name = voice.id.rsplit(':').next().unwrap_or_default();
    name.chars().nth(1).filter(|sex| matches!(sex, 'f' | 'm'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(id: &str, language: &str) -> VoiceInfo {
        VoiceInfo {
            id: id.into(),
            language: language.into(),
            title: id.into(),
            licence: "Apache-2.0".into(),
        }
    }

    fn script(cast: &[(&str, &str, &str)]) -> Script {
        let mut text = String::from("---\nlongtake: 1\ntitle: T\nlanguage: en\n---\n\n# Cast\n\n");
        for (name, look, voice) in cast {
            text += &format!("- {name}\n  - look: {look}\n");
            if !voice.is_empty() {
                text += &format!("  - voice: {voice}\n");
            }
        }
        text += "\n## Scene s\n\n### Shot a\n\n- length: 3 s\n- colour: black\n";
        flow_story::parse(text.as_bytes(), "a.md").unwrap().script
    }

    #[test]
    fn people_get_voices_that_suit_them_and_no_two_the_same_while_there_are_others() {
        let voices = [
            voice("kokoro:af_heart", "en-US"),
            voice("kokoro:am_adam", "en-US"),
            voice("kokoro:bf_emma", "en-GB"),
        ];
        let fitting = speakers_of(&voices, "en");
        let script = script(&[
            ("Mara", "an old woman in oilskins", ""),
            ("Tom", "her son, a boy of ten", "a man's"),
            ("Ada", "a girl", ""),
            ("Max", "", "kokoro:am_adam"),
        ]);
        let who = assign(&script, &fitting, fitting[0]);
        let id = |name: &str| who[name].0.id.as_str();
        assert_eq!(id("Mara"), "kokoro:bf_emma");
        assert_eq!(id("Tom"), "kokoro:am_adam");
        assert_eq!(id("Max"), "kokoro:am_adam", "a script's own choice stands");
        assert!(id("Ada").contains("f_"), "{who:?}");
        assert!(
            (who["Ada"].1 - 1.0).abs() > 0.01,
            "a shared voice has another pace"
        );
    }

    #[test]
    fn voices_of_the_region_come_first_and_other_languages_not_at_all() {
        let voices = [voice("a", "en-US"), voice("b", "en-GB"), voice("c", "ja")];
        let ids = |language: &str| -> Vec<String> {
            speakers_of(&voices, language)
                .iter()
                .map(|voice| voice.id.clone())
                .collect()
        };
        assert_eq!(ids("en"), ["a", "b"]);
        assert_eq!(ids("en-GB"), ["b", "a"]);
        assert_eq!(ids("de"), [""; 0]);
    }
}
