//! Any bytes, read as a GGUF checkpoint: no panic, and what is read can be looked at.

#![no_main]

use std::path::Path;

use engine_weights::{Checkpoint as _, Gguf, Inspection, first_non_finite};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = Gguf::from_bytes(bytes.to_vec(), Path::new("fuzzed.gguf")) else {
        return;
    };
    let mut stored = 0;
    for name in read.names() {
        let tensor = read.tensor(name).expect("what is named is there");
        stored += tensor.bytes.len();
        if let Ok(values) = tensor.to_f32() {
            let first = values.iter().position(|value| !value.is_finite());
            assert_eq!(first_non_finite(&tensor), first);
        }
    }
    assert!(stored <= bytes.len(), "tensors share bytes");
    let metadata = read.metadata();
    for (key, value) in metadata.iter() {
        assert!(!value.describe().is_empty());
        drop((metadata.texts(key), metadata.integers(key), metadata.floats(key)));
    }
    drop(Inspection::of(&read));
});
