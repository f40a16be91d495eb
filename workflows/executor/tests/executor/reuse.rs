//! What is made again and what is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::kit::{Kit, counts, doc, int_input, ints, nap, node, out, spec};
use engine_base::{Code, Datum};
use flow_executor::RunEnd;
use flow_graph::{Exactness, Lane, NodeSpec, Outcome, Value};
use flow_store::{NewResult, Provenance, StoredPort, StoredValue};

#[test]
fn a_repeat_runs_nothing_and_a_change_only_what_depends_on_it() {
    let kit = Kit::new();
    let film = |left: i64| {
        doc(
            [
                ("left", node("int").set("value", left)),
                ("right", node("int").set("value", 10)),
                ("half", node("half").link("a", "left", "out")),
                (
                    "sum",
                    node("add")
                        .link("a", "half", "out")
                        .link("b", "right", "out"),
                ),
            ],
            &["sum"],
        )
    };
    let first = kit.run(&film(4));
    assert_eq!(out(&first, "sum"), [12]);
    assert_eq!((first.made, first.reused, first.failed), (4, 0, 0));
    let written = serde_json::to_value(&first).unwrap();
    assert_eq!(
        (&written["made"], &written["end"]),
        (&4.into(), &"finished".into())
    );
    assert_eq!(kit.record.take().len(), 4);

    let again = kit.run(&film(4));
    assert_eq!(out(&again, "sum"), [12]);
    assert_eq!((again.made, again.reused), (0, 4));
    assert!(kit.record.take().is_empty(), "a repeat ran something");

    let changed = kit.run(&film(8));
    assert_eq!(out(&changed, "sum"), [14]);
    assert_eq!(
        kit.record.take(),
        ["add a=4 b=10", "half a=8", "int value=8"]
    );
    assert_eq!((changed.made, changed.reused), (3, 1));
}

#[test]
fn an_equal_result_above_runs_nothing_below() {
    let kit = Kit::new();
    let chain = |value: i64| {
        doc(
            [
                ("source", node("int").set("value", value)),
                ("half", node("half").link("a", "source", "out")),
                ("next", node("add").link("a", "half", "out").set("b", 1)),
            ],
            &["next"],
        )
    };
    kit.run(&chain(8));
    kit.record.take();
    // 9 / 2 is 4 as well: what is below has the same content to work on.
    let report = kit.run(&chain(9));
    assert_eq!(kit.record.take(), ["half a=9", "int value=9"]);
    assert_eq!(out(&report, "next"), [5]);
}

#[test]
fn names_and_places_do_not_count() {
    let kit = Kit::new();
    kit.run(&doc([("a", node("int").set("value", 3))], &["a"]));
    let renamed = doc([("b", node("int").set("value", 3).titled("three"))], &["b"]);
    assert_eq!(kit.run(&renamed).reused, 1);
    assert_eq!(kit.record.take().len(), 1);
}

#[test]
fn equal_work_in_flight_runs_once() {
    let mut kit = Kit::new();
    let slow = NodeSpec {
        lane: Lane::Wait,
        ..spec("slow", vec![int_input("a")])
    };
    kit.add(slow.clone(), |context, call| {
        nap(context, 60)?;
        Ok(Outcome::data(call.int("a")?))
    });
    let fleeting = NodeSpec {
        type_name: "fleeting",
        durable: false,
        ..slow
    };
    kit.add(fleeting, |context, call| {
        nap(context, 60)?;
        Ok(Outcome::data(call.int("a")?))
    });
    let document = doc(
        [
            ("one", node("slow").set("a", 1)),
            ("same", node("slow").set("a", 1)),
            ("three", node("fleeting").set("a", 3)),
            ("same-three", node("fleeting").set("a", 3)),
            (
                "both",
                node("add").link("a", "one", "out").link("b", "same", "out"),
            ),
            (
                "all",
                node("add")
                    .link("a", "three", "out")
                    .link("b", "same-three", "out"),
            ),
        ],
        &["both", "all"],
    );
    let report = kit.run(&document);
    assert_eq!(
        (out(&report, "both"), out(&report, "all")),
        (vec![2], vec![6])
    );
    let ran = counts(&kit.record.take());
    assert_eq!((ran["slow"], ran["fleeting"]), (1, 1));
    assert_eq!((report.shared, report.called), (2, 1));
}

