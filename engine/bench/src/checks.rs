//! Everything on the device that must equal something: ops the CPU's, repeats the first run, rows in company a row
//! alone, recorded launches launched ones.

use anyhow::{Result, bail};
use engine_cuda::ops::{Gemv, GemvEnd, OPS, PackedGemv, PackedWeights, gemv, packed_gemv};
use engine_cuda::{Buffer, CudaError, Device};
use engine_tensor::{Cpu, DType};

use crate::receipt::{Receipt, Row};
use crate::{Order, pictures, tokens, vae};

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
}

impl Tally {
    fn note(&mut self, name: String, passed: bool, about: &str) {
        if passed {
            self.passed += 1;
        } else {
            println!("FAILED {name}: {about}");
            self.failed.push(name);
        }
    }
}

pub(crate) fn run(device: &Device, order: &Order, mut receipt: Receipt) -> Result<()> {
    let cpu = Cpu::new(0)?;
    let mut tally = Tally::default();
    tables(device, order, &cpu, &mut tally)?;
    refusals(device, &mut tally);
    if order.wants("rows") {
        rows(device, &mut tally)?;
    }
    if order.wants("prefill") {
        for (head_dim, tokens) in [(128, 1), (128, 200), (64, 131)] {
            let off = tokens::prefill_error(device, head_dim, tokens)?;
            println!("prefill of {tokens} tokens, heads of {head_dim}: off by {off:.2e}");
            tally.note(
                format!("prefill of {tokens} tokens, heads of {head_dim}"),
                off < 3e-2,
                "other logits than step by step",
            );
        }
    }
    if order.wants("tokens")
        && let Some(fixtures) = order.path("fixtures")
    {
        for model in ["llama", "qwen3"] {
            let got = tokens::agreement(device, &fixtures.join(model))?;
            println!("tokens of {model}: {got:?}");
            tally.note(
                format!("tokens of {model}"),
                got.wrong.is_empty(),
                "another token where the gap is wide",
            );
            tally.note(
                format!("{model} in company"),
                got.together,
                "other bits than alone",
            );
            tally.note(
                format!("{model} replayed"),
                got.repeated,
                "other bits than launched",
            );
        }
    }
    if order.wants("upscaler")
        && let Some(path) = order.path("upscaler")
    {
        for size in [(96, 160), (61, 131)] {
            let got = pictures::agreement(device, &path, size)?;
            println!(
                "upscaler at {size:?}: {:.6} within 1/255, largest difference {:.5}",
                got.within, got.largest
            );
            tally.note(
                format!("upscaler at {size:?}"),
                got.within >= 0.999,
                "too few values within 1/255",
            );
            tally.note(
                format!("upscaler at {size:?} replayed"),
                got.replay_equal,
                "other bits than launched",
            );
        }
    }
    if order.wants("dense")
        && let Some(path) = order.path("dense")
    {
        for size in [(64, 96), (45, 131)] {
            let got = pictures::agreement(device, &path, size)?;
            println!(
                "dense upscaler at {size:?}: {:.6} within 1/255, largest difference {:.5}",
                got.within, got.largest
            );
            tally.note(
                format!("dense upscaler at {size:?}"),
                got.within >= 0.999,
                "too few values within 1/255",
            );
            tally.note(
                format!("dense upscaler at {size:?} replayed"),
                got.replay_equal,
                "other bits than launched",
            );
        }
    }
    if order.wants("vae") {
        let off = vae::error(device)?;
        println!("VAE decoder: off by {off:.2e} from the same by the CPU");
        tally.note(
            "VAE decoder".to_owned(),
            off < 5e-2,
            "another picture than the CPU's",
        );
    }
    println!("memory: {:?}", device.memory());
    println!("{} passed, {} failed", tally.passed, tally.failed.len());
    let all = tally.passed + tally.failed.len();
    receipt.add(Row {
        name: "checks-passed",
        unit: "share",
        higher: true,
        samples: vec![tally.passed as f64 / all.max(1) as f64],
        bar: None,
        floor: Some(1.0),
    });
    if let Some(path) = order.path("memcheck") {
        receipt.add(Row {
            name: "memcheck-errors",
            unit: "errors",
            higher: false,
            samples: vec![memcheck_errors(&std::fs::read_to_string(path)?)?],
            bar: Some(1.0),
            floor: None,
        });
    }
    receipt.finish(order.path("out").as_deref())?;
    if !tally.failed.is_empty() {
        bail!("{} checks failed", tally.failed.len());
    }
    Ok(())
}

