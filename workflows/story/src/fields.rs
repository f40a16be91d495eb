//! Reading named values field by field, with a fault for everything that is not as it should be.

use std::collections::HashMap;
use std::str::FromStr;

use crate::check::ENTRIES_MAX;
use crate::fault::{Fault, excerpt, nearest};
use crate::lines::ScriptLines;
use crate::markdown::LISTED;
use crate::origin::Origins;
use crate::tree::{At, Faults, Node, Value};
use crate::value::{ValueError, number};

/// Fields that the Markdown form writes in another way than `name: value`.
const NOT_WRITTEN: &[&str] = &[
    "cast",
    "places",
    "music",
    "scenes",
    "credits",
    "id",
    "titles",
    "sounds",
    "lines",
    "role",
    "kind",
    "file",
    "text",
    "speaker",
    "extensions",
    "name",
    "heading",
    "shots",
];
/// Which form a file has; decides only how fields are called in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Json,
}

/// Field names for a message, as the form at hand writes them.
fn shown(known: &'static [&'static str], form: Form) -> Vec<String> {
    if form == Form::Json {
        return known.iter().map(|name| (*name).to_owned()).collect();
    }
    let listed = LISTED
        .iter()
        .map(|(field, ..)| *field)
        .filter(|_| known.contains(&"titles"));
    let plain = known
        .iter()
        .copied()
        .filter(|name| !NOT_WRITTEN.contains(name));
    plain
        .chain(listed)
        .map(|name| name.replace('_', " "))
        .collect()
}

pub(crate) struct Builder {
    pub(crate) faults: Faults,
    pub(crate) lines: ScriptLines,
    form: Form,
}

/// The fields of one thing.
pub(crate) struct Table<'n> {
    pub(crate) place: String,
    pub(crate) at: At,
    pub(crate) known: &'static [&'static str],
    pub(crate) nodes: Vec<Option<&'n Node>>,
}

impl<'n> Table<'n> {
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        let index = self.known.iter().position(|known| *known == name)?;
        self.nodes[index].filter(|node| !matches!(node.value, Value::Null))
    }
}

