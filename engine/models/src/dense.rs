//! The forward pass of dense decoders, and its streams.

use std::sync::{Arc, Mutex, PoisonError};

use engine_base::CancelToken;
use engine_nn::{
    AttentionShape, AttentionTensors, KvCache, LayerError, Linear, ModelError, RmsNorm, Runner,
    SelfAttention, StreamRow, SwiGlu, TokenModel,
};
use engine_tensor::ops::{KvKind, RopePairs, RopeScaling, RopeTable, add, embedding};
use engine_tensor::{Cpu, TensorError};
use engine_weights::Checkpoint;

use crate::{LoadError, LoadOptions};

/// Tokens of a chunk of prefill. Chunks end at multiples of it.
const CHUNK_TOKENS: usize = 128;

/// Names of the tensors of one layer.
pub(crate) struct LayerTensors {
    pub(crate) attention_norm: String,
    pub(crate) attention: AttentionTensors,
    pub(crate) mlp_norm: String,
    pub(crate) gate: (String, Option<String>),
    pub(crate) up: (String, Option<String>),
    pub(crate) down: (String, Option<String>),
}

type NamesOfLayer = dyn Fn(&dyn Checkpoint, usize) -> LayerTensors;

/// Sizes of a dense decoder and names of its tensors.
pub(crate) struct DensePlan {
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) inner: usize,
    pub(crate) vocab: usize,
    pub(crate) context: usize,
    pub(crate) epsilon: f32,
    pub(crate) rope_base: f64,
    pub(crate) rope_scaling: RopeScaling,
    pub(crate) rope_dims: usize,
    pub(crate) rope_pairs: RopePairs,
    /// Tensor by which rotary frequencies are divided.
    pub(crate) rope_factors: Option<String>,
    /// Positions that a layer sees.
    pub(crate) windows: Box<dyn Fn(usize) -> Option<usize>>,
    pub(crate) embed: String,
    pub(crate) norm: String,
    /// The head; the table of embeddings when `None`.
    pub(crate) head: Option<String>,
    pub(crate) layer_tensors: Box<NamesOfLayer>,
}

/// What was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Name of the family.
    pub family: &'static str,
    /// Whether the head is the table of embeddings.
    pub tied_head: bool,
    /// For a log: one sentence each.
    pub lines: Vec<String>,
}

#[derive(Debug)]
struct Layer {
    attention_norm: RmsNorm,
    attention: SelfAttention,
    mlp_norm: RmsNorm,
    mlp: SwiGlu,
}

/// The weights of a dense decoder, shared by its streams.
#[derive(Debug)]
pub struct DenseModel {
    hidden: usize,
    kv: (KvKind, usize, usize),
    context_tokens: usize,
    embed: Linear,
    layers: Vec<Layer>,
    norm: RmsNorm,
    head: Option<Linear>,
    table: Mutex<Arc<RopeTable>>,
    cpu: Cpu,
    options: LoadOptions,
    report: LoadReport,
}

/// What a forward pass went through, for checks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// The residual stream before each layer, and the normed end: `[layers + 1][rows, hidden]`.
    pub hidden: Vec<Vec<f32>>,
    /// `[rows, vocab]`.
    pub logits: Vec<f32>,
}

/// Which rows of a call need logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Last,
    All,
}

impl DenseModel {
    pub(crate) fn load(
        checkpoint: &dyn Checkpoint,
        family: &'static str,
        plan: &DensePlan,
        options: &LoadOptions,
    ) -> Result<Self, LoadError> {
        let context_tokens = match options.context_tokens {
            Some(got) if got > plan.context => {
                return Err(LoadError::Context {
                    got,
                    max: plan.context,
                });
            }
            Some(tokens) => tokens,
            None => plan.context,
        };
        let cpu = Cpu::with_affinity(options.threads, options.affinity)?;
        let embed = Linear::load(checkpoint, &plan.embed, plan.vocab, plan.hidden)?;
        let mut layers = Vec::new();
        for index in 0..plan.layers {
            layers.push(load_layer(checkpoint, plan, index)?);
        }
        let norm = RmsNorm::load(checkpoint, &plan.norm, plan.hidden, plan.epsilon)?;
        let head = match &plan.head {
            Some(head) => Some(Linear::load(checkpoint, head, plan.vocab, plan.hidden)?),
            None => None,
        };
        let mut table = RopeTable::new(
            plan.rope_dims,
            plan.rope_base,
            plan.rope_scaling,
            plan.rope_pairs,
        )?;
        if let Some(name) = &plan.rope_factors {
            let factors = RmsNorm::load(checkpoint, name, plan.rope_dims / 2, 0.0)?;
            table.divide(factors.weight())?;
        }
        let mut lines = vec![format!("the model is of family {family}")];
        if plan.head.is_none() {
            lines.push(format!(
                "the head is the table of embeddings {:?}",
                plan.embed
            ));
        }
        Ok(Self {
            hidden: plan.hidden,
            kv: (options.kv, plan.kv_heads, plan.head_dim),
            context_tokens,
            embed,
            layers,
            norm,
            head,
            table: Mutex::new(Arc::new(table)),
            cpu,
            options: *options,
            report: LoadReport {
                family,
                tied_head: plan.head.is_none(),
                lines,
            },
        })
    }

