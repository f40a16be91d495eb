//! Lists, blocked elements and lazy inputs.

use engine_base::{Code, Datum};
use flow_graph::{InputSpec, NodeError, NodeSpec, Outcome, PortOutput, Value};

use crate::kit::{Kit, counts, doc, input, int_input, ints, node, out, shown, spec};

#[test]
fn shorter_lists_repeat_their_last_element_and_each_element_has_its_key() {
    let kit = Kit::new();
    let film = |left: &[i64], right: &[i64]| {
        doc(
            [
                ("left", node("list").set("values", ints(left))),
                ("right", node("list").set("values", ints(right))),
                (
                    "add",
                    node("add")
                        .link("a", "left", "out")
                        .link("b", "right", "out"),
                ),
                ("sum", node("sum").link("items", "add", "out")),
            ],
            &["add", "sum"],
        )
    };
    let report = kit.run(&film(&[1, 2, 3, 4], &[10, 20]));
    assert_eq!(out(&report, "add"), [11, 22, 23, 24]);
    assert_eq!(out(&report, "sum"), [80]);
    kit.record.take();

    let report = kit.run(&film(&[1, 2, 3, 4, 5], &[10, 20]));
    assert_eq!(out(&report, "sum"), [105]);
    let ran: Vec<String> = kit.record.take();
    let added: Vec<&String> = ran.iter().filter(|line| line.starts_with("add")).collect();
    assert_eq!(added, ["add a=5 b=20"], "one more element is one more call");
    assert_eq!(report.reused, 5, "four sums and the shorter list");
}

#[test]
fn an_empty_list_means_no_calls_and_whole_lists_may_be_empty() {
    let kit = Kit::new();
    let document = doc(
        [
            ("none", node("list").set("values", ints(&[]))),
            ("add", node("add").link("a", "none", "out").set("b", 1)),
            ("sum", node("sum").link("items", "add", "out")),
        ],
        &["add", "sum"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "add"), [0i64; 0]);
    assert_eq!(out(&report, "sum"), [0]);
    assert!(!counts(&kit.record.take()).contains_key("add"));
}

#[test]
fn lists_of_outputs_are_joined_in_order() {
    let mut kit = Kit::new();
    let count = NodeSpec {
        outputs: vec![flow_graph::OutputSpec {
            list: true,
            ..crate::kit::output("out")
        }],
        ..spec("count", vec![int_input("to")])
    };
    kit.add(count, |_, call| {
        let list = (0..call.int("to")?).map(Value::data).collect();
        Ok(Outcome::Values(vec![PortOutput::Many(list)]))
    });
    let document = doc(
        [
            ("lengths", node("list").set("values", ints(&[2, 0, 3]))),
            ("count", node("count").link("to", "lengths", "out")),
        ],
        &["count"],
    );
    assert_eq!(out(&kit.run(&document), "count"), [0, 1, 0, 1, 2]);
}

fn blocking_kit(message: Option<&'static str>) -> Kit {
    let mut kit = Kit::new();
    let block = spec("block-even", vec![int_input("a")]);
    kit.add(block, move |_, call| {
        let a = call.int("a")?;
        let blocked = Value::Blocked(message.map(str::to_owned));
        let value = if a % 2 == 0 { blocked } else { Value::data(a) };
        Ok(Outcome::Values(vec![PortOutput::One(value)]))
    });
    kit
}

#[test]
fn a_blocked_element_stops_only_what_depends_on_it() {
    for message in [None, Some("no even numbers")] {
        let kit = blocking_kit(message);
        let document = doc(
            [
                ("values", node("list").set("values", ints(&[1, 2, 3]))),
                ("block", node("block-even").link("a", "values", "out")),
                ("add", node("add").link("a", "block", "out").set("b", 10)),
                ("after", node("half").link("a", "add", "out")),
                ("sum", node("sum").link("items", "add", "out")),
            ],
            &["add", "after", "sum"],
        );
        for turn in 0..2 {
            let report = kit.run(&document);
            assert_eq!(shown(&report, "add"), ["11", "blocked None", "13"]);
            assert_eq!(shown(&report, "after"), ["5", "blocked None", "6"]);
            assert_eq!(shown(&report, "sum"), ["blocked None"]);
            assert_eq!((report.failed, report.blocked), (0, 3), "turn {turn}");
            let errors: Vec<(&str, Option<usize>, &str)> = report
                .errors
                .iter()
                .map(|e| (e.node.as_str(), e.element, e.message.as_str()))
                .collect();
            match message {
                None => assert_eq!(errors, []),
                Some(text) => assert_eq!(errors, [("add", Some(1), text)]),
            }
        }
        let ran = counts(&kit.record.take());
        assert_eq!((ran["add"], ran["half"], ran.get("sum")), (2, 2, None));
    }
}

#[test]
fn a_lazy_branch_that_is_not_asked_for_does_not_run() {
    let kit = Kit::new();
    let choose = |which: i64| {
        doc(
            [
                ("which", node("int").set("value", which)),
                ("first", node("int").set("value", 100)),
                ("above", node("fail")),
                ("second", node("add").link("a", "above", "out").set("b", 1)),
                (
                    "switch",
                    node("switch")
                        .link("which", "which", "out")
                        .link("zero", "first", "out")
                        .link("other", "second", "out"),
                ),
            ],
            &["switch"],
        )
    };
    let report = kit.run(&choose(0));
    assert_eq!(out(&report, "switch"), [100]);
    assert!(!counts(&kit.record.take()).contains_key("fail"));
    assert!(report.is_complete());

    let report = kit.run(&choose(1));
    assert_eq!(counts(&kit.record.take())["fail"], 1);
    assert_eq!(report.skipped, 2);
    assert!(report.skips.iter().all(|skip| skip.because == "above"));
}

