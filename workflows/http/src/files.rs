//! Files with ranges, and names that stay below a folder.

use std::io::SeekFrom;
use std::path::{Component, Path, PathBuf};

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

use crate::sniff::{HEAD_BYTES, media_type_of};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// How long a browser may keep a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching<'a> {
    /// Always: the address names the content, whose tag this is.
    Immutable(&'a str),
    /// Not at all.
    Never,
}

/// The part of a file that a `Range` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// First byte and the one after the last.
    Bytes(u64, u64),
    /// Nothing of what is asked for is there.
    Nothing,
}

/// Reads one range, as RFC 9110 section 14 has it; several, or units other than bytes, count as
/// none, and the whole file answers them.
pub(crate) fn part_of(header: Option<&str>, len: u64) -> Part {
    let Some(ranges) = header.and_then(|text| text.trim().strip_prefix("bytes=")) else {
        return Part::Whole;
    };
    let Some((first, last)) = ranges.split_once('-') else {
        return Part::Whole;
    };
    if ranges.contains(',') {
        return Part::Whole;
    }
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (first.trim(), last.trim()) {
        ("", last) => match number(last) {
            Some(0) => Part::Nothing,
            Some(count) if len > 0 => Part::Bytes(len - count.min(len), len),
            Some(_) => Part::Nothing,
            None => Part::Whole,
        },
        (first, last) => {
            let end = if last.is_empty() {
                Some(len)
            } else {
                number(last).map(|last| last.saturating_add(1).min(len))
            };
            match (number(first), end) {
                (Some(first), Some(_)) if first >= len => Part::Nothing,
                (Some(first), Some(end)) if first < end => Part::Bytes(first, end),
                _ => Part::Whole,
            }
        }
    }
}

/// The file at `path` as an answer to a request with these headers: 200, 206 for one range, 304,
/// 416, or 404 when it is gone. Read in pieces: memory is bounded whatever its size. Its media
/// type is `media_type`, or told by its first bytes.
pub async fn file_response(
    path: &Path,
    media_type: Option<&str>,
    caching: Caching<'_>,
    headers: &HeaderMap,
) -> Response {
    match answer(path, media_type, caching, headers).await {
        Ok(response) => response,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            StatusCode::NOT_FOUND.into_response()
        }
        Err(error) => {
            tracing::warn!(%error, ?path, "cannot serve a file");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn answer(
    path: &Path,
    media_type: Option<&str>,
    caching: Caching<'_>,
    headers: &HeaderMap,
) -> std::io::Result<Response> {
    let mut file = File::open(path).await?;
    let about = file.metadata().await?;
    if !about.is_file() {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    let len = about.len();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let tag = match caching {
        Caching::Immutable(tag) => Some(format!("\"{tag}\"")),
        Caching::Never => None,
    };
    let kept = match caching {
        Caching::Immutable(_) => "private, max-age=31536000, immutable",
        Caching::Never => "no-cache",
    };
    if tag.is_some() && text(IF_NONE_MATCH) == tag.as_deref() {
        return Ok((StatusCode::NOT_MODIFIED, [(CACHE_CONTROL, kept)]).into_response());
    }
    let media_type = match media_type {
        Some(known) => known.to_owned(),
        None => {
            let mut head = Vec::with_capacity(HEAD_BYTES);
            let mut start = file.take(HEAD_BYTES as u64);
            start.read_to_end(&mut head).await?;
            file = start.into_inner();
            media_type_of(&head).to_owned()
        }
    };
    let mut response = Response::builder()
        .header(ACCEPT_RANGES, "bytes")
        .header(CACHE_CONTROL, kept)
        .header(CONTENT_TYPE, media_type)
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff");
    if let Some(tag) = tag {
        response = response.header(ETAG, tag);
    }
    let (first, end) = match part_of(text(RANGE), len) {
        Part::Whole => (0, len),
        Part::Bytes(first, end) => {
            response = response
                .status(StatusCode::PARTIAL_CONTENT)
                .header(CONTENT_RANGE, format!("bytes {first}-{}/{len}", end - 1));
            (first, end)
        }
        Part::Nothing => {
            let range = (CONTENT_RANGE, format!("bytes */{len}"));
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [range]).into_response());
        }
    };
    file.seek(SeekFrom::Start(first)).await?;
    let body = ReaderStream::with_capacity(file.take(end - first), CHUNK_BYTES);
    response
        .header(CONTENT_LENGTH, end - first)
        .body(Body::from_stream(body))
        .map_err(std::io::Error::other)
}

/// The file that the address path `name` means below `folder`; nothing for names that would leave
/// it, hidden ones, and what is not there. Links that lead out of the folder count as not there.
pub fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let name = name.trim_start_matches('/');
    let plain = |part: Component<'_>| matches!(part, Component::Normal(text) if !text.to_string_lossy().starts_with('.'));
    if name.is_empty()
        || name.contains(['\\', '\0', ':'])
        || !Path::new(name).components().all(plain)
    {
        return None;
    }
    let folder = folder.canonicalize().ok()?;
    let path = folder.join(name).canonicalize().ok()?;
    (path.starts_with(&folder) && path.is_file()).then_some(path)
}

/// Media type of a page's file by the ending of its name.
pub fn type_of_name(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_has_them() {
        let cases = [
            (None, Part::Whole),
            (Some("bytes=0-"), Part::Bytes(0, 100)),
            (Some("bytes=10-19"), Part::Bytes(10, 20)),
            (Some("bytes=90-1000"), Part::Bytes(90, 100)),
            (Some("bytes=-10"), Part::Bytes(90, 100)),
            (Some("bytes=-1000"), Part::Bytes(0, 100)),
            (Some("bytes=100-"), Part::Nothing),
            (Some("bytes=-0"), Part::Nothing),
            (Some("bytes=18446744073709551615-"), Part::Nothing),
            (Some("bytes=0-18446744073709551615"), Part::Bytes(0, 100)),
            (Some("bytes=5-2"), Part::Whole),
            (Some("bytes=0-1,5-6"), Part::Whole),
            (Some("lines=0-1"), Part::Whole),
            (Some("bytes=x-y"), Part::Whole),
        ];
        for (header, expected) in cases {
            assert_eq!(part_of(header, 100), expected, "{header:?}");
        }
        assert_eq!(part_of(Some("bytes=0-"), 0), Part::Nothing);
        assert_eq!(part_of(Some("bytes=-5"), 0), Part::Nothing);
    }

    #[cfg(unix)]
    #[test]
    fn names_stay_below_their_folder() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), b"x").unwrap();
        let folder = outside.path().join("ui");
        std::fs::create_dir_all(folder.join("assets")).unwrap();
        std::fs::write(folder.join("index.html"), b"x").unwrap();
        std::fs::write(folder.join("assets/a.js"), b"x").unwrap();
        std::fs::write(folder.join(".hidden"), b"x").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("link")).unwrap();
        for inside in ["index.html", "/index.html", "assets/a.js"] {
            assert!(below(&folder, inside).is_some(), "{inside}");
        }
        for wrong in [
            "",
            "/",
            "assets",
            "../secret",
            "assets/../../secret",
            "..",
            "link",
            ".hidden",
            "a\\..\\b",
            "none",
            "//../secret",
        ] {
            assert_eq!(below(&folder, wrong), None, "{wrong}");
        }
    }
}
