//! The families, one file each.

use engine_weights::Checkpoint;

use crate::LoadError;
use crate::config::Config;
use crate::dense::DensePlan;

mod llama;
mod plan;
mod qwen2;
mod qwen3;

/// A family of models that share one forward pass.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name.
    pub id: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Values of `model_type` in `config.json` by which it is recognised.
    pub model_types: &'static [&'static str],
    /// Values of `general.architecture` in GGUF.
    pub architectures: &'static [&'static str],
    /// From configuration to sizes and names of tensors.
    pub(crate) plan: fn(&Config<'_>, &dyn Checkpoint) -> Result<DensePlan, LoadError>,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Family({})", self.id)
    }
}

/// All families.
pub const FAMILIES: &[Family] = &[llama::FAMILY, qwen2::FAMILY, qwen3::FAMILY];

/// The family whose checkpoints call themselves `name`.
///
/// # Errors
/// `UnknownFamily`, which lists the names that are known.
pub fn family_of(name: &str) -> Result<&'static Family, LoadError> {
    let known = |family: &Family| family.model_types.iter().chain(family.architectures);
    FAMILIES
        .iter()
        .find(|family| known(family).any(|known| *known == name))
        .ok_or_else(|| {
            let mut names: Vec<&str> = FAMILIES.iter().flat_map(known).copied().collect();
            names.sort_unstable();
            names.dedup();
            LoadError::UnknownFamily {
                got: name.to_owned(),
                known: names.join(", "),
            }
        })
}
