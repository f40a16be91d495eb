//! Artifacts over real connections on loopback: cut, resumed, corrupted, cancelled, bounded.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

#[path = "artifacts/bucket.rs"]
mod bucket;
#[path = "artifacts/relay.rs"]
mod relay;
#[path = "artifacts/shared.rs"]
mod shared;
#[path = "artifacts/support.rs"]
mod support;

use std::time::{Duration, Instant};

use engine_base::{CancelToken, Code, ContentHash};
use flow_cluster::Failure;
use flow_cluster::artifacts::{ArtifactError, Origin};
use flow_http::Token;
use relay::{Relay, Trouble};
use support::{Place, bytes, quick};

const MIB: usize = 1 << 20;

fn origin(name: &str) -> Origin {
    Origin::Holder(name.parse().unwrap())
}

#[tokio::test]
async fn what_a_holder_has_comes_whole_and_is_there_the_second_time() {
    let place = Place::new();
    let (hash, holder) = place.holder("one", &bytes(3 * MIB + 17, 1)).await;
    let artifacts = place.artifacts(quick());
    let cancel = CancelToken::new();
    let length = (3 * MIB + 17) as u64;
    let first = artifacts
        .fetch(&hash, length, &[holder], &cancel)
        .await
        .unwrap();
    assert_eq!(first.from, Some(origin("one")));
    assert_eq!(std::fs::read(&first.path).unwrap(), bytes(3 * MIB + 17, 1));
    // Nobody is asked again.
    let again = artifacts.fetch(&hash, length, &[], &cancel).await.unwrap();
    assert_eq!((again.from, again.path), (None, first.path));
    place.assert_no_temps();
}

#[tokio::test]
async fn an_empty_artifact_is_one_too() {
    let place = Place::new();
    let (hash, holder) = place.holder("one", b"").await;
    let fetched = place.artifacts(quick());
    let fetched = fetched
        .fetch(&hash, 0, &[holder], &CancelToken::new())
        .await;
    assert_eq!(std::fs::read(fetched.unwrap().path).unwrap(), b"");
}

#[tokio::test]
async fn a_cut_is_gone_on_with_where_it_was() {
    let place = Place::new();
    let content = bytes(4 * MIB, 2);
    let (hash, holder) = place.holder("one", &content).await;
    // Each connection is cut after a megabyte or so.
    let relay = Relay::before(&holder, Trouble::CutAfter(MIB + 300_000)).await;
    let artifacts = place.artifacts(quick());
    let through = relay.holder(&holder);
    let length = content.len() as u64;
    let fetched = artifacts
        .fetch(&hash, length, &[through], &CancelToken::new())
        .await
        .unwrap();
    assert!(fetched.resumed >= 2, "{fetched:?}");
    // Only what was missing came again: headers and what was on its way are all there is besides.
    let passed = relay.passed_bytes();
    assert!(passed < content.len() as u64 + MIB as u64, "{passed}");
    assert_eq!(std::fs::read(&fetched.path).unwrap(), content);
    place.assert_no_temps();
}

#[tokio::test]
async fn another_holder_goes_on_where_one_died() {
    let place = Place::new();
    let content = bytes(2 * MIB, 3);
    let (hash, first) = place.holder("first", &content).await;
    let (_, second) = place.holder("second", &content).await;
    let relay = Relay::before(&first, Trouble::DieAfter(MIB + 5000)).await;
    let artifacts = place.artifacts(quick());
    let holders = [relay.holder(&first), second];
    let length = content.len() as u64;
    let fetched = artifacts
        .fetch(&hash, length, &holders, &CancelToken::new())
        .await
        .unwrap();
    assert_eq!((fetched.from, fetched.resumed), (Some(origin("second")), 1));
    assert!(fetched.corrupt.is_empty());
}

#[tokio::test]
async fn a_holder_with_other_bytes_is_named_and_the_next_one_asked() {
    let place = Place::new();
    let content = bytes(MIB, 4);
    let (hash, liar) = place.holder("liar", &content).await;
    let (_, honest) = place.holder("honest", &content).await;
    let relay = Relay::before(&liar, Trouble::FlipAt(700_000)).await;
    let artifacts = place.artifacts(quick());
    let holders = [relay.holder(&liar), honest];
    let length = content.len() as u64;
    let fetched = artifacts
        .fetch(&hash, length, &holders, &CancelToken::new())
        .await
        .unwrap();
    assert_eq!(fetched.from, Some(origin("honest")));
    assert_eq!(fetched.corrupt.len(), 1);
    assert_eq!(fetched.corrupt[0].from, origin("liar"));
    assert_ne!(fetched.corrupt[0].got, hash);
    assert_eq!(fetched.corrupt[0].got_bytes, length);
    assert_eq!(std::fs::read(&fetched.path).unwrap(), content);
}

