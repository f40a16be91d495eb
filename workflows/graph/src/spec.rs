//! Static descriptions of node types.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use engine_base::Datum;
use serde::{Deserialize, Serialize};

/// Type of a port. `*` takes anything; `a,b` takes either.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortType(Cow<'static, str>);

impl PortType {
    /// Takes and gives anything.
    pub const ANY: Self = Self::named("*");
    /// Text.
    pub const TEXT: Self = Self::named("text");
    /// A whole number.
    pub const INT: Self = Self::named("int");
    /// A number.
    pub const FLOAT: Self = Self::named("float");
    /// True or false.
    pub const BOOL: Self = Self::named("bool");
    /// Any plain data.
    pub const DATA: Self = Self::named("data");
    /// A still picture file.
    pub const PICTURE: Self = Self::named("picture");
    /// A coded picture stream or film file.
    pub const VIDEO: Self = Self::named("video");
    /// A sound file.
    pub const AUDIO: Self = Self::named("audio");
    /// Any other file.
    pub const FILE: Self = Self::named("file");

    /// A type by name.
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// A type read from a document.
    pub const fn owned(name: String) -> Self {
        Self(Cow::Owned(name))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether an output of this type may be linked to an input of type `input`: either is `*`,
    /// or they share a member.
    pub fn feeds(&self, input: &Self) -> bool {
        let members = |ty: &Self| ty.0.split(',').map(str::trim).any(|name| name == "*");
        if members(self) || members(input) {
            return true;
        }
        self.0
            .split(',')
            .any(|from| input.0.split(',').any(|to| from.trim() == to.trim()))
    }
}

impl fmt::Display for PortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How an input is set when nothing is linked to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Widget {
    /// A whole number.
    Int {
        /// Value when unset.
        default: i64,
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// A seed: a whole number from 0 to 2^64 - 1.
    Seed {
        /// Value when unset.
        default: u64,
    },
    /// A number.
    Float {
        /// Value when unset.
        default: f64,
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },
    /// True or false.
    Bool {
        /// Value when unset.
        default: bool,
    },
    /// Text.
    Text {
        /// Value when unset.
        default: &'static str,
        /// Shown as more than one line.
        multiline: bool,
        /// Longest allowed, in characters.
        max_chars: usize,
    },
    /// One of a list.
    Choice {
        /// Value when unset.
        default: &'static str,
        /// All allowed values.
        options: &'static [&'static str],
    },
    /// A file by content hash (64 hex digits); its bytes are in the store or the project.
    Asset {
        /// Accepted media types, such as `image/*`.
        accept: &'static [&'static str],
    },
    /// Structured data, checked by the node itself.
    Data {
        /// Value when unset.
        default: Datum,
    },
}

/// One input of a node type.
#[derive(Debug, Clone, Serialize)]
pub struct InputSpec {
    /// Its name, unique in the node.
    pub name: &'static str,
    /// What it takes.
    pub ty: PortType,
    /// How it is set when not linked; `None` means it can only be linked.
    pub widget: Option<Widget>,
    /// Whether a run without it is an error. An input with a widget that has a default never is.
    pub required: bool,
    /// Not evaluated until [`crate::Node::lazy_needed`] asks for it.
    pub lazy: bool,
    /// Takes the whole list at once instead of being called for each element.
    pub whole_list: bool,
    /// One or two sentences for people.
    pub help: &'static str,
}

/// One output of a node type.
#[derive(Debug, Clone, Serialize)]
pub struct OutputSpec {
    /// Its name, unique in the node.
    pub name: &'static str,
    /// What it gives.
    pub ty: PortType,
    /// Gives a list that is joined to the list of the port, instead of one element.
    pub list: bool,
    /// One or two sentences for people.
    pub help: &'static str,
}

/// What equal keys promise about bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// Same key, same bytes: a duplicate with other bytes is an error.
    Exact,
    /// Same key, same meaning: a duplicate is dropped and counted (floats, codecs).
    Tolerant,
    /// The request is the key; the bytes are pinned (remote models, a person's choice).
    Recorded,
}

/// What a node's run takes up, so that the executor can run others beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Computes on the processor; as many at a time as the executor has workers.
    Cpu,
    /// Mostly waits (a remote service, a sleep); many at a time.
    Wait,
    /// Takes a whole device or most of the memory; one at a time.
    Device,
}

/// Static description of a node type.
#[derive(Debug, Clone, Serialize)]
pub struct NodeSpec {
    /// Dotted name such as `film.segment`, unique in a registry.
    pub type_name: &'static str,
    /// Raised when ports or meaning change; part of every key.
    pub version: u32,
    /// For people.
    pub title: &'static str,
    /// For menus, such as `film` or `text/edit`.
    pub category: &'static str,
    /// What it does, in a few sentences.
    pub help: &'static str,
    /// Inputs in port order (the order in which they enter a key).
    pub inputs: Vec<InputSpec>,
    /// Outputs in port order.
    pub outputs: Vec<OutputSpec>,
    /// What equal keys promise.
    pub exactness: Exactness,
    /// Whether results are committed to the store. A node that is not durable is run again in
    /// each process and kept in memory only.
    pub durable: bool,
    /// Cheap and pure: evaluated while planning.
    pub cheap: bool,
    /// What its run takes up.
    pub lane: Lane,
    /// Whether a run of the document must produce it even when nothing depends on it.
    pub output_node: bool,
}

impl NodeSpec {
    /// The input called `name`.
    pub fn input(&self, name: &str) -> Option<&InputSpec> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// Position of the output called `name`.
    pub fn output_index(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|output| output.name == name)
    }

    /// What is wrong with the spec itself, for tests of node types: names that are empty or stand
    /// twice, defaults that their own widgets refuse.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        if self.type_name.is_empty() || self.version == 0 {
            faults.push("expected a type name and a version of at least 1".to_owned());
        }
        for input in &self.inputs {
            let name = input.name;
            if name.is_empty() || !seen.insert(name) {
                faults.push(format!("input {name:?}: expected a name of its own"));
            }
            let Some(widget) = &input.widget else {
                continue;
            };
            if let Some(datum) = widget.default_datum()
                && let Err(fault) = widget.check(&datum)
            {
                let (expected, got) = (fault.expected, fault.got);
                faults.push(format!(
                    "input {name:?}: expected a default of {expected}, got {got}"
                ));
            }
        }
        seen.clear();
        for output in &self.outputs {
            if output.name.is_empty() || !seen.insert(output.name) {
                let name = output.name;
                faults.push(format!("output {name:?}: expected a name of its own"));
            }
        }
        faults
    }
}
