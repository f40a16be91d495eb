//! What a job costs on a device, or why it cannot run there.

use engine_base::ContentHash;

use super::Asker;
use crate::cost::{Prediction, Work};
use crate::dispatch::LOADING;
use crate::dispatch::table::{Entry, Lane, Tables, Worker};
use crate::names::{DeviceClass, WorkerId};

/// Why a device does not take a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not there any more.
    #[error("worker {worker} or its device is not there")]
    NoDevice {
        /// Which.
        worker: WorkerId,
    },
    /// It is to take nothing more.
    #[error("worker {worker} takes no more work: {why}")]
    Leaving {
        /// Which.
        worker: WorkerId,
        /// Draining, or why it is in quarantine.
        why: String,
    },
    /// It failed the same job by its own fault.
    #[error("worker {worker} failed the same job before: {why}")]
    FailedBefore {
        /// Which.
        worker: WorkerId,
        /// How.
        why: String,
    },
    /// It lacks a node type or has another version of it.
    #[error("worker {worker} cannot run {name:?}: expected version {expected}, got {}", got.map_or_else(|| "none".to_owned(), |got| got.to_string()))]
    NodeType {
        /// Which.
        worker: WorkerId,
        /// The node type.
        name: String,
        /// The version the job needs.
        expected: u32,
        /// The version it has.
        got: Option<u32>,
    },
    /// The run is held to another class of device.
    #[error("the job is held to devices of class {expected}, worker {worker} has {got}")]
    Class {
        /// Which.
        worker: WorkerId,
        /// The run's class.
        expected: DeviceClass,
        /// The device's.
        got: DeviceClass,
    },
    /// The run is held to another engine build.
    #[error("the job is held to engine build {}, worker {worker} has {}", expected.short(), got.short())]
    Build {
        /// Which.
        worker: WorkerId,
        /// The run's build.
        expected: ContentHash,
        /// The worker's.
        got: ContentHash,
    },
    /// It would not fit, ever.
    #[error(
        "needs {needed_bytes} bytes of device memory ({model_bytes} of them for the model), \
         {device:?} of worker {worker} has {usable_bytes} for jobs of {total_bytes}"
    )]
    TooLarge {
        /// Which.
        worker: WorkerId,
        /// The device's name.
        device: String,
        /// What the job needs, with its model.
        needed_bytes: u64,
        /// The model's part.
        model_bytes: u64,
        /// What jobs may use.
        usable_bytes: u64,
        /// All of the device's memory.
        total_bytes: u64,
    },
    /// It does not fit now: others use the memory.
    #[error(
        "needs {needed_bytes} bytes of device memory, {free_bytes} are free on {device:?} of \
         worker {worker}"
    )]
    Occupied {
        /// Which.
        worker: WorkerId,
        /// The device's name.
        device: String,
        /// What the job needs, with its model.
        needed_bytes: u64,
        /// What is free with all our models out.
        free_bytes: u64,
    },
    /// No worker has the model as a file.
    #[error("model {} is on no worker's disk", model.short())]
    ModelNowhere {
        /// Which.
        model: ContentHash,
    },
}

impl Refusal {
    /// Whether waiting does not help, as long as the worker stays what it is.
    pub const fn is_lasting(&self) -> bool {
        !matches!(self, Self::Occupied { .. } | Self::Leaving { .. })
    }

    /// How near it is to taking the job, to choose the one to tell people of.
    pub(crate) const fn nearness(&self) -> u8 {
        match self {
            Self::NoDevice { .. } => 0,
            Self::NodeType { .. } => 1,
            Self::Class { .. } | Self::Build { .. } => 2,
            Self::Leaving { .. } => 3,
            Self::ModelNowhere { .. } => 4,
            Self::TooLarge { .. } => 5,
            Self::FailedBefore { .. } => 6,
            Self::Occupied { .. } => 7,
        }
    }
}

/// What a job takes on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Prediction of the work alone, for the device's class.
    pub prediction: Prediction,
    /// The work on this worker, in seconds.
    pub run_secs: f64,
    /// Fetching inputs that are not there, in seconds.
    pub transfer_secs: f64,
    /// Fetching and loading the model, in seconds; 0 when it is loaded.
    pub load_secs: f64,
    /// Loading again what has to make room and is still wanted, in seconds; paid later.
    pub reload_secs: f64,
    /// Models that have to make room.
    pub evict: Vec<ContentHash>,
}