#[test]
fn one_source_feeds_two_outputs_and_runs_once() {
    let kit = Kit::new();
    let document = doc(
        [
            ("source", node("int").set("value", 5)),
            ("first", node("add").link("a", "source", "out").set("b", 1)),
            ("second", node("add").link("a", "source", "out").set("b", 2)),
        ],
        &["first", "second"],
    );
    let report = kit.run(&document);
    assert_eq!(
        (out(&report, "first"), out(&report, "second")),
        (vec![6], vec![7])
    );
    assert_eq!(counts(&kit.record.take())["int"], 1);
}

/// Commits, from within a node's call, other content under the very key of the call, as another
/// process might.
fn committing_kit(exactness: Exactness) -> Kit {
    let mut kit = Kit::new();
    let store = kit.store.clone();
    let racing = NodeSpec {
        exactness,
        ..spec("racing", vec![int_input("a")])
    };
    let side = racing.clone();
    kit.add(racing, move |_, call| {
        let value = Value::data(call.int("a")?);
        let (kind, hash) = value.identity().unwrap();
        let key = flow_graph::key(
            &side,
            &[flow_graph::KeyInput::One(kind, hash)],
            &Datum::Null,
        )
        .unwrap();
        let other = NewResult {
            key,
            node_type: "racing".into(),
            ports: vec![StoredPort::one(StoredValue::Small(Datum::from(100i64)))],
            exactness: flow_store::Exactness::Tolerant,
            provenance: Provenance::default(),
        };
        store.commit(other).unwrap();
        Ok(Outcome::data(call.int("a")?))
    });
    kit
}

#[test]
fn the_first_content_wins_and_is_used_below() {
    for exactness in [Exactness::Tolerant, Exactness::Recorded] {
        let kit = committing_kit(exactness);
        let document = doc(
            [
                ("racing", node("racing").set("a", 1)),
                ("next", node("add").link("a", "racing", "out").set("b", 1)),
            ],
            &["racing", "next"],
        );
        let report = kit.run(&document);
        assert_eq!(out(&report, "racing"), [100], "{exactness:?}");
        assert_eq!(out(&report, "next"), [101], "{exactness:?}");
        assert_eq!((report.duplicates, report.made), (1, 1));
    }
}

#[test]
fn other_content_of_an_exact_node_is_its_error() {
    let kit = committing_kit(Exactness::Exact);
    let document = doc(
        [
            ("racing", node("racing").set("a", 1)),
            ("next", node("add").link("a", "racing", "out").set("b", 1)),
            ("apart", node("int").set("value", 3)),
        ],
        &["next", "apart"],
    );
    let report = kit.run(&document);
    assert_eq!(out(&report, "apart"), [3]);
    assert!(report.output("next", "out").is_none());
    let error = &report.errors[0];
    assert_eq!(
        (error.node.as_str(), error.code),
        ("racing", Code::Internal)
    );
    assert!(error.message.contains("exact"), "{}", error.message);
    assert!(
        report
            .skips
            .iter()
            .any(|s| s.node == "next" && s.because == "racing")
    );
}

#[test]
fn a_file_that_is_not_in_the_store_is_the_error_of_its_node() {
    let mut kit = Kit::new();
    let given = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&given);
    kit.add(spec("liar", vec![]), move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::blob(flow_graph::BlobRef {
            hash: engine_base::ContentHash::of(b"nobody has this"),
            bytes: 15,
            media_type: "text/plain".into(),
        }))
    });
    let report = kit.run(&doc([("liar", node("liar"))], &["liar"]));
    assert_eq!((report.failed, report.made), (1, 0));
    assert_eq!(report.errors[0].node, "liar");
    assert!(report.output("liar", "out").is_none());
}

