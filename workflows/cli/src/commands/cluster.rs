//! `longtake cluster` and `longtake worker`.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use engine_base::{CancelToken, Code};
use flow_studio::{
    ClusterPlan, ClusterStatus, ClusterUp, DrainOrder, FilmRequest, Severity, StudioError, Watcher,
    WorkerRequest, cluster_doctor, cluster_drain, cluster_of_environment, cluster_pause,
    cluster_status, cluster_up,
};
use serde_json::json;

use super::{say, say_json, studio};
use crate::args::Cli;
use crate::bars::{Bars, clock};
use crate::size;

pub(crate) const CLUSTER_EXAMPLES: &str = "Examples:
  longtake cluster up                              on the machine that the others reach
  longtake worker --join LINE                      on every machine that works
  longtake film --script film.md --cluster DIR     the film's shots are made on the workers
  longtake cluster status
  longtake cluster drain spark-2 --leave

On addresses beyond this machine the server speaks TLS; the line says which certificate is right.";

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Start the server that machines join, and print the line that joins them
    Up(UpArgs),
    /// Say which machines there are and what each does now
    Status(WhereArgs),
    /// Say what a project's film will take on the workers
    Plan(PlanArgs),
    /// Give a worker nothing more; what it is at it finishes
    Drain(DrainArgs),
    /// Look at this machine and at the workers, and say what to change
    Doctor(WhereArgs),
    /// Hand nothing more out; what runs goes on
    Pause(WhereArgs),
    /// Hand work out again
    Resume(WhereArgs),
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Folder of the server (default: below the system's place for data)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Address to listen on: 0.0.0.0 for other machines
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    bind: IpAddr,

    /// Port (default: the one of last time, else a free one)
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Host by which other machines reach this one
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,

    /// Seconds without a sign of life after which a worker's job is given to another
    #[arg(long, value_name = "SECS", default_value_t = 30.0)]
    lease_secs: f64,

    /// Worker that gets a line with rights of its own (may be given more than once)
    #[arg(long, value_name = "NAME")]
    worker: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WhereArgs {
    /// The cluster: folder of `cluster up`, the owner's line or a file with it (default:
    /// $LONGTAKE_CLUSTER)
    #[arg(long, value_name = "DIR|LINE")]
    cluster: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The project folder
    project: PathBuf,

    /// Plan for the workers of this cluster
    #[arg(long, value_name = "DIR|LINE")]
    cluster: Option<String>,

    /// Plan for so many machines like this one instead
    #[arg(long, value_name = "N", conflicts_with = "cluster")]
    workers: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// The worker's name
    worker: String,

    /// Let it take work again
    #[arg(long, conflicts_with_all = ["leave", "forget"])]
    undo: bool,

    /// Let it end when it is idle
    #[arg(long, conflicts_with = "forget")]
    leave: bool,

    /// Forget a worker that went away
    #[arg(long)]
    forget: bool,

    #[command(flatten)]
    at: WhereArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The line that `longtake cluster up` printed, a file with it, or the folder of `cluster up`
    #[arg(long, value_name = "LINE")]
    join: String,

    /// Name in the cluster (default: the machine's)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Folder of its own store (default: the cache)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Address and port on which it serves its files (default: this machine's, any port)
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Host, or URL with its port, by which others reach it
    #[arg(long, value_name = "HOST|URL")]
    advertise: Option<String>,

    /// Memory that its jobs may take, such as 12GB (default: the machine's)
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,

    /// Jobs at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
}

fn place(at: &WhereArgs) -> Result<String, StudioError> {
    let given = at.cluster.clone().or_else(cluster_of_environment);
    given.ok_or_else(|| {
        let message = "which cluster? give --cluster DIR, the folder of `longtake cluster up`, or set \
                       LONGTAKE_CLUSTER";
        StudioError::new(Code::BadInput, message)
    })
}

/// Carry out `longtake cluster`; gives the exit status.
pub(super) fn cluster(
    cli: &Cli,
    command: &ClusterCommand,
    cancel: &CancelToken,
) -> Result<u8, StudioError> {
    match command {
        ClusterCommand::Up(args) => up(cli, args, cancel),
        ClusterCommand::Status(at) => {
            show_status(cli, &cluster_status(&place(at)?)?);
            Ok(0)
        }
        ClusterCommand::Plan(args) => plan(cli, args),
        ClusterCommand::Drain(args) => {
            let order = match (args.undo, args.leave, args.forget) {
                (true, ..) => DrainOrder::Undo,
                (_, true, _) => DrainOrder::Leave,
                (.., true) => DrainOrder::Forget,
                _ => DrainOrder::Drain,
            };
            cluster_drain(&place(&args.at)?, &args.worker, order)?;
            if cli.json {
                say_json(&json!({ "worker": args.worker }));
            }
            Ok(0)
        }
        ClusterCommand::Doctor(at) => doctor(cli, at),
        ClusterCommand::Pause(at) => pause(cli, at, true),
        ClusterCommand::Resume(at) => pause(cli, at, false),
    }
}

/// Exit status 1 when something is wrong; advice alone is none.
fn doctor(cli: &Cli, at: &WhereArgs) -> Result<u8, StudioError> {
    let cluster = at.cluster.clone().or_else(cluster_of_environment);
    let store = match &cli.cache {
        Some(folder) => folder.clone(),
        None => flow_studio::cache_folder()?,
    };
    let findings = cluster_doctor(&store, cluster.as_deref())?;
    if cli.json {
        say_json(&json!({ "findings": findings }));
    } else {
        for finding in &findings {
            let mark = match finding.severity {
                Severity::Fine => "ok    ",
                Severity::Advice => "advice",
                Severity::Wrong => "WRONG ",
            };
            say(&format!("{mark} {:12} {}", finding.machine, finding.found));
            if !finding.advice.is_empty() {
                say(&format!("{:19} {}", "", finding.advice));
            }
        }
        if cluster.is_none() {
            say("this machine only; --cluster DIR looks at the workers too");
        }
    }
    let wrong = findings
        .iter()
        .any(|finding| finding.severity == Severity::Wrong);
    Ok(u8::from(wrong))
}

fn pause(cli: &Cli, at: &WhereArgs, paused: bool) -> Result<u8, StudioError> {
    cluster_pause(&place(at)?, paused)?;
    if cli.json {
        say_json(&json!({ "paused": paused }));
    }
    Ok(0)
}

fn up(cli: &Cli, args: &UpArgs, cancel: &CancelToken) -> Result<u8, StudioError> {
    let options = ClusterUp {
        dir: args.dir.clone(),
        bind: args.bind,
        tcp_port: args.port,
        advertise: args.advertise.clone(),
        lease_secs: args.lease_secs,
        workers: args.worker.clone(),
    };
    cluster_up(&options, cancel, |up| {
        if cli.json {
            say_json(&serde_json::to_value(up).unwrap_or_default());
        } else {
            say(&up.join);
            for (worker, line) in &up.workers {
                say(&format!("{worker} {line}"));
            }
            if !cli.quiet {
                let hint = format!(
                    "nats-server {} at {}; workers join with longtake worker --join LINE, films go \
                     there with --cluster {:?}; it runs until ctrl-c",
                    up.nats_version, up.address, up.dir
                );
                drop(writeln!(std::io::stderr(), "{hint}"));
            }
        }
        // Whoever waits for the line may read from a pipe.
        drop(std::io::stdout().flush());
    })?;
    Ok(0)
}

/// Carry out `longtake worker`; gives the exit status.
pub(super) fn worker(
    cli: &Cli,
    args: &WorkerArgs,
    cancel: &CancelToken,
) -> Result<u8, StudioError> {
    let memory = args.memory.as_deref().map(size::parse).transpose()?;
    let mut options = flow_studio::StudioOptions::of_this_machine()?;
    if let Some(folder) = args.data.as_ref().or(cli.cache.as_ref()) {
        options.cache_folder.clone_from(folder);
    }
    let request = WorkerRequest {
        join: args.join.clone(),
        name: args.name.clone(),
        listen: args.listen,
        advertise: args.advertise.clone(),
        memory_bytes: memory,
        jobs: Some(args.jobs),
    };
    // The line is looked at before the store is opened: a wrong one is told at once.
    flow_studio::line_of(&request.join, flow_studio::LineKind::Worker)?;
    let studio = flow_studio::Studio::open(&options)?;
    studio.work(&request, cancel, |joined| {
        if cli.json {
            say_json(&serde_json::to_value(joined).unwrap_or_default());
        } else if !cli.quiet {
            say(&format!(
                "worker {} joined; it serves its files at {}; ctrl-c finishes what it is at and leaves",
                joined.worker, joined.url
            ));
        }
        drop(std::io::stdout().flush());
    })?;
    Ok(0)
}

fn show_status(cli: &Cli, status: &ClusterStatus) {
    if cli.json {
        say_json(&serde_json::to_value(status).unwrap_or_default());
        return;
    }
    let paused = if status.paused { ", paused" } else { "" };
    say(&format!(
        "nats-server {} at {}{paused}",
        status.nats_version, status.address
    ));
    for worker in &status.workers {
        let state = match (worker.here, worker.draining) {
            (false, _) => format!("away for {}", clock(worker.away_secs)),
            (true, true) => "draining".to_owned(),
            (true, false) => "here".to_owned(),
        };
        let devices = worker.devices.join(", ");
        say(&format!(
            "{:20} {state}, {devices}, {}, {} jobs done",
            worker.worker,
            size::show(worker.memory_bytes),
            worker.done
        ));
        for job in &worker.jobs {
            let part = job.part.map(|part| format!(", {:.0} %", part * 100.0));
            say(&format!(
                "{:20} {} ({}), {}{}",
                "",
                job.node,
                job.node_type,
                clock(job.secs),
                part.unwrap_or_default()
            ));
        }
    }
    if status.workers.is_empty() {
        say("no worker has joined yet");
    }
}

fn plan(cli: &Cli, args: &PlanArgs) -> Result<u8, StudioError> {
    let cluster = match args.workers {
        Some(_) => None,
        None => args.cluster.clone().or_else(cluster_of_environment),
    };
    let request = FilmRequest {
        project: Some(args.project.clone()),
        ..FilmRequest::default()
    };
    let bars = Arc::new(Bars::new(cli.quiet || cli.json));
    let watcher: Arc<dyn Watcher> = Arc::clone(&bars) as Arc<dyn Watcher>;
    let count = args.workers.unwrap_or(1);
    let planned = studio(cli)?.cluster_plan(&request, cluster.as_deref(), count, &watcher);
    bars.finish();
    show_plan(cli, &planned?);
    Ok(0)
}

fn show_plan(cli: &Cli, plan: &ClusterPlan) {
    if cli.json {
        say_json(&serde_json::to_value(plan).unwrap_or_default());
        return;
    }
    say(&format!(
        "about {} on {} workers ({} on one alone; no order of work could beat {})",
        clock(plan.makespan_secs),
        plan.workers.len(),
        clock(plan.one_worker_secs),
        clock(plan.bound_secs)
    ));
    say(&format!(
        "{} jobs to make, {} results there already; {} of the jobs were measured before",
        plan.jobs, plan.reused, plan.measured
    ));
    for why in &plan.refused {
        say(why);
    }
}
