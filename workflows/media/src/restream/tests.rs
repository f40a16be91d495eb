//! Pictures there and back, without a network between.

use std::path::Path;

use ffmpeg_next::format::Pixel;
use ffmpeg_next::frame;

use super::*;
use crate::encode::{EncodeOptions, Preset};
use crate::video::clips::{Clip, make};

const OPTIONS: EncodeOptions = EncodeOptions {
    crf: 0,
    preset: Preset::Ultrafast,
    threads: 1,
    gop_frames: 1,
};

/// Each pixel four times.
fn twice(small: &RgbPicture) -> RgbPicture {
    let (width, height) = (small.width_px as usize, small.height_px as usize);
    let pixels = small.values.as_chunks::<3>().0;
    let places = (0..height * 2).flat_map(|y| (0..width * 2).map(move |x| (x / 2, y / 2)));
    RgbPicture {
        width_px: small.width_px * 2,
        height_px: small.height_px * 2,
        values: places.flat_map(|(x, y)| pixels[y * width + x]).collect(),
    }
}

/// Remake a video with every pixel four times, without loss.
fn remake(from: &Path, to: &Path) -> (JoinReport, Vec<String>) {
    if to.exists() {
        std::fs::remove_file(to).unwrap();
    }
    let container = Container::of_name(to).unwrap();
    let mut source = Source::open(from, container, &OPTIONS).unwrap();
    source.try_out(to).unwrap();
    assert!(!to.exists(), "a trial leaves nothing");
    let folder = tempfile::tempdir().unwrap();
    let mut segments = Vec::new();
    let mut encoder = None;
    while let Some(frame) = source.next_frame().unwrap() {
        // Short segments, so that there are several.
        if frame.index.is_multiple_of(4)
            && let Some(done) = encoder.take()
        {
            SegmentEncoder::finish(done).unwrap();
        }
        let large = twice(&source.rgb(&frame).unwrap());
        let encoder = encoder.get_or_insert_with(|| {
            segments.push(folder.path().join(format!("{}.mp4", frame.index)));
            SegmentEncoder::create(segments.last().unwrap(), source.segment_format()).unwrap()
        });
        encoder.push(&large).unwrap();
    }
    encoder.unwrap().finish().unwrap();
    let request = JoinRequest {
        source: &source,
        segments: &segments,
        out: to,
    };
    let cancel = engine_base::CancelToken::new();
    let report = join(&request, &cancel, &engine_base::NoProgress).unwrap();
    let mut notes = source.facts().notes.clone();
    notes.extend(source.late_notes());
    (report, notes)
}

/// Planes of all frames as stored, and their times.
fn planes(path: &Path) -> Vec<(i64, Vec<Vec<u16>>)> {
    let mut reader = crate::video::Reader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(decoded) = reader.next().unwrap() {
        let frame = decoded.frame;
        let wide = super::coding::Layout::of(frame.format()).unwrap().bits > 8;
        let plane = |plane: usize| {
            let (width, height) = (frame.plane_width(plane), frame.plane_height(plane));
            let stride = frame.stride(plane);
            let rows = frame.data(plane).chunks(stride).take(height as usize);
            let values = rows.flat_map(|row| {
                let row = &row[..width as usize * (1 + usize::from(wide))];
                let value = |at: &[u8]| match at {
                    [low, high] => u16::from_le_bytes([*low, *high]),
                    at => u16::from(at[0]),
                };
                row.chunks(1 + usize::from(wide))
                    .map(value)
                    .collect::<Vec<_>>()
            });
            values.collect::<Vec<u16>>()
        };
        frames.push((decoded.pts, (0..3).map(plane).collect()));
    }
    frames
}

/// Fill a frame with one colour.
fn flat(frame: &mut frame::Video, colour: [u16; 3], is_wide: bool) {
    for (plane, value) in colour.into_iter().enumerate() {
        if is_wide {
            for place in frame.data_mut(plane).as_chunks_mut::<2>().0 {
                *place = value.to_le_bytes();
            }
        } else {
            frame.data_mut(plane).fill(value as u8);
        }
    }
}

/// Colours well within what RGB holds, of 8 bits.
const COLOURS: [[u16; 3]; 6] = [
    [16, 128, 128],
    [235, 128, 128],
    [126, 128, 128],
    [90, 110, 170],
    [150, 90, 120],
    [63, 140, 121],
];

