//! The decoder of an autoencoder of pictures (AutoencoderKL of latent diffusion, Rombach et al., arXiv 2112.10752) as one
//! graph, in bf16.

use crate::error::ensure;
use crate::ops::{
    ConvWay, Floats, NormMemory, NormTo, Picture, StreamConv, StreamEnd, StreamKind, StreamTo,
    add_bias, add_tokens, conv_stream, group_norm, softmax_rows,
};
use crate::products::{LargeProduct, ProductEnd, Products};
use crate::{Buffer, CudaError, Device, Graph};

const OP: &str = "a VAE decoder";
/// Rows of pixels' scores that are held at once.
const SCORE_ROWS: usize = 4096;

/// Sizes of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct VaeShape {
    /// Channels of a latent pixel.
    pub latent: usize,
    /// Channels at each size, the largest pictures first: 128, 256 or 512 each.
    pub channels: Vec<usize>,
    /// Residual blocks at each size.
    pub blocks: usize,
    /// Of the norms, of which each has 32 groups.
    pub epsilon: f32,
}

/// Where weights come from: the values of a tensor by its name of the published files, without `decoder.` before it, and
/// how many they have to be.
pub type VaeTensors<'a> = dyn Fn(&str, usize) -> Result<Vec<f32>, CudaError> + 'a;

#[derive(Debug)]
struct Norm {
    weight: Buffer,
    bias: Buffer,
    channels: usize,
}

#[derive(Debug)]
struct Block {
    norms: [Norm; 2],
    convs: [StreamConv; 2],
    shortcut: Option<StreamConv>,
}

#[derive(Debug)]
struct Attention {
    norm: Norm,
    /// `[channels, channels]` of queries, keys, values and what follows, bf16.
    weights: [Buffer; 4],
    query_bias: Buffer,
    /// Of what follows, with that of the values through it: weights of a softmax add up to one, and a bias of the keys
    /// moves all scores of a row alike.
    bias: Buffer,
    tokens: Buffer,
    queries: Buffer,
    keys: Buffer,
    /// Values, then what the pixels gather, `[channels, pixels]` and `[pixels, channels]`.
    values: Buffer,
    mixed: Buffer,
    scores: Buffer,
    shares: Buffer,
}

/// Pictures at one size.
#[derive(Debug)]
struct Level {
    blocks: Vec<Block>,
    up: Option<StreamConv>,
    x: Picture,
    normed: Picture,
    inner: Picture,
}

/// A decoder for latents of one size.
#[derive(Debug)]
pub struct VaeDecoder {
    // First: it names the buffers below.
    graph: Option<Graph>,
    device: Device,
    products: Products,
    epsilon: f32,
    size: (usize, usize),
    first: StreamConv,
    middle: [Block; 2],
    attention: Attention,
    /// From the smallest pictures on.
    levels: Vec<Level>,
    norm: Norm,
    last: StreamConv,
    memory: NormMemory,
    input: Picture,
    out: Buffer,
}

struct Loader<'a> {
    device: &'a Device,
    tensors: &'a VaeTensors<'a>,
}

