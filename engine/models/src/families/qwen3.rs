//! Qwen 3, dense (Yang et al., arXiv 2505.09388).
//!
//! Checked against transformers 5.24 (`models/qwen3/modeling_qwen3.py`): queries and keys are
//! normalized head by head, and heads may be wider than hidden size / heads.

use engine_tensor::ops::RopePairs;

use super::Family;
use super::plan::{Traits, dense};

pub(super) const FAMILY: Family = Family {
    id: "qwen3",
    about: "Qwen 3, dense",
    model_types: &["qwen3"],
    architectures: &["qwen3"],
    plan: |config, checkpoint| {
        let traits = Traits {
            gguf_pairs: RopePairs::Halves,
            head_norms: true,
            qkv_bias: false,
        };
        dense(config, checkpoint, traits)
    },
};
