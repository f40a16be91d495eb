//! ncnn networks: a text of layers (`.param`) and their weights in the same order (`.bin`).
//!
//! Read after ncnn's `net.cpp` and `modelbin.cpp`. Only layers of picture networks are known: of a
//! layer that is not, nobody could say how many weights it takes from the file.

mod text;

use std::path::Path;

use engine_tensor::{Bytes, DType};

use self::text::{Line, lines};
use crate::table::short;
use crate::{TensorRef, WeightsError};

/// Marks weights of 16 bits.
const TAG_F16: u32 = 0x0130_6b47;
/// Marks weights of 32 bits.
const TAG_F32: u32 = 0;

/// A layer of an ncnn network.
#[derive(Debug, Clone)]
pub struct NcnnLayer {
    /// What it does, such as `Convolution`.
    pub kind: String,
    /// What the network calls it.
    pub name: String,
    /// Names of what it reads.
    pub inputs: Vec<String>,
    /// Names of what it gives.
    pub outputs: Vec<String>,
    params: Vec<(i32, Vec<f64>)>,
    /// A convolution's kernel `[outputs, channels, height, width]` and, where it has one, its bias
    /// `[outputs]`; a PReLU's slopes `[channels]`.
    pub weights: Vec<TensorRef>,
}

impl NcnnLayer {
    /// The parameter called `key`, or the first of its list.
    pub fn number(&self, key: i32) -> Option<f64> {
        self.list(key).and_then(|list| list.first().copied())
    }

    /// All values of the parameter called `key`.
    pub fn list(&self, key: i32) -> Option<&[f64]> {
        let found = self.params.iter().find(|(known, _)| *known == key)?;
        Some(&found.1)
    }
}

/// A network as ncnn stores it.
#[derive(Debug, Clone)]
pub struct Ncnn {
    /// Its layers in the order in which they run.
    pub layers: Vec<NcnnLayer>,
}

impl Ncnn {
    /// Read the files at these paths.
    ///
    /// # Errors
    /// As [`Ncnn::from_bytes`], and [`WeightsError::Io`].
    pub fn open(param: &Path, bin: &Path) -> Result<Self, WeightsError> {
        let text = crate::mapped::map(param)?;
        Self::from_bytes(&text, crate::mapped::map(bin)?, param)
    }

    /// Read a network from memory; `path` is only named in errors.
    ///
    /// # Errors
    /// [`WeightsError::Damaged`] for text that is no network or weights that are not as long as it
    /// says; [`WeightsError::UnsupportedType`] for layers and weights that are not read;
    /// [`WeightsError::CutShort`]; [`WeightsError::OverCap`].
    pub fn from_bytes(
        text: &[u8],
        weights: impl Into<Bytes>,
        path: &Path,
    ) -> Result<Self, WeightsError> {
        let mut reader = Reader {
            bytes: weights.into(),
            at: 0,
            path,
        };
        let mut layers = Vec::new();
        for line in lines(text, path)? {
            let weights = reader.weights(&line)?;
            layers.push(NcnnLayer {
                kind: line.kind,
                name: line.name,
                inputs: line.inputs,
                outputs: line.outputs,
                params: line.params,
                weights,
            });
        }
        let left = reader.bytes.len() - reader.at;
        if left > 0 {
            let what = format!("{left} bytes of weights follow those of the last layer");
            return Err(WeightsError::damaged(what, path));
        }
        Ok(Self { layers })
    }
}

struct Reader<'a> {
    bytes: Bytes,
    at: usize,
    path: &'a Path,
}

