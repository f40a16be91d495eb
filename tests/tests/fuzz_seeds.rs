//! The seeds of the fuzz targets and some thousands of changes to them, through the same functions
//! as the targets: what a search with `cargo fuzz` found once cannot come back unseen where there is
//! no nightly compiler.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may panic, and shows the input that failed"
)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "the fuzz project is a library of it")]
mod fuzz;
#[path = "../fuzz/src/subtitle.rs"]
#[allow(unreachable_pub, reason = "as above")]
mod subtitle;

/// Longest input made by changes; longer ones are cut.
const INPUT_MAX_BYTES: usize = 1 << 16;

fn below_tests(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Files of the folder, by name, so that every run is the same.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(below_tests(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Tokens of a libFuzzer dictionary: one quoted string a line, bytes as `\xNN`.
fn tokens(dictionary: &str) -> Vec<Vec<u8>> {
    let quoted = |line: &str| {
        let mut bytes = Vec::new();
        let mut rest = line.trim().strip_prefix('"')?.strip_suffix('"')?;
        while let Some(first) = rest.chars().next() {
            if let Some(hex) = rest.strip_prefix("\\x") {
                bytes.push(u8::from_str_radix(hex.get(..2)?, 16).ok()?);
                rest = &hex[2..];
            } else {
                bytes.extend_from_slice(first.to_string().as_bytes());
                rest = &rest[first.len_utf8()..];
            }
        }
        Some(bytes)
    };
    dictionary.lines().filter_map(quoted).collect()
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `end`, without it; 0 where `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % (end.max(1) as u64)) as usize
    }

    fn pick<'a>(&mut self, from: &'a [Vec<u8>]) -> &'a [u8] {
        from.get(self.below(from.len())).map_or(&[], Vec::as_slice)
    }

    /// A piece of `bytes`, mostly short.
    fn piece<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let from = self.below(bytes.len());
        let most = if self.below(4) == 0 { bytes.len() } else { 32 };
        &bytes[from..bytes.len().min(from + self.below(most))]
    }
}

/// One seed, changed in one to eight places.
fn changed(dice: &mut Dice, seeds: &[Vec<u8>], tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = dice.pick(seeds).to_vec();
    for _ in 0..=dice.below(8) {
        let at = dice.below(bytes.len());
        match dice.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
            1 if !bytes.is_empty() => bytes[at] = dice.below(256) as u8,
            2 => drop(bytes.splice(at..at, dice.pick(tokens).iter().copied())),
            3 => {
                let end = bytes.len().min(at + dice.below(16));
                bytes.drain(at..end);
            }
            4 => {
                let piece = dice.piece(&bytes).to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = dice.pick(seeds);
                bytes.splice(at..at, dice.piece(other).iter().copied());
            }
            _ if dice.below(8) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes.truncate(INPUT_MAX_BYTES);
    bytes
}

/// Runs the seeds, then `count` changed ones; a failing input is shown before its panic goes on.
fn run(target: fn(&[u8]), seeds: &[Vec<u8>], dictionary: &str, count: usize) {
    assert!(!seeds.is_empty(), "no seeds");
    let tokens = tokens(dictionary);
    let mut dice = Dice(1);
    let inputs = (0..count).map(|_| changed(&mut dice, seeds, &tokens));
    for input in seeds.iter().cloned().chain(inputs) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            eprintln!("the input was b\"{}\"", input.escape_ascii());
            resume_unwind(panic);
        }
    }
}

#[test]
fn adapters_hold() {
    run(
        fuzz::adapter,
        &files("fuzz/seeds/adapter"),
        include_str!("../fuzz/dictionaries/safetensors.dict"),
        20_000,
    );
}

#[test]
fn documents_hold() {
    run(
        fuzz::document,
        &files("fuzz/seeds/document"),
        include_str!("../fuzz/dictionaries/document.dict"),
        4000,
    );
}

#[test]
fn scripts_hold() {
    let mut seeds = files("fuzz/seeds/script");
    seeds.push(fs::read(below_tests("../assets/samples/the-door-left-open.md")).unwrap());
    run(
        fuzz::script,
        &seeds,
        include_str!("../fuzz/dictionaries/script.dict"),
        4000,
    );
}

#[test]
fn stored_bytes_hold() {
    run(
        fuzz::store,
        &files("fuzz/seeds/store"),
        include_str!("../fuzz/dictionaries/store.dict"),
        20_000,
    );
}

#[test]
fn damaged_databases_hold() {
    run(fuzz::store_files, &files("fuzz/seeds/store_files"), "", 60);
}

#[test]
fn subtitles_hold() {
    let mut seeds = files("fuzz/seeds/subtitle");
    seeds.extend(files("cases/sub-01"));
    run(
        subtitle::subtitle,
        &seeds,
        include_str!("../fuzz/dictionaries/subtitle.dict"),
        20_000,
    );
}

#[test]
fn a_panic_of_a_target_is_a_failure_and_changes_are_the_same_every_time() {
    let fails = catch_unwind(|| {
        run(
            |bytes| assert_ne!(bytes, b"seed"),
            &[b"seed".to_vec()],
            "",
            0,
        );
    });
    assert!(fails.is_err());
    assert_eq!(
        tokens("# no\n\"a\\x22\"\n\nk=\"x\"\n\"\u{e9}\""),
        [b"a\"".to_vec(), "\u{e9}".into()]
    );
    let made = || {
        let mut dice = Dice(7);
        let seeds = [b"one".to_vec(), b"two two".to_vec()];
        (0..50)
            .map(|_| changed(&mut dice, &seeds, &[b"t".to_vec()]))
            .collect::<Vec<_>>()
    };
    assert_eq!(made(), made());
    let different: std::collections::BTreeSet<_> = made().into_iter().collect();
    assert!(different.len() > 25, "{} of 50 differ", different.len());
}
