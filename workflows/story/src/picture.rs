//! What a shot's picture shows, for shots that nobody gave a picture: place, light, weather, and who and
//! what stands where. Decided from the script's words alone.

mod lexicon;
mod mentions;

use serde::{Deserialize, Serialize};

use self::lexicon::{FIGURES, Figure, GROUNDS, LIGHTS, THINGS, WEATHERS};
use crate::script::{CastMember, Scene, Script, Shot};

/// Most subjects of a picture.
const SUBJECTS_MAX: usize = 3;

/// Clothes, so that people of one film are told apart.
const CLOTHES: [&str; 8] = [
    "red", "blue", "green", "purple", "orange", "teal", "pink", "yellow",
];

/// Where a picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureGround {
    /// Open water.
    Sea,
    /// Sand by the sea.
    Beach,
    /// Among trees.
    Forest,
    /// Grass and hills.
    Meadow,
    /// Houses in hills.
    Village,
    /// Peaks.
    Mountains,
    /// Dunes.
    Desert,
    /// Tall houses and a road.
    City,
    /// Between walls.
    Room,
    /// Above a planet.
    Space,
    /// Under the sea.
    Underwater,
    /// Among clouds.
    Sky,
}

/// Time of day of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureLight {
    /// Full light.
    Day,
    /// Morning.
    Dawn,
    /// Evening.
    Dusk,
    /// Moon and stars.
    Night,
}

/// Weather of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureWeather {
    /// None to speak of.
    Clear,
    /// Rain.
    Rain,
    /// Falling and lying snow.
    Snow,
    /// Fog.
    Fog,
    /// Rain and wind out of dark clouds.
    Storm,
}

/// Somebody or something in a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PictureSubject {
    /// Words that it is drawn from.
    pub prompt: String,
    /// Seed that it is drawn with: the same for one member of the cast in every shot.
    pub seed: u64,
    /// Its middle, as a share of the frame's width.
    pub centre: f32,
    /// Where it stands, as a share of the frame's height.
    pub base: f32,
    /// Its larger side, as a share of the frame's height.
    pub size: f32,
    /// Left and right are exchanged.
    pub flipped: bool,
}

/// What a picture shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PictureSpec {
    /// Where.
    pub ground: PictureGround,
    /// When.
    pub light: PictureLight,
    /// Weather.
    pub weather: PictureWeather,
    /// A lighthouse stands on the coast.
    pub lighthouse: bool,
    /// Set of papers; the same for the whole film.
    pub papers: u64,
    /// Decides how the place is laid out; the same for all pictures of one place.
    pub seed: u64,
    /// What the subjects must not show, in words; what it names is left out of the picture too.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub negative: String,
    /// From back to front.
    pub subjects: Vec<PictureSubject>,
}