#[tokio::test]
async fn when_all_lie_the_job_fails_with_the_name_of_one() {
    let place = Place::new();
    let content = bytes(300_000, 5);
    let (hash, liar) = place.holder("liar", &content).await;
    let relay = Relay::before(&liar, Trouble::FlipAt(1000)).await;
    let artifacts = place.artifacts(quick());
    let holders = [relay.holder(&liar)];
    let fetched = artifacts
        .fetch(&hash, 300_000, &holders, &CancelToken::new())
        .await;
    let error = fetched.unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.to_string().contains("worker liar"), "{error}");
    let Failure::Corrupt {
        worker,
        expected,
        got,
    } = error.failure()
    else {
        panic!("{error:?}")
    };
    assert_eq!((worker.as_str(), expected), ("liar", hash));
    assert_ne!(got, hash);
    assert!(artifacts.store().blob_path(&hash).is_err());
    place.assert_no_temps();
}

#[tokio::test]
async fn bytes_of_two_givers_blame_only_the_one_that_lied() {
    let place = Place::new();
    let content = bytes(2 * MIB, 6);
    let length = content.len() as u64;
    let (hash, liar) = place.holder("liar", &content).await;
    let (_, honest) = place.holder("honest", &content).await;
    // The liar gives a wrong beginning and is cut off; the honest one goes on with it.
    let relay = Relay::before(&liar, Trouble::FlipThenCut(1000, MIB + 200_000)).await;
    let artifacts = place.artifacts(quick());
    let holders = [relay.holder(&liar), honest];
    let fetched = artifacts
        .fetch(&hash, length, &holders, &CancelToken::new())
        .await
        .unwrap();
    assert_eq!(fetched.from, Some(origin("honest")));
    let blamed = fetched.corrupt.iter().all(|one| one.from == origin("liar"));
    assert!(blamed, "{:?}", fetched.corrupt);
    assert_eq!(std::fs::read(&fetched.path).unwrap(), content);
}

#[tokio::test]
async fn another_length_than_announced_is_another_content() {
    let place = Place::new();
    let (hash, holder) = place.holder("one", &bytes(5000, 7)).await;
    let artifacts = place.artifacts(quick());
    for wrong in [4999, 5001] {
        let holders = [holder.clone()];
        let fetched = artifacts
            .fetch(&hash, wrong, &holders, &CancelToken::new())
            .await;
        let error = fetched.unwrap_err();
        assert_eq!(error.code(), Code::Corrupt, "{wrong}: {error}");
    }
}

#[tokio::test]
async fn gone_from_every_holder_and_a_refused_token_are_told_apart_from_a_dead_link() {
    let place = Place::new();
    let (_, holder) = place.holder("one", b"something else").await;
    let artifacts = place.artifacts(quick());
    let hash = ContentHash::of(b"never made");
    let cancel = CancelToken::new();
    let gone = artifacts
        .fetch(&hash, 10, std::slice::from_ref(&holder), &cancel)
        .await;
    let gone = gone.unwrap_err();
    assert!(matches!(gone, ArtifactError::Gone { .. }), "{gone:?}");
    assert_eq!(gone.failure(), Failure::InputGone { content: hash });

    let mut stranger = holder.clone();
    stranger.token = Token::random().unwrap();
    let refused = artifacts
        .fetch(&hash, 10, &[stranger], &cancel)
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("refused our token"),
        "{refused}"
    );

    let mut dead = holder;
    dead.url = "http://127.0.0.1:9".to_owned();
    let before = Instant::now();
    let dead = artifacts
        .fetch(&hash, 10, &[dead], &cancel)
        .await
        .unwrap_err();
    assert!(
        matches!(dead, ArtifactError::Unreachable { .. }),
        "{dead:?}"
    );
    assert!(before.elapsed() >= quick().patience);
}

