//! Camera moves as a script writes them.

use std::fmt;
use std::str::FromStr;

use flow_timeline::{CameraMove, Easing, View};

use crate::value::{ValueError, number};

/// A point of a picture in percent of its width and height, from the upper left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Across, 0 to 100.
    pub x_percent: f64,
    /// Down, 0 to 100.
    pub y_percent: f64,
}

/// A framing of a picture: its centre and zoom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Framing {
    /// Centre.
    pub at: Point,
    /// 1 fills the frame.
    pub zoom: f64,
    /// Turn in degrees, clockwise.
    pub roll: f64,
}

/// What the camera does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MoveKind {
    /// Nothing: one framing throughout.
    Still(Framing),
    /// Comes nearer: zoom rises while the point `at` keeps its place in the frame.
    Push {
        /// Zoom at the start.
        from: f64,
        /// Zoom at the end, above `from`.
        to: f64,
        /// The point that keeps its place.
        at: Point,
    },
    /// Goes back: zoom falls while the point `at` keeps its place in the frame.
    Pull {
        /// Zoom at the start.
        from: f64,
        /// Zoom at the end, below `from`.
        to: f64,
        /// The point that keeps its place.
        at: Point,
    },
    /// Moves across.
    Pan {
        /// Centre across at the start, in percent.
        from_percent: f64,
        /// Centre across at the end, in percent.
        to_percent: f64,
        /// Centre down, in percent.
        y_percent: f64,
        /// Zoom throughout.
        zoom: f64,
    },
    /// Moves up or down.
    Tilt {
        /// Centre down at the start, in percent.
        from_percent: f64,
        /// Centre down at the end, in percent.
        to_percent: f64,
        /// Centre across, in percent.
        x_percent: f64,
        /// Zoom throughout.
        zoom: f64,
    },
    /// Turns.
    Roll {
        /// Degrees at the start, clockwise.
        from: f64,
        /// Degrees at the end.
        to: f64,
        /// Centre.
        at: Point,
        /// Zoom throughout.
        zoom: f64,
    },
    /// From one framing to another.
    View {
        /// Framing at the start.
        from: Framing,
        /// Framing at the end.
        to: Framing,
    },
}

/// A camera move: `push 1 -> 1.15 at 40% 60%, ease-in-out`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Move {
    /// What the camera does.
    pub kind: MoveKind,
    /// How it speeds up and slows down.
    pub easing: Easing,
}

const CENTRE: Point = Point {
    x_percent: 50.0,
    y_percent: 50.0,
};
const WHOLE: Framing = Framing {
    at: CENTRE,
    zoom: 1.0,
    roll: 0.0,
};
const WORDS: [&str; 7] = ["still", "push", "pull", "pan", "tilt", "roll", "view"];
const EASINGS: [(&str, Easing); 4] = [
    ("linear", Easing::Linear),
    ("ease-in", Easing::EaseIn),
    ("ease-out", Easing::EaseOut),
    ("ease-in-out", Easing::EaseInOut),
];

impl Move {
    /// The whole picture, not moving.
    pub const STILL: Self = Self {
        kind: MoveKind::Still(WHOLE),
        easing: Easing::EaseInOut,
    };

    /// The views from which and to which it goes.
    pub fn camera(&self) -> CameraMove {
        let (from, to) = match self.kind {
            MoveKind::Still(framing) => (framing.view(), framing.view()),
            MoveKind::Push { from, to, at } | MoveKind::Pull { from, to, at } => {
                (at.kept_at(from), at.kept_at(to))
            }
            MoveKind::Pan {
                from_percent,
                to_percent,
                y_percent,
                zoom,
            } => {
                let view = |x| view(x, y_percent, zoom, 0.0);
                (view(from_percent), view(to_percent))
            }
            MoveKind::Tilt {
                from_percent,
                to_percent,
                x_percent,
                zoom,
            } => {
                let view = |y| view(x_percent, y, zoom, 0.0);
                (view(from_percent), view(to_percent))
            }
            MoveKind::Roll { from, to, at, zoom } => {
                let view = |roll| view(at.x_percent, at.y_percent, zoom, roll);
                (view(from), view(to))
            }
            MoveKind::View { from, to } => (from.view(), to.view()),
        };
        // Without a move the easing decides nothing and must not enter what is made.
        let easing = if from == to {
            Easing::Linear
        } else {
            self.easing
        };
        CameraMove { from, to, easing }
    }
}

impl Default for Move {
    fn default() -> Self {
        Self::STILL
    }
}

fn view(x_percent: f64, y_percent: f64, zoom: f64, roll: f64) -> View {
    View {
        x: x_percent / 100.0,
        y: y_percent / 100.0,
        zoom,
        roll,
    }
}

impl Framing {
    fn view(self) -> View {
        view(self.at.x_percent, self.at.y_percent, self.zoom, self.roll)
    }
}

