use engine_base::Datum;
use flow_graph::ProblemKind as Kind;
use flow_graph::{
    DocNode, Document, FlattenOptions, Mode, Problem, Subgraph, flatten, flatten_runnable, validate,
};

use crate::stubs::{HASH, float, registry, spec};

fn load() -> DocNode {
    DocNode::new("picture.load", 1).set("file", HASH)
}

/// A document in which everything is right but for `node`.
fn beside(node: DocNode) -> Document {
    let mut document = Document::new();
    document.add("load", load()).unwrap();
    document.add("node", node).unwrap();
    document
}

fn grade() -> DocNode {
    DocNode::new("picture.grade", 2).link("picture", "load", "picture")
}

fn only(document: &Document) -> Problem {
    let mut problems = validate(document, &registry());
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

#[test]
fn a_right_document_has_no_problems() {
    assert_eq!(validate(&beside(grade()), &registry()), []);
    assert_eq!(validate(&Document::new(), &registry()), []);
}

#[test]
fn each_value_is_held_to_its_widget() {
    let long = "x".repeat(21);
    let two_to_64 = Datum::Float(u64::MAX as f64);
    let cases: [(&str, Datum, Kind, &str, &str); 18] = [
        (
            "amount",
            Datum::Float(-0.1),
            Kind::BelowMin,
            "-0.1",
            "at least 0",
        ),
        ("amount", Datum::Int(2), Kind::AboveMax, "2", "at most 1"),
        (
            "amount",
            "much".into(),
            Kind::ValueWrongType,
            "\"much\"",
            "a number",
        ),
        (
            "amount",
            Datum::Float(f64::NAN),
            Kind::ValueWrongType,
            "NaN",
            "a number",
        ),
        ("steps", Datum::Int(0), Kind::BelowMin, "0", "at least 1"),
        (
            "steps",
            Datum::Int(101),
            Kind::AboveMax,
            "101",
            "at most 100",
        ),
        (
            "steps",
            Datum::Uint(u64::MAX),
            Kind::AboveMax,
            "18446744073709551615",
            "at most 100",
        ),
        (
            "steps",
            Datum::Float(1.5),
            Kind::ValueWrongType,
            "1.5",
            "a whole number",
        ),
        ("seed", Datum::Int(-1), Kind::BelowMin, "-1", "at least 0"),
        (
            "seed",
            two_to_64,
            Kind::AboveMax,
            "1.8446744073709552e19",
            "at most 18446744073709551615",
        ),
        (
            "seed",
            Datum::Float(1e18),
            Kind::ValueWrongType,
            "1e18",
            "a whole number written with all its digits",
        ),
        (
            "seed",
            Datum::Null,
            Kind::ValueWrongType,
            "nothing",
            "a whole number from 0 to 18446744073709551615",
        ),
        (
            "look",
            "wram".into(),
            Kind::NotInList,
            "\"wram\"",
            "one of \"warm\", \"cold\", \"plain\"",
        ),
        ("look", Datum::Int(0), Kind::ValueWrongType, "0", "text"),
        (
            "label",
            long.as_str().into(),
            Kind::TooLong,
            "21 characters",
            "at most 20 characters",
        ),
        (
            "exact",
            Datum::Int(1),
            Kind::ValueWrongType,
            "1",
            "true or false",
        ),
        (
            "mask",
            "m".into(),
            Kind::NotAWidget,
            "\"m\"",
            "a link to an output of type \"mask\"",
        ),
        (
            "steps",
            Datum::Int(13),
            Kind::Custom,
            "steps: expected anything but 13, got 13",
            "values that the node type takes",
        ),
    ];
    for (name, datum, kind, got, expected) in cases {
        let problem = only(&beside(grade().set(name, datum)));
        let seen = (
            problem.kind,
            problem.got.as_str(),
            problem.expected.as_str(),
        );
        assert_eq!(seen, (kind, got, expected), "{name}");
        assert_eq!(problem.node, "node");
        let port = problem.port.as_deref();
        assert!(kind == Kind::Custom || port == Some(name), "{problem}");
    }
    let wrong = only(&beside(DocNode::new("picture.load", 1).set("file", "ABC")));
    assert_eq!(wrong.kind, Kind::BadAssetHash);
}

#[test]
fn values_at_the_edges_are_right() {
    let right = grade()
        .set("amount", 1)
        .set("steps", Datum::Float(100.0))
        .set("seed", u64::MAX)
        .set("label", "語".repeat(20));
    assert_eq!(validate(&beside(right), &registry()), []);
}

#[test]
fn a_seed_of_two_to_the_64_from_a_file_is_refused_not_clamped() {
    let text = r#"{"longtake":1,"nodes":{"n":{"type":"picture.grade","version":2,
        "widgets":{"seed":18446744073709551616}}}}"#;
    let document = Document::parse(text, &flow_graph::Limits::default()).unwrap();
    let problems = validate(&document, &registry());
    assert!(
        problems
            .iter()
            .any(|problem| problem.kind == Kind::AboveMax),
        "{problems:?}"
    );
}

