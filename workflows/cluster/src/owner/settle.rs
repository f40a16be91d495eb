//! Ends of attempts and of jobs.

use std::sync::Arc;

use engine_base::{CancelToken, Code};
use flow_executor::FarMade;
use flow_graph::NodeError;
use flow_store::StoredValue;

use super::Shared;
use super::state::State;
use crate::artifacts::{ArtifactError, Fetched, Holder, Origin};
use crate::cost::CostRow;
use crate::dispatch::{DoneOutcome, Effects, JobState};
use crate::lease::{Failure, Lease, LeaseId};
use crate::transport::{Outcome, ResultMessage, Stop, stop_subject};

/// A failure as the node's.
fn node_error(failure: &Failure) -> NodeError {
    match failure {
        Failure::Node { code, text } => NodeError::new(*code, text.clone()),
        Failure::MaxDeliveries { last, .. } => {
            NodeError::new(node_error(last).code, failure.to_string())
        }
        Failure::OutOfMemory { .. } => NodeError::new(Code::OutOfMemory, failure.to_string()),
        Failure::DiskFull { .. } => NodeError::new(Code::DiskFull, failure.to_string()),
        Failure::Corrupt { .. } | Failure::WrongModel { .. } => {
            NodeError::new(Code::Corrupt, failure.to_string())
        }
        Failure::InputGone { .. } => NodeError::new(Code::NotFound, failure.to_string()),
        other => NodeError::new(Code::Io, other.to_string()),
    }
}

/// Name under which a measurement is kept.
fn kind(row: &CostRow) -> String {
    let model = row.model.map_or_else(String::new, |model| model.to_hex());
    format!("{}/{model}/{}/{}", row.node_type, row.class, row.size_class)
}

impl Shared {
    /// Do what the dispatcher asks for after an event.
    pub(super) fn carry_out(self: &Arc<Self>, state: &mut State, effects: &Effects) {
        for lease in &effects.stop {
            self.end_lease(state, *lease, true);
        }
        let measured: Vec<_> = effects
            .measured
            .iter()
            .filter_map(|row| Some((kind(row), serde_json::to_value(row).ok()?)))
            .collect();
        if !measured.is_empty() {
            // Not here: everybody waits for the state that the caller has locked.
            let db = self.db.clone();
            tokio::task::spawn_blocking(move || {
                for (kind, value) in measured {
                    if let Err(error) = db.keep_cost(&kind, &value) {
                        tracing::debug!(%error, "a measurement was not kept");
                    }
                }
            });
        }
        for job in &effects.ended {
            let end = match state.dispatcher.state(*job) {
                Some(JobState::Failed { reason }) => Err(node_error(&reason)),
                Some(JobState::Cancelled) => Err(NodeError::new(Code::Cancelled, "cancelled")),
                _ => continue,
            };
            if let Some(waiting) = state.calls.get_mut(job) {
                waiting.end.get_or_insert(end);
            }
        }
        self.changed.notify_all();
    }

