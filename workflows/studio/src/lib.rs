//! Every command, query and event of the product.
//!
//! Duty: the one typed layer that all shells (command line, window, browser, agents) call:
//! projects and their edits, films, workflow documents, the cache. Assembles the registry of node
//! types. It must not draw, parse command lines or know which shell calls it.
//!
//! Entry points: [`Studio`] runs; [`Project`] is one owned project; [`send`] reaches a project
//! whoever owns it. [`desk::Desk`] is all of it as one list of commands, [`Server`] the same over
//! HTTP.

mod cluster;
mod command;
mod config;
pub mod desk;
mod draw;
mod enlarge;
mod error;
mod events;
mod export;
mod fault;
mod film;
mod join;
mod library;
mod llm_local;
mod llm_remote;
mod manifest;
mod mcp;
mod memory;
mod models;
mod order;
mod owner;
mod premise;
mod project;
mod rewrite;
mod rows;
mod samples;
mod say;
mod script;
mod serve;
mod speak;
mod studio;
mod upscale;
mod voices;
mod workflow;

pub use cluster::{
    ClusterIsUp, ClusterPlan, ClusterStatus, ClusterUp, DrainOrder, Finding, JobRow, LineKind,
    PlannedWorker, Severity, WorkerJoined, WorkerRequest, WorkerRow, cluster_doctor, cluster_drain,
    cluster_pause, cluster_status, cluster_up, line_of,
};
pub use command::{Command, Edit, Job, Kind, System};
pub use config::{cache_folder, cluster_of_environment};
pub use draw::{DrawReport, DrawRequest, DrawnPicture, draw};
pub use engine_hub::{FileFormat, FileInfo, FileState, FileVerdict, ModelEntry, ModelState};
/// The devices that `longtake upscale` can be told.
pub use engine_pipelines::DeviceChoice;
pub use engine_pipelines::{
    DtypeUse, Inspection, ModelInspection, SpeechRequest, SpokenWord, VoiceInfo,
};
pub use error::StudioError;
pub use events::{NodeState, StudioEvent, Watcher};
pub use film::{DrawWhat, DrawnTake, FilmReport, FilmRequest, SCOUTS_MAX};
pub use flow_nodes::LoudnessTarget;
pub use flow_story::{FrameSize, Length, check_film_length};
pub use join::{Commands, RunningStudio};
pub use llm_local::LocalLlm;
pub use llm_remote::{Key, RemoteLlm, RemoteOptions};
pub use manifest::RebuildReport;
pub use mcp::serve_mcp;
pub use memory::peak_bytes;
pub use models::{
    InspectedFile, ModelInspected, ModelPulled, ModelRemoved, ModelRow, ModelVerified,
    models_inspect, models_list, models_pull, models_remove, models_verify,
};
pub use owner::{OwnerInfo, describe, owner_of};
pub use premise::PremiseRequest;
pub use project::{EXTENSION, Project, send};
pub use rewrite::{
    Accepted, RewriteReport, RewriteRequest, ScriptChange, diff_scripts, script_value, take_from,
};
pub use say::Said;
pub use script::{ScriptWarning, check_script, convert_script, script_as_markdown};
pub use serve::{Pages, ServeOptions, Server, Shell};
pub use speak::{
    SpeakReport, SpokenLines, open_speech, speak, text_to_speak, voices, words_to_speak,
};
pub use studio::{CacheReport, Studio, StudioOptions, node_specs, system_clock};
pub use upscale::{UpscaleReport, UpscaleRequest, upscale};
pub use voices::Speaking;
pub use workflow::{PlanReport, PlanState, PlannedNode, RunRequest, RunSummary, ShownOutput};
