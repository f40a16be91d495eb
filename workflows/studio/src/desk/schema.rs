//! JSON Schema (2020-12) of what commands take and give, from the same Rust types as the bindings:
//! the declarations that `ts-rs` derives are read and written as schemas.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use ts_rs::Config;

use super::list::{self, Declarations};
use super::script_form::ScriptForm;

/// Objects in objects that are read; types of ours are far flatter.
const DEPTH_MAX: usize = 64;

/// Schemas of all types that commands name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schemas {
    defs: BTreeMap<String, Value>,
}

impl Schemas {
    /// Those of the whole command list.
    ///
    /// # Errors
    /// A declaration that is none of the forms that the derived ones have: a fault of ours that a
    /// test catches.
    pub(crate) fn of_commands() -> Result<Self, String> {
        let config = Config::new().with_large_int("number");
        let mut found = Declarations::default();
        for command in list::all() {
            command.declare(&config, &mut found);
        }
        list::declare::<ScriptForm>(&config, &mut found);
        let mut defs = BTreeMap::new();
        for (name, text) in &found.types {
            let schema = declaration(text).map_err(|why| format!("{name}: {why}"))?;
            defs.insert(name.clone(), schema);
        }
        let coded = json!({
            "type": "object",
            "description": "A text as a code and its values.",
            "properties": {
                "code": { "type": "string" },
                "values": {
                    "type": "object",
                    "additionalProperties": { "anyOf": [{ "type": "string" }, { "type": "number" }] },
                },
            },
            "required": ["code", "values"],
        });
        defs.insert("Coded".to_owned(), coded);
        Ok(Self { defs })
    }

    /// The schema of the type that `text` names in TypeScript, always of an object: what is none
    /// is the `value` of one. With the definitions that it names.
    pub(crate) fn object(&self, text: &str) -> Result<Value, String> {
        let mut reader = Reader::new(text)?;
        let schema = reader.union(0)?;
        let mut object = match self.resolved(&schema) {
            Some(Value::Object(fields)) if self.is_object(&schema, 0) => fields.clone(),
            _ => value_in(schema),
        };
        object.insert("type".to_owned(), json!("object"));
        let mut named = BTreeSet::new();
        for value in object.values() {
            self.reached(value, &mut named);
        }
        if !named.is_empty() {
            let defs: Map<String, Value> = named
                .into_iter()
                .filter_map(|name| Some((name.clone(), self.defs.get(&name)?.clone())))
                .collect();
            object.insert("$defs".to_owned(), Value::Object(defs));
        }
        Ok(Value::Object(object))
    }

    /// Whether the type that `text` names is an object whatever its value is.
    pub(crate) fn is_always_object(&self, text: &str) -> bool {
        let schema = Reader::new(text).and_then(|mut reader| reader.union(0));
        schema.is_ok_and(|schema| self.is_object(&schema, 0))
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> Option<&'a Value> {
        match name_of(schema) {
            Some(name) => self.defs.get(name),
            None => Some(schema),
        }
    }

    fn is_object(&self, schema: &Value, depth: usize) -> bool {
        let Some(schema) = self.resolved(schema).filter(|_| depth < 8) else {
            return false;
        };
        match schema["anyOf"].as_array() {
            Some(each) => each.iter().all(|each| self.is_object(each, depth + 1)),
            None => schema["type"] == "object",
        }
    }

