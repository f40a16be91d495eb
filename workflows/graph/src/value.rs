//! Values that travel along links.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use engine_base::{ContentHash, Datum, DatumError};
use serde::{Deserialize, Serialize};

/// A file in the store, by content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// BLAKE3 of its bytes.
    pub hash: ContentHash,
    /// Its size.
    pub bytes: u64,
    /// Media type such as `video/mp4`. Not part of its identity.
    pub media_type: String,
}

/// A thing that is rebuilt rather than stored, such as a loaded model.
#[derive(Clone)]
pub struct Handle {
    /// What identifies it, such as a checkpoint's content hash.
    pub content: ContentHash,
    /// The thing itself.
    pub object: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("content", &self.content)
            .finish_non_exhaustive()
    }
}

/// One element on a link. Every port carries a list of these, most often of one.
#[derive(Debug, Clone)]
pub enum Value {
    /// Plain data, stored in the database when its node is durable (at most
    /// [`Value::SMALL_MAX_BYTES`] encoded).
    Data(Arc<Datum>),
    /// A file in the store.
    Blob(BlobRef),
    /// Rebuilt, never stored.
    Handle(Handle),
    /// Nothing will come: dependents of this element do not run. With a message it is an error of
    /// that element, without one it is silent.
    Blocked(Option<String>),
}

impl Value {
    /// Largest encoded size of stored plain data; larger results must be blobs.
    pub const SMALL_MAX_BYTES: usize = 64 * 1024;

    /// The kind tag of plain data in [`Value::identity`], widget values included.
    pub const DATA_KIND: u8 = 0;

    /// Plain data.
    pub fn data(datum: impl Into<Datum>) -> Self {
        Self::Data(Arc::new(datum.into()))
    }

    /// What identifies the value: kind tag and content hash, as they enter a key.
    ///
    /// # Errors
    /// [`DatumError`] when plain data has no canonical form (NaN, too deep).
    pub fn identity(&self) -> Result<(u8, ContentHash), DatumError> {
        Ok(match self {
            Self::Data(datum) => (Self::DATA_KIND, datum.content_hash()?),
            Self::Blob(blob) => (1, blob.hash),
            Self::Handle(handle) => (2, handle.content),
            Self::Blocked(_) => (3, ContentHash::of(b"")),
        })
    }

    /// The plain data, if it is that.
    pub fn as_datum(&self) -> Option<&Datum> {
        match self {
            Self::Data(datum) => Some(datum),
            _ => None,
        }
    }

    /// The file, if it is one.
    pub const fn as_blob(&self) -> Option<&BlobRef> {
        match self {
            Self::Blob(blob) => Some(blob),
            _ => None,
        }
    }

    /// The rebuilt thing as a `T`, if it is one.
    pub fn as_handle<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        match self {
            Self::Handle(handle) => Arc::clone(&handle.object).downcast().ok(),
            _ => None,
        }
    }
}
