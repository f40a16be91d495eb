//! Streams, buckets, consumers and subjects by name.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::kv;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use engine_base::Key;

use super::connect::Link;
use super::error::ClusterError;
use super::messages::Beat;
use crate::lease::LeaseId;
use crate::names::WorkerId;

/// Stream of jobs on their way to workers.
pub const JOBS: &str = "LONGTAKE_JOBS";
/// Stream of results on their way to owners.
pub const RESULTS: &str = "LONGTAKE_RESULTS";
/// Bucket of workers' cards.
pub const CARDS: &str = "longtake_workers";
/// Bucket of what holds for the whole cluster: settings, who the owner is.
pub const BUCKET: &str = "longtake_cluster";

/// Largest description of a job in a message; larger ones are files.
pub const MOST_BYTES: usize = 256 * 1024;

/// How long a result waits for an owner that is away.
const RESULTS_AGE: Duration = Duration::from_secs(14 * 24 * 3600);

/// What is published twice within this time is taken in once.
const DEDUPE: Duration = Duration::from_secs(600);

/// Where a job's message goes: a subject of its own for each lease, so that it can be taken back
/// by it from whatever stream holds it by then.
pub fn job_subject(worker: &WorkerId, key: &Key, lease: LeaseId) -> String {
    format!("lt.jobs.{worker}.{}-{lease}", key.to_hex())
}

/// All of a worker's jobs.
pub fn job_filter(worker: &WorkerId) -> String {
    format!("lt.jobs.{worker}.*")
}

/// The durable consumer of a worker's jobs.
pub fn consumer_of_worker(worker: &WorkerId) -> String {
    format!("w_{worker}")
}

/// Where a result goes.
pub fn result_subject(owner: &str, lease: LeaseId) -> String {
    format!("lt.results.{owner}.{lease}")
}

/// All results of an owner's jobs.
pub fn result_filter(owner: &str) -> String {
    format!("lt.results.{owner}.*")
}

/// The durable consumer of an owner's results.
pub fn consumer_of_owner(owner: &str) -> String {
    format!("o_{owner}")
}

/// Where a worker gives signs of life; `*` for all of them.
pub fn beat_subject(worker: &str) -> String {
    format!("lt.beat.{worker}")
}

/// Where a worker hears which leases are no more.
pub fn stop_subject(worker: &WorkerId) -> String {
    format!("lt.stop.{worker}")
}

/// Where a worker hears that it shall drain.
pub fn control_subject(worker: &WorkerId) -> String {
    format!("lt.control.{worker}")
}

fn work_queue(name: &str, subjects: &str, max_age: Duration) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![subjects.to_owned()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        duplicate_window: DEDUPE,
        max_age,
        num_replicas: 1,
        ..Config::default()
    }
}

/// Make the streams and buckets that are not there. Says whether the stream of jobs had to be
/// made: then what was in it is lost and has to be published again.
///
/// # Errors
/// [`ClusterError::Stream`].
#[allow(
    clippy::large_stack_frames,
    reason = "the client's futures are large, and this runs once, on a stack of its own"
)]
pub async fn ensure(link: &Link) -> Result<bool, ClusterError> {
    let was_there = link.streams.get_stream(JOBS).await.is_ok();
    make(link).await?;
    Ok(!was_there)
}

/// As [`ensure`]; gives when the stream of jobs was made, in nanoseconds since 1970 by the
/// server's clock. Another moment than before means another stream: what was published is not in
/// it, whoever made it.
#[allow(
    clippy::large_stack_frames,
    reason = "the client's futures are large, and this runs on a task of its own"
)]
pub(crate) async fn ensure_since(link: &Link) -> Result<i128, ClusterError> {
    make(link).await?;
    let jobs = link.streams.get_stream(JOBS).await;
    let jobs = jobs.map_err(|error| ClusterError::stream("look at the queue", &error))?;
    Ok(jobs.cached_info().created.unix_timestamp_nanos())
}

