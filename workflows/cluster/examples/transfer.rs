//! How fast an artifact comes, beside `curl` from the same server over the same link, in turn.
//!
//! `cargo run -p flow-cluster --example transfer` does both on the loopback. Over a real link:
//! `transfer serve FOLDER ADDRESS:PORT MEGABYTES` there prints the words that follow `transfer
//! fetch FOLDER` here. The last line is JSON: megabytes a second, and how much of `curl` that is.
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use engine_base::{CancelToken, ContentHash, SystemClock};
use flow_cluster::artifacts::{ArtifactOptions, Artifacts, Holder, StoreArtifacts};
use flow_http::{Token, serve_artifacts};
use flow_store::{Faults, Store, StoreOptions};
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Times each of the two.
const ROUNDS: usize = 5;

fn store(dir: &Path) -> Outcome<Arc<Store>> {
    let options = StoreOptions {
        cap_bytes: u64::MAX,
        clock: Arc::new(SystemClock::new()),
        faults: Faults::none(),
    };
    // Opening waits for a runtime of its own, which a thread of another one may not.
    let opened = std::thread::scope(|scope| scope.spawn(|| Store::open(dir, options)).join());
    let store = opened.map_err(|_panic| "the store's thread ended")??;
    Ok(Arc::new(store))
}

/// Puts an artifact of so many megabytes into a store.
fn make(store: &Store, megabytes: usize) -> Outcome<(ContentHash, u64)> {
    let mut state = 7_u64;
    let mut bytes = Vec::with_capacity(megabytes << 20);
    while bytes.len() < megabytes << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    let temp = store.temp("bin")?;
    std::fs::write(&temp, &bytes)?;
    Ok((store.adopt(&temp, "")?.hash, bytes.len() as u64))
}

/// Megabytes a second of ours and of `curl`, in turn.
async fn compare(
    folder: &Path,
    holder: &Holder,
    hash: &ContentHash,
    length: u64,
) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let store = store(&folder.join("here"))?;
    let artifacts = Artifacts::new(Arc::clone(&store), ArtifactOptions::default());
    let (mut ours, mut curls) = (Vec::new(), Vec::new());
    let megabytes = length as f64 / 1e6;
    let url = format!("{}/artifact/{hash}", holder.url);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let holders = std::slice::from_ref(holder);
        let fetched = artifacts
            .fetch(hash, length, holders, &CancelToken::new())
            .await?;
        ours.push(megabytes / begun.elapsed().as_secs_f64());
        drop(fetched);
        store.discard(hash)?;

        let to = folder.join("curl.bin");
        let bearer = format!("Authorization: Bearer {}", holder.token.as_str());
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--noproxy", "*", "-H", &bearer]);
        curl.arg("-o").arg(&to).arg(&url);
        let begun = Instant::now();
        let status = tokio::task::spawn_blocking(move || curl.status()).await??;
        curls.push(megabytes / begun.elapsed().as_secs_f64());
        if !status.success() || std::fs::metadata(&to)?.len() != length {
            return Err(format!("curl failed: {status}").into());
        }
        std::fs::remove_file(&to)?;
    }
    Ok((ours, curls))
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn print(ours: &[f64], curls: &[f64]) {
    let (value, peer) = (median(ours), median(curls));
    println!("ours {ours:.0?} MB/s, curl {curls:.0?} MB/s");
    let row = json!({
        "name": "artifact transfer", "value": value, "unit": "MB/s", "peer": "curl",
        "peer_value": peer, "ratio": value / peer, "floor": 0.8,
    });
    println!("{}", json!({ "rows": [row] }));
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {
            let folder = tempfile::tempdir()?;
            let there = store(&folder.path().join("there"))?;
            let (hash, length) = make(&there, 256)?;
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            let holder = Holder {
                id: "there".parse()?,
                url: format!("http://{}", listener.local_addr()?),
                token: Token::random()?,
            };
            let source = Arc::new(StoreArtifacts(there));
            let token = holder.token.clone();
            tokio::spawn(serve_artifacts(listener, source, token, std::future::pending()));
            let (ours, curls) = compare(folder.path(), &holder, &hash, length).await?;
            print(&ours, &curls);
        }
        ["serve", folder, address, megabytes] => {
            let there = store(Path::new(folder))?;
            let (hash, length) = make(&there, megabytes.parse()?)?;
            let listener = std::net::TcpListener::bind(address)?;
            let token = Token::random()?;
            println!("http://{address} {} {hash} {length}", token.as_str());
            let source = Arc::new(StoreArtifacts(there));
            serve_artifacts(listener, source, token, std::future::pending()).await?;
        }
        ["fetch", folder, url, token, hash, length] => {
            let holder = Holder {
                id: "there".parse()?,
                url: (*url).to_owned(),
                token: Token::from_text(token).ok_or("expected a token of 64 hex digits")?,
            };
            let (hash, length) = (hash.parse()?, length.parse()?);
            let (ours, curls) = compare(Path::new(folder), &holder, &hash, length).await?;
            print(&ours, &curls);
        }
        _ => return Err("expected nothing, serve FOLDER ADDRESS MEGABYTES, or fetch FOLDER URL TOKEN HASH LENGTH".into()),
    }
    Ok(())
}
