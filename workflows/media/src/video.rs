//! Moving pictures by film frame index.
//!
//! Conform rule: film frame `n` shows the source frame whose time span holds `n / fps`, measured
//! from the clip's start, which is the time of its first decodable frame whatever the container
//! counts from. Source frames are held or dropped, never blended; a frame lasts until the next
//! one, however long that is (variable rates follow their time stamps). Past the end the last
//! frame is held. Containers round time stamps to their ticks, so a frame counts as begun up to one
//! tick, at most a quarter of a frame, before its time stamp.

mod convert;
mod reader;
mod span;
mod tone;

use std::path::Path;
use std::sync::Arc;

use engine_base::Rational;

use self::convert::Converter;
pub(crate) use self::convert::{display_size, orientation_of};
pub(crate) use self::reader::{Decoded, Reader, best_video};
pub(crate) use self::span::{end_ticks, last_end};
use self::tone::{Gamut, Transfer};
use crate::{MediaError, Picture};

/// A jump ahead by more than this is worth a seek, in seconds.
const SEEK_AHEAD_SECS: i64 = 2;

/// How to read a video.
#[derive(Debug, Clone, Copy, Default)]
pub struct VideoOptions {
    /// Make pictures smaller so that the longer side is at most this. Never makes them larger.
    pub max_side_px: Option<u32>,
}

/// The pictures of a clip at the film's rate: upright, sRGB, square pixels, 8 bits a channel.
///
/// Holds two decoded frames, the decoder's own and one picture, whatever the clip's length.
/// Reading in order never seeks.
pub struct VideoFrames {
    reader: Reader,
    converter: Converter,
    fps: Rational,
    /// Ticks of the first frame.
    start: i64,
    frames: i64,
    size: (u32, u32),
    current: Decoded,
    following: Option<Decoded>,
    shown: Option<(i64, Arc<Picture>)>,
    last_asked: i64,
    seeks: u64,
    notes: Vec<String>,
}

impl VideoFrames {
    /// Open a clip for a film of `fps` frames a second.
    ///
    /// # Errors
    /// [`MediaError::BadFile`] for files that are no video, were not finished when written or
    /// hold no frame that can be decoded; [`MediaError::TooLarge`]; [`MediaError::BadRequest`] for
    /// a rate that is not above 0; [`MediaError::Codec`]; [`MediaError::Io`].
    pub fn open(path: &Path, fps: Rational, options: &VideoOptions) -> Result<Self, MediaError> {
        if fps <= Rational::ZERO {
            return Err(MediaError::BadRequest(format!(
                "cannot read a video at {fps} frames a second: expected more than 0"
            )));
        }
        let mut reader = Reader::open(path)?;
        let first = reader.next()?;
        let Some(mut current) = first else {
            let why = reader
                .outline
                .cut
                .as_deref()
                .map(|cut| format!("; the end is missing: {cut}"))
                .unwrap_or_default();
            return Err(MediaError::BadFile {
                what: format!("the video has no picture that can be decoded{why}"),
                path: path.to_owned(),
            });
        };
        let start = current.pts;
        let end = end_ticks(&reader, path, start)?;
        let mut notes = Vec::new();
        if let Some(cut) = &reader.outline.cut {
            notes.push(format!("the end is missing: {cut}"));
        }
        let orientation = orientation(&reader, &mut notes);
        let aspect = reader.sample_aspect(&mut current.frame);
        let size = display_size(
            current.frame.width(),
            current.frame.height(),
            aspect,
            options.max_side_px,
        );
        note_look(&current, &mut notes);
        let following = reader.next()?;
        let frames = frames_in(end - start, reader.time_base, tolerance(&reader), fps);
        Ok(Self {
            converter: Converter::new(size, orientation),
            fps,
            start,
            frames,
            size: if orientation >= 5 {
                (size.1, size.0)
            } else {
                size
            },
            current,
            following,
            shown: None,
            last_asked: 0,
            seeks: 0,
            notes,
            reader,
        })
    }

    /// Length in film frames, at least 1.
    pub const fn frames(&self) -> i64 {
        self.frames
    }

    /// Width and height of every picture.
    pub const fn size_px(&self) -> (u32, u32) {
        self.size
    }

    /// How often a seek was needed so far.
    pub const fn seeks(&self) -> u64 {
        self.seeks
    }

