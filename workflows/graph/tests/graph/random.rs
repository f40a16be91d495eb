//! Properties over random documents and random damage.

use engine_base::Datum;
use flow_graph::{
    DocNode, Document, FlatInput, FlattenOptions, Limits, Mode, Position, Subgraph, flatten,
    flatten_runnable,
};
use proptest::prelude::*;

use crate::stubs::{HASH, registry};

fn datum() -> impl Strategy<Value = Datum> {
    let leaf = prop_oneof![
        Just(Datum::Null),
        any::<bool>().prop_map(Datum::Bool),
        any::<i64>().prop_map(Datum::Int),
        (1u64 << 63..=u64::MAX).prop_map(Datum::Uint),
        prop::num::f64::NORMAL.prop_map(Datum::Float),
        prop::num::f64::SUBNORMAL.prop_map(Datum::Float),
        Just(Datum::Float(-0.0)),
        ".{0,12}".prop_map(Datum::Text),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Datum::List),
            prop::collection::btree_map(".{0,6}", inner, 0..4).prop_map(Datum::Map),
        ]
    })
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![4 => Just(Mode::Run), 1 => Just(Mode::Mute), 1 => Just(Mode::Bypass)]
}

/// Any node at all, right or wrong.
fn any_node() -> impl Strategy<Value = DocNode> {
    let type_name = prop_oneof![
        Just("math.add".to_owned()),
        Just("any.pass".to_owned()),
        Just("picture.grade".to_owned()),
        Just("subgraph:s".to_owned()),
        Just("subgraph:t".to_owned()),
        ".{0,8}",
    ];
    let name = prop_oneof![
        Just("a".to_owned()),
        Just("in".to_owned()),
        Just("amount".to_owned())
    ];
    let output = prop_oneof![Just("out".to_owned()), Just("sum".to_owned()), ".{0,3}"];
    let links = prop::collection::btree_map(name.clone(), ("[a-f]", output), 0..3);
    let widgets = prop::collection::btree_map(name, datum(), 0..3);
    (
        type_name,
        0u32..4,
        widgets,
        links,
        mode(),
        prop::option::of(".{0,5}"),
    )
        .prop_map(|(type_name, version, widgets, links, mode, title)| {
            let mut node = DocNode::new(type_name, version);
            node.widgets = widgets;
            node.links = links
                .into_iter()
                .map(|(name, link)| (name, link.into()))
                .collect();
            node.mode = mode;
            node.title = title;
            node
        })
}

fn any_document() -> impl Strategy<Value = Document> {
    let nodes = || prop::collection::btree_map("[a-f]", any_node(), 0..6);
    let ends = || prop::collection::btree_map("[a-c]", ("[a-f]", "(in|out|a|sum)"), 0..3);
    let part = (nodes(), ends(), ends()).prop_map(|(nodes, inputs, outputs)| Subgraph {
        inputs: inputs
            .into_iter()
            .map(|(name, link)| (name, vec![link.into()]))
            .collect(),
        outputs: outputs
            .into_iter()
            .map(|(name, link)| (name, link.into()))
            .collect(),
        nodes,
    });
    let place =
        (prop::num::f64::NORMAL, prop::num::f64::NORMAL).prop_map(|(x, y)| Position { x, y });
    (
        nodes(),
        prop::collection::btree_map("[st]", part, 0..3),
        prop::collection::vec("[a-f]", 0..3),
        prop::collection::btree_map("[a-f]", place, 0..3),
        prop::collection::btree_map(".{0,4}", datum(), 0..2),
    )
        .prop_map(|(nodes, subgraphs, targets, places, extra)| {
            let mut document = Document::new();
            document.nodes = nodes;
            document.subgraphs = subgraphs;
            document.targets = targets;
            document.layout.nodes = places;
            document.layout.extra = extra;
            document
        })
}

