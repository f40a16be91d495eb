//! The text of an ncnn network: a magic number, counts, one line for each layer.

use std::path::Path;

use crate::WeightsError;
use crate::table::short;

const MAGIC: &str = "7767517";
/// Longest text that is read.
const TEXT_CAP_BYTES: usize = 16 << 20;
/// Most layers of a network.
const LAYERS_CAP: usize = 1 << 16;
/// Lists are keyed from here downwards.
const LISTS_FROM: i32 = -23300;

/// One layer as its line says.
pub(super) struct Line {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) params: Vec<(i32, Vec<f64>)>,
}

impl Line {
    /// The whole number called `key`, or `default` where there is none.
    pub(super) fn count(
        &self,
        key: i32,
        default: Option<usize>,
        path: &Path,
    ) -> Result<usize, WeightsError> {
        let found = self.params.iter().find(|(known, _)| *known == key);
        let number = found.and_then(|(_, values)| values.first().copied());
        let whole = match number {
            None => default,
            // Beyond 2^53 a float is no count any more.
            Some(number) => ((0.0..=9.0e15).contains(&number) && number.fract() == 0.0)
                .then_some(number as usize),
        };
        whole.ok_or_else(|| {
            let got = number.map_or("nothing".to_owned(), |number| number.to_string());
            let what = format!(
                "layer {:?} has {got} for parameter {key}, expected a whole number",
                short(&self.name)
            );
            WeightsError::damaged(what, path)
        })
    }
}

/// The layers of a text.
pub(super) fn lines(bytes: &[u8], path: &Path) -> Result<Vec<Line>, WeightsError> {
    let damaged = |what: String| WeightsError::damaged(what, path);
    if bytes.len() > TEXT_CAP_BYTES {
        return Err(WeightsError::OverCap {
            what: "the text of an ncnn network".to_owned(),
            got: bytes.len() as u64,
            max: TEXT_CAP_BYTES as u64,
            path: path.to_owned(),
        });
    }
    let text = String::from_utf8_lossy(bytes);
    let mut rows = text.lines().map(str::trim).filter(|row| !row.is_empty());
    let first = rows.next().unwrap_or_default();
    if first != MAGIC {
        let what = format!(
            "expected the text of an ncnn network, which begins with {MAGIC}, got {:?}",
            short(first)
        );
        return Err(damaged(what));
    }
    let counts = rows.next().unwrap_or_default();
    let said: Option<usize> = counts
        .split_whitespace()
        .next()
        .and_then(|count| count.parse().ok())
        .filter(|count| *count <= LAYERS_CAP);
    let Some(said) = said else {
        let what = format!(
            "expected up to {LAYERS_CAP} layers, got the counts {:?}",
            short(counts)
        );
        return Err(damaged(what));
    };
    let mut layers = Vec::new();
    for row in rows {
        let layer =
            line(row).ok_or_else(|| damaged(format!("cannot read the line {:?}", short(row))))?;
        layers.push(layer);
        if layers.len() > said {
            break;
        }
    }
    if layers.len() != said {
        let what = format!("expected {said} layers, got {} or more", layers.len());
        return Err(damaged(what));
    }
    Ok(layers)
}

/// `KIND NAME INPUTS OUTPUTS name… name… key=value…`
fn line(row: &str) -> Option<Line> {
    let mut words = row.split_whitespace();
    let (kind, name) = (words.next()?.to_owned(), words.next()?.to_owned());
    let inputs: usize = words.next()?.parse().ok()?;
    let outputs: usize = words.next()?.parse().ok()?;
    let mut names = |count: usize| -> Option<Vec<String>> {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(words.next()?.to_owned());
        }
        Some(names)
    };
    let (inputs, outputs) = (names(inputs)?, names(outputs)?);
    let mut params = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=')?;
        let key: i32 = key.parse().ok()?;
        let numbers: Option<Vec<f64>> = value
            .split(',')
            .map(|number| {
                number
                    .parse()
                    .ok()
                    .filter(|number: &f64| number.is_finite())
            })
            .collect();
        let numbers = numbers?;
        if key <= LISTS_FROM {
            // The first of a list is its length.
            let (len, list) = numbers.split_first()?;
            if *len != list.len() as f64 {
                return None;
            }
            params.push((LISTS_FROM - key, list.to_vec()));
        } else {
            params.push((key, numbers));
        }
    }
    Some(Line {
        kind,
        name,
        inputs,
        outputs,
        params,
    })
}
