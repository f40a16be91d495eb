//! Files of a store by content hash, for other machines: `/artifact/{hash}`, with ranges and a
//! token.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    RANGE,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use engine_base::ContentHash;
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

use crate::files::{Part, part_of};
use crate::gate::Token;

/// Bytes read at a time. Larger than for a page: a read is a hop to another thread.
const CHUNK_BYTES: usize = 1 << 19;

/// A file to be served, open already: removing it from its folder cuts nobody off.
#[derive(Debug)]
pub struct ArtifactFile {
    /// The file, anywhere in it.
    pub file: File,
    /// Its size.
    pub length_bytes: u64,
}

/// Why a file that should be there cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot open artifact {hash}: {message}")]
pub struct ArtifactSourceError {
    /// The content asked for.
    pub hash: ContentHash,
    /// What the source said.
    pub message: String,
}

/// Where artifacts come from: a store, by content hash.
pub trait ArtifactSource: Send + Sync {
    /// The file with this content, `None` where there is none. Called on a thread that may block.
    ///
    /// # Errors
    /// [`ArtifactSourceError`] when it is there and cannot be read.
    fn open(&self, hash: &ContentHash) -> Result<Option<ArtifactFile>, ArtifactSourceError>;
}

#[derive(Clone)]
struct Served {
    source: Arc<dyn ArtifactSource>,
    token: Token,
}

/// `GET` and `HEAD /artifact/{hash}`: 200, 206 for one range, 401 without a token, 403 with
/// another, 404 for what is not there and for what is no content hash, 416 for a range behind the
/// end. The token is asked for before anything else is looked at.
pub fn artifact_routes(source: Arc<dyn ArtifactSource>, token: Token) -> Router {
    Router::new()
        .route("/artifact/{hash}", get(serve))
        .with_state(Served { source, token })
}

/// Answers requests for artifacts on `listener` until `stop` is over; then what is on its way ends
/// first.
///
/// # Errors
/// The listener cannot be used.
pub async fn serve_artifacts(
    listener: std::net::TcpListener,
    source: Arc<dyn ArtifactSource>,
    token: Token,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    axum::serve(listener, artifact_routes(source, token))
        .with_graceful_shutdown(stop)
        .await
}

async fn serve(
    State(served): State<Served>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    match bearer {
        None => return StatusCode::UNAUTHORIZED.into_response(),
        Some(got) if !served.token.is(got.trim()) => return StatusCode::FORBIDDEN.into_response(),
        Some(_) => {}
    }
    let Ok(hash) = name.parse::<ContentHash>() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let range = text(RANGE).map(str::to_owned);
    let opened =
        tokio::task::spawn_blocking(move || open(&*served.source, &hash, range.as_deref()));
    match opened.await {
        Ok(Ok(Some(opened))) => opened.answer(&hash),
        Ok(Ok(None)) => StatusCode::NOT_FOUND.into_response(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot serve an artifact");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "cannot serve an artifact");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A file at the first byte of what is asked for.
struct Opened {
    file: File,
    part: Part,
    length_bytes: u64,
}

fn open(
    source: &dyn ArtifactSource,
    hash: &ContentHash,
    range: Option<&str>,
) -> Result<Option<Opened>, ArtifactSourceError> {
    let Some(ArtifactFile {
        mut file,
        length_bytes,
    }) = source.open(hash)?
    else {
        return Ok(None);
    };
    let part = part_of(range, length_bytes);
    let first = match part {
        Part::Bytes(first, _) => first,
        Part::Whole | Part::Nothing => 0,
    };
    file.seek(SeekFrom::Start(first))
        .map_err(|error| ArtifactSourceError {
            hash: *hash,
            message: error.to_string(),
        })?;
    Ok(Some(Opened {
        file,
        part,
        length_bytes,
    }))
}

impl Opened {
    fn answer(self, hash: &ContentHash) -> Response {
        let len = self.length_bytes;
        let mut response = Response::builder()
            .header(ACCEPT_RANGES, "bytes")
            .header(CACHE_CONTROL, "private, max-age=31536000, immutable")
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(ETAG, format!("\"{hash}\""));
        let count = match self.part {
            Part::Whole => len,
            Part::Bytes(first, end) => {
                response = response
                    .status(StatusCode::PARTIAL_CONTENT)
                    .header(CONTENT_RANGE, format!("bytes {first}-{}/{len}", end - 1));
                end - first
            }
            Part::Nothing => {
                let range = (CONTENT_RANGE, format!("bytes */{len}"));
                return (StatusCode::RANGE_NOT_SATISFIABLE, [range]).into_response();
            }
        };
        let mut file = tokio::fs::File::from_std(self.file);
        file.set_max_buf_size(CHUNK_BYTES);
        let body = ReaderStream::with_capacity(file.take(count), CHUNK_BYTES);
        let response = response
            .header(CONTENT_LENGTH, count)
            .body(Body::from_stream(body));
        response.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot serve an artifact");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        })
    }
}