#[test]
fn names_and_links_say_what_was_meant() {
    let cases: [(DocNode, &str); 7] = [
        (
            DocNode::new("picture.garde", 2),
            "node \"node\": unknown node type: expected a node type of this version, got \
             \"picture.garde\"; did you mean \"picture.grade\"?",
        ),
        (
            grade().set("amonut", 1),
            "node \"node\" port \"amonut\": no such input: expected one of \"picture\", \"amount\", \
             \"steps\", \"seed\", \"look\", \"label\", \"exact\", \"curve\", \"mask\", got \
             \"amonut\"; did you mean \"amount\"?",
        ),
        (
            grade().link("masc", "load", "mask"),
            "node \"node\" port \"masc\": no such input: expected one of \"picture\", \"amount\", \
             \"steps\", \"seed\", \"look\", \"label\", \"exact\", \"curve\", \"mask\", got \
             \"masc\"; did you mean \"mask\"?",
        ),
        (
            grade().link("mask", "load", "msak"),
            "node \"node\" port \"mask\": linked to an output that is not there: expected one of \
             \"picture\", \"mask\", got output \"msak\" of node \"load\"; did you mean \"mask\"?",
        ),
        (
            grade().link("mask", "lod", "mask"),
            "node \"node\" port \"mask\": linked to a node that is not there: expected a node \
             beside it, got \"lod\"; did you mean \"load\"?",
        ),
        (
            grade().link("mask", "load", "picture"),
            "node \"node\" port \"mask\": linked to an output of another type: expected \"mask\", \
             got \"picture\" from output \"picture\" of node \"load\"",
        ),
        (
            DocNode::subgraph("look"),
            "node \"node\": unknown subgraph: expected a subgraph of this document, got \"look\"",
        ),
    ];
    for (node, text) in cases {
        assert_eq!(only(&beside(node)).to_string(), text);
    }
}

#[test]
fn versions_are_told_apart() {
    let mut newer = grade();
    newer.version = 3;
    let problem = only(&beside(newer.set("invented", 1)));
    assert_eq!(
        (problem.kind, problem.got.as_str()),
        (Kind::NewerNodeVersion, "version 3")
    );
    let older = DocNode::new("picture.grade", 1).set("strength", 1);
    assert_eq!(only(&beside(older)).kind, Kind::OlderNodeVersion);
}

#[test]
fn a_required_input_must_bring_something() {
    let problem = only(&beside(DocNode::new("picture.grade", 2)));
    assert_eq!(problem.kind, Kind::MissingInput);
    assert_eq!(
        problem.to_string(),
        "node \"node\" port \"picture\": required input is missing: expected a link of type \
         \"picture\", got nothing"
    );
    let mut muted = beside(grade());
    muted.nodes.get_mut("load").unwrap().mode = Mode::Mute;
    let problem = only(&muted);
    assert_eq!(
        problem.got,
        "a link to node \"load\" through which nothing comes"
    );
    let asset = only(&beside(DocNode::new("picture.load", 1)));
    assert_eq!(
        (asset.kind, asset.port.as_deref()),
        (Kind::MissingInput, Some("file"))
    );
    // A muted wrong node harms nobody.
    let unknown = DocNode::new("no.such", 1).mode(Mode::Mute);
    assert_eq!(validate(&beside(unknown), &registry()), []);
}

