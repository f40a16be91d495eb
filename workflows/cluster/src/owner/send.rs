//! Handing out.

use std::sync::Arc;

use engine_base::{Code, ContentHash};
use flow_executor::FarCall;
use flow_store::cluster::OutJob;

use super::Shared;
use super::state::{Out, State};
use crate::job::JobId;
use crate::lease::{Failure, Lease};
use crate::transport::{
    CallBody, CallText, ClusterError, FileAt, HolderText, JobMessage, MOST_BYTES, job_subject,
};

/// Holders named in a message, besides the owner.
const HOLDERS_MOST: usize = 8;

/// A lease on its way.
pub(super) struct Parcel {
    lease: Lease,
    call: FarCall,
    holders: Vec<HolderText>,
}

impl Shared {
    /// Give idle workers what there is for them.
    pub(super) fn assign(self: &Arc<Self>, state: &mut State) {
        if state.paused || self.over.is_cancelled() || !state.was_reached {
            return;
        }
        let now = self.now();
        state.hold_back(now);
        let workers: Vec<_> = state.cards.keys().cloned().collect();
        loop {
            let mut given = false;
            for worker in &workers {
                if !state.has_room(worker, now) {
                    continue;
                }
                let Some(lease) = state.dispatcher.next_job(worker, now) else {
                    continue;
                };
                given = true;
                tracing::info!(
                    key = %lease.key, lease = lease.id.0, worker = %worker,
                    delivery = lease.delivery, duplicate = lease.duplicate, "handed out"
                );
                let waiting = state.calls.get(&lease.job);
                let Some(call) = waiting.map(|waiting| waiting.call.clone()) else {
                    let effects = state.dispatcher.cancel(lease.job, now);
                    self.carry_out(state, &effects);
                    continue;
                };
                let others = state
                    .cards
                    .values()
                    .filter(|card| card.advert.worker != *worker);
                let others = others.filter_map(crate::transport::Card::holder);
                let mut holders = vec![HolderText::from(&self.own)];
                holders.extend(
                    others
                        .take(HOLDERS_MOST)
                        .map(|holder| HolderText::from(&holder)),
                );
                let out = Out {
                    lease: lease.clone(),
                    subject: job_subject(worker, &lease.key, lease.id),
                    message: Vec::new(),
                    given: now,
                    seen: None,
                    arrived: false,
                    place: None,
                    at_work: None,
                };
                state.out.insert(lease.id, out);
                let parcel = Parcel {
                    lease,
                    call,
                    holders,
                };
                let shared = Arc::clone(self);
                tokio::spawn(async move { shared.send(parcel).await });
            }
            if !given {
                return;
            }
        }
    }

    /// A job whose lease an earlier start of this owner gave is adopted, if its worker is there.
    pub(super) fn adopt(self: &Arc<Self>, state: &mut State, id: JobId, call: &FarCall) {
        let Some((earlier, job)) = state.earlier_lease(&call.key) else {
            return;
        };
        let (subject, message) = (job.subject.clone(), job.message.clone());
        state.earlier.remove(&call.key);
        let now = self.now();
        let lease = Lease { job: id, ..earlier };
        if state.dispatcher.adopt(&lease, now) {
            let out = Out {
                lease: lease.clone(),
                subject,
                message,
                given: now,
                seen: None,
                arrived: false,
                place: None,
                at_work: None,
            };
            state.out.insert(lease.id, out);
        }
    }

