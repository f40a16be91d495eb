//! A planned film as a document of nodes.

use std::collections::{BTreeMap, BTreeSet};

use engine_base::{ContentHash, Datum};
use flow_graph::{DocNode, Document, Link, Mode, NodeId};
use flow_timeline::{Card, CardRole, FilmPlan, PlannedMix, PlannedSegment, SourceKind, SourceRef};
use serde::{Deserialize, Serialize};

use crate::basic::ListJoin;
use crate::film::Fonts;
use crate::speech::SpeechLine;

/// Contents of the files that a plan names.
pub type FilmFiles = BTreeMap<SourceRef, FilmFile>;

/// Lines that a voice speaks, by the names a plan has for them.
pub type SpeechLines = BTreeMap<String, SpeechLine>;

/// One file that a plan names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilmFile {
    /// Its content.
    pub content: ContentHash,
    /// Its media type.
    pub media_type: String,
    /// Id of the model that makes a still twice as large before it is used; absent to use it as
    /// it is.
    pub enlarge: Option<String>,
}

/// What a person may choose about the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmOptions<'a> {
    /// Picture quality (x264 CRF).
    pub crf: u8,
    /// Encoder effort (x264 preset).
    pub preset: &'a str,
    /// Whether subtitles are drawn into the picture too.
    pub burn_subtitles: bool,
    /// How loud the film becomes.
    pub loudness: LoudnessTarget,
}

/// How loud a film becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoudnessTarget {
    /// -16 LUFS: players on phones and in browsers.
    #[default]
    Web,
    /// -14 LUFS: what large video sites bring films to.
    Streaming,
    /// -23 LUFS: television in Europe (EBU R 128).
    Broadcast,
    /// -24 LUFS: television in America (ATSC A/85).
    Television,
    /// As the mix is.
    AsItIs,
}

impl LoudnessTarget {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Web,
        Self::Streaming,
        Self::Broadcast,
        Self::Television,
        Self::AsItIs,
    ];

    /// As `film.loudness` takes it: LUFS, or words for none.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Web => "-16",
            Self::Streaming => "-14",
            Self::Broadcast => "-23",
            Self::Television => "-24",
            Self::AsItIs => "as it is",
        }
    }
}

impl Default for FilmOptions<'_> {
    fn default() -> Self {
        Self {
            crf: 18,
            preset: "medium",
            burn_subtitles: false,
            loudness: LoudnessTarget::default(),
        }
    }
}

/// A compiled film and where its results come out.
#[derive(Debug, Clone, PartialEq)]
pub struct FilmDocument {
    /// The nodes.
    pub document: Document,
    /// Node whose output `film` is the MP4 file.
    pub film: NodeId,
    /// Node whose output `file` is the SRT file; absent when nothing is said.
    pub subtitles: Option<NodeId>,
    /// Node whose output `picture` is the poster frame.
    pub poster: NodeId,
}

/// Why a plan cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A named file has no content.
    #[error("no file is known for {name:?}, needed by {by:?}")]
    NoFile {
        /// The name in the script.
        name: String,
        /// The segment or mix.
        by: String,
    },
    /// Nothing to see.
    #[error("the film has no segment")]
    Empty,
    /// A plan that cannot be written as data: a fault of ours.
    #[error("cannot write {what} down: {why}")]
    Data {
        /// What.
        what: &'static str,
        /// Why.
        why: String,
    },
}

