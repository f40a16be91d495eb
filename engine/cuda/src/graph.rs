//! Recorded launches that are replayed whole, and times by the device's clock.

use cudarc::driver::{result, sys};

use crate::driver::{failed, said};
use crate::{CudaError, Device};

/// Launches that were recorded once. The buffers they name must live as long as it is replayed: keep them in one
/// struct with it.
#[derive(Debug)]
pub struct Graph {
    device: Device,
    graph: sys::CUgraph,
    ready: sys::CUgraphExec,
}

// SAFETY: handles that the driver guards.
unsafe impl Send for Graph {}

pub(crate) fn is_capturing(device: &Device) -> bool {
    // SAFETY: the stream lives.
    let status = unsafe { result::stream::is_capturing(device.stream().0) };
    matches!(
        status,
        Ok(sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE)
    )
}

impl Graph {
    /// Records what `work` launches; nothing of it runs. Run `work` once before, so that kernels are loaded.
    ///
    /// # Errors
    /// Those of `work`, and `Driver` for work that cannot be recorded, such as copies that wait.
    pub fn record(
        device: &Device,
        work: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        device.wait()?;
        let stream = device.stream().0;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives.
        unsafe { result::stream::begin_capture(stream, mode) }
            .map_err(failed("record launches"))?;
        let done = work();
        // SAFETY: the capture began above; it is ended whatever `work` gave.
        let graph = unsafe { result::stream::end_capture(stream) };
        done?;
        let graph = graph.map_err(failed("end a record of launches"))?;
        // SAFETY: the graph was just made.
        let ready = unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) }
            .map_err(failed("make recorded launches ready"))?;
        let recorded = Self {
            device: device.clone(),
            graph,
            ready,
        };
        // SAFETY: both live.
        unsafe { result::graph::upload(recorded.ready, stream) }
            .map_err(failed("send recorded launches to the device"))?;
        Ok(recorded)
    }

    /// Replays it once; does not wait.
    ///
    /// # Errors
    /// `Driver`, `Fault`.
    pub fn replay(&self) -> Result<(), CudaError> {
        self.device.bind()?;
        // SAFETY: both live.
        unsafe { result::graph::launch(self.ready, self.device.stream().0) }
            .map_err(|error| self.device.failure(error, "replay recorded launches"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by us, destroyed once.
        let freed = unsafe {
            result::graph::exec_destroy(self.ready).and(result::graph::destroy(self.graph))
        };
        if let Err(error) = freed {
            tracing::debug!("a graph was not destroyed: {}", said(error));
        }
    }
}

/// Times by the device's clock.
#[derive(Debug)]
pub struct Timer {
    device: Device,
    marks: Vec<sys::CUevent>,
}

impl Timer {
    /// With room for `marks` marks.
    ///
    /// # Errors
    /// `Driver`.
    pub fn new(device: &Device, marks: usize) -> Result<Self, CudaError> {
        device.bind()?;
        let mut timer = Self {
            device: device.clone(),
            marks: Vec::new(),
        };
        for _ in 0..marks {
            let mark = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
                .map_err(failed("make an event"))?;
            timer.marks.push(mark);
        }
        Ok(timer)
    }

    /// Sets mark `at` behind the work asked for so far.
    ///
    /// # Errors
    /// `Shape` beyond its marks; `Driver`.
    pub fn mark(&self, at: usize) -> Result<(), CudaError> {
        let mark = self.get(at)?;
        // SAFETY: both live.
        unsafe { result::event::record(mark, self.device.stream().0) }
            .map_err(failed("record an event"))
    }

    /// Seconds from mark `from` to mark `to`; waits first.
    ///
    /// # Errors
    /// `Shape` beyond its marks; `Driver`, `Fault`.
    pub fn secs(&self, from: usize, to: usize) -> Result<f64, CudaError> {
        self.device.wait()?;
        let (from, to) = (self.get(from)?, self.get(to)?);
        // SAFETY: both live and were recorded.
        let millis = unsafe { result::event::elapsed(from, to) }
            .map_err(failed("read the time between events"))?;
        Ok(f64::from(millis) / 1e3)
    }

    fn get(&self, at: usize) -> Result<sys::CUevent, CudaError> {
        self.marks.get(at).copied().ok_or_else(|| CudaError::Shape {
            op: "a timer",
            what: "mark",
            got: at,
            expected: format!("under {}", self.marks.len()),
        })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        for mark in self.marks.drain(..) {
            // SAFETY: made by us, destroyed once.
            if let Err(error) = unsafe { result::event::destroy(mark) } {
                tracing::debug!("an event was not destroyed: {}", said(error));
            }
        }
    }
}
