//! What an owner looks after: leases, workers that went silent, streams that were deleted,
//! consumers that stalled, its own claim on the cluster.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Shared;
use super::state::{Out, Sign};
use crate::names::WorkerId;
use crate::transport::{
    BUCKET, CARDS, Card, ClusterError, JOBS, Settings, consumer_of_worker, ensure_since, job_filter,
};
use crate::version::PROTOCOL;

/// Between looks.
const LOOK: Duration = Duration::from_millis(250);

/// How long after its end a result may be on its way before its worker is asked for it.
const UNHEARD: Duration = Duration::from_secs(1);

/// Between looks at the server's streams and settings.
const SERVER_EVERY: Duration = Duration::from_millis(1500);

/// Who hands out work.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claim {
    owner: String,
    run: String,
    host: String,
    unix_millis: u64,
}

/// Claim the cluster: one owner at a time.
pub(super) async fn claim(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let there: Option<Claim> = shared.link.get(BUCKET, "owner").await?;
    if let Some(there) = there
        && there.owner != shared.id
    {
        // Clocks of two machines may differ: what counts is whether the claim is renewed.
        for _look in 0..8 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let again: Option<Claim> = shared.link.get(BUCKET, "owner").await?;
            match again {
                None => break,
                Some(again) if again.unix_millis != there.unix_millis => {
                    return Err(ClusterError::Busy {
                        owner: format!("{} on {}", again.run, again.host),
                    });
                }
                Some(_) => {}
            }
        }
    }
    renew(shared).await
}

async fn renew(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let host = rustix::system::uname();
    let claim = Claim {
        owner: shared.id.clone(),
        run: shared.run.to_string(),
        host: host.nodename().to_string_lossy().into_owned(),
        unix_millis: shared.clock.unix_millis(),
    };
    shared.link.put(BUCKET, "owner", &claim).await
}

/// End: stop what runs, give up the claim.
pub(super) async fn give_up(shared: &Arc<Shared>) {
    let out: Vec<Out> = shared.lock().out.values().cloned().collect();
    for out in out.iter().filter(|out| !out.arrived) {
        shared.stop(&out.lease.worker, out.lease.id).await;
    }
    if shared.link.is_connected() {
        let within = Duration::from_secs(2);
        let removed = shared.link.remove(BUCKET, "owner");
        drop(tokio::time::timeout(within, removed).await);
        drop(tokio::time::timeout(within, shared.link.client.flush()).await);
    }
}

/// Read a worker's card and tell the dispatcher of it.
pub(super) async fn read_card(shared: &Arc<Shared>, worker: &WorkerId) -> Result<(), ClusterError> {
    let card: Option<Card> = shared.link.get(CARDS, worker.as_str()).await?;
    if let Some(card) = card {
        take_card(shared, card);
    }
    Ok(())
}

/// Read the cards of all workers that were there lately.
pub(super) async fn read_cards(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    for (_, card) in shared.link.all::<Card>(CARDS).await? {
        let age = shared.clock.unix_millis().abs_diff(card.unix_millis);
        // Clocks may differ by a little; who is there says so within a second anyway.
        if age < 25_000 {
            take_card(shared, card);
        }
    }
    Ok(())
}

fn take_card(shared: &Arc<Shared>, card: Card) {
    let peer = format!("worker {}", card.advert.worker);
    if let Err(error) = PROTOCOL.common(card.protocol, &peer) {
        tracing::warn!("{error}");
        return;
    }
    let now = shared.now();
    let mut state = shared.lock();
    let worker = card.advert.worker.clone();
    let again = state
        .cards
        .get(&worker)
        .is_some_and(|known| known.advert.start != card.advert.start);
    let effects = state.dispatcher.worker_joined(card.advert.clone(), now);
    state.dispatcher.drain_only(&worker, card.draining);
    if again {
        let gone: Vec<_> = of_worker(state.out.values(), &worker);
        for lease in gone {
            shared.end_lease(&mut state, lease, false);
        }
    }
    // Whoever gives no sign from now on is gone after a lease's time.
    let start = card.advert.start;
    state
        .signs
        .entry(worker.clone())
        .or_insert(Sign { at: now, start });
    state.cards.insert(worker, card);
    shared.carry_out(&mut state, &effects);
    shared.assign(&mut state);
}

fn of_worker<'a>(
    out: impl Iterator<Item = &'a Out>,
    worker: &WorkerId,
) -> Vec<crate::lease::LeaseId> {
    out.filter(|out| out.lease.worker == *worker && !out.arrived)
        .map(|out| out.lease.id)
        .collect()
}

/// Look after everything until the owner ends.
pub(super) async fn tend(shared: Arc<Shared>) {
    let mut looked = shared.now();
    while !shared.over.is_cancelled() {
        tokio::time::sleep(LOOK).await;
        let now = shared.now();
        if now.saturating_sub(looked) > LOOK * 4 {
            // We were held up ourselves: what came meanwhile is not taken in yet, and nobody was
            // silent for that.
            shared.lock().reached_since = now;
        }
        looked = now;
        leases(&shared);
    }
}

/// Look after the server until the owner ends: apart from leases, for a server that is slow to
/// answer must not hold up what is known without it.
pub(super) async fn tend_server(shared: Arc<Shared>) {
    while !shared.over.is_cancelled() {
        tokio::time::sleep(SERVER_EVERY).await;
        if shared.link.is_connected()
            && let Err(error) = server(&shared).await
        {
            tracing::debug!(%error, "the server was not looked after");
        }
    }
}

