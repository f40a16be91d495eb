use engine_base::Datum;
use flow_graph::{
    DocNode, Document, FlatGraph, FlatInput, FlattenOptions, Link, Mode, ProblemKind, Subgraph,
    flatten, flatten_runnable, validate,
};

use crate::stubs::{HASH, registry};

fn load() -> DocNode {
    DocNode::new("picture.load", 1).set("file", HASH)
}

fn save(node: &str, output: &str) -> DocNode {
    DocNode::new("save.picture", 1).link("picture", node, output)
}

fn ids(graph: &FlatGraph) -> Vec<&str> {
    graph.nodes().iter().map(|node| node.id.as_str()).collect()
}

/// What feeds `input` of node `id`: a source as `node.output`, a value in debug form, or `-`.
fn feed(graph: &FlatGraph, id: &str, input: &str) -> String {
    let node = graph.node(graph.index_of(id).unwrap()).unwrap();
    let spec = node.node.spec();
    let at = spec
        .inputs
        .iter()
        .position(|known| known.name == input)
        .unwrap();
    match &node.inputs[at] {
        FlatInput::Absent => "-".to_owned(),
        FlatInput::Literal(datum) => format!("{datum:?}"),
        FlatInput::Link { node, output } => {
            let source = graph.node(*node).unwrap();
            let output = source.node.spec().outputs[*output as usize].name;
            format!("{}.{output}", source.id)
        }
        FlatInput::Given(at) => format!("given {at}"),
    }
}

#[test]
fn defaults_are_filled_in_and_values_have_one_form() {
    let mut document = Document::new();
    document.add("load", load()).unwrap();
    let node = DocNode::new("picture.grade", 2)
        .link("picture", "load", "picture")
        .set("amount", 1)
        .set("steps", Datum::Float(7.0));
    document.add("grade", node).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(feed(&graph, "grade", "picture"), "load.picture");
    assert_eq!(feed(&graph, "grade", "amount"), "Float(1.0)");
    assert_eq!(feed(&graph, "grade", "steps"), "Int(7)");
    assert_eq!(feed(&graph, "grade", "seed"), "Int(0)");
    assert_eq!(feed(&graph, "grade", "look"), "Text(\"warm\")");
    assert_eq!(feed(&graph, "grade", "mask"), "-");
}

#[test]
fn order_follows_links_then_ids() {
    let mut document = Document::new();
    let add = |a: &str, b: &str| {
        DocNode::new("math.add", 1)
            .link("a", a, "sum")
            .link("b", b, "sum")
    };
    document.add("z", DocNode::new("math.add", 1)).unwrap();
    document.add("m", DocNode::new("math.add", 1)).unwrap();
    document.add("a", add("z", "m")).unwrap();
    document.add("b", add("z", "z")).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(ids(&graph), ["m", "z", "a", "b"]);
    let z = graph.index_of("z").unwrap();
    assert_eq!(
        graph.dependents(z),
        [2, 3],
        "two links of one node count once"
    );
    assert_eq!(graph.dependents(3), [0u32; 0]);
    assert_eq!(graph.dependents(99), [0u32; 0]);
    assert_eq!(graph.needed(&[3]), [1, 3]);
    assert_eq!(graph.needed(&[2]), [0, 1, 2]);
}

#[test]
fn targets_are_those_named_or_all_output_nodes() {
    let mut document = Document::new();
    document.add("load", load()).unwrap();
    document.add("one", save("load", "picture")).unwrap();
    document.add("two", save("load", "picture")).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(graph.targets(), [1, 2]);
    document.targets = vec!["two".into(), "two".into()];
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(graph.targets(), [2]);
    assert_eq!(graph.needed(graph.targets()), [0, 2]);
}