/// A number from words (FNV-1a).
fn number(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Words of a text, small, with what stands in for plurals.
fn words(text: &str) -> Vec<String> {
    let split = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let small = split.filter(|word| !word.is_empty()).map(str::to_lowercase);
    small
        .map(|word| word.trim_end_matches("'s").to_owned())
        .collect()
}

/// Whether `word` is `known` or more than one of it.
fn is_word(word: &str, known: &str) -> bool {
    word == known || word.strip_suffix('s') == Some(known) || word.strip_suffix("es") == Some(known)
}

fn has(words: &[String], known: &[&str]) -> bool {
    words
        .iter()
        .any(|word| known.iter().any(|known| is_word(word, known)))
}

/// The first of `texts` that says one of the `groups`.
fn said<T: Copy>(texts: &[Vec<String>], groups: &[(T, &[&str])]) -> Option<T> {
    texts.iter().find_map(|text| {
        text.iter().find_map(|word| {
            let group = groups
                .iter()
                .find(|(_, known)| known.iter().any(|known| is_word(word, known)));
            group.map(|(what, _)| *what)
        })
    })
}

/// How near the camera is: what sizes are multiplied by.
fn nearness(framing: &[String]) -> f32 {
    let near = [
        "close",
        "closeup",
        "detail",
        "insert",
        "tight",
        "portrait",
        "nah",
        "großaufnahme",
        "einschub",
    ];
    let far = [
        "wide",
        "establishing",
        "aerial",
        "long",
        "distant",
        "panorama",
        "far",
        "totale",
        "weit",
    ];
    if has(framing, &near) {
        1.5
    } else if has(framing, &far) {
        0.72
    } else {
        1.0
    }
}

/// What somebody is drawn from, the same wherever they are seen.
fn figure_of(member: &CastMember, index: usize) -> (Figure, String, u64) {
    let all = words(&format!("{} {}", member.name, member.look));
    let known = FIGURES
        .iter()
        .find(|(known, _)| has(&all, known))
        .map(|(_, figure)| *figure);
    let hash = number(&member.name.to_lowercase());
    let figure = known.unwrap_or(if hash.is_multiple_of(2) {
        lexicon::MAN
    } else {
        lexicon::WOMAN
    });
    let skin = ["light", "light", "brown", "dark"][(hash >> 8) as usize % 4];
    let clothes = CLOTHES
        .iter()
        .find(|colour| all.iter().any(|word| word == **colour))
        .copied()
        .unwrap_or(CLOTHES[((hash >> 16) as usize + index) % CLOTHES.len()]);
    let prompt = match figure.dressed {
        true => format!(
            "{} with {skin} skin in {clothes}, flat style, cut out",
            figure.prompt
        ),
        false => format!("{}, flat style, cut out", figure.prompt),
    };
    (figure, prompt, hash & 0xffff_ffff)
}

/// Whether the words name somebody: by a part of their name, or by what they are.
fn names(text: &[String], member: &CastMember) -> bool {
    let small = ["the", "a", "an", "of", "old", "young"];
    let mut name = words(&member.name);
    name.retain(|word| word.len() > 2 && !small.contains(&word.as_str()));
    name.iter()
        .any(|part| text.iter().any(|word| is_word(word, part)))
}

/// Somebody or something that a picture shows, in the order of their weight.
#[derive(Debug, Clone, PartialEq)]
struct Chosen {
    figure: Figure,
    prompt: String,
    seed: u64,
    /// The same wherever it is seen.
    is_cast: bool,
}

/// What a picture must not show.
struct Unwanted(Vec<String>);

impl Unwanted {
    fn of(shot: &Shot) -> Self {
        Self(words(&shot.negative))
    }

    fn has(&self, known: &[&str]) -> bool {
        has(&self.0, known)
    }

    fn covers(&self, figure: &Figure, known: &[&str]) -> bool {
        let people = ["people", "person", "human", "figure", "character", "face"];
        let is_person = figure.dressed || figure.is_bust;
        self.has(known)
            || (is_person && self.has(&people))
            || (!is_person && figure.lives && self.has(&["animal"]))
    }
}

/// The people and things of the lexicon whose words `word` is one of.
fn thing_of(word: &str) -> Option<(&'static [&'static str], Figure)> {
    let of = |list: &'static [(&'static [&'static str], Figure)]| {
        let found = list
            .iter()
            .find(|(known, _)| known.iter().any(|known| is_word(word, known)));
        found.map(|(known, figure)| (*known, *figure))
    };
    of(THINGS).or_else(|| of(FIGURES))
}

