//! Receipts: a measured figure with all that is needed to believe or repeat it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use engine_base::ContentHash;
use serde::{Deserialize, Serialize};

use crate::machine::{self, Machine};

/// Why a receipt could not be made or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// A name that is no file name.
    #[error("cannot name a receipt {name:?}: expected 1 to 64 of a-z, 0-9 and -")]
    Name {
        /// The name asked for.
        name: String,
    },
    /// A figure JSON cannot hold, or no samples.
    #[error("cannot keep {row:?} in a receipt: {what} is {value}, expected a finite number")]
    Figure {
        /// Name of the row.
        row: String,
        /// Which figure.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A row whose figures have no samples.
    #[error("cannot keep {row:?} in a receipt: expected at least one sample, got none")]
    NoSamples {
        /// Name of the row.
        row: String,
    },
    /// Two rows of one name.
    #[error("cannot keep {row:?} in a receipt: the name is already taken")]
    Twice {
        /// Name of the row.
        row: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action}: {source}: {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
        /// The file.
        path: PathBuf,
    },
}

/// How samples of one figure spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Least of them.
    pub min: f64,
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// Greatest of them.
    pub max: f64,
}

impl Spread {
    /// Of `samples`, which may be in any order; `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        };
        Some(Self { min, median, max })
    }
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Rates and scores.
    Higher,
    /// Times and sizes.
    Lower,
}

/// One line of a table of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// Median of the samples, in `unit`.
    pub value: f64,
    /// Unit of `value`, `peer_value`, `floor` and `spread`.
    pub unit: String,
    /// What it is compared with, with its version.
    pub peer: Option<String>,
    /// The peer's median on the same machine and input.
    pub peer_value: Option<f64>,
    /// How far ahead of the peer; above 1 is better than the peer, whichever way the unit counts.
    pub ratio: Option<f64>,
    /// The value that has to be reached.
    pub floor: Option<f64>,
    /// Spread of the samples.
    pub spread: Spread,
}

/// A bench's outcome: rows, the raw samples behind them, and where they come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Name of the bench; the file is `NAME.json`.
    pub name: String,
    /// Commit of the checkout the program was built in; `+dirty` when files differed from it.
    pub commit: String,
    /// Content hash of the program that measured.
    pub binary: ContentHash,
    /// Whether that program was built with optimization.
    pub release: bool,
    /// Where it ran.
    pub machine: Machine,
    /// The command that measured.
    pub command: Vec<String>,
    /// The table.
    pub rows: Vec<Row>,
    /// Raw samples by row name, and `ROW/peer` for the peer's, in the order they were taken.
    pub samples: BTreeMap<String, Vec<f64>>,
}

/// What a row is made from.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// What was measured.
    pub name: &'a str,
    /// Unit of all figures.
    pub unit: &'a str,
    /// Which way it is better.
    pub better: Better,
    /// Raw samples.
    pub samples: &'a [f64],
    /// Peer and its raw samples.
    pub peer: Option<(&'a str, &'a [f64])>,
    /// The value that has to be reached.
    pub floor: Option<f64>,
}

#[derive(Serialize)]
struct LastLine<'a> {
    rows: &'a [Row],
    receipt: &'a Path,
}

fn finite(row: &str, what: &'static str, value: f64) -> Result<f64, ReceiptError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ReceiptError::Figure {
            row: row.to_owned(),
            what,
            value,
        })
    }
}

fn spread_of(row: &str, samples: &[f64]) -> Result<Spread, ReceiptError> {
    for sample in samples {
        finite(row, "a sample", *sample)?;
    }
    Spread::of(samples).ok_or_else(|| ReceiptError::NoSamples {
        row: row.to_owned(),
    })
}

