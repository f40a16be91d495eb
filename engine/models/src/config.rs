//! What a checkpoint says of itself: `config.json` or GGUF keys, read alike.

use engine_tensor::ops::RopeScaling;
use engine_weights::{Checkpoint, CheckpointKind, Metadata};
use serde_json::Value;

use crate::LoadError;

/// The configuration of a checkpoint.
pub(crate) enum Config<'a> {
    /// `config.json` beside safetensors.
    Json(Value),
    /// Keys of a GGUF file, with the prefix of its architecture.
    Gguf {
        keys: &'a Metadata,
        architecture: &'a str,
    },
}

/// A key under both of its names: of `config.json`, and of GGUF without the architecture.
pub(crate) type Key = (&'static str, &'static str);

fn wrong(key: &str, got: &impl ToString, expected: &str) -> LoadError {
    LoadError::Config {
        key: key.to_owned(),
        got: got.to_string(),
        expected: expected.to_owned(),
    }
}

impl<'a> Config<'a> {
    pub(crate) fn of(checkpoint: &'a dyn Checkpoint) -> Result<Self, LoadError> {
        let keys = checkpoint.metadata();
        if checkpoint.kind() == CheckpointKind::Gguf {
            let architecture = keys.text("general.architecture")?;
            let architecture = architecture.ok_or(LoadError::NoConfig {
                expected: "the key \"general.architecture\"",
            })?;
            return Ok(Self::Gguf { keys, architecture });
        }
        let text = keys.read_side_file("config.json")?;
        let text = text.ok_or(LoadError::NoConfig {
            expected: "a file \"config.json\" beside the weights",
        })?;
        serde_json::from_slice(&text)
            .map(Self::Json)
            .map_err(|error| wrong("config.json", &error, "JSON"))
    }

    /// `model_type` or `general.architecture`; empty when there is none.
    pub(crate) fn family_name(&self) -> &str {
        match self {
            Self::Json(json) => json["model_type"].as_str().unwrap_or_default(),
            Self::Gguf { architecture, .. } => architecture,
        }
    }

    pub(crate) fn is_gguf(&self) -> bool {
        matches!(self, Self::Gguf { .. })
    }

    /// A JSON value by a path such as `rope_parameters.factor`; `null` counts as missing.
    fn json(&self, path: &str) -> Option<&Value> {
        let Self::Json(json) = self else {
            return None;
        };
        let found = path.split('.').try_fold(json, |at, key| at.get(key))?;
        (!found.is_null()).then_some(found)
    }

