//! Which device a pipeline runs on.

use std::fmt;
use std::str::FromStr;

use engine_base::Code;
use engine_cuda::{CudaError, Device, DeviceInfo, DeviceOptions, Missing, probe};

/// Variable of the environment that says it where nothing else does.
pub const DEVICE_VARIABLE: &str = "LONGTAKE_DEVICE";

/// What a person asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// A GPU where there is one that can be used, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The first NVIDIA GPU, or the one at this place of the driver's list, and nothing else.
    Cuda(Option<u32>),
}

/// No device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Words that name no device.
    #[error("cannot use device {got:?}: expected auto, cpu, cuda or cuda:N")]
    Unknown {
        /// What was given.
        got: String,
    },
    /// A place where no device is.
    #[error("cannot use device cuda:{got}: the devices that can be used are {there}")]
    Place {
        /// What was asked for.
        got: u32,
        /// Those that there are.
        there: String,
    },
    /// None can be used, or a call on it failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

impl From<Missing> for DeviceError {
    fn from(missing: Missing) -> Self {
        Self::Cuda(missing.into())
    }
}

impl DeviceError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } => Code::BadInput,
            Self::Place { .. } | Self::Cuda(CudaError::Missing(_)) => Code::NotFound,
            Self::Cuda(error) => code_of(error),
        }
    }
}

/// The kind of a failed call.
pub(crate) fn code_of(error: &CudaError) -> Code {
    match error {
        CudaError::OutOfMemory { .. } => Code::OutOfMemory,
        CudaError::Missing(_) => Code::NotFound,
        _ => Code::Internal,
    }
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown {
            got: text.chars().take(40).collect(),
        };
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            _ => {
                let place = text.strip_prefix("cuda:").and_then(|n| n.parse().ok());
                place.map(|n| Self::Cuda(Some(n))).ok_or_else(unknown)
            }
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(place)) => write!(f, "cuda:{place}"),
        }
    }
}

impl DeviceChoice {
    /// What `$LONGTAKE_DEVICE` says; [`DeviceChoice::Auto`] without it.
    ///
    /// # Errors
    /// [`DeviceError::Unknown`].
    pub fn of_environment() -> Result<Self, DeviceError> {
        match std::env::var(DEVICE_VARIABLE) {
            Ok(text) if !text.is_empty() => text.parse(),
            _ => Ok(Self::Auto),
        }
    }

    /// Whether another device may take over.
    pub(crate) fn may_fall_back(self) -> bool {
        self == Self::Auto
    }
}

/// A device that was chosen.
#[derive(Debug, Clone)]
pub(crate) enum Chosen {
    /// The CPU, and why not a GPU where one was looked for.
    Cpu { why: Option<String> },
    /// A GPU.
    Cuda(Device),
}

/// What a person is told of a device.
pub(crate) fn name_of(info: &DeviceInfo) -> String {
    format!("{} (cuda:{})", info.name, info.ordinal)
}

/// Chooses by what there is.
pub(crate) fn choose(choice: DeviceChoice) -> Result<Chosen, DeviceError> {
    let place = match choice {
        DeviceChoice::Cpu => return Ok(Chosen::Cpu { why: None }),
        DeviceChoice::Auto => None,
        DeviceChoice::Cuda(place) => place,
    };
    match open(place) {
        Ok(device) => Ok(Chosen::Cuda(device)),
        Err(error) if choice.may_fall_back() => Ok(Chosen::Cpu {
            why: Some(error.to_string()),
        }),
        Err(error) => Err(error),
    }
}

fn open(place: Option<u32>) -> Result<Device, DeviceError> {
    let devices = probe()?;
    let found = match place {
        None => devices.first(),
        Some(place) => devices
            .iter()
            .find(|info| u32::try_from(info.ordinal) == Ok(place)),
    };
    let Some(info) = found else {
        return Err(DeviceError::Place {
            got: place.unwrap_or(0),
            there: devices.iter().map(name_of).collect::<Vec<_>>().join(", "),
        });
    };
    Ok(Device::open(info, DeviceOptions::default())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_people_write_them() {
        for text in ["auto", "cpu", "cuda", "cuda:0", "cuda:17"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "gpu",
            "CUDA",
            "cuda:",
            "cuda:-1",
            "cuda:x",
            "cuda:99999999999",
            "cpu ",
        ] {
            let error = text.parse::<DeviceChoice>().unwrap_err();
            assert_eq!(error.code(), Code::BadInput);
            assert!(error.to_string().contains("cuda:N"), "{error}");
        }
    }

    #[test]
    fn the_cpu_is_there_without_looking_for_anything_else() {
        assert!(matches!(
            choose(DeviceChoice::Cpu),
            Ok(Chosen::Cpu { why: None })
        ));
    }
}
