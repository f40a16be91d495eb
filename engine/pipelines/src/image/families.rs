//! Families of models that draw: one file under `families` and one line in [`FAMILIES`].

mod flux2;
mod flux3;
mod language;
mod qwen_image;
mod qwen_image_21;
mod stable_diffusion;
mod z_image;

use engine_tensor::Cpu;

use super::ImageError;
use super::family::ImageFamily;
use super::folder::Folder;

type Opened = Result<Box<dyn ImageFamily>, ImageError>;

/// A family, and how it is opened.
pub(super) struct FamilyEntry {
    /// Its name.
    pub(super) id: &'static str,
    /// `_class_name` in `model_index.json`.
    pub(super) classes: &'static [&'static str],
    pub(super) open: fn(&Folder<'_>, &Cpu) -> Opened,
}

/// Families whose folders are laid out as diffusers' are.
pub(super) const FAMILIES: &[FamilyEntry] = &[
    qwen_image_21::FAMILY,
    qwen_image::FAMILY,
    flux2::FAMILY,
    flux3::FAMILY,
    z_image::FAMILY,
    stable_diffusion::FAMILY,
];

/// The family of a `_class_name`.
pub(super) fn by_class(class: &str) -> Option<&'static FamilyEntry> {
    FAMILIES.iter().find(|entry| entry.classes.contains(&class))
}
