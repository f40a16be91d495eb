//! What goes wrong, and that nothing is lost by it.

use engine_base::{Code, ContentHash};
use flow_cluster::{DoneOutcome, Failure, Job, JobId, JobState};

use crate::support::{Owner, at, job, output, spark, worker};

fn node_failed(code: Code) -> Failure {
    Failure::Node {
        code,
        text: "it broke".to_owned(),
    }
}

#[test]
fn a_lost_lease_frees_the_job_and_a_late_result_is_not_counted_twice() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a"), spark("b")]);
    let first = owner.ask("a", 0.0).unwrap();
    let effects = owner.dispatcher.lease_lost(first.id, at(60.0));
    owner.heed(effects, 60.0);
    assert!(
        !owner.dispatcher.progress(first.id, 0.5, at(61.0)),
        "it shall stop"
    );
    let second = owner.ask("b", 61.0).unwrap();
    assert_eq!(
        (second.job, second.delivery, second.duplicate),
        (JobId(1), 2, false)
    );
    // The first worker was only cut off: its result comes first and counts.
    assert_eq!(owner.done(&first, 100.0, 110.0), DoneOutcome::First);
    assert!(owner.stopped.contains(&second.id));
    assert_eq!(owner.done(&second, 100.0, 161.0), DoneOutcome::Late);
    assert_eq!(owner.done(&first, 100.0, 162.0), DoneOutcome::Late);
    assert_eq!(owner.ended[&JobId(1)], 1);
    assert_eq!(owner.state(1), JobState::Done);
    let attempts = owner.dispatcher.attempts(JobId(1)).unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].wall_millis, 60_000);
}

#[test]
fn a_worker_that_was_started_again_has_lost_its_job() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a")]);
    let first = owner.ask("a", 0.0).unwrap();
    assert_eq!(owner.takes("a", 1.0), None);
    owner.join(spark("a"), 2.0);
    assert_eq!(owner.takes("a", 2.0), None, "only its advert changed");
    let mut again = spark("a");
    again.start = 2;
    owner.join(again, 3.0);
    let second = owner.ask("a", 3.0).unwrap();
    assert_eq!((second.job, second.delivery), (first.job, 2));
}

#[test]
fn max_deliveries_end_in_failure_with_the_reason() {
    let jobs = vec![
        job(1, "clip", &[]),
        job(2, "still", &[1]),
        job(3, "still", &[]),
    ];
    let mut owner = Owner::with(jobs, vec![spark("a")]);
    for turn in 1..=5 {
        let secs = f64::from(turn);
        let lease = owner.ask("a", secs).unwrap();
        assert_eq!(
            (lease.job, lease.delivery),
            (JobId(1), u32::try_from(turn).unwrap())
        );
        owner.fails(&lease, node_failed(Code::Internal), secs + 0.5);
    }
    let JobState::Failed { reason } = owner.state(1) else {
        panic!("{:?}", owner.state(1));
    };
    let text = reason.to_string();
    assert!(
        text.contains("5 deliveries") && text.contains("it broke"),
        "{text}"
    );
    let JobState::Failed { reason } = owner.state(2) else {
        panic!("{:?}", owner.state(2));
    };
    assert!(reason.to_string().contains("job 1"), "{reason}");
    assert_eq!(owner.takes("a", 10.0), Some(3), "others go on");
    assert_eq!(owner.dispatcher.attempts(JobId(1)).unwrap().len(), 5);
}

#[test]
fn bad_input_is_not_tried_again() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a")]);
    let lease = owner.ask("a", 0.0).unwrap();
    owner.fails(&lease, node_failed(Code::BadInput), 1.0);
    assert!(matches!(owner.state(1), JobState::Failed { .. }));
    // A job that needs it fails as soon as it is added.
    owner.add(vec![job(2, "clip", &[1])], 2.0);
    assert!(matches!(
        owner.state(2),
        JobState::Failed {
            reason: Failure::Upstream { job: JobId(1), .. }
        }
    ));
}

