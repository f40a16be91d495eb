//! Items: fields, and names with fields below them.

use super::{Context, LISTED, Reader, column_of};
use crate::escape::{find_plain, split_attributes, unescape};
use crate::tree::{At, Node};

impl Reader<'_> {
    pub(super) fn item(&mut self, item: &str, at: At, nested: bool) {
        match self.context {
            Context::Cast | Context::Places => self.named(item, at, nested),
            Context::Music => {
                let node = self.with_attributes(item, at, "file");
                self.root.push("music", node);
            }
            Context::Credits => {
                if let Some((name, (value_at, value))) = self.field(item, at)
                    && let Some(credits) = &mut self.credits
                {
                    let node = Node::text(value_at, unescape(value));
                    if name == "line" {
                        credits.push("lines", node);
                    } else {
                        credits.put(&name, at, node);
                    }
                }
            }
            Context::Scene => {
                if let Some((name, (value_at, value))) = self.field(item, at)
                    && let Some(scene) = self.entity()
                {
                    scene.put(&name, at, value_node(&name, value_at, value));
                }
            }
            Context::Shot => self.shot_field(item, at),
            Context::Nothing | Context::Skipped => {
                let expected = "fields only under a known heading";
                self.refuse(at, "the field belongs to nothing", item, expected);
            }
        }
    }

    fn shot_field(&mut self, item: &str, at: At) {
        let Some((name, (value_at, value))) = self.field(item, at) else {
            return;
        };
        let listed = LISTED.iter().find(|(field, ..)| *field == name);
        let node = match listed {
            Some((_, list, main, kind)) => {
                let mut node = self.with_attributes(value, value_at, main);
                let label = if *list == "titles" { "role" } else { "kind" };
                node.put(label, at, Node::text(at, *kind));
                if let Some(shot) = self.entity() {
                    shot.push(list, node);
                }
                return;
            }
            None if name == "video" => self.with_attributes(value, value_at, "file"),
            None => value_node(&name, value_at, value),
        };
        if let Some(shot) = self.entity() {
            shot.put(&name, at, node);
        }
    }

    /// A cast member or place: its name, with its fields in items below it.
    fn named(&mut self, item: &str, at: At, nested: bool) {
        let main = if self.context == Context::Cast {
            "name"
        } else {
            "id"
        };
        if !nested {
            let mut node = Node::map(at);
            node.put(main, at, Node::text(at, unescape(item)));
            let list = if self.context == Context::Cast {
                &mut self.cast
            } else {
                &mut self.places
            };
            list.push(node);
            return;
        }
        if let Some((name, (value_at, value))) = self.field(item, at) {
            let list = if self.context == Context::Cast {
                &mut self.cast
            } else {
                &mut self.places
            };
            match list.last_mut() {
                // Each of several, so that no name of a file has to be parted from the next.
                Some(last) if name == "reference" => {
                    last.push("references", Node::text(value_at, unescape(value)));
                }
                Some(last) => last.put(&name, at, value_node(&name, value_at, value)),
                None => {
                    let expected = "a name in an item before its fields";
                    self.refuse(at, "the field belongs to nothing", item, expected);
                }
            }
        }
    }

    /// `TEXT {name: value; ...}` as a map of the text under `main` and the attributes.
    pub(super) fn with_attributes(&mut self, text: &str, at: At, main: &str) -> Node {
        let (words, attributes) = split_attributes(text);
        let mut node = Node::map(at);
        node.put(main, at, Node::text(at, unescape(words)));
        let Some((offset, mut rest)) = attributes else {
            return node;
        };
        let mut part_at = at;
        part_at.column += column_of(text, &text[offset..]) - 1;
        loop {
            let end = find_plain(rest, ';').unwrap_or(rest.len());
            let part = rest[..end].trim();
            if !part.is_empty() {
                let mut field_at = part_at;
                field_at.column += column_of(rest, part) - 1;
                if let Some((name, (value_at, value))) = self.field(part, field_at) {
                    node.put(&name, field_at, value_node(&name, value_at, value));
                }
            }
            if end >= rest.len() {
                return node;
            }
            part_at.column += column_of(rest, &rest[end + 1..]) - 1;
            rest = &rest[end + 1..];
        }
    }
}

/// The value of a field; `by` is a table, everything else text.
pub(super) fn value_node(name: &str, at: At, value: &str) -> Node {
    if name == "by" {
        return origins(at, value);
    }
    Node::text(at, unescape(value))
}

/// `model action title, rule length move` as a table of fields and who wrote them.
fn origins(at: At, mut value: &str) -> Node {
    let mut table = Node::map(at);
    loop {
        let end = find_plain(value, ',').unwrap_or(value.len());
        let mut words = value[..end].split_whitespace();
        if let Some(who) = words.next() {
            let mut fields = words.peekable();
            if fields.peek().is_none() {
                // Without a field the reader of tables finds nothing that is named so.
                table.put("", at, Node::text(at, unescape(who)));
            }
            for field in fields {
                table.put(&unescape(field), at, Node::text(at, unescape(who)));
            }
        }
        if end >= value.len() {
            return table;
        }
        value = &value[end + 1..];
    }
}
