//! Cluster: machines that make films together, from this one.
//!
//! A desk knows at most one cluster: the folder or the file with its owner's line. It may run that
//! cluster's server itself, for as long as it is open, and have its films made there.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use engine_base::{CancelToken, Code};
use flow_cluster::owner::Owner;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::list::{CommandEntry, CommandKind, Done, NoArgs};
use super::{Desk, lock};
use crate::cluster::{
    self, ClusterStatus, ClusterUp, DrainOrder, Finding, LineKind, line_of, write_line,
};
use crate::error::StudioError;

/// Note that holds which cluster is known.
const NOTE: &str = "cluster";
/// File with a line that a person gave, for this user only.
const LINE_FILE: &str = "cluster.line";
/// Folder of a server that the desk runs.
const FOLDER: &str = "cluster";
/// How long a server may take until it lets in.
const START: Duration = Duration::from_secs(60);
/// Seconds without a sign of life after which a worker's job is given to another.
const LEASE_SECS: f64 = 30.0;
/// Stretch over which jobs are counted for a worker's rate.
const RATE_MILLIS: u64 = 10 * 60 * 1000;
/// Counts that are kept of a worker.
const COUNTS_MAX: usize = 400;

/// The cluster, as far as it is known.
#[derive(Debug, Clone, Serialize, TS)]
#[ts(optional_fields)]
pub struct ClusterState {
    /// Folder or file with the line that lets films in; absent while no cluster is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PathBuf>,
    /// Whether this studio runs its server.
    pub runs_here: bool,
    /// Whether the server that was started here lets other machines in.
    pub open: bool,
    /// Whether films are made there.
    pub makes_films: bool,
    /// What it does now; absent while it cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ClusterStatus>,
    /// Why it cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Jobs a minute of each worker, by name, over the last ten minutes that were watched.
    pub jobs_per_minute: BTreeMap<String, f64>,
}

/// How to start a cluster here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct StartClusterArgs {
    /// Let other machines in, or only processes of this machine; absent means as last time, which
    /// is this machine only at first.
    #[serde(default)]
    pub open: Option<bool>,
    /// Host by which other machines reach this one; absent means as last time, its address at
    /// first.
    #[serde(default)]
    pub advertise: Option<String>,
}

/// A cluster that runs already.
#[derive(Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct UseClusterArgs {
    /// The owner's line, a file with it, or the folder of `longtake cluster up`.
    pub cluster: String,
}

/// What lets workers in. A secret.
#[derive(Clone, PartialEq, Eq, Serialize, TS)]
pub struct ClusterLine {
    /// To be run on each machine that shall work.
    pub command: String,
}

/// What a worker is to do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct DrainArgs {
    /// Its name.
    pub worker: String,
    /// What it is to do.
    pub order: DrainOrder,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SwitchArgs {
    /// Whether it is on.
    pub on: bool,
}

/// Commands of this page.
pub(super) fn commands() -> Vec<CommandEntry> {
    use CommandKind::System;
    vec![
        CommandEntry::new(
            "cluster.state",
            System,
            "The cluster that is known, its machines and what each does now.",
            state,
        ),
        CommandEntry::new(
            "cluster.start",
            System,
            "Start a cluster's server here, for as long as the studio is open.",
            start,
        ),
        CommandEntry::new(
            "cluster.stop",
            System,
            "End the server that runs here.",
            stop,
        ),
        CommandEntry::new(
            "cluster.use",
            System,
            "Use a cluster that runs already.",
            use_cluster,
        ),
        CommandEntry::new(
            "cluster.leave",
            System,
            "Know the cluster no more; its machines stay as they are.",
            leave,
        ),
        CommandEntry::new(
            "cluster.line",
            System,
            "The command that lets a machine in: a secret.",
            line,
        ),
        CommandEntry::new(
            "cluster.drain",
            System,
            "Give a worker nothing more, let it work again, let it end, or forget one that went away.",
            drain,
        ),
        CommandEntry::new(
            "cluster.pause",
            System,
            "Hand nothing more out, or again something; what runs goes on.",
            pause,
        ),
        CommandEntry::new(
            "cluster.films",
            System,
            "Have films made by the cluster's machines, or by this one alone.",
            films,
        ),
        CommandEntry::new(
            "cluster.doctor",
            System,
            "Look at this machine and at the workers, and say what to change.",
            doctor,
        ),
    ]
}

/// What is kept of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    place: Option<PathBuf>,
    makes_films: bool,
    open: bool,
    advertise: Option<String>,
}

/// The server that runs here.
struct Server {
    cancel: CancelToken,
    thread: JoinHandle<()>,
}

/// What a desk holds of its cluster.
#[derive(Default)]
pub(super) struct ClusterDesk {
    server: Mutex<Option<Server>>,
    /// The owner that films in the making share.
    owner: Mutex<Weak<Owner>>,
    /// When each worker had done how many jobs.
    counts: Mutex<BTreeMap<String, VecDeque<(u64, u64)>>>,
}

