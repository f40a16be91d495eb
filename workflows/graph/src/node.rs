//! What a node type implements, and what it is given when it runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, Cancelled, Code, ContentHash, Datum, ProgressSink};

use crate::document::Document;
use crate::spec::NodeSpec;
use crate::value::{BlobRef, Value};

/// Why a node did not give a result. The text says what was tried, got and expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    /// The kind of failure.
    pub code: Code,
    /// For people.
    pub message: String,
}

impl NodeError {
    /// An error of this kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<Cancelled> for NodeError {
    fn from(_: Cancelled) -> Self {
        Self::new(Code::Cancelled, "cancelled")
    }
}

/// A file being made in the store's temporary folder. Removed when dropped unless adopted.
#[derive(Debug)]
pub struct TempBlob {
    path: PathBuf,
    adopted: bool,
}

impl TempBlob {
    /// A temporary file at `path`, which lies on the store's file system. Made by stores only.
    pub const fn at(path: PathBuf) -> Self {
        Self {
            path,
            adopted: false,
        }
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Give up ownership: the store has renamed or taken the file.
    pub fn into_adopted(mut self) -> PathBuf {
        self.adopted = true;
        self.path.clone()
    }
}

impl Drop for TempBlob {
    fn drop(&mut self) {
        if !self.adopted {
            // Nothing can be done about a leftover here; the store sweeps its temporary folder.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Where a running node reads and makes files.
pub trait Artifacts: Send + Sync {
    /// A new temporary file name ending in `.extension`, on the store's file system.
    ///
    /// # Errors
    /// The folder cannot be written, or the disk is full.
    fn temp(&self, extension: &str) -> Result<TempBlob, NodeError>;

    /// Take a finished file into the store under its content hash, safely on disk.
    ///
    /// # Errors
    /// The file cannot be read or the store cannot be written.
    fn adopt(&self, file: TempBlob, media_type: &str) -> Result<BlobRef, NodeError>;

    /// Where the bytes of `hash` lie.
    ///
    /// # Errors
    /// [`Code::NotFound`] when the store does not hold them.
    fn path(&self, hash: &ContentHash) -> Result<PathBuf, NodeError>;
}

/// What a running node may use besides its inputs.
pub struct NodeContext<'a> {
    /// Files.
    pub artifacts: &'a dyn Artifacts,
    /// Asks it to stop; checked at least ten times a second.
    pub cancel: &'a CancelToken,
    /// Reports how far it has come.
    pub progress: &'a dyn ProgressSink,
    /// Threads it may use by itself.
    pub threads: usize,
}

/// The resolved inputs of one call: linked values and widget values by input name.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// For each input that has a value: one element, or the whole list for `whole_list` inputs.
    /// Widget values stand here as [`Value::Data`] with defaults filled in.
    pub inputs: BTreeMap<String, Vec<Value>>,
}

impl Call {
    /// The elements of input `name`; empty when absent.
    pub fn list(&self, name: &str) -> &[Value] {
        self.inputs.get(name).map_or(&[], Vec::as_slice)
    }

    /// The one element of input `name`.
    ///
    /// # Errors
    /// [`Code::BadInput`] when it is absent.
    pub fn one(&self, name: &str) -> Result<&Value, NodeError> {
        self.list(name).first().ok_or_else(|| {
            NodeError::new(
                Code::BadInput,
                format!("input {name:?}: expected a value, got none"),
            )
        })
    }

    /// Plain data of input `name`.
    ///
    /// # Errors
    /// [`Code::BadInput`] when it is absent or not plain data.
    pub fn datum(&self, name: &str) -> Result<&Datum, NodeError> {
        let value = self.one(name)?;
        value
            .as_datum()
            .ok_or_else(|| wrong(name, "plain data", value))
    }

    /// The file of input `name`.
    ///
    /// # Errors
    /// [`Code::BadInput`] when it is absent or not a file.
    pub fn blob(&self, name: &str) -> Result<&BlobRef, NodeError> {
        let value = self.one(name)?;
        value.as_blob().ok_or_else(|| wrong(name, "a file", value))
    }

    /// Text of input `name`.
    ///
    /// # Errors
    /// [`Code::BadInput`] when it is absent or not text.
    pub fn text(&self, name: &str) -> Result<&str, NodeError> {
        let datum = self.datum(name)?;
        datum
            .as_str()
            .ok_or_else(|| wrong_datum(name, "text", datum))
    }

    /// Whole number of input `name`.
    ///
    /// # Errors
    /// [`Code::BadInput`] when it is absent or not a whole number.
    pub fn int(&self, name: &str) -> Result<i64, NodeError> {
        let datum = self.datum(name)?;
        datum
            .as_i64()
            .ok_or_else(|| wrong_datum(name, "a whole number", datum))
    }

    /// Number of input `name`.
    ///
    /// # Errors
    /// [`Code::BadInput`] when it is absent or not a number.
    pub fn float(&self, name: &str) -> Result<f64, NodeError> {
        let datum = self.datum(name)?;
        datum
            .as_f64()
            .ok_or_else(|| wrong_datum(name, "a number", datum))
    }

