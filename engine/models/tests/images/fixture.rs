//! Stored inputs and outputs of reference implementations.

use std::path::{Path, PathBuf};

use engine_weights::{Checkpoint as _, SafeTensors};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) struct Fixture {
    pub(crate) folder: PathBuf,
    meta: Value,
    pub(crate) inputs: SafeTensors,
    expected: SafeTensors,
}

impl Fixture {
    pub(crate) fn open(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
        let folder = folder.join(name);
        let meta = std::fs::read(folder.join("meta.json")).unwrap();
        Self {
            meta: serde_json::from_slice(&meta).unwrap(),
            inputs: SafeTensors::open(folder.join("inputs.safetensors")).unwrap(),
            expected: SafeTensors::open(folder.join("expected.safetensors")).unwrap(),
            folder,
        }
    }

    pub(crate) fn input(&self, name: &str) -> Vec<f32> {
        self.inputs.tensor(name).unwrap().to_f32().unwrap()
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, path: &str) -> T {
        let text = std::fs::read(self.folder.join(path)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    pub(crate) fn weights(&self, part: &str) -> SafeTensors {
        SafeTensors::open(self.folder.join(part)).unwrap()
    }

    /// `got` against the last values of output `name` of `call`.
    #[track_caller]
    pub(crate) fn check(&self, call: &str, name: &str, got: &[f32]) {
        let expected = self.output(call, name);
        self.compare((call, name), got, &expected[expected.len() - got.len()..]);
    }

    /// `got` against the first values of row `row` of output `name`.
    #[track_caller]
    pub(crate) fn check_row(&self, call: &str, name: &str, row: usize, got: &[f32]) {
        let full = self.expected.tensor(&format!("{call}.{name}")).unwrap();
        let start = full.elements() / full.shape[0] * row;
        let expected = self.output(call, name);
        self.compare((call, name), got, &expected[start..start + got.len()]);
    }

    /// `got` against output `name` of a call with one limit for all outputs.
    #[track_caller]
    pub(crate) fn check_within(&self, call: &str, name: &str, got: &[f32]) {
        let expected = self.output(call, name);
        assert_eq!(got.len(), expected.len(), "{call}.{name}");
        let limit = self.meta["calls"][call]["atol"].as_f64().unwrap();
        self.compare_to((call, name), got, &expected, limit);
    }

    fn output(&self, call: &str, name: &str) -> Vec<f32> {
        let full = self.expected.tensor(&format!("{call}.{name}")).unwrap();
        full.to_f32().unwrap()
    }

    #[track_caller]
    fn compare(&self, (call, name): (&str, &str), got: &[f32], expected: &[f32]) {
        let limit = self.meta["calls"][call]["atol"][name].as_f64().unwrap();
        self.compare_to((call, name), got, expected, limit);
    }

    #[track_caller]
    fn compare_to(&self, (call, name): (&str, &str), got: &[f32], expected: &[f32], limit: f64) {
        let pairs = got.iter().zip(expected);
        let worst = pairs.fold(0f64, |worst, (a, b)| {
            let difference = (f64::from(*a) - f64::from(*b)).abs();
            if difference.is_nan() {
                f64::INFINITY
            } else {
                worst.max(difference)
            }
        });
        assert!(
            worst <= limit,
            "{call}.{name}: differs by {worst:e}, limit {limit:e}"
        );
    }
}

/// Rows to columns.
pub(crate) fn turned(values: &[f32], rows: usize) -> Vec<f32> {
    let cols = values.len() / rows;
    (0..values.len())
        .map(|at| values[at % rows * cols + at / rows])
        .collect()
}
