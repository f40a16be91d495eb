//! The driver's calls that we make, each with what was tried in its error.

use std::ffi::{CString, c_int, c_void};

use cudarc::driver::{result, sys};

use crate::CudaError;

/// Name of a driver error.
pub(crate) fn said(error: result::DriverError) -> String {
    match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_unnamed) => format!("{:?}", error.0),
    }
}

/// Errors after which nothing of the context works.
pub(crate) fn is_fault(error: result::DriverError) -> bool {
    use sys::CUresult as R;
    matches!(
        error.0,
        R::CUDA_ERROR_ILLEGAL_ADDRESS
            | R::CUDA_ERROR_LAUNCH_TIMEOUT
            | R::CUDA_ERROR_ASSERT
            | R::CUDA_ERROR_HARDWARE_STACK_ERROR
            | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | R::CUDA_ERROR_MISALIGNED_ADDRESS
            | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | R::CUDA_ERROR_INVALID_PC
            | R::CUDA_ERROR_LAUNCH_FAILED
    )
}

pub(crate) fn failed(doing: &'static str) -> impl Fn(result::DriverError) -> CudaError {
    move |error| CudaError::Driver {
        doing,
        said: said(error),
    }
}

/// The device's primary context, released when dropped.
#[derive(Debug)]
pub(crate) struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: contexts may be used from any thread that has made them current.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(ordinal: c_int) -> Result<Self, CudaError> {
        let device = result::device::get(ordinal).map_err(failed("open the device"))?;
        // SAFETY: `device` was just given by the driver.
        let handle = unsafe { result::primary_ctx::retain(device) }
            .map_err(failed("make a context on the device"))?;
        let context = Self { device, handle };
        context.bind()?;
        Ok(context)
    }

    /// Makes it current in this thread.
    pub(crate) fn bind(&self) -> Result<(), CudaError> {
        // SAFETY: the handle lives as long as `self`.
        unsafe { result::ctx::set_current(self.handle) }
            .map_err(failed("use the device from this thread"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained by us once.
        if let Err(error) = unsafe { result::primary_ctx::release(self.device) } {
            tracing::debug!("a context was not released: {}", said(error));
        }
    }
}

/// A loaded module. Lives as long as the process's context: handles of functions stay valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Module(sys::CUmodule);
// SAFETY: a handle that the driver guards.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function(sys::CUfunction);
// SAFETY: a handle that the driver guards.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    pub(crate) fn load(cubin: &[u8]) -> Result<Self, result::DriverError> {
        // SAFETY: an ELF image states its own length; the cache checked that these are the bytes written.
        unsafe { result::module::load_data(cubin.as_ptr().cast()) }.map(Self)
    }

    pub(crate) fn function(&self, name: &str) -> Result<Function, CudaError> {
        let refused = |_nul| CudaError::Driver {
            doing: "find a kernel",
            said: format!("{name:?} is no name"),
        };
        let name = CString::new(name).map_err(refused)?;
        // SAFETY: the module was loaded and is never unloaded.
        unsafe { result::module::get_function(self.0, name) }
            .map(Function)
            .map_err(failed("find a kernel"))
    }
}

impl Function {
    /// Lets a block take up to `most_bytes` of shared memory, less what the kernel itself declares: one limit for all
    /// launches, since a later smaller one would refuse the larger.
    pub(crate) fn allow_shared(&self, most_bytes: usize) -> Result<(), CudaError> {
        use sys::CUfunction_attribute as A;
        let told = failed("take shared memory for a kernel");
        // SAFETY: the function's module is loaded.
        let own = unsafe {
            result::function::get_function_attribute(self.0, A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
        }
        .map_err(&told)?;
        let which = A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = c_int::try_from(most_bytes)
            .unwrap_or(c_int::MAX)
            .saturating_sub(own);
        // SAFETY: as above.
        unsafe { result::function::set_function_attribute(self.0, which, bytes) }.map_err(told)
    }
}

/// How a kernel is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) blocks: (u32, u32, u32),
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
    /// May begin before the launch before has ended; the kernel waits where it must.
    pub(crate) early: bool,
}

/// A stream of work.
#[derive(Debug)]
pub(crate) struct Stream(pub(crate) sys::CUstream);
// SAFETY: the driver guards streams.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new() -> Result<Self, CudaError> {
        result::stream::create(result::stream::StreamKind::NonBlocking)
            .map(Self)
            .map_err(failed("make a stream"))
    }

    pub(crate) fn wait(&self) -> Result<(), result::DriverError> {
        // SAFETY: the stream lives.
        unsafe { result::stream::synchronize(self.0) }
    }

    /// # Safety
    /// `args` are the kernel's parameters, and every address in them reaches as far as the kernel goes.
    pub(crate) unsafe fn launch(
        &self,
        function: Function,
        grid: Grid,
        args: &mut [*mut c_void],
    ) -> Result<(), result::DriverError> {
        let mut early = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            // SAFETY: a union of plain numbers, for which zeros are a value.
            value: unsafe { std::mem::zeroed() },
        };
        early.value.programmaticStreamSerializationAllowed = 1;
        let config = sys::CUlaunchConfig {
            gridDimX: grid.blocks.0,
            gridDimY: grid.blocks.1,
            gridDimZ: grid.blocks.2,
            blockDimX: grid.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: grid.shared_bytes,
            hStream: self.0,
            attrs: &raw mut early,
            numAttrs: u32::from(grid.early),
        };
        // SAFETY: by the caller's promise; the configuration lives through the call.
        unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                function.0,
                args.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .result()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made by us, destroyed once.
        if let Err(error) = unsafe { result::stream::destroy(self.0) } {
            tracing::debug!("a stream was not destroyed: {}", said(error));
        }
    }
}
