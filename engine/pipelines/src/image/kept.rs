//! Latents kept at the end of a step, so that a picture that was cut short goes on where it was.

use std::collections::BTreeMap;
use std::path::Path;

use engine_tensor::DType;
use engine_weights::{Checkpoint as _, SafeTensors, TensorRef, write_safetensors};

use super::{ImageError, Latent};

const LATENT: &str = "latent";
const STEP: &str = "step";
const MARK: &str = "of";

/// A latent after some steps of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptLatent {
    /// Steps that were done.
    pub step: u32,
    /// The latent after them.
    pub latent: Latent,
}

impl KeptLatent {
    /// Writes it as safetensors; the file appears whole or not at all. `mark` is what
    /// [`ImagePipeline::mark`](super::ImagePipeline::mark) says of the request.
    ///
    /// # Errors
    /// `Weights` when the file cannot be written.
    pub fn save(step: u32, latent: &Latent, mark: &str, path: &Path) -> Result<(), ImageError> {
        let bytes: Vec<u8> = latent.values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let shape = vec![latent.height, latent.width, latent.channels];
        let tensor = TensorRef::new(DType::F32, shape, bytes.into());
        let tensor =
            tensor.ok_or_else(|| ImageError::Kept("its size is not its own".to_owned()))?;
        let tensors = BTreeMap::from([(LATENT.to_owned(), tensor)]);
        let step = step.to_string();
        write_safetensors(path, &tensors, &[(STEP, &step), (MARK, mark)])?;
        Ok(())
    }

    /// Reads what [`KeptLatent::save`] wrote.
    ///
    /// # Errors
    /// `Weights` for a file that cannot be read, `Kept` for one of another picture.
    pub fn load(mark: &str, path: &Path) -> Result<Self, ImageError> {
        let file = SafeTensors::open(path)?;
        let kept = |reason: String| ImageError::Kept(format!("{reason}, in {}", path.display()));
        let text = |key: &str| {
            let found = file.metadata().text(key).ok().flatten();
            found.ok_or_else(|| kept(format!("the text {key:?} is missing")))
        };
        if text(MARK)? != mark {
            return Err(kept("it is of another picture".to_owned()));
        }
        let step = text(STEP)?;
        let step: u32 = step
            .parse()
            .map_err(|_no_number| kept(format!("the step is {step:?}, expected a number")))?;
        let tensor = file.tensor(LATENT);
        let tensor = tensor.ok_or_else(|| kept("the latent is missing".to_owned()))?;
        let [height, width, channels] = tensor.shape[..] else {
            let shape = format!("{:?}", tensor.shape);
            return Err(kept(format!(
                "the latent's shape is {shape}, expected three sizes"
            )));
        };
        let values = tensor
            .to_f32()
            .map_err(|error| kept(format!("the latent cannot be read: {error}")))?;
        Ok(Self {
            step,
            latent: Latent {
                height,
                width,
                channels,
                values,
            },
        })
    }
}
