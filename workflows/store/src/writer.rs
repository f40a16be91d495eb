//! The one thread that writes: everything waiting is committed in one transaction.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use engine_base::{Clock, ContentHash};

use crate::db::{Access, Db, int, placeholders, runs, sql};
use crate::error::{IoContext as _, StoreError};
use crate::faults::Faults;
use crate::files::BlobFolder;
use crate::values::{Committed, EncodedPorts, NewResult};

/// Most commits of one transaction.
const BATCH: usize = 512;

/// Waiting commits at which `submit` waits.
const QUEUE: usize = 1024;

/// Time without work after which notes of use are written.
const IDLE: Duration = Duration::from_secs(2);

/// A result on its way to the database.
pub(crate) struct Incoming {
    pub(crate) result: NewResult,
    pub(crate) encoded: EncodedPorts,
    pub(crate) reply: SyncSender<Result<Committed, StoreError>>,
}

type Job = Box<dyn FnOnce(&mut Writer) + Send>;

enum Message {
    Commit(Box<Incoming>),
    Hold {
        hashes: Vec<ContentHash>,
        reason: Hold,
        reply: SyncSender<Result<(), StoreError>>,
    },
    Job(Job),
}

/// Until when files are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Until a guard is dropped.
    Guard,
    /// Until a result with the file is committed.
    Adopted,
}

/// Notes that need no answer; they are written with the next transaction.
#[derive(Default)]
pub(crate) struct Notes {
    inner: Mutex<NotesInner>,
}

#[derive(Default)]
struct NotesInner {
    /// Commit number of each result used, to the order of its last use.
    used: HashMap<u64, u64>,
    uses: u64,
    released: Vec<ContentHash>,
}

impl Notes {
    fn lock(&self) -> std::sync::MutexGuard<'_, NotesInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn used(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut inner = self.lock();
        for number in numbers {
            inner.uses += 1;
            let order = inner.uses;
            inner.used.insert(number, order);
        }
    }

    pub(crate) fn released(&self, hashes: &[ContentHash]) {
        self.lock().released.extend_from_slice(hashes);
    }

    /// Results used since last time, least recently used first.
    fn take_used(&self) -> Vec<u64> {
        let used = std::mem::take(&mut self.lock().used);
        let ordered: BTreeMap<u64, u64> = used
            .into_iter()
            .map(|(number, order)| (order, number))
            .collect();
        ordered.into_values().collect()
    }

    fn take_released(&self) -> Vec<ContentHash> {
        std::mem::take(&mut self.lock().released)
    }
}

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) db: Db,
    pub(crate) folder: Arc<BlobFolder>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) faults: Faults,
    /// Guards by content, and contents adopted but not committed yet. A row in `holds` stands for
    /// each content in either.
    guards: HashMap<ContentHash, u32>,
    adopted: HashSet<ContentHash>,
}

/// The sending side: owned by the store, ends the thread when dropped.
pub(crate) struct WriterThread {
    inbox: Option<SyncSender<Message>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WriterThread {
    pub(crate) fn start(
        path: &Path,
        folder: Arc<BlobFolder>,
        notes: Arc<Notes>,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Result<Self, StoreError> {
        let (inbox, messages) = sync_channel(QUEUE);
        let (ready, opened) = sync_channel(1);
        let owned = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || match Db::open(&owned, Access::Write) {
                Ok(db) => {
                    let writer = Writer {
                        db,
                        folder,
                        notes,
                        clock,
                        faults,
                        guards: HashMap::new(),
                        adopted: HashSet::new(),
                    };
                    if ready.send(Ok(())).is_ok() {
                        writer.serve(&messages);
                    }
                }
                Err(error) => drop(ready.send(Err(error))),
            })
            .during("start the store's writer", path)?;
        opened
            .recv()
            .map_err(|_ended_early| StoreError::Closed)
            .flatten()?;
        Ok(Self {
            inbox: Some(inbox),
            thread: Mutex::new(Some(thread)),
        })
    }

    fn send(&self, message: Message) -> Result<(), StoreError> {
        self.inbox
            .as_ref()
            .and_then(|inbox| inbox.send(message).ok())
            .ok_or(StoreError::Closed)
    }

    pub(crate) fn commit(&self, incoming: Incoming) -> Result<(), StoreError> {
        self.send(Message::Commit(Box::new(incoming)))
    }

    pub(crate) fn hold(&self, hashes: Vec<ContentHash>, reason: Hold) -> Result<(), StoreError> {
        let (reply, answer) = sync_channel(1);
        self.send(Message::Hold {
            hashes,
            reason,
            reply,
        })?;
        answer.recv().map_err(|_ended| StoreError::Closed).flatten()
    }

    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = sync_channel(1);
        self.send(Message::Job(Box::new(move |writer| {
            drop(reply.send(work(writer)));
        })))?;
        answer.recv().map_err(|_ended| StoreError::Closed).flatten()
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.inbox = None;
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer panicked");
        }
    }
}