#[test]
fn cycles_are_spelled_out_once_each() {
    let mut document = Document::new();
    let pass = |from: &str| DocNode::new("any.pass", 1).link("in", from, "out");
    for (id, from) in [
        ("c", "b"),
        ("b", "a"),
        ("a", "c"),
        ("self", "self"),
        ("after", "a"),
    ] {
        document.add(id, pass(from)).unwrap();
    }
    document.add("free", load()).unwrap();
    let problems = validate(&document, &registry());
    let seen: Vec<_> = problems
        .iter()
        .map(|p| (p.kind, p.node.as_str(), p.got.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            (Kind::Cycle, "a", "a -> b -> c -> a"),
            (Kind::Cycle, "self", "self -> self")
        ]
    );
    let options = FlattenOptions::default();
    let rest = flatten_runnable(&document, &registry(), &options);
    assert_eq!(rest.left_out, ["a", "after", "b", "c", "self"]);
    assert_eq!(rest.graph.len(), 1);
}

#[test]
fn bypassed_nodes_in_a_ring_bring_nothing() {
    let mut document = Document::new();
    for (id, from) in [("a", "b"), ("b", "a")] {
        let node = DocNode::new("any.pass", 1)
            .link("in", from, "out")
            .mode(Mode::Bypass);
        document.add(id, node).unwrap();
    }
    document
        .add(
            "save",
            DocNode::new("save.any", 1).link("value", "a", "out"),
        )
        .unwrap();
    assert_eq!(only(&document).kind, Kind::MissingInput);
}

#[test]
fn targets_must_be_there_and_run() {
    let mut document = beside(grade());
    document.add("off", grade().mode(Mode::Mute)).unwrap();
    document.targets = vec!["nodes".into(), "off".into(), "node".into()];
    let problems = validate(&document, &registry());
    let seen: Vec<_> = problems
        .iter()
        .map(|p| (p.kind, p.node.as_str(), p.got.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            (Kind::BadTarget, "nodes", "no node of that id"),
            (Kind::BadTarget, "off", "a muted or bypassed node")
        ]
    );
    assert!(flatten(&document, &registry()).is_err());
}

#[test]
fn subgraphs_are_checked_where_they_are_defined() {
    let mut part = Subgraph::new();
    part.add("g", DocNode::new("picture.grade", 2).set("amount", 7))
        .unwrap();
    let part = part
        .feeding("in", "g", "picture")
        .feeding("in", "gone", "picture")
        .feeding("again", "g", "picture")
        .feeding("wrong", "g", "nothing")
        .giving("out", "g", "film");
    let mut document = Document::new();
    document.subgraphs.insert("look".into(), part);
    let problems = validate(&document, &registry());
    let seen: Vec<_> = problems
        .iter()
        .map(|p| (p.kind, p.port.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            (Kind::BadBoundary, Some("in")),
            (Kind::BadBoundary, Some("in")),
            (Kind::BadBoundary, Some("wrong")),
            (Kind::BadBoundary, Some("out")),
            (Kind::AboveMax, Some("amount")),
        ]
    );
    assert!(
        problems
            .iter()
            .all(|problem| problem.subgraph.as_deref() == Some("look"))
    );
    assert!(
        problems[4]
            .to_string()
            .starts_with("subgraph \"look\" node \"g\" port \"amount\": ")
    );
}

