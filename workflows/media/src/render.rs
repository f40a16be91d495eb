//! Picture segments: layers seen through camera moves, blends, fades and cards, frame after frame.
//!
//! Memory is bounded by the sources' working pictures and a few frames; it does not grow with the
//! length. Frames depend on the segment and its sources only, not on threads, nor on the order in
//! which they are asked for.
//!
//! Light: pictures are reduced in linear light and enlarged in coded light, one way for a whole
//! shot; alpha lies over black and cross-fades mix in linear light; fades from, to and through
//! black scale coded values, which the eye sees as even; text is laid over coded values. Fades do
//! not touch cards, which have their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use engine_base::{CancelToken, ProgressEvent, ProgressSink};
use flow_timeline::{Blend, LayerKind, Segment};

use crate::MediaError;
use crate::encode::{EncodeOptions, VideoEncoder};
use crate::text::{self, CardPicture, Fonts};

/// Defines a function twice, once for processors with wider registers. Multiplications and
/// additions stay apart in both, so the results are the same to the bit.
macro_rules! wide_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) = $body:ident / $wide:ident;) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $wide($($arg: $ty),*) {
            $body($($arg),*);
        }
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as was just asked.
                unsafe { $wide($($arg),*) };
                return;
            }
            $body($($arg),*);
        }
    };
}
pub(crate) use wide_fn;

mod kernel;
mod layer;
mod light;
mod source;
mod surface;
mod view;
mod workers;
mod yuv;

pub use layer::{FrameSource, LayerSource};
pub use yuv::YuvFrame;

use layer::LayerRenderer;
use light::{Coder, Light, linear_row};
pub(crate) use surface::Rgbx;
use workers::Workers;
pub(crate) use yuv::yuv_to_rgb;
use yuv::{ChromaRow, rows_to_yuv};

/// Gives the frames of a segment.
pub struct SegmentRenderer<'a> {
    segment: Segment,
    fonts: &'a Fonts,
    layers: Vec<LayerRenderer>,
    cards: Vec<Option<Arc<CardPicture>>>,
    workers: Workers,
    coder: Coder,
    notes: Vec<String>,
}

/// How the layers and cards make one frame.
struct Plan {
    /// Layer and its gain over coded values.
    base: usize,
    gain: f32,
    /// Part of the second layer, mixed in linear light.
    mix: Option<f32>,
    cards: Vec<(Arc<CardPicture>, f32)>,
}

#[derive(Default)]
struct Scratch {
    column: Vec<Rgbx>,
    rows: [Vec<Rgbx>; 2],
    other: Vec<Rgbx>,
    chroma: ChromaRow,
}

impl<'a> SegmentRenderer<'a> {
    /// A renderer reading `sources` (one for each layer; colours ignore theirs), working in the
    /// caller's thread.
    ///
    /// # Errors
    /// [`MediaError`] for a segment out of range or a source that cannot be read.
    pub fn new(
        segment: &Segment,
        sources: &[PathBuf],
        fonts: &'a Fonts,
    ) -> Result<Self, MediaError> {
        check(segment)?;
        let mut opened = Vec::with_capacity(segment.layers.len());
        let mut notes = Vec::new();
        for (index, layer) in segment.layers.iter().enumerate() {
            let path = sources.get(index);
            let (source, found) = source::open(layer, path, &segment.format)?;
            notes.extend(found.iter().map(|what| format!("layer {index}: {what}")));
            opened.push(source);
        }
        let mut made = Self::with_sources(segment, opened, fonts, 1)?;
        made.notes = notes;
        Ok(made)
    }

    /// What of the sources was converted or is odd, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// A renderer over sources already opened, with `threads` threads.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for a segment out of range or sources that don't fit it.
    pub fn with_sources(
        segment: &Segment,
        sources: Vec<LayerSource>,
        fonts: &'a Fonts,
        threads: usize,
    ) -> Result<Self, MediaError> {
        check(segment)?;
        if sources.len() != segment.layers.len() {
            return Err(MediaError::BadRequest(format!(
                "render {} layers: got {} sources, expected one for each layer",
                segment.layers.len(),
                sources.len()
            )));
        }
        let frame = (
            segment.format.width_px as usize,
            segment.format.height_px as usize,
        );
        let layers = segment.layers.iter().zip(sources);
        Ok(Self {
            layers: layers
                .map(|(layer, source)| LayerRenderer::new(layer, source, frame))
                .collect::<Result<_, _>>()?,
            cards: vec![None; segment.cards.len()],
            workers: Workers::new(threads)?,
            coder: Coder::new(),
            notes: Vec::new(),
            segment: segment.clone(),
            fonts,
        })
    }

