//! Files as memory: the one place with unsafe code.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use engine_tensor::Bytes;
use memmap2::Mmap;

use crate::error::{Found, WeightsError};

/// The bytes of a regular file that has some.
pub(crate) fn map(path: &Path) -> Result<Bytes, WeightsError> {
    let io = |doing| move |source| WeightsError::io(doing, path, source);
    let file = File::open(path).map_err(io("open weights"))?;
    let found = file.metadata().map_err(io("read the length of weights"))?;
    if !found.is_file() {
        return Err(WeightsError::NotWeights {
            found: Found::Named("a folder, a device or a pipe"),
            path: path.to_owned(),
        });
    }
    if found.len() == 0 {
        return Err(WeightsError::NotWeights {
            found: Found::Empty,
            path: path.to_owned(),
        });
    }
    let mapped = map_file(&file).map_err(io("map weights"))?;
    Ok(Bytes::of(Arc::new(mapped)))
}

#[expect(
    unsafe_code,
    reason = "weights are larger than what may be copied, and mapping is unsafe by nature"
)]
fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only and private to no one, so another process can still change
    // or cut the file. Readers treat the bytes as plain numbers that may change between two reads:
    // text is copied out before it is validated, ranges are checked against the mapped length, and
    // no value of the file is an index without a check where it is used. A file cut while mapped
    // raises SIGBUS; the crate's documentation says who must not do that.
    unsafe { Mmap::map(file) }
}
