//! From the bytes of a file to a script, or to everything that is wrong with it.

use crate::check;
use crate::fault::Fault;
use crate::fields::{Builder, Form};
use crate::lines::ScriptLines;
use crate::script::Script;
use crate::{json, markdown};

/// Largest script file that is read.
pub const FILE_BYTES_MAX: usize = 4_000_000;

/// A script and where its parts stand in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The script.
    pub script: Script,
    /// Lines of its parts, for what is found later.
    pub lines: ScriptLines,
}

/// Read a script from the bytes of a file. `.json` is read as JSON, `.md`, `.markdown` and `.txt`
/// as Markdown; with another name the first character decides.
///
/// # Errors
/// Every fault found, up to [`crate::FAULTS_MAX`] and a count of the rest.
pub fn parse(bytes: &[u8], file_name: &str) -> Result<Parsed, Vec<Fault>> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(one(Fault {
            problem: "the script is too large".to_owned(),
            got: format!("{} bytes", bytes.len()),
            expected: format!("at most {FILE_BYTES_MAX}"),
            ..Fault::default()
        }));
    }
    let text = decode(bytes).map_err(|fault| one(*fault))?;
    let ending = file_name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "json" => parse_json(text),
        "md" | "markdown" | "txt" => parse_markdown(text),
        _ if text.trim_start().starts_with('{') => parse_json(text),
        _ => parse_markdown(text),
    }
}

/// Read the Markdown form.
///
/// # Errors
/// As [`parse`].
pub fn parse_markdown(text: &str) -> Result<Parsed, Vec<Fault>> {
    let mut builder = Builder::new(Form::Markdown);
    let node = markdown::read(text, &mut builder.faults);
    finish(builder, &node)
}

/// Read the JSON form.
///
/// # Errors
/// As [`parse`]; text that is not JSON gives the one fault that ended the reading.
pub fn parse_json(text: &str) -> Result<Parsed, Vec<Fault>> {
    let node = json::read(text).map_err(|fault| one(*fault))?;
    finish(Builder::new(Form::Json), &node)
}

fn finish(mut builder: Builder, node: &crate::tree::Node) -> Result<Parsed, Vec<Fault>> {
    let script = builder.script(node);
    let Builder {
        mut faults, lines, ..
    } = builder;
    check::check(&script, &lines, &mut faults);
    if faults.is_empty() {
        Ok(Parsed { script, lines })
    } else {
        Err(faults.finish())
    }
}

fn one(fault: Fault) -> Vec<Fault> {
    vec![fault]
}

/// UTF-8 text without a byte order mark.
fn decode(bytes: &[u8]) -> Result<&str, Box<Fault>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(Box::new(Fault {
            problem: "cannot read the script".to_owned(),
            got: "UTF-16".to_owned(),
            expected: "UTF-8 text; save it as UTF-8".to_owned(),
            ..Fault::default()
        }));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good = &bytes[..error.valid_up_to()];
        let before = String::from_utf8_lossy(good);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Box::new(Fault {
            line: u32::try_from(line).ok(),
            column: u32::try_from(column).ok(),
            problem: "cannot read the script".to_owned(),
            got: format!(
                "byte 0x{:02x}",
                bytes.get(error.valid_up_to()).unwrap_or(&0)
            ),
            expected: "UTF-8 text; save it as UTF-8".to_owned(),
            ..Fault::default()
        })
    })
}
