//! Writing canonical CBOR piece by piece, without building a [`Datum`] first.

use crate::datum::{Datum, DatumError, encode_text, head};

/// Appends canonical CBOR items to a buffer. The caller sees to it that every array gets as many
/// items as it announced; what is written that way equals [`Datum::canonical`] of the same tree,
/// but for byte strings, which a [`Datum`] does not have.
#[derive(Debug)]
pub struct CanonicalWriter<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> CanonicalWriter<'o> {
    /// A writer that appends to `out`.
    pub const fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Begin an array of `items` items.
    pub fn array(&mut self, items: usize) {
        head(self.out, 4, items as u64);
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.push(0xf6);
    }

    /// True or false.
    pub fn bool(&mut self, value: bool) {
        self.out.push(if value { 0xf5 } else { 0xf4 });
    }

    /// A whole number of zero or more.
    pub fn whole(&mut self, value: u64) {
        head(self.out, 0, value);
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        encode_text(self.out, text);
    }

    /// A byte string.
    pub fn bytes(&mut self, bytes: &[u8]) {
        head(self.out, 2, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// Bytes that are canonical items already.
    pub fn encoded(&mut self, items: &[u8]) {
        self.out.extend_from_slice(items);
    }

    /// A plain data value.
    ///
    /// # Errors
    /// As [`Datum::canonical`].
    pub fn datum(&mut self, datum: &Datum) -> Result<(), DatumError> {
        datum.canonical_into(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_equal_the_whole() {
        let tree = Datum::List(vec![
            Datum::from("a"),
            Datum::whole(u64::MAX),
            Datum::List(vec![Datum::Null, Datum::Float(-0.0)]),
        ]);
        let mut out = Vec::new();
        let mut writer = CanonicalWriter::new(&mut out);
        writer.array(3);
        writer.text("a");
        writer.whole(u64::MAX);
        writer.array(2);
        writer.null();
        writer.datum(&Datum::Float(0.0)).unwrap();
        assert_eq!(out, tree.canonical().unwrap());
    }

    #[test]
    fn byte_strings_are_major_type_two() {
        let mut out = Vec::new();
        CanonicalWriter::new(&mut out).bytes(&[1, 2, 3, 4]);
        assert_eq!(out, [0x44, 1, 2, 3, 4], "RFC 8949 appendix A");
    }
}
