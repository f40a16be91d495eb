//! realesrgan-x4plus, the network of 23 blocks, on a small picture.
//!
//! Such a network sees its whole neighbourhood: a pixel is another one where a picture's surroundings
//! are. The peer mirrors 10 pixels beyond each edge, which is done here too, so that the networks are
//! compared and not the edges.

use std::time::Instant;

use anyhow::{Context as _, Result};
use engine_base::{CancelToken, NoProgress};
use engine_models::{PictureMemory, load_picture_model};
use engine_pipelines::Upscaler;
use engine_tensor::Cpu;
use engine_weights::SafeTensors;
use longtake_tests::receipt::Measured;
use longtake_tests::{Better, Receipt};
use serde_json::json;

use super::{Peer, THREADS, agreement, bytes, frame, near_share};
use crate::peer::python;

const PACK: &str = "realesrgan-x4plus";
const WIDTH: usize = 96;
const HEIGHT: usize = 64;
const SCALE: usize = 4;
const PEER_MODEL: u32 = 4;
/// How far the peer mirrors a picture beyond its edges.
const PEER_EDGE_PX: usize = 10;

/// Adds rows where the pack is here; it is fetched only when somebody asks for it.
pub(super) fn run(receipt: &mut Receipt, peers: bool) -> Result<()> {
    let folder = engine_hub::models_folder()?.join(PACK);
    if !folder.is_dir() {
        return Ok(());
    }
    let upscaler = Upscaler::open(&folder, THREADS)?;
    let picture = frame(WIDTH as u32, HEIGHT as u32)?;
    let started = Instant::now();
    upscaler.upscale(&picture, 2, &CancelToken::new(), &NoProgress)?;
    let secs = started.elapsed().as_secs_f64();
    let mut theirs = None;
    if peers {
        let mut peer = Peer::start(&python("LONGTAKE_NCNN_PYTHON")?, PEER_MODEL)?;
        let place = tempfile::tempdir()?;
        let (rgb, out) = (place.path().join("in.rgb"), place.path().join("out.rgb"));
        std::fs::write(&rgb, bytes(&picture)?)?;
        let request =
            json!({"do": "run", "rgb": rgb, "width": WIDTH, "height": HEIGHT, "out": out});
        let reply = peer.ask(&request)?;
        // Opening it has left it there.
        let weights = SafeTensors::open(folder.join(format!("{PACK}.safetensors")))?;
        let ours = four_times(&weights, bytes(&picture)?)?;
        let share = near_share(&ours, &std::fs::read(&out)?)?;
        receipt.add(agreement("x4plus-pixels-within-2", &[share]))?;
        let secs = reply["secs"].as_f64().context("expected a time")?;
        theirs = Some((peer.name.clone(), [secs]));
    }
    receipt.add(Measured {
        name: "x4plus-frame",
        unit: "s",
        better: Better::Lower,
        samples: &[secs],
        peer: theirs
            .as_ref()
            .map(|(name, secs)| (name.as_str(), &secs[..])),
        floor: None,
    })?;
    Ok(())
}

/// The place that is seen at `at` in the mirror beyond an edge.
fn mirrored(at: usize, len: usize) -> usize {
    let from_edge = at.abs_diff(PEER_EDGE_PX);
    if from_edge < len {
        from_edge
    } else {
        2 * (len - 1) - from_edge
    }
}

/// The network's own output for a picture of RGB.
fn four_times(weights: &SafeTensors, rgb: &[u8]) -> Result<Vec<u8>> {
    let (width, height) = (WIDTH + 2 * PEER_EDGE_PX, HEIGHT + 2 * PEER_EDGE_PX);
    let mut planes = Vec::with_capacity(3 * width * height);
    for channel in 0..3 {
        for y in 0..height {
            for x in 0..width {
                let at = mirrored(y, HEIGHT) * WIDTH + mirrored(x, WIDTH);
                planes.push(f32::from(rgb[3 * at + channel]) / 255.0);
            }
        }
    }
    let model = load_picture_model(weights)?;
    let mut memory = PictureMemory::new();
    let cpu = Cpu::new(THREADS)?;
    let cancel = CancelToken::new();
    let large = model.run(&cpu, &planes, (height, width), &mut memory, &cancel)?;
    let (plane, edge) = (SCALE * SCALE * width * height, SCALE * PEER_EDGE_PX);
    let mut out = Vec::with_capacity(3 * SCALE * SCALE * WIDTH * HEIGHT);
    for y in 0..SCALE * HEIGHT {
        for x in 0..SCALE * WIDTH {
            let at = (edge + y) * SCALE * width + edge + x;
            for channel in 0..3 {
                let value = large[channel * plane + at] * 255.0;
                out.push(value.round().clamp(0.0, 255.0) as u8);
            }
        }
    }
    Ok(out)
}
