//! Sound in and out: reading, mixing, measuring, coding, with signals made in code.

mod film;
mod mix;
mod read;
mod support;
