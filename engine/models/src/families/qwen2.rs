//! Qwen 2, dense (Yang et al., arXiv 2407.10671).
//!
//! As Llama, with biases of queries, keys and values; GGUF files keep the order of rows.

use engine_tensor::ops::RopePairs;

use super::Family;
use super::plan::{Traits, dense};

pub(super) const FAMILY: Family = Family {
    id: "qwen2",
    about: "Qwen 2 and 2.5, dense",
    model_types: &["qwen2"],
    architectures: &["qwen2"],
    plan: |config, checkpoint| {
        let traits = Traits {
            gguf_pairs: RopePairs::Halves,
            head_norms: false,
            qkv_bias: true,
        };
        dense(config, checkpoint, traits)
    },
};
