//! A decoded picture in memory.

/// Pixel storage: rows from the top, RGBA interleaved, sRGB transfer, straight alpha.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pixels {
    /// 8 bits a channel.
    Rgba8(Vec<u8>),
    /// 16 bits a channel.
    Rgba16(Vec<u16>),
}

/// A decoded picture: upright, sRGB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
    /// `width_px * height_px * 4` values.
    pub pixels: Pixels,
}
