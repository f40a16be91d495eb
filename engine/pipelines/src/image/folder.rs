//! Models in folders: `model_index.json`, and a folder for each part.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use engine_weights::{
    Adapted, Adapter, AdapterPart, AdapterUse, Checkpoint, NETWORK_PART, SECOND_TEXT_PART,
    ScaledRows, TEXT_PART,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ImageError, ImageOptions, read_json};
use crate::Tokenizer;

/// Most adapters at once.
const MOST_ADAPTERS: usize = 32;

/// A part of a model: its configuration and its weights.
pub(super) struct Part {
    pub(super) config: Value,
    pub(super) weights: Box<dyn Checkpoint>,
    /// Its `config.json`, for errors.
    pub(super) path: PathBuf,
}

impl Part {
    /// Its configuration as a family reads it.
    pub(super) fn config<T: DeserializeOwned>(&self) -> Result<T, ImageError> {
        serde_json::from_value(self.config.clone()).map_err(|error| ImageError::Config {
            reason: error.to_string(),
            path: self.path.clone(),
        })
    }
}

/// A part that comes from elsewhere than a folder of its own.
pub(super) struct GivenPart {
    name: &'static str,
    config: Value,
    weights: Option<Box<dyn Checkpoint>>,
}

impl GivenPart {
    pub(super) fn weights(name: &'static str, config: Value, weights: Box<dyn Checkpoint>) -> Self {
        Self {
            name,
            config,
            weights: Some(weights),
        }
    }

    pub(super) fn json(name: &'static str, config: Value) -> Self {
        Self {
            name,
            config,
            weights: None,
        }
    }
}

/// A model's folder while it is opened.
pub(super) struct Folder<'a> {
    path: &'a Path,
    pub(super) index: Value,
    pub(super) options: &'a ImageOptions,
    /// The family, for adapters.
    family: &'static str,
    adapters: Vec<(Adapter, f32)>,
    /// Parts of a model in one file; each is taken once.
    given: RefCell<Vec<GivenPart>>,
}

/// Opens the adapters of `options`.
pub(super) fn open_adapters(options: &ImageOptions) -> Result<Vec<(Adapter, f32)>, ImageError> {
    if options.adapters.len() > MOST_ADAPTERS {
        return Err(ImageError::Request {
            what: "the number of adapters",
            got: options.adapters.len().to_string(),
            expected: format!("at most {MOST_ADAPTERS}"),
        });
    }
    let mut adapters = Vec::new();
    for (path, weight) in &options.adapters {
        if !weight.is_finite() {
            return Err(ImageError::Request {
                what: "the weight of an adapter",
                got: weight.to_string(),
                expected: "a finite number".to_owned(),
            });
        }
        adapters.push((Adapter::open(path)?, *weight));
    }
    Ok(adapters)
}

