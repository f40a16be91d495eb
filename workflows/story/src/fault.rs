//! What is wrong with a script, said so that a person can mend it.

use std::fmt;

use serde::Serialize;

use crate::text::Coded;

/// Most faults that are reported at once.
pub const FAULTS_MAX: usize = 50;

/// Something that keeps a script from being read or planned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, thiserror::Error)]
pub struct Fault {
    /// Line of the file, from 1; absent when the script did not come from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Character of the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Which thing, such as `shot boats`; may be empty.
    pub place: String,
    /// Which of its fields; may be empty.
    pub field: String,
    /// What cannot be done, such as `cannot read the length`.
    pub problem: String,
    /// What stands there; may be empty.
    pub got: String,
    /// What may stand there; may be empty.
    pub expected: String,
    /// The nearest right thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The whole of it as a code with values, where it has one.
    #[serde(skip)]
    pub coded: Option<Box<Coded>>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}")?;
            if let Some(column) = self.column {
                write!(f, ", column {column}")?;
            }
            f.write_str(": ")?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        if !self.field.is_empty() {
            write!(f, "field '{}': ", self.field)?;
        }
        f.write_str(&self.problem)?;
        if !self.got.is_empty() {
            write!(f, ": got {:?}", self.got)?;
        }
        if !self.expected.is_empty() {
            let joint = if self.got.is_empty() { ": " } else { ", " };
            write!(f, "{joint}expected {}", self.expected)?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean '{suggestion}'?")?;
        }
        Ok(())
    }
}

/// Start of `text` short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The candidate nearest to `word`, when it is near enough to be a slip of the hand. Looks at
/// 400 candidates at most, so that a file of wrong names stays quick to refuse.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let length = word.chars().count();
    if length == 0 || length > 64 {
        return None;
    }
    let folded = word.to_lowercase();
    candidates
        .into_iter()
        .take(400)
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= 3)
        .map(|candidate| {
            let distance = strsim::osa_distance(&folded, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= (length / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_as_one_sentence() {
        let fault = Fault {
            line: Some(12),
            column: Some(3),
            place: "shot boats".to_owned(),
            field: "pictur".to_owned(),
            problem: "unknown field".to_owned(),
            expected: "one of length, picture".to_owned(),
            suggestion: Some("picture".to_owned()),
            ..Fault::default()
        };
        assert_eq!(
            fault.to_string(),
            "line 12, column 3: shot boats: field 'pictur': unknown field: expected one of \
             length, picture; did you mean 'picture'?"
        );
    }

    #[test]
    fn near_misses_are_found_and_far_ones_left() {
        assert_eq!(
            nearest("pictur", ["length", "picture"]),
            Some("picture".to_owned())
        );
        assert_eq!(nearest("MAAR", ["MARA", "TOM"]), Some("MARA".to_owned()));
        assert_eq!(nearest("zebra", ["length", "picture"]), None);
        assert_eq!(nearest(&"x".repeat(100_000), ["length"]), None);
    }
}
