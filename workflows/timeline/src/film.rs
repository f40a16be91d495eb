//! A whole film as planned: which segments and mixes make it, in order, and what they are made
//! from.

use serde::{Deserialize, Serialize};

use crate::cue::{Chapter, Cue};
use crate::format::FilmFormat;
use crate::segment::Segment;
use crate::sound::SoundMix;

/// What a named source is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A still picture.
    Still,
    /// Moving pictures.
    Video,
    /// Sound; may be the sound of a file with moving pictures.
    Sound,
    /// A line that a voice of the machine speaks; the name is not a file's.
    Speech,
}

/// A file by the name that the script gives it. Whoever runs the plan finds the file and enters
/// its content hash; names never decide what is made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRef {
    /// What it is read as.
    pub kind: SourceKind,
    /// Name as written in the script.
    pub name: String,
}

/// A segment in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedSegment {
    /// The shot's id, or `a~b` for the transition from shot `a` to shot `b`. For people and
    /// progress; it decides nothing.
    pub id: String,
    /// Frame of the film at which it begins.
    pub first_frame: i64,
    /// Everything that decides its pictures.
    pub segment: Segment,
    /// Source of each layer, as many as layers; a colour has none.
    pub sources: Vec<Option<SourceRef>>,
}

/// A mix in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedMix {
    /// Id of the shot whose stretch it is.
    pub id: String,
    /// Sample of the film at which it begins.
    pub first_sample: i64,
    /// Everything that decides its sound.
    pub mix: SoundMix,
    /// Sources that the mix's clips number.
    pub sources: Vec<SourceRef>,
}

/// What is written into the finished file about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilmMetadata {
    /// Title.
    pub title: String,
    /// One sentence of what it is about; may be empty.
    pub description: String,
    /// BCP-47 language tag of its speech and text.
    pub language: String,
}

/// A film, ready to be made: segments and mixes follow each other without gap or overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilmPlan {
    /// Size and rates.
    pub format: FilmFormat,
    /// Length; the sum of the segments' frames.
    pub frames: i64,
    /// Length in samples; the sum of the mixes' samples and the first sample of frame `frames`.
    pub samples: i64,
    /// Pictures, in order.
    pub segments: Vec<PlannedSegment>,
    /// Sound, in order.
    pub sounds: Vec<PlannedMix>,
    /// Subtitles, in order, never overlapping.
    pub cues: Vec<Cue>,
    /// Chapters, in order.
    pub chapters: Vec<Chapter>,
    /// What is written into the file about it.
    pub metadata: FilmMetadata,
}

/// How a plan does not hold together: a fault of whoever made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A piece does not begin where the one before it ends.
    #[error("cannot join {what} {id:?}: it begins at {got}, expected {expected}")]
    Gap {
        /// `segment`, `mix` or `film`.
        what: &'static str,
        /// Its id.
        id: String,
        /// Where it begins (frame or sample).
        got: i64,
        /// Where it has to begin.
        expected: i64,
    },
    /// A piece without length.
    #[error("cannot make {what} {id:?}: it is {got} long, expected at least 1")]
    Empty {
        /// `segment` or `mix`.
        what: &'static str,
        /// Its id.
        id: String,
        /// Its length (frames or samples).
        got: i64,
    },
    /// Layers and sources do not match, or a clip numbers a source that is not there.
    #[error("cannot make {what} {id:?}: it has {got} sources, expected {expected}")]
    Sources {
        /// `segment` or `mix`.
        what: &'static str,
        /// Its id.
        id: String,
        /// How many there are.
        got: usize,
        /// How many are needed.
        expected: usize,
    },
    /// Two subtitles at once, or one outside the film.
    #[error("cannot show the subtitle at frame {got}: expected a place from {from} to {to}")]
    Cue {
        /// Its first frame.
        got: i64,
        /// End of the one before it.
        from: i64,
        /// Length of the film.
        to: i64,
    },
}

