//! Who takes what.

use flow_cluster::{AddError, Job, JobId, JobState, Priority, Refusal, RunId, Settings};

use crate::support::{GB, Owner, advert, at, in_run, job, loaded, model, spark, worker};

#[test]
fn the_longest_way_to_the_end_goes_first() {
    // 3 -> 4 -> 5 is longer than any other way.
    let jobs = vec![
        job(1, "clip", &[]),
        job(2, "still", &[]),
        job(3, "still", &[]),
        job(4, "clip", &[3]),
        job(5, "clip", &[4]),
    ];
    let mut owner = Owner::with(jobs, vec![spark("a"), spark("b"), spark("c")]);
    assert_eq!(owner.takes("a", 0.0), Some(3));
    assert_eq!(owner.takes("b", 0.0), Some(1));
    assert_eq!(owner.takes("c", 0.0), Some(2));
    let rank = owner.dispatcher.rank_secs(JobId(3)).unwrap();
    assert!((rank - 210.0).abs() < 25.0, "10 + 100 + 100 s, got {rank}");
}

#[test]
fn jobs_go_where_their_model_is() {
    let (h3, qwen) = (model("h3", 40 * GB), model("qwen", 40 * GB));
    let with = |id, need| Job {
        model: Some(need),
        ..job(id, "clip", &[])
    };
    let jobs = vec![with(1, h3), with(2, qwen), with(3, h3), with(4, qwen)];
    let workers = vec![loaded(spark("a"), qwen), loaded(spark("b"), h3)];
    let mut owner = Owner::with(jobs, workers);
    assert_eq!(owner.takes("a", 0.0), Some(2));
    assert_eq!(owner.takes("b", 0.0), Some(1));
}

#[test]
fn a_model_makes_room_only_when_it_has_to() {
    let (h3, qwen, esrgan) = (
        model("h3", 70 * GB),
        model("qwen", 50 * GB),
        model("esrgan", GB),
    );
    let workers = vec![loaded(loaded(spark("a"), esrgan), qwen)];
    let clip = Job {
        model: Some(h3),
        ..job(1, "clip", &[])
    };
    // Another job still wants the upscaler, which is the least recently used.
    let later = Job {
        model: Some(esrgan),
        ..job(2, "upscale", &[1])
    };
    let mut owner = Owner::with(vec![clip, later], workers);
    let lease = owner.ask("a", 0.0).unwrap();
    assert_eq!(lease.evict, [qwen.model]);
}

#[test]
fn what_never_fits_is_refused_with_the_figures() {
    let huge = Job {
        model: Some(model("huge", 118 * GB)),
        working_bytes: 30 * GB,
        ..job(1, "clip", &[])
    };
    let mut owner = Owner::with(vec![huge, job(2, "clip", &[1])], vec![spark("a")]);
    assert_eq!(owner.takes("a", 0.0), None);
    let waits = owner.dispatcher.waits();
    let text = waits[0].refusal.to_string();
    for figure in [
        "148000000000",
        "118000000000",
        "121000000000",
        "114950000000",
    ] {
        assert!(text.contains(figure), "{figure} is missing in {text:?}");
    }
    assert!(waits[0].lasting);
    let effects = owner.dispatcher.tick(at(1.0));
    owner.heed(effects, 1.0);
    assert_eq!(owner.state(1), JobState::Ready);
    let effects = owner.dispatcher.tick(at(700.0));
    owner.heed(effects, 700.0);
    let JobState::Failed { reason } = owner.state(1) else {
        panic!("{:?}", owner.state(1));
    };
    assert!(reason.to_string().contains("148000000000"), "{reason}");
    assert!(matches!(owner.state(2), JobState::Failed { .. }));
}

#[test]
fn what_fits_later_waits_and_nothing_fails_without_workers() {
    let mut busy = spark("a");
    busy.devices[0].memory_free_bytes = GB / 2;
    let mut owner = Owner::with(vec![job(1, "clip", &[])], vec![busy]);
    assert_eq!(owner.takes("a", 0.0), None);
    let waits = owner.dispatcher.waits();
    assert!(matches!(waits[0].refusal, Refusal::Occupied { .. }));
    for secs in [1.0, 10_000.0] {
        let effects = owner.dispatcher.tick(at(secs));
        owner.heed(effects, secs);
    }
    owner.join(spark("a"), 10_001.0);
    assert_eq!(owner.takes("a", 10_001.0), Some(1));
    let mut empty = Owner::with(vec![job(1, "clip", &[])], Vec::new());
    for secs in [1.0, 10_000.0] {
        assert_eq!(empty.dispatcher.tick(at(secs)).ended, []);
    }
}

#[test]
fn pins_and_node_versions_are_kept() {
    let mut newer = job(1, "clip", &[]);
    newer.node_types[0].version = 2;
    let mut held = job(2, "clip", &[]);
    held.device_class = Some("fast".parse().unwrap());
    let mut built = job(3, "clip", &[]);
    built.engine_build = Some(engine_base::ContentHash::of(b"other build"));
    let mut owner = Owner::with(vec![newer, held, built], vec![spark("a")]);
    assert_eq!(owner.takes("a", 0.0), None);
    let texts: Vec<String> = owner
        .dispatcher
        .waits()
        .into_iter()
        .map(|waits| waits.refusal.to_string())
        .collect();
    assert!(texts[0].contains("expected version 2, got 1"), "{texts:?}");
    assert!(texts[1].contains("class fast"), "{texts:?}");
    assert!(texts[2].contains("engine build"), "{texts:?}");
}

