//! `longtake upscale` of videos: every frame keeps its time, what is not picture stays bit for bit,
//! and a run that was ended goes on to the same file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use longtake_tests::film::{Ran, ran, scratch};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

/// A folder with a cache, removed when dropped.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("longtake-video-")
            .tempdir_in(scratch().unwrap())
            .unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Make an input with the `ffmpeg` program; arguments are split at spaces.
    fn input(&self, name: &str, arguments: &str) -> PathBuf {
        let path = self.path(name);
        let ended = Command::new("ffmpeg")
            .args(["-v", "error", "-y"])
            .args(arguments.split_whitespace())
            .arg(&path)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{arguments}: {ended:?}");
        path
    }

    fn command(&self, from: &Path, to: &Path) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("--cache").arg(self.path("cache"));
        command.args(["upscale", "--scale", "2", "--json", "--preset", "ultrafast"]);
        command.arg(from).arg(to);
        command
    }

    /// Upscale; gives the result's place and the report.
    fn twice(&self, from: &Path, to: &str) -> (PathBuf, Value) {
        let to = self.path(to);
        let done = ran(&mut self.command(from, &to)).unwrap();
        assert!(done.status.success(), "{from:?}: {done:?}");
        (to, done.json())
    }

    fn refused(&self, from: &Path, to: &Path, status: i32, texts: &[&str]) {
        ran(&mut self.command(from, to))
            .unwrap()
            .ended(status, texts);
    }

    /// Names in the folder beside the cache.
    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "cache").collect()
    }
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("cases")
        .join(name)
}

fn output(program: &str, arguments: &[&str], path: &Path) -> Vec<u8> {
    let ended = Command::new(program)
        .args(["-v", "error"])
        .args(if program == "ffmpeg" {
            &["-i"][..]
        } else {
            &[]
        })
        .arg(path)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{path:?} {arguments:?}: {ended:?}");
    ended.stdout
}

fn probed(path: &Path, arguments: &[&str]) -> Value {
    let arguments = [&["-of", "json"], arguments].concat();
    serde_json::from_slice(&output("ffprobe", &arguments, path)).unwrap()
}

fn picture(path: &Path) -> Value {
    probed(path, &["-select_streams", "v:0", "-show_streams"])["streams"][0].clone()
}

/// Seconds a tick and the ticks of every frame, as shown.
fn times(path: &Path) -> (String, Vec<i64>) {
    let base = picture(path)["time_base"].as_str().unwrap().to_owned();
    let arguments = ["-select_streams", "v:0", "-show_entries", "frame=pts"];
    let frames = probed(path, &arguments)["frames"].clone();
    let ticks = frames.as_array().unwrap().iter();
    (
        base,
        ticks.map(|frame| frame["pts"].as_i64().unwrap()).collect(),
    )
}

/// One hash for each stream that is no video, over its packets.
fn copied(path: &Path) -> String {
    let maps = [
        "-map",
        "0",
        "-map",
        "-0:v",
        "-c",
        "copy",
        "-f",
        "streamhash",
        "-hash",
        "md5",
        "-",
    ];
    String::from_utf8(output("ffmpeg", &maps, path)).unwrap()
}

/// Everything about the time of packets that are no video.
fn packets(path: &Path) -> Vec<String> {
    let entries = "packet=codec_type,stream_index,pts_time,duration_time,size";
    let found = probed(path, &["-show_entries", entries])["packets"].clone();
    let others = found
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| p["codec_type"] != "video");
    let mut lines: Vec<String> = others.map(Value::to_string).collect();
    lines.sort();
    lines
}

fn luma_levels(path: &Path, bytes: usize) -> usize {
    let arguments = ["-frames:v", "1", "-f", "rawvideo", "-"];
    let raw = output("ffmpeg", &arguments, path);
    let plane = &raw[..bytes * 2];
    plane.chunks(2).collect::<BTreeSet<_>>().len()
}

/// A picture that changes in every frame, small.
const MOVING: &str = "-f lavfi -i testsrc2=s=32x18";