impl Reader<'_> {
    fn take(&mut self, len: usize, name: &str) -> Result<Bytes, WeightsError> {
        let end = self.at.checked_add(len);
        let taken = end.and_then(|end| self.bytes.slice(self.at..end));
        let taken = taken.ok_or_else(|| WeightsError::CutShort {
            what: format!("layer {:?}", short(name)),
            expected_bytes: (self.at as u64).saturating_add(len as u64),
            got_bytes: self.bytes.len() as u64,
            path: self.path.to_owned(),
        })?;
        self.at += len;
        Ok(taken)
    }

    fn floats(&mut self, count: usize, name: &str) -> Result<TensorRef, WeightsError> {
        let bytes = self.take(count.saturating_mul(4), name)?;
        self.tensor(DType::F32, vec![count], bytes, name)
    }

    fn tensor(
        &self,
        dtype: DType,
        shape: Vec<usize>,
        bytes: Bytes,
        name: &str,
    ) -> Result<TensorRef, WeightsError> {
        TensorRef::new(dtype, shape, bytes).ok_or_else(|| {
            let what = format!(
                "the weights of layer {:?} do not fit its shape",
                short(name)
            );
            WeightsError::damaged(what, self.path)
        })
    }

    /// The weights of one layer, which begin where the last one's ended.
    fn weights(&mut self, line: &Line) -> Result<Vec<TensorRef>, WeightsError> {
        match line.kind.as_str() {
            "Convolution" => self.convolution(line),
            "PReLU" => {
                let slopes = line.count(0, None, self.path)?;
                Ok(vec![self.floats(slopes, &line.name)?])
            }
            "Input" | "Split" | "Concat" | "PixelShuffle" | "Interp" | "BinaryOp" | "Eltwise"
            | "ReLU" => Ok(Vec::new()),
            other => Err(WeightsError::UnsupportedType {
                name: short(&line.name).to_owned(),
                got: format!("{:?}, a layer of ncnn", short(other)),
                path: self.path.to_owned(),
            }),
        }
    }

    fn convolution(&mut self, line: &Line) -> Result<Vec<TensorRef>, WeightsError> {
        let outputs = line.count(0, None, self.path)?;
        let width = line.count(1, None, self.path)?;
        let height = line.count(11, Some(width), self.path)?;
        let count = line.count(6, None, self.path)?;
        let has_bias = line.count(5, Some(0), self.path)? != 0;
        let taps = outputs
            .checked_mul(width)
            .and_then(|product| product.checked_mul(height))
            .filter(|taps| *taps > 0 && count > 0 && count.is_multiple_of(*taps));
        let Some(taps) = taps else {
            let what = format!(
                "layer {:?} says {count} weights for {outputs} outputs of {width} x {height}",
                short(&line.name)
            );
            return Err(WeightsError::damaged(what, self.path));
        };
        let shape = vec![outputs, count / taps, height, width];
        let tag = self.take(4, &line.name)?;
        let tag = tag
            .first_chunk::<4>()
            .map_or(1, |tag| u32::from_le_bytes(*tag));
        let (dtype, len) = match tag {
            TAG_F16 => (DType::F16, count.saturating_mul(2)),
            TAG_F32 => (DType::F32, count.saturating_mul(4)),
            other => {
                return Err(WeightsError::UnsupportedType {
                    name: short(&line.name).to_owned(),
                    got: format!("{other:#010x}, expected 16 or 32 bit floats"),
                    path: self.path.to_owned(),
                });
            }
        };
        let bytes = self.take(len, &line.name)?;
        self.take(len.next_multiple_of(4) - len, &line.name)?;
        let mut weights = vec![self.tensor(dtype, shape, bytes, &line.name)?];
        if has_bias {
            weights.push(self.floats(outputs, &line.name)?);
        }
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "7767517\n3 3\nInput data 0 1 data\n\
        Convolution c 1 1 data out 0=1 1=3 4=1 5=1 6=9\nPReLU p 1 1 out end 0=1\n";

    fn weights() -> Vec<u8> {
        let mut bytes = TAG_F16.to_le_bytes().to_vec();
        for at in 0..9 {
            bytes.extend(half::f16::from_f32(at as f32).to_le_bytes());
        }
        bytes.extend([0; 2]);
        bytes.extend(0.5f32.to_le_bytes());
        bytes.extend(0.25f32.to_le_bytes());
        bytes
    }

    fn read(text: &str, bytes: Vec<u8>) -> Result<Ncnn, WeightsError> {
        Ncnn::from_bytes(text.as_bytes(), bytes, Path::new("n.param"))
    }

    #[test]
    fn layers_take_their_weights_in_order() {
        let net = read(TEXT, weights()).unwrap();
        let conv = &net.layers[1];
        assert_eq!(conv.weights[0].shape, [1, 1, 3, 3]);
        assert_eq!(conv.weights[0].to_f32().unwrap()[8], 8.0);
        assert_eq!(conv.weights[1].to_f32().unwrap(), [0.5]);
        assert_eq!(net.layers[2].weights[0].to_f32().unwrap(), [0.25]);
        assert_eq!(conv.number(4), Some(1.0));
        assert_eq!(conv.inputs, ["data"]);
    }

    #[test]
    fn what_is_cut_long_or_strange_is_refused_with_the_reason() {
        let all = weights();
        for len in 0..all.len() {
            assert!(read(TEXT, all[..len].to_vec()).is_err(), "{len} bytes");
        }
        let mut long = all.clone();
        long.push(0);
        let cases: Vec<(String, Vec<u8>, &str)> = vec![
            (TEXT.into(), long, "follow those of the last layer"),
            (TEXT.replace("7767517", "1"), all.clone(), "7767517"),
            (
                TEXT.replace("PReLU", "Deconvolution"),
                all.clone(),
                "Deconvolution",
            ),
            (TEXT.replace("6=9", "6=10"), all.clone(), "10 weights"),
            (TEXT.replace("0=1 1=3", "0=0 1=3"), all.clone(), "0 outputs"),
            (
                TEXT.replace("6=9", "6=9000000000000000"),
                all.clone(),
                "18000000000000004",
            ),
            (TEXT.replace("6=9", "6=x"), all.clone(), "6=x"),
            (TEXT.replace("3 3\n", "4 3\n"), all.clone(), "4"),
            (
                TEXT.replace("3 3\n", "99999999999 3\n"),
                all.clone(),
                "99999999999",
            ),
            (
                TEXT.replace("1 1 data out", "9 1 data out"),
                all.clone(),
                "Convolution c 9",
            ),
            ("\u{0}\u{1}".into(), all.clone(), "7767517"),
            (String::new(), all.clone(), "7767517"),
        ];
        for (text, bytes, expected) in cases {
            let error = read(&text, bytes).unwrap_err().to_string();
            assert!(
                error.contains(expected),
                "{error:?} does not say {expected:?}"
            );
        }
    }

    #[test]
    fn changed_bytes_never_panic_and_take_no_more_than_there_is() {
        let mut state = 7u64;
        let mut next = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below.max(1)
        };
        let mut read_well = 0;
        for _ in 0..5_000 {
            let (mut text, mut bytes) = (TEXT.as_bytes().to_vec(), weights());
            for _ in 0..=next(3) {
                let at = next(text.len());
                text[at] = b"0123456789=-, .\nxe"[next(18)];
                let at = next(bytes.len());
                bytes[at] ^= 1 << next(8);
            }
            let count = bytes.len();
            if let Ok(net) = Ncnn::from_bytes(&text, bytes, Path::new("n.param")) {
                let tensors = net.layers.iter().flat_map(|layer| &layer.weights);
                assert!(tensors.map(|tensor| tensor.bytes.len()).sum::<usize>() <= count);
                read_well += 1;
            }
        }
        assert!(
            (50..4_900).contains(&read_well),
            "{read_well} of 5000 were read"
        );
    }
}
