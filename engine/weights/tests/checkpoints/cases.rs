//! Reported problems (`tests/cases`), each with the right outcome of its `expect.json`.

use engine_weights::{
    Checkpoint as _, Found, Gguf, HEADER_CAP_BYTES, SafeTensors, WeightsError, inspect, open,
};

use crate::heap::peak_of;
use crate::repository;

fn floats(checkpoint: &SafeTensors, name: &str) -> Vec<f32> {
    let tensor = checkpoint.tensor(name).expect("the tensor is there");
    tensor.to_f32().expect("it holds floats")
}

fn ld_04(name: &str) -> Result<SafeTensors, WeightsError> {
    SafeTensors::open(repository(&format!("cases/ld-04/{name}.safetensors")))
}

fn refusal(name: &str) -> (WeightsError, String) {
    let error = ld_04(name).expect_err("it is refused");
    let path = repository(&format!("cases/ld-04/{name}.safetensors"));
    let again = open(path).expect_err("opening by content refuses it too");
    assert_eq!(again.to_string(), error.to_string());
    let text = error.to_string();
    assert!(text.contains(&format!("{name}.safetensors")), "{text}");
    (error, text)
}

#[test]
fn ld_04_numbers_in_metadata_are_kept_as_text() {
    let read = ld_04("int-in-metadata").expect("it is read");
    assert_eq!(floats(&read, "w"), [1.0, 2.0, 3.0, 4.0]);
    let text = |key| read.metadata().text(key).expect("text");
    assert_eq!(text("step"), Some("1200"));
    assert_eq!(text("none"), Some("null"));
    assert_eq!(text("ok"), Some("1"));
    assert_eq!(text("merge"), None);
    let notes = read.notes().join("\n");
    for key in ["\"step\"", "\"none\"", "\"merge\""] {
        assert!(notes.contains(key), "{notes}");
    }
    assert!(!notes.contains("\"ok\""), "{notes}");
}

#[test]
fn ld_04_a_file_of_metadata_only_opens() {
    let read = ld_04("only-metadata").expect("it is read");
    assert_eq!(read.names().count(), 0);
    assert_eq!(read.metadata().text("crc"), Ok(Some("12")));
    assert!(read.notes().is_empty(), "{:?}", read.notes());
}

#[test]
fn ld_04_a_header_may_end_anywhere() {
    let read = ld_04("unaligned-header").expect("it is read");
    assert_eq!(floats(&read, "w"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read.metadata().text("odd"), Ok(Some("x")));
}

#[test]
fn ld_04_empty_tensors_and_scalars_are_read() {
    let read = ld_04("zero-size-and-scalar").expect("it is read");
    let empty = read.tensor("z").expect("z is there");
    assert_eq!((empty.elements(), &*empty.shape), (0, &[0, 4][..]));
    assert_eq!(read.tensor("s").expect("s is there").shape, [0usize; 0]);
    assert_eq!(floats(&read, "s"), [2.5]);
}

#[test]
fn ld_04_overlapping_tensors_are_refused() {
    let (error, text) = refusal("overlap");
    assert!(matches!(error, WeightsError::Damaged { .. }));
    assert!(text.contains("\"a\" and \"b\" overlap"), "{text}");
}

#[test]
fn ld_04_a_gap_is_read_with_a_note() {
    let read = ld_04("hole").expect("it is read");
    assert_eq!(
        (floats(&read, "a"), floats(&read, "b")),
        (vec![1.0], vec![4.0])
    );
    assert_eq!(read.notes(), ["8 bytes between tensors belong to none"]);
}

#[test]
fn ld_04_a_cut_file_says_what_is_missing() {
    let (error, text) = refusal("short");
    assert!(matches!(error, WeightsError::CutShort { .. }));
    assert!(text.contains("6 bytes are missing"), "{text}");
}

#[test]
fn ld_04_other_files_are_named() {
    let (error, text) = refusal("pointer");
    let found = Found::LfsPointer {
        real_bytes: Some(4_265_146_304),
    };
    assert!(matches!(error, WeightsError::NotWeights { found: f, .. } if f == found));
    assert!(text.contains("Git LFS pointer"), "{text}");
    assert!(text.contains("4,265,146,304 bytes"), "{text}");
    let (_, text) = refusal("webpage");
    assert!(
        text.contains("a web page (a login or a licence gate), not weights"),
        "{text}"
    );
    let (_, text) = refusal("zip-inside");
    assert!(text.contains("a zip / PyTorch pickle container"), "{text}");
}

/// The same file as `gen_big_header.py` makes, with `tensors` tensors.
fn big_header(tensors: usize) -> Vec<u8> {
    use std::fmt::Write as _;
    let mut header = String::with_capacity(tensors * 104);
    header.push('{');
    for at in 0..tensors {
        let comma = if at == 0 { "" } else { "," };
        let (start, end) = (4 * at, 4 * at + 4);
        write!(
            header,
            "{comma}\"layer.{at:07}.some.longer.parameter.name.weight\":\
             {{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[{start},{end}]}}"
        )
        .expect("memory takes text");
    }
    header.push('}');
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = Vec::with_capacity(header.len() + tensors * 4 + 8);
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend((0..tensors).flat_map(|at| ((at % 977) as f32).to_le_bytes()));
    bytes
}

#[test]
fn ld_04_a_header_over_100_mb_opens_in_bounded_memory() {
    let bytes = big_header(1_030_000);
    let header_bytes = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) as usize;
    assert!(header_bytes > 100_000_000, "{header_bytes}");
    let (read, peak) = peak_of(|| SafeTensors::from_bytes(bytes, "big.safetensors".as_ref()));
    let read = read.expect("it is under the cap");
    assert!(peak < header_bytes * 4, "{peak} bytes for {header_bytes}");
    assert_eq!(read.names().count(), 1_030_000);
    let name = "layer.1000000.some.longer.parameter.name.weight";
    assert_eq!(floats(&read, name), [(1_000_000 % 977) as f32]);

    let mut over = (HEADER_CAP_BYTES + 1).to_le_bytes().to_vec();
    over.extend(b"{}");
    let refused = SafeTensors::from_bytes(over, "x".as_ref()).expect_err("over the cap");
    let text = refused.to_string();
    assert!(
        text.contains("got 268435457, expected at most 268435456"),
        "{text}"
    );
}