    /// What was loaded.
    pub fn report(&self) -> &LoadReport {
        &self.report
    }

    /// Size of the vocabulary.
    pub fn vocab_tokens(&self) -> usize {
        self.embed.weights().rows()
    }

    /// Elements of a row of the residual stream.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// A new, empty stream.
    pub fn stream(self: Arc<Self>) -> DenseStream {
        let (kind, kv_heads, head_dim) = self.kv;
        DenseStream {
            cache: KvCache::new(kind, self.layers.len(), kv_heads, head_dim),
            runner: self.runner(),
            logits: Vec::new(),
            model: self,
        }
    }

    /// Appends to several streams of this model at once; the same bits as one after the other.
    /// Gives the logits `[vocab]` after the last token of each.
    ///
    /// # Errors
    /// As [`TokenModel::extend`]; all streams are as before. `NotANumber` too when a stream is of
    /// another model.
    pub fn extend_together(
        self: &Arc<Self>,
        streams: &mut [(&mut DenseStream, &[u32])],
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let before: Vec<usize> = streams.iter().map(|(s, _)| s.cache.tokens()).collect();
        let mut rows = Vec::new();
        let mut ids = Vec::new();
        let mut last = Vec::new();
        for (stream, (of, tokens)) in streams.iter().enumerate() {
            if !Arc::ptr_eq(&of.model, self) {
                return Err(ModelError::NotANumber(
                    "cannot run streams of two models together".to_owned(),
                ));
            }
            self.check(tokens, before[stream])?;
            for (at, token) in tokens.iter().enumerate() {
                rows.push(StreamRow {
                    stream,
                    position: before[stream] + at,
                });
                ids.push(*token);
            }
            last.push(rows.len() - 1);
        }
        let mut runner = self.runner();
        let mut caches: Vec<&mut KvCache> = streams.iter_mut().map(|(s, _)| &mut s.cache).collect();
        let done = self
            .forward(&mut runner, &mut caches, &rows, &ids, cancel, None)
            .and_then(|hidden| {
                let rows: Vec<f32> = last
                    .iter()
                    .flat_map(|row| hidden[row * self.hidden..][..self.hidden].iter().copied())
                    .collect();
                self.logits(&mut runner, &rows)
            });
        match done {
            Ok(logits) => Ok(logits
                .chunks_exact(self.vocab_tokens())
                .map(<[f32]>::to_vec)
                .collect()),
            Err(error) => {
                for (cache, before) in caches.iter_mut().zip(before) {
                    cache.truncate(before);
                }
                Err(error)
            }
        }
    }

    fn runner(&self) -> Runner {
        Runner::new(self.cpu.clone(), self.options.activations)
    }

    fn check(&self, tokens: &[u32], cached: usize) -> Result<(), ModelError> {
        let got_tokens = cached.saturating_add(tokens.len());
        if tokens.is_empty() || got_tokens > self.context_tokens {
            return Err(ModelError::ContextFull {
                got_tokens,
                max_tokens: self.context_tokens,
            });
        }
        let vocab = self.vocab_tokens();
        match tokens.iter().find(|token| **token as usize >= vocab) {
            Some(token) => Err(ModelError::BadToken { got: *token, vocab }),
            None => Ok(()),
        }
    }

