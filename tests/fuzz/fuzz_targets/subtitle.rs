#![no_main]

#[path = "../src/subtitle.rs"]
mod subtitle;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| subtitle::subtitle(bytes));
