//! What the server answers.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State, WebSocketUpgrade};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use engine_base::{Code, ContentHash};
use flow_http::{Caching, Gate, Pass, file_response, follow};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Semaphore, watch};

use super::{Pages, pages};
use crate::desk::Desk;
use crate::error::StudioError;

/// Largest arguments of a command: a whole script fits.
const CALL_BYTES_MAX: usize = 16 << 20;
/// Largest file that is brought in.
const UPLOAD_BYTES_MAX: u64 = 16 << 30;
/// Small pictures made at a time.
const THUMBS_AT_A_TIME: usize = 2;

#[derive(Clone)]
struct Shared {
    desk: Arc<Desk>,
    gate: Arc<Gate>,
    pages: Arc<Pages>,
    thumbs: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
}

/// All routes over a desk, behind the gate.
pub(super) fn router(
    desk: Arc<Desk>,
    gate: Gate,
    pages: Pages,
    stopped: watch::Receiver<bool>,
) -> Router {
    let shared = Shared {
        desk,
        gate: Arc::new(gate),
        pages: Arc::new(pages),
        thumbs: Arc::new(Semaphore::new(THUMBS_AT_A_TIME)),
        stopped,
    };
    Router::new()
        .route("/api/call/{name}", post(call))
        .layer(DefaultBodyLimit::max(CALL_BYTES_MAX))
        .route(
            "/api/upload",
            post(upload).layer(DefaultBodyLimit::disable()),
        )
        .route("/api/events", get(events))
        .route("/media/{hash}", get(media))
        .route("/thumb/{hash}", get(thumb))
        .route("/wave/{hash}", get(wave))
        .route("/preview/{job}", get(preview))
        .fallback(get(page))
        .layer(middleware::from_fn_with_state(shared.clone(), enter))
        .with_state(shared)
}

/// Let in who carries the token, to whom it was given, from a page of ours.
async fn enter(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    match shared.gate.check(request.headers(), request.uri()) {
        Err(refusal) => refusal.into_response(),
        Ok(Pass::Carried) => next.run(request).await,
        Ok(Pass::InAddress) => {
            let headers = [
                (SET_COOKIE, shared.gate.set_cookie()),
                (LOCATION, "/".to_owned()),
                (CACHE_CONTROL, "no-store".to_owned()),
            ];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
    }
}

fn status_of(code: Code) -> StatusCode {
    match code {
        Code::BadInput => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Busy | Code::Cancelled => StatusCode::CONFLICT,
        Code::Refused => StatusCode::UNPROCESSABLE_ENTITY,
        Code::NotPermitted => StatusCode::FORBIDDEN,
        Code::DiskFull | Code::OutOfMemory => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn failed(error: &StudioError) -> Response {
    (status_of(error.code), axum::Json(json!({ "error": error }))).into_response()
}

fn answered(outcome: Result<Value, StudioError>) -> Response {
    match outcome {
        Ok(value) => axum::Json(json!({ "ok": value })).into_response(),
        Err(error) => failed(&error),
    }
}

/// Work that may take long, off the threads that answer.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StudioError> + Send + 'static,
) -> Result<T, StudioError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => {
            let message = format!("the command ended unexpectedly: {error}");
            Err(StudioError::new(Code::Internal, message))
        }
    }
}

async fn call(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            let message = format!(
                "cannot read the arguments, expected at most {CALL_BYTES_MAX} bytes: {}",
                rejection.body_text()
            );
            return failed(&StudioError::new(Code::BadInput, message));
        }
    };
    let desk = shared.desk;
    let outcome = aside(move || {
        let args = if body.is_empty() {
            json!({})
        } else {
            serde_json::from_slice(&body).map_err(|error| {
                let message = format!("cannot read the arguments as JSON: {error}");
                StudioError::new(Code::BadInput, message)
            })?
        };
        desk.call(&name, args)
    });
    answered(outcome.await)
}

#[derive(Deserialize)]
struct Since {
    since: Option<u64>,
}

async fn events(
    State(shared): State<Shared>,
    Query(asked): Query<Since>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let mut stopped = shared.stopped.clone();
    upgrade
        .max_message_size(1 << 16)
        .on_upgrade(move |socket| async move {
            let desk = shared.desk;
            let (hello, reset) = (desk.hello(), desk.reset());
            tokio::select! {
                () = follow(socket, desk.events(), asked.since, hello, reset) => {}
                _ = async { stopped.wait_for(|stop| *stop).await.is_ok() } => {}
            }
        })
}

fn hash_of(text: &str) -> Result<ContentHash, StudioError> {
    text.parse().map_err(|_no_hash| {
        let message = format!("expected a content hash of 64 hexadecimal digits, got {text:?}");
        StudioError::new(Code::NotFound, message)
    })
}

async fn media(
    State(shared): State<Shared>,
    Path(hash): Path<String>,
    headers: HeaderMap,
) -> Response {
    let desk = shared.desk;
    let found = aside(move || {
        let hash = hash_of(&hash)?;
        Ok((desk.media_path(&hash)?, hash.to_hex()))
    });
    match found.await {
        Ok((path, tag)) => file_response(&path, None, Caching::Immutable(&tag), &headers).await,
        Err(error) => failed(&error),
    }
}

#[derive(Deserialize)]
struct Width {
    w: Option<u32>,
}

