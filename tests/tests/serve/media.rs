//! Files by content.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use flow_studio::Pages;
use longtake_tests::film::SmallFilm;
use serde_json::json;

use crate::kit::{png, studio, studio_with};

#[test]
fn media_comes_by_content_in_ranges_and_as_small_pictures() {
    let studio = studio();
    let project = studio.caller.create("Media");
    let bytes = png();
    let (status, file) = studio
        .caller
        .upload(&project, "../pictures/🐙 שלום.png", bytes.clone());
    assert_eq!(status, 200, "{file}");
    let (name, hash) = (&file["ok"]["name"], file["ok"]["hash"].as_str().unwrap());
    assert_eq!(
        name, "🐙 שלום.png",
        "the name alone, whatever folder it said"
    );
    let path = format!("/media/{hash}");
    let whole = studio.caller.get(&path, &[]);
    assert_eq!(whole.status(), 200);
    assert_eq!(whole.headers()["content-type"], "image/png");
    assert_eq!(whole.headers()["accept-ranges"], "bytes");
    assert_eq!(whole.bytes().unwrap().to_vec(), bytes);
    let part = studio.caller.get(&path, &[("range", "bytes=10-29")]);
    assert_eq!(part.status(), 206);
    let range = format!("bytes 10-29/{}", bytes.len());
    assert_eq!(part.headers()["content-range"], range.as_str());
    assert_eq!(part.bytes().unwrap().to_vec(), bytes[10..30]);
    let tail = studio.caller.get(&path, &[("range", "bytes=-5")]);
    assert_eq!(tail.bytes().unwrap().to_vec(), bytes[bytes.len() - 5..]);
    let past = studio.caller.get(&path, &[("range", "bytes=99999999-")]);
    assert_eq!(past.status(), 416);
    let tag = format!("\"{hash}\"");
    let known = studio.caller.get(&path, &[("if-none-match", &tag)]);
    assert_eq!(known.status(), 304);
    let thumb = studio.caller.get(&format!("/thumb/{hash}?w=100"), &[]);
    assert_eq!(thumb.status(), 200);
    assert_eq!(thumb.headers()["content-type"], "image/jpeg");
    let small = thumb.bytes().unwrap();
    assert!(small.starts_with(b"\xff\xd8") && small.len() < bytes.len());
    let again = studio.caller.get(&format!("/thumb/{hash}?w=160"), &[]);
    assert_eq!(again.bytes().unwrap(), small, "made once for both widths");
    // The same bytes under another name are another name; other bytes don't take a name.
    let (_, twice) = studio.caller.upload(&project, "b.png", bytes.clone());
    assert_eq!(twice["ok"]["hash"], hash);
    let film = SmallFilm::new().unwrap();
    let other = std::fs::read(film.folder().join("sea.png")).unwrap();
    let (_, other) = studio.caller.upload(&project, "b.png", other);
    assert_eq!(other["ok"]["name"], "b-2.png");
    let state = studio
        .caller
        .call("project.state", json!({ "project": project }));
    assert_eq!(state["pictures"]["b.png"]["width_px"], 320);
    assert_eq!(state["pictures"]["b.png"]["used"], false);
    for (name, bytes) in [("a.exe", b"MZ..".to_vec()), ("", png()), ("..", png())] {
        let (status, answer) = studio.caller.upload(&project, name, bytes);
        assert_eq!(status, 400, "{name}: {answer}");
    }
    let none = studio
        .caller
        .get(&format!("/media/{}", "0".repeat(64)), &[]);
    assert_eq!(none.status(), 404);
}

/// Remove every file of this content below a folder, as a broken disk would.
fn lose(folder: &Path, hash: &str) {
    let mut lost = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name() == hash {
                std::fs::remove_file(path).unwrap();
                lost += 1;
            }
        }
    }
    assert!(lost > 0, "there is no file {hash}");
}

#[test]
fn a_missing_file_comes_back_by_its_content_alone() {
    let studio = studio();
    let caller = &studio.caller;
    let project = caller.create("Gone");
    let bytes = png();
    let (_, file) = caller.upload(&project, "lamp.png", bytes.clone());
    let hash = file["ok"]["hash"].as_str().unwrap().to_owned();
    let missing = || {
        let state = caller.call("project.state", json!({ "project": project }));
        state["pictures"]["lamp.png"]["missing"] == true
    };
    let lose = || lose(studio.folder.path(), &hash);
    assert!(!missing());
    lose();
    assert!(missing());
    assert_eq!(caller.get(&format!("/media/{hash}"), &[]).status(), 404);
    // Another file is refused with both contents, the right one taken under any name.
    let film = SmallFilm::new().unwrap();
    let relink = |path: &Path| {
        let args = json!({ "project": project, "name": "lamp.png", "path": path });
        caller.ask("media.relink", &args)
    };
    let (status, answer) = relink(&film.folder().join("sea.png"));
    assert_eq!(status, 422, "{answer}");
    let values = &answer["error"]["coded"]["values"];
    assert_eq!(answer["error"]["coded"]["code"], "other_content");
    assert_eq!(values["expected"], hash.as_str());
    let other = std::fs::read(film.folder().join("sea.png")).unwrap();
    let other = engine_base::ContentHash::of(&other).to_hex();
    assert_eq!(values["got"], other.as_str());
    assert!(missing());
    let moved = film.folder().join("deep/er/moved.bin");
    std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
    std::fs::write(&moved, &bytes).unwrap();
    let (status, answer) = relink(&moved);
    assert_eq!(status, 200, "{answer}");
    assert!(!missing());
    // The same in a folder, where it is looked for.
    lose();
    let empty = film.folder().join("deep/other");
    std::fs::create_dir_all(&empty).unwrap();
    let (status, answer) = relink(&empty);
    assert_eq!(status, 404, "{answer}");
    assert_eq!(answer["error"]["coded"]["code"], "not_found_in_folder");
    // The original lies there too, under its own name.
    std::fs::remove_file(film.folder().join("lamp.png")).unwrap();
    let (status, answer) = relink(film.folder());
    assert_eq!(status, 200, "{answer}");
    assert_eq!(caller.get(&format!("/media/{hash}"), &[]).status(), 200);
    // What is not missing, or never was there, is not looked for.
    let (status, answer) = relink(&moved);
    assert_eq!(
        (status, &answer["error"]["coded"]["code"]),
        (422, &json!("not_missing"))
    );
    let args = json!({ "project": project, "name": "never.png", "path": moved });
    let (status, answer) = caller.ask("media.relink", &args);
    assert_eq!(
        (status, &answer["error"]["coded"]["code"]),
        (404, &json!("nothing_to_look_for"))
    );
}

