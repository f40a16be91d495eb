//! What is stored under a key, and its encoding in a row.

use engine_base::{CanonicalWriter, ContentHash, Datum, Key};
use serde::{Deserialize, Serialize};

use crate::cbor::Reader;
use crate::error::StoreError;

pub use crate::cbor::DecodeError;

/// Largest canonical size of plain data in the database; larger results must be files.
pub const SMALL_MAX_BYTES: usize = 64 * 1024;

/// Largest encoded size of a whole result, all ports together.
pub const RESULT_MAX_BYTES: usize = 32 << 20;

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
        CanonicalWriter::new(out).array(ports.len());
    }
    for port in ports {
        for out in [&mut row, &mut identity] {
            let mut out = CanonicalWriter::new(out);
            out.array(2);
            out.bool(port.list);
            out.array(port.elements.len());
        }
        for value in &port.elements {
            match value {
                StoredValue::Small(datum) => {
                    let canonical = datum.canonical()?;
                    if canonical.len() > SMALL_MAX_BYTES {
                        return Err(StoreError::TooLarge {
                            what: "plain data",
                            got_bytes: canonical.len() as u64,
                            most_bytes: SMALL_MAX_BYTES as u64,
                        });
                    }
                    tagged(&mut identity, 0, &ContentHash::of(&canonical));
                    let mut out = CanonicalWriter::new(&mut row);
                    out.array(2);
                    out.whole(0);
                    out.encoded(&canonical);
                }
                StoredValue::Blob(blob) => {
                    tagged(&mut identity, 1, &blob.hash);
                    let mut out = CanonicalWriter::new(&mut row);
                    out.array(4);
                    out.whole(1);
                    out.bytes(blob.hash.as_bytes());
                    out.whole(blob.bytes);
                    out.text(&blob.media_type);
                }
                StoredValue::Blocked(message) => {
                    tagged(&mut identity, 3, &ContentHash::of(b""));
                    let mut out = CanonicalWriter::new(&mut row);
                    out.array(2);
                    out.whole(3);
                    match message {
                        Some(message) => out.text(message),
                        None => out.null(),
                    }
                }
            }
        }
    }
    if row.len() > RESULT_MAX_BYTES {
        return Err(StoreError::TooLarge {
            what: "a result",
            got_bytes: row.len() as u64,
            most_bytes: RESULT_MAX_BYTES as u64,
        });
    }
    Ok(EncodedPorts {
        content: ContentHash::of(&identity),
        bytes: row,
    })
}

fn tagged(out: &mut Vec<u8>, tag: u64, hash: &ContentHash) {
    let mut out = CanonicalWriter::new(out);
    out.array(2);
    out.whole(tag);
    out.bytes(hash.as_bytes());
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn datum() -> impl Strategy<Value = Datum> {
        let leaf = prop_oneof![
            Just(Datum::Null),
            any::<bool>().prop_map(Datum::Bool),
            any::<i64>().prop_map(Datum::Int),
            any::<u64>().prop_map(Datum::whole),
            any::<f64>()
                .prop_filter("no canonical form", |value| !value.is_nan())
                .prop_map(|value| Datum::Float(if value == 0.0 { 0.0 } else { value })),
            ".{0,40}".prop_map(Datum::Text),
        ];
        leaf.prop_recursive(5, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Datum::List),
                prop::collection::btree_map(".{0,30}", inner, 0..8).prop_map(Datum::Map),
            ]
        })
    }

    fn value() -> impl Strategy<Value = StoredValue> {
        prop_oneof![
            datum().prop_map(StoredValue::Small),
            (any::<[u8; 32]>(), any::<u64>(), ".{0,20}").prop_map(|(hash, bytes, media_type)| {
                StoredValue::Blob(StoredBlob {
                    hash: ContentHash::from_bytes(hash),
                    bytes,
                    media_type,
                })
            }),
            prop::option::of(".{0,20}").prop_map(StoredValue::Blocked),
        ]
    }

    fn ports() -> impl Strategy<Value = Vec<StoredPort>> {
        let port = (any::<bool>(), prop::collection::vec(value(), 0..5))
            .prop_map(|(list, elements)| StoredPort { list, elements });
        prop::collection::vec(port, 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn rows_read_back_as_written(ports in ports()) {
            let bytes = encode_ports(&ports).unwrap();
            prop_assert_eq!(decode_ports(&bytes), Ok(ports));
        }

        #[test]
        fn cut_rows_are_errors(ports in ports(), at in any::<prop::sample::Index>()) {
            let bytes = encode_ports(&ports).unwrap();
            let cut = at.index(bytes.len());
            prop_assert!(decode_ports(&bytes[..cut]).is_err());
        }

        #[test]
        fn what_is_read_from_any_bytes_is_canonical(
            ports in ports(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = encode_ports(&ports).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(read) = decode_ports(&bytes) {
                prop_assert_eq!(encode_ports(&read).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn hostile_counts_and_depths_are_refused() {
        let deep = [
            &[1, 0x81, 0x82, 0xf4, 0x81, 0x82, 0x00][..],
            &[0x81; 100_000],
        ]
        .concat();
        for (name, bytes) in [
            ("nothing", &[][..]),
            ("another version", &[2, 0x80]),
            (
                "2^64 - 1 ports",
                &[1, 0x9b, 255, 255, 255, 255, 255, 255, 255, 255],
            ),
            (
                "2^32 - 1 elements",
                &[1, 0x81, 0x82, 0xf4, 0x9a, 255, 255, 255, 255],
            ),
            ("an indefinite list", &[1, 0x9f, 0xff]),
            ("a length in a longer form", &[1, 0x98, 0]),
            ("bytes after the end", &[1, 0x80, 0]),
            (
                "a tag of no kind",
                &[1, 0x81, 0x82, 0xf4, 0x81, 0x82, 0x07, 0xf6],
            ),
            ("a hundred thousand lists in each other", &deep),
        ] {
            assert!(decode_ports(bytes).is_err(), "{name} was read");
        }
    }

    #[test]
    fn identity_is_kind_and_content() {
        let hash = ContentHash::of(b"x");
        let blob = |media_type: &str| {
            let blob = StoredBlob {
                hash,
                bytes: 1,
                media_type: media_type.to_owned(),
            };
            content_of(&[StoredPort::one(StoredValue::Blob(blob))]).unwrap()
        };
        assert_eq!(blob("image/png"), blob("image/x-png"));
        let of = |list: bool, value: StoredValue| {
            let elements = vec![value];
            content_of(&[StoredPort { list, elements }]).unwrap()
        };
        let text = || StoredValue::Small(Datum::from("x"));
        assert_ne!(of(false, text()), of(true, text()));
        assert_ne!(of(false, text()), blob("text/plain"));
        // Pinned: contents of stored results and keys below them hang on it.
        assert_eq!(of(false, text()).short(), "b594c4370698");
    }

    #[test]
    fn the_deepest_value_that_has_a_canonical_form_is_read_back() {
        let mut datum = Datum::Null;
        for _ in 0..Datum::MAX_DEPTH {
            datum = Datum::List(vec![datum]);
        }
        let ports = vec![StoredPort::one(StoredValue::Small(datum.clone()))];
        assert_eq!(decode_ports(&encode_ports(&ports).unwrap()), Ok(ports));
        let deeper = StoredPort::one(StoredValue::Small(Datum::List(vec![datum])));
        assert!(matches!(encode_ports(&[deeper]), Err(StoreError::Value(_))));
    }
}
