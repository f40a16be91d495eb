//! Which voices there are, and what each is opened from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use engine_onnx::{OnnxRuntime, OnnxSession};

use super::english::{Accent, English};
use super::error::SpeechError;
use super::hibari::Hibari;
use super::kokoro::{self, Kokoro};
use super::network::Network;
use super::unknown::LetterNetwork;
use super::vocabulary::Vocabulary;
use super::{SpeechFiles, SpeechRequest, VoiceInfo};

const HIBARI_FILE: &str = "hibari.onnx";
const KOKORO_FILE: &str = "kokoro-v1.0.int8.onnx";

/// Something that is opened when first asked for.
struct Lazy<T>(Mutex<Option<T>>);

impl<T: Clone> Lazy<T> {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn get(&self, open: impl FnOnce() -> Result<T, SpeechError>) -> Result<T, SpeechError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = held.as_ref() {
            return Ok(held.clone());
        }
        let opened = open()?;
        Ok(held.insert(opened).clone())
    }
}

enum Origin {
    Hibari,
    /// The file of styles.
    Kokoro(PathBuf),
}

/// One voice.
pub(super) struct Voice {
    at: usize,
    accent: Accent,
    origin: Origin,
}

/// The voices of this machine.
pub(super) struct Voices {
    runtime: OnnxRuntime,
    files: SpeechFiles,
    threads: usize,
    vocabulary: Arc<Vocabulary>,
    infos: Vec<VoiceInfo>,
    voices: Vec<Voice>,
    american: Lazy<Arc<English>>,
    british: Lazy<Arc<English>>,
    hibari: Lazy<Arc<Hibari>>,
    kokoro: Lazy<Arc<OnnxSession>>,
}

impl Voices {
    pub(super) fn open(files: &SpeechFiles, threads: usize) -> Result<Self, SpeechError> {
        let runtime = OnnxRuntime::open(&files.runtime)?;
        let names = [
            HIBARI_FILE,
            "oov.onnx",
            "oov.json",
            "oov_gb.onnx",
            "oov_gb.json",
        ];
        for name in names {
            look(&files.hibari.join(name))?;
        }
        let vocabulary = Vocabulary::open(&files.hibari.join("vocab.json"))?;
        let mut voices = Self {
            runtime,
            files: files.clone(),
            threads: threads.max(1),
            vocabulary: Arc::new(vocabulary),
            infos: Vec::new(),
            voices: Vec::new(),
            american: Lazy::new(),
            british: Lazy::new(),
            hibari: Lazy::new(),
            kokoro: Lazy::new(),
        };
        voices.add("hibari", "af_heart", "Apache-2.0", Origin::Hibari);
        if let Some(folder) = &files.kokoro {
            look(&folder.join(KOKORO_FILE))?;
            for (name, path) in styles(&folder.join("voices"))? {
                voices.add("kokoro", &name, "Apache-2.0 AND MIT", Origin::Kokoro(path));
            }
        }
        Ok(voices)
    }

    /// Add a voice by Kokoro's name of it: accent, sex, `_`, name. Others are no English voices.
    fn add(&mut self, family: &str, name: &str, licence: &str, origin: Origin) {
        let (accent, language, country) = match name.chars().next() {
            Some('a') => (Accent::Us, "en-US", "American"),
            Some('b') => (Accent::Gb, "en-GB", "British"),
            _ => return,
        };
        let sex = match name.chars().nth(1) {
            Some('f') => "female",
            Some('m') => "male",
            _ => return,
        };
        let Some((_, given)) = name.split_once('_') else {
            return;
        };
        let mut letters = given.chars();
        let Some(first) = letters.next() else { return };
        let given = format!("{}{}", first.to_uppercase(), letters.as_str());
        self.infos.push(VoiceInfo {
            id: format!("{family}:{name}"),
            language: language.to_owned(),
            title: format!("{given} ({country}, {sex})"),
            licence: licence.to_owned(),
        });
        self.voices.push(Voice {
            at: self.voices.len(),
            accent,
            origin,
        });
    }

    pub(super) fn infos(&self) -> &[VoiceInfo] {
        &self.infos
    }

