//! Node types: what a workflow can do.
//!
//! Duty: describe each node type in one file (spec, help, run, test) and list them in
//! [`node_types`]; compile a planned film into a document of them ([`film_document`]). It must not
//! know projects, windows, sockets or how a graph is executed.
//!
//! A new node type is one new file and one line in its folder's list.

mod basic;
mod compile;
mod film;
mod language;
mod pictures;
mod spec;
mod speech;

use std::sync::Arc;

use flow_graph::{Node, Registry};

pub use compile::{
    CompileError, FilmDocument, FilmFile, FilmFiles, FilmOptions, LoudnessTarget, SpeechLines,
    film_document, speech_document,
};
pub use film::Fonts;
pub use language::{LlmSource, language_node_types};
pub use pictures::{
    DrawnStill, ImageChoice, ImageModelSource, SegmentKeeper, SegmentName, StillReport,
    UpscalerSource, VideoReport, VideoUpscale, draw_still, given_picture, image_node_types,
    picture_document, picture_node_types, upscale_still,
};
pub use speech::{
    HeardWord, LineSound, SpeechLine, SpeechSound, SpeechSource, line_sound, speech_node_types,
};

/// Every node type of this crate. Text is drawn with `fonts`.
pub fn node_types(fonts: &Arc<Fonts>) -> Vec<Arc<dyn Node>> {
    let mut types = basic::node_types();
    types.extend(film::node_types(fonts));
    types
}

/// A registry of every node type of this crate.
///
/// # Errors
/// Two types claim one name: a fault of ours that a test catches.
pub fn registry(fonts: &Arc<Fonts>) -> Result<Registry, flow_graph::RegistryError> {
    let mut registry = Registry::new();
    for node in node_types(fonts) {
        registry.add(node)?;
    }
    Ok(registry)
}
