use engine_base::Datum;
use flow_graph::{DocNode, Document, Limits, Mode, Position, ReadError, Subgraph, WriteError};

fn parse(text: impl AsRef<[u8]>) -> Result<Document, ReadError> {
    Document::parse(text, &Limits::default())
}

fn fault(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn full() -> Document {
    let mut document = Document::new();
    let numbers = Datum::List(vec![
        Datum::Uint(u64::MAX),
        Datum::Int(i64::MIN),
        Datum::Float(0.1),
        Datum::Float(5e-324),
        Datum::Float(f64::MAX),
        Datum::Float(1.0),
        Datum::Int(1),
        Datum::Null,
    ]);
    let node = DocNode::new("picture.grade", 2)
        .set("curve", numbers)
        .set("label", "\"quotes\", \\ and 語\u{1f3ac}\n")
        .link("picture", "b", "picture")
        .mode(Mode::Bypass)
        .titled("Grade");
    document.add("b", node).unwrap();
    document.add("a", DocNode::subgraph("look")).unwrap();
    let mut part = Subgraph::new();
    part.add("inner", DocNode::new("any.pass", 1)).unwrap();
    let part = part
        .feeding("in", "inner", "in")
        .giving("out", "inner", "out");
    document.subgraphs.insert("look".into(), part);
    document.targets = vec!["b".into(), "a".into()];
    let place = Position { x: -1.5, y: 1e9 };
    document.layout.nodes.insert("a".into(), place);
    document
        .layout
        .extra
        .insert("group".into(), Datum::from("x"));
    document
}

#[test]
fn a_document_survives_the_file_and_equal_ones_are_written_equal() {
    let document = full();
    let text = document.to_json().unwrap();
    assert!(text.ends_with("}\n"), "no newline at the end");
    let again = parse(&text).unwrap();
    assert_eq!(again, document);
    assert_eq!(again.to_json().unwrap(), text);
    // The order in which things were added, and of members in the file, is no part of it.
    let mut reordered = Document::new();
    reordered.layout = document.layout.clone();
    reordered.targets.clone_from(&document.targets);
    reordered.subgraphs.clone_from(&document.subgraphs);
    for (id, node) in document.nodes.iter().rev() {
        reordered.nodes.insert(id.clone(), node.clone());
    }
    assert_eq!(reordered.to_json().unwrap(), text);
}

#[test]
fn numbers_that_compare_equal_are_written_equal() {
    let with = |datum: Datum, x: f64| {
        let mut document = Document::new();
        let node = DocNode::new("t", 1).set("v", Datum::List(vec![datum]));
        document.add("n", node).unwrap();
        document
            .layout
            .nodes
            .insert("n".into(), Position { x, y: 0.0 });
        document
    };
    let (zero, minus) = (with(Datum::Float(0.0), 0.0), with(Datum::Float(-0.0), -0.0));
    assert_eq!(zero, minus);
    assert_eq!(zero.to_json(), minus.to_json());
    // A whole number has one form after reading, whatever it had in code.
    let text = with(Datum::Uint(5), 0.0).to_json().unwrap();
    assert_eq!(parse(&text).unwrap(), with(Datum::Int(5), 0.0));
}

#[test]
fn seeds_of_the_reported_case_keep_every_digit() {
    let seeds = [
        39,
        1_125_899_906_842_625,
        9_007_199_254_740_993,
        6_687_881_544_318_117_707,
    ];
    for seed in seeds.into_iter().chain([u64::MAX]) {
        let mut document = Document::new();
        document
            .add("n", DocNode::new("picture.grade", 2).set("seed", seed))
            .unwrap();
        let text = document.to_json().unwrap();
        assert!(text.contains(&format!("\"seed\": {seed}\n")), "{text}");
        let read = parse(&text).unwrap();
        assert_eq!(read.nodes["n"].widgets["seed"].as_u64(), Some(seed));
    }
}

#[test]
fn what_json_cannot_hold_is_refused_with_its_place() {
    let mut document = Document::new();
    let wrong = DocNode::new("t", 1).set("gain", Datum::Float(f64::NAN));
    document.add("n", wrong).unwrap();
    assert_eq!(
        document.to_json(),
        Err(WriteError::NotFinite {
            got: "NaN".into(),
            at: "node \"n\" widget \"gain\"".into()
        })
    );
    let mut deep = Datum::Null;
    for _ in 0..70 {
        deep = Datum::List(vec![deep]);
    }
    let mut document = Document::new();
    document
        .add("n", DocNode::new("t", 1).set("v", deep))
        .unwrap();
    assert!(matches!(
        document.to_json(),
        Err(WriteError::TooDeep { .. })
    ));
    let mut document = Document::new();
    let place = Position {
        x: f64::INFINITY,
        y: 0.0,
    };
    document.layout.nodes.insert("n".into(), place);
    assert!(matches!(
        document.to_json(),
        Err(WriteError::NotFinite { .. })
    ));
}

#[test]
fn names_that_stand_twice_are_an_error() {
    let node = r#"{"type":"t","version":1}"#;
    let cases = [
        (format!(r#"{{"longtake":1,"nodes":{{"a":{node},"a":{node}}}}}"#), "node \"a\""),
        (
            r#"{"longtake":1,"nodes":{"a":{"type":"t","version":1,"widgets":{"x":1,"x":2}}}}"#
                .to_owned(),
            "node \"a\": widget \"x\"",
        ),
        (
            r#"{"longtake":1,"nodes":{"a":{"type":"t","version":1,"links":{"x":["b","o"],"x":["c","o"]}}}}"#
                .to_owned(),
            "node \"a\": link \"x\"",
        ),
        (
            r#"{"longtake":1,"nodes":{},"subgraphs":{"s":{"inputs":{},"outputs":{},"nodes":{}},"s":{"inputs":{},"outputs":{},"nodes":{}}}}"#
                .to_owned(),
            "subgraph \"s\"",
        ),
        (
            format!(r#"{{"longtake":1,"nodes":{{}},"subgraphs":{{"s":{{"inputs":{{}},"outputs":{{}},"nodes":{{"i":{node},"i":{node}}}}}}}}}"#),
            "subgraph \"s\": node \"i\"",
        ),
        (
            r#"{"longtake":1,"nodes":{},"layout":{"extra":{"g":1,"g":1}}}"#.to_owned(),
            "layout entry \"g\"",
        ),
    ];
    for (text, place) in cases {
        let message = fault(&text);
        assert!(
            message.contains(&format!("{place}: the name stands twice")),
            "{message}"
        );
        assert!(message.contains("line 1, column"), "{message}");
    }
    assert!(fault(r#"{"longtake":1,"nodes":{},"nodes":{}}"#).contains("duplicate field `nodes`"));
    let twice =
        r#"{"longtake":1,"nodes":{"a":{"type":"t","version":1,"widgets":{"x":{"k":1,"k":2}}}}}"#;
    assert!(fault(twice).contains("node \"a\": widget \"x\": the name \"k\" stands twice"));
}

#[test]
fn unknown_fields_and_wrong_kinds_say_where() {
    let unknown =
        "{\"longtake\":1,\"nodes\":{\n \"a\":{\"type\":\"t\",\"version\":1,\n  \"colour\":3}}}";
    assert_eq!(
        fault(unknown),
        "cannot read the document: node \"a\": unknown field `colour`, expected one of `type`, \
         `version`, `widgets`, `links`, `mode`, `title` (line 3, column 10)"
    );
    let cases = [
        (
            r#"{"longtake":1,"nodes":{},"surprise":1}"#,
            "unknown field `surprise`",
        ),
        (r#"{"longtake":1}"#, "missing field `nodes`"),
        (r#"{"nodes":{}}"#, "missing field `longtake`"),
        (
            r#"{"longtake":1,"nodes":[]}"#,
            "a map with a member for each node",
        ),
        (
            r#"{"longtake":1,"nodes":{"a":{"type":"t","version":-1}}}"#,
            "node \"a\": invalid value: integer `-1`",
        ),
        (
            r#"{"longtake":1,"nodes":{"a":{"type":"t","version":1,"links":{"x":["b"]}}}}"#,
            "node \"a\": link \"x\": invalid length 1",
        ),
        (
            r#"{"longtake":1,"nodes":{"a":{"type":"t","version":1,"mode":"sleep"}}}"#,
            "node \"a\": unknown variant `sleep`",
        ),
        (
            r#"{"longtake":1,"nodes":{"a":{"version":1}}}"#,
            "node \"a\": missing field `type`",
        ),
        (r#"{"longtake":1,"nodes":{}} x"#, "trailing characters"),
        (r#"{"longtake":1,"nodes":{}"#, "EOF"),
        (
            r#"{"longtake":1,"nodes":{"a":{"type":"t","version":1,"widgets":{"x":NaN}}}}"#,
            "expected",
        ),
        ("", "EOF"),
        ("[]", "cannot read the document"),
    ];
    for (text, part) in cases {
        let message = fault(text);
        assert!(message.contains(part), "{text}\n{message}");
    }
}

#[test]
fn another_format_is_refused_as_such_even_with_fields_of_its_own() {
    for (got, text) in [
        (2, r#"{"longtake":2,"nodes":{}}"#),
        (9, r#"{"longtake":9,"steps":[{"nodes":1}],"nodes":7}"#),
        (5_000_000_000, r#"{"longtake":5000000000,"nodes":{}}"#),
        (0, r#"{"longtake":0,"nodes":{}}"#),
    ] {
        assert_eq!(
            parse(text),
            Err(ReadError::Format { got, expected: 1 }),
            "{text}"
        );
    }
    assert!(fault(r#"{"longtake":2,"nodes":{}}"#).ends_with("got format 2 of a newer version"));
    assert!(fault(r#"{"longtake":0,"nodes":{}}"#).ends_with("got format 0"));
}

#[test]
fn bytes_that_are_not_utf_8_are_named_by_offset() {
    let mut bytes = br#"{"longtake":1,"nodes":{"a"#.to_vec();
    let at_byte = bytes.len();
    bytes.extend_from_slice(b"\xff\":{}}}");
    assert_eq!(parse(&bytes), Err(ReadError::NotUtf8 { at_byte }));
    let marked = "\u{feff}{\"longtake\":1,\"nodes\":{}}";
    assert_eq!(parse(marked), Ok(Document::new()));
}

#[test]
fn limits_are_kept() {
    let small = Limits {
        bytes: 30,
        depth: 3,
        nodes: 1,
    };
    let empty = r#"{"longtake":1,"nodes":{}}"#;
    assert!(Document::parse(empty, &small).is_ok());
    let long = format!("{empty}      ");
    let too_large = ReadError::TooLarge {
        got_bytes: 31,
        max_bytes: 30,
    };
    assert_eq!(Document::parse(&long, &small), Err(too_large));
    let small = Limits {
        bytes: 1000,
        ..small
    };
    let deep = r#"{"longtake":1,"nodes":{"a":{"x":["[[[["]}}}"#;
    let too_deep = ReadError::TooDeep {
        at_byte: 32,
        max: 3,
    };
    assert_eq!(Document::parse(deep, &small), Err(too_deep));
    let two =
        r#"{"longtake":1,"nodes":{"a":{"type":"t","version":1},"b":{"type":"t","version":1}}}"#;
    let too_many = ReadError::TooManyNodes { got: 2, max: 1 };
    assert_eq!(Document::parse(two, &small), Err(too_many));
    // A bomb of brackets: refused by a count, not by the stack.
    let bomb = "[".repeat(1_000_000);
    assert!(matches!(
        parse(&bomb),
        Err(ReadError::TooDeep {
            at_byte: 100,
            max: 100
        })
    ));
    let unlimited = Limits {
        depth: usize::MAX,
        ..Limits::default()
    };
    assert!(matches!(
        Document::parse(&bomb, &unlimited),
        Err(ReadError::TooDeep { max: 120, .. })
    ));
}

/// Types that nobody knows here, ids and names of other programs (wf-06).
#[test]
fn unknown_types_survive_saving_and_stop_nothing_else() {
    let text = r#"{"longtake":1,"nodes":{
        "12:5":{"type":"Pack/Weird Node","version":7,"widgets":{"größe":{"x":[1,"a"]}},
            "links":{"eingang_ü":["lora:krea_0","value"]},"title":"Weird"},
        "after":{"type":"save.any","version":1,"links":{"value":["12:5","OUT"]}},
        "apart":{"type":"save.any","version":1,"links":{"value":["lora:krea_0","value"]}},
        "lora:krea_0":{"type":"math.constant","version":1}}}"#;
    let document = parse(text).unwrap();
    assert_eq!(parse(document.to_json().unwrap()).unwrap(), document);
    let weird = &document.nodes["12:5"];
    assert_eq!(
        weird.widgets["größe"]
            .get("x")
            .and_then(Datum::as_list)
            .map(<[_]>::len),
        Some(2)
    );
    let options = flow_graph::FlattenOptions::default();
    let flattened = flow_graph::flatten_runnable(&document, &crate::stubs::registry(), &options);
    assert_eq!(flattened.problems.len(), 1, "{:?}", flattened.problems);
    assert_eq!(
        flattened.problems[0].kind,
        flow_graph::ProblemKind::UnknownType
    );
    assert_eq!(flattened.left_out, ["12:5", "after"]);
}

#[test]
fn names_beyond_reason_are_refused() {
    let text = format!(
        r#"{{"longtake":1,"nodes":{{"{}":{{}}}}}}"#,
        "n".repeat(4097)
    );
    let message = fault(&text);
    assert!(
        message.contains("expected a name of at most 4096 bytes"),
        "{message}"
    );
    assert!(message.len() < 300, "{message}");
}

#[test]
fn five_megabytes_of_text_are_read_and_written() {
    let mut document = Document::new();
    for at in 0..50 {
        let node = DocNode::new("t", 1).set("text", "é".repeat(50_000));
        document.add(format!("n{at}"), node).unwrap();
    }
    let text = document.to_json().unwrap();
    assert!(text.len() > 5_000_000);
    assert_eq!(parse(&text).unwrap(), document);
}