#[test]
fn a_full_disk_sends_the_job_elsewhere() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a"), spark("b")]);
    let lease = owner.ask("a", 0.0).unwrap();
    let full = Failure::DiskFull {
        needed_bytes: 10,
        free_bytes: 1,
    };
    owner.fails(&lease, full, 1.0);
    assert_eq!(owner.takes("a", 2.0), None);
    assert_eq!(owner.takes("b", 2.0), Some(1));
}

#[test]
fn wrong_bytes_put_a_worker_into_quarantine() {
    let jobs = vec![job(1, "clip", &[]), job(2, "clip", &[])];
    let mut owner = Owner::with(jobs, vec![spark("a"), spark("b")]);
    let lease = owner.ask("a", 0.0).unwrap();
    let corrupt = Failure::Corrupt {
        worker: worker("a"),
        expected: ContentHash::of(b"x"),
        got: ContentHash::of(b"y"),
    };
    owner.fails(&lease, corrupt.clone(), 1.0);
    assert_eq!(owner.takes("a", 2.0), None);
    assert_eq!(owner.dispatcher.quarantine_of(&worker("a")), Some(&corrupt));
    // Being started again does not help; a person does.
    let mut again = spark("a");
    again.start = 9;
    owner.join(again, 3.0);
    assert_eq!(owner.takes("a", 3.0), None);
    assert!(owner.ask("b", 3.0).is_some(), "made again elsewhere");
    owner.dispatcher.drain(&worker("a"), false);
    assert!(owner.ask("a", 4.0).is_some());
}

#[test]
fn results_from_quarantine_are_refused() {
    let mut two = spark("a");
    two.devices.push(two.devices[0].clone());
    let jobs = vec![job(1, "clip", &[]), job(2, "clip", &[])];
    let mut owner = Owner::with(jobs, vec![two]);
    let (one, other) = (owner.ask("a", 0.0).unwrap(), owner.ask("a", 0.0).unwrap());
    assert_ne!(one.device, other.device);
    let wrong = Failure::WrongModel {
        worker: worker("a"),
        expected: ContentHash::of(b"x"),
        got: ContentHash::of(b"y"),
    };
    owner.fails(&one, wrong, 1.0);
    assert!(owner.stopped.contains(&other.id));
    assert_eq!(owner.done(&other, 100.0, 2.0), DoneOutcome::Refused);
    assert_eq!(owner.state(2), JobState::Ready);
}

#[test]
fn a_slow_worker_is_overtaken_and_the_first_result_wins() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a"), spark("b")]);
    let slow = owner.ask("a", 0.0).unwrap();
    assert!(owner.dispatcher.progress(slow.id, 0.05, at(50.0)));
    // 950 s to go against some 100 to 300 s anew.
    let fast = owner.ask("b", 50.0).unwrap();
    assert!(fast.duplicate && fast.job == slow.job && fast.delivery == 1);
    assert_eq!(owner.takes("b", 51.0), None, "no third one");
    assert_eq!(owner.done(&fast, 100.0, 150.0), DoneOutcome::First);
    assert!(owner.stopped.contains(&slow.id));
    assert_eq!(owner.done(&slow, 1000.0, 1000.0), DoneOutcome::Late);
    assert_eq!(owner.ended[&JobId(1)], 1);
}

#[test]
fn a_job_that_is_nearly_done_is_left_alone() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a"), spark("b")]);
    let lease = owner.ask("a", 0.0).unwrap();
    assert_eq!(owner.takes("b", 10.0), None, "on time");
    owner.dispatcher.progress(lease.id, 0.7, at(140.0));
    assert_eq!(owner.takes("b", 140.0), None, "60 s to go");
}

#[test]
fn when_the_overtaken_worker_dies_the_duplicate_goes_on() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a"), spark("b")]);
    let slow = owner.ask("a", 0.0).unwrap();
    owner.dispatcher.progress(slow.id, 0.05, at(50.0));
    let fast = owner.ask("b", 50.0).unwrap();
    let effects = owner.dispatcher.worker_gone(&worker("a"), at(60.0));
    owner.heed(effects, 60.0);
    assert_eq!(
        owner.state(1),
        JobState::Running {
            leases: vec![fast.id]
        }
    );
    assert_eq!(owner.done(&fast, 100.0, 150.0), DoneOutcome::First);
}

