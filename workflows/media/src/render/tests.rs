use std::sync::Arc;

use engine_base::{CancelToken, NoProgress, Rational};
use flow_timeline::{
    Blend, CameraMove, Card, CardRole, Easing, FilmFormat, Fit, Layer, LayerKind, Segment, View,
};

use super::*;
use crate::encode::Preset;
use crate::picture::{Picture, Pixels};

fn format(width_px: u32, height_px: u32) -> FilmFormat {
    FilmFormat {
        width_px,
        height_px,
        ..FilmFormat::DEFAULT
    }
}

fn still(camera: CameraMove, frames: i64) -> Layer {
    Layer {
        source: LayerKind::Still,
        fit: Fit::Cover,
        camera,
        shot_first_frame: 0,
        shot_frames: frames,
    }
}

fn segment(format: FilmFormat, frames: i64, layer: Layer) -> Segment {
    Segment {
        format,
        frames,
        layers: vec![layer],
        blend: None,
        fade_in_frames: 0,
        fade_out_frames: 0,
        cards: Vec::new(),
    }
}

fn picture(width_px: u32, height_px: u32, at: impl Fn(f64, f64) -> [f64; 4]) -> Arc<Picture> {
    let mut values = Vec::new();
    for y in 0..height_px {
        for x in 0..width_px {
            values.extend(at(x.into(), y.into()).map(|v| (v * 65535.0).round() as u16));
        }
    }
    Arc::new(Picture {
        width_px,
        height_px,
        pixels: Pixels::Rgba16(values),
    })
}

fn renderer<'a>(
    segment: &Segment,
    picture: &Arc<Picture>,
    fonts: &'a Fonts,
) -> SegmentRenderer<'a> {
    let sources = segment
        .layers
        .iter()
        .map(|layer| match layer.source {
            LayerKind::Colour { .. } => LayerSource::Colour,
            _ => LayerSource::Still(Arc::clone(picture)),
        })
        .collect();
    SegmentRenderer::with_sources(segment, sources, fonts, 1).unwrap()
}

fn view(x: f64, y: f64, zoom: f64, roll: f64) -> View {
    View { x, y, zoom, roll }
}

fn pan(from: View, to: View) -> CameraMove {
    CameraMove {
        from,
        to,
        easing: Easing::Linear,
    }
}

/// A soft spot on black, and where its light lies across and down.
fn spot() -> Arc<Picture> {
    picture(320, 180, |x, y| {
        let d2 = (x - 160.0).powi(2) + (y - 90.0).powi(2);
        let v = 0.8 * (-d2 / 72.0).exp();
        [v, v, v, 1.0]
    })
}

fn centroid(frame: &[Rgbx], width: usize) -> (f64, f64) {
    let (mut sum, mut at_x, mut at_y) = (0.0, 0.0, 0.0);
    for (i, pixel) in frame.iter().enumerate() {
        let v = f64::from(pixel[1]);
        sum += v;
        at_x += v * (i % width) as f64;
        at_y += v * (i / width) as f64;
    }
    (at_x / sum, at_y / sum)
}

#[test]
fn a_pan_of_a_tenth_of_a_pixel_moves_the_picture_by_that() {
    let fonts = Fonts::bundled();
    let source = spot();
    // At zoom 2 on a frame of the picture's size, 0.1 frame px are 0.05 source px.
    for roll in [0.0, 0.001] {
        let frames = 41;
        let far = 0.5 + 40.0 * 0.05 / 320.0;
        let camera = pan(view(0.5, 0.5, 2.0, roll), view(far, 0.5, 2.0, roll));
        let segment = segment(format(320, 180), frames, still(camera, frames));
        let mut made = renderer(&segment, &source, &fonts);
        let mut last: Option<(f64, f64)> = None;
        for n in 0..frames {
            let now = centroid(&made.frame_coded(n).unwrap(), 320);
            if let Some(last) = last {
                let (dx, dy) = (last.0 - now.0, last.1 - now.1);
                assert!(
                    (dx - 0.1).abs() < 0.004 && dy.abs() < 0.004,
                    "frame {n}: {dx} {dy}"
                );
            }
            last = Some(now);
        }
    }
}

