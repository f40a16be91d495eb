//! What is said between owner and workers, as JSON.

use std::collections::BTreeMap;

use engine_base::{ContentHash, Key};
use flow_executor::{FarCall, FarMade};
use flow_http::Token;
use flow_store::{Exactness, NewResult, Provenance, StoredPort, decode_ports, encode_ports};
use serde::{Deserialize, Serialize};

use crate::advert::WorkerAdvert;
use crate::artifacts::Holder;
use crate::dispatch::Done;
use crate::lease::{Failure, Lease, LeaseId};
use crate::names::WorkerId;
use crate::version::Protocol;

/// What holds for the whole cluster; `longtake cluster up` writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Message versions of the program that started the cluster.
    pub protocol: Protocol,
    /// Its release.
    pub release: String,
    /// Seconds without a sign of life after which a lease is lost.
    pub lease_secs: f64,
    /// Nothing is handed out.
    #[serde(default)]
    pub paused: bool,
}

/// A worker's entry in the registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Message versions it speaks.
    pub protocol: Protocol,
    /// Its release.
    pub release: String,
    /// What it is and has.
    pub advert: WorkerAdvert,
    /// Where it serves its store.
    pub url: String,
    /// What lets others in there.
    pub token: String,
    /// It takes nothing more.
    pub draining: bool,
    /// Its clock, in milliseconds since 1970.
    pub unix_millis: u64,
    /// Its process, for people on its host.
    pub pid: u32,
}

impl Card {
    /// As somebody who has artifacts; `None` when its token is none.
    pub fn holder(&self) -> Option<Holder> {
        Some(Holder {
            id: self.advert.worker.clone(),
            url: self.url.clone(),
            token: Token::from_text(&self.token)?,
        })
    }
}

/// A job that a worker is at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AtJob {
    /// Under this lease.
    pub lease: LeaseId,
    /// Of this owner.
    pub owner: String,
    /// What it makes.
    pub key: Key,
    /// Node of the run, for people.
    pub node: String,
    /// Its type.
    pub node_type: String,
    /// Units done.
    pub step: u64,
    /// Units in all; 0 when not known.
    pub of: u64,
    /// Seconds since it began.
    pub secs: f64,
    /// It has ended, and its result is on its way: nobody else is to begin it.
    #[serde(default)]
    pub finished: bool,
}

/// A worker's sign of life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// Whose.
    pub worker: WorkerId,
    /// Which start of it.
    pub start: u64,
    /// Its clock, in milliseconds since 1970.
    pub unix_millis: u64,
    /// It takes nothing more.
    pub draining: bool,
    /// What it is at.
    pub jobs: Vec<AtJob>,
    /// Jobs it has done since it started.
    pub done: u64,
}

/// Asks a worker to stop what it does under a lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Which.
    pub lease: LeaseId,
    /// Whose lease.
    pub owner: String,
}

/// Somebody who has artifacts, as it travels.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct HolderText {
    /// Who.
    pub id: WorkerId,
    /// Where.
    pub url: String,
    /// What lets in.
    pub token: String,
}

impl std::fmt::Debug for HolderText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("HolderText");
        shown.field("id", &self.id).field("url", &self.url);
        shown.finish_non_exhaustive()
    }
}

impl HolderText {
    /// As it is used.
    pub fn holder(&self) -> Option<Holder> {
        Some(Holder {
            id: self.id.clone(),
            url: self.url.clone(),
            token: Token::from_text(&self.token)?,
        })
    }
}

impl From<&Holder> for HolderText {
    fn from(holder: &Holder) -> Self {
        Self {
            id: holder.id.clone(),
            url: holder.url.clone(),
            token: holder.token.as_str().to_owned(),
        }
    }
}

/// A file that a job reads, or the job's own description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileAt {
    /// Its content.
    pub content: ContentHash,
    /// Its size.
    pub bytes: u64,
}

/// What a job is: itself, or a file that says it when that is too long for a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallBody {
    /// Itself.
    Here(CallText),
    /// A file with it as JSON.
    File(FileAt),
}

/// A call as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallText {
    key: Key,
    node_type: String,
    version: u32,
    node: String,
    /// Names of the inputs, in the order of `values`.
    inputs: Vec<String>,
    /// Their values, as a store encodes ports, in hex.
    values: String,
}

/// A job on its way to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobMessage {
    /// Whose it is.
    pub owner: String,
    /// The right to it.
    pub lease: Lease,
    /// What it is.
    pub call: CallBody,
    /// Who may have its files.
    pub holders: Vec<HolderText>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Made, or found in the worker's store.
    Done {
        /// What the dispatcher is told.
        done: Done,
        /// Outputs as a store encodes ports, in hex.
        ports: String,
        /// Wall time of the call alone.
        wall_millis: u64,
        /// Engine build.
        engine_build: String,
        /// What it was made on.
        device_class: String,
        /// Whether the worker's store had it already.
        reused: bool,
    },
    /// Failed.
    Failed {
        /// Why.
        failure: Failure,
    },
}

