//! Networks that are one chain of convolutions 3 x 3 with a pixel shuffle and the picture itself at the end, as one
//! graph.

use crate::error::ensure;
use crate::ops::{ConvTo, ConvWay, Convolution, Picture, conv3x3, halve_bicubic, pack_rgb};
use crate::{Buffer, CudaError, Device, Graph};

/// A convolution of a chain.
#[derive(Debug, Clone, Copy)]
pub struct ChainConv<'a> {
    /// `[outputs, inputs, 3, 3]`.
    pub weights: &'a [f32],
    /// `[outputs]`.
    pub bias: &'a [f32],
    /// Slopes below zero, `[outputs]`; none where nothing is activated.
    pub slopes: Option<&'a [f32]>,
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub outputs: usize,
}

/// A chain for pictures of one size: 3 to 64 channels, 64 to 64 as often as there are convolutions, and 64 to 12 or
/// 48, which are the pixels at two or four times the size. What is four times the size is halved: pictures come out at
/// twice theirs.
#[derive(Debug)]
pub struct PictureChain {
    // First: it names the buffers below.
    graph: Option<Graph>,
    device: Device,
    convs: Vec<Convolution>,
    size: (usize, usize),
    rgb: Buffer,
    base: Picture,
    features: [Picture; 2],
    scale: usize,
    /// At `scale` times the size.
    large: Buffer,
    /// Its half, where that is twice the size.
    half: Option<Buffer>,
}

impl PictureChain {
    /// Of `convs` for pictures of `(height, width)` px.
    ///
    /// # Errors
    /// `Shape` for another kind of chain; `OutOfMemory`.
    pub fn new(
        device: &Device,
        convs: &[ChainConv<'_>],
        size: (usize, usize),
    ) -> Result<Self, CudaError> {
        const OP: &str = "a chain";
        ensure(
            convs.len() >= 2,
            OP,
            "convolutions",
            convs.len(),
            "at least 2",
        )?;
        let mut packed = Vec::new();
        let mut channels = 3;
        for conv in convs {
            ensure(
                conv.inputs == channels,
                OP,
                "channels",
                conv.inputs,
                channels,
            )?;
            channels = conv.outputs;
            let shape = (conv.outputs, conv.inputs);
            packed.push(Convolution::new(
                device,
                shape,
                conv.weights,
                conv.bias,
                conv.slopes,
            )?);
        }
        let scale = packed.last().map_or(1, Convolution::scale);
        ensure(scale > 1, OP, "channels at the end", channels, "12 or 48")?;
        let base = Picture::zeros(device, 8, size)?;
        let pixels = size.0 * size.1;
        Ok(Self {
            graph: None,
            device: device.clone(),
            convs: packed,
            size,
            rgb: device.zeros(3 * pixels * 2)?,
            base,
            features: [
                Picture::zeros(device, 64, size)?,
                Picture::zeros(device, 64, size)?,
            ],
            scale,
            large: device.zeros(3 * scale * scale * pixels * 2)?,
            half: match scale {
                4 => Some(device.zeros(12 * pixels * 2)?),
                _ => None,
            },
        })
    }

    /// Puts a picture in: `rgb: [3, height, width]`, f16 bits, 0 to 1.
    ///
    /// # Errors
    /// `Shape` for another size; `Driver`.
    pub fn give(&self, rgb: &[u16]) -> Result<(), CudaError> {
        let expected = 3 * self.size.0 * self.size.1;
        ensure(
            rgb.len() == expected,
            "a chain",
            "values",
            rgb.len(),
            expected,
        )?;
        self.device.write(&self.rgb, 0, rgb)
    }

    /// Bytes of the device that pictures of `(height, width)` px take, without weights; `scale`: that of the network.
    pub fn work_bytes(scale: usize, (height, width): (usize, usize)) -> usize {
        let row = crate::ops::picture_pitch_px(width) * (2 * 64 + 8) * 2;
        let halved = if scale == 4 { 24 } else { 0 };
        (height + 2) * row + height * width * (6 + 6 * scale * scale + halved)
    }

    /// Where pictures are put in, `[3, height, width]`, and come out at twice the size, both f16: for what fills and reads
    /// them on the device.
    pub fn ends(&self) -> (&Buffer, &Buffer) {
        (&self.rgb, self.half.as_ref().unwrap_or(&self.large))
    }

    /// Runs the network on the picture that was put in, as recorded launches; does not wait.
    ///
    /// # Errors
    /// Those of launches.
    pub fn run(&mut self) -> Result<(), CudaError> {
        if self.graph.is_none() {
            // The first run loads the kernels.
            self.run_launched()?;
            self.graph = Some(Graph::record(&self.device, || self.run_launched())?);
            return Ok(());
        }
        match &self.graph {
            Some(graph) => graph.replay(),
            None => Ok(()),
        }
    }

    /// The same, launched kernel by kernel.
    ///
    /// # Errors
    /// Those of launches.
    pub fn run_launched(&self) -> Result<(), CudaError> {
        pack_rgb(&self.device, &self.rgb, &self.base)?;
        let mut from = &self.base;
        for (at, conv) in self.convs.iter().enumerate() {
            let to = &self.features[at % 2];
            let end = if conv.is_last() {
                ConvTo::Shuffled(&self.base, &self.large)
            } else {
                ConvTo::Picture(to)
            };
            conv3x3(&self.device, conv, from, end, ConvWay::Best)?;
            from = to;
        }
        match &self.half {
            Some(half) => {
                let size = (self.scale * self.size.0, self.scale * self.size.1);
                halve_bicubic(&self.device, &self.large, size, half)
            }
            None => Ok(()),
        }
    }

    /// The picture at twice the size: `[3, 2 height, 2 width]`, f16 bits.
    ///
    /// # Errors
    /// `Driver`, `Fault`.
    pub fn result(&self) -> Result<Vec<u16>, CudaError> {
        let count = 12 * self.size.0 * self.size.1;
        self.device
            .read(self.half.as_ref().unwrap_or(&self.large), 0, count)
    }
}