    /// Work with `threads` threads from here on.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] when they cannot be started.
    pub fn set_threads(&mut self, threads: usize) -> Result<(), MediaError> {
        self.workers = Workers::new(threads)?;
        Ok(())
    }

    /// How many frames there are.
    pub const fn frames(&self) -> i64 {
        self.segment.frames
    }

    /// A black frame of the right size to render into.
    pub fn new_frame(&self) -> YuvFrame {
        YuvFrame::new(
            self.segment.format.width_px as usize,
            self.segment.format.height_px as usize,
        )
    }

    fn plan(&mut self, index: i64) -> Result<Plan, MediaError> {
        let frames = self.segment.frames;
        // The frame before a blend is the first layer alone, the one after it the second.
        let way = (index + 1) as f32 / (frames + 1) as f32;
        let (base, mut gain, mix) = match self.segment.blend {
            None => (0, 1.0, None),
            Some(Blend::CrossFade) => (0, 1.0, Some(way)),
            Some(Blend::ThroughBlack) if way < 0.5 => (0, 1.0 - 2.0 * way, None),
            Some(Blend::ThroughBlack) => (1, 2.0 * way - 1.0, None),
        };
        let part = |at: i64, of: i64| if at < of { at as f32 / of as f32 } else { 1.0 };
        gain *= part(index, self.segment.fade_in_frames);
        gain *= part(frames - 1 - index, self.segment.fade_out_frames);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            if i == base || mix.is_some() {
                layer.prepare(index, &self.workers)?;
            }
        }
        let mut cards = Vec::new();
        for (card, drawn) in self.segment.cards.iter().zip(&mut self.cards) {
            let opacity = text::card_opacity(card, index);
            if opacity <= 0.0 {
                *drawn = None;
                continue;
            }
            let picture = match drawn {
                Some(picture) => Arc::clone(picture),
                None => {
                    let above = text::card_above(card, &self.segment.cards);
                    let format = &self.segment.format;
                    let picture = Arc::new(text::draw_card(card, above, format, self.fonts)?);
                    *drawn = Some(Arc::clone(&picture));
                    picture
                }
            };
            cards.push((picture, opacity));
        }
        Ok(Plan {
            base,
            gain,
            mix,
            cards,
        })
    }

    /// Coded values of row `y` of the planned frame.
    fn row(&self, plan: &Plan, y: usize, scratch: &mut RowScratch<'_>, out: &mut [Rgbx]) {
        let base = &self.layers[plan.base];
        base.row(y, scratch.column, out);
        let mut light = base.light();
        if let Some(mix) = plan.mix
            && let Some(second) = self.layers.get(1)
        {
            let other = &mut *scratch.other;
            other.resize(out.len(), [0.0; 4]);
            second.row(y, scratch.column, other);
            if light == Light::Coded {
                linear_row(out);
            }
            if second.light() == Light::Coded {
                linear_row(other);
            }
            light = Light::Linear;
            for (a, b) in out.iter_mut().zip(other) {
                for c in 0..3 {
                    a[c] = a[c].clamp(0.0, 1.0) * (1.0 - mix) + b[c].clamp(0.0, 1.0) * mix;
                }
            }
        }
        if light == Light::Linear {
            self.coder.coded_row(out);
        }
        if plan.gain < 1.0 {
            for pixel in out.iter_mut() {
                *pixel = pixel.map(|v| v.clamp(0.0, 1.0) * plan.gain);
            }
        }
        for (card, opacity) in &plan.cards {
            card.blend_row(y, *opacity, out);
        }
    }

    fn check_index(&self, index: i64) -> Result<(), MediaError> {
        if (0..self.segment.frames).contains(&index) {
            return Ok(());
        }
        Err(MediaError::BadRequest(format!(
            "render frame {index}: expected 0 to {}",
            self.segment.frames - 1
        )))
    }

    /// Render frame `index` into `out`.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for an index outside the segment or a frame of another size;
    /// whatever a source or font fails with.
    pub fn frame_yuv(&mut self, index: i64, out: &mut YuvFrame) -> Result<(), MediaError> {
        self.check_index(index)?;
        let (width, height) = (
            self.segment.format.width_px as usize,
            self.segment.format.height_px as usize,
        );
        if (out.width_px, out.height_px) != (width, height) {
            return Err(MediaError::BadRequest(format!(
                "render into a frame of {}x{} px: expected {width}x{height}",
                out.width_px, out.height_px
            )));
        }
        let plan = self.plan(index)?;
        let pairs = out
            .y
            .chunks_exact_mut(2 * width)
            .zip(out.u.chunks_exact_mut(width / 2))
            .zip(out.v.chunks_exact_mut(width / 2))
            .collect();
        let this = &*self;
        this.workers
            .each(pairs, Scratch::default, |pair, ((y, u), v), scratch| {
                let Scratch {
                    column,
                    rows,
                    other,
                    chroma,
                } = scratch;
                for (i, row) in rows.iter_mut().enumerate() {
                    row.resize(width, [0.0; 4]);
                    let mut scratch = RowScratch { column, other };
                    this.row(&plan, 2 * pair + i, &mut scratch, row);
                }
                rows_to_yuv((&rows[0], &rows[1]), pair, chroma, y, (u, v));
            });
        Ok(())
    }

    /// Frame `index` as 8-bit sRGB, `width * height * 3` values, for looking at; the encoder never
    /// sees it.
    ///
    /// # Errors
    /// As [`Self::frame_yuv`].
    pub fn frame_rgb(&mut self, index: i64) -> Result<Vec<u8>, MediaError> {
        let coded = self.frame_coded(index)?;
        let byte = |v: f32| (v.clamp(0.0, 1.0) * 255.0 + 0.5) as u8;
        Ok(coded
            .iter()
            .flat_map(|p| [byte(p[0]), byte(p[1]), byte(p[2])])
            .collect())
    }

    /// Frame `index` as coded values before rounding.
    pub(crate) fn frame_coded(&mut self, index: i64) -> Result<Vec<Rgbx>, MediaError> {
        self.check_index(index)?;
        let width = self.segment.format.width_px as usize;
        let height = self.segment.format.height_px as usize;
        let plan = self.plan(index)?;
        let mut data = vec![[0.0; 4]; width * height];
        let this = &*self;
        let rows: Vec<&mut [Rgbx]> = data.chunks_exact_mut(width).collect();
        this.workers
            .each(rows, Scratch::default, |y, row, scratch| {
                let mut scratch = RowScratch {
                    column: &mut scratch.column,
                    other: &mut scratch.other,
                };
                this.row(&plan, y, &mut scratch, row);
            });
        Ok(data)
    }
}