fn subjects(script: &Script, shot: &Shot, text: &str, unwanted: &Unwanted) -> Vec<Chosen> {
    let mut chosen: Vec<Chosen> = Vec::new();
    let plain = words(text);
    let speaks = |member: &CastMember| {
        let speakers = shot.lines.iter().map(|line| line.speaker.to_lowercase());
        speakers
            .into_iter()
            .any(|name| name == member.name.to_lowercase())
    };
    let cast = || script.cast.iter().enumerate();
    let named = cast().filter(|(_, member)| names(&plain, member) || speaks(member));
    for (index, member) in named.take(2) {
        let (figure, prompt, seed) = figure_of(member, index);
        let known: Vec<String> = words(&member.name);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        if !unwanted.covers(&figure, &known) {
            chosen.push(Chosen {
                figure,
                prompt,
                seed,
                is_cast: true,
            });
        }
    }
    let is_actor = |word: &str| {
        thing_of(word).is_some_and(|(_, figure)| figure.lives)
            || cast().any(|(_, member)| words(&member.name).iter().any(|name| name == word))
    };
    let tokens = mentions::tokens(text);
    for (at, word) in tokens.iter().enumerate() {
        if chosen.len() >= SUBJECTS_MAX {
            break;
        }
        let Some((known, figure)) = thing_of(word) else {
            continue;
        };
        let is_person = figure.dressed || figure.is_bust;
        let person_is_there = chosen.iter().any(|other| other.figure.dressed);
        // What belongs to somebody shows them; what belongs to a thing need not show it.
        let owns = is_person && tokens.get(at + 1).is_some_and(|next| next == "'s");
        if (is_person && person_is_there)
            || (!owns && !mentions::is_seen(&tokens, at, &is_actor))
            || unwanted.covers(&figure, known)
            || chosen
                .iter()
                .any(|other| other.figure.prompt == figure.prompt)
        {
            continue;
        }
        let member = CastMember {
            name: word.clone(),
            ..CastMember::default()
        };
        let (_, mut prompt, seed) = figure_of(&member, 0);
        if !figure.dressed {
            prompt = format!("{}, flat style, cut out", figure.prompt);
        }
        chosen.push(Chosen {
            figure,
            prompt,
            seed,
            is_cast: false,
        });
    }
    chosen
}

/// Whether `figure` can be shown at `ground` without being absurd there.
fn suits(figure: &Figure, ground: PictureGround) -> bool {
    use PictureGround::{Beach, Room, Sea, Sky, Space, Underwater};
    if figure.outdoors && ground == Room {
        return false;
    }
    // What swims and is too large to be carried needs water.
    let needs_water = figure.swims && figure.size > 0.3;
    if needs_water && !matches!(ground, Sea | Beach | Underwater) {
        return false;
    }
    let stands = !figure.lives && !figure.flies && !figure.swims;
    !(stands && figure.outdoors && matches!(ground, Sea | Underwater | Sky | Space))
}

/// What the picture of `shot` shows; drawn from the shot's own seed where it has one.
pub fn picture_spec(script: &Script, scene: &Scene, shot: &Shot) -> PictureSpec {
    let seed = shot.seed.map(|seed| seed.value);
    picture_spec_seeded(script, scene, shot, seed)
}

/// What the picture of `shot` shows, with another layout and other things for another `seed`; members of the
/// cast look the same with every seed. Without one the film's own: all pictures of a place have its layout.
pub fn picture_spec_seeded(
    script: &Script,
    scene: &Scene,
    shot: &Shot,
    seed: Option<u64>,
) -> PictureSpec {
    let place = script.places.iter().find(|place| place.id == scene.place);
    let place_text = place.map_or_else(
        || scene.place.clone(),
        |place| format!("{} {} {}", place.id, place.name, place.look),
    );
    let own_text = format!("{} {}", shot.depicts, shot.action);
    let own = words(&own_text);
    let around = [
        words(&place_text),
        words(&scene.heading),
        own.clone(),
        words(&script.logline),
        words(&script.title),
    ];
    let hour = words(&scene.time_of_day);
    let when = [
        hour.clone(),
        own.clone(),
        words(&place_text),
        words(&scene.heading),
    ];
    let unwanted = Unwanted::of(shot);
    let mut ground = said(&around, GROUNDS).unwrap_or(PictureGround::Meadow);
    let light = said(&when, LIGHTS).unwrap_or(PictureLight::Day);
    let unwanted_weather = said(std::slice::from_ref(&unwanted.0), WEATHERS);
    let weather = said(&when, WEATHERS)
        .filter(|weather| Some(*weather) != unwanted_weather)
        .unwrap_or(PictureWeather::Clear);
    let mut chosen = subjects(script, shot, &own_text, &unwanted);
    // "It turns slowly" means whoever the film is about; a text that names only a place means the place.
    let meant = [
        "it", "they", "them", "we", "someone", "somebody", "i", "you",
    ];
    if chosen.is_empty() && (own.is_empty() || has(&own, &meant)) {
        let of_film = format!("{} {}", script.logline, script.title);
        chosen = subjects(script, shot, &of_film, &unwanted);
        chosen.retain(|one| one.figure.lives);
        chosen.truncate(1);
    }
    let afloat = chosen.iter().any(|one| one.figure.swims);
    if ground == PictureGround::Sea && !afloat && !chosen.is_empty() {
        ground = PictureGround::Beach;
    }
    chosen.retain(|one| suits(&one.figure, ground));
    let lighthouse = around
        .iter()
        .any(|text| has(text, &["lighthouse", "beacon"]))
        && !unwanted.has(&["lighthouse", "beacon"]);
    let near = nearness(&words(&shot.framing));
    let place_seed = number(&place_text.to_lowercase());
    let mut chance = number(&shot.id);
    if let Some(seed) = seed {
        for one in chosen.iter_mut().filter(|one| !one.is_cast) {
            one.seed = number(&format!("{seed} {} {}", one.seed, one.prompt)) & 0xffff_ffff;
        }
        chance = number(&format!("{seed} {}", shot.id));
    }
    let layout = match seed {
        Some(seed) => number(&format!("{seed} {place_seed}")),
        None => place_seed,
    };
    let mut subjects = placed(chosen, ground, near, chance);
    if seed.is_some() {
        vary(&mut subjects, chance);
    }
    PictureSpec {
        ground,
        light,
        weather,
        lighthouse: lighthouse && matches!(ground, PictureGround::Sea | PictureGround::Beach),
        papers: number(&format!("{}{}", script.style, script.title)) % 1000,
        seed: layout & 0xffff_ffff,
        negative: shot.negative.trim().to_owned(),
        subjects,
    }
}

