//! GGUF headers, right and wrong.

use std::path::Path;

use engine_tensor::DType;
use engine_weights::{ArrayKind, Checkpoint as _, Gguf, MetadataError, WeightsError};

use crate::build::{GgufFile, floats, text, varied};

fn read(file: &GgufFile) -> Result<Gguf, WeightsError> {
    Gguf::from_bytes(file.bytes(), Path::new("built.gguf"))
}

#[track_caller]
fn refused(file: &GgufFile, expected: &str) {
    let error = read(file).expect_err("it is refused").to_string();
    assert!(
        error.contains(expected),
        "{error:?} does not say {expected:?}"
    );
    assert!(
        error.ends_with("\"built.gguf\""),
        "{error:?} does not name the file"
    );
}

#[test]
fn every_kind_of_value_is_read() {
    for version in [2, 3] {
        let mut file = varied();
        file.version = version;
        let read = read(&file).expect("it is read");
        assert_eq!(read.version(), version);
        let metadata = read.metadata();
        assert_eq!(metadata.unsigned("u8"), Ok(Some(200)));
        assert_eq!(metadata.integer("i8"), Ok(Some(-56)));
        assert_eq!(metadata.unsigned("u16"), Ok(Some(50_000)));
        assert_eq!(metadata.integer("i16"), Ok(Some(-5)));
        assert_eq!(metadata.integer("i32"), Ok(Some(-70_000)));
        assert_eq!(metadata.unsigned("u64"), Ok(Some(u64::MAX)));
        assert_eq!(metadata.integer("i64"), Ok(Some(i64::MIN)));
        assert_eq!(metadata.float("f32"), Ok(Some(0.25)));
        assert_eq!(metadata.float("f64"), Ok(Some(-0.1)));
        assert_eq!(metadata.float("u16"), Ok(Some(50_000.0)));
        assert_eq!(metadata.bool("yes"), Ok(Some(true)));
        assert_eq!(metadata.integers("types"), Ok(Some(vec![1, -1, 3])));
        assert_eq!(metadata.floats("scores"), Ok(Some(vec![-1.5, 2.0])));
        assert_eq!(metadata.integers("flags"), Ok(Some(vec![1, 0])));
        assert_eq!(metadata.texts("none"), Ok(Some(Vec::new())));
        assert_eq!(metadata.texts("absent"), Ok(None));
        let nested = metadata.array("nested").expect("array").expect("there");
        assert_eq!((nested.kind(), nested.len()), (ArrayKind::Array, 1));
    }
}

#[test]
fn values_of_another_type_are_named() {
    let read = read(&varied()).expect("it is read");
    let metadata = read.metadata();
    let wrong = |key: &str, got: &str, expected| MetadataError::WrongKind {
        key: key.to_owned(),
        got: got.to_owned(),
        expected,
    };
    let number = "a whole number from 0";
    assert_eq!(
        metadata.unsigned("i16"),
        Err(wrong("i16", "a whole number", number))
    );
    assert_eq!(
        metadata.unsigned("f32"),
        Err(wrong("f32", "a float", number))
    );
    let error = wrong("scores", "an array of 2 f32", "an array of texts");
    assert_eq!(metadata.texts("scores"), Err(error));
    assert_eq!(metadata.text("yes"), Err(wrong("yes", "a bool", "text")));
    let not_utf8 = |key: &str, index| MetadataError::NotUtf8 {
        key: key.to_owned(),
        index,
    };
    assert_eq!(metadata.texts("tokens"), Err(not_utf8("tokens", 3)));
    assert_eq!(metadata.text("broken"), Err(not_utf8("broken", 0)));
    let tokens = metadata.array("tokens").expect("array").expect("there");
    let bytes: Vec<&[u8]> = tokens.text_bytes().collect();
    assert_eq!(bytes, [&b"<s>"[..], "é".as_bytes(), b"", b"\xff"]);
}

