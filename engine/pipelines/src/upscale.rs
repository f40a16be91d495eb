//! Pictures at twice their size by a picture model, in tiles.
//!
//! A tile is run with a margin of what surrounds it, so that tiles fit together; beyond the picture's
//! edge its mirror image is shown. Colours hidden under full transparency are replaced by those beside
//! them before the model sees them, and transparency itself goes through the model too.

mod alpha;
mod checkpoint;
mod on_device;
mod region;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use engine_base::{CancelToken, Code, Preview, ProgressEvent, ProgressSink, SecondsLeft};
use engine_cuda::CudaError;
use engine_models::{
    LoadError, PictureError, PictureMemory, PictureModel, load_picture_model, picture_weights,
};
use engine_tensor::ops::halve_bicubic;
use engine_tensor::{Cpu, TensorError};
use engine_weights::WeightsError;

use self::on_device::OnDevice;
use self::region::{Region, Tile, tiles};
use crate::device::{Chosen, DeviceChoice, DeviceError, choose, code_of, name_of};

/// Memory that a tile's run may take, in bytes.
const WORK_BYTES: usize = 768 << 20;

/// Channel values of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Samples {
    /// 8 bits each.
    U8(Vec<u8>),
    /// 16 bits each.
    U16(Vec<u16>),
}

impl Samples {
    fn len(&self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::U16(values) => values.len(),
        }
    }
}

/// A picture: rows from the top, channels interleaved, straight alpha.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    pub channels: u8,
    /// `width_px * height_px * channels` values.
    pub samples: Samples,
}

