//! Calls that run on another machine: how one is handed out, and how a machine that was handed
//! one runs it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine_base::{CancelToken, Code, Key, ProgressSink};
use flow_graph::{Call, Exactness, Lane, NodeContext, NodeError, NodeSpec, Outcome, Value};
use flow_store::{NewResult, Provenance, SMALL_MAX_BYTES, StoredPort, StoredValue};

use crate::artifacts::{StoreArtifacts, node_error};
use crate::convert::{from_stored, load_value, store_value, to_stored};
use crate::element::ports_of;
use crate::executor::Executor;
use crate::keys;
use crate::perform::{guard, millis};

/// A call as it travels: given its inputs it says the same everywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct FarCall {
    /// Names the work. Who runs the call takes the key again and compares.
    pub key: Key,
    /// Node type.
    pub node_type: String,
    /// Its version.
    pub version: u32,
    /// Id of the node in the run, for people.
    pub node: String,
    /// Values by input.
    pub inputs: BTreeMap<String, Vec<StoredValue>>,
}

/// What a call gave on another machine.
#[derive(Debug, Clone, PartialEq)]
pub struct FarMade {
    /// Its outputs in port order. Their files are in this machine's store.
    pub ports: Vec<StoredPort>,
    /// Wall time of the call alone.
    pub wall: Duration,
    /// Engine build that made it.
    pub engine_build: String,
    /// What it was made on, such as `cpu`.
    pub device_class: String,
    /// Whether the other machine's store had it already.
    pub reused: bool,
}

/// Why a machine did not run a call that it was handed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FarError {
    /// It has no such node type.
    #[error("cannot run {node_type:?}: this worker has no such node type")]
    NoSuchType {
        /// What was asked for.
        node_type: String,
    },
    /// It has another version of the node type.
    #[error("cannot run {node_type:?}: expected version {expected}, this worker has {got}")]
    Version {
        /// What was asked for.
        node_type: String,
        /// In which version.
        expected: u32,
        /// What there is.
        got: u32,
    },
    /// The same call has another key here: a model, a font or a codec library differs.
    #[error(
        "cannot run {node_type:?}: a model, font or library on this worker is another one: \
         expected key {expected}, got {got}"
    )]
    OtherKey {
        /// What was asked for.
        node_type: String,
        /// The key it came with.
        expected: Key,
        /// The key it has here.
        got: Key,
    },
    /// The node failed, or the store.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// Runs calls on other machines.
pub trait Elsewhere: Send + Sync {
    /// Whether calls of this type are handed out.
    fn takes(&self, spec: &NodeSpec) -> bool;

    /// Have a call run and wait for it. Afterwards its files are in this machine's store.
    ///
    /// # Errors
    /// Why it came to nothing, for good.
    fn run(
        &self,
        call: &FarCall,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<FarMade, NodeError>;
}

/// `call` as it travels; `None` when it holds a loaded thing, or plain data that is too large to be
/// stored: both stay where they are.
pub(crate) fn far_call(key: Key, spec: &NodeSpec, node: &str, call: &Call) -> Option<FarCall> {
    let mut inputs = BTreeMap::new();
    for (name, values) in &call.inputs {
        let values: Result<Vec<StoredValue>, NodeError> = values
            .iter()
            .map(|value| store_value(name, value))
            .collect();
        let values = values.ok()?;
        let is_small = |value: &StoredValue| match value {
            StoredValue::Small(datum) => {
                let canonical = datum.canonical();
                canonical.is_ok_and(|bytes| bytes.len() <= SMALL_MAX_BYTES)
            }
            StoredValue::Blob(_) | StoredValue::Blocked(_) => true,
        };
        if !values.iter().all(is_small) {
            return None;
        }
        inputs.insert(name.clone(), values);
    }
    Some(FarCall {
        key,
        node_type: spec.type_name.to_owned(),
        version: spec.version,
        node: node.to_owned(),
        inputs,
    })
}

/// What a store is told of how sure a result is.
pub(crate) const fn stored_exactness(exactness: Exactness) -> flow_store::Exactness {
    match exactness {
        Exactness::Exact => flow_store::Exactness::Exact,
        Exactness::Tolerant => flow_store::Exactness::Tolerant,
        Exactness::Recorded => flow_store::Exactness::Recorded,
    }
}

/// What a lane runs on.
pub(crate) fn device_class(lane: Lane) -> String {
    match lane {
        Lane::Cpu | Lane::Wait => "cpu".to_owned(),
        Lane::Device => "device".to_owned(),
    }
}

impl FarCall {
    /// The files it reads, with repetitions.
    pub fn files(&self) -> impl Iterator<Item = &flow_store::StoredBlob> {
        let values = self.inputs.values().flatten();
        values.filter_map(|value| match value {
            StoredValue::Blob(blob) => Some(blob),
            StoredValue::Small(_) | StoredValue::Blocked(_) => None,
        })
    }
}

impl Executor {
    /// What a second result of a node type means; unknown types give nothing that could differ.
    pub fn exactness_of(&self, node_type: &str) -> flow_store::Exactness {
        let node = self.registry().get(node_type);
        node.map_or(flow_store::Exactness::Tolerant, |node| {
            stored_exactness(node.spec().exactness)
        })
    }

