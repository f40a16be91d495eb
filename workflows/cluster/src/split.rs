//! Where work may be cut into jobs: shots, takes, elements, runs of frames, segments. Never
//! inside one sampling: what a node makes in one go it makes on one device.

mod graph;
mod parts;

pub use graph::{Carries, GraphJob, Joint, Piece, SplitError, jobs};
pub use parts::{FrameRun, elements, frame_runs, segments, takes};
