//! A place in a text from which small things are read.

/// Reads from the front of a piece of text; a copy is a place to come back to.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub rest: &'a str,
    length_bytes: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            length_bytes: text.len(),
        }
    }

    /// Bytes read so far.
    pub(super) fn taken(&self) -> usize {
        self.length_bytes - self.rest.len()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Reads `text` if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else {
            return false;
        };
        self.rest = rest;
        true
    }

    /// Reads the next character if it is one of `any`.
    pub(super) fn eat_any(&mut self, any: &str) -> Option<char> {
        let next = self.peek().filter(|next| any.contains(*next))?;
        self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
        Some(next)
    }

    /// The characters from here on of which `belongs` is true, read.
    pub(super) fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .find(|next: char| !belongs(next))
            .unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    /// All ASCII digits from here on, where there are at least `least` and at most `most`.
    pub(super) fn digits(&mut self, least: usize, most: usize) -> Option<&'a str> {
        let mut ahead = *self;
        let run = ahead.run(|next| next.is_ascii_digit());
        if !(least..=most).contains(&run.len()) {
            return None;
        }
        *self = ahead;
        Some(run)
    }

    pub(super) fn letters(&mut self) -> &'a str {
        self.run(char::is_alphabetic)
    }

    /// Reads blanks; says whether there were any.
    pub(super) fn blanks(&mut self) -> bool {
        !self.run(|next| next == ' ' || next == '\u{a0}').is_empty()
    }

    /// Reads what stands between the ends of a range: a dash, with blanks around it or without.
    pub(super) fn range_dash(&mut self) -> bool {
        let mut ahead = *self;
        ahead.blanks();
        if ahead.eat_any("-–").is_none() {
            return false;
        }
        ahead.blanks();
        *self = ahead;
        true
    }

    /// Whether no letter and no digit follows.
    pub(super) fn at_word_end(&self) -> bool {
        !self.peek().is_some_and(char::is_alphanumeric)
    }

    /// Reads the first of the table's texts that is next and ends a word, and gives its row.
    pub(super) fn eat_word<'t, Row>(
        &mut self,
        table: &'t [Row],
        written: impl Fn(&'t Row) -> &'t str,
    ) -> Option<&'t Row> {
        for row in table {
            let mut ahead = *self;
            if ahead.eat(written(row)) && ahead.at_word_end() {
                *self = ahead;
                return Some(row);
            }
        }
        None
    }
}
