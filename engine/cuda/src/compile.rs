//! The run-time compiler: kernel source to machine code of one architecture.

use std::ffi::CString;

use cudarc::nvrtc::{result, sys};

use crate::kernels::Source;
use crate::{CudaError, Missing};

/// Machine code and what the compiler said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// ELF image for the architecture.
    pub cubin: Vec<u8>,
    /// The compiler's log: with `report` each kernel's registers and spills.
    pub log: String,
}

/// Major and minor version of the compiler on this machine.
///
/// # Errors
/// [`Missing::Compiler`].
pub fn compiler_version() -> Result<(i32, i32), Missing> {
    // SAFETY: opens a library by its well-known name.
    if !unsafe { sys::is_culib_present() } {
        return Err(Missing::Compiler);
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two numbers.
    unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) }
        .result()
        .map_err(|_unasked| Missing::Compiler)?;
    Ok((major, minor))
}

/// Destroys its program.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by us, destroyed once.
        if let Err(error) = unsafe { sys::nvrtcDestroyProgram(&raw mut self.0).result() } {
            tracing::debug!("a program was not destroyed: {error:?}");
        }
    }
}

impl Program {
    fn log(&self) -> String {
        let mut len = 0;
        // SAFETY: writes one number.
        let asked = unsafe { sys::nvrtcGetProgramLogSize(self.0, &raw mut len) }.result();
        if asked.is_err() || len == 0 {
            return String::new();
        }
        let mut log = vec![0u8; len];
        // SAFETY: `log` has the length asked for.
        let read = unsafe { sys::nvrtcGetProgramLog(self.0, log.as_mut_ptr().cast()) }.result();
        if read.is_err() {
            return String::new();
        }
        log.truncate(log.iter().position(|byte| *byte == 0).unwrap_or(len));
        String::from_utf8_lossy(&log).into_owned()
    }
}

/// Compiles `source` for `arch`, such as `sm_90a`; needs no device. With `report` the log tells what each
/// kernel takes.
///
/// # Errors
/// [`Missing::Compiler`], and `Compile` with the log.
pub fn compile(source: &Source, arch: &str, report: bool) -> Result<Compiled, CudaError> {
    compiler_version()?;
    let refuse = |log: String| CudaError::Compile {
        source_name: source.name,
        arch: arch.to_owned(),
        log,
    };
    let text = CString::new(source.full_text()).map_err(|error| refuse(error.to_string()))?;
    let program = result::create_program(&text, None)
        .map(Program)
        .map_err(|error| refuse(format!("{error:?}")))?;
    let mut options = vec![
        format!("--gpu-architecture={arch}"),
        "--std=c++17".to_owned(),
    ];
    if report {
        options.push("--ptxas-options=-v".to_owned());
    }
    // SAFETY: the program was made above and lives.
    if let Err(error) = unsafe { result::compile_program(program.0, &options) } {
        let log = program.log();
        return Err(refuse(if log.is_empty() {
            format!("{error:?}")
        } else {
            log
        }));
    }
    let log = program.log();
    let mut len = 0;
    // SAFETY: writes one number.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &raw mut len) }
        .result()
        .map_err(|error| refuse(format!("{error:?}")))?;
    let mut cubin = vec![0u8; len];
    // SAFETY: `cubin` has the length asked for.
    unsafe { sys::nvrtcGetCUBIN(program.0, cubin.as_mut_ptr().cast()) }
        .result()
        .map_err(|error| refuse(format!("{error:?}")))?;
    if cubin.is_empty() {
        return Err(refuse("the compiler gave no machine code".to_owned()));
    }
    Ok(Compiled { cubin, log })
}
