//! The store's readers of bytes: rows of results, and the JSON of a project.

use std::fmt::Debug;

use flow_store::project::{Change, CommandRecord, Entity, Expected, UndoState};
use flow_store::{
    Provenance, SMALL_MAX_BYTES, StoredBlob, StoredValue, content_of, decode_ports, encode_ports,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The first byte chooses: an even one reads the rest as a row of results, an odd one as the JSON
/// of a project. What is read comes back from what is written.
///
/// # Panics
/// When that does not hold.
pub fn store(bytes: &[u8]) {
    match bytes.split_first() {
        Some((kind, row)) if kind % 2 == 0 => results(row),
        Some((_, text)) => project(text),
        None => {}
    }
}

fn results(row: &[u8]) {
    let Ok(ports) = decode_ports(row) else {
        return;
    };
    match encode_ports(&ports) {
        Ok(written) => {
            assert_eq!(written, row, "a row was read that is not canonical");
            content_of(&ports).expect("a row has a content hash");
        }
        // The reader takes plain data of any size; only the writer bounds it.
        Err(error) => {
            let mut data = ports.iter().flat_map(|port| &port.elements);
            let large = data.any(|value| match value {
                StoredValue::Small(datum) => datum
                    .canonical()
                    .is_ok_and(|canonical| canonical.len() > SMALL_MAX_BYTES),
                StoredValue::Blob(_) | StoredValue::Blocked(_) => false,
            });
            assert!(large, "what was read cannot be written: {error}");
        }
    }
}

/// `T` read from `text` comes back from what is written of it.
fn comes_back<T: Debug + PartialEq + Serialize + DeserializeOwned>(text: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(text).ok()?;
    let written = serde_json::to_string(&read).expect("what was read can be written");
    let again: T = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(again, read, "through {written}");
    Some(read)
}

fn project(text: &[u8]) {
    comes_back::<Value>(text);
    comes_back::<Vec<Change>>(text);
    comes_back::<Entity>(text);
    comes_back::<CommandRecord>(text);
    comes_back::<UndoState>(text);
    comes_back::<Provenance>(text);
    comes_back::<StoredBlob>(text);
    comes_back::<Expected>(text);
}
