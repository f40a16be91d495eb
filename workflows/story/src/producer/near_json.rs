//! Reading JSON that a model nearly wrote: in code fences, with text around it, single quotes,
//! trailing commas, names without quotes, or cut off at the end.

use serde_json::{Map, Number, Value};

/// Longest reply that is looked at, in bytes.
const REPLY_BYTES_MAX: usize = 1_000_000;
const DEPTH_MAX: usize = 32;
/// Places at which a value may begin that are tried.
const STARTS_MAX: usize = 64;

/// The JSON object or list in `text`, mended as far as needed; `None` when there is none.
///
/// What is well-formed is read as any JSON reader reads it. An end that was cut off closes what
/// is open; a text that was cut off is kept as far as it goes.
pub fn near_json(text: &str) -> Option<Value> {
    let text = prefix(text, REPLY_BYTES_MAX);
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(trimmed) {
        return Some(value);
    }
    let body = fenced(trimmed).unwrap_or(trimmed);
    let mut best: Option<(usize, Value)> = None;
    let mut next = 0;
    for (start, _) in body.match_indices(['{', '[']).take(STARTS_MAX) {
        // What lies inside a value that was read is no other value.
        if start < next {
            continue;
        }
        let mut reader = Reader {
            rest: &body[start..],
        };
        let before = reader.rest.len();
        if let Some(value) = reader.value(0) {
            let taken = before - reader.rest.len();
            next = start + taken;
            let weight = weight(&value);
            if weight > 0 && best.as_ref().is_none_or(|(most, _)| weight > *most) {
                best = Some((weight, value));
            }
        }
    }
    best.map(|(_, value)| value)
}