#[test]
fn only_lazy_inputs_that_were_taken_are_in_the_key() {
    let kit = Kit::new();
    let choose = |zero: i64, other: i64| {
        doc(
            [
                ("zero", node("int").set("value", zero)),
                ("other", node("int").set("value", other)),
                (
                    "switch",
                    node("switch")
                        .set("which", 0)
                        .link("zero", "zero", "out")
                        .link("other", "other", "out"),
                ),
            ],
            &["switch"],
        )
    };
    kit.run(&choose(1, 2));
    kit.record.take();
    let report = kit.run(&choose(1, 3));
    assert_eq!(out(&report, "switch"), [1]);
    assert!(kit.record.take().is_empty(), "what was not taken changed");
    let report = kit.run(&choose(5, 3));
    assert_eq!(out(&report, "switch"), [5]);
    assert_eq!(counts(&kit.record.take())["switch"], 1);
}

#[test]
fn lazy_inputs_are_decided_for_each_element() {
    let document = |which: &[i64]| {
        doc(
            [
                ("which", node("list").set("values", ints(which))),
                ("zero", node("list").set("values", ints(&[10, 11, 12]))),
                ("other", node("list").set("values", ints(&[20, 21, 22]))),
                (
                    "switch",
                    node("switch")
                        .link("which", "which", "out")
                        .link("zero", "zero", "out")
                        .link("other", "other", "out"),
                ),
            ],
            &["switch"],
        )
    };
    let kit = Kit::new();
    let report = kit.run(&document(&[0, 1, 0]));
    assert_eq!(out(&report, "switch"), [10, 21, 12]);
    let ran = kit.record.take().into_iter();
    assert_eq!(
        ran.filter(|line| line.starts_with("switch"))
            .collect::<Vec<_>>(),
        [
            "switch other=21 which=1",
            "switch which=0 zero=10",
            "switch which=0 zero=12"
        ]
    );
    // Here nobody takes the second list, and the one that is taken is longer than the choices.
    let kit = Kit::new();
    let report = kit.run(&document(&[0, 0]));
    assert_eq!(out(&report, "switch"), [10, 11, 12]);
    assert_eq!(counts(&kit.record.take())["list"], 2);
}

#[test]
fn asking_for_an_input_that_is_not_there_is_an_error() {
    let mut kit = Kit::new();
    let lazy = InputSpec {
        lazy: true,
        ..input("a")
    };
    kit.add_lazy(
        spec("odd", vec![lazy.clone()]),
        |_| Ok(vec!["b".into()]),
        |_, _| Ok(Outcome::data(1)),
    );
    kit.add_lazy(
        spec("refuses", vec![lazy.clone()]),
        |_| Err(NodeError::new(Code::BadInput, "not today")),
        |_, _| Ok(Outcome::data(1)),
    );
    kit.add_lazy(
        spec("panics", vec![lazy]),
        |_| panic!("in lazy_needed"),
        |_, _| Ok(Outcome::data(1)),
    );
    let document = doc(
        [
            ("one", node("int")),
            ("odd", node("odd").link("a", "one", "out")),
            ("refuses", node("refuses").link("a", "one", "out")),
            ("panics", node("panics").link("a", "one", "out")),
        ],
        &["odd", "refuses", "panics"],
    );
    let report = kit.run(&document);
    let mut errors: Vec<(String, Code)> = report
        .errors
        .iter()
        .map(|e| (e.node.clone(), e.code))
        .collect();
    errors.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        errors,
        [
            ("odd".to_owned(), Code::Internal),
            ("panics".to_owned(), Code::Internal),
            ("refuses".to_owned(), Code::BadInput)
        ]
    );
}

#[test]
fn an_optional_lazy_input_without_a_link_is_not_waited_for() {
    let mut kit = Kit::new();
    let lazy = InputSpec {
        lazy: true,
        ..input("a")
    };
    kit.add(spec("takes", vec![lazy, int_input("b")]), |_, call| {
        Ok(Outcome::data(call.list("a").len() as i64 + call.int("b")?))
    });
    let document = doc(
        [
            ("without", node("takes").set("b", 5)),
            ("one", node("int")),
            ("with", node("takes").link("a", "one", "out").set("b", 5)),
        ],
        &["without", "with"],
    );
    let report = kit.run(&document);
    assert_eq!(
        (out(&report, "without"), out(&report, "with")),
        (vec![5], vec![6])
    );
}

#[test]
fn inputs_without_a_value_get_their_default_and_given_ones_win() {
    let mut kit = Kit::new();
    let with_default = InputSpec {
        widget: Some(flow_graph::Widget::Int {
            default: 7,
            min: 0,
            max: 10,
        }),
        ..input("a")
    };
    kit.add(spec("show", vec![with_default]), |_, call| {
        let value = call.one("a")?.clone();
        Ok(Outcome::Values(vec![PortOutput::One(value)]))
    });
    kit.add(spec("nothing", vec![]), |_, _| {
        Ok(Outcome::data(Datum::Null))
    });
    let document = doc(
        [
            ("unset", node("show")),
            ("set", node("show").set("a", 3)),
            ("null", node("nothing")),
            ("linked", node("show").link("a", "null", "out")),
        ],
        &["unset", "set", "linked"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "unset"), [7]);
    assert_eq!(out(&report, "set"), [3]);
    assert_eq!(shown(&report, "linked"), ["null"]);
}