impl Loader<'_> {
    fn vector(&self, name: &str, len: usize) -> Result<Buffer, CudaError> {
        self.device.upload(&(self.tensors)(name, len)?)
    }

    fn norm(&self, name: &str, channels: usize) -> Result<Norm, CudaError> {
        Ok(Norm {
            weight: self.vector(&format!("{name}.weight"), channels)?,
            bias: self.vector(&format!("{name}.bias"), channels)?,
            channels,
        })
    }

    fn conv(
        &self,
        name: &str,
        kind: StreamKind,
        (outputs, inputs): (usize, usize),
    ) -> Result<StreamConv, CudaError> {
        let taps = if kind == StreamKind::One { 1 } else { 9 };
        let weights = (self.tensors)(&format!("{name}.weight"), outputs * inputs * taps)?;
        let bias = (self.tensors)(&format!("{name}.bias"), outputs)?;
        let kind = (kind, Floats::Bf16);
        StreamConv::new(self.device, kind, (outputs, inputs), &weights, &bias)
    }

    fn block(&self, name: &str, inputs: usize, outputs: usize) -> Result<Block, CudaError> {
        let three = |part: &str, inputs| {
            let name = format!("{name}.{part}");
            self.conv(&name, StreamKind::Three, (outputs, inputs))
        };
        let shortcut = || {
            let name = format!("{name}.conv_shortcut");
            self.conv(&name, StreamKind::One, (outputs, inputs))
        };
        Ok(Block {
            norms: [
                self.norm(&format!("{name}.norm1"), inputs)?,
                self.norm(&format!("{name}.norm2"), outputs)?,
            ],
            convs: [three("conv1", inputs)?, three("conv2", outputs)?],
            shortcut: (inputs != outputs).then(shortcut).transpose()?,
        })
    }

    fn attention(
        &self,
        name: &str,
        channels: usize,
        pixels: usize,
    ) -> Result<Attention, CudaError> {
        let matrix = |part: &str| {
            let name = format!("{name}.{part}.weight");
            (self.tensors)(&name, channels * channels)
        };
        let bias = |part: &str| (self.tensors)(&format!("{name}.{part}.bias"), channels);
        let out = matrix("to_out.0")?;
        let (of_values, mut of_out) = (bias("to_v")?, bias("to_out.0")?);
        for (row, to) in out.chunks_exact(channels).zip(&mut of_out) {
            *to += row.iter().zip(&of_values).map(|(w, b)| w * b).sum::<f32>();
        }
        let upload = |values: &[f32]| self.device.upload(&Floats::Bf16.bits(values));
        let weights = [
            upload(&matrix("to_q")?)?,
            upload(&matrix("to_k")?)?,
            upload(&matrix("to_v")?)?,
            upload(&out)?,
        ];
        let rows = pixels.min(SCORE_ROWS);
        let tokens = || self.device.alloc(2 * channels * pixels);
        Ok(Attention {
            norm: self.norm(&format!("{name}.group_norm"), channels)?,
            weights,
            query_bias: self.vector(&format!("{name}.to_q.bias"), channels)?,
            bias: self.device.upload(&of_out)?,
            tokens: tokens()?,
            queries: tokens()?,
            keys: tokens()?,
            values: tokens()?,
            mixed: tokens()?,
            scores: self.device.alloc(4 * rows * pixels)?,
            shares: self.device.alloc(2 * rows * pixels)?,
        })
    }
}

