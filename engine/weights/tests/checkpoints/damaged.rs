//! Thousands of damaged files: each is read or refused, without a panic and in bounded memory.

use std::fmt::Write as _;
use std::path::Path;

use engine_weights::{Checkpoint, Gguf, Inspection, SafeTensors, WeightsError, first_non_finite};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::build::varied;
use crate::heap::peak_of;

type Open = fn(Vec<u8>) -> Result<Box<dyn Checkpoint>, WeightsError>;

fn gguf(bytes: Vec<u8>) -> Result<Box<dyn Checkpoint>, WeightsError> {
    Ok(Box::new(Gguf::from_bytes(bytes, Path::new("x"))?))
}

fn safetensors(bytes: Vec<u8>) -> Result<Box<dyn Checkpoint>, WeightsError> {
    Ok(Box::new(SafeTensors::from_bytes(bytes, Path::new("x"))?))
}

fn safetensors_file() -> Vec<u8> {
    let mut header = String::from(r#"{"__metadata__":{"format":"pt","n":7,"l":[1,{"a":2}]}"#);
    let types = [("F32", 4), ("F16", 2), ("BF16", 2), ("I64", 8), ("BOOL", 1)];
    let mut at = 0;
    for (dtype, bytes) in types {
        let end = at + 6 * bytes;
        write!(
            header,
            r#","model.{dtype}":{{"dtype":"{dtype}","shape":[2,3],"data_offsets":[{at},{end}]}}"#
        )
        .expect("memory takes text");
        at = end;
    }
    header.push('}');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend((0..at).map(|n| n as u8));
    file
}

/// Open a file, look at all it says, and give whether it was read. Memory must stay within a few
/// times the file.
#[track_caller]
fn survives(open: Open, bytes: Vec<u8>) -> bool {
    let len = bytes.len();
    let (opened, peak) = peak_of(|| open(bytes));
    let bound = 8 * len + 8192;
    assert!(peak <= bound, "{peak} bytes for a file of {len}");
    let read = match opened {
        Ok(read) => read,
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() < 1000, "an error of {} bytes", text.len());
            return false;
        }
    };
    let mut stored = 0;
    for name in read.names() {
        let tensor = read.tensor(name).expect("what is named is there");
        stored += tensor.bytes.len();
        if let Ok(values) = tensor.to_f32() {
            let first = values.iter().position(|value| !value.is_finite());
            assert_eq!(first_non_finite(&tensor), first);
        }
    }
    assert!(
        stored <= len,
        "tensors of {stored} bytes in a file of {len}"
    );
    let metadata = read.metadata();
    for (key, _) in metadata.iter() {
        drop((metadata.text(key), metadata.texts(key), metadata.float(key)));
        drop((
            metadata.integers(key),
            metadata.floats(key),
            metadata.bool(key),
        ));
    }
    drop(Inspection::of(&*read));
    true
}

/// Every byte changed in several ways, every whole number of 8 bytes replaced, every cut.
fn mutate(open: Open, file: &[u8]) -> (usize, usize) {
    assert!(survives(open, file.to_vec()));
    let (mut tried, mut read) = (0, 0);
    let mut try_one = |bytes: Vec<u8>| {
        tried += 1;
        read += usize::from(survives(open, bytes));
    };
    for at in 0..file.len() {
        try_one(file[..at].to_vec());
        let old = file[at];
        for new in [0, 0xff, old.wrapping_add(1), old ^ 0x80, old ^ 0x10] {
            let mut changed = file.to_vec();
            changed[at] = new;
            try_one(changed);
        }
        for new in [
            u64::MAX,
            i64::MAX as u64,
            1 << 40,
            u64::from(u32::MAX),
            0x1_0000,
            1,
        ] {
            let mut changed = file.to_vec();
            let end = (at + 8).min(file.len());
            changed[at..end].copy_from_slice(&new.to_le_bytes()[..end - at]);
            try_one(changed);
        }
    }
    (tried, read)
}

#[test]
fn damaged_gguf_files_never_panic() {
    let (tried, read) = mutate(gguf, &varied().bytes());
    assert!(
        tried > 10_000 && read > 1000 && read < tried,
        "{read} of {tried} read"
    );
}

#[test]
fn damaged_safetensors_files_never_panic() {
    let (tried, read) = mutate(safetensors, &safetensors_file());
    assert!(
        tried > 5000 && read > 500 && read < tried,
        "{read} of {tried} read"
    );
}

/// Headers made of the smallest possible entries cost the most memory for their size.
#[test]
fn dense_headers_stay_in_bounds() {
    let mut header = String::from("{");
    for at in 0..20_000 {
        let comma = if at == 0 { "" } else { "," };
        write!(
            header,
            r#"{comma}"{at:x}":{{"dtype":"U8","shape":[],"data_offsets":[{at},{}]}}"#,
            at + 1
        )
        .expect("memory takes text");
    }
    header.push('}');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + 20_000, 0);
    assert!(survives(safetensors, file));

    let mut header = String::from("{\"__metadata__\":{");
    for at in 0..70_000 {
        let comma = if at == 0 { "" } else { "," };
        write!(header, r#"{comma}"{at:x}":"""#).expect("memory takes text");
    }
    header.push_str("}}");
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    let (refused, peak) = peak_of(|| safetensors(file));
    assert!(refused.is_err_and(|error| error.to_string().contains("too many keys")));
    assert!(peak < 16 << 20, "{peak}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn spliced_files_never_panic(
        which in any::<bool>(),
        cut in any::<prop::sample::Index>(),
        len in 0usize..40,
        new in vec(any::<u8>(), 0..40),
        bytes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let (open, mut file): (Open, Vec<u8>) = if which {
            (gguf, varied().bytes())
        } else {
            (safetensors, safetensors_file())
        };
        let at = cut.index(file.len());
        let end = (at + len).min(file.len());
        file.splice(at..end, new);
        for (place, byte) in bytes {
            if !file.is_empty() {
                let place = place.index(file.len());
                file[place] = byte;
            }
        }
        survives(open, file);
    }

    #[test]
    fn noise_after_a_magic_never_panics(noise in vec(any::<u8>(), 0..200)) {
        survives(gguf, [&b"GGUF\x03\0\0\0"[..], &noise].concat());
        survives(safetensors, [&(noise.len() as u64 + 1).to_le_bytes()[..], b"{", &noise].concat());
        survives(gguf, noise.clone());
        survives(safetensors, noise);
    }
}
