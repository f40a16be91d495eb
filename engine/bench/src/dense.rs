//! Upscalers of residual dense blocks.

use anyhow::Result;
use engine_cuda::{DenseWeights, Device, PlainConv};
use engine_models::{ConvWeights, DenseNetwork, PictureWeights};
use engine_tensor::f32_to_f16;

use crate::Order;
use crate::pictures::{OnDevice, PEAK, SIZE, agreement, numbers, test_picture};
use crate::receipt::{Receipt, Row, timed};

/// Blocks of the published networks.
const BLOCKS: usize = 23;
const REPEATS: usize = 21;

fn conv(conv: &ConvWeights) -> PlainConv<'_> {
    PlainConv {
        weights: &conv.weights,
        bias: &conv.bias,
        inputs: conv.inputs,
        outputs: conv.outputs,
    }
}

pub(crate) fn borrowed(network: &DenseNetwork) -> DenseWeights<'_> {
    DenseWeights {
        unshuffle: network.unshuffle,
        first: conv(&network.first),
        blocks: network
            .blocks
            .iter()
            .map(|block| block.each_ref().map(|dense| dense.each_ref().map(conv)))
            .collect(),
        trunk: conv(&network.trunk),
        up: network.up.each_ref().map(conv),
        high: conv(&network.high),
        last: conv(&network.last),
    }
}

/// The published shape for twice the size, whose activations keep their size.
fn random() -> DenseNetwork {
    let mut seed = 0;
    let mut conv = |outputs: usize, inputs: usize| {
        seed += 2;
        let size = (3.0 / (9.0 * inputs as f32)).sqrt();
        ConvWeights {
            weights: numbers(seed, outputs * inputs * 9)
                .iter()
                .map(|w| w * size)
                .collect(),
            bias: numbers(seed + 1, outputs)
                .iter()
                .map(|b| b * 0.01)
                .collect(),
            slopes: None,
            inputs,
            outputs,
        }
    };
    let mut dense = || -> [ConvWeights; 5] {
        std::array::from_fn(|at| conv(if at == 4 { 64 } else { 32 }, 64 + 32 * at))
    };
    let blocks = (0..BLOCKS).map(|_| [dense(), dense(), dense()]).collect();
    DenseNetwork {
        unshuffle: 2,
        first: conv(64, 12),
        blocks,
        trunk: conv(64, 64),
        up: [conv(64, 64), conv(64, 64)],
        high: conv(64, 64),
        last: conv(3, 64),
    }
}

/// Multiplications and additions of the network as it is published, for a picture of the input.
fn operations(network: &DenseNetwork, (height, width): (usize, usize)) -> f64 {
    let of = |conv: &ConvWeights| 2.0 * conv.weights.len() as f64;
    let blocks: f64 = network.blocks.iter().flatten().flatten().map(of).sum();
    let small = of(&network.first) + blocks + of(&network.trunk);
    let large = of(&network.up[1]) + of(&network.high) + of(&network.last);
    let pixels = (height * width) as f64 / (network.unshuffle * network.unshuffle) as f64;
    pixels * (small + 4.0 * of(&network.up[0]) + 16.0 * large)
}

pub(crate) fn run(device: &Device, order: &Order, receipt: &mut Receipt) -> Result<()> {
    if let Some(path) = order.path("dense") {
        let agreement = agreement(device, &path, (180, 320))?;
        receipt.add(Row {
            name: "rrdb-x4plus-halved-within-1-of-255",
            unit: "share",
            higher: true,
            samples: vec![agreement.within],
            bar: Some(0.999),
            floor: None,
        });
        println!(
            "  largest difference {}, replay equal {}",
            agreement.largest, agreement.replay_equal
        );
    }
    let network = random();
    let floor = PEAK / operations(&network, SIZE);
    let mut chain = OnDevice::new(device, &PictureWeights::Dense(Box::new(network)), SIZE)?;
    let bits: Vec<u16> = test_picture(SIZE)
        .iter()
        .map(|value| f32_to_f16(*value))
        .collect();
    chain.give(&bits)?;
    chain.run()?;
    let secs = timed(device, REPEATS, || chain.run())?;
    receipt.add(Row {
        name: "rrdbnet-x2-720p-f16",
        unit: "frames/s",
        higher: true,
        samples: secs.iter().map(|secs| 1.0 / secs).collect(),
        bar: Some(40.0),
        floor: Some(floor),
    });
    Ok(())
}