#[test]
fn cancelling_stops_what_runs_and_what_follows_but_not_what_is_done() {
    let jobs = vec![
        job(1, "clip", &[]),
        job(2, "clip", &[1]),
        job(3, "clip", &[2]),
        job(4, "still", &[]),
    ];
    let mut owner = Owner::with(jobs, vec![spark("a")]);
    let first = owner.ask("a", 0.0).unwrap();
    owner.done(&first, 100.0, 100.0);
    let second = owner.ask("a", 100.0).unwrap();
    let effects = owner.dispatcher.cancel(JobId(2), at(110.0));
    owner.heed(effects, 110.0);
    assert!(owner.stopped.contains(&second.id));
    assert!(!owner.dispatcher.progress(second.id, 0.2, at(111.0)));
    assert_eq!(owner.state(3), JobState::Cancelled);
    assert_eq!(owner.done(&second, 100.0, 200.0), DoneOutcome::Late);
    assert_eq!(owner.state(2), JobState::Cancelled);
    let effects = owner.dispatcher.cancel(JobId(1), at(201.0));
    assert!(effects.ended.is_empty());
    assert_eq!(owner.state(1), JobState::Done);
    let film = flow_cluster::RunId::new("film").unwrap();
    let effects = owner.dispatcher.cancel_run(&film, at(202.0));
    owner.heed(effects, 202.0);
    assert_eq!(owner.dispatcher.counts().open(), 0);
}

#[test]
fn an_input_that_is_gone_everywhere_is_made_again() {
    let jobs = vec![
        job(1, "clip", &[]),
        job(2, "still", &[1]),
        job(3, "still", &[1]),
    ];
    let mut owner = Owner::with(jobs, vec![spark("a"), spark("b")]);
    let first = owner.ask("a", 0.0).unwrap();
    owner.done(&first, 100.0, 100.0);
    let second = owner.ask("a", 100.0).unwrap();
    let third = owner.ask("b", 100.0).unwrap();
    let gone = |lease: &flow_cluster::Lease| {
        let content = output(JobId(1)).content;
        assert_ne!(lease.job, JobId(1));
        Failure::InputGone { content }
    };
    owner.fails(&second, gone(&second), 101.0);
    assert_eq!(owner.state(1), JobState::Ready);
    assert_eq!(owner.state(2), JobState::Waiting { missing: 1 });
    // The other one misses the same while it is being made again.
    owner.fails(&third, gone(&third), 102.0);
    assert_eq!(owner.state(3), JobState::Waiting { missing: 1 });
    let again = owner.ask("a", 103.0).unwrap();
    assert_eq!(again.job, JobId(1));
    assert_eq!(owner.done(&again, 100.0, 203.0), DoneOutcome::First);
    let leases = ["a", "b"].map(|name| owner.ask(name, 203.0).unwrap());
    for lease in leases {
        owner.done(&lease, 10.0, 213.0);
    }
    assert_eq!(owner.dispatcher.counts().done, 3);
}

#[test]
fn while_an_input_is_made_again_nothing_that_needs_it_begins_a_second_time() {
    let jobs = vec![
        job(1, "clip", &[]),
        job(2, "clip", &[1]),
        job(3, "clip", &[1]),
    ];
    let mut owner = Owner::with(jobs, vec![spark("a"), spark("b"), spark("c")]);
    let first = owner.ask("a", 0.0).unwrap();
    owner.done(&first, 100.0, 100.0);
    let second = owner.ask("a", 100.0).unwrap();
    let third = owner.ask("b", 100.0).unwrap();
    let content = output(JobId(1)).content;
    owner.fails(&second, Failure::InputGone { content }, 101.0);
    assert!(
        owner
            .ask("a", 101.0)
            .is_some_and(|lease| lease.job == JobId(1))
    );
    owner.dispatcher.progress(third.id, 0.05, at(150.0));
    let other = owner.ask("c", 150.0);
    assert!(
        other.is_none(),
        "job 3 would be worth it, but its input is gone: {other:?}"
    );
    assert_eq!(owner.done(&third, 1000.0, 1100.0), DoneOutcome::First);
}

