//! Hosts of a network that is there only for a test: network namespaces with veth pairs on a
//! bridge, or with TUN links through a relay that delays and loses packets; where root or the
//! kernel does not allow them, addresses of the loopback.
//!
//! Names are unique to a run; everything is gone when the [`Network`] is dropped. It starts `ip`
//! and its relay, and ends nothing that it did not start.

pub mod echo;
pub mod flip;
pub mod process;
pub mod tun;

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use process::Process;

/// Why there is no such network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A command failed.
    #[error("cannot run `{command}`: {said}")]
    Command {
        /// What was run.
        command: String,
        /// What it said.
        said: String,
    },
    /// A process could not be started or watched.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A process did not say in time what it had to say.
    #[error("cannot go on: {who} did not {what} within {secs} s; it said: {said}")]
    Late {
        /// Which process.
        who: String,
        /// What was waited for.
        what: String,
        /// How long.
        secs: u64,
        /// The end of its standard error.
        said: String,
    },
}

/// What lies between the hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Links {
    /// veth pairs on a bridge: no loss, no delay to speak of.
    Plain,
    /// A relay over TUN devices, which keeps every packet back and loses some.
    Slow {
        /// How long each packet is under way.
        delay: Duration,
        /// How many of a hundred are lost.
        loss_percent: u8,
    },
}

/// How the hosts are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each has a network namespace of its own.
    Namespaces,
    /// Each has an address of the loopback: links cannot be cut, nor slowed down.
    Loopback,
}

/// One of the hosts.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its namespace, empty on the loopback.
    namespace: String,
    /// Its end of the hub's link.
    hub_link: String,
    /// Its IPv4 address.
    pub address: String,
    /// Another one, for a relay before one of its ports; not where links are slow.
    pub other_address: String,
}

/// Some hosts that reach each other and nobody else.
#[derive(Debug)]
pub struct Network {
    kind: Kind,
    hub: String,
    hosts: Vec<Host>,
    relay: Option<Process>,
    /// Why it is on the loopback.
    why: Option<String>,
}