/// Why a picture was not made larger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpscaleError {
    /// Weights that cannot be read.
    #[error("cannot open the upscaler: {0}")]
    Weights(#[from] WeightsError),
    /// Weights of no model we run.
    #[error("cannot open the upscaler: {0}")]
    Load(#[from] LoadError),
    /// A scale that the model does not give.
    #[error("cannot upscale {got}x: expected 2 (the model gives {model}x)")]
    Scale {
        /// What was asked for.
        got: usize,
        /// What the model gives.
        model: usize,
    },
    /// A picture that contradicts itself, or is too large.
    #[error("cannot upscale a picture of {width_px} x {height_px} px: {what}")]
    Picture {
        /// Width.
        width_px: u32,
        /// Height.
        height_px: u32,
        /// What is wrong.
        what: String,
    },
    /// The model could not run.
    #[error("cannot run the upscaler: {0}")]
    Tensor(#[from] TensorError),
    /// A device that was asked for and is not there.
    #[error("cannot open the upscaler: {0}")]
    Device(#[from] DeviceError),
    /// The device could not run the model.
    #[error("cannot run the upscaler on {device}: {error}")]
    OnDevice {
        /// Which device.
        device: String,
        /// What it says.
        error: CudaError,
    },
    /// Asked to stop.
    #[error(transparent)]
    Cancelled(#[from] engine_base::Cancelled),
}

impl From<PictureError> for UpscaleError {
    fn from(error: PictureError) -> Self {
        match error {
            PictureError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            PictureError::Tensor(error) => Self::Tensor(error),
        }
    }
}

impl UpscaleError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Weights(error) => error.code(),
            Self::Load(error) => error.code(),
            Self::Scale { .. } | Self::Picture { .. } => Code::BadInput,
            Self::Tensor(TensorError::Picture { .. }) => Code::OutOfMemory,
            Self::Tensor(_) => Code::Internal,
            Self::Device(error) => error.code(),
            Self::OnDevice { error, .. } => code_of(error),
            Self::Cancelled(_) => Code::Cancelled,
        }
    }
}

/// Makes pictures twice as large.
#[derive(Debug)]
pub struct Upscaler {
    model: Box<dyn PictureModel>,
    cpu: Cpu,
    work_bytes: usize,
    memory: Mutex<PictureMemory>,
    on_device: Mutex<Option<OnDevice>>,
    choice: DeviceChoice,
    notes: Mutex<Vec<String>>,
}

impl Upscaler {
    /// The model at `path`: a `.safetensors` file of a known family, an ncnn `.param` with its `.bin`
    /// beside it, or a folder of either. A folder's ncnn network is written beside it as safetensors
    /// once. `threads`: 0 for one per processor; results do not depend on it.
    ///
    /// # Errors
    /// [`UpscaleError::Weights`], [`UpscaleError::Load`], and [`UpscaleError::Scale`] for models that
    /// give neither 2x nor 4x.
    pub fn open(path: &Path, threads: usize) -> Result<Self, UpscaleError> {
        let checkpoint = checkpoint::open(path)?;
        let model = load_picture_model(checkpoint.as_ref())?;
        if !matches!(model.scale(), 2 | 4) {
            return Err(UpscaleError::Scale {
                got: 2,
                model: model.scale(),
            });
        }
        Ok(Self {
            model,
            cpu: Cpu::new(threads)?,
            work_bytes: WORK_BYTES,
            memory: Mutex::new(PictureMemory::new()),
            on_device: Mutex::new(None),
            choice: DeviceChoice::Cpu,
            notes: Mutex::default(),
        })
    }

    /// The same on the device of `choice`. Where that may be any, the CPU does what the GPU cannot: [`Upscaler::notes`]
    /// says so. Results of a GPU differ from the CPU's by roundings of f16, under 1/255.
    ///
    /// # Errors
    /// As [`Upscaler::open`]; [`UpscaleError::Device`] and [`UpscaleError::OnDevice`] for a GPU that was asked for and
    /// cannot be used.
    pub fn open_on(
        path: &Path,
        threads: usize,
        choice: DeviceChoice,
    ) -> Result<Self, UpscaleError> {
        let mut upscaler = Self::open(path, threads)?;
        upscaler.choice = choice;
        let device = match choose(choice)? {
            Chosen::Cuda(device) => device,
            Chosen::Cpu { why } => {
                upscaler.note(why.map(|why| format!("{why}; the CPU is used")));
                return Ok(upscaler);
            }
        };
        let name = name_of(device.info());
        let weights = picture_weights(checkpoint::open(path)?.as_ref())?;
        match OnDevice::new(device, weights) {
            Ok(made) => upscaler.on_device = Mutex::new(Some(made)),
            Err(error) => upscaler.leave_device(name, error)?,
        }
        Ok(upscaler)
    }

    /// What it runs on, for people.
    pub fn device(&self) -> String {
        let on_device = self.on_device.lock();
        let on_device = on_device.unwrap_or_else(PoisonError::into_inner);
        match &*on_device {
            Some(made) => name_of(made.device().info()),
            None => "CPU".to_owned(),
        }
    }

    /// What is to be said about where it runs, and what happened there, since it was asked last.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, note: Option<String>) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(note);
    }

    /// The CPU goes on where that is allowed.
    fn leave_device(&self, device: String, error: CudaError) -> Result<(), UpscaleError> {
        if !self.choice.may_fall_back() {
            return Err(UpscaleError::OnDevice { device, error });
        }
        self.note(Some(format!("{device}: {error}; the CPU is used")));
        Ok(())
    }

    /// What `work` gives on the device; `None` where the CPU has to do it. After a fault the device is opened anew and
    /// asked once more.
    fn on_device<T>(
        &self,
        mut work: impl FnMut(&mut OnDevice) -> Result<T, CudaError>,
    ) -> Result<Option<T>, UpscaleError> {
        let held = self.on_device.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        let Some(mut made) = held.take() else {
            return Ok(None);
        };
        let name = name_of(made.device().info());
        let error = match work(&mut made) {
            Ok(done) => {
                *held = Some(made);
                return Ok(Some(done));
            }
            Err(error @ CudaError::Fault { .. }) => {
                self.note(Some(format!("{name}: {error}; it is opened anew")));
                let again = made
                    .anew()
                    .and_then(|mut made| Ok((work(&mut made)?, made)));
                match again {
                    Ok((done, made)) => {
                        *held = Some(made);
                        return Ok(Some(done));
                    }
                    Err(error) => error,
                }
            }
            Err(error) => {
                if !self.choice.may_fall_back() && !matches!(error, CudaError::Missing(_)) {
                    // The next picture may be a smaller one.
                    *held = Some(made);
                }
                error
            }
        };
        drop(held);
        self.leave_device(name, error).map(|()| None)
    }

    /// The same with tiles that take up to `bytes` of memory; at least a tile of 32 px is run.
    #[must_use]
    pub fn with_work_bytes(mut self, bytes: usize) -> Self {
        self.work_bytes = bytes;
        let on_device = self.on_device.get_mut();
        if let Some(made) = on_device.unwrap_or_else(PoisonError::into_inner) {
            made.limit(bytes);
        }
        self
    }

    /// Id of the model's family.
    pub fn family(&self) -> &'static str {
        self.model.family()
    }

    /// Tiles that a picture of this size is run in.
    pub fn tile_count(&self, width_px: u32, height_px: u32) -> usize {
        self.tiles(width_px as usize, height_px as usize).len()
    }

    fn tiles(&self, width: usize, height: usize) -> Vec<Tile> {
        let pixels = self.work_bytes / self.model.bytes_per_px().max(1);
        tiles(width, height, pixels, self.model.overlap_px())
    }

    /// `picture` at `scale` times its size, which must be 2. Channels and bits stay what they are.
    ///
    /// Memory beyond both pictures is bounded whatever their size. Bits depend on the model, the
    /// picture and the tiles it is cut into: for `srvgg` tiles differ from the whole by roundings of
    /// f32, for `rrdb` by what little reaches further than the margin.
    ///
    /// # Errors
    /// [`UpscaleError::Scale`], [`UpscaleError::Picture`], [`UpscaleError::Tensor`] for too little memory,
    /// [`UpscaleError::Cancelled`].
    pub fn upscale(
        &self,
        picture: &Raster,
        scale: usize,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<Raster, UpscaleError> {
        if scale != 2 {
            return Err(UpscaleError::Scale {
                got: scale,
                model: self.model.scale(),
            });
        }
        let mut out = enlarged(picture)?;
        if picture.channels == 3 && self.upscale_there(picture, &mut out, cancel, progress)? {
            return Ok(out);
        }
        let (width, height) = (picture.width_px as usize, picture.height_px as usize);
        let tiles = self.tiles(width, height);
        let started = Instant::now();
        let mut left = SecondsLeft::new(tiles.len() as f64);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        for (done, tile) in tiles.iter().enumerate() {
            cancel.check()?;
            progress.report(ProgressEvent {
                what: "upscaling".to_owned(),
                step: done as u64,
                of: tiles.len() as u64,
                secs_left: left.update(started.elapsed(), done as f64),
            });
            self.run_tile(picture, tile, &mut out, &mut memory, cancel)?;
            if progress.wants_preview()
                && let Some(picture) = so_far(&out)
            {
                progress.preview(picture);
            }
        }
        progress.report(ProgressEvent {
            what: "upscaling".to_owned(),
            step: tiles.len() as u64,
            of: tiles.len() as u64,
            secs_left: Some(0.0),
        });
        Ok(out)
    }

    /// A picture of three channels whose pixels only the device touches; `false` where the CPU has to.
    fn upscale_there(
        &self,
        picture: &Raster,
        out: &mut Raster,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<bool, UpscaleError> {
        let size = (picture.height_px as usize, picture.width_px as usize);
        let overlap = self.model.overlap_px();
        let begun = self.on_device(|made| {
            let tiles = tiles(size.1, size.0, made.tile_pixels(), overlap);
            made.put(picture).map(|()| tiles)
        })?;
        let Some(tiles) = begun else {
            return Ok(false);
        };
        let started = Instant::now();
        let mut left = SecondsLeft::new(tiles.len() as f64);
        for done in 0..=tiles.len() {
            progress.report(ProgressEvent {
                what: "upscaling".to_owned(),
                step: done as u64,
                of: tiles.len() as u64,
                secs_left: left.update(started.elapsed(), done as f64),
            });
            cancel.check()?;
            let Some(tile) = tiles.get(done) else {
                break;
            };
            let region = Region::around(tile, (size.1, size.0), overlap, self.model.step_px());
            let made = self.on_device(|made| made.run_tile(picture, (tile, &region), out))?;
            if made.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn run_tile(
        &self,
        picture: &Raster,
        tile: &Tile,
        out: &mut Raster,
        memory: &mut PictureMemory,
        cancel: &CancelToken,
    ) -> Result<(), UpscaleError> {
        let region = Region::around(
            tile,
            (picture.width_px as usize, picture.height_px as usize),
            self.model.overlap_px(),
            self.model.step_px(),
        );
        let alpha = region.alpha(picture);
        let visible = alpha
            .as_ref()
            .is_none_or(|alpha| alpha.iter().any(|alpha| *alpha > 0.0));
        let large = if visible {
            let rgb = match &alpha {
                Some(alpha) if alpha.iter().any(|alpha| *alpha < alpha::HIDDEN) => {
                    alpha::visible_colours(picture, &region)
                }
                _ => region.colours(picture),
            };
            self.twice(&rgb, region.size(), memory, cancel)?
        } else {
            vec![0.0; 12 * region.width * region.height]
        };
        region.put_colours(tile, &large, out);
        if let Some(alpha) = alpha {
            let flat = alpha.iter().all(|value| *value == alpha[0]);
            let large = if flat && matches!(alpha[0], 0.0 | 1.0) {
                None
            } else {
                let grey = alpha.repeat(3);
                Some(self.twice(&grey, region.size(), memory, cancel)?)
            };
            region.put_alpha(tile, &alpha, large.as_deref(), out);
        }
        Ok(())
    }

    /// `[3, height, width]` to `[3, 2 * height, 2 * width]`.
    fn twice(
        &self,
        rgb: &[f32],
        (height, width): (usize, usize),
        memory: &mut PictureMemory,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, UpscaleError> {
        if let Some(large) = self.on_device(|made| made.twice(rgb, (height, width)))? {
            return Ok(large);
        }
        let large = self
            .model
            .run(&self.cpu, rgb, (height, width), memory, cancel)?;
        if self.model.scale() == 2 {
            return Ok(large);
        }
        let mut half = vec![0.0; large.len() / 4];
        halve_bicubic(&self.cpu, &large, (4 * height, 4 * width), &mut half)?;
        Ok(half)
    }
}

/// A small picture of what is drawn already; the rest is black.
fn so_far(picture: &Raster) -> Option<Preview> {
    let (width, height) = (picture.width_px as usize, picture.height_px as usize);
    let channels = usize::from(picture.channels);
    let value = |at: usize| match &picture.samples {
        Samples::U8(values) => values.get(at).copied().unwrap_or(0),
        Samples::U16(values) => values.get(at).map_or(0, |value| (value >> 8) as u8),
    };
    Preview::sampled((width, height), |x, y| {
        let at = (y * width + x) * channels;
        match channels {
            3 | 4 => [value(at), value(at + 1), value(at + 2)],
            _ => [value(at); 3],
        }
    })
}

/// An empty picture of twice the size.
fn enlarged(picture: &Raster) -> Result<Raster, UpscaleError> {
    let refuse = |what: String| UpscaleError::Picture {
        width_px: picture.width_px,
        height_px: picture.height_px,
        what,
    };
    let (width, height) = (picture.width_px as usize, picture.height_px as usize);
    let expected = width
        .checked_mul(height)
        .and_then(|pixels| pixels.checked_mul(usize::from(picture.channels)))
        .filter(|values| *values > 0);
    if !(1..=4).contains(&picture.channels) || expected != Some(picture.samples.len()) {
        return Err(refuse(format!(
            "expected 1 to 4 channels and as many values as they have, got {} channels and {} values",
            picture.channels,
            picture.samples.len()
        )));
    }
    let sides = picture
        .width_px
        .checked_mul(2)
        .zip(picture.height_px.checked_mul(2));
    let values = picture.samples.len().checked_mul(4);
    let ((width_px, height_px), values) = sides
        .zip(values)
        .ok_or_else(|| refuse("its double cannot be counted".to_owned()))?;
    let full = |_full| refuse("there is not enough memory for its double".to_owned());
    let samples = match &picture.samples {
        Samples::U8(_) => {
            let mut out = Vec::new();
            out.try_reserve_exact(values).map_err(full)?;
            out.resize(values, 0);
            Samples::U8(out)
        }
        Samples::U16(_) => {
            let mut out = Vec::new();
            out.try_reserve_exact(values).map_err(full)?;
            out.resize(values, 0);
            Samples::U16(out)
        }
    };
    Ok(Raster {
        width_px,
        height_px,
        channels: picture.channels,
        samples,
    })
}

#[cfg(test)]
mod tests;