impl ClusterDesk {
    fn runs(&self) -> bool {
        let server = lock(&self.server);
        server
            .as_ref()
            .is_some_and(|server| !server.thread.is_finished())
    }

    /// End the server, if one runs here, and wait for it.
    pub(super) fn stop(&self) {
        let server = lock(&self.server).take();
        if let Some(server) = server {
            server.cancel.cancel();
            if server.thread.join().is_err() {
                tracing::error!("the cluster's server ended by a fault of ours");
            }
        }
    }

    /// Note what each worker has done by `now`; gives each one's jobs a minute.
    fn rates(&self, status: &ClusterStatus, now_millis: u64) -> BTreeMap<String, f64> {
        let mut counts = lock(&self.counts);
        counts.retain(|name, _| status.workers.iter().any(|worker| worker.worker == *name));
        let mut rates = BTreeMap::new();
        for worker in status.workers.iter().filter(|worker| worker.here) {
            let of = counts.entry(worker.worker.clone()).or_default();
            // It was started again: what it had done before counts no more.
            if of.back().is_some_and(|(_, done)| *done > worker.done) {
                of.clear();
            }
            of.push_back((now_millis, worker.done));
            let is_old = |(at, _): &(u64, u64)| now_millis.saturating_sub(*at) > RATE_MILLIS;
            while of.len() > COUNTS_MAX || of.front().is_some_and(is_old) {
                of.pop_front();
            }
            if let Some((at, done)) = of.front()
                && now_millis > *at
            {
                let minutes = (now_millis - at) as f64 / 60_000.0;
                let rate = worker.done.saturating_sub(*done) as f64 / minutes;
                rates.insert(worker.worker.clone(), rate);
            }
        }
        rates
    }
}

impl Desk {
    fn kept_cluster(&self) -> Result<Kept, StudioError> {
        let kept = self.db.note(NOTE)?;
        Ok(kept
            .and_then(|value| serde_json::from_value(value).ok())
            .unwrap_or_default())
    }

    fn keep_cluster(&self, kept: &Kept) -> Result<(), StudioError> {
        let value = serde_json::to_value(kept).unwrap_or_default();
        Ok(self.db.set_note(NOTE, &value)?)
    }

    fn cluster_place(&self) -> Result<String, StudioError> {
        let place = self.kept_cluster()?.place.ok_or_else(|| {
            let message = "no cluster is known: start one here, or give the line of one that runs";
            StudioError::new(Code::NotFound, message)
        })?;
        Ok(place.to_string_lossy().into_owned())
    }

    /// Have the calls of a job run on the cluster, if films are made there; as long as what it
    /// gives is held.
    pub(super) fn cluster_of_job(&self, name: &str) -> Result<Option<Arc<Owner>>, StudioError> {
        let kept = self.kept_cluster()?;
        let Some(place) = kept.place.filter(|_| kept.makes_films) else {
            return Ok(None);
        };
        let mut shared = lock(&self.cluster.owner);
        if let Some(owner) = shared.upgrade() {
            return Ok(Some(owner));
        }
        let owner = self.studio.owner_in(&place.to_string_lossy(), name);
        let owner = owner.map_err(|error| {
            let message = format!(
                "films are made by the cluster, which cannot be used: {}; the page Cluster can \
                 have them made here",
                error.message
            );
            StudioError::new(error.code, message)
        })?;
        *shared = Arc::downgrade(&owner);
        self.studio.lend(&owner);
        Ok(Some(owner))
    }
}

fn state(desk: &Desk, _: NoArgs) -> Result<ClusterState, StudioError> {
    let kept = desk.kept_cluster()?;
    let asked = kept
        .place
        .as_ref()
        .map(|place| cluster::cluster_status(&place.to_string_lossy()));
    let (status, why) = match asked {
        Some(Ok(status)) => (Some(status), None),
        Some(Err(error)) => (None, Some(error.message)),
        None => (None, None),
    };
    let now = desk.clock.unix_millis();
    let rates = status
        .as_ref()
        .map(|status| desk.cluster.rates(status, now));
    Ok(ClusterState {
        place: kept.place,
        runs_here: desk.cluster.runs(),
        open: kept.open,
        makes_films: kept.makes_films,
        status,
        why,
        jobs_per_minute: rates.unwrap_or_default(),
    })
}