    /// Node types and versions it can run.
    pub fn node_types(&self) -> BTreeMap<String, u32> {
        let types = self.registry().iter().map(|node| node.spec());
        types
            .map(|spec| (spec.type_name.to_owned(), spec.version))
            .collect()
    }

    /// Run a call that came from another machine, with this machine's node types and store, which
    /// has the call's files. A result that the store has is not made again; a new one is committed.
    ///
    /// # Errors
    /// [`FarError`]: the call belongs on another machine, or its node failed.
    pub fn run_call(
        &self,
        far: &FarCall,
        threads: usize,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<FarMade, FarError> {
        let node_type = || far.node_type.clone();
        let Some(node) = self.registry().get(&far.node_type) else {
            return Err(FarError::NoSuchType {
                node_type: node_type(),
            });
        };
        let spec = node.spec();
        if spec.version != far.version {
            return Err(FarError::Version {
                node_type: node_type(),
                expected: far.version,
                got: spec.version,
            });
        }
        let values = |list: &Vec<StoredValue>| list.iter().map(load_value).collect();
        let inputs = far.inputs.iter();
        let call = Call {
            inputs: inputs.map(|(name, l)| (name.clone(), values(l))).collect(),
        };
        let key = keys::key(self.side_data(), &**node, &call)?;
        if key != far.key {
            return Err(FarError::OtherKey {
                node_type: node_type(),
                expected: far.key,
                got: key,
            });
        }
        let made = |ports, wall, reused| FarMade {
            ports,
            wall,
            engine_build: env!("CARGO_PKG_VERSION").to_owned(),
            device_class: device_class(spec.lane),
            reused,
        };
        let artifacts = StoreArtifacts::new(self.store().clone());
        let found = self.store().lookup(&[key]).map_err(|e| node_error(&e))?;
        if let Some(result) = found.into_iter().flatten().next()
            && spec.durable
        {
            let ports = from_stored(&result.ports);
            artifacts
                .hold_all([&ports].into_iter())
                .map_err(|e| node_error(&e))?;
            if artifacts.are_there(&ports) {
                return Ok(made(result.ports, Duration::ZERO, true));
            }
        }
        let context = NodeContext {
            artifacts: &artifacts,
            cancel,
            progress,
            threads,
        };
        let start = self.clock().monotonic();
        let outcome = guard(spec.type_name, || node.run(&context, &call))?;
        let wall = self.clock().monotonic().saturating_sub(start);
        let Outcome::Values(outputs) = outcome else {
            let what = format!(
                "{:?} gives a graph: it runs at its owner only",
                spec.type_name
            );
            return Err(NodeError::new(Code::Refused, what).into());
        };
        // Once cancelled nothing is kept: the lease may be another worker's by now.
        cancel.check().map_err(NodeError::from)?;
        let ports = to_stored(spec, &ports_of(spec, outputs)?)?;
        let committed = self.store().commit(NewResult {
            key,
            node_type: node_type(),
            ports,
            exactness: stored_exactness(spec.exactness),
            provenance: Provenance {
                inputs: keys::contents(spec, &call),
                engine_build: env!("CARGO_PKG_VERSION").to_owned(),
                device_class: device_class(spec.lane),
                wall_millis: millis(wall),
            },
        });
        let result = committed.map_err(|e| node_error(&e))?.into_result();
        Ok(made(result.ports, wall, false))
    }
}

/// Shared by a run and its threads.
pub(crate) type Far = Option<Arc<dyn Elsewhere>>;

/// Whether any value of a call is a loaded thing.
pub(crate) fn stays(call: &Call) -> bool {
    let values = call.inputs.values().flatten();
    values.into_iter().any(|v| matches!(v, Value::Handle(_)))
}
