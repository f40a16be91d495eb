//! The one line by which a worker joins: `longtake-join-1.PAYLOAD.CHECK`, without blanks, so that
//! it survives a shell, a chat and a mail.

use std::fmt;
use std::str::FromStr;

use engine_base::ContentHash;

/// How every line begins; the number rises when its form changes.
const HEAD: &str = "longtake-join-";
const FORM: &str = "1";

/// Hex digits of the check at the end: 40 bits, a slip goes unseen once in a million millions.
const CHECK_DIGITS: usize = 10;

/// Longest line that is looked at, in bytes.
const LONGEST_BYTES: usize = 4096;

/// Marks between the parts of the payload; none may hold it.
const BETWEEN: char = '\n';

/// What a worker needs to join.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinLine {
    /// Where the server is: `host:tcp_port`, several separated by commas.
    pub address: String,
    /// Secret that lets a worker in.
    pub token: String,
    /// Fingerprint of the server's certificate in hex; empty without TLS (loopback).
    pub fingerprint: String,
    /// Release of the program that wrote the line.
    pub version: String,
}

impl fmt::Debug for JoinLine {
    /// The token is a secret and stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinLine")
            .field("address", &self.address)
            .field("fingerprint", &self.fingerprint)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Why a text is no join line. No text shows the line: it holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinLineError {
    /// Something else altogether.
    #[error(
        "cannot join: expected a line that begins with \"longtake-join-1.\"; get it from `longtake cluster up` or the page Cluster"
    )]
    Other,
    /// Written by a program with another form of line.
    #[error(
        "cannot join: the line has form {got:?}, this program reads form \"1\"; run the same release of longtake here and there"
    )]
    Form {
        /// Its form.
        got: String,
    },
    /// Its end is missing.
    #[error(
        "cannot join: the line is cut off after {got} characters; copy it whole, to its last character"
    )]
    CutOff {
        /// How many there are.
        got: usize,
    },
    /// A character was changed.
    #[error("cannot join: a character of the line was changed or lost; copy it again")]
    Damaged,
    /// A part cannot be written into a line.
    #[error("cannot write a join line: its {part} is {fault}")]
    Part {
        /// Which part.
        part: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Longer than any line we write.
    #[error("cannot join: the line has {got} characters, expected at most 4096")]
    TooLong {
        /// How many it has.
        got: usize,
    },
}

fn check_of(payload: &str, length: usize) -> String {
    let hash = ContentHash::of(format!("{length}.{payload}").as_bytes());
    hash.to_hex().chars().take(CHECK_DIGITS).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits?;
    if digits.len() % 2 != 0 {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(high * 16 + low),
            _ => None,
        })
        .collect()
}

impl JoinLine {
    /// The line. Its payload names its own length first, so that a line cut anywhere is told from
    /// one with a wrong character.
    ///
    /// # Errors
    /// When a part is empty that must not be, too long, or holds a control character.
    pub fn encode(&self) -> Result<String, JoinLineError> {
        let parts = [
            ("address", &self.address, true),
            ("token", &self.token, true),
            ("fingerprint", &self.fingerprint, false),
            ("version", &self.version, true),
        ];
        for (part, text, needed) in parts {
            let fault = if needed && text.is_empty() {
                "empty"
            } else if text.len() > 400 {
                "over 400 bytes long"
            } else if text.chars().any(char::is_control) {
                "not printable"
            } else {
                continue;
            };
            return Err(JoinLineError::Part { part, fault });
        }
        let texts = parts.map(|(_, text, _)| text.as_str());
        let payload = to_hex(texts.join(&BETWEEN.to_string()).as_bytes());
        let length = payload.len();
        let check = check_of(&payload, length);
        Ok(format!("{HEAD}{FORM}.{length}.{payload}.{check}"))
    }
}

impl FromStr for JoinLine {
    type Err = JoinLineError;