fn run(command: &mut Command) -> Result<(), NetworkError> {
    let text = format!("{command:?}").replace('"', "");
    let output = command.output().map_err(|error| NetworkError::Command {
        command: text.clone(),
        said: error.to_string(),
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(NetworkError::Command {
        command: text,
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

fn ip(arguments: &str) -> Result<(), NetworkError> {
    run(Command::new("ip").args(arguments.split_whitespace()))
}

impl Network {
    /// `count` hosts, at most 100; on the loopback where namespaces cannot be had. `program` is
    /// one that runs [`tun::relay`] under the argument `relay`; `logs` takes what it says.
    ///
    /// # Errors
    /// Slow links where namespaces are, but no TUN devices.
    pub fn open(
        count: u8,
        links: Links,
        program: &Path,
        logs: &Path,
    ) -> Result<Self, NetworkError> {
        static NETWORKS: AtomicU32 = AtomicU32::new(0);
        let nth = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let tag = format!("lt{:x}n{nth:x}", std::process::id());
        let mut network = Self {
            kind: Kind::Namespaces,
            hub: format!("{tag}hub"),
            hosts: Vec::new(),
            relay: None,
            why: None,
        };
        match network.make_namespaces(&tag, count, links) {
            Ok(()) => {}
            Err(error) => {
                network.remove();
                network.kind = Kind::Loopback;
                network.why = Some(error.to_string());
                // A net of its own in 127/8 for each network of each run.
                let third = nth % 250 + 1;
                let second = std::process::id() % 250 + 1;
                network.hosts = (0..count)
                    .map(|nth| Host {
                        namespace: String::new(),
                        hub_link: String::new(),
                        address: format!("127.{second}.{third}.{}", nth + 10),
                        other_address: format!("127.{second}.{third}.{}", nth + 110),
                    })
                    .collect();
                return Ok(network);
            }
        }
        if let Links::Slow {
            delay,
            loss_percent,
        } = links
        {
            network.start_relay(&tag, delay, loss_percent, program, logs)?;
        }
        Ok(network)
    }

    fn make_namespaces(&mut self, tag: &str, count: u8, links: Links) -> Result<(), NetworkError> {
        let hub = &self.hub;
        ip(&format!("netns add {hub}"))?;
        if links == Links::Plain {
            ip(&format!("-n {hub} link add name bridge type bridge"))?;
            ip(&format!("-n {hub} link set bridge up"))?;
        }
        for nth in 0..count {
            let namespace = format!("{tag}h{nth}");
            let hub_link = format!("to{nth}");
            let address = format!("10.77.0.{}", u16::from(nth) + 10);
            let other_address = format!("10.77.0.{}", u16::from(nth) + 110);
            ip(&format!("netns add {namespace}"))?;
            self.hosts.push(Host {
                namespace: namespace.clone(),
                hub_link: hub_link.clone(),
                address: address.clone(),
                other_address: other_address.clone(),
            });
            ip(&format!("-n {namespace} link set lo up"))?;
            if links != Links::Plain {
                continue;
            }
            ip(&format!(
                "-n {hub} link add {hub_link} type veth peer name net netns {namespace}"
            ))?;
            ip(&format!("-n {hub} link set {hub_link} master bridge up"))?;
            ip(&format!("-n {namespace} addr add {address}/24 dev net"))?;
            ip(&format!(
                "-n {namespace} addr add {other_address}/24 dev net"
            ))?;
            ip(&format!("-n {namespace} link set net up"))?;
        }
        Ok(())
    }

    fn start_relay(
        &mut self,
        tag: &str,
        delay: Duration,
        loss_percent: u8,
        program: &Path,
        logs: &Path,
    ) -> Result<(), NetworkError> {
        let mut command = Command::new(program);
        command.arg("relay");
        command.args(["--delay-millis", &delay.as_millis().to_string()]);
        command.args(["--loss-percent", &loss_percent.to_string()]);
        for (nth, host) in self.hosts.iter().enumerate() {
            let (namespace, address) = (&host.namespace, &host.address);
            command.arg(format!("{tag}t{nth}={namespace}={address}"));
        }
        let relay = Process::start("relay", command, logs)?;
        relay.line(Duration::from_secs(10))?;
        self.relay = Some(relay);
        Ok(())
    }

    /// How the hosts are kept apart.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Why it is on the loopback.
    pub fn why_loopback(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Address of a host.
    pub fn address(&self, host: usize) -> &str {
        self.hosts
            .get(host)
            .map_or("127.0.0.1", |host| &host.address)
    }

    /// Another address of a host.
    pub fn other_address(&self, host: usize) -> &str {
        self.hosts
            .get(host)
            .map_or("127.0.0.2", |host| &host.other_address)
    }

    /// A command that runs `program` on a host.
    pub fn command(&self, host: usize, program: &Path) -> Command {
        match self.hosts.get(host) {
            Some(host) if self.kind == Kind::Namespaces => {
                let mut command = Command::new("ip");
                command
                    .args(["netns", "exec", &host.namespace])
                    .arg(program);
                command
            }
            _ => Command::new(program),
        }
    }

    /// Cuts the link of a host, or mends it.
    ///
    /// # Errors
    /// On the loopback, where it cannot be cut.
    pub fn set_link(&self, host: usize, is_up: bool) -> Result<(), NetworkError> {
        let host = self
            .hosts
            .get(host)
            .filter(|_| self.kind == Kind::Namespaces);
        let Some(host) = host else {
            return Err(NetworkError::Command {
                command: "ip link set".to_owned(),
                said: "links of the loopback cannot be cut".to_owned(),
            });
        };
        let state = if is_up { "up" } else { "down" };
        match self.relay {
            None => ip(&format!(
                "-n {} link set {} {state}",
                self.hub, host.hub_link
            )),
            Some(_) => ip(&format!("-n {} link set net {state}", host.namespace)),
        }
    }

    fn remove(&mut self) {
        self.relay = None;
        let namespaces = self.hosts.drain(..).map(|host| host.namespace);
        for namespace in namespaces.chain([self.hub.clone()]) {
            // What was never made cannot be removed; nothing is to be said about it.
            drop(ip(&format!("netns del {namespace}")));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if self.kind == Kind::Namespaces {
            self.remove();
        }
    }
}