/// The frame computed from the scene itself: 16x16 samples a pixel of `scene` (linear light, source
/// pixels as flat squares), weighted as the renderer's kernel does.
fn supersampled(
    scene: impl Fn(f64, f64) -> f64,
    window: view::Window,
    size: (usize, usize),
) -> Vec<f64> {
    const N: i64 = 12;
    let kernel = kernel::Kernel::Mitchell;
    let weights: Vec<(f64, f64)> = (-2 * N..2 * N)
        .map(|i| (i as f64 + 0.5) / N as f64)
        .map(|d| (d, kernel.at(d)))
        .collect();
    let total: f64 = weights.iter().map(|(_, w)| w).sum();
    let mut out = Vec::new();
    for y in 0..size.1 {
        for x in 0..size.0 {
            let mut sum = 0.0;
            for (dy, wy) in &weights {
                for (dx, wx) in &weights {
                    let fx = x as f64 + 0.5 + dx - size.0 as f64 / 2.0;
                    let fy = y as f64 + 0.5 + dy - size.1 as f64 / 2.0;
                    let at = (
                        window.centre_x + fx * window.step,
                        window.centre_y + fy * window.step,
                    );
                    sum += wx * wy * scene(at.0, at.1);
                }
            }
            out.push(sum / total / total);
        }
    }
    out
}

#[test]
fn a_slow_push_over_a_fine_grating_does_not_shimmer() {
    let fonts = Fonts::bundled();
    // Checks of one source pixel, seen at 1.9 to 1.6 source pixels a frame pixel: finer than the
    // frame can show, so that any aliasing would beat.
    let checks = |x: f64, y: f64| (x.floor() as i64 + y.floor() as i64).rem_euclid(2) as f64;
    let source = picture(608, 342, |x, y| {
        let v = checks(x, y);
        [v, v, v, 1.0]
    });
    let frames = 96;
    let camera = pan(View::WHOLE, view(0.5, 0.5, 1.19, 0.0));
    let segment = segment(format(320, 180), frames, still(camera, frames));
    let mut made = renderer(&segment, &source, &fonts);
    let linear = |v: f32| {
        if v <= 0.04045 {
            v / 12.92
        } else {
            ((v + 0.055) / 1.055).powf(2.4)
        }
    };
    let (mut means, mut worst, mut last) = (Vec::new(), 0.0_f64, None::<Vec<Rgbx>>);
    for n in 0..frames {
        let frame = made.frame_coded(n).unwrap();
        means.push(frame.iter().map(|p| f64::from(linear(p[1]))).sum::<f64>() / frame.len() as f64);
        if let Some(last) = last {
            let change: f64 = frame
                .iter()
                .zip(&last)
                .map(|(a, b)| f64::from(a[1] - b[1]).powi(2))
                .sum();
            worst = worst.max((change / frame.len() as f64).sqrt());
        }
        last = Some(frame);
    }
    // The light of checks is one half all along, and hardly anything moves.
    assert!(
        means.iter().all(|mean| (mean - 0.5).abs() < 0.01),
        "{means:?}"
    );
    assert!(worst < 0.02, "frame to frame change {worst}");

    // A grating that can just be seen, against the reference, at three frames.
    let bars = |x: f64, _y: f64| f64::from(u8::from((x.floor() as i64).rem_euclid(6) < 3));
    let source = picture(608, 342, |x, y| {
        let v = bars(x, y);
        [v, v, v, 1.0]
    });
    let small = format(96, 54);
    let sizes = view::Sizes {
        frame: (96.0, 54.0),
        picture: (608.0, 342.0),
    };
    let camera = pan(view(0.5, 0.5, 3.0, 0.0), view(0.5, 0.5, 4.0, 0.0));
    let segment = self::segment(small, frames, still(camera, frames));
    let mut made = renderer(&segment, &source, &fonts);
    for n in [0, 37, 95] {
        let window = sizes.window(Fit::Cover, camera.at(n, frames));
        let want = supersampled(bars, window, (96, 54));
        let frame = made.frame_coded(n).unwrap();
        let square: f64 = frame
            .iter()
            .zip(&want)
            .map(|(a, b)| (f64::from(linear(a[1])) - b.clamp(0.0, 1.0)).powi(2))
            .sum();
        let psnr = -10.0 * (square / want.len() as f64).log10();
        assert!(psnr > 30.0, "frame {n}: {psnr} dB");
    }
}

#[test]
fn rolling_keeps_size_and_does_not_pop() {
    let fonts = Fonts::bundled();
    let source = picture(700, 400, |x, y| {
        let v = 0.5 + 0.4 * (x * 0.2).sin() * (y * 0.17).cos();
        [v, v * 0.8, 1.0 - v, 1.0]
    });
    let frames = 60;
    // Crosses from reducing to enlarging while rolling.
    let camera = pan(view(0.5, 0.5, 2.0, -0.4), view(0.5, 0.5, 2.4, 0.6));
    let segment = segment(format(320, 180), frames, still(camera, frames));
    let mut made = renderer(&segment, &source, &fonts);
    let mut changes = Vec::new();
    let mut last: Option<Vec<Rgbx>> = None;
    for n in 0..frames {
        let frame = made.frame_coded(n).unwrap();
        if let Some(last) = last {
            let change: f64 = frame
                .iter()
                .zip(&last)
                .map(|(a, b)| f64::from(a[1] - b[1]).powi(2))
                .sum();
            changes.push((change / frame.len() as f64).sqrt());
        }
        last = Some(frame);
    }
    for (n, pair) in changes.windows(3).enumerate() {
        let around = (pair[0] + pair[2]) / 2.0;
        assert!(
            pair[1] < 1.1 * around + 0.0005,
            "frame {n}: {} beside {around}",
            pair[1]
        );
    }
}