/// Moves and sizes everybody a little, as `chance` says, and turns some around.
fn vary(subjects: &mut [PictureSubject], chance: u64) {
    for (at, subject) in subjects.iter_mut().enumerate() {
        let drawn = number(&format!("{chance} {at}"));
        let part = |shift: u32| ((drawn >> shift) % 1000) as f32 / 1000.0 - 0.5;
        subject.centre = (subject.centre + 0.12 * part(8)).clamp(0.12, 0.88);
        subject.size = (subject.size * (1.0 + 0.3 * part(24))).min(0.92);
        subject.flipped ^= drawn % 2 == 1;
    }
}

/// Where everybody stands.
fn placed(
    chosen: Vec<Chosen>,
    ground: PictureGround,
    near: f32,
    chance: u64,
) -> Vec<PictureSubject> {
    let centres: &[f32] = match (chosen.len(), chance % 2) {
        (0 | 1, 0) => &[0.42],
        (0 | 1, _) => &[0.57],
        (2, _) => &[0.35, 0.63],
        (_, _) => &[0.27, 0.52, 0.76],
    };
    let floats = matches!(
        ground,
        PictureGround::Space | PictureGround::Underwater | PictureGround::Sky
    );
    let shown = chosen.into_iter().zip(centres).enumerate();
    let mut subjects: Vec<PictureSubject> = shown
        .map(|(at, (one, centre))| {
            let figure = one.figure;
            let size = (figure.size * near).min(0.92);
            let base = if floats || figure.flies {
                0.5 + size / 2.0 - if figure.flies { 0.16 } else { 0.0 }
            } else if figure.is_bust {
                1.01
            } else if ground == PictureGround::Sea {
                0.8
            } else {
                0.9 + 0.02 * at as f32 + (near - 1.0).max(0.0) * 0.14
            };
            PictureSubject {
                prompt: one.prompt,
                seed: one.seed,
                centre: *centre,
                base,
                size,
                flipped: *centre > 0.5,
            }
        })
        .collect();
    subjects.sort_by(|a, b| a.base.total_cmp(&b.base));
    subjects
}

/// Whether nobody chose what the shot shows, so that a picture is drawn for it: a colour by rule is what there
/// is without pictures.
pub fn wants_picture(shot: &Shot) -> bool {
    let chosen = shot.colour.is_some() && shot.by.get("colour") != Some(crate::By::Rule);
    shot.picture.is_empty() && shot.video.is_none() && !chosen
}

#[cfg(test)]
mod tests;