    /// How many sentences may be spoken at once.
    pub(super) const fn threads(&self) -> usize {
        self.threads
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(super) fn id(&self, voice: &Voice) -> &str {
        self.infos.get(voice.at).map_or("", |info| info.id.as_str())
    }

    /// The voice for a request.
    pub(super) fn pick(&self, request: &SpeechRequest) -> Result<&Voice, SpeechError> {
        let asked = request.language.replace('_', "-").to_ascii_lowercase();
        let spoken = |info: &VoiceInfo| info.language.to_ascii_lowercase();
        let near = |info: &VoiceInfo| primary(&spoken(info)) == primary(&asked);
        if !self.infos.iter().any(near) {
            return Err(self.no_language(request));
        }
        let at = match &request.voice {
            Some(voice) => {
                let at = self.infos.iter().position(|info| info.id == *voice);
                let at = at.ok_or_else(|| self.no_voice(voice))?;
                let speaks = self.infos.get(at).is_some_and(near);
                if !speaks {
                    return Err(self.no_language(request));
                }
                Some(at)
            }
            None => {
                let same = self.infos.iter().position(|info| spoken(info) == asked);
                same.or_else(|| self.infos.iter().position(near))
            }
        };
        at.and_then(|at| self.voices.get(at))
            .ok_or_else(|| self.no_language(request))
    }

    fn no_voice(&self, voice: &str) -> SpeechError {
        let known: Vec<_> = self.infos.iter().map(|info| info.id.as_str()).collect();
        SpeechError::NoVoice {
            voice: voice.to_owned(),
            known: known.join(", "),
        }
    }

    /// Languages there are, with commas.
    pub(super) fn languages(&self) -> String {
        let languages = self.infos.iter().map(|info| info.language.as_str());
        let known: BTreeSet<&str> = languages.collect();
        known.into_iter().collect::<Vec<_>>().join(", ")
    }

    fn no_language(&self, request: &SpeechRequest) -> SpeechError {
        SpeechError::NoLanguage {
            language: request.language.clone(),
            known: self.languages(),
        }
    }

    /// The front end for a voice.
    pub(super) fn english(&self, voice: &Voice) -> Result<Arc<English>, SpeechError> {
        let (held, name) = match voice.accent {
            Accent::Us => (&self.american, "oov"),
            Accent::Gb => (&self.british, "oov_gb"),
        };
        held.get(|| {
            let folder = &self.files.hibari;
            let unknown = LetterNetwork::open(&self.runtime, folder, name, &self.vocabulary)?;
            Ok(Arc::new(English::new(
                voice.accent,
                Some(Box::new(unknown)),
            )))
        })
    }

    /// The network of a voice.
    pub(super) fn network(&self, voice: &Voice) -> Result<Arc<dyn Network>, SpeechError> {
        match &voice.origin {
            Origin::Hibari => {
                let path = self.files.hibari.join(HIBARI_FILE);
                let open = || Hibari::open(&self.runtime, &path, self.threads).map(Arc::new);
                Ok(self.hibari.get(open)?)
            }
            Origin::Kokoro(styles) => {
                let folder = self.files.kokoro.clone().unwrap_or_default();
                let path = folder.join(KOKORO_FILE);
                let session = self
                    .kokoro
                    .get(|| kokoro::open(&self.runtime, &path, self.threads))?;
                Ok(Arc::new(Kokoro::new(session, styles.clone())))
            }
        }
    }
}

/// Language of a tag, without its country.
fn primary(tag: &str) -> &str {
    tag.split('-').next().unwrap_or_default()
}

fn look(path: &Path) -> Result<u64, SpeechError> {
    let found = fs::metadata(path).map_err(SpeechError::io("find a file of a voice", path))?;
    Ok(found.len())
}

/// Names and files of Kokoro's voices, sorted.
fn styles(folder: &Path) -> Result<Vec<(String, PathBuf)>, SpeechError> {
    let read = |error| SpeechError::io("read the folder of voices", folder)(error);
    let mut found = Vec::new();
    for item in fs::read_dir(folder).map_err(read)? {
        let path = item.map_err(read)?.path();
        if path.extension().is_none_or(|ending| ending != "bin") {
            continue;
        }
        let bytes = look(&path)?;
        if bytes != kokoro::STYLE_FILE_BYTES {
            return Err(SpeechError::BadFile {
                what: "the styles of a voice",
                reason: format!("expected {} bytes, got {bytes}", kokoro::STYLE_FILE_BYTES),
                path,
            });
        }
        if let Some(name) = path.file_stem().and_then(|name| name.to_str()) {
            found.push((name.to_owned(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}
