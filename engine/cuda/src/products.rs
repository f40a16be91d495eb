//! Large products by cuBLASLt.
//!
//! The algorithm of a product is asked for once, at a fixed number of rows, and kept for all: its sums do not
//! depend on how many rows a call has. The folder of compiled kernels keeps it for later runs too, so that a product's
//! bits stay as long as the library's build does.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use cudarc::cublaslt::{result, sys};

use crate::cache::CubinCache;
use crate::error::ensure;
use crate::ops::fits;
use crate::{Buffer, CudaError, Device, Missing};

/// Rows at which algorithms are asked for.
const ROWS: u64 = 8192;
const WORKSPACE_BYTES: usize = 64 << 20;

/// What is done with the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ProductEnd {
    /// `out = sums`, bf16.
    Store,
    /// `out = sums`, f32.
    StoreF32,
    /// `out += sums`, f32.
    Add,
}

/// `out[r, n] = sum_k x[r, k] weights[n, k]`: x and weights bf16.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LargeProduct<'a> {
    /// `[n, k]`.
    pub(crate) weights: &'a Buffer,
    /// `[rows, k]` from element `x_start` on.
    pub(crate) x: &'a Buffer,
    pub(crate) x_start: usize,
    /// `[rows, out_stride]` from element `out_start` on.
    pub(crate) out: &'a Buffer,
    pub(crate) out_start: usize,
    pub(crate) out_stride: usize,
    pub(crate) end: ProductEnd,
    pub(crate) rows: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

fn failed(doing: &'static str) -> impl Fn(result::CublasError) -> CudaError {
    move |error| CudaError::Driver {
        doing,
        said: format!("{:?}", error.0),
    }
}

/// A layout of a matrix, destroyed when dropped.
struct Layout(sys::cublasLtMatrixLayout_t);

impl Layout {
    fn new(
        kind: sys::cudaDataType,
        rows: u64,
        columns: u64,
        stride: usize,
    ) -> Result<Self, CudaError> {
        let stride = i64::try_from(stride).unwrap_or(i64::MAX);
        result::create_matrix_layout(kind, rows, columns, stride)
            .map(Self)
            .map_err(failed("describe a matrix"))
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: made by us, destroyed once.
        if let Err(error) = unsafe { result::destroy_matrix_layout(self.0) } {
            tracing::debug!("a layout was not destroyed: {error:?}");
        }
    }
}

type Key = (usize, usize, usize, ProductEnd);

/// Products of a device with the algorithms that were chosen.
pub(crate) struct Products {
    device: Device,
    handle: sys::cublasLtHandle_t,
    product: sys::cublasLtMatmulDesc_t,
    workspace: Buffer,
    chosen: Mutex<HashMap<Key, sys::cublasLtMatmulAlgo_t>>,
}

// SAFETY: the handle and the descriptor are only read by calls, which the library allows from any thread.
unsafe impl Send for Products {}
// SAFETY: as above.
unsafe impl Sync for Products {}

impl std::fmt::Debug for Products {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Products")
    }
}

impl Products {
    pub(crate) fn new(device: &Device) -> Result<Self, CudaError> {
        // SAFETY: opens a library by its well-known name.
        if !unsafe { sys::is_culib_present() } {
            return Err(Missing::Products.into());
        }
        device.bind()?;
        let handle = result::create_handle().map_err(failed("open cuBLASLt"))?;
        let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let product = result::create_matmul_desc(compute, sys::cudaDataType_t::CUDA_R_32F)
            .map_err(failed("describe a product"))?;
        let transposed = 1i32;
        // SAFETY: the descriptor was just made; four bytes are read.
        unsafe {
            result::set_matmul_desc_attribute(
                product,
                sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA,
                (&raw const transposed).cast::<c_void>(),
                size_of::<i32>(),
            )
        }
        .map_err(failed("describe a product"))?;
        Ok(Self {
            device: device.clone(),
            handle,
            product,
            workspace: device.alloc(WORKSPACE_BYTES)?,
            chosen: Mutex::default(),
        })
    }

    /// Layouts of weights, x and out: columns of the library are our rows.
    fn layouts(&self, work: &LargeProduct<'_>, rows: u64) -> Result<[Layout; 3], CudaError> {
        let (n, k) = (work.n as u64, work.k as u64);
        let bf16 = sys::cudaDataType_t::CUDA_R_16BF;
        let kind = match work.end {
            ProductEnd::Store => bf16,
            ProductEnd::StoreF32 | ProductEnd::Add => sys::cudaDataType_t::CUDA_R_32F,
        };
        Ok([
            Layout::new(bf16, k, n, work.k)?,
            Layout::new(bf16, k, rows, work.k)?,
            Layout::new(kind, n, rows, work.out_stride)?,
        ])
    }

