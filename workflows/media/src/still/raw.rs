//! Samples as a decoder gives them, before colour and size are made right.

/// What the channels of a pixel mean, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
    /// Largest value = full ink.
    Cmyk,
}

impl Model {
    pub(super) const fn channels(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }
}

/// Interleaved samples, rows from the top, no padding.
#[derive(Debug)]
pub(super) enum Samples {
    U8(Vec<u8>),
    U16(Vec<u16>),
}

/// How the colours are described, strongest first.
#[derive(Debug, Default)]
pub(super) struct Colour {
    /// ITU-T H.273 primaries, transfer, full range: the PNG chunk `cICP`.
    pub(super) cicp: Option<(u8, u8)>,
    /// An ICC profile.
    pub(super) icc: Option<Vec<u8>>,
    /// Exponent of display light, from the PNG chunk `gAMA`.
    pub(super) gamma: Option<f32>,
}

/// A decoded picture that is not yet upright nor sRGB.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) width_px: u32,
    pub(super) height_px: u32,
    pub(super) model: Model,
    pub(super) samples: Samples,
    pub(super) colour: Colour,
    /// EXIF orientation, 1 to 8.
    pub(super) orientation: u8,
    pub(super) notes: Vec<String>,
}

/// A channel value of 8 or 16 bits.
pub(super) trait Sample: Copy + Default + Send + Sync + Ord + 'static {
    const MAX: u32;
    fn wide(self) -> u32;
    /// Values over [`Self::MAX`] become it.
    fn narrow(value: u32) -> Self;
}

impl Sample for u8 {
    const MAX: u32 = 255;
    fn wide(self) -> u32 {
        u32::from(self)
    }
    fn narrow(value: u32) -> Self {
        value.min(<Self as Sample>::MAX) as Self
    }
}

impl Sample for u16 {
    const MAX: u32 = 65535;
    fn wide(self) -> u32 {
        u32::from(self)
    }
    fn narrow(value: u32) -> Self {
        value.min(<Self as Sample>::MAX) as Self
    }
}

/// sRGB value in 0..1 to light in 0..1 (IEC 61966-2-1).
pub(crate) fn srgb_to_linear(value: f64) -> f64 {
    if value <= 0.04045 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

/// Light in 0..1 to sRGB value in 0..1 (IEC 61966-2-1).
pub(crate) fn linear_to_srgb(light: f64) -> f64 {
    if light <= 0.003_130_8 {
        light * 12.92
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    }
}
