//! Films made of segments: joined, decoded again, measured.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests count as outside tests"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, NoProgress, Rational};
use ffmpeg_next as av;
use flow_media::encode::{EncodeOptions, Preset, VideoEncoder};
use flow_media::mux::{MuxRequest, mux_film, poster, stream_hashes};
use flow_media::render::{SegmentRenderer, YuvFrame, render_segment};
use flow_media::text::Fonts;
use flow_timeline::{CameraMove, Chapter, Cue, FilmFormat, Fit, Layer, LayerKind, Segment, View};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/cases")
        .join(name)
}

fn small(fps: Rational) -> FilmFormat {
    FilmFormat {
        width_px: 96,
        height_px: 64,
        fps,
        sample_rate_hz: 48_000,
    }
}

fn fast() -> EncodeOptions {
    EncodeOptions {
        gop_frames: 12,
        ..EncodeOptions::default()
    }
}

/// A segment of moving blocks, so that the encoder uses frames in both directions.
fn encode(path: &Path, format: &FilmFormat, options: &EncodeOptions, first: usize, frames: usize) {
    let mut encoder = VideoEncoder::create(path, format, options).unwrap();
    let (width, height) = (format.width_px as usize, format.height_px as usize);
    let mut frame = YuvFrame::new(width, height);
    for n in first..first + frames {
        for (i, value) in frame.y.iter_mut().enumerate() {
            let (x, y) = (i % width, i / width);
            *value = 16 + ((x * 3 + y * 2 + n * 5 + (x / 8 * y / 8) * 7) % 220) as u8;
        }
        frame.u.fill(100 + (n % 50) as u8);
        encoder.push(&frame).unwrap();
    }
    assert_eq!(encoder.finish().unwrap().frames, frames as i64);
}

fn request<'a>(segments: &'a [PathBuf], format: FilmFormat, out: &'a Path) -> MuxRequest<'a> {
    MuxRequest {
        segments,
        sound: None,
        cues: &[],
        language: None,
        chapters: &[],
        metadata: BTreeMap::new(),
        format,
        out,
    }
}

/// Planes of all frames, and the time stamps of packets: (pts, dts).
fn decode(path: &Path) -> (Vec<Vec<u8>>, Vec<(i64, i64)>) {
    let mut input = av::format::input(path).unwrap();
    let stream = input.streams().best(av::media::Type::Video).unwrap();
    let index = stream.index();
    let context = av::codec::context::Context::from_parameters(stream.parameters()).unwrap();
    let mut decoder = context.decoder().video().unwrap();
    let (mut frames, mut stamps) = (Vec::new(), Vec::new());
    let mut frame = av::frame::Video::empty();
    let mut take = |decoder: &mut av::decoder::Video, frames: &mut Vec<Vec<u8>>| {
        while decoder.receive_frame(&mut frame).is_ok() {
            let mut bytes = Vec::new();
            for plane in 0..3 {
                let shift = usize::from(plane > 0);
                let (width, height) = (
                    frame.width() as usize >> shift,
                    frame.height() as usize >> shift,
                );
                for row in frame.data(plane).chunks(frame.stride(plane)).take(height) {
                    bytes.extend_from_slice(&row[..width]);
                }
            }
            frames.push(bytes);
        }
    };
    let mut packet = av::Packet::empty();
    while packet.read(&mut input).is_ok() {
        if packet.stream() == index {
            stamps.push((packet.pts().unwrap(), packet.dts().unwrap()));
            decoder.send_packet(&packet).unwrap();
            take(&mut decoder, &mut frames);
        }
    }
    decoder.send_eof().unwrap();
    take(&mut decoder, &mut frames);
    (frames, stamps)
}