#[test]
fn an_input_that_nobody_makes_ends_in_failure() {
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![spark("a")]);
    let lease = owner.ask("a", 0.0).unwrap();
    let content = ContentHash::of(b"a photograph");
    owner.fails(&lease, Failure::InputGone { content }, 1.0);
    let JobState::Failed { reason } = owner.state(1) else {
        panic!("{:?}", owner.state(1));
    };
    assert!(
        reason.to_string().contains("gone from every holder"),
        "{reason}"
    );
}

#[test]
fn a_twin_takes_over_when_the_first_ones_input_is_gone() {
    // 2 and 4 have one key; they need 1 and 3, which made the same bytes.
    let jobs = vec![job(1, "clip", &[]), job(3, "clip", &[])];
    let mut owner = Owner::with(jobs, vec![spark("a")]);
    for id in [1, 3] {
        let effects = owner
            .dispatcher
            .found(JobId(id), &[output(JobId(1))], at(0.0));
        owner.heed(effects, 0.0);
    }
    let key = engine_base::Key::of_canonical(b"the same work");
    let keyed = |id, need| Job {
        key: Some(key),
        ..job(id, "still", &[need])
    };
    owner.add(vec![keyed(2, 1), keyed(4, 3)], 0.0);
    let lease = owner.ask("a", 0.0).unwrap();
    assert_eq!(owner.state(4), JobState::Follows { job: JobId(2) });
    let content = output(JobId(1)).content;
    owner.fails(&lease, Failure::InputGone { content }, 1.0);
    let mut secs = 2.0;
    while let Some(lease) = owner.ask("a", secs) {
        owner.done(&lease, 10.0, secs + 10.0);
        secs += 10.0;
    }
    assert_eq!(
        owner.dispatcher.counts().done,
        4,
        "{:?}",
        owner.dispatcher.counts()
    );
}

#[test]
fn a_new_owner_goes_on_with_what_runs_and_what_is_done() {
    let jobs = || {
        vec![
            job(1, "clip", &[]),
            job(2, "clip", &[1]),
            job(3, "still", &[]),
        ]
    };
    let mut first = Owner::with(jobs(), vec![spark("a"), spark("b")]);
    let one = first.ask("a", 0.0).unwrap();
    first.done(&one, 100.0, 100.0);
    let two = first.ask("a", 100.0).unwrap();
    let three = first.ask("b", 100.0).unwrap();
    drop(first);
    // The clock of the new owner begins anew.
    let mut next = Owner::with(jobs(), vec![spark("a"), spark("b")]);
    let effects = next
        .dispatcher
        .found(JobId(1), &[output(JobId(1))], at(0.0));
    next.heed(effects, 0.0);
    assert!(next.dispatcher.adopt(&two, at(1.0)));
    assert!(!next.dispatcher.adopt(&two, at(1.0)), "it has it already");
    assert_eq!(next.takes("a", 2.0), None, "it is busy");
    assert_eq!(
        next.state(2),
        JobState::Running {
            leases: vec![two.id]
        }
    );
    let again = next.ask("b", 2.0).unwrap();
    assert!(again.job == JobId(3) && again.id > two.id);
    assert!(
        !next.dispatcher.adopt(&three, at(3.0)),
        "its device has another lease"
    );
    assert_eq!(next.done(&two, 100.0, 50.0), DoneOutcome::First);
    assert_eq!(next.done(&again, 10.0, 60.0), DoneOutcome::First);
    assert_eq!(next.done(&three, 10.0, 61.0), DoneOutcome::Late);
    assert_eq!(next.dispatcher.counts().done, 3);
    let changed = flow_cluster::Lease {
        key: engine_base::Key::of_canonical(b"other inputs"),
        ..two.clone()
    };
    let mut other = Owner::with(jobs(), vec![spark("a")]);
    let effects = other
        .dispatcher
        .found(JobId(1), &[output(JobId(1))], at(0.0));
    other.heed(effects, 0.0);
    assert!(!other.dispatcher.adopt(&changed, at(1.0)));
    assert!(other.dispatcher.next_lease() > two.id);
}
