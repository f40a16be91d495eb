//! Who is asked, in which order, and what an answer means.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use engine_base::{CancelToken, ContentHash};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, RANGE};
use tokio::time::Instant;

use super::error::{ArtifactError, CorruptHolder, Origin, Tried};
use super::receive::{Partial, Receiver};
use super::{Artifacts, Fetched, Holder};

/// How often a wait looks whether it was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// First pause after everybody was asked in vain; doubled up to [`PAUSE_MOST`].
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MOST: Duration = Duration::from_secs(2);

/// What asking one source came to.
enum Outcome {
    /// All bytes came.
    Whole,
    /// It was cut off or could not be reached; may be asked again.
    Cut(String),
    /// It has nothing for us; asking again is no use.
    None(String),
    /// What it says of the artifact cannot be true.
    Wrong,
    /// Our disk failed.
    Disk(io::Error),
    Cancelled,
    /// The thread that writes broke down.
    Broken,
}

/// A source with what is known of it.
struct Candidate<'a> {
    source: Source<'a>,
    /// Not to be asked again.
    out: bool,
    /// It said that it has nothing, rather than nothing at all.
    absent: bool,
    said: Option<String>,
}

enum Source<'a> {
    Holder(&'a Holder),
    Shared(&'a super::SharedStore),
}

impl Source<'_> {
    fn origin(&self) -> Origin {
        match self {
            Self::Holder(holder) => Origin::Holder(holder.id.clone()),
            Self::Shared(_) => Origin::Shared,
        }
    }
}

/// An artifact on its way.
struct Run<'a> {
    hash: &'a ContentHash,
    length_bytes: u64,
    cancel: &'a CancelToken,
    partial: Option<Partial>,
    /// Who gave the bytes of `partial`.
    givers: Vec<Origin>,
    /// Bytes of several were wrong together: from now on all come from one.
    alone: bool,
    corrupt: Vec<CorruptHolder>,
    resumed: u32,
}