#[test]
fn a_joined_film_decodes_to_its_segments_frame_by_frame() {
    let folder = tempfile::tempdir().unwrap();
    for fps in [Rational::whole(24), Rational::new(30_000, 1001).unwrap()] {
        let format = small(fps);
        let lengths = [1, 30, 2, 13, 1, 1, 40, 3];
        let (mut segments, mut want, mut first) = (Vec::new(), Vec::new(), 0);
        for (i, frames) in lengths.into_iter().enumerate() {
            let path = folder.path().join(format!("{i}.mp4"));
            encode(&path, &format, &fast(), first, frames);
            want.extend(decode(&path).0);
            segments.push(path);
            first += frames;
        }
        let out = folder.path().join("film.mp4");
        let report = mux_film(
            &request(&segments, format, &out),
            &CancelToken::new(),
            &NoProgress,
        )
        .unwrap();
        assert_eq!(report.frames, first as i64);
        let (got, stamps) = decode(&out);
        assert_eq!((got.len(), want.len()), (first, first));
        for (n, (got, want)) in got.iter().zip(&want).enumerate() {
            assert!(got == want, "frame {n} at {fps}");
        }
        assert!(
            stamps.iter().any(|(pts, dts)| pts != dts),
            "expected frames in both directions"
        );
        assert!(
            stamps.windows(2).all(|pair| pair[1].1 > pair[0].1),
            "{stamps:?}"
        );
        assert!(stamps.iter().all(|(pts, dts)| pts >= dts));
        let input = av::format::input(&out).unwrap();
        let stream = input.streams().best(av::media::Type::Video).unwrap();
        let base = stream.time_base();
        // Exactly frames / fps, in the container's units.
        let units = Rational::new(
            stream.duration() * i64::from(base.numerator()),
            base.denominator().into(),
        );
        assert_eq!(units.unwrap(), report.secs);
        assert_eq!(stream.frames(), first as i64);
        let mut shown: Vec<i64> = stamps.iter().map(|(pts, _)| *pts).collect();
        shown.sort_unstable();
        let unit = shown[1] - shown[0];
        assert!(
            shown
                .iter()
                .enumerate()
                .all(|(n, pts)| *pts == n as i64 * unit)
        );
        assert_eq!(stream_hashes(&out).unwrap().frames, first as u64);
    }
}

#[test]
fn segments_of_other_options_or_sizes_are_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let format = small(Rational::whole(24));
    let path = |name: &str| folder.path().join(name);
    encode(&path("a.mp4"), &format, &fast(), 0, 5);
    let other = EncodeOptions {
        preset: Preset::Ultrafast,
        ..fast()
    };
    encode(&path("b.mp4"), &format, &other, 5, 5);
    let large = FilmFormat {
        width_px: 128,
        ..format
    };
    encode(&path("c.mp4"), &large, &fast(), 5, 5);
    let whole = std::fs::read(path("a.mp4")).unwrap();
    std::fs::write(path("d.mp4"), &whole[..whole.len() / 2]).unwrap();
    let out = path("film.mp4");
    for (bad, words) in [
        ("b.mp4", "parameter sets"),
        ("c.mp4", "128x64"),
        ("d.mp4", "open"),
    ] {
        let segments = [path("a.mp4"), path(bad)];
        let error = mux_film(
            &request(&segments, format, &out),
            &CancelToken::new(),
            &NoProgress,
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains(words), "{error}");
        assert!(!out.exists());
    }
    let slow = FilmFormat {
        fps: Rational::whole(12),
        ..format
    };
    let segments = [path("a.mp4")];
    assert!(
        mux_film(
            &request(&segments, slow, &out),
            &CancelToken::new(),
            &NoProgress
        )
        .is_err()
    );
    assert!(
        mux_film(
            &request(&[], format, &out),
            &CancelToken::new(),
            &NoProgress
        )
        .is_err()
    );
    let names = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 4, "a part file was left");
}