#[test]
fn a_slow_device_leaves_the_critical_job_to_a_fast_one() {
    // The fast one is busy for 4 s more; the clip takes it 20 s, the laptop 2000 s.
    let workers = vec![
        advert("fast", "fast", 90 * GB),
        advert("laptop", "laptop", 90 * GB),
    ];
    let mut owner = Owner::with(vec![job(1, "upscale", &[])], workers);
    assert_eq!(owner.takes("fast", 0.0), Some(1));
    owner.add(vec![job(2, "clip", &[]), job(3, "still", &[])], 0.0);
    assert_eq!(
        owner.takes("laptop", 0.0),
        None,
        "both are done sooner elsewhere"
    );
    // With much to do it takes its share, and not the longest.
    owner.add((10..200).map(|id| job(id, "clip", &[])).collect(), 1.0);
    let took = owner.takes("laptop", 1.0);
    assert!(took.is_some_and(|id| id != 2), "{took:?}");
}

#[test]
fn a_silent_idle_worker_is_not_counted_on() {
    let workers = vec![advert("fast", "fast", 90 * GB), spark("a")];
    let mut owner = Owner::with(vec![job(1, "clip", &[])], workers);
    assert_eq!(owner.takes("a", 1.0), None, "the fast one is idle");
    assert_eq!(owner.takes("a", 100.0), Some(1), "it never asked");
}

#[test]
fn every_run_gets_its_turn_under_endless_higher_work() {
    let low = in_run("low", Priority::Low, job(1, "clip", &[]));
    let mut owner = Owner::with(vec![low], vec![spark("a")]);
    let mut secs = 0.0;
    let mut started = None;
    for id in 100..200 {
        let run = format!("high-{id}");
        owner.add(
            vec![in_run(&run, Priority::High, job(id, "clip", &[]))],
            secs,
        );
        let lease = owner.ask("a", secs).unwrap();
        if lease.job == JobId(1) {
            started = Some(secs);
            break;
        }
        secs += 100.0;
        owner.done(&lease, 100.0, secs);
    }
    let started = started.expect("the low run never got a worker");
    assert!(
        (1200.0..=1300.0).contains(&started),
        "two levels are 1200 s, got {started}"
    );
}

#[test]
fn runs_of_one_priority_share() {
    let mut jobs = Vec::new();
    for id in 0..20 {
        let run = if id < 10 { "one" } else { "two" };
        jobs.push(in_run(run, Priority::Normal, job(id, "still", &[])));
    }
    let mut owner = Owner::with(jobs, vec![spark("a")]);
    let mut counts = [0_u32, 0];
    for turn in 0..10 {
        let secs = 10.0 * f64::from(turn);
        let lease = owner.ask("a", secs).unwrap();
        counts[usize::from(lease.job.0 >= 10)] += 1;
        owner.done(&lease, 10.0, secs + 10.0);
    }
    assert!(counts[0].abs_diff(counts[1]) <= 2, "{counts:?}");
}

#[test]
fn a_paused_run_gets_nothing_and_a_draining_worker_neither() {
    let mut owner = Owner::with(
        vec![job(1, "clip", &[]), job(2, "clip", &[])],
        vec![spark("a")],
    );
    let film = RunId::new("film").unwrap();
    owner.dispatcher.pause(&film, true);
    assert_eq!(owner.takes("a", 0.0), None);
    owner.dispatcher.pause(&film, false);
    owner.dispatcher.drain(&worker("a"), true);
    assert_eq!(owner.takes("a", 0.0), None);
    owner.dispatcher.drain(&worker("a"), false);
    assert_eq!(owner.takes("a", 0.0), Some(1));
    assert_eq!(owner.takes("a", 0.0), None, "one job for one device");
}

#[test]
fn a_job_with_the_key_of_another_one_is_not_made_twice() {
    let one = job(1, "clip", &[]);
    let two = Job {
        key: one.key,
        ..job(2, "clip", &[])
    };
    let mut owner = Owner::with(
        vec![one, two, job(3, "still", &[2])],
        vec![spark("a"), spark("b")],
    );
    let lease = owner.ask("a", 0.0).unwrap();
    assert_eq!(lease.job, JobId(1));
    assert_eq!(owner.takes("b", 0.0), None);
    assert_eq!(owner.state(2), JobState::Follows { job: JobId(1) });
    owner.done(&lease, 100.0, 100.0);
    assert_eq!(owner.state(2), JobState::Done);
    assert_eq!(owner.takes("b", 100.0), Some(3));
    // Cancelled, the first one hands its key on.
    let one = job(11, "clip", &[]);
    let two = Job {
        key: one.key,
        ..job(12, "clip", &[])
    };
    let mut owner = Owner::with(vec![one, two], vec![spark("a")]);
    let lease = owner.ask("a", 0.0).unwrap();
    let effects = owner.dispatcher.cancel(JobId(11), at(1.0));
    owner.heed(effects, 1.0);
    assert!(owner.stopped.contains(&lease.id));
    assert_eq!(owner.takes("a", 2.0), Some(12));
}

