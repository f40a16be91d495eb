//! Between the values of a graph and what a store keeps.

use std::sync::Arc;

use engine_base::Code;
use flow_graph::{BlobRef, NodeError, NodeSpec, Value};
use flow_store::{StoredBlob, StoredPort, StoredValue};

use crate::element::Ports;

/// What the store keeps for these outputs.
///
/// # Errors
/// [`Code::Internal`] when an output is a handle. Whether plain data is small enough and has a
/// canonical form, the store checks.
pub(crate) fn to_stored(spec: &NodeSpec, ports: &Ports) -> Result<Vec<StoredPort>, NodeError> {
    let mut stored = Vec::with_capacity(ports.len());
    for (output, list) in spec.outputs.iter().zip(ports) {
        let mut elements = Vec::with_capacity(list.len());
        for value in list {
            elements.push(store_value(output.name, value)?);
        }
        stored.push(StoredPort {
            list: output.list,
            elements,
        });
    }
    Ok(stored)
}

pub(crate) fn store_value(output: &str, value: &Value) -> Result<StoredValue, NodeError> {
    match value {
        Value::Data(datum) => Ok(StoredValue::Small(datum.as_ref().clone())),
        Value::Blob(blob) => Ok(StoredValue::Blob(StoredBlob {
            hash: blob.hash,
            bytes: blob.bytes,
            media_type: blob.media_type.clone(),
        })),
        Value::Blocked(message) => Ok(StoredValue::Blocked(message.clone())),
        Value::Handle(_) => Err(NodeError::new(
            Code::Internal,
            format!(
                "output {output:?}: cannot store a loaded thing: a node that gives one must not \
                 be durable"
            ),
        )),
    }
}

/// The outputs that `stored` keeps.
pub(crate) fn from_stored(stored: &[StoredPort]) -> Ports {
    stored
        .iter()
        .map(|port| port.elements.iter().map(load_value).collect())
        .collect()
}

pub(crate) fn load_value(stored: &StoredValue) -> Value {
    match stored {
        StoredValue::Small(datum) => Value::Data(Arc::new(datum.clone())),
        StoredValue::Blob(blob) => Value::Blob(BlobRef {
            hash: blob.hash,
            bytes: blob.bytes,
            media_type: blob.media_type.clone(),
        }),
        StoredValue::Blocked(message) => Value::Blocked(message.clone()),
    }
}
