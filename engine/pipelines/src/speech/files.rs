//! Small files of voices.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::SpeechError;

/// A description larger than this is not read.
const JSON_LIMIT_BYTES: u64 = 1 << 20;

/// Read a small JSON file.
pub(super) fn read_json<T: DeserializeOwned>(
    what: &'static str,
    path: &Path,
) -> Result<T, SpeechError> {
    let bad = |reason: String| SpeechError::BadFile {
        what,
        reason,
        path: path.to_owned(),
    };
    let found = fs::metadata(path).map_err(SpeechError::io("read a file of a voice", path))?;
    if found.len() > JSON_LIMIT_BYTES {
        let got = found.len();
        return Err(bad(format!(
            "expected at most {JSON_LIMIT_BYTES} bytes, got {got}"
        )));
    }
    let bytes = fs::read(path).map_err(SpeechError::io("read a file of a voice", path))?;
    serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))
}
