//! Element types, plain and packed in blocks.

use std::fmt;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident: $elements:expr, $bytes:expr;)*) => {
        /// How the elements of a tensor are stored.
        ///
        /// Packed types hold `block_elements` neighbours of a row in `block_bytes`; layouts are
        /// GGUF v3's.
        #[expect(non_camel_case_types, reason = "the names of the field's files")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum DType { $($(#[$doc])* $name,)* }

        impl DType {
            /// All types.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name, as written in files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Elements of one block; 1 for plain types.
            pub const fn block_elements(self) -> usize {
                match self { $(Self::$name => $elements,)* }
            }

            /// Bytes of one block.
            pub const fn block_bytes(self) -> usize {
                match self { $(Self::$name => $bytes,)* }
            }
        }
    };
}

dtypes! {
    /// 32-bit float.
    F32: 1, 4;
    /// IEEE 16-bit float.
    F16: 1, 2;
    /// bfloat16.
    BF16: 1, 2;
    /// 8-bit float of 4 bits of exponent and 3 of fraction, without infinities; read only.
    F8_E4M3: 1, 1;
    /// 64-bit float; read only.
    F64: 1, 8;
    /// Signed whole numbers.
    I8: 1, 1;
    /// Signed whole numbers.
    I16: 1, 2;
    /// Signed whole numbers.
    I32: 1, 4;
    /// Signed whole numbers.
    I64: 1, 8;
    /// Bytes.
    U8: 1, 1;
    /// One byte, 0 or 1.
    Bool: 1, 1;
    /// 4 bits, one scale.
    Q4_0: 32, 18;
    /// 4 bits, scale and minimum.
    Q4_1: 32, 20;
    /// 5 bits, one scale.
    Q5_0: 32, 22;
    /// 5 bits, scale and minimum.
    Q5_1: 32, 24;
    /// 8 bits, one scale.
    Q8_0: 32, 34;
    /// 2 bits in superblocks.
    Q2_K: 256, 84;
    /// 3 bits in superblocks.
    Q3_K: 256, 110;
    /// 4 bits in superblocks.
    Q4_K: 256, 144;
    /// 5 bits in superblocks.
    Q5_K: 256, 176;
    /// 6 bits in superblocks.
    Q6_K: 256, 210;
    /// 4 bits into a fixed table of levels.
    IQ4_NL: 32, 18;
}

impl DType {
    /// Bytes of `elements` neighbours; `None` when they are not whole blocks or too many.
    pub const fn bytes_of(self, elements: usize) -> Option<usize> {
        if !elements.is_multiple_of(self.block_elements()) {
            return None;
        }
        (elements / self.block_elements()).checked_mul(self.block_bytes())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
