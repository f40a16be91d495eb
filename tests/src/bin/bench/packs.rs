//! Models that `cargo xtask setup` fetches, where the program looks for them.

use std::path::PathBuf;

use anyhow::{Result, ensure};

/// The folder of the model `id`; `variable` names another place in the message.
///
/// # Errors
/// It is not there.
pub(crate) fn pack(id: &str, variable: &str) -> Result<PathBuf> {
    let folder = engine_hub::models_folder()?.join(id);
    ensure!(
        folder.is_dir(),
        "no model: run `cargo xtask setup`, or set {variable}: {}",
        folder.display()
    );
    Ok(folder)
}
