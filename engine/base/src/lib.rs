//! Ids, content hashes, canonical encoding, rational time, cancellation, progress, clock.
//!
//! Duty: the small vocabulary that every other crate shares. It must not know files, graphs,
//! models, devices or film; it holds no global state and starts no threads.
//!
//! Entry points: [`ContentHash`] names bytes, [`Key`] names work, [`Datum`] is the canonical
//! data value whose encoding both are taken over, [`Rational`] is time and frame rate.

mod cancel;
mod canonical;
mod clock;
mod code;
mod datum;
mod hash;
mod progress;
mod rational;

pub use cancel::{CancelToken, Cancelled};
pub use canonical::CanonicalWriter;
pub use clock::{Clock, ManualClock, SystemClock};
pub use code::Code;
pub use datum::{Datum, DatumError};
pub use hash::{ContentHash, ContentHasher, HashParseError, Key};
pub use progress::{
    NoProgress, PREVIEW_SIDE_PX, Preview, ProgressEvent, ProgressSink, SecondsLeft,
};
pub use rational::{Rational, RationalError};
