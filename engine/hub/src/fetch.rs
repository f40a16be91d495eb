//! Files of a model hub over HTTP.
//!
//! The address is fixed by a commit and the content by its hash, so bytes of any try fit to those
//! of any other: a broken download goes on where it stopped, whatever the server says about dates
//! and tags. A server without ranges is read past what is here already.

use std::future::Future;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use engine_base::CancelToken;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_RANGE, HeaderMap, HeaderName,
    HeaderValue, RANGE, RETRY_AFTER,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};

use crate::config::HubOptions;
use crate::error::HubError;
use crate::manifest::{HubSource, ModelFile};
use crate::meter::Meter;
use crate::part::Part;

/// A try that brought more than this beyond all earlier ones counts as a success.
const WORTH_BYTES: u64 = 64 * 1024;

/// Longest wait between two tries.
const BACKOFF_LIMIT: Duration = Duration::from_secs(30);

/// Longest wait that a server may ask for.
const RETRY_AFTER_LIMIT_SECS: u64 = 120;

/// Redirects followed for one file.
const REDIRECT_LIMIT: usize = 8;

/// How often a wait looks at the cancel token.
const LOOK: Duration = Duration::from_millis(50);

/// Fetches files of a model hub. Lives on the thread that made it.
pub(crate) struct Fetcher<'a> {
    options: &'a HubOptions,
    by_hand: &'a str,
    net: Option<Net>,
}

struct Net {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

/// How a try ended short.
enum Short {
    /// It is worth another try, after a wait the server asked for.
    Again {
        reason: String,
        wait: Option<Duration>,
    },
    /// The server does not like the range: ask without.
    NoRange,
    Stop(HubError),
}

impl<E: Into<HubError>> From<E> for Short {
    fn from(error: E) -> Self {
        Self::Stop(error.into())
    }
}

fn again(reason: impl Into<String>) -> Short {
    let (reason, wait) = (reason.into(), None);
    Short::Again { reason, wait }
}

/// One file to bring.
struct Order<'a> {
    url: Url,
    file: &'a ModelFile,
    source: &'a HubSource,
    cancel: &'a CancelToken,
}

impl Order<'_> {
    fn what(&self) -> String {
        format!(
            "{:?} of {} at {}",
            self.source.path, self.source.repo, self.source.revision
        )
    }

    fn bad(&self, reason: impl Into<String>) -> HubError {
        HubError::BadAnswer {
            what: self.what(),
            reason: reason.into(),
        }
    }

    fn wrong_size(&self, got: u64) -> HubError {
        HubError::WrongSize {
            what: self.what(),
            expected: self.file.bytes,
            got,
        }
    }
}

impl<'a> Fetcher<'a> {
    pub(crate) const fn new(options: &'a HubOptions, by_hand: &'a str) -> Self {
        Self {
            options,
            by_hand,
            net: None,
        }
    }

    /// Bring `file` to `target`.
    pub(crate) fn fetch(
        &mut self,
        source: &HubSource,
        file: &ModelFile,
        target: &Path,
        cancel: &CancelToken,
        meter: &mut Meter<'_>,
    ) -> Result<(), HubError> {
        let order = Order {
            url: address(&self.options.endpoint, source)?,
            file,
            source,
            cancel,
        };
        if self.options.loopback_only && !is_loopback(&order.url) {
            return Err(order.bad("only this machine may be contacted"));
        }
        if self.net.is_none() {
            self.net = Some(Net::new(self.options)?);
        }
        let Some(net) = &self.net else {
            return Err(order.bad("the network client is not there"));
        };
        let mut part = Part::open(file, target, cancel)?;
        meter.add(part.bytes());
        let bring = self.bring(&net.client, &order, &mut part, meter);
        net.runtime.block_on(bring)
    }