impl Point {
    /// View at `zoom` in which this point stands where it stands in the whole picture. Its edges
    /// never leave the picture at a zoom of 1 or more.
    fn kept_at(self, zoom: f64) -> View {
        let centre = |percent: f64| percent + (50.0 - percent) / zoom;
        view(centre(self.x_percent), centre(self.y_percent), zoom, 0.0)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}% {}%", self.x_percent, self.y_percent)
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} zoom {}", self.at, self.zoom)?;
        if self.roll != 0.0 {
            write!(f, " roll {}", self.roll)?;
        }
        Ok(())
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            MoveKind::Still(framing) if framing == WHOLE => f.write_str("still")?,
            MoveKind::Still(framing) => write!(f, "still at {framing}")?,
            MoveKind::Push { from, to, at } => write!(f, "push {from} -> {to} at {at}")?,
            MoveKind::Pull { from, to, at } => write!(f, "pull {from} -> {to} at {at}")?,
            MoveKind::Pan {
                from_percent,
                to_percent,
                y_percent,
                zoom,
            } => write!(
                f,
                "pan {from_percent}% -> {to_percent}% at {y_percent}% zoom {zoom}"
            )?,
            MoveKind::Tilt {
                from_percent,
                to_percent,
                x_percent,
                zoom,
            } => write!(
                f,
                "tilt {from_percent}% -> {to_percent}% at {x_percent}% zoom {zoom}"
            )?,
            MoveKind::Roll { from, to, at, zoom } => {
                write!(f, "roll {from} -> {to} at {at} zoom {zoom}")?;
            }
            MoveKind::View { from, to } => write!(f, "view {from} -> {to}")?,
        }
        match EASINGS.iter().find(|(_, easing)| *easing == self.easing) {
            Some((word, easing)) if *easing != Easing::default() => write!(f, ", {word}"),
            _ => Ok(()),
        }
    }
}

/// Words of a move, read from the left.
struct Words<'a> {
    whole: &'a str,
    rest: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn refused(&self, expected: &str) -> ValueError {
        ValueError::new(self.whole, expected)
    }

    fn take(&mut self) -> &'a str {
        let word = self.rest.get(self.next).copied().unwrap_or("");
        self.next += 1;
        word
    }

    fn takes(&mut self, word: &str) -> bool {
        let here = self.rest.get(self.next) == Some(&word);
        self.next += usize::from(here);
        here
    }

    fn number(&mut self, low: f64, high: f64, expected: &str) -> Result<f64, ValueError> {
        let word = self.take();
        number(word, low, high, expected).map_err(|_word| self.refused(expected))
    }

    fn percent(&mut self) -> Result<f64, ValueError> {
        const EXPECTED: &str = "a place such as 40%, from 0% to 100%";
        let word = self.take();
        let digits = word.strip_suffix('%').unwrap_or("");
        number(digits, 0.0, 100.0, EXPECTED).map_err(|_word| self.refused(EXPECTED))
    }

    fn zoom(&mut self) -> Result<f64, ValueError> {
        self.number(0.25, 16.0, "a zoom from 0.25 to 16")
    }

    fn degrees(&mut self) -> Result<f64, ValueError> {
        self.number(-180.0, 180.0, "degrees from -180 to 180")
    }

    fn point(&mut self) -> Result<Point, ValueError> {
        Ok(Point {
            x_percent: self.percent()?,
            y_percent: self.percent()?,
        })
    }

    fn point_at(&mut self) -> Result<Point, ValueError> {
        if self.takes("at") {
            self.point()
        } else {
            Ok(CENTRE)
        }
    }

    fn zoom_or_one(&mut self) -> Result<f64, ValueError> {
        if self.takes("zoom") {
            self.zoom()
        } else {
            Ok(1.0)
        }
    }

    fn framing(&mut self) -> Result<Framing, ValueError> {
        Ok(Framing {
            at: self.point()?,
            zoom: self.zoom_or_one()?,
            roll: if self.takes("roll") {
                self.degrees()?
            } else {
                0.0
            },
        })
    }

    fn arrow(&mut self) -> Result<(), ValueError> {
        if self.takes("->") || self.takes("→") || self.takes("to") {
            return Ok(());
        }
        Err(self.refused("'->' between start and end, as in push 1 -> 1.15"))
    }

    fn start_and_end(
        &mut self,
        read: fn(&mut Self) -> Result<f64, ValueError>,
    ) -> Result<(f64, f64), ValueError> {
        let from = read(self)?;
        self.arrow()?;
        Ok((from, read(self)?))
    }

    fn kind(&mut self) -> Result<MoveKind, ValueError> {
        Ok(match self.take() {
            "still" if self.takes("at") => MoveKind::Still(self.framing()?),
            "still" => MoveKind::Still(WHOLE),
            "push" => {
                let (from, to) = self.start_and_end(Self::zoom)?;
                if to <= from {
                    return Err(self.refused("a push to a larger zoom; going back is a pull"));
                }
                let at = self.point_at()?;
                MoveKind::Push { from, to, at }
            }
            "pull" => {
                let (from, to) = self.start_and_end(Self::zoom)?;
                if to >= from {
                    return Err(self.refused("a pull to a smaller zoom; coming nearer is a push"));
                }
                let at = self.point_at()?;
                MoveKind::Pull { from, to, at }
            }
            "pan" => {
                let (from_percent, to_percent) = self.start_and_end(Self::percent)?;
                MoveKind::Pan {
                    from_percent,
                    to_percent,
                    y_percent: if self.takes("at") {
                        self.percent()?
                    } else {
                        50.0
                    },
                    zoom: self.zoom_or_one()?,
                }
            }
            "tilt" => {
                let (from_percent, to_percent) = self.start_and_end(Self::percent)?;
                MoveKind::Tilt {
                    from_percent,
                    to_percent,
                    x_percent: if self.takes("at") {
                        self.percent()?
                    } else {
                        50.0
                    },
                    zoom: self.zoom_or_one()?,
                }
            }
            "roll" => {
                let (from, to) = self.start_and_end(Self::degrees)?;
                MoveKind::Roll {
                    from,
                    to,
                    at: self.point_at()?,
                    zoom: self.zoom_or_one()?,
                }
            }
            "view" => {
                let from = self.framing()?;
                self.arrow()?;
                let to = self.framing()?;
                MoveKind::View { from, to }
            }
            other => {
                let expected = "still, push, pull, pan, tilt, roll or view";
                return Err(self.refused(expected).near(other, &WORDS));
            }
        })
    }
}