#[test]
fn ld_01_tied_and_untied_gguf_hold_the_same() {
    let tied = Gguf::open(repository("cases/ld-01/tied.gguf")).expect("tied is read");
    let untied = Gguf::open(repository("cases/ld-01/untied-same.gguf")).expect("untied is read");
    assert!(tied.tensor("output.weight").is_none());
    assert_eq!((tied.names().count(), untied.names().count()), (11, 12));
    for name in tied.names() {
        let (one, other) = (tied.tensor(name), untied.tensor(name));
        let (one, other) = (one.expect("it is there"), other.expect("the other has it"));
        assert_eq!(
            (one.dtype, &one.shape),
            (other.dtype, &other.shape),
            "{name}"
        );
        assert_eq!(*one.bytes, *other.bytes, "{name}");
    }
    let embedding = tied.tensor("token_embd.weight").expect("it is there");
    let output = untied.tensor("output.weight").expect("it is there");
    assert_eq!(embedding.shape, [269, 32]);
    assert_eq!(*embedding.bytes, *output.bytes);
    let first = &embedding.to_f32().expect("floats")[..3];
    assert_eq!(first, [-0.005_430_186_6, 0.364_527_64, 0.325_260_67]);

    let metadata = tied.metadata();
    assert_eq!(metadata.len(), 15);
    assert_eq!(metadata.text("general.architecture"), Ok(Some("llama")));
    assert_eq!(
        metadata.unsigned("llama.attention.head_count_kv"),
        Ok(Some(2))
    );
    assert_eq!(metadata.float("llama.rope.freq_base"), Ok(None));
    let epsilon = metadata.float("llama.attention.layer_norm_rms_epsilon");
    assert_eq!(epsilon, Ok(Some(f64::from(1e-5f32))));
    let tokens = metadata
        .texts("tokenizer.ggml.tokens")
        .expect("texts")
        .expect("there");
    assert_eq!(
        (tokens.len(), &*tokens[0], &*tokens[2]),
        (269, "<unk>", "</s>")
    );
    let types = metadata
        .integers("tokenizer.ggml.token_type")
        .expect("ints")
        .expect("there");
    assert_eq!((types.len(), &types[..3]), (269, &[2, 3, 3][..]));

    let seen = inspect(&repository("cases/ld-01/tied.gguf")).expect("it can be inspected");
    assert_eq!(seen.architecture.as_deref(), Some("llama"));
    assert_eq!(
        (seen.tensors, seen.parameters, seen.bytes),
        (11, 16_384, 65_536)
    );
    assert_eq!(seen.dtypes["F32"].bytes, 65_536);
    assert_eq!(
        seen.metadata["tokenizer.ggml.tokens"],
        "an array of 269 text"
    );
}
