//! From written words to a whole script: rules, lengths, the linter, repairs.

use std::collections::BTreeSet;

use super::dress;
use super::error::ProduceError;
use super::outline::{length_of, shot_frames};
use super::stages::{Stages, capital};
use super::stills::choose_pictures;
use super::{ProduceCounts, Produced};
use crate::lines::ScriptLines;
use crate::lint::{Warning, lint};
use crate::origin::By;
use crate::plan::{Assets, plan_film};
use crate::script::{Credits, Script};
use crate::speech::{columns, reading_millis};
use crate::transition::Transition;

/// Shortest shot, in thousandths of a second.
const SHOT_MILLIS_MIN: i64 = 2000;

pub(super) fn finish(mut stages: Stages<'_>, mut script: Script) -> Result<Produced, ProduceError> {
    dress_shots(&stages, &mut script);
    let options = stages.options;
    dress::ambience(&mut script, &stages.premise.text, &options.sounds);
    let mut draw = stages.draw("music");
    dress::music(
        &mut script,
        &stages.premise.text,
        &options.sounds,
        &mut draw,
    );
    credits(&stages, &mut script);
    dress::ends(&mut script);
    if options.pictures.is_empty() {
        stages
            .notes
            .push("no pictures were given: the film draws its own".to_owned());
    } else {
        choose_pictures(&mut script, &options.pictures);
    }
    set_lengths(&stages, &mut script);
    let found = warned(&script, &stages);
    let mut counts = ProduceCounts {
        shots: script.shots().count(),
        ..stages.writer.counts
    };
    counts.shots_clean = counts.shots - found.shots.len();
    if !found.shots.is_empty() {
        counts.shots_repaired = repair(&mut stages, &mut script, &found)?;
    }
    counts = ProduceCounts {
        shots: counts.shots,
        shots_clean: counts.shots_clean,
        shots_repaired: counts.shots_repaired,
        ..stages.writer.counts
    };
    for warning in warned(&script, &stages).all {
        stages.notes.push(warning.to_string());
    }
    if let Err(faults) = plan_film(&script, &options.format, &Assets::default()) {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        return Err(ProduceError::Faulty(faults.join("; ")));
    }
    Ok(Produced {
        script,
        notes: stages.notes,
        counts,
    })
}

fn dress_shots(stages: &Stages<'_>, script: &mut Script) {
    let mut last_kind = usize::MAX;
    let mut number = 0;
    for scene in &mut script.scenes {
        let place = script.places.iter().find(|place| place.id == scene.place);
        for (at, shot) in scene.shots.iter_mut().enumerate() {
            let mut draw = stages.draw(&format!("dress {number}"));
            let speaks = shot.lines.iter().any(|line| !line.speaker.is_empty());
            shot.framing = dress::framing(at, speaks, &mut draw).to_owned();
            (shot.camera, last_kind) =
                dress::camera(&shot.framing, &shot.action, last_kind, &mut draw);
            shot.transition = dress::transition(number, at, &mut draw);
            shot.colour = Some(dress::colour(&scene.time_of_day, &mut draw));
            let member = stages.subjects[number]
                .member
                .map(|member| &script.cast[member]);
            let look = match (member, place) {
                (Some(member), _) if !member.look.is_empty() => {
                    format!("{}: {}", member.name, member.look)
                }
                (None, Some(place)) if !place.look.is_empty() => {
                    format!("{}: {}", capital(&place.name), place.look)
                }
                _ => String::new(),
            };
            shot.depicts = [shot.action.as_str(), &look].join(" ").trim().to_owned();
            for field in [
                "id",
                "length",
                "framing",
                "move",
                "transition",
                "colour",
                "depicts",
            ] {
                shot.by.set(field, By::Rule);
            }
            number += 1;
        }
    }
}

fn credits(stages: &Stages<'_>, script: &mut Script) {
    if stages.outline.credits_frames > 0 {
        let mut lines = vec![script.title.clone()];
        lines.extend(script.cast.iter().map(|member| member.name.clone()));
        script.credits = Some(Credits {
            length: length_of(stages.outline.credits_frames, stages.options.format.fps),
            lines,
        });
        script.by.set("credits", By::Rule);
    }
}