impl Terms {
    /// Seconds until the result is there.
    pub fn total_secs(&self) -> f64 {
        self.run_secs + self.transfer_secs + self.load_secs
    }
}

/// What entry `at` takes on the asker's device.
pub(crate) fn terms(tables: &Tables, at: usize, asker: &Asker) -> Result<Terms, Refusal> {
    let gone = || Refusal::NoDevice {
        worker: asker.worker.clone(),
    };
    let entry = tables.entries.get(at).ok_or_else(gone)?;
    let worker = tables.workers.get(&asker.worker).ok_or_else(gone)?;
    let lane = worker.lanes.get(asker.device).ok_or_else(gone)?;
    may(tables, entry, worker, asker)?;
    let models = models(tables, entry, worker, lane, asker)?;
    let prediction = *tables.prediction(entry.work, lane.class).ok_or_else(gone)?;
    Ok(Terms {
        prediction,
        run_secs: prediction.median_secs * worker.slowness.factor(),
        transfer_secs: transfer_secs(tables, entry, worker),
        load_secs: models.load_secs,
        reload_secs: models.reload_secs,
        evict: models.evict,
    })
}

/// What a job means for the models in a device's memory.
struct Models {
    load_secs: f64,
    reload_secs: f64,
    evict: Vec<ContentHash>,
}

fn models(
    tables: &Tables,
    entry: &Entry,
    worker: &Worker,
    lane: &Lane,
    asker: &Asker,
) -> Result<Models, Refusal> {
    let evict = fit(tables, entry, worker, lane, asker)?;
    let loads = |model, bytes| load_secs(tables, worker, lane, model, bytes);
    let load_secs = match entry.job.model {
        Some(need) if lane.models.iter().all(|(model, _)| *model != need.model) => {
            loads(need.model, need.bytes)
        }
        _ => 0.0,
    };
    let out = lane.models.iter().filter(|(model, _)| {
        evict.contains(model) && tables.demand.get(model).is_some_and(|count| *count > 0)
    });
    let reload_secs = out.map(|(model, bytes)| loads(*model, *bytes)).sum();
    Ok(Models {
        load_secs,
        reload_secs,
        evict,
    })
}

/// Seconds that go into models if the asker takes entry `at`; 0 where it cannot.
pub(super) fn model_secs(tables: &Tables, at: usize, asker: &Asker) -> f64 {
    let found = || {
        let entry = tables.entries.get(at)?;
        let worker = tables.workers.get(&asker.worker)?;
        let lane = worker.lanes.get(asker.device)?;
        models(tables, entry, worker, lane, asker).ok()
    };
    found().map_or(0.0, |models| models.load_secs + models.reload_secs)
}

/// Whether it may run there at all, memory aside.
fn may(tables: &Tables, entry: &Entry, worker: &Worker, asker: &Asker) -> Result<(), Refusal> {
    let id = || asker.worker.clone();
    if let Some(failure) = &worker.quarantined {
        let why = failure.to_string();
        return Err(Refusal::Leaving { worker: id(), why });
    }
    if worker.draining {
        let why = "it is draining".to_owned();
        return Err(Refusal::Leaving { worker: id(), why });
    }
    if entry.avoid.contains(&asker.worker) {
        let mut past = entry.attempts.iter().rev();
        let last = past.find(|attempt| attempt.worker == asker.worker);
        let why = last.map_or_else(String::new, |attempt| attempt.failure.to_string());
        return Err(Refusal::FailedBefore { worker: id(), why });
    }
    if let Some(lacks) = entry
        .job
        .node_types
        .iter()
        .find(|node_type| !worker.advert.runs(node_type))
    {
        return Err(Refusal::NodeType {
            worker: id(),
            name: lacks.name.clone(),
            expected: lacks.version,
            got: worker.advert.node_types.get(&lacks.name).copied(),
        });
    }
    let device = worker.advert.devices.get(asker.device);
    let device = device.ok_or_else(|| Refusal::NoDevice { worker: id() })?;
    if let Some(expected) = &entry.job.device_class
        && *expected != device.class
    {
        return Err(Refusal::Class {
            worker: id(),
            expected: expected.clone(),
            got: device.class.clone(),
        });
    }
    if let Some(expected) = entry.job.engine_build
        && expected != worker.advert.engine_build
    {
        return Err(Refusal::Build {
            worker: id(),
            expected,
            got: worker.advert.engine_build,
        });
    }
    if let Some(need) = entry.job.model {
        let has = |worker: &Worker| worker.advert.models_on_disk.contains(&need.model);
        if !has(worker) && !tables.workers.values().any(has) {
            return Err(Refusal::ModelNowhere { model: need.model });
        }
    }
    Ok(())
}

