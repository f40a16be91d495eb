//! The sound of a film: every clip placed once in the whole film, then cut into stretches.

use std::collections::BTreeMap;

use engine_base::Rational;
use flow_timeline::{
    DuckRule, FilmFormat, PlannedMix, SoundClip, SoundMix, SoundRole, SourceKind, SourceRef,
};

use crate::layout::Laid;
use crate::length::Length;
use crate::plan::Assets;
use crate::script::{Script, ShotSoundKind};
use crate::speech::Said;

/// Where a clip lies in the film, in samples.
struct Placed<'s> {
    kind: SourceKind,
    name: &'s str,
    role: SoundRole,
    start: i64,
    samples: i64,
    source_start: i64,
    looped: bool,
    gain_db: f64,
    fade_in: i64,
    fade_out: i64,
}

/// An ambience that goes on over shots: first frame, end frame, fades in frames.
struct Run {
    start: i64,
    end: i64,
    fade_in: i64,
    fade_out: i64,
}

/// The mixes of all stretches. A stretch reaches from a shot's first frame to the next shot's
/// first frame, so a transition belongs to the shot it leads into.
pub(crate) fn mixes(
    script: &Script,
    laid: &[Laid<'_>],
    said: &[Said<'_>],
    format: &FilmFormat,
    assets: &Assets,
) -> Vec<PlannedMix> {
    let film_frames = laid.last().map_or(0, Laid::end);
    let placer = Placer {
        format,
        assets,
        film_frames,
    };
    let clips = placer.clips(script, laid, said);
    let mut edges = Vec::with_capacity(laid.len() + 1);
    let mut ids = Vec::with_capacity(laid.len());
    for (index, each) in laid.iter().enumerate() {
        let next = laid.get(index + 1).map_or(film_frames, |next| next.start);
        // A shot that is all transition out has no stretch of its own.
        if next > each.start {
            edges.push(format.sample_of_frame(each.start));
            ids.push(each.id);
        }
    }
    edges.push(format.sample_of_frame(film_frames));
    let duck = DuckRule::standard(format.sample_rate_hz);
    let mut mixes: Vec<PlannedMix> = ids
        .iter()
        .zip(edges.windows(2))
        .map(|(id, edge)| PlannedMix {
            id: (*id).to_owned(),
            first_sample: edge[0],
            mix: SoundMix {
                sample_rate_hz: format.sample_rate_hz,
                samples: edge[1] - edge[0],
                clips: Vec::new(),
                duck,
            },
            sources: Vec::new(),
        })
        .collect();
    for clip in &clips {
        // Speech ducks what lies up to `attack` before it and `release` after it.
        let (before, after) = match clip.role {
            SoundRole::Voice => (duck.attack, duck.release),
            SoundRole::Music | SoundRole::Ambience | SoundRole::Effect => (0, 0),
        };
        let (from, to) = (clip.start - before, clip.start + clip.samples + after);
        // Stretch i is [edges[i], edges[i + 1]).
        let first = edges
            .partition_point(|edge| *edge <= from)
            .saturating_sub(1);
        for mix in mixes
            .iter_mut()
            .skip(first)
            .take_while(|mix| mix.first_sample < to)
        {
            add(mix, clip);
        }
    }
    mixes
}

fn add(planned: &mut PlannedMix, clip: &Placed<'_>) {
    let known = planned
        .sources
        .iter()
        .position(|source| source.kind == clip.kind && source.name == clip.name);
    let source = known.unwrap_or(planned.sources.len());
    if known.is_none() {
        planned.sources.push(SourceRef {
            kind: clip.kind,
            name: clip.name.to_owned(),
        });
    }
    let start = clip.start - planned.first_sample;
    let (mut samples, mut fade_in, mut fade_out) = (clip.samples, clip.fade_in, clip.fade_out);
    // What becomes of a clip before and behind this stretch does not decide the stretch, so that a
    // film that grows at its end keeps the sound it had. Speech keeps its span: ducking reads it.
    if clip.role != SoundRole::Voice {
        if start + samples - fade_out >= planned.mix.samples {
            samples = (planned.mix.samples - start).max(fade_in).min(samples);
            fade_out = 0;
        }
        if start + fade_in <= 0 {
            fade_in = 0;
        }
    }
    planned.mix.clips.push(SoundClip {
        source,
        role: clip.role,
        start,
        samples,
        source_start: clip.source_start,
        looped: clip.looped,
        gain_db: clip.gain_db,
        fade_in,
        fade_out,
    });
}

struct Placer<'p> {
    format: &'p FilmFormat,
    assets: &'p Assets,
    film_frames: i64,
}

impl Placer<'_> {
    fn frames(&self, length: Length) -> i64 {
        length.frames(self.format.fps)
    }

    fn half_second(&self) -> i64 {
        i64::from(self.format.sample_rate_hz) / 2
    }

    /// A clip from frame to frame, ending with the film at the latest.
    fn placed<'s>(&self, name: &'s str, role: SoundRole, from: i64, to: i64) -> Placed<'s> {
        let start = self.format.sample_of_frame(from);
        let end = self.format.sample_of_frame(to.min(self.film_frames));
        Placed {
            kind: SourceKind::Sound,
            name,
            role,
            start,
            samples: end - start,
            source_start: 0,
            looped: false,
            gain_db: 0.0,
            fade_in: 0,
            fade_out: 0,
        }
    }

    /// A sound that plays once from frame `from`: as long as it is, or to frame `otherwise`.
    fn once<'s>(&self, name: &'s str, role: SoundRole, from: i64, otherwise: i64) -> Placed<'s> {
        let secs = self.assets.sound_secs.get(name).copied();
        self.lasting(self.placed(name, role, from, otherwise), secs)
    }

    /// A clip as long as its sound is, where that is known, up to the film's end.
    fn lasting<'s>(&self, mut clip: Placed<'s>, secs: Option<Rational>) -> Placed<'s> {
        if let Some(secs) = secs {
            let rate = i128::from(self.format.sample_rate_hz);
            let whole = i128::from(secs.num()) * rate;
            let samples = (whole + i128::from(secs.den()) - 1).div_euclid(i128::from(secs.den()));
            let left = self.format.sample_of_frame(self.film_frames) - clip.start;
            clip.samples = i64::try_from(samples).unwrap_or(i64::MAX).min(left);
        }
        clip
    }

    fn clips<'s>(
        &self,
        script: &'s Script,
        laid: &[Laid<'s>],
        said: &[Said<'s>],
    ) -> Vec<Placed<'s>> {
        let mut clips = self.music(script, laid);
        clips.extend(self.ambiences(laid));
        for each in laid {
            let Some(shot) = each.shot else { continue };
            for sound in &shot.sounds {
                if sound.kind == ShotSoundKind::Effect {
                    let from = each.start + sound.start.map_or(0, |start| self.frames(start));
                    let mut clip = self.once(&sound.file, SoundRole::Effect, from, each.end());
                    clip.gain_db = sound.gain_db;
                    clips.push(clip);
                }
            }
            if let Some(video) = &shot.video
                && let Some(gain_db) = video.sound_gain_db
            {
                let role = SoundRole::Effect;
                let mut clip = self.placed(&video.file, role, each.start, each.end());
                let from = video.from.map_or(0, |from| self.frames(from));
                clip.source_start = self.format.sample_of_frame(from);
                clip.gain_db = gain_db;
                clip.fade_in = self.format.sample_of_frame(each.frames_in);
                clip.fade_out = self.format.sample_of_frame(each.frames_out);
                clips.push(clip);
            }
        }
        for line in said {
            let end = laid[line.shot].end();
            let mut clip = match line.spoken {
                Some((name, spoken)) => {
                    let clip = self.placed(name, SoundRole::Voice, line.first_frame, end);
                    let kind = SourceKind::Speech;
                    self.lasting(Placed { kind, ..clip }, Some(spoken.secs))
                }
                None if line.line.voice.is_empty() => continue,
                None => self.once(&line.line.voice, SoundRole::Voice, line.first_frame, end),
            };
            clip.gain_db = line.line.gain_db;
            clips.push(clip);
        }
        clips.retain(|clip| clip.samples > 0);
        clips
    }

    fn music<'s>(&self, script: &'s Script, laid: &[Laid<'s>]) -> Vec<Placed<'s>> {
        let index_of: BTreeMap<&str, usize> = laid
            .iter()
            .enumerate()
            .map(|(index, each)| (each.id, index))
            .collect();
        let mut clips = Vec::new();
        for cue in &script.music {
            let named = |id: &str| index_of.get(id).and_then(|index| laid.get(*index));
            let from = named(&cue.from).map_or(0, |each| each.start);
            let to = named(&cue.to).map_or(self.film_frames, Laid::end);
            let mut clip = self.placed(&cue.file, SoundRole::Music, from, to);
            let samples = |length: Option<Length>| {
                length.map_or(self.half_second(), |length| {
                    self.format.sample_of_frame(self.frames(length))
                })
            };
            clip.looped = true;
            clip.gain_db = cue.gain_db;
            clip.fade_in = samples(cue.fade_in).clamp(0, clip.samples / 2);
            clip.fade_out = samples(cue.fade_out).clamp(0, clip.samples / 2);
            clips.push(clip);
        }
        clips
    }

    /// One clip for each ambience as long as shots that follow each other have it at one level.
    fn ambiences<'s>(&self, laid: &[Laid<'s>]) -> Vec<Placed<'s>> {
        // Lists in script order, not maps: the order of clips must not hang on their names.
        let mut open: Vec<((&'s str, u64), Run)> = Vec::new();
        let mut clips = Vec::new();
        for each in laid {
            let mut here: Vec<((&'s str, u64), Run)> = Vec::new();
            let sounds = each
                .shot
                .map_or([].as_slice(), |shot| shot.sounds.as_slice());
            for sound in sounds {
                let key = (sound.file.as_str(), sound.gain_db.to_bits());
                if sound.kind == ShotSoundKind::Effect || here.iter().any(|(had, _)| *had == key) {
                    continue;
                }
                let going = open.iter().position(|(had, _)| *had == key);
                let begun = Run {
                    start: each.start,
                    end: each.end(),
                    fade_in: each.frames_in.max(each.fade_in),
                    fade_out: 0,
                };
                let mut run = going.map_or(begun, |index| open.remove(index).1);
                run.end = each.end();
                run.fade_out = each.frames_out.max(each.fade_out);
                here.push((key, run));
            }
            for (key, run) in std::mem::replace(&mut open, here) {
                clips.push(self.ambience(key, &run));
            }
        }
        for (key, run) in open {
            clips.push(self.ambience(key, &run));
        }
        clips
    }

    fn ambience<'s>(&self, (name, gain_bits): (&'s str, u64), run: &Run) -> Placed<'s> {
        let mut clip = self.placed(name, SoundRole::Ambience, run.start, run.end);
        // Without a transition a short fade keeps the start and the end from clicking.
        let least = self.half_second() / 10;
        let fade = |frames: i64| self.format.sample_of_frame(frames).max(least);
        clip.looped = true;
        clip.gain_db = f64::from_bits(gain_bits);
        clip.fade_in = fade(run.fade_in).clamp(0, clip.samples / 2);
        clip.fade_out = fade(run.fade_out).clamp(0, clip.samples / 2);
        clip
    }
}
