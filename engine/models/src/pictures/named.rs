//! Tensors of a picture network by name, whatever prefix its training put before them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use engine_nn::LayerError;
use engine_tensor::TensorError;
use engine_tensor::ops::{Activation, Conv2d};
use engine_weights::{Checkpoint, WeightsError, first_non_finite};

use crate::LoadError;

/// What training scripts put before all names.
const PREFIXES: &[&str] = &["params_ema.", "params.", "module.", ""];

/// Tensors of a checkpoint, and which of them were used.
pub(super) struct Named<'a> {
    checkpoint: &'a dyn Checkpoint,
    prefix: &'static str,
    used: RefCell<BTreeSet<String>>,
}

impl<'a> Named<'a> {
    pub(super) fn of(checkpoint: &'a dyn Checkpoint) -> Self {
        let all_begin = |prefix: &str| {
            let mut names = checkpoint.names().peekable();
            names.peek().is_some() && names.all(|name| name.starts_with(prefix))
        };
        let prefix = PREFIXES.iter().find(|prefix| all_begin(prefix));
        Self {
            checkpoint,
            prefix: prefix.copied().unwrap_or(""),
            used: RefCell::default(),
        }
    }

    /// Shape of the tensor called `name`.
    pub(super) fn shape(&self, name: &str) -> Option<Vec<usize>> {
        let found = self.checkpoint.tensor(&format!("{}{name}", self.prefix))?;
        Some(found.shape)
    }

    /// The first tensors, for people.
    pub(super) fn found(&self) -> String {
        let count = self.checkpoint.names().count();
        let first: Vec<String> = self
            .checkpoint
            .names()
            .take(4)
            .map(|name| {
                let shape = self.checkpoint.tensor(name).map(|tensor| tensor.shape);
                let name: String = name.chars().take(60).collect();
                format!("{name:?} {:?}", shape.unwrap_or_default())
            })
            .collect();
        match count {
            0 => "no tensors".to_owned(),
            _ => format!("{count} tensors such as {}", first.join(", ")),
        }
    }

    /// The tensor called `name` as finite f32.
    pub(super) fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let name = format!("{}{name}", self.prefix);
        let tensor = self.checkpoint.tensor_of_shape(&name, shape)?;
        if let Some(at) = first_non_finite(&tensor) {
            let row = at / tensor.row_elements().max(1);
            return Err(TensorError::NotFinite { name, row }.into());
        }
        let values = tensor.to_f32().map_err(|_no_floats| {
            LayerError::Weights(WeightsError::UnsupportedType {
                name: name.clone(),
                got: tensor.dtype.to_string(),
                path: self.path(),
            })
        })?;
        self.used.borrow_mut().insert(name);
        Ok(values)
    }

    fn path(&self) -> std::path::PathBuf {
        let first = self.checkpoint.files().first();
        first.map(|file| file.path.clone()).unwrap_or_default()
    }

    /// The convolution `NAME.weight`, `NAME.bias`, 3 x 3.
    pub(super) fn conv(
        &self,
        name: &str,
        outputs: usize,
        segments: &[usize],
        activation: &Activation,
    ) -> Result<Conv2d, LoadError> {
        let channels = segments.iter().sum();
        let weights = self.values(&format!("{name}.weight"), &[outputs, channels, 3, 3])?;
        let bias = self.values(&format!("{name}.bias"), &[outputs])?;
        Ok(Conv2d::new(&weights, &bias, (segments, 3), activation)?)
    }

    /// `Ok` when every tensor was used: others would mean another network than is run.
    pub(super) fn all_used(&self, family: &'static str) -> Result<(), LoadError> {
        let used = self.used.borrow();
        match self.checkpoint.names().find(|name| !used.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(LoadError::Config {
                key: format!("tensor {:?}", name.chars().take(80).collect::<String>()),
                got: "in the file".to_owned(),
                expected: format!("only tensors that a network of family {family:?} has"),
            }),
        }
    }
}
