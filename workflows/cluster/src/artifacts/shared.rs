//! A folder or an S3-compatible bucket that every machine sees.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine_base::ContentHash;
use futures_util::StreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, RetryConfig,
    WriteMultipart,
};
use tokio::io::AsyncReadExt as _;

use super::error::ArtifactError;
use super::receive::Receiver;
use super::transfer::{Came, Gather};

/// Bytes of one part of an upload; S3 takes no smaller ones than 5 MiB.
const PART_BYTES: usize = 8 << 20;

/// Parts on their way at once.
const PARTS_AT_ONCE: usize = 4;

/// How an S3-compatible bucket is reached.
#[derive(Clone)]
pub struct S3Options {
    /// Where it is, as `https://s3.example.org`; empty = Amazon's own.
    pub endpoint: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Folder in it; may be empty.
    pub prefix: String,
    /// Its region; most other servers than Amazon's take any.
    pub region: String,
    /// Id of the key.
    pub access_key_id: String,
    /// The key; never printed.
    pub secret_access_key: String,
    /// Whether plain HTTP is allowed.
    pub allow_http: bool,
}

impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Options")
            .field("endpoint", &self.endpoint)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

/// Artifacts that every machine sees, as `aa/<64 hex digits>` in a folder or bucket.
#[derive(Clone)]
pub struct SharedStore {
    store: Arc<dyn ObjectStore>,
    prefix: String,
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedStore({} {:?})", self.store, self.prefix)
    }
}

fn failed(what: &'static str, error: &object_store::Error) -> ArtifactError {
    ArtifactError::Shared {
        what,
        message: error.to_string(),
    }
}

impl SharedStore {
    /// The folder at `path`, which must be there.
    ///
    /// # Errors
    /// [`ArtifactError::Shared`].
    pub fn folder(path: &Path) -> Result<Self, ArtifactError> {
        let store = LocalFileSystem::new_with_prefix(path).map_err(|e| failed("open", &e))?;
        Ok(Self {
            store: Arc::new(store.with_automatic_cleanup(false)),
            prefix: String::new(),
        })
    }

    /// A bucket. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`ArtifactError::Shared`] when a part of the address is no such thing.
    pub fn s3(options: &S3Options) -> Result<Self, ArtifactError> {
        let retry = RetryConfig {
            max_retries: 2,
            retry_timeout: Duration::from_secs(20),
            ..RetryConfig::default()
        };
        let client = ClientOptions::new()
            .with_allow_http(options.allow_http)
            .with_connect_timeout(Duration::from_secs(5))
            .with_timeout_disabled();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&options.bucket)
            .with_region(&options.region)
            .with_access_key_id(&options.access_key_id)
            .with_secret_access_key(&options.secret_access_key)
            .with_client_options(client)
            .with_retry(retry);
        if !options.endpoint.is_empty() {
            builder = builder.with_endpoint(&options.endpoint);
        }
        let store = builder.build().map_err(|e| failed("open", &e))?;
        Ok(Self {
            store: Arc::new(store),
            prefix: options.prefix.trim_matches('/').to_owned(),
        })
    }

    fn name(&self, hash: &ContentHash) -> Name {
        let hex = hash.to_hex();
        let folder = hex.get(..2).unwrap_or_default();
        Name::from(format!("{}/{folder}/{hex}", self.prefix))
    }

    /// Sends what lies at `path`, in parts, unless a whole one is there. One of another size is
    /// replaced. Nobody sees a part of it: both kinds of store show it when it is whole.
    pub(super) async fn put(&self, hash: &ContentHash, path: &Path) -> Result<(), ArtifactError> {
        let read = |error: std::io::Error| ArtifactError::Shared {
            what: "read the artifact for",
            message: error.to_string(),
        };
        let name = self.name(hash);
        let mut file = tokio::fs::File::open(path).await.map_err(read)?;
        let length = file.metadata().await.map_err(read)?.len();
        match self.store.head(&name).await {
            Ok(about) if about.size == length => return Ok(()),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failed("look into", &error)),
        }
        let small = usize::try_from(length).ok().filter(|len| *len < PART_BYTES);
        if let Some(length) = small {
            let mut bytes = Vec::with_capacity(length);
            file.read_to_end(&mut bytes).await.map_err(read)?;
            let put = self.store.put(&name, bytes.into()).await;
            return put.map(drop).map_err(|e| failed("write to", &e));
        }
        let upload = self.store.put_multipart(&name).await;
        let upload = upload.map_err(|e| failed("write to", &e))?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut part = vec![0; PART_BYTES];
        loop {
            let got = file.read(&mut part).await.map_err(read)?;
            if got == 0 {
                break;
            }
            let room = writer.wait_for_capacity(PARTS_AT_ONCE).await;
            room.map_err(|e| failed("write to", &e))?;
            writer.write(part.get(..got).unwrap_or_default());
        }
        let done = writer.finish().await;
        done.map(drop).map_err(|e| failed("write to", &e))
    }

    /// Receives the bytes from `first` on.
    pub(super) async fn get(
        &self,
        hash: &ContentHash,
        first: u64,
        length: u64,
        idle: Duration,
        receiver: &Receiver,
    ) -> Came {
        let range = (first > 0).then_some(GetRange::Offset(first));
        let options = GetOptions::new().with_range(range);
        let name = self.name(hash);
        let asked = tokio::time::timeout(idle * 2, self.store.get_opts(&name, options));
        let got = match asked.await {
            Ok(Ok(got)) => got,
            Ok(Err(object_store::Error::NotFound { .. })) => {
                return Came::None("it is not there".to_owned());
            }
            Ok(Err(error)) => return Came::Cut(error.to_string()),
            Err(_elapsed) => return Came::Cut("no answer in time".to_owned()),
        };
        if got.meta.size != length || got.range.start != first {
            return Came::Wrong;
        }
        let mut stream = got.into_stream();
        let mut gather = Gather::new(first, length);
        loop {
            let said = match tokio::time::timeout(idle, stream.next()).await {
                Ok(Some(Ok(chunk))) => match gather.add(&chunk, receiver).await {
                    Some(came) => return came,
                    None => continue,
                },
                Ok(None) => return gather.end(receiver).await,
                Ok(Some(Err(error))) => error.to_string(),
                Err(_elapsed) => "it stopped sending".to_owned(),
            };
            gather.flush(receiver).await;
            return Came::Cut(said);
        }
    }
}
