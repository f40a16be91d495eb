//! A video at twice its size: read, drawn and coded at the same time, in segments that are kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use engine_base::{CancelToken, Code, Datum, NoProgress, ProgressEvent, ProgressSink, SecondsLeft};
use engine_pipelines::{Raster, Samples, Upscaler};
use flow_graph::NodeError;
use flow_media::encode::EncodeOptions;
use flow_media::restream::{
    Container, JoinRequest, RgbPicture, SegmentEncoder, SegmentFormat, Source, join,
};

use super::{failed, refused};

/// Pictures that wait between two of the three stages, each way.
const WAITING: usize = 1;

/// Names a segment of a video: two of equal name hold the same pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentName {
    /// Its place, from 0.
    pub index: u64,
    /// Frames in it.
    pub frames: u64,
}

/// Keeps finished segments, also beyond the end of the process.
pub trait SegmentKeeper: Send + Sync {
    /// The file of a segment that was made before.
    ///
    /// # Errors
    /// What is kept cannot be read.
    fn find(&self, name: SegmentName) -> Result<Option<PathBuf>, NodeError>;

    /// Where to write a segment.
    ///
    /// # Errors
    /// There is no such place.
    fn temp(&self) -> Result<PathBuf, NodeError>;

    /// Keep a segment that was written to [`Self::temp`] and took `wall` to make; gives its place.
    ///
    /// # Errors
    /// It cannot be kept.
    fn keep(&self, name: SegmentName, file: &Path, wall: Duration) -> Result<PathBuf, NodeError>;
}

/// A video that was made larger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoReport {
    /// Width of the result.
    pub width_px: u32,
    /// Height of the result.
    pub height_px: u32,
    /// Frames of the result.
    pub frames: u64,
    /// Frames that were drawn now; the others were kept from before.
    pub made_frames: u64,
    /// What came to light on the way, for people.
    pub notes: Vec<String>,
}

/// A video that is going to be made larger.
pub struct VideoUpscale {
    source: Source,
    out: PathBuf,
}

impl VideoUpscale {
    /// Open the video `from`, to be remade as `to`: MP4, QuickTime or Matroska by the ending. Tries
    /// that `to` can be written.
    ///
    /// # Errors
    /// A video that cannot be read, or a result that could not be written in the end.
    pub fn open(from: &Path, to: &Path, options: &EncodeOptions) -> Result<Self, NodeError> {
        let container = Container::of_name(to).map_err(failed)?;
        let source = Source::open(from, container, options).map_err(failed)?;
        source.try_out(to).map_err(failed)?;
        Ok(Self {
            source,
            out: to.to_owned(),
        })
    }

    /// What beside the video's content and the model decides a segment, for keys.
    pub fn settings(&self) -> Datum {
        self.source.settings()
    }

    /// What is converted or cannot be kept, for people.
    pub fn notes(&self) -> &[String] {
        &self.source.facts().notes
    }

