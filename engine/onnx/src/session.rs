//! One opened network.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine_base::CancelToken;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, Outlet, Tensor, TensorElementType};

use crate::error::OnnxError;
use crate::outputs::more_outputs;
use crate::runtime::OnnxRuntime;
use crate::tensor::{OnnxData, OnnxTensor, OnnxType};

/// Protocol buffers hold no more.
const MODEL_LIMIT_BYTES: u64 = (2 << 30) - 1;

/// Most values that one output may have.
const OUTPUT_LIMIT: usize = 1 << 28;

/// How often a run looks whether it should stop.
const LOOK: Duration = Duration::from_millis(20);

/// How to open a network.
#[derive(Debug, Clone)]
pub struct OnnxOptions {
    /// Most runs at once; further ones wait. Each run takes one thread, since sums come out
    /// differently when they are shared out among several, and each beyond the first takes the
    /// network's memory again when it is first needed.
    pub runs: usize,
    /// Values inside the network that are given as outputs too.
    pub inner_outputs: Vec<String>,
}

impl Default for OnnxOptions {
    fn default() -> Self {
        Self {
            runs: 1,
            inner_outputs: Vec::new(),
        }
    }
}

/// A named input or output of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnnxPort {
    /// Its name.
    pub name: String,
    /// Kind of its values; `None` for one that is not spoken here.
    pub kind: Option<OnnxType>,
    /// Its shape; `None` where any length goes.
    pub shape: Vec<Option<usize>>,
}

impl OnnxPort {
    fn of(outlet: &Outlet) -> Self {
        let kind = match outlet.dtype().tensor_type() {
            Some(TensorElementType::Float32) => Some(OnnxType::F32),
            Some(TensorElementType::Int64) => Some(OnnxType::I64),
            _ => None,
        };
        let shape = outlet.dtype().tensor_shape();
        Self {
            name: outlet.name().to_owned(),
            kind,
            shape: shape
                .map(|shape| shape.iter().map(|l| usize::try_from(*l).ok()).collect())
                .unwrap_or_default(),
        }
    }

    /// Why `tensor` cannot go in here.
    fn refuses(&self, tensor: &OnnxTensor) -> Option<String> {
        if self.kind != Some(tensor.kind()) {
            let kind = self.kind.map_or("another kind".into(), |k| k.to_string());
            return Some(format!("expected {kind} values, got {}", tensor.kind()));
        }
        let fits = self.shape.len() == tensor.shape().len()
            && self
                .shape
                .iter()
                .zip(tensor.shape())
                .all(|(expected, got)| expected.is_none_or(|expected| expected == *got));
        if fits {
            return None;
        }
        let shown: Vec<String> = self
            .shape
            .iter()
            .map(|length| length.map_or("any".into(), |length| length.to_string()))
            .collect();
        Some(format!(
            "expected the shape [{}], got {:?}",
            shown.join(", "),
            tensor.shape()
        ))
    }
}

/// An opened network.
#[derive(Debug)]
pub struct OnnxSession {
    pool: Pool,
    inputs: Vec<OnnxPort>,
    outputs: Vec<OnnxPort>,
    path: PathBuf,
}

impl OnnxSession {
    /// Open the model at `path`.
    ///
    /// # Errors
    /// [`OnnxError::Io`], [`OnnxError::BadModel`] for a file that is no model of this library or
    /// has no value of a name in `inner_outputs`.
    pub fn load(
        runtime: &OnnxRuntime,
        path: &Path,
        options: &OnnxOptions,
    ) -> Result<Self, OnnxError> {
        let io = |error| OnnxError::Io {
            error,
            path: path.to_owned(),
        };
        let bad = |reason: String| OnnxError::BadModel {
            reason,
            path: path.to_owned(),
        };
        let found = fs::metadata(path).map_err(io)?;
        if !found.is_file() || found.len() == 0 || found.len() > MODEL_LIMIT_BYTES {
            return Err(bad(format!(
                "expected a file of 1 to {MODEL_LIMIT_BYTES} bytes, got {}",
                found.len()
            )));
        }
        let session = open(runtime, path, options)?;
        let ports = |outlets: &[Outlet]| outlets.iter().map(OnnxPort::of).collect();
        Ok(Self {
            inputs: ports(session.inputs()),
            outputs: ports(session.outputs()),
            pool: Pool::new(runtime, options, session),
            path: path.to_owned(),
        })
    }

    /// What goes in, in the model's order.
    pub fn inputs(&self) -> &[OnnxPort] {
        &self.inputs
    }

