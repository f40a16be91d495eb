//! The filter `tojson`, as the templates' authors have it: Python's `json.dumps`, not HTML-safe.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// Deepest nesting of a value.
const MAX_DEPTH: usize = 128;

/// How `json.dumps` is asked to write.
struct Style {
    ensure_ascii: bool,
    sort_keys: bool,
    /// Text of one indentation; `None` writes one line.
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
}

/// `tojson(value, ensure_ascii=false, indent=none, *, separators=none, sort_keys=false)`.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the template engine hands named arguments over by value"
)]
pub(super) fn tojson(
    state: &State<'_, '_>,
    value: &Value,
    ensure_ascii: Option<Value>,
    indent: Option<Value>,
    named: Kwargs,
) -> Result<String, Error> {
    let argument = |positional: Option<Value>, name: &str| -> Result<Option<Value>, Error> {
        let given = match positional {
            Some(value) => Some(value),
            None => named.get::<Option<Value>>(name)?,
        };
        Ok(given.filter(|value| !value.is_none()))
    };
    let flag = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let ensure_ascii = flag(argument(ensure_ascii, "ensure_ascii")?);
    let indent = argument(indent, "indent")?
        .as_ref()
        .map(indentation)
        .transpose()?;
    let separators = argument(None, "separators")?;
    let sort_keys = flag(argument(None, "sort_keys")?);
    named.assert_all_used()?;
    let (mut item_separator, mut key_separator) = (", ".to_owned(), ": ".to_owned());
    if indent.is_some() {
        item_separator = ",".to_owned();
    }
    if let Some(pair) = separators {
        let part = |at: usize| -> Result<String, Error> {
            let part = pair.get_item_by_index(at)?;
            part.as_str()
                .map(str::to_owned)
                .ok_or_else(|| bad("separators must be two texts"))
        };
        (item_separator, key_separator) = (part(0)?, part(1)?);
    }
    let style = Style {
        ensure_ascii,
        sort_keys,
        indent,
        item_separator,
        key_separator,
    };
    let mut out = String::new();
    write(state, &style, value, 0, &mut out)?;
    Ok(out)
}

fn bad(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

/// A count of blanks, or a text.
fn indentation(indent: &Value) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return Ok(text.to_owned());
    }
    match indent.as_usize() {
        Some(blanks) if blanks <= 64 => Ok(" ".repeat(blanks)),
        _ => Err(bad(format!("cannot indent by {indent}"))),
    }
}

fn write(
    state: &State<'_, '_>,
    style: &Style,
    value: &Value,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(bad(format!("cannot write JSON deeper than {MAX_DEPTH}")));
    }
    let before = out.len();
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)?),
        ValueKind::String => quote(value.as_str().unwrap_or_default(), style.ensure_ascii, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut list = List::open(style, '[', depth, out);
            for item in value.try_iter()? {
                list.next(out);
                write(state, style, &item, depth + 1, out)?;
            }
            list.close(']', out);
        }
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                let item = value.get_item(&key)?;
                entries.push((key_text(&key)?, item));
            }
            if style.sort_keys {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
            }
            let mut list = List::open(style, '{', depth, out);
            for (key, item) in &entries {
                list.next(out);
                quote(key, style.ensure_ascii, out);
                out.push_str(&style.key_separator);
                write(state, style, item, depth + 1, out)?;
            }
            list.close('}', out);
        }
        ValueKind::Undefined => {
            return Err(Error::new(
                ErrorKind::UndefinedError,
                "tojson of a name that is not there",
            ));
        }
        other => return Err(bad(format!("cannot write {other} as JSON"))),
    }
    // What containers hold was paid for by their parts; small parts cost as one step.
    if depth == 0 || out.len() - before > 64 {
        state.consume_fuel(1)?;
    }
    state.consume_fuel(1 + (out.len() - before) as u64 / 64)
}

/// The inside of an array or object being written.
struct List<'a> {
    style: &'a Style,
    depth: usize,
    empty: bool,
}

impl<'a> List<'a> {
    fn open(style: &'a Style, mark: char, depth: usize, out: &mut String) -> Self {
        out.push(mark);
        Self {
            style,
            depth: depth + 1,
            empty: true,
        }
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.style.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn next(&mut self, out: &mut String) {
        if !self.empty {
            out.push_str(&self.style.item_separator);
        }
        self.empty = false;
        self.line(self.depth, out);
    }

    fn close(&self, mark: char, out: &mut String) {
        if !self.empty {
            self.line(self.depth - 1, out);
        }
        out.push(mark);
    }
}

/// Keys that are no texts become ones, as Python does it.
fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::Number => number(key),
        other => Err(bad(format!("cannot write {other} as a key of JSON"))),
    }
}

fn number(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        return Ok(value.to_string());
    }
    let float = f64::try_from(value.clone())?;
    Ok(python_float(float))
}

/// Python's shortest spelling: `1.0`, `1e-05`, `1e+16`, `NaN`, `Infinity`.
fn python_float(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = float.to_string();
        if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
    }
}

fn quote(text: &str, ensure_ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || (ensure_ascii && !(' '..='~').contains(&c)) => {
                let mut units = [0u16; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_spelt_as_python_does() {
        for (float, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (123_456.789, "123456.789"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(python_float(float), expected);
        }
    }

    #[test]
    fn text_is_quoted_as_python_does() {
        let quoted = |text: &str, ascii: bool| {
            let mut out = String::new();
            quote(text, ascii, &mut out);
            out
        };
        assert_eq!(
            quoted("a\"\\\n\u{1}\u{7f}é🎬</", false),
            "\"a\\\"\\\\\\n\\u0001\u{7f}é🎬</\""
        );
        assert_eq!(
            quoted("\u{7f}é🎬", true),
            "\"\\u007f\\u00e9\\ud83c\\udfac\""
        );
    }
}
