//! How shots follow from each other's pictures.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::value::ValueError;

/// How a shot follows from another shot's picture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Continuity {
    /// It begins anew.
    #[default]
    Cut,
    /// It carries on from the last picture of the shot named.
    Continue(String),
    /// It begins anew from the first picture of the shot named, so that errors don't add up.
    ReAnchor(String),
}

impl Continuity {
    /// Id of the shot that it follows from.
    pub fn source(&self) -> Option<&str> {
        match self {
            Self::Cut => None,
            Self::Continue(id) | Self::ReAnchor(id) => Some(id),
        }
    }
}

impl fmt::Display for Continuity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("cut"),
            Self::Continue(id) => write!(f, "continue {id}"),
            Self::ReAnchor(id) => write!(f, "re-anchor {id}"),
        }
    }
}

impl FromStr for Continuity {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let expected = "cut, continue SHOT or re-anchor SHOT";
        let words: Vec<&str> = text.split_whitespace().take(3).collect();
        match *words.as_slice() {
            ["cut"] => Ok(Self::Cut),
            ["continue", id] => Ok(Self::Continue(id.to_owned())),
            ["re-anchor", id] => Ok(Self::ReAnchor(id.to_owned())),
            _ => Err(ValueError::new(text, expected).near(
                words.first().copied().unwrap_or(""),
                &["cut", "continue", "re-anchor"],
            )),
        }
    }
}

/// Circles among `follows` (shot index -> index of the shot it follows from), each given once as
/// the indices around it, beginning with the smallest.
pub(crate) fn cycles(follows: &[Option<usize>]) -> Vec<Vec<usize>> {
    // 0 = not seen; otherwise the number of the walk that saw it.
    let mut walk_of = vec![0usize; follows.len()];
    let mut found = Vec::new();
    for start in 0..follows.len() {
        let mut path = Vec::new();
        let mut place_of = HashMap::new();
        let mut here = Some(start);
        while let Some(index) = here {
            if walk_of[index] == start + 1 {
                let first = place_of.get(&index).copied().unwrap_or(0);
                let mut circle: Vec<usize> = path[first..].to_vec();
                let least = (0..circle.len()).min_by_key(|i| circle[*i]).unwrap_or(0);
                circle.rotate_left(least);
                found.push(circle);
                break;
            }
            if walk_of[index] != 0 {
                break;
            }
            walk_of[index] = start + 1;
            place_of.insert(index, path.len());
            path.push(index);
            here = follows[index];
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuity_is_read_and_written() {
        for text in ["cut", "continue boats", "re-anchor boats"] {
            assert_eq!(text.parse::<Continuity>().unwrap().to_string(), text);
        }
        let slip = "contine boats".parse::<Continuity>().unwrap_err();
        assert_eq!(slip.suggestion.as_deref(), Some("continue"));
        assert!("continue".parse::<Continuity>().is_err());
    }

    #[test]
    fn circles_are_found_once_and_tails_are_not_part_of_them() {
        // 0 -> 1 -> 2 -> 0, 3 -> 0, 4 -> 4, 5 -> nothing, 6 -> 5.
        let follows = [Some(1), Some(2), Some(0), Some(0), Some(4), None, Some(5)];
        assert_eq!(cycles(&follows), vec![vec![0, 1, 2], vec![4]]);
    }

    #[test]
    fn a_chain_of_a_million_is_walked_once() {
        let follows: Vec<Option<usize>> = (0..1_000_000).map(|i: usize| i.checked_sub(1)).collect();
        assert_eq!(cycles(&follows), Vec::<Vec<usize>>::new());
    }
}