    /// What was converted or is odd, for people.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.reader.damaged > 0 {
            notes.push(format!(
                "{} pieces of the video could not be decoded",
                self.reader.damaged
            ));
        }
        notes
    }

    /// The picture at film frame `n`, from 0.
    ///
    /// # Errors
    /// [`MediaError::BadRequest`] for a negative index; [`MediaError::Codec`] or
    /// [`MediaError::BadFile`] where decoding fails for good.
    pub fn frame(&mut self, n: i64) -> Result<Arc<Picture>, MediaError> {
        if n < 0 {
            return Err(MediaError::BadRequest(format!(
                "cannot read video frame {n}: expected 0 or more"
            )));
        }
        let limit = self.limit_ticks(n);
        self.go_to(n, limit)?;
        self.last_asked = n;
        if let Some((pts, picture)) = &self.shown
            && *pts == self.current.pts
        {
            return Ok(Arc::clone(picture));
        }
        // Fresh memory for each picture costs more than converting it.
        let spare = self
            .shown
            .take()
            .and_then(|(_, picture)| Arc::try_unwrap(picture).ok());
        let picture = Arc::new(self.converter.picture(&self.current.frame, spare)?);
        self.shown = Some((self.current.pts, Arc::clone(&picture)));
        Ok(picture)
    }

    /// The latest time stamp that counts as begun at film frame `n`.
    fn limit_ticks(&self, n: i64) -> i64 {
        let (above, below) = film_ticks(n, self.reader.time_base, self.fps);
        // In quarter ticks, where the tolerance is whole.
        let ticks = (above * 4 + below * i128::from(tolerance(&self.reader))).div_euclid(below * 4);
        self.start
            .saturating_add(i64::try_from(ticks).unwrap_or(i64::MAX))
    }

    fn go_to(&mut self, n: i64, limit: i64) -> Result<(), MediaError> {
        let (num, den) = self.reader.time_base;
        let far = i64::try_from(i128::from(SEEK_AHEAD_SECS) * i128::from(den) / i128::from(num))
            .unwrap_or(i64::MAX);
        // Past the end there is nothing to aim at but the last frame.
        let aim = limit.min(self.limit_ticks(self.frames - 1));
        let is_far = self
            .following
            .as_ref()
            .is_some_and(|following| aim.saturating_sub(following.pts) > far);
        let is_next = n == self.last_asked || n == self.last_asked.saturating_add(1);
        if self.current.pts > limit || (is_far && !is_next) {
            self.seeks += 1;
            if let Some(found) = self.reader.seek(aim, self.start)? {
                self.current = found;
                self.following = self.reader.next()?;
            }
        }
        while self
            .following
            .as_ref()
            .is_some_and(|following| following.pts <= limit)
        {
            if let Some(following) = self.following.take() {
                self.current = following;
            }
            self.following = self.reader.next()?;
        }
        Ok(())
    }
}

/// Film frame `n` in ticks as a fraction.
fn film_ticks(n: i64, (num, den): (i64, i64), fps: Rational) -> (i128, i128) {
    let above = i128::from(n) * i128::from(fps.den()) * i128::from(den);
    (above, i128::from(fps.num()) * i128::from(num))
}

/// How much before its time stamp a frame counts as begun, in quarter ticks.
fn tolerance(reader: &Reader) -> i64 {
    reader.frame_ticks.clamp(1, 4)
}

/// Film frames that begin within `ticks`.
fn frames_in(ticks: i64, time_base: (i64, i64), quarter_ticks: i64, fps: Rational) -> i64 {
    let (above, below) = film_ticks(1, time_base, fps);
    let length = (i128::from(ticks) * 4 - i128::from(quarter_ticks)).max(0) * below;
    let frames = (length + above * 4 - 1) / (above * 4);
    i64::try_from(frames).unwrap_or(i64::MAX).max(1)
}

fn orientation(reader: &Reader, notes: &mut Vec<String>) -> u8 {
    let Some(matrix) = reader.stream().and_then(|stream| display_matrix(&stream)) else {
        return 1;
    };
    match orientation_of(&matrix) {
        Some(1) => 1,
        Some(orientation) => {
            notes.push(format!("turned upright (orientation {orientation})"));
            orientation
        }
        None => {
            notes.push("the file asks for a turn that is no quarter turn: ignored".to_owned());
            1
        }
    }
}

/// The display matrix of a stream, if it has one.
pub(crate) fn display_matrix(stream: &ffmpeg_next::Stream<'_>) -> Option<[i32; 9]> {
    use ffmpeg_next::packet::side_data::Type;
    let data = stream
        .side_data()
        .find(|data| data.kind() == Type::DisplayMatrix)?;
    let mut matrix = [0i32; 9];
    let bytes = data.data().get(..36)?;
    for (value, word) in matrix.iter_mut().zip(bytes.chunks_exact(4)) {
        *value = i32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
    }
    Some(matrix)
}

fn note_look(first: &Decoded, notes: &mut Vec<String>) {
    let look = convert::coding(&first.frame).look;
    let (name, gamut) = match (look.transfer, look.gamut) {
        (Transfer::Sdr, Gamut::Bt709) => return,
        (Transfer::Sdr, gamut) => {
            notes.push(format!("wide-gamut colours ({gamut:?}) converted to sRGB"));
            return;
        }
        (Transfer::Pq, gamut) => ("PQ", gamut),
        (Transfer::Hlg, gamut) => ("HLG", gamut),
    };
    notes.push(format!(
        "HDR ({name}, {gamut:?}) shown with a simple tone curve: highlights are bent into sRGB"
    ));
}

#[cfg(test)]
pub(crate) mod clips;
#[cfg(test)]
mod tests;
