//! The dispatcher from outside: what it promises, under chosen and under random events, and what
//! it reaches on a half-hour film.
#![allow(clippy::unwrap_used, reason = "tests, and their helper functions")]

#[path = "cluster/film.rs"]
mod film;
#[path = "cluster/properties.rs"]
mod properties;
#[path = "cluster/rules.rs"]
mod rules;
#[path = "cluster/support.rs"]
mod support;
#[path = "cluster/trouble.rs"]
mod trouble;
