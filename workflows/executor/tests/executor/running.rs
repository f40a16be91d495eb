//! Lanes, cancel, resume, progress.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine_base::{CancelToken, ProgressEvent};
use flow_executor::{Costs, Ending, Request, RunEnd, RunEvent, RunReport};
use flow_graph::{Document, Lane, NodeSpec, Outcome};

use crate::kit::{Kit, counts, doc, int_input, ints, nap, node, out, spec};

fn sleeping_kit(lane: Lane, millis: u64) -> (Kit, Arc<AtomicUsize>) {
    let mut kit = Kit::new();
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&most));
    let sleep = NodeSpec {
        lane,
        ..spec("sleep", vec![int_input("a")])
    };
    kit.add(sleep, move |context, call| {
        let running = now.fetch_add(1, Ordering::SeqCst) + 1;
        peak.fetch_max(running, Ordering::SeqCst);
        let napped = nap(context, millis);
        now.fetch_sub(1, Ordering::SeqCst);
        napped?;
        Ok(Outcome::data(call.int("a")?))
    });
    (kit, most)
}

fn sleepers(count: i64) -> Document {
    let values: Vec<i64> = (0..count).collect();
    doc(
        [
            ("values", node("list").set("values", ints(&values))),
            ("sleep", node("sleep").link("a", "values", "out")),
            ("sum", node("sum").link("items", "sleep", "out")),
        ],
        &["sum"],
    )
}

#[test]
fn sleeps_overlap_in_the_waiting_lane() {
    let (kit, most) = sleeping_kit(Lane::Wait, 200);
    let report = kit.run(&sleepers(40));
    assert_eq!(out(&report, "sum"), [780]);
    assert!(
        report.wall_secs < 1.6,
        "40 x 0.2 s took {} s",
        report.wall_secs
    );
    assert!(most.load(Ordering::SeqCst) > 20);
}

#[test]
fn each_lane_has_its_width() {
    let (kit, most) = sleeping_kit(Lane::Device, 10);
    kit.run(&sleepers(8));
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let (kit, most) = sleeping_kit(Lane::Cpu, 30);
    kit.run(&sleepers(12));
    assert_eq!(most.load(Ordering::SeqCst), kit.limits.workers);
}

#[test]
fn a_device_is_fed_while_all_workers_are_busy() {
    let (mut kit, _) = sleeping_kit(Lane::Cpu, 400);
    let device = NodeSpec {
        lane: Lane::Device,
        ..spec("device", vec![int_input("a")])
    };
    kit.add(device, |_, call| Ok(Outcome::data(call.int("a")?)));
    let done = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&done);
    let mut document = sleepers(3);
    document.add("d1", node("device").set("a", 1)).unwrap();
    document
        .add("d2", node("device").link("a", "d1", "out"))
        .unwrap();
    document.targets.push("d2".into());
    let observer = move |event: &RunEvent| {
        if let RunEvent::NodeFinished { node, .. } = event {
            seen.lock().unwrap().push(node.to_string());
        }
    };
    let cancel = CancelToken::new();
    let request = Request::default();
    let report = kit
        .executor()
        .run(&document, &request, Arc::new(observer), &cancel);
    assert!(report.unwrap().is_complete());
    let done = done.lock().unwrap();
    let at = |id: &str| done.iter().position(|n| n == id).unwrap();
    assert!(at("d2") < at("sleep"), "{done:?}");
}

/// Run, ask to stop after `after`, and tell how long it took from there.
fn cancelled(kit: &Kit, document: &Document, after: Duration) -> (RunReport, Duration) {
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let asked = std::thread::Builder::new()
        .name("stopper".into())
        .spawn(move || {
            std::thread::sleep(after);
            stop.cancel();
            Instant::now()
        })
        .unwrap();
    let observer = Arc::new(flow_executor::NoObserver);
    let report = kit
        .executor()
        .run(document, &Request::default(), observer, &cancel)
        .unwrap();
    let end = Instant::now();
    (report, end.saturating_duration_since(asked.join().unwrap()))
}

#[test]
fn cancel_stops_within_a_second_and_a_rerun_makes_nothing_twice() {
    let (kit, _) = sleeping_kit(Lane::Cpu, 60);
    let document = sleepers(40);
    let (report, took) = cancelled(&kit, &document, Duration::from_millis(300));
    assert_eq!(report.end, RunEnd::Cancelled);
    assert!(took < Duration::from_secs(1), "it took {took:?} to stop");
    assert!(report.made > 1 && report.made < 30, "made {}", report.made);
    assert_eq!((report.failed, report.abandoned), (0, 0));
    assert!(report.outputs.is_empty());
    let results = kit.store.counts().unwrap().results;
    assert_eq!(results, report.made);

    let rest = kit.run(&document);
    assert_eq!(out(&rest, "sum"), [780]);
    assert_eq!(rest.made + report.made, 42);
    assert_eq!(rest.reused, report.made);
    assert_eq!(kit.store.counts().unwrap().duplicates_dropped, 0);
}

