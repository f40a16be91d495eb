//! Files by content, for players, and small pictures of them.

use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Code, ContentHash, Datum, Key};
use flow_media::still::{SavePicture, SaveSamples, StillOptions};
use flow_media::video::{VideoFrames, VideoOptions};
use flow_media::{Picture, Pixels};
use flow_store::{Exactness, NewResult, Provenance, StoredPort, StoredValue};

use super::{Desk, lock};
use crate::error::StudioError;
use crate::say::Say;

/// Widths in which small pictures are made: few, so that they are kept and not made again.
const WIDTHS_PX: [u32; 4] = [160, 320, 640, 1280];
/// Raised when small pictures are made otherwise.
const VERSION: i64 = 1;
/// The node type under which the cache keeps them.
const NODE_TYPE: &str = "desk.thumb";

/// A small picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thumb {
    /// The JPEG file.
    pub path: PathBuf,
    /// Its content.
    pub hash: ContentHash,
}

impl Desk {
    /// A name for a file that is being received; what is left of it is swept at the next start.
    ///
    /// # Errors
    /// The cache's folder cannot be written.
    pub fn temp_file(&self) -> Result<PathBuf, StudioError> {
        Ok(self.studio.store.temp("part")?)
    }

    /// Where the bytes of `hash` lie: in an open project, the cache, or a film that was written.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub fn media_path(&self, hash: &ContentHash) -> Result<PathBuf, StudioError> {
        let projects: Vec<_> = lock(&self.projects).values().cloned().collect();
        let mut kept = projects
            .iter()
            .filter_map(|open| open.project.db().media_path(hash).ok());
        if let Some(path) = kept.next() {
            return Ok(path);
        }
        if let Ok(path) = self.studio.store.blob_path(hash) {
            return Ok(path);
        }
        let file = lock(&self.files).get(hash).cloned();
        file.filter(|path| path.is_file()).ok_or_else(|| {
            let hash = hash.to_hex();
            StudioError::said(Code::NotFound, &Say::NoMedia { hash })
        })
    }

    /// A JPEG picture of what a job makes now.
    pub fn preview(&self, job: i64) -> Option<std::sync::Arc<[u8]>> {
        self.queue.picture(job)
    }

    /// The loudest value of each of `bars` equal parts of the sound `hash`, 0 to 1 and above.
    ///
    /// # Errors
    /// [`Code::NotFound`]; a file without sound.
    pub fn wave(&self, hash: &ContentHash, bars: usize) -> Result<Vec<f32>, StudioError> {
        let path = self.media_path(hash)?;
        let bars = flow_media::sound::waveform(&path, bars, &CancelToken::new())
            .map_err(|error| StudioError::new(error.code(), error.to_string()))?;
        let loudest = bars.iter().map(|bar| bar.max.abs().max(bar.min.abs()));
        Ok(loudest
            .map(|peak| if peak.is_finite() { peak } else { 0.0 })
            .collect())
    }

    /// A JPEG picture of the still or video `hash`, about `width_px` wide (the next of 160, 320,
    /// 640 and 1280). Made once; kept in the cache.
    ///
    /// # Errors
    /// [`Code::NotFound`]; a file that is no picture or video.
    pub fn thumb(&self, hash: &ContentHash, width_px: u32) -> Result<Thumb, StudioError> {
        let width_px = WIDTHS_PX.into_iter().find(|width| *width >= width_px);
        let width_px = width_px.unwrap_or(1280);
        let key = Datum::map([
            ("node", Datum::from(NODE_TYPE)),
            ("version", Datum::Int(VERSION)),
            ("of", Datum::from(hash.to_hex())),
            ("width", Datum::from(width_px)),
            ("codecs", Datum::from(flow_media::codec_versions())),
        ]);
        let internal = |error: &dyn std::fmt::Display| {
            StudioError::new(
                Code::Internal,
                format!("cannot name a small picture: {error}"),
            )
        };
        let key = Key::of_canonical(&key.canonical().map_err(|error| internal(&error))?);
        let store = &self.studio.store;
        let known = store.lookup(&[key])?.into_iter().next().flatten();
        if let Some(blob) = known.as_ref().and_then(|known| known.blobs().next()) {
            return Ok(Thumb {
                path: store.blob_path(&blob.hash)?,
                hash: blob.hash,
            });
        }
        let source = self.media_path(hash)?;
        let temp = store.temp("jpg")?;
        make(&source, &temp, width_px).inspect_err(|_told| {
            drop(std::fs::remove_file(&temp));
        })?;
        let blob = store.adopt(&temp, "image/jpeg")?;
        let committed = store.commit(NewResult {
            key,
            node_type: NODE_TYPE.to_owned(),
            ports: vec![StoredPort::one(StoredValue::Blob(blob))],
            exactness: Exactness::Tolerant,
            provenance: Provenance {
                inputs: vec![*hash],
                ..Provenance::default()
            },
        })?;
        let blob = committed.result().blobs().next().cloned();
        let blob = blob.ok_or_else(|| internal(&"the cache lost it"))?;
        Ok(Thumb {
            path: store.blob_path(&blob.hash)?,
            hash: blob.hash,
        })
    }
}

