//! Which calls travel, how much there is to do in them, and first guesses of what they cost.

use std::collections::BTreeSet;

use engine_base::{ContentHash, Datum};
use engine_hub::ModelState;
use flow_cluster::ModelNeed;
use flow_cluster::owner::Travels;
use flow_executor::FarCall;
use flow_graph::NodeSpec;
use flow_store::StoredValue;
use flow_timeline::Segment;

use crate::models::hub;

/// Node types that run on workers, with a first guess: seconds of a core for a size.
///
/// What is not here runs with the owner: it is cheaper than handing it out, needs every file of the
/// film (the last mux), or names what only the owner has (a language model's address). Nothing here
/// takes a path, an address or a command: files come by content, models by their id in the list.
const TRAVELS: &[(&str, f64, u64)] = &[
    // A frame of 1280x720 takes about 40 ms to draw and code.
    ("film.segment", 0.04, 1280 * 720),
    ("film.poster", 0.1, 1 << 20),
    // Bytes of sound that go in.
    ("film.sound_mix", 0.02, 1 << 20),
    ("film.sound_encode", 0.25, 1 << 20),
    // Characters.
    ("speech.line", 0.05, 1),
    ("picture.upscale", 2.0, 1 << 20),
];

/// The studio's calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs;

fn datum<'c>(call: &'c FarCall, input: &str) -> Option<&'c Datum> {
    match call.inputs.get(input)?.first()? {
        StoredValue::Small(datum) => Some(datum),
        StoredValue::Blob(_) | StoredValue::Blocked(_) => None,
    }
}

/// Pixels of all frames of a segment.
fn segment_pixels(call: &FarCall) -> Option<u64> {
    let json = serde_json::to_value(datum(call, "segment")?).ok()?;
    let segment: Segment = serde_json::from_value(json).ok()?;
    let frame = u64::from(segment.format.width_px) * u64::from(segment.format.height_px);
    Some(u64::try_from(segment.frames).ok()?.saturating_mul(frame))
}

/// Content of every file of models that is here, by the hash of its entry in the list.
pub(super) fn models_on_disk() -> BTreeSet<ContentHash> {
    let Ok(hub) = hub() else {
        return BTreeSet::new();
    };
    let is_here = |id: &str| {
        let state = hub.state(id);
        matches!(state, Ok(ModelState::Installed | ModelState::Unverified))
    };
    let here = hub.entries().iter().filter(|entry| is_here(&entry.id));
    here.filter_map(|entry| {
        let files = entry
            .files
            .iter()
            .map(|file| Datum::from(file.sha256.as_str()));
        Datum::List(files.collect()).content_hash().ok()
    })
    .collect()
}

impl Travels for Costs {
    fn takes(&self, spec: &NodeSpec) -> bool {
        TRAVELS.iter().any(|(name, _, _)| *name == spec.type_name)
    }

    fn size(&self, call: &FarCall) -> u64 {
        let bytes = || call.files().map(|blob| blob.bytes).sum::<u64>().max(1);
        match call.node_type.as_str() {
            "film.segment" => segment_pixels(call).unwrap_or_else(bytes),
            "speech.line" => datum(call, "text")
                .and_then(Datum::as_str)
                .map_or_else(bytes, |text| text.chars().count() as u64)
                .max(1),
            _ => bytes(),
        }
    }

    fn model(&self, _call: &FarCall) -> Option<ModelNeed> {
        // Voices and upscalers are small, in every worker's pack, and their content is in the key:
        // a worker with another one refuses the call.
        None
    }

    fn guesses(&self) -> Vec<(&'static str, f64, u64)> {
        TRAVELS.to_vec()
    }
}
