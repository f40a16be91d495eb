//! Random schemas, and a validator of its own for the keywords they use.

use serde_json::{Map, Value, json};

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A schema of bounded values, with a definition that others refer to.
pub(super) fn random_schema(seed: u64) -> Value {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let item = schema(&mut dice, 0);
    let mut root = object(&mut dice, 3);
    root["$defs"] = json!({"item": item});
    root
}

fn object(dice: &mut Dice, depth: u64) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for at in 0..1 + dice.roll(4) {
        let name = ["name", "größe", "a \"b\"", "x/y", "場", "n"][dice.roll(6) as usize];
        let name = format!("{name}{at}");
        let inner = schema(dice, depth - 1);
        properties.insert(name.clone(), inner);
        if dice.roll(3) > 0 {
            required.push(name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn schema(dice: &mut Dice, depth: u64) -> Value {
    let kinds = if depth == 0 { 7 } else { 11 };
    match dice.roll(kinds) {
        0 => {
            let least = dice.roll(4);
            json!({"type": "string", "minLength": least, "maxLength": least + dice.roll(8)})
        }
        1 => json!({"type": "string", "pattern": "^[a-c]{2,5}$"}),
        2 => {
            let least = dice.roll(200) as i64 - 100;
            json!({"type": "integer", "minimum": least, "maximum": least + dice.roll(50) as i64})
        }
        3 => json!({"type": "number", "minimum": -1, "maximum": 1, "multipleOf": 0.25}),
        4 => json!({"enum": ["one", "two words", "\"quoted\"", 3, null, true, "場景"]}),
        5 => json!({"type": ["boolean", "null"]}),
        6 => json!({"const": {"fixed": [1, "é"]}}),
        7 => {
            let items = schema(dice, depth - 1);
            let least = dice.roll(3);
            json!({"type": "array", "items": items, "minItems": least, "maxItems": least + dice.roll(3)})
        }
        8 => object(dice, depth),
        9 => {
            let options = [schema(dice, depth - 1), schema(dice, depth - 1)];
            json!({"anyOf": options})
        }
        _ => json!({"$ref": "#/$defs/item"}),
    }
}

/// Whether `value` is valid under `schema`, of the keywords above; the fault otherwise.
pub(super) fn validate(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let fault = |what: &str| Err(format!("{value} breaks {what} of {schema}"));
    let Value::Object(keywords) = schema else {
        return Err(format!("no schema: {schema}"));
    };
    for (keyword, wanted) in keywords {
        let number = || wanted.as_f64().expect("a number");
        let count = || wanted.as_u64().expect("a count") as usize;
        let text = || value.as_str().map(|s| s.chars().count());
        let items = || value.as_array().map(Vec::len);
        let fits = match keyword.as_str() {
            "$defs" => true,
            "$ref" => {
                let pointer = wanted.as_str().and_then(|r| r.strip_prefix('#'));
                let target = pointer.and_then(|p| root.pointer(p)).expect("a target");
                validate(root, target, value)?;
                true
            }
            "anyOf" => {
                let mut options = wanted.as_array().expect("options").iter();
                options.any(|option| validate(root, option, value).is_ok())
            }
            "const" => value == wanted,
            "enum" => wanted.as_array().expect("values").contains(value),
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|t| is_of_type(t, value)),
                one => is_of_type(one, value),
            },
            "minLength" => text().is_none_or(|n| n >= count()),
            "maxLength" => text().is_none_or(|n| n <= count()),
            "pattern" => value.as_str().is_none_or(|s| {
                (2..=5).contains(&s.len()) && s.bytes().all(|b| (b'a'..=b'c').contains(&b))
            }),
            "minimum" => value.as_f64().is_none_or(|n| n >= number()),
            "maximum" => value.as_f64().is_none_or(|n| n <= number()),
            "multipleOf" => value.as_f64().is_none_or(|n| (n / number()).fract() == 0.0),
            "minItems" => items().is_none_or(|n| n >= count()),
            "maxItems" => items().is_none_or(|n| n <= count()),
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    validate(root, wanted, item)?;
                }
                true
            }
            "properties" => {
                for (name, inner) in wanted.as_object().expect("properties") {
                    if let Some(entry) = value.get(name) {
                        validate(root, inner, entry)?;
                    }
                }
                true
            }
            "required" => {
                let names = wanted.as_array().expect("names");
                names
                    .iter()
                    .all(|name| value.get(name.as_str().expect("a name")).is_some())
            }
            "additionalProperties" => {
                let known = keywords["properties"].as_object().expect("properties");
                let names = value.as_object();
                names.is_none_or(|entries| entries.keys().all(|name| known.contains_key(name)))
            }
            other => return fault(&format!("the unknown keyword {other}")),
        };
        if !fits {
            return fault(keyword);
        }
    }
    Ok(())
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        other => panic!("an unknown type {other}"),
    }
}
