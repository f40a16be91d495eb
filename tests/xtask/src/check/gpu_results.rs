//! The table of figures measured on GPUs: rendered from receipts, and never written by hand.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Tree, Violation};

/// Where the table is.
pub(crate) const PLACE: &str = "tests/gpu/results.md";

/// Figures that have to be reached on an H200: name of the row, what it is, and what is asked.
const BARS: &[(&str, &str, &str)] = &[
    (
        "checks-passed",
        "Ops, rows, repeats, graphs, tokens against the CPU",
        "all",
    ),
    (
        "memcheck-errors",
        "compute-sanitizer's memcheck over the same",
        "0 errors",
    ),
    (
        "decode-llama-3-8b-bf16",
        "Decode, batch 1, bf16, Llama-3-8B shape",
        "> 210 tokens/s",
    ),
    (
        "decode-qwen3-0.6b-bf16",
        "Decode, batch 1, bf16, Qwen3-0.6B shape",
        "> 795 tokens/s",
    ),
    (
        "decode-llama-3-8b-q4-g64-over-bf16",
        "Decode, batch 1, 4 bits in groups of 64, 8B shape",
        ">= 2.2 x bf16",
    ),
    (
        "prefill-llama-3-8b-8192",
        "Prefill of 8,192 tokens, 8B shape",
        "< 220 ms",
    ),
    (
        "smollm2-tokens",
        "SmolLM2's tokens on 20 prompts against the CPU",
        "equal where the gap is over 1e-3",
    ),
    (
        "srvgg-x2-32-convs-720p-f16",
        "Compact upscaler of 32 convolutions, 1280x720 to 2560x1440",
        "> 200 frames/s",
    ),
    (
        "srvgg-x2-animevideov3-720p-f16",
        "realesr-animevideov3-x2 (16 convolutions), 1280x720",
        "> 200 frames/s",
    ),
    (
        "srvgg-x2-animevideov3-720p-within-1-of-255",
        "Its values within 1/255 of the CPU's",
        ">= 99.9 %",
    ),
    (
        "rrdbnet-x2-720p-f16",
        "RRDBNet x2, 23 blocks, 1280x720",
        "> 40 frames/s",
    ),
    (
        "attention-4608-24x128-both-ways",
        "Attention, 4,608 tokens, 24 heads of 128, bidirectional",
        "> 558 TFLOP/s",
    ),
    ("vae-decode-1024", "VAE decode to 1024x1024", "< 34 ms"),
    ("nvenc", "Hardware encoder", "opened, software otherwise"),
];

/// Where the time goes in what falls short, and what was tried.
const SHORT: &str = "\nDecode in 4 bits: the largest matrix (the head) runs at 72 % of the rate of reading, and with one block a \
    processor and as much on its way at 58 %, so the chain of a step (unpack, matrix unit, scale) is not hidden behind reading; \
    by count its instructions, about 160 a warp for 128 weights of 16 outputs, take 45 % of the time. Each of five launches a \
    layer also costs about 2 us before its first and after its last byte. Tried: more tiles ahead in registers, two to four \
    blocks a processor, blocks that take outputs in turn, a warp of its own for the sums, rings filled by the copy engine \
    (kept: gate and up 24.9 to 21.1 us, eight streams 12 % faster; three blocks a processor are faster alone and slower in a \
    step), one share of shared memory for all kernels of a step (slower).\n";

fn number(value: &Value) -> String {
    match value.as_f64() {
        Some(value) if value == 0.0 || value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.4}"),
        None => "-".to_owned(),
    }
}