impl VaeDecoder {
    /// For latents of `(height, width)`; their product is a multiple of 8.
    ///
    /// # Errors
    /// `Shape` for sizes without a kernel; those of `tensors`; `Missing`; `OutOfMemory`.
    pub fn new(
        device: &Device,
        shape: &VaeShape,
        size: (usize, usize),
        tensors: &VaeTensors<'_>,
    ) -> Result<Self, CudaError> {
        let known = shape.channels.iter().all(|n| matches!(n, 128 | 256 | 512));
        let most = shape.channels.iter().copied().max().unwrap_or(0);
        let widest = shape.channels.last().copied().unwrap_or(0);
        ensure(
            known && most > 0,
            OP,
            "channels",
            most,
            "128, 256 or 512 at each size",
        )?;
        ensure(
            (1..=16).contains(&shape.latent),
            OP,
            "latent channels",
            shape.latent,
            "1 to 16",
        )?;
        let (sides, pixels) = (size.0.min(size.1), size.0.saturating_mul(size.1));
        ensure(
            sides > 0 && pixels.is_multiple_of(8),
            OP,
            "pixels",
            pixels,
            "a multiple of 8",
        )?;
        let load = Loader { device, tensors };
        let mut levels = Vec::new();
        let (mut inputs, mut at) = (widest, size);
        for (level, channels) in shape.channels.iter().rev().copied().enumerate() {
            let mut blocks = Vec::new();
            let mut before = inputs;
            for block in 0..shape.blocks {
                let name = format!("up_blocks.{level}.resnets.{block}");
                blocks.push(load.block(&name, before, channels)?);
                before = channels;
            }
            let is_last = level + 1 == shape.channels.len();
            let up = || {
                let name = format!("up_blocks.{level}.upsamplers.0.conv");
                load.conv(&name, StreamKind::Doubled, (channels, channels))
            };
            let wide = inputs.max(channels);
            levels.push(Level {
                blocks,
                up: (!is_last).then(up).transpose()?,
                x: Picture::zeros(device, wide, at)?,
                normed: Picture::zeros(device, wide, at)?,
                inner: Picture::zeros(device, channels, at)?,
            });
            inputs = channels;
            if !is_last {
                at = (2 * at.0, 2 * at.1);
            }
        }
        let block = |at: usize| load.block(&format!("mid_block.resnets.{at}"), widest, widest);
        Ok(Self {
            graph: None,
            device: device.clone(),
            products: Products::new(device)?,
            epsilon: shape.epsilon,
            size,
            first: load.conv("conv_in", StreamKind::Three, (widest, shape.latent))?,
            middle: [block(0)?, block(1)?],
            attention: load.attention("mid_block.attentions.0", widest, pixels)?,
            levels,
            norm: load.norm("conv_norm_out", inputs)?,
            last: load.conv("conv_out", StreamKind::Planes, (3, inputs))?,
            memory: NormMemory::new(device, most, at.0)?,
            input: Picture::zeros(device, 16, size)?,
            out: device.zeros(6 * at.0 * at.1)?,
        })
    }

    /// Height and width of the picture that comes out.
    pub fn size_px(&self) -> (usize, usize) {
        let last = self.levels.last();
        last.map_or(self.size, |level| level.x.size())
    }

    /// Puts latents in: `[latent, height, width]`, as the decoder's first convolution takes them.
    ///
    /// # Errors
    /// `Shape` for another size; `Driver`.
    pub fn give(&self, latents: &[f32]) -> Result<(), CudaError> {
        let expected = self.first.inputs() * self.size.0 * self.size.1;
        ensure(
            latents.len() == expected,
            OP,
            "values",
            latents.len(),
            expected,
        )?;
        self.input.write(&self.device, &Floats::Bf16.bits(latents))
    }

    /// Decodes what was put in, as recorded launches; does not wait.
    ///
    /// # Errors
    /// Those of launches.
    pub fn run(&mut self) -> Result<(), CudaError> {
        match &self.graph {
            Some(graph) => graph.replay(),
            None => {
                // The first run loads the kernels and chooses algorithms.
                self.run_launched()?;
                self.graph = Some(Graph::record(&self.device, || self.run_launched())?);
                Ok(())
            }
        }
    }

    /// The picture: `[3, height, width]`, f16 bits.
    ///
    /// # Errors
    /// `Driver`, `Fault`.
    pub fn result(&self) -> Result<Vec<u16>, CudaError> {
        let (height, width) = self.size_px();
        self.device.read(&self.out, 0, 3 * height * width)
    }

    fn normed(&self, norm: &Norm, from: &Picture, to: NormTo<'_>) -> Result<(), CudaError> {
        let with = (&norm.weight, &norm.bias);
        let from = (from, norm.channels);
        group_norm(&self.device, from, with, self.epsilon, to, &self.memory)
    }

    fn conv(&self, conv: &StreamConv, from: &Picture, end: StreamEnd<'_>) -> Result<(), CudaError> {
        conv_stream(&self.device, conv, from, end, ConvWay::Best)
    }

