//! What is stored under a key, and its encoding in a row.

use engine_base::{ContentHash, Datum, Key};
use serde::{Deserialize, Serialize};

use crate::cbor::{self, Reader};
use crate::error::StoreError;

pub use crate::cbor::DecodeError;

/// Largest canonical size of plain data in the database; larger results must be files.
pub const SMALL_MAX_BYTES: usize = 64 * 1024;

/// First byte of an encoded row; raised when the encoding changes.
const PORTS_VERSION: u8 = 1;

/// A file by content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoredBlob {
    /// BLAKE3 of its bytes.
    pub hash: ContentHash,
    /// Its size.
    pub bytes: u64,
    /// Media type such as `video/mp4`. Not part of its identity.
    pub media_type: String,
}

/// One element of a port.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredValue {
    /// Plain data, at most [`SMALL_MAX_BYTES`] in canonical form.
    Small(Datum),
    /// A file in the store.
    Blob(StoredBlob),
    /// Nothing will come: an error with a message, silence without one.
    Blocked(Option<String>),
}

/// What one output port gave.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPort {
    /// Whether the port gives a list (of any length) or one element.
    pub list: bool,
    /// Its elements.
    pub elements: Vec<StoredValue>,
}

impl StoredPort {
    /// A port of one element.
    pub fn one(value: StoredValue) -> Self {
        Self {
            list: false,
            elements: vec![value],
        }
    }
}

/// A committed result.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredResult {
    /// The work.
    pub key: Key,
    /// What it gave, in port order.
    pub ports: Vec<StoredPort>,
    /// Content hash over all ports, as [`content_of`] takes it.
    pub content: ContentHash,
    /// Place in the order of all commits ever made to this store; never used twice.
    pub commit_number: u64,
}

impl StoredResult {
    /// The files of the result, in port order, with repetitions.
    pub fn blobs(&self) -> impl Iterator<Item = &StoredBlob> {
        blobs_of(&self.ports)
    }
}

/// What a second result for the same key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// Other content is an error.
    Exact,
    /// Other content is dropped and counted.
    Tolerant,
    /// Made once by something that cannot be repeated; other content is dropped and counted.
    Recorded,
}

/// Where a result comes from. For people and for placement; never part of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// Content hashes of the inputs, in port order.
    pub inputs: Vec<ContentHash>,
    /// Version and build of the engine.
    pub engine_build: String,
    /// Backend and device class, such as `cpu` or `cuda:sm_121`.
    pub device_class: String,
    /// Wall time spent.
    pub wall_millis: u64,
}

/// A result to commit.
#[derive(Debug, Clone, PartialEq)]
pub struct NewResult {
    /// The work.
    pub key: Key,
    /// The node type that did it.
    pub node_type: String,
    /// What it gave, in port order. Its files must be in the store already.
    pub ports: Vec<StoredPort>,
    /// What a second result for the key means.
    pub exactness: Exactness,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// What became of a commit. Either way the result in it is durable and is the one to go on with.
#[derive(Debug, Clone, PartialEq)]
pub enum Committed {
    /// It is the first for its key.
    Made(StoredResult),
    /// An earlier result stays; this one was dropped and counted.
    Kept(StoredResult),
}

impl Committed {
    /// The result to go on with.
    pub const fn result(&self) -> &StoredResult {
        match self {
            Self::Made(result) | Self::Kept(result) => result,
        }
    }

    /// The result to go on with.
    pub fn into_result(self) -> StoredResult {
        match self {
            Self::Made(result) | Self::Kept(result) => result,
        }
    }

