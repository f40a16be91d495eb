//! Our store, served to others.

use std::fs::File;
use std::io;
use std::sync::Arc;

use engine_base::{Code, ContentHash};
use flow_http::{ArtifactFile, ArtifactSource, ArtifactSourceError};
use flow_store::Store;

/// A store as [`flow_http::artifact_routes`] serve it.
#[derive(Debug, Clone)]
pub struct StoreArtifacts(pub Arc<Store>);

impl ArtifactSource for StoreArtifacts {
    fn open(&self, hash: &ContentHash) -> Result<Option<ArtifactFile>, ArtifactSourceError> {
        let failed = |message: String| ArtifactSourceError {
            hash: *hash,
            message,
        };
        let path = match self.0.blob_path(hash) {
            Ok(path) => path,
            Err(error) if error.code() == Code::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            // Pruned in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let about = file.metadata().map_err(|error| failed(error.to_string()))?;
        Ok(Some(ArtifactFile {
            file,
            length_bytes: about.len(),
        }))
    }
}
