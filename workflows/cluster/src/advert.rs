//! What a worker says about itself.

use std::collections::{BTreeMap, BTreeSet};

use engine_base::{CanonicalWriter, ContentHash};
use serde::{Deserialize, Serialize};

use crate::job::NodeType;
use crate::names::{DeviceClass, WorkerId};

/// One accelerator or processor of a worker; it runs one job at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name on its host, as `cuda:0`.
    pub name: String,
    /// What it is comparable with.
    pub class: DeviceClass,
    /// All of its memory, in bytes; the host's where they share it.
    pub memory_total_bytes: u64,
    /// What is free now, with every model of ours counted as free, in bytes.
    pub memory_free_bytes: u64,
}

/// A model in a device's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedModel {
    /// Content hash of the model.
    pub model: ContentHash,
    /// Index of the device in [`WorkerAdvert::devices`].
    pub device: usize,
    /// What it takes of the device's memory, in bytes.
    pub bytes: u64,
}

/// A worker's advert: sent when it joins and whenever something in it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAdvert {
    /// Its name, unique in the cluster.
    pub worker: WorkerId,
    /// Drawn at random when its process starts: another number means that it was started again
    /// and knows nothing of its leases.
    pub start: u64,
    /// Hash of the engine build: equal builds on one device class give equal bytes.
    pub engine_build: ContentHash,
    /// Node types it can run, with their versions.
    pub node_types: BTreeMap<String, u32>,
    /// Its devices.
    pub devices: Vec<Device>,
    /// Models it has as files, by content hash.
    pub models_on_disk: BTreeSet<ContentHash>,
    /// Models in its devices' memory, least recently used first.
    pub models_loaded: Vec<LoadedModel>,
    /// Measured rate of its network link, in bytes per second; 0 = not measured.
    pub link_bytes_per_sec: u64,
    /// Measured rate at which it reads models from disk, in bytes per second; 0 = not measured.
    pub disk_bytes_per_sec: u64,
}

impl WorkerAdvert {
    /// Hash of its node set: two workers with the same hash can run the same nodes.
    pub fn node_set(&self) -> ContentHash {
        let mut bytes = Vec::new();
        let mut writer = CanonicalWriter::new(&mut bytes);
        writer.array(self.node_types.len() * 2);
        for (name, version) in &self.node_types {
            writer.text(name);
            writer.whole(u64::from(*version));
        }
        ContentHash::of(&bytes)
    }

    /// Whether it can run this node type in this version.
    pub fn runs(&self, node_type: &NodeType) -> bool {
        self.node_types.get(&node_type.name) == Some(&node_type.version)
    }
}
