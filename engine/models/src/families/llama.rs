//! Llama (Touvron et al., arXiv 2307.09288; Grattafiori et al., arXiv 2407.21783).
//!
//! Checked against transformers 5.24 (`models/llama/modeling_llama.py`). GGUF files hold the rows of
//! queries and keys permuted, so that rotary pairs are neighbours.

use engine_tensor::ops::RopePairs;

use super::Family;
use super::plan::{Traits, dense};

pub(super) const FAMILY: Family = Family {
    id: "llama",
    about: "Llama 2 and 3, SmolLM2 and what shares their layout",
    model_types: &["llama"],
    architectures: &["llama"],
    plan: |config, checkpoint| {
        let traits = Traits {
            gguf_pairs: RopePairs::Neighbours,
            head_norms: false,
            qkv_bias: false,
        };
        dense(config, checkpoint, traits)
    },
};
