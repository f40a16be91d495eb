//! Writes GGUF files, right ones and wrong ones.

/// A file to be.
#[derive(Clone)]
pub(crate) struct GgufFile {
    pub(crate) version: u32,
    pub(crate) alignment: usize,
    keys: Vec<Vec<u8>>,
    tensors: Vec<(Vec<u8>, Vec<u8>)>,
    /// Overrides of what is written, for wrong files.
    pub(crate) tensor_count: Option<u64>,
    pub(crate) key_count: Option<u64>,
    offset: u64,
}

pub(crate) fn text(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u64).to_le_bytes().to_vec();
    out.extend(bytes);
    out
}

impl GgufFile {
    pub(crate) fn new() -> Self {
        Self {
            version: 3,
            alignment: 32,
            keys: Vec::new(),
            tensors: Vec::new(),
            tensor_count: None,
            key_count: None,
            offset: 0,
        }
    }

    /// Add a key whose value is already encoded.
    pub(crate) fn key(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        let mut entry = text(key.as_bytes());
        entry.extend(kind.to_le_bytes());
        entry.extend(value);
        self.keys.push(entry);
        self
    }

    pub(crate) fn text_key(self, key: &str, value: &str) -> Self {
        self.key(key, 8, &text(value.as_bytes()))
    }

    pub(crate) fn u32_key(self, key: &str, value: u32) -> Self {
        self.key(key, 4, &value.to_le_bytes())
    }

    /// Add an array of `len` encoded elements.
    pub(crate) fn array_key(self, key: &str, kind: u32, len: u64, elements: &[u8]) -> Self {
        let mut value = kind.to_le_bytes().to_vec();
        value.extend(len.to_le_bytes());
        value.extend(elements);
        self.key(key, 9, &value)
    }

    /// Add a tensor, dimensions innermost first as in the file, after those before it.
    pub(crate) fn tensor(self, name: &str, dims: &[u64], type_id: u32, data: &[u8]) -> Self {
        let offset = self.offset;
        self.tensor_at(name, dims, type_id, data, offset)
    }

    /// Add a tensor that says it lies at `offset`.
    pub(crate) fn tensor_at(
        mut self,
        name: &str,
        dims: &[u64],
        type_id: u32,
        data: &[u8],
        offset: u64,
    ) -> Self {
        let mut entry = text(name.as_bytes());
        entry.extend((dims.len() as u32).to_le_bytes());
        for dim in dims {
            entry.extend(dim.to_le_bytes());
        }
        entry.extend(type_id.to_le_bytes());
        entry.extend(offset.to_le_bytes());
        self.offset += data.len().next_multiple_of(self.alignment) as u64;
        self.tensors.push((entry, data.to_vec()));
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        let tensors = self.tensor_count.unwrap_or(self.tensors.len() as u64);
        out.extend(tensors.to_le_bytes());
        let keys = self.key_count.unwrap_or(self.keys.len() as u64);
        out.extend(keys.to_le_bytes());
        out.extend(self.keys.concat());
        for (entry, _) in &self.tensors {
            out.extend(entry);
        }
        for (_, data) in &self.tensors {
            out.resize(out.len().next_multiple_of(self.alignment), 0);
            out.extend(data);
        }
        out
    }
}

/// Little-endian bytes of floats.
pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// A file with something of every kind.
pub(crate) fn varied() -> GgufFile {
    let tokens: Vec<u8> = [&b"<s>"[..], "é".as_bytes(), b"", b"\xff"]
        .iter()
        .flat_map(|token| text(token))
        .collect();
    let nested = [text(b"a"), text(b"bc")].concat();
    let inner = [&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &nested].concat();
    let packed: Vec<u8> = (0..20u8 * 2).map(|n| n.wrapping_mul(37)).collect();
    GgufFile::new()
        .text_key("general.architecture", "llama")
        .text_key("general.name", "varied")
        .u32_key("llama.block_count", 2)
        .key("u8", 0, &[200])
        .key("i8", 1, &[200])
        .key("u16", 2, &50_000u16.to_le_bytes())
        .key("i16", 3, &(-5i16).to_le_bytes())
        .key("i32", 5, &(-70_000i32).to_le_bytes())
        .key("f32", 6, &0.25f32.to_le_bytes())
        .key("yes", 7, &[1])
        .key("u64", 10, &u64::MAX.to_le_bytes())
        .key("i64", 11, &i64::MIN.to_le_bytes())
        .key("f64", 12, &(-0.1f64).to_le_bytes())
        .key("broken", 8, &text(b"\xc3"))
        .array_key("tokens", 8, 4, &tokens)
        .array_key(
            "types",
            5,
            3,
            &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0],
        )
        .array_key("scores", 6, 2, &floats(&[-1.5, 2.0]))
        .array_key("flags", 7, 2, &[1, 0])
        .array_key("nested", 9, 1, &inner)
        .array_key("none", 8, 0, &[])
        .tensor("w", &[3, 2], 0, &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
        .tensor("packed", &[32, 2], 3, &packed)
        .tensor("scalar", &[], 0, &floats(&[7.0]))
        .tensor("empty", &[0, 4], 0, &[])
        .tensor("ids", &[2], 26, &[1, 0, 0, 0, 2, 0, 0, 0])
}
