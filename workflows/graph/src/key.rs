//! Keys: what identifies a call of a node.

use engine_base::{CanonicalWriter, ContentHash, Datum, DatumError, Key};

use crate::node::Node;
use crate::spec::{NodeSpec, Widget};
use crate::value::Value;

/// First item of every key's encoding; raised when the layout changes.
const TAG: &str = "longtake/key/1";

/// What stands in one input when a call is keyed.
#[derive(Debug, Clone, Copy)]
pub enum KeyInput<'a> {
    /// Nothing. Where the widget has a default, the default counts. A lazy input that was not asked
    /// for is absent too.
    Absent,
    /// A widget value.
    Literal(&'a Datum),
    /// One linked element by its [`Value::identity`].
    One(u8, ContentHash),
    /// The linked list of a `whole_list` input by its elements' identities.
    List(&'a [(u8, ContentHash)]),
}

/// Why a call has no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not as many inputs as the spec has.
    #[error("cannot take a key of {type_name:?}: expected {expected} inputs, got {got}")]
    InputCount {
        /// The node type.
        type_name: &'static str,
        /// Inputs in the spec.
        expected: usize,
        /// Inputs handed in.
        got: usize,
    },
    /// A value has no canonical form.
    #[error("cannot take a key of {type_name:?}, {port}: {source}")]
    Value {
        /// The node type.
        type_name: &'static str,
        /// The input, or `side data`.
        port: String,
        /// What is wrong with the value.
        source: DatumError,
    },
}

/// Makes keys of one node type: what all its calls share is encoded once.
///
/// A key is BLAKE3 over this canonical CBOR item (see [`engine_base::CanonicalWriter`]):
///
/// ```text
/// [ "longtake/key/1", type name, type version, [ input, … ], side data ]
/// input   = null                   nothing stands there
///         | [ element, … ]         one element; for whole_list inputs the whole list
/// element = [ kind, h'32 bytes' ]  0 plain data: hash of its canonical encoding
///                                  1 file: content hash of its bytes
///                                  2 loaded thing: hash of what it was made from
/// ```
///
/// Inputs stand in the spec's port order, all of them, with defaults filled in. A widget value is an
/// element of kind 0 over its one form (see [`Widget::normalise`]), so typing a constant and
/// linking a node that gives it are the same work. Ids, titles, layout, modes, targets, input names
/// and the order of anything but ports have no place in it.
#[derive(Debug, Clone)]
pub struct KeyMaker {
    type_name: &'static str,
    head: Vec<u8>,
    inputs: Vec<KeyedInput>,
    side_data: Vec<u8>,
}

#[derive(Debug, Clone)]
struct KeyedInput {
    name: &'static str,
    widget: Option<Widget>,
    default: Option<ContentHash>,
}

impl KeyMaker {
    /// A maker for `node`, with the side data it states.
    ///
    /// # Errors
    /// [`KeyError::Value`] when a default or the side data has no canonical form.
    pub fn new(node: &dyn Node) -> Result<Self, KeyError> {
        Self::of(node.spec(), &node.side_data())
    }

    /// A maker for the type that `spec` describes.
    ///
    /// # Errors
    /// As [`KeyMaker::new`].
    pub fn of(spec: &NodeSpec, side_data: &Datum) -> Result<Self, KeyError> {
        let type_name = spec.type_name;
        let mut head = Vec::with_capacity(64);
        let mut writer = CanonicalWriter::new(&mut head);
        writer.array(5);
        writer.text(TAG);
        writer.text(type_name);
        writer.whole(spec.version.into());
        writer.array(spec.inputs.len());
        let mut inputs = Vec::with_capacity(spec.inputs.len());
        for input in &spec.inputs {
            let default = input.widget.as_ref().and_then(Widget::default_datum);
            let default = default.map(|datum| datum.content_hash()).transpose();
            inputs.push(KeyedInput {
                name: input.name,
                widget: input.widget.clone(),
                default: default.map_err(|source| fault(type_name, input.name, source))?,
            });
        }
        let side_data = side_data.canonical().map_err(|source| KeyError::Value {
            type_name,
            port: "side data".to_owned(),
            source,
        })?;
        Ok(Self {
            type_name,
            head,
            inputs,
            side_data,
        })
    }

    /// The key of a call with `inputs` in port order.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn key(&self, inputs: &[KeyInput<'_>]) -> Result<Key, KeyError> {
        Ok(Key::of_canonical(&self.encode(inputs)?))
    }

    /// What the key is taken over.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn encode(&self, inputs: &[KeyInput<'_>]) -> Result<Vec<u8>, KeyError> {
        /// Encoded size of an element in an array of its own.
        const ONE_BYTES: usize = 37;
        if inputs.len() != self.inputs.len() {
            return Err(KeyError::InputCount {
                type_name: self.type_name,
                expected: self.inputs.len(),
                got: inputs.len(),
            });
        }
        let room = self.head.len() + ONE_BYTES * inputs.len() + self.side_data.len();
        let mut out = Vec::with_capacity(room);
        out.extend_from_slice(&self.head);
        let mut scratch = Vec::new();
        for (keyed, input) in self.inputs.iter().zip(inputs) {
            match *input {
                KeyInput::Absent => match keyed.default {
                    Some(hash) => elements(&mut out, &[(Value::DATA_KIND, hash)]),
                    None => CanonicalWriter::new(&mut out).null(),
                },
                KeyInput::Literal(datum) => {
                    let datum = match &keyed.widget {
                        Some(widget) => widget.normalise(datum),
                        None => std::borrow::Cow::Borrowed(datum),
                    };
                    scratch.clear();
                    let encoded = datum.canonical_into(&mut scratch);
                    encoded.map_err(|source| fault(self.type_name, keyed.name, source))?;
                    elements(&mut out, &[(Value::DATA_KIND, ContentHash::of(&scratch))]);
                }
                KeyInput::One(kind, hash) => elements(&mut out, &[(kind, hash)]),
                KeyInput::List(list) => elements(&mut out, list),
            }
        }
        CanonicalWriter::new(&mut out).encoded(&self.side_data);
        Ok(out)
    }
}

fn elements(out: &mut Vec<u8>, list: &[(u8, ContentHash)]) {
    let mut writer = CanonicalWriter::new(out);
    writer.array(list.len());
    for (kind, hash) in list {
        writer.array(2);
        writer.whole((*kind).into());
        writer.bytes(hash.as_bytes());
    }
}

fn fault(type_name: &'static str, input: &str, source: DatumError) -> KeyError {
    KeyError::Value {
        type_name,
        port: format!("input {input:?}"),
        source,
    }
}

/// The key of a call of the type that `spec` describes, with `inputs` in port order. For many calls
/// of one type a [`KeyMaker`] is quicker.
///
/// # Errors
/// [`KeyError`].
pub fn key(spec: &NodeSpec, inputs: &[KeyInput<'_>], side_data: &Datum) -> Result<Key, KeyError> {
    KeyMaker::of(spec, side_data)?.key(inputs)
}