#[test]
fn instances_are_held_to_what_they_feed() {
    let mut part = Subgraph::new();
    part.add("g", DocNode::new("picture.grade", 2)).unwrap();
    let part = part
        .feeding("in", "g", "picture")
        .feeding("amount", "g", "amount")
        .giving("out", "g", "picture");
    let with = |node: DocNode| {
        let mut document = beside(node);
        document.subgraphs.insert("look".into(), part.clone());
        document
    };
    let right = DocNode::subgraph("look").link("in", "load", "picture");
    assert_eq!(
        validate(&with(right.clone().set("amount", 1)), &registry()),
        []
    );
    let wrong = only(&with(right.clone().set("amount", 2)));
    assert_eq!((wrong.kind, wrong.node.as_str()), (Kind::AboveMax, "node"));
    let wrong = only(&with(right.clone().link("amount", "load", "picture")));
    assert_eq!(wrong.kind, Kind::TypeMismatch);
    let wrong = only(&with(right.set("amuont", 1)));
    assert_eq!(wrong.did_you_mean.as_deref(), Some("amount"));
    // Left open, the inner input is missing, in this instance.
    let wrong = only(&with(DocNode::subgraph("look")));
    assert_eq!(
        (wrong.kind, wrong.node.as_str()),
        (Kind::MissingInput, "node:g")
    );
}

#[test]
fn a_subgraph_that_holds_itself_is_told_with_its_path() {
    let mut document = Document::new();
    for (name, inner) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let mut part = Subgraph::new();
        part.add("n", DocNode::subgraph(inner)).unwrap();
        document.subgraphs.insert(name.into(), part);
    }
    document.add("top", DocNode::subgraph("a")).unwrap();
    let problems = validate(&document, &registry());
    let first = &problems[0];
    assert_eq!(
        (first.kind, first.got.as_str()),
        (Kind::RecursiveSubgraph, "a -> b -> c -> a")
    );
    assert!(problems.iter().any(|problem| problem.node == "top"));
}

#[test]
fn ids_that_meet_after_expansion_are_told() {
    let mut part = Subgraph::new();
    part.add("x", load()).unwrap();
    let mut document = Document::new();
    document.subgraphs.insert("s".into(), part);
    document.add("a", DocNode::subgraph("s")).unwrap();
    document.add("a:x", load()).unwrap();
    let problem = only(&document);
    assert_eq!(
        (problem.kind, problem.node.as_str()),
        (Kind::DuplicateId, "a:x")
    );
}

#[test]
fn a_wrong_node_stops_only_what_depends_on_it() {
    let mut document = beside(grade().set("amount", 9));
    document
        .add(
            "after",
            DocNode::new("save.picture", 1).link("picture", "node", "picture"),
        )
        .unwrap();
    document
        .add(
            "apart",
            DocNode::new("save.picture", 1).link("picture", "load", "picture"),
        )
        .unwrap();
    let rest = flatten_runnable(&document, &registry(), &FlattenOptions::default());
    assert_eq!(rest.problems.len(), 1);
    assert_eq!(rest.left_out, ["after", "node"]);
    let targets: Vec<&str> = rest
        .graph
        .targets()
        .iter()
        .map(|&index| rest.graph.node(index).unwrap().id.as_str())
        .collect();
    assert_eq!(targets, ["apart"]);
}

#[test]
fn a_link_that_is_wrong_in_itself_is_told_once() {
    let problem = only(&beside(grade().link("picture", "lod", "picture")));
    assert_eq!(problem.kind, Kind::DanglingLink);
}

#[test]
fn specs_are_held_to_their_own_rules() {
    for node in registry().iter() {
        assert_eq!(node.spec().faults(), Vec::<String>::new());
    }
    let twice = vec![float("x", 2.0, 0.0, 1.0), float("x", 0.0, 0.0, 1.0)];
    let wrong = spec("t", 0, twice, &[("", flow_graph::PortType::ANY)]);
    assert_eq!(
        wrong.faults(),
        [
            "expected a type name and a version of at least 1",
            "input \"x\": expected a default of at most 1, got 2.0",
            "input \"x\": expected a name of its own",
            "output \"\": expected a name of its own",
        ]
    );
}