fn start(desk: &Desk, args: StartClusterArgs) -> Result<ClusterState, StudioError> {
    if desk.cluster.runs() {
        let message = "the cluster's server runs here already: end it first";
        return Err(StudioError::new(Code::Busy, message));
    }
    let before = desk.kept_cluster()?;
    let open = args.open.unwrap_or(before.open);
    let advertise = args.advertise.map(|host| host.trim().to_owned());
    let advertise = advertise
        .or(before.advertise)
        .filter(|host| !host.is_empty());
    let bind = if open {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::from(Ipv4Addr::LOCALHOST)
    };
    let dir = desk.data_folder().join(FOLDER);
    let options = ClusterUp {
        dir: Some(dir.clone()),
        bind,
        tcp_port: 0,
        advertise: advertise.clone(),
        lease_secs: LEASE_SECS,
        workers: Vec::new(),
    };
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let (sender, told) = sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("cluster-server".to_owned())
        .spawn(move || {
            let ready = sender.clone();
            let ended = cluster::cluster_up(&options, &stop, move |_| drop(ready.send(Ok(()))));
            if let Err(error) = ended {
                tracing::error!("the cluster's server ended: {}", error.message);
                // Nobody listens any more once it was ready.
                drop(sender.try_send(Err(error)));
            }
        })
        .map_err(|error| StudioError::new(Code::Io, format!("cannot start a thread: {error}")))?;
    let server = Server { cancel, thread };
    let ready = told.recv_timeout(START).unwrap_or_else(|_| {
        let secs = START.as_secs();
        let message = format!("the cluster's server was not ready after {secs} s");
        Err(StudioError::new(Code::Io, message))
    });
    *lock(&desk.cluster.server) = Some(server);
    if let Err(error) = ready {
        desk.cluster.stop();
        return Err(error);
    }
    desk.keep_cluster(&Kept {
        place: Some(dir),
        makes_films: before.makes_films,
        open,
        advertise,
    })?;
    state(desk, NoArgs {})
}

fn stop(desk: &Desk, _: NoArgs) -> Result<ClusterState, StudioError> {
    desk.cluster.stop();
    state(desk, NoArgs {})
}

fn use_cluster(desk: &Desk, args: UseClusterArgs) -> Result<ClusterState, StudioError> {
    let text = args.cluster.trim();
    let is_path = Path::new(text).exists();
    if is_path && desk.options.confined_to.is_some() {
        let message = "expected the owner's line itself: this studio is used from other machines, \
                       which name none of its files";
        return Err(StudioError::new(Code::NotPermitted, message));
    }
    let line = line_of(text, LineKind::Owner)?;
    let place = if is_path {
        std::path::absolute(text)
            .map_err(|error| StudioError::io("find the cluster", Path::new(text), &error))?
    } else {
        let path = desk.data_folder().join(LINE_FILE);
        let line = line
            .encode()
            .map_err(|error| StudioError::new(Code::Internal, error.to_string()))?;
        write_line(&path, &line)?;
        path
    };
    desk.keep_cluster(&Kept {
        place: Some(place),
        ..Kept::default()
    })?;
    state(desk, NoArgs {})
}

fn leave(desk: &Desk, _: NoArgs) -> Result<ClusterState, StudioError> {
    desk.cluster.stop();
    desk.keep_cluster(&Kept::default())?;
    let path = desk.data_folder().join(LINE_FILE);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StudioError::io("forget the line", &path, &error));
        }
        _ => {}
    }
    state(desk, NoArgs {})
}

fn line(desk: &Desk, _: NoArgs) -> Result<ClusterLine, StudioError> {
    let place = desk.cluster_place()?;
    if !Path::new(&place).is_dir() {
        let message = "only the machine that runs the cluster's server has the line for workers";
        return Err(StudioError::new(Code::NotFound, message));
    }
    let line = line_of(&place, LineKind::Worker)?;
    let line = line
        .encode()
        .map_err(|error| StudioError::new(Code::Internal, error.to_string()))?;
    Ok(ClusterLine {
        command: format!("longtake worker --join {line}"),
    })
}

fn drain(desk: &Desk, args: DrainArgs) -> Result<Done, StudioError> {
    cluster::cluster_drain(&desk.cluster_place()?, &args.worker, args.order)?;
    Ok(Done {})
}

fn pause(desk: &Desk, args: SwitchArgs) -> Result<Done, StudioError> {
    cluster::cluster_pause(&desk.cluster_place()?, args.on)?;
    Ok(Done {})
}

fn films(desk: &Desk, args: SwitchArgs) -> Result<Done, StudioError> {
    let mut kept = desk.kept_cluster()?;
    if args.on && kept.place.is_none() {
        desk.cluster_place()?;
    }
    kept.makes_films = args.on;
    desk.keep_cluster(&kept)?;
    Ok(Done {})
}

fn doctor(desk: &Desk, _: NoArgs) -> Result<Vec<Finding>, StudioError> {
    let place = desk.kept_cluster()?.place;
    let place = place.as_ref().map(|place| place.to_string_lossy());
    cluster::cluster_doctor(desk.studio.store.dir(), place.as_deref())
}