    /// Add every definition that `schema` names, and those that they name.
    fn reached(&self, schema: &Value, named: &mut BTreeSet<String>) {
        if let Some(name) = name_of(schema) {
            if named.insert(name.to_owned())
                && let Some(def) = self.defs.get(name)
            {
                self.reached(def, named);
            }
            return;
        }
        match schema {
            Value::Object(fields) => fields.values().for_each(|each| self.reached(each, named)),
            Value::Array(items) => items.iter().for_each(|each| self.reached(each, named)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn name_of(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// What is no object as the `value` of one.
fn value_in(schema: Value) -> Map<String, Value> {
    let mut properties = Map::new();
    properties.insert("value".to_owned(), schema);
    let mut object = Map::new();
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("required".to_owned(), json!(["value"]));
    object
}

/// The schema of `/** docs */ export type Name = type;`.
fn declaration(text: &str) -> Result<Value, String> {
    let mut reader = Reader::new(text)?;
    let docs = reader.docs();
    for word in ["export", "type"] {
        reader.word(word)?;
    }
    reader.name()?;
    reader.sign("=")?;
    let mut schema = reader.union(0)?;
    describe(&mut schema, docs);
    Ok(schema)
}

fn describe(schema: &mut Value, docs: Option<String>) {
    if let (Value::Object(fields), Some(docs)) = (schema, docs) {
        fields.insert("description".to_owned(), docs.into());
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Docs(String),
    Name(String),
    Text(String),
    Sign(char),
}

/// Reads a declaration as `ts-rs` writes it.
struct Reader {
    pieces: Vec<Piece>,
    at: usize,
}

impl Reader {
    fn new(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            if let Some(comment) = rest.strip_prefix("/**") {
                let (docs, behind) = comment
                    .split_once("*/")
                    .ok_or("a comment without its end")?;
                let lines = docs.lines().map(|line| line.trim().trim_start_matches('*'));
                let words: Vec<&str> = lines
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .collect();
                pieces.push(Piece::Docs(words.join(" ")));
                rest = behind;
            } else if let Some(quoted) = rest.strip_prefix('"') {
                let (inside, behind) = quoted.split_once('"').ok_or("a text without its end")?;
                pieces.push(Piece::Text(inside.to_owned()));
                rest = behind;
            } else if first.is_alphanumeric() || first == '_' {
                let end = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                let (name, behind) = rest.split_at(end);
                pieces.push(Piece::Name(name.to_owned()));
                rest = behind;
            } else {
                pieces.push(Piece::Sign(first));
                rest = &rest[first.len_utf8()..];
            }
            rest = rest.trim_start();
        }
        Ok(Self { pieces, at: 0 })
    }

    fn peek(&self) -> Option<&Piece> {
        self.pieces.get(self.at)
    }

    fn is_sign(&self, sign: char) -> bool {
        self.peek() == Some(&Piece::Sign(sign))
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let is_there = self.is_sign(sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn sign(&mut self, signs: &str) -> Result<(), String> {
        for sign in signs.chars() {
            if !self.take_sign(sign) {
                return Err(format!("expected {sign:?}, got {:?}", self.peek()));
            }
        }
        Ok(())
    }

    fn docs(&mut self) -> Option<String> {
        let mut last = None;
        while let Some(Piece::Docs(docs)) = self.peek() {
            last = Some(docs.clone());
            self.at += 1;
        }
        last
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek().cloned() {
            Some(Piece::Name(name) | Piece::Text(name)) => {
                self.at += 1;
                Ok(name)
            }
            other => Err(format!("expected a name, got {other:?}")),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        let got = self.name()?;
        if got == word {
            return Ok(());
        }
        Err(format!("expected {word:?}, got {got:?}"))
    }

    /// `A | B`.
    fn union(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("types too deep in each other".to_owned());
        }
        self.take_sign('|');
        let mut each = vec![self.both(depth)?];
        while self.take_sign('|') {
            each.push(self.both(depth)?);
        }
        let texts: Option<Vec<Value>> = each.iter().map(|one| one.get("const").cloned()).collect();
        Ok(match (texts, each.len()) {
            (Some(texts), _) => json!({ "enum": texts }),
            (None, 1) => each.remove(0),
            (None, _) => json!({ "anyOf": each }),
        })
    }

    /// `A & B`.
    fn both(&mut self, depth: usize) -> Result<Value, String> {
        let mut each = vec![self.one(depth)?];
        while self.take_sign('&') {
            each.push(self.one(depth)?);
        }
        Ok(if each.len() == 1 {
            each.remove(0)
        } else {
            json!({ "type": "object", "allOf": each })
        })
    }

    fn one(&mut self, depth: usize) -> Result<Value, String> {
        let mut schema = match self.peek().cloned() {
            Some(Piece::Sign('{')) => self.object(depth)?,
            Some(Piece::Sign('(')) => {
                self.at += 1;
                let inner = self.union(depth + 1)?;
                self.sign(")")?;
                inner
            }
            Some(Piece::Sign('[')) => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.take_sign(']') {
                    items.push(self.union(depth + 1)?);
                    self.take_sign(',');
                }
                let count = items.len();
                json!({ "type": "array", "prefixItems": items, "minItems": count, "maxItems": count })
            }
            Some(Piece::Text(text)) => {
                self.at += 1;
                json!({ "const": text })
            }
            Some(Piece::Name(_)) => self.named(depth)?,
            other => return Err(format!("expected a type, got {other:?}")),
        };
        while self.is_sign('[') && self.pieces.get(self.at + 1) == Some(&Piece::Sign(']')) {
            self.at += 2;
            schema = json!({ "type": "array", "items": schema });
        }
        Ok(schema)
    }

    fn named(&mut self, depth: usize) -> Result<Value, String> {
        let name = self.name()?;
        let mut of = Vec::new();
        if self.take_sign('<') {
            while !self.take_sign('>') {
                of.push(self.union(depth + 1)?);
                self.take_sign(',');
            }
        }
        Ok(match (name.as_str(), of.pop()) {
            ("string" | "number" | "boolean" | "null", _) => json!({ "type": name }),
            ("unknown", _) => json!({}),
            ("never" | "symbol", _) => json!({ "not": {} }),
            ("Array", Some(items)) => json!({ "type": "array", "items": items }),
            // `Record<symbol, never>` is an object without fields.
            ("Record", Some(values)) if values.get("not").is_some() => {
                json!({ "type": "object", "properties": {} })
            }
            ("Record", Some(values)) => {
                json!({ "type": "object", "additionalProperties": values })
            }
            (_, None) => json!({ "$ref": format!("#/$defs/{name}") }),
            (_, Some(_)) => return Err(format!("a type of types that is not known: {name}")),
        })
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.sign("{")?;
        let mut properties = Map::new();
        let mut required = Vec::new();
        loop {
            let docs = self.docs();
            if self.take_sign('}') {
                break;
            }
            if self.take_sign('[') {
                // `[key in string]: T`
                self.name()?;
                self.word("in")?;
                self.union(depth + 1)?;
                self.sign("]")?;
                self.take_sign('?');
                self.sign(":")?;
                let values = self.union(depth + 1)?;
                self.take_sign(',');
                self.sign("}")?;
                return Ok(json!({ "type": "object", "additionalProperties": values }));
            }
            let name = self.name()?;
            let is_optional = self.take_sign('?');
            self.sign(":")?;
            let mut value = self.union(depth + 1)?;
            describe(&mut value, docs);
            if !is_optional {
                required.push(name.clone());
            }
            properties.insert(name, value);
            self.take_sign(',');
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Ok(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_command_list_has_a_schema() {
        let schemas = Schemas::of_commands().unwrap();
        assert!(schemas.defs.len() > 60, "{}", schemas.defs.len());
        let config = Config::new().with_large_int("number");
        for command in list::all() {
            for text in [command.args(&config), command.result(&config)] {
                let schema = schemas.object(&text).unwrap();
                assert_eq!(schema["type"], "object", "{}: {text}", command.name);
                // Whatever is named is there.
                let mut named = BTreeSet::new();
                schemas.reached(&schema["properties"], &mut named);
                for name in named {
                    assert!(schema["$defs"][&name].is_object(), "{text}: {name}");
                }
            }
        }
    }

    #[test]
    fn forms_of_types_become_schemas() {
        let read = |text: &str| Reader::new(text).unwrap().union(0).unwrap();
        assert_eq!(read("\"a\" | \"b\""), json!({ "enum": ["a", "b"] }));
        assert_eq!(
            read("Array<string> | null"),
            json!({ "anyOf": [
                { "type": "array", "items": { "type": "string" } }, { "type": "null" }] })
        );
        assert_eq!(
            read("{ /** How many. */ count: number, \"why\"?: Kind[], }"),
            json!({ "type": "object", "required": ["count"], "properties": {
                "count": { "type": "number", "description": "How many." },
                "why": { "type": "array", "items": { "$ref": "#/$defs/Kind" } } } })
        );
        assert_eq!(
            read("{ [key in string]: number }"),
            json!({ "type": "object", "additionalProperties": { "type": "number" } })
        );
        assert_eq!(
            read("[string, number]")["prefixItems"][1],
            json!({ "type": "number" })
        );
        for wrong in ["{ a: }", "Array<", "\"x", "/** x", "Map<string, number>"] {
            let refused = Reader::new(wrong).and_then(|mut reader| reader.union(0));
            assert!(refused.is_err(), "{wrong}");
        }
        let deep = "[".repeat(200);
        assert!(Reader::new(&deep).unwrap().union(0).is_err());
    }
}
