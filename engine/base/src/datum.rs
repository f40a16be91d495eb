//! Canonical data values: the JSON-like tree over which content hashes and keys are taken.

use std::collections::BTreeMap;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::hash::ContentHash;

/// A plain data value. Maps are ordered by name; integers and floats stay apart, as in the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Datum {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number below zero or in `i64`'s range.
    Int(i64),
    /// A whole number above `i64::MAX` (seeds reach 2^64 - 1).
    Uint(u64),
    /// A number with a fraction. Never NaN in canonical form.
    Float(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Datum>),
    /// Values by name.
    Map(BTreeMap<String, Datum>),
}

/// Why a value has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatumError {
    /// NaN equals nothing, so it cannot be part of a key.
    #[error("cannot take a key over {at}: expected a number, got NaN")]
    Nan {
        /// Where in the value.
        at: String,
    },
    /// Nested deeper than [`Datum::MAX_DEPTH`].
    #[error(
        "cannot take a key over a value nested more than {} deep",
        Datum::MAX_DEPTH
    )]
    TooDeep,
}

impl Datum {
    /// Deepest nesting that is encoded or read.
    pub const MAX_DEPTH: usize = 64;

    /// A whole number in its one form: `Int` where it fits, else `Uint`.
    pub fn whole(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Uint(value), Self::Int)
    }

    /// A map from name and value pairs.
    pub fn map<N: Into<String>>(pairs: impl IntoIterator<Item = (N, Datum)>) -> Self {
        Self::Map(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        )
    }

    /// Text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// True or false, if it is that.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// A whole number in `i64`'s range. A float with no fraction counts.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Uint(value) => i64::try_from(*value).ok(),
            // 2^63 itself does not fit; below it every whole f64 converts exactly.
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9.2e18 => {
                Some(*value as i64)
            }
            _ => None,
        }
    }

    /// A whole number of zero or more.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Uint(value) => Some(*value),
            other => other.as_i64().and_then(|value| u64::try_from(value).ok()),
        }
    }

    /// Any number as a float.
    pub const fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Uint(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[Datum]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The map, if it is one.
    pub const fn as_map(&self) -> Option<&BTreeMap<String, Datum>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The member `name` of a map.
    pub fn get(&self, name: &str) -> Option<&Datum> {
        self.as_map().and_then(|map| map.get(name))
    }

    /// What it is, in a word, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Uint(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// Canonical CBOR (RFC 8949 section 4.2.1: shortest lengths, names sorted by encoded bytes),
    /// with two choices of our own: every integer that fits `i64` is one, every float is 64 bits
    /// with -0 written as 0.
    ///
    /// # Errors
    /// [`DatumError`] for NaN and for nesting over [`Datum::MAX_DEPTH`].
    pub fn canonical(&self) -> Result<Vec<u8>, DatumError> {
        let mut out = Vec::with_capacity(64);
        self.canonical_into(&mut out)?;
        Ok(out)
    }

    /// Append the canonical encoding to `out`. After an error `out` holds part of it.
    ///
    /// # Errors
    /// As [`Datum::canonical`].
    pub fn canonical_into(&self, out: &mut Vec<u8>) -> Result<(), DatumError> {
        self.encode(out, 0, "the value")
    }

    /// Hash of the canonical encoding.
    ///
    /// # Errors
    /// As [`Datum::canonical`].
    pub fn content_hash(&self) -> Result<ContentHash, DatumError> {
        Ok(ContentHash::of(&self.canonical()?))
    }

    fn encode(&self, out: &mut Vec<u8>, depth: usize, at: &str) -> Result<(), DatumError> {
        if depth > Self::MAX_DEPTH {
            return Err(DatumError::TooDeep);
        }
        match self {
            Self::Null => out.push(0xf6),
            Self::Bool(value) => out.push(if *value { 0xf5 } else { 0xf4 }),
            Self::Int(value) if *value < 0 => head(out, 1, !(*value as u64)),
            Self::Int(value) => head(out, 0, *value as u64),
            Self::Uint(value) => head(out, 0, *value),
            Self::Float(value) => {
                if value.is_nan() {
                    return Err(DatumError::Nan { at: at.to_owned() });
                }
                let value = if *value == 0.0 { 0.0 } else { *value };
                out.push(0xfb);
                out.extend_from_slice(&value.to_bits().to_be_bytes());
            }
            Self::Text(text) => encode_text(out, text),
            Self::List(items) => {
                head(out, 4, items.len() as u64);
                for item in items {
                    item.encode(out, depth + 1, at)?;
                }
            }
            Self::Map(map) => {
                head(out, 5, map.len() as u64);
                // Encoded order of text is by length, then bytes: the head carries the length.
                let mut names: Vec<&String> = map.keys().collect();
                names.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
                for name in names {
                    encode_text(out, name);
                    map[name].encode(out, depth + 1, name)?;
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn encode_text(out: &mut Vec<u8>, text: &str) {
    head(out, 3, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// CBOR item head: major type and argument in the shortest form.
pub(crate) fn head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let major = major << 5;
    if argument < 24 {
        out.push(major | argument as u8);
    } else if let Ok(byte) = u8::try_from(argument) {
        out.extend_from_slice(&[major | 24, byte]);
    } else if let Ok(short) = u16::try_from(argument) {
        out.push(major | 25);
        out.extend_from_slice(&short.to_be_bytes());
    } else if let Ok(word) = u32::try_from(argument) {
        out.push(major | 26);
        out.extend_from_slice(&word.to_be_bytes());
    } else {
        out.push(major | 27);
        out.extend_from_slice(&argument.to_be_bytes());
    }
}

macro_rules! from_number {
    ($($from:ty => $make:expr),* $(,)?) => {$(
        impl From<$from> for Datum {
            fn from(value: $from) -> Self {
                $make(value)
            }
        }
    )*};
}

from_number! {
    bool => Datum::Bool,
    i32 => |v| Datum::Int(i64::from(v)),
    u32 => |v| Datum::Int(i64::from(v)),
    i64 => Datum::Int,
    u64 => Datum::whole,
    f64 => Datum::Float,
    String => Datum::Text,
    &str => |v: &str| Datum::Text(v.to_owned()),
    Vec<Datum> => Datum::List,
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Uint(value) => serializer.serialize_u64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(value) => value.serialize(serializer),
            Self::Map(value) => value.serialize(serializer),
        }
    }
}

struct DatumVisitor;

impl<'de> Visitor<'de> for DatumVisitor {
    type Value = Datum;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a plain value (nothing, true, false, number, text, list or map)")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Datum, E> {
        Ok(Datum::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Datum, E> {
        Ok(Datum::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Datum, D::Error> {
        Datum::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Datum, E> {
        Ok(Datum::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Datum, E> {
        Ok(Datum::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Datum, E> {
        Ok(Datum::whole(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Datum, E> {
        Ok(Datum::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Datum, E> {
        Ok(Datum::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Datum, E> {
        Ok(Datum::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Datum, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Datum::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Datum, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Datum>()? {
            if members.contains_key(&name) {
                return Err(de::Error::custom(format!(
                    "the name {name:?} stands twice in one map"
                )));
            }
            members.insert(name, value);
        }
        Ok(Datum::Map(members))
    }
}

impl<'de> Deserialize<'de> for Datum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DatumVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(datum: &Datum) -> String {
        datum
            .canonical()
            .unwrap()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    #[test]
    fn encodes_as_rfc_8949_appendix_a() {
        let cases: [(Datum, &str); 13] = [
            (Datum::Int(0), "00"),
            (Datum::Int(23), "17"),
            (Datum::Int(24), "1818"),
            (Datum::Int(1000), "1903e8"),
            (Datum::Int(1_000_000), "1a000f4240"),
            (Datum::Uint(u64::MAX), "1bffffffffffffffff"),
            (Datum::Int(-1), "20"),
            (Datum::Int(-1000), "3903e7"),
            (Datum::Float(1.1), "fb3ff199999999999a"),
            (Datum::Text("IETF".into()), "6449455446"),
            (
                Datum::List(vec![Datum::Int(1), Datum::List(vec![])]),
                "820180",
            ),
            (
                Datum::map([("b", Datum::Int(2)), ("a", Datum::Int(1))]),
                "a2616101616202",
            ),
            (
                Datum::map([("aa", Datum::Null), ("b", Datum::Bool(true))]),
                "a26162f5626161f6",
            ),
        ];
        for (datum, expected) in cases {
            assert_eq!(hex(&datum), expected, "{datum:?}");
        }
    }

    #[test]
    fn minus_zero_is_zero_and_nan_is_refused() {
        assert_eq!(hex(&Datum::Float(-0.0)), hex(&Datum::Float(0.0)));
        let nan = Datum::map([("gain", Datum::Float(f64::NAN))]);
        assert_eq!(nan.canonical(), Err(DatumError::Nan { at: "gain".into() }));
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        let mut datum = Datum::Null;
        for _ in 0..1000 {
            datum = Datum::List(vec![datum]);
        }
        assert_eq!(datum.canonical(), Err(DatumError::TooDeep));
    }

    #[test]
    fn json_round_trips_with_large_seeds() {
        let text = r#"{"a":[1,-2,1.5,null,true],"seed":18446744073709551615}"#;
        let datum: Datum = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&datum).unwrap(), text);
        assert_eq!(datum.get("seed").and_then(Datum::as_u64), Some(u64::MAX));
        assert!(serde_json::from_str::<Datum>(r#"{"a":1,"a":2}"#).is_err());
    }
}
