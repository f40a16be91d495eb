//! A stretch of a script as a film of its own.

use engine_base::Code;
use flow_story::{Continuity, Script, Transition};

use crate::error::StudioError;

/// `script` with the shots from one to another only; all of it without a range. What refers to
/// shots outside is cut: transitions into the first shot, continuity, ends of music.
///
/// # Errors
/// [`Code::NotFound`] for a shot that is not there, [`Code::BadInput`] when the last comes before
/// the first.
pub(super) fn only(
    mut script: Script,
    range: Option<&(String, String)>,
) -> Result<Script, StudioError> {
    let Some((first, last)) = range else {
        return Ok(script);
    };
    let ids: Vec<String> = script.shots().map(|shot| shot.id.clone()).collect();
    let place = |id: &str| {
        ids.iter().position(|known| known == id).ok_or_else(|| {
            StudioError::new(Code::NotFound, format!("there is no shot called {id:?}"))
        })
    };
    let (from, to) = (place(first)?, place(last)?);
    let Some(kept) = ids.get(from..=to).filter(|kept| !kept.is_empty()) else {
        let message = format!("expected the shot {last:?} to come after {first:?}");
        return Err(StudioError::new(Code::BadInput, message));
    };
    let is_kept = |id: &str| kept.iter().any(|known| known == id);
    for scene in &mut script.scenes {
        scene.shots.retain(|shot| is_kept(&shot.id));
    }
    script.scenes.retain(|scene| !scene.shots.is_empty());
    let mut shots = script.scenes.iter_mut().flat_map(|scene| &mut scene.shots);
    if let Some(shot) = shots.next() {
        shot.transition = Transition::Cut;
    }
    for shot in script.scenes.iter_mut().flat_map(|scene| &mut scene.shots) {
        if shot.continuity.source().is_some_and(|id| !is_kept(id)) {
            shot.continuity = Continuity::Cut;
        }
    }
    // An empty end of a cue means the film's: right for one that reaches over it.
    let at = |id: &str, otherwise: usize| {
        let found = ids.iter().position(|known| known == id);
        if id.is_empty() {
            Some(otherwise)
        } else {
            found
        }
    };
    script.music.retain_mut(|cue| {
        let (begin, end) = (at(&cue.from, 0), at(&cue.to, ids.len()));
        let (Some(begin), Some(end)) = (begin, end) else {
            return false;
        };
        if begin < from {
            cue.from.clear();
            cue.fade_in = None;
        }
        if end > to {
            cue.to.clear();
        }
        begin <= to && end >= from
    });
    if to + 1 < ids.len() {
        script.credits = None;
    }
    script.film.length = None;
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> Script {
        let text = "---\nlongtake: 1\ntitle: T\n---\n\n# Music\n\n- bed-dawn {to: b}\n- bed-tide {from: c; to: d}\n- bed-hearth {from: e}\n\n## Scene one\n\n### Shot a\n\n- length: 2 s\n- colour: black\n\n### Shot b\n\n- length: 2 s\n- colour: black\n- transition: cross-fade 1 s\n\n## Scene two\n\n### Shot c\n\n- length: 2 s\n- colour: black\n\n### Shot d\n\n- length: 2 s\n- colour: black\n\n### Shot e\n\n- length: 2 s\n- colour: black\n\n# Credits\n\n- length: 3 s\n- line: The end\n";
        flow_story::parse(text.as_bytes(), "t.md").unwrap().script
    }

    #[test]
    fn a_range_is_a_film_of_its_own() {
        let part = |from: &str, to: &str| only(script(), Some(&(from.into(), to.into())));
        let ids = |script: &Script| -> Vec<String> {
            script.shots().map(|shot| shot.id.clone()).collect()
        };
        let middle = part("b", "c").unwrap();
        assert_eq!(ids(&middle), ["b", "c"]);
        assert_eq!(middle.scenes[0].shots[0].transition, Transition::Cut);
        let music: Vec<&str> = middle.music.iter().map(|cue| cue.file.as_str()).collect();
        assert_eq!(music, ["bed-dawn", "bed-tide"]);
        assert_eq!(
            (middle.music[0].from.as_str(), middle.music[0].to.as_str()),
            ("", "b")
        );
        assert_eq!(
            (middle.music[1].from.as_str(), middle.music[1].to.as_str()),
            ("c", "")
        );
        assert!(middle.credits.is_none());
        assert!(part("d", "e").unwrap().credits.is_some());
        for range in [("b", "c"), ("d", "e"), ("a", "a")] {
            let text = flow_story::to_json(&part(range.0, range.1).unwrap());
            assert!(flow_story::parse_json(&text).is_ok(), "{range:?}");
        }
        assert_eq!(part("c", "b").unwrap_err().code, Code::BadInput);
        assert_eq!(part("c", "z").unwrap_err().code, Code::NotFound);
        assert_eq!(only(script(), None).unwrap(), script());
    }
}
