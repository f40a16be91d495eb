//! Many tokens of one stream at once, into the pages that decode steps go on from.

use engine_tensor::ops::RopePairs;

use crate::args::{Args, pair};
use crate::decoder::DecoderLayer;
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::ops::{Attention, PAGE, attention, elementwise_kernel, fits, int, rms_norm};
use crate::products::{LargeProduct, ProductEnd, Products};
use crate::{Buffer, CudaError, DecoderShape, Device};

/// Memory and products of a prefill of up to `tokens` tokens.
#[derive(Debug)]
pub(crate) struct Prefill {
    products: Products,
    tokens: usize,
    ids: Buffer,
    x: Buffer,
    normed: Buffer,
    qkv: Buffer,
    mixed: Buffer,
    gate_up: Buffer,
    inner: Buffer,
}

/// Where keys and values of a layer go.
pub(crate) struct Places<'a> {
    pub(crate) turns: &'a Buffer,
    pub(crate) pages: &'a Buffer,
    pub(crate) keys: &'a Buffer,
    pub(crate) values: &'a Buffer,
    pub(crate) max_pages: usize,
}

impl Prefill {
    pub(crate) fn new(
        device: &Device,
        shape: &DecoderShape,
        tokens: usize,
    ) -> Result<Self, CudaError> {
        let d = shape.head_dim;
        ensure(matches!(d, 64 | 128), "prefill", "head_dim", d, "64 or 128")?;
        let of = |width: usize, size: usize| device.alloc(tokens * width * size);
        Ok(Self {
            products: Products::new(device)?,
            tokens,
            ids: of(1, 4)?,
            x: of(shape.hidden, 4)?,
            normed: of(shape.hidden, 2)?,
            qkv: of(shape.qkv_width(), 2)?,
            mixed: of(shape.q_width(), 2)?,
            gate_up: of(2 * shape.inner, 2)?,
            inner: of(shape.inner, 2)?,
        })
    }

    /// Most tokens of a call.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Puts the tokens' rows of the table into the residual stream.
    pub(crate) fn begin(
        &self,
        device: &Device,
        table: &Buffer,
        shape: &DecoderShape,
        ids: &[u32],
    ) -> Result<(), CudaError> {
        const OP: &str = "embed_rows";
        ensure(
            (1..=self.tokens).contains(&ids.len()),
            OP,
            "tokens",
            ids.len(),
            format_args!("1 to {}", self.tokens),
        )?;
        fits(OP, "table", table, shape.vocab * shape.hidden, 2)?;
        device.write(&self.ids, 0, ids)?;
        let args = Args::new()
            .with(table.address())
            .with(self.ids.address())
            .with(self.x.address())
            .with(int(OP, "hidden", shape.hidden)?)
            .with(int(OP, "vocab", shape.vocab)?);
        let grid = Grid {
            blocks: (int(OP, "tokens", ids.len())?.cast_unsigned(), 1, 1),
            threads: 256,
            shared_bytes: 0,
            early: false,
        };
        // SAFETY: lengths were checked above; the kernel checks tokens against the table.
        unsafe {
            device.launch(
                elementwise_kernel(OP),
                grid,
                args,
                (OP, &[ids.len(), shape.hidden]),
            )
        }
    }

