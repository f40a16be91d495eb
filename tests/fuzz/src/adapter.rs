//! Any bytes, read as an adapter and merged into a matrix of the size it asks for.

use std::collections::BTreeMap;
use std::path::Path;

use engine_weights::{
    Adapted, Adapter, AdapterUse, Checkpoint as _, NETWORK_PART, SafeTensors, ScaledRows,
    TensorRef, safetensors_bytes,
};

const SIDE: usize = 8;

/// No panic, and what is merged has the size of what it is merged into.
pub fn adapter(bytes: &[u8]) {
    let path = Path::new("fuzzed.safetensors");
    let Ok(file) = SafeTensors::from_bytes(bytes.to_vec(), path) else {
        return;
    };
    if let Ok(scaled) = SafeTensors::from_bytes(bytes.to_vec(), path)
        && let Ok(scaled) = ScaledRows::new(Box::new(scaled))
    {
        for name in scaled.names() {
            if let Some(tensor) = scaled.tensor(name) {
                assert!(
                    tensor.bytes.len() <= 4 * bytes.len(),
                    "a tensor of more values than the file"
                );
            }
        }
    }
    let Ok(adapter) = Adapter::of(&file, path) else {
        return;
    };
    let matrix = vec![0u8; 4 * SIDE * SIDE];
    let matrix = TensorRef::new(engine_tensor::DType::F32, vec![SIDE, SIDE], matrix.into());
    let matrix = matrix.expect("a matrix of its size");
    let tensors = BTreeMap::from([("a.b.weight".to_owned(), matrix)]);
    let base = safetensors_bytes(&tensors, &[], path).expect("a file of floats");
    let base = SafeTensors::from_bytes(base, path).expect("a file that was just written");
    let uses = [AdapterUse {
        adapter: &adapter,
        weight: 0.5,
    }];
    let Ok(adapted) = Adapted::new(Box::new(base), &uses, (NETWORK_PART, "none"), &[]) else {
        return;
    };
    if let Some(merged) = adapted.tensor("a.b.weight") {
        assert_eq!(merged.shape, [SIDE, SIDE]);
        assert_eq!(merged.bytes.len(), 4 * SIDE * SIDE);
    }
}