#[test]
fn every_frame_keeps_its_time() {
    let bench = Bench::new();
    let x264 = "-c:v libx264 -preset veryfast -bf 2";
    let inputs = [
        ("a.mp4", format!("{MOVING}:r=30000/1001 -frames:v 7 {x264}")),
        ("b.mov", format!("{MOVING}:r=24000/1001 -frames:v 5 {x264}")),
        ("c.mkv", format!("{MOVING}:r=25 -frames:v 5 {x264}")),
        // Frames 0 1 4 5 8 9 of 24 a second.
        (
            "d.mp4",
            format!("{MOVING}:r=24 -vf select='lt(mod(n,4),2)' -vsync vfr -frames:v 6 {x264}"),
        ),
        (
            "e.mkv",
            format!("{MOVING}:r=24 -vf setpts=PTS+N*N/TB/50 -vsync vfr -frames:v 6 {x264}"),
        ),
    ];
    for (name, arguments) in inputs {
        let from = bench.input(name, &arguments);
        let (to, report) = bench.twice(&from, &format!("large-{name}"));
        let (old, new) = (times(&from), times(&to));
        assert_eq!(old, new, "{name}");
        assert_eq!(report["frames"], old.1.len());
        let (was, is) = (picture(&from), picture(&to));
        assert_eq!((&is["width"], &is["height"]), (&64.into(), &36.into()));
        for what in ["nb_frames", "r_frame_rate"] {
            assert_eq!(was[what], is[what], "{name}: {what}");
        }
        let length = |path: &Path| {
            let told = probed(path, &["-show_format"])["format"]["duration"].clone();
            told.as_str().unwrap().parse::<f64>().unwrap()
        };
        // Lengths stand in whole milliseconds, some rounded twice.
        let (was_secs, is_secs) = (length(&from), length(&to));
        assert!(
            (was_secs - is_secs).abs() < 0.0015,
            "{name}: {was_secs} s became {is_secs} s"
        );
        if name != "e.mkv" {
            assert_eq!(was["avg_frame_rate"], is["avg_frame_rate"], "{name}");
        }
    }
    // Between containers: to finer ticks, exactly.
    let (to, _) = bench.twice(&bench.path("e.mkv"), "e.mp4");
    let (mkv, mp4) = (times(&bench.path("e.mkv")), times(&to));
    assert_eq!((mkv.0.as_str(), mp4.0.as_str()), ("1/1000", "1/16000"));
    assert!(mkv.1.iter().map(|ticks| ticks * 16).eq(mp4.1));
}

#[test]
fn a_start_after_zero_stays_against_the_sound() {
    let bench = Bench::new();
    for name in ["video-late-854ms.mp4", "audio-late-300ms.mkv"] {
        let from = case("av-02").join(name);
        let short = bench.input(name, &format!("-i {} -c copy -t 1.2", from.display()));
        let (to, _) = bench.twice(&short, &format!("large-{name}"));
        assert_eq!(times(&short), times(&to), "{name}");
        assert_eq!(packets(&short), packets(&to), "{name}");
        assert_eq!(copied(&short), copied(&to), "{name}");
    }
}

#[test]
fn case_up_03() {
    let bench = Bench::new();
    let from = case("up-03/anamorphic-2997-10bit.mp4");
    let (to, report) = bench.twice(&from, "anamorphic.mp4");
    assert_eq!(report["frames"], 60);
    let (was, is) = (picture(&from), picture(&to));
    for (what, value) in [
        ("sample_aspect_ratio", "32:27"),
        ("display_aspect_ratio", "16:9"),
        ("pix_fmt", "yuv420p10le"),
        ("avg_frame_rate", "30000/1001"),
        ("color_space", "smpte170m"),
        ("color_primaries", "smpte170m"),
        ("color_transfer", "smpte170m"),
        ("color_range", "tv"),
    ] {
        assert_eq!(
            (&was[what], &is[what]),
            (&value.into(), &value.into()),
            "{what}"
        );
    }
    assert_eq!((&is["width"], &is["height"]), (&360.into(), &240.into()));
    assert_eq!(times(&from), times(&to));
    assert_eq!(packets(&from), packets(&to));
    assert_eq!(copied(&from), copied(&to));

    let from = case("up-03/vfr-90x66.mp4");
    let (to, report) = bench.twice(&from, "vfr.mp4");
    assert_eq!(
        (&report["frames"], &report["made_frames"]),
        (&65.into(), &65.into())
    );
    assert_eq!(times(&from), times(&to));
    assert_eq!(picture(&to)["duration"], "3.000000");
}

