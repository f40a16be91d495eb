//! What a server may do to a download.

use std::time::{Duration, Instant};

use engine_base::{CancelToken, Code, NoProgress};
use engine_hub::{Hub, HubError, ModelState};

use crate::server::{Reply, Server};
use crate::{Place, REVISION, Reports, content, hub_file, pull};

const SIZE: usize = 1_000_000;

#[test]
fn a_model_comes_whole_once_and_read_only() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |asked, _| Reply::ranged(&body, asked));
    let hub = place.hub(&server.url());
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Missing);
    assert_eq!(hub.path("tiny"), None);
    let reports = Reports::default();
    let path = hub.pull("tiny", &CancelToken::new(), &reports).unwrap();
    assert_eq!(path, place.file("tiny.gguf"));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert!(std::fs::metadata(&path).unwrap().permissions().readonly());
    assert!(!place.part().exists());
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Installed);
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].path,
        format!("/owner/tiny/resolve/{REVISION}/tiny.gguf")
    );
    let reports = reports.0.into_inner().unwrap();
    assert!(
        reports.is_sorted_by_key(|report| report.step),
        "{reports:?}"
    );
    let last = reports.last().unwrap();
    assert_eq!((last.step, last.of), (SIZE as u64, SIZE as u64));
    // Here already: nobody is asked, not even when there is nobody.
    drop(server);
    assert_eq!(pull(&hub).unwrap(), path);
    assert_eq!(hub.path("tiny"), Some(path));
}

#[test]
fn several_files_make_a_folder() {
    let (one, two) = (content(1000), content(2000));
    let files = [
        hub_file("config.json", &one),
        hub_file("w/a.safetensors", &two),
    ];
    let place = Place::new(&files.join(", "));
    let server = Server::start(move |asked, _| {
        let body = if asked.path.ends_with("config.json") {
            &one
        } else {
            &two
        };
        Reply::ranged(body, asked)
    });
    let path = pull(&place.hub(&server.url())).unwrap();
    assert_eq!(path, place.folder.path().join("tiny"));
    assert_eq!(
        std::fs::read(path.join("w/a.safetensors")).unwrap(),
        content(2000)
    );
}

#[test]
fn a_download_cut_again_and_again_goes_on_where_it_stopped() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    // More cuts than tries in a row are allowed: each brought something.
    let server = Server::start(move |asked, _| Reply::ranged(&body, asked).cut(90_000));
    let path = pull(&place.hub(&server.url())).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    let froms: Vec<usize> = server
        .asked()
        .iter()
        .map(|one| one.from.unwrap_or(0))
        .collect();
    let expected: Vec<usize> = (0..12).map(|at| at * 90_000).collect();
    assert_eq!(froms, expected);
}

#[test]
fn a_part_of_another_day_goes_on() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    place.leave_part(&bytes[..600_001]);
    let server = Server::start(move |asked, _| Reply::ranged(&body, asked));
    let hub = place.hub(&server.url());
    assert_eq!(
        hub.state("tiny").unwrap(),
        ModelState::Partial { bytes: 600_001 }
    );
    assert_eq!(std::fs::read(pull(&hub).unwrap()).unwrap(), bytes);
    assert_eq!(server.asked()[0].from, Some(600_001));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_server_without_ranges_is_read_past_what_is_here() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |_, before| match before {
        0 => Reply::whole(&body).cut(300_000),
        1 => Reply::whole(&body).cut(700_000),
        _ => Reply::whole(&body),
    });
    assert_eq!(
        std::fs::read(pull(&place.hub(&server.url())).unwrap()).unwrap(),
        bytes
    );
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn a_download_that_never_gets_further_ends_and_says_what_to_do() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |_, _| Reply::whole(&body).cut(300_000));
    let hub = place.hub(&server.url());
    let error = pull(&hub).unwrap_err();
    assert_eq!(error.code(), Code::Io);
    let text = error.to_string();
    for part in [
        "300000 of 1000000 bytes",
        "in 4 tries",
        "by hand",
        "tiny.gguf",
        "1000000 bytes",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(text.contains(&crate::sha256(&bytes)), "{text}");
    assert!(
        text.contains(&format!("{:?}", place.folder.path().join("tiny"))),
        "{text}"
    );
    assert_eq!(server.asked().len(), 4);
    assert_eq!(
        hub.state("tiny").unwrap(),
        ModelState::Partial { bytes: 300_000 }
    );
}

