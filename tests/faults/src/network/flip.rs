//! A relay that changes one byte of every artifact that comes back through it: a worker behind it
//! returns other bytes than it announced.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// Relays from `listen` to `to` until the process is ended; says `ready` first, and `changed` for each. The byte is the
/// last of what each answer's body has, so the headers stay as they are.
///
/// # Errors
/// The address cannot be listened on.
pub fn relay(listen: &str, to: &str) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    let mut out = io::stdout();
    writeln!(out, "ready {}", listener.local_addr()?)?;
    out.flush()?;
    for client in listener.incoming() {
        let (client, to) = (client?, to.to_owned());
        thread::Builder::new()
            .name("flip".to_owned())
            .spawn(move || drop(one(&client, &to)))?;
    }
    Ok(())
}

fn one(client: &TcpStream, to: &str) -> io::Result<()> {
    let server = TcpStream::connect(to)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::Builder::new()
        .name("flip-up".to_owned())
        .spawn(move || {
            drop(io::copy(&mut from_client, &mut to_server));
            drop(to_server.shutdown(Shutdown::Write));
        })?;
    let mut body = Body::default();
    let (mut from, mut to) = (&server, client);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let got = from.read(&mut chunk)?;
        if got == 0 {
            drop(client.shutdown(Shutdown::Write));
            return Ok(());
        }
        let bytes = chunk.get_mut(..got).unwrap_or_default();
        for _changed in 0..body.pass(bytes) {
            writeln!(io::stdout(), "changed")?;
        }
        to.write_all(bytes)?;
    }
}

/// Where in an answer we are.
#[derive(Debug, Default)]
struct Body {
    head: Vec<u8>,
    /// Bytes of the body that are to come.
    left: u64,
}

impl Body {
    /// Changes the last byte of each body; gives how many ended here.
    fn pass(&mut self, bytes: &mut [u8]) -> usize {
        let mut changed = 0;
        for byte in bytes {
            if self.left > 0 {
                self.left -= 1;
                if self.left == 0 {
                    *byte ^= 0x01;
                    changed += 1;
                }
                continue;
            }
            self.head.push(*byte);
            if self.head.ends_with(b"\r\n\r\n") {
                self.left = length_of(&self.head);
                self.head.clear();
            }
        }
        changed
    }
}

fn length_of(head: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(head).to_lowercase();
    text.lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_of_each_body_is_changed_however_it_is_cut() {
        let answers = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcdeHTTP/1.1 404 x\r\n\
            content-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nxy";
        for size in [1, 3, 7, 1000] {
            let mut bytes = answers.to_vec();
            let mut body = Body::default();
            for chunk in bytes.chunks_mut(size) {
                body.pass(chunk);
            }
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("abcddHTTP/1.1 404"), "{text}");
            assert!(text.ends_with("\r\n\r\nxx"), "{text}");
        }
    }
}
