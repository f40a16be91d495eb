//! Where each shot lies in the film, in whole frames.

use flow_timeline::{Blend, FilmFormat};

use crate::check::place;
use crate::fault::Fault;
use crate::length::{LENGTH_SECS_MAX, Length};
use crate::sayings::{ScriptText as Say, coded};
use crate::script::{Credits, Script, Shot};
use crate::transition::Transition;
use crate::tree::{At, Faults};

/// Id of the credits, which are laid like a shot.
pub(crate) const CREDITS_ID: &str = "credits";

/// A shot, or the credits, in its place. Neighbours overlap by their transition.
pub(crate) struct Laid<'s> {
    pub(crate) id: &'s str,
    /// Absent for the credits.
    pub(crate) shot: Option<&'s Shot>,
    pub(crate) credits: Option<&'s Credits>,
    /// Frame of the film at which its first frame lies, in the transition into it if there is one.
    pub(crate) start: i64,
    /// Length with its parts in transitions.
    pub(crate) frames: i64,
    /// Frames shared with the shot before.
    pub(crate) frames_in: i64,
    /// Frames shared with the shot after.
    pub(crate) frames_out: i64,
    pub(crate) blend: Option<Blend>,
    pub(crate) fade_in: i64,
    pub(crate) fade_out: i64,
}

impl Laid<'_> {
    /// Frame of the film after its last.
    pub(crate) fn end(&self) -> i64 {
        self.start + self.frames
    }

    /// Frames that it has to itself.
    pub(crate) fn body(&self) -> i64 {
        self.frames - self.frames_in - self.frames_out
    }
}

/// Lay all shots and the credits one after the other.
pub(crate) fn lay<'s>(
    script: &'s Script,
    format: &FilmFormat,
    faults: &mut Faults,
) -> Vec<Laid<'s>> {
    let mut laid: Vec<Laid<'s>> = Vec::new();
    for shot in script.shots() {
        let (blend, frames_in) = match shot.transition {
            Transition::Cut => (None, 0),
            Transition::Blend { blend, length } => (Some(blend), length.frames(format.fps).max(1)),
        };
        let fade = |length: Option<Length>| length.map_or(0, |length| length.frames(format.fps));
        laid.push(Laid {
            id: &shot.id,
            shot: Some(shot),
            credits: None,
            start: 0,
            frames: shot.length.frames(format.fps),
            frames_in,
            frames_out: 0,
            blend,
            fade_in: fade(shot.fade_in),
            fade_out: fade(shot.fade_out),
        });
    }
    if let Some(credits) = &script.credits {
        laid.push(Laid {
            id: CREDITS_ID,
            shot: None,
            credits: Some(credits),
            start: 0,
            frames: credits.length.frames(format.fps),
            frames_in: 0,
            frames_out: 0,
            blend: None,
            fade_in: 0,
            fade_out: 0,
        });
    }
    let mut start = 0;
    for index in 0..laid.len() {
        let shared = laid.get(index + 1).map_or(0, |next| next.frames_in);
        let each = &mut laid[index];
        each.frames_out = shared;
        each.start = start - each.frames_in;
        start = each.end();
        fits(each, format, faults);
    }
    let longest = Length::secs(LENGTH_SECS_MAX).frames(format.fps);
    if start > longest {
        faults.push(At::default(), || Fault {
            field: "scenes".to_owned(),
            problem: "the film is too long".to_owned(),
            got: format!("{start} frames"),
            expected: format!("at most {longest}, a day"),
            coded: coded(&Say::FilmTooLong {
                frames: start,
                most: longest,
            }),
            ..Fault::default()
        });
    }
    laid
}

fn fits(laid: &Laid<'_>, format: &FilmFormat, faults: &mut Faults) {
    let place = match laid.shot {
        Some(_) => place("shot", laid.id),
        None => CREDITS_ID.to_owned(),
    };
    let fault = |field: &str, problem: &str, got: String, expected: String, say: &Say| Fault {
        place: place.clone(),
        field: field.to_owned(),
        problem: problem.to_owned(),
        got,
        expected,
        coded: coded(say),
        ..Fault::default()
    };
    let frames = laid.frames;
    if frames < 1 {
        faults.push(At::default(), || {
            let expected = format!("at least 1 frame at {} frames a second", format.fps);
            fault(
                "length",
                "the shot is shorter than a frame",
                format!("{frames} frames"),
                expected,
                &Say::ShorterThanFrame {},
            )
        });
    }
    let shared = laid.frames_in + laid.frames_out;
    if shared > frames {
        faults.push(At::default(), || {
            let got = format!("{} frames in and {} out", laid.frames_in, laid.frames_out);
            let expected = format!("at most {frames} frames, the shot's length, together");
            fault(
                "transition",
                "the shot is shorter than its transitions",
                got,
                expected,
                &Say::ShorterThanTransitions {
                    frames_in: laid.frames_in,
                    frames_out: laid.frames_out,
                    frames,
                },
            )
        });
    } else if laid.fade_in + laid.fade_out > laid.body() {
        faults.push(At::default(), || {
            let got = format!("{} frames in and {} out", laid.fade_in, laid.fade_out);
            let expected = format!("at most {} frames together", laid.body());
            fault(
                "fade_in",
                "the shot is shorter than its fades",
                got,
                expected,
                &Say::ShorterThanFades {
                    frames_in: laid.fade_in,
                    frames_out: laid.fade_out,
                    frames: laid.body(),
                },
            )
        });
    }
    if laid.fade_out > 0 && laid.frames_out > 0 {
        faults.push(At::default(), || {
            let got = format!("a fade of {} frames and a transition", laid.fade_out);
            let expected = "one of the two".to_owned();
            let say = Say::GoesOutTwice {};
            fault("fade_out", "the shot goes out twice", got, expected, &say)
        });
    }
}
