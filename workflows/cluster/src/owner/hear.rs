//! What comes from workers and the server.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use engine_base::ProgressEvent;
use futures_util::StreamExt as _;
use serde::Deserialize;

use super::Shared;
use super::state::{Sign, State};
use super::tend::read_card;
use crate::lease::{Failure, LeaseId};
use crate::transport::{
    AtJob, Beat, ClusterError, RESULTS, ResultMessage, beat_subject, consumer_of_owner,
    result_filter,
};

/// Before the server is asked again after a failure.
const AGAIN: Duration = Duration::from_millis(200);

/// How long a quiet queue of results counts as empty.
const QUIET: Duration = Duration::from_millis(500);

/// Results taken in at a time: each may fetch a file.
const AT_A_TIME: usize = 8;

async fn consumer(shared: &Shared) -> Result<Consumer<pull::Config>, ClusterError> {
    let config = pull::Config {
        durable_name: Some(consumer_of_owner(&shared.id)),
        filter_subject: result_filter(&shared.id),
        ack_policy: AckPolicy::Explicit,
        ack_wait: shared.lease.max(Duration::from_secs(10)),
        max_ack_pending: 1000,
        ..pull::Config::default()
    };
    let made = shared
        .link
        .streams
        .create_consumer_on_stream(config, RESULTS);
    let made = made.await;
    made.map_err(|error| ClusterError::stream("take results", &error))
}

/// Take in what came while nobody was there, before anything is handed out.
pub(super) async fn catch_up(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    // What an earlier start of ours had in hand when it was killed would come again only after a
    // while: a new consumer gives it at once. Where there is none yet, nothing is to be removed.
    let name = consumer_of_owner(&shared.id);
    let streams = &shared.link.streams;
    drop(streams.delete_consumer_from_stream(&name, RESULTS).await);
    let consumer = consumer(shared).await?;
    loop {
        let batch = consumer
            .fetch()
            .max_messages(64)
            .expires(QUIET)
            .messages()
            .await;
        let mut batch = batch.map_err(|error| ClusterError::stream("take results", &error))?;
        let mut any = false;
        while let Some(message) = batch.next().await {
            let Ok(message) = message else { break };
            any = true;
            if let Ok(result) = serde_json::from_slice::<ResultMessage>(&message.payload) {
                // Its maker's card says where its files are.
                drop(read_card(shared, &result.lease.worker).await);
                shared.take_in(&result).await;
                let key = result.lease.key;
                shared.lock().earlier.remove(&key);
                let db = shared.db.clone();
                drop(tokio::task::spawn_blocking(move || db.remove_job(key)).await);
            }
            drop(message.ack().await);
        }
        if !any {
            return Ok(());
        }
    }
}

