//! Whether there is a device that we can use.

use cudarc::driver::{result, sys};

use crate::Missing;
use crate::driver::said;

/// Least CUDA version a driver has to offer.
const NEEDS: (i32, i32) = (12, 4);

/// A device of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Place in the driver's list.
    pub ordinal: i32,
    /// Its name.
    pub name: String,
    /// Compute capability.
    pub capability: (i32, i32),
    /// Memory in bytes.
    pub memory_bytes: usize,
    /// Multiprocessors.
    pub processors: u32,
    /// Most shared memory of a block, in bytes.
    pub shared_bytes: usize,
    /// Whether its memory is the host's too.
    pub unified: bool,
    /// CUDA version that the driver offers.
    pub driver: (i32, i32),
}

impl DeviceInfo {
    /// Target that kernels are compiled for: instructions of Hopper alone need its own name.
    pub fn arch(&self) -> String {
        match self.capability {
            (9, 0) => "sm_90a".to_owned(),
            (major, minor) => format!("sm_{major}{minor}"),
        }
    }
}

fn version(number: i32) -> (i32, i32) {
    (number / 1000, number % 1000 / 10)
}

/// `Ok` when a driver of this version will do.
fn new_enough(number: i32) -> Result<(i32, i32), Missing> {
    let got = version(number);
    if got < NEEDS {
        return Err(Missing::DriverTooOld {
            got,
            expected: NEEDS,
        });
    }
    Ok(got)
}

/// The devices that we can use. Loads the driver's library on first use; never panics for what is not there.
///
/// # Errors
/// [`Missing`], which says what is not there.
pub fn probe() -> Result<Vec<DeviceInfo>, Missing> {
    // SAFETY: opens a library by its well-known name.
    if !unsafe { sys::is_culib_present() } {
        return Err(Missing::Driver);
    }
    let gone = |error| Missing::Device {
        reason: said(error),
    };
    let mut number = 0;
    // SAFETY: writes one number.
    unsafe { sys::cuDriverGetVersion(&raw mut number) }
        .result()
        .map_err(gone)?;
    let driver = new_enough(number)?;
    result::init().map_err(gone)?;
    let count = result::device::get_count().map_err(gone)?;
    let mut devices = Vec::new();
    let mut too_old = None;
    for ordinal in 0..count {
        let info = read(ordinal, driver).map_err(gone)?;
        if info.capability >= (9, 0) {
            devices.push(info);
        } else {
            too_old = Some(Missing::Architecture {
                device: info.name,
                got: info.capability,
            });
        }
    }
    if devices.is_empty() {
        return Err(too_old.unwrap_or_else(|| Missing::Device {
            reason: "it lists none".to_owned(),
        }));
    }
    Ok(devices)
}

fn read(ordinal: i32, driver: (i32, i32)) -> Result<DeviceInfo, result::DriverError> {
    use sys::CUdevice_attribute as A;
    let device = result::device::get(ordinal)?;
    // SAFETY: the device was just given by the driver.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    let count = |which| attribute(which).map(|n| usize::try_from(n).unwrap_or(0));
    Ok(DeviceInfo {
        ordinal,
        name: result::device::get_name(device)?,
        capability: (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device) }?,
        processors: u32::try_from(attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?)
            .unwrap_or(1),
        shared_bytes: count(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        unified: attribute(A::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0,
        driver,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_drivers_are_refused_with_both_versions() {
        assert_eq!(new_enough(13000), Ok((13, 0)));
        assert_eq!(new_enough(12040), Ok((12, 4)));
        let error = new_enough(11080).unwrap_err().to_string();
        assert!(error.contains("11.8") && error.contains("12.4"), "{error}");
    }

    #[test]
    fn a_machine_without_a_driver_is_told_so() {
        // On a machine with a device this lists it; without one the reason is typed and says what is missing.
        match probe() {
            Ok(devices) => assert!(!devices.is_empty()),
            Err(missing) => assert!(missing.to_string().contains("CUDA"), "{missing}"),
        }
    }

    #[test]
    fn targets_name_hopper_apart() {
        let mut info = DeviceInfo {
            ordinal: 0,
            name: String::new(),
            capability: (9, 0),
            memory_bytes: 0,
            processors: 1,
            shared_bytes: 0,
            unified: false,
            driver: (13, 0),
        };
        assert_eq!(info.arch(), "sm_90a");
        info.capability = (12, 1);
        assert_eq!(info.arch(), "sm_121");
    }
}