#[test]
fn wrong_bytes_are_refused_and_leave_nothing() {
    let bytes = content(SIZE);
    let (mut body, place) = (bytes.clone(), Place::of(&bytes));
    body[777_777] ^= 1;
    let server = Server::start(move |asked, _| Reply::ranged(&body, asked));
    let hub = place.hub(&server.url());
    let error = pull(&hub).unwrap_err();
    assert!(matches!(error, HubError::WrongHash { .. }), "{error}");
    assert_eq!(error.code(), Code::Corrupt);
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Missing);
    assert!(!place.file("tiny.gguf").exists());
    assert_eq!(
        server.asked().len(),
        1,
        "a whole answer is not asked for again"
    );
}

#[test]
fn a_damaged_part_is_found_and_fetched_again() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let mut damaged = bytes[..500_000].to_vec();
    damaged[1] ^= 1;
    place.leave_part(&damaged);
    let server = Server::start(move |asked, _| Reply::ranged(&body, asked));
    assert_eq!(
        std::fs::read(pull(&place.hub(&server.url())).unwrap()).unwrap(),
        bytes
    );
    let froms: Vec<_> = server.asked().iter().map(|one| one.from).collect();
    assert_eq!(froms, [Some(500_000), None]);
}

#[test]
fn a_part_longer_than_its_file_is_begun_anew() {
    let bytes = content(1000);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    place.leave_part(&content(5000));
    let server = Server::start(move |asked, _| Reply::ranged(&body, asked));
    assert_eq!(
        std::fs::read(pull(&place.hub(&server.url())).unwrap()).unwrap(),
        bytes
    );
}

#[test]
fn redirects_are_followed_and_carry_no_token_away() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let store = Server::start(move |asked, _| Reply::ranged(&body, asked).cut(600_000));
    let away = store.url();
    let server = Server::start(move |asked, _| {
        if asked.path.starts_with("/owner") {
            Reply::status(307).with("Location", "/moved")
        } else {
            Reply::status(302).with("Location", format!("{away}/blob?signature=secret"))
        }
    });
    let mut options = place.options(&server.url());
    options.token = Some("hf_secret".into());
    let path = pull(&Hub::open(options).unwrap()).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    assert!(
        server
            .asked()
            .iter()
            .all(|one| one.token.as_deref() == Some("Bearer hf_secret"))
    );
    let asked = store.asked();
    assert!(asked.iter().all(|one| one.token.is_none()), "{asked:?}");
    let froms: Vec<_> = asked.iter().map(|one| one.from).collect();
    assert_eq!(froms, [None, Some(600_000)], "the range goes along");
}

#[test]
fn redirects_in_a_ring_and_away_from_this_machine_end() {
    let place = Place::of(&content(10));
    let server = Server::start(|_, _| Reply::status(302).with("Location", "/again"));
    let error = pull(&place.hub(&server.url())).unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    assert!(server.asked().len() < 12);
    let server = Server::start(|_, _| Reply::status(302).with("Location", "http://192.0.2.1/x"));
    let error = pull(&place.hub(&server.url())).unwrap_err();
    assert!(error.to_string().contains("only this machine"), "{error}");
    assert_eq!(server.asked().len(), 1);
    // Nor is another machine asked first.
    let error = pull(&place.hub("http://192.0.2.1")).unwrap_err();
    assert!(error.to_string().contains("only this machine"), "{error}");
}

