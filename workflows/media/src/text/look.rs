//! What a card of each role looks like. Sizes are parts of the frame's height.

use flow_timeline::CardRole;

/// Where a block of text stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// Centred across, its middle at this part of the height.
    Middle(f32),
    /// Centred across, its end at this part of the height.
    Bottom(f32),
    /// At the side where reading starts, its end at this part of the height.
    Corner(f32),
}

/// Size, face and dressing of a card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    pub family: &'static str,
    pub bold: bool,
    pub size: f32,
    /// Text that doesn't fit shrinks down to this before words are broken.
    pub least_size: f32,
    pub line_height: f32,
    /// In ems; only for scripts whose letters stand apart.
    pub tracking: f32,
    pub max_lines: usize,
    /// Of the frame's width.
    pub max_width: f32,
    /// Of the frame's height.
    pub max_height: f32,
    pub place: Place,
    pub rgb: [u8; 3],
    /// Width of the dark edge around letters.
    pub outline: f32,
    /// Blur radius and strength (0 to 1) of the shadow.
    pub shadow: (f32, f32),
    /// A thin bar at the side where reading starts.
    pub bar: bool,
}

/// Faces that come with the program.
pub(crate) const SANS: &str = "Noto Sans";
pub(crate) const DISPLAY: &str = "Noto Serif Display";

const WARM_WHITE: [u8; 3] = [250, 247, 240];

impl Look {
    pub(crate) const fn of(role: CardRole) -> Self {
        let base = Self {
            family: SANS,
            bold: false,
            size: 0.042,
            least_size: 0.026,
            line_height: 1.3,
            tracking: 0.0,
            max_lines: 2,
            max_width: 0.8,
            max_height: 0.3,
            place: Place::Middle(0.5),
            rgb: WARM_WHITE,
            outline: 0.0,
            shadow: (0.014, 0.75),
            bar: false,
        };
        match role {
            CardRole::Title => Self {
                family: DISPLAY,
                size: 0.125,
                least_size: 0.055,
                line_height: 1.18,
                tracking: 0.03,
                max_width: 0.84,
                max_height: 0.36,
                place: Place::Middle(0.47),
                shadow: (0.022, 0.7),
                ..base
            },
            CardRole::Subtitle => Self {
                size: 0.038,
                least_size: 0.024,
                tracking: 0.1,
                line_height: 1.4,
                ..base
            },
            CardRole::LowerThird => Self {
                size: 0.042,
                bold: true,
                tracking: 0.01,
                max_width: 0.55,
                place: Place::Corner(0.86),
                bar: true,
                ..base
            },
            CardRole::Credits => Self {
                size: 0.044,
                least_size: 0.018,
                line_height: 1.5,
                tracking: 0.02,
                max_lines: 24,
                max_height: 0.84,
                ..base
            },
            CardRole::Caption => Self {
                size: 0.05,
                least_size: 0.034,
                line_height: 1.26,
                max_lines: 3,
                max_width: 0.78,
                max_height: 0.26,
                place: Place::Bottom(0.925),
                rgb: [255, 255, 255],
                outline: 0.0052,
                shadow: (0.009, 0.6),
                ..base
            },
        }
    }
}
