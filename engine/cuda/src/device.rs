//! A device: its context, stream, memory and loaded kernels.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self::plain::Plain;
use cudarc::driver::result;

use crate::CudaError;
use crate::args::Args;
use crate::cache::CubinCache;
use crate::compile::{compile, compiler_version};
use crate::driver::{Context, Function, Grid, Module, Stream, failed, is_fault, said};
use crate::error::Launched;
use crate::host_memory::HostMemory;
use crate::kernels::{SOURCES, Source};
use crate::memory::{Buffer, DeviceMemory, MemoryFigures, Pinned, Pool, SharedPool};
use crate::probe::DeviceInfo;

/// Launches that a fault names.
const RECENT: usize = 64;

/// Number types that are copied as their bytes.
pub(crate) mod plain {
    /// # Safety
    /// Every bit pattern is a value, without padding.
    pub unsafe trait Plain: Copy + Default {}
    macro_rules! plain {
        ($($name:ty),*) => { $(
            // SAFETY: plain numbers.
            unsafe impl Plain for $name {}
        )* };
    }
    plain!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
}

/// How a device is opened.
#[derive(Debug, Clone)]
pub struct DeviceOptions {
    /// The most memory that is taken; by default the device's less an eighth.
    pub budget_bytes: Option<usize>,
    /// Where compiled kernels are kept.
    pub cache: CubinCache,
    /// Wait after every launch, so that a fault names the one that caused it.
    pub checked: bool,
    /// Where memory is the host's: what that can spare.
    pub host_memory: HostMemory,
    /// Let launches begin before the one before has ended, where their kernels wait themselves.
    pub early_starts: bool,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            budget_bytes: None,
            cache: CubinCache::of_user(),
            checked: false,
            host_memory: HostMemory::default(),
            early_starts: true,
        }
    }
}

type Code = Result<Vec<u8>, CudaError>;

#[derive(Debug)]
struct Loaded {
    code: Arc<OnceLock<Code>>,
    module: OnceLock<Result<Module, CudaError>>,
}

#[derive(Debug)]
struct Inner {
    info: DeviceInfo,
    options: DeviceOptions,
    pool: SharedPool,
    stream: Stream,
    sources: HashMap<&'static str, Loaded>,
    functions: Mutex<HashMap<(&'static str, usize), Function>>,
    recent: Mutex<VecDeque<Launched>>,
    // Last: everything above is released before it.
    context: Arc<Context>,
}

/// A device. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

/// A kernel by its source and name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    pub(crate) source: &'static str,
    pub(crate) name: &'static str,
}

fn code_of(source: &'static Source, arch: &str, cache: &CubinCache) -> Code {
    let version = compiler_version()?;
    let key = CubinCache::key(&source.full_text(), arch, version);
    cache.get_or_compile(key, || Ok(compile(source, arch, false)?.cubin))
}

impl Device {
    /// Opens a device that [`crate::probe`] found. Kernels begin to be compiled beside the caller.
    ///
    /// # Errors
    /// `Driver` when the device cannot be opened.
    pub fn open(info: &DeviceInfo, options: DeviceOptions) -> Result<Self, CudaError> {
        let context = Arc::new(Context::new(info.ordinal)?);
        let budget = options
            .budget_bytes
            .unwrap_or(info.memory_bytes - info.memory_bytes / 8);
        let memory = DeviceMemory {
            context: Arc::clone(&context),
            host: info.unified.then(|| options.host_memory.clone()),
        };
        let pool = Pool::new(memory, budget);
        let mut sources = HashMap::new();
        for source in SOURCES {
            let code: Arc<OnceLock<Code>> = Arc::default();
            let (to, arch, cache) = (Arc::clone(&code), info.arch(), options.cache.clone());
            let started = std::thread::Builder::new()
                .name(format!("kernels {}", source.name))
                .spawn(move || {
                    to.get_or_init(|| code_of(source, &arch, &cache));
                });
            if let Err(error) = started {
                tracing::debug!("kernels are compiled when needed: {error}");
            }
            let module = OnceLock::new();
            sources.insert(source.name, Loaded { code, module });
        }
        Ok(Self {
            inner: Arc::new(Inner {
                info: info.clone(),
                options,
                pool: Arc::new(Mutex::new(pool)),
                stream: Stream::new()?,
                sources,
                functions: Mutex::default(),
                recent: Mutex::default(),
                context,
            }),
        })
    }

