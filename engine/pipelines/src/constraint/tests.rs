use std::time::Instant;

use super::*;
use crate::tokenizer::tests::qwen_fixture;

fn set() -> (Tokenizer, GrammarSet) {
    let tokenizer = qwen_fixture();
    let set = GrammarSet::new(&tokenizer).expect("a grammar set");
    (tokenizer, set)
}

/// Whether `text` can be made whole, each token by its bytes and each byte alone.
fn makes(set: &mut GrammarSet, tokenizer: &Tokenizer, constraint: &Constraint, text: &str) -> bool {
    let whole = tokenizer.encode_bare(text).expect("tokens");
    let by_bytes: Vec<u32> = text
        .bytes()
        .map(|byte| {
            (0..tokenizer.vocab_tokens() as u32)
                .find(|&t| tokenizer.token_bytes(t) == [byte])
                .expect("every byte is a token")
        })
        .collect();
    let verdicts = [whole, by_bytes].map(|tokens| {
        let guide = set.guide(constraint).expect("the constraint compiles");
        let mut guide = guide.expect("there is a constraint");
        for &token in &tokens {
            if guide.is_done() || guide.allowed_tokens(&[token]).expect("a verdict") == 0 {
                return false;
            }
            guide.take(token).expect("an allowed token");
        }
        guide.is_met().expect("a verdict")
    });
    assert_eq!(
        verdicts[0], verdicts[1],
        "tokens and bytes of {text:?} differ"
    );
    verdicts[0]
}

fn case(name: &str, file: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases");
    std::fs::read_to_string(format!("{root}/{name}/{file}")).expect("the case is in the repository")
}

#[test]
fn reported_schemas_accept_and_reject_what_they_say() {
    let (tokenizer, mut set) = set();
    for name in ["gr-01", "gr-02"] {
        let schema: Value = serde_json::from_str(&case(name, "schema.json")).expect("JSON");
        let constraint = Constraint::JsonSchema(schema);
        let start = Instant::now();
        set.guide(&constraint).expect("the schema compiles");
        assert!(
            start.elapsed().as_secs_f64() < 1.0,
            "{name}: {:?}",
            start.elapsed()
        );
        for (file, expected) in [("accept.jsonl", true), ("reject.jsonl", false)] {
            for (at, line) in case(name, file).lines().enumerate() {
                let made = makes(&mut set, &tokenizer, &constraint, line);
                assert_eq!(made, expected, "{name} {file} line {}", at + 1);
            }
        }
    }
}

#[test]
fn escaped_spellings_of_raw_characters_are_not_made() {
    let (tokenizer, mut set) = set();
    let schema = serde_json::from_str(&case("gr-02", "schema.json")).expect("JSON");
    let escaped = case("gr-02", "accept-escaped.txt");
    let constraint = Constraint::JsonSchema(schema);
    assert!(!makes(
        &mut set,
        &tokenizer,
        &constraint,
        escaped.trim_end()
    ));
}

#[test]
fn the_order_of_definitions_does_not_matter() {
    let (tokenizer, mut set) = set();
    let mut schema: Value = serde_json::from_str(&case("gr-02", "schema.json")).expect("JSON");
    let definitions = schema["$defs"].as_object().cloned().expect("definitions");
    for turn in 0..definitions.len() {
        let mut turned: Vec<(String, Value)> = definitions.clone().into_iter().collect();
        turned.rotate_left(turn);
        turned.reverse();
        schema["$defs"] = Value::Object(turned.into_iter().collect());
        let constraint = Constraint::JsonSchema(schema.clone());
        for (file, expected) in [("accept.jsonl", true), ("reject.jsonl", false)] {
            for line in case("gr-02", file).lines() {
                assert_eq!(
                    makes(&mut set, &tokenizer, &constraint, line),
                    expected,
                    "{line}"
                );
            }
        }
    }
}

fn refused(schema: Value) -> ConstraintError {
    let (_, mut set) = set();
    let constraint = Constraint::JsonSchema(schema);
    set.guide(&constraint).expect_err("the schema is refused")
}

