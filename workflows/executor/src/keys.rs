//! Keys of calls, with what all calls of a type share made once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine_base::{Code, ContentHash, Key};
use flow_graph::{Call, KeyInput, KeyMaker, Node, NodeError, NodeSpec, Value};

/// The shared part of the keys of every type seen; a node's side data is read once.
#[derive(Default)]
pub(crate) struct SideData {
    makers: Mutex<HashMap<&'static str, Arc<KeyMaker>>>,
}

impl SideData {
    fn maker(&self, node: &dyn Node) -> Result<Arc<KeyMaker>, NodeError> {
        let type_name = node.spec().type_name;
        let known = self.lock().get(type_name).cloned();
        if let Some(maker) = known {
            return Ok(maker);
        }
        // Outside the lock: side data may mean hashing a font.
        let maker = KeyMaker::new(node);
        let maker = maker.map_err(|error| NodeError::new(Code::Internal, error.to_string()))?;
        Ok(Arc::clone(
            self.lock().entry(type_name).or_insert(Arc::new(maker)),
        ))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Arc<KeyMaker>>> {
        self.makers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of a call. Lazy links that were not taken are not in the call and so not in the key.
///
/// # Errors
/// [`Code::BadInput`] for an input without a canonical form.
pub(crate) fn key(side_data: &SideData, node: &dyn Node, call: &Call) -> Result<Key, NodeError> {
    let spec = node.spec();
    let maker = side_data.maker(node)?;
    let mut identities = Vec::with_capacity(spec.inputs.len());
    for input in &spec.inputs {
        let list = call.inputs.get(input.name);
        let list = list.map(|list| identify(input.name, list)).transpose()?;
        identities.push(list);
    }
    let inputs: Vec<KeyInput<'_>> = spec
        .inputs
        .iter()
        .zip(&identities)
        .map(|(input, list)| match list.as_deref() {
            None => KeyInput::Absent,
            Some(list) if input.whole_list => KeyInput::List(list),
            Some([(kind, hash)]) => KeyInput::One(*kind, *hash),
            Some(list) => KeyInput::List(list),
        })
        .collect();
    let key = maker.key(&inputs);
    key.map_err(|error| NodeError::new(Code::Internal, error.to_string()))
}

fn identify(name: &str, list: &[Value]) -> Result<Vec<(u8, ContentHash)>, NodeError> {
    let of_value = |value: &Value| {
        value
            .identity()
            .map_err(|error| NodeError::new(Code::BadInput, format!("input {name:?}: {error}")))
    };
    list.iter().map(of_value).collect()
}

/// Content hashes of the files and loaded things of a call, in port order: its provenance. Plain
/// data is small and counts in the key alone.
pub(crate) fn contents(spec: &NodeSpec, call: &Call) -> Vec<ContentHash> {
    let lists = spec.inputs.iter().map(|input| call.list(input.name));
    let hashes = lists.flatten().filter_map(|value| match value {
        Value::Blob(blob) => Some(blob.hash),
        Value::Handle(handle) => Some(handle.content),
        Value::Data(_) | Value::Blocked(_) => None,
    });
    hashes.collect()
}
