//! Picture networks on a GPU.

use engine_cuda::ops::{RasterPart, planes_to_raster, raster_to_planes};
use engine_cuda::{
    Buffer, ChainConv, CudaError, DenseChain, DenseWeights, Device, DeviceOptions, PictureChain,
    PlainConv,
};
use engine_models::{ConvWeights, DenseNetwork, PictureWeights};
use engine_tensor::{f16_to_f32, f32_to_f16};

use super::region::{Region, Tile};
use super::{Raster, Samples};

/// Memory that a tile's run may take, in bytes, where there is as much.
const WORK_BYTES: usize = 4 << 30;
/// Networks of different sizes that are kept.
const KEPT: usize = 4;

fn plain(conv: &ConvWeights) -> PlainConv<'_> {
    PlainConv {
        weights: &conv.weights,
        bias: &conv.bias,
        inputs: conv.inputs,
        outputs: conv.outputs,
    }
}

fn dense(network: &DenseNetwork) -> DenseWeights<'_> {
    DenseWeights {
        unshuffle: network.unshuffle,
        first: plain(&network.first),
        blocks: network
            .blocks
            .iter()
            .map(|block| block.each_ref().map(|dense| dense.each_ref().map(plain)))
            .collect(),
        trunk: plain(&network.trunk),
        up: network.up.each_ref().map(plain),
        high: plain(&network.high),
        last: plain(&network.last),
    }
}

/// A network for pictures of one size.
#[derive(Debug)]
enum Network {
    Chain(Box<PictureChain>),
    Dense(Box<DenseChain>),
}

impl Network {
    fn new(
        device: &Device,
        weights: &PictureWeights,
        size: (usize, usize),
    ) -> Result<Self, CudaError> {
        match weights {
            PictureWeights::Chain(convs) => {
                let convs: Vec<ChainConv<'_>> = convs
                    .iter()
                    .map(|conv| ChainConv {
                        weights: &conv.weights,
                        bias: &conv.bias,
                        slopes: conv.slopes.as_deref(),
                        inputs: conv.inputs,
                        outputs: conv.outputs,
                    })
                    .collect();
                let chain = PictureChain::new(device, &convs, size)?;
                Ok(Self::Chain(Box::new(chain)))
            }
            PictureWeights::Dense(network) => {
                let chain = DenseChain::new(device, &dense(network), size)?;
                Ok(Self::Dense(Box::new(chain)))
            }
        }
    }

    fn work_bytes(weights: &PictureWeights, size: (usize, usize)) -> usize {
        match weights {
            PictureWeights::Chain(_) => PictureChain::work_bytes(weights.scale(), size),
            PictureWeights::Dense(network) => DenseChain::work_bytes(network.unshuffle, size),
        }
    }

    fn ends(&self) -> (&Buffer, &Buffer) {
        match self {
            Self::Chain(chain) => chain.ends(),
            Self::Dense(chain) => chain.ends(),
        }
    }

    fn run(&mut self) -> Result<(), CudaError> {
        match self {
            Self::Chain(chain) => chain.run(),
            Self::Dense(chain) => chain.run(),
        }
    }
}

/// A model on a device.
#[derive(Debug)]
pub(super) struct OnDevice {
    // First: their graphs end before the device does.
    /// The picture that tiles are taken from, and bytes of its values.
    raster: Option<(Buffer, usize)>,
    networks: Vec<((usize, usize), Network)>,
    device: Device,
    weights: PictureWeights,
    most_bytes: Option<usize>,
}

impl OnDevice {
    /// Tries that a small picture can be taken, so that what is missing is told before anything is begun.
    pub(super) fn new(device: Device, weights: PictureWeights) -> Result<Self, CudaError> {
        let mut made = Self {
            raster: None,
            networks: Vec::new(),
            device,
            weights,
            most_bytes: None,
        };
        made.twice(&[0.5; 3 * 64], (8, 8))?;
        Ok(made)
    }