#[test]
fn what_the_store_has_is_done_without_a_worker() {
    let mut owner = Owner::with(
        vec![job(1, "clip", &[]), job(2, "still", &[1])],
        vec![spark("a")],
    );
    let found = owner
        .dispatcher
        .found(JobId(1), &[crate::support::output(JobId(1))], at(0.0));
    owner.heed(found, 0.0);
    assert_eq!(owner.takes("a", 0.0), Some(2));
}

#[test]
fn runs_that_are_over_are_forgotten_and_the_others_go_on() {
    let old = |id, needs: &[u64]| in_run("old", Priority::High, job(id, "still", needs));
    let new = |id, needs: &[u64]| in_run("new", Priority::Low, job(id, "still", needs));
    let twin = Job {
        key: new(3, &[]).key,
        ..new(8, &[])
    };
    // Mixed, so that every index moves.
    let jobs = vec![old(1, &[]), new(3, &[]), old(2, &[1]), new(4, &[3]), twin];
    let mut owner = Owner::with(jobs, vec![spark("a"), spark("b")]);
    let film = |name: &str| RunId::new(name).unwrap();
    let first = owner.ask("a", 0.0).unwrap();
    assert_eq!(first.job, JobId(1));
    let kept = owner.ask("b", 0.0).unwrap();
    assert_eq!(kept.job, JobId(3));
    assert_eq!(owner.dispatcher.forget(&film("old")), 0, "it is under way");
    owner.done(&first, 10.0, 10.0);
    let second = owner.ask("a", 10.0).unwrap();
    assert_eq!(second.job, JobId(2));
    owner.done(&second, 10.0, 20.0);
    assert_eq!(owner.dispatcher.forget(&film("old")), 2);
    assert_eq!(owner.dispatcher.state(JobId(1)), None);
    assert_eq!(owner.state(8), JobState::Follows { job: JobId(3) });
    assert_eq!(owner.dispatcher.counts().running, 1);
    owner.done(&kept, 10.0, 30.0);
    assert_eq!(owner.state(8), JobState::Done);
    assert_eq!(owner.takes("a", 30.0), Some(4));
    // An id may be used again, and another run may hold on to a run.
    owner.add(
        vec![in_run("third", Priority::Low, job(1, "still", &[3]))],
        31.0,
    );
    assert_eq!(owner.dispatcher.forget(&film("new")), 0);
    assert_eq!(owner.dispatcher.forget(&film("nobody")), 0);
}

#[test]
fn malformed_graphs_are_refused_whole() {
    let mut owner = Owner::new(Settings::default());
    let mut add = |jobs| owner.dispatcher.add(jobs, at(0.0)).unwrap_err();
    let circle = vec![job(1, "clip", &[2]), job(2, "clip", &[1])];
    assert!(matches!(add(circle), AddError::Circle { .. }));
    let missing = vec![job(1, "clip", &[]), job(2, "clip", &[9])];
    assert!(matches!(
        add(missing),
        AddError::NoSuchNeed { need: JobId(9), .. }
    ));
    let twice = vec![job(1, "clip", &[]), job(1, "clip", &[])];
    assert!(matches!(add(twice), AddError::Twice { .. }));
    let mut empty = job(1, "clip", &[]);
    empty.node_types.clear();
    assert!(matches!(add(vec![empty]), AddError::Empty { .. }));
    assert_eq!(owner.dispatcher.counts().open(), 0);
}

#[test]
fn messages_survive_json() {
    let advert = loaded(spark("a"), model("h3", GB));
    let text = serde_json::to_string(&advert).unwrap();
    assert_eq!(
        serde_json::from_str::<flow_cluster::WorkerAdvert>(&text).unwrap(),
        advert
    );
    let mut other = advert.clone();
    assert_eq!(other.node_set(), advert.node_set());
    other.node_types.insert("clip".to_owned(), 2);
    assert_ne!(other.node_set(), advert.node_set());
    let job = job(2, "clip", &[1]);
    let text = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
    let mut owner = Owner::with(vec![crate::support::job(1, "clip", &[])], vec![advert]);
    let lease = owner.ask("a", 0.0).unwrap();
    let text = serde_json::to_string(&lease).unwrap();
    assert_eq!(
        serde_json::from_str::<flow_cluster::Lease>(&text).unwrap(),
        lease
    );
    let failure = flow_cluster::Failure::MaxDeliveries {
        deliveries: 5,
        last: Box::new(flow_cluster::Failure::LeaseLost {
            worker: worker("a"),
        }),
    };
    let text = serde_json::to_string(&failure).unwrap();
    assert_eq!(
        serde_json::from_str::<flow_cluster::Failure>(&text).unwrap(),
        failure
    );
}