    pub(crate) fn options(&self) -> &DeviceOptions {
        &self.inner.options
    }

    /// What it is.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// Its memory.
    pub fn memory(&self) -> MemoryFigures {
        let pool = self.inner.pool.lock();
        pool.unwrap_or_else(PoisonError::into_inner).figures()
    }

    /// Bytes that can still be taken: of the budget, of what the device has free, and of what a host whose memory it is
    /// can spare.
    pub fn free_bytes(&self) -> usize {
        let memory = self.memory();
        let mut free = memory.budget_bytes.saturating_sub(memory.used_bytes);
        let held = memory.held_bytes.saturating_sub(memory.used_bytes);
        if self.bind().is_ok()
            && let Ok((there, _all)) = result::mem_get_info()
        {
            free = free.min(there.saturating_add(held));
        }
        if self.inner.info.unified
            && let Some(figures) = self.inner.options.host_memory.figures()
        {
            let spare = usize::try_from(figures.spare_bytes()).unwrap_or(usize::MAX);
            free = free.min(spare.saturating_add(held));
        }
        free
    }

    /// Gives memory that is kept for use again back to the driver.
    pub fn trim(&self) {
        let pool = self.inner.pool.lock();
        pool.unwrap_or_else(PoisonError::into_inner).trim();
    }

