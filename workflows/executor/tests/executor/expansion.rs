//! Graphs that nodes put in their own place.

use engine_base::{Code, Datum};
use flow_executor::Limits;
use flow_graph::{
    Document, Expansion, ExpansionOutput, Lane, NodeSpec, Outcome, OutputSpec, PortOutput, Value,
};

use crate::kit::{
    Kit, counts, doc, expansion, input, int_input, ints, nap, node, out, output, spec,
};

/// A kit with `loop`, which counts `turns` down by expanding to itself and adds `step` each time.
fn looping_kit() -> Kit {
    let mut kit = Kit::new();
    let inputs = || vec![int_input("turns"), int_input("value"), int_input("step")];
    kit.add(spec("loop", inputs()), |_, call| {
        let turns = call.int("turns")?;
        if turns == 0 {
            return Ok(Outcome::data(call.int("value")?));
        }
        let step = call.int("step")?;
        Ok(expansion(
            vec![
                ("body", node("add").set("b", step)),
                (
                    "next",
                    node("loop")
                        .set("turns", turns - 1)
                        .set("step", step)
                        .link("value", "body", "out"),
                ),
            ],
            vec![("body", "a", vec![call.one("value")?.clone()])],
            "next",
        ))
    });
    kit
}

#[test]
fn a_loop_by_expansion_turns_as_often_as_it_should() {
    for turns in 1..=4 {
        let kit = looping_kit();
        let document = doc(
            [(
                "loop",
                node("loop")
                    .set("turns", turns)
                    .set("step", 10)
                    .set("value", 1),
            )],
            &["loop"],
        );
        let report = kit.run(&document);
        assert_eq!(out(&report, "loop"), [1 + 10 * turns]);
        let ran = counts(&kit.record.take());
        assert_eq!(ran["add"] as i64, turns);
        assert_eq!(ran["loop"] as i64, turns + 1);
        // The expanding node's own result is kept too.
        let again = kit.run(&document);
        assert_eq!((again.reused, again.made), (1, 0));
        assert!(kit.record.take().is_empty());
        // One turn more needs no body that was there already, only the loop around it.
        let more = doc(
            [(
                "loop",
                node("loop")
                    .set("turns", turns + 1)
                    .set("step", 10)
                    .set("value", -9),
            )],
            &["loop"],
        );
        assert_eq!(out(&kit.run(&more), "loop"), [1 + 10 * turns]);
        assert_eq!(counts(&kit.record.take())["add"], 1);
    }
}

#[test]
fn lists_go_through_expansions_and_mix_with_known_values() {
    let mut kit = Kit::new();
    let mixed = NodeSpec {
        outputs: vec![
            OutputSpec {
                list: true,
                ..output("out")
            },
            output("known"),
        ],
        ..spec("mixed", vec![int_input("a")])
    };
    kit.add(mixed, |_, call| {
        let a = call.int("a")?;
        let mut document = Document::new();
        document
            .add("values", node("list").set("values", ints(&[a, a + 1])))
            .unwrap();
        document
            .add("add", node("add").link("a", "values", "out").set("b", 100))
            .unwrap();
        Ok(Outcome::Expand(Box::new(Expansion {
            document,
            given: vec![],
            outputs: vec![
                ExpansionOutput::Link("add".into(), "out".into()),
                ExpansionOutput::Known(PortOutput::One(Value::data(a * 2))),
            ],
        })))
    });
    let document = doc(
        [
            ("values", node("list").set("values", ints(&[1, 10]))),
            ("mixed", node("mixed").link("a", "values", "out")),
            ("sum", node("sum").link("items", "mixed", "out")),
        ],
        &["mixed", "sum"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "mixed"), [101, 102, 110, 111]);
    assert_eq!(out(&report, "sum"), [424]);
    let known: Vec<i64> = report
        .output("mixed", "known")
        .unwrap()
        .iter()
        .map(|v| v.as_datum().and_then(Datum::as_i64).unwrap())
        .collect();
    assert_eq!(known, [2, 20]);
}

#[test]
fn failures_inside_name_the_inner_node_and_the_node_to_show() {
    let mut kit = Kit::new();
    kit.add(spec("outer", vec![input("a")]), |_, _| {
        Ok(expansion(vec![("inner", node("fail"))], vec![], "inner"))
    });
    let document = doc(
        [
            ("outer", node("outer")),
            ("next", node("half").link("a", "outer", "out")),
        ],
        &["next"],
    );
    let report = kit.run(&document);
    let error = &report.errors[0];
    assert_eq!(
        (error.node.as_str(), error.display.as_str()),
        ("outer.0.inner", "outer")
    );
    assert_eq!(error.input.as_deref(), Some("a"));
    assert_eq!((report.failed, report.skipped), (1, 2));
    assert!(
        report
            .skips
            .iter()
            .all(|skip| skip.because == "outer.0.inner")
    );
}

