//! Memory of the device under a hard budget, and pinned memory of the host.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result;

use crate::CudaError;
use crate::driver::{Context, failed, said};
use crate::host_memory::HostMemory;

/// What a device's memory stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryFigures {
    /// In buffers.
    pub used_bytes: usize,
    /// Taken from the driver: used, and kept for use again.
    pub held_bytes: usize,
    /// The most that was used at once.
    pub peak_bytes: usize,
    /// The most that may be held.
    pub budget_bytes: usize,
}

/// Where blocks come from.
pub(crate) trait Source {
    fn take(&self, bytes: usize) -> Result<u64, String>;
    fn give(&self, address: u64);
}

/// Blocks by size; what is given back is kept, and used again for sizes up to an eighth smaller.
#[derive(Debug)]
pub(crate) struct Pool<S> {
    source: S,
    free: BTreeMap<usize, Vec<u64>>,
    figures: MemoryFigures,
}

/// Sizes in which memory is taken: few enough that blocks fit again.
fn class_of(bytes: usize) -> Option<usize> {
    let step = if bytes <= 1 << 20 { 512 } else { 2 << 20 };
    bytes.max(1).checked_next_multiple_of(step)
}

impl<S: Source> Pool<S> {
    pub(crate) fn new(source: S, budget_bytes: usize) -> Self {
        Self {
            source,
            free: BTreeMap::new(),
            figures: MemoryFigures {
                budget_bytes,
                ..MemoryFigures::default()
            },
        }
    }

    pub(crate) fn figures(&self) -> MemoryFigures {
        self.figures
    }

    /// Address and size of a block for `bytes`.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(u64, usize), CudaError> {
        let refuse = |figures: MemoryFigures, reason: &str| CudaError::OutOfMemory {
            asked_bytes: bytes,
            used_bytes: figures.used_bytes,
            budget_bytes: figures.budget_bytes,
            reason: reason.to_owned(),
        };
        let Some(class) = class_of(bytes) else {
            return Err(refuse(self.figures, "it cannot be counted"));
        };
        let fits = class..=class.saturating_add(class / 8);
        let kept = self.free.range_mut(fits).find_map(|(size, list)| {
            let address = list.pop()?;
            Some((address, *size))
        });
        let (address, size) = match kept {
            Some(found) => found,
            None => {
                let over = |held: usize, budget| held.checked_add(class).is_none_or(|n| n > budget);
                if over(self.figures.held_bytes, self.figures.budget_bytes) {
                    self.trim();
                }
                if over(self.figures.held_bytes, self.figures.budget_bytes) {
                    return Err(refuse(self.figures, "over the budget"));
                }
                let address = match self.source.take(class) {
                    Ok(address) => address,
                    Err(_first) => {
                        self.trim();
                        let taken = self.source.take(class);
                        taken.map_err(|reason| refuse(self.figures, &reason))?
                    }
                };
                self.figures.held_bytes += class;
                (address, class)
            }
        };
        self.figures.used_bytes += size;
        self.figures.peak_bytes = self.figures.peak_bytes.max(self.figures.used_bytes);
        Ok((address, size))
    }

    pub(crate) fn give(&mut self, address: u64, size: usize) {
        self.figures.used_bytes -= size;
        self.free.entry(size).or_default().push(address);
    }

    /// Gives what is kept back to the driver.
    pub(crate) fn trim(&mut self) {
        for (size, list) in std::mem::take(&mut self.free) {
            for address in list {
                self.source.give(address);
                self.figures.held_bytes -= size;
            }
        }
    }
}

/// The driver's memory.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    pub(crate) context: Arc<Context>,
    /// Whose memory it is, where the device has none of its own.
    pub(crate) host: Option<HostMemory>,
}

impl Source for DeviceMemory {
    fn take(&self, bytes: usize) -> Result<u64, String> {
        if let Some(host) = &self.host {
            host.admit(bytes)?;
        }
        self.context.bind().map_err(|error| error.to_string())?;
        // SAFETY: a plain allocation; its bytes are written before they are read, or poisoned on purpose.
        unsafe { result::malloc_sync(bytes) }.map_err(said)
    }

    fn give(&self, address: u64) {
        let freed = self.context.bind().map(|()| {
            // SAFETY: taken by us and in no buffer any more; the driver waits for work that uses it.
            unsafe { result::free_sync(address) }
        });
        if !matches!(freed, Ok(Ok(()))) {
            tracing::debug!("device memory was not given back: {freed:?}");
        }
    }
}

pub(crate) type SharedPool = Arc<Mutex<Pool<DeviceMemory>>>;

