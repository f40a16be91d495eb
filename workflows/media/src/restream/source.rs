//! The pictures of a file in order, and what is known of it.

use std::path::{Path, PathBuf};

use engine_base::{Datum, Rational};
use ffmpeg_next::{ffi, frame};

use super::coding::{Coding, Layout};
use super::deinterlace::Deinterlacer;
use super::rgb::ToRgb;
use super::{Container, RgbPicture, SegmentFormat, copies, join, turn};
use crate::encode::{EncodeOptions, codec_version};
use crate::probe::VideoStream;
use crate::video::{Decoded, Reader, display_matrix, end_ticks, orientation_of};
use crate::{MediaError, probe};

/// Frames of a segment, and what counts as a small picture: a larger one takes long to draw, so
/// less of it is lost when a run is ended.
const SEGMENT_FRAMES: u64 = 48;
const SEGMENT_FRAMES_LARGE: u64 = 24;
const SMALL_PX: u64 = 500_000;

/// Redrawn pictures are this many times as wide and high.
const SCALE: u32 = 2;

/// What a video is and what becomes of it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Width of the pictures that [`Source::rgb`] gives.
    pub width_px: u32,
    /// Their height.
    pub height_px: u32,
    /// Number of frames, as the container tells or as its length makes likely.
    pub frames_about: u64,
    /// Frames of every segment but the last.
    pub segment_frames: u64,
    /// What is converted, is odd or cannot be kept, for people.
    pub notes: Vec<String>,
}

/// When the frames of a video are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTimes {
    /// Seconds a tick: numerator, denominator.
    pub time_base: (i64, i64),
    /// First tick of each frame, rising.
    pub begins: Vec<i64>,
    /// End of the last.
    pub end: i64,
}

/// A decoded frame.
pub struct SourceFrame {
    /// Its place, from 0.
    pub index: u64,
    decoded: Decoded,
}

/// Stream side data by FFmpeg's kind.
pub(super) type SideData = Vec<(ffi::AVPacketSideDataType, Vec<u8>)>;

/// An opened video file and the container that its remake goes to.
pub struct Source {
    path: PathBuf,
    pub(super) container: Container,
    reader: Reader,
    pub(super) video: usize,
    first: Option<Decoded>,
    deinterlacer: Option<Deinterlacer>,
    is_drained: bool,
    converter: ToRgb,
    orientation: u8,
    coded_size: (u32, u32),
    pub(super) format: SegmentFormat,
    facts: Facts,
    begins: Vec<i64>,
    end: i64,
    pub(super) side_data: SideData,
}

impl Source {
    /// Open the video at `path` for a remake in `container`.
    ///
    /// # Errors
    /// [`MediaError::BadFile`] for files that are no video, hold no frame that can be decoded, or
    /// hold sound that the container cannot; [`MediaError::TooLarge`]; [`MediaError::Codec`];
    /// [`MediaError::Io`].
    pub fn open(
        path: &Path,
        container: Container,
        options: &EncodeOptions,
    ) -> Result<Self, MediaError> {
        let mut reader = Reader::open(path)?;
        let bad = |what: String| MediaError::BadFile {
            what,
            path: path.to_owned(),
        };
        let cut = reader.outline.cut.clone();
        let Some(mut first) = reader.next()? else {
            let why = cut.map(|cut| format!("; the end is missing: {cut}"));
            return Err(bad(format!(
                "the video has no picture that can be decoded{}",
                why.unwrap_or_default()
            )));
        };
        let described = probe::probe(path)?.video.into_iter().next();
        let (Some(described), Some(stream)) = (described, reader.stream()) else {
            return Err(bad("the video stream is gone after opening".to_owned()));
        };
        let layout = Layout::of(first.frame.format())
            .ok_or_else(|| bad("the video has an unknown pixel format".to_owned()))?;
        let coding = Coding::of(&first.frame, layout);
        let video = stream.index();
        let mut notes = Vec::new();
        if let Some(cut) = &cut {
            notes.push(format!("the end is missing, what is there is done: {cut}"));
        }
        notes.extend(copies::plan(reader.input(), video, container, path)?.notes);
        let orientation = display_matrix(&stream)
            .filter(|_| !container.holds_turns())
            .map_or(Some(1), |matrix| orientation_of(&matrix));
        let side_data = side_data(&stream, &first.frame, container);
        note_look(&mut notes, &first.frame, layout, &coding, &stream);
        match orientation {
            Some(1) => {}
            Some(_) => notes.push(format!(
                "the pictures are turned upright: {} does not say how they lie",
                container.name()
            )),
            None => notes.push(
                "the file asks for a turn that is no quarter turn: it is not kept".to_owned(),
            ),
        }
        let orientation = orientation.unwrap_or(1);
        let end = end_ticks(&reader, path, first.pts)?;
        let coded_size = (first.frame.width(), first.frame.height());
        let aspect = reader.sample_aspect(&mut first.frame);
        let aspect = Rational::new(aspect.0, aspect.1).unwrap_or(Rational::ONE);
        let (width_px, height_px, sample_aspect) = if orientation >= 5 {
            let across = Rational::ONE.checked_div(aspect).unwrap_or(Rational::ONE);
            (coded_size.1, coded_size.0, across)
        } else {
            (coded_size.0, coded_size.1, aspect)
        };
        let pixels = u64::from(width_px) * u64::from(height_px);
        let segment_frames = if pixels <= SMALL_PX {
            SEGMENT_FRAMES
        } else {
            SEGMENT_FRAMES_LARGE
        };
        let format = SegmentFormat {
            width_px: width_px.saturating_mul(SCALE),
            height_px: height_px.saturating_mul(SCALE),
            sample_aspect,
            rate: rate(&described),
            is_vfr: described.is_vfr,
            coding,
            options: EncodeOptions {
                gop_frames: segment_frames as u16,
                ..*options
            },
        };
        Ok(Self {
            path: path.to_owned(),
            container,
            video,
            deinterlacer: None,
            is_drained: false,
            converter: ToRgb::new(coding),
            orientation,
            coded_size,
            format,
            facts: Facts {
                width_px,
                height_px,
                frames_about: frames_about(&described),
                segment_frames,
                notes,
            },
            begins: Vec::new(),
            end,
            side_data,
            first: Some(first),
            reader,
        })
    }