/// One `Message::Hold`.
struct HoldAsked {
    hashes: Vec<ContentHash>,
    reason: Hold,
    reply: SyncSender<Result<(), StoreError>>,
}

impl Writer {
    fn serve(mut self, messages: &Receiver<Message>) {
        loop {
            let first = match messages.recv_timeout(IDLE) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.write_notes_when_idle();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let (mut commits, mut holds, mut job) = (Vec::new(), Vec::new(), None);
            let mut next = Some(first);
            while let Some(message) = next.take() {
                match message {
                    Message::Commit(incoming) => commits.push(*incoming),
                    Message::Hold {
                        hashes,
                        reason,
                        reply,
                    } => holds.push(HoldAsked {
                        hashes,
                        reason,
                        reply,
                    }),
                    Message::Job(work) => {
                        job = Some(work);
                        break;
                    }
                }
                if commits.len() + holds.len() < BATCH {
                    next = messages.try_recv().ok();
                }
            }
            self.batch(commits, holds);
            if let Some(job) = job {
                job(&mut self);
            }
        }
        self.end();
    }

    fn batch(&mut self, commits: Vec<Incoming>, holds: Vec<HoldAsked>) {
        if commits.is_empty() && holds.is_empty() {
            return;
        }
        if !commits.is_empty() {
            self.faults.pass("commit.before_transaction");
        }
        let durable = !commits.is_empty();
        // A file just renamed is held until its commit; with both in one batch the hold comes
        // first, so that the commit's release is the last word.
        let mut held = Vec::new();
        for hold in &holds {
            held.extend_from_slice(&hold.hashes);
        }
        let (replies, results): (Vec<_>, Vec<_>) = commits
            .into_iter()
            .map(|incoming| (incoming.reply, (incoming.result, incoming.encoded)))
            .unzip();
        let released = self.take_releasable();
        let clock = Arc::clone(&self.clock);
        let folder = Arc::clone(&self.folder);
        let faults = self.faults.clone();
        let used = self.notes.take_used();
        let taken = self.taken_by(&results);
        let is_free =
            |hash: &&ContentHash| !self.guards.contains_key(*hash) && !held.contains(hash);
        let freed: Vec<ContentHash> = taken.iter().filter(is_free).copied().collect();
        let outcome = self.db.transaction("commit results", durable, |db| {
            write_used(db, &used)?;
            let session = folder.session().name();
            unhold(db, session, &released)?;
            hold_rows(db, session, &held)?;
            let outcomes = if results.is_empty() {
                Vec::new()
            } else {
                crate::commit::commit(db, &folder, clock.unix_millis(), results)?
            };
            unhold(db, session, &freed)?;
            if durable {
                faults.pass("commit.in_transaction");
            }
            Ok(outcomes)
        });
        match outcome {
            Ok(outcomes) => {
                for hash in &taken {
                    self.adopted.remove(hash);
                }
                for hold in holds {
                    for hash in hold.hashes {
                        match hold.reason {
                            Hold::Guard => *self.guards.entry(hash).or_default() += 1,
                            Hold::Adopted => {
                                self.adopted.insert(hash);
                            }
                        }
                    }
                    drop(hold.reply.send(Ok(())));
                }
                if durable {
                    self.faults.pass("commit.after_transaction");
                }
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    if let Ok(Committed::Kept(result)) = &outcome {
                        self.notes.used([result.commit_number]);
                    }
                    // Nobody waits for it when the `PendingCommit` was dropped.
                    drop(reply.send(outcome));
                }
            }
            Err(error) => {
                self.notes.used(used);
                for reply in replies {
                    drop(reply.send(Err(error.clone())));
                }
                for hold in holds {
                    drop(hold.reply.send(Err(error.clone())));
                }
            }
        }
    }

    /// Adopted contents that the results take over. From then on only guards hold them.
    fn taken_by(&self, results: &[(NewResult, EncodedPorts)]) -> Vec<ContentHash> {
        if self.adopted.is_empty() {
            return Vec::new();
        }
        let mut taken: Vec<ContentHash> = results
            .iter()
            .flat_map(|(result, _)| crate::values::blobs_of(&result.ports))
            .map(|blob| blob.hash)
            .filter(|hash| self.adopted.contains(hash))
            .collect();
        taken.sort_unstable();
        taken.dedup();
        taken
    }

    /// Takes dropped guards off the books; gives the contents that nothing holds any more.
    fn take_releasable(&mut self) -> Vec<ContentHash> {
        let mut free = Vec::new();
        for hash in self.notes.take_released() {
            let left = match self.guards.get_mut(&hash) {
                Some(count) => {
                    *count -= 1;
                    *count
                }
                None => continue,
            };
            if left == 0 {
                self.guards.remove(&hash);
                if !self.adopted.contains(&hash) {
                    free.push(hash);
                }
            }
        }
        free
    }

    /// Write what needs no answer, in a transaction of its own.
    pub(crate) fn write_notes(&mut self) -> Result<(), StoreError> {
        let released = self.take_releasable();
        let used = self.notes.take_used();
        if released.is_empty() && used.is_empty() {
            return Ok(());
        }
        let folder = Arc::clone(&self.folder);
        self.db.transaction("note what was used", false, |db| {
            write_used(db, &used)?;
            unhold(db, folder.session().name(), &released)
        })
    }

    fn write_notes_when_idle(&mut self) {
        if let Err(error) = self.write_notes() {
            tracing::warn!(%error, "notes of use were not written; pruning may take other results");
        }
    }

    fn end(mut self) {
        self.write_notes_when_idle();
        let session = self.folder.session().name().to_owned();
        let swept = self.db.transaction("end the session", false, |db| {
            db.execute(
                "end the session",
                sqlx::query("DELETE FROM holds WHERE session = ?").bind(session),
            )
        });
        if let Err(error) = swept.and_then(|_| self.db.close()) {
            tracing::warn!(%error, "closing failed; everything committed is in the log");
        }
    }
}

