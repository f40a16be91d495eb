//! The machines of a simulated cluster.

use std::collections::{BTreeMap, BTreeSet};

use engine_base::ContentHash;

use crate::advert::{Device, LoadedModel, WorkerAdvert};
use crate::names::{DeviceClass, NameError, WorkerId};

/// A machine with one device.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// How fast its class is; a Spark is 1.
    pub speed: f64,
    /// How much slower than its class this one is, unknown to anybody: 1 = as it should be.
    pub ails: f64,
    /// Device memory, in bytes.
    pub memory_bytes: u64,
    /// Network link, in bytes per second.
    pub link_bytes_per_sec: u64,
    /// Rate of loading models, in bytes per second.
    pub disk_bytes_per_sec: u64,
}

impl Machine {
    /// A DGX Spark: 121 GB usable (media-model facts 1.4), ten-gigabit Ethernet. A still takes
    /// 9.5 s, with its 33 GB of models loaded 20 s (1.4), less a second to begin: 3.47 GB/s.
    pub fn spark(number: usize) -> Self {
        Self {
            name: format!("spark-{number:02}"),
            class: "gb10".to_owned(),
            speed: 1.0,
            ails: 1.0,
            memory_bytes: 121_000_000_000,
            link_bytes_per_sec: 1_125_000_000,
            disk_bytes_per_sec: 3_470_000_000,
        }
    }

    /// A workstation with an RTX Pro 6000 (96 GB). Its time on these models is not published; the
    /// nearest figure is an RTX 5070 Ti's 81 s against a Spark's 195 s for 5 s of 1344x768 (with
    /// other settings): 2.4 times as fast.
    pub fn rtx_pro(number: usize) -> Self {
        Self {
            name: format!("rtx-{number:02}"),
            class: "rtx-pro-6000".to_owned(),
            speed: 2.4,
            memory_bytes: 96_000_000_000,
            ..Self::spark(number)
        }
    }

    /// So many Sparks.
    pub fn sparks(count: usize) -> Vec<Self> {
        (0..count).map(Self::spark).collect()
    }

    pub(super) fn id(&self) -> Result<WorkerId, NameError> {
        WorkerId::new(&self.name)
    }

    /// What it says of itself.
    pub(super) fn advert(
        &self,
        start: u64,
        node_types: &BTreeMap<String, u32>,
        on_disk: &BTreeSet<ContentHash>,
        loaded: &[(ContentHash, u64)],
    ) -> Result<WorkerAdvert, NameError> {
        Ok(WorkerAdvert {
            worker: self.id()?,
            start,
            engine_build: ContentHash::of(b"simulated engine"),
            node_types: node_types.clone(),
            devices: vec![Device {
                name: "cuda:0".to_owned(),
                class: DeviceClass::new(&self.class)?,
                memory_total_bytes: self.memory_bytes,
                memory_free_bytes: self.memory_bytes,
            }],
            models_on_disk: on_disk.clone(),
            models_loaded: loaded
                .iter()
                .map(|(model, bytes)| LoadedModel {
                    model: *model,
                    device: 0,
                    bytes: *bytes,
                })
                .collect(),
            link_bytes_per_sec: self.link_bytes_per_sec,
            disk_bytes_per_sec: self.disk_bytes_per_sec,
        })
    }
}