/// The case table of every op that is wanted, each case twice.
fn tables(device: &Device, order: &Order, cpu: &Cpu, tally: &mut Tally) -> Result<()> {
    for op in OPS.iter().filter(|op| order.wants(op.name)) {
        let cases = (op.cases)();
        let mut worst = 0.0f32;
        let before = tally.failed.len();
        for case in &cases {
            let name = format!("{} ({})", op.name, case.name);
            let first = match (case.run)(device, cpu) {
                Ok(first) => first,
                Err(error @ CudaError::Fault { .. }) => bail!("{name}: {error}"),
                Err(error) => {
                    tally.note(name, false, &error.to_string());
                    continue;
                }
            };
            worst = worst.max(first.error());
            tally.note(
                name.clone(),
                first.keeps(case.bound),
                &format!("error {} over {:?}", first.error(), case.bound),
            );
            let again = (case.run)(device, cpu)?;
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            tally.note(
                format!("{name} again"),
                bits(&again.fast) == bits(&first.fast),
                "other bits than the first run",
            );
        }
        println!(
            "{:<18} {:>3} cases, worst error {worst:.2e}, {} failed",
            op.name,
            cases.len(),
            tally.failed.len() - before
        );
    }
    Ok(())
}

/// More memory than there is.
fn refusals(device: &Device, tally: &mut Tally) {
    for bytes in [1 << 50, usize::MAX] {
        let refused = device.alloc(bytes);
        let told = matches!(&refused, Err(CudaError::OutOfMemory { asked_bytes, .. }) if *asked_bytes == bytes);
        tally.note(
            format!("{bytes} bytes"),
            told,
            "not refused with the figures",
        );
    }
}

/// A kernel that reads outside memory: the error must name it.
pub(crate) fn fault(device: &Device) -> Result<()> {
    match engine_cuda::ops::fault(device) {
        Err(error @ CudaError::Fault { .. })
            if error
                .to_string()
                .contains("decode_attention[1, 1, 1, 16, 1]") =>
        {
            println!("told as it should be: {error}");
            Ok(())
        }
        Err(error) => bail!("another error than expected: {error}"),
        Ok(()) => bail!("no error"),
    }
}

/// Errors that compute-sanitizer counted in a run of these checks, by its output and theirs.
fn memcheck_errors(log: &str) -> Result<f64> {
    let passed = log.lines().any(|line| line.ends_with(" passed, 0 failed"));
    let summary = log
        .lines()
        .find_map(|line| line.split("ERROR SUMMARY: ").nth(1));
    let count = summary.and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    match (passed, count) {
        (true, Some(count)) => Ok(f64::from(count)),
        _ => bail!("the memcheck log shows no run of all checks with a summary"),
    }
}