    /// Truth of input `name`.
    ///
    /// # Errors
    /// [`Code::BadInput`] when it is absent or not true or false.
    pub fn bool(&self, name: &str) -> Result<bool, NodeError> {
        let datum = self.datum(name)?;
        datum
            .as_bool()
            .ok_or_else(|| wrong_datum(name, "true or false", datum))
    }
}

fn wrong(name: &str, expected: &str, got: &Value) -> NodeError {
    let got = match got {
        Value::Data(datum) => datum.kind(),
        Value::Blob(_) => "a file",
        Value::Handle(_) => "a loaded thing",
        Value::Blocked(_) => "a blocked value",
    };
    NodeError::new(
        Code::BadInput,
        format!("input {name:?}: expected {expected}, got {got}"),
    )
}

fn wrong_datum(name: &str, expected: &str, got: &Datum) -> NodeError {
    let got = got.kind();
    NodeError::new(
        Code::BadInput,
        format!("input {name:?}: expected {expected}, got {got}"),
    )
}

/// One output of a finished call.
#[derive(Debug, Clone)]
pub enum PortOutput {
    /// One element.
    One(Value),
    /// A list; only for outputs whose spec says `list`.
    Many(Vec<Value>),
}

/// Where an output of an expansion comes from.
#[derive(Debug, Clone)]
pub enum ExpansionOutput {
    /// Already known.
    Known(PortOutput),
    /// An output of a node of the expansion: node id and output name.
    Link(String, String),
}

/// A graph that a node puts in its own place. Node ids are local to it and must not depend on
/// anything but the call.
#[derive(Debug, Clone)]
pub struct Expansion {
    /// The nodes. Links inside refer to local ids.
    pub document: Document,
    /// Known values handed to inputs of the expansion: (node id, input name, elements).
    pub given: Vec<(String, String, Vec<Value>)>,
    /// What the expanding node's outputs become, in port order.
    pub outputs: Vec<ExpansionOutput>,
}

/// What a call gave.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Its outputs in port order.
    Values(Vec<PortOutput>),
    /// Run this graph instead.
    Expand(Box<Expansion>),
}

impl Outcome {
    /// A single output of plain data.
    pub fn data(datum: impl Into<Datum>) -> Self {
        Self::Values(vec![PortOutput::One(Value::data(datum))])
    }

    /// A single output file.
    pub fn blob(blob: BlobRef) -> Self {
        Self::Values(vec![PortOutput::One(Value::Blob(blob))])
    }
}

/// Ports that were called otherwise in an older version of a node type: (old name, new name).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortRenames {
    /// Of inputs.
    pub inputs: Vec<(String, String)>,
    /// Of outputs.
    pub outputs: Vec<(String, String)>,
}

/// A node type.
pub trait Node: Send + Sync {
    /// Its description; always the same.
    fn spec(&self) -> &NodeSpec;

    /// Do the work of one call.
    ///
    /// # Errors
    /// [`NodeError`] with the reason; nothing half-made may be left behind.
    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError>;

    /// Which of the lazy inputs not yet in `call` are needed to go on. Empty means run now.
    ///
    /// # Errors
    /// [`NodeError`] when the known inputs are already wrong.
    fn lazy_needed(&self, call: &Call) -> Result<Vec<String>, NodeError> {
        let absent = |input: &&crate::InputSpec| input.lazy && call.list(input.name).is_empty();
        Ok(self
            .spec()
            .inputs
            .iter()
            .filter(absent)
            .map(|i| i.name.to_owned())
            .collect())
    }

    /// Whatever besides the inputs decides the bytes: hashes of fonts and tables, library
    /// versions. Part of every key; read once per process.
    fn side_data(&self) -> Datum {
        Datum::Null
    }

    /// Checks on widget values that ranges cannot say. Each text names the input.
    fn check(&self, widgets: &BTreeMap<String, Datum>) -> Vec<String> {
        let _none_by_default = widgets;
        Vec::new()
    }

    /// Bring widget values of an older version of this type up to the current one.
    ///
    /// # Errors
    /// [`NodeError`] when that version is not known.
    fn migrate(
        &self,
        from_version: u32,
        widgets: BTreeMap<String, Datum>,
    ) -> Result<BTreeMap<String, Datum>, NodeError> {
        if from_version == self.spec().version {
            return Ok(widgets);
        }
        let (name, version) = (self.spec().type_name, self.spec().version);
        Err(NodeError::new(
            Code::Refused,
            format!("cannot read {name:?} version {from_version}: expected version {version}"),
        ))
    }

    /// Ports that had other names in version `from_version`, so that links follow
    /// [`Node::migrate`].
    fn renamed_ports(&self, from_version: u32) -> PortRenames {
        let _none_by_default = from_version;
        PortRenames::default()
    }
}
