//! What moving bytes costs.

use crate::advert::WorkerAdvert;

/// Rates that hold for workers that did not measure their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// A network link, in bytes per second.
    pub link_bytes_per_sec: u64,
    /// A disk from which models are loaded, in bytes per second.
    pub disk_bytes_per_sec: u64,
    /// Until the first byte of a fetch comes, in seconds.
    pub fetch_secs: f64,
    /// What loading a model takes beside reading it, in seconds.
    pub load_secs: f64,
}

impl Default for Rates {
    /// Ten-gigabit Ethernet at nine tenths, one NVMe disk, a local network's round trips.
    fn default() -> Self {
        Self {
            link_bytes_per_sec: 1_125_000_000,
            disk_bytes_per_sec: 2_500_000_000,
            fetch_secs: 0.005,
            load_secs: 1.0,
        }
    }
}

fn secs(bytes: u64, measured: u64, assumed: u64) -> f64 {
    let rate = if measured == 0 { assumed } else { measured };
    bytes as f64 / rate.max(1) as f64
}

impl Rates {
    /// Seconds until `worker` has fetched `bytes` in `files` pieces; nothing for no pieces.
    pub fn transfer_secs(&self, worker: &WorkerAdvert, bytes: u64, files: usize) -> f64 {
        let moved = secs(bytes, worker.link_bytes_per_sec, self.link_bytes_per_sec);
        moved + files as f64 * self.fetch_secs
    }

    /// Seconds until `worker` has a model of `bytes` in a device's memory from its own disk.
    pub fn load_secs(&self, worker: &WorkerAdvert, bytes: u64) -> f64 {
        self.load_secs + secs(bytes, worker.disk_bytes_per_sec, self.disk_bytes_per_sec)
    }
}