#[test]
fn a_cycle_in_an_expansion_is_the_fault_of_the_node_that_expanded() {
    let mut kit = Kit::new();
    kit.add(spec("knot", vec![]), |_, _| {
        Ok(expansion(
            vec![
                ("a", node("half").link("a", "b", "out")),
                ("b", node("half").link("a", "a", "out")),
            ],
            vec![],
            "a",
        ))
    });
    let report = kit.run(&doc([("knot", node("knot"))], &["knot"]));
    assert_eq!(report.errors[0].node, "knot");
    assert_eq!(report.errors[0].code, Code::BadInput);
}

#[test]
fn expansions_without_end_are_errors() {
    let mut kit = Kit::new();
    // Needs its own result to give its result.
    kit.add(spec("itself", vec![]), |_, _| {
        Ok(expansion(vec![("again", node("itself"))], vec![], "again"))
    });
    // Two that need each other.
    kit.add(spec("ping", vec![]), |_, _| {
        Ok(expansion(vec![("pong", node("pong"))], vec![], "pong"))
    });
    kit.add(spec("pong", vec![]), |_, _| {
        Ok(expansion(vec![("ping", node("ping"))], vec![], "ping"))
    });
    // Goes ever deeper.
    kit.add(spec("deeper", vec![int_input("a")]), |_, call| {
        let next = node("deeper").set("a", call.int("a")? + 1);
        Ok(expansion(vec![("next", next)], vec![], "next"))
    });
    kit.limits = Limits {
        depth: 50,
        ..kit.limits
    };
    let document = doc(
        [
            ("itself", node("itself")),
            ("ping", node("ping")),
            ("pong", node("pong")),
            ("deeper", node("deeper")),
            ("fine", node("int").set("value", 4)),
        ],
        &["itself", "ping", "pong", "deeper", "fine"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "fine"), [4]);
    assert_eq!(report.outputs.len(), 1);
    let depth = report
        .errors
        .iter()
        .find(|e| e.code == Code::Refused)
        .unwrap();
    assert_eq!(depth.display, "deeper");
    assert!(depth.message.contains("50"), "{}", depth.message);
    assert!(report.errors.iter().any(|e| e.node == "itself"));
}

#[test]
fn wrong_expansions_are_errors_of_their_node() {
    let mut kit = Kit::new();
    kit.add(spec("bad-link", vec![]), |_, _| {
        Ok(expansion(vec![("a", node("int"))], vec![], "not there"))
    });
    kit.add(spec("bad-type", vec![]), |_, _| {
        Ok(expansion(vec![("a", node("unheard of"))], vec![], "a"))
    });
    kit.add(spec("no-outputs", vec![]), |_, _| {
        Ok(Outcome::Expand(Box::new(Expansion {
            document: Document::new(),
            given: vec![],
            outputs: vec![],
        })))
    });
    let document = doc(
        [
            ("bad-link", node("bad-link")),
            ("bad-type", node("bad-type")),
            ("no-outputs", node("no-outputs")),
        ],
        &["bad-link", "bad-type", "no-outputs"],
    );
    let report = kit.run(&document);
    let mut nodes: Vec<&str> = report.errors.iter().map(|e| e.node.as_str()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["bad-link", "bad-type", "no-outputs"]);
}

#[test]
fn output_nodes_of_an_expansion_run_and_sleeps_in_it_overlap() {
    let mut kit = Kit::new();
    let sleep = NodeSpec {
        lane: Lane::Wait,
        output_node: true,
        ..spec("sleep", vec![int_input("a")])
    };
    kit.add(sleep, |context, call| {
        nap(context, 200)?;
        Ok(Outcome::data(call.int("a")?))
    });
    kit.add(spec("sleepers", vec![]), |_, _| {
        let sleep = |a: i64| node("sleep").set("a", a);
        let nodes = vec![
            ("a", sleep(1)),
            ("b", sleep(2)),
            ("c", sleep(3)),
            ("d", sleep(4)),
        ];
        Ok(expansion(nodes, vec![], "a"))
    });
    let report = kit.run(&doc([("s", node("sleepers"))], &["s"]));
    assert_eq!(out(&report, "s"), [1]);
    assert_eq!(counts(&kit.record.take())["sleep"], 4);
    assert!(
        report.wall_secs < 0.6,
        "4 x 0.2 s took {} s",
        report.wall_secs
    );
}
