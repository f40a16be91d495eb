//! Models that make a larger picture from a picture.
//!
//! A family is one file under `pictures` and one line in [`PICTURE_FAMILIES`]. Checkpoints are recognised by
//! the names and shapes of their tensors: these networks come without a configuration.

mod named;
mod ncnn;
mod plain;
mod rrdb;
mod srvgg;

use engine_base::CancelToken;
use engine_tensor::{Cpu, Planes, TensorError};
use engine_weights::Checkpoint;

use self::named::Named;
use crate::LoadError;

pub use self::ncnn::picture_tensors_of_ncnn;
pub use self::plain::{ConvWeights, DenseNetwork, PictureWeights, picture_weights};

/// Why a picture model stopped.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// A call that does not fit, or too little memory.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Asked to stop.
    #[error(transparent)]
    Cancelled(#[from] engine_base::Cancelled),
}

/// A model that makes a larger picture from a picture. RGB in and out, 0 to 1, not clamped.
pub trait PictureModel: std::fmt::Debug + Send + Sync {
    /// Id of its family.
    fn family(&self) -> &'static str;

    /// How many times larger its pictures are.
    fn scale(&self) -> usize;

    /// Sides of its input are multiples of this.
    fn step_px(&self) -> usize;

    /// How much a tile of a picture has to show beyond its edge, so that tiles fit together: a multiple
    /// of 8.
    fn overlap_px(&self) -> usize;

    /// Memory for each pixel of the input while it runs, in bytes.
    fn bytes_per_px(&self) -> usize;

    /// `rgb`: `[3, height, width]` to `[3, scale * height, scale * width]`.
    ///
    /// Bits depend on nothing but weights and `rgb`.
    ///
    /// # Errors
    /// `Tensor` for sides that are no multiples of `step_px`; `Cancelled`.
    fn run(
        &self,
        cpu: &Cpu,
        rgb: &[f32],
        size: (usize, usize),
        memory: &mut PictureMemory,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, PictureError>;
}

/// Planes that are used again for pictures of one size.
#[derive(Debug, Default)]
pub struct PictureMemory {
    size: (usize, usize),
    free: Vec<Planes>,
}

impl PictureMemory {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begin a picture: what was kept for another size is given back.
    fn begin(&mut self, size: (usize, usize)) {
        if self.size != size {
            self.free.clear();
            self.size = size;
        }
    }

    /// Planes that hold zeros or what an op left there.
    fn take(&mut self, blocks: usize, height: usize, width: usize) -> Result<Planes, TensorError> {
        let fits = |planes: &Planes| {
            (planes.blocks(), planes.height(), planes.width()) == (blocks, height, width)
        };
        match self.free.iter().position(fits) {
            Some(at) => Ok(self.free.swap_remove(at)),
            None => Planes::zeros(blocks, height, width),
        }
    }

    fn give(&mut self, planes: Planes) {
        self.free.push(planes);
    }
}

/// A family of picture models.
#[derive(Clone, Copy)]
pub struct PictureFamily {
    /// Its name.
    pub id: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Whether tensors are named like its own.
    recognises: fn(&Named<'_>) -> bool,
    load: fn(&Named<'_>) -> Result<Box<dyn PictureModel>, LoadError>,
}

impl std::fmt::Debug for PictureFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PictureFamily({})", self.id)
    }
}

/// All families of picture models.
pub const PICTURE_FAMILIES: &[PictureFamily] = &[rrdb::FAMILY, srvgg::FAMILY];

/// The picture model of a checkpoint.
///
/// # Errors
/// [`LoadError::UnknownPicture`], which says what was found and which families are known; tensors that
/// are missing, too many, have another shape or hold values that are no numbers.
pub fn load_picture_model(checkpoint: &dyn Checkpoint) -> Result<Box<dyn PictureModel>, LoadError> {
    let named = Named::of(checkpoint);
    let family = PICTURE_FAMILIES
        .iter()
        .find(|family| (family.recognises)(&named));
    match family {
        Some(family) => (family.load)(&named),
        None => Err(LoadError::UnknownPicture {
            found: named.found(),
            known: PICTURE_FAMILIES
                .iter()
                .map(|family| format!("{} ({})", family.id, family.about))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}