#[tokio::test]
async fn cancelling_ends_a_transfer_that_stands_still() {
    let place = Place::new();
    let content = bytes(2 * MIB, 8);
    let (hash, holder) = place.holder("one", &content).await;
    let relay = Relay::before(&holder, Trouble::StallAfter(100_000)).await;
    let mut options = quick();
    options.idle_timeout = Duration::from_secs(60);
    let artifacts = place.artifacts(options);
    let cancel = CancelToken::new();
    let soon = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        soon.cancel();
    });
    let before = Instant::now();
    let holders = [relay.holder(&holder)];
    let fetched = artifacts
        .fetch(&hash, content.len() as u64, &holders, &cancel)
        .await;
    assert_eq!(fetched.unwrap_err(), ArtifactError::Cancelled);
    // Two seconds are promised to whoever cancels a job.
    assert!(before.elapsed() < Duration::from_secs(2));
    place.assert_no_temps();
}

#[tokio::test]
async fn of_several_who_want_one_artifact_only_one_transfers() {
    let place = Place::new();
    let content = bytes(MIB, 9);
    let (hash, holder) = place.holder("one", &content).await;
    let relay = Relay::before(&holder, Trouble::None).await;
    let artifacts = place.artifacts(quick());
    let holders = [relay.holder(&holder)];
    let (cancel, length) = (CancelToken::new(), content.len() as u64);
    let fetch = || artifacts.fetch(&hash, length, &holders, &cancel);
    let (a, b, c) = tokio::join!(fetch(), fetch(), fetch());
    for one in [a, b, c] {
        assert_eq!(one.unwrap().length_bytes, length);
    }
    assert!(
        relay.passed_bytes() < 2 * length,
        "{}",
        relay.passed_bytes()
    );
}

#[tokio::test]
async fn the_least_recently_used_go_first_and_what_is_kept_stays() {
    let place = Place::new();
    let mut options = quick();
    options.cap_bytes = 300_000;
    let artifacts = place.artifacts(options);
    let cancel = CancelToken::new();
    let mut hashes = Vec::new();
    for seed in 10..15 {
        let content = bytes(100_000, seed);
        let (hash, holder) = place.holder(&format!("h{seed}"), &content).await;
        artifacts
            .fetch(&hash, 100_000, &[holder], &cancel)
            .await
            .unwrap();
        hashes.push(hash);
    }
    artifacts.pin(&hashes[1]).unwrap();
    artifacts.pin(&hashes[1]).unwrap();
    artifacts.unpin(&hashes[1]);
    // The first was used again; only the second is pinned; the third is nowhere else.
    artifacts
        .fetch(&hashes[0], 100_000, &[], &cancel)
        .await
        .unwrap();
    let only_here = hashes[2];
    let freed = artifacts.make_room(&|hash| *hash == only_here).unwrap();
    assert_eq!(freed, 200_000);
    let there: Vec<bool> = hashes
        .iter()
        .map(|hash| artifacts.store().blob_path(hash).is_ok())
        .collect();
    assert_eq!(there, [true, true, true, false, false]);
    // One more comes, and nothing is kept any longer: the one used longest ago goes.
    let (sixth, holder) = place.holder("h15", &bytes(100_000, 15)).await;
    let fetched = artifacts.fetch(&sixth, 100_000, &[holder], &cancel).await;
    drop(fetched.unwrap());
    artifacts.unpin(&hashes[1]);
    assert_eq!(artifacts.make_room(&|_| false).unwrap(), 100_000);
    assert!(artifacts.store().blob_path(&hashes[1]).is_err());
    assert!(artifacts.store().blob_path(&hashes[0]).is_ok());
}

#[tokio::test]
async fn what_another_process_holds_is_not_removed() {
    let place = Place::new();
    let mut options = quick();
    options.cap_bytes = 0;
    let artifacts = place.artifacts(options);
    let (hash, holder) = place.holder("one", &bytes(5000, 20)).await;
    let cancel = CancelToken::new();
    let fetched = artifacts
        .fetch(&hash, 5000, &[holder], &cancel)
        .await
        .unwrap();
    // As a run does: by its own handle of the same store.
    assert_eq!(artifacts.make_room(&|_| false).unwrap(), 0);
    drop(fetched);
    place.own_store().pin("a run", &[hash]).unwrap();
    assert_eq!(artifacts.make_room(&|_| false).unwrap(), 0);
    place.own_store().unpin("a run").unwrap();
    assert_eq!(artifacts.make_room(&|_| false).unwrap(), 5000);
}