/// Bypassed nodes behind chains of reroutes (wf-05); a reroute is a bypassed node that passes
/// anything.
#[test]
fn bypass_looks_at_types_through_any_number_of_reroutes() {
    let mut document = Document::new();
    let mut add = |id: &str, node: DocNode| {
        document.add(id, node).unwrap();
    };
    let reroute = |node: &str, output: &str| {
        DocNode::new("any.pass", 1)
            .link("in", node, output)
            .mode(Mode::Bypass)
    };
    add("1", load());
    add("12", load());
    add(
        "2",
        DocNode::new("picture.upscale", 1)
            .link("picture", "1", "picture")
            .mode(Mode::Bypass),
    );
    add("3", reroute("2", "picture"));
    add("4", reroute("3", "out"));
    add("5", save("4", "out"));
    add("6", save("3", "out"));
    add(
        "7",
        DocNode::new("mask.to_picture", 1)
            .link("mask", "1", "mask")
            .mode(Mode::Bypass),
    );
    add("8", reroute("7", "picture"));
    add("9", save("8", "out"));
    add(
        "11",
        DocNode::new("picture.blend", 1)
            .link("first", "1", "picture")
            .link("second", "12", "picture")
            .mode(Mode::Bypass),
    );
    add("13", reroute("11", "picture"));
    add("14", save("13", "out"));
    let flattened = flatten_runnable(&document, &registry(), &FlattenOptions::default());
    for id in ["5", "6", "14"] {
        assert_eq!(
            feed(&flattened.graph, id, "picture"),
            "1.picture",
            "node {id}"
        );
    }
    let problems: Vec<_> = flattened
        .problems
        .iter()
        .map(|p| (p.node.as_str(), p.kind))
        .collect();
    assert_eq!(problems, [("9", ProblemKind::MissingInput)]);
    assert_eq!(flattened.left_out, ["9"]);
    assert_eq!(ids(&flattened.graph), ["1", "12", "14", "5", "6"]);
    // A reroute that runs asks for anything: the type of what is bypassed decides.
    for node in document
        .nodes
        .values_mut()
        .filter(|node| node.type_name == "any.pass")
    {
        node.mode = Mode::Run;
    }
    let flattened = flatten_runnable(&document, &registry(), &FlattenOptions::default());
    assert_eq!(feed(&flattened.graph, "3", "in"), "1.picture");
}

#[test]
fn a_link_from_a_muted_node_leaves_the_value() {
    let mut document = Document::new();
    document
        .add("c", DocNode::new("math.constant", 1).mode(Mode::Mute))
        .unwrap();
    let node = DocNode::new("math.add", 1)
        .link("a", "c", "value")
        .set("a", 3)
        .link("b", "c", "value");
    document.add("sum", node).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(feed(&graph, "sum", "a"), "Float(3.0)");
    assert_eq!(feed(&graph, "sum", "b"), "Float(0.0)");
    assert_eq!(ids(&graph), ["sum"]);
}

/// `look` holds a grade and, nested, another look-alike; both amounts hang on one input.
fn nested() -> Document {
    let mut inner = Subgraph::new();
    let grade = DocNode::new("picture.grade", 2)
        .set("amount", 0.1)
        .set("steps", 3);
    inner.add("g", grade).unwrap();
    let inner = inner
        .feeding("in", "g", "picture")
        .feeding("amount", "g", "amount")
        .feeding("steps", "g", "steps")
        .giving("out", "g", "picture");
    let mut outer = Subgraph::new();
    outer
        .add("first", DocNode::new("picture.grade", 2))
        .unwrap();
    let second = DocNode::subgraph("inner")
        .link("in", "first", "picture")
        .set("steps", 5);
    outer.add("second", second).unwrap();
    let outer = outer
        .feeding("in", "first", "picture")
        .feeding("amount", "first", "amount")
        .feeding("amount", "second", "amount")
        .giving("out", "second", "out")
        .giving("half", "first", "picture");
    let mut document = Document::new();
    document.subgraphs.insert("inner".into(), inner);
    document.subgraphs.insert("outer".into(), outer);
    document.add("load", load()).unwrap();
    document
}

#[test]
fn subgraphs_expand_and_the_outermost_value_wins() {
    let mut document = nested();
    let instance = DocNode::subgraph("outer")
        .link("in", "load", "picture")
        .set("amount", 1);
    document.add("12", instance).unwrap();
    document
        .add("13", DocNode::subgraph("outer").link("in", "12", "half"))
        .unwrap();
    document.add("save", save("13", "out")).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(
        ids(&graph),
        [
            "load",
            "12:first",
            "12:second:g",
            "13:first",
            "13:second:g",
            "save"
        ]
    );
    assert_eq!(feed(&graph, "12:first", "picture"), "load.picture");
    assert_eq!(feed(&graph, "12:second:g", "picture"), "12:first.picture");
    assert_eq!(feed(&graph, "13:first", "picture"), "12:first.picture");
    assert_eq!(feed(&graph, "save", "picture"), "13:second:g.picture");
    // Given by the instance, it reaches both; not given, each inner value stands.
    assert_eq!(feed(&graph, "12:first", "amount"), "Float(1.0)");
    assert_eq!(feed(&graph, "12:second:g", "amount"), "Float(1.0)");
    assert_eq!(feed(&graph, "13:first", "amount"), "Float(0.5)");
    assert_eq!(feed(&graph, "13:second:g", "amount"), "Float(0.1)");
    // The instance in the middle wins over the innermost node.
    assert_eq!(feed(&graph, "12:second:g", "steps"), "Int(5)");
    let origin = |id: &str| {
        graph
            .node(graph.index_of(id).unwrap())
            .unwrap()
            .origin
            .clone()
    };
    assert_eq!(
        (origin("12:second:g").as_str(), origin("load").as_str()),
        ("12", "load")
    );
}