    async fn bring(
        &self,
        client: &Client,
        order: &Order<'_>,
        part: &mut Part<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(), HubError> {
        let mut resumed = part.bytes() > 0;
        let (mut ranges, mut tries, mut best) = (true, 0, part.bytes());
        loop {
            if part.bytes() == order.file.bytes {
                match part.finish() {
                    // The earlier piece may be what is wrong.
                    Err(HubError::WrongHash { .. }) if resumed => {
                        tracing::warn!("{} came wrong in pieces: once more whole", order.what());
                        meter.take_back(order.file.bytes);
                        (resumed, best) = (false, 0);
                    }
                    outcome => return outcome,
                }
            }
            resumed |= part.bytes() > 0;
            let outcome = self.attempt(client, order, part, ranges, meter).await;
            let (reason, wait) = match outcome {
                Ok(()) => continue,
                Err(Short::Stop(error)) => return Err(error),
                Err(Short::NoRange) => {
                    ranges = false;
                    continue;
                }
                Err(Short::Again { reason, wait }) => (reason, wait),
            };
            if part.bytes() > best + WORTH_BYTES {
                tries = 0;
            }
            best = best.max(part.bytes());
            tries += 1;
            tracing::debug!("try {tries} for {}: {reason}", order.what());
            if tries >= self.options.tries {
                return Err(HubError::Unreachable {
                    what: order.what(),
                    reason: format!("{reason}, in {tries} tries"),
                    by_hand: self.by_hand.to_owned(),
                });
            }
            let backoff = self
                .options
                .backoff
                .saturating_mul(1 << (tries - 1).min(16));
            sleep(wait.unwrap_or(backoff.min(BACKOFF_LIMIT)), order.cancel).await?;
        }
    }

    /// One request; `Ok` when the file is whole.
    async fn attempt(
        &self,
        client: &Client,
        order: &Order<'_>,
        part: &mut Part<'_>,
        ranges: bool,
        meter: &mut Meter<'_>,
    ) -> Result<(), Short> {
        let from = if ranges { part.bytes() } else { 0 };
        let mut request = client
            .get(order.url.clone())
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        if let Some(token) = &self.options.token
            && (order.url.scheme() == "https" || is_loopback(&order.url))
        {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value =
                value.map_err(|_not_a_header| order.bad("HF_TOKEN holds what no token holds"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let patience = self.options.connect_timeout + self.options.stall_timeout;
        let answer = wait(request.send(), patience, order.cancel).await?;
        let answer = answer
            .ok_or_else(|| again(format!("no answer in {} s", patience.as_secs_f32())))?
            .map_err(|error| network(order, error))?;
        let mut skip = self.judge(order, &answer, from, part.bytes())?;
        let mut answer = answer;
        loop {
            let chunk = wait(answer.chunk(), self.options.stall_timeout, order.cancel).await?;
            let stalled = || {
                let secs = self.options.stall_timeout.as_secs_f32();
                again(format!("nothing came for {secs} s"))
            };
            let chunk = chunk.ok_or_else(stalled)?.map_err(|error| {
                let (here, of) = (part.bytes(), order.file.bytes);
                let cause = cause(error);
                again(format!(
                    "the answer broke off at {here} of {of} bytes: {cause}"
                ))
            })?;
            let Some(chunk) = chunk else { break };
            let known = usize::try_from(skip).map_or(chunk.len(), |skip| skip.min(chunk.len()));
            skip -= known as u64;
            let new = &chunk[known..];
            part.write(new)?;
            meter.add(new.len() as u64);
        }
        let (here, of) = (part.bytes(), order.file.bytes);
        if here < of {
            return Err(again(format!("the answer ended at {here} of {of} bytes")));
        }
        Ok(())
    }

    /// Bytes at the head of the answer that are here already, of an answer that is of use.
    fn judge(
        &self,
        order: &Order<'_>,
        answer: &Response,
        from: u64,
        here: u64,
    ) -> Result<u64, Short> {
        let (status, headers) = (answer.status(), answer.headers());
        let said = || match header(headers, &HeaderName::from_static("x-error-message")) {
            Some(text) => format!("{status}: {:?}", text.chars().take(200).collect::<String>()),
            None => status.to_string(),
        };
        match status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let total = header(headers, &CONTENT_RANGE)
                    .and_then(|text| text.strip_prefix("bytes */")?.parse().ok());
                return Err(match total {
                    Some(total) if total != order.file.bytes => order.wrong_size(total).into(),
                    _ if from > 0 => Short::NoRange,
                    _ => order.bad(said()).into(),
                });
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let repo = &order.source.repo;
                let hint = if self.options.token.is_some() {
                    format!("the account of HF_TOKEN needs access to {repo}")
                } else {
                    format!(
                        "set HF_TOKEN to a token of an account that has accepted the terms of \
                         {repo}"
                    )
                };
                let (what, reason) = (order.what(), said());
                return Err(Short::Stop(HubError::NotAllowed { what, reason, hint }));
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                let (what, reason) = (order.what(), said());
                return Err(Short::Stop(HubError::NotThere { what, reason }));
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
                return Err(later(headers, said()));
            }
            _ if status.is_server_error() => return Err(later(headers, said())),
            _ => return Err(order.bad(format!("the server answered {}", said())).into()),
        }
        if let Some(coding) = header(headers, &CONTENT_ENCODING)
            && !coding.eq_ignore_ascii_case("identity")
        {
            let reason = format!("expected plain bytes, got content coding {coding:?}");
            return Err(order.bad(reason).into());
        }
        if status == StatusCode::OK {
            return match answer.content_length() {
                Some(length) if length != order.file.bytes => Err(order.wrong_size(length).into()),
                _ => Ok(here),
            };
        }
        let range = header(headers, &CONTENT_RANGE).unwrap_or_default();
        let Some((first, total)) = content_range(range) else {
            let reason = format!("expected a content range, got {range:?}");
            return Err(order.bad(reason).into());
        };
        if let Some(total) = total
            && total != order.file.bytes
        {
            return Err(order.wrong_size(total).into());
        }
        if first > here {
            let reason = format!("expected bytes from {from}, got them from {first}");
            return Err(order.bad(reason).into());
        }
        Ok(here - first)
    }
}

impl Net {
    fn new(options: &HubOptions) -> Result<Self, HubError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HubError::io("start the network", &options.folder))?;
        let mut builder = Client::builder()
            .user_agent(concat!("longtake/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.connect_timeout)
            .redirect(redirects(options.loopback_only));
        if options.loopback_only {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| HubError::BadAnswer {
            what: "anything".into(),
            reason: format!("the network client does not start: {}", cause(error)),
        })?;
        Ok(Self { runtime, client })
    }
}

/// Follows redirects, never from an encrypted address to a plain one.
fn redirects(loopback_only: bool) -> Policy {
    Policy::custom(move |attempt| {
        let downgraded = attempt.url().scheme() != "https"
            && attempt.previous().iter().any(|url| url.scheme() == "https");
        if attempt.previous().len() > REDIRECT_LIMIT {
            attempt.error(format!("more than {REDIRECT_LIMIT} redirects"))
        } else if downgraded {
            attempt.error("a redirect leads from an encrypted address to a plain one")
        } else if loopback_only && !is_loopback(attempt.url()) {
            attempt.error("a redirect leads away, and only this machine may be contacted")
        } else {
            attempt.follow()
        }
    })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn address(endpoint: &str, source: &HubSource) -> Result<Url, HubError> {
    let refused = |reason: String| HubError::BadAnswer {
        what: format!("{:?} of {}", source.path, source.repo),
        reason,
    };
    let mut url = Url::parse(endpoint)
        .map_err(|error| refused(format!("{endpoint:?} is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(format!("expected http or https, got {endpoint:?}")));
    }
    url.path_segments_mut()
        .map_err(|()| refused(format!("{endpoint:?} takes no path")))?
        .pop_if_empty()
        .extend(source.repo.split('/'))
        .extend(["resolve", &source.revision])
        .extend(source.path.split('/'));
    Ok(url)
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// `bytes FIRST-LAST/TOTAL` as first and total; a total of `*` is not known.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    (first <= last).then_some((first, total))
}

fn later(headers: &HeaderMap, reason: String) -> Short {
    let secs = header(headers, &RETRY_AFTER).and_then(|text| text.parse::<u64>().ok());
    let wait = secs.map(|secs| Duration::from_secs(secs.min(RETRY_AFTER_LIMIT_SECS)));
    Short::Again { reason, wait }
}

/// An error's text down to its first cause, without the address: that may hold a signature.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        let shown = inner.to_string();
        if !text.contains(&shown) {
            text.push_str(": ");
            text.push_str(&shown);
        }
        source = inner.source();
    }
    text
}

fn network(order: &Order<'_>, error: reqwest::Error) -> Short {
    let lasting = error.is_redirect() || error.is_builder();
    let cause = cause(error);
    if lasting {
        return order.bad(cause).into();
    }
    again(cause)
}

/// What `work` gives, or `None` after `limit`; ends early when told to stop.
async fn wait<T>(
    work: impl Future<Output = T>,
    limit: Duration,
    cancel: &CancelToken,
) -> Result<Option<T>, HubError> {
    let began = Instant::now();
    let mut work = std::pin::pin!(work);
    loop {
        cancel.check()?;
        let left = limit.saturating_sub(began.elapsed());
        match tokio::time::timeout(LOOK.min(left), &mut work).await {
            Ok(done) => return Ok(Some(done)),
            Err(_) if began.elapsed() >= limit => return Ok(None),
            Err(_) => {}
        }
    }
}

async fn sleep(time: Duration, cancel: &CancelToken) -> Result<(), HubError> {
    wait(std::future::pending::<()>(), time, cancel).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_strictly() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        for wrong in [
            "",
            "5-9/10",
            "bytes 9-5/10",
            "bytes -5/10",
            "bytes */10",
            "bytes 1-2/x",
        ] {
            assert_eq!(content_range(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn addresses_hold_each_name_as_one_part() {
        let source = HubSource {
            repo: "a/b".into(),
            revision: "0".repeat(40),
            path: "x y/z+1.gguf".into(),
        };
        let url = address("https://mirror.example/hf/", &source).unwrap();
        let revision = "0".repeat(40);
        assert_eq!(
            url.as_str(),
            format!("https://mirror.example/hf/a/b/resolve/{revision}/x%20y/z+1.gguf")
        );
        for wrong in ["file:///etc", "mirror", "ftp://x"] {
            assert!(address(wrong, &source).is_err(), "{wrong}");
        }
    }

    #[test]
    fn loopback_is_told_from_look_alikes() {
        for (text, is) in [
            ("http://127.0.0.1:80/", true),
            ("http://[::1]/", true),
            ("http://localhost/", true),
            ("http://127.0.0.1.example/", false),
            ("http://10.0.0.1/", false),
            ("http://localhost.example/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(text).unwrap()), is, "{text}");
        }
    }
}
