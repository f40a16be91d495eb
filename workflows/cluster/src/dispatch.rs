//! The state machine that owns jobs, leases and workers.

mod add;
mod ending;
mod events;
mod forget;
mod query;
mod restart;
pub(crate) mod table;

use std::time::Duration;

use engine_base::Key;
use serde::{Deserialize, Serialize};

pub use add::{AddError, KeyError};
pub(crate) use events::LOADING;
pub use query::{Counts, JobState, Waits};

use crate::cost::{CostModel, CostRow, Rates};
use crate::job::{JobId, Output};
use crate::lease::LeaseId;
use crate::placement::Placement;
use table::Tables;

/// What may be set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// A run that got no worker for this long counts as one priority higher; twice as long, two.
    /// Without end, so that whatever keeps coming in, every run gets its turn.
    pub aging_secs: f64,
    /// Deliveries after which a job failed for good.
    pub max_deliveries: u32,
    /// An idle worker that gave no sign for this long (asked, told or joined) is not counted on.
    /// Idle workers have to ask more often than that.
    pub ask_patience: Duration,
    /// A job that no worker can take fails after this long.
    pub no_worker_patience: Duration,
    /// Part of a device's memory that jobs leave free: on unified memory running out freezes the
    /// host.
    pub keep_free: f64,
    /// A running job is duplicated when what is won is more than this times what it costs.
    pub steal_ratio: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            aging_secs: 600.0,
            max_deliveries: 5,
            ask_patience: Duration::from_secs(60),
            no_worker_patience: Duration::from_secs(600),
            keep_free: 0.05,
            steal_ratio: 1.0,
        }
    }
}

/// A result, as its worker tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What was made.
    pub outputs: Vec<Output>,
    /// Wall time without fetching inputs and loading the model, in seconds.
    pub run_secs: f64,
    /// Wall time of loading the model, in seconds, if it was loaded.
    pub load_secs: Option<f64>,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneOutcome {
    /// The job is done by it.
    First,
    /// The job had ended before, or nobody knows the lease: kept in the cache, not counted.
    Late,
    /// The worker is in quarantine: not taken.
    Refused,
}

/// What the owner has to do after an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// Inputs of these are made: look the key up in the store, then [`Dispatcher::found`] or
    /// [`Dispatcher::set_key`].
    pub to_key: Vec<JobId>,
    /// Tell these leases' workers to stop; what they make is discarded.
    pub stop: Vec<LeaseId>,
    /// These have ended: done, failed or cancelled.
    pub ended: Vec<JobId>,
    /// Measurements to keep.
    pub measured: Vec<CostRow>,
    /// Keys to take out of the queue: no worker is wanted for them any more.
    pub withdrawn: Vec<Key>,
}

/// Owns every job from being added to its end. Time is monotonic, from any
/// [`engine_base::Clock`]; events may come late, twice, or for leases long gone.
pub struct Dispatcher {
    pub(crate) tables: Tables,
    placement: Box<dyn Placement>,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("placement", &self.placement.name())
            .field("tables", &self.tables)
            .finish()
    }
}

impl Dispatcher {
    /// A dispatcher with no jobs and no workers.
    pub fn new(settings: Settings, placement: Box<dyn Placement>, costs: CostModel) -> Self {
        Self {
            tables: Tables::new(settings, costs, Rates::default()),
            placement,
        }
    }

    /// The same with other rates for workers that did not measure theirs.
    #[must_use]
    pub fn with_rates(mut self, rates: Rates) -> Self {
        self.tables.rates = rates;
        self
    }

    /// What it knows of costs.
    pub const fn costs(&self) -> &CostModel {
        &self.tables.costs
    }
}