    fn from_str(text: &str) -> Result<Self, JoinLineError> {
        let line = text.trim();
        let got = line.chars().count();
        if line.len() > LONGEST_BYTES {
            return Err(JoinLineError::TooLong { got });
        }
        let cut_off = JoinLineError::CutOff { got };
        let Some(rest) = line.strip_prefix(HEAD) else {
            let begun = !line.is_empty() && HEAD.starts_with(line);
            return Err(if begun { cut_off } else { JoinLineError::Other });
        };
        let mut parts = rest.split('.');
        let form = parts.next().unwrap_or_default();
        if form != FORM {
            let got = form.chars().take(8).collect();
            let begun = form.is_empty();
            return Err(if begun {
                cut_off
            } else {
                JoinLineError::Form { got }
            });
        }
        let Some(length_text) = parts.next() else {
            return Err(cut_off);
        };
        let (payload, check) = (parts.next(), parts.next());
        let Ok(length) = length_text.parse::<usize>() else {
            let begun = length_text.is_empty();
            return Err(if begun {
                cut_off
            } else {
                JoinLineError::Damaged
            });
        };
        let Some(payload) = payload else {
            return Err(cut_off);
        };
        match (payload.len() < length, check) {
            (true, None) => return Err(cut_off),
            (false, None) if payload.len() == length => return Err(cut_off),
            (false, Some(check)) if check.len() < CHECK_DIGITS && payload.len() == length => {
                return Err(cut_off);
            }
            (_, Some(check)) if parts.next().is_none() && check == check_of(payload, length) => {}
            _ => return Err(JoinLineError::Damaged),
        }
        let bytes = of_hex(payload).ok_or(JoinLineError::Damaged)?;
        let joined = String::from_utf8(bytes).map_err(|_not_text| JoinLineError::Damaged)?;
        let mut texts = joined.split(BETWEEN).map(str::to_owned);
        let mut text = || texts.next().ok_or(JoinLineError::Damaged);
        Ok(Self {
            address: text()?,
            token: text()?,
            fingerprint: text()?,
            version: text()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line() -> JoinLine {
        JoinLine {
            address: "10.0.0.5:4222,[fe80::1]:4222".to_owned(),
            token: "s3cret".to_owned(),
            fingerprint: "ab".repeat(32),
            version: "0.1.0".to_owned(),
        }
    }

    #[test]
    fn a_line_cut_anywhere_says_so() {
        let whole = line().encode().unwrap();
        assert!(whole.is_ascii() && !whole.contains(char::is_whitespace));
        for end in 1..whole.len() {
            let error = whole[..end].parse::<JoinLine>().unwrap_err();
            let said = matches!(
                error,
                JoinLineError::CutOff { .. } | JoinLineError::Damaged | JoinLineError::Form { .. }
            );
            assert!(said, "{end}: {error}");
            if end > HEAD.len() + 6 {
                assert_eq!(
                    error,
                    JoinLineError::CutOff { got: end },
                    "{}",
                    &whole[..end]
                );
            }
        }
    }

    #[test]
    fn every_changed_character_is_found() {
        let whole = line().encode().unwrap();
        for at in HEAD.len()..whole.len() {
            let mut changed = whole.clone().into_bytes();
            changed[at] = if changed[at] == b'3' { b'4' } else { b'3' };
            let changed = String::from_utf8(changed).unwrap();
            if changed != whole {
                assert!(changed.parse::<JoinLine>().is_err(), "{changed}");
            }
        }
    }

    #[test]
    fn other_texts_and_other_forms_are_named() {
        assert_eq!("ls -l".parse::<JoinLine>(), Err(JoinLineError::Other));
        assert_eq!("".parse::<JoinLine>(), Err(JoinLineError::Other));
        let newer = line().encode().unwrap().replacen("join-1.", "join-2.", 1);
        let error = newer.parse::<JoinLine>().unwrap_err();
        assert!(error.to_string().contains("\"2\""), "{error}");
        let long = "longtake-join-1.".repeat(1000);
        assert!(matches!(
            long.parse::<JoinLine>(),
            Err(JoinLineError::TooLong { .. })
        ));
    }

    #[test]
    fn secrets_stay_out_of_logs_and_bad_parts_out_of_lines() {
        assert!(!format!("{:?}", line()).contains("s3cret"));
        let empty = JoinLine {
            token: String::new(),
            ..line()
        };
        assert!(empty.encode().unwrap_err().to_string().contains("token"));
        let two_lines = JoinLine {
            address: "a\nb".to_owned(),
            ..line()
        };
        assert!(two_lines.encode().is_err());
    }

    proptest! {
        #[test]
        fn lines_round_trip(address in "[ -~]{1,60}", token in "\\PC{1,40}", print in "[0-9a-f]{0,64}") {
            let line = JoinLine { address, token, fingerprint: print, version: "1.2.3".to_owned() };
            prop_assert_eq!(line.encode().unwrap().parse::<JoinLine>(), Ok(line));
        }

        #[test]
        fn no_text_panics(text in "(longtake-join-1\\.)?\\PC{0,80}") {
            prop_assert!(text.parse::<JoinLine>().is_err());
        }
    }
}