#[test]
fn sound_subtitles_chapters_and_tags_stay() {
    let bench = Bench::new();
    let subtitles =
        "1\n00:00:00,100 --> 00:00:00,200\nLight\n\n2\n00:00:00,210 --> 00:00:00,300\nDark\n";
    fs::write(bench.path("s.srt"), subtitles).unwrap();
    let chapters = ";FFMETADATA1\ntitle=Lamp\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=120\ntitle=One\n\
                    [CHAPTER]\nTIMEBASE=1/1000\nSTART=120\nEND=320\ntitle=Two\n";
    fs::write(bench.path("c.txt"), chapters).unwrap();
    let sources = format!(
        "{MOVING}:r=25:d=0.32 -f lavfi -i sine=440:d=0.32 -f lavfi -i sine=330:d=0.32 -i s.srt -i c.txt \
         -map 0 -map 1 -map 2 -map 3 -map_metadata 4 -map_chapters 4 -c:v libx264 -preset veryfast \
         -metadata:s:a:0 language=deu -metadata:s:a:1 language=fra -metadata:s:a:1 title=Second \
         -metadata:s:s:0 language=eng"
    );
    let mkv = format!("{sources} -c:a:0 aac -c:a:1 flac -c:s srt");
    let mp4 = format!("{sources} -c:a aac -c:s mov_text");
    for (name, arguments) in [("a.mkv", mkv), ("b.mp4", mp4)] {
        let from = bench.input(name, &arguments);
        let (to, report) = bench.twice(&from, &format!("large-{name}"));
        assert_eq!(copied(&from), copied(&to), "{name}");
        assert_eq!(packets(&from), packets(&to), "{name}");
        let told = |path: &Path| probed(path, &["-show_chapters", "-show_streams", "-show_format"]);
        let (was, is) = (told(&from), told(&to));
        let chapters = |told: &Value| {
            let chapters = told["chapters"].as_array().unwrap().clone();
            let told = chapters.iter().map(|chapter| {
                let (start, end) = (&chapter["start_time"], &chapter["end_time"]);
                format!("{start} {end} {}", chapter["tags"]["title"])
            });
            told.collect::<Vec<_>>()
        };
        assert_eq!(chapters(&was), chapters(&is), "{name}");
        assert_eq!(chapters(&is).len(), 2);
        assert_eq!(is["format"]["tags"]["title"], "Lamp", "{name}");
        let streams = was["streams"].as_array().unwrap().iter();
        let streams = streams.filter(|stream| stream["codec_type"] != "data");
        for (old, new) in streams.zip(is["streams"].as_array().unwrap()) {
            assert_eq!(old["codec_name"], new["codec_name"], "{name}");
            for tag in ["language", "title"] {
                assert_eq!(old["tags"][tag], new["tags"][tag], "{name}");
            }
        }
        assert!(
            !report["notes"].to_string().contains("not kept"),
            "{report}"
        );
    }
    // A container that cannot hold these subtitles says so; sound that it cannot hold is refused.
    let (_, report) = bench.twice(&bench.path("a.mkv"), "a.mp4");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("the subtitles of stream 3 (subrip, eng) is not kept"),
        "{notes}"
    );
    let from = bench.input(
        "wav.mkv",
        &format!("{MOVING}:r=25:d=0.2 -f lavfi -i sine=d=0.2 -c:a pcm_s16le"),
    );
    bench.refused(
        &from,
        &bench.path("wav.mp4"),
        3,
        &["MP4 cannot hold", "pcm_s16le", ".mkv"],
    );
}

