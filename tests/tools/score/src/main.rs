//! Writes the sample sounds: three music beds, composed in `beds.rs` and played through a
//! soundfont, and three ambiences, made in `places.rs`.
//!
//!     cargo run --release --manifest-path tests/tools/score/Cargo.toml [SOUNDFONT.sf3]
//!
//! Needs `ffmpeg` with libopus and, for the beds, Debian's `musescore-general-soundfont`. The
//! same sources, soundfont and encoder give the same files.

mod bank;
mod beds;
mod dice;
mod music;
mod places;
mod sound;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use sound::Stereo;

const SOUNDFONT: &str = "/usr/share/sounds/sf3/MuseScore_General_Full.sf3";
/// Loudness of the beds.
const BED_LUFS: f64 = -20.0;
/// Largest file.
const LIMIT_BYTES: u64 = 500_000;

/// Codes `sound` as Opus; prints what it measures.
fn write(sound: &Stereo, name: &str, kilobits: u32, folder: &Path, scratch: &Path) -> Result<()> {
    let wav = scratch.join(format!("{name}.wav"));
    sound.write_wav(&wav)?;
    let path = folder.join(format!("{name}.opus"));
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-fflags", "+bitexact", "-i"])
        .arg(&wav)
        .args([
            "-map_metadata",
            "-1",
            "-metadata",
            "license=CC0-1.0",
            "-metadata",
        ])
        .arg(format!("title={name}"))
        .args([
            "-flags",
            "+bitexact",
            "-fflags",
            "+bitexact",
            "-threads",
            "1",
        ])
        .args([
            "-c:a",
            "libopus",
            "-application",
            "audio",
            "-frame_duration",
            "20",
        ])
        .args(["-vbr", "constrained", "-b:a", &format!("{kilobits}k")])
        .arg(&path)
        .status()
        .context("cannot start ffmpeg")?;
    ensure!(status.success(), "ffmpeg ended with {status}");
    let bytes = std::fs::metadata(&path)?.len();
    println!(
        "{name}: {:.2} s, {bytes} bytes, {:.1} LUFS, peak {:.1} dB, above 2 kHz {:.1} dB",
        sound.len() as f64 / sound::RATE,
        sound.loudness()?,
        20.0 * sound.peak().log10(),
        places::share_above(sound, 2000.0),
    );
    ensure!(
        bytes < LIMIT_BYTES,
        "{name} has {bytes} bytes, expected under {LIMIT_BYTES}"
    );
    Ok(())
}

/// Fingerprint of these sources, as `cargo xtask check` takes it: FNV-1a over path, 0, text, 0.
fn fingerprint(folder: &Path) -> Result<String> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for path in paths {
        let name = path
            .file_name()
            .context("a source without a name")?
            .to_string_lossy();
        let text = std::fs::read_to_string(&path)?;
        for byte in name.bytes().chain([0]).chain(text.bytes()).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(format!("{hash:016x}\n"))
}

fn main() -> Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = here.join("../../../assets/samples/sound");
    let scratch = here.join("target/scratch");
    std::fs::create_dir_all(&folder)?;
    std::fs::create_dir_all(&scratch)?;

    for (name, mut place) in [
        ("ambience-sea", places::sea()),
        ("ambience-forest", places::forest()),
        ("ambience-room", places::room()),
    ] {
        place.level(places::LUFS)?;
        write(&place, name, 96, &folder, &scratch)?;
    }
    let font = std::env::args_os()
        .nth(1)
        .map_or_else(|| SOUNDFONT.into(), PathBuf::from);
    let font = bank::load(&font, beds::PRESETS)?;
    for piece in [beds::dawn()?, beds::tide()?, beds::hearth()?] {
        println!("{}", piece.name);
        let mut bed = piece.render(&font)?;
        bed.filter_looped(sound::Filter::High(36.0, 0.7));
        bed.level(BED_LUFS)?;
        write(&bed, piece.name, 57, &folder, &scratch)?;
    }
    std::fs::write(folder.join("score.stamp"), fingerprint(&here.join("src"))?)?;
    Ok(())
}
