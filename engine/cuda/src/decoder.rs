//! Decode steps of a dense decoder as one graph: five launches a layer, tokens chosen and fed back on the device.

mod weights;

use std::sync::Arc;

pub use self::weights::{DecoderLayer, DecoderShape, DecoderWeights, GateUp, Matrix};
use crate::error::ensure;
use crate::ops::{
    Begin, GEMV_ROWS, Gemv, GemvEnd, PAGE, PackedEnd, PackedProduct, Step, begin, decode_attention,
    gemv, packed_product, rope_turns,
};
use crate::prefill::{Places, Prefill};
use crate::{Buffer, CudaError, Device, Graph};

/// A launch of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecoderPart {
    /// Norm, queries, keys and values.
    Qkv,
    /// Attention.
    Attention,
    /// From heads back to the residual stream.
    Back,
    /// Norm, gate and up.
    Gate,
    /// Down, back to the residual stream.
    Down,
    /// Norm, logits and the choice.
    Head,
}

impl DecoderPart {
    /// Those of a layer, in their order.
    pub const OF_LAYER: &'static [Self] = &[
        Self::Qkv,
        Self::Attention,
        Self::Back,
        Self::Gate,
        Self::Down,
    ];
}

/// Memory of the streams of a call.
#[derive(Debug)]
struct Memory {
    turns: Buffer,
    pages: Buffer,
    positions: Buffer,
    given: Buffer,
    tokens: Buffer,
    best: Buffer,
    /// `[layers]` of `[pages, kv_heads, 64, head_dim]`, bf16.
    keys: Vec<Buffer>,
    values: Vec<Buffer>,
    x: Buffer,
    qkv: Buffer,
    mixed: Buffer,
    inner: Buffer,
    logits: Buffer,
    partial: Buffer,
    counters: Buffer,
}

/// Streams that decode together. Rows do not change each other's bits, and a replayed step equals one that is
/// launched kernel by kernel.
#[derive(Debug)]
pub struct Decoder {
    // First: it names the buffers below.
    graph: Option<Graph>,
    device: Device,
    shape: DecoderShape,
    weights: Arc<DecoderWeights>,
    rows: usize,
    max_pages: usize,
    steps: usize,
    memory: Memory,
    prefill: Option<Prefill>,
}

impl Decoder {
    /// `rows` empty streams (1 to 16).
    ///
    /// # Errors
    /// `Shape` for sizes that have no kernel; `OutOfMemory`.
    pub fn new(
        device: &Device,
        shape: DecoderShape,
        weights: Arc<DecoderWeights>,
        rows: usize,
    ) -> Result<Self, CudaError> {
        const OP: &str = "a decoder";
        ensure((1..=GEMV_ROWS).contains(&rows), OP, "rows", rows, "1 to 16")?;
        ensure(
            weights.layers.len() == shape.layers,
            OP,
            "layers",
            weights.layers.len(),
            shape.layers,
        )?;
        ensure(
            shape.context_tokens > 0,
            OP,
            "context",
            shape.context_tokens,
            "over 0",
        )?;
        let max_pages = shape.context_tokens.div_ceil(PAGE);
        let context = max_pages * PAGE;
        let page = shape.kv_heads * PAGE * shape.head_dim * 2;
        let turns = rope_turns(shape.head_dim, shape.rope_base, shape.rope_scaling, context)?;
        let pages: Vec<i32> = (0..rows * max_pages)
            .filter_map(|at| i32::try_from(at).ok())
            .collect();
        let caches = || -> Result<Vec<Buffer>, CudaError> {
            let bytes = rows * max_pages * page;
            (0..shape.layers).map(|_| device.zeros(bytes)).collect()
        };
        let memory = Memory {
            turns: device.upload(&turns)?,
            pages: device.upload(&pages)?,
            positions: device.upload(&vec![-1i32; rows])?,
            given: device.zeros(4 * rows)?,
            tokens: device.zeros(4 * rows * context)?,
            best: device.zeros(8 * rows)?,
            keys: caches()?,
            values: caches()?,
            x: device.zeros(4 * rows * shape.hidden)?,
            qkv: device.zeros(4 * rows * shape.qkv_width())?,
            mixed: device.zeros(2 * rows * shape.q_width())?,
            inner: device.zeros(2 * rows * shape.inner)?,
            logits: device.zeros(4 * rows * shape.vocab)?,
            partial: device.zeros(4 * rows * shape.heads * max_pages * (shape.head_dim + 2))?,
            counters: device.zeros(4 * rows * shape.kv_heads)?,
        };
        Ok(Self {
            graph: None,
            device: device.clone(),
            shape,
            weights,
            rows,
            max_pages,
            steps: 0,
            memory,
            prefill: None,
        })
    }