/// A result on its way to its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultMessage {
    /// The lease it was made under.
    pub lease: Lease,
    /// Node type.
    pub node_type: String,
    /// What a second result for the key means.
    pub exactness: Exactness,
    /// Content of the files that went in.
    pub inputs: Vec<ContentHash>,
    /// How it ended.
    pub outcome: Outcome,
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| {
        DIGITS
            .get(usize::from(value))
            .map_or('0', |d| char::from(*d))
    };
    let pairs = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    pairs.collect()
}

fn of_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect();
    match bytes {
        Some(bytes) if rest.is_empty() => Ok(bytes),
        _ => Err("its values are not hexadecimal".to_owned()),
    }
}

/// Ports as text.
///
/// # Errors
/// A value without a canonical form, or one that is too large.
pub(crate) fn ports_to_text(ports: &[StoredPort]) -> Result<String, String> {
    let bytes = encode_ports(ports).map_err(|error| error.to_string())?;
    Ok(to_hex(&bytes))
}

/// Ports from text.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn ports_of_text(text: &str) -> Result<Vec<StoredPort>, String> {
    decode_ports(&of_hex(text)?).map_err(|error| error.to_string())
}

impl CallText {
    /// `call` as it travels.
    ///
    /// # Errors
    /// A value that has no canonical form.
    pub fn of(call: &FarCall) -> Result<Self, String> {
        let ports: Vec<StoredPort> = call
            .inputs
            .values()
            .map(|elements| StoredPort {
                list: true,
                elements: elements.clone(),
            })
            .collect();
        Ok(Self {
            key: call.key,
            node_type: call.node_type.clone(),
            version: call.version,
            node: call.node.clone(),
            inputs: call.inputs.keys().cloned().collect(),
            values: ports_to_text(&ports)?,
        })
    }

    /// Node and node type, for people.
    pub fn about(&self) -> (String, String) {
        (self.node.clone(), self.node_type.clone())
    }

    /// The call.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn call(&self) -> Result<FarCall, String> {
        let ports = ports_of_text(&self.values)?;
        if ports.len() != self.inputs.len() {
            let (names, values) = (self.inputs.len(), ports.len());
            return Err(format!("it names {names} inputs and has {values}"));
        }
        let elements = ports.into_iter().map(|port| port.elements);
        let inputs: BTreeMap<_, _> = self.inputs.iter().cloned().zip(elements).collect();
        Ok(FarCall {
            key: self.key,
            node_type: self.node_type.clone(),
            version: self.version,
            node: self.node.clone(),
            inputs,
        })
    }
}

impl ResultMessage {
    /// What was made; `None` of a failure.
    ///
    /// # Errors
    /// Outputs that cannot be read.
    pub fn made(&self) -> Result<Option<FarMade>, String> {
        let Outcome::Done {
            ports,
            wall_millis,
            engine_build,
            device_class,
            reused,
            ..
        } = &self.outcome
        else {
            return Ok(None);
        };
        Ok(Some(FarMade {
            ports: ports_of_text(ports)?,
            wall: std::time::Duration::from_millis(*wall_millis),
            engine_build: engine_build.clone(),
            device_class: device_class.clone(),
            reused: *reused,
        }))
    }

    /// `made` as a store takes it.
    pub fn to_commit(&self, made: FarMade) -> NewResult {
        NewResult {
            key: self.lease.key,
            node_type: self.node_type.clone(),
            ports: made.ports,
            exactness: self.exactness,
            provenance: Provenance {
                inputs: self.inputs.clone(),
                engine_build: made.engine_build,
                device_class: made.device_class,
                wall_millis: u64::try_from(made.wall.as_millis()).unwrap_or(u64::MAX),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use engine_base::Datum;
    use flow_store::{StoredBlob, StoredValue};

    use super::*;

    #[test]
    fn a_call_is_the_same_after_its_journey() {
        let blob = StoredBlob {
            hash: ContentHash::of(b"picture"),
            bytes: 7,
            media_type: "image/png".into(),
        };
        let call = FarCall {
            key: Key::of_canonical(b"work"),
            node_type: "film.segment".into(),
            version: 3,
            node: "segment_1".into(),
            inputs: BTreeMap::from([
                (
                    "sources".into(),
                    vec![StoredValue::Blob(blob), StoredValue::Blocked(None)],
                ),
                ("crf".into(), vec![StoredValue::Small(Datum::from(-0.0))]),
                ("none".into(), vec![]),
            ]),
        };
        let text = CallText::of(&call).unwrap();
        let json = serde_json::to_string(&text).unwrap();
        let back: CallText = serde_json::from_str(&json).unwrap();
        assert_eq!(back.call().unwrap(), call);
        let mut short = text.clone();
        short.values.truncate(short.values.len() - 1);
        assert!(short.call().is_err());
        let mut other = text;
        other.inputs.pop();
        assert!(other.call().is_err());
        assert!(of_hex("0g").is_err() && of_hex("é").is_err());
    }
}
