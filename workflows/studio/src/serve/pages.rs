//! The pages that a browser loads.

use std::borrow::Cow;
use std::path::Path;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flow_http::{Caching, below, file_response, type_of_name};
use rust_embed::RustEmbed;

use super::Pages;

/// What a page may load: only this server's own.
const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; \
                      style-src 'self' 'unsafe-inline'; font-src 'self' data:; \
                      connect-src 'self'; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

/// Said in place of pages that were not built.
const NOT_BUILT: &str = "<!doctype html><meta charset=utf-8><title>Longtake</title>\
<body style=\"font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;padding:0 1em\">\
<h1>The pages are not built yet</h1><p>The studio runs, and answers commands. Its pages are made \
with Node: run <code>npm ci &amp;&amp; npm run build</code> in the folder <code>ui</code> and \
start again, or name a folder of built pages with <code>--ui-dir</code>.</p>";

/// Pages that were there when the program was built.
#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Built;

/// The file that the address path `path` means; pages that the browser makes itself are all the
/// one page.
pub(super) async fn page(pages: &Pages, path: &str, headers: &HeaderMap) -> Response {
    let name = path.trim_start_matches('/');
    let is_file = name
        .rsplit('/')
        .next()
        .is_some_and(|last| last.contains('.'));
    let name = if is_file { name } else { "index.html" };
    let mut response = match pages {
        Pages::Off => StatusCode::NOT_FOUND.into_response(),
        Pages::Folder(folder) => from_folder(folder, name, headers).await,
        Pages::BuiltIn => match Built::get(name) {
            Some(file) => of_bytes(name, file.data),
            None if name == "index.html" => not_built(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn not_built() -> Response {
    let html = [(CONTENT_TYPE, "text/html; charset=utf-8")];
    (StatusCode::OK, html, NOT_BUILT).into_response()
}

/// A build names its files by their content below `assets/`; others may change.
fn is_named_by_content(name: &str) -> bool {
    name.starts_with("assets/")
}

async fn from_folder(folder: &Path, name: &str, headers: &HeaderMap) -> Response {
    let Some(path) = below(folder, name) else {
        return match name {
            "index.html" => not_built(),
            _ => StatusCode::NOT_FOUND.into_response(),
        };
    };
    file_response(&path, Some(type_of_name(name)), Caching::Never, headers).await
}

fn of_bytes(name: &str, bytes: Cow<'static, [u8]>) -> Response {
    let kept = if is_named_by_content(name) {
        "private, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [(CONTENT_TYPE, type_of_name(name)), (CACHE_CONTROL, kept)];
    let body = match bytes {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    (StatusCode::OK, headers, body).into_response()
}