/// Leases that are lost, workers that are gone, jobs that nobody can take.
fn leases(shared: &Arc<Shared>) {
    let now = shared.now();
    let mut state = shared.lock();
    let reached = shared.link.is_connected();
    if !reached {
        state.was_reached = false;
        return;
    }
    if !state.was_reached {
        state.was_reached = true;
        state.reached_since = now;
    }
    let since = state.reached_since;
    let silent = |at: std::time::Duration| now.saturating_sub(at.max(since)) > shared.lease;
    let gone: Vec<WorkerId> = state
        .signs
        .iter()
        .filter(|(_, sign)| silent(sign.at))
        .map(|(worker, _)| worker.clone())
        .collect();
    for worker in gone {
        tracing::warn!("worker {worker} went away");
        let effects = state.dispatcher.worker_gone(&worker, now);
        for lease in of_worker(state.out.values(), &worker) {
            shared.end_lease(&mut state, lease, true);
        }
        state.signs.remove(&worker);
        state.others.remove(&worker);
        state.cards.remove(&worker);
        shared.carry_out(&mut state, &effects);
        let (shared, subjects) = (Arc::clone(shared), job_filter(&worker));
        // Also what it told the end of and did not acknowledge.
        tokio::spawn(async move { shared.take_back(subjects).await });
    }
    // A worker that is there, was at it and is not any more has told of its end: it is asked to
    // tell again before somebody else begins the same.
    let unheard = state.out.values().filter(|out| {
        let sign = state.signs.get(&out.lease.worker);
        let is_over = |seen: Duration| sign.is_some_and(|sign| sign.at > seen + UNHEARD);
        !out.arrived && out.seen.is_some_and(|seen| is_over(seen.max(since)))
    });
    for lease in unheard.map(|out| out.lease.clone()) {
        let shared = Arc::clone(shared);
        tokio::spawn(async move { shared.stop(&lease.worker, lease.id).await });
    }
    let lost: Vec<_> = state
        .out
        .values()
        .filter(|out| !out.arrived && silent(out.seen.unwrap_or(out.given)))
        .map(|out| out.lease.id)
        .collect();
    for lease in lost {
        tracing::warn!("lease {lease} was lost");
        let effects = state.dispatcher.lease_lost(lease, now);
        shared.end_lease(&mut state, lease, true);
        shared.carry_out(&mut state, &effects);
    }
    // Who was started again before our first look has left its leases behind.
    let restarted: Vec<_> = state
        .signs
        .iter()
        .filter(|(worker, sign)| {
            let card = state.cards.get(worker);
            card.is_some_and(|card| card.advert.start != sign.start)
        })
        .map(|(worker, _)| worker.clone())
        .collect();
    for worker in restarted {
        let shared = Arc::clone(shared);
        tokio::spawn(async move { drop(read_card(&shared, &worker).await) });
    }
    let effects = state.dispatcher.tick(now);
    shared.carry_out(&mut state, &effects);
    shared.assign(&mut state);
}

/// Streams, consumers, settings and the claim.
async fn server(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let since = ensure_since(&shared.link).await?;
    let before = shared.lock().jobs_since;
    if before.is_some_and(|before| before != since) {
        tracing::warn!("the stream of jobs was gone; it is filled again");
        // Places in the old one say nothing of the new one.
        for out in shared.lock().out.values_mut() {
            out.place = None;
        }
        fill_again(shared).await?;
    }
    // Not before it is full: else a failure here would leave it empty.
    shared.lock().jobs_since = Some(since);
    renew(shared).await?;
    if let Some(settings) = shared.link.get::<Settings>(BUCKET, "settings").await? {
        let mut state = shared.lock();
        if state.paused != settings.paused {
            state.paused = settings.paused;
            state.dispatcher.pause(&shared.run, settings.paused);
            shared.assign(&mut state);
        }
    }
    stalled(shared).await
}

/// Publish every message whose job no worker is known to be at.
async fn fill_again(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let out: Vec<Out> = {
        let state = shared.lock();
        let waiting = state
            .out
            .values()
            .filter(|out| out.seen.is_none() && !out.arrived && !out.message.is_empty());
        waiting.cloned().collect()
    };
    for out in out {
        let place = shared
            .publish_again(&out.lease, out.subject.clone(), out.message.clone())
            .await?;
        if let Some(out) = shared.lock().out.get_mut(&out.lease.id) {
            out.place = Some(place);
        }
    }
    Ok(())
}

/// A worker that lives and does not begin what it was sent: its message is missing, or its
/// consumer stalled. The message is published again (the server drops it where it has it), and a
/// consumer that holds back is removed; its worker makes it again.
async fn stalled(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let now = shared.now();
    let patience = (shared.lease / 3).max(Duration::from_secs(1));
    let stuck: Vec<Out> = {
        let state = shared.lock();
        let stuck = state.out.values().filter(|out| {
            let waits = now.saturating_sub(out.given.max(state.reached_since));
            out.seen.is_none() && !out.arrived && !out.message.is_empty() && waits > patience
        });
        stuck.cloned().collect()
    };
    for out in stuck {
        let place = shared
            .publish_again(&out.lease, out.subject.clone(), out.message.clone())
            .await?;
        let missing = {
            let mut state = shared.lock();
            let out = state.out.get_mut(&out.lease.id);
            out.is_some_and(|out| out.place.replace(place) != Some(place))
        };
        if missing {
            continue;
        }
        let name = consumer_of_worker(&out.lease.worker);
        let stream = shared.link.streams.get_stream_no_info(JOBS).await;
        let stream = stream.map_err(|error| ClusterError::stream("look at the queue", &error))?;
        let info = stream.consumer_info(&name).await;
        if info.is_ok_and(|info| info.num_pending > 0 && info.num_waiting > 0) {
            tracing::warn!(
                "the queue of worker {} stalled; it is made again",
                out.lease.worker
            );
            drop(stream.delete_consumer(&name).await);
        }
    }
    Ok(())
}