#[test]
fn a_full_disk_is_said_and_a_rerun_goes_on() {
    let mut kit = Kit::new();
    let full = Arc::new(AtomicI64::new(1));
    let is_full = Arc::clone(&full);
    kit.add(spec("file", vec![int_input("a")]), move |context, call| {
        let temp = context.artifacts.temp("txt")?;
        if is_full.load(Ordering::SeqCst) == 1 && call.int("a")? == 2 {
            // Every write to this device fails as on a full disk.
            std::os::unix::fs::symlink("/dev/full", temp.path()).unwrap();
        }
        std::fs::write(temp.path(), format!("{}", call.int("a")?)).map_err(|error| {
            flow_graph::NodeError::new(Code::of_io(&error), format!("cannot write: {error}"))
        })?;
        Ok(Outcome::blob(context.artifacts.adopt(temp, "text/plain")?))
    });
    let document = doc(
        [
            ("values", node("list").set("values", ints(&[1, 2, 3]))),
            ("file", node("file").link("a", "values", "out")),
        ],
        &["file"],
    );
    let report = kit.run(&document);
    assert_eq!(report.end, RunEnd::Finished);
    assert_eq!(report.errors[0].code, Code::DiskFull);
    assert_eq!(report.errors[0].element, Some(1));
    assert_eq!(counts(&kit.record.take())["file"], 3);

    full.store(0, Ordering::SeqCst);
    let report = kit.run(&document);
    assert_eq!((report.failed, report.made), (0, 1));
    assert_eq!(kit.record.take(), ["file a=2"]);
    assert!(kit.store.check(true).unwrap().is_sound());
}

#[test]
fn handles_are_made_once_in_a_run_and_never_stored() {
    let mut kit = Kit::new();
    let living = crate::kit::Living::default();
    let makes = living.clone();
    let model = NodeSpec {
        durable: false,
        ..spec("model", vec![])
    };
    kit.add(model, move |_, _| {
        Ok(Outcome::Values(vec![flow_graph::PortOutput::One(
            makes.handle(b"weights"),
        )]))
    });
    kit.add(
        spec(
            "sample",
            vec![crate::kit::input("model"), int_input("seed")],
        ),
        |_, call| Ok(Outcome::data(call.int("seed")? * 2)),
    );
    let sample = |seed: i64| {
        node("sample")
            .link("model", format!("model-{}", seed % 2), "out")
            .set("seed", seed)
    };
    let document = doc(
        [
            ("model-0", node("model")),
            ("model-1", node("model")),
            ("a", sample(2)),
            ("b", sample(3)),
        ],
        &["a", "b"],
    );
    let report = kit.run(&document);
    assert_eq!((out(&report, "a"), out(&report, "b")), (vec![4], vec![6]));
    assert_eq!(counts(&kit.record.take())["model"], 1);
    drop(report);
    assert_eq!(living.now(), 0, "a handle outlived its run");
    let again = kit.run(&document);
    assert_eq!((again.reused, again.called), (2, 1));
}

#[test]
fn a_durable_node_must_not_give_a_handle() {
    let mut kit = Kit::new();
    let living = crate::kit::Living::default();
    kit.add(spec("model", vec![]), move |_, _| {
        Ok(Outcome::Values(vec![flow_graph::PortOutput::One(
            living.handle(b"weights"),
        )]))
    });
    let report = kit.run(&doc([("m", node("model"))], &["m"]));
    assert_eq!(report.failed, 1);
    assert!(report.errors[0].message.contains("durable"));
}