    /// What comes out, in the model's order; inner values last.
    pub fn outputs(&self) -> &[OnnxPort] {
        &self.outputs
    }

    /// Run the network: every input by name once, outputs as `wanted` names them, in that order.
    /// Ends within about a twentieth of a second after `cancel` was raised.
    ///
    /// # Errors
    /// [`OnnxError::BadInput`] for one that is missing, unknown, named twice or of a wrong kind or
    /// shape, [`OnnxError::BadOutput`], [`OnnxError::Failed`], [`OnnxError::Cancelled`].
    pub fn run(
        &self,
        inputs: Vec<(&str, OnnxTensor)>,
        wanted: &[&str],
        cancel: &CancelToken,
    ) -> Result<Vec<OnnxTensor>, OnnxError> {
        cancel.check()?;
        self.check(&inputs, wanted)?;
        let failed = |error: ort::Error| {
            if cancel.is_cancelled() {
                return OnnxError::Cancelled(engine_base::Cancelled);
            }
            OnnxError::Failed {
                reason: error.to_string(),
                model: self.path.clone(),
            }
        };
        let mut values: Vec<(&str, SessionInputValue<'_>)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let shape = tensor.shape().to_vec();
            let value: SessionInputValue<'_> = match tensor.into_data() {
                OnnxData::F32(data) => Tensor::from_array((shape, data)).map_err(failed)?.into(),
                OnnxData::I64(data) => Tensor::from_array((shape, data)).map_err(failed)?.into(),
            };
            values.push((name, value));
        }
        let options = RunOptions::new().map_err(failed)?;
        let mut taken = self.pool.take(&self.path, cancel)?;
        let Some(session) = taken.session.as_mut() else {
            return Err(failed(ort::Error::new("there is no session")));
        };
        let outputs = stoppable(&options, cancel, || {
            session.run_with_options(values, &options)
        });
        let outputs = outputs.map_err(failed)?;
        let take = |name: &&str| {
            let value = outputs.get(name).ok_or_else(|| missing(name))?;
            tensor_of(name, value)
        };
        wanted.iter().map(take).collect()
    }

    fn check(&self, inputs: &[(&str, OnnxTensor)], wanted: &[&str]) -> Result<(), OnnxError> {
        let refused = |name: &str, reason: String| OnnxError::BadInput {
            name: name.to_owned(),
            reason,
            model: self.path.clone(),
        };
        for (at, (name, tensor)) in inputs.iter().enumerate() {
            let Some(port) = self.inputs.iter().find(|port| port.name == *name) else {
                let known: Vec<&str> = self.inputs.iter().map(|p| p.name.as_str()).collect();
                let reason = format!("the model takes {}", known.join(", "));
                return Err(refused(name, reason));
            };
            if inputs.iter().skip(at + 1).any(|(other, _)| other == name) {
                return Err(refused(name, "it is given twice".into()));
            }
            if let Some(reason) = port.refuses(tensor) {
                return Err(refused(name, reason));
            }
        }
        let given = |port: &&OnnxPort| !inputs.iter().any(|(name, _)| *name == port.name);
        if let Some(port) = self.inputs.iter().find(given) {
            return Err(refused(&port.name, "it is missing".into()));
        }
        match wanted
            .iter()
            .find(|name| !self.outputs.iter().any(|port| port.name == **name))
        {
            Some(name) => Err(missing(name)),
            None => Ok(()),
        }
    }
}

fn open(runtime: &OnnxRuntime, path: &Path, options: &OnnxOptions) -> Result<Session, OnnxError> {
    build(runtime, path, options).map_err(|fault| match fault {
        Fault::Io(error) => OnnxError::Io {
            error,
            path: path.to_owned(),
        },
        Fault::Ort(error) => OnnxError::BadModel {
            reason: error.to_string(),
            path: path.to_owned(),
        },
    })
}

