//! Near misses: the name a person most likely meant.

/// Longest name that is compared, in characters.
const LONGEST_CHARS: usize = 64;

/// Finds near names, up to a fixed amount of work per document: a hostile file with a hundred
/// thousand wrong names must not cost a comparison of each with every name there is.
#[derive(Debug)]
pub(crate) struct Suggestions {
    cells_left: usize,
}

impl Default for Suggestions {
    fn default() -> Self {
        // A few hundred wrong names against a few hundred types.
        Self {
            cells_left: 20_000_000,
        }
    }
}

impl Suggestions {
    /// The nearest of `names` to `got`: at most a third of its characters apart, three at most.
    /// Of several equally near ones, the first.
    pub(crate) fn nearest<'n>(
        &mut self,
        got: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        let got: Vec<char> = got.chars().take(LONGEST_CHARS + 1).collect();
        if got.len() > LONGEST_CHARS {
            return None;
        }
        let most = (got.len() / 3).clamp(1, 3);
        let mut best: Option<(usize, &str)> = None;
        for name in names {
            self.spend(1)?;
            // A length that differs by more than the best distance cannot win.
            if name.len() > 4 * LONGEST_CHARS {
                continue;
            }
            let other: Vec<char> = name.chars().collect();
            let near = best.map_or(most + 1, |(distance, _)| distance);
            if other.len().abs_diff(got.len()) >= near {
                continue;
            }
            self.spend(got.len() * other.len())?;
            let distance = distance(&got, &other);
            if distance < near {
                best = Some((distance, name));
            }
        }
        best.map(|(_, name)| name.to_owned())
    }

    /// `None` from the first time that more is asked than is left.
    fn spend(&mut self, cells: usize) -> Option<()> {
        if cells > self.cells_left {
            self.cells_left = 0;
            return None;
        }
        self.cells_left -= cells;
        Some(())
    }
}

/// Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for (i, from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(from.to_lowercase().ne(to.to_lowercase()));
            let mut fewest = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                fewest = fewest.min(before[j - 1] + 1);
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_mistakes_only() {
        let names = ["film.segment", "film.still", "text.join"];
        let mut near = Suggestions::default();
        let mut nearest = |got: &str| near.nearest(got, names);
        assert_eq!(nearest("film.segmnet").as_deref(), Some("film.segment"));
        assert_eq!(nearest("Film.Still").as_deref(), Some("film.still"));
        assert_eq!(nearest("text.jion").as_deref(), Some("text.join"));
        assert_eq!(nearest("audio.mix"), None);
        assert_eq!(nearest(""), None);
    }

    #[test]
    fn stops_when_the_work_is_used_up() {
        let mut near = Suggestions { cells_left: 10 };
        assert_eq!(near.nearest("still", ["stil"]), None);
    }
}
