//! A relay in front of a holder that makes trouble on the way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flow_cluster::artifacts::Holder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What happens to the bytes that come back, counted on each connection with the headers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trouble {
    None,
    /// Each connection ends after so many.
    CutAfter(usize),
    /// The first connection ends after so many, and no other is taken up.
    DieAfter(usize),
    /// Each connection is silent after so many.
    StallAfter(usize),
    /// One byte is another one.
    FlipAt(usize),
    /// One byte is another one, and the connection ends after so many.
    FlipThenCut(usize, usize),
}

/// Relays until the test's runtime ends.
pub(crate) struct Relay {
    url: String,
    passed: Arc<AtomicU64>,
}

impl Relay {
    pub(crate) async fn before(holder: &Holder, trouble: Trouble) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let target = holder.url.trim_start_matches("http://").to_owned();
        let passed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&passed);
        let dead = Arc::new(AtomicBool::new(false));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if dead.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&target).await else {
                    continue;
                };
                let (counted, dead) = (Arc::clone(&counted), Arc::clone(&dead));
                tokio::spawn(relay(client, server, trouble, counted, dead));
            }
        });
        Self { url, passed }
    }

    /// The holder as it looks from behind the relay.
    pub(crate) fn holder(&self, holder: &Holder) -> Holder {
        Holder {
            url: self.url.clone(),
            ..holder.clone()
        }
    }

    /// Bytes that came back so far.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }
}

async fn relay(
    client: TcpStream,
    server: TcpStream,
    trouble: Trouble,
    passed: Arc<AtomicU64>,
    dead: Arc<AtomicBool>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move {
        drop(tokio::io::copy(&mut from_client, &mut to_server).await);
    });
    let (flip, end) = match trouble {
        Trouble::None => (None, None),
        Trouble::CutAfter(end) | Trouble::DieAfter(end) | Trouble::StallAfter(end) => {
            (None, Some(end))
        }
        Trouble::FlipAt(at) => (Some(at), None),
        Trouble::FlipThenCut(at, end) => (Some(at), Some(end)),
    };
    let mut at = 0;
    let mut chunk = vec![0; 16384];
    loop {
        let Ok(mut got @ 1..) = from_server.read(&mut chunk).await else {
            return;
        };
        let ends = end.is_some_and(|end| at + got >= end);
        if let Some(end) = end.filter(|_| ends) {
            got = end.saturating_sub(at);
        }
        if let Some(flip) = flip.filter(|flip| (at..at + got).contains(flip)) {
            chunk[flip - at] ^= 0x10;
        }
        at += got;
        passed.fetch_add(got as u64, Ordering::SeqCst);
        if to_client.write_all(&chunk[..got]).await.is_err() {
            return;
        }
        if ends {
            match trouble {
                Trouble::StallAfter(_) => std::future::pending::<()>().await,
                Trouble::DieAfter(_) => dead.store(true, Ordering::SeqCst),
                _ => {}
            }
            return;
        }
    }
}