    /// One layer over `tokens` tokens of positions 0 to `tokens - 1`.
    pub(crate) fn layer(
        &self,
        device: &Device,
        shape: &DecoderShape,
        (layer, places): (&DecoderLayer, &Places<'_>),
        tokens: usize,
    ) -> Result<(), CudaError> {
        ensure(layer.qkv_bias.is_none(), "prefill", "bias", 1, "none")?;
        let rows = (tokens, shape.hidden);
        let product = |weights, x, (out, out_start, out_stride), end, n, k| {
            self.products.run(&LargeProduct {
                weights,
                x,
                x_start: 0,
                out,
                out_start,
                out_stride,
                end,
                rows: tokens,
                n,
                k,
            })
        };
        let (q_width, qkv_width) = (shape.q_width(), shape.qkv_width());
        let norm = |weight| {
            rms_norm(
                device,
                (&self.x, weight),
                rows,
                shape.epsilon,
                (&self.normed, true),
            )
        };
        norm(&layer.attention_norm)?;
        product(
            layer.qkv.bf16("prefill")?,
            &self.normed,
            (&self.qkv, 0, qkv_width),
            ProductEnd::Store,
            qkv_width,
            shape.hidden,
        )?;
        self.heads(device, shape, layer, places, tokens)?;
        let kv_width = shape.kv_heads * shape.head_dim;
        attention(
            device,
            &Attention {
                q: (&self.qkv, 0),
                k: (&self.qkv, q_width),
                v: (&self.qkv, q_width + kv_width),
                out: &self.mixed,
                q_stride: qkv_width,
                kv_stride: qkv_width,
                queries: tokens,
                keys: tokens,
                heads: shape.heads,
                kv_heads: shape.kv_heads,
                head_dim: shape.head_dim,
                causal: true,
            },
        )?;
        let stream = (&self.x, 0, shape.hidden);
        product(
            layer.o.bf16("prefill")?,
            &self.mixed,
            stream,
            ProductEnd::Add,
            shape.hidden,
            q_width,
        )?;
        norm(&layer.mlp_norm)?;
        let (inner, hidden) = (shape.inner, shape.hidden);
        product(
            layer.gate_up.bf16("prefill")?.0,
            &self.normed,
            (&self.gate_up, 0, 2 * inner),
            ProductEnd::Store,
            inner,
            hidden,
        )?;
        product(
            layer.gate_up.bf16("prefill")?.1,
            &self.normed,
            (&self.gate_up, inner, 2 * inner),
            ProductEnd::Store,
            inner,
            hidden,
        )?;
        self.gate(device, inner, tokens)?;
        product(
            layer.down.bf16("prefill")?,
            &self.inner,
            stream,
            ProductEnd::Add,
            hidden,
            inner,
        )
    }

    fn heads(
        &self,
        device: &Device,
        shape: &DecoderShape,
        layer: &DecoderLayer,
        places: &Places<'_>,
        tokens: usize,
    ) -> Result<(), CudaError> {
        const OP: &str = "prefill_heads";
        let d = shape.head_dim;
        let room = places.max_pages * PAGE;
        ensure(
            tokens <= room,
            OP,
            "tokens",
            tokens,
            format_args!("at most {room}"),
        )?;
        fits(OP, "turns", places.turns, tokens * d, 4)?;
        fits(OP, "keys", places.keys, room * shape.kv_heads * d, 2)?;
        fits(OP, "values", places.values, room * shape.kv_heads * d, 2)?;
        let norms = layer
            .head_norms
            .as_ref()
            .map(|(q, k)| (q.address(), k.address()));
        let (q_norm, k_norm) = norms.unwrap_or((0, 0));
        let fields = [
            self.qkv.address(),
            q_norm,
            k_norm,
            places.turns.address(),
            places.pages.address(),
            places.keys.address(),
            places.values.address(),
            pair(
                int(OP, "heads", shape.heads)?,
                int(OP, "kv_heads", shape.kv_heads)?,
            ),
            pair(0i32, int(OP, "tokens", tokens)?),
            pair(
                int(OP, "head_dim", d)?,
                i32::from(shape.rope_pairs == RopePairs::Neighbours),
            ),
            pair(shape.epsilon, 0i32),
        ];
        let jobs = tokens * (shape.heads + 2 * shape.kv_heads);
        let grid = Grid {
            blocks: (int(OP, "jobs", jobs.div_ceil(4))?.cast_unsigned(), 1, 1),
            threads: 128,
            shared_bytes: 0,
            early: false,
        };
        let kernel = Kernel {
            source: "attention",
            name: OP,
        };
        // SAFETY: lengths were checked above and when the buffers were made.
        unsafe {
            device.launch(
                kernel,
                grid,
                Args::new().with_struct(&fields),
                (OP, &[tokens, shape.heads, shape.kv_heads, d]),
            )
        }
    }

    fn gate(&self, device: &Device, inner: usize, tokens: usize) -> Result<(), CudaError> {
        const OP: &str = "silu_mul_bf16";
        ensure(
            inner.is_multiple_of(8),
            OP,
            "inner",
            inner,
            "a multiple of 8",
        )?;
        let eights = tokens * inner / 8;
        let args = Args::new()
            .with(self.gate_up.address())
            .with(self.inner.address())
            .with(int(OP, "inner", inner)?)
            .with(eights as u64);
        let grid = Grid {
            blocks: (
                int(OP, "elements", eights.div_ceil(256))?.cast_unsigned(),
                1,
                1,
            ),
            threads: 256,
            shared_bytes: 0,
            early: false,
        };
        // SAFETY: the buffers were made for at least as many tokens.
        unsafe { device.launch(elementwise_kernel(OP), grid, args, (OP, &[tokens, inner])) }
    }

    /// The residual stream of token `at` to the start of `to`.
    pub(crate) fn row(
        &self,
        device: &Device,
        hidden: usize,
        at: usize,
        to: &Buffer,
    ) -> Result<(), CudaError> {
        device.copy((&self.x, 4 * at * hidden), (to, 0), 4 * hidden)
    }
}