#[test]
fn unsupported_keywords_are_named_with_their_place() {
    let nested = |inner: Value| json!({"type": "object", "properties": {"a/b": {"type": "array", "items": inner}}});
    for (inner, keyword) in [
        (json!({"uniqueItems": true}), "uniqueItems"),
        (json!({"not": {"type": "string"}}), "not"),
        (json!({"if": {}, "then": {}}), "if"),
        (json!({"contains": {}}), "contains"),
        (json!({"dependentRequired": {}}), "dependentRequired"),
        (json!({"propertyNames": {}}), "propertyNames"),
        (
            json!({"unevaluatedProperties": false}),
            "unevaluatedProperties",
        ),
        (json!({"$dynamicRef": "#x"}), "$dynamicRef"),
        (json!({"$ref": "https://example.com/schema"}), "$ref"),
        (json!({"$ref": "#name"}), "$ref"),
        (json!({"type": "string", "format": "regex"}), "format"),
        (json!({"x-guidance": {"lenient": true}}), "x-guidance"),
        (json!({"made-up": 1}), "made-up"),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            "oneOf",
        ),
        (
            json!({"type": "object", "properties": {"q": {}, "r": {}}, "minProperties": 2}),
            "minProperties",
        ),
    ] {
        let error = refused(nested(inner));
        let ConstraintError::Unsupported {
            keyword: got,
            pointer,
            ..
        } = &error
        else {
            panic!("{keyword}: {error}");
        };
        assert_eq!(got, keyword, "{error}");
        assert_eq!(
            *pointer,
            format!("/properties/a~1b/items/{keyword}"),
            "{error}"
        );
        assert_eq!(error.code(), Code::Refused);
        assert!(error.to_string().contains(keyword), "{error}");
    }
    let mixed = json!({"anyOf": [
        {"oneOf": [{"const": 1}, {"const": "x"}]},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    ]});
    let error = refused(mixed);
    let place = "/anyOf/1/oneOf";
    assert!(
        matches!(&error, ConstraintError::Unsupported { pointer, .. } if pointer == place),
        "{error}"
    );
}

#[test]
fn broken_schemas_are_refused_with_their_place() {
    for (schema, place) in [
        (json!(3), ""),
        (json!({"type": "text"}), "/type"),
        (json!({"type": []}), "/type"),
        (json!({"properties": []}), "/properties"),
        (json!({"anyOf": []}), "/anyOf"),
        (json!({"properties": {"a": 1}}), "/properties/a"),
        (json!({"$ref": "#/$defs/nobody"}), "/$ref"),
        (
            json!({"$ref": "#/default", "default": {"uniqueItems": true}}),
            "/$ref",
        ),
    ] {
        let error = refused(schema.clone());
        assert!(
            matches!(&error, ConstraintError::BadSchema { pointer, .. } if pointer == place),
            "{schema}: {error}"
        );
    }
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"items": deep});
    }
    assert!(refused(deep).to_string().contains("nested at most 64"));
    for schema in [
        json!({"type": "string", "pattern": "("}),
        json!({"type": "string", "minLength": -1}),
        json!({"type": "integer", "minimum": "x"}),
        json!({"required": "a"}),
    ] {
        let error = refused(schema.clone());
        assert!(
            matches!(error, ConstraintError::BadGrammar { .. }),
            "{schema}: {error}"
        );
    }
}

#[test]
fn schemas_that_cannot_be_met_are_refused_at_once() {
    let endless =
        json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
    for schema in [
        json!(false),
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        json!({"type": "integer", "minimum": 3, "maximum": 2}),
        json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"enum": []}),
        json!({"type": "object", "properties": {"a": false}, "required": ["a"]}),
        json!({"type": "object", "additionalProperties": false, "required": ["a"]}),
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}]}),
        json!({"type": "array", "items": {"$ref": "#"}, "minItems": 1}),
        endless,
    ] {
        let error = refused(schema.clone());
        assert!(
            matches!(error, ConstraintError::CannotBeMet { .. }),
            "{schema}: {error}"
        );
        assert_eq!(error.code(), Code::BadInput);
    }
}

