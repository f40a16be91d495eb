//! The library, once per process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ort::LoadDynamicError;
use ort::environment::Environment;
use ort::logging::LogLevel;

use crate::error::OnnxError;
use crate::probe;

/// The library in use: where it is, and its environment once that could be made. The library can be
/// loaded once, so its path stays even when the environment fails.
struct Loaded {
    path: PathBuf,
    environment: Option<Environment>,
}

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

/// A loaded ONNX Runtime. Clones share it.
#[derive(Clone)]
pub struct OnnxRuntime {
    pub(crate) environment: Environment,
    path: PathBuf,
}

impl std::fmt::Debug for OnnxRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OnnxRuntime").field(&self.path).finish()
    }
}

impl OnnxRuntime {
    /// Load the library at `path`; a later call with the same file gives the one in use.
    ///
    /// Loading a library runs its start-up code: `path` must be a file that is trusted.
    ///
    /// # Errors
    /// [`OnnxError::MissingRuntime`], [`OnnxError::BadRuntime`] for a file that is no library or
    /// one of another kind, [`OnnxError::RuntimeVersion`] for one that is too old,
    /// [`OnnxError::AnotherRuntime`] when this process already uses another.
    pub fn open(path: &Path) -> Result<Self, OnnxError> {
        let missing = |reason: String| OnnxError::MissingRuntime {
            reason,
            path: path.to_owned(),
        };
        let real = path
            .canonicalize()
            .map_err(|error| missing(error.to_string()))?;
        // Opening a pipe or a device would wait for ever.
        if !real.is_file() {
            return Err(missing("expected a file".into()));
        }
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = loaded.as_ref() {
            if loaded.path != real {
                return Err(OnnxError::AnotherRuntime {
                    loaded: loaded.path.clone(),
                    path: real,
                });
            }
            if let Some(environment) = &loaded.environment {
                let environment = environment.clone();
                return Ok(Self {
                    environment,
                    path: real,
                });
            }
        }
        let bad = |reason: String| OnnxError::BadRuntime {
            reason,
            path: real.clone(),
        };
        let fault = probe::fault(&real).map_err(|error| bad(error.to_string()))?;
        if let Some(fault) = fault {
            return Err(bad(fault));
        }
        // The binding asserts what a library of another kind need not keep.
        let builder = catch_unwind(|| ort::init_from(&real))
            .map_err(|_panic| bad("it has the entry point but gives no interface".into()))?
            .map_err(|error| load_error(&error, &real))?;
        let loaded = loaded.insert(Loaded {
            path: real.clone(),
            environment: None,
        });
        let builder = builder.with_name("longtake").with_telemetry(false);
        let environment = catch_unwind(AssertUnwindSafe(|| {
            let environment = builder.build()?;
            environment.set_log_level(LogLevel::Warning);
            Ok::<_, ort::Error>(environment)
        }))
        .map_err(|_panic| bad("it gives no interface of the version that it names".into()))?
        .map_err(|error| bad(error.to_string()))?;
        loaded.environment = Some(environment.clone());
        Ok(Self {
            environment,
            path: real,
        })
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn load_error(error: &LoadDynamicError, path: &Path) -> OnnxError {
    let path = path.to_owned();
    match error {
        LoadDynamicError::BadVersion { version_str, .. } => OnnxError::RuntimeVersion {
            found: version_str.clone(),
            needed: format!("1.{}", ort::MINOR_VERSION),
            path,
        },
        LoadDynamicError::Dlopen { error, .. } => OnnxError::BadRuntime {
            reason: error.to_string(),
            path,
        },
        LoadDynamicError::MissingApi { .. } => OnnxError::BadRuntime {
            reason: "it is a library of another kind: expected the entry point OrtGetApiBase"
                .into(),
            path,
        },
        LoadDynamicError::InvalidVersionString => OnnxError::BadRuntime {
            reason: "its version is no text".into(),
            path,
        },
    }
}