impl Builder {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            faults: Faults::default(),
            lines: ScriptLines::default(),
            form,
        }
    }

    pub(crate) fn fault(&mut self, at: At, place: &str, field: &str, make: impl FnOnce() -> Fault) {
        self.faults.push(at, || Fault {
            place: place.to_owned(),
            field: field.to_owned(),
            ..make()
        });
    }

    pub(crate) fn table<'n>(
        &mut self,
        node: &'n Node,
        place: String,
        known: &'static [&'static str],
    ) -> Table<'n> {
        self.lines.put(&place, "", node.at);
        let mut nodes = vec![None; known.len()];
        let Value::Map(entries) = &node.value else {
            self.fault(node.at, &place, "", || Fault {
                problem: "cannot read it".to_owned(),
                got: node.kind().to_owned(),
                expected: "a table of fields".to_owned(),
                ..Fault::default()
            });
            let at = node.at;
            return Table {
                place,
                at,
                known,
                nodes,
            };
        };
        for entry in entries {
            let Some(index) = known.iter().position(|name| *name == entry.name) else {
                let form = self.form;
                self.fault(entry.at, &place, &excerpt(&entry.name), || {
                    let shown = shown(known, form);
                    Fault {
                        problem: "unknown field".to_owned(),
                        expected: format!("one of {}", shown.join(", ")),
                        suggestion: nearest(&entry.name, shown.iter().map(String::as_str)),
                        ..Fault::default()
                    }
                });
                continue;
            };
            if nodes[index].is_some() {
                self.fault(entry.at, &place, &entry.name, || Fault {
                    problem: "the field is given twice".to_owned(),
                    expected: "it once".to_owned(),
                    ..Fault::default()
                });
                continue;
            }
            self.lines.put(&place, &entry.name, entry.node.at);
            nodes[index] = Some(&entry.node);
        }
        Table {
            place,
            at: node.at,
            known,
            nodes,
        }
    }

    pub(crate) fn mismatch(&mut self, table: &Table<'_>, name: &str, node: &Node, expected: &str) {
        self.fault(node.at, &table.place, name, || Fault {
            problem: "cannot read it".to_owned(),
            got: node.kind().to_owned(),
            expected: expected.to_owned(),
            ..Fault::default()
        });
    }

    pub(crate) fn missing(&mut self, table: &Table<'_>, name: &str, expected: &str) {
        self.fault(table.at, &table.place, name, || Fault {
            problem: "the field is missing".to_owned(),
            expected: expected.to_owned(),
            ..Fault::default()
        });
    }

    pub(crate) fn text(&mut self, table: &Table<'_>, name: &str) -> String {
        match table.get(name) {
            None => String::new(),
            Some(Node {
                value: Value::Text(text),
                ..
            }) => text.clone(),
            Some(node) => {
                self.mismatch(table, name, node, "text");
                String::new()
            }
        }
    }

    pub(crate) fn texts(&mut self, table: &Table<'_>, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for node in self.capped(table, name, ENTRIES_MAX) {
            match &node.value {
                Value::Text(text) => texts.push(text.clone()),
                _ => self.mismatch(table, name, node, "text"),
            }
        }
        texts
    }

    /// Who wrote which field; every name is taken, so that fields of newer versions pass.
    pub(crate) fn origins(&mut self, table: &Table<'_>) -> Origins {
        let mut origins = Origins::default();
        let Some(node) = table.get("by") else {
            return origins;
        };
        let Value::Map(entries) = &node.value else {
            self.mismatch(table, "by", node, "a table of fields and who wrote them");
            return origins;
        };
        for entry in entries {
            let by = match &entry.node.value {
                Value::Text(text) => text.parse().ok(),
                _ => None,
            };
            match by {
                Some(by) if !entry.name.is_empty() => origins.set(&entry.name, by),
                Some(_) => {
                    self.fault(entry.node.at, &table.place, "by", || Fault {
                        problem: "cannot read it".to_owned(),
                        got: "no field's name".to_owned(),
                        expected: "who wrote which fields, such as model action".to_owned(),
                        ..Fault::default()
                    });
                }
                None => self.mismatch(table, "by", &entry.node, "model, rule or user"),
            }
        }
        origins
    }

    pub(crate) fn items<'n>(&mut self, table: &Table<'n>, name: &str) -> &'n [Node] {
        match table.get(name) {
            None => &[],
            Some(Node {
                value: Value::List(items),
                ..
            }) => items,
            Some(node) => {
                self.mismatch(table, name, node, "a list");
                &[]
            }
        }
    }

    /// At most `most` items; a longer list is a fault and read no further.
    pub(crate) fn capped<'n>(&mut self, table: &Table<'n>, name: &str, most: usize) -> &'n [Node] {
        let items = self.items(table, name);
        if items.len() <= most {
            return items;
        }
        self.fault(table.at, &table.place, name, || Fault {
            problem: "there are too many".to_owned(),
            got: format!("{} {name}", items.len()),
            expected: format!("at most {most}"),
            ..Fault::default()
        });
        &items[..most]
    }

    pub(crate) fn read<T>(
        &mut self,
        table: &Table<'_>,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, ValueError>,
    ) -> Option<T> {
        let node = table.get(name)?;
        let text = match &node.value {
            Value::Text(text) | Value::Number(text) => text.trim(),
            _ => {
                self.mismatch(table, name, node, "text or a number");
                return None;
            }
        };
        match read(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(node.at, &table.place, name, || Fault {
                    problem: "cannot read it".to_owned(),
                    got: error.got,
                    expected: error.expected,
                    suggestion: error.suggestion,
                    ..Fault::default()
                });
                None
            }
        }
    }

    pub(crate) fn parsed<T: FromStr<Err = ValueError>>(
        &mut self,
        table: &Table<'_>,
        name: &str,
    ) -> Option<T> {
        self.read(table, name, str::parse)
    }

    pub(crate) fn gain(&mut self, table: &Table<'_>, name: &str) -> Option<f64> {
        self.read(table, name, |text| {
            let digits = text.strip_suffix("dB").unwrap_or(text).trim_end();
            let expected = "a level such as -12 dB, from -96 to 24";
            number(digits, -96.0, 24.0, expected)
        })
    }

    pub(crate) fn word<T: Copy>(
        &mut self,
        table: &Table<'_>,
        name: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        self.read(table, name, |text| {
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, value)| *value).ok_or_else(|| {
                let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                ValueError::new(text, format!("one of {}", names.join(", "))).near(text, &names)
            })
        })
    }

    /// Read a list of things named by `label`, such as `shot boats`; two of one name are a fault.
    pub(crate) fn unique(
        &mut self,
        seen: &mut HashMap<String, u32>,
        node: &Node,
        what: &str,
        label: &str,
    ) -> String {
        let name = match &node.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.name == label),
            _ => None,
        };
        let (at, name) = match name.map(|entry| &entry.node) {
            Some(Node {
                at,
                value: Value::Text(name),
            }) => (*at, name.as_str()),
            _ => (node.at, ""),
        };
        let place = format!("{what} {}", excerpt(name)).trim_end().to_owned();
        if name.is_empty() {
            self.fault(at, &place, label, || Fault {
                problem: "the field is missing".to_owned(),
                expected: format!("a name of its own for the {what}"),
                ..Fault::default()
            });
            return place;
        }
        if let Some(line) = seen.get(name).copied() {
            self.fault(at, &place, label, || Fault {
                problem: format!("the {what} is there twice, first in line {line}"),
                got: excerpt(name),
                expected: format!("a name of its own for each {what}"),
                ..Fault::default()
            });
        } else {
            seen.insert(name.to_owned(), at.line);
        }
        place
    }
}
