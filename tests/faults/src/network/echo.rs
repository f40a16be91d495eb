//! Whether one host reaches another, and how long that takes.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Sends back what each connection sends, until the process is ended; says `ready` first.
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(listen: &str) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    let mut out = io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    for stream in listener.incoming() {
        let stream = stream?;
        thread::Builder::new()
            .name("echo".to_owned())
            .spawn(move || {
                let (mut from, mut to) = (&stream, &stream);
                // One that is cut off asks no more.
                drop(io::copy(&mut from, &mut to));
            })?;
    }
    Ok(())
}

/// Sends `count` bytes and waits for them; gives the time that the first of them was away, and all.
///
/// # Errors
/// No connection, other bytes, or silence for as long as `patience`.
pub fn ask(to: &str, count: usize, patience: Duration) -> io::Result<(Duration, Duration)> {
    let to: SocketAddr = to.parse().map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&to, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let begun = Instant::now();
    stream.write_all(b"?")?;
    let mut first = [0];
    stream.read_exact(&mut first)?;
    let away = begun.elapsed();
    let sent: Vec<u8> = (0..count).map(|at| (at * 31 % 251) as u8).collect();
    let mut sender = stream.try_clone()?;
    let bytes = sent.clone();
    let sending = thread::Builder::new()
        .name("ask".to_owned())
        .spawn(move || {
            sender.write_all(&bytes)?;
            sender.shutdown(Shutdown::Write)
        })?;
    let mut got = vec![0; count];
    stream.read_exact(&mut got)?;
    let ended = sending.join();
    ended.map_err(|_panic| io::Error::other("the sending thread ended"))??;
    if got != sent {
        return Err(io::Error::other("other bytes came back"));
    }
    Ok((away, begun.elapsed()))
}
