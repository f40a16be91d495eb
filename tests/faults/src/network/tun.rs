//! The relay of slow links: every host has a TUN device, and what it sends comes out of another's
//! later, or not at all.
#![allow(
    unsafe_code,
    reason = "attaching to a TUN device is an ioctl, for which there is no safe call"
)]

use std::collections::{BinaryHeap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// `TUNSETIFF` of linux/if_tun.h.
const SET_INTERFACE: Opcode = opcode::write::<i32>(b'T', 202);

/// `IFF_TUN | IFF_NO_PI`: whole IP packets, nothing before them.
const FLAGS: i16 = 0x0001 | 0x1000;

/// `struct ifreq` of linux/if.h, as far as it is used here; 40 bytes.
#[repr(C)]
#[allow(dead_code, reason = "the system reads the fields")]
struct InterfaceRequest {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

/// Largest packet that is read.
const PACKET_BYTES: usize = 2048;

/// Packets under way at most; more are lost, as in a router.
const UNDER_WAY: usize = 4096;

/// One end of the relay.
pub struct End {
    /// Name of its device, unique on this machine while it is made.
    pub device: String,
    /// Namespace it is moved to.
    pub namespace: String,
    /// Address of the host.
    pub address: [u8; 4],
}

impl End {
    /// Reads `DEVICE=NAMESPACE=ADDRESS`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('=');
        let (device, namespace) = (parts.next()?, parts.next()?);
        let address: std::net::Ipv4Addr = parts.next()?.parse().ok()?;
        Some(Self {
            device: device.to_owned(),
            namespace: namespace.to_owned(),
            address: address.octets(),
        })
    }
}

fn attach(name: &str) -> io::Result<File> {
    let mut request = InterfaceRequest {
        name: [0; 16],
        flags: FLAGS,
        rest: [0; 22],
    };
    if name.len() >= request.name.len() {
        return Err(io::Error::other(format!("too long a name: {name:?}")));
    }
    for (to, from) in request.name.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")?;
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq` (40 bytes, laid out as above, any bytes
    // of it valid) through the pointer and keeps nothing of it; `Updater` borrows ours meanwhile.
    let set = unsafe {
        let update = Updater::<SET_INTERFACE, InterfaceRequest>::new(&mut request);
        ioctl(&device, update)
    };
    set?;
    Ok(device)
}

fn ip(arguments: &str) -> io::Result<()> {
    let status = Command::new("ip")
        .args(arguments.split_whitespace())
        .status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "`ip {arguments}` failed: {status}"
    )))
}

/// A packet and when it comes out; the soonest is the greatest, as the heap wants it.
struct Packet {
    due: Instant,
    nth: u64,
    bytes: Vec<u8>,
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.nth == other.nth
    }
}
impl Eq for Packet {}
impl PartialOrd for Packet {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Packet {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.nth).cmp(&(self.due, self.nth))
    }
}

/// Relays until the process is ended; says `ready` when the links are there. Which packets are
/// lost follows from `seed` and the order in which they come.
///
/// # Errors
/// No TUN devices, or no right to make them.
pub fn relay(ends: &[End], delay: Duration, loss_percent: u8, seed: u64) -> io::Result<()> {
    let (sender, packets) = sync_channel::<Vec<u8>>(UNDER_WAY);
    let mut outs: HashMap<[u8; 4], File> = HashMap::new();
    for end in ends {
        let device = attach(&end.device)?;
        let [a, b, c, d] = end.address;
        let (name, namespace) = (&end.device, &end.namespace);
        ip(&format!("link set {name} netns {namespace} name net"))?;
        ip(&format!(
            "-n {namespace} addr add {a}.{b}.{c}.{d}/24 dev net"
        ))?;
        ip(&format!("-n {namespace} link set net up"))?;
        outs.insert(end.address, device.try_clone()?);
        let sender = sender.clone();
        thread::Builder::new()
            .name("tun".to_owned())
            .spawn(move || read(device, &sender))?;
    }
    drop(sender);
    let mut out = io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;

    let mut waiting: BinaryHeap<Packet> = BinaryHeap::new();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut nth = 0;
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|packet| packet.due <= now) {
            if let Some(packet) = waiting.pop() {
                pass_on(&packet.bytes, &mut outs);
            }
        }
        let pause = waiting
            .peek()
            .map_or(Duration::from_secs(1), |packet| packet.due - now);
        match packets.recv_timeout(pause) {
            Ok(bytes) => {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let is_lost = state % 100 < u64::from(loss_percent);
                if !is_lost && waiting.len() < UNDER_WAY {
                    nth += 1;
                    let due = Instant::now() + delay;
                    waiting.push(Packet { due, nth, bytes });
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn read(mut device: File, sender: &SyncSender<Vec<u8>>) {
    let mut packet = vec![0; PACKET_BYTES];
    loop {
        match device.read(&mut packet) {
            Ok(got) => {
                let bytes = packet.get(..got).unwrap_or_default().to_vec();
                if sender.send(bytes).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The link is down for now.
            Err(error) if error.raw_os_error() == Some(5) => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(_gone) => return,
        }
    }
}

/// To the host that it is for; IPv4 only.
fn pass_on(packet: &[u8], outs: &mut HashMap<[u8; 4], File>) {
    let is_v4 = packet.first().is_some_and(|byte| byte >> 4 == 4);
    let to: Option<[u8; 4]> = packet.get(16..20).and_then(|to| to.try_into().ok());
    if let Some(out) = to.filter(|_| is_v4).and_then(|to| outs.get_mut(&to)) {
        // A host whose link is down loses it.
        drop(out.write_all(packet));
    }
}