struct RowScratch<'a> {
    column: &'a mut Vec<Rgbx>,
    other: &'a mut Vec<Rgbx>,
}

/// Longest segment: a day at 120 frames a second.
const MAX_FRAMES: i64 = 24 * 3600 * 120;

fn check(segment: &Segment) -> Result<(), MediaError> {
    let bad = |what: String| Err(MediaError::BadRequest(what));
    if let Err(error) = segment.format.check() {
        return bad(error.to_string());
    }
    if !(1..=MAX_FRAMES).contains(&segment.frames) {
        return bad(format!(
            "render {} frames: expected 1 to {MAX_FRAMES}",
            segment.frames
        ));
    }
    match (segment.layers.len(), segment.blend) {
        (1, None) | (2, Some(_)) => {}
        (layers, blend) => {
            return bad(format!(
                "render {layers} layers with blend {blend:?}: expected 1 without or 2 with one"
            ));
        }
    }
    if segment.fade_in_frames < 0 || segment.fade_out_frames < 0 {
        return bad(format!(
            "fade over {} and {} frames: expected 0 or more",
            segment.fade_in_frames, segment.fade_out_frames
        ));
    }
    for layer in &segment.layers {
        if layer.shot_frames < 1 && !matches!(layer.source, LayerKind::Colour { .. }) {
            return bad(format!(
                "move the camera over {} frames: expected at least 1",
                layer.shot_frames
            ));
        }
    }
    Ok(())
}