    /// What the video is.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How segments of its remake are coded.
    pub const fn segment_format(&self) -> &SegmentFormat {
        &self.format
    }

    /// Everything beside the file's content and what is drawn that decides a segment's bytes.
    pub fn settings(&self) -> Datum {
        let options = &self.format.options;
        Datum::map([
            ("orientation", Datum::whole(u64::from(self.orientation))),
            ("crf", Datum::whole(u64::from(options.crf))),
            ("preset", Datum::from(options.preset.name())),
            ("threads", Datum::whole(u64::from(options.threads))),
            ("segment_frames", Datum::whole(self.facts.segment_frames)),
            ("codec", Datum::from(codec_version().as_str())),
        ])
    }

    /// Try that the encoder takes the format, and that a file with all streams can begin at `out`.
    /// Leaves nothing there.
    ///
    /// # Errors
    /// [`MediaError::Codec`] or [`MediaError::Io`], as the remake would fail in the end.
    pub fn try_out(&self, out: &Path) -> Result<(), MediaError> {
        join::try_head(self, out)
    }

    /// The next frame in order of showing; nothing at the end.
    ///
    /// # Errors
    /// [`MediaError::BadFile`] where decoding fails for good; [`MediaError::Codec`].
    pub fn next_frame(&mut self) -> Result<Option<SourceFrame>, MediaError> {
        let Some(decoded) = self.pull()? else {
            return Ok(None);
        };
        let index = self.begins.len() as u64;
        self.begins.push(decoded.pts);
        Ok(Some(SourceFrame { index, decoded }))
    }

    fn pull(&mut self) -> Result<Option<Decoded>, MediaError> {
        loop {
            if let Some(deinterlacer) = &mut self.deinterlacer {
                if let Some(ready) = deinterlacer.pull()? {
                    return Ok(Some(ready));
                }
                if self.is_drained {
                    return Ok(None);
                }
            }
            let next = match self.first.take() {
                Some(first) => Some(first),
                None => self.reader.next()?,
            };
            let Some(next) = next else {
                let Some(deinterlacer) = &mut self.deinterlacer else {
                    return Ok(None);
                };
                deinterlacer.push(None)?;
                self.is_drained = true;
                continue;
            };
            self.check_size(&next)?;
            let deinterlacer = match &mut self.deinterlacer {
                Some(deinterlacer) => deinterlacer,
                None if next.frame.is_interlaced() => {
                    let base = self.reader.time_base;
                    self.deinterlacer
                        .insert(Deinterlacer::new(&next.frame, base)?)
                }
                None => return Ok(Some(next)),
            };
            deinterlacer.push(Some(next))?;
        }
    }

    fn check_size(&self, next: &Decoded) -> Result<(), MediaError> {
        let got = (next.frame.width(), next.frame.height());
        if got == self.coded_size {
            return Ok(());
        }
        let (num, den) = self.reader.time_base;
        let secs = next.pts as f64 * num as f64 / den as f64;
        Err(MediaError::BadFile {
            what: format!(
                "the video changes its size: expected {} x {} px, got {} x {} px in about frame {} \
                 at {secs:.3} s",
                self.coded_size.0,
                self.coded_size.1,
                got.0,
                got.1,
                self.begins.len()
            ),
            path: self.path.clone(),
        })
    }

    /// The picture of a frame.
    ///
    /// # Errors
    /// [`MediaError::Codec`].
    pub fn rgb(&mut self, frame: &SourceFrame) -> Result<RgbPicture, MediaError> {
        let picture = self.converter.picture(&frame.decoded.frame)?;
        Ok(turn::upright(picture, self.orientation))
    }