/// A document that is right: node `i` links to lower ones by number, under a shuffled id.
fn right_document() -> impl Strategy<Value = Document> {
    let node = (
        any::<bool>(),
        mode(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        -9i64..9,
    );
    (prop::collection::vec(node, 1..40), any::<u64>()).prop_map(|(nodes, salt)| {
        let id = |at: usize| {
            let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt;
            format!("{:04x}-{at}", mixed >> 48)
        };
        let mut part = Subgraph::new();
        part.nodes.insert("one".into(), DocNode::new("math.add", 1));
        let two = DocNode::new("math.add", 1)
            .link("a", "one", "sum")
            .set("b", 2);
        part.nodes.insert("two".into(), two);
        let part = part
            .feeding("a", "one", "a")
            .feeding("b", "two", "b")
            .giving("sum", "two", "sum");
        let mut document = Document::new();
        document.subgraphs.insert("s".into(), part);
        for (at, (grouped, mode, first, second, value)) in nodes.iter().enumerate() {
            let mut node = if *grouped {
                DocNode::subgraph("s")
            } else {
                DocNode::new("math.add", 1)
            };
            node = node.set("a", *value).mode(*mode);
            if at > 0 {
                node = node.link("a", id(first.index(at)), "sum");
                if value % 2 == 0 {
                    node = node.link("b", id(second.index(at)), "sum");
                }
            }
            document.nodes.insert(id(at), node);
        }
        let load = DocNode::new("picture.load", 1).set("file", HASH);
        document.nodes.insert("load".into(), load);
        document
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_survives_the_file(document in any_document()) {
        let text = document.to_json().unwrap();
        let read = Document::parse(&text, &Limits::default()).unwrap();
        prop_assert_eq!(&read, &document);
        prop_assert_eq!(read.to_json().unwrap(), text);
    }

    #[test]
    fn any_document_is_judged_without_a_panic(document in any_document()) {
        let registry = registry();
        let first = flatten_runnable(&document, &registry, &FlattenOptions::default());
        let again = flatten_runnable(&document, &registry, &FlattenOptions::default());
        prop_assert_eq!(&first.problems, &again.problems);
        for problem in &first.problems {
            prop_assert!(!problem.to_string().is_empty());
        }
        // What is left is right by itself.
        let rest = flatten(&first.graph.to_document(), &registry);
        prop_assert!(rest.is_ok(), "{:?}", rest.err());
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        document in any_document(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
    ) {
        let mut bytes = document.to_json().unwrap().into_bytes();
        for (at, byte, how) in damage {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(read) = Document::parse(&bytes, &Limits::default()) {
            drop(flatten_runnable(&read, &registry(), &FlattenOptions::default()));
        }
    }

    #[test]
    fn order_respects_links_and_flattening_twice_is_flattening_once(document in right_document()) {
        let registry = registry();
        let graph = flatten(&document, &registry);
        prop_assert!(graph.is_ok(), "{:?}", graph.err());
        let graph = graph.unwrap();
        for (at, node) in graph.nodes().iter().enumerate() {
            prop_assert_eq!(node.inputs.len(), node.node.spec().inputs.len());
            prop_assert_eq!(graph.index_of(&node.id), Some(at as u32));
            for input in &node.inputs {
                if let FlatInput::Link { node: source, .. } = input {
                    prop_assert!((*source as usize) < at);
                    prop_assert!(graph.dependents(*source).contains(&(at as u32)));
                }
            }
        }
        let links: usize = graph.order().map(|at| graph.dependents(at).len()).sum();
        prop_assert!(links <= 2 * graph.len());
        let twice = flatten(&graph.to_document(), &registry).unwrap();
        prop_assert_eq!(graph.len(), twice.len());
        for (a, b) in graph.nodes().iter().zip(twice.nodes()) {
            prop_assert_eq!(&a.id, &b.id);
            prop_assert_eq!(&a.inputs, &b.inputs);
        }
    }
}