/// AAC in MP4 of `samples` samples of a tone.
fn tone(path: &Path, samples: usize) {
    let codec = av::encoder::find(av::codec::Id::AAC).unwrap();
    let mut context = av::codec::context::Context::new_with_codec(codec)
        .encoder()
        .audio()
        .unwrap();
    context.set_rate(48_000);
    context.set_channel_layout(av::ChannelLayout::STEREO);
    let sample = av::format::Sample::F32(av::format::sample::Type::Planar);
    context.set_format(sample);
    context.set_flags(av::codec::Flags::GLOBAL_HEADER | av::codec::Flags::BITEXACT);
    let base = av::Rational::new(1, 48_000);
    context.set_time_base(base);
    let mut encoder = context.open_as(codec).unwrap();
    let mut output = av::format::output_as(path, "mp4").unwrap();
    let mut stream = output.add_stream(codec).unwrap();
    stream.set_parameters(&encoder);
    stream.set_time_base(base);
    output.write_header().unwrap();
    let mut drain = |encoder: &mut av::encoder::Audio| {
        let mut packet = av::Packet::empty();
        while encoder.receive_packet(&mut packet).is_ok() {
            packet.set_stream(0);
            packet.write_interleaved(&mut output).unwrap();
        }
    };
    let mut at = 0;
    while at < samples {
        let count = 1024.min(samples - at);
        let mut frame = av::frame::Audio::new(sample, count, av::ChannelLayout::STEREO);
        frame.set_rate(48_000);
        frame.set_pts(Some(at as i64));
        for plane in 0..2 {
            for (i, value) in frame.plane_mut::<f32>(plane).iter_mut().enumerate() {
                *value = 0.2 * ((at + i) as f32 * 0.05).sin();
            }
        }
        encoder.send_frame(&frame).unwrap();
        drain(&mut encoder);
        at += count;
    }
    encoder.send_eof().unwrap();
    drain(&mut encoder);
    output.write_trailer().unwrap();
}