impl FilmPlan {
    /// Check that pieces join exactly: no gap, no overlap, sums equal to the film's length, each
    /// mix beginning at the sample of a frame, subtitles in order.
    ///
    /// # Errors
    /// [`PlanError`] naming the first piece that does not fit.
    pub fn check(&self) -> Result<(), PlanError> {
        let mut frame = 0;
        for planned in &self.segments {
            let id = || planned.id.clone();
            let segment = &planned.segment;
            join("segment", id, planned.first_frame, frame, segment.frames)?;
            if planned.sources.len() != segment.layers.len() {
                return Err(PlanError::Sources {
                    what: "segment",
                    id: id(),
                    got: planned.sources.len(),
                    expected: segment.layers.len(),
                });
            }
            frame += segment.frames;
        }
        let mut sample = 0;
        for planned in &self.sounds {
            let id = || planned.id.clone();
            let mix = &planned.mix;
            join("mix", id, planned.first_sample, sample, mix.samples)?;
            let needed = mix.clips.iter().map(|clip| clip.source + 1).max();
            if needed.unwrap_or(0) > planned.sources.len() {
                return Err(PlanError::Sources {
                    what: "mix",
                    id: id(),
                    got: planned.sources.len(),
                    expected: needed.unwrap_or(0),
                });
            }
            sample += mix.samples;
        }
        for (got, expected) in [
            (self.frames, frame),
            (self.samples, sample),
            (self.samples, self.format.sample_of_frame(self.frames)),
        ] {
            if got != expected {
                let (what, id) = ("film", self.metadata.title.clone());
                return Err(PlanError::Gap {
                    what,
                    id,
                    got,
                    expected,
                });
            }
        }
        let mut from = 0;
        for cue in &self.cues {
            let (got, to) = (cue.first_frame, self.frames);
            if got < from || cue.frames < 1 || got > to - cue.frames {
                return Err(PlanError::Cue { got, from, to });
            }
            from = got + cue.frames;
        }
        Ok(())
    }
}

fn join(
    what: &'static str,
    id: impl Fn() -> String,
    got: i64,
    expected: i64,
    length: i64,
) -> Result<(), PlanError> {
    if got != expected {
        let id = id();
        return Err(PlanError::Gap {
            what,
            id,
            got,
            expected,
        });
    }
    if length < 1 {
        let (id, got) = (id(), length);
        return Err(PlanError::Empty { what, id, got });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CameraMove, DuckRule, Fit, Layer, LayerKind};

    fn plan() -> FilmPlan {
        let format = FilmFormat::DEFAULT;
        let segment = |id: &str, first_frame, frames| PlannedSegment {
            id: id.to_owned(),
            first_frame,
            segment: Segment {
                format,
                frames,
                layers: vec![Layer {
                    source: LayerKind::Colour { rgb: [0; 3] },
                    fit: Fit::Cover,
                    camera: CameraMove::STILL,
                    shot_first_frame: 0,
                    shot_frames: frames,
                }],
                blend: None,
                fade_in_frames: 0,
                fade_out_frames: 0,
                cards: Vec::new(),
            },
            sources: vec![None],
        };
        FilmPlan {
            format,
            frames: 48,
            samples: 96_000,
            segments: vec![segment("a", 0, 24), segment("b", 24, 24)],
            sounds: vec![PlannedMix {
                id: "a".to_owned(),
                first_sample: 0,
                mix: SoundMix {
                    sample_rate_hz: 48_000,
                    samples: 96_000,
                    clips: Vec::new(),
                    duck: DuckRule::standard(48_000),
                },
                sources: Vec::new(),
            }],
            cues: vec![Cue {
                first_frame: 2,
                frames: 46,
                text: "hello".to_owned(),
            }],
            chapters: Vec::new(),
            metadata: FilmMetadata::default(),
        }
    }

    #[test]
    fn a_whole_plan_passes_and_comes_back_from_json() {
        let plan = plan();
        assert_eq!(plan.check(), Ok(()));
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<FilmPlan>(&json).unwrap(), plan);
    }

    #[test]
    fn gaps_overlaps_and_strays_are_named() {
        let mut gap = plan();
        gap.segments[1].first_frame = 25;
        assert!(matches!(
            gap.check(),
            Err(PlanError::Gap {
                got: 25,
                expected: 24,
                ..
            })
        ));
        let mut short = plan();
        short.frames = 47;
        assert!(matches!(
            short.check(),
            Err(PlanError::Gap { what: "film", .. })
        ));
        let mut empty = plan();
        empty.segments[0].segment.frames = 0;
        assert!(matches!(empty.check(), Err(PlanError::Empty { .. })));
        let mut bare = plan();
        bare.segments[0].sources.clear();
        assert!(matches!(
            bare.check(),
            Err(PlanError::Sources {
                got: 0,
                expected: 1,
                ..
            })
        ));
        let mut late = plan();
        late.cues[0].frames = 47;
        assert!(matches!(late.check(), Err(PlanError::Cue { .. })));
    }
}