    /// When the frames given so far are shown; the end is that of the video.
    pub fn times(&self) -> FrameTimes {
        let last = self.begins.last().copied().unwrap_or(0);
        let gap = match self.begins.as_slice() {
            [.., before, last] => last.saturating_sub(*before),
            _ => self.reader.frame_ticks,
        };
        let end = if self.reader.outline.cut.is_some() || self.end <= last {
            // Packets that were not decoded count to a cut file's end.
            last.saturating_add(gap.max(1))
        } else {
            self.end
        };
        FrameTimes {
            time_base: self.reader.time_base,
            begins: self.begins.clone(),
            end,
        }
    }

    /// What came to light while the frames were read.
    pub fn late_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.reader.damaged > 0 {
            notes.push(format!(
                "{} pieces of the video could not be decoded: their frames are missing or not whole",
                self.reader.damaged
            ));
        }
        if self.deinterlacer.is_some() {
            notes.push("interlaced frames were made whole (bwdif, one for each frame)".to_owned());
        }
        notes
    }
}

fn frames_about(described: &VideoStream) -> u64 {
    described.frames.unwrap_or_else(|| {
        let rate = described.average_fps.map_or(25.0, Rational::as_f64);
        (described.duration_secs.as_f64() * rate).round().max(1.0) as u64
    })
}

/// Highest rate that a stream of variable rate names.
const MAX_VFR_HZ: f64 = 240.0;

/// The rate that the stream names: of a variable one that in which all times are whole, since tools
/// take it for the shortest distance of two frames.
fn rate(described: &VideoStream) -> Rational {
    let usable = |rate: &Rational| {
        *rate > Rational::ZERO && rate.as_f64() <= 1000.0 && rate.num().max(rate.den()) < 1 << 30
    };
    let base = described
        .base_fps
        .filter(|rate| described.is_vfr && rate.as_f64() <= MAX_VFR_HZ);
    [base, described.average_fps, described.base_fps]
        .into_iter()
        .flatten()
        .find(usable)
        .unwrap_or(Rational::whole(25))
}

fn note_look(
    notes: &mut Vec<String>,
    frame: &frame::Video,
    layout: Layout,
    coding: &Coding,
    stream: &ffmpeg_next::Stream<'_>,
) {
    let says_alpha = stream.metadata().get("alpha_mode") == Some("1");
    if layout.has_alpha || says_alpha {
        notes.push(
            "transparency is not kept, H.264 has none: what is transparent is black".to_owned(),
        );
    }
    if layout.is_rgb {
        notes.push("RGB is coded as YUV 4:2:0 by BT.709".to_owned());
    }
    if layout.bits > 10 {
        notes.push(format!("{} bits a channel become 10", layout.bits));
    }
    if coding.is_hdr() {
        notes.push("HDR stays HDR: tags are kept, the coded signal is made larger".to_owned());
    }
    if coding.space != frame.color_space() && !layout.is_rgb {
        let name = coding.space.name().unwrap_or("another");
        notes.push(format!(
            "the file does not say its colour matrix: taken as {name}, which is written now"
        ));
    }
}

/// Side data of the video stream that holds for its remake.
fn side_data(
    stream: &ffmpeg_next::Stream<'_>,
    first: &frame::Video,
    container: Container,
) -> SideData {
    use ffi::AVFrameSideDataType as OfFrame;
    use ffi::AVPacketSideDataType as Kind;
    let mut kept: SideData = Vec::new();
    for data in stream.side_data() {
        let kind = Kind::from(data.kind());
        let mut bytes = data.data().to_vec();
        match kind {
            Kind::AV_PKT_DATA_DISPLAYMATRIX if !container.holds_turns() => continue,
            Kind::AV_PKT_DATA_DISPLAYMATRIX => widen_matrix(&mut bytes),
            Kind::AV_PKT_DATA_STEREO3D
            | Kind::AV_PKT_DATA_SPHERICAL
            | Kind::AV_PKT_DATA_MASTERING_DISPLAY_METADATA
            | Kind::AV_PKT_DATA_CONTENT_LIGHT_LEVEL
            | Kind::AV_PKT_DATA_ICC_PROFILE => {}
            _ => continue,
        }
        kept.push((kind, bytes));
    }
    // Often these stand in the coded pictures alone.
    for (of_frame, kind) in [
        (
            OfFrame::AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
            Kind::AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
        ),
        (
            OfFrame::AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
            Kind::AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
        ),
    ] {
        if kept.iter().any(|(there, _)| *there == kind) {
            continue;
        }
        // SAFETY: the frame is alive; what is found belongs to it and is copied at once.
        let bytes = unsafe {
            let data = ffi::av_frame_get_side_data(first.as_ptr(), of_frame);
            data.as_ref()
                .filter(|data| !data.data.is_null())
                .map(|data| std::slice::from_raw_parts(data.data, data.size as _).to_vec())
        };
        kept.extend(bytes.map(|bytes| (kind, bytes)));
    }
    kept
}

/// The shift of a display matrix counts in pixels.
fn widen_matrix(bytes: &mut [u8]) {
    for word in bytes.as_chunks_mut::<4>().0.iter_mut().skip(6).take(2) {
        *word = i32::from_ne_bytes(*word)
            .saturating_mul(SCALE as i32)
            .to_ne_bytes();
    }
}