    /// Do it. Segments that `keeper` has are not made again; the result is the same either way.
    ///
    /// Memory is bounded whatever the length: a few pictures between the stages, what the encoder
    /// looks ahead over, and the model's tiles.
    ///
    /// # Errors
    /// A video that cannot be read on, the upscaler's, the keeper's; a file that cannot be written;
    /// cancelled. What was kept stays.
    pub fn run(
        mut self,
        upscaler: &Upscaler,
        keeper: &dyn SegmentKeeper,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<VideoReport, NodeError> {
        let mut found = Found::ask(&self.source, keeper)?;
        let about = self.source.facts().frames_about;
        let (to_draw, drawn_from) = sync_channel(WAITING);
        let (to_code, coded_from) = sync_channel(WAITING);
        let format = self.source.segment_format().clone();
        let source = &mut self.source;
        let frames_found = found.frames;
        let there = &mut found;
        let (read, drawn, coded) = std::thread::scope(|scope| {
            let start = |name: &str| std::thread::Builder::new().name(name.to_owned());
            // Each stage owns its end of a channel, so that its own end is seen by its neighbours.
            let reading = start("read-video")
                .spawn_scoped(scope, move || read(source, there, &to_draw, cancel));
            let coding = start("code-video")
                .spawn_scoped(scope, move || code(&format, keeper, coded_from, cancel));
            let drawing = Drawing {
                upscaler,
                cancel,
                progress,
                about,
                frames_found,
            };
            let drawn = drawing.run(drawn_from, &to_code);
            drop(to_code);
            (ended(reading), drawn, ended(coding))
        });
        // A stage that cannot go on ends the others; the reason is with it.
        let mut segments = coded?;
        read?;
        let made_frames = drawn?;
        cancel.check()?;
        segments.extend(found.files);
        let segments: Vec<PathBuf> = segments.into_values().collect();
        let request = JoinRequest {
            source: &self.source,
            segments: &segments,
            out: &self.out,
        };
        let report = join(&request, cancel, progress).map_err(failed)?;
        let mut notes = self.source.late_notes();
        notes.extend(upscaler.notes());
        notes.extend(report.notes);
        let (width_px, height_px) = self.source.segment_format().size_px();
        Ok(VideoReport {
            width_px,
            height_px,
            frames: report.frames,
            made_frames,
            notes,
        })
    }
}

type Joined<'scope, T> = std::io::Result<std::thread::ScopedJoinHandle<'scope, T>>;

fn ended<T>(thread: Joined<'_, Result<T, NodeError>>) -> Result<T, NodeError> {
    let internal = |what: String| NodeError::new(Code::Internal, what);
    match thread {
        Ok(thread) => thread
            .join()
            .unwrap_or_else(|_panic| Err(internal("a stage of the video ended in a fault".into()))),
        Err(error) => Err(internal(format!("cannot start a thread: {error}"))),
    }
}

/// Segments that were there before.
struct Found {
    files: BTreeMap<u64, PathBuf>,
    frames: u64,
    /// Frames of the last segment, where it is among them and shorter than the others.
    last: Option<SegmentName>,
}

impl Found {
    fn ask(source: &Source, keeper: &dyn SegmentKeeper) -> Result<Self, NodeError> {
        let facts = source.facts();
        let mut found = Self {
            files: BTreeMap::new(),
            frames: 0,
            last: None,
        };
        for index in 0..facts.frames_about.div_ceil(facts.segment_frames) {
            let left = facts.frames_about - index * facts.segment_frames;
            let name = SegmentName {
                index,
                frames: left.min(facts.segment_frames),
            };
            if let Some(file) = keeper.find(name)? {
                found.files.insert(index, file);
                found.frames += name.frames;
                if name.frames < facts.segment_frames {
                    found.last = Some(name);
                }
            }
        }
        Ok(found)
    }

    /// The last segment was counted by the container's word; forget it where that was wrong.
    fn check_end(&mut self, name: SegmentName) -> Result<(), NodeError> {
        match self.last {
            Some(last) if last.index == name.index && last.frames != name.frames => {
                let what = format!(
                    "the video reads otherwise than before: {} frames in its last part, now {}",
                    last.frames, name.frames
                );
                Err(NodeError::new(Code::BadInput, what))
            }
            _ => Ok(()),
        }
    }
}

/// What goes from stage to stage.
enum Piece<T> {
    Frame(T),
    /// All frames of the segment were sent.
    End(SegmentName),
}

/// First stage: frames to RGB, those that are needed.
fn read(
    source: &mut Source,
    found: &mut Found,
    to: &SyncSender<Piece<RgbPicture>>,
    cancel: &CancelToken,
) -> Result<(), NodeError> {
    let segment_frames = source.facts().segment_frames;
    let mut frames = 0u64;
    while let Some(frame) = source.next_frame().map_err(failed)? {
        cancel.check()?;
        frames = frame.index + 1;
        let index = frame.index / segment_frames;
        if found.files.contains_key(&index) {
            continue;
        }
        let picture = source.rgb(&frame).map_err(failed)?;
        let mut is_sent = to.send(Piece::Frame(picture)).is_ok();
        if frames.is_multiple_of(segment_frames) {
            let name = SegmentName {
                index,
                frames: segment_frames,
            };
            is_sent &= to.send(Piece::End(name)).is_ok();
        }
        if !is_sent {
            return Ok(());
        }
    }
    let name = SegmentName {
        index: frames / segment_frames,
        frames: frames % segment_frames,
    };
    found.check_end(name)?;
    if name.frames > 0 && !found.files.contains_key(&name.index) {
        // Nobody listens where a later stage failed.
        drop(to.send(Piece::End(name)));
    }
    Ok(())
}

/// Second stage.
struct Drawing<'a> {
    upscaler: &'a Upscaler,
    cancel: &'a CancelToken,
    progress: &'a dyn ProgressSink,
    about: u64,
    frames_found: u64,
}

