//! safetensors headers, right and wrong.

use std::collections::HashMap;
use std::path::Path;

use engine_tensor::DType;
use engine_weights::{Checkpoint as _, SafeTensors, WeightsError};
use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// A file with this header and as many zero bytes.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn read(header: &str, data: usize) -> Result<SafeTensors, WeightsError> {
    SafeTensors::from_bytes(file(header, data), Path::new("x.safetensors"))
}

#[test]
fn wrong_headers_are_refused_and_say_why() {
    let cases = [
        (
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#,
            "expected 8 bytes",
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#,
            "expected 4 bytes",
        ),
        (
            r#"{"a":{"dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4]}}"#,
            "type F8_E5M2",
        ),
        (
            r#"{"a":{"dtype":"X","shape":[1],"data_offsets":[0,4]}}"#,
            "type X, which is not",
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}"#,
            "over 8",
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#,
            "invalid value",
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}"#,
            "invalid type",
        ),
        (r#"{"a":{"dtype":"F32","shape":[1]}}"#, "missing field"),
        (
            r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}"#,
            "cannot read",
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}"#,
            "too large",
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615]}}"#,
            "too far out",
        ),
        (r#"{"a":3}"#, "invalid type"),
        (r#"{"__metadata__":3}"#, "invalid type"),
        (
            r#"{"__metadata__":{"k":"1","k":"2"}}"#,
            "\"k\" stands twice",
        ),
        (r#"{"__metadata__":{},"__metadata__":{}}"#, "stands twice"),
        (r#"{"__metadata__":{}} x"#, "trailing"),
        (r#"{"#, "EOF"),
        (
            r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
            "\"a\" stands twice",
        ),
    ];
    for (header, expected) in cases {
        let error = read(header, 64).expect_err(header).to_string();
        assert!(
            error.contains(expected),
            "{error:?} does not say {expected:?}"
        );
        assert!(
            error.ends_with("\"x.safetensors\""),
            "{error:?} does not name the file"
        );
    }
    let deep = format!(r#"{{"__metadata__":{{"k":{}"#, "[".repeat(100_000));
    assert!(read(&deep, 0).is_err());
    let long = format!(r#"{{"__metadata__":{{"k":"{}"#, "a".repeat(1_000_000));
    assert!(read(&long, 0).expect_err("unclosed").to_string().len() < 400);
    let long = format!(r#"{{"__metadata__":"{}"}}"#, "a".repeat(1_000_000));
    assert!(read(&long, 0).expect_err("text").to_string().len() < 400);
}

#[test]
fn cut_headers_say_how_much_is_missing() {
    let bytes = file(r#"{"__metadata__":{"k":"v"}}"#, 0);
    for len in 9..bytes.len() {
        let cut = bytes[..len].to_vec();
        let error = SafeTensors::from_bytes(cut, Path::new("x"))
            .expect_err("cut")
            .to_string();
        let missing = format!("{} bytes are missing", bytes.len() - len);
        assert!(error.contains(&missing), "{error}");
    }
}

#[test]
fn odd_but_harmless_files_are_noted() {
    let header = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"extra":1}}"#;
    let opened = read(header, 10).expect("it is read");
    assert_eq!(
        opened.notes(),
        ["8 bytes after the last tensor belong to none"]
    );
    let opened = read(r#"{"__metadata__":null}"#, 0).expect("null is nothing");
    assert!(opened.metadata().is_empty() && opened.notes().is_empty());
}

const DTYPES: [(Dtype, DType); 10] = [
    (Dtype::F32, DType::F32),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::F64, DType::F64),
    (Dtype::I8, DType::I8),
    (Dtype::I16, DType::I16),
    (Dtype::I32, DType::I32),
    (Dtype::I64, DType::I64),
    (Dtype::U8, DType::U8),
    (Dtype::BOOL, DType::Bool),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What the reference writer writes is read: names, types, shapes and bytes.
    #[test]
    fn files_of_the_reference_writer_are_read(
        tensors in hash_map("\\PC{0,12}", (0usize..10, vec(0usize..4, 0..4), any::<u8>()), 0..8),
        metadata in hash_map("\\PC{0,12}", "\\PC{0,20}", 0..5),
    ) {
        let tensors: Vec<_> = tensors
            .into_iter()
            .filter(|(name, _)| name != "__metadata__")
            .map(|(name, (dtype, shape, fill))| {
                let (theirs, ours) = DTYPES[dtype];
                let elements: usize = shape.iter().product();
                let bytes: Vec<u8> = (0..elements * ours.block_bytes())
                    .map(|at| fill.wrapping_add(at as u8))
                    .collect();
                (name, theirs, ours, shape, bytes)
            })
            .collect();
        let views = tensors.iter().map(|(name, theirs, _, shape, bytes)| {
            (name, TensorView::new(*theirs, shape.clone(), bytes).expect("a view"))
        });
        let some = (!metadata.is_empty()).then(|| metadata.clone());
        let written = safetensors::serialize(views, some).expect("it is written");
        let read = SafeTensors::from_bytes(written, Path::new("x")).expect("it is read");
        prop_assert_eq!(read.names().count(), tensors.len());
        prop_assert!(read.names().is_sorted());
        for (name, _, dtype, shape, bytes) in &tensors {
            let got = read.tensor(name).expect("it is there");
            prop_assert_eq!((got.dtype, &got.shape), (*dtype, shape));
            prop_assert_eq!(&*got.bytes, &**bytes);
        }
        let got: HashMap<String, String> = read
            .metadata()
            .iter()
            .map(|(key, _)| {
                let text = read.metadata().text(key).expect("text").expect("there");
                (key.to_owned(), text.to_owned())
            })
            .collect();
        prop_assert_eq!(got, metadata);
        prop_assert!(read.notes().is_empty());
    }
}