/// Lengths of all shots: what their words need, the rest shared out, together what was asked for.
fn set_lengths(stages: &Stages<'_>, script: &mut Script) {
    let fps = stages.options.format.fps;
    let frames_of = |millis: i64| dress::secs(millis, 1000).frames(fps);
    let frames_in: Vec<i64> = script
        .shots()
        .map(|shot| match shot.transition {
            Transition::Cut => 0,
            Transition::Blend { length, .. } => length.frames(fps).max(1),
        })
        .collect();
    let count = frames_in.len();
    let mut needed = Vec::with_capacity(count);
    let mut weights = Vec::with_capacity(count);
    let fade =
        |length: Option<crate::length::Length>| length.map_or(0, |length| length.frames(fps));
    for (at, shot) in script.shots().enumerate() {
        let said: i64 = shot
            .lines
            .iter()
            .map(|line| reading_millis(&line.text) + 160)
            .sum();
        let said = if said > 0 { said + 300 } else { 0 };
        let titled = shot
            .titles
            .iter()
            .map(|title| 1700 + columns(&title.text) as i64 * 1000 / 15);
        let shown = titled.max().unwrap_or(0).max(SHOT_MILLIS_MIN);
        let ends = frames_in[at].max(fade(shot.fade_in))
            + frames_in
                .get(at + 1)
                .copied()
                .unwrap_or(0)
                .max(fade(shot.fade_out));
        needed.push((frames_of(said) + ends).max(frames_of(shown)));
        let mut draw = stages.draw(&format!("length {at}"));
        let end = at == 0 || at + 1 == count;
        weights.push(2 + draw.below(4) as i64 + if end { 3 } else { 0 });
    }
    let total =
        stages.outline.frames - stages.outline.credits_frames + frames_in.iter().sum::<i64>();
    let frames = shot_frames(&needed, &weights, total, fps);
    let shots = script.scenes.iter_mut().flat_map(|scene| &mut scene.shots);
    for (shot, frames) in shots.zip(frames) {
        shot.length = length_of(frames, fps);
    }
}

struct Found {
    all: Vec<Warning>,
    /// Ids of shots about which something was said.
    shots: BTreeSet<String>,
}

fn warned(script: &Script, stages: &Stages<'_>) -> Found {
    let mut all = lint(
        script,
        &ScriptLines::default(),
        &stages.options.format,
        &Assets::default(),
    );
    // Whom a short film has no room to show is no fault of a shot.
    all.retain(|warning| warning.rule != "unused-cast" && warning.rule != "unused-place");
    let shots = all
        .iter()
        .filter_map(|warning| warning.place.strip_prefix("shot "))
        .map(str::to_owned)
        .collect();
    Found { all, shots }
}

/// Lines that the linter complains of are asked for once more with its complaints, then left out.
fn repair(
    stages: &mut Stages<'_>,
    script: &mut Script,
    found: &Found,
) -> Result<usize, ProduceError> {
    let mut number = 0;
    let mut repaired = 0;
    for scene in 0..script.scenes.len() {
        for shot in 0..script.scenes[scene].shots.len() {
            let id = script.scenes[scene].shots[shot].id.clone();
            let about = format!("shot {id}");
            let complaints: Vec<String> = found
                .all
                .iter()
                .filter(|warning| warning.place == about)
                .map(|warning| warning.fix.clone())
                .collect();
            let speaks = !script.scenes[scene].shots[shot].lines.is_empty();
            if !complaints.is_empty() && speaks {
                let speaker = script.scenes[scene].shots[shot].lines[0].speaker.clone();
                let member = script.cast.iter().position(|member| member.name == speaker);
                let line = stages.line(script, (scene, shot), member, number, &complaints)?;
                script.scenes[scene].shots[shot].lines = line.into_iter().collect();
                repaired += 1;
            }
            number += 1;
        }
    }
    set_lengths(stages, script);
    let left = warned(script, stages);
    let shots = script.scenes.iter_mut().flat_map(|scene| &mut scene.shots);
    for shot in shots.filter(|shot| left.shots.contains(&shot.id)) {
        shot.lines.clear();
    }
    set_lengths(stages, script);
    Ok(repaired)
}
