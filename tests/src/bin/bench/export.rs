//! Our encoder and our join beside the plain `ffmpeg` command on the same frames and settings.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use engine_base::{CancelToken, NoProgress};
use flow_media::encode::{EncodeOptions, VideoEncoder};
use flow_media::mux::{MuxRequest, mux_film, stream_hashes};
use flow_media::render::{SegmentRenderer, YuvFrame, render_segment};
use flow_media::text::Fonts;
use flow_timeline::{
    CameraMove, Card, CardRole, Easing, FilmFormat, Fit, Layer, LayerKind, Segment, View,
};
use longtake_tests::film::scratch;
use longtake_tests::load::CpuTime;
use longtake_tests::long_film::samples as sample_folder;
use longtake_tests::{Better, Receipt};

use crate::{Bench, Samples};

pub(crate) const BENCH: Bench = Bench {
    name: "export",
    about: "encoding and joining beside the ffmpeg command, and whole rendering",
    run,
};

const FORMAT: FilmFormat = FilmFormat::DEFAULT;
/// Frames of each shot; three make the raw film.
const SHOT_FRAMES: i64 = 80;
const ROUNDS: usize = 5;
/// Part of the command's speed that must be reached.
const RATIO_FLOOR: f64 = 0.9;
/// Segments joined.
const JOINED: usize = 240;
const STILLS: [&str; 3] = ["nagasaki-boats", "french-alpine-landscape", "black-canyon"];

/// Settings of both sides, as a film's segments have them.
fn options() -> EncodeOptions {
    EncodeOptions {
        threads: 2,
        ..EncodeOptions::default()
    }
}

fn run(receipt: &mut Receipt, _peers: bool) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("longtake-export-")
        .tempdir_in(scratch()?)?;
    let folder = folder.path();
    let peer = version()?;
    let fonts = Fonts::load(&[]);
    let raw = folder.join("frames.yuv");
    write_raw(&raw, &fonts)?;
    let mut samples = Samples::new();
    encode_rounds(folder, &raw, &mut samples)?;
    render_rounds(folder, &fonts, &mut samples)?;
    join_rounds(folder, &mut samples)?;
    for name in ["encode", "encode, processor"] {
        samples.compared(receipt, name, "frames/s", Better::Higher, &peer)?;
    }
    let ratio = Some(RATIO_FLOOR);
    samples.row(receipt, "encode to command", "x", Better::Higher, ratio)?;
    let name = "encode to command, processor";
    samples.row(receipt, name, "x", Better::Higher, ratio)?;
    samples.row(
        receipt,
        "frames unlike the command's",
        "frames",
        Better::Lower,
        Some(0.0),
    )?;
    for name in ["straight", "rolled", "still"] {
        let name = format!("render and encode, {name}");
        samples.row(receipt, &name, "frames/s", Better::Higher, None)?;
        let name = format!("{name}, processor");
        samples.row(receipt, &name, "frames/s", Better::Higher, None)?;
    }
    for name in ["join", "join, processor"] {
        samples.compared(receipt, name, "MB/s", Better::Higher, &peer)?;
    }
    Ok(())
}

/// Name and version of the command.
fn version() -> Result<String> {
    let output = Command::new("ffmpeg")
        .arg("-version")
        .output()
        .context("start ffmpeg")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    let version = words.nth(2).context("ffmpeg tells no version")?;
    Ok(format!("ffmpeg {version}"))
}

fn segment(name: &str) -> Segment {
    let view = |x, y, zoom, roll| View { x, y, zoom, roll };
    let (from, to) = match name {
        "straight" => (View::WHOLE, view(0.55, 0.45, 1.4, 0.0)),
        "rolled" => (view(0.5, 0.5, 1.2, -2.0), view(0.5, 0.5, 1.3, 2.0)),
        _ => (View::WHOLE, View::WHOLE),
    };
    Segment {
        format: FORMAT,
        frames: SHOT_FRAMES,
        layers: vec![Layer {
            source: LayerKind::Still,
            fit: Fit::Cover,
            camera: CameraMove {
                from,
                to,
                easing: Easing::EaseInOut,
            },
            shot_first_frame: 0,
            shot_frames: SHOT_FRAMES,
        }],
        blend: None,
        fade_in_frames: 0,
        fade_out_frames: 0,
        cards: vec![Card {
            text: "A caption over the picture".into(),
            role: CardRole::Caption,
            first_frame: 10,
            frames: SHOT_FRAMES - 20,
            fade_frames: 6,
        }],
    }
}