    /// Whether this commit was the first for its key.
    pub const fn is_made(&self) -> bool {
        matches!(self, Self::Made(_))
    }
}

pub(crate) fn blobs_of(ports: &[StoredPort]) -> impl Iterator<Item = &StoredBlob> {
    ports
        .iter()
        .flat_map(|port| &port.elements)
        .filter_map(|value| match value {
            StoredValue::Blob(blob) => Some(blob),
            StoredValue::Small(_) | StoredValue::Blocked(_) => None,
        })
}

/// Ports as they stand in a row, with the content hash over them.
#[derive(Debug, Clone)]
pub(crate) struct EncodedPorts {
    pub(crate) bytes: Vec<u8>,
    pub(crate) content: ContentHash,
}

/// Both encodings in one pass: the row's bytes, and the identity over which content is hashed, in
/// which plain data stands by its hash and neither media types nor messages count.
pub(crate) fn encode(ports: &[StoredPort]) -> Result<EncodedPorts, StoreError> {
    let mut row = vec![PORTS_VERSION];
    let mut identity = vec![PORTS_VERSION];
    for out in [&mut row, &mut identity] {
        cbor::list(out, ports.len());
    }
    for port in ports {
        for out in [&mut row, &mut identity] {
            cbor::list(out, 2);
            cbor::bool(out, port.list);
            cbor::list(out, port.elements.len());
        }
        for value in &port.elements {
            match value {
                StoredValue::Small(datum) => {
                    let canonical = datum.canonical()?;
                    if canonical.len() > SMALL_MAX_BYTES {
                        return Err(StoreError::TooLarge {
                            got_bytes: canonical.len() as u64,
                            most_bytes: SMALL_MAX_BYTES as u64,
                        });
                    }
                    tagged(&mut identity, 0, &ContentHash::of(&canonical));
                    cbor::list(&mut row, 2);
                    cbor::whole(&mut row, 0);
                    row.extend_from_slice(&canonical);
                }
                StoredValue::Blob(blob) => {
                    tagged(&mut identity, 1, &blob.hash);
                    cbor::list(&mut row, 4);
                    cbor::whole(&mut row, 1);
                    cbor::bytes(&mut row, blob.hash.as_bytes());
                    cbor::whole(&mut row, blob.bytes);
                    cbor::text(&mut row, &blob.media_type);
                }
                StoredValue::Blocked(message) => {
                    tagged(&mut identity, 3, &ContentHash::of(b""));
                    cbor::list(&mut row, 2);
                    cbor::whole(&mut row, 3);
                    match message {
                        Some(message) => cbor::text(&mut row, message),
                        None => cbor::null(&mut row),
                    }
                }
            }
        }
    }
    Ok(EncodedPorts {
        content: ContentHash::of(&identity),
        bytes: row,
    })
}

fn tagged(out: &mut Vec<u8>, tag: u64, hash: &ContentHash) {
    cbor::list(out, 2);
    cbor::whole(out, tag);
    cbor::bytes(out, hash.as_bytes());
}

/// Ports as bytes for a row: a version byte, then canonical CBOR.
///
/// # Errors
/// [`StoreError::TooLarge`] for plain data over [`SMALL_MAX_BYTES`], [`StoreError::Value`] for
/// plain data with no canonical form.
pub fn encode_ports(ports: &[StoredPort]) -> Result<Vec<u8>, StoreError> {
    encode(ports).map(|encoded| encoded.bytes)
}

/// Content hash over all ports: equal when every element is of the same kind and content. Media
/// types and the words of a block do not count.
///
/// # Errors
/// As [`encode_ports`].
pub fn content_of(ports: &[StoredPort]) -> Result<ContentHash, StoreError> {
    encode(ports).map(|encoded| encoded.content)
}

/// Reads what [`encode_ports`] wrote. Any other bytes are an error; memory stays in proportion to
/// the bytes given.
///
/// # Errors
/// [`DecodeError`], with the place in the bytes.
pub fn decode_ports(bytes: &[u8]) -> Result<Vec<StoredPort>, DecodeError> {
    let Some((&version, body)) = bytes.split_first() else {
        return Err(DecodeError::Short { at: 0 });
    };
    if version != PORTS_VERSION {
        return Err(DecodeError::Version {
            got: version,
            expected: PORTS_VERSION,
        });
    }
    let mut reader = Reader::new(body);
    let count = reader.list()?;
    let mut ports = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        reader.list_of(2)?;
        let list = reader.bool()?;
        let length = reader.list()?;
        let mut elements = Vec::with_capacity(length.min(64));
        for _ in 0..length {
            elements.push(decode_value(&mut reader)?);
        }
        ports.push(StoredPort { list, elements });
    }
    reader.end()?;
    Ok(ports)
}

fn decode_value(reader: &mut Reader<'_>) -> Result<StoredValue, DecodeError> {
    let length = reader.list()?;
    let at = reader.at();
    match (length, reader.whole()?) {
        (2, 0) => Ok(StoredValue::Small(reader.datum()?)),
        (4, 1) => Ok(StoredValue::Blob(StoredBlob {
            hash: ContentHash::from_bytes(reader.hash()?),
            bytes: reader.whole()?,
            media_type: reader.text()?.to_owned(),
        })),
        (2, 3) if reader.take_null() => Ok(StoredValue::Blocked(None)),
        (2, 3) => Ok(StoredValue::Blocked(Some(reader.text()?.to_owned()))),
        _ => Err(DecodeError::Unexpected {
            at,
            expected: "a kind of stored value",
        }),
    }
}