#[test]
fn options_that_would_never_end_are_left_out() {
    let (tokenizer, mut set) = set();
    let schema = json!({
        "$defs": {"loop": {"type": "object", "properties": {"a": {"$ref": "#/$defs/loop"}},
            "required": ["a"], "additionalProperties": false}},
        "type": "object",
        "properties": {
            "x": {"anyOf": [{"$ref": "#/$defs/loop"}, {"type": "null"}]},
            "y": {"$ref": "#/$defs/loop"},
        },
        "required": ["x"],
        "additionalProperties": false,
    });
    let constraint = Constraint::JsonSchema(schema);
    assert!(makes(&mut set, &tokenizer, &constraint, "{\"x\": null}"));
    assert!(!makes(&mut set, &tokenizer, &constraint, "{\"x\": {"));
    assert!(!makes(
        &mut set,
        &tokenizer,
        &constraint,
        "{\"x\": null, \"y\""
    ));
}

#[test]
fn regular_expressions_match_the_whole_reply() {
    let (tokenizer, mut set) = set();
    let mut verdict = |regex: &str, text: &str| {
        makes(
            &mut set,
            &tokenizer,
            &Constraint::Regex(regex.to_owned()),
            text,
        )
    };
    assert!(verdict("(yes|no)", "yes"));
    assert!(!verdict("(yes|no)", "yes!"));
    assert!(verdict(r"^\d{2}:\d{2}$", "12:30"));
    assert!(!verdict(r"^\d{2}:\d{2}$", "12:3"));
    assert!(verdict(r"a/b\n.", "a/b\nc"));
    assert!(verdict(r"cost \$", "cost $"));
    assert!(verdict("[場景]+", "景場"));
    for regex in ["(", r"(?=a)b", &"a".repeat(MAX_REGEX_BYTES + 1)] {
        let error = set
            .guide(&Constraint::Regex(regex.to_owned()))
            .expect_err(regex);
        assert!(
            matches!(error, ConstraintError::BadGrammar { .. }),
            "{error}"
        );
    }
}

#[test]
fn compiled_grammars_are_kept_and_replies_share_nothing() {
    let (tokenizer, mut set) = set();
    let constraint = |n: usize| Constraint::Regex(format!("n{n}"));
    for n in 0..MAX_COMPILED + 10 {
        set.guide(&constraint(n)).expect("compiles");
        set.guide(&constraint(n)).expect("is known");
    }
    assert_eq!(set.compiled.len(), MAX_COMPILED);
    let mut first = set
        .guide(&constraint(5))
        .expect("compiles")
        .expect("a guide");
    let token = tokenizer.encode_bare("n").expect("tokens")[0];
    first.take(token).expect("allowed");
    let mut second = set
        .guide(&constraint(5))
        .expect("is known")
        .expect("a guide");
    assert_eq!(
        second.forced(),
        Ok(Some(token)),
        "a new reply begins at the beginning"
    );
}

#[test]
fn marks_are_never_part_of_a_text() {
    let (tokenizer, mut set) = set();
    let constraint = Constraint::JsonSchema(json!({"const": "<|im_end|>"}));
    let text = "\"<|im_end|>\"";
    assert!(!makes_with_marks(&mut set, &tokenizer, &constraint, text));
    let mut guide = set.guide(&constraint).expect("compiles").expect("a guide");
    let mut made = Vec::new();
    while !guide.is_done() {
        let token = guide
            .forced()
            .expect("a verdict")
            .expect("a const is forced");
        assert!(!tokenizer.is_special(token));
        made.extend_from_slice(tokenizer.token_bytes(token));
        guide.take(token).expect("allowed");
    }
    assert_eq!(String::from_utf8(made).as_deref(), Ok(text));
}

fn makes_with_marks(
    set: &mut GrammarSet,
    tokenizer: &Tokenizer,
    constraint: &Constraint,
    text: &str,
) -> bool {
    let tokens = tokenizer.encode_bare(text).expect("tokens");
    assert!(tokens.iter().any(|&t| tokenizer.is_special(t)));
    let mut guide = set.guide(constraint).expect("compiles").expect("a guide");
    guide.allowed_tokens(&tokens).expect("a verdict") == tokens.len()
}
