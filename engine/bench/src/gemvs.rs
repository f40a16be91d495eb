//! Products of few rows, and the rate at which memory can be read.

use anyhow::Result;
use engine_cuda::ops::{
    Gemv, GemvEnd, PackedGemv, PackedWeights, fill_bf16, fill_half, gemv, packed_gemv, read_all,
};
use engine_cuda::{Buffer, Device, Graph};

use crate::receipt::{Receipt, Row, median, timed, timed_graph};

const REPEATS: usize = 15;
/// Weights are taken in turn from as much memory as this, so that no cache holds them.
const ROTATED_BYTES: usize = 1 << 30;

/// Bytes a second that a kernel reads memory at.
pub(crate) fn read_rate(device: &Device, receipt: &mut Receipt) -> Result<f64> {
    let bytes = 4usize << 30;
    let (from, sink) = (device.alloc(bytes)?, device.alloc(4)?);
    fill_bf16(device, &from, 1, 1.0)?;
    let secs = timed(device, REPEATS, || read_all(device, &from, &sink))?;
    receipt.add(Row {
        name: "read-rate",
        unit: "GB/s",
        higher: true,
        samples: secs.iter().map(|secs| bytes as f64 / secs / 1e9).collect(),
        bar: None,
        floor: None,
    });
    Ok(bytes as f64 / median(&secs))
}

pub(crate) fn run(device: &Device, receipt: &mut Receipt, read_rate: f64) -> Result<()> {
    for (n, k) in [
        (14336, 4096),
        (4096, 14336),
        (6144, 4096),
        (4096, 4096),
        (1024, 1024),
    ] {
        let copies = (ROTATED_BYTES / (n * k * 2)).clamp(1, 64);
        let weights: Result<Vec<Buffer>, _> = (0..copies)
            .map(|at| {
                let to = device.alloc(n * k * 2)?;
                fill_bf16(device, &to, at as u32, 1.0)?;
                Ok::<Buffer, engine_cuda::CudaError>(to)
            })
            .collect();
        let weights = weights?;
        for rows in [1, 8, 16] {
            let (x, out) = (device.alloc(rows * k * 2)?, device.alloc(rows * n * 4)?);
            fill_bf16(device, &x, 5, 1.0)?;
            let launch = |weights| {
                let product = Gemv {
                    weights,
                    x: &x,
                    norm: None,
                    bias: None,
                    end: GemvEnd::Store,
                    out: &out,
                    rows,
                    n,
                    k,
                };
                gemv(device, &product)
            };
            launch(&weights[0])?;
            let graph = Graph::record(device, || weights.iter().try_for_each(&launch))?;
            let secs = timed_graph(device, REPEATS, copies, &graph)?;
            receipt.add(micros(
                &format!("gemv-bf16-{n}x{k}-rows-{rows}"),
                &secs,
                (n * k * 2) as f64 / read_rate,
            ));
        }
        if k % 128 != 0 {
            continue;
        }
        let packed: Result<Vec<PackedWeights>, _> = (0..copies.max(8))
            .map(|at| PackedWeights::random_4_bits(device, (n, k), 7 * at as u32))
            .collect();
        let packed = packed?;
        for rows in [1, 8, 16] {
            let (x, out) = (device.alloc(rows * k * 2)?, device.alloc(rows * n * 4)?);
            fill_half(device, &x, 5, 1.0)?;
            let launch = |weights| {
                packed_gemv(
                    device,
                    &PackedGemv {
                        weights,
                        x: &x,
                        bias: None,
                        out: &out,
                        rows,
                    },
                )
            };
            launch(&packed[0])?;
            let graph = Graph::record(device, || packed.iter().try_for_each(&launch))?;
            let secs = timed_graph(device, REPEATS, packed.len(), &graph)?;
            let floor = packed[0].len_bytes() as f64 / read_rate;
            receipt.add(micros(
                &format!("gemv-q4-g64-{n}x{k}-rows-{rows}"),
                &secs,
                floor,
            ));
        }
    }
    Ok(())
}

fn micros<'a>(name: &'a str, secs: &[f64], floor_secs: f64) -> Row<'a> {
    Row {
        name,
        unit: "us",
        higher: false,
        samples: secs.iter().map(|secs| secs * 1e6).collect(),
        bar: None,
        floor: Some(floor_secs * 1e6),
    }
}