/// What was rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// Frames in the file.
    pub frames: i64,
    /// Its size.
    pub bytes: u64,
    /// What of the sources was converted or is odd, for people.
    pub notes: Vec<String>,
}

/// Frames between renderer and encoder.
const FRAMES_AHEAD: usize = 4;

/// Render `segment` and code it into the file `out`; rendering with `threads` threads goes on
/// beside the encoder. At `out` there is a whole file or none.
///
/// # Errors
/// [`MediaError::Cancelled`]; otherwise as [`SegmentRenderer::new`], [`VideoEncoder::create`] and
/// [`VideoEncoder::push`].
#[expect(
    clippy::too_many_arguments,
    reason = "one call with everything a segment takes"
)]
pub fn render_segment(
    segment: &Segment,
    sources: &[PathBuf],
    fonts: &Fonts,
    out: &Path,
    options: &EncodeOptions,
    threads: usize,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<SegmentReport, MediaError> {
    cancel.check()?;
    let mut renderer = SegmentRenderer::new(segment, sources, fonts)?;
    renderer.set_threads(threads)?;
    encode_frames(&mut renderer, out, options, cancel, progress)
}

/// Code all frames of `renderer` into the file `out`.
///
/// # Errors
/// As [`render_segment`].
pub fn encode_frames(
    renderer: &mut SegmentRenderer<'_>,
    out: &Path,
    options: &EncodeOptions,
    cancel: &CancelToken,
    progress: &dyn ProgressSink,
) -> Result<SegmentReport, MediaError> {
    let mut encoder = VideoEncoder::create(out, &renderer.segment.format, options)?;
    let frames = renderer.frames();
    let notes = renderer.notes.clone();
    let (full_send, full) = mpsc::sync_channel::<Result<YuvFrame, MediaError>>(FRAMES_AHEAD);
    let (free_send, free) = mpsc::sync_channel::<YuvFrame>(FRAMES_AHEAD + 2);
    std::thread::scope(|scope| -> Result<(), MediaError> {
        let rendering = std::thread::Builder::new()
            .name("render-frames".into())
            .spawn_scoped(scope, move || {
                for index in 0..frames {
                    let made = cancel.check().map_err(MediaError::from).and_then(|()| {
                        let mut frame = free.try_recv().unwrap_or_else(|_| renderer.new_frame());
                        renderer.frame_yuv(index, &mut frame)?;
                        Ok(frame)
                    });
                    let stop = made.is_err();
                    // A closed channel means that the encoder failed and says why.
                    if full_send.send(made).is_err() || stop {
                        return;
                    }
                }
            });
        rendering.map_err(|source| MediaError::Io {
            what: "start the render thread",
            path: out.to_owned(),
            source,
        })?;
        // Taken by value: on an early return the channel closes and the thread ends.
        let full = full;
        for index in 0..frames {
            cancel.check()?;
            let Ok(frame) = full.recv() else {
                return Err(MediaError::BadRequest(format!(
                    "render frame {index}: the render thread ended early"
                )));
            };
            let frame = frame?;
            encoder.push(&frame)?;
            if progress.wants_preview()
                && let Some(picture) = frame.preview()
            {
                progress.preview(picture);
            }
            // Only a spare: when the pool is full the frame is dropped.
            drop(free_send.try_send(frame));
            progress.report(ProgressEvent {
                what: "render".into(),
                step: index as u64 + 1,
                of: frames as u64,
                secs_left: None,
            });
        }
        Ok(())
    })?;
    let report = encoder.finish()?;
    Ok(SegmentReport {
        frames: report.frames,
        bytes: report.bytes,
        notes,
    })
}

#[cfg(test)]
mod tests;