fn prefix(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What stands between the first code fence and its end, when that holds a value.
fn fenced(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("```")?;
    let inside = after.split_once("```").map_or(after, |(inside, _)| inside);
    inside.contains(['{', '[']).then_some(inside)
}

/// How much an object or list holds; decides which of several is meant.
fn weight(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len() * 2 + fields.values().map(weight).sum::<usize>(),
        Value::Array(items) => {
            let plain = |item: &&Value| !item.is_array() && !item.is_object();
            items.iter().filter(plain).count() + items.iter().map(weight).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn skip_space(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let comment = self.rest.starts_with("//");
            let block = self.rest.starts_with("/*");
            if comment {
                self.rest = self.rest.split_once('\n').map_or("", |(_, after)| after);
            } else if block {
                self.rest = self.rest.split_once("*/").map_or("", |(_, after)| after);
            } else {
                return;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_space();
        match self.peek()? {
            '{' => self.object(depth),
            '[' => Some(self.list(depth)),
            quote @ ('"' | '\'' | '“' | '”' | '‘' | '`') => {
                self.take();
                Some(Value::String(self.string(quote)))
            }
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take();
        let mut fields = Map::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Some(Value::Object(fields)),
                Some('}') => {
                    self.take();
                    return Some(Value::Object(fields));
                }
                Some(',' | ';') => {
                    self.take();
                }
                Some(_) => {
                    let name = self.name()?;
                    self.skip_space();
                    match self.peek() {
                        Some(':' | '=') => {
                            self.take();
                            if self.rest.starts_with('>') {
                                self.take();
                            }
                        }
                        // Cut off after the name: it says nothing.
                        None => return Some(Value::Object(fields)),
                        Some(_) => return None,
                    }
                    match self.value(depth + 1) {
                        Some(value) => {
                            fields.insert(name, value);
                        }
                        None if self.rest.trim().is_empty() => {
                            return Some(Value::Object(fields));
                        }
                        None => return None,
                    }
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Value {
        self.take();
        let mut items = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Value::Array(items),
                Some(']') => {
                    self.take();
                    return Value::Array(items);
                }
                Some(',' | ';') => {
                    self.take();
                }
                Some(_) => match self.value(depth + 1) {
                    Some(value) => items.push(value),
                    None => return Value::Array(items),
                },
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        match self.peek()? {
            quote @ ('"' | '\'' | '“' | '”' | '‘' | '`') => {
                self.take();
                Some(self.string(quote))
            }
            first if first.is_alphanumeric() || first == '_' => {
                let end = self
                    .rest
                    .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | ' ')))
                    .unwrap_or(self.rest.len());
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                Some(name.trim_end().to_owned())
            }
            _ => None,
        }
    }

    /// Text after its opening quote. A quote inside that is not escaped ends it only where what
    /// follows says so.
    fn string(&mut self, quote: char) -> String {
        let closing = match quote {
            '“' | '”' => ['”', '“', '"'],
            '‘' => ['’', '‘', '\''],
            other => [other; 3],
        };
        let mut text = String::new();
        while let Some(next) = self.take() {
            if closing.contains(&next) && self.ends_text() {
                return text;
            }
            if next != '\\' {
                text.push(next);
                continue;
            }
            match self.take() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r' | 'b' | 'f') => text.push(' '),
                Some('u') => text.push(self.unicode()),
                Some(other) => text.push(other),
                None => {}
            }
        }
        text
    }

    fn ends_text(&self) -> bool {
        let after = self.rest.trim_start();
        after.is_empty() || after.starts_with([',', '}', ']', ':', ';', '=', '`'])
    }

    fn unicode(&mut self) -> char {
        let Some(first) = self.hex4() else {
            return char::REPLACEMENT_CHARACTER;
        };
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
        }
        let Some(rest) = self.rest.strip_prefix("\\u") else {
            return char::REPLACEMENT_CHARACTER;
        };
        self.rest = rest;
        let second = self.hex4().unwrap_or(0);
        let pair = 0x10000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff);
        char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4)?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        self.rest = &self.rest[4..];
        Some(value)
    }

    /// A number, a word of JSON or of its neighbours, or text that somebody forgot to quote.
    fn word(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find([',', '}', ']', '\n'])
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let word = word.trim();
        if word.is_empty() || word.starts_with(['{', '[', ':']) {
            return None;
        }
        self.rest = rest;
        Some(match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" | "undefined" | "NaN" => Value::Null,
            _ => match serde_json::from_str::<Number>(word) {
                Ok(number) => Value::Number(number),
                Err(_no_number) => Value::String(word.to_owned()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_models_nearly_write_is_read() {
        let wanted = json!({"title": "The Lamp", "cast": ["Mara", "Tom"]});
        for text in [
            r#"{"title": "The Lamp", "cast": ["Mara", "Tom"]}"#,
            "```json\n{\"title\": \"The Lamp\", \"cast\": [\"Mara\", \"Tom\"]}\n```",
            "Sure! Here it is:\n{\"title\": \"The Lamp\", \"cast\": [\"Mara\", \"Tom\",],}\nEnjoy!",
            "{'title': 'The Lamp', 'cast': ['Mara', 'Tom']}",
            "{title: \"The Lamp\", cast: [\"Mara\", \"Tom\"]",
            "{\"title\": \"The Lamp\", \"cast\": [\"Mara\", \"Tom",
            "{“title”: “The Lamp”, “cast”: [“Mara”, “Tom”]}",
            "{\"title\": The Lamp, \"cast\": [Mara, Tom]}",
            "// a film\n{\"title\": \"The Lamp\", /* people */ \"cast\": [\"Mara\" \"Tom\"]}",
        ] {
            if text.contains("\"Mara\" \"Tom\"") {
                // A forgotten comma joins; still an object with its title.
                assert_eq!(near_json(text).unwrap()["title"], "The Lamp", "{text}");
            } else {
                assert_eq!(near_json(text), Some(wanted.clone()), "{text}");
            }
        }
        let quotes = near_json(r#"{"text": "She said "wait" and left.", "n": 2}"#).unwrap();
        assert_eq!(
            quotes,
            json!({"text": "She said \"wait\" and left.", "n": 2})
        );
        let apostrophe = near_json("{'text': 'It's late', 'ok': True}").unwrap();
        assert_eq!(apostrophe, json!({"text": "It's late", "ok": true}));
        let escaped = near_json(r#"{"text": "a\u00e9\ud83d\ude00\n", "x": nul"#).unwrap();
        assert_eq!(escaped["text"], "aé😀\n");
    }

    #[test]
    fn what_holds_no_value_gives_none() {
        for text in [
            "",
            "I am sorry, I cannot do that.",
            "42",
            "\"{\"",
            "}{",
            "][",
        ] {
            let got = near_json(text);
            assert!(got.is_none(), "{text:?} gave {got:?}");
        }
        assert!(near_json(&"[".repeat(100_000)).is_none());
    }

    /// Mutations of a good reply: never a panic, and a cut reply keeps every field before the cut.
    #[test]
    fn mutated_and_cut_replies_are_read_or_refused() {
        let good =
            r#"{"title": "The Lämp 灯", "cast": [{"name": "Mara", "age": 41.5}], "ok": true}"#;
        let whole: Value = serde_json::from_str(good).unwrap();
        for (at, _) in good.char_indices() {
            if let Some(Value::Object(fields)) = near_json(&good[..at])
                && at > good.find("\"cast\"").unwrap()
            {
                assert_eq!(fields["title"], whole["title"], "cut at {at}");
            }
        }
        let chars: Vec<char> = good.chars().collect();
        let marks = [
            '"', '\'', '{', '}', '[', ']', ',', ':', '\\', '`', 'x', '\u{0}', '😀',
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut read = 0;
        for _ in 0..20_000 {
            let mut mutant = chars.clone();
            for _ in 0..=random(4) {
                let at = random(mutant.len());
                match random(3) {
                    0 => mutant[at] = marks[random(marks.len())],
                    1 => mutant.insert(at, marks[random(marks.len())]),
                    _ => drop(mutant.remove(at)),
                }
            }
            let text: String = mutant.into_iter().collect();
            read += usize::from(near_json(&text).is_some());
        }
        assert!(read > 10_000, "only {read} of 20000 mutants were read");
    }
}
