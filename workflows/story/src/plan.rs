//! From a script to everything that decides its film, in whole frames and samples.

use std::collections::{BTreeMap, BTreeSet};

use engine_base::Rational;
use flow_timeline::{
    CameraMove, Card, CardRole, Chapter, FilmFormat, FilmMetadata, FilmPlan, Layer, LayerKind,
    PlannedSegment, Segment, SourceKind, SourceRef,
};

use crate::check;
use crate::fault::{Fault, excerpt, nearest};
use crate::layout::{Laid, lay};
use crate::length::Length;
use crate::lines::ScriptLines;
use crate::mix;
use crate::sayings::{ScriptText as Say, coded};
use crate::script::{Script, Shot};
use crate::speech::{cues, place_all};
use crate::spoken::SpokenLine;
use crate::tree::{At, Faults};

/// Lines of credits shown at once.
pub const CREDITS_ROWS_MAX: usize = 10;

/// What is known about the files that a script names. All names are as the script writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assets {
    /// Every name for which there is a file or a sound that we ship; absent when nobody has
    /// looked, and then no name is refused.
    pub names: Option<BTreeSet<String>>,
    /// Lengths of sounds, in seconds. A voice without one is taken to last to its shot's end.
    pub sound_secs: BTreeMap<String, Rational>,
    /// Pictures for shots that name none, by shot id: chosen takes.
    pub pictures_of_shots: BTreeMap<String, String>,
    /// Lines that a voice of the machine speaks, by [`speech_name`](crate::speech_name).
    pub spoken: BTreeMap<String, SpokenLine>,
}

/// Resolve a script to a film of `format`. Pure: the same script and assets give the same plan.
///
/// Segments hold only what decides their pictures and mixes only what decides their sound; names
/// and ids stand beside them. A shot's own frames and each transition are segments of their own.
///
/// # Errors
/// Everything that keeps the film from being made: what [`crate::parse`] also reports, files that
/// are not there, shots shorter than their transitions, lines without room. Places can be turned
/// into lines of the file by [`ScriptLines::locate`].
pub fn plan_film(
    script: &Script,
    format: &FilmFormat,
    assets: &Assets,
) -> Result<FilmPlan, Vec<Fault>> {
    let mut faults = Faults::default();
    if let Err(error) = format.check() {
        faults.push(At::default(), || Fault {
            field: "size".to_owned(),
            problem: error.to_string(),
            ..Fault::default()
        });
    }
    check::duplicates(script, &mut faults);
    check::check(script, &ScriptLines::default(), &mut faults);
    if !faults.is_empty() {
        return Err(faults.finish());
    }
    let laid = lay(script, format, &mut faults);
    if !faults.is_empty() {
        return Err(faults.finish());
    }
    missing_files(script, assets, &mut faults);
    let film_frames = laid.last().map_or(0, Laid::end);
    let planner = Planner { format, assets };
    let segments = planner.segments(&laid, &mut faults);
    let said = place_all(&laid, format, assets);
    let cues = cues(&said, format, film_frames).unwrap_or_else(|lost| {
        for index in lost {
            let line = &said[index];
            let field = format!("line {}", line.number);
            if line.spoken.is_some() {
                unheard(laid[line.shot].id, &field, &mut faults);
            } else {
                no_room(laid[line.shot].id, &field, &mut faults);
            }
        }
        Vec::new()
    });
    let sounds = mix::mixes(script, &laid, &said, format, assets);
    if !faults.is_empty() {
        return Err(faults.finish());
    }
    Ok(FilmPlan {
        format: *format,
        frames: film_frames,
        samples: format.sample_of_frame(film_frames),
        segments,
        sounds,
        cues,
        chapters: chapters(script, &laid),
        metadata: FilmMetadata {
            title: script.title.clone(),
            description: script.logline.clone(),
            language: script.language.clone(),
        },
    })
}

fn no_room(id: &str, field: &str, faults: &mut Faults) {
    faults.push(At::default(), || Fault {
        place: check::place("shot", id),
        field: field.to_owned(),
        problem: "there is no frame left for it".to_owned(),
        coded: coded(&Say::NoFrameLeft {}),
        expected: "a start before the shot's end, or a longer shot".to_owned(),
        ..Fault::default()
    });
}

fn unheard(id: &str, field: &str, faults: &mut Faults) {
    faults.push(At::default(), || Fault {
        place: check::place("shot", id),
        field: field.to_owned(),
        problem: "the film ends before it can be spoken".to_owned(),
        coded: coded(&Say::Unheard {}),
        expected: "longer shots, shorter lines, a quicker pace or silent lines".to_owned(),
        ..Fault::default()
    });
}

