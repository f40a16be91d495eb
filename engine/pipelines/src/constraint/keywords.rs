//! What of JSON Schema a reply can be held to: everything else is an error that names the keyword,
//! since a keyword that is skipped over in silence gives replies that are not valid.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{ConstraintError, of_compiler};

/// Deepest nesting of schemas.
const MAX_DEPTH: usize = 64;

/// Most schemas inside a schema.
const MAX_SCHEMAS: usize = 5_000;

/// Keywords that hold a value of their own and are known to the compiler, or say nothing about
/// validity.
const PLAIN: &[&str] = &[
    "$comment",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "writeOnly",
];

/// Keywords that hold schemas by name.
const NAMED: &[&str] = &["$defs", "definitions", "patternProperties", "properties"];

/// Keywords that hold a list of schemas.
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords that hold one schema.
const SINGLE: &[&str] = &["additionalItems", "additionalProperties", "items"];

const TYPES: &[&str] = &[
    "null", "boolean", "integer", "number", "string", "array", "object",
];

const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
];

const DRAFTS: &[&str] = &[
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
];

/// The schema as the compiler takes it.
///
/// # Errors
/// The first keyword that is not supported or broken, or that the schema cannot be met.
pub(super) fn checked(schema: &Value) -> Result<Value, ConstraintError> {
    let mut root = match schema {
        Value::Bool(true) => Value::Object(Map::new()),
        other => other.clone(),
    };
    if let Value::Object(entries) = &mut root {
        if let Some(draft) = entries.remove("$schema") {
            let known = draft.as_str().map(|d| d.trim_end_matches('#'));
            if !known.is_some_and(|d| DRAFTS.contains(&d)) {
                return Err(unsupported("$schema", "/$schema", format!("got {draft}")));
            }
        }
        entries.remove("$id");
    }
    let mut walk = Walk::default();
    walk.schema(&root, String::new(), 0)?;
    for (from, to) in &walk.references {
        if !walk.seen.contains(to) {
            return Err(ConstraintError::BadSchema {
                pointer: from.clone(),
                got: format!("a reference to {to:?}"),
                expected: "the place of a schema in the same document".to_owned(),
            });
        }
    }
    let endless = endless(&root, &walk.seen);
    if endless.contains("") {
        return Err(ConstraintError::CannotBeMet {
            reason: "every value of the schema would be endless".to_owned(),
        });
    }
    for pointer in &endless {
        if let Some(place) = root.pointer_mut(pointer) {
            *place = Value::Bool(false);
        }
    }
    Ok(root)
}

fn unsupported(keyword: &str, pointer: &str, reason: impl Into<String>) -> ConstraintError {
    ConstraintError::Unsupported {
        keyword: keyword.to_owned(),
        pointer: pointer.to_owned(),
        reason: reason.into(),
    }
}

fn bad(pointer: &str, got: &Value, expected: &str) -> ConstraintError {
    ConstraintError::BadSchema {
        pointer: pointer.to_owned(),
        got: got.to_string().chars().take(100).collect(),
        expected: expected.to_owned(),
    }
}

/// A step of a JSON pointer.
fn step(pointer: &str, name: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    format!("{pointer}/{name}")
}

#[derive(Default)]
struct Walk {
    /// Pointers of all schemas.
    seen: BTreeSet<String>,
    /// Pointers of `$ref` keywords and the pointers they name.
    references: Vec<(String, String)>,
}

impl Walk {
    fn schema(
        &mut self,
        schema: &Value,
        pointer: String,
        depth: usize,
    ) -> Result<(), ConstraintError> {
        if depth > MAX_DEPTH || self.seen.len() >= MAX_SCHEMAS {
            return Err(ConstraintError::BadSchema {
                pointer,
                got: "one more schema".to_owned(),
                expected: format!("at most {MAX_SCHEMAS}, nested at most {MAX_DEPTH} deep"),
            });
        }
        match schema {
            Value::Bool(_) => {}
            Value::Object(entries) => {
                for (keyword, value) in entries {
                    let place = step(&pointer, keyword);
                    self.keyword(entries, keyword, value, place, depth)?;
                }
            }
            other => return Err(bad(&pointer, other, "an object, true or false")),
        }
        self.seen.insert(pointer);
        Ok(())
    }

