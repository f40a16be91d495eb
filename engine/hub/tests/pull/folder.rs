//! The models folder: files put there by hand, damage, removal, two at once.

use std::fs;
use std::time::Duration;

use engine_base::{CancelToken, Code, NoProgress};
use engine_hub::{FileState, HubError, ModelState};

use crate::server::{Reply, Server};
use crate::{Place, Reports, content, pull};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9";

fn put(place: &Place, bytes: &[u8]) {
    fs::create_dir_all(place.folder.path().join("tiny")).unwrap();
    let path = place.file("tiny.gguf");
    drop(fs::remove_file(&path));
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_put_there_by_hand_is_hashed_before_it_is_used() {
    let bytes = content(5000);
    let place = Place::of(&bytes);
    let hub = place.hub(NOWHERE);
    put(&place, &bytes);
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Unverified);
    assert_eq!(hub.path("tiny"), Some(place.file("tiny.gguf")));
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Installed);
    assert_eq!(pull(&hub).unwrap(), place.file("tiny.gguf"));
    // Same size, another content.
    let mut wrong = bytes.clone();
    wrong[17] ^= 1;
    put(&place, &wrong);
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Unverified);
    assert_eq!(hub.path("tiny"), None);
    let server = Server::start(move |asked, _| Reply::ranged(&bytes, asked));
    pull(&place.hub(&server.url())).unwrap();
    assert_eq!(hub.path("tiny"), Some(place.file("tiny.gguf")));
}

#[test]
fn a_pull_without_a_source_hashes_what_is_there_or_says_what_to_put() {
    let bytes = content(100);
    let sha256 = crate::sha256(&bytes);
    let place = Place::new(&format!(
        "{{ name = \"tiny.gguf\", bytes = 100, sha256 = {sha256:?} }}"
    ));
    let hub = place.hub(NOWHERE);
    let error = pull(&hub).unwrap_err().to_string();
    assert!(
        error.contains("names no source") && error.contains(&sha256),
        "{error}"
    );
    put(&place, &bytes);
    pull(&hub).unwrap();
}

#[test]
fn verify_tells_what_is_wrong_and_the_next_pull_mends_it() {
    let bytes = content(5000);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |asked, _| Reply::ranged(&body, asked));
    let hub = place.hub(&server.url());
    let verdict = || {
        let mut files = hub
            .verify("tiny", &CancelToken::new(), &NoProgress)
            .unwrap();
        files.remove(0).state
    };
    assert_eq!(verdict(), FileState::Missing);
    pull(&hub).unwrap();
    assert_eq!(verdict(), FileState::Whole);
    put(&place, &bytes[..4000]);
    assert_eq!(verdict(), FileState::WrongSize { bytes: 4000 });
    let mut wrong = bytes.clone();
    wrong[0] ^= 1;
    put(&place, &wrong);
    let sha256 = crate::sha256(&wrong);
    assert_eq!(verdict(), FileState::WrongHash { sha256 });
    pull(&hub).unwrap();
    assert_eq!(verdict(), FileState::Whole);
    assert_eq!(fs::read(place.file("tiny.gguf")).unwrap(), bytes);
}

#[test]
fn removal_gives_back_the_models_files_and_leaves_others() {
    let bytes = content(5000);
    let place = Place::of(&bytes);
    let hub = place.hub(NOWHERE);
    assert_eq!(hub.remove("tiny").unwrap().bytes, 0);
    put(&place, &bytes);
    assert!(hub.path("tiny").is_some());
    place.leave_part(&bytes[..10]);
    fs::write(place.file("notes.txt"), "mine").unwrap();
    let removed = hub.remove("tiny").unwrap();
    assert_eq!(removed.bytes, 5010);
    assert_eq!(removed.left, [place.file("notes.txt")]);
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Missing);
    fs::remove_file(place.file("notes.txt")).unwrap();
    hub.remove("tiny").unwrap();
    assert!(!place.folder.path().join("tiny").exists());
}

#[test]
fn unknown_models_are_named_with_those_there_are() {
    let hub = Place::of(b"x").hub(NOWHERE);
    for id in ["tinny", "../tiny", ""] {
        let error = hub.pull(id, &CancelToken::new(), &NoProgress).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.to_string().contains("tiny"), "{error}");
        assert!(hub.remove(id).is_err() && hub.path(id).is_none());
    }
}

#[test]
fn two_pulls_of_one_model_fetch_it_once() {
    let bytes = content(100_000);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |asked, _| {
        let mut reply = Reply::ranged(&body, asked);
        reply.slow = Some((10_000, Duration::from_millis(40)));
        reply
    });
    // Two hubs, as two processes have: the lock is the file's, not ours.
    let (first, second) = (place.hub(&server.url()), place.hub(&server.url()));
    let waiting = Reports::default();
    std::thread::scope(|scope| {
        let one = scope.spawn(|| pull(&first));
        while server.asked().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(matches!(second.remove("tiny"), Err(HubError::Busy { .. })));
        let impatient = CancelToken::new();
        impatient.cancel();
        let stopped = second.pull("tiny", &impatient, &NoProgress);
        assert_eq!(stopped.unwrap_err().code(), Code::Cancelled);
        let path = second.pull("tiny", &CancelToken::new(), &waiting).unwrap();
        assert_eq!(path, one.join().unwrap().unwrap());
    });
    assert_eq!(server.asked().len(), 1);
    let told = waiting.0.into_inner().unwrap();
    let text = format!("waiting for another process ({})", std::process::id());
    assert!(told[0].what.starts_with(&text), "{:?}", told[0]);
}