fn missing_files(script: &Script, assets: &Assets, faults: &mut Faults) {
    let Some(names) = &assets.names else {
        return;
    };
    let mut ask = |place: &dyn Fn() -> String, field: &dyn Fn() -> String, name: &str| {
        if name.is_empty() || names.contains(name) {
            return;
        }
        faults.push(At::default(), || Fault {
            place: place(),
            field: field(),
            problem: "there is no such file".to_owned(),
            coded: coded(&Say::NoSuchFile {
                name: excerpt(name),
            }),
            got: excerpt(name),
            expected: format!("the name of one of {} files", names.len()),
            suggestion: nearest(name, names.iter().map(String::as_str)),
            ..Fault::default()
        });
    };
    for shot in script.shots() {
        let place = || check::place("shot", &shot.id);
        ask(&place, &|| "picture".to_owned(), &shot.picture);
        if let Some(video) = &shot.video {
            ask(&place, &|| "video".to_owned(), &video.file);
        }
        for (index, sound) in shot.sounds.iter().enumerate() {
            ask(&place, &|| format!("sound {}", index + 1), &sound.file);
        }
        for (index, line) in shot.lines.iter().enumerate() {
            ask(&place, &|| format!("line {}", index + 1), &line.voice);
        }
    }
    for (index, cue) in script.music.iter().enumerate() {
        ask(
            &|| format!("music {}", index + 1),
            &|| "file".to_owned(),
            &cue.file,
        );
    }
}

fn chapters(script: &Script, laid: &[Laid<'_>]) -> Vec<Chapter> {
    let mut first = 0;
    let mut chapters = Vec::new();
    for scene in &script.scenes {
        let title = if scene.heading.is_empty() {
            &scene.id
        } else {
            &scene.heading
        };
        if let Some(shot) = laid.get(first) {
            chapters.push(Chapter {
                first_frame: shot.start,
                title: title.clone(),
            });
        }
        first += scene.shots.len();
    }
    chapters
}

struct Planner<'p> {
    format: &'p FilmFormat,
    assets: &'p Assets,
}

/// What a shot shows.
struct Shown {
    source: LayerKind,
    name: Option<SourceRef>,
}

