//! What a plan says, and that the run then does it.

use engine_base::CancelToken;
use flow_executor::{Costs, PlanState, Request};
use flow_graph::{NodeSpec, Outcome};

use crate::kit::{Kit, doc, int_input, ints, node, spec};

fn state<'p>(plan: &'p flow_executor::Plan, id: &str) -> &'p PlanState {
    &plan.node(id).unwrap().state
}

fn until(id: &str) -> PlanState {
    PlanState::Unknown { until: id.into() }
}

#[test]
fn a_plan_says_what_is_there_what_runs_and_what_waits_for_whom() {
    let kit = Kit::new();
    let chain = |value: i64| {
        doc(
            [
                ("source", node("int").set("value", value)),
                ("half", node("half").link("a", "source", "out")),
                ("last", node("half").link("a", "half", "out")),
                ("apart", node("int").set("value", 50)),
            ],
            &["last", "apart"],
        )
    };
    let plan = kit.plan(&chain(8));
    assert_eq!(state(&plan, "source"), &PlanState::WillRun);
    assert_eq!(state(&plan, "half"), &until("source"));
    assert_eq!(state(&plan, "last"), &until("source"));
    assert_eq!((plan.reused, plan.will_run, plan.unknown), (0, 2, 2));
    assert!(kit.record.take().is_empty(), "planning ran something");

    kit.run(&chain(8));
    let plan = kit.plan(&chain(8));
    assert!(
        plan.nodes
            .iter()
            .all(|node| node.state == PlanState::Reused)
    );
    assert_eq!((plan.reused, plan.will_run, plan.unknown), (4, 0, 0));

    let plan = kit.plan(&chain(9));
    assert_eq!((plan.reused, plan.will_run, plan.unknown), (1, 1, 2));
}

#[test]
fn cheap_nodes_are_evaluated_so_that_the_plan_is_exact() {
    let mut kit = Kit::new();
    let cheap = NodeSpec {
        cheap: true,
        durable: false,
        ..spec("cheap-half", vec![int_input("a")])
    };
    kit.add(cheap, |_, call| Ok(Outcome::data(call.int("a")? / 2)));
    let film = |value: i64| {
        doc(
            [
                ("cheap", node("cheap-half").set("a", value)),
                ("dear", node("add").link("a", "cheap", "out").set("b", 1)),
            ],
            &["dear"],
        )
    };
    kit.run(&film(8));
    let plan = kit.plan(&film(9));
    assert_eq!(state(&plan, "cheap"), &PlanState::Evaluated);
    assert_eq!(state(&plan, "dear"), &PlanState::Reused);
    let plan = kit.plan(&film(10));
    assert_eq!(state(&plan, "dear"), &PlanState::WillRun);
    kit.record.take();
    assert_eq!(kit.run(&film(10)).made, 1);
}

#[test]
fn plans_count_elements_one_by_one() {
    let kit = Kit::new();
    let mut cheap_kit = kit;
    let values = NodeSpec {
        cheap: true,
        durable: false,
        outputs: vec![flow_graph::OutputSpec {
            list: true,
            ..crate::kit::output("out")
        }],
        ..spec("values", vec![crate::kit::data_input("values")])
    };
    cheap_kit.add(values, |_, call| {
        let list = call.datum("values")?.as_list().unwrap_or_default();
        let list = list.iter().cloned().map(flow_graph::Value::data).collect();
        Ok(Outcome::Values(vec![flow_graph::PortOutput::Many(list)]))
    });
    let kit = cheap_kit;
    let film = |values: &[i64]| {
        doc(
            [
                ("values", node("values").set("values", ints(values))),
                ("half", node("half").link("a", "values", "out")),
                ("add", node("add").link("a", "half", "out").set("b", 1)),
                ("sum", node("sum").link("items", "add", "out")),
            ],
            &["sum"],
        )
    };
    kit.run(&film(&[2, 4, 6]));
    let plan = kit.plan(&film(&[2, 4, 6, 8]));
    let calls = |id: &str| {
        let node = plan.node(id).unwrap();
        (node.reused, node.will_run, node.unknown)
    };
    assert_eq!(calls("half"), (3, 1, 0));
    assert_eq!(calls("add"), (3, 0, 1));
    assert_eq!(calls("sum"), (0, 0, 1));
    assert_eq!(state(&plan, "add"), &until("half"));
    let report = kit.run(&film(&[2, 4, 6, 8]));
    assert_eq!((report.made, report.reused), (3, 6));
}

#[test]
fn lazy_inputs_are_planned_as_far_as_they_are_known() {
    let mut kit = Kit::new();
    let cheap = NodeSpec {
        cheap: true,
        durable: false,
        ..spec("cheap", vec![int_input("a")])
    };
    kit.add(cheap, |_, call| Ok(Outcome::data(call.int("a")?)));
    let film = |which: &str| {
        doc(
            [
                ("which", node(which)),
                ("zero", node("int").set("value", 1)),
                ("above", node("int").set("value", 2)),
                ("other", node("half").link("a", "above", "out")),
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
    let plan = kit.plan(&film("cheap"));
    assert_eq!(state(&plan, "zero"), &PlanState::WillRun);
    assert_eq!(state(&plan, "switch"), &until("zero"));
    assert!(
        plan.node("other").is_none(),
        "a branch that is not taken is planned"
    );
    let plan = kit.plan(&film("int"));
    assert_eq!(state(&plan, "which"), &PlanState::WillRun);
    for id in ["zero", "above", "other", "switch"] {
        assert_eq!(state(&plan, id), &until("which"), "{id}");
    }
}

#[test]
fn plans_predict_time_and_failure() {
    let mut kit = Kit::new();
    let cheap = NodeSpec {
        cheap: true,
        ..spec("refuses", vec![int_input("a")])
    };
    kit.add(cheap, |_, _| {
        Err(flow_graph::NodeError::new(
            engine_base::Code::BadInput,
            "input \"a\": no",
        ))
    });
    let document = doc(
        [
            ("a", node("int").set("value", 1)),
            ("b", node("int").set("value", 2)),
            ("half", node("half").link("a", "a", "out")),
            ("bad", node("refuses")),
        ],
        &["half", "b", "bad"],
    );
    let mut costs = Costs::new();
    costs.note("int", 2, 5.0);
    let request = Request {
        targets: None,
        costs,
    };
    let cancel = CancelToken::new();
    let plan = kit.executor().plan(&document, &request, &cancel).unwrap();
    assert_eq!((plan.secs, plan.unmeasured), (5.0, 1));
    assert_eq!(plan.node("a").unwrap().secs, Some(2.5));
    assert!(
        matches!(state(&plan, "bad"), PlanState::WillFail { message } if message.contains("no"))
    );
    cancel.cancel();
    let stopped = kit.executor().plan(&document, &request, &cancel);
    assert_eq!(stopped.err(), Some(flow_executor::RunError::Cancelled));
}
