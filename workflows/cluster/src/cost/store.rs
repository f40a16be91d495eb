//! Where measurements are kept between runs.

use super::cell::CostRow;

/// Why measurements could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} measured costs: {source}")]
pub struct CostError {
    /// What was tried: `read` or `keep`.
    pub doing: &'static str,
    /// What failed.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Keeps measurements. Losing them costs only worse guesses, so callers may go on after an error.
pub trait CostStore {
    /// Every row.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load(&self) -> Result<Vec<CostRow>, CostError>;

    /// Put a row in the place of the one of the same node type, model, class and size class.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn save(&mut self, row: &CostRow) -> Result<(), CostError>;
}

/// Measurements in memory: for work whose costs nobody will ask for again.
#[derive(Debug, Clone, Default)]
pub struct MemoryCosts {
    rows: Vec<CostRow>,
}

impl CostStore for MemoryCosts {
    fn load(&self) -> Result<Vec<CostRow>, CostError> {
        Ok(self.rows.clone())
    }

    fn save(&mut self, row: &CostRow) -> Result<(), CostError> {
        let same = |other: &&mut CostRow| {
            other.node_type == row.node_type
                && other.model == row.model
                && other.class == row.class
                && other.size_class == row.size_class
        };
        match self.rows.iter_mut().find(same) {
            Some(old) => *old = row.clone(),
            None => self.rows.push(row.clone()),
        }
        Ok(())
    }
}