    /// A whole number from 1.
    pub(crate) fn count(&self, key: Key) -> Result<Option<usize>, LoadError> {
        const EXPECTED: &str = "a whole number from 1 to 2^32";
        let (name, number, got) = match self {
            Self::Json(_) => match self.json(key.0) {
                None => return Ok(None),
                Some(value) => (key.0.to_owned(), value.as_u64(), value.to_string()),
            },
            Self::Gguf { keys, architecture } => {
                let name = format!("{architecture}.{}", key.1);
                match keys.unsigned(&name)? {
                    None => return Ok(None),
                    Some(number) => (name, Some(number), number.to_string()),
                }
            }
        };
        let number = number.filter(|number| (1..=1 << 32).contains(number));
        match number.and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(&name, &got, EXPECTED)),
        }
    }

    /// A whole number from 1 that must be there.
    pub(crate) fn required(&self, key: Key) -> Result<usize, LoadError> {
        let name = match self {
            Self::Json(_) => key.0.to_owned(),
            Self::Gguf { architecture, .. } => format!("{architecture}.{}", key.1),
        };
        self.count(key)?
            .ok_or_else(|| wrong(&name, &"missing", "a whole number from 1"))
    }

    /// A finite number over 0.
    pub(crate) fn number(&self, key: Key) -> Result<Option<f64>, LoadError> {
        let (name, number, got) = match self {
            Self::Json(_) => match self.json(key.0) {
                None => return Ok(None),
                Some(value) => (key.0.to_owned(), value.as_f64(), value.to_string()),
            },
            Self::Gguf { keys, architecture } => {
                let name = format!("{architecture}.{}", key.1);
                match keys.float(&name)? {
                    None => return Ok(None),
                    Some(number) => (name, Some(number), number.to_string()),
                }
            }
        };
        match number.filter(|number| number.is_finite() && *number > 0.0) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(&name, &got, "a finite number over 0")),
        }
    }

    /// A text.
    pub(crate) fn text(&self, key: Key) -> Result<Option<&str>, LoadError> {
        match self {
            Self::Json(_) => match self.json(key.0) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => Err(wrong(key.0, other, "a text")),
            },
            Self::Gguf { keys, architecture } => {
                Ok(keys.text(&format!("{architecture}.{}", key.1))?)
            }
        }
    }

    /// True or false in `config.json`; `None` in GGUF.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, LoadError> {
        match self.json(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong(key, other, "true or false")),
        }
    }

    /// A list of texts in `config.json`.
    pub(crate) fn texts(&self, key: &str) -> Option<Vec<&str>> {
        let list = self.json(key)?.as_array()?;
        Some(
            list.iter()
                .map(|text| text.as_str().unwrap_or(""))
                .collect(),
        )
    }

    /// Base and scaling of rotary positions.
    pub(crate) fn rope(&self, context: usize) -> Result<(f64, RopeScaling), LoadError> {
        // transformers 5 writes `rope_parameters`, earlier ones `rope_theta` and `rope_scaling`.
        let folder = if self.json("rope_parameters").is_some() {
            "rope_parameters"
        } else {
            "rope_scaling"
        };
        macro_rules! key {
            ($name:literal, $gguf:literal) => {
                if folder == "rope_parameters" {
                    (concat!("rope_parameters.", $name), $gguf)
                } else {
                    (concat!("rope_scaling.", $name), $gguf)
                }
            };
        }
        let base = self.number(key!("rope_theta", "rope.freq_base"))?;
        let base = match base {
            Some(base) => base,
            None => self
                .number(("rope_theta", "rope.freq_base"))?
                .unwrap_or(1e4),
        };
        let kind = match self.text(key!("rope_type", "rope.scaling.type"))? {
            Some(kind) => kind,
            None => self
                .text(key!("type", "rope.scaling.type"))?
                .unwrap_or("none"),
        };
        let needed = |key: Key| {
            self.number(key)?
                .ok_or_else(|| wrong(key.0, &"missing", "a number over 0"))
        };
        let factor = key!("factor", "rope.scaling.factor");
        let original = key!(
            "original_max_position_embeddings",
            "rope.scaling.original_context_length"
        );
        let original = self.number(original)?.unwrap_or(context as f64);
        let scaling = match kind {
            "none" | "default" => RopeScaling::None,
            "linear" => RopeScaling::Linear {
                factor: needed(factor)?,
            },
            "llama3" => RopeScaling::Llama3 {
                factor: needed(factor)?,
                low: needed(key!("low_freq_factor", "rope.scaling.low_freq_factor"))?,
                high: needed(key!("high_freq_factor", "rope.scaling.high_freq_factor"))?,
                original_tokens: original,
            },
            "yarn" => RopeScaling::Yarn {
                factor: needed(factor)?,
                original_tokens: original,
                fast: self
                    .number(key!("beta_fast", "rope.scaling.yarn_beta_fast"))?
                    .unwrap_or(32.0),
                slow: self
                    .number(key!("beta_slow", "rope.scaling.yarn_beta_slow"))?
                    .unwrap_or(1.0),
            },
            other => {
                let expected = "one of default, linear, llama3, yarn";
                return Err(wrong("rope type", &format!("{other:?}"), expected));
            }
        };
        Ok((base, scaling))
    }
}
