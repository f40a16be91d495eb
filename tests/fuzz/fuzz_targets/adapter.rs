//! Any bytes, read as an adapter of a picture model.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| longtake_fuzz::adapter(bytes));