#[test]
fn a_still_of_the_frames_size_comes_through_untouched() {
    let fonts = Fonts::bundled();
    let source = picture(64, 36, |x, y| {
        let v = ((x * 7.0 + y * 13.0) % 255.0) / 255.0;
        [v, 1.0 - v, 0.5, 1.0]
    });
    let segment = segment(format(64, 36), 3, still(CameraMove::STILL, 3));
    let frame = renderer(&segment, &source, &fonts).frame_coded(2).unwrap();
    let Pixels::Rgba16(values) = &source.pixels else {
        panic!("made with 16 bits");
    };
    for (pixel, source) in frame.iter().zip(values.chunks_exact(4)) {
        for c in 0..3 {
            assert!((pixel[c] - f32::from(source[c]) / 65535.0).abs() < 1e-6);
        }
    }
}

#[test]
fn contain_leaves_black_beside_the_picture_and_blends_its_edge() {
    let fonts = Fonts::bundled();
    let source = picture(100, 100, |_, _| [1.0; 4]);
    let mut layer = still(CameraMove::STILL, 1);
    layer.fit = Fit::Contain;
    let segment = segment(format(160, 90), 1, layer);
    let frame = renderer(&segment, &source, &fonts).frame_coded(0).unwrap();
    let row = &frame[45 * 160..46 * 160];
    assert!(row[34][0] < 1e-6 && row[35][0] > 0.999 && row[124][0] > 0.999 && row[125][0] < 1e-6);
}

#[test]
fn a_rolled_picture_shown_whole_keeps_its_area() {
    let fonts = Fonts::bundled();
    let linear = |v: f32| {
        let v = f64::from(v);
        if v <= 0.04045 {
            v / 12.92
        } else {
            ((v + 0.055) / 1.055).powf(2.4)
        }
    };
    // Reduced and enlarged; upright, leaning and on its corner.
    for (side_px, roll) in [(100, 0.0), (100, 45.0), (100, -10.0), (20, 45.0), (20, 3.0)] {
        let source = picture(side_px, side_px, |_, _| [1.0; 4]);
        let mut layer = still(
            pan(view(0.5, 0.5, 0.5, roll), view(0.6, 0.45, 0.5, roll)),
            2,
        );
        layer.fit = Fit::Contain;
        let segment = segment(format(160, 90), 2, layer);
        let mut made = renderer(&segment, &source, &fonts);
        for n in 0..2 {
            let frame = made.frame_coded(n).unwrap();
            let light = |v: f32| {
                if side_px == 100 {
                    linear(v)
                } else {
                    f64::from(v)
                }
            };
            let area: f64 = frame.iter().map(|p| light(p[0])).sum();
            assert!(
                (area - 2025.0).abs() < 20.0,
                "{side_px} px, {roll} degrees: {area}"
            );
        }
    }
}

#[test]
fn fades_and_blends_run_as_documented() {
    let fonts = Fonts::bundled();
    let colour = |rgb| Layer {
        source: LayerKind::Colour { rgb },
        ..still(CameraMove::STILL, 1)
    };
    let nothing = picture(1, 1, |_, _| [0.0; 4]);
    let mut faded = segment(format(32, 18), 20, colour([200, 100, 50]));
    (faded.fade_in_frames, faded.fade_out_frames) = (4, 5);
    let mut made = renderer(&faded, &nothing, &fonts);
    let mut value = |n| made.frame_coded(n).unwrap()[5][0] * 255.0;
    assert!(value(0).abs() < 1e-3 && (value(2) - 100.0).abs() < 0.01);
    assert!((value(4) - 200.0).abs() < 1e-3 && (value(14) - 200.0).abs() < 1e-3);
    assert!(value(19).abs() < 1e-3);

    let mut cross = segment(format(32, 18), 9, colour([255, 0, 0]));
    cross.layers.push(colour([0, 0, 0]));
    cross.blend = Some(Blend::CrossFade);
    // Half the light of 255 is 188.
    let half = renderer(&cross, &nothing, &fonts).frame_coded(4).unwrap()[0][0] * 255.0;
    assert!((half - 187.5).abs() < 0.5, "{half}");
    cross.blend = Some(Blend::ThroughBlack);
    let mut made = renderer(&cross, &nothing, &fonts);
    assert!(made.frame_coded(4).unwrap()[0][0].abs() < 1e-6);
    assert!(made.frame_coded(0).unwrap()[0][0] > 0.75);
}