#[test]
fn flat_colours_stay_in_every_matrix_range_and_depth() {
    let folder = tempfile::tempdir().unwrap();
    // Matrix as FFmpeg numbers it, and range: 1 limited, 2 full.
    for (pixel, bits) in [
        (Pixel::YUV420P, 8),
        (Pixel::YUV420P10LE, 10),
        (Pixel::YUV422P, 8),
        (Pixel::YUV444P10LE, 10),
    ] {
        for (matrix, range) in [(1, 1), (1, 2), (5, 1), (6, 2), (9, 1)] {
            let (from, to) = (folder.path().join("a.mkv"), folder.path().join("b.mkv"));
            let clip = Clip {
                pixel,
                size: (18, 10),
                times: (0..COLOURS.len() as i64).collect(),
                options: &[("qp", "0"), ("preset", "ultrafast")],
                tags: [matrix, 1, 1, range],
                ..Clip::default()
            };
            let shift = bits - 8;
            make(&from, &clip, |frame, n| {
                let colour = COLOURS[n].map(|value| value << shift);
                flat(frame, colour, bits > 8);
            });
            remake(&from, &to);
            let described = crate::probe::probe(&to).unwrap().video.remove(0);
            let was = crate::probe::probe(&from).unwrap().video.remove(0);
            assert_eq!(described.colour, was.colour);
            assert_eq!(described.pixel_format, was.pixel_format);
            let (old, new) = (planes(&from), planes(&to));
            assert_eq!(old.len(), new.len());
            for (n, (old, new)) in old.iter().zip(&new).enumerate() {
                assert_eq!(old.0, new.0, "time of frame {n}");
                for (plane, (old, new)) in old.1.iter().zip(&new.1).enumerate() {
                    let far = new.iter().map(|value| value.abs_diff(old[0])).max();
                    // Of 10 bits libx264 codes without loss at no quality above 0.
                    assert!(
                        far <= Some(1 << shift),
                        "{pixel:?} matrix {matrix} range {range}, frame {n} plane {plane}: {} became {:?}",
                        old[0],
                        &new[..4]
                    );
                }
            }
        }
    }
}

#[test]
fn chroma_stays_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.mp4"), folder.path().join("b.mp4"));
    let clip = Clip {
        size: (32, 16),
        times: vec![0],
        options: &[("qp", "0"), ("preset", "ultrafast")],
        tags: [1, 1, 1, 1],
        ..Clip::default()
    };
    // A ramp in blue across: a shift shows as a step in all of it.
    make(&from, &clip, |frame, _| {
        flat(frame, [126, 128, 128], false);
        let stride = frame.stride(1);
        for row in frame.data_mut(1).chunks_mut(stride) {
            for (x, value) in row.iter_mut().enumerate() {
                *value = 100 + 4 * x as u8;
            }
        }
    });
    remake(&from, &to);
    let made = planes(&to).remove(0).1.remove(1);
    // Sited left, a sample at x of the source is 2 x pixels, 4 x of the remake, and half of that in
    // its samples; each pixel twice moves the whole by half a pixel of the remake.
    for (x, value) in made.iter().enumerate().take(28).skip(4) {
        let expected = 100.0 + 2.0 * x as f32 - 0.5;
        let got = f32::from(*value);
        assert!(
            (got - expected).abs() <= 1.0,
            "{x}: {got}, expected {expected}"
        );
    }
}

#[test]
fn interlaced_frames_become_whole_one_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.mkv"), folder.path().join("b.mkv"));
    let clip = Clip {
        size: (32, 32),
        times: (0..9).collect(),
        options: &[
            ("qp", "0"),
            ("preset", "ultrafast"),
            ("x264-params", "tff=1"),
        ],
        ..Clip::default()
    };
    // The light changes from field to field, so that every frame is a comb.
    let light = |field: usize| [50, 110, 170][field % 3];
    make(&from, &clip, |frame, n| {
        flat(frame, [light(2 * n), 128, 128], false);
        let stride = frame.stride(0);
        for row in frame.data_mut(0).chunks_mut(stride).skip(1).step_by(2) {
            row.fill(light(2 * n + 1) as u8);
        }
        // SAFETY: the frame is ours; plain fields that say that it is interlaced.
        unsafe {
            (*frame.as_mut_ptr()).interlaced_frame = 1;
            (*frame.as_mut_ptr()).top_field_first = 1;
        }
    });
    let (report, notes) = remake(&from, &to);
    assert_eq!(report.frames, 9);
    assert!(notes.iter().any(|note| note.contains("bwdif")), "{notes:?}");
    let (old, new) = (planes(&from), planes(&to));
    let times = |frames: &[(i64, Vec<Vec<u16>>)]| frames.iter().map(|f| f.0).collect::<Vec<_>>();
    assert_eq!(times(&old), times(&new));
    // One field alone is flat; a comb would have steps of 60 between lines.
    let rows: Vec<u16> = new[4].1[0].chunks(64).map(|row| row[32]).collect();
    let steps = rows.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
    assert!(steps.max() < Some(15), "{rows:?}");
}

#[test]
fn what_is_no_video_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    let message = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        match Source::open(&path, Container::Mp4, &OPTIONS) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("opened"),
        }
    };
    assert!(message(b"").contains("empty"));
    assert!(message(b"not a video at all, but some text").contains("expected video"));
    assert!(Container::of_name(Path::new("a.webm")).is_err());
    assert_eq!(Container::of(Path::new("A.MKV")), Some(Container::Mkv));
}