    async fn send(self: Arc<Self>, parcel: Parcel) {
        let lease = parcel.lease.clone();
        match self.publish(parcel).await {
            Ok(None) => {}
            Ok(Some(place)) => {
                let still_out = match self.lock().out.get_mut(&lease.id) {
                    Some(out) => {
                        out.place = Some(place);
                        true
                    }
                    None => false,
                };
                if !still_out {
                    self.withdraw(&lease).await;
                }
            }
            Err(
                error @ (ClusterError::TooLarge { .. }
                | ClusterError::System { .. }
                | ClusterError::File { .. }
                | ClusterError::Store(_)),
            ) => {
                let failure = Failure::Node {
                    code: Code::Refused,
                    text: error.to_string(),
                };
                {
                    let mut state = self.lock();
                    let effects = state.dispatcher.failed(lease.id, failure, self.now());
                    state.out.remove(&lease.id);
                    self.carry_out(&mut state, &effects);
                }
                self.withdraw(&lease).await;
            }
            // The watchdog publishes it again, or the lease is lost.
            Err(error) if self.lock().out.contains_key(&lease.id) => {
                tracing::warn!("{error}; it is sent again");
            }
            // It ended meanwhile, and may have been published all the same.
            Err(_) => self.withdraw(&lease).await,
        }
    }

    /// A lease ended while its message was under way: nobody is to begin it.
    async fn withdraw(&self, lease: &Lease) {
        self.stop(&lease.worker, lease.id).await;
        let subject = job_subject(&lease.worker, &lease.key, lease.id);
        self.take_back(subject).await;
        self.forget_row(lease).await;
    }

    /// Gives its place in the stream; none when the lease ended before it was published.
    async fn publish(self: &Arc<Self>, parcel: Parcel) -> Result<Option<u64>, ClusterError> {
        let Parcel {
            lease,
            call,
            holders,
        } = parcel;
        let unsayable = |why: String| ClusterError::System {
            what: "describe a job",
            why,
        };
        let text = CallText::of(&call).map_err(unsayable)?;
        let json = serde_json::to_vec(&text).unwrap_or_default();
        let body = if json.len() > MOST_BYTES {
            CallBody::File(self.keep_text(json).await?)
        } else {
            CallBody::Here(text)
        };
        let message = JobMessage {
            owner: self.id.clone(),
            lease: lease.clone(),
            call: body,
            holders,
        };
        let message = serde_json::to_vec(&message).unwrap_or_default();
        let subject = job_subject(&lease.worker, &lease.key, lease.id);
        // Into the database and the stream at once. Should only the stream have it when we are
        // killed, its result is taken in by its key at the next start.
        let row = OutJob {
            key: lease.key,
            node: call.node,
            lease: lease.id.0,
            worker: lease.worker.to_string(),
            subject: subject.clone(),
            message: message.clone(),
        };
        let db = self.db.clone();
        let kept = tokio::task::spawn_blocking(move || db.put_job(row));
        let still_out = match self.lock().out.get_mut(&lease.id) {
            Some(out) => {
                out.message.clone_from(&message);
                true
            }
            None => false,
        };
        let kept = async {
            let kept = kept.await;
            kept.map_err(|error| ClusterError::stream("keep a job", &error))?
                .map_err(ClusterError::from)
        };
        if !still_out {
            kept.await?;
            self.forget_row(&lease).await;
            return Ok(None);
        }
        let sent = self.publish_again(&lease, subject, message);
        let (kept, sent) = tokio::join!(kept, sent);
        kept?;
        Ok(Some(sent?))
    }

    /// Publish a lease's message. Its id keeps it from being there twice.
    pub(super) async fn publish_again(
        &self,
        lease: &Lease,
        subject: String,
        message: Vec<u8>,
    ) -> Result<u64, ClusterError> {
        let id = format!("{}.{}", lease.key.to_hex(), lease.id);
        self.link.publish("a job", subject, &id, message).await
    }

    /// A description that is too long for a message, as a file of our store.
    async fn keep_text(self: &Arc<Self>, json: Vec<u8>) -> Result<FileAt, ClusterError> {
        let shared = Arc::clone(self);
        let kept = tokio::task::spawn_blocking(move || {
            let content = ContentHash::of(&json);
            let bytes = json.len() as u64;
            let path = shared.store.temp("json")?;
            std::fs::write(&path, &json)
                .map_err(|error| ClusterError::file("write a job", &path, &error))?;
            shared.store.adopt(&path, "application/json")?;
            Ok(FileAt { content, bytes })
        });
        let kept = kept.await;
        kept.map_err(|error| ClusterError::stream("keep a job", &error))?
    }
}
