//! Weights of picture models, whatever they come as.

use std::path::{Path, PathBuf};

use engine_models::picture_tensors_of_ncnn;
use engine_weights::{
    Checkpoint, Ncnn, SafeTensors, WeightsError, open as open_weights, safetensors_bytes,
    write_safetensors,
};

use super::UpscaleError;

/// What is written about converted networks.
const ABOUT: &[(&str, &str)] = &[("format", "pt"), ("converted_from", "ncnn")];

pub(super) fn open(path: &Path) -> Result<Box<dyn Checkpoint>, UpscaleError> {
    let is_param = |path: &Path| path.extension().is_some_and(|end| end == "param");
    if !path.is_dir() {
        return if is_param(path) {
            convert(path)
        } else {
            Ok(open_weights(path)?)
        };
    }
    let io = |source| WeightsError::Io {
        doing: "list a folder",
        path: path.to_owned(),
        source,
    };
    let mut params = Vec::new();
    for entry in path.read_dir().map_err(io)? {
        let found = entry.map_err(io)?.path();
        if found.extension().is_some_and(|end| end == "safetensors") {
            return Ok(open_weights(path)?);
        }
        if is_param(&found) {
            params.push(found);
        }
    }
    match &params[..] {
        [param] => convert(param),
        _ => Err(UpscaleError::Weights(WeightsError::Folder {
            what: format!("expected one safetensors file or one ncnn network, got {params:?}"),
            path: path.to_owned(),
        })),
    }
}

/// The tensors of an ncnn network, which are written beside it where that is allowed.
fn convert(param: &Path) -> Result<Box<dyn Checkpoint>, UpscaleError> {
    let bin: PathBuf = param.with_extension("bin");
    let net = Ncnn::open(param, &bin)?;
    let tensors = picture_tensors_of_ncnn(&net)?;
    let to = param.with_extension("safetensors");
    match write_safetensors(&to, &tensors, ABOUT) {
        Ok(()) => Ok(Box::new(SafeTensors::open(&to)?)),
        Err(error) => {
            tracing::debug!("the converted network is kept in memory: {error}");
            let bytes = safetensors_bytes(&tensors, ABOUT, &to)?;
            Ok(Box::new(SafeTensors::from_bytes(bytes, &to)?))
        }
    }
}
