//! Reading JSON with the place of every value, for faults that name line and column.

use crate::fault::{Fault, excerpt};
use crate::tree::{At, Entry, Node, Value};

const DEPTH_MAX: usize = 16;
const VALUES_MAX: usize = 400_000;

/// Read one JSON value and nothing after it.
pub(crate) fn read(text: &str) -> Result<Node, Box<Fault>> {
    let mut reader = Reader {
        text,
        offset: 0,
        mark: 0,
        at: At { line: 1, column: 1 },
        values: 0,
    };
    let node = reader.value(0)?;
    reader.skip_space();
    if reader.offset < text.len() {
        return Err(reader.refused("the end of the file after the script's closing '}'"));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    offset: usize,
    /// Offset up to which `at` has been counted; only ever moves on.
    mark: usize,
    at: At,
    values: usize,
}

impl<'a> Reader<'a> {
    fn here(&mut self) -> At {
        for character in self.text[self.mark..self.offset].chars() {
            if character == '\n' {
                self.at.line += 1;
                self.at.column = 1;
            } else {
                self.at.column += 1;
            }
        }
        self.mark = self.offset;
        self.at
    }

    fn refused(&mut self, expected: &str) -> Box<Fault> {
        let at = self.here();
        let rest = &self.text[self.offset..];
        let got = rest.lines().next().unwrap_or("").trim_end();
        let got = if rest.is_empty() {
            "the end of the file"
        } else {
            got
        };
        Box::new(Fault {
            line: Some(at.line),
            column: Some(at.column),
            problem: "cannot read the JSON".to_owned(),
            got: excerpt(got),
            expected: expected.to_owned(),
            ..Fault::default()
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let here = self.peek() == Some(byte);
        self.offset += usize::from(here);
        here
    }

    fn value(&mut self, depth: usize) -> Result<Node, Box<Fault>> {
        self.skip_space();
        self.values += 1;
        if depth > DEPTH_MAX {
            return Err(self.refused(&format!("at most {DEPTH_MAX} levels of nesting")));
        }
        if self.values > VALUES_MAX {
            return Err(self.refused(&format!("at most {VALUES_MAX} values")));
        }
        let at = self.here();
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at, value })
    }

    fn word(&mut self) -> Result<Value, Box<Fault>> {
        for (word, value) in [
            ("null", Value::Null),
            ("true", Value::Bool),
            ("false", Value::Bool),
        ] {
            if self.text[self.offset..].starts_with(word) {
                self.offset += word.len();
                return Ok(value);
            }
        }
        Err(self.refused("a value: text in double quotes, a number, '{' or '['"))
    }

    fn number(&mut self) -> Result<Value, Box<Fault>> {
        let rest = &self.text[self.offset..];
        let length = rest
            .bytes()
            .position(|b| !(b.is_ascii_digit() || b"+-.eE".contains(&b)))
            .unwrap_or(rest.len());
        let digits = &rest[..length];
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() && length <= 40 => {
                self.offset += length;
                // An exponent is written out, since single values are read from plain digits.
                let plain = digits
                    .bytes()
                    .all(|b| b.is_ascii_digit() || b"-.".contains(&b));
                let written = if plain {
                    digits.to_owned()
                } else {
                    value.to_string()
                };
                Ok(Value::Number(written))
            }
            _ => Err(self.refused("a number")),
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Box<Fault>> {
        self.offset += 1;
        let mut entries = Vec::new();
        if self.takes(b'}') {
            return Ok(Value::Map(entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.refused("a field name in double quotes"));
            }
            let at = self.here();
            let name = self.string()?;
            if !self.takes(b':') {
                return Err(self.refused("':' after the field name"));
            }
            let node = self.value(depth + 1)?;
            entries.push(Entry { name, at, node });
            if self.takes(b'}') {
                return Ok(Value::Map(entries));
            }
            if !self.takes(b',') {
                return Err(self.refused("',' or '}'"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Box<Fault>> {
        self.offset += 1;
        let mut items = Vec::new();
        if self.takes(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.takes(b']') {
                return Ok(Value::List(items));
            }
            if !self.takes(b',') {
                return Err(self.refused("',' or ']'"));
            }
        }
    }

    fn string(&mut self) -> Result<String, Box<Fault>> {
        self.offset += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.offset..];
            let plain = rest
                .bytes()
                .position(|b| b == b'"' || b == b'\\' || b < 0x20)
                .unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.offset += plain;
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.refused("'\"' at the end of the text, \\n for a new line")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Box<Fault>> {
        let letter = self.text.as_bytes().get(self.offset + 1).copied();
        let plain = match letter {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b @ (b'"' | b'\\' | b'/')) => char::from(b),
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.refused("an escape such as \\n, \\\" or \\u00e9")),
        };
        self.offset += 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, Box<Fault>> {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
            let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
        };
        let (code, length) = match (unit(self.offset), unit(self.offset + 6)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                (Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12)
            }
            (code, _) => (code, 6),
        };
        match code.and_then(char::from_u32) {
            Some(character) => {
                self.offset += length;
                Ok(character)
            }
            None => Err(self.refused("\\u and four hexadecimal digits of a whole character")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(node: &Node) -> serde_json::Value {
        match &node.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool => true.into(),
            Value::Number(digits) => digits.parse::<f64>().unwrap().into(),
            Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(same).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.name.clone(), same(&entry.node)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            r#"{"a": [1.5, -2.0, true, null], "b": {"c": "\u00e9\ud83d\ude00\n\/"}}"#,
            "[]",
            "\"x\"",
            "{}",
            " { \"a\" : [ ] } \r\n",
        ] {
            let ours = same(&read(text).unwrap());
            assert_eq!(
                ours,
                serde_json::from_str::<serde_json::Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn faults_name_their_place() {
        let fault = read("{\n  \"é\": tru\n}").unwrap_err();
        assert_eq!((fault.line, fault.column), (Some(2), Some(8)));
        for wrong in [
            "",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\u{1}\"",
            "1 2",
            "{a:1}",
            "\"open",
            "--1",
            "1e999",
            "\"\\u12",
            "\"\\ué000\"",
        ] {
            assert!(read(wrong).is_err(), "{wrong:?} was read");
        }
    }

    #[test]
    fn deep_and_long_files_are_refused_at_once() {
        assert!(
            read(&"[".repeat(1_000_000))
                .unwrap_err()
                .expected
                .contains("levels")
        );
        let long = format!("[{}0]", "0,".repeat(500_000));
        assert!(read(&long).unwrap_err().expected.contains("values"));
    }
}
