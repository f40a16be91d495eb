//! What work will cost: learned from measurements, guessed from what is nearest to it before that.

mod cell;
mod model;
mod rates;
mod store;

pub use cell::CostRow;
pub use model::{CostBasis, CostModel, Prediction, Work};
pub use rates::Rates;
pub use store::{CostError, CostStore, MemoryCosts};
