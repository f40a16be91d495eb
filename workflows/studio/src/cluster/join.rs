//! Lines that let in, and where they lie.

use std::io::Write as _;
use std::path::Path;

use engine_base::Code;
use flow_cluster::JoinLine;

use crate::error::StudioError;

/// File with the owner's line in a cluster's folder.
pub(super) const OWNER_LINE: &str = "owner.line";
/// File with any worker's line in a cluster's folder.
pub(super) const WORKER_LINE: &str = "worker.line";

/// Whose line is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An owner's.
    Owner,
    /// A worker's.
    Worker,
}

impl Kind {
    const fn file(self) -> &'static str {
        match self {
            Self::Owner => OWNER_LINE,
            Self::Worker => WORKER_LINE,
        }
    }
}

/// The line that `text` is, that is in the file `text`, or in the cluster's folder `text`.
///
/// # Errors
/// It is none; a worker's line where an owner's is needed.
pub fn line_of(text: &str, kind: Kind) -> Result<JoinLine, StudioError> {
    let text = text.trim();
    let path = Path::new(text);
    let path = if path.is_dir() {
        path.join(kind.file())
    } else {
        path.to_owned()
    };
    let line = if path.is_file() {
        std::fs::read_to_string(&path)
            .map_err(|error| StudioError::io("read the line", &path, &error))?
    } else {
        text.to_owned()
    };
    let line: JoinLine = line
        .parse()
        .map_err(|error| StudioError::new(Code::BadInput, format!("{error}")))?;
    if kind == Kind::Owner && !line.token.starts_with("owner:") {
        let message = "this line joins workers; films need the owner's: the folder of `longtake \
                       cluster up`, or the file owner.line in it";
        return Err(StudioError::new(Code::NotPermitted, message));
    }
    Ok(line)
}

/// Write a line into a file that only this user may read.
pub(crate) fn write_line(path: &Path, line: &str) -> Result<(), StudioError> {
    let failed = |error: std::io::Error| StudioError::io("write the line", path, &error);
    let partial = path.with_extension("partial");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&partial).map_err(failed)?;
    writeln!(file, "{line}").map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)
}