#[test]
fn a_range_not_satisfiable_is_asked_for_without() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    place.leave_part(&bytes[..10]);
    let server = Server::start(move |asked, _| match asked.from {
        Some(_) => Reply::status(416),
        None => Reply::whole(&body),
    });
    assert_eq!(
        std::fs::read(pull(&place.hub(&server.url())).unwrap()).unwrap(),
        bytes
    );
    assert_eq!(server.asked().len(), 2);
    // A server whose file is shorter than the part says so.
    let place = Place::of(&bytes);
    place.leave_part(&bytes[..900]);
    let server = Server::start(|asked, _| Reply::ranged(&content(800), asked));
    let error = pull(&place.hub(&server.url())).unwrap_err();
    assert!(
        matches!(error, HubError::WrongSize { got: 800, .. }),
        "{error}"
    );
    // One that refuses even the whole file is not asked for ever.
    let place = Place::of(&bytes);
    let server = Server::start(|_, _| Reply::status(416));
    assert!(matches!(
        pull(&place.hub(&server.url())),
        Err(HubError::BadAnswer { .. })
    ));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_slow_server_is_waited_for_as_long_as_something_comes() {
    let bytes = content(10_000);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |asked, _| {
        let mut reply = Reply::ranged(&body, asked);
        // 0.8 s in all, over twice the patience for one piece.
        reply.slow = Some((1000, Duration::from_millis(80)));
        reply
    });
    assert_eq!(
        std::fs::read(pull(&place.hub(&server.url())).unwrap()).unwrap(),
        bytes
    );
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_server_that_hangs_is_left_and_asked_again() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |asked, before| {
        let mut reply = Reply::ranged(&body, asked);
        match before {
            0 => reply.late = Duration::from_secs(2),
            1 => {
                reply = reply.cut(400_000);
                reply.linger = Duration::from_secs(2);
            }
            _ => {}
        }
        reply
    });
    let began = Instant::now();
    assert_eq!(
        std::fs::read(pull(&place.hub(&server.url())).unwrap()).unwrap(),
        bytes
    );
    assert_eq!(server.asked()[2].from, Some(400_000));
    assert!(
        began.elapsed() < Duration::from_millis(1900),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_stop_is_heeded_while_nothing_comes_and_the_part_stays() {
    let bytes = content(SIZE);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |asked, before| {
        let mut reply = Reply::ranged(&body, asked);
        if before == 0 {
            reply = reply.cut(400_000);
            reply.linger = Duration::from_secs(5);
        }
        reply
    });
    let mut options = place.options(&server.url());
    options.stall_timeout = Duration::from_secs(60);
    let hub = Hub::open(options).unwrap();
    let cancel = CancelToken::new();
    let stopped = std::thread::scope(|scope| {
        let work = scope.spawn(|| hub.pull("tiny", &cancel, &NoProgress));
        let part = || std::fs::metadata(place.part()).map_or(0, |found| found.len());
        let began = Instant::now();
        while part() < 400_000 && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked_to_stop = Instant::now();
        cancel.cancel();
        let error = work.join().unwrap().unwrap_err();
        assert_eq!(error.code(), Code::Cancelled, "{error}");
        asked_to_stop.elapsed()
    });
    assert!(stopped < Duration::from_secs(1), "{stopped:?}");
    assert_eq!(
        hub.state("tiny").unwrap(),
        ModelState::Partial { bytes: 400_000 }
    );
    assert_eq!(std::fs::read(pull(&hub).unwrap()).unwrap(), bytes);
    assert_eq!(server.asked()[1].from, Some(400_000));
}