fn build(runtime: &OnnxRuntime, path: &Path, options: &OnnxOptions) -> Result<Session, Fault> {
    let mut builder = Session::builder(&runtime.environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(1)?
        .with_inter_threads(1)?
        .with_parallel_execution(false)?
        .with_deterministic_compute(true)?
        // Lengths differ from run to run: patterns would hold the memory of each.
        .with_memory_pattern(false)?;
    if options.inner_outputs.is_empty() {
        return Ok(builder.commit_from_file(path)?);
    }
    let mut model = fs::read(path).map_err(Fault::Io)?;
    model.extend(more_outputs(&options.inner_outputs));
    Ok(builder.commit_from_memory(&model)?)
}

/// Sessions of one network, opened as they are needed.
#[derive(Debug)]
struct Pool {
    runtime: OnnxRuntime,
    options: OnnxOptions,
    state: Mutex<PoolState>,
    freed: Condvar,
}

#[derive(Debug)]
struct PoolState {
    idle: Vec<Session>,
    opened: usize,
}

impl Pool {
    fn new(runtime: &OnnxRuntime, options: &OnnxOptions, first: Session) -> Self {
        Self {
            runtime: runtime.clone(),
            options: options.clone(),
            state: Mutex::new(PoolState {
                idle: vec![first],
                opened: 1,
            }),
            freed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session for one run; waits until one is free.
    fn take(&self, path: &Path, cancel: &CancelToken) -> Result<Taken<'_>, OnnxError> {
        let mut state = self.lock();
        loop {
            cancel.check()?;
            if let Some(session) = state.idle.pop() {
                return Ok(Taken {
                    pool: self,
                    session: Some(session),
                });
            }
            if state.opened < self.options.runs {
                state.opened += 1;
                drop(state);
                // Counted as opened from here: given back or taken off, whatever happens.
                let mut taken = Taken {
                    pool: self,
                    session: None,
                };
                taken.session = Some(open(&self.runtime, path, &self.options)?);
                return Ok(taken);
            }
            let waited = self.freed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A session out of the pool, given back at the end.
struct Taken<'a> {
    pool: &'a Pool,
    session: Option<Session>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        match self.session.take() {
            Some(session) => state.idle.push(session),
            None => state.opened -= 1,
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}

enum Fault {
    Io(std::io::Error),
    Ort(ort::Error),
}

impl<R> From<ort::Error<R>> for Fault
where
    ort::Error: From<ort::Error<R>>,
{
    fn from(error: ort::Error<R>) -> Self {
        Self::Ort(error.into())
    }
}

fn missing(name: &str) -> OnnxError {
    OnnxError::BadOutput {
        name: name.to_owned(),
        got: "not there".into(),
        expected: "an output of the model".into(),
    }
}

fn tensor_of(name: &str, value: &DynValue) -> Result<OnnxTensor, OnnxError> {
    let bad = |got: String| OnnxError::BadOutput {
        name: name.to_owned(),
        got,
        expected: "f32 or i64 values, at least one".into(),
    };
    let lengths = |shape: &[i64]| -> Result<Vec<usize>, OnnxError> {
        let lengths: Result<Vec<usize>, _> = shape.iter().map(|l| usize::try_from(*l)).collect();
        let values = lengths.as_ref().ok().and_then(|lengths| {
            lengths
                .iter()
                .try_fold(1usize, |product, length| product.checked_mul(*length))
        });
        match (lengths, values) {
            (Ok(lengths), Some(1..=OUTPUT_LIMIT)) => Ok(lengths),
            _ => Err(bad(format!("of the shape {shape:?}"))),
        }
    };
    match value.dtype().tensor_type() {
        Some(TensorElementType::Float32) => {
            let tensor = value.try_extract_tensor::<f32>();
            let (shape, data) = tensor.map_err(|error| bad(error.to_string()))?;
            OnnxTensor::f32(&lengths(shape)?, data.to_vec())
        }
        Some(TensorElementType::Int64) => {
            let tensor = value.try_extract_tensor::<i64>();
            let (shape, data) = tensor.map_err(|error| bad(error.to_string()))?;
            OnnxTensor::i64(&lengths(shape)?, data.to_vec())
        }
        other => Err(bad(format!("of the kind {other:?}"))),
    }
}

/// `work`, with a thread beside it that ends the run when `cancel` is raised.
fn stoppable<T>(options: &RunOptions, cancel: &CancelToken, work: impl FnOnce() -> T) -> T {
    let (ended, told) = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let watch = || {
            let mut over = ended.lock().unwrap_or_else(PoisonError::into_inner);
            while !*over {
                if cancel.is_cancelled() {
                    if let Err(error) = options.terminate() {
                        tracing::debug!("a run cannot be stopped: {error}");
                    }
                    return;
                }
                let waited = told.wait_timeout(over, LOOK);
                over = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        let watcher = std::thread::Builder::new()
            .name("onnx-stop".into())
            .spawn_scoped(scope, watch);
        if let Err(error) = watcher {
            tracing::debug!("a run cannot be stopped early: {error}");
        }
        let result = work();
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
        result
    })
}
