//! NATS JetStream: how owner and workers reach each other.
//!
//! Streams `LONGTAKE_JOBS` and `LONGTAKE_RESULTS` are work queues with explicit acks; a message's id is its
//! key with its lease, so that what is published twice is delivered once. The registry of workers is
//! a key-value bucket. Signs of life, requests to stop and progress are plain messages: losing one
//! costs nothing. Files never go through here.

mod connect;
mod error;
mod messages;
mod streams;
mod tls;

pub(crate) use tls::fingerprint;

pub use connect::Link;
pub use error::ClusterError;
pub(crate) use messages::ports_to_text;
pub use messages::{
    AtJob, Beat, CallBody, CallText, Card, FileAt, HolderText, JobMessage, Outcome, ResultMessage,
    Settings, Stop,
};
pub(crate) use streams::ensure_since;
pub use streams::{
    BUCKET, CARDS, JOBS, MOST_BYTES, RESULTS, beat_subject, consumer_of_owner, consumer_of_worker,
    control_subject, ensure, job_filter, job_subject, result_filter, result_subject, stop_subject,
    watch_beats,
};
