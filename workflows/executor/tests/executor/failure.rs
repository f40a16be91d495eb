//! Nodes that fail, and what goes on beside them.

use std::sync::Arc;

use engine_base::{CancelToken, Code};
use flow_executor::{NoObserver, Request, RunError};
use flow_graph::{NodeSpec, Outcome};

use crate::kit::{Kit, doc, int_input, ints, node, out, spec};

#[test]
fn failures_and_panics_stop_only_what_depends_on_them() {
    let kit = Kit::new();
    let document = doc(
        [
            ("bad", node("fail")),
            ("below", node("half").link("a", "bad", "out")),
            ("lower", node("half").link("a", "below", "out")),
            ("mad", node("panic")),
            ("below-mad", node("half").link("a", "mad", "out")),
            ("good", node("int").set("value", 8)),
            ("fine", node("half").link("a", "good", "out")),
        ],
        &["lower", "below-mad", "fine"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "fine"), [4]);
    assert!(!report.is_complete());
    assert_eq!((report.failed, report.skipped, report.made), (2, 3, 2));
    let bad = report.errors.iter().find(|e| e.node == "bad").unwrap();
    assert_eq!(
        (bad.code, bad.input.as_deref()),
        (Code::BadInput, Some("a"))
    );
    let mad = report.errors.iter().find(|e| e.node == "mad").unwrap();
    assert_eq!(mad.code, Code::Internal);
    assert!(mad.message.contains("stub panic"), "{}", mad.message);
    let mut because: Vec<(&str, &str)> = report
        .skips
        .iter()
        .map(|skip| (skip.node.as_str(), skip.because.as_str()))
        .collect();
    because.sort_unstable();
    assert_eq!(
        because,
        [("below", "bad"), ("below-mad", "mad"), ("lower", "bad")]
    );
}

#[test]
fn a_failed_element_fails_its_node_but_the_others_are_kept() {
    let mut kit = Kit::new();
    kit.add(spec("odd", vec![int_input("a")]), |_, call| {
        let a = call.int("a")?;
        if a % 2 == 0 {
            let message = format!("input \"a\": expected an odd number, got {a}");
            return Err(flow_graph::NodeError::new(Code::BadInput, message));
        }
        Ok(Outcome::data(a))
    });
    let film = |values: &[i64]| {
        doc(
            [
                ("values", node("list").set("values", ints(values))),
                ("odd", node("odd").link("a", "values", "out")),
                ("sum", node("sum").link("items", "odd", "out")),
            ],
            &["sum"],
        )
    };
    let report = kit.run(&film(&[1, 2, 3]));
    assert_eq!(report.errors[0].element, Some(1));
    assert_eq!((report.failed, report.skipped), (1, 1));
    kit.record.take();
    let report = kit.run(&film(&[1, 5, 3]));
    assert_eq!(out(&report, "sum"), [9]);
    let ran = kit.record.take();
    let odd: Vec<&String> = ran.iter().filter(|line| line.starts_with("odd")).collect();
    assert_eq!(odd, ["odd a=5"]);
}

#[test]
fn an_invalid_part_does_not_stop_a_valid_one() {
    let kit = Kit::new();
    let document = doc(
        [
            ("missing", node("not installed")),
            ("needs", node("half").link("a", "missing", "out")),
            ("good", node("int").set("value", 6)),
        ],
        &["needs", "good"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "good"), [6]);
    assert_eq!(report.problems.len(), 1);
    assert_eq!(report.problems[0].node, "missing");
    assert!(!report.is_complete());
    // The executor stays usable.
    assert!(kit.run(&doc([("a", node("int"))], &["a"])).is_complete());
}

#[test]
fn nothing_to_run_is_an_error() {
    let kit = Kit::new();
    let run = |document: &flow_graph::Document, request: &Request| {
        let cancel = CancelToken::new();
        let result = kit
            .executor()
            .run(document, request, Arc::new(NoObserver), &cancel);
        result.err()
    };
    let plain = doc([("a", node("int"))], &[]);
    assert_eq!(
        run(&plain, &Request::default()),
        Some(RunError::NothingAsked)
    );
    let none = Request::of_targets(Vec::<String>::new());
    assert_eq!(run(&plain, &none), Some(RunError::NoTargets));
    let unknown = Request::of_targets(["b"]);
    assert!(matches!(run(&plain, &unknown), Some(RunError::Invalid(_))));
    let cycle = doc(
        [
            ("a", node("half").link("a", "b", "out")),
            ("b", node("half").link("a", "a", "out")),
        ],
        &["a"],
    );
    let error = run(&cycle, &Request::default()).unwrap();
    assert_eq!(error.code(), Code::BadInput);
    assert!(error.to_string().contains("wait for each other"), "{error}");
}

#[test]
fn only_the_targets_asked_for_and_what_they_need_run() {
    let mut kit = Kit::new();
    let save = NodeSpec {
        output_node: true,
        ..spec("save", vec![int_input("a")])
    };
    kit.add(save, |_, call| Ok(Outcome::data(call.int("a")?)));
    let document = doc(
        [
            ("source", node("int").set("value", 1)),
            ("first", node("save").link("a", "source", "out")),
            ("second", node("save").link("a", "first", "out")),
            ("third", node("save").set("a", 9)),
            ("unused", node("int").set("value", 77)),
        ],
        &[],
    );
    let only = |targets: &[&str]| {
        let request = Request::of_targets(targets.iter().copied());
        let report = kit.run_request(&document, &request);
        let mut targets: Vec<String> = report.outputs.keys().cloned().collect();
        targets.sort();
        (targets, report.nodes)
    };
    assert_eq!(only(&["third"]), (vec!["third".to_owned()], 1));
    assert_eq!(only(&["first"]), (vec!["first".to_owned()], 2));
    // A dependency that is an output itself, first not asked for, then asked for.
    assert_eq!(only(&["second"]), (vec!["second".to_owned()], 3));
    assert_eq!(
        only(&["second", "first"]),
        (vec!["first".to_owned(), "second".to_owned()], 3)
    );
    let all = kit.run(&document);
    assert_eq!(all.outputs.len(), 3);
    assert_eq!(all.nodes, 4, "a node that no output needs took part");
}

#[test]
fn a_failure_does_not_disturb_running_siblings() {
    let mut kit = Kit::new();
    kit.add(spec("slow", vec![int_input("a")]), |context, call| {
        crate::kit::nap(context, 100)?;
        Ok(Outcome::data(call.int("a")?))
    });
    let document = doc(
        [
            ("slow", node("slow").set("a", 3)),
            ("bad", node("fail")),
            ("after", node("half").link("a", "slow", "out")),
        ],
        &["after", "bad"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "after"), [1]);
    assert_eq!(report.failed, 1);
}
