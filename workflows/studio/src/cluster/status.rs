//! What a cluster does now.

use std::collections::BTreeMap;
use std::time::Duration;

use engine_base::Code;
use flow_cluster::transport::{
    BUCKET, Beat, CARDS, Card, ClusterError, Link, Settings, control_subject, watch_beats,
};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::join::{Kind, line_of};
use super::{refused, worker_id};
use crate::error::StudioError;

/// How long signs of life are listened for.
const LISTEN: Duration = Duration::from_millis(1200);

/// A job that a worker is at.
#[derive(Debug, Clone, Serialize, TS)]
#[ts(rename = "ClusterJob")]
pub struct JobRow {
    /// Node of the run.
    pub node: String,
    /// Its type.
    pub node_type: String,
    /// From 0 to 1, where it is known.
    pub part: Option<f64>,
    /// Seconds since it began.
    pub secs: f64,
}

/// A worker.
#[derive(Debug, Clone, Serialize, TS)]
#[ts(rename = "ClusterWorker")]
pub struct WorkerRow {
    /// Its name.
    pub worker: String,
    /// Whether it gives signs of life.
    pub here: bool,
    /// Seconds since it was last heard of, by its own clock; 0 when it is here.
    pub away_secs: f64,
    /// It takes nothing more.
    pub draining: bool,
    /// Its devices, by name and class.
    pub devices: Vec<String>,
    /// Memory of all of them.
    pub memory_bytes: u64,
    /// Models it has on disk.
    pub models: usize,
    /// Node types it runs.
    pub node_types: usize,
    /// Release of its program.
    pub release: String,
    /// Where it serves its store.
    pub url: String,
    /// Its clock against ours, in seconds; a second or two is the journey.
    pub clock_off_secs: f64,
    /// What it is at.
    pub jobs: Vec<JobRow>,
    /// Jobs done since it started.
    pub done: u64,
}

/// A cluster.
#[derive(Debug, Clone, Serialize, TS)]
pub struct ClusterStatus {
    /// Where its server is.
    pub address: String,
    /// The server's version.
    pub nats_version: String,
    /// Nothing is handed out.
    pub paused: bool,
    /// Seconds without a sign of life after which a lease is lost.
    pub lease_secs: f64,
    /// Who hands out work now.
    #[ts(type = "unknown")]
    pub owner: Option<serde_json::Value>,
    /// Its workers, by name.
    pub workers: Vec<WorkerRow>,
}

pub(super) fn block_on<T>(
    work: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, StudioError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| StudioError::new(Code::Io, format!("cannot start a thread: {error}")))?;
    runtime.block_on(work).map_err(|error| refused(&error))
}

fn row(card: &Card, beat: Option<&Beat>, now_millis: u64) -> WorkerRow {
    let signed = |from: u64, to: u64| (to as f64 - from as f64) / 1000.0;
    let job = |at: &flow_cluster::transport::AtJob| JobRow {
        node: at.node.clone(),
        node_type: at.node_type.clone(),
        part: (at.of > 0).then(|| at.step as f64 / at.of as f64),
        secs: at.secs,
    };
    let devices = card.advert.devices.iter();
    WorkerRow {
        worker: card.advert.worker.to_string(),
        here: beat.is_some(),
        away_secs: match beat {
            Some(_) => 0.0,
            None => signed(card.unix_millis, now_millis).max(0.0),
        },
        draining: beat.map_or(card.draining, |beat| beat.draining),
        devices: devices
            .clone()
            .map(|d| format!("{} ({})", d.name, d.class))
            .collect(),
        memory_bytes: devices.map(|device| device.memory_total_bytes).sum(),
        models: card.advert.models_on_disk.len(),
        node_types: card.advert.node_types.len(),
        release: card.release.clone(),
        url: card.url.clone(),
        clock_off_secs: beat.map_or(0.0, |beat| signed(now_millis, beat.unix_millis)),
        jobs: beat.map_or_else(Vec::new, |beat| beat.jobs.iter().map(job).collect()),
        done: beat.map_or(0, |beat| beat.done),
    }
}

/// Say what a cluster does now. Listens for signs of life for about a second.
///
/// # Errors
/// As [`crate::Studio::use_cluster`].
pub fn cluster_status(cluster: &str) -> Result<ClusterStatus, StudioError> {
    let line = line_of(cluster, Kind::Owner)?;
    let clock = crate::system_clock();
    block_on(async {
        let link = Box::pin(Link::connect(&line, "cluster status")).await?;
        let beats = Box::pin(watch_beats(&link, LISTEN)).await?;
        let beats: BTreeMap<_, _> = beats.iter().map(|b| (b.worker.clone(), b)).collect();
        let cards = Box::pin(link.all::<Card>(CARDS)).await?;
        let settings: Option<Settings> = link.get(BUCKET, "settings").await?;
        let owner = link.get(BUCKET, "owner").await?;
        let now = clock.unix_millis();
        let rows = cards.iter();
        Ok(ClusterStatus {
            address: link.address.clone(),
            nats_version: link.version.to_string(),
            paused: settings.as_ref().is_some_and(|settings| settings.paused),
            lease_secs: settings.map_or(0.0, |settings| settings.lease_secs),
            owner,
            workers: rows
                .map(|(_, card)| row(card, beats.get(&card.advert.worker).copied(), now))
                .collect(),
        })
    })
}

/// What a worker is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum DrainOrder {
    /// Take nothing more.
    Drain,
    /// Take work again.
    Undo,
    /// Take nothing more, and end when it is idle.
    Leave,
    /// Forget a worker that went away.
    Forget,
}

/// Drain a worker, or take that back. What it is at it finishes.
///
/// # Errors
/// As [`crate::Studio::use_cluster`]; no such worker.
pub fn cluster_drain(cluster: &str, worker: &str, order: DrainOrder) -> Result<(), StudioError> {
    let line = line_of(cluster, Kind::Owner)?;
    let worker = worker_id(worker)?;
    let known = block_on(async {
        let link = Link::connect(&line, "cluster drain").await?;
        if link.get::<Card>(CARDS, worker.as_str()).await?.is_none() {
            return Ok(false);
        }
        let text = match order {
            DrainOrder::Drain => "drain",
            DrainOrder::Undo => "undrain",
            DrainOrder::Leave => "leave",
            DrainOrder::Forget => {
                link.remove(CARDS, worker.as_str()).await?;
                return Ok(true);
            }
        };
        link.tell(control_subject(&worker), &text).await;
        link.flush().await?;
        Ok(true)
    })?;
    if known {
        return Ok(());
    }
    let message = format!("there is no worker {worker} in the cluster: longtake cluster status");
    Err(StudioError::new(Code::NotFound, message))
}

/// Hand nothing more out, or again something. What runs goes on.
///
/// # Errors
/// As [`crate::Studio::use_cluster`].
pub fn cluster_pause(cluster: &str, paused: bool) -> Result<(), StudioError> {
    let line = line_of(cluster, Kind::Owner)?;
    block_on(async {
        let link = Link::connect(&line, "cluster pause").await?;
        let settings: Option<Settings> = link.get(BUCKET, "settings").await?;
        let Some(settings) = settings else {
            let why = "the cluster has no settings; run `longtake cluster up`";
            return Err(ClusterError::stream("pause", &why));
        };
        let settings = Settings { paused, ..settings };
        link.put(BUCKET, "settings", &settings).await
    })
}