fn still(at: usize) -> PathBuf {
    sample_folder()
        .join("stills")
        .join(format!("{}.jpg", STILLS[at % STILLS.len()]))
}

/// Three moving shots as raw frames, one plane after the other.
fn write_raw(path: &Path, fonts: &Fonts) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for (at, name) in ["straight", "rolled", "straight"].into_iter().enumerate() {
        let mut renderer = SegmentRenderer::new(&segment(name), &[still(at)], fonts)?;
        let mut frame = renderer.new_frame();
        for index in 0..SHOT_FRAMES {
            renderer.frame_yuv(index, &mut frame)?;
            for plane in [&frame.y, &frame.u, &frame.v] {
                file.write_all(plane)?;
            }
        }
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}

/// Wall and processor seconds of `work`, that of ended children included.
fn timed(work: impl FnOnce() -> Result<()>) -> Result<(f64, Option<f64>)> {
    let (start, before) = (Instant::now(), CpuTime::now());
    work()?;
    let wall = start.elapsed().as_secs_f64();
    let spent = before.zip(CpuTime::now()).map(|(before, now)| {
        let since = now.since(before);
        since.own_secs + since.children_secs
    });
    Ok((wall, spent))
}

/// Time both sides in turn, the first of the last round second in this one; note what `amount`
/// makes of it a second. Gives both sides' seconds.
fn side_by_side(
    samples: &mut Samples,
    name: &str,
    amount: f64,
    round: usize,
    ours: impl Fn() -> Result<()>,
    theirs: impl Fn() -> Result<()>,
) -> Result<()> {
    let (ours, theirs) = if round.is_multiple_of(2) {
        let first = timed(ours)?;
        (first, timed(theirs)?)
    } else {
        let first = timed(theirs)?;
        (timed(ours)?, first)
    };
    samples.add(name, amount / ours.0);
    samples.add(&format!("{name}/peer"), amount / theirs.0);
    samples.add(&format!("{name} to command"), theirs.0 / ours.0);
    if let (Some(ours), Some(theirs)) = (ours.1, theirs.1) {
        samples.add(&format!("{name}, processor"), amount / ours);
        samples.add(&format!("{name}, processor/peer"), amount / theirs);
        samples.add(&format!("{name} to command, processor"), theirs / ours);
    }
    Ok(())
}

fn command(arguments: &[&str], files: [&Path; 2], output: &[&str]) -> Result<()> {
    let [from, to] = files;
    let ended = Command::new("ffmpeg")
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"])
        .args(arguments)
        .arg("-i")
        .arg(from)
        .args(output)
        .arg(to)
        .output()
        .context("start ffmpeg")?;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(
        ended.status.success(),
        "ffmpeg ended with {}: {said}",
        ended.status
    );
    Ok(())
}

