//! The assembled product: store, node types, fonts.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use engine_base::{Clock, SystemClock};
use flow_executor::{Costs, Elsewhere, Request, RunReport};
use flow_graph::{NodeSpec, Registry};
use flow_nodes::{Fonts, ImageModelSource, LlmSource, SpeechSource, UpscalerSource};
use flow_store::{CheckReport, PruneReport, Store, StoreCounts, StoreOptions};
use serde::Serialize;

use crate::draw::ImageModels;
use crate::error::StudioError;
use crate::upscale::Upscalers;
use crate::voices::Voices;
use crate::{config, fault, premise};

/// How to assemble the studio.
#[derive(Debug, Clone)]
pub struct StudioOptions {
    /// Folder of the cache.
    pub cache_folder: PathBuf,
    /// Size to which the cache is pruned.
    pub cache_cap_bytes: u64,
}

impl StudioOptions {
    /// This machine's folders and defaults.
    ///
    /// # Errors
    /// There is no place for a cache.
    pub fn of_this_machine() -> Result<Self, StudioError> {
        let cache_folder = config::cache_folder()?;
        Ok(Self {
            cache_folder,
            cache_cap_bytes: config::CACHE_CAP_BYTES,
        })
    }
}

/// Everything that commands need.
pub struct Studio {
    pub(crate) store: Store,
    pub(crate) registry: Arc<Registry>,
    pub(crate) fonts: Arc<Fonts>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cap_bytes: u64,
    /// Runs calls on other machines, when a cluster is used.
    pub(crate) elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Runs calls on other machines for as long as a job holds it.
    pub(crate) lent: Mutex<Option<Weak<flow_cluster::owner::Owner>>>,
}

/// What the cache holds.
#[derive(Debug, Clone, Serialize)]
pub struct CacheReport {
    /// Its folder.
    pub folder: PathBuf,
    /// Size to which it is pruned.
    pub cap_bytes: u64,
    /// Sizes and counters.
    pub counts: StoreCounts,
}

/// The machine's clock, as commands take it.
pub fn system_clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// Descriptions of all node types.
///
/// # Errors
/// Two types claim one name: a fault of ours.
pub fn node_specs() -> Result<Vec<NodeSpec>, StudioError> {
    let registry = registry(&Arc::new(Fonts::load(&[])))?;
    Ok(registry.iter().map(|node| node.spec().clone()).collect())
}

fn registry(fonts: &Arc<Fonts>) -> Result<Registry, StudioError> {
    let internal = |error: flow_graph::RegistryError| {
        StudioError::new(engine_base::Code::Internal, error.to_string())
    };
    let mut registry = flow_nodes::registry(fonts).map_err(internal)?;
    let source: Arc<dyn LlmSource> = Arc::new(premise::Models);
    for node in flow_nodes::language_node_types(&source) {
        registry.add(node).map_err(internal)?;
    }
    let voices: Arc<dyn SpeechSource> = Arc::new(Voices::default());
    for node in flow_nodes::speech_node_types(&voices) {
        registry.add(node).map_err(internal)?;
    }
    let source: Arc<dyn UpscalerSource> = Arc::new(Upscalers::default());
    for node in flow_nodes::picture_node_types(&source) {
        registry.add(node).map_err(internal)?;
    }
    let source: Arc<dyn ImageModelSource> = Arc::new(ImageModels::default());
    for node in flow_nodes::image_node_types(&source) {
        registry.add(node).map_err(internal)?;
    }
    Ok(registry)
}

impl Studio {
    /// Assemble the studio: opens the cache, which is made when it is not there.
    ///
    /// # Errors
    /// The cache cannot be opened.
    pub fn open(options: &StudioOptions) -> Result<Self, StudioError> {
        flow_media::return_large_blocks();
        let clock = system_clock();
        let store = Store::open(
            &options.cache_folder,
            StoreOptions {
                cap_bytes: options.cache_cap_bytes,
                clock: Arc::clone(&clock),
                faults: fault::of_store(),
            },
        )?;
        let fonts = Arc::new(Fonts::load(&[]));
        let registry = Arc::new(registry(&fonts)?);
        let cap_bytes = options.cache_cap_bytes;
        Ok(Self {
            store,
            registry,
            fonts,
            clock,
            cap_bytes,
            elsewhere: None,
            lent: Mutex::default(),
        })
    }

    /// What the cache holds.
    ///
    /// # Errors
    /// The cache cannot be read.
    pub fn cache_show(&self) -> Result<CacheReport, StudioError> {
        Ok(CacheReport {
            folder: self.store.dir().to_owned(),
            cap_bytes: self.cap_bytes,
            counts: self.store.counts()?,
        })
    }

    /// Make room: down to `to_bytes`, or to the cap.
    ///
    /// # Errors
    /// The cache cannot be read or written.
    pub fn cache_prune(
        &self,
        to_bytes: Option<u64>,
        dry_run: bool,
    ) -> Result<PruneReport, StudioError> {
        Ok(self
            .store
            .prune(to_bytes.unwrap_or(self.cap_bytes), dry_run)?)
    }

    /// Look for damage; `deep` also reads the bytes of every file.
    ///
    /// # Errors
    /// The cache cannot be read.
    pub fn cache_check(&self, deep: bool) -> Result<CheckReport, StudioError> {
        Ok(self.store.check(deep)?)
    }

    /// Look for damage and mend it.
    ///
    /// # Errors
    /// The cache cannot be read or written.
    pub fn cache_repair(&self, deep: bool) -> Result<CheckReport, StudioError> {
        Ok(self.store.repair(deep)?)
    }
}

impl Studio {
    pub(crate) fn request(&self, targets: &[String]) -> Request {
        let costs = std::fs::read(self.costs_file()).ok();
        let costs = costs.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Request {
            targets: (!targets.is_empty()).then(|| targets.to_vec()),
            costs: costs.unwrap_or_default(),
        }
    }

    /// Add a run's wall times to what is known. They decide nothing but predictions, so a failure
    /// to keep them is not told.
    pub(crate) fn remember_costs(&self, report: &RunReport, mut costs: Costs) {
        report.add_costs_to(&mut costs);
        // A temporary file of the store's: what a killed process left of it is swept.
        let Ok(partial) = self.store.temp("json") else {
            return;
        };
        let bytes = serde_json::to_vec(&costs).unwrap_or_default();
        let written = std::fs::write(&partial, bytes)
            .and_then(|()| std::fs::rename(&partial, self.costs_file()));
        if written.is_err() {
            drop(std::fs::remove_file(&partial));
        }
    }

    fn costs_file(&self) -> PathBuf {
        self.store.dir().join("costs.json")
    }

    /// Calls that run at a time.
    pub(crate) fn workers(&self) -> f64 {
        std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
    }
}