#[test]
fn threads_and_order_change_nothing() {
    let fonts = Fonts::bundled();
    let source = spot();
    let camera = pan(view(0.4, 0.5, 1.3, 0.0), view(0.6, 0.5, 1.9, 2.0));
    let mut segment = segment(format(320, 180), 12, still(camera, 12));
    segment.cards.push(Card {
        text: "Steady".into(),
        role: CardRole::Caption,
        first_frame: 2,
        frames: 8,
        fade_frames: 2,
    });
    let mut one = renderer(&segment, &source, &fonts);
    let mut three = renderer(&segment, &source, &fonts);
    three.set_threads(3).unwrap();
    let (mut a, mut b) = (one.new_frame(), three.new_frame());
    for (n, m) in [(0, 11), (5, 5), (11, 0)] {
        three.frame_yuv(m, &mut b).unwrap();
        three.frame_yuv(n, &mut b).unwrap();
        one.frame_yuv(n, &mut a).unwrap();
        assert!(a == b, "frame {n}");
    }
}

#[test]
fn a_segment_continues_its_shot_where_the_one_before_stopped() {
    let fonts = Fonts::bundled();
    let source = spot();
    let camera = pan(view(0.45, 0.5, 1.5, 0.0), view(0.6, 0.5, 2.5, 0.0));
    let whole = segment(format(320, 180), 20, still(camera, 20));
    let mut late = segment(format(320, 180), 8, still(camera, 20));
    late.layers[0].shot_first_frame = 12;
    let mut whole = renderer(&whole, &source, &fonts);
    let mut late = renderer(&late, &source, &fonts);
    let (mut a, mut b) = (whole.new_frame(), late.new_frame());
    whole.frame_yuv(15, &mut a).unwrap();
    late.frame_yuv(3, &mut b).unwrap();
    assert!(a == b);
}

#[test]
fn nonsense_is_refused_in_words() {
    let fonts = Fonts::bundled();
    let good = segment(format(64, 36), 4, still(CameraMove::STILL, 4));
    let try_one = |segment: &Segment| {
        SegmentRenderer::with_sources(segment, vec![LayerSource::Still(spot())], &fonts, 1)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(try_one(&good), "");
    let mut bad = good.clone();
    bad.frames = 0;
    assert!(try_one(&bad).contains("render 0 frames: expected 1"));
    bad = good.clone();
    bad.blend = Some(Blend::CrossFade);
    assert!(try_one(&bad).contains("1 layers"));
    bad = good.clone();
    bad.format.width_px = 63;
    assert!(try_one(&bad).contains("even sides"));
    bad = good.clone();
    bad.layers[0].shot_frames = 0;
    assert!(try_one(&bad).contains("at least 1"));
    let mut made = renderer(&good, &spot(), &fonts);
    assert!(made.frame_coded(4).is_err() && made.frame_coded(-1).is_err());
}

#[test]
fn a_cancelled_render_leaves_nothing_behind() {
    let fonts = Fonts::bundled();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("segment.mp4");
    let segment = segment(format(320, 180), 5000, still(CameraMove::STILL, 5000));
    let mut made = renderer(&segment, &spot(), &fonts);
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let progress = move |event: ProgressEvent| {
        if event.step == 3 {
            stop.cancel();
        }
    };
    let options = EncodeOptions {
        preset: Preset::Ultrafast,
        ..EncodeOptions::default()
    };
    let result = encode_frames(&mut made, &out, &options, &cancel, &progress);
    assert!(matches!(result, Err(MediaError::Cancelled)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn equal_segments_are_equal_bytes() {
    let fonts = Fonts::bundled();
    let folder = tempfile::tempdir().unwrap();
    let camera = pan(view(0.4, 0.5, 1.2, 0.0), view(0.6, 0.5, 1.6, 0.0));
    let mut segment = segment(format(160, 90), 30, still(camera, 30));
    segment.format.fps = Rational::new(30_000, 1001).unwrap();
    let options = EncodeOptions::default();
    let mut bytes = Vec::new();
    for (name, threads) in [("a.mp4", 1), ("b.mp4", 3)] {
        let out = folder.path().join(name);
        let mut made = renderer(&segment, &spot(), &fonts);
        made.set_threads(threads).unwrap();
        let report =
            encode_frames(&mut made, &out, &options, &CancelToken::new(), &NoProgress).unwrap();
        assert_eq!(report.frames, 30);
        bytes.push(std::fs::read(out).unwrap());
    }
    assert!(bytes[0] == bytes[1]);
}