#[test]
fn another_length_than_the_manifests_is_refused() {
    let bytes = content(5000);
    let place = Place::of(&bytes);
    // Announced.
    let server = Server::start(|_, _| Reply::whole(&content(4000)));
    let error = pull(&place.hub(&server.url())).unwrap_err();
    assert!(
        matches!(
            error,
            HubError::WrongSize {
                expected: 5000,
                got: 4000,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(server.asked().len(), 1);
    // Not announced, too long.
    let server = Server::start(|_, _| Reply {
        length: None,
        ..Reply::whole(&content(6000))
    });
    let error = pull(&place.hub(&server.url())).unwrap_err();
    assert!(
        matches!(error, HubError::WrongSize { expected: 5000, .. }),
        "{error}"
    );
    assert_eq!(
        std::fs::metadata(place.part()).unwrap().len(),
        0,
        "nothing of it is kept"
    );
    // Not announced, too short the first time: the connection may have broken.
    let body = bytes.clone();
    let server = Server::start(move |asked, before| Reply {
        length: None,
        cut: (before == 0).then_some(2000),
        ..Reply::ranged(&body, asked)
    });
    assert_eq!(
        std::fs::read(pull(&place.hub(&server.url())).unwrap()).unwrap(),
        bytes
    );
}

#[test]
fn answers_that_are_not_the_range_asked_for_are_refused() {
    let bytes = content(5000);
    for (range, coding) in [
        ("bytes 2000-4999/5000", None),
        ("bytes 1000-4999/4999", None),
        ("sheep 1000-4999/5000", None),
        ("bytes 1000-4999/5000", Some("gzip")),
    ] {
        let place = Place::of(&bytes);
        place.leave_part(&bytes[..1000]);
        let body = bytes.clone();
        let server = Server::start(move |_, _| {
            let mut reply = Reply::whole(&body[1000..]).with("Content-Range", range);
            reply.status = 206;
            match coding {
                Some(coding) => reply.with("Content-Encoding", coding),
                None => reply,
            }
        });
        let error = pull(&place.hub(&server.url())).unwrap_err();
        let refused = matches!(
            error,
            HubError::BadAnswer { .. } | HubError::WrongSize { got: 4999, .. }
        );
        assert!(refused, "{range} {coding:?}: {error}");
        assert_eq!(
            std::fs::read(place.part()).unwrap(),
            bytes[..1000],
            "{range}"
        );
    }
}

#[test]
fn refusals_say_what_to_do() {
    let place = Place::of(&content(10));
    for (status, code, says) in [
        (401, Code::NotPermitted, "set HF_TOKEN"),
        (403, Code::NotPermitted, "terms of owner/tiny"),
        (404, Code::NotFound, "is not there"),
        (410, Code::NotFound, "is not there"),
        (418, Code::Io, "418"),
    ] {
        let server = Server::start(move |_, _| {
            Reply::status(status).with("X-Error-Message", "gated, they say")
        });
        let error = pull(&place.hub(&server.url())).unwrap_err();
        assert_eq!(error.code(), code, "{status}: {error}");
        let text = error.to_string();
        for part in [says, "gated, they say", "owner/tiny", REVISION] {
            assert!(text.contains(part), "{status}: {part:?} is not in {text}");
        }
        assert_eq!(server.asked().len(), 1, "{status} is asked once");
    }
    let server = Server::start(|_, _| Reply::status(403));
    let mut options = place.options(&server.url());
    options.token = Some("hf_secret".into());
    let error = pull(&Hub::open(options).unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("account of HF_TOKEN needs access"),
        "{error}"
    );
    assert!(!error.contains("hf_secret"), "{error}");
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    let bytes = content(10);
    let (body, place) = (bytes.clone(), Place::of(&bytes));
    let server = Server::start(move |_, before| match before {
        0 => Reply::status(429).with("Retry-After", "1"),
        1 => Reply::status(503),
        _ => Reply::whole(&body),
    });
    let began = Instant::now();
    pull(&place.hub(&server.url())).unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.asked().len(), 3);
    let place = Place::of(&bytes);
    let server = Server::start(|_, _| Reply::status(500));
    let error = pull(&place.hub(&server.url())).unwrap_err();
    assert!(error.to_string().contains("500"), "{error}");
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn nobody_there_and_offline_say_which_file_goes_where() {
    let place = Place::of(&content(10));
    let gone = Server::start(|_, _| Reply::status(500)).url();
    let unreachable = pull(&place.hub(&gone)).unwrap_err();
    let mut options = place.options(&gone);
    options.offline = true;
    let offline = pull(&Hub::open(options).unwrap()).unwrap_err();
    for error in [unreachable, offline] {
        assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("put \"tiny.gguf\" (10 bytes, sha256 "),
            "{text}"
        );
    }
}
