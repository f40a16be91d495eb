//! Many nodes: no deep recursion, bounded memory, little time for each. The bounds are twice what
//! is aimed at, for machines that do other things beside.

use std::time::Instant;

use engine_base::Datum;
use flow_graph::{Document, NodeSpec, Outcome, PortOutput};

use crate::kit::{Kit, Living, input, int_input, node, out, spec};

/// `count` nodes of a type, each adding 1 to the one before.
fn chain(type_name: &str, count: i64) -> Document {
    let mut document = Document::new();
    let mut last = document
        .add("n000000", node(type_name).set("b", 1))
        .unwrap();
    for at in 1..count {
        let next = node(type_name).link("a", &last, "out").set("b", 1);
        last = document.add(format!("n{at:06}"), next).unwrap();
    }
    document.targets.push(last);
    document
}

/// `count` nodes side by side and one that takes the last.
fn wide(type_name: &str, count: i64) -> Document {
    let mut document = Document::new();
    for at in 0..count {
        let id = format!("n{at:06}");
        document.add(&*id, node(type_name).set("a", at)).unwrap();
        document.targets.push(id);
    }
    document
}

fn kit() -> Kit {
    let mut kit = Kit::new();
    let light = NodeSpec {
        durable: false,
        ..spec("light", vec![int_input("a"), int_input("b")])
    };
    kit.add(light, |_, call| {
        Ok(Outcome::data(call.int("a")? + call.int("b")?))
    });
    let cheap = NodeSpec {
        cheap: true,
        durable: false,
        ..spec("cheap", vec![int_input("a"), int_input("b")])
    };
    kit.add(cheap, |_, call| {
        Ok(Outcome::data(call.int("a")? + call.int("b")?))
    });
    kit
}

#[test]
fn a_long_chain_runs_and_is_reused() {
    let kit = kit();
    let document = chain("add", 2000);
    let target = "n001999";
    let report = kit.run(&document);
    assert_eq!((out(&report, target), report.made), (vec![2000], 2000));
    let report = kit.run(&document);
    assert_eq!((report.made, report.reused), (0, 2000));
}

#[test]
fn a_long_chain_below_a_failure_is_skipped() {
    let kit = kit();
    let mut document = chain("light", 20_000);
    document.add("bad", node("fail")).unwrap();
    let first = document.nodes.get_mut("n000000").unwrap();
    *first = first.clone().link("a", "bad", "out");
    let report = kit.run(&document);
    assert_eq!((report.failed, report.skipped), (1, 20_000));
    assert_eq!(report.skips.len(), flow_executor::RunReport::MAX_LISTED);
}

#[test]
fn values_are_let_go_when_nobody_can_read_them_any_more() {
    let mut kit = kit();
    let living = Living::default();
    let makes = living.clone();
    let step = NodeSpec {
        durable: false,
        ..spec("step", vec![input("before"), int_input("number")])
    };
    kit.add(step, move |_, call| {
        let number = call.int("number")?;
        let value = makes.handle(&number.to_le_bytes());
        Ok(Outcome::Values(vec![PortOutput::One(value)]))
    });
    let mut document = Document::new();
    let mut last: Option<String> = None;
    for number in 0..3000i64 {
        let mut next = node("step").set("number", number);
        if let Some(last) = &last {
            next = next.link("before", last, "out");
        }
        last = Some(document.add(format!("s{number:05}"), next).unwrap());
    }
    document.targets.extend(last);
    let report = kit.run(&document);
    assert_eq!(report.called, 3000);
    // The newest 64 are kept for equal calls, besides those in use.
    assert!(
        living.most() <= 80,
        "{} of 3000 were alive at once",
        living.most()
    );
    drop(report);
    assert_eq!(living.now(), 0);
}

/// Least microseconds for each node of three runs.
fn micros_each(kit: &Kit, document: &Document, nodes: usize) -> f64 {
    let run = |_| kit.run(document).wall_secs * 1e6 / nodes as f64;
    (0..3).map(run).fold(f64::INFINITY, f64::min)
}

#[test]
fn trivial_nodes_take_little_time() {
    let kit = kit();
    for document in [chain("light", 10_000), wide("light", 10_000)] {
        let micros = micros_each(&kit, &document, 10_000);
        println!("in memory: {micros:.1} us a node");
        assert!(micros < 2_000.0, "in memory: {micros:.1} us a node");
    }
}

#[test]
fn durable_nodes_take_little_time() {
    for (name, document) in [("chain", chain("add", 4000)), ("wide", wide("add", 4000))] {
        let kit = kit();
        let made = kit.run(&document);
        assert_eq!(made.made, 4000);
        let micros = made.wall_secs * 1e6 / 4000.0;
        let again = kit.run(&document);
        assert_eq!(again.reused, 4000);
        let micros_again = again.wall_secs * 1e6 / 4000.0;
        println!("durable {name}: made {micros:.1} us, reused {micros_again:.1} us a node");
        assert!(
            micros < 8_000.0,
            "durable {name}: {micros:.1} us a node made"
        );
        assert!(
            micros_again < 8_000.0,
            "durable {name}: {micros_again:.1} us a node reused"
        );
    }
}

#[test]
fn planning_takes_time_linear_in_the_graph() {
    let kit = kit();
    let secs = |document: &Document| {
        let start = Instant::now();
        let plan = kit.plan(document);
        assert_eq!(plan.nodes.len(), document.nodes.len());
        start.elapsed().as_secs_f64()
    };
    let documents = [chain("cheap", 5_000), chain("cheap", 20_000)];
    let mut least = [f64::INFINITY; 2];
    // The least of some rounds: a busy machine only ever adds time. Linear is 4 times, quadratic 16.
    for _ in 0..10 {
        for (least, document) in least.iter_mut().zip(&documents) {
            *least = least.min(secs(document));
        }
        if least[1] < least[0] * 5.0 {
            break;
        }
    }
    let [five, twenty] = least;
    println!("plan: {five:.3} s for 5,000 nodes, {twenty:.3} s for 20,000");
    assert!(
        twenty < five * 8.0,
        "5,000 nodes took {five} s, 20,000 {twenty} s"
    );
}

#[test]
fn long_lists_are_handled_in_time() {
    let kit = kit();
    let values = Datum::List((0..5000i64).map(Datum::from).collect());
    let document = crate::kit::doc(
        [
            ("values", node("list").set("values", values)),
            ("light", node("light").link("a", "values", "out")),
            ("sum", node("sum").link("items", "light", "out")),
        ],
        &["sum"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "sum"), [5000 * 4999 / 2]);
    assert!(report.wall_secs < 5.0, "{} s", report.wall_secs);
}
