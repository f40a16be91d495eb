//! The executor with stub nodes and a record of what ran.

mod expansion;
mod failure;
mod kit;
mod lists;
mod planning;
mod random;
mod reuse;
mod running;
mod scale;
