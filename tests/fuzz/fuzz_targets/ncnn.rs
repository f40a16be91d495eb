//! Any bytes, read as an ncnn network (its text up to the first zero byte, then its weights), and as the
//! tensors of a picture model: no panic, and tensors lie within the weights.

#![no_main]

use std::path::Path;

use engine_models::picture_tensors_of_ncnn;
use engine_weights::Ncnn;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let weights = bytes.get(text.len() + 1..).unwrap_or_default();
    let Ok(net) = Ncnn::from_bytes(text, weights.to_vec(), Path::new("fuzzed.param")) else {
        return;
    };
    let tensors = net.layers.iter().flat_map(|layer| &layer.weights);
    let stored: usize = tensors.map(|tensor| tensor.bytes.len()).sum();
    assert!(stored <= weights.len(), "tensors share bytes");
    if let Ok(tensors) = picture_tensors_of_ncnn(&net) {
        assert!(tensors.values().all(|tensor| tensor.to_f32().is_ok()));
    }
});