impl Drawing<'_> {
    /// Gives the number of frames that were drawn.
    fn run(
        &self,
        from: Receiver<Piece<RgbPicture>>,
        to: &SyncSender<Piece<Arc<RgbPicture>>>,
    ) -> Result<u64, NodeError> {
        let began = Instant::now();
        let mut left = SecondsLeft::new(self.about.saturating_sub(self.frames_found) as f64);
        let mut last: Option<(RgbPicture, Arc<RgbPicture>)> = None;
        let mut drawn = 0u64;
        let mut report = |drawn: u64| {
            let step = self.frames_found + drawn;
            self.progress.report(ProgressEvent {
                what: "upscaling".to_owned(),
                step,
                of: self.about.max(step),
                secs_left: left.update(began.elapsed(), drawn as f64),
            });
        };
        report(0);
        for piece in from {
            let is_sent = match piece {
                Piece::Frame(small) => {
                    self.cancel.check()?;
                    let large = match last.take() {
                        // A picture that stands still is drawn once.
                        Some((before, large)) if before == small => large,
                        _ => Arc::new(self.draw(&small)?),
                    };
                    last = Some((small, Arc::clone(&large)));
                    drawn += 1;
                    let is_sent = to.send(Piece::Frame(large)).is_ok();
                    report(drawn);
                    is_sent
                }
                Piece::End(name) => to.send(Piece::End(name)).is_ok(),
            };
            if !is_sent {
                break;
            }
        }
        Ok(drawn)
    }

    fn draw(&self, small: &RgbPicture) -> Result<RgbPicture, NodeError> {
        let raster = Raster {
            width_px: small.width_px,
            height_px: small.height_px,
            channels: 3,
            samples: Samples::U16(small.values.clone()),
        };
        let large = self
            .upscaler
            .upscale(&raster, 2, self.cancel, &NoProgress)
            .map_err(refused)?;
        let Samples::U16(values) = large.samples else {
            let what = "the upscaler gave 8 bits for 16";
            return Err(NodeError::new(Code::Internal, what));
        };
        Ok(RgbPicture {
            width_px: large.width_px,
            height_px: large.height_px,
            values,
        })
    }
}

/// Third stage: gives the segments that were made, by index.
fn code(
    format: &SegmentFormat,
    keeper: &dyn SegmentKeeper,
    from: Receiver<Piece<Arc<RgbPicture>>>,
    cancel: &CancelToken,
) -> Result<BTreeMap<u64, PathBuf>, NodeError> {
    let mut made = BTreeMap::new();
    let mut open: Option<(SegmentEncoder, PathBuf, Instant)> = None;
    // Ends without an end piece when an earlier stage failed: then the open segment is dropped.
    for piece in from {
        cancel.check()?;
        match piece {
            Piece::Frame(picture) => {
                let (encoder, ..) = match &mut open {
                    Some(open) => open,
                    none => {
                        let file = keeper.temp()?;
                        let encoder = SegmentEncoder::create(&file, format).map_err(failed)?;
                        none.insert((encoder, file, Instant::now()))
                    }
                };
                encoder.push(&picture).map_err(failed)?;
            }
            Piece::End(name) => {
                if let Some((encoder, file, began)) = open.take() {
                    encoder.finish().map_err(failed)?;
                    made.insert(name.index, keeper.keep(name, &file, began.elapsed())?);
                }
            }
        }
    }
    Ok(made)
}
