//! Why a film could not be made, as one error.

use engine_base::Code;
use flow_executor::RunReport;

use crate::error::StudioError;

/// Failures as sentences, one for each node.
pub(crate) fn failures(report: &RunReport) -> Vec<String> {
    let failed = report
        .errors
        .iter()
        .map(|error| format!("{}: {}", error.display, error.message));
    let problems = report.problems.iter().map(ToString::to_string);
    problems.chain(failed).collect()
}

/// The failure that weighs most: what the machine refuses stops everything else too, and a
/// person mends it first.
pub(crate) fn worst(report: &RunReport) -> Option<Code> {
    let codes = report.errors.iter().map(|error| error.code);
    let problems = report.problems.iter().map(|_| Code::BadInput);
    codes.chain(problems).max_by_key(|code| match code {
        Code::DiskFull => 3,
        Code::NotPermitted | Code::OutOfMemory | Code::Io => 2,
        Code::Corrupt => 1,
        _ => 0,
    })
}

pub(super) fn faulty(faults: &[flow_story::Fault]) -> StudioError {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let message = format!("the film cannot be planned:\n  {}", lines.join("\n  "));
    StudioError::new(Code::BadInput, message)
}