impl Receipt {
    /// An empty receipt of this program on this machine.
    ///
    /// # Errors
    /// `Name` when `name` is no plain file name; `File` when the running program can't be read.
    pub fn new(name: &str) -> Result<Self, ReceiptError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(ReceiptError::Name {
                name: name.to_owned(),
            });
        }
        let failed = |path: &Path, source| ReceiptError::File {
            action: "hash the running program",
            source,
            path: path.to_owned(),
        };
        let program = std::env::current_exe().map_err(|e| failed(Path::new(name), e))?;
        let binary = File::open(&program)
            .and_then(ContentHash::of_reader)
            .map_err(|source| failed(&program, source))?;
        // Only the program's name: where it stands is one machine's affair.
        let mut command: Vec<String> = std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        if let (Some(first), Some(file)) = (command.first_mut(), program.file_name()) {
            *first = file.to_string_lossy().into_owned();
        }
        Ok(Self {
            name: name.to_owned(),
            commit: machine::commit_of(Path::new(env!("CARGO_MANIFEST_DIR"))),
            binary,
            release: !cfg!(debug_assertions),
            machine: Machine::this(),
            command,
            rows: Vec::new(),
            samples: BTreeMap::new(),
        })
    }

    /// Adds a row: medians, ratio and spread follow from the samples, which are kept.
    ///
    /// # Errors
    /// `Figure` for a number JSON can't hold (a ratio against 0 included), `NoSamples`, `Twice`.
    pub fn add(&mut self, measured: Measured<'_>) -> Result<&Row, ReceiptError> {
        let name = measured.name;
        if self.samples.contains_key(name) {
            return Err(ReceiptError::Twice {
                row: name.to_owned(),
            });
        }
        let spread = spread_of(name, measured.samples)?;
        let peer_spread = measured
            .peer
            .map(|(_, samples)| spread_of(name, samples))
            .transpose()?;
        let ratio = peer_spread.map(|peer| match measured.better {
            Better::Higher => spread.median / peer.median,
            Better::Lower => peer.median / spread.median,
        });
        let row = Row {
            name: name.to_owned(),
            value: spread.median,
            unit: measured.unit.to_owned(),
            peer: measured.peer.map(|(peer, _)| peer.to_owned()),
            peer_value: peer_spread.map(|peer| peer.median),
            ratio: ratio
                .map(|ratio| finite(name, "the ratio", ratio))
                .transpose()?,
            floor: measured
                .floor
                .map(|floor| finite(name, "the floor", floor))
                .transpose()?,
            spread,
        };
        self.samples
            .insert(name.to_owned(), measured.samples.to_vec());
        if let Some((_, samples)) = measured.peer {
            self.samples
                .insert(format!("{name}/peer"), samples.to_vec());
        }
        let at = self.rows.len();
        self.rows.push(row);
        Ok(&self.rows[at])
    }

    /// Writes `FOLDER/NAME.json`, whole or not at all, and gives its path.
    ///
    /// # Errors
    /// `File` when the folder or the file can't be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ReceiptError> {
        let path = folder.join(format!("{}.json", self.name));
        let failed = |action| {
            let path = path.clone();
            move |source: io::Error| ReceiptError::File {
                action,
                source,
                path,
            }
        };
        fs::create_dir_all(folder).map_err(failed("make the folder of a receipt"))?;
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(io::Error::other)
            .map_err(failed("encode a receipt"))?;
        text.push(b'\n');
        let partial = folder.join(format!("{}.json.partial", self.name));
        fs::write(&partial, text).map_err(failed("write a receipt"))?;
        fs::rename(&partial, &path).map_err(failed("put a receipt in its place"))?;
        Ok(path)
    }

    /// Writes the last line of a bench to `out`: its rows and where the receipt is.
    ///
    /// # Errors
    /// Whatever `out` fails with.
    pub fn print_last_line(&self, path: &Path, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer(
            &mut out,
            &LastLine {
                rows: &self.rows,
                receipt: path,
            },
        )?;
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured<'a>(name: &'a str, better: Better, samples: &'a [f64]) -> Measured<'a> {
        Measured {
            name,
            unit: "s",
            better,
            samples,
            peer: None,
            floor: None,
        }
    }

    #[test]
    fn spread_takes_samples_in_any_order() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 10.0]).unwrap();
        assert_eq!(
            spread,
            Spread {
                min: 1.0,
                median: 3.5,
                max: 10.0
            }
        );
        assert_eq!(
            Spread::of(&[2.0]).unwrap().median.to_bits(),
            2.0_f64.to_bits()
        );
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_ratio_above_one_is_ahead_whichever_way_the_unit_counts() {
        let mut receipt = Receipt::new("ratio").unwrap();
        let peer = Some(("ffmpeg 5.1", [10.0, 12.0, 11.0].as_slice()));
        let time = Measured {
            peer,
            ..measured("export time", Better::Lower, &[5.5])
        };
        assert_eq!(receipt.add(time).unwrap().ratio, Some(2.0));
        let rate = Measured {
            peer,
            ..measured("export rate", Better::Higher, &[5.5])
        };
        assert_eq!(receipt.add(rate).unwrap().ratio, Some(0.5));
        assert_eq!(receipt.samples["export rate/peer"], [10.0, 12.0, 11.0]);
    }

    #[test]
    fn figures_that_say_nothing_are_refused() {
        let mut receipt = Receipt::new("refused").unwrap();
        let error = receipt
            .add(measured("empty", Better::Lower, &[]))
            .unwrap_err();
        assert!(matches!(error, ReceiptError::NoSamples { .. }), "{error}");
        let error = receipt
            .add(measured("nan", Better::Lower, &[1.0, f64::NAN]))
            .unwrap_err();
        assert!(error.to_string().contains("a sample is NaN"), "{error}");
        let zero = Measured {
            peer: Some(("nothing", &[0.0])),
            ..measured("zero", Better::Higher, &[1.0])
        };
        assert!(
            receipt
                .add(zero)
                .unwrap_err()
                .to_string()
                .contains("the ratio is inf")
        );
        receipt
            .add(measured("once", Better::Lower, &[1.0]))
            .unwrap();
        let error = receipt
            .add(measured("once", Better::Lower, &[1.0]))
            .unwrap_err();
        assert!(matches!(error, ReceiptError::Twice { .. }), "{error}");
        assert_eq!(receipt.rows.len(), 1);
        assert_eq!(receipt.samples.len(), 1);
    }

    #[test]
    fn names_are_file_names() {
        for name in ["", "../up", "Upper", "with space", &"x".repeat(65)] {
            assert!(
                matches!(Receipt::new(name), Err(ReceiptError::Name { .. })),
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_written_receipt_reads_back_and_names_its_origin() {
        let folder = tempfile::tempdir().unwrap();
        let mut receipt = Receipt::new("round-trip").unwrap();
        receipt
            .add(measured(
                "a",
                Better::Lower,
                &[0.1, 0.2, 0.30000000000000004],
            ))
            .unwrap();
        let path = receipt.write(&folder.path().join("new")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<Receipt>(&text).unwrap(), receipt);
        assert!(
            receipt.commit.trim_end_matches("+dirty").len() >= 7,
            "{}",
            receipt.commit
        );
        let own = ContentHash::of(&fs::read(std::env::current_exe().unwrap()).unwrap());
        assert_eq!(receipt.binary, own);
        assert!(!receipt.command[0].contains('/'), "{:?}", receipt.command);
        let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn the_last_line_is_one_line_of_json() {
        let mut receipt = Receipt::new("last").unwrap();
        receipt.add(measured("a", Better::Lower, &[2.0])).unwrap();
        let mut out = Vec::new();
        receipt
            .print_last_line(Path::new("tests/receipts/last.json"), &mut out)
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["receipt"], "tests/receipts/last.json");
        assert_eq!(value["rows"][0]["value"], 2.0);
        assert_eq!(value["rows"][0]["spread"]["median"], 2.0);
        assert!(value["rows"][0]["peer"].is_null());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = Receipt::new("x")
            .unwrap()
            .write(&file)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot make the folder") && error.ends_with("x.json"),
            "{error}"
        );
    }
}
