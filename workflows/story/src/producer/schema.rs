//! The part of JSON schema that the producer's steps use: built here, checked here.

use serde_json::{Map, Value, json};

/// A schema of an object with exactly these fields.
pub(crate) fn object(fields: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// What is wrong with `value` by `schema`: types, required fields, lengths and allowed values.
/// Patterns are for those who draw under the schema; here the choice of candidates judges texts.
pub(crate) fn complaints(value: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(value, schema, "", &mut found);
    found
}

fn check(value: &Value, schema: &Value, place: &str, found: &mut Vec<String>) {
    let shown = if place.is_empty() { "the reply" } else { place };
    let right = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !right {
        let wanted = schema["type"].as_str().unwrap_or("a value");
        found.push(format!("{shown} must be of type {wanted}"));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        found.push(format!("{shown} must be one of {}", allowed.join(", ")));
    }
    let bounds = |name: &str| schema[name].as_u64().and_then(|n| usize::try_from(n).ok());
    match value {
        Value::String(text) => {
            let chars = text.chars().count();
            if bounds("minLength").is_some_and(|least| chars < least) {
                found.push(format!("{shown} is too short"));
            }
            if bounds("maxLength").is_some_and(|most| chars > most) {
                found.push(format!("{shown} is too long"));
            }
        }
        Value::Array(items) => {
            if bounds("minItems").is_some_and(|least| items.len() < least) {
                found.push(format!("{shown} has too few items"));
            }
            if bounds("maxItems").is_some_and(|most| items.len() > most) {
                found.push(format!("{shown} has too many items"));
            }
            for (at, item) in items.iter().enumerate() {
                check(item, &schema["items"], &format!("{place}[{at}]"), found);
            }
        }
        Value::Object(fields) => {
            for name in schema["required"].as_array().into_iter().flatten() {
                let name = name.as_str().unwrap_or("");
                if !fields.contains_key(name) {
                    found.push(format!("{shown} lacks the field \"{name}\""));
                }
            }
            for (name, field) in fields {
                if let Some(schema) = schema["properties"].get(name) {
                    let place = if place.is_empty() {
                        format!("\"{name}\"")
                    } else {
                        format!("{place}.{name}")
                    };
                    check(field, schema, &place, found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_name_the_field_and_what_is_wanted() {
        let schema = object(&[
            (
                "name",
                json!({"type": "string", "minLength": 2, "maxLength": 5}),
            ),
            ("mood", json!({"enum": ["calm", "tense"]})),
            (
                "parts",
                json!({"type": "array", "minItems": 1, "items": {"type": "integer"}}),
            ),
        ]);
        let good = json!({"name": "Mara", "mood": "calm", "parts": [1]});
        assert_eq!(complaints(&good, &schema), [""; 0]);
        let bad = json!({"name": "Maximilian", "mood": "odd", "parts": ["x"]});
        // In whatever order the schema's fields are kept.
        let mut found = complaints(&bad, &schema);
        found.sort();
        assert_eq!(
            found,
            [
                "\"mood\" must be one of \"calm\", \"tense\"",
                "\"name\" is too long",
                "\"parts\"[0] must be of type integer",
            ]
        );
        assert_eq!(complaints(&json!({"name": "Mara"}), &schema).len(), 2);
        assert_eq!(
            complaints(&json!("x"), &schema),
            ["the reply must be of type object"]
        );
    }
}