/// The table of `receipts`, each a path and its text.
pub(crate) fn rendered<'a>(receipts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let read: Vec<(&str, Value)> = receipts
        .filter_map(|(path, text)| Some((path, serde_json::from_str(text).ok()?)))
        .collect();
    let mut text = "# Figures from GPUs\n\nRendered from the receipts named in it by `cargo xtask gpu --results FOLDER`; `cargo xtask check` holds it to \
        them. CI has no GPU: nothing here is run or counted there.\n\n## What has to be reached\n\n| what | asked | measured | floor or ceiling | peer | ahead of the peer | state |\n| --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let rows = || {
        read.iter()
            .flat_map(|(_, receipt)| receipt["rows"].as_array().into_iter().flatten())
    };
    for (name, about, asked) in BARS {
        // Of several runs one that had its peer beside it, else the last.
        let named = || rows().filter(|row| row["name"] == **name);
        let beside_peer = named().find(|row| !row["peer_value"].is_null());
        let Some(row) = beside_peer.or_else(|| named().next_back()) else {
            writeln!(text, "| {about} | {asked} | - | - | - | - | unmeasured |").ok();
            continue;
        };
        let reached = match (&row["reached"], row["value"].as_f64()) {
            (Value::Bool(true), _) => "reached",
            (Value::Bool(false), _) => "not reached",
            (_, Some(1.0)) => "reached",
            _ => "not reached",
        };
        writeln!(
            text,
            "| {about} | {asked} | {} {} | {} | {} | {} | {reached} |",
            number(&row["value"]),
            row["unit"].as_str().unwrap_or_default(),
            number(&row["floor"]),
            number(&row["peer_value"]),
            number(&row["ratio"]),
        )
        .ok();
    }
    text += "\nFloors of decode steps are the weights' bytes over the rate at which the same run read memory; of pictures 800 TFLOP/s.\n";
    text += SHORT;
    for (path, receipt) in &read {
        let machine = &receipt["machine"];
        let said = |key: &str| machine[key].as_str().unwrap_or("unknown").to_owned();
        write!(
            text,
            "\n## {path}\n\n{}, driver {} (CUDA {}), kernels by compiler {}; commit {}.\n\n| row | median | least | most | unit | floor or ceiling | peer |\n| --- | --- | --- | --- | --- | --- | --- |\n",
            said("device"),
            said("driver"),
            said("driver_cuda"),
            said("kernel_compiler"),
            receipt["commit"].as_str().unwrap_or("unknown"),
        )
        .ok();
        for row in receipt["rows"].as_array().into_iter().flatten() {
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                row["name"].as_str().unwrap_or_default(),
                number(&row["value"]),
                number(&row["spread"]["min"]),
                number(&row["spread"]["max"]),
                row["unit"].as_str().unwrap_or_default(),
                number(&row["floor"]),
                number(&row["peer_value"]),
            )
            .ok();
        }
    }
    text
}

/// The table says what the receipts say.
pub(super) fn rule(tree: &Tree) -> Vec<Violation> {
    let receipts = tree
        .texts()
        .filter(|(path, _)| path.starts_with("tests/receipts/gpu") && path.ends_with(".json"));
    let expected = rendered(receipts);
    match tree.text(PLACE) {
        Some(text) if text == expected => Vec::new(),
        _ => vec![Violation::new(
            PLACE,
            "is not what its receipts say: render it again by `cargo xtask gpu --render`",
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIPT: &str = r#"{"commit":"abc","machine":{"device":"H"},"rows":[
        {"name":"decode-llama-3-8b-bf16","value":250.5,"unit":"tokens/s","reached":true,"floor":300,"peer_value":210.0,"ratio":1.19,"spread":{"min":249,"max":251}}]}"#;

    #[test]
    fn bars_without_a_figure_say_so() {
        let text = rendered(std::iter::empty());
        assert_eq!(text.matches("| unmeasured |").count(), BARS.len());
    }

    #[test]
    fn a_table_that_differs_from_its_receipts_is_found() {
        let text = rendered([("tests/receipts/gpu.json", RECEIPT)].into_iter());
        assert!(
            text.contains("250.5 tokens/s | 300.0 | 210.0 | 1.1900 | reached"),
            "{text}"
        );
        assert_eq!(text.matches("| unmeasured |").count(), BARS.len() - 1);
        let fresh = Tree::of(&[("tests/receipts/gpu.json", RECEIPT), (PLACE, &text)]);
        assert_eq!(rule(&fresh), []);
        let edited = text.replace("250.5", "310.0");
        let old = Tree::of(&[("tests/receipts/gpu.json", RECEIPT), (PLACE, &edited)]);
        assert_eq!(rule(&old).len(), 1);
        assert_eq!(
            rule(&Tree::of(&[("tests/receipts/gpu.json", RECEIPT)])).len(),
            1
        );
    }
}
