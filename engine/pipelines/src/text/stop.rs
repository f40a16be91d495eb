//! Stop texts, which may begin in one token and end in another.

/// Passes text on, but not what may be the beginning of a stop text.
#[derive(Debug, Clone)]
pub(super) struct StopTexts {
    stops: Vec<String>,
    /// Not passed on yet.
    held: String,
}

impl StopTexts {
    /// None of `stops` is empty.
    pub(super) fn new(stops: &[String]) -> Self {
        Self {
            stops: stops.to_vec(),
            held: String::new(),
        }
    }

    /// Take `text` and append to `out` what is certain not to belong to a stop text. True when one
    /// is complete: `out` then ends before it. The one that ends first counts, and of those that
    /// end together the longest, however the text is cut into calls.
    pub(super) fn push(&mut self, text: &str, out: &mut String) -> bool {
        if self.stops.is_empty() {
            out.push_str(text);
            return false;
        }
        for c in text.chars() {
            self.held.push(c);
            let ended = self.stops.iter().filter(|stop| self.held.ends_with(*stop));
            if let Some(stop) = ended.max_by_key(|stop| stop.len()) {
                out.push_str(&self.held[..self.held.len() - stop.len()]);
                self.held.clear();
                return true;
            }
            let safe = self.held.len() - self.begun();
            if safe > 0 {
                out.extend(self.held.drain(..safe));
            }
        }
        false
    }

    /// Bytes at the end of what is held that may become a stop text.
    fn begun(&self) -> usize {
        let begins = |tail: &str| self.stops.iter().any(|stop| stop.starts_with(tail));
        self.held
            .char_indices()
            .map(|(at, _)| &self.held[at..])
            .find(|tail| begins(tail))
            .map_or(0, str::len)
    }

    /// The end: nothing that is held became a stop text.
    pub(super) fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let stops: Vec<String> = stops.iter().map(|&s| s.to_owned()).collect();
        let mut texts = StopTexts::new(&stops);
        let mut out = Vec::new();
        for piece in pieces {
            let mut passed = String::new();
            let stopped = texts.push(piece, &mut passed);
            out.push(passed);
            if stopped {
                return (out, true);
            }
        }
        let mut rest = String::new();
        texts.finish(&mut rest);
        out.push(rest);
        (out, false)
    }

    #[test]
    fn stops_are_found_across_pieces_and_never_shown() {
        let (out, stopped) = run(&["END"], &["one E", "N", "D two"]);
        assert_eq!((out.concat().as_str(), stopped), ("one ", true));
        assert_eq!(out[0], "one ");
    }

    #[test]
    fn a_beginning_that_is_none_is_passed_on_at_once() {
        let (out, stopped) = run(&["\n\n", "###"], &["a\n", "b#", "#c", "##"]);
        assert_eq!(out, ["a", "\nb", "##c", "", "##"]);
        assert!(!stopped);
    }

    #[test]
    fn overlapping_beginnings_are_kept_apart() {
        let (out, stopped) = run(&["aab"], &["a", "a", "a", "b"]);
        assert_eq!((out.concat().as_str(), stopped), ("a", true));
        // The first to end counts.
        let (out, _) = run(&["bcd", "c"], &["abcd"]);
        assert_eq!(out.concat(), "ab");
        // Of those that end together the longest.
        let (out, _) = run(&["c", "bc"], &["abc"]);
        assert_eq!(out.concat(), "a");
    }

    #[test]
    fn characters_of_many_bytes_are_whole() {
        let (out, stopped) = run(&["🎬é"], &["x🎬", "é"]);
        assert_eq!((out.concat().as_str(), stopped), ("x", true));
        let (out, stopped) = run(&["🎬é"], &["x🎬", "è"]);
        assert_eq!((out.concat().as_str(), stopped), ("x🎬è", false));
    }
}
