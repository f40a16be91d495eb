//! Where the library is. The only module that reads environment variables.

use std::path::PathBuf;

use crate::error::OnnxError;

/// Names a library that is used before the one in the models folder.
const VARIABLE: &str = "LONGTAKE_ONNXRUNTIME";

/// The library to use: `explicit`, else what `LONGTAKE_ONNXRUNTIME` names, else `installed` (the
/// models folder's).
///
/// # Errors
/// [`OnnxError::NoRuntime`] when there is none of the three.
pub fn runtime_path(
    explicit: Option<PathBuf>,
    installed: Option<PathBuf>,
) -> Result<PathBuf, OnnxError> {
    let named = || {
        let value = std::env::var_os(VARIABLE)?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    };
    explicit
        .or_else(named)
        .or(installed)
        .ok_or(OnnxError::NoRuntime)
}