/// Give results their place in the order of use.
fn write_used(db: &mut Db, used: &[u64]) -> Result<(), StoreError> {
    const WHAT: &str = "note what was used";
    if used.is_empty() {
        return Ok(());
    }
    let row = db.row(
        WHAT,
        sqlx::query("UPDATE state SET uses = uses + ? RETURNING uses").bind(int(used.len() as u64)),
    )?;
    let end = row.map_or(Ok(0), |row| crate::db::count(&row, 0))?;
    let mut place = end.saturating_sub(used.len() as u64);
    for run in runs(used) {
        let mut query = sql(format!(
            "WITH used (number, place) AS (VALUES {}) UPDATE results SET last_used = used.place \
             FROM used WHERE results.number = used.number",
            placeholders(run.len(), 2)
        ));
        for number in run {
            place += 1;
            query = query.bind(int(*number)).bind(int(place));
        }
        db.execute(WHAT, query)?;
    }
    Ok(())
}

fn hold_rows(db: &mut Db, session: &str, hashes: &[ContentHash]) -> Result<(), StoreError> {
    for run in runs(hashes) {
        let mut query = sql(format!(
            "INSERT OR IGNORE INTO holds (session, hash) VALUES {}",
            placeholders(run.len(), 2)
        ));
        for hash in run {
            query = query
                .bind(session.to_owned())
                .bind(hash.as_bytes().to_vec());
        }
        db.execute("hold files", query)?;
    }
    Ok(())
}

fn unhold(db: &mut Db, session: &str, hashes: &[ContentHash]) -> Result<(), StoreError> {
    for run in runs(hashes) {
        let mut query = sql(format!(
            "DELETE FROM holds WHERE session = ? AND hash IN ({})",
            vec!["?"; run.len()].join(", ")
        ))
        .bind(session.to_owned());
        for hash in run {
            query = query.bind(hash.as_bytes().to_vec());
        }
        db.execute("release files", query)?;
    }
    Ok(())
}