    /// The rotary table, reaching `positions`.
    fn table(&self, positions: usize) -> Arc<RopeTable> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // Grown by whole steps, since a table in use is copied to grow.
        Arc::make_mut(&mut table).extend(positions.next_multiple_of(512));
        Arc::clone(&table)
    }

    /// The residual stream after the last layer, normed: `[rows, hidden]`.
    fn forward(
        &self,
        runner: &mut Runner,
        caches: &mut [&mut KvCache],
        rows: &[StreamRow],
        ids: &[u32],
        cancel: &CancelToken,
        mut trace: Option<&mut Vec<Vec<f32>>>,
    ) -> Result<Vec<f32>, ModelError> {
        let last = rows.iter().map(|row| row.position).max().unwrap_or(0);
        let table = self.table(last + 1);
        let len = rows.len() * self.hidden;
        let (mut x, mut normed, mut out) = (vec![0.0; len], vec![0.0; len], vec![0.0; len]);
        embedding(&self.cpu, self.embed.weights(), ids, &mut x).map_err(fault)?;
        for index in 0..self.layers.len() {
            cancel.check()?;
            keep(&mut trace, index, &x);
            let scratch = (&mut normed[..], &mut out[..]);
            self.block(runner, caches, (rows, &table), index, (&mut x, scratch))
                .map_err(fault)?;
        }
        self.norm.run(&self.cpu, &x, &mut normed).map_err(fault)?;
        keep(&mut trace, self.layers.len(), &normed);
        Ok(normed)
    }

    /// The residual stream after the first `blocks` layers: `[rows, hidden]`.
    fn blocks(
        &self,
        runner: &mut Runner,
        caches: &mut [&mut KvCache],
        (rows, ids): (&[StreamRow], &[u32]),
        blocks: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, ModelError> {
        let last = rows.iter().map(|row| row.position).max().unwrap_or(0);
        let table = self.table(last + 1);
        let mut x = vec![0.0; rows.len() * self.hidden];
        let (mut normed, mut out) = (x.clone(), x.clone());
        embedding(&self.cpu, self.embed.weights(), ids, &mut x).map_err(fault)?;
        for index in 0..blocks.min(self.layers.len()) {
            cancel.check()?;
            let scratch = (&mut normed[..], &mut out[..]);
            self.block(runner, caches, (rows, &table), index, (&mut x, scratch))
                .map_err(fault)?;
        }
        Ok(x)
    }

    /// Layer `index` over `x: [rows, hidden]`.
    fn block(
        &self,
        runner: &mut Runner,
        caches: &mut [&mut KvCache],
        (rows, table): (&[StreamRow], &RopeTable),
        index: usize,
        (x, (normed, out)): (&mut [f32], (&mut [f32], &mut [f32])),
    ) -> Result<(), TensorError> {
        let layer = &self.layers[index];
        layer.attention_norm.run(&self.cpu, x, normed)?;
        let at = (&mut *caches, index);
        layer
            .attention
            .run(runner, (normed, out), table, rows, at)?;
        add(&self.cpu, x, out)?;
        layer.mlp_norm.run(&self.cpu, x, normed)?;
        layer.mlp.run(runner, normed, out)?;
        add(&self.cpu, x, out)
    }

    /// `[rows, vocab]` of `hidden: [rows, hidden]`.
    fn logits(&self, runner: &mut Runner, hidden: &[f32]) -> Result<Vec<f32>, ModelError> {
        let head = self.head.as_ref().unwrap_or(&self.embed);
        let rows = hidden.len() / self.hidden;
        let mut logits = vec![0.0; rows * self.vocab_tokens()];
        runner
            .linear(hidden, [(head, &mut logits)])
            .map_err(fault)?;
        match logits.iter().position(|logit| !logit.is_finite()) {
            Some(at) => Err(ModelError::NotANumber(format!(
                "the logit of token {} is {}, expected a finite number",
                at % self.vocab_tokens(),
                logits[at]
            ))),
            None => Ok(logits),
        }
    }
}

fn keep(trace: &mut Option<&mut Vec<Vec<f32>>>, index: usize, x: &[f32]) {
    if let Some(trace) = trace {
        if trace.len() <= index {
            trace.resize(index + 1, Vec::new());
        }
        trace[index].extend_from_slice(x);
    }
}

/// Shapes were checked at load, so an op that refuses them is a fault of ours; a message is better
/// than a panic.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn fault(error: TensorError) -> ModelError {
    ModelError::NotANumber(error.to_string())
}

fn load_layer(
    checkpoint: &dyn Checkpoint,
    plan: &DensePlan,
    index: usize,
) -> Result<Layer, LayerError> {
    let names = (plan.layer_tensors)(checkpoint, index);
    let linear = |(name, bias): &(String, Option<String>), outputs, inputs| {
        let layer = Linear::load(checkpoint, name, outputs, inputs)?;
        match bias {
            Some(bias) => layer.with_bias(checkpoint, bias),
            None => Ok(layer),
        }
    };
    let norm = |name: &str| RmsNorm::load(checkpoint, name, plan.hidden, plan.epsilon);
    let shape = AttentionShape {
        hidden: plan.hidden,
        heads: plan.heads,
        kv_heads: plan.kv_heads,
        head_dim: plan.head_dim,
        window: (plan.windows)(index),
    };
    Ok(Layer {
        attention_norm: norm(&names.attention_norm)?,
        attention: SelfAttention::load(checkpoint, shape, &names.attention)?,
        mlp_norm: norm(&names.mlp_norm)?,
        mlp: SwiGlu {
            gate: linear(&names.gate, plan.inner, plan.hidden)?,
            up: linear(&names.up, plan.inner, plan.hidden)?,
            down: linear(&names.down, plan.hidden, plan.inner)?,
        },
    })
}