/// Compile `plan` into nodes. Pure: equal plans, contents and options give equal documents.
///
/// # Errors
/// [`CompileError`] naming what is missing.
pub fn film_document(
    plan: &FilmPlan,
    files: &FilmFiles,
    spoken: &SpeechLines,
    options: &FilmOptions<'_>,
    fonts: &Fonts,
) -> Result<FilmDocument, CompileError> {
    let mut film = Compiler {
        document: Document::new(),
        files,
        spoken,
        options,
        fonts,
    };
    let mut segments = Vec::with_capacity(plan.segments.len());
    for planned in &plan.segments {
        segments.push(film.segment(plan, planned)?);
    }
    let mut mixes = Vec::with_capacity(plan.sounds.len());
    for planned in &plan.sounds {
        mixes.push(film.mix(planned)?);
    }
    let poster_of = plan
        .segments
        .iter()
        .zip(&segments)
        .max_by_key(|(planned, _)| (planned.segment.cards.is_empty(), planned.segment.frames))
        .ok_or(CompileError::Empty)?;
    let poster = film.add("poster", "film.poster");
    film.link(&poster, "video", poster_of.1.clone());
    film.set(&poster, "frame", Datum::Int(poster_of.0.segment.frames / 2));

    let mux = film.add("film", "film.mux");
    let joined = film.join("segments", segments);
    film.link(&mux, "segments", joined);
    if !mixes.is_empty() {
        let joined = film.join("mixes", mixes);
        let loudness = film.add("loudness", "film.loudness");
        film.link(&loudness, "mixes", joined.clone());
        let target = options.loudness.as_str();
        film.set(&loudness, "target", Datum::from(target));
        let encode = film.add("sound", "film.sound_encode");
        film.link(&encode, "mixes", joined);
        film.link(&encode, "loudness", Link::new(loudness, "loudness"));
        film.link(&mux, "sound", Link::new(encode, "sound"));
    }
    film.set(&mux, "format", datum("the format", &plan.format)?);
    film.set(&mux, "cues", datum("the subtitles", &plan.cues)?);
    film.set(&mux, "chapters", datum("the chapters", &plan.chapters)?);
    film.set(
        &mux,
        "language",
        Datum::from(plan.metadata.language.as_str()),
    );
    let mut metadata = vec![("title", Datum::from(plan.metadata.title.as_str()))];
    if !plan.metadata.description.is_empty() {
        metadata.push((
            "description",
            Datum::from(plan.metadata.description.as_str()),
        ));
    }
    film.set(&mux, "metadata", Datum::map(metadata));

    let mut subtitles = None;
    if !plan.cues.is_empty() {
        let id = film.add("subtitles", "film.subtitles");
        film.set(&id, "cues", datum("the subtitles", &plan.cues)?);
        film.set(&id, "fps", Datum::from(plan.format.fps.to_string()));
        subtitles = Some(id);
    }
    Ok(FilmDocument {
        document: film.document,
        film: mux,
        subtitles,
        poster,
    })
}

/// The lines of a film alone, as nodes, with the node of each: what has to be spoken before the
/// film can be planned. The same nodes stand in the film's document.
pub fn speech_document(spoken: &SpeechLines) -> (Document, BTreeMap<String, NodeId>) {
    let mut document = Document::new();
    let nodes = spoken.iter().map(|(name, line)| {
        let id = speech_node(&mut document, line);
        (name.clone(), id)
    });
    let nodes = nodes.collect();
    (document, nodes)
}

/// One node for each thing said, whoever says it again.
fn speech_node(document: &mut Document, line: &SpeechLine) -> NodeId {
    let widgets = BTreeMap::from([
        ("text".to_owned(), Datum::from(line.text.as_str())),
        ("voice".to_owned(), Datum::from(line.voice.as_str())),
        ("language".to_owned(), Datum::from(line.language.as_str())),
        ("rate".to_owned(), Datum::Float(line.rate)),
        ("weights".to_owned(), Datum::from(line.weights.to_hex())),
    ]);
    let said = Datum::Map(widgets.clone()).content_hash();
    let id = match said {
        Ok(hash) => format!("line:{}", hash.short()),
        // A rate that is no number: the node itself refuses it.
        Err(_) => format!("line:{}", line.text),
    };
    let node = DocNode {
        type_name: "speech.line".to_owned(),
        version: crate::speech::LINE_VERSION,
        widgets,
        links: BTreeMap::new(),
        mode: Mode::Run,
        title: None,
    };
    document.nodes.insert(id.clone(), node);
    id
}

struct Compiler<'a> {
    document: Document,
    files: &'a FilmFiles,
    spoken: &'a SpeechLines,
    options: &'a FilmOptions<'a>,
    fonts: &'a Fonts,
}

