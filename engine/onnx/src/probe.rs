//! Whether a file can be loaded as a library without harm, told before the system tries: a library
//! that was cut short ends the process (bus error) as soon as its missing pages are touched.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Sizes of the file header and of one program header (System V ABI, ELF-64).
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;

/// A segment that is mapped into memory.
const LOADED: u32 = 1;

/// More segments than this has no library.
const SEGMENTS_LIMIT: u64 = 512;

/// Number of this machine's kind in ELF's `e_machine`; `None` where it is not checked.
const fn this_machine() -> Option<u16> {
    if cfg!(target_arch = "x86_64") {
        Some(62)
    } else if cfg!(target_arch = "aarch64") {
        Some(183)
    } else {
        None
    }
}

/// Why the file at `path` cannot be loaded, if that can be told.
pub(crate) fn fault(path: &Path) -> io::Result<Option<String>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut header = Vec::new();
    (&mut file)
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut header)?;
    // 64 bits, little end first.
    if header.len() < HEADER_BYTES || !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(Some(
            "it is no library of this system (ELF, 64 bits)".into(),
        ));
    }
    let field = |at: usize, bytes: usize| number(&header, at, bytes);
    if let Some(machine) = this_machine()
        && field(18, 2) != u64::from(machine)
    {
        let got = field(18, 2);
        let reason =
            format!("it is for another kind of machine: expected ELF's {machine}, got {got}");
        return Ok(Some(reason));
    }
    let (begin, size, count) = (field(32, 8), field(54, 2), field(56, 2));
    let cut = || Ok(Some(format!("it was cut short: it has {length} bytes")));
    if size != SEGMENT_BYTES as u64 || count == 0 || count > SEGMENTS_LIMIT {
        return Ok(Some(format!("it has {count} segments of {size} bytes")));
    }
    let table_bytes = count * size;
    if begin
        .checked_add(table_bytes)
        .is_none_or(|end| end > length)
    {
        return cut();
    }
    let mut table = Vec::new();
    file.seek(SeekFrom::Start(begin))?;
    file.take(table_bytes).read_to_end(&mut table)?;
    for segment in table.chunks_exact(SEGMENT_BYTES) {
        let (offset, bytes) = (number(segment, 8, 8), number(segment, 32, 8));
        let beyond = offset.checked_add(bytes).is_none_or(|end| end > length);
        if number(segment, 0, 4) == u64::from(LOADED) && beyond {
            return cut();
        }
    }
    Ok(None)
}

/// The number of `bytes` bytes at `at`, little end first; 0 beyond the end.
fn number(from: &[u8], at: usize, bytes: usize) -> u64 {
    let field = from.get(at..at + bytes).unwrap_or_default();
    field
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