#[test]
fn what_is_no_picture_is_shown_as_a_torn_one_and_paths_of_ours_are_no_pages() {
    let studio = studio_with(|folder| {
        std::fs::write(folder.join("index.html"), "<title>Pages</title>").unwrap();
        Pages::Folder(folder.to_owned())
    });
    let caller = &studio.caller;
    let project = caller.create("Torn");
    let (status, file) = caller.upload(&project, "text.png", b"no picture at all".to_vec());
    assert_eq!(status, 200, "{file}");
    let hash = file["ok"]["hash"].as_str().unwrap();
    let thumb = caller.get(&format!("/thumb/{hash}?w=160"), &[]);
    assert_eq!(thumb.status(), 200);
    assert_eq!(thumb.headers()["content-type"], "image/svg+xml");
    assert!(thumb.text().unwrap().contains("<svg"));
    for path in [
        "/media/x",
        "/media/x/y",
        "/media/",
        "/thumb/",
        "/preview/7",
        "/api/nothing",
    ] {
        let answer = caller.get(path, &[]);
        assert_eq!(answer.status(), 404, "{path}");
        assert!(!answer.text().unwrap().contains("Pages"), "{path}");
    }
    assert!(caller.get("/story", &[]).text().unwrap().contains("Pages"));
}

/// A video of two seconds that browsers do not play, with a tone.
fn odd_video(to: &Path) {
    let done = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=320x180:r=25:d=2",
        ])
        .args(["-f", "lavfi", "-i", "sine=frequency=440:duration=2"])
        .args([
            "-c:v",
            "prores_ks",
            "-pix_fmt",
            "yuv422p10le",
            "-c:a",
            "pcm_s24le",
        ])
        .arg(to)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn a_video_that_pages_cannot_play_gets_a_copy_that_they_can() {
    let studio = studio();
    let caller = &studio.caller;
    let project = caller.create("Odd");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wave.mov");
    odd_video(&path);
    let (status, file) = caller.upload(&project, "wave.mov", std::fs::read(&path).unwrap());
    assert_eq!(status, 200, "{file}");
    let args = json!({ "hash": file["ok"]["hash"], "name": "wave.mov" });
    // It began when the file came.
    let begun = caller.call("media.play", args.clone());
    assert_eq!(begun["state"], "making", "{begun}");
    let begin = Instant::now();
    let ready = loop {
        let now = caller.call("media.play", args.clone());
        if now["state"] == "ready" {
            break now;
        }
        assert_eq!(
            (&now["state"], &now["job"]),
            (&json!("making"), &begun["job"]),
            "{now}"
        );
        assert!(begin.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(ready["is_copy"], true);
    let copy = caller.get(&format!("/media/{}", ready["hash"].as_str().unwrap()), &[]);
    assert_eq!(copy.headers()["content-type"], "video/mp4");
    let out = folder.path().join("copy.mp4");
    std::fs::write(&out, copy.bytes().unwrap()).unwrap();
    let probe = flow_media::probe::probe(&out).unwrap();
    let (video, audio) = (&probe.video[0], &probe.audio[0]);
    assert_eq!(
        (video.codec.as_str(), video.pixel_format.as_str()),
        ("h264", "yuv420p")
    );
    assert_eq!(
        (video.width_px, video.height_px, audio.codec.as_str()),
        (320, 180, "aac")
    );
    assert!((video.duration_secs.as_f64() - 2.0).abs() < 0.05);
    // The copy plays as it is, and is not copied again.
    let again = caller.call("media.play", json!({ "hash": ready["hash"] }));
    assert_eq!(
        (&again["state"], &again["is_copy"]),
        (&json!("ready"), &json!(false))
    );
    // What cannot be read at all is said to be so, and no job is started for it.
    let (_, broken) = caller.upload(&project, "broken.mp4", b"0000ftypisom....".to_vec());
    let never = caller.call("media.play", json!({ "hash": broken["ok"]["hash"] }));
    assert_eq!(never["state"], "never", "{never}");
    let jobs = caller.call("queue.list", json!({}));
    assert_eq!(jobs.as_array().unwrap().len(), 1, "{jobs}");
}