/// Results, as they come.
pub(super) async fn results(shared: Arc<Shared>) {
    while !shared.over.is_cancelled() {
        if let Err(error) = take_results(&shared).await {
            tracing::debug!(%error, "the queue of results is away");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn take_results(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let failed = |error: &dyn std::fmt::Display| ClusterError::stream("take results", error);
    let consumer = consumer(shared).await?;
    let mut messages = consumer
        .stream()
        .max_messages_per_batch(64)
        .expires(Duration::from_secs(10))
        .heartbeat(Duration::from_secs(1))
        .messages()
        .await
        .map_err(|error| failed(&error))?;
    let turns = Arc::new(tokio::sync::Semaphore::new(AT_A_TIME));
    while let Some(message) = messages.next().await {
        let message = message.map_err(|error| failed(&error))?;
        let turn = Arc::clone(&turns).acquire_owned().await;
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let _turn = turn;
            match serde_json::from_slice::<ResultMessage>(&message.payload) {
                Ok(result) => shared.take_in(&result).await,
                Err(error) => tracing::warn!("a result cannot be read and is dropped: {error}"),
            }
            drop(message.ack().await);
        });
    }
    Ok(())
}

/// Signs of life.
pub(super) async fn beats(shared: Arc<Shared>) {
    while !shared.over.is_cancelled() {
        if let Ok(mut messages) = shared.link.client.subscribe(beat_subject("*")).await {
            while let Some(message) = messages.next().await {
                if let Ok(beat) = serde_json::from_slice::<Beat>(&message.payload) {
                    heard(&shared, &beat).await;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn heard(shared: &Arc<Shared>, beat: &Beat) {
    let now = shared.now();
    let is_known = {
        let state = shared.lock();
        let card = state.cards.get(&beat.worker);
        card.is_some_and(|card| card.advert.start == beat.start && card.draining == beat.draining)
    };
    if !is_known {
        // Not waited for: other workers' signs of life come in behind this one.
        let (shared, worker) = (Arc::clone(shared), beat.worker.clone());
        tokio::spawn(async move {
            if let Err(error) = read_card(&shared, &worker).await {
                tracing::debug!(%error, "a worker's card cannot be read");
            }
        });
    }
    for lease in take_sign(shared, beat, now) {
        shared.stop(&beat.worker, lease).await;
    }
}

/// Take in a sign of life; gives the leases that its worker has lost.
fn take_sign(shared: &Arc<Shared>, beat: &Beat, now: Duration) -> Vec<LeaseId> {
    let mut stale = Vec::new();
    let mut state = shared.lock();
    let sign = Sign {
        at: now,
        start: beat.start,
    };
    state.signs.insert(beat.worker.clone(), sign);
    let is_ours =
        |state: &State, at: &AtJob| at.owner == shared.id && state.out.contains_key(&at.lease);
    let others = beat.jobs.iter();
    let others = others.filter(|at| !at.finished && !is_ours(&state, at));
    let others = others.count();
    state.others.insert(beat.worker.clone(), others);
    for at in beat.jobs.iter().filter(|at| at.owner == shared.id) {
        let Some(out) = state.out.get_mut(&at.lease) else {
            // Adopted once its call is asked for again, until its lease runs out.
            if !at.finished && !state.earlier.contains_key(&at.key) {
                stale.push(at.lease);
            }
            continue;
        };
        out.seen = Some(now);
        out.at_work = (!at.finished).then_some(now);
        let job = out.lease.job;
        if at.finished {
            state.dispatcher.free_device(at.lease);
        }
        if at.of > 0 {
            let part = at.step as f64 / at.of as f64;
            // Whether the lease is still good is looked at elsewhere.
            let _is_live = state.dispatcher.progress(at.lease, part, now);
        }
        if at.of > 0
            && let Some(waiting) = state.calls.get_mut(&job)
        {
            waiting.progress = Some(ProgressEvent {
                what: format!("on {}", beat.worker),
                step: at.step,
                of: at.of,
                secs_left: None,
            });
        }
    }
    shared.assign(&mut state);
    drop(state);
    shared.changed.notify_all();
    stale
}

/// What the server says of a message that was delivered too often.
#[derive(Deserialize)]
struct Advisory {
    stream_seq: u64,
}

/// Messages that the server gave up on: their jobs fail with a reason, and they leave the stream.
pub(super) async fn advisories(shared: Arc<Shared>) {
    let subject = format!(
        "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{}.*",
        crate::transport::JOBS
    );
    while !shared.over.is_cancelled() {
        if let Ok(mut messages) = shared.link.client.subscribe(subject.clone()).await {
            while let Some(message) = messages.next().await {
                let Ok(advisory) = serde_json::from_slice::<Advisory>(&message.payload) else {
                    continue;
                };
                let mut state = shared.lock();
                let mut outs = state.out.values();
                let out = outs.find(|out| out.place == Some(advisory.stream_seq));
                let Some(lease) = out.map(|out| out.lease.clone()) else {
                    continue;
                };
                let worker = lease.worker.clone();
                let failure = Failure::LeaseLost { worker };
                let effects = state.dispatcher.failed(lease.id, failure, shared.now());
                shared.end_lease(&mut state, lease.id, true);
                shared.carry_out(&mut state, &effects);
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