impl<'a> Folder<'a> {
    pub(super) fn new(
        path: &'a Path,
        (index, family): (Value, &'static str),
        options: &'a ImageOptions,
    ) -> Result<Self, ImageError> {
        Ok(Self {
            path,
            index,
            options,
            family,
            adapters: open_adapters(options)?,
            given: RefCell::default(),
        })
    }

    /// The same with parts that come from elsewhere.
    pub(super) fn with(self, given: Vec<GivenPart>) -> Self {
        Self {
            given: RefCell::new(given),
            ..self
        }
    }

    /// The part that was given under `name`.
    fn given(&self, name: &str) -> Option<GivenPart> {
        let mut given = self.given.borrow_mut();
        let at = given.iter().position(|part| part.name == name)?;
        Some(given.swap_remove(at))
    }

    pub(super) fn path(&self) -> &Path {
        self.path
    }

    /// `ImageError::Config` about a part.
    pub(super) fn wrong(&self, part: &str, reason: String) -> ImageError {
        ImageError::Config {
            reason,
            path: self.path.join(part).join("config.json"),
        }
    }

    fn part_at(
        &self,
        name: &'static str,
        folder: &Path,
        adapted: Option<(AdapterPart, &[(String, String)])>,
    ) -> Result<Part, ImageError> {
        let path = folder.join("config.json");
        if !folder.is_dir()
            && let Some(given) = self.given(name)
            && let Some(weights) = given.weights
        {
            return Ok(Part {
                config: given.config,
                weights: match adapted {
                    None => weights,
                    Some(adapted) => self.adapted(weights, adapted)?,
                },
                path: self.path.to_owned(),
            });
        }
        if !folder.is_dir() || !path.is_file() {
            return Err(ImageError::MissingPart {
                part: name,
                expected: format!("{} with its weights", path.display()),
            });
        }
        let weights: Box<dyn Checkpoint> =
            Box::new(ScaledRows::new(crate::open_checkpoint(folder)?)?);
        let weights = match adapted {
            None => weights,
            Some(adapted) => self.adapted(weights, adapted)?,
        };
        Ok(Part {
            config: read_json(&path)?,
            weights,
            path,
        })
    }

    fn adapted(
        &self,
        weights: Box<dyn Checkpoint>,
        (part, aliases): (AdapterPart, &[(String, String)]),
    ) -> Result<Box<dyn Checkpoint>, ImageError> {
        if self.adapters.is_empty() {
            return Ok(weights);
        }
        let uses: Vec<AdapterUse<'_>> = self
            .adapters
            .iter()
            .map(|(adapter, weight)| AdapterUse {
                adapter,
                weight: *weight,
            })
            .collect();
        let adapted = Adapted::new(weights, &uses, (part, self.family), aliases)?;
        Ok(Box::new(adapted))
    }

    /// The network that draws, in folder `name`.
    pub(super) fn network(
        &self,
        name: &'static str,
        aliases: &[(String, String)],
    ) -> Result<Part, ImageError> {
        self.part_at(name, &self.path.join(name), Some((NETWORK_PART, aliases)))
    }

    /// The autoencoder; [`ImageOptions::vae`] stands for the folder's own.
    pub(super) fn vae(&self) -> Result<Part, ImageError> {
        let own = self.path.join("vae");
        let folder = self.options.vae.as_deref().unwrap_or(&own);
        self.part_at("vae", folder, None)
    }

    /// The text encoder; [`ImageOptions::text_encoder`] stands for the folder's own.
    pub(super) fn text_encoder(&self) -> Result<Part, ImageError> {
        let own = self.path.join("text_encoder");
        let given = self.options.text_encoder.as_deref();
        let folder = given.unwrap_or(&own);
        self.part_at("text encoder", folder, Some((TEXT_PART, &[])))
    }

    /// The second text encoder of SDXL.
    pub(super) fn second_text_encoder(&self) -> Result<Part, ImageError> {
        let folder = self.path.join("text_encoder_2");
        self.part_at(
            "second text encoder",
            &folder,
            Some((SECOND_TEXT_PART, &[])),
        )
    }

    /// Another part, where it is there.
    pub(super) fn extra(&self, name: &'static str) -> Result<Option<Part>, ImageError> {
        let folder = self.path.join(name);
        match folder.join("config.json").is_file() {
            true => Ok(Some(self.part_at(name, &folder, None)?)),
            false => Ok(None),
        }
    }

    /// `scheduler/scheduler_config.json`.
    pub(super) fn scheduler(&self) -> Result<Value, ImageError> {
        if let Some(given) = self.given("scheduler") {
            return Ok(given.config);
        }
        let path = self.path.join("scheduler").join("scheduler_config.json");
        match path.is_file() {
            true => read_json(&path),
            false => Err(ImageError::MissingPart {
                part: "scheduler",
                expected: path.display().to_string(),
            }),
        }
    }

    /// The tokenizer in the first of `names` that has one, with its `tokenizer_config.json`.
    pub(super) fn tokenizer(&self, names: &[&str]) -> Result<(Tokenizer, Value), ImageError> {
        let encoder = self.options.text_encoder.as_deref();
        let own = names.iter().map(|name| self.path.join(name));
        let given = self.options.tokenizer.as_deref().into_iter().chain(encoder);
        let folders = given.map(Path::to_owned).chain(own);
        let found = folders
            .into_iter()
            .find(|folder| folder.join("tokenizer.json").is_file());
        let Some(folder) = found else {
            let first = names.first().copied().unwrap_or("tokenizer");
            return Err(ImageError::MissingPart {
                part: "tokenizer",
                expected: self
                    .path
                    .join(first)
                    .join("tokenizer.json")
                    .display()
                    .to_string(),
            });
        };
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|source| ImageError::Io {
                what: "read the tokenizer",
                source,
                path,
            })
        };
        let config = match folder.join("tokenizer_config.json").is_file() {
            true => Some(read("tokenizer_config.json")?),
            false => None,
        };
        let tokenizer = Tokenizer::from_json(&read("tokenizer.json")?, config.as_deref())?;
        let config = config.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok((tokenizer, config.unwrap_or(Value::Null)))
    }

    /// A JSON file of the folder, where it is there.
    pub(super) fn json(&self, name: &str) -> Result<Option<Value>, ImageError> {
        let path = self.path.join(name);
        match path.is_file() {
            true => read_json(&path).map(Some),
            false => Ok(None),
        }
    }
}
