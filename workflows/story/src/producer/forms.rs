//! Sentence forms: expressions with choices, out of which a weak model writes its sentences.
//!
//! In an expression `(a|b)` is one of several, `[a]` may be left out, `{name}` is one of a list of
//! the [`Lexicon`], `\` takes the next character as it is. Everything else stands for itself.

use std::collections::BTreeMap;

use super::draw::Draw;

/// Lists by the names that forms call them by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    lists: BTreeMap<&'static str, String>,
}

impl Lexicon {
    /// Name a list of texts; an empty one makes the forms that need it unusable.
    pub(crate) fn put(&mut self, name: &'static str, texts: &[String]) {
        let texts: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
        self.lists.insert(name, texts.join("|"));
    }

    /// Keep only the first texts of a list.
    pub(crate) fn keep(&mut self, name: &'static str, count: usize) {
        if let Some(list) = self.lists.get_mut(name) {
            *list = choices(list)
                .get(..count)
                .map_or_else(|| list.clone(), |few| few.join("|"));
        }
    }

    /// Name a part of forms.
    pub(crate) fn put_form(&mut self, name: &'static str, form: &str) {
        self.lists.insert(name, form.to_owned());
    }

    /// The form with lists in the places of their names; none when a list is missing or empty. A
    /// name with a capital wants its texts to begin with one.
    pub(crate) fn fill(&self, form: &str) -> Option<String> {
        let mut out = String::with_capacity(form.len() * 2);
        let mut rest = form;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}')?;
            let name = &rest[open + 1..close];
            let lower = name.to_lowercase();
            let list = self
                .lists
                .get(lower.as_str())
                .filter(|list| !list.is_empty())?;
            let list = self.fill(list)?;
            out.push_str(&rest[..open]);
            out.push('(');
            if name == lower {
                out.push_str(&list);
            } else {
                let capitals: Vec<String> = list.split('|').map(super::stages::capital).collect();
                out.push_str(&capitals.join("|"));
            }
            out.push(')');
            rest = &rest[close + 1..];
        }
        out.push_str(rest);
        Some(out)
    }

    /// One expression for any of the forms that can be filled.
    pub(crate) fn any(&self, forms: &[&str]) -> Option<String> {
        let filled: Vec<String> = forms.iter().filter_map(|form| self.fill(form)).collect();
        (!filled.is_empty()).then(|| format!("({})", filled.join("|")))
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "()[]{}|\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The expression as a regular expression.
pub(crate) fn pattern(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len() + 16);
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' | ')' | '|' => out.push(c),
            '[' => out.push('('),
            ']' => out.push_str(")?"),
            '\\' => plain(&mut out, chars.next().unwrap_or('\\')),
            other => plain(&mut out, other),
        }
    }
    out
}

fn plain(out: &mut String, c: char) {
    if !c.is_alphanumeric() && c != ' ' && c != '\'' && c != ',' {
        out.push('\\');
    }
    out.push(c);
}

/// A text of the expression, by draws.
pub(crate) fn sample(expression: &str, draw: &mut Draw) -> String {
    let mut out = String::new();
    one_of(expression, draw, &mut out);
    out
}

/// Where the group that opens at the start of `text` closes.
fn closing(text: &str) -> usize {
    let mut depth = 0usize;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Choices of an expression outside all groups.
fn choices(expression: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(c) = expression[at..].chars().next() {
        match c {
            '(' | '[' => at += closing(&expression[at..]),
            '\\' => at += 1,
            '|' => {
                found.push(&expression[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += expression
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(1, char::len_utf8);
        at = at.min(expression.len());
    }
    found.push(&expression[start..]);
    found
}

fn one_of(expression: &str, draw: &mut Draw, out: &mut String) {
    let all = choices(expression);
    let mut rest = all[draw.below(all.len())];
    while let Some(c) = rest.chars().next() {
        match c {
            '(' | '[' => {
                let close = closing(rest);
                if c == '(' || draw.below(2) == 0 {
                    one_of(&rest[1..close], draw, out);
                }
                rest = rest.get(close + 1..).unwrap_or("");
            }
            '\\' => {
                rest = &rest[1..];
                let next = rest.chars().next();
                out.extend(next);
                rest = &rest[next.map_or(0, char::len_utf8)..];
            }
            other => {
                out.push(other);
                rest = &rest[other.len_utf8()..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon() -> Lexicon {
        let mut lexicon = Lexicon::default();
        lexicon.put("me", &["Mr. Ito (old)".to_owned()]);
        lexicon.put("small", &["the key".to_owned(), "the bell".to_owned()]);
        lexicon.put_form("after", ".| at last.");
        lexicon
    }

    #[test]
    fn forms_become_patterns() {
        let form = lexicon()
            .fill("{me} (lifts|drops) {small}[ again]{after}")
            .unwrap();
        assert_eq!(
            pattern(&form),
            "(Mr\\. Ito \\(old\\)) (lifts|drops) (the key|the bell)( again)?(\\.| at last\\.)"
        );
        assert_eq!(lexicon().fill("{Small}?").unwrap(), "(The key|The bell)?");
        assert_eq!(lexicon().fill("{place} waits."), None);
        assert_eq!(
            lexicon().any(&["{place}.", "{small}."]).unwrap(),
            "((the key|the bell).)"
        );
    }

    #[test]
    fn samples_are_of_the_form() {
        let form = lexicon()
            .fill("{me} (lifts|drops) {small}[ again]{after}")
            .unwrap();
        let mut draw = Draw::new(1, "forms");
        let mut all = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let text = sample(&form, &mut draw);
            assert!(
                text.starts_with("Mr. Ito (old) ") && text.ends_with('.'),
                "{text}"
            );
            all.insert(text);
        }
        assert_eq!(all.len(), 2 * 2 * 2 * 2);
    }
}