#[test]
fn shape_depth_colour_and_turn_stay() {
    let bench = Bench::new();
    // A ramp of more than 256 levels; PQ tags.
    let ramp = "-f lavfi -i gradients=s=512x16:c0=black:c1=white:x0=0:y0=0:x1=511:y1=0:d=0.08:r=25";
    let hdr = "-vf format=gbrp16,format=yuv420p10le,setsar=4/3 -c:v libx264 -crf 0 -color_primaries bt2020 \
               -color_trc smpte2084 -colorspace bt2020nc -color_range tv";
    let from = bench.input("hdr.mkv", &format!("{ramp} {hdr}"));
    let (to, report) = bench.twice(&from, "hdr-large.mp4");
    let (was, is) = (picture(&from), picture(&to));
    for what in [
        "pix_fmt",
        "sample_aspect_ratio",
        "color_space",
        "color_transfer",
        "color_primaries",
        "color_range",
    ] {
        assert_eq!(was[what], is[what], "{what}");
    }
    assert!(report["notes"].to_string().contains("HDR stays HDR"));
    let (old, new) = (luma_levels(&from, 512 * 16), luma_levels(&to, 1024 * 32));
    assert!(old > 256 && new > 256, "{old} levels became {new}");

    let plain = bench.input("plain.mp4", &format!("{MOVING}:r=25 -frames:v 2"));
    let turned = bench.input(
        "turned.mp4",
        &format!("-i {} -c copy -metadata:s:v rotate=90", plain.display()),
    );
    let (to, _) = bench.twice(&turned, "turned-large.mp4");
    let side = |path: &Path| picture(path)["side_data_list"][0]["rotation"].clone();
    assert_eq!(side(&turned), side(&to));
    assert_eq!(picture(&to)["width"], 64);
    // Matroska says no turn: the picture itself is turned.
    let (to, report) = bench.twice(&turned, "turned-large.mkv");
    let is = picture(&to);
    assert_eq!((&is["width"], &is["height"]), (&36.into(), &64.into()));
    assert!(report["notes"].to_string().contains("turned upright"));
}

#[test]
fn odd_short_and_tiny_videos() {
    let bench = Bench::new();
    for (name, size, frames) in [
        ("odd.mkv", "33x17", 3),
        ("one.mkv", "32x18", 1),
        ("dot.mkv", "1x1", 2),
    ] {
        let arguments = format!(
            "-f lavfi -i testsrc=s={size}:r=25 -frames:v {frames} -c:v ffv1 -pix_fmt yuv444p"
        );
        let from = bench.input(name, &arguments);
        let (to, report) = bench.twice(&from, &format!("{name}.mp4"));
        assert_eq!(report["frames"], frames, "{name}");
        let (width, height) = size.split_once('x').unwrap();
        let side = |text: &str| 2 * text.parse::<u64>().unwrap();
        let is = picture(&to);
        assert_eq!(
            (is["width"].as_u64(), is["height"].as_u64()),
            (Some(side(width)), Some(side(height)))
        );
        assert_eq!(is["nb_frames"], frames.to_string(), "{name}");
    }
    let from = bench.input(
        "alpha.mov",
        "-f lavfi -i testsrc=s=32x18:r=25 -frames:v 2 -c:v qtrle -pix_fmt argb",
    );
    let (_, report) = bench.twice(&from, "alpha.mp4");
    assert!(
        report["notes"]
            .to_string()
            .contains("transparency is not kept"),
        "{report}"
    );
}