    fn algorithm(&self, work: &LargeProduct<'_>) -> Result<sys::cublasLtMatmulAlgo_t, CudaError> {
        let key = (work.n, work.k, work.out_stride, work.end);
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = chosen.get(&key) {
            return Ok(*found);
        }
        let layouts = self.layouts(work, ROWS)?;
        let cache = &self.device.options().cache;
        let info = self.device.info();
        // SAFETY: takes nothing; the library is there, as its handle shows.
        let library = unsafe { sys::cublasLtGetVersion() };
        let shape = format!("bf16 {key:?} at {ROWS} rows, {WORKSPACE_BYTES} bytes");
        let name = format!("{} {}", info.name, info.arch());
        let kept_as = CubinCache::choice_key(&name, library, &shape);
        let kept = cache
            .choice(kept_as)
            .filter(|data| self.still_runs(&layouts, *data));
        let found = match kept {
            Some(data) => sys::cublasLtMatmulAlgo_t { data },
            None => {
                let asked = self.ask(&layouts)?;
                cache.keep_choice(kept_as, asked.data);
                asked
            }
        };
        chosen.insert(key, found);
        Ok(found)
    }

    /// Whether the library takes what was kept for these layouts.
    fn still_runs(&self, [weights, x, out]: &[Layout; 3], data: [u64; 8]) -> bool {
        let algorithm = sys::cublasLtMatmulAlgo_t { data };
        let mut about = std::mem::MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::zeroed();
        // SAFETY: all descriptors live; `about` is written before it is read when the call succeeds.
        let status = unsafe {
            sys::cublasLtMatmulAlgoCheck(
                self.handle,
                self.product,
                weights.0,
                x.0,
                out.0,
                out.0,
                &raw const algorithm,
                about.as_mut_ptr(),
            )
        };
        // SAFETY: the call succeeded, and zeros are values of all its numbers.
        status.result().is_ok() && unsafe { (*about.as_ptr()).workspaceSize } <= WORKSPACE_BYTES
    }

    fn ask(&self, [weights, x, out]: &[Layout; 3]) -> Result<sys::cublasLtMatmulAlgo_t, CudaError> {
        let most = WORKSPACE_BYTES;
        let wishes = result::create_matmul_pref().map_err(failed("choose an algorithm"))?;
        // SAFETY: all descriptors live; the attribute's eight bytes are read at once.
        let found = unsafe {
            let set = result::set_matmul_pref_attribute(
                wishes,
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (&raw const most).cast::<c_void>(),
                size_of::<usize>(),
            );
            let found = set.and_then(|()| {
                result::get_matmul_algo_heuristic(
                    self.handle,
                    self.product,
                    weights.0,
                    x.0,
                    out.0,
                    out.0,
                    wishes,
                )
            });
            if let Err(error) = result::destroy_matmul_pref(wishes) {
                tracing::debug!("wishes were not destroyed: {error:?}");
            }
            found
        };
        Ok(found.map_err(failed("choose an algorithm"))?.algo)
    }

    /// Runs a product.
    pub(crate) fn run(&self, work: &LargeProduct<'_>) -> Result<(), CudaError> {
        const OP: &str = "a large product";
        let LargeProduct { rows, n, k, .. } = *work;
        ensure(rows > 0 && n > 0, OP, "rows and n", rows.min(n), "over 0")?;
        ensure(k > 0 && k.is_multiple_of(8), OP, "k", k, "a multiple of 8")?;
        ensure(
            work.out_stride >= n,
            OP,
            "stride",
            work.out_stride,
            format_args!("at least {n}"),
        )?;
        fits(OP, "weights", work.weights, n * k, 2)?;
        fits(OP, "x", work.x, work.x_start + rows * k, 2)?;
        let (size, add) = match work.end {
            ProductEnd::Store => (2, 0.0f32),
            ProductEnd::StoreF32 => (4, 0.0),
            ProductEnd::Add => (4, 1.0),
        };
        fits(
            OP,
            "out",
            work.out,
            work.out_start + (rows - 1) * work.out_stride + n,
            size,
        )?;
        let algorithm = self.algorithm(work)?;
        let [weights, x, out] = self.layouts(work, rows as u64)?;
        let one = 1.0f32;
        let from = (work.x.address() + (work.x_start * 2) as u64) as *const c_void;
        let to = (work.out.address() + (work.out_start * size) as u64) as *mut c_void;
        self.device.bind()?;
        // SAFETY: lengths were checked above; layouts and factors live through the call.
        unsafe {
            result::matmul(
                self.handle,
                self.product,
                (&raw const one).cast(),
                (&raw const add).cast(),
                work.weights.address() as *const c_void,
                weights.0,
                from,
                x.0,
                to,
                out.0,
                to,
                out.0,
                &raw const algorithm,
                self.workspace.address() as *mut c_void,
                WORKSPACE_BYTES,
                self.device.stream().0.cast(),
            )
        }
        .map_err(failed("run a large product"))
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        // SAFETY: made by us, destroyed once.
        let freed = unsafe {
            result::destroy_matmul_desc(self.product).and(result::destroy_handle(self.handle))
        };
        if let Err(error) = freed {
            tracing::debug!("cuBLASLt was not closed: {error:?}");
        }
    }
}
