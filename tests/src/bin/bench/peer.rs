//! Programs of others that benches are compared with.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// The Python that the variable `name` names, which has a peer's packages.
///
/// # Errors
/// The variable is not set.
pub(crate) fn python(name: &str) -> Result<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).with_context(|| {
        format!("no peer: expected a Python in {name}; `cargo xtask bench NAME --peers` builds one")
    })
}