#[test]
fn sound_subtitles_chapters_and_a_long_manifest_come_through() {
    let folder = tempfile::tempdir().unwrap();
    let format = small(Rational::whole(24));
    let mut segments = Vec::new();
    for (i, frames) in [40, 33].into_iter().enumerate() {
        let path = folder.path().join(format!("{i}.mp4"));
        encode(&path, &format, &fast(), i * 40, frames);
        segments.push(path);
    }
    let sound = folder.path().join("sound.m4a");
    tone(&sound, format.sample_of_frame(73) as usize);
    let cue = |first_frame, frames, text: &str| Cue {
        first_frame,
        frames,
        text: text.into(),
    };
    let cues = [cue(5, 20, "שלום, מה שלומך?"), cue(30, 24, "second\nline")];
    let chapter = |first_frame, title: &str| Chapter {
        first_frame,
        title: title.into(),
    };
    let chapters = [chapter(0, "Morning"), chapter(40, "晚上")];
    let manifest = format!("{{\"shots\":[{}1]}}", "1234567,".repeat(20_000));
    let mut metadata = BTreeMap::new();
    metadata.insert("title".to_owned(), "Café 山".to_owned());
    metadata.insert("longtake".to_owned(), manifest.clone());
    let mut outs = Vec::new();
    for name in ["one.mp4", "two.mp4"] {
        let out = folder.path().join(name);
        let asked = MuxRequest {
            sound: Some(&sound),
            cues: &cues,
            language: Some("he"),
            chapters: &chapters,
            metadata: metadata.clone(),
            ..request(&segments, format, &out)
        };
        mux_film(&asked, &CancelToken::new(), &NoProgress).unwrap();
        outs.push(out);
    }
    let bytes: Vec<Vec<u8>> = outs.iter().map(|out| std::fs::read(out).unwrap()).collect();
    assert!(bytes[0] == bytes[1], "equal inputs must give equal bytes");
    let moov = bytes[0].windows(4).position(|w| w == b"moov").unwrap();
    let mdat = bytes[0].windows(4).position(|w| w == b"mdat").unwrap();
    assert!(moov < mdat, "the index must come first");

    let mut input = av::format::input(&outs[0]).unwrap();
    assert_eq!(input.metadata().get("title"), Some("Café 山"));
    assert_eq!(input.metadata().get("longtake"), Some(manifest.as_str()));
    assert!(input.metadata().get("creation_time").is_none());
    let read: Vec<_> = input
        .chapters()
        .map(|c| {
            (
                c.start() * 24 / i64::from(c.time_base().denominator()),
                c.metadata().get("title").unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(read.len(), 2);
    assert_eq!(read[1].1, "晚上");
    let subtitle = input.streams().best(av::media::Type::Subtitle).unwrap();
    assert_eq!(subtitle.parameters().id(), av::codec::Id::MOV_TEXT);
    assert_eq!(subtitle.metadata().get("language"), Some("heb"));
    let (row, base) = (subtitle.index(), subtitle.time_base());
    let audio = input.streams().best(av::media::Type::Audio).unwrap();
    assert_eq!(audio.start_time(), 0, "the priming must be skipped");
    let secs = audio.duration() as f64 * f64::from(audio.time_base());
    assert!((secs - 73.0 / 24.0).abs() < 0.001, "sound lasts {secs} s");
    let mut texts = Vec::new();
    let mut packet = av::Packet::empty();
    while packet.read(&mut input).is_ok() {
        if packet.stream() == row && packet.size() > 2 {
            let text = String::from_utf8(packet.data().unwrap()[2..].to_vec()).unwrap();
            let frames = |units: i64| (units as f64 * f64::from(base) * 24.0).round() as i64;
            texts.push(cue(
                frames(packet.pts().unwrap()),
                frames(packet.duration()),
                &text,
            ));
        }
    }
    assert_eq!(texts, cues);
    let hashes = stream_hashes(&outs[0]).unwrap();
    assert_eq!(hashes.frames, 73);
    let alone = decode(&segments[0]).0.len() + decode(&segments[1]).0.len();
    assert_eq!(alone, 73);
    assert!(hashes.audio.is_some() && hashes.samples >= format.sample_of_frame(73) as u64);
    assert_eq!(hashes, stream_hashes(&outs[1]).unwrap());
}

const PATCHES: [[i32; 3]; 12] = [
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
    [255, 255, 0],
    [255, 0, 255],
    [0, 255, 255],
    [235, 180, 150],
    [90, 60, 50],
    [255, 255, 255],
    [128, 128, 128],
    [16, 16, 16],
    [0, 0, 0],
];

fn patches_of(png: &Path) -> Vec<[i32; 3]> {
    let picture = image::open(png).unwrap().to_rgb8();
    let (width, height) = picture.dimensions();
    (0..12)
        .map(|i| {
            let (x, y) = (
                (2 * (i % 4) + 1) * width / 8,
                (2 * (i / 4) + 1) * height / 6,
            );
            picture.get_pixel(x, y).0.map(i32::from)
        })
        .collect()
}

fn worst(got: &[[i32; 3]], want: &[[i32; 3]]) -> i32 {
    let pairs = got.iter().flatten().zip(want.iter().flatten());
    pairs.map(|(got, want)| (got - want).abs()).max().unwrap()
}

/// Colour in export: patches survive, tags are set, an odd source size is fitted to the even frame
/// by covering it (a line at most is cut), and five generations stay together.
#[test]
fn av_04_colours_survive_five_generations() {
    let folder = tempfile::tempdir().unwrap();
    let fonts = Fonts::bundled();
    let format = FilmFormat {
        width_px: 316,
        height_px: 172,
        fps: Rational::whole(25),
        sample_rate_hz: 48_000,
    };
    for source in ["av-04/frame0.png", "av-04/frame-jfif.jpg"] {
        let mut input = case(source);
        let mut first = None;
        for generation in 0..5 {
            let kind = if generation == 0 {
                LayerKind::Still
            } else {
                LayerKind::Video { first_frame: 0 }
            };
            let segment = Segment {
                format,
                frames: 25,
                layers: vec![Layer {
                    source: kind,
                    fit: Fit::Cover,
                    camera: CameraMove::STILL,
                    shot_first_frame: 0,
                    shot_frames: 25,
                }],
                blend: None,
                fade_in_frames: 0,
                fade_out_frames: 0,
                cards: Vec::new(),
            };
            let out = folder.path().join(format!("{generation}.mp4"));
            let options = EncodeOptions::default();
            let cancel = CancelToken::new();
            let report = render_segment(
                &segment,
                &[input],
                &fonts,
                &out,
                &options,
                1,
                &cancel,
                &NoProgress,
            )
            .unwrap();
            let told = report
                .notes
                .iter()
                .any(|note| note.contains("315x171 px, an odd size"));
            assert_eq!(told, generation == 0, "{:?}", report.notes);
            let png = folder.path().join("poster.png");
            poster(&out, 12, &png).unwrap();
            let got = patches_of(&png);
            let first = first.get_or_insert_with(|| got.clone());
            // The JPEG's own loss comes on top of ours.
            let bar = 4;
            if generation == 0 {
                assert!(worst(&got, &PATCHES) <= bar, "{source}: {got:?}");
                assert!(
                    worst(&got[8..9], &PATCHES[8..9]) <= 2
                        && worst(&got[11..], &PATCHES[11..]) <= 2
                );
            }
            assert!(
                worst(&got, first) <= 6,
                "{source} generation {generation}: {got:?}"
            );
            assert!(
                worst(&got, &PATCHES) <= 6,
                "{source} generation {generation}: {got:?}"
            );
            input = out;
        }
        let film = av::format::input(&input).unwrap();
        let stream = film.streams().best(av::media::Type::Video).unwrap();
        let decoder = av::codec::context::Context::from_parameters(stream.parameters()).unwrap();
        let decoder = decoder.decoder().video().unwrap();
        assert_eq!(decoder.color_range(), av::color::Range::MPEG);
        assert_eq!(decoder.color_space(), av::color::Space::BT709);
        assert_eq!(decoder.color_primaries(), av::color::Primaries::BT709);
        assert_eq!(
            decoder.color_transfer_characteristic(),
            av::color::TransferCharacteristic::BT709
        );
    }
}

#[test]
fn a_video_layer_at_the_films_size_keeps_its_frames() {
    let folder = tempfile::tempdir().unwrap();
    let fonts = Fonts::bundled();
    let format = small(Rational::whole(24));
    let source = folder.path().join("source.mp4");
    encode(&source, &format, &EncodeOptions { crf: 1, ..fast() }, 0, 12);
    let segment = Segment {
        format,
        frames: 20,
        layers: vec![Layer {
            source: LayerKind::Video { first_frame: 2 },
            fit: Fit::Cover,
            camera: CameraMove {
                from: View::WHOLE,
                to: View::WHOLE,
                ..CameraMove::STILL
            },
            shot_first_frame: 0,
            shot_frames: 20,
        }],
        blend: None,
        fade_in_frames: 0,
        fade_out_frames: 0,
        cards: Vec::new(),
    };
    let want = decode(&source).0;
    let mut made = SegmentRenderer::new(&segment, &[source], &fonts).unwrap();
    let mut frame = made.new_frame();
    for n in [0_usize, 3, 9, 19] {
        made.frame_yuv(n as i64, &mut frame).unwrap();
        let want = &want[(n + 2).min(11)][..frame.y.len()];
        let off = frame
            .y
            .iter()
            .zip(want)
            .map(|(a, b)| f64::from(a.abs_diff(*b)))
            .sum::<f64>();
        // The converter's way from 4:2:0 and back costs a little.
        assert!(off / (want.len() as f64) < 4.0, "frame {n}: {off}");
    }
}