#[test]
fn a_link_into_an_instance_wins_over_its_value_and_the_inner_one() {
    let mut document = nested();
    document.add("c", DocNode::new("math.constant", 1)).unwrap();
    let instance = DocNode::subgraph("outer")
        .link("in", "load", "picture")
        .link("amount", "c", "value")
        .set("amount", 0.9);
    document.add("o", instance).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(feed(&graph, "o:first", "amount"), "c.value");
    assert_eq!(feed(&graph, "o:second:g", "amount"), "c.value");
}

#[test]
fn a_muted_or_bypassed_instance_is_not_expanded() {
    let mut document = nested();
    let instance = DocNode::subgraph("outer")
        .link("in", "load", "picture")
        .set("amount", 1);
    document.add("o", instance.mode(Mode::Bypass)).unwrap();
    document.add("save", save("o", "out")).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(ids(&graph), ["load", "save"]);
    assert_eq!(feed(&graph, "save", "picture"), "load.picture");
    document.nodes.get_mut("o").unwrap().mode = Mode::Mute;
    let problems = validate(&document, &registry());
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::MissingInput);
}

#[test]
fn bypass_within_a_subgraph_reaches_outside_it() {
    let mut document = nested();
    let outer = document.subgraphs.get_mut("outer").unwrap();
    outer.nodes.get_mut("first").unwrap().mode = Mode::Bypass;
    let instance = DocNode::subgraph("outer").link("in", "load", "picture");
    document.add("o", instance).unwrap();
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(feed(&graph, "o:second:g", "picture"), "load.picture");
}

#[test]
fn a_subgraph_as_target_means_what_it_gives() {
    let mut document = nested();
    let instance = DocNode::subgraph("outer").link("in", "load", "picture");
    document.add("o", instance).unwrap();
    document.targets = vec!["o".into()];
    let graph = flatten(&document, &registry()).unwrap();
    let named: Vec<&str> = graph
        .targets()
        .iter()
        .map(|&at| ids(&graph)[at as usize])
        .collect();
    assert_eq!(named, ["o:first", "o:second:g"]);
    document.targets = vec!["o:first".into()];
    assert_eq!(flatten(&document, &registry()).unwrap().targets().len(), 1);
}

#[test]
fn an_expansion_gets_values_from_outside_and_finds_its_outputs() {
    let mut document = nested();
    document.nodes.clear();
    document
        .add("o", DocNode::subgraph("outer").set("amount", 0.2))
        .unwrap();
    document.add("g", DocNode::new("picture.grade", 2)).unwrap();
    let given = [
        ("o".to_owned(), "in".to_owned()),
        ("g".to_owned(), "picture".to_owned()),
        ("o".to_owned(), "amount".to_owned()),
    ];
    let wanted = [
        Link::new("o", "out"),
        Link::new("g", "picture"),
        Link::new("g", "none"),
        Link::new("x", "y"),
    ];
    let options = FlattenOptions {
        given: &given,
        wanted: &wanted,
    };
    let flattened = flatten_runnable(&document, &registry(), &options);
    assert_eq!(flattened.problems, []);
    let graph = flattened.graph;
    assert_eq!(feed(&graph, "o:first", "picture"), "given 0");
    assert_eq!(feed(&graph, "g", "picture"), "given 1");
    assert_eq!(feed(&graph, "o:second:g", "amount"), "given 2");
    let at = |id: &str| Some((graph.index_of(id).unwrap(), 0));
    assert_eq!(graph.wanted(), [at("o:second:g"), at("g"), None, None]);
}

#[test]
fn flattening_a_flat_graph_changes_nothing() {
    let mut document = nested();
    document
        .add(
            "o",
            DocNode::subgraph("outer").link("in", "load", "picture"),
        )
        .unwrap();
    document.add("save", save("o", "out")).unwrap();
    let once = flatten(&document, &registry()).unwrap();
    let twice = flatten(&once.to_document(), &registry()).unwrap();
    assert_eq!(ids(&once), ids(&twice));
    for (a, b) in once.nodes().iter().zip(twice.nodes()) {
        assert_eq!(a.inputs, b.inputs, "node {:?}", a.id);
    }
    assert_eq!(once.targets(), twice.targets());
}