    fn keyword(
        &mut self,
        entries: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        pointer: String,
        depth: usize,
    ) -> Result<(), ConstraintError> {
        match keyword {
            "additionalItems" if entries.contains_key("prefixItems") => {
                let reason = "beside prefixItems, items holds the others";
                Err(unsupported(keyword, &pointer, reason))
            }
            "items" if value.is_array() => self.list(value, &pointer, depth),
            _ if SINGLE.contains(&keyword) => self.schema(value, pointer, depth + 1),
            _ if LISTS.contains(&keyword) => self.list(value, &pointer, depth),
            _ if NAMED.contains(&keyword) => {
                let Value::Object(named) = value else {
                    return Err(bad(&pointer, value, "an object of schemas"));
                };
                named
                    .iter()
                    .try_for_each(|(name, s)| self.schema(s, step(&pointer, name), depth + 1))
            }
            "type" => check_type(value, &pointer),
            "format" => match value.as_str() {
                Some(format) if FORMATS.contains(&format) => Ok(()),
                Some(format) => {
                    let reason = format!("got {format:?}, known are {}", FORMATS.join(", "));
                    Err(unsupported(keyword, &pointer, reason))
                }
                None => Err(bad(&pointer, value, "a text")),
            },
            "$ref" => {
                let Some(reference) = value.as_str() else {
                    return Err(bad(&pointer, value, "a text"));
                };
                let Some(target) = local_pointer(reference) else {
                    let reason = "only references like \"#/$defs/name\" are known";
                    return Err(unsupported(keyword, &pointer, reason));
                };
                self.references.push((pointer, target));
                Ok(())
            }
            _ if PLAIN.contains(&keyword) => Ok(()),
            _ => Err(unsupported(keyword, &pointer, "it is not known")),
        }
    }

    fn list(&mut self, value: &Value, pointer: &str, depth: usize) -> Result<(), ConstraintError> {
        let Some(schemas) = value.as_array().filter(|schemas| !schemas.is_empty()) else {
            return Err(bad(pointer, value, "a list of at least one schema"));
        };
        schemas
            .iter()
            .enumerate()
            .try_for_each(|(at, s)| self.schema(s, format!("{pointer}/{at}"), depth + 1))
    }
}

fn check_type(value: &Value, pointer: &str) -> Result<(), ConstraintError> {
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let fits = match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        one => known(one),
    };
    if fits {
        Ok(())
    } else {
        Err(bad(
            pointer,
            value,
            &format!("one or more of {}", TYPES.join(", ")),
        ))
    }
}

