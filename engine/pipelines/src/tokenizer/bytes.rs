//! The bytes each token stands for.

use serde_json::Value;

use super::{MAX_TOKEN_BYTES, MAX_VOCAB_TOKENS, TokenizerError};

/// Bytes and kind of every token of a vocabulary.
pub(crate) struct TokenTable {
    bytes: Vec<u8>,
    /// End of each token in `bytes`.
    ends: Vec<u32>,
    special: Vec<bool>,
    byte_exact: bool,
}

/// How the names of tokens stand for bytes.
#[derive(Debug, Default)]
struct NameRules {
    /// Each character of a name is one byte.
    byte_level: bool,
    /// Names like `<0x0A>` are one byte.
    byte_fallback: bool,
    /// Stands for a blank.
    blank: Option<String>,
    /// Marks the end of a word, and so stands for a blank.
    word_end: Option<String>,
    /// Marks a token that continues a word.
    word_inside: Option<String>,
}

impl NameRules {
    /// Read off the decoder, which is where every kind of tokenizer says it.
    fn of_decoder(decoder: &Value) -> Self {
        let mut rules = Self::default();
        rules.read(decoder, 0);
        rules
    }

    fn read(&mut self, decoder: &Value, depth: usize) {
        let text = |key: &str| decoder[key].as_str().map(str::to_owned);
        match decoder["type"].as_str() {
            Some("ByteLevel") => self.byte_level = true,
            Some("ByteFallback") => self.byte_fallback = true,
            Some("Metaspace") => self.blank = text("replacement"),
            Some("BPEDecoder") => self.word_end = text("suffix"),
            Some("WordPiece") => self.word_inside = text("prefix"),
            Some("Replace") if decoder["content"] == " " => {
                self.blank = decoder["pattern"]["String"].as_str().map(str::to_owned);
            }
            Some("Sequence") if depth < 8 => {
                for part in decoder["decoders"].as_array().into_iter().flatten() {
                    self.read(part, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn bytes_of(&self, name: &str) -> Vec<u8> {
        if self.byte_level {
            let bytes: Option<Vec<u8>> = name.chars().map(byte_of_char).collect();
            return bytes.unwrap_or_else(|| name.as_bytes().to_vec());
        }
        if self.byte_fallback
            && let Some(byte) = byte_of_name(name)
        {
            return vec![byte];
        }
        if let Some(mark) = &self.word_inside {
            return match name.strip_prefix(mark.as_str()) {
                Some(inside) => inside.as_bytes().to_vec(),
                None => format!(" {name}").into_bytes(),
            };
        }
        let mut text = name.to_owned();
        for mark in [&self.blank, &self.word_end].into_iter().flatten() {
            if !mark.is_empty() {
                text = text.replace(mark.as_str(), " ");
            }
        }
        text.into_bytes()
    }
}

/// The byte of a name like `<0x0A>`.
fn byte_of_name(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// Byte-level vocabularies write printable Latin-1 characters for the bytes of the same number and
/// characters from U+0100 on for the other bytes, in their order.
fn byte_of_char(c: char) -> Option<u8> {
    match u32::from(c) {
        n @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(n as u8),
        n @ 0x100..=0x120 => Some((n - 0x100) as u8),
        n @ 0x121..=0x142 => Some((n - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

impl TokenTable {
    /// The table of a built tokenizer; `vocab` where ids without a token may follow the last.
    pub(crate) fn of(
        inner: &tokenizers::Tokenizer,
        vocab: Option<usize>,
    ) -> Result<Self, TokenizerError> {
        let decoder = serde_json::to_value(inner.get_decoder())
            .map_err(|error| TokenizerError::Broken(format!("its decoder: {error}")))?;
        let rules = NameRules::of_decoder(&decoder);
        let names = inner.get_vocab(true);
        let highest = names.values().copied().max();
        let len = highest.map_or(0, |highest| highest as usize + 1);
        let len = len.max(vocab.unwrap_or(0));
        if len > MAX_VOCAB_TOKENS {
            return Err(TokenizerError::Broken(format!(
                "its highest token is {}, expected at most {MAX_VOCAB_TOKENS} tokens",
                len - 1
            )));
        }
        let mut by_id: Vec<Option<&str>> = vec![None; len];
        #[expect(
            clippy::iter_over_hash_type,
            reason = "each entry goes to a place of its own"
        )]
        for (name, &id) in &names {
            // Of two names of one id the same one is kept in every run.
            let place = &mut by_id[id as usize];
            *place = (*place).max(Some(name.as_str()));
        }
        let added = inner.get_added_tokens_decoder();
        let mut table = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(len),
            special: vec![false; len],
            byte_exact: rules.byte_level && rules.word_end.is_none(),
        };
        for (id, name) in by_id.iter().enumerate() {
            if let Some(token) = added.get(&(id as u32)) {
                table.special[id] = token.special;
                table.push(id, token.content.as_bytes())?;
            } else {
                let bytes = name.map(|name| rules.bytes_of(name)).unwrap_or_default();
                table.push(id, &bytes)?;
            }
        }
        Ok(table)
    }

    fn push(&mut self, id: usize, bytes: &[u8]) -> Result<(), TokenizerError> {
        if bytes.len() > MAX_TOKEN_BYTES {
            return Err(TokenizerError::Broken(format!(
                "token {id} is {} bytes long, expected at most {MAX_TOKEN_BYTES}",
                bytes.len()
            )));
        }
        self.bytes.extend_from_slice(bytes);
        let end = u32::try_from(self.bytes.len())
            .map_err(|_the_count_says_it| TokenizerError::Broken("4 GiB of tokens".to_owned()))?;
        self.ends.push(end);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_special(&self, token: u32) -> bool {
        self.special.get(token as usize).copied().unwrap_or(false)
    }

    pub(crate) fn is_byte_exact(&self) -> bool {
        self.byte_exact
    }

    pub(crate) fn bytes(&self, token: u32) -> &[u8] {
        let at = token as usize;
        let Some(&end) = self.ends.get(at) else {
            return &[];
        };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start as usize..end as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let bytes: Vec<u8> = ('\0'..='\u{200}').filter_map(byte_of_char).collect();
        assert_eq!(bytes.len(), 256);
        assert_eq!(bytes.into_iter().collect::<BTreeSet<u8>>().len(), 256);
        assert_eq!(byte_of_char('Ġ'), Some(b' '));
        assert_eq!(byte_of_char('Ċ'), Some(b'\n'));
        let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        assert!(alphabet.into_iter().all(|c| byte_of_char(c).is_some()));
    }

    #[test]
    fn names_of_bytes_are_read_exactly() {
        assert_eq!(byte_of_name("<0x0A>"), Some(10));
        assert_eq!(byte_of_name("<0xff>"), Some(255));
        for other in ["<0x>", "<0x0>", "<0x0AB>", "<0xG0>", "0x0A", "<0x+1>"] {
            assert_eq!(byte_of_name(other), None, "{other}");
        }
    }
}