/// Models that have to leave the device so that the job fits: those that no open job wants
/// first, then the least recently used.
fn fit(
    tables: &Tables,
    entry: &Entry,
    worker: &Worker,
    lane: &Lane,
    asker: &Asker,
) -> Result<Vec<ContentHash>, Refusal> {
    let device = worker.advert.devices.get(asker.device);
    let device = device.ok_or_else(|| Refusal::NoDevice {
        worker: asker.worker.clone(),
    })?;
    let total_bytes = device.memory_total_bytes;
    let keep = (total_bytes as f64 * tables.settings.keep_free.clamp(0.0, 1.0)) as u64;
    let usable_bytes = total_bytes.saturating_sub(keep);
    let needed_bytes = entry.job.memory_bytes();
    if needed_bytes > usable_bytes {
        return Err(Refusal::TooLarge {
            worker: asker.worker.clone(),
            device: device.name.clone(),
            needed_bytes,
            model_bytes: entry.job.model.map_or(0, |need| need.bytes),
            usable_bytes,
            total_bytes,
        });
    }
    let free_bytes = device.memory_free_bytes.min(usable_bytes);
    if needed_bytes > free_bytes {
        return Err(Refusal::Occupied {
            worker: asker.worker.clone(),
            device: device.name.clone(),
            needed_bytes,
            free_bytes,
        });
    }
    let own = entry.job.model.map(|need| need.model);
    let mut others: Vec<(ContentHash, u64)> = lane
        .models
        .iter()
        .filter(|(model, _)| Some(*model) != own)
        .copied()
        .collect();
    // Stable: within each half the order of use stays.
    others.sort_by_key(|(model, _)| tables.demand.get(model).is_some_and(|count| *count > 0));
    let left = free_bytes - needed_bytes;
    let sizes = others.iter().map(|(_, bytes)| *bytes);
    let mut used: u64 = sizes.fold(0, u64::saturating_add);
    let mut evict = Vec::new();
    for (model, bytes) in others {
        if used <= left {
            break;
        }
        used = used.saturating_sub(bytes);
        evict.push(model);
    }
    Ok(evict)
}

fn load_secs(tables: &Tables, worker: &Worker, lane: &Lane, model: ContentHash, bytes: u64) -> f64 {
    let loading = Work {
        node_type: LOADING.to_owned(),
        model: Some(model),
        size: bytes,
    };
    let class = tables.classes.get(lane.class);
    let measured = class
        .map(|class| tables.costs.predict(&loading, class))
        .filter(|prediction| prediction.basis == crate::CostBasis::Measured)
        .map(|prediction| prediction.median_secs);
    let load = measured.unwrap_or_else(|| tables.rates.load_secs(&worker.advert, bytes));
    let here = worker.advert.models_on_disk.contains(&model);
    let fetch = if here {
        0.0
    } else {
        tables.rates.transfer_secs(&worker.advert, bytes, 1)
    };
    load + fetch
}

fn transfer_secs(tables: &Tables, entry: &Entry, worker: &Worker) -> f64 {
    let (mut bytes, mut files) = (0_u64, 0);
    for input in tables.inputs(entry) {
        let here = input
            .content
            .and_then(|content| tables.holders.get(&content))
            .is_some_and(|holders| holders.contains(&worker.advert.worker));
        if !here {
            bytes = bytes.saturating_add(input.bytes);
            files += 1;
        }
    }
    tables.rates.transfer_secs(&worker.advert, bytes, files)
}
