//! How a video's pictures are coded, and how they are coded again.

use ffmpeg_next::chroma::Location;
use ffmpeg_next::color::{Primaries, Range, Space, TransferCharacteristic};
use ffmpeg_next::format::Pixel;
use ffmpeg_next::{ffi, frame};

/// Untagged pictures from here on are taken as BT.709, smaller ones as BT.601: what players do.
const HD_LINES: u32 = 720;
const HD_WIDTH: u32 = 1280;

/// Depth and chroma grid of a pixel format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) bits: i32,
    pub(super) is_rgb: bool,
    pub(super) has_alpha: bool,
    /// Powers of two by which chroma is narrower and lower.
    pub(super) chroma: (u8, u8),
    components: u8,
}

impl Layout {
    /// Nothing for formats that FFmpeg does not describe.
    pub(super) fn of(format: Pixel) -> Option<Self> {
        // SAFETY: the descriptor table is static; unknown formats give null, which is checked.
        // Each descriptor has four components, of which the first is always filled.
        unsafe {
            let descriptor = ffi::av_pix_fmt_desc_get(format.into()).as_ref()?;
            let has = |flag: i32| descriptor.flags & u64::from(flag.unsigned_abs()) != 0;
            Some(Self {
                bits: descriptor.comp[0].depth,
                is_rgb: has(ffi::AV_PIX_FMT_FLAG_RGB) || has(ffi::AV_PIX_FMT_FLAG_PAL),
                has_alpha: has(ffi::AV_PIX_FMT_FLAG_ALPHA),
                chroma: (descriptor.log2_chroma_w, descriptor.log2_chroma_h),
                components: descriptor.nb_components,
            })
        }
    }
}

/// The chroma grid of what is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chroma {
    /// Half as wide and high.
    Quarter,
    /// Half as wide.
    Half,
    /// Full.
    Full,
}

/// Colour of a source's frames, and how frames drawn from them are coded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coding {
    /// Red and blue share of luma.
    pub(super) shares: (f32, f32),
    /// The matrix as swscale numbers it.
    pub(super) sws_matrix: i32,
    /// Of the source.
    pub(super) is_full_range: bool,
    /// Of what is coded.
    pub(super) writes_full_range: bool,
    pub(super) space: Space,
    pub(super) primaries: Primaries,
    pub(super) transfer: TransferCharacteristic,
    pub(super) range: Range,
    pub(super) siting: Location,
    /// 8 or 10.
    pub(super) bits: u8,
    pub(super) chroma: Chroma,
}

impl Coding {
    pub(super) fn of(frame: &frame::Video, layout: Layout) -> Self {
        let is_hd = frame.height() >= HD_LINES || frame.width() >= HD_WIDTH;
        // Twice the size may be beyond the border from which players take another matrix, so what
        // was not said is said.
        let space = match frame.color_space() {
            _ if layout.is_rgb => Space::BT709,
            Space::Unspecified | Space::Reserved | Space::RGB if is_hd => Space::BT709,
            Space::Unspecified | Space::Reserved | Space::RGB => Space::SMPTE170M,
            space => space,
        };
        let (shares, sws_matrix) = match space {
            Space::BT470BG | Space::SMPTE170M => ((0.299, 0.114), ffi::SWS_CS_ITU601),
            Space::FCC => ((0.30, 0.11), ffi::SWS_CS_FCC),
            Space::SMPTE240M => ((0.212, 0.087), ffi::SWS_CS_SMPTE240M),
            Space::BT2020NCL | Space::BT2020CL => ((0.2627, 0.0593), ffi::SWS_CS_BT2020),
            // Others are no matrices of this form; there and back by one matrix the signal stays
            // what it was.
            _ => ((0.2126, 0.0722), ffi::SWS_CS_ITU709),
        };
        let is_jpeg_kind = matches!(
            frame.format(),
            Pixel::YUVJ420P | Pixel::YUVJ422P | Pixel::YUVJ444P | Pixel::YUVJ440P | Pixel::YUVJ411P
        );
        let is_full_range = match frame.color_range() {
            Range::JPEG => true,
            Range::MPEG => layout.is_rgb,
            Range::Unspecified => layout.is_rgb || is_jpeg_kind,
        };
        let writes_full_range = is_full_range && !layout.is_rgb;
        let range = match frame.color_range() {
            Range::Unspecified if !is_jpeg_kind && !layout.is_rgb => Range::Unspecified,
            _ if writes_full_range => Range::JPEG,
            _ => Range::MPEG,
        };
        let chroma = match (layout.is_rgb || layout.components < 3, layout.chroma) {
            (false, (0, 0)) => Chroma::Full,
            (false, (1, 0)) => Chroma::Half,
            // At twice the size a quarter of the chroma is as much as RGB had.
            _ => Chroma::Quarter,
        };
        let siting = match frame.chroma_location() {
            Location::Unspecified if chroma != Chroma::Quarter => Location::Unspecified,
            Location::Unspecified => Location::Left,
            siting => siting,
        };
        Self {
            shares,
            sws_matrix,
            is_full_range,
            writes_full_range,
            space,
            primaries: frame.color_primaries(),
            transfer: frame.color_transfer_characteristic(),
            range,
            siting,
            bits: if layout.bits > 8 { 10 } else { 8 },
            chroma,
        }
    }

    /// The pixel format that is coded.
    pub(super) const fn pixel(&self) -> Pixel {
        match (self.chroma, self.bits) {
            (Chroma::Quarter, 8) => Pixel::YUV420P,
            (Chroma::Half, 8) => Pixel::YUV422P,
            (Chroma::Full, 8) => Pixel::YUV444P,
            (Chroma::Quarter, _) => Pixel::YUV420P10LE,
            (Chroma::Half, _) => Pixel::YUV422P10LE,
            (Chroma::Full, _) => Pixel::YUV444P10LE,
        }
    }

    /// Whether the transfer is PQ or HLG.
    pub(super) const fn is_hdr(&self) -> bool {
        matches!(
            self.transfer,
            TransferCharacteristic::SMPTE2084 | TransferCharacteristic::ARIB_STD_B67
        )
    }

    /// Place of a chroma sample within its 2 x 2 pixels, in 256ths of a pixel: across, down.
    pub(super) const fn chroma_place(&self) -> (i64, i64) {
        match self.siting {
            Location::Center => (128, 128),
            Location::TopLeft => (0, 0),
            Location::Top => (128, 0),
            Location::BottomLeft => (0, 256),
            Location::Bottom => (128, 256),
            Location::Left | Location::Unspecified => (0, 128),
        }
    }
}