    /// Empties the streams and gives each its first tokens, at least one.
    ///
    /// # Errors
    /// `Shape` for another number of streams, no tokens, too many, or one that is not in the vocabulary.
    pub fn give(&mut self, prompts: &[&[u32]]) -> Result<(), CudaError> {
        const OP: &str = "a decoder";
        let context = self.max_pages * PAGE;
        ensure(
            prompts.len() == self.rows,
            OP,
            "streams",
            prompts.len(),
            self.rows,
        )?;
        let mut tokens = vec![0u32; self.rows * context];
        let mut given = Vec::new();
        for (to, prompt) in tokens.chunks_exact_mut(context).zip(prompts) {
            ensure(
                (1..=context).contains(&prompt.len()),
                OP,
                "tokens",
                prompt.len(),
                format_args!("1 to {context}"),
            )?;
            let vocab = self.shape.vocab;
            let worst = prompt.iter().max().copied().unwrap_or(0) as usize;
            ensure(
                worst < vocab,
                OP,
                "token",
                worst,
                format_args!("under {vocab}"),
            )?;
            to[..prompt.len()].copy_from_slice(prompt);
            given.push(i32::try_from(prompt.len()).unwrap_or(i32::MAX));
        }
        self.device.write(&self.memory.tokens, 0, &tokens)?;
        self.device.write(&self.memory.given, 0, &given)?;
        self.device
            .write(&self.memory.positions, 0, &vec![-1i32; self.rows])?;
        self.device
            .write(&self.memory.best, 0, &vec![0u64; self.rows])?;
        self.steps = 0;
        Ok(())
    }

    /// Empties the one stream and takes it through `tokens` at once; steps go on from there. Results differ from those
    /// of steps by roundings of bf16.
    ///
    /// # Errors
    /// As [`Decoder::give`]; `Shape` for several streams and sizes without a kernel; `Missing`.
    pub fn prefill(&mut self, tokens: &[u32]) -> Result<(), CudaError> {
        ensure(self.rows == 1, "prefill", "streams", self.rows, 1)?;
        self.give(&[tokens])?;
        let room = self.max_pages * PAGE;
        let prefill = match self.prefill.take() {
            Some(prefill) if prefill.tokens() >= tokens.len() => prefill,
            _ => Prefill::new(
                &self.device,
                &self.shape,
                tokens.len().next_multiple_of(128).min(room),
            )?,
        };
        let run = self.run_prefill(&prefill, tokens);
        self.prefill = Some(prefill);
        run?;
        let last = i32::try_from(tokens.len() - 1).unwrap_or(i32::MAX);
        self.device.write(&self.memory.positions, 0, &[last])?;
        self.steps = tokens.len();
        Ok(())
    }

    fn run_prefill(&self, prefill: &Prefill, tokens: &[u32]) -> Result<(), CudaError> {
        let (device, shape, memory) = (&self.device, &self.shape, &self.memory);
        prefill.begin(device, &self.weights.embed, shape, tokens)?;
        for (index, layer) in self.weights.layers.iter().enumerate() {
            let places = Places {
                turns: &memory.turns,
                pages: &memory.pages,
                keys: &memory.keys[index],
                values: &memory.values[index],
                max_pages: self.max_pages,
            };
            prefill.layer(device, shape, (layer, &places), tokens.len())?;
        }
        prefill.row(device, shape.hidden, tokens.len() - 1, &memory.x)?;
        self.launch_head()
    }

    /// Takes every stream on by one token, as recorded launches; does not wait.
    ///
    /// # Errors
    /// `Shape` when the context is full; those of launches.
    pub fn step(&mut self) -> Result<(), CudaError> {
        if self.graph.is_none() {
            // The first step loads the kernels.
            return self.step_launched().and_then(|()| {
                self.graph = Some(Graph::record(&self.device, || self.launch())?);
                Ok(())
            });
        }
        self.count()?;
        match &self.graph {
            Some(graph) => graph.replay(),
            None => Ok(()),
        }
    }

    /// The same, launched kernel by kernel.
    ///
    /// # Errors
    /// As [`Decoder::step`].
    pub fn step_launched(&mut self) -> Result<(), CudaError> {
        self.count()?;
        self.launch()
    }