impl FromStr for Move {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (path, easing) = match text.rsplit_once(',') {
            Some((path, word)) => {
                let word = word.trim();
                let Some((_, easing)) = EASINGS.iter().find(|(name, _)| *name == word) else {
                    let expected = "linear, ease-in, ease-out or ease-in-out after the comma";
                    let names = EASINGS.map(|(name, _)| name);
                    return Err(ValueError::new(text, expected).near(word, &names));
                };
                (path, *easing)
            }
            None => (text, Easing::default()),
        };
        let mut words = Words {
            whole: text,
            rest: path.split_whitespace().take(24).collect(),
            next: 0,
        };
        let kind = words.kind()?;
        if words.next < words.rest.len() {
            return Err(words.refused("nothing more after the move but a comma and the easing"));
        }
        Ok(Self { kind, easing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_move_is_read_and_written() {
        for text in [
            "still",
            "still at 50% 30% zoom 1.2",
            "push 1 -> 1.15 at 40% 60%",
            "pull 1.3 -> 1 at 50% 50%, ease-out",
            "pan 30% -> 70% at 50% zoom 1.3, linear",
            "tilt 75% -> 25% at 50% zoom 1",
            "roll -2 -> 2 at 50% 50% zoom 1.2, ease-in",
            "view 50% 25% zoom 1 -> 40% 60% zoom 1.4 roll 2",
        ] {
            assert_eq!(text.parse::<Move>().unwrap().to_string(), text);
        }
        assert_eq!(
            "push 1.0 to 1.15".parse::<Move>(),
            "push 1 -> 1.15 at 50% 50%, ease-in-out".parse()
        );
    }

    #[test]
    fn wrong_moves_say_what_is_right() {
        let slip = "psuh 1 -> 2".parse::<Move>().unwrap_err();
        assert_eq!(slip.suggestion.as_deref(), Some("push"));
        let easing = "push 1 -> 2, ease-inn".parse::<Move>().unwrap_err();
        assert_eq!(easing.suggestion.as_deref(), Some("ease-in"));
        for wrong in [
            "",
            "push",
            "push 1",
            "push 2 -> 1",
            "push 1 -> nan",
            "push 1 -> 1e1",
            "pan 1 -> 2",
            "pan 0% -> 101%",
            "roll 0 -> 400",
            "still life",
            "push 1 -> 2 at 40%",
            ",",
        ] {
            assert!(wrong.parse::<Move>().is_err(), "{wrong:?} was read");
        }
    }

    #[test]
    fn a_push_keeps_its_point_and_stays_inside_the_picture() {
        let push: Move = "push 1 -> 2 at 20% 90%".parse().unwrap();
        let camera = push.camera();
        for frame in 0..100 {
            let view = camera.at(frame, 100);
            let half = 0.5 / view.zoom;
            assert!(
                view.x >= half - 1e-12 && view.x <= 1.0 - half + 1e-12,
                "{view:?}"
            );
            assert!(
                view.y >= half - 1e-12 && view.y <= 1.0 - half + 1e-12,
                "{view:?}"
            );
        }
        for view in [camera.from, camera.to] {
            let on_screen = 0.5 + (0.2 - view.x) * view.zoom;
            assert!((on_screen - 0.2).abs() < 1e-12);
        }
    }
}