    pub(super) fn limit(&mut self, bytes: usize) {
        self.most_bytes = Some(bytes);
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The same on the device opened anew: after a fault nothing of the old context works.
    pub(super) fn anew(self) -> Result<Self, CudaError> {
        let Self {
            raster,
            networks,
            device,
            weights,
            most_bytes,
        } = self;
        let info = device.info().clone();
        // The context ends with the last of what names it.
        drop(raster);
        drop(networks);
        drop(device);
        let device = Device::open(&info, DeviceOptions::default())?;
        Ok(Self {
            most_bytes,
            ..Self::new(device, weights)?
        })
    }

    /// Most pixels of a tile: by the budget, halved as often as memory asks for it.
    pub(super) fn tile_pixels(&self) -> usize {
        let side = 1024;
        let of_tile = Network::work_bytes(&self.weights, (side, side));
        let mut bytes = self.most_bytes.unwrap_or(WORK_BYTES);
        let free = self.device.free_bytes();
        while bytes > free / 2 && bytes > 1 << 20 {
            bytes /= 2;
        }
        (bytes / (of_tile / (side * side)).max(1)).max(1)
    }

    fn network(&mut self, size: (usize, usize)) -> Result<&mut Network, CudaError> {
        let at = match self.networks.iter().position(|(of, _)| *of == size) {
            Some(at) => at,
            None => {
                let asked_bytes = Network::work_bytes(&self.weights, size);
                while self.networks.len() >= KEPT
                    || (!self.networks.is_empty() && asked_bytes > self.device.free_bytes())
                {
                    self.networks.remove(0);
                }
                let free = self.device.free_bytes();
                let figures = self.device.memory();
                if asked_bytes > free {
                    return Err(CudaError::OutOfMemory {
                        asked_bytes,
                        used_bytes: figures.used_bytes,
                        budget_bytes: figures.budget_bytes,
                        reason: format!("a picture of {} x {} px; {free} are free", size.1, size.0),
                    });
                }
                let made = Network::new(&self.device, &self.weights, size)?;
                self.networks.push((size, made));
                self.networks.len() - 1
            }
        };
        let kept = self.networks.remove(at);
        self.networks.push(kept);
        match self.networks.last_mut() {
            Some((_, network)) => Ok(network),
            None => Err(CudaError::Shape {
                op: "an upscaler",
                what: "networks",
                got: 0,
                expected: "1".to_owned(),
            }),
        }
    }

    /// `[3, height, width]` to `[3, 2 * height, 2 * width]`.
    pub(super) fn twice(
        &mut self,
        rgb: &[f32],
        size: (usize, usize),
    ) -> Result<Vec<f32>, CudaError> {
        let bits: Vec<u16> = rgb.iter().map(|value| f32_to_f16(*value)).collect();
        let device = self.device.clone();
        let network = self.network(size)?;
        device.write(network.ends().0, 0, &bits)?;
        network.run()?;
        let bits: Vec<u16> = device.read(network.ends().1, 0, 4 * rgb.len())?;
        Ok(bits.iter().map(|bits| f16_to_f32(*bits)).collect())
    }

    /// Puts a picture of three channels there, of which tiles are taken.
    pub(super) fn put(&mut self, picture: &Raster) -> Result<(), CudaError> {
        self.raster = None;
        self.raster = Some(match &picture.samples {
            Samples::U8(values) => (self.device.upload(values)?, 1),
            Samples::U16(values) => (self.device.upload(values)?, 2),
        });
        Ok(())
    }

    /// Makes a tile of `picture`, which was put there, and writes its part of `out`.
    pub(super) fn run_tile(
        &mut self,
        picture: &Raster,
        (tile, region): (&Tile, &Region),
        out: &mut Raster,
    ) -> Result<(), CudaError> {
        if self.raster.is_none() {
            // What lay on the device before a fault is lost.
            self.put(picture)?;
        }
        let Some((there, bytes)) = self.raster.take() else {
            return Ok(());
        };
        let device = self.device.clone();
        let network = self.network(region.size())?;
        let picture = (picture.height_px as usize, picture.width_px as usize);
        let part = RasterPart {
            size: picture,
            bytes,
            start: (region.y, region.x),
            part: region.size(),
        };
        raster_to_planes(&device, &there, network.ends().0, &part)?;
        network.run()?;
        let (rows, columns) = (2 * tile.height, 2 * tile.width);
        let large = RasterPart {
            size: (rows, columns),
            bytes,
            start: (
                2 * (tile.y as isize - region.y),
                2 * (tile.x as isize - region.x),
            ),
            part: (2 * region.height, 2 * region.width),
        };
        let count = 3 * rows * columns;
        let raster = device.alloc(count * bytes)?;
        planes_to_raster(&device, network.ends().1, &raster, &large)?;
        let to = (out.width_px as usize, (2 * tile.y, 2 * tile.x));
        match &mut out.samples {
            Samples::U8(values) => {
                put_rows(&device.read(&raster, 0, count)?, columns, values, to);
            }
            Samples::U16(values) => {
                put_rows(&device.read(&raster, 0, count)?, columns, values, to);
            }
        }
        self.raster = Some((there, bytes));
        Ok(())
    }
}

/// Rows of a tile into those of a picture, whose width and the tile's place in it are given.
fn put_rows<T: Copy>(
    from: &[T],
    columns: usize,
    out: &mut [T],
    (width, (y, x)): (usize, (usize, usize)),
) {
    for (row, values) in from.chunks_exact((3 * columns).max(1)).enumerate() {
        let at = ((y + row) * width + x) * 3;
        if let Some(to) = out.get_mut(at..at + values.len()) {
            to.copy_from_slice(values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_tile_lie_at_its_place() {
        let mut out = vec![0u8; 4 * 3 * 3];
        put_rows(&[1; 12], 2, &mut out, (4, (1, 2)));
        let expected: Vec<u8> = (0..36)
            .map(|at| u8::from(at / 12 >= 1 && at / 3 % 4 >= 2))
            .collect();
        assert_eq!(out, expected);
    }
}