    /// Forget a lease: its message leaves the stream, and its worker is told when `stop` says so.
    pub(super) fn end_lease(self: &Arc<Self>, state: &mut State, lease: LeaseId, stop: bool) {
        let Some(out) = state.out.remove(&lease) else {
            return;
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            if stop {
                shared.stop(&out.lease.worker, lease).await;
            }
            // Who told of an end acknowledges the message; what was not published yet is looked
            // after by whoever publishes it.
            if !out.arrived && !out.message.is_empty() {
                shared.take_back(out.subject.clone()).await;
            }
            shared.forget_row(&out.lease).await;
        });
    }

    /// Take a lease's note out of the database, unless its job is out under another one.
    pub(super) async fn forget_row(&self, lease: &Lease) {
        let (db, key, id) = (self.db.clone(), lease.key, lease.id.0);
        let removed = tokio::task::spawn_blocking(move || db.remove_lease(key, id)).await;
        if let Ok(Err(error)) = removed {
            tracing::debug!(%error, "a job that ended is still noted");
        }
    }

    /// Ask a worker to stop.
    pub(super) async fn stop(&self, worker: &crate::names::WorkerId, lease: LeaseId) {
        let stop = Stop {
            lease,
            owner: self.id.clone(),
        };
        self.link.tell(stop_subject(worker), &stop).await;
    }

    /// Take messages with this subject out of the stream of jobs, if they are still there. By
    /// subject, not by place: the stream may be another one than that which they were put into.
    pub(super) async fn take_back(&self, subject: String) {
        if let Ok(stream) = self
            .link
            .streams
            .get_stream_no_info(crate::transport::JOBS)
            .await
        {
            // Acknowledged ones are gone already.
            drop(stream.purge().filter(subject).await);
        }
    }

    /// A result has come: fetch what it made, tell the dispatcher, wake the call. So it is with
    /// results of leases that were lost, or given by an earlier start: what is finished counts,
    /// and whoever was handed the same since is stopped.
    pub(super) async fn take_in(self: &Arc<Self>, result: &ResultMessage) {
        let lease = result.lease.id;
        let known = {
            let mut state = self.lock();
            match state.out.get_mut(&lease) {
                Some(out) if out.arrived => return,
                Some(out) => {
                    out.arrived = true;
                    if matches!(result.outcome, Outcome::Done { .. }) {
                        // Its maker goes on while we fetch.
                        state.dispatcher.free_device(lease);
                        self.assign(&mut state);
                    }
                    true
                }
                None => false,
            }
        };
        if let Outcome::Failed { failure } = &result.outcome {
            if known {
                self.attempt_failed(lease, failure.clone());
            }
            return;
        }
        let fetched = self.fetch_outputs(result).await;
        let now = self.now();
        match fetched {
            Ok((made, files)) if known => {
                let Outcome::Done { done, .. } = &result.outcome else {
                    return;
                };
                for worker in liars(files.iter().flat_map(|file| &file.corrupt)) {
                    self.distrust(&worker, result);
                }
                let (key, worker) = (result.lease.key, &result.lease.worker);
                tracing::info!(%key, lease = lease.0, %worker, reused = made.reused, "taken in");
                let mut state = self.lock();
                let job = state.out.get(&lease).map(|out| out.lease.job);
                let (outcome, effects) = state.dispatcher.job_done(lease, done, now);
                if outcome != DoneOutcome::Refused
                    && let Some(waiting) = job.and_then(|job| state.calls.get_mut(&job))
                {
                    waiting.files = files;
                    waiting.end.get_or_insert(Ok(made));
                }
                self.end_lease(&mut state, lease, false);
                self.carry_out(&mut state, &effects);
                self.assign(&mut state);
            }
            Ok((made, files)) => {
                let (key, worker) = (result.lease.key, &result.lease.worker);
                tracing::info!(%key, lease = lease.0, %worker, reused = made.reused, "came late");
                if self.take_late(result, &made, &files) {
                    return;
                }
                // Nobody waits for it now: somebody may later.
                let store = self.store.clone();
                let commit = result.to_commit(made.clone());
                let kept = tokio::task::spawn_blocking(move || store.commit(commit)).await;
                self.lock().earlier.remove(&key);
                // Who began to wait meanwhile did not find it in the store.
                self.take_late(result, &made, &files);
                if let Ok(Err(error)) = kept {
                    tracing::warn!("a late result was not kept: {error}");
                }
            }
            Err(failure) if known => self.attempt_failed(lease, failure),
            Err(failure) => tracing::debug!("a late result was not fetched: {failure}"),
        }
    }

    /// The calls that wait for this result, under whatever lease, have it. Says whether that
    /// settles it: somebody had it, or nobody is to have it for who made it.
    fn take_late(
        self: &Arc<Self>,
        result: &ResultMessage,
        made: &FarMade,
        files: &[Fetched],
    ) -> bool {
        let Outcome::Done { done, .. } = &result.outcome else {
            return false;
        };
        let mut state = self.lock();
        if state.dispatcher.is_quarantined(&result.lease.worker) {
            return true;
        }
        let now = self.now();
        let (_outcome, effects) = state.dispatcher.job_done(result.lease.id, done, now);
        self.carry_out(&mut state, &effects);
        let waiting: Vec<_> = state
            .calls
            .iter()
            .filter(|(_, waiting)| waiting.call.key == result.lease.key && waiting.end.is_none())
            .map(|(job, _)| *job)
            .collect();
        for job in &waiting {
            let effects = state.dispatcher.found(*job, &done.outputs, now);
            if let Some(waiting) = state.calls.get_mut(job) {
                waiting.files = files.to_vec();
                waiting.end = Some(Ok(made.clone()));
            }
            self.carry_out(&mut state, &effects);
        }
        self.assign(&mut state);
        !waiting.is_empty()
    }

    /// A worker's bytes are not what they are said to be.
    fn distrust(self: &Arc<Self>, worker: &crate::names::WorkerId, result: &ResultMessage) {
        let Some(hash) = result.inputs.first().copied() else {
            return;
        };
        let failure = Failure::Corrupt {
            worker: worker.clone(),
            expected: hash,
            got: hash,
        };
        let mut state = self.lock();
        let effects = state.dispatcher.distrust(worker, &failure, self.now());
        self.carry_out(&mut state, &effects);
    }

    fn attempt_failed(self: &Arc<Self>, lease: LeaseId, failure: Failure) {
        tracing::warn!("an attempt failed: {failure}");
        let mut state = self.lock();
        let now = self.now();
        let holder = state.out.get(&lease).map(|out| out.lease.worker.clone());
        // The one who lied is not always the one who was at work.
        let failure = match failure {
            Failure::Corrupt { ref worker, .. } if Some(worker) != holder.as_ref() => {
                let effects = state.dispatcher.distrust(worker, &failure, now);
                self.carry_out(&mut state, &effects);
                Failure::Node {
                    code: Code::Io,
                    text: failure.to_string(),
                }
            }
            other => other,
        };
        let effects = state.dispatcher.failed(lease, failure, now);
        self.end_lease(&mut state, lease, false);
        self.carry_out(&mut state, &effects);
        self.assign(&mut state);
    }

    /// Bring the files of a result into our store, verified.
    async fn fetch_outputs(
        self: &Arc<Self>,
        result: &ResultMessage,
    ) -> Result<(FarMade, Vec<Fetched>), Failure> {
        let damaged = |text: String| Failure::Node {
            code: Code::Io,
            text: format!("cannot read a result: {text}"),
        };
        let made = result.made().map_err(damaged)?;
        let made = made.ok_or_else(|| damaged("it is none".to_owned()))?;
        let maker = &result.lease.worker;
        let holders: Vec<Holder> = {
            let state = self.lock();
            // Who made it first.
            let own = state.cards.get(maker);
            let others = state
                .cards
                .values()
                .filter(|card| card.advert.worker != *maker);
            own.into_iter()
                .chain(others)
                .filter_map(crate::transport::Card::holder)
                .collect()
        };
        let mut files = Vec::new();
        let values = made.ports.iter().flat_map(|port| &port.elements);
        let blobs: Vec<_> = values
            .filter_map(|value| match value {
                StoredValue::Blob(blob) => Some((blob.hash, blob.bytes)),
                StoredValue::Small(_) | StoredValue::Blocked(_) => None,
            })
            .collect();
        for (hash, bytes) in blobs {
            let cancel: CancelToken = self.over.child();
            let fetched = self.artifacts.fetch(&hash, bytes, &holders, &cancel).await;
            files.push(fetched.map_err(|error| {
                match error {
                    // The maker went away with it.
                    ArtifactError::Gone { .. } | ArtifactError::Unreachable { .. }
                        if error.corrupt().is_empty() =>
                    {
                        Failure::WorkerGone {
                            worker: maker.clone(),
                        }
                    }
                    ArtifactError::Gone {
                        hash, ref corrupt, ..
                    }
                    | ArtifactError::Unreachable {
                        hash, ref corrupt, ..
                    } => corrupt
                        .first()
                        .map_or(Failure::InputGone { content: hash }, |one| {
                            Failure::Corrupt {
                                worker: maker.clone(),
                                expected: hash,
                                got: one.got,
                            }
                        }),
                    other => other.failure(),
                }
            })?);
        }
        Ok((made, files))
    }
}

/// Workers among those who gave other bytes.
fn liars<'a>(
    corrupt: impl Iterator<Item = &'a crate::artifacts::CorruptHolder>,
) -> Vec<crate::names::WorkerId> {
    corrupt
        .filter_map(|one| match &one.from {
            Origin::Holder(worker) => Some(worker.clone()),
            Origin::Shared => None,
        })
        .collect()
}
