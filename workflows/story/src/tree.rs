//! What both written forms of a script are read into before it is understood: named values with
//! their places in the file.

use crate::fault::{FAULTS_MAX, Fault};

/// Most fields that are kept of one thing; more than any thing has.
const FIELDS_MAX: usize = 64;

/// A place in a file, both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct At {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) value: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool,
    /// As written; readers of single values take it from there.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A named value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// With `_` for spaces.
    pub(crate) name: String,
    pub(crate) at: At,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn text(at: At, text: impl Into<String>) -> Self {
        let value = Value::Text(text.into());
        Self { at, value }
    }

    pub(crate) fn list(at: At) -> Self {
        let value = Value::List(Vec::new());
        Self { at, value }
    }

    pub(crate) fn map(at: At) -> Self {
        let value = Value::Map(Vec::new());
        Self { at, value }
    }

    /// Add a named value to a map. What comes after the first [`FIELDS_MAX`] is left out: so many
    /// cannot all be known and different, and the first unknown one is reported.
    pub(crate) fn put(&mut self, name: &str, at: At, node: Node) {
        if let Value::Map(entries) = &mut self.value
            && entries.len() < FIELDS_MAX
        {
            let name = name.to_owned();
            entries.push(Entry { name, at, node });
        }
    }

    /// Add a value to the list named `name` of a map, which is made when it is not there.
    pub(crate) fn push(&mut self, name: &str, node: Node) {
        let Value::Map(entries) = &mut self.value else {
            return;
        };
        if !entries.iter().any(|entry| entry.name == name) && entries.len() < FIELDS_MAX {
            entries.push(Entry {
                name: name.to_owned(),
                at: node.at,
                node: Node::list(node.at),
            });
        }
        let named = entries.iter_mut().find(|entry| entry.name == name);
        if let Some(Value::List(items)) = named.map(|entry| &mut entry.node.value) {
            items.push(node);
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a table of fields",
        }
    }
}

/// Faults found so far: the first [`FAULTS_MAX`] and the count of the rest.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: Vec<Fault>,
    more: usize,
}

impl Faults {
    /// Add one; `make` is called only while there is room, so that a file of faults costs no
    /// more than its first ones.
    pub(crate) fn push(&mut self, at: At, make: impl FnOnce() -> Fault) {
        if self.list.len() >= FAULTS_MAX {
            self.more += 1;
            return;
        }
        let mut fault = make();
        if at.line > 0 {
            fault.line = Some(at.line);
            fault.column = (at.column > 0).then_some(at.column);
        }
        self.list.push(fault);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// In file order, with a last one that counts those left out.
    pub(crate) fn finish(mut self) -> Vec<Fault> {
        self.list.sort_by_key(|fault| (fault.line, fault.column));
        if self.more > 0 {
            self.list.push(Fault {
                problem: format!("{} more faults are not shown", self.more),
                ..Fault::default()
            });
        }
        self.list
    }
}