#[test]
fn a_call_that_does_not_listen_is_left_behind() {
    let mut kit = Kit::new();
    let finished = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&finished);
    kit.add(spec("deaf", vec![]), move |_, _| {
        std::thread::sleep(Duration::from_millis(2500));
        end.store(true, Ordering::SeqCst);
        Ok(Outcome::data(1))
    });
    let document = doc(
        [
            ("deaf", node("deaf")),
            ("quick", node("int").set("value", 2)),
        ],
        &["deaf", "quick"],
    );
    let (report, took) = cancelled(&kit, &document, Duration::from_millis(200));
    assert!(took < Duration::from_secs(1), "it took {took:?} to stop");
    assert!(!finished.load(Ordering::SeqCst));
    assert_eq!((report.end, report.abandoned), (RunEnd::Cancelled, 1));
    assert_eq!(report.made, 1, "what was made is kept");
}

#[test]
fn a_run_that_was_stopped_before_it_began_runs_nothing() {
    let kit = Kit::new();
    let cancel = CancelToken::new();
    cancel.cancel();
    let observer = Arc::new(flow_executor::NoObserver);
    let document = doc([("a", node("int"))], &["a"]);
    let report = kit
        .executor()
        .run(&document, &Request::default(), observer, &cancel);
    assert_eq!(report.unwrap().end, RunEnd::Cancelled);
    assert!(kit.record.take().is_empty());
}

#[test]
fn a_finished_result_beats_a_late_cancel() {
    let mut kit = Kit::new();
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    kit.add(spec("stops", vec![]), move |_, _| {
        stop.cancel();
        Ok(Outcome::data(1))
    });
    let document = doc([("a", node("stops"))], &["a"]);
    let observer = Arc::new(flow_executor::NoObserver);
    let report = kit
        .executor()
        .run(&document, &Request::default(), observer, &cancel);
    assert_eq!(report.unwrap().made, 1);
    assert_eq!(kit.run(&document).reused, 1);
}

#[test]
fn cancelling_one_run_leaves_others_alone() {
    let (kit, _) = sleeping_kit(Lane::Wait, 200);
    let other = kit.executor();
    let document = sleepers(6);
    let beside = std::thread::Builder::new()
        .name("other-run".into())
        .spawn(move || {
            let document = doc([("s", node("sleep").set("a", 1000))], &["s"]);
            let observer = Arc::new(flow_executor::NoObserver);
            other.run(
                &document,
                &Request::default(),
                observer,
                &CancelToken::new(),
            )
        })
        .unwrap();
    let (report, _) = cancelled(&kit, &document, Duration::from_millis(60));
    assert_eq!(report.end, RunEnd::Cancelled);
    assert!(beside.join().unwrap().unwrap().is_complete());
}

#[test]
fn progress_is_told_in_order_and_bounded() {
    let (mut kit, _) = sleeping_kit(Lane::Wait, 5);
    kit.add(spec("long", vec![int_input("a")]), |context, call| {
        for step in 1..=500 {
            context.progress.report(ProgressEvent {
                what: "counting".into(),
                step,
                of: 500,
                secs_left: None,
            });
            if step % 2 == 0 {
                nap(context, 5)?;
            }
        }
        Ok(Outcome::data(call.int("a")?))
    });
    let document = doc(
        [
            ("long", node("long").set("a", 1)),
            ("next", node("half").link("a", "long", "out")),
        ],
        &["next"],
    );
    let events: Arc<Mutex<Vec<RunEvent>>> = Arc::default();
    let seen = Arc::clone(&events);
    let observer = move |event: &RunEvent| seen.lock().unwrap().push(event.clone());
    let mut costs = Costs::new();
    costs.note("long", 1, 1.5);
    costs.note("half", 1, 0.01);
    let request = Request {
        targets: None,
        costs,
    };
    let cancel = CancelToken::new();
    let report = kit
        .executor()
        .run(&document, &request, Arc::new(observer), &cancel);
    assert!(report.unwrap().is_complete());
    let events = events.lock().unwrap();
    assert!(matches!(events[0], RunEvent::Started { nodes: 2 }));
    let steps: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            RunEvent::NodeProgress { progress, .. } => Some(progress.step),
            _ => None,
        })
        .collect();
    assert!(
        steps.len() < 40,
        "{} reports of 500 were passed on",
        steps.len()
    );
    assert!(steps.is_sorted() && steps.last() == Some(&500), "{steps:?}");
    let place = |wanted: &str, end: bool| {
        events.iter().position(|event| match event {
            RunEvent::NodeStarted { node, .. } => !end && **node == *wanted,
            RunEvent::NodeFinished { node, ending, .. } => {
                end && **node == *wanted && *ending == Ending::Made
            }
            _ => false,
        })
    };
    assert!(place("long", false) < place("long", true));
    assert!(place("long", true) < place("next", true));
    let left: Vec<f64> = events
        .iter()
        .filter_map(|event| match event {
            RunEvent::Progress { secs_left, .. } => *secs_left,
            _ => None,
        })
        .collect();
    assert!(!left.is_empty(), "no estimate of seconds left was told");
    assert!(
        left.iter().all(|secs| *secs >= 0.0 && *secs < 10.0),
        "{left:?}"
    );
}

#[test]
fn costs_come_from_reports() {
    let (kit, _) = sleeping_kit(Lane::Wait, 50);
    let report = kit.run(&sleepers(4));
    let mut costs = Costs::new();
    report.add_costs_to(&mut costs);
    let secs = costs.secs_per_call("sleep").unwrap();
    assert!(secs > 0.04 && secs < 1.0, "{secs}");
    assert_eq!(report.by_type["sleep"].made, 4);
    let ran = counts(&kit.record.take());
    assert_eq!(ran["sleep"], 4);
}