impl Compiler<'_> {
    /// Node names carry a prefix by kind, so that no shot's name can meet another node's.
    fn add(&mut self, id: impl Into<String>, type_name: &str) -> NodeId {
        let id = id.into();
        let node = DocNode {
            type_name: type_name.to_owned(),
            version: 1,
            widgets: BTreeMap::new(),
            links: BTreeMap::new(),
            mode: Mode::Run,
            title: None,
        };
        self.document.nodes.insert(id.clone(), node);
        id
    }

    fn set(&mut self, id: &str, input: &str, value: Datum) {
        if let Some(node) = self.document.nodes.get_mut(id) {
            node.widgets.insert(input.to_owned(), value);
        }
    }

    fn link(&mut self, id: &str, input: &str, link: Link) {
        if let Some(node) = self.document.nodes.get_mut(id) {
            node.links.insert(input.to_owned(), link);
        }
    }

    fn segment(&mut self, plan: &FilmPlan, planned: &PlannedSegment) -> Result<Link, CompileError> {
        let mut segment = planned.segment.clone();
        if self.options.burn_subtitles {
            segment.cards.extend(captions(plan, planned));
        }
        let mut fonts = BTreeSet::new();
        for card in &segment.cards {
            fonts.extend(
                self.fonts
                    .used_hashes(&card.text)
                    .into_iter()
                    .map(|hash| hash.to_hex()),
            );
        }
        let id = self.add(format!("segment:{}", planned.id), "film.segment");
        self.set(&id, "segment", datum("a segment", &segment)?);
        self.set(
            &id,
            "fonts",
            Datum::List(fonts.into_iter().map(Datum::from).collect()),
        );
        self.set(&id, "crf", Datum::from(u32::from(self.options.crf)));
        self.set(&id, "preset", Datum::from(self.options.preset));
        let sources: Vec<&SourceRef> = planned.sources.iter().flatten().collect();
        self.sources(&id, &planned.id, &sources)?;
        Ok(Link::new(id, "video"))
    }

    fn mix(&mut self, planned: &PlannedMix) -> Result<Link, CompileError> {
        let id = self.add(format!("mix:{}", planned.id), "film.sound_mix");
        self.set(&id, "mix", datum("a sound mix", &planned.mix)?);
        let sources: Vec<&SourceRef> = planned.sources.iter().collect();
        self.sources(&id, &planned.id, &sources)?;
        Ok(Link::new(id, "sound"))
    }

    fn sources(&mut self, id: &str, by: &str, sources: &[&SourceRef]) -> Result<(), CompileError> {
        let mut links = Vec::with_capacity(sources.len());
        for source in sources {
            links.push(self.asset(source, by)?);
        }
        if !links.is_empty() {
            let joined = self.join(&format!("sources:{id}"), links);
            self.link(id, "sources", joined);
        }
        Ok(())
    }

    /// One node for each content, whatever the names of its files.
    fn asset(&mut self, source: &SourceRef, by: &str) -> Result<Link, CompileError> {
        if source.kind == SourceKind::Speech
            && let Some(line) = self.spoken.get(&source.name)
        {
            return Ok(Link::new(speech_node(&mut self.document, line), "sound"));
        }
        let file = self.files.get(source).ok_or_else(|| CompileError::NoFile {
            name: source.name.clone(),
            by: by.to_owned(),
        })?;
        let id = self.add(format!("asset:{}", file.content.short()), "asset.file");
        self.set(&id, "content", Datum::from(file.content.to_hex()));
        self.set(&id, "media_type", Datum::from(file.media_type.as_str()));
        let Some(model) = &file.enlarge else {
            return Ok(Link::new(id, "file"));
        };
        let large = self.add(format!("enlarge:{}", file.content.short()), "image.upscale");
        self.link(&large, "picture", Link::new(id, "file"));
        self.set(&large, "model", Datum::from(model.as_str()));
        Ok(Link::new(large, "picture"))
    }

    /// One list of many links: joins of at most sixteen, in as many levels as it takes.
    fn join(&mut self, name: &str, mut links: Vec<Link>) -> Link {
        let mut level = 0;
        while links.len() > 1 {
            let mut joined = Vec::with_capacity(links.len().div_ceil(ListJoin::INPUTS.len()));
            for (at, group) in links.chunks(ListJoin::INPUTS.len()).enumerate() {
                let id = self.add(format!("join:{name}:{level}.{at}"), "list.join");
                for (input, link) in ListJoin::INPUTS.iter().zip(group) {
                    self.link(&id, input, link.clone());
                }
                joined.push(Link::new(id, "list"));
            }
            links = joined;
            level += 1;
        }
        links.pop().unwrap_or_else(|| Link::new("", ""))
    }
}

/// The subtitles of a segment as cards relative to its start.
fn captions(plan: &FilmPlan, planned: &PlannedSegment) -> impl Iterator<Item = Card> {
    let (first, frames) = (planned.first_frame, planned.segment.frames);
    let seen = move |cue: &&flow_timeline::Cue| {
        cue.first_frame < first + frames && cue.first_frame + cue.frames > first
    };
    plan.cues.iter().filter(seen).map(move |cue| Card {
        text: cue.text.clone(),
        role: CardRole::Caption,
        first_frame: cue.first_frame - first,
        frames: cue.frames,
        fade_frames: 0,
    })
}

fn datum<T: Serialize>(what: &'static str, value: &T) -> Result<Datum, CompileError> {
    serde_json::to_value(value)
        .and_then(serde_json::from_value)
        .map_err(|error| CompileError::Data {
            what,
            why: error.to_string(),
        })
}
