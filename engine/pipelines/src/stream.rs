//! Bytes of tokens into text, whole characters at a time.

/// Puts a stream of byte pieces together into text.
///
/// Only whole characters leave it. Bytes that can never become one are replaced by one U+FFFD as
/// soon as that is known; a character cut by the end of the stream becomes one when
/// [`TextStream::finish`] is called.
#[derive(Debug, Clone, Default)]
pub struct TextStream {
    /// The beginning of a character, at most 3 bytes.
    pending: Vec<u8>,
}

impl TextStream {
    /// A stream nothing came from.
    pub fn new() -> Self {
        Self::default()
    }

    /// Take `bytes` and append what is certain now to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        let joined;
        let mut rest = if self.pending.is_empty() {
            bytes
        } else {
            self.pending.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.pending);
            &joined[..]
        };
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(whole) => {
                    text.push_str(whole);
                    return;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(bad) = error.error_len() else {
                        self.pending = after.to_vec();
                        return;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[bad..];
                }
            }
        }
    }

    /// End the stream: a begun character becomes one U+FFFD.
    pub fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn streamed(pieces: &[Vec<u8>]) -> (Vec<String>, String) {
        let mut stream = TextStream::new();
        let mut out = Vec::new();
        let mut all = String::new();
        for piece in pieces {
            let mut text = String::new();
            stream.push(piece, &mut text);
            all.push_str(&text);
            out.push(text);
        }
        stream.finish(&mut all);
        (out, all)
    }

    #[test]
    fn reported_cases_give_their_exact_text() {
        let cases = include_str!("../../../tests/cases/api-03/cases.json");
        let cases: Vec<Value> = serde_json::from_str(cases).expect("the case file is JSON");
        assert_eq!(cases.len(), 7);
        for case in &cases {
            let pieces: Vec<Vec<u8>> = case["tokens_hex"]
                .as_array()
                .expect("a list of tokens")
                .iter()
                .map(|token| {
                    let hex = token.as_str().expect("hex digits");
                    hex.split(' ')
                        .map(|b| u8::from_str_radix(b, 16).expect("a byte"))
                        .collect()
                })
                .collect();
            let (_, text) = streamed(&pieces);
            assert_eq!(text, case["content"].as_str().expect("text"), "{case}");
        }
    }

    #[test]
    fn a_bad_byte_holds_nothing_back() {
        let (out, _) = streamed(&[b"a\xff".to_vec(), b"b".to_vec(), vec![0xe5], b"c".to_vec()]);
        assert_eq!(out, ["a\u{fffd}", "b", "", "\u{fffd}c"]);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_text_of_the_whole(bytes: Vec<u8>, cuts: Vec<prop::sample::Index>) {
            let mut at: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<Vec<u8>> = at.windows(2).map(|w| bytes[w[0]..w[1]].to_vec()).collect();
            let (_, text) = streamed(&pieces);
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn text_cut_anywhere_comes_back(text: String, cut: prop::sample::Index) {
            let at = cut.index(text.len() + 1);
            let (first, second) = text.as_bytes().split_at(at);
            let (_, joined) = streamed(&[first.to_vec(), second.to_vec()]);
            prop_assert_eq!(joined, text);
        }
    }
}