    /// `x` becomes what a residual block makes of it.
    fn block(&self, block: &Block, level: &Level) -> Result<(), CudaError> {
        let Level {
            x, normed, inner, ..
        } = level;
        let to = |picture| StreamEnd::plain(StreamTo::Picture(picture, 0));
        self.normed(&block.norms[0], x, NormTo::Picture(normed))?;
        self.conv(&block.convs[0], normed, to(inner))?;
        self.normed(&block.norms[1], inner, NormTo::Picture(normed))?;
        let residual = match &block.shortcut {
            Some(shortcut) => {
                self.conv(shortcut, x, to(inner))?;
                inner
            }
            None => x,
        };
        let end = StreamEnd {
            first: Some((residual, 1.0)),
            ..to(x)
        };
        self.conv(&block.convs[1], normed, end)
    }

    fn mix(&self, x: &Picture) -> Result<(), CudaError> {
        let with = &self.attention;
        let channels = with.norm.channels;
        let pixels = self.size.0 * self.size.1;
        self.normed(&with.norm, x, NormTo::Tokens(&with.tokens))?;
        let product = |weights, x, out, (rows, n, k): (usize, usize, usize)| LargeProduct {
            weights,
            x,
            out,
            out_start: 0,
            out_stride: n,
            end: ProductEnd::Store,
            x_start: 0,
            rows,
            n,
            k,
        };
        let [queries, keys, values, last] = &with.weights;
        let of_pixels = (pixels, channels, channels);
        let run = |work: &LargeProduct<'_>| self.products.run(work);
        run(&product(queries, &with.tokens, &with.queries, of_pixels))?;
        run(&product(keys, &with.tokens, &with.keys, of_pixels))?;
        let across = (channels, pixels, channels);
        run(&product(&with.tokens, values, &with.values, across))?;
        add_bias(
            &self.device,
            &with.queries,
            &with.query_bias,
            (pixels, channels),
        )?;
        for first in (0..pixels).step_by(SCORE_ROWS) {
            let rows = SCORE_ROWS.min(pixels - first);
            run(&LargeProduct {
                end: ProductEnd::StoreF32,
                x_start: first * channels,
                ..product(
                    &with.keys,
                    &with.queries,
                    &with.scores,
                    (rows, pixels, channels),
                )
            })?;
            let scale = 1.0 / (channels as f32).sqrt();
            let shape = (rows, pixels);
            softmax_rows(&self.device, &with.scores, &with.shares, shape, scale)?;
            run(&LargeProduct {
                out_start: first * channels,
                ..product(
                    &with.values,
                    &with.shares,
                    &with.mixed,
                    (rows, channels, pixels),
                )
            })?;
        }
        run(&product(last, &with.mixed, &with.tokens, of_pixels))?;
        add_tokens(&self.device, (&with.tokens, &with.bias), (x, channels))
    }

    /// The same, launched kernel by kernel.
    ///
    /// # Errors
    /// Those of launches.
    pub fn run_launched(&self) -> Result<(), CudaError> {
        let Some(smallest) = self.levels.first() else {
            return Ok(());
        };
        let end = StreamEnd::plain(StreamTo::Picture(&smallest.x, 0));
        self.conv(&self.first, &self.input, end)?;
        self.block(&self.middle[0], smallest)?;
        self.mix(&smallest.x)?;
        self.block(&self.middle[1], smallest)?;
        for (at, level) in self.levels.iter().enumerate() {
            for block in &level.blocks {
                self.block(block, level)?;
            }
            if let (Some(up), Some(next)) = (&level.up, self.levels.get(at + 1)) {
                let end = StreamEnd::plain(StreamTo::Picture(&next.x, 0));
                self.conv(up, &level.x, end)?;
            }
        }
        let Some(largest) = self.levels.last() else {
            return Ok(());
        };
        self.normed(&self.norm, &largest.x, NormTo::Picture(&largest.normed))?;
        let end = StreamEnd::plain(StreamTo::Planes(&self.out));
        self.conv(&self.last, &largest.normed, end)
    }
}