    /// Gives every stream `token` as its next, whatever was chosen.
    ///
    /// # Errors
    /// `Shape` when it is not in the vocabulary or the context is full; `Driver`.
    pub fn follow(&mut self, token: u32) -> Result<(), CudaError> {
        const OP: &str = "a decoder";
        let (context, vocab) = (self.max_pages * PAGE, self.shape.vocab);
        ensure(
            (token as usize) < vocab,
            OP,
            "token",
            token as usize,
            format_args!("under {vocab}"),
        )?;
        ensure(
            self.steps < context,
            OP,
            "position",
            self.steps,
            format_args!("under {context}"),
        )?;
        let given = i32::try_from(self.steps + 1).unwrap_or(i32::MAX);
        for row in 0..self.rows {
            self.device.write(
                &self.memory.tokens,
                4 * (row * context + self.steps),
                &[token],
            )?;
        }
        self.device
            .write(&self.memory.given, 0, &vec![given; self.rows])
    }

    /// Puts the streams' positions to `position` without making what lies before: for benches, whose keys and values
    /// are zeros there.
    ///
    /// # Errors
    /// `Shape` beyond the context; `Driver`.
    pub fn skip_to(&mut self, position: usize) -> Result<(), CudaError> {
        let context = self.max_pages * PAGE;
        ensure(
            position < context,
            "a decoder",
            "position",
            position,
            format_args!("under {context}"),
        )?;
        let at = i32::try_from(position).unwrap_or(i32::MAX) - 1;
        self.steps = position;
        self.device
            .write(&self.memory.positions, 0, &vec![at; self.rows])
    }

    fn count(&mut self) -> Result<(), CudaError> {
        let context = self.max_pages * PAGE;
        ensure(
            self.steps < context,
            "a decoder",
            "position",
            self.steps,
            format_args!("under {context}"),
        )?;
        self.steps += 1;
        Ok(())
    }

    /// The tokens of stream `row` so far, given and chosen, without the choice that the last step made.
    ///
    /// # Errors
    /// `Shape`; `Driver`, `Fault`.
    pub fn tokens(&self, row: usize) -> Result<Vec<u32>, CudaError> {
        ensure(
            row < self.rows,
            "a decoder",
            "row",
            row,
            format_args!("under {}", self.rows),
        )?;
        let context = self.max_pages * PAGE;
        self.device
            .read(&self.memory.tokens, 4 * row * context, self.steps)
    }

    /// Logits of the last step: `[rows, vocab]`.
    ///
    /// # Errors
    /// `Driver`, `Fault`.
    pub fn logits(&self) -> Result<Vec<f32>, CudaError> {
        self.device
            .read(&self.memory.logits, 0, self.rows * self.shape.vocab)
    }

    fn launch(&self) -> Result<(), CudaError> {
        let (device, shape, memory) = (&self.device, &self.shape, &self.memory);
        let rows = self.rows;
        begin(
            device,
            &Begin {
                table: &self.weights.embed,
                best: &memory.best,
                positions: &memory.positions,
                tokens: &memory.tokens,
                given: &memory.given,
                x: &memory.x,
                rows,
                hidden: shape.hidden,
                vocab: shape.vocab,
                tokens_cap: self.max_pages * PAGE,
            },
        )?;
        for (index, layer) in self.weights.layers.iter().enumerate() {
            for part in DecoderPart::OF_LAYER {
                self.launch_part(index, layer, *part)?;
            }
        }
        self.launch_head()
    }

    /// Records one part of a step for all layers (of the head, once): for benches that ask where time goes. The
    /// graph must not outlive the decoder.
    ///
    /// # Errors
    /// Those of launches.
    pub fn record_part(&self, part: DecoderPart) -> Result<Graph, CudaError> {
        Graph::record(&self.device, || {
            if part == DecoderPart::Head {
                return self.launch_head();
            }
            let layers = self.weights.layers.iter().enumerate();
            for (index, layer) in layers {
                self.launch_part(index, layer, part)?;
            }
            Ok(())
        })
    }

    fn launch_head(&self) -> Result<(), CudaError> {
        let (shape, memory) = (&self.shape, &self.memory);
        let norm = Some((&self.weights.norm, shape.epsilon));
        let best = (GemvEnd::Best(&memory.best), PackedEnd::Best(&memory.best));
        let sizes = (shape.vocab, shape.hidden);
        let io = (&memory.x, &memory.logits);
        match &self.weights.head {
            Some(head) => self.multiply(head, norm, None, best, io, sizes),
            None => self.multiply_bf16(&self.weights.embed, norm, None, best.0, io, sizes),
        }
    }

