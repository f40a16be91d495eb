use std::time::Instant;

use flow_graph::{DocNode, Document, Limits, Mode, ProblemKind, Subgraph, flatten, validate};

use crate::stubs::registry;

const MANY: usize = 100_000;

fn chain(mode: Mode) -> Document {
    let mut document = Document::new();
    document
        .add("n000000", DocNode::new("math.constant", 1))
        .unwrap();
    for at in 1..MANY {
        let before = format!("n{:06}", at - 1);
        let output = if at == 1 { "value" } else { "out" };
        let node = DocNode::new("any.pass", 1)
            .link("in", before, output)
            .mode(mode);
        document.nodes.insert(format!("n{at:06}"), node);
    }
    let last = format!("n{:06}", MANY - 1);
    document
        .add(
            "save",
            DocNode::new("save.any", 1).link("value", last, "out"),
        )
        .unwrap();
    document
}

#[test]
fn a_chain_of_100_000_nodes_is_read_validated_and_ordered() {
    let document = chain(Mode::Run);
    let started = Instant::now();
    let text = document.to_json().unwrap();
    let written = started.elapsed();
    let read = Document::parse(&text, &Limits::default()).unwrap();
    let parsed = started.elapsed() - written;
    assert_eq!(read, document);
    let started = Instant::now();
    let registry = registry();
    assert_eq!(validate(&document, &registry), []);
    let validated = started.elapsed();
    let graph = flatten(&document, &registry).unwrap();
    let flattened = started.elapsed() - validated;
    assert_eq!(graph.len(), MANY + 1);
    assert_eq!(graph.needed(graph.targets()).len(), MANY + 1);
    println!("write {written:?}, read {parsed:?}, validate {validated:?}, flatten {flattened:?}");
    // A hundredfold of what is measured: catches what grows with the square.
    assert!(validated.as_secs() < 20, "validation took {validated:?}");
}

#[test]
fn a_chain_of_100_000_bypassed_nodes_is_walked_once() {
    let mut document = chain(Mode::Bypass);
    for at in 0..1000 {
        let last = format!("n{:06}", MANY - 1);
        let save = DocNode::new("save.any", 1).link("value", last, "out");
        document.nodes.insert(format!("save{at}"), save);
    }
    let graph = flatten(&document, &registry()).unwrap();
    assert_eq!(graph.len(), 1002);
    assert_eq!(graph.dependents(0).len(), 1001);
}

#[test]
fn a_ring_of_100_000_nodes_is_one_cycle_told_shortly() {
    let mut document = chain(Mode::Run);
    let first = DocNode::new("any.pass", 1).link("in", format!("n{:06}", MANY - 1), "out");
    document.nodes.insert("n000000".into(), first);
    document
        .nodes
        .get_mut("n000001")
        .unwrap()
        .links
        .get_mut("in")
        .unwrap()
        .output = "out".into();
    let problems = validate(&document, &registry());
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::Cycle);
    let path = &problems[0].got;
    assert!(path.starts_with("n000000 -> n000001 -> "), "{path}");
    assert!(
        path.ends_with(" -> n099999 -> n000000") && path.len() < 500,
        "{path}"
    );
}

#[test]
fn subgraphs_that_double_are_counted_before_they_are_expanded() {
    let mut document = Document::new();
    for level in 0..60 {
        let mut part = Subgraph::new();
        let inner = if level == 0 {
            DocNode::new("math.constant", 1)
        } else {
            DocNode::subgraph(&format!("s{}", level - 1))
        };
        part.add("a", inner.clone()).unwrap();
        part.add("b", inner).unwrap();
        document.subgraphs.insert(format!("s{level}"), part);
    }
    document.add("top", DocNode::subgraph("s59")).unwrap();
    let problems = validate(&document, &registry());
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::TooManyNodes);
    assert_eq!(problems[0].got, (1u64 << 60).to_string());
}

#[test]
fn subgraphs_nested_without_end_are_refused() {
    let mut document = Document::new();
    for level in 0..20_000 {
        let mut part = Subgraph::new();
        if level > 0 {
            part.add("n", DocNode::subgraph(&format!("s{}", level - 1)))
                .unwrap();
        }
        document.subgraphs.insert(format!("s{level}"), part);
    }
    let problems = validate(&document, &registry());
    let too_deep = |kind| {
        problems
            .iter()
            .filter(|problem| problem.kind == kind)
            .count()
    };
    assert!(too_deep(ProblemKind::SubgraphTooDeep) > 0);
}

#[test]
fn long_names_times_nesting_do_not_fill_memory() {
    let long = "x".repeat(1 << 20);
    let mut part = Subgraph::new();
    for at in 0..300 {
        part.add(format!("{at}"), DocNode::new("math.constant", 1))
            .unwrap();
    }
    let mut document = Document::new();
    document.subgraphs.insert("s".into(), part);
    document.add(long, DocNode::subgraph("s")).unwrap();
    let problems = validate(&document, &registry());
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::TooManyNodes);
}

#[test]
fn definitions_that_all_lead_back_are_told_in_part() {
    let mut document = Document::new();
    let many = 20_000;
    for at in 0..many {
        let mut part = Subgraph::new();
        let next = format!("s{}", (at + 1) % many);
        part.add("next", DocNode::subgraph(&next)).unwrap();
        part.add("first", DocNode::subgraph("s0")).unwrap();
        document.subgraphs.insert(format!("s{at}"), part);
    }
    let problems = validate(&document, &registry());
    let rings: Vec<_> = problems
        .iter()
        .filter(|problem| problem.kind == ProblemKind::RecursiveSubgraph)
        .collect();
    assert_eq!(rings.len(), 100);
    assert!(rings.iter().all(|problem| problem.got.len() < 500));
    assert_eq!(problems.len(), 10_000, "sentences are listed up to a limit");
}

#[test]
fn a_bypassed_instance_of_many_ports_is_searched_once() {
    let (many, mut part) = (20_000, Subgraph::new());
    part.add("mask", DocNode::new("mask.to_picture", 1))
        .unwrap();
    part.add("number", DocNode::new("math.add", 1)).unwrap();
    let mut part = part.feeding("zz", "number", "a");
    for at in 0..many {
        part = part.giving(format!("o{at}"), "number", "sum");
        // Inputs that feed nothing known still are sockets.
        part.inputs.insert(
            format!("i{at}"),
            vec![flow_graph::Link::new("mask", "mask")],
        );
    }
    let mut document = Document::new();
    document.subgraphs.insert("s".into(), part);
    document.add("c", DocNode::new("math.constant", 1)).unwrap();
    let instance = DocNode::subgraph("s")
        .link("zz", "c", "value")
        .mode(Mode::Bypass);
    document.add("s", instance).unwrap();
    for at in 0..many {
        let node = DocNode::new("math.add", 1).link("a", "s", format!("o{at}"));
        document.nodes.insert(format!("n{at}"), node);
    }
    let options = flow_graph::FlattenOptions::default();
    let graph = flow_graph::flatten_runnable(&document, &registry(), &options).graph;
    assert_eq!(graph.dependents(graph.index_of("c").unwrap()).len(), many);
}
