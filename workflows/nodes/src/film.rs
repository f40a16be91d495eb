//! Pictures, sound and films.

mod asset;
mod loudness;
mod mux;
mod poster;
mod segment;
mod sound_encode;
mod sound_mix;
mod subtitles;

use std::sync::Arc;

use engine_base::Datum;
use flow_graph::{Node, NodeError};
use flow_media::MediaError;

pub use flow_media::text::Fonts;

/// All types of this folder.
pub(crate) fn node_types(fonts: &Arc<Fonts>) -> Vec<Arc<dyn Node>> {
    vec![
        Arc::new(asset::Asset::new()),
        Arc::new(loudness::Loudness::new()),
        Arc::new(mux::Mux::new()),
        Arc::new(poster::Poster::new()),
        Arc::new(segment::Segment::new(Arc::clone(fonts))),
        Arc::new(sound_encode::SoundEncode::new()),
        Arc::new(sound_mix::SoundMix::new()),
        Arc::new(subtitles::Subtitles::new()),
    ]
}

/// A media error as a node's.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape of a map_err function"
)]
pub(crate) fn failed(error: MediaError) -> NodeError {
    NodeError::new(error.code(), error.to_string())
}

/// Versions of the codec libraries: part of every key behind which a codec runs.
fn codecs() -> Datum {
    Datum::map([("codecs", Datum::from(flow_media::codec_versions()))])
}