    fn multiply(
        &self,
        weights: &Matrix,
        norm: Option<(&Buffer, f32)>,
        bias: Option<&Buffer>,
        end: (GemvEnd<'_>, PackedEnd<'_>),
        (x, out): (&Buffer, &Buffer),
        (n, k): (usize, usize),
    ) -> Result<(), CudaError> {
        let packed = match weights {
            Matrix::Bf16(weights) => {
                return self.multiply_bf16(weights, norm, bias, end.0, (x, out), (n, k));
            }
            Matrix::Packed(packed) => packed,
        };
        let (got, expected) = (packed.shape(), (n, k));
        let what = "outputs and inputs of a matrix";
        ensure(
            got == expected,
            "a decoder",
            what,
            got.0,
            format_args!("{expected:?}"),
        )?;
        packed_product(
            &self.device,
            &PackedProduct {
                weights: packed,
                x,
                norm,
                bias,
                end: end.1,
                out,
                rows: self.rows,
            },
        )
    }

    fn multiply_bf16(
        &self,
        weights: &Buffer,
        norm: Option<(&Buffer, f32)>,
        bias: Option<&Buffer>,
        end: GemvEnd<'_>,
        (x, out): (&Buffer, &Buffer),
        (n, k): (usize, usize),
    ) -> Result<(), CudaError> {
        gemv(
            &self.device,
            &Gemv {
                weights,
                x,
                norm,
                bias,
                end,
                out,
                rows: self.rows,
                n,
                k,
            },
        )
    }

    fn launch_part(
        &self,
        index: usize,
        layer: &DecoderLayer,
        part: DecoderPart,
    ) -> Result<(), CudaError> {
        let (shape, memory) = (&self.shape, &self.memory);
        let norm = |weight| Some((weight, shape.epsilon));
        let store = (GemvEnd::Store, PackedEnd::Store);
        let add = (GemvEnd::Add, PackedEnd::Add);
        match part {
            DecoderPart::Attention => self.launch_attention(index, layer),
            DecoderPart::Head => Ok(()),
            DecoderPart::Qkv => {
                let (io, sizes) = ((&memory.x, &memory.qkv), (shape.qkv_width(), shape.hidden));
                let norm = norm(&layer.attention_norm);
                self.multiply(&layer.qkv, norm, layer.qkv_bias.as_ref(), store, io, sizes)
            }
            DecoderPart::Back => {
                let (io, sizes) = ((&memory.mixed, &memory.x), (shape.hidden, shape.q_width()));
                self.multiply(&layer.o, None, None, add, io, sizes)
            }
            DecoderPart::Gate => {
                let (io, norm) = ((&memory.x, &memory.inner), norm(&layer.mlp_norm));
                match &layer.gate_up {
                    GateUp::Bf16 { gate, up } => {
                        let sizes = (shape.inner, shape.hidden);
                        self.multiply_bf16(gate, norm, None, GemvEnd::Gate(up), io, sizes)
                    }
                    GateUp::Packed(both) => {
                        let (got, expected) = (both.shape(), (2 * shape.inner, shape.hidden));
                        let what = "outputs and inputs of gate and up";
                        let shape = format_args!("{expected:?}");
                        ensure(got == expected, "a decoder", what, got.0, shape)?;
                        packed_product(
                            &self.device,
                            &PackedProduct {
                                weights: both,
                                x: io.0,
                                norm,
                                bias: None,
                                end: PackedEnd::Gate,
                                out: io.1,
                                rows: self.rows,
                            },
                        )
                    }
                }
            }
            DecoderPart::Down => {
                let (io, sizes) = ((&memory.inner, &memory.x), (shape.hidden, shape.inner));
                self.multiply(&layer.down, None, None, add, io, sizes)
            }
        }
    }

    fn launch_attention(&self, index: usize, layer: &DecoderLayer) -> Result<(), CudaError> {
        let (shape, memory) = (&self.shape, &self.memory);
        let norms = layer.head_norms.as_ref();
        decode_attention(
            &self.device,
            &Step {
                qkv: &memory.qkv,
                norms: norms.map(|(q, k)| (q, k, shape.epsilon)),
                turns: &memory.turns,
                pairs: shape.rope_pairs,
                positions: &memory.positions,
                pages: &memory.pages,
                keys: &memory.keys[index],
                values: &memory.values[index],
                partial: &memory.partial,
                counters: &memory.counters,
                out: &memory.mixed,
                rows: self.rows,
                heads: shape.heads,
                kv_heads: shape.kv_heads,
                head_dim: shape.head_dim,
                max_pages: self.max_pages,
            },
        )
    }
}
