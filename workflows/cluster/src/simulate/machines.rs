//! The machines of a simulated cluster.

use std::collections::{BTreeMap, BTreeSet};

use engine_base::ContentHash;

use crate::advert::{Device, LoadedModel, WorkerAdvert};
use crate::cost::Rates;
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
    /// What it said of itself, if it is a real worker; else it can run everything.
    pub real: Option<Box<WorkerAdvert>>,
}

impl Machine {
    /// Each device of a real worker, at speed 1: what jobs take there has to be told by class.
    pub fn of_worker(advert: &WorkerAdvert) -> Vec<Self> {
        let devices = advert.devices.iter().enumerate();
        let single = advert.devices.len() == 1;
        devices
            .map(|(at, device)| Self {
                name: if single {
                    advert.worker.to_string()
                } else {
                    format!("{}-{at}", advert.worker)
                },
                class: device.class.to_string(),
                speed: 1.0,
                ails: 1.0,
                memory_bytes: device.memory_total_bytes,
                link_bytes_per_sec: advert.link_bytes_per_sec,
                disk_bytes_per_sec: advert.disk_bytes_per_sec,
                real: Some(Box::new(WorkerAdvert {
                    devices: vec![device.clone()],
                    models_loaded: advert
                        .models_loaded
                        .iter()
                        .filter(|loaded| loaded.device == at)
                        .map(|loaded| LoadedModel {
                            device: 0,
                            ..loaded.clone()
                        })
                        .collect(),
                    ..advert.clone()
                })),
            })
            .collect()
    }

    /// Models that are loaded from the start, with their bytes.
    pub(super) fn loaded(&self) -> Vec<(ContentHash, u64)> {
        let real = self.real.iter();
        let loaded = real.flat_map(|advert| &advert.models_loaded);
        loaded.map(|loaded| (loaded.model, loaded.bytes)).collect()
    }

    /// Rate of its link in bytes per second, assumed where it was not measured.
    pub(super) fn link_rate(&self) -> f64 {
        let assumed = Rates::default().link_bytes_per_sec;
        let measured = self.link_bytes_per_sec;
        if measured == 0 {
            assumed as f64
        } else {
            measured as f64
        }
    }

    /// Seconds until it has a model in memory.
    pub(super) fn load_secs(&self, model: ContentHash, bytes: u64) -> f64 {
        let rates = Rates::default();
        let measured = self.disk_bytes_per_sec;
        let rate = if measured == 0 {
            rates.disk_bytes_per_sec
        } else {
            measured
        };
        let real = self.real.as_ref();
        let here = real.is_none_or(|advert| advert.models_on_disk.contains(&model));
        let fetch = if here {
            0.0
        } else {
            bytes as f64 / self.link_rate()
        };
        rates.load_secs + bytes as f64 / rate as f64 + fetch
    }

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
            real: None,
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
        let models_loaded: Vec<LoadedModel> = loaded
            .iter()
            .map(|(model, bytes)| LoadedModel {
                model: *model,
                device: 0,
                bytes: *bytes,
            })
            .collect();
        if let Some(real) = &self.real {
            return Ok(WorkerAdvert {
                worker: self.id()?,
                start,
                models_loaded,
                ..WorkerAdvert::clone(real)
            });
        }
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
            models_loaded,
            link_bytes_per_sec: self.link_bytes_per_sec,
            disk_bytes_per_sec: self.disk_bytes_per_sec,
        })
    }
}
