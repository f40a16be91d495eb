//! Who is let in, and what they can reach.

use std::net::TcpStream;

use flow_studio::Pages;
use serde_json::Value;

use crate::kit::{Caller, studio, studio_with};

#[test]
fn without_the_token_or_from_elsewhere_nothing_is_answered() {
    let studio = studio();
    let base = &studio.caller.base;
    let http = &studio.caller.http;
    for path in [
        "/",
        "/index.html",
        "/media/x",
        "/thumb/x",
        "/api/events",
        "/nothing",
    ] {
        let answer = http.get(format!("{base}{path}")).send().unwrap();
        assert_eq!(answer.status(), 401, "{path}");
        let with_wrong = http
            .get(format!("{base}{path}?token=wrong"))
            .send()
            .unwrap();
        assert_eq!(with_wrong.status(), 401, "{path}");
    }
    let call = format!("{base}/api/call/app.state");
    assert_eq!(http.post(&call).send().unwrap().status(), 401);
    let wrong = http.post(&call).bearer_auth("wrong").send().unwrap();
    assert_eq!(wrong.status(), 401);
    let answer: Value = wrong.json().unwrap();
    assert_eq!(answer["error"]["code"], "not_permitted");
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "127.0.0.1.evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
    ] {
        let answer = studio.caller.get("/", &[(name, value)]);
        assert_eq!(answer.status(), 403, "{name}: {value}");
    }
    // The printed address lets a browser in: a cookie, and no token in the address any more.
    let entered = http.get(studio.shell.url()).send().unwrap();
    assert_eq!(entered.status(), 303);
    assert_eq!(entered.headers()["location"], "/");
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    let with_cookie = http
        .post(&call)
        .header("cookie", pair)
        .body("{}")
        .send()
        .unwrap();
    assert_eq!(with_cookie.status(), 200);
    let of_a_page = http
        .post(&call)
        .header("cookie", pair)
        .header("origin", base);
    assert_eq!(of_a_page.send().unwrap().status(), 200);
}

#[test]
fn pages_stay_in_their_folder() {
    let studio = studio_with(|folder| {
        let ui = folder.join("ui");
        std::fs::create_dir_all(ui.join("assets")).unwrap();
        std::fs::write(ui.join("index.html"), "<title>Pages</title>").unwrap();
        std::fs::write(ui.join("assets/a.js"), "1").unwrap();
        std::fs::write(folder.join("secret.txt"), "secret").unwrap();
        Pages::Folder(ui)
    });
    let get = |path: &str| studio.caller.get(path, &[]);
    for path in ["/", "/index.html", "/story"] {
        let page = get(path);
        assert_eq!(page.status(), 200, "{path}");
        assert!(page.headers().contains_key("content-security-policy"));
        assert!(page.text().unwrap().contains("Pages"), "{path}");
    }
    assert_eq!(
        get("/assets/a.js").headers()["content-type"],
        "text/javascript; charset=utf-8"
    );
    // As bytes on the line: a client would tidy these up before it sends them.
    for path in [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "//secret.txt",
        "/etc/passwd.txt",
    ] {
        let answer = raw(&studio.caller, path);
        assert!(
            !answer.contains("secret\n") && !answer.ends_with("secret"),
            "{path}: {answer}"
        );
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    for hash in [
        "../../secret.txt",
        "x",
        "..%2f..%2fsecret.txt",
        &"0".repeat(63),
    ] {
        let status = get(&format!("/media/{hash}")).status().as_u16();
        assert!(matches!(status, 400 | 404), "{hash}: {status}");
    }
}

/// The answer to a GET of exactly this path.
fn raw(caller: &Caller, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let host = caller.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let token = &caller.token;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
