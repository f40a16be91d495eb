//! Workflow documents: plan and run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_base::{CancelToken, Code, Datum, ProgressEvent};
use flow_executor::{Ending, Executor, RunEvent, RunReport};
use flow_graph::{Document, Limits, Value};
use serde::Serialize;

use crate::error::StudioError;
use crate::events::{NodeState, StudioEvent, Watcher};
use crate::film::{failures, worst};
use crate::project::RunningGuard;
use crate::script::ScriptWarning;
use crate::studio::Studio;
use crate::{export, fault, memory};

/// Which document to run, and how.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The document.
    pub document: PathBuf,
    /// Widgets to set first: `NODE.INPUT=VALUE`.
    pub set: Vec<String>,
    /// Run only what these nodes need; empty means the document's own targets.
    pub targets: Vec<String>,
    /// Folder for files that targets gave.
    pub out: Option<PathBuf>,
}

/// One output of a target.
#[derive(Debug, Clone, Serialize)]
pub struct ShownOutput {
    /// The node.
    pub node: String,
    /// Its output.
    pub output: String,
    /// Plain data, or where the file lies.
    pub shown: String,
}

/// What a run did.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    /// Results made, counted from the store.
    pub made: u64,
    /// Results that were there already.
    pub reused: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Nodes that did not run because another failed.
    pub skipped: u64,
    /// Wall time.
    pub wall_secs: f64,
    /// Most memory taken.
    pub peak_bytes: u64,
    /// Outputs of targets.
    pub outputs: Vec<ShownOutput>,
    /// The kind of the failure that weighs most; absent when nothing failed.
    pub code: Option<Code>,
    /// Failures, by node, and parts of the document that are not valid.
    pub errors: Vec<String>,
}

impl Studio {
    /// Run a document.
    ///
    /// # Errors
    /// What the document is refused for; failures of single nodes are in the summary.
    pub fn run_document(
        &self,
        request: &RunRequest,
        watcher: &Arc<dyn Watcher>,
        cancel: &CancelToken,
    ) -> Result<RunSummary, StudioError> {
        let mut document = self.read_document(&request.document)?;
        for text in &request.set {
            set_widget(&mut document, text)?;
        }
        watcher.event(StudioEvent::Stage {
            what: "running the workflow".into(),
        });
        let report = self.execute(&document, &request.targets, watcher, None, cancel)?;
        if cancel.is_cancelled() {
            return Err(StudioError::new(Code::Cancelled, "the run was stopped"));
        }
        let mut outputs = Vec::new();
        for (node, ports) in &report.outputs {
            for port in ports {
                for (at, value) in port.elements.iter().enumerate() {
                    let shown = self.show(node, port.name, at, value, request, cancel)?;
                    outputs.push(ShownOutput {
                        node: node.clone(),
                        output: port.name.to_owned(),
                        shown,
                    });
                }
            }
        }
        Ok(RunSummary {
            made: report.made,
            reused: report.reused,
            failed: report.failed,
            skipped: report.skipped,
            wall_secs: report.wall_secs,
            peak_bytes: memory::peak_bytes(),
            outputs,
            code: worst(&report),
            errors: failures(&report),
        })
    }

    fn show(
        &self,
        node: &str,
        output: &str,
        at: usize,
        value: &Value,
        request: &RunRequest,
        cancel: &CancelToken,
    ) -> Result<String, StudioError> {
        match value {
            Value::Data(datum) => Ok(serde_json::to_string(datum.as_ref()).unwrap_or_default()),
            Value::Blob(blob) => {
                let path = self.store.blob_path(&blob.hash)?;
                let Some(folder) = &request.out else {
                    return Ok(path.display().to_string());
                };
                let ending = ending_of(&blob.media_type);
                let name = export::file_stem(&format!("{node} {output} {at}"));
                let out = folder.join(format!("{name}.{ending}"));
                export::check_writable(&out)?;
                export::copy_out(&path, &out, cancel)?;
                Ok(out.display().to_string())
            }
            Value::Handle(_) => Ok("(kept in memory)".into()),
            Value::Blocked(why) => Ok(format!("(blocked: {})", why.as_deref().unwrap_or("silent"))),
        }
    }
}

fn ending_of(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "video/mp4" => "mp4",
        "audio/wav" => "wav",
        "audio/mp4" => "m4a",
        "application/x-subrip" => "srt",
        _ => "bin",
    }
}

/// What becomes of a node when a document is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// Its results are there.
    Reused,
    /// It runs.
    WillRun,
    /// It depends on a result that is not there yet.
    Unknown,
    /// It fails.
    WillFail,
}

impl PlanState {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reused => "there already",
            Self::WillRun => "to make",
            Self::Unknown => "not known yet",
            Self::WillFail => "fails",
        }
    }
}

/// One node of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedNode {
    /// The node.
    pub node: String,
    /// Its type.
    pub type_name: String,
    /// What becomes of it.
    pub state: PlanState,
    /// What it waits for, or why it fails.
    pub why: Option<String>,
}

/// What a run would make.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PlanReport {
    /// Calls that run.
    pub will_run: u64,
    /// Calls whose results are there.
    pub reused: u64,
    /// Calls of which nothing can be said yet.
    pub unknown: u64,
    /// Predicted seconds, when every type that runs was measured before.
    pub secs: Option<f64>,
    /// All nodes, each after those it depends on.
    pub nodes: Vec<PlannedNode>,
    /// For a film: what could be better, and what a person should know.
    pub warnings: Vec<ScriptWarning>,
}

