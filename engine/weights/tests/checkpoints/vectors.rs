//! Every packed type against the values of the `gguf` package.

use engine_tensor::{Bytes, DType};
use engine_weights::quant::{QuantError, dequantize};
use engine_weights::{Checkpoint as _, SafeTensors, TensorRef, first_non_finite};

use crate::repository;

/// Types with test vectors.
const DECODED: &[DType] = &[
    DType::F16,
    DType::BF16,
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q8_0,
    DType::Q2_K,
    DType::Q3_K,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::IQ4_NL,
];

fn vector(dtype: DType) -> (Bytes, Vec<f32>) {
    let name = dtype.name().to_lowercase();
    let file = SafeTensors::open(repository(&format!("fixtures/quant/{name}.safetensors")))
        .expect("the vector is there");
    let packed = file.tensor("packed").expect("it has packed blocks");
    let values = file.tensor("values").expect("it has values");
    (packed.bytes, values.to_f32().expect("values are f32"))
}

#[test]
fn all_types_decode_bit_for_bit() {
    for &dtype in DECODED {
        let (packed, expected) = vector(dtype);
        assert!(expected.len() >= 12_000, "{dtype} has few values");
        let mut got = vec![f32::NAN; expected.len()];
        dequantize(dtype, &packed, &mut got).expect("whole blocks");
        let wrong = got
            .iter()
            .zip(&expected)
            .position(|(got, expected)| got.to_bits() != expected.to_bits());
        assert_eq!(
            wrong.map(|at| (at, got[at], expected[at])),
            None,
            "{dtype} differs"
        );
    }
}

#[test]
fn every_float_type_is_decoded_and_no_other() {
    for &dtype in DType::ALL {
        let bytes = vec![0; dtype.block_bytes() * 2];
        let mut out = vec![1.0; dtype.block_elements() * 2];
        let decoded = dequantize(dtype, &bytes, &mut out);
        let whole = matches!(
            dtype,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::Bool
        );
        if whole {
            assert_eq!(decoded, Err(QuantError::NotFloats { dtype }));
            assert!(out.iter().all(|value| *value == 1.0), "{dtype} was written");
        } else {
            assert_eq!(decoded, Ok(()));
            assert!(out.iter().all(|value| *value == 0.0), "{dtype} left values");
        }
    }
}

#[test]
fn lengths_must_fit() {
    for (bytes, elements) in [(18, 31), (17, 32), (36, 32), (0, 32), (18, 0)] {
        let refused = dequantize(DType::Q4_0, &vec![0; bytes], &mut vec![0.0; elements]);
        assert_eq!(
            refused,
            Err(QuantError::Length {
                dtype: DType::Q4_0,
                got_bytes: bytes,
                elements
            })
        );
    }
    assert_eq!(dequantize(DType::Q6_K, &[], &mut []), Ok(()));
}

fn tensor(dtype: DType, bytes: Vec<u8>) -> TensorRef {
    let elements = bytes.len() / dtype.block_bytes() * dtype.block_elements();
    TensorRef::new(dtype, vec![elements], bytes.into()).expect("whole blocks")
}

/// The search through scales finds what decoding finds, wherever an f16 of a block is replaced.
#[test]
fn the_first_non_number_is_found() {
    let bad: [u16; 4] = [0x7c00, 0xfc00, 0x7e00, 0xfc01];
    for &dtype in DECODED.iter().filter(|dtype| dtype.block_elements() > 1) {
        let (packed, _) = vector(dtype);
        assert_eq!(
            first_non_finite(&tensor(dtype, packed.to_vec())),
            None,
            "{dtype}"
        );
        let block_bytes = dtype.block_bytes();
        let mut found = 0;
        for at in (0..block_bytes - 1).step_by(2) {
            let mut bytes = packed[..block_bytes * 6].to_vec();
            let place = block_bytes * 3 + at;
            bytes[place..place + 2].copy_from_slice(&bad[at / 2 % 4].to_le_bytes());
            let changed = tensor(dtype, bytes);
            let values = changed.to_f32().expect("floats");
            let expected = values.iter().position(|value| !value.is_finite());
            assert_eq!(first_non_finite(&changed), expected, "{dtype} at {at}");
            found += usize::from(expected.is_some());
        }
        assert!((1..=2).contains(&found), "{dtype}: {found} scales");
    }
    let floats = [1.0, f32::MAX, f32::NAN, f32::INFINITY];
    let bytes = floats.iter().flat_map(|f| f.to_le_bytes()).collect();
    assert_eq!(first_non_finite(&tensor(DType::F32, bytes)), Some(2));
    let halves = [0x7bffu16, 0x0001, 0x8000, 0xfc00];
    let bytes: Vec<u8> = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
    assert_eq!(
        first_non_finite(&tensor(DType::F16, bytes.clone())),
        Some(3)
    );
    assert_eq!(first_non_finite(&tensor(DType::I16, bytes)), None);
    let brains = [0x7f7fu16, 0x7f80, 0x3f80];
    let bytes = brains.iter().flat_map(|h| h.to_le_bytes()).collect();
    assert_eq!(first_non_finite(&tensor(DType::BF16, bytes)), Some(1));
}