impl Planner<'_> {
    fn segments(&self, laid: &[Laid<'_>], faults: &mut Faults) -> Vec<PlannedSegment> {
        let shown: Vec<Shown> = laid.iter().map(|each| self.shown(each, faults)).collect();
        let cards: Vec<Vec<Card>> = laid.iter().map(|each| self.cards(each, faults)).collect();
        let mut segments = Vec::with_capacity(laid.len() * 2);
        for (index, each) in laid.iter().enumerate() {
            if let (Some(blend), Some(before)) = (each.blend, index.checked_sub(1)) {
                let (from, frames) = (&laid[before], each.frames_in);
                let first = layer(from, &shown[before], from.frames - frames, frames);
                let second = layer(each, &shown[index], 0, frames);
                let mut over = within(&cards[before], from.frames - frames, frames);
                over.extend(within(&cards[index], 0, frames));
                segments.push(PlannedSegment {
                    id: format!("{}~{}", from.id, each.id),
                    first_frame: each.start,
                    segment: Segment {
                        format: *self.format,
                        frames,
                        layers: vec![first, second],
                        blend: Some(blend),
                        fade_in_frames: 0,
                        fade_out_frames: 0,
                        cards: over,
                    },
                    sources: vec![shown[before].name.clone(), shown[index].name.clone()],
                });
            }
            let frames = each.body();
            if frames < 1 {
                continue;
            }
            segments.push(PlannedSegment {
                id: each.id.to_owned(),
                first_frame: each.start + each.frames_in,
                segment: Segment {
                    format: *self.format,
                    frames,
                    layers: vec![layer(each, &shown[index], each.frames_in, frames)],
                    blend: None,
                    fade_in_frames: each.fade_in,
                    fade_out_frames: each.fade_out,
                    cards: within(&cards[index], each.frames_in, frames),
                },
                sources: vec![shown[index].name.clone()],
            });
        }
        segments
    }

    fn shown(&self, laid: &Laid<'_>, faults: &mut Faults) -> Shown {
        let black = Shown {
            source: LayerKind::Colour { rgb: [0; 3] },
            name: None,
        };
        let Some(shot) = laid.shot else {
            return black;
        };
        let named = |source, kind, name: &str| Shown {
            source,
            name: Some(SourceRef {
                kind,
                name: name.to_owned(),
            }),
        };
        if let Some(video) = &shot.video {
            let first_frame = video.from.map_or(0, |from| from.frames(self.format.fps));
            return named(
                LayerKind::Video { first_frame },
                SourceKind::Video,
                &video.file,
            );
        }
        if !shot.picture.is_empty() {
            return named(LayerKind::Still, SourceKind::Still, &shot.picture);
        }
        if let Some(colour) = shot.colour {
            return Shown {
                source: LayerKind::Colour { rgb: colour.rgb },
                name: None,
            };
        }
        if let Some(name) = self.assets.pictures_of_shots.get(&shot.id) {
            return named(LayerKind::Still, SourceKind::Still, name);
        }
        faults.push(At::default(), || Fault {
            place: check::place("shot", &shot.id),
            field: "picture".to_owned(),
            problem: "the shot shows nothing".to_owned(),
            coded: coded(&Say::ShowsNothing {}),
            expected: "a picture, a video or a colour".to_owned(),
            ..Fault::default()
        });
        black
    }

    /// Text of a shot, in frames from the shot's start.
    fn cards(&self, laid: &Laid<'_>, faults: &mut Faults) -> Vec<Card> {
        if let Some(credits) = laid.credits {
            return self.credits(&credits.lines, laid.frames);
        }
        let Some(shot) = laid.shot else {
            return Vec::new();
        };
        let mut cards = Vec::new();
        for (index, title) in shot.titles.iter().enumerate() {
            let frames_of = |length: Length| length.frames(self.format.fps);
            let first_frame = title.start.map_or(0, frames_of);
            let left = laid.frames - first_frame;
            if left < 1 {
                no_room(&shot.id, &format!("title {}", index + 1), faults);
                continue;
            }
            // A card ends with its shot at the latest, so that it goes as it came.
            let frames = title.length.map_or(left, frames_of).clamp(1, left);
            let fade = title.fade.map_or(self.card_fade(), frames_of);
            cards.push(Card {
                text: title.text.clone(),
                role: title.role,
                first_frame,
                frames,
                fade_frames: fade.clamp(0, frames / 2),
            });
        }
        cards
    }

    fn card_fade(&self) -> i64 {
        let third = Rational::new(1, 3).unwrap_or(Rational::ONE);
        Length::Secs(third).frames(self.format.fps)
    }

    fn credits(&self, lines: &[String], frames: i64) -> Vec<Card> {
        let pages: Vec<&[String]> = lines.chunks(CREDITS_ROWS_MAX).collect();
        let count = i64::try_from(pages.len()).unwrap_or(i64::MAX).max(1);
        let edge = |page: usize| {
            let place = i128::from(frames) * page as i128 / i128::from(count);
            i64::try_from(place).unwrap_or(frames)
        };
        let mut cards = Vec::new();
        for (page, lines) in pages.iter().enumerate() {
            let (first_frame, end) = (edge(page), edge(page + 1));
            // More pages than frames: those without a frame cannot be seen.
            if end > first_frame {
                cards.push(Card {
                    text: lines.join("\n"),
                    role: CardRole::Credits,
                    first_frame,
                    frames: end - first_frame,
                    fade_frames: self.card_fade().clamp(0, (end - first_frame) / 2),
                });
            }
        }
        cards
    }
}

/// The part of a shot from its frame `first` on, as a layer.
fn layer(laid: &Laid<'_>, shown: &Shown, first: i64, frames: i64) -> Layer {
    let camera = laid
        .shot
        .map_or(CameraMove::STILL, |shot: &Shot| shot.camera.camera());
    let colour = matches!(shown.source, LayerKind::Colour { .. });
    let still = matches!(shown.source, LayerKind::Still) && camera.from == camera.to;
    // Where nothing moves, the place in the shot decides nothing and stays out.
    let (shot_first_frame, shot_frames) = if colour || still {
        (0, frames)
    } else {
        (first, laid.frames)
    };
    Layer {
        source: shown.source,
        fit: laid
            .shot
            .filter(|_| !colour)
            .map_or_else(Default::default, |shot| shot.fit),
        camera: if colour { CameraMove::STILL } else { camera },
        shot_first_frame,
        shot_frames,
    }
}

/// Cards seen in a stretch of their shot, in frames from the stretch's start.
fn within(cards: &[Card], first: i64, frames: i64) -> Vec<Card> {
    let moved = cards.iter().map(|card| Card {
        first_frame: card.first_frame - first,
        ..card.clone()
    });
    moved
        .filter(|card| card.first_frame < frames && card.first_frame + card.frames > 0)
        .collect()
}
