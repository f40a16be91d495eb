//! Samples by row, as they come in.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use longtake_tests::receipt::Measured;
use longtake_tests::{Better, Receipt, Spread};

/// Samples of rows that are measured in turn.
#[derive(Debug, Default)]
pub(crate) struct Samples(BTreeMap<String, Vec<f64>>);

impl Samples {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One more sample of row `name`.
    pub(crate) fn add(&mut self, name: &str, value: f64) {
        self.0.entry(name.to_owned()).or_default().push(value);
    }

    /// The median of row `name`.
    pub(crate) fn middle(&self, name: &str) -> Option<f64> {
        Spread::of(self.0.get(name)?).map(|spread| spread.median)
    }

    /// Put row `name` into the receipt. Rows of processor time are left out where the system
    /// does not tell it.
    pub(crate) fn row(
        &self,
        receipt: &mut Receipt,
        name: &str,
        unit: &str,
        better: Better,
        floor: Option<f64>,
    ) -> Result<()> {
        let Some(samples) = self.0.get(name) else {
            ensure!(
                name.ends_with(", processor"),
                "nothing was measured for {name:?}"
            );
            return Ok(());
        };
        let measured = Measured {
            name,
            unit,
            better,
            samples,
            peer: None,
            floor,
        };
        receipt.add(measured)?;
        Ok(())
    }

    /// Put row `name` into the receipt beside what `peer` took, whose samples are `NAME/peer`.
    pub(crate) fn compared(
        &self,
        receipt: &mut Receipt,
        name: &str,
        unit: &str,
        better: Better,
        peer: &str,
    ) -> Result<()> {
        let of = |name: &str| self.0.get(name).map(Vec::as_slice);
        let (Some(samples), Some(theirs)) = (of(name), of(&format!("{name}/peer"))) else {
            ensure!(
                name.ends_with(", processor"),
                "nothing was measured for {name:?}"
            );
            return Ok(());
        };
        let measured = Measured {
            name,
            unit,
            better,
            samples,
            peer: Some((peer, theirs)),
            floor: None,
        };
        receipt.add(measured)?;
        Ok(())
    }
}
