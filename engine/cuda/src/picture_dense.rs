//! Networks of residual dense blocks as one graph: the channels of a block grow in place, nothing is joined by copying.

use crate::error::ensure;
use crate::ops::{
    ConvWay, Floats, Picture, StreamConv, StreamEnd, StreamKind, StreamTo, conv_stream,
    halve_bicubic, unshuffle_rgb,
};
use crate::{Buffer, CudaError, Device, Graph};

/// Channels of the features, and those that each convolution of a block adds.
const FEATURES: usize = 64;
const GROWTH: usize = 32;
/// Channels of a block in the end.
const DENSE: usize = FEATURES + 4 * GROWTH;
/// Slope of activations below zero, and the factor of residuals.
const SLOPE: f32 = 0.2;
const RESIDUAL: f32 = 0.2;

/// Weights of a convolution 3 x 3.
#[derive(Debug, Clone, Copy)]
pub struct PlainConv<'a> {
    /// `[outputs, inputs, 3, 3]`.
    pub weights: &'a [f32],
    /// `[outputs]`.
    pub bias: &'a [f32],
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub outputs: usize,
}

/// Weights of a network: 64 features, 32 more by each of the first four convolutions of a dense block.
#[derive(Debug, Clone)]
pub struct DenseWeights<'a> {
    /// Pixels along each side that become channels: 1, 2 or 4.
    pub unshuffle: usize,
    /// To features.
    pub first: PlainConv<'a>,
    /// Three dense blocks of five convolutions each.
    pub blocks: Vec<[[PlainConv<'a>; 5]; 3]>,
    /// After the blocks.
    pub trunk: PlainConv<'a>,
    /// Each after the nearest pixels at twice the size.
    pub up: [PlainConv<'a>; 2],
    /// At four times the size.
    pub high: PlainConv<'a>,
    /// To three channels.
    pub last: PlainConv<'a>,
}

/// A network for pictures of one size, whose result is twice as large: what is four times the size is halved.
#[derive(Debug)]
pub struct DenseChain {
    // First: it names the buffers below.
    graph: Option<Graph>,
    device: Device,
    way: ConvWay,
    size: (usize, usize),
    unshuffle: usize,
    first: StreamConv,
    blocks: Vec<[[StreamConv; 5]; 3]>,
    trunk: StreamConv,
    up: [StreamConv; 2],
    high: StreamConv,
    last: StreamConv,
    rgb: Buffer,
    input: Picture,
    features: Picture,
    dense: [Picture; 3],
    larger: [Picture; 3],
    planes: Buffer,
    half: Option<Buffer>,
}

impl DenseChain {
    /// Bytes of the device that pictures of `(height, width)` px take, without weights.
    pub fn work_bytes(unshuffle: usize, (height, width): (usize, usize)) -> usize {
        let side = unshuffle.max(1);
        let picture = |channels: usize, larger: usize| {
            let (rows, columns) = (height / side * larger, width / side * larger);
            (rows + 2) * crate::ops::picture_pitch_px(columns) * channels * 2
        };
        let pixels = height * width;
        picture(DENSE, 1) * 3
            + picture(2 * FEATURES, 1)
            + picture(FEATURES, 2)
            + 2 * picture(FEATURES, 4)
            + pixels * 6
            + pixels * 6 * (16 / (side * side))
            + pixels * 24
    }

    /// Of `weights` for pictures of `(height, width)` px.
    ///
    /// # Errors
    /// `Shape` for other sizes of channels, and for sides that are no multiples of the unshuffled pixels; `OutOfMemory`.
    pub fn new(
        device: &Device,
        weights: &DenseWeights<'_>,
        size: (usize, usize),
    ) -> Result<Self, CudaError> {
        const OP: &str = "a dense chain";
        let side = weights.unshuffle;
        ensure(
            matches!(side, 1 | 2 | 4),
            OP,
            "unshuffled pixels",
            side,
            "1, 2 or 4",
        )?;
        let fitting = size.0.is_multiple_of(side) && size.1.is_multiple_of(side);
        ensure(
            fitting,
            OP,
            "sides",
            size.0,
            format_args!("multiples of {side}"),
        )?;
        let conv = |conv: &PlainConv<'_>, kind, inputs, outputs| {
            ensure(conv.inputs == inputs, OP, "channels", conv.inputs, inputs)?;
            ensure(
                conv.outputs == outputs,
                OP,
                "channels",
                conv.outputs,
                outputs,
            )?;
            let shape = (outputs, inputs);
            StreamConv::new(device, (kind, Floats::Half), shape, conv.weights, conv.bias)
        };
        let plain = |from: &PlainConv<'_>, kind| conv(from, kind, FEATURES, FEATURES);
        let dense = |from: &[PlainConv<'_>; 5]| -> Result<[StreamConv; 5], CudaError> {
            let grown = |at: usize| FEATURES + at * GROWTH;
            let grow = |at: usize| conv(&from[at], StreamKind::Three, grown(at), GROWTH);
            let join = conv(&from[4], StreamKind::Three, DENSE, FEATURES)?;
            Ok([grow(0)?, grow(1)?, grow(2)?, grow(3)?, join])
        };
        let mut blocks = Vec::new();
        for [a, b, c] in &weights.blocks {
            blocks.push([dense(a)?, dense(b)?, dense(c)?]);
        }
        let small = (size.0 / side, size.1 / side);
        let at = |channels, larger: usize| {
            Picture::zeros(device, channels, (larger * small.0, larger * small.1))
        };
        let channels = 3 * side * side;
        let pixels = small.0 * small.1;
        Ok(Self {
            graph: None,
            device: device.clone(),
            way: ConvWay::Best,
            size,
            unshuffle: side,
            first: conv(&weights.first, StreamKind::Three, channels, FEATURES)?,
            blocks,
            trunk: plain(&weights.trunk, StreamKind::Three)?,
            up: [
                plain(&weights.up[0], StreamKind::Doubled)?,
                plain(&weights.up[1], StreamKind::Doubled)?,
            ],
            high: plain(&weights.high, StreamKind::Three)?,
            last: conv(&weights.last, StreamKind::Planes, FEATURES, 3)?,
            rgb: device.zeros(6 * size.0 * size.1)?,
            input: at(channels.next_multiple_of(16), 1)?,
            features: at(FEATURES, 1)?,
            dense: [at(DENSE, 1)?, at(DENSE, 1)?, at(DENSE, 1)?],
            larger: [at(FEATURES, 2)?, at(FEATURES, 4)?, at(FEATURES, 4)?],
            planes: device.zeros(6 * 16 * pixels)?,
            half: match side {
                1 => Some(device.zeros(6 * 4 * pixels)?),
                _ => None,
            },
        })
    }

    /// The same by the kernels for any target: for checks.
    #[must_use]
    pub fn by_tiles(mut self) -> Self {
        self.way = ConvWay::Tiles;
        self.graph = None;
        self
    }

    /// Puts a picture in: `rgb: [3, height, width]`, f16 bits, 0 to 1.
    ///
    /// # Errors
    /// `Shape` for another size; `Driver`.
    pub fn give(&self, rgb: &[u16]) -> Result<(), CudaError> {
        let expected = 3 * self.size.0 * self.size.1;
        ensure(
            rgb.len() == expected,
            "a dense chain",
            "values",
            rgb.len(),
            expected,
        )?;
        self.device.write(&self.rgb, 0, rgb)
    }

    /// Where pictures are put in, `[3, height, width]`, and come out at twice the size, both f16: for what fills and reads
    /// them on the device.
    pub fn ends(&self) -> (&Buffer, &Buffer) {
        (&self.rgb, self.half.as_ref().unwrap_or(&self.planes))
    }

    /// Runs the network on the picture that was put in, as recorded launches; does not wait.
    ///
    /// # Errors
    /// Those of launches.
    pub fn run(&mut self) -> Result<(), CudaError> {
        match &self.graph {
            Some(graph) => graph.replay(),
            None => {
                // The first run loads the kernels.
                self.run_launched()?;
                self.graph = Some(Graph::record(&self.device, || self.run_launched())?);
                Ok(())
            }
        }
    }

    fn conv(&self, conv: &StreamConv, from: &Picture, end: StreamEnd<'_>) -> Result<(), CudaError> {
        conv_stream(&self.device, conv, from, end, self.way)
    }

    /// `to`'s first channels = what a dense block makes of `from`'s, whose others are its memory; with `outer` the block
    /// is the last of three and the residual of all three is added.
    fn dense(
        &self,
        convs: &[StreamConv; 5],
        from: &Picture,
        to: &Picture,
        outer: Option<&Picture>,
    ) -> Result<(), CudaError> {
        let [grow @ .., join] = convs;
        for (at, conv) in grow.iter().enumerate() {
            let end = StreamEnd {
                slope: SLOPE,
                ..StreamEnd::plain(StreamTo::Picture(from, FEATURES + at * GROWTH))
            };
            self.conv(conv, from, end)?;
        }
        let (own, of_first) = match outer {
            Some(_) => (RESIDUAL * RESIDUAL, RESIDUAL),
            None => (RESIDUAL, 1.0),
        };
        let end = StreamEnd {
            own,
            first: Some((from, of_first)),
            second: outer.map(|outer| (outer, 1.0)),
            ..StreamEnd::plain(StreamTo::Picture(to, 0))
        };
        self.conv(join, from, end)
    }

    /// The same, launched kernel by kernel.
    ///
    /// # Errors
    /// Those of launches.
    pub fn run_launched(&self) -> Result<(), CudaError> {
        unshuffle_rgb(&self.device, &self.rgb, self.unshuffle, &self.input)?;
        let [x, y, z] = &self.dense;
        let (mut x, mut y) = (x, y);
        for to in [&self.features, x] {
            let end = StreamEnd::plain(StreamTo::Picture(to, 0));
            self.conv(&self.first, &self.input, end)?;
        }
        for [first, second, third] in &self.blocks {
            self.dense(first, x, y, None)?;
            self.dense(second, y, z, None)?;
            self.dense(third, z, y, Some(x))?;
            std::mem::swap(&mut x, &mut y);
        }
        let end = StreamEnd {
            first: Some((&self.features, 1.0)),
            ..StreamEnd::plain(StreamTo::Picture(y, 0))
        };
        self.conv(&self.trunk, x, end)?;
        let mut from = y;
        let convs = [&self.up[0], &self.up[1], &self.high];
        for (conv, to) in convs.into_iter().zip(&self.larger) {
            let end = StreamEnd {
                slope: SLOPE,
                ..StreamEnd::plain(StreamTo::Picture(to, 0))
            };
            self.conv(conv, from, end)?;
            from = to;
        }
        let end = StreamEnd::plain(StreamTo::Planes(&self.planes));
        self.conv(&self.last, from, end)?;
        match &self.half {
            Some(half) => {
                let size = (4 * self.size.0, 4 * self.size.1);
                halve_bicubic(&self.device, &self.planes, size, half)
            }
            None => Ok(()),
        }
    }

    /// The picture at twice the size: `[3, 2 height, 2 width]`, f16 bits.
    ///
    /// # Errors
    /// `Driver`, `Fault`.
    pub fn result(&self) -> Result<Vec<u16>, CudaError> {
        self.device
            .read(self.ends().1, 0, 12 * self.size.0 * self.size.1)
    }
}