#[test]
fn tensors_are_row_major_and_sorted() {
    let read = read(&varied()).expect("it is read");
    let names: Vec<&str> = read.names().collect();
    assert_eq!(names, ["empty", "ids", "packed", "scalar", "w"]);
    let w = read.tensor("w").expect("w");
    assert_eq!((w.dtype, &*w.shape), (DType::F32, &[2, 3][..]));
    assert_eq!(w.to_f32(), Ok(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let packed = read.tensor("packed").expect("packed");
    assert_eq!((packed.dtype, &*packed.shape), (DType::Q4_1, &[2, 32][..]));
    assert_eq!(
        (packed.bytes.len(), packed.bytes[1], packed.row_elements()),
        (40, 37, 32)
    );
    let scalar = read.tensor("scalar").expect("scalar");
    assert_eq!((scalar.elements(), scalar.to_f32()), (1, Ok(vec![7.0])));
    assert_eq!(read.tensor("empty").expect("empty").shape, [4, 0]);
    assert!(read.tensor("ids").expect("ids").to_f32().is_err());
    assert!(read.tensor("W").is_none());
    assert!(read.tensor_of_shape("w", &[2, 3]).is_ok());
    let error = read
        .tensor_of_shape("w", &[3, 2])
        .expect_err("another shape");
    let text = error.to_string();
    assert!(
        text.contains("\"w\" has shape [2, 3], expected [3, 2]"),
        "{text}"
    );
    let error = read.tensor_of_shape("v", &[1]).expect_err("missing");
    assert!(
        error.to_string().contains("tensor \"v\" is missing"),
        "{error}"
    );
}

#[test]
fn an_alignment_of_the_file_is_used() {
    let mut file = GgufFile::new();
    file.alignment = 8;
    let file = file
        .u32_key("general.alignment", 8)
        .tensor("a", &[1], 0, &floats(&[1.5]))
        .tensor("b", &[1], 0, &floats(&[2.5]));
    let opened = read(&file).expect("it is read");
    assert_eq!(opened.tensor("b").expect("b").to_f32(), Ok(vec![2.5]));
    for wrong in [0, 24, 1 << 21] {
        let file = GgufFile::new().u32_key("general.alignment", wrong);
        refused(&file, &format!("general.alignment is {wrong}"));
    }
    let odd = GgufFile::new().tensor_at("a", &[1], 0, &floats(&[1.0]), 4);
    refused(&odd, "\"a\" starts at 4, expected a multiple of 32");
}

#[test]
fn other_versions_and_byte_orders_are_named() {
    let mut file = GgufFile::new();
    for (version, expected) in [
        (1, "got version 1, expected version 2 or 3, little endian"),
        (4, "got version 4,"),
        (3u32.swap_bytes(), "got version 3, big endian"),
    ] {
        file.version = version;
        refused(&file, expected);
    }
}

#[test]
fn absurd_counts_are_refused() {
    let mut file = varied();
    file.tensor_count = Some(u64::MAX);
    refused(
        &file,
        "cannot read tensors: got 18446744073709551615, expected at most 4194304",
    );
    file.tensor_count = Some(100_000);
    refused(&file, "cut short");
    file.tensor_count = None;
    file.key_count = Some(1 << 40);
    refused(
        &file,
        "cannot read metadata keys: got 1099511627776, expected at most 65536",
    );
    file.key_count = Some(60_000);
    refused(&file, "cut short");
    let long = GgufFile::new().key("k", 8, &u64::MAX.to_le_bytes());
    refused(&long, "bytes of a metadata value: got 18446744073709551615");
    let many = GgufFile::new().array_key("k", 8, u64::MAX, &[]);
    refused(&many, "elements of array \"k\": got 18446744073709551615");
    let many = GgufFile::new().array_key("k", 6, 1 << 20, &[0; 64]);
    refused(&many, "elements of array \"k\" ends at byte");
}

#[test]
fn arrays_in_arrays_have_a_bound() {
    let mut value = [&0u32.to_le_bytes()[..], &0u64.to_le_bytes()].concat();
    for depth in 2..=6 {
        let head = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat();
        value = [head, value].concat();
        let file = GgufFile::new().key("deep", 9, &value);
        if depth <= 4 {
            assert!(read(&file).is_ok(), "depth {depth}");
        } else {
            refused(
                &file,
                "arrays within array \"deep\": got 5, expected at most 4",
            );
        }
    }
}

#[test]
fn contradictions_are_refused() {
    let one = floats(&[1.0]);
    let a = || GgufFile::new().tensor("a", &[1], 0, &one);
    refused(&a().tensor("a", &[1], 0, &one), "tensor \"a\" stands twice");
    refused(
        &a().tensor_at("b", &[1], 0, &one, 0),
        "\"a\" and \"b\" overlap",
    );
    refused(
        &a().u32_key("k", 1).u32_key("k", 2),
        "metadata key \"k\" stands twice",
    );
    refused(
        &a().key("k", 13, &[0; 8]),
        "metadata key \"k\" has unknown type 13",
    );
    refused(&a().array_key("k", 77, 0, &[]), "unknown element type 77");
    refused(&a().key("k", 7, &[2]), "metadata key \"k\" is bool 2");
    let bad_key = [&b"\x01\0\0\0\0\0\0\0\xff"[..], &[0; 16]].concat();
    let mut file = a();
    file.key_count = Some(1);
    let mut bytes = file.bytes();
    bytes.splice(24..24, bad_key);
    let error = Gguf::from_bytes(bytes, Path::new("x")).expect_err("not UTF-8");
    assert!(
        error.to_string().contains("a metadata key is not UTF-8"),
        "{error}"
    );
    refused(
        &GgufFile::new().tensor("q", &[33], 2, &[0; 64]),
        "whole blocks of 32",
    );
    refused(
        &GgufFile::new().tensor("q", &[16, 2], 2, &[0; 18]),
        "whole blocks of 32",
    );
    let huge = [1 << 40, 1 << 40, 1];
    refused(&GgufFile::new().tensor("h", &huge, 0, &[]), "too large");
    refused(
        &GgufFile::new().tensor("h", &[u64::MAX; 9], 0, &[]),
        "dimensions of tensor \"h\"",
    );
    let far = GgufFile::new().tensor_at("f", &[1], 0, &[], u64::MAX - 31);
    refused(&far, "lies too far out");
    refused(
        &GgufFile::new().tensor("i", &[256], 16, &[]),
        "\"i\" has type IQ2_XXS",
    );
    refused(
        &GgufFile::new().tensor("i", &[256], 99, &[]),
        "\"i\" has type number 99",
    );
    let odd = GgufFile::new().key("general.alignment", 8, &text(b"32"));
    let error = read(&odd).expect_err("text is no alignment").to_string();
    assert!(error.contains("\"general.alignment\" is text"), "{error}");
}

#[test]
fn cut_files_say_how_much_is_missing() {
    let bytes = varied().bytes();
    let data_end = bytes.len();
    for missing in [1, 5] {
        let cut = bytes[..data_end - missing].to_vec();
        let error = Gguf::from_bytes(cut, Path::new("x"))
            .expect_err("cut")
            .to_string();
        assert!(
            error.contains(&format!("{missing} bytes are missing (tensor \"ids\"")),
            "{error}"
        );
    }
    for len in 4..data_end {
        let error = Gguf::from_bytes(bytes[..len].to_vec(), Path::new("x")).expect_err("cut");
        let known = matches!(
            error,
            WeightsError::CutShort { .. } | WeightsError::OverCap { .. }
        );
        assert!(known, "cut at {len}: {error}");
    }
}

#[test]
fn a_tensor_without_elements_may_have_any_other_dimensions() {
    let dims = [1 << 30, 0, 1 << 30, 1 << 30];
    let file = GgufFile::new().tensor("none", &dims, 0, &[]);
    let read = read(&file).expect("nothing is stored, so nothing is too large");
    let tensor = read.tensor("none").expect("it is there");
    assert_eq!((tensor.elements(), tensor.shape.len()), (0, 4));
    assert_eq!(tensor.to_f32().ok(), Some(Vec::new()));
}

#[test]
fn trailing_bytes_are_noted() {
    let mut bytes = varied().bytes();
    bytes.extend([0; 100]);
    let read = Gguf::from_bytes(bytes, Path::new("x")).expect("it is read");
    assert_eq!(
        read.notes(),
        ["100 bytes after the last tensor belong to none"]
    );
}