fn encode_rounds(folder: &Path, raw: &Path, samples: &mut Samples) -> Result<()> {
    let (mine, theirs) = (folder.join("ours.mp4"), folder.join("theirs.mp4"));
    let size = format!("{}x{}", FORMAT.width_px, FORMAT.height_px);
    let options = options();
    let (crf, gop, threads) = (
        options.crf.to_string(),
        options.gop_frames.to_string(),
        options.threads.to_string(),
    );
    let frames = (3 * SHOT_FRAMES) as f64;
    for round in 0..ROUNDS {
        side_by_side(
            samples,
            "encode",
            frames,
            round,
            || encode_raw(raw, &mine, &options),
            || {
                command(
                    &[
                        "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &size, "-r", "24",
                    ],
                    [raw, &theirs],
                    &[
                        "-c:v",
                        "libx264",
                        "-preset",
                        "medium",
                        "-crf",
                        &crf,
                        "-threads",
                        &threads,
                        "-g",
                        &gop,
                        "-keyint_min",
                        &gop,
                        "-flags",
                        "+cgop+bitexact+global_header",
                        "-forced-idr",
                        "1",
                        "-x264-params",
                        "scenecut=0:open-gop=0:stitchable=1:force-cfr=1",
                    ],
                )
            },
        )?;
    }
    // Equal settings give equal pictures, else one side did another work.
    let (ours, peers) = (stream_hashes(&mine)?, stream_hashes(&theirs)?);
    ensure!(ours.frames == peers.frames, "{ours:?} {peers:?}");
    let unlike = if ours.video == peers.video {
        0
    } else {
        ours.frames
    };
    samples.add("frames unlike the command's", unlike as f64);
    Ok(())
}

/// The raw frames through our encoder.
fn encode_raw(raw: &Path, out: &Path, options: &EncodeOptions) -> Result<()> {
    let mut file = BufReader::new(File::open(raw)?);
    let mut encoder = VideoEncoder::create(out, &FORMAT, options)?;
    let mut frame = YuvFrame::new(FORMAT.width_px as usize, FORMAT.height_px as usize);
    for _ in 0..3 * SHOT_FRAMES {
        for plane in [&mut frame.y, &mut frame.u, &mut frame.v] {
            file.read_exact(plane)?;
        }
        encoder.push(&frame)?;
    }
    let report = encoder.finish()?;
    ensure!(report.frames == 3 * SHOT_FRAMES, "{report:?}");
    Ok(())
}

fn render_rounds(folder: &Path, fonts: &Fonts, samples: &mut Samples) -> Result<()> {
    let out = folder.join("rendered.mp4");
    for round in 0..ROUNDS {
        for name in ["straight", "rolled", "still"] {
            let sources = [still(round)];
            let (wall, spent) = timed(|| {
                render_segment(
                    &segment(name),
                    &sources,
                    fonts,
                    &out,
                    &options(),
                    1,
                    &CancelToken::new(),
                    &NoProgress,
                )?;
                Ok(())
            })?;
            let frames = SHOT_FRAMES as f64;
            let name = format!("render and encode, {name}");
            samples.add(&name, frames / wall);
            if let Some(spent) = spent {
                samples.add(&format!("{name}, processor"), frames / spent);
            }
        }
    }
    Ok(())
}

fn join_rounds(folder: &Path, samples: &mut Samples) -> Result<()> {
    // What the last encode left: ten seconds, joined over and over.
    let piece = folder.join("ours.mp4");
    let segments = vec![piece.clone(); JOINED];
    let list = folder.join("list.txt");
    fs::write(&list, "file 'ours.mp4'\n".repeat(JOINED))?;
    let megabytes = fs::metadata(&piece)?.len() as f64 * JOINED as f64 / 1e6;
    let (mine, theirs) = (folder.join("joined.mp4"), folder.join("concat.mp4"));
    for round in 0..ROUNDS {
        side_by_side(
            samples,
            "join",
            megabytes,
            round,
            || {
                let request = MuxRequest {
                    segments: &segments,
                    sound: None,
                    cues: &[],
                    language: None,
                    chapters: &[],
                    metadata: std::collections::BTreeMap::new(),
                    format: FORMAT,
                    out: &mine,
                };
                let report = mux_film(&request, &CancelToken::new(), &NoProgress)?;
                let frames = 3 * SHOT_FRAMES * JOINED as i64;
                ensure!(report.frames == frames, "{report:?}");
                Ok(())
            },
            || {
                command(
                    &["-f", "concat", "-safe", "0"],
                    [&list, &theirs],
                    &["-c", "copy", "-movflags", "+faststart"],
                )?;
                // Ours is on the disk when it returns; so is theirs to be.
                File::open(&theirs)?.sync_all()?;
                Ok(())
            },
        )?;
    }
    Ok(())
}