/// One stream of tokens through a [`DenseModel`].
#[derive(Debug)]
pub struct DenseStream {
    model: Arc<DenseModel>,
    cache: KvCache,
    runner: Runner,
    logits: Vec<f32>,
}

impl DenseStream {
    /// Its weights.
    pub fn model(&self) -> &Arc<DenseModel> {
        &self.model
    }

    /// Bytes of keys and values that `tokens` tokens take.
    pub fn cache_bytes(&self, tokens: usize) -> usize {
        self.cache.bytes_of(tokens)
    }

    /// Appends `tokens` and gives the logits after each of them: `[tokens, vocab]`.
    ///
    /// # Errors
    /// As [`TokenModel::extend`].
    pub fn extend_all(
        &mut self,
        tokens: &[u32],
        cancel: &CancelToken,
    ) -> Result<&[f32], ModelError> {
        self.run(tokens, Wanted::All, cancel, None)
    }

    /// Appends `tokens` and gives all that the forward pass went through.
    ///
    /// # Errors
    /// As [`TokenModel::extend`].
    pub fn trace(&mut self, tokens: &[u32], cancel: &CancelToken) -> Result<Trace, ModelError> {
        let mut hidden = Vec::new();
        let logits = self.run(tokens, Wanted::All, cancel, Some(&mut hidden))?;
        let logits = logits.to_vec();
        Ok(Trace { hidden, logits })
    }

    /// The residual stream of a text after its first `blocks` blocks, before any norm: `[tokens, hidden]`.
    /// Nothing is kept in the stream, which must be empty.
    ///
    /// # Errors
    /// As [`TokenModel::extend`]; `NotANumber` for more blocks than there are, or a stream with tokens.
    pub fn states_after(
        &mut self,
        tokens: &[u32],
        blocks: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<f32>, ModelError> {
        let model = Arc::clone(&self.model);
        if blocks > model.layers.len() || self.cache.tokens() != 0 {
            return Err(ModelError::NotANumber(format!(
                "cannot give the states after block {blocks}: expected at most {} and an empty stream",
                model.layers.len()
            )));
        }
        model.check(tokens, 0)?;
        let rows: Vec<StreamRow> = (0..tokens.len())
            .map(|position| StreamRow {
                stream: 0,
                position,
            })
            .collect();
        let caches = &mut [&mut self.cache];
        let states = model.blocks(&mut self.runner, caches, (&rows, tokens), blocks, cancel);
        self.cache.truncate(0);
        states
    }

    fn run(
        &mut self,
        tokens: &[u32],
        wanted: Wanted,
        cancel: &CancelToken,
        trace: Option<&mut Vec<Vec<f32>>>,
    ) -> Result<&[f32], ModelError> {
        let before = self.cache.tokens();
        self.model.check(tokens, before)?;
        match self.run_chunks(tokens, wanted, cancel, trace) {
            Ok(logits) => {
                self.logits = logits;
                Ok(&self.logits)
            }
            Err(error) => {
                self.cache.truncate(before);
                Err(error)
            }
        }
    }

    fn run_chunks(
        &mut self,
        tokens: &[u32],
        wanted: Wanted,
        cancel: &CancelToken,
        mut trace: Option<&mut Vec<Vec<f32>>>,
    ) -> Result<Vec<f32>, ModelError> {
        let model = Arc::clone(&self.model);
        let mut logits = Vec::new();
        let mut rest = tokens;
        while !rest.is_empty() {
            let start = self.cache.tokens();
            let (chunk, after) = rest.split_at(rest.len().min(CHUNK_TOKENS - start % CHUNK_TOKENS));
            rest = after;
            let rows: Vec<StreamRow> = (0..chunk.len())
                .map(|at| StreamRow {
                    stream: 0,
                    position: start + at,
                })
                .collect();
            let (runner, caches) = (&mut self.runner, &mut [&mut self.cache]);
            let trace = trace.as_deref_mut();
            let hidden = model.forward(runner, caches, &rows, chunk, cancel, trace)?;
            let of_chunk = match wanted {
                Wanted::All => &hidden[..],
                Wanted::Last if rest.is_empty() => &hidden[hidden.len() - model.hidden..],
                Wanted::Last => continue,
            };
            logits.extend(model.logits(runner, of_chunk)?);
        }
        Ok(logits)
    }
}

impl TokenModel for DenseStream {
    fn vocab_tokens(&self) -> usize {
        self.model.vocab_tokens()
    }

    fn context_tokens(&self) -> usize {
        self.model.context_tokens
    }

    fn cached_tokens(&self) -> usize {
        self.cache.tokens()
    }

    fn extend(&mut self, tokens: &[u32], cancel: &CancelToken) -> Result<&[f32], ModelError> {
        self.run(tokens, Wanted::Last, cancel, None)
    }

    fn truncate(&mut self, tokens: usize) {
        self.cache.truncate(tokens);
    }
}