/// The JSON pointer of a reference into the same document, spelt as [`step`] spells it.
fn local_pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if !(fragment.is_empty() || fragment.starts_with('/')) {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Pointers of schemas of which every value would be endless, such as an object that requires
/// another of its own kind. A model held to one would never come to an end.
fn endless(root: &Value, seen: &BTreeSet<String>) -> BTreeSet<String> {
    let mut ends: BTreeMap<&str, bool> = seen.iter().map(|p| (p.as_str(), false)).collect();
    loop {
        let mut changed = false;
        for pointer in seen.iter().rev() {
            if !ends[pointer.as_str()]
                && let Some(schema) = root.pointer(pointer)
                && can_end(schema, pointer, &ends)
            {
                ends.insert(pointer, true);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    // A schema that holds false is refused by the compiler in words of its own.
    ends.iter()
        .filter(|(pointer, ends)| !**ends && root.pointer(pointer) != Some(&Value::Bool(false)))
        .map(|(pointer, _)| (*pointer).to_owned())
        .collect()
}

/// Whether a schema has a value that ends, as far as `ends` is known to be.
fn can_end(schema: &Value, pointer: &str, ends: &BTreeMap<&str, bool>) -> bool {
    let Value::Object(entries) = schema else {
        return true;
    };
    let known = |pointer: &str| ends.get(pointer).copied().unwrap_or(true);
    let listed = |keyword: &str| -> Option<Vec<bool>> {
        let count = entries.get(keyword)?.as_array()?.len();
        let place = step(pointer, keyword);
        Some(
            (0..count)
                .map(|at| known(&format!("{place}/{at}")))
                .collect(),
        )
    };
    if let Some(target) = entries.get("$ref").and_then(Value::as_str)
        && !local_pointer(target).is_some_and(|target| known(&target))
    {
        return false;
    }
    for keyword in ["anyOf", "oneOf"] {
        if listed(keyword).is_some_and(|all| !all.contains(&true)) {
            return false;
        }
    }
    if listed("allOf").is_some_and(|all| all.contains(&false)) {
        return false;
    }
    if entries.contains_key("const") || entries.contains_key("enum") {
        return true;
    }
    let object_ends = || {
        let required = entries.get("required").and_then(Value::as_array);
        let properties = step(pointer, "properties");
        required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .all(|name| known(&step(&properties, name)))
    };
    let array_ends = || {
        let least = entries.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let first = listed("prefixItems")
            .or_else(|| listed("items"))
            .unwrap_or_default();
        let covered = first.iter().take(least as usize).all(|&ends| ends);
        let others = least > first.len() as u64;
        covered
            && (!others
                || entries.get("items").is_none_or(Value::is_array)
                || known(&step(pointer, "items")))
    };
    let type_ends = |name: &str| match name {
        "object" => object_ends(),
        "array" => array_ends(),
        _ => true,
    };
    match entries.get("type") {
        Some(Value::String(name)) => type_ends(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(type_ends),
        _ => true,
    }
}

/// What the compiler refuses without saying where: which keyword it was.
///
/// `failure` compiles a schema and gives the reason of a failure.
pub(super) fn blamed(
    schema: &Value,
    reason: &str,
    failure: &dyn Fn(&Value) -> Option<String>,
) -> Option<ConstraintError> {
    type Neutralize = fn(&mut Map<String, Value>, &str);
    let as_any_of: Neutralize = |entries, keyword| {
        if let Some(options) = entries.remove(keyword) {
            entries.insert("anyOf".to_owned(), options);
        }
    };
    let dropped: Neutralize = |entries, keyword| {
        entries.remove(keyword);
    };
    let (keywords, message, why, neutralize): (&[&str], _, _, _) =
        if reason.contains("oneOf constraints are not supported") {
            (
                &["oneOf"],
                "oneOf constraints are not supported",
                "its options may hold for one value together; use anyOf, or tell them apart by a \
                 required const",
                as_any_of,
            )
        } else if reason.contains("min/maxProperties only supported") {
            (
                &["minProperties", "maxProperties"],
                "min/maxProperties only supported",
                "it is known only where all listed properties are required",
                dropped,
            )
        } else {
            return None;
        };
    let mut places = Vec::new();
    let mut walk = Walk::default();
    walk.schema(schema, String::new(), 0).ok()?;
    for pointer in &walk.seen {
        if let Some(Value::Object(entries)) = schema.pointer(pointer) {
            let found = keywords.iter().filter(|k| entries.contains_key(**k));
            places.extend(found.map(|k| (pointer.clone(), *k)));
        }
    }
    // Deep ones last in the walk are tried first, so that the innermost is named.
    places.sort_by_key(|(pointer, _)| std::cmp::Reverse(pointer.len()));
    let named = places.iter().find(|(pointer, keyword)| {
        let mut alone = schema.clone();
        for (other, other_keyword) in &places {
            if (other, other_keyword) != (pointer, keyword)
                && let Some(Value::Object(entries)) = alone.pointer_mut(other)
            {
                neutralize(entries, other_keyword);
            }
        }
        failure(&alone).is_some_and(|reason| reason.contains(message))
    });
    match named.or(places.first()) {
        Some((pointer, keyword)) => Some(unsupported(keyword, &step(pointer, keyword), why)),
        None => Some(of_compiler(reason)),
    }
}