#[test]
fn what_cannot_be_done_is_said_and_what_can_is_done() {
    let bench = Bench::new();
    let sound = bench.input("sound.m4a", "-f lavfi -i sine=d=0.2 -c:a aac");
    bench.refused(&sound, &bench.path("a.mp4"), 3, &["no moving picture"]);
    fs::write(bench.path("empty.mp4"), b"").unwrap();
    bench.refused(
        &bench.path("empty.mp4"),
        &bench.path("a.mp4"),
        3,
        &["empty file"],
    );
    let whole = bench.input("whole.mp4", &format!("{MOVING}:r=25 -frames:v 12 -bf 0"));
    bench.refused(&whole, &whole, 3, &["would replace the video itself"]);
    bench.refused(&whole, &bench.path("a.webm"), 3, &[".mp4, .mov or .mkv"]);
    bench.refused(&whole, &bench.path("nowhere/a.mp4"), 3, &["nowhere"]);
    let bytes = fs::read(&whole).unwrap();
    fs::write(bench.path("cut.mp4"), &bytes[..bytes.len() / 2]).unwrap();
    bench.refused(
        &bench.path("cut.mp4"),
        &bench.path("a.mp4"),
        3,
        &["was not finished"],
    );
    let names = bench.names();
    assert!(
        !names
            .iter()
            .any(|name| name.contains(".part") || name.starts_with("a.")),
        "{names:?}"
    );

    // A file cut where that can be borne: what is there is done.
    let whole = bench.input(
        "whole.mkv",
        &format!("{MOVING}:r=25 -frames:v 12 -bf 0 -g 1"),
    );
    let bytes = fs::read(&whole).unwrap();
    let cut = bench.path("cut.mkv");
    fs::write(&cut, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let (to, report) = bench.twice(&cut, "cut-large.mp4");
    let frames = report["frames"].as_u64().unwrap();
    assert!((4..12).contains(&frames), "{report}");
    assert!(
        report["notes"].to_string().contains("the end is missing"),
        "{report}"
    );
    let whole_times = times(&whole).1;
    let made = times(&to).1;
    assert!(
        made.iter()
            .zip(&whole_times)
            .all(|(made, was)| *made == was * 16),
        "{made:?}"
    );
}

/// Segments hold 48 frames.
const LONG: &str = "-f lavfi -i testsrc2=s=32x18:r=25 -frames:v 110 -c:v libx264 -preset veryfast";

#[test]
fn an_ended_run_goes_on_to_the_same_file() {
    let bench = Bench::new();
    let from = bench.input("long.mp4", LONG);
    let whole = bench.path("whole.mp4");
    let mut command = Command::new(PROGRAM);
    command.arg("--cache").arg(bench.path("whole-cache"));
    command
        .args(["upscale", "--json", "--preset", "ultrafast"])
        .arg(&from)
        .arg(&whole);
    let done = ran(&mut command).unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.json()["made_frames"], 110);
    let expected = fs::read(&whole).unwrap();
    let to = bench.path("to.mp4");
    let ended = |done: &Ran| !done.status.success();

    // By the fault points, then in the middle of the work by a signal that asks.
    for fault in ["commit.after_transaction:1", "blob.renamed_before_commit:1"] {
        let done = ran(bench.command(&from, &to).env("LONGTAKE_FAULT", fault)).unwrap();
        assert!(
            ended(&done) && done.err.contains("ended at the fault point"),
            "{fault}: {done:?}"
        );
        assert!(!to.exists(), "{fault}");
    }
    let mut child = bench
        .command(&from, &to)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert!(
        // A machine so slow that the signal came first ends the program at once.
        status.code() == Some(130) || status.success() || status.signal() == Some(2),
        "{status:?}"
    );
    if status.code() == Some(130) {
        let expected = ["long.mp4", "whole-cache", "whole.mp4"].map(String::from);
        assert_eq!(bench.names(), expected.into(), "nothing lies about");
    }

    let done = ran(&mut bench.command(&from, &to)).unwrap();
    assert!(done.status.success(), "{done:?}");
    let made = done.json()["made_frames"].as_u64().unwrap();
    assert!(made <= 62, "the first segment was kept: {made} made");
    assert_eq!(
        fs::read(&to).unwrap(),
        expected,
        "the same file, byte for byte"
    );
    // Once more: all is kept; and a result is replaced whole.
    let done = ran(&mut bench.command(&from, &to)).unwrap();
    assert_eq!(done.json()["made_frames"], 0);
    assert_eq!(fs::read(&to).unwrap(), expected);
}

#[test]
fn memory_does_not_grow_with_the_frames() {
    let bench = Bench::new();
    let peak = |frames: u32| {
        // A picture that stands still is drawn once, so that this takes little time.
        let still = format!("-f lavfi -i color=red:s=320x180:r=25 -frames:v {frames}");
        let from = bench.input(&format!("{frames}.mp4"), &still);
        let (_, report) = bench.twice(&from, &format!("large-{frames}.mp4"));
        assert_eq!(report["frames"], frames);
        report["peak_bytes"].as_u64().unwrap()
    };
    let (short, long) = (peak(60), peak(480));
    // Kept whole, the small pictures alone would be 145 MB more.
    assert!(
        long < short + short / 4,
        "{short} bytes for 60 frames, {long} for 480"
    );
}
