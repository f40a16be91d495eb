//! Films of any length from the sample stills, made by the program as a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// Names of the sample stills, in the order in which a long film shows them.
const STILLS: [&str; 9] = [
    "dust-bowl-home",
    "black-canyon",
    "locomotion-house-cat",
    "nagasaki-boats",
    "airplane-from-above",
    "french-alpine-landscape",
    "acanthus-mollis",
    "march-pastoral",
    "allium-oreophilum",
];

/// What the program said of a film.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FilmLine {
    /// Results made.
    pub made: u64,
    /// Results found.
    pub reused: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Wall time.
    pub wall_secs: f64,
    /// Most memory that the process had taken at any time.
    pub peak_bytes: u64,
}

/// A film to be made of many shots.
#[derive(Debug, Clone, PartialEq)]
pub struct LongFilm {
    /// How many shots.
    pub shots: usize,
    /// Seconds of each.
    pub shot_secs: u32,
    /// Width and height.
    pub size_px: (u32, u32),
    /// Frames a second.
    pub fps: u32,
    /// Encoder effort.
    pub preset: &'static str,
}

impl LongFilm {
    /// Length in seconds.
    pub fn secs(&self) -> f64 {
        self.shots as f64 * f64::from(self.shot_secs)
    }

    /// Its script: every kind of move, a cross-fade every third shot, a title every eighth, a
    /// spoken line in every shot, music and ambience throughout. No two shots are equal, so none
    /// is made for free.
    pub fn script(&self) -> String {
        let (width, height) = self.size_px;
        let mut text = format!(
            "---\nlongtake: 1\ntitle: A Long Film\nlogline: Nine pictures, again and again.\n\
             language: en\nsize: {width}x{height}\nfps: {}\n---\n\n# Music\n\n\
             - bed-tide {{gain: -14 dB; fade in: 1 s; fade out: 1 s}}\n\n## Scene all: All of it\n",
            self.fps
        );
        for at in 0..self.shots {
            let still = STILLS[at % STILLS.len()];
            // A little further each time round: 0.1 % is a move of its own and looks the same.
            let more = (at / STILLS.len()) as f64 / 1000.0;
            let camera = match at % 4 {
                0 => format!("push 1 -> {:.3} at 50% 50%", 1.25 + more),
                1 => format!("pan 45% -> 55% at 50% zoom {:.3}", 1.2 + more),
                2 => format!("roll -2 -> 2 at 50% 50% zoom {:.3}", 1.2 + more),
                _ => format!("tilt 45% -> 55% at 50% zoom {:.3}", 1.2 + more),
            };
            let secs = self.shot_secs;
            text.push_str(&format!("\n### Shot s{at:04}\n\nPicture {at}.\n\n- length: {secs} s\n\
                 - picture: {still}.jpg\n- move: {camera}\n- ambience: ambience-sea {{gain: -20 dB}}\n"));
            if at % 3 == 2 {
                text.push_str("- transition: cross-fade 0.5 s\n");
            }
            if at % 8 == 0 {
                text.push_str(&format!(
                    "- title: Part {} {{at: 0.2 s; for: 0.7 s}}\n",
                    at / 8 + 1
                ));
            }
            text.push_str(&format!("\n> Line {at}.\n"));
        }
        text
    }

    /// Make it with `program` in `folder`, with a cache of its own that is empty at first.
    ///
    /// # Errors
    /// The program fails, or makes less than the whole film.
    pub fn make(&self, program: &Path, folder: &Path) -> Result<FilmLine> {
        std::fs::create_dir_all(folder)?;
        let script = folder.join("long.md");
        std::fs::write(&script, self.script())?;
        let output = Command::new(program)
            .args([
                "film",
                "--json",
                "--mute",
                "--no-upscale",
                "--preset",
                self.preset,
                "--script",
            ])
            .arg(&script)
            .arg("--stills")
            .arg(samples().join("stills"))
            .arg("--cache")
            .arg(folder.join("cache"))
            .arg("--out")
            .arg(folder.join("long.mp4"))
            .output()
            .with_context(|| format!("start {program:?}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "the program ended with {}: {complained}",
            output.status
        );
        let last = said.lines().last().unwrap_or_default();
        let line: FilmLine = serde_json::from_str(last)
            .with_context(|| format!("read the program's last line {last:?}"))?;
        ensure!(
            line.failed == 0 && line.made > self.shots as u64,
            "expected more than {} results and no failure, got {line:?}",
            self.shots
        );
        Ok(line)
    }
}

/// The folder of samples.
pub fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/samples")
}