/// Write a picture of `source`, at most `width_px` wide, to the JPEG file `out`.
fn make(source: &Path, out: &Path, width_px: u32) -> Result<(), StudioError> {
    let failed = |error: flow_media::MediaError| StudioError::new(error.code(), error.to_string());
    // The longer side that gives this width; a tall picture is at most twice as high as wide.
    let side = |(width, height): (u32, u32)| {
        let longer = u64::from(width_px) * u64::from(width.max(height)) / u64::from(width.max(1));
        let longer = u32::try_from(longer).unwrap_or(width_px);
        Some(longer.clamp(16, width_px * 2))
    };
    let picture = match flow_media::still::still_size_px(source) {
        Ok(size) => {
            let options = StillOptions {
                max_side_px: side(size),
            };
            flow_media::still::load_still(source, &options).map_err(failed)?
        }
        Err(_not_a_still) => frame_of(source, &side)?,
    };
    let picture = picture.into_8_bit();
    let Pixels::Rgba8(rgba) = &picture.pixels else {
        let message = "a picture kept 16 bits a channel: a fault of ours";
        return Err(StudioError::new(Code::Internal, message));
    };
    // Over dark grey: JPEG has no transparency.
    let rgb: Vec<u8> = rgba
        .chunks_exact(4)
        .flat_map(|pixel| {
            let alpha = u32::from(pixel[3]);
            let over = |value: u8| ((u32::from(value) * alpha + 40 * (255 - alpha)) / 255) as u8;
            [over(pixel[0]), over(pixel[1]), over(pixel[2])]
        })
        .collect();
    let small = SavePicture {
        width_px: picture.width_px,
        height_px: picture.height_px,
        channels: 3,
        samples: SaveSamples::U8(&rgb),
    };
    flow_media::still::save_still(&small, out)
        .map(drop)
        .map_err(failed)
}

/// Frames after which a clip's picture is taken from: the middle of a long one is not read to.
const FRAME_MAX: i64 = 48;

/// A frame from the middle of a video, or from its first seconds.
fn frame_of(
    video: &Path,
    side: &dyn Fn((u32, u32)) -> Option<u32>,
) -> Result<Picture, StudioError> {
    let failed = |error: flow_media::MediaError| StudioError::new(error.code(), error.to_string());
    let probe = flow_media::probe::probe(video).map_err(failed)?;
    let stream = probe.video.first().ok_or_else(|| {
        let message =
            format!("expected a picture or video, got a file without pictures: {video:?}");
        StudioError::new(Code::BadInput, message)
    })?;
    let frames = stream.duration_secs.as_f64() * stream.suggested_fps.as_f64();
    let nth = ((frames / 2.0) as i64).clamp(0, FRAME_MAX);
    let options = VideoOptions {
        max_side_px: side((stream.display_width_px, stream.display_height_px)),
    };
    let mut reader = VideoFrames::open(video, stream.suggested_fps, &options).map_err(failed)?;
    let picture = reader.frame(nth).map_err(failed)?;
    Ok(std::sync::Arc::unwrap_or_clone(picture))
}