#[allow(
    clippy::large_stack_frames,
    reason = "the client's futures are large, and this runs once, on a stack of its own"
)]
async fn make(link: &Link) -> Result<(), ClusterError> {
    let streams = [
        work_queue(JOBS, "lt.jobs.>", Duration::ZERO),
        work_queue(RESULTS, "lt.results.>", RESULTS_AGE),
    ];
    for config in streams {
        let what = format!("make the stream {}", config.name);
        let made = link.streams.get_or_create_stream(config).await;
        made.map_err(|error| ClusterError::stream(what, &error))?;
    }
    for (bucket, about) in [(CARDS, "workers by name"), (BUCKET, "settings")] {
        if link.streams.get_key_value(bucket).await.is_ok() {
            continue;
        }
        let config = kv::Config {
            bucket: bucket.to_owned(),
            description: about.to_owned(),
            history: 1,
            storage: StorageType::File,
            num_replicas: 1,
            ..kv::Config::default()
        };
        let made = link.streams.create_key_value(config).await;
        made.map_err(|error| ClusterError::stream(format!("make the bucket {bucket}"), &error))?;
    }
    Ok(())
}

impl Link {
    /// What a bucket holds under a key.
    ///
    /// # Errors
    /// [`ClusterError::Stream`] when the bucket is not there or cannot be read.
    pub async fn get<T: serde::de::DeserializeOwned>(
        &self,
        bucket: &str,
        key: &str,
    ) -> Result<Option<T>, ClusterError> {
        let failed = |e: &dyn std::fmt::Display| {
            ClusterError::stream(format!("read the bucket {bucket}"), e)
        };
        let store = self.streams.get_key_value(bucket).await;
        let store = store.map_err(|error| failed(&error))?;
        let value = store.get(key).await.map_err(|error| failed(&error))?;
        Ok(value.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Put a value into a bucket.
    ///
    /// # Errors
    /// [`ClusterError::Stream`].
    pub async fn put<T: serde::Serialize + Sync>(
        &self,
        bucket: &str,
        key: &str,
        value: &T,
    ) -> Result<(), ClusterError> {
        let failed = |e: &dyn std::fmt::Display| {
            ClusterError::stream(format!("write the bucket {bucket}"), e)
        };
        let store = self.streams.get_key_value(bucket).await;
        let store = store.map_err(|error| failed(&error))?;
        let bytes = serde_json::to_vec(value).map_err(|error| failed(&error))?;
        let put = store.put(key, bytes.into()).await;
        put.map(drop).map_err(|error| failed(&error))
    }

    /// Take a key out of a bucket.
    ///
    /// # Errors
    /// [`ClusterError::Stream`].
    pub async fn remove(&self, bucket: &str, key: &str) -> Result<(), ClusterError> {
        let failed = |e: &dyn std::fmt::Display| {
            ClusterError::stream(format!("write the bucket {bucket}"), e)
        };
        let store = self.streams.get_key_value(bucket).await;
        let store = store.map_err(|error| failed(&error))?;
        store.purge(key).await.map_err(|error| failed(&error))
    }

    /// Every value of a bucket, by key, that can be read as a `T`.
    ///
    /// # Errors
    /// [`ClusterError::Stream`].
    pub async fn all<T: serde::de::DeserializeOwned>(
        &self,
        bucket: &str,
    ) -> Result<Vec<(String, T)>, ClusterError> {
        use futures_util::StreamExt as _;
        let failed = |e: &dyn std::fmt::Display| {
            ClusterError::stream(format!("read the bucket {bucket}"), e)
        };
        let store = self.streams.get_key_value(bucket).await;
        let store = store.map_err(|error| failed(&error))?;
        let mut keys = store.keys().await.map_err(|error| failed(&error))?;
        let mut found = Vec::new();
        while let Some(key) = keys.next().await {
            let key = key.map_err(|error| failed(&error))?;
            let value = store.get(&key).await.map_err(|error| failed(&error))?;
            if let Some(value) = value.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
                found.push((key, value));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }
}

/// The last sign of life of every worker that gives one within `listen`.
///
/// # Errors
/// [`ClusterError::Stream`].
pub async fn watch_beats(link: &Link, listen: Duration) -> Result<Vec<Beat>, ClusterError> {
    use futures_util::StreamExt as _;
    let beats = link.client.subscribe(beat_subject("*")).await;
    let mut beats = beats.map_err(|error| ClusterError::stream("listen to workers", &error))?;
    let mut last = BTreeMap::new();
    let listened = tokio::time::timeout(listen, async {
        while let Some(message) = beats.next().await {
            if let Ok(beat) = serde_json::from_slice::<Beat>(&message.payload) {
                last.insert(beat.worker.clone(), beat);
            }
        }
    });
    drop(listened.await);
    Ok(last.into_values().collect())
}