#[test]
fn wrong_shapes_of_outputs_are_errors() {
    let mut kit = Kit::new();
    kit.add(spec("none", vec![]), |_, _| Ok(Outcome::Values(vec![])));
    kit.add(spec("many", vec![]), |_, _| {
        Ok(Outcome::Values(vec![flow_graph::PortOutput::Many(vec![])]))
    });
    let nan = NodeSpec {
        durable: false,
        ..spec("nan", vec![])
    };
    kit.add(nan, |_, _| Ok(Outcome::data(f64::NAN)));
    kit.add(spec("nan-kept", vec![]), |_, _| Ok(Outcome::data(f64::NAN)));
    let document = doc(
        [
            ("none", node("none")),
            ("many", node("many")),
            ("nan", node("nan")),
            ("kept", node("nan-kept")),
            ("reader", node("half").link("a", "nan", "out")),
        ],
        &["none", "many", "reader", "kept"],
    );
    let report = kit.run(&document);
    let mut failed: Vec<&str> = report.errors.iter().map(|e| e.node.as_str()).collect();
    failed.sort_unstable();
    assert_eq!(
        failed,
        ["kept", "many", "none", "reader"],
        "{:?}",
        report.errors
    );
}

#[test]
fn files_in_use_are_not_pruned_during_the_run() {
    let mut kit = Kit::new();
    kit.add(spec("write", vec![int_input("a")]), |context, call| {
        let temp = context.artifacts.temp("txt")?;
        std::fs::write(temp.path(), format!("{}", call.int("a")?)).unwrap();
        Ok(Outcome::blob(context.artifacts.adopt(temp, "text/plain")?))
    });
    let store = kit.store.clone();
    kit.add(
        spec("read", vec![crate::kit::input("file"), int_input("turn")]),
        move |context, call| {
            store.prune(0, false).unwrap();
            let path = context.artifacts.path(&call.blob("file")?.hash)?;
            let text = std::fs::read_to_string(path).unwrap();
            Ok(Outcome::data(text.parse::<i64>().unwrap()))
        },
    );
    let film = |turn: i64| {
        doc(
            [
                ("write", node("write").set("a", 7)),
                (
                    "read",
                    node("read").link("file", "write", "out").set("turn", turn),
                ),
            ],
            &["read"],
        )
    };
    // Made in the run, then found by the run.
    for turn in 0..2 {
        assert_eq!(out(&kit.run(&film(turn)), "read"), [7], "turn {turn}");
    }
    kit.store.prune(0, false).unwrap();
    kit.record.take();
    // With the file gone its result is made again.
    assert_eq!(out(&kit.run(&film(2)), "read"), [7]);
    assert_eq!(counts(&kit.record.take())["write"], 1);
}

#[test]
fn an_edit_inside_a_subgraph_reruns_from_there() {
    let kit = Kit::new();
    let film = |value: i64| {
        let mut part = flow_graph::Subgraph::new();
        part.add("first", node("add").set("b", 1)).unwrap();
        part.add(
            "second",
            node("add").link("a", "first", "out").set("b", value),
        )
        .unwrap();
        part.inputs
            .insert("a".into(), vec![flow_graph::Link::new("first", "a")]);
        part.outputs
            .insert("out".into(), flow_graph::Link::new("second", "out"));
        let mut document = doc(
            [
                ("source", node("int").set("value", 1)),
                (
                    "part",
                    flow_graph::DocNode::subgraph("part").link("a", "source", "out"),
                ),
                ("last", node("half").link("a", "part", "out")),
            ],
            &["last"],
        );
        document.subgraphs.insert("part".into(), part);
        document
    };
    assert_eq!(out(&kit.run(&film(8)), "last"), [5]);
    kit.record.take();
    assert_eq!(out(&kit.run(&film(18)), "last"), [10]);
    assert_eq!(kit.record.take(), ["add a=2 b=18", "half a=20"]);
}

#[test]
fn another_process_goes_on_where_this_one_ended() {
    let kit = Kit::new();
    let document = doc(
        [
            ("a", node("int").set("value", 2)),
            ("b", node("half").link("a", "a", "out")),
        ],
        &["b"],
    );
    kit.run(&document);
    let other = Kit {
        store: crate::kit::open_store(kit.folder.path()),
        ..Kit::new()
    };
    let report = other.run(&document);
    assert_eq!((out(&report, "b"), report.reused), (vec![1], 2));
    assert!(other.record.take().is_empty());
}