/// Memory of a device. Its address stays while it lives; work that was asked for before it is dropped may still
/// use it, because one stream runs everything in order. Graphs that name it must not be replayed after.
#[derive(Debug)]
pub struct Buffer {
    pool: SharedPool,
    address: u64,
    bytes: usize,
    size: usize,
}

impl Buffer {
    pub(crate) fn new(pool: &SharedPool, bytes: usize) -> Result<Self, CudaError> {
        let mut locked = pool.lock().unwrap_or_else(PoisonError::into_inner);
        let (address, size) = locked.take(bytes)?;
        Ok(Self {
            pool: Arc::clone(pool),
            address,
            bytes,
            size,
        })
    }

    /// Bytes that were asked for.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Whether `count` elements of `size` bytes fit.
    pub(crate) fn holds(&self, count: usize, size: usize) -> bool {
        count.checked_mul(size).is_some_and(|n| n <= self.bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.give(self.address, self.size);
    }
}

/// Page-locked memory of the host: copies to and from it run beside other work.
#[derive(Debug)]
pub struct Pinned {
    context: Arc<Context>,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Pinned {}

impl Pinned {
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, CudaError> {
        context.bind()?;
        // SAFETY: a plain allocation.
        let start = unsafe { result::malloc_host(bytes.max(1), 0) }
            .map_err(failed("take pinned memory"))?
            .cast::<u8>();
        // SAFETY: `start` was given for at least `bytes` bytes.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self {
            context: Arc::clone(context),
            start,
            bytes,
        })
    }

    /// Its bytes. Wait for copies into it first: [`crate::Device::wait`].
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: initialized for its whole length, alive as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// Its bytes, to write. Wait for copies out of it first.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let freed = self.context.bind().map(|()| {
            // SAFETY: taken by us, freed once; the driver waits for copies.
            unsafe { result::free_host(self.start.cast::<c_void>()) }
        });
        if !matches!(freed, Ok(Ok(()))) {
            tracing::debug!("pinned memory was not given back: {freed:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Hands out numbers; refuses beyond what it has.
    struct Numbers {
        next: Cell<u64>,
        left: Cell<usize>,
        sizes: RefCell<BTreeMap<u64, usize>>,
    }

    impl Source for Numbers {
        fn take(&self, bytes: usize) -> Result<u64, String> {
            if bytes > self.left.get() {
                return Err("CUDA_ERROR_OUT_OF_MEMORY".to_owned());
            }
            self.left.set(self.left.get() - bytes);
            self.next.set(self.next.get() + 1);
            self.sizes.borrow_mut().insert(self.next.get(), bytes);
            Ok(self.next.get())
        }

        fn give(&self, address: u64) {
            let bytes = self.sizes.borrow_mut().remove(&address).unwrap();
            self.left.set(self.left.get() + bytes);
        }
    }

    fn pool(budget: usize, there: usize) -> Pool<Numbers> {
        let numbers = Numbers {
            next: Cell::new(0),
            left: Cell::new(there),
            sizes: RefCell::default(),
        };
        Pool::new(numbers, budget)
    }

    #[test]
    fn blocks_are_used_again_and_counted() {
        let mut pool = pool(1 << 30, 1 << 30);
        let (first, size) = pool.take(1000).unwrap();
        assert_eq!(size, 1024);
        pool.give(first, size);
        assert_eq!(pool.take(1024).unwrap(), (first, 1024));
        let (other, _) = pool.take(1).unwrap();
        assert_ne!(other, first);
        let figures = pool.figures();
        assert_eq!(figures.used_bytes, 1024 + 512);
        assert_eq!(figures.held_bytes, 1024 + 512);
        assert_eq!(figures.peak_bytes, 1024 + 512);
    }

    #[test]
    fn the_budget_is_hard_and_the_refusal_has_the_figures() {
        let mut pool = pool(4096, 1 << 20);
        let (block, size) = pool.take(4096).unwrap();
        let error = pool.take(1).unwrap_err().to_string();
        assert!(error.contains("4096 of a budget of 4096"), "{error}");
        pool.give(block, size);
        // What was kept for another size makes room.
        let (small, _) = pool.take(100).unwrap();
        assert_ne!(small, block);
        assert_eq!(pool.figures().held_bytes, 512);
    }

    #[test]
    fn what_the_driver_refuses_is_an_error_and_sizes_cannot_wrap() {
        let mut pool = pool(usize::MAX, 4096);
        let error = pool.take(1 << 20).unwrap_err().to_string();
        assert!(error.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
        assert!(matches!(
            pool.take(usize::MAX),
            Err(CudaError::OutOfMemory { .. })
        ));
        assert_eq!(pool.figures().used_bytes, 0);
    }
}
