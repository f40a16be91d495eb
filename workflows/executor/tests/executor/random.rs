//! Random graphs with random edits: a run that reuses gives what a run from scratch gives, and no
//! call is ever made twice.

use std::collections::HashSet;

use flow_graph::{DocNode, Document};
use proptest::prelude::*;

use crate::kit::{Kit, ints, node, shown};

/// What a node is made from; `a` and `b` choose among the nodes before it.
#[derive(Debug, Clone)]
struct Sketch {
    kind: u8,
    a: prop::sample::Index,
    b: prop::sample::Index,
    value: i64,
}

fn sketch() -> impl Strategy<Value = Sketch> {
    (
        0..7u8,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        -2..5i64,
    )
        .prop_map(|(kind, a, b, value)| Sketch { kind, a, b, value })
}

fn id(at: usize) -> String {
    format!("n{at:02}")
}

fn draw(at: usize, sketch: &Sketch) -> DocNode {
    if at == 0 {
        return node("int").set("value", sketch.value);
    }
    let a = id(sketch.a.index(at));
    let b = id(sketch.b.index(at));
    match sketch.kind {
        0 => node("int").set("value", sketch.value),
        1 => node("add").link("a", a, "out").link("b", b, "out"),
        2 => node("add").link("a", a, "out").set("b", sketch.value),
        3 => node("half").link("a", a, "out"),
        4 => {
            let values: Vec<i64> = (0..sketch.value.max(0)).collect();
            node("list").set("values", ints(&values))
        }
        5 => node("sum").link("items", a, "out"),
        _ => node("switch")
            .set("which", sketch.value.rem_euclid(2))
            .link("zero", a, "out")
            .link("other", b, "out"),
    }
}

fn document(sketches: &[Sketch]) -> Document {
    let mut document = Document::new();
    for (at, sketch) in sketches.iter().enumerate() {
        document.add(id(at), draw(at, sketch)).unwrap();
    }
    // Not all nodes: some are reached only through a lazy input, some not at all.
    let targets = (0..sketches.len()).rev().step_by(3).map(id);
    document.targets = targets.collect();
    document
}

fn results(kit: &Kit, document: &Document) -> Vec<(String, Vec<String>)> {
    let report = kit.run(document);
    assert!(
        report.is_complete(),
        "{:?} {:?}",
        report.errors,
        report.skips
    );
    let targets = document.targets.iter();
    targets.map(|id| (id.clone(), shown(&report, id))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn incremental_equals_from_scratch(
        mut sketches in prop::collection::vec(sketch(), 4..24),
        edits in prop::collection::vec((any::<prop::sample::Index>(), sketch()), 1..4),
    ) {
        let kit = Kit::new();
        let mut seen = HashSet::new();
        let mut edits = edits.into_iter();
        loop {
            let document = document(&sketches);
            let plan = kit.plan(&document);
            let incremental = results(&kit, &document);
            let ran = kit.record.take();
            prop_assert!(plan.will_run <= ran.len() as u64, "{plan:?} but {ran:?}");
            if plan.unknown == 0 {
                prop_assert_eq!(plan.will_run, ran.len() as u64);
            }
            for line in ran {
                prop_assert!(seen.insert(line.clone()), "ran again: {}", line);
            }
            let scratch = Kit::new();
            prop_assert_eq!(&incremental, &results(&scratch, &document));
            let Some((place, sketch)) = edits.next() else {
                break;
            };
            let at = place.index(sketches.len());
            sketches[at] = sketch;
        }
    }
}
