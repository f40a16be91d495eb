//! Renders sample frames and measures rendering and encoding.
//!
//! `measure frames PICTURE FOLDER` writes PNG frames to look at; `measure speed PICTURE FOLDER FRAMES`
//! renders, then codes raw frames, and prints seconds and frames a second, so that the same raw
//! file can be given to another encoder.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use engine_base::{CancelToken, NoProgress};
use flow_media::encode::{EncodeOptions, VideoEncoder};
use flow_media::render::{SegmentRenderer, render_segment};
use flow_media::text::Fonts;
use flow_timeline::{
    CameraMove, Card, CardRole, Easing, FilmFormat, Fit, Layer, LayerKind, Segment, View,
};

type AnyResult = Result<(), Box<dyn std::error::Error>>;

fn segment(frames: i64, roll: f64, cards: &[(&str, CardRole)]) -> Segment {
    Segment {
        format: FilmFormat::DEFAULT,
        frames,
        layers: vec![Layer {
            source: LayerKind::Still,
            fit: Fit::Cover,
            camera: CameraMove {
                from: View::WHOLE,
                to: View {
                    x: 0.55,
                    y: 0.45,
                    zoom: 1.4,
                    roll,
                },
                easing: Easing::EaseInOut,
            },
            shot_first_frame: 0,
            shot_frames: frames,
        }],
        blend: None,
        fade_in_frames: 0,
        fade_out_frames: 0,
        cards: cards
            .iter()
            .map(|(text, role)| Card {
                text: (*text).into(),
                role: *role,
                first_frame: 0,
                frames,
                fade_frames: 6,
            })
            .collect(),
    }
}

fn write_frames(picture: &Path, folder: &Path, fonts: &Fonts) -> AnyResult {
    let shots: [(&str, &[(&str, CardRole)]); 7] = [
        (
            "title",
            &[
                ("The Last Crossing", CardRole::Title),
                ("SAVOY, WINTER 1912", CardRole::Subtitle),
            ],
        ),
        (
            "title-long",
            &[("What the Mountain Remembered of Us", CardRole::Title)],
        ),
        (
            "scripts",
            &[(
                "مرحبًا بالعالم، كيف الحال؟\n你好，世界 · こんにちは\nשלום, מה שלומך? 🎬❤️👩‍🚀",
                CardRole::Caption,
            )],
        ),
        (
            "title-arabic",
            &[
                ("عبور الجبال", CardRole::Title),
                ("群山之间 🏔️", CardRole::Subtitle),
            ],
        ),
        (
            "caption",
            &[(
                "She had waited eleven years for a letter\nthat said only one word.",
                CardRole::Caption,
            )],
        ),
        (
            "lower",
            &[("Marguerite Duval\nmountain guide", CardRole::LowerThird)],
        ),
        (
            "credits",
            &[(
                "Written by\nA. Example\n\nMusic\nThe House Band\n\nThank you for watching",
                CardRole::Credits,
            )],
        ),
    ];
    for (name, cards) in shots {
        let segment = segment(48, 0.0, cards);
        let mut made = SegmentRenderer::new(&segment, &[picture.to_owned()], fonts)?;
        let rgb = made.frame_rgb(24)?;
        image::save_buffer(
            folder.join(format!("{name}.png")),
            &rgb,
            1280,
            720,
            image::ExtendedColorType::Rgb8,
        )?;
    }
    Ok(())
}

/// Time this thread was on a processor: fair where other programs share the machine.
fn cpu_secs() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = stat.split_whitespace().next().unwrap_or("0");
    Ok(nanos.parse::<f64>()? / 1e9)
}

/// Processor time of this program's threads so far, those that ended too.
fn all_cpu_secs() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or("");
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let sum: f64 = ticks.map(|ticks| ticks.parse().unwrap_or(0.0)).sum();
    Ok(sum / 100.0)
}

fn speed(picture: &Path, folder: &Path, frames: i64, fonts: &Fonts) -> AnyResult {
    let mut out = std::io::stdout();
    for (name, roll) in [("straight", 0.0), ("rolled", 3.0)] {
        let segment = segment(
            frames,
            roll,
            &[("A caption over the picture", CardRole::Caption)],
        );
        let mut made = SegmentRenderer::new(&segment, &[picture.to_owned()], fonts)?;
        let mut frame = made.new_frame();
        let start = cpu_secs()?;
        for n in 0..frames {
            made.frame_yuv(n, &mut frame)?;
        }
        let secs = cpu_secs()? - start;
        writeln!(
            out,
            "render {name}: {:.1} frames a core second",
            frames as f64 / secs
        )?;
    }
    let segment = segment(
        frames,
        0.0,
        &[("A caption over the picture", CardRole::Caption)],
    );
    let mut made = SegmentRenderer::new(&segment, &[picture.to_owned()], fonts)?;
    let raw = folder.join("frames.yuv");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&raw)?);
    let mut kept = Vec::new();
    for n in 0..frames {
        let mut frame = made.new_frame();
        made.frame_yuv(n, &mut frame)?;
        for plane in [&frame.y, &frame.u, &frame.v] {
            file.write_all(plane)?;
        }
        kept.push(frame);
    }
    file.flush()?;
    let options = EncodeOptions::default();
    let (start, cpu) = (Instant::now(), all_cpu_secs()?);
    let mut encoder = VideoEncoder::create(&folder.join("encoded.mp4"), &segment.format, &options)?;
    for frame in &kept {
        encoder.push(frame)?;
    }
    encoder.finish()?;
    let secs = start.elapsed().as_secs_f64();
    let cpu = all_cpu_secs()? - cpu;
    writeln!(
        out,
        "encode: {:.1} frames a second, {:.1} a core second",
        frames as f64 / secs,
        frames as f64 / cpu
    )?;
    drop(kept);
    let start = Instant::now();
    let sources = [PathBuf::from(picture)];
    let to = folder.join("segment.mp4");
    render_segment(
        &segment,
        &sources,
        fonts,
        &to,
        &options,
        1,
        &CancelToken::new(),
        &NoProgress,
    )?;
    let secs = start.elapsed().as_secs_f64();
    writeln!(
        out,
        "render and encode: {:.1} frames a second",
        frames as f64 / secs
    )?;
    Ok(())
}

fn memory(picture: &Path, folder: &Path, frames: i64, fonts: &Fonts) -> AnyResult {
    let segment = segment(
        frames,
        0.0,
        &[("A caption over the picture", CardRole::Caption)],
    );
    let sources = [PathBuf::from(picture)];
    let options = EncodeOptions::default();
    let to = folder.join("long.mp4");
    render_segment(
        &segment,
        &sources,
        fonts,
        &to,
        &options,
        1,
        &CancelToken::new(),
        &NoProgress,
    )?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or("");
    writeln!(std::io::stdout(), "{frames} frames: {peak}")?;
    Ok(())
}

fn main() -> AnyResult {
    let args: Vec<String> = std::env::args().collect();
    let fonts = Fonts::load(&[]);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [_, "frames", picture, folder] => write_frames(picture.as_ref(), folder.as_ref(), &fonts),
        [_, "speed", picture, folder, frames] => {
            speed(picture.as_ref(), folder.as_ref(), frames.parse()?, &fonts)
        }
        [_, "memory", picture, folder, frames] => {
            memory(picture.as_ref(), folder.as_ref(), frames.parse()?, &fonts)
        }
        _ => Err("expected: frames PICTURE FOLDER | speed PICTURE FOLDER FRAMES | memory PICTURE FOLDER FRAMES".into()),
    }
}
