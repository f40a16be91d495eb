//! A cluster without machines: discrete events over the real [`crate::Dispatcher`], so that what
//! a film will take on so many workers can be said before anybody owns them.

mod bound;
mod film;
mod machines;
mod plan;
mod random;
mod rows;
mod shots;
mod world;

pub use bound::{Bound, bound};
pub use film::{FilmShape, PlannedJob, film};
pub use machines::Machine;
pub use plan::plan;
pub use random::{Draws, P95_OVER_P50_4};
pub use rows::{Row, all, table};
pub use shots::{ShotsShape, shots};
pub use world::{Failures, Outcome, Scenario, SimulateError, Unsure, run};