/// Every number of rows from 1 to 16 gives each row the bits that it has alone.
fn rows(device: &Device, tally: &mut Tally) -> Result<()> {
    let (n, k) = (72, 1056);
    let values = |seed: u32, count: usize| -> Result<Buffer> {
        let to = device.alloc(count * 4)?;
        engine_cuda::ops::fill_bf16(device, &to, seed, 1.0)?;
        Ok(to)
    };
    let (weights, up) = (values(1, n * k / 2)?, values(2, n * k / 2)?);
    // f32 between -1 and 1, as numbers and not as pairs of bf16.
    let numbers: Vec<f32> = (0..16 * k)
        .map(|at| ((at * 2_654_435_761) % 2003) as f32 / 1001.5 - 1.0)
        .collect();
    let halves: Vec<u16> = numbers
        .iter()
        .map(|v| engine_tensor::f32_to_f16(*v))
        .collect();
    let bfloats: Vec<u16> = numbers
        .iter()
        .map(|v| half::bf16::from_f32(*v).to_bits())
        .collect();
    let norm = device.upload(&numbers[..k])?;
    let blocks: Vec<u8> = (0..n * k / 32)
        .flat_map(|at| {
            let scale = engine_tensor::f32_to_f16(0.01 + (at % 7) as f32 / 100.0).to_le_bytes();
            scale
                .into_iter()
                .chain((0..32).map(move |i| ((at * 31 + i * 97) % 256) as u8))
        })
        .collect();
    let bits8 = PackedWeights::from_blocks(device, DType::Q8_0, (n, k), &blocks)?;
    let blocks4: Vec<u8> = blocks
        .chunks_exact(34)
        .flat_map(|block| block[..18].to_vec())
        .collect();
    let bits4 = PackedWeights::from_blocks(device, DType::Q4_0, (n, k), &blocks4)?;
    let kinds = [
        "store",
        "add",
        "norm store",
        "norm gate",
        "norm best",
        "8 bits",
        "4 bits",
    ];
    for kind in kinds {
        let width = if kind == "norm gate" { 2 } else { 4 };
        let one = |first: usize, rows: usize| -> Result<Vec<u8>> {
            let range = first * k..(first + rows) * k;
            let x = match kind {
                "store" | "add" => device.upload(&bfloats[range])?,
                "8 bits" | "4 bits" => device.upload(&halves[range])?,
                _ => device.upload(&numbers[range])?,
            };
            let (out, best) = (device.zeros(rows * n * 4)?, device.zeros(rows * 8)?);
            if let "8 bits" | "4 bits" = kind {
                let weights = if kind == "8 bits" { &bits8 } else { &bits4 };
                packed_gemv(
                    device,
                    &PackedGemv {
                        weights,
                        x: &x,
                        bias: None,
                        out: &out,
                        rows,
                    },
                )?;
            } else {
                let end = match kind {
                    "add" => GemvEnd::Add,
                    "norm gate" => GemvEnd::Gate(&up),
                    "norm best" => GemvEnd::Best(&best),
                    _ => GemvEnd::Store,
                };
                let norm = kind.starts_with("norm").then_some((&norm, 1e-5));
                gemv(
                    device,
                    &Gemv {
                        weights: &weights,
                        x: &x,
                        norm,
                        bias: None,
                        end,
                        out: &out,
                        rows,
                        n,
                        k,
                    },
                )?;
            }
            let mut bytes = device.read(&out, 0, rows * n * width)?;
            if kind == "norm best" {
                let best: Vec<u64> = device.read(&best, 0, rows)?;
                bytes.extend(best.into_iter().flat_map(u64::to_le_bytes));
            }
            Ok(bytes)
        };
        let alone: Vec<Vec<u8>> = (0..16).map(|row| one(row, 1)).collect::<Result<_>>()?;
        for count in 1..=16 {
            let all = one(0, count)?;
            let row_bytes = n * width;
            let equal = (0..count).all(|row| {
                let same = all[row * row_bytes..(row + 1) * row_bytes] == alone[row][..row_bytes];
                // What was chosen, where the kind chooses.
                let chosen = |bytes: &[u8], rows: usize, row: usize| -> Vec<u8> {
                    bytes
                        .iter()
                        .skip(rows * row_bytes + 8 * row)
                        .take(8)
                        .copied()
                        .collect()
                };
                same && chosen(&all, count, row) == chosen(&alone[row], 1, 0)
            });
            tally.note(
                format!("rows of {kind}: {count}"),
                equal,
                "other bits than alone",
            );
        }
    }
    println!("rows 1 to 16 of {} products checked", kinds.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::memcheck_errors;

    #[test]
    fn only_a_whole_run_counts_as_memcheck() {
        let whole = "643 passed, 0 failed\n========= ERROR SUMMARY: 2 errors\n";
        assert_eq!(memcheck_errors(whole).unwrap(), 2.0);
        for log in [
            "",
            "643 passed, 0 failed",
            "========= ERROR SUMMARY: 0 errors",
            "3 passed, 1 failed\nERROR SUMMARY: 0 errors",
        ] {
            assert!(memcheck_errors(log).is_err(), "{log:?}");
        }
    }
}