impl Studio {
    /// Say what [`Studio::run_document`] would make.
    ///
    /// # Errors
    /// What the document is refused for.
    pub fn plan_document(&self, path: &Path) -> Result<PlanReport, StudioError> {
        let document = self.read_document(path)?;
        self.plan_of(&document, &[])
    }

    pub(crate) fn plan_of(
        &self,
        document: &Document,
        targets: &[String],
    ) -> Result<PlanReport, StudioError> {
        let request = self.request(targets);
        let plan = self
            .executor()
            .plan(document, &request, &CancelToken::new())?;
        let node = |node: &flow_executor::PlanNode| {
            use flow_executor::PlanState as State;
            let (state, why) = match &node.state {
                State::Reused | State::Evaluated => (PlanState::Reused, None),
                State::WillRun => (PlanState::WillRun, None),
                State::Unknown { until } => (PlanState::Unknown, Some(until.clone())),
                State::WillFail { message } => (PlanState::WillFail, Some(message.clone())),
            };
            PlannedNode {
                node: node.display.clone(),
                type_name: node.type_name.to_owned(),
                state,
                why,
            }
        };
        Ok(PlanReport {
            will_run: plan.will_run,
            reused: plan.reused,
            unknown: plan.unknown,
            secs: (plan.unmeasured == 0).then_some(plan.secs / self.workers()),
            nodes: plan.nodes.iter().map(node).collect(),
            warnings: Vec::new(),
        })
    }

    pub(crate) fn read_document(&self, path: &Path) -> Result<Document, StudioError> {
        let bytes = std::fs::read(path)
            .map_err(|error| StudioError::io("read the document", path, &error))?;
        let document = Document::parse(&bytes, &Limits::default())
            .map_err(|error| StudioError::new(Code::BadInput, format!("{error}: {path:?}")))?;
        // Nodes that could not be brought up are told of when they are asked for.
        let (document, notes) = flow_graph::migrate(&document, &self.registry);
        for note in notes {
            tracing::info!("{note}");
        }
        Ok(document)
    }

    pub(crate) fn executor(&self) -> Executor {
        let executor = Executor::new(
            Arc::clone(&self.registry),
            self.store.clone(),
            Arc::clone(&self.clock),
        );
        match self.elsewhere() {
            Some(elsewhere) => executor.with_elsewhere(elsewhere),
            None => executor,
        }
    }

    /// Run a document with progress told to `watcher` and, for a project, to those who ask it.
    pub(crate) fn execute(
        &self,
        document: &Document,
        targets: &[String],
        watcher: &Arc<dyn Watcher>,
        running: Option<&Arc<RunningGuard>>,
        cancel: &CancelToken,
    ) -> Result<RunReport, StudioError> {
        let (watcher, running) = (Arc::clone(watcher), running.cloned());
        let observer = move |event: &RunEvent| {
            fault::in_run(event);
            let Some(event) = told(event) else { return };
            if let (StudioEvent::Progress(progress), Some(running)) = (&event, &running) {
                running.progress(progress.clone());
            }
            watcher.event(event);
        };
        let request = self.request(targets);
        let report = self
            .executor()
            .run(document, &request, Arc::new(observer), cancel)?;
        self.remember_costs(&report, request.costs);
        Ok(report)
    }
}

/// A run's event as shells are told it.
fn told(event: &RunEvent) -> Option<StudioEvent> {
    Some(match event {
        RunEvent::Started { .. } => return None,
        RunEvent::NodeStarted { display, .. } => StudioEvent::Node {
            node: display.to_string(),
            state: NodeState::Running,
            progress: None,
        },
        RunEvent::NodeProgress {
            display, progress, ..
        } => StudioEvent::Node {
            node: display.to_string(),
            state: NodeState::Running,
            progress: Some(progress.clone()),
        },
        RunEvent::NodePreview { display, picture } => StudioEvent::Preview {
            node: display.to_string(),
            picture: Arc::clone(picture),
        },
        RunEvent::NodeFinished {
            display, ending, ..
        } => {
            let state = match ending {
                Ending::Made => NodeState::Made,
                Ending::Reused => NodeState::Reused,
                Ending::Failed => NodeState::Failed,
                Ending::Skipped => NodeState::Skipped,
            };
            StudioEvent::Node {
                node: display.to_string(),
                state,
                progress: None,
            }
        }
        RunEvent::Progress {
            done,
            of,
            secs_left,
        } => StudioEvent::Progress(ProgressEvent {
            what: "nodes".into(),
            step: *done as u64,
            of: *of as u64,
            secs_left: *secs_left,
        }),
    })
}

/// `NODE.INPUT=VALUE`: the value is JSON, or else text as it stands.
fn set_widget(document: &mut Document, text: &str) -> Result<(), StudioError> {
    let refused = |why: String| StudioError::new(Code::BadInput, format!("--set {text:?}: {why}"));
    let parts = text.split_once('=').and_then(|(place, value)| {
        place
            .rsplit_once('.')
            .map(|(node, input)| (node, input, value))
    });
    let Some((node, input, value)) = parts else {
        return Err(refused("expected NODE.INPUT=VALUE".into()));
    };
    let Some(found) = document.nodes.get_mut(node) else {
        return Err(refused(format!("the document has no node {node:?}")));
    };
    let value = serde_json::from_str(value).unwrap_or_else(|_not_json| Datum::from(value));
    found.links.remove(input);
    found.widgets.insert(input.to_owned(), value);
    Ok(())
}