async fn until_cancelled(cancel: &CancelToken) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Artifacts {
    pub(super) async fn fetch_alone(
        &self,
        hash: &ContentHash,
        length_bytes: u64,
        holders: &[Holder],
        cancel: &CancelToken,
    ) -> Result<Fetched, ArtifactError> {
        // From here on nobody prunes what is there or about to come.
        let hold = Arc::new(self.store.hold(&[*hash])?);
        if let Ok(path) = self.store.blob_path(hash)
            && std::fs::metadata(&path).is_ok_and(|about| about.len() == length_bytes)
        {
            self.cache.used(hash);
            return Ok(Fetched {
                path,
                length_bytes,
                from: None,
                resumed: 0,
                corrupt: Vec::new(),
                hold,
            });
        }
        self.check_room(hash, length_bytes)?;
        let mut run = Run {
            hash,
            length_bytes,
            cancel,
            partial: None,
            givers: Vec::new(),
            alone: false,
            corrupt: Vec::new(),
            resumed: 0,
        };
        let from = self.ask_all(&mut run, holders).await?;
        let Some(partial) = run.partial.take() else {
            return Err(ArtifactError::Cancelled);
        };
        let path = self
            .store
            .adopt_hashed(partial.path(), hash, length_bytes)
            .map_err(|error| self.store_error(hash, length_bytes, error))?;
        self.cache.used(hash);
        Ok(Fetched {
            path,
            length_bytes,
            from: Some(from),
            resumed: run.resumed,
            corrupt: run.corrupt,
            hold,
        })
    }

    /// Refuses early what the disk cannot hold.
    fn check_room(&self, hash: &ContentHash, length_bytes: u64) -> Result<(), ArtifactError> {
        match self.free_bytes() {
            Some(free_bytes) if free_bytes < length_bytes => Err(ArtifactError::DiskFull {
                hash: *hash,
                needed_bytes: length_bytes,
                free_bytes,
            }),
            _ => Ok(()),
        }
    }

    fn free_bytes(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(self.store.dir()).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn store_error(
        &self,
        hash: &ContentHash,
        needed_bytes: u64,
        error: flow_store::StoreError,
    ) -> ArtifactError {
        if error.code() == engine_base::Code::DiskFull {
            let free_bytes = self.free_bytes().unwrap_or(0);
            return ArtifactError::DiskFull {
                hash: *hash,
                needed_bytes,
                free_bytes,
            };
        }
        error.into()
    }

    /// Asks everybody in turn until all bytes are there and right; gives who gave the last one.
    async fn ask_all(
        &self,
        run: &mut Run<'_>,
        holders: &[Holder],
    ) -> Result<Origin, ArtifactError> {
        let sources = holders.iter().map(Source::Holder);
        let shared = self.options.shared.iter().map(Source::Shared);
        let mut candidates: Vec<Candidate<'_>> = sources
            .chain(shared)
            .map(|source| Candidate {
                source,
                out: false,
                absent: false,
                said: None,
            })
            .collect();
        let mut pause = PAUSE_FIRST;
        let mut last_progress = Instant::now();
        loop {
            for at in 0..candidates.len() {
                // Where it must be clear who gave what, one goes on alone while it gives anything.
                loop {
                    let before = run.received_bytes();
                    let asked = self.ask_at(run, &mut candidates, at).await?;
                    if let Some(origin) = asked {
                        return Ok(origin);
                    }
                    if run.received_bytes() <= before {
                        break;
                    }
                    last_progress = Instant::now();
                    pause = PAUSE_FIRST;
                    if !run.alone {
                        break;
                    }
                }
            }
            if candidates.iter().all(|one| one.out) {
                return Err(nobody(run, &candidates));
            }
            if last_progress.elapsed() >= self.options.patience {
                return Err(unreachable(run, &candidates));
            }
            tokio::select! {
                () = until_cancelled(run.cancel) => return Err(ArtifactError::Cancelled),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MOST);
        }
    }

    /// Asks one candidate, unless it is out; gives who it was when all bytes are there and right.
    async fn ask_at(
        &self,
        run: &mut Run<'_>,
        candidates: &mut [Candidate<'_>],
        at: usize,
    ) -> Result<Option<Origin>, ArtifactError> {
        let Some(candidate) = candidates.get_mut(at).filter(|one| !one.out) else {
            return Ok(None);
        };
        let origin = candidate.source.origin();
        if run.alone && run.givers.iter().any(|giver| *giver != origin) {
            run.drop_partial();
        }
        let before = run.received_bytes();
        let outcome = self.ask(run, &candidate.source).await?;
        if run.received_bytes() > before {
            run.resumed += u32::from(before > 0);
            if !run.givers.contains(&origin) {
                run.givers.push(origin.clone());
            }
        }
        match outcome {
            Outcome::Whole if run.is_right() => return Ok(Some(origin)),
            Outcome::Whole => {
                if run.givers.iter().all(|giver| *giver == origin) {
                    run.note_corrupt(origin);
                    candidate.out = true;
                } else {
                    // Of several nobody can be named: it begins anew, each for itself.
                    run.alone = true;
                }
                run.drop_partial();
            }
            Outcome::Wrong => {
                run.note_corrupt(origin);
                run.drop_partial();
                candidate.out = true;
            }
            Outcome::Cut(said) => candidate.said = Some(said),
            Outcome::None(said) => {
                candidate.said = Some(said);
                candidate.out = true;
                candidate.absent = true;
            }
            Outcome::Disk(error) => return Err(self.disk_error(run, &error)),
            Outcome::Cancelled => return Err(ArtifactError::Cancelled),
            Outcome::Broken => {
                return Err(ArtifactError::Client {
                    message: "the writing thread ended".to_owned(),
                });
            }
        }
        Ok(None)
    }

    fn disk_error(&self, run: &Run<'_>, error: &io::Error) -> ArtifactError {
        let path = self.store.dir().to_owned();
        let failed = flow_store::StoreError::Io {
            what: "write the artifact",
            code: engine_base::Code::of_io(error),
            message: error.to_string(),
            path,
        };
        self.store_error(run.hash, run.length_bytes, failed)
    }

    /// Asks one source for what is missing.
    async fn ask(&self, run: &mut Run<'_>, source: &Source<'_>) -> Result<Outcome, ArtifactError> {
        let partial = match run.partial.take() {
            Some(partial) => partial,
            None => match Partial::begin(self.store.temp("part")?) {
                Ok(partial) => partial,
                Err(error) => return Ok(Outcome::Disk(error)),
            },
        };
        let first = partial.received_bytes();
        if first == run.length_bytes {
            // Nothing is missing, as of an empty file.
            run.partial = Some(partial);
            return Ok(Outcome::Whole);
        }
        let receiver = Receiver::start(partial);
        let cancel = run.cancel;
        let (hash, length) = (run.hash, run.length_bytes);
        let asked = async {
            match source {
                Source::Holder(holder) => {
                    self.ask_holder(holder, hash, first, length, &receiver)
                        .await
                }
                Source::Shared(shared) => {
                    let idle = self.options.idle_timeout;
                    let came = shared.get(hash, first, length, idle, &receiver).await;
                    Ok(came.into_outcome())
                }
            }
        };
        let outcome = tokio::select! {
            () = until_cancelled(cancel) => Ok(Outcome::Cancelled),
            outcome = asked => outcome,
        };
        let Some((partial, written)) = receiver.end().await else {
            return Ok(Outcome::Broken);
        };
        run.partial = Some(partial);
        if let Err(error) = written {
            return Ok(Outcome::Disk(error));
        }
        outcome
    }

    /// Asks a worker for the bytes from `first` on.
    async fn ask_holder(
        &self,
        holder: &Holder,
        hash: &ContentHash,
        first: u64,
        length: u64,
        receiver: &Receiver,
    ) -> Result<Outcome, ArtifactError> {
        let client = self
            .client
            .as_ref()
            .map_err(|message| ArtifactError::Client {
                message: message.clone(),
            })?;
        let url = format!("{}/artifact/{hash}", holder.url.trim_end_matches('/'));
        let mut request = client.get(url).bearer_auth(holder.token.as_str());
        if first > 0 {
            request = request.header(RANGE, format!("bytes={first}-"));
        }
        let idle = self.options.idle_timeout;
        let answer = tokio::time::timeout(self.options.connect_timeout + idle, request.send());
        let mut response = match answer.await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Ok(Outcome::Cut(words(&error))),
            Err(_elapsed) => return Ok(Outcome::Cut("no answer in time".to_owned())),
        };
        let begins = match begin_of(&response, first, length) {
            Ok(()) => first,
            Err(outcome) => return Ok(outcome),
        };
        let mut gather = Gather::new(begins, length);
        loop {
            let chunk = match tokio::time::timeout(idle, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(gather.end(receiver).await.into_outcome()),
                Ok(Err(error)) => {
                    gather.flush(receiver).await;
                    return Ok(Outcome::Cut(words(&error)));
                }
                Err(_elapsed) => {
                    gather.flush(receiver).await;
                    return Ok(Outcome::Cut("it stopped sending".to_owned()));
                }
            };
            if let Some(came) = gather.add(&chunk, receiver).await {
                return Ok(came.into_outcome());
            }
        }
    }
}

/// What came of a stream of bytes.
pub(super) enum Came {
    Whole,
    Cut(String),
    None(String),
    Wrong,
    /// The receiver has stopped; it knows why.
    Stopped,
}

impl Came {
    fn into_outcome(self) -> Outcome {
        match self {
            Self::Whole => Outcome::Whole,
            Self::Cut(said) => Outcome::Cut(said),
            Self::None(said) => Outcome::None(said),
            Self::Wrong => Outcome::Wrong,
            Self::Stopped => Outcome::Broken,
        }
    }
}

/// Gathers small chunks into larger writes, and takes no more than was announced.
pub(super) struct Gather {
    at: u64,
    length: u64,
    waiting: Vec<u8>,
}

impl Gather {
    pub(super) const fn new(at: u64, length: u64) -> Self {
        Self {
            at,
            length,
            waiting: Vec::new(),
        }
    }

    /// Takes a chunk; gives how it ended, if it did.
    pub(super) async fn add(&mut self, chunk: &[u8], receiver: &Receiver) -> Option<Came> {
        self.at = self.at.saturating_add(chunk.len() as u64);
        if self.at > self.length {
            return Some(Came::Wrong);
        }
        self.waiting.extend_from_slice(chunk);
        if self.waiting.len() >= WRITE_BYTES && !self.flush(receiver).await {
            return Some(Came::Stopped);
        }
        None
    }

    /// Hands on what waits; gives whether somebody took it.
    pub(super) async fn flush(&mut self, receiver: &Receiver) -> bool {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.is_empty() || receiver.take(waiting).await
    }

    /// The stream has ended.
    pub(super) async fn end(mut self, receiver: &Receiver) -> Came {
        if !self.flush(receiver).await {
            Came::Stopped
        } else if self.at == self.length {
            Came::Whole
        } else {
            Came::Cut(format!("it ended after {} bytes", self.at))
        }
    }
}

/// Whether an answer begins where we asked; else what it means.
fn begin_of(response: &reqwest::Response, first: u64, length: u64) -> Result<(), Outcome> {
    let status = response.status();
    match status {
        StatusCode::OK if first == 0 => match response.content_length() {
            Some(got) if got != length => Err(Outcome::Wrong),
            _ => Ok(()),
        },
        StatusCode::PARTIAL_CONTENT => {
            let range = response
                .headers()
                .get(CONTENT_RANGE)
                .and_then(|value| value.to_str().ok());
            let expected = format!("bytes {first}-{}/{length}", length.saturating_sub(1));
            if range == Some(expected.as_str()) {
                Ok(())
            } else {
                Err(Outcome::Wrong)
            }
        }
        // The whole file in place of a part, or a file too short for the part: another file.
        StatusCode::OK | StatusCode::RANGE_NOT_SATISFIABLE => Err(Outcome::Wrong),
        StatusCode::NOT_FOUND => Err(Outcome::None("it has it no more".to_owned())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(Outcome::None(format!("it refused our token ({status})")))
        }
        _ => Err(Outcome::Cut(format!("it answered {status}"))),
    }
}

/// A connection's error without the address, which may be long, and with its causes.
fn words(error: &reqwest::Error) -> String {
    let mut text = if error.is_connect() {
        "no connection".to_owned()
    } else {
        "cut off".to_owned()
    };
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

impl Run<'_> {
    fn received_bytes(&self) -> u64 {
        self.partial.as_ref().map_or(0, Partial::received_bytes)
    }

    fn is_right(&self) -> bool {
        self.partial
            .as_ref()
            .is_some_and(|partial| partial.hash() == *self.hash)
    }

    fn note_corrupt(&mut self, from: Origin) {
        let got = self
            .partial
            .as_ref()
            .map_or_else(|| ContentHash::of(b""), Partial::hash);
        let got_bytes = self.received_bytes();
        self.corrupt.push(CorruptHolder {
            from,
            got,
            got_bytes,
        });
    }

    fn drop_partial(&mut self) {
        self.partial = None;
        self.givers.clear();
    }
}

fn tried(candidates: &[Candidate<'_>]) -> Vec<Tried> {
    candidates
        .iter()
        .filter_map(|candidate| {
            Some(Tried {
                from: candidate.source.origin(),
                outcome: candidate.said.clone()?,
            })
        })
        .collect()
}

fn nobody(run: &Run<'_>, candidates: &[Candidate<'_>]) -> ArtifactError {
    let all_corrupt = !run.corrupt.is_empty() && candidates.iter().all(|one| !one.absent);
    let corrupt = run.corrupt.clone();
    let hash = *run.hash;
    if all_corrupt {
        return ArtifactError::Corrupt { hash, corrupt };
    }
    ArtifactError::Gone {
        hash,
        tried: tried(candidates),
        corrupt,
    }
}

fn unreachable(run: &Run<'_>, candidates: &[Candidate<'_>]) -> ArtifactError {
    ArtifactError::Unreachable {
        hash: *run.hash,
        length_bytes: run.length_bytes,
        got_bytes: run.received_bytes(),
        tried: tried(candidates),
        corrupt: run.corrupt.clone(),
    }
}