async fn thumb(
    State(shared): State<Shared>,
    Path(hash): Path<String>,
    Query(width): Query<Width>,
    headers: HeaderMap,
) -> Response {
    // A board asks for hundreds at once; decoding them all at once would take all memory.
    let Ok(_turn) = shared.thumbs.acquire_owned().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let desk = shared.desk;
    let made = aside(move || desk.thumb(&hash_of(&hash)?, width.w.unwrap_or(320)));
    match made.await {
        Err(error) if error.code != Code::NotFound => broken(),
        Ok(thumb) => {
            let tag = thumb.hash.to_hex();
            let caching = Caching::Immutable(&tag);
            file_response(&thumb.path, Some("image/jpeg"), caching, &headers).await
        }
        Err(error) => failed(&error),
    }
}

/// A picture of a torn picture, in the place of one that cannot be read.
fn broken() -> Response {
    const TORN: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 160 90'>\
        <rect width='160' height='90' fill='#2a2523'/>\
        <g fill='none' stroke='#e08a7a' stroke-width='3' stroke-linejoin='round'>\
        <path d='M52 25h56v40H52z'/><path d='M84 20l-9 15 11 9-10 12 6 14'/>\
        <path d='M55 59l12-14 8 9'/></g><circle cx='97' cy='36' r='4' fill='#e08a7a'/></svg>";
    let headers = [(CONTENT_TYPE, "image/svg+xml"), (CACHE_CONTROL, "no-cache")];
    (headers, TORN).into_response()
}

/// What a job makes now. Another number in the address is another picture: none is kept.
async fn preview(State(shared): State<Shared>, Path(job): Path<i64>) -> Response {
    match shared.desk.preview(job) {
        Some(jpeg) => {
            let headers = [(CONTENT_TYPE, "image/jpeg"), (CACHE_CONTROL, "no-store")];
            (headers, Body::from(Bytes::from_owner(jpeg))).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[derive(Deserialize)]
struct Bars {
    bars: Option<usize>,
}

async fn wave(
    State(shared): State<Shared>,
    Path(hash): Path<String>,
    Query(asked): Query<Bars>,
) -> Response {
    let Ok(_turn) = shared.thumbs.acquire_owned().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let desk = shared.desk;
    let bars = asked.bars.unwrap_or(200).clamp(1, 4096);
    let drawn = aside(move || desk.wave(&hash_of(&hash)?, bars));
    answered(drawn.await.map(|bars| json!(bars)))
}

#[derive(Deserialize)]
struct Upload {
    project: PathBuf,
    name: String,
    /// The file of this name is missing: only the same content is taken.
    relink: Option<bool>,
}

async fn upload(State(shared): State<Shared>, Query(asked): Query<Upload>, body: Body) -> Response {
    let desk = shared.desk;
    let outcome = async {
        let temp = desk.temp_file()?;
        let written = receive(body, &temp).await;
        let brought = match written {
            Ok(()) => {
                let (desk, temp) = (Arc::clone(&desk), temp.clone());
                aside(move || {
                    if asked.relink == Some(true) {
                        return desk.bring_back(&asked.project, &asked.name, &temp);
                    }
                    let file = desk.bring(&asked.project, &asked.name, &temp)?;
                    desk.make_playable(&file.hash, &file.name, &temp);
                    Ok(file)
                })
                .await
            }
            Err(error) => Err(error),
        };
        // A leftover is swept with the session's other temporary files.
        drop(tokio::fs::remove_file(&temp).await);
        brought
    };
    answered(outcome.await.map(|file| json!(file)))
}

/// Write a request's body to the file `temp`, in pieces.
async fn receive(body: Body, temp: &std::path::Path) -> Result<(), StudioError> {
    let io = |error: std::io::Error| StudioError::io("receive the file", temp, &error);
    let mut file = tokio::fs::File::create(temp).await.map_err(io)?;
    let mut bytes = 0u64;
    let mut pieces = body.into_data_stream();
    while let Some(piece) = next(&mut pieces).await {
        let piece = piece.map_err(|error| {
            StudioError::new(Code::Io, format!("the file was not sent whole: {error}"))
        })?;
        bytes += piece.len() as u64;
        if bytes > UPLOAD_BYTES_MAX {
            let message = format!("expected a file of at most {UPLOAD_BYTES_MAX} bytes");
            return Err(StudioError::new(Code::Refused, message));
        }
        file.write_all(&piece).await.map_err(io)?;
    }
    file.flush().await.map_err(io)
}

/// The next piece of a body.
async fn next(pieces: &mut axum::body::BodyDataStream) -> Option<Result<Bytes, axum::Error>> {
    std::future::poll_fn(|context| {
        futures_core::Stream::poll_next(std::pin::Pin::new(&mut *pieces), context)
    })
    .await
}

async fn page(State(shared): State<Shared>, uri: Uri, headers: HeaderMap) -> Response {
    // Pages that the browser makes itself are one page; what is missing of these is not.
    let of_ours = ["/api/", "/media/", "/thumb/", "/wave/", "/preview/"];
    if of_ours.iter().any(|start| uri.path().starts_with(start)) {
        return StatusCode::NOT_FOUND.into_response();
    }
    pages::page(&shared.pages, uri.path(), &headers).await
}