    /// A buffer of `bytes`, with whatever was there before.
    ///
    /// # Errors
    /// `OutOfMemory` with the figures.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, CudaError> {
        Buffer::new(&self.inner.pool, bytes)
    }

    /// A buffer of zeros.
    ///
    /// # Errors
    /// As [`Device::alloc`].
    pub fn zeros(&self, bytes: usize) -> Result<Buffer, CudaError> {
        let buffer = self.alloc(bytes)?;
        self.fill(&buffer, 0)?;
        Ok(buffer)
    }

    /// Fills `buffer` with `byte`.
    ///
    /// # Errors
    /// `Driver`.
    pub fn fill(&self, buffer: &Buffer, byte: u8) -> Result<(), CudaError> {
        self.bind()?;
        // SAFETY: the buffer lives and has that many bytes.
        unsafe {
            result::memset_d8_async(
                buffer.address(),
                byte,
                buffer.len_bytes(),
                self.inner.stream.0,
            )
        }
        .map_err(failed("fill memory of the device"))
    }

    /// Pinned memory of the host.
    ///
    /// # Errors
    /// `Driver`.
    pub fn pinned(&self, bytes: usize) -> Result<Pinned, CudaError> {
        Pinned::new(&self.inner.context, bytes)
    }

    /// A buffer with these values.
    ///
    /// # Errors
    /// As [`Device::alloc`]; `Driver`.
    pub fn upload<T: Plain>(&self, values: &[T]) -> Result<Buffer, CudaError> {
        let buffer = self.alloc(size_of_val(values))?;
        self.write(&buffer, 0, values)?;
        Ok(buffer)
    }

    /// Copies `values` into `buffer` from byte `start` on, after all work asked for so far; waits.
    ///
    /// # Errors
    /// `Shape` when they reach beyond it; `Driver`.
    pub fn write<T: Plain>(
        &self,
        buffer: &Buffer,
        start: usize,
        values: &[T],
    ) -> Result<(), CudaError> {
        inside(buffer, start, size_of_val(values))?;
        self.bind()?;
        // SAFETY: inside the buffer; the stream is waited for before `values` may move.
        unsafe {
            result::memcpy_htod_async(buffer.address() + start as u64, values, self.inner.stream.0)
        }
        .map_err(failed("copy to the device"))?;
        self.wait()
    }

    /// Copies `count` values from `buffer`, from byte `start` on; waits for all work asked for so far.
    ///
    /// # Errors
    /// `Shape` when they reach beyond it; `Driver`, `Fault`.
    pub fn read<T: Plain>(
        &self,
        buffer: &Buffer,
        start: usize,
        count: usize,
    ) -> Result<Vec<T>, CudaError> {
        inside(buffer, start, count.saturating_mul(size_of::<T>()))?;
        let mut values = vec![T::default(); count];
        self.bind()?;
        // SAFETY: inside the buffer; the stream is waited for before `values` is used.
        let copied = unsafe {
            result::memcpy_dtoh_async(
                &mut values,
                buffer.address() + start as u64,
                self.inner.stream.0,
            )
        };
        copied.map_err(|error| self.failure(error, "copy from the device"))?;
        self.wait()?;
        Ok(values)
    }

    /// Begins a copy of all of `from` into the start of `to`; does not wait. Leave `from` alone until [`Device::wait`].
    ///
    /// # Errors
    /// `Shape` when it does not fit; `Driver`.
    pub fn begin_write(&self, to: &Buffer, from: &Pinned) -> Result<(), CudaError> {
        inside(to, 0, from.bytes().len())?;
        self.bind()?;
        // SAFETY: inside the buffer; pinned memory does not move, and freeing it waits for the copy.
        unsafe { result::memcpy_htod_async(to.address(), from.bytes(), self.inner.stream.0) }
            .map_err(failed("begin a copy to the device"))
    }

    /// Begins a copy of the start of `from` into all of `to`; does not wait. Read `to` after [`Device::wait`].
    ///
    /// # Errors
    /// `Shape` when there is too little; `Driver`.
    pub fn begin_read(&self, to: &mut Pinned, from: &Buffer) -> Result<(), CudaError> {
        inside(from, 0, to.bytes().len())?;
        self.bind()?;
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_async(to.bytes_mut(), from.address(), self.inner.stream.0) }
            .map_err(failed("begin a copy from the device"))
    }

    /// Copies `len` bytes on the device, each side from its own byte on; does not wait.
    ///
    /// # Errors
    /// `Shape` when they reach beyond a buffer; `Driver`.
    pub fn copy(
        &self,
        (from, from_start): (&Buffer, usize),
        (to, to_start): (&Buffer, usize),
        len: usize,
    ) -> Result<(), CudaError> {
        inside(from, from_start, len)?;
        inside(to, to_start, len)?;
        self.bind()?;
        // SAFETY: inside both buffers.
        unsafe {
            result::memcpy_dtod_async(
                to.address() + to_start as u64,
                from.address() + from_start as u64,
                len,
                self.inner.stream.0,
            )
        }
        .map_err(failed("copy on the device"))
    }

    /// Waits for all work asked for so far.
    ///
    /// # Errors
    /// `Fault` when a kernel failed, with the launches since the last wait.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.bind()?;
        let waited = self.inner.stream.wait();
        waited.map_err(|error| self.failure(error, "wait for the device"))?;
        let mut recent = self.inner.recent.lock();
        recent
            .as_deref_mut()
            .unwrap_or(&mut VecDeque::new())
            .clear();
        Ok(())
    }

    pub(crate) fn bind(&self) -> Result<(), CudaError> {
        self.inner.context.bind()
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.inner.stream
    }

    /// The error of a driver call; a fault names what was launched.
    pub(crate) fn failure(&self, error: result::DriverError, doing: &'static str) -> CudaError {
        if !is_fault(error) {
            return failed(doing)(error);
        }
        let recent = self.inner.recent.lock();
        let recent = recent.unwrap_or_else(PoisonError::into_inner);
        let launches: Vec<String> = recent.iter().map(ToString::to_string).collect();
        CudaError::Fault {
            said: said(error),
            launches: launches.join(", "),
        }
    }

    fn module(&self, source: &'static str) -> Result<Module, CudaError> {
        let unknown = || CudaError::Driver {
            doing: "find a kernel",
            said: format!("no source {source:?}"),
        };
        let loaded = self.inner.sources.get(source).ok_or_else(unknown)?;
        let module = loaded.module.get_or_init(|| {
            let about = Source::named(source).ok_or_else(unknown)?;
            let arch = self.inner.info.arch();
            let cache = &self.inner.options.cache;
            let code = loaded.code.get_or_init(|| code_of(about, &arch, cache));
            let code = code.as_ref().map_err(Clone::clone)?;
            self.bind()?;
            match Module::load(code) {
                Ok(module) => Ok(module),
                Err(refused) => {
                    // Another build's code that passed for ours: made anew, once.
                    tracing::debug!("compiled kernels were refused: {}", said(refused));
                    let version = compiler_version()?;
                    cache.forget(CubinCache::key(&about.full_text(), &arch, version));
                    let code = code_of(about, &arch, cache)?;
                    Module::load(&code).map_err(failed("load kernels"))
                }
            }
        });
        module.clone()
    }

    /// The function of `kernel`, allowed to take `shared_bytes`.
    fn function(&self, kernel: Kernel, shared_bytes: usize) -> Result<Function, CudaError> {
        let key = (kernel.name, shared_bytes);
        let lock = || {
            let functions = self.inner.functions.lock();
            functions.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(function) = lock().get(&key) {
            return Ok(*function);
        }
        let function = self.module(kernel.source)?.function(kernel.name)?;
        // What a kernel declares itself counts too: well under the 48 KB that need no leave.
        if shared_bytes > 16 << 10 {
            function.allow_shared(self.inner.info.shared_bytes)?;
        }
        lock().insert(key, function);
        Ok(function)
    }

    /// Launches `kernel`; `op` and `shape` are what errors name.
    ///
    /// # Safety
    /// `args` are the kernel's parameters, and the kernel stays inside every buffer whose address is among them.
    pub(crate) unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: Grid,
        mut args: Args,
        (op, shape): (&'static str, &[usize]),
    ) -> Result<(), CudaError> {
        self.bind()?;
        let function = self.function(kernel, grid.shared_bytes as usize)?;
        let grid = Grid {
            early: grid.early && self.inner.options.early_starts,
            ..grid
        };
        {
            let recent = self.inner.recent.lock();
            let mut recent = recent.unwrap_or_else(PoisonError::into_inner);
            if recent.len() == RECENT {
                recent.pop_front();
            }
            recent.push_back(Launched::new(op, shape));
        }
        // SAFETY: by the caller's promise.
        let launched = unsafe {
            self.inner
                .stream
                .launch(function, grid, &mut args.pointers())
        };
        launched.map_err(|error| match self.failure(error, "launch a kernel") {
            CudaError::Driver { doing, said } => CudaError::Driver {
                doing,
                said: format!("{said} for {}", Launched::new(op, shape)),
            },
            fault => fault,
        })?;
        if self.inner.options.checked && !crate::graph::is_capturing(self) {
            self.wait()?;
        }
        Ok(())
    }
}

fn inside(buffer: &Buffer, start: usize, len: usize) -> Result<(), CudaError> {
    let end = start.checked_add(len);
    if end.is_some_and(|end| end <= buffer.len_bytes()) {
        return Ok(());
    }
    Err(CudaError::Shape {
        op: "a copy",
        what: "its end in bytes",
        got: end.unwrap_or(usize::MAX),
        expected: format!("at most {}", buffer.len_bytes()),
    })
}
