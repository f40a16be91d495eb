//! Calls that run on another machine: here, with another executor on another store.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kit::{Kit, counts, doc, node, out};
use engine_base::{CancelToken, Code, Key, NoProgress, ProgressSink};
use flow_executor::{
    Elsewhere, Executor, FarCall, FarError, FarMade, NoObserver, Request, RunReport,
};
use flow_graph::{Document, NodeError, NodeSpec};
use flow_store::CommitMark;

/// Hands calls of two types to another executor.
struct Other(Executor);

impl Elsewhere for Other {
    fn takes(&self, spec: &NodeSpec) -> bool {
        matches!(spec.type_name, "half" | "add")
    }

    fn run(
        &self,
        call: &FarCall,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<FarMade, NodeError> {
        let made = self.0.run_call(call, 1, cancel, progress);
        made.map_err(|error| match error {
            FarError::Node(error) => error,
            other => NodeError::new(Code::NotPermitted, other.to_string()),
        })
    }
}

fn run(kit: &Kit, other: &Kit, document: &Document) -> RunReport {
    let elsewhere = Arc::new(Other(other.executor()));
    kit.executor()
        .with_elsewhere(elsewhere)
        .run(
            document,
            &Request::default(),
            Arc::new(NoObserver),
            &CancelToken::new(),
        )
        .unwrap()
}

fn sum(left: i64) -> Document {
    doc(
        [
            ("left", node("int").set("value", left)),
            ("half", node("half").link("a", "left", "out")),
            ("sum", node("add").link("a", "half", "out").set("b", 10)),
        ],
        &["sum"],
    )
}

fn committed(kit: &Kit) -> BTreeMap<String, String> {
    let commits = kit.store.committed_since(CommitMark(0)).unwrap();
    let row = |commit: &flow_store::CommitRecord| {
        (format!("{:?}", commit.key), format!("{:?}", commit.content))
    };
    commits.iter().map(row).collect()
}

#[test]
fn what_ran_elsewhere_is_what_would_have_run_here() {
    let (alone, here, there) = (Kit::new(), Kit::new(), Kit::new());
    let whole = alone.run(&sum(8));
    let report = run(&here, &there, &sum(8));
    assert_eq!(out(&report, "sum"), out(&whole, "sum"));
    assert_eq!(report.made, whole.made);
    assert_eq!(committed(&here), committed(&alone));
    let ran = counts(&here.record.take());
    assert_eq!(ran.keys().collect::<Vec<_>>(), ["int"]);
    let ran = counts(&there.record.take());
    assert_eq!(ran.keys().collect::<Vec<_>>(), ["add", "half"]);

    // The other machine keeps what it made: a third one with an empty store gets it from there.
    let third = Kit::new();
    let report = run(&third, &there, &sum(8));
    assert_eq!(out(&report, "sum"), [14]);
    assert!(there.record.take().is_empty(), "it was made again");
    // And what the store here has is not asked for.
    let again = run(&here, &Kit::new(), &sum(8));
    assert_eq!((again.made, again.reused), (0, 3));
}

#[test]
fn a_call_that_belongs_elsewhere_is_refused_with_what_differs() {
    let kit = Kit::new();
    let executor = kit.executor();
    let call = FarCall {
        key: Key::of_canonical(b"other"),
        node_type: "half".into(),
        version: 1,
        node: "half".into(),
        inputs: BTreeMap::new(),
    };
    let run = |call: &FarCall| {
        executor
            .run_call(call, 1, &CancelToken::new(), &NoProgress)
            .unwrap_err()
    };
    let error = run(&call);
    assert!(matches!(error, FarError::OtherKey { .. }), "{error}");
    let error = run(&FarCall {
        version: 7,
        ..call.clone()
    });
    let text = error.to_string();
    assert!(
        text.contains("version 7") && text.contains("has 1"),
        "{text}"
    );
    let error = run(&FarCall {
        node_type: "shell".into(),
        ..call
    });
    assert!(matches!(error, FarError::NoSuchType { .. }), "{error}");
    assert!(kit.record.take().is_empty());
}
