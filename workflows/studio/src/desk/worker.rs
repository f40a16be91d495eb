//! The queue: which job runs, and what becomes of it.
//!
//! Every change of a job's state is written before anybody is told of it. A job that a killed
//! process left as running is found at the next start and called interrupted; it runs again by
//! itself, unless it was interrupted again and again.

mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use engine_base::{CancelToken, Code};
use flow_store::jobs::{JobRow, JobsDb};
use serde_json::{Value, json};

use self::report::Reporter;
use super::events::{DeskEvent, ToastLevel};
use super::queue::{Job, JobResult, JobState};
use super::render::RenderWhat;
use super::settings::Settings;
use super::state::Running;
use super::{Desk, lock, perform};
use crate::error::StudioError;
use crate::events::Watcher;

/// A job that was interrupted this often waits for a person.
const STARTS_MAX: u64 = 3;
/// Jobs of a lane run one after the other; fetching a model keeps no film from being made.
const LANES: [&str; 2] = ["making", "fetching"];

fn lane_of(kind: &str) -> &'static str {
    if kind.starts_with("models.") {
        LANES[1]
    } else {
        LANES[0]
    }
}

/// What a running job is to become when it has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Cancel,
    Pause,
}

struct Held {
    row: JobRow,
    job: Job,
    /// While it runs.
    cancel: Option<CancelToken>,
    wish: Option<Wish>,
    /// Whether it goes on by itself when it was interrupted.
    resumes: bool,
}

#[derive(Default)]
struct Jobs {
    held: BTreeMap<i64, Held>,
    stopping: bool,
}

/// Jobs in memory as they stand in the database, and those that carry them out.
pub(super) struct Queue {
    db: JobsDb,
    jobs: Mutex<Jobs>,
    wake: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn corrupt(error: &serde_json::Error) -> StudioError {
    StudioError::new(Code::Corrupt, format!("cannot read a job: {error}"))
}

impl Held {
    fn of(row: JobRow) -> Result<Self, StudioError> {
        let mut job: Job = serde_json::from_value(row.shown.clone()).map_err(|e| corrupt(&e))?;
        job.id = row.id;
        Ok(Self {
            row,
            job,
            cancel: None,
            wish: None,
            resumes: false,
        })
    }

    fn is_next(&self) -> bool {
        match self.job.state {
            JobState::Waiting => true,
            JobState::Interrupted => self.resumes,
            _ => false,
        }
    }

    /// Write it as it is now.
    fn write(&mut self, db: &JobsDb) -> Result<(), StudioError> {
        self.row.state = word(self.job.state);
        self.row.shown = serde_json::to_value(&self.job).unwrap_or_default();
        Ok(db.update(&self.row)?)
    }
}

fn word(state: JobState) -> String {
    let word = serde_json::to_value(state).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

impl Queue {
    /// Read the jobs; those that ran when the last process ended are interrupted, and go on when
    /// the settings say so.
    pub(super) fn open(db: JobsDb, settings: &Settings) -> Result<Self, StudioError> {
        let mut jobs = Jobs::default();
        for row in db.jobs()? {
            let mut held = match Held::of(row.clone()) {
                Ok(held) => held,
                Err(error) => {
                    tracing::warn!(%error, id = row.id, "a job cannot be read and is left alone");
                    continue;
                }
            };
            if matches!(held.job.state, JobState::Running | JobState::Interrupted) {
                held.job.state = JobState::Interrupted;
                held.job.secs_left = None;
                held.write(&db)?;
                db.say(held.row.id, "the program ended while this ran")?;
                held.resumes = settings.resume_jobs && held.row.starts < STARTS_MAX;
            }
            jobs.held.insert(held.row.id, held);
        }
        Ok(Self {
            db,
            jobs: Mutex::new(jobs),
            wake: Condvar::new(),
            threads: Mutex::default(),
        })
    }

    /// Running ones, waiting ones in their order, then ended ones, latest first.
    pub(super) fn list(&self) -> Vec<Job> {
        let jobs = lock(&self.jobs);
        let mut list: Vec<(&Held, u8)> = jobs
            .held
            .values()
            .map(|held| {
                let group = match held.job.state {
                    JobState::Running => 0,
                    JobState::Waiting | JobState::Paused | JobState::Interrupted => 1,
                    JobState::Done | JobState::Failed | JobState::Cancelled => 2,
                };
                (held, group)
            })
            .collect();
        list.sort_by(|(a, group_a), (b, group_b)| {
            group_a.cmp(group_b).then_with(|| {
                if *group_a == 2 {
                    b.job.ended_unix_millis.cmp(&a.job.ended_unix_millis)
                } else {
                    a.row.place.total_cmp(&b.row.place)
                }
            })
        });
        list.into_iter().map(|(held, _)| held.job.clone()).collect()
    }

    pub(super) fn lines(&self, id: i64) -> Result<Vec<String>, StudioError> {
        self.get(id)?;
        Ok(self.db.lines(id)?)
    }

    fn get(&self, id: i64) -> Result<Job, StudioError> {
        let jobs = lock(&self.jobs);
        let held = jobs.held.get(&id).ok_or_else(|| unknown(id))?;
        Ok(held.job.clone())
    }

    /// Whether a job runs on the project in `folder`.
    pub(super) fn works_on(&self, folder: &Path) -> bool {
        let jobs = lock(&self.jobs);
        let on_it =
            |held: &Held| held.cancel.is_some() && held.job.project.as_deref() == Some(folder);
        jobs.held.values().any(on_it)
    }

    /// Shots of the project in `folder` that a job makes now.
    pub(super) fn shots_running(&self, folder: &Path) -> Running {
        let jobs = lock(&self.jobs);
        let mut running = Running::Nothing;
        for held in jobs.held.values() {
            if held.cancel.is_none() || held.job.project.as_deref() != Some(folder) {
                continue;
            }
            match held.row.kind.as_str() {
                "export.start" => return Running::All,
                "render.start" => {
                    let what = held.row.request["what"].clone();
                    match serde_json::from_value(what) {
                        Ok(RenderWhat::Shots(shots)) => running = Running::Shots(shots),
                        Ok(RenderWhat::All | RenderWhat::Missing) | Err(_) => return Running::All,
                    }
                }
                _ => {}
            }
        }
        running
    }

    /// The job that fetches or checks a model now or soon.
    pub(super) fn job_of_model(&self, id: &str) -> Option<i64> {
        let jobs = lock(&self.jobs);
        let active = |held: &&Held| {
            held.row.kind.starts_with("models.")
                && held.row.request["id"] == id
                && matches!(held.job.state, JobState::Waiting | JobState::Running)
        };
        jobs.held.values().find(active).map(|held| held.row.id)
    }
}

fn unknown(id: i64) -> StudioError {
    StudioError::new(Code::NotFound, format!("there is no job {id}"))
}

fn refused(id: i64, state: JobState, what: &str) -> StudioError {
    let message = format!("job {id} cannot be {what}: it is {}", word(state));
    StudioError::new(Code::Refused, message)
}

impl Desk {
    /// Put a job into the queue.
    pub(super) fn add_job(
        &self,
        kind: &'static str,
        title: String,
        project: Option<PathBuf>,
        request: Value,
    ) -> Result<i64, StudioError> {
        let job = Job {
            id: 0,
            kind: kind.to_owned(),
            title: title.chars().take(200).collect(),
            project,
            state: JobState::Waiting,
            step: None,
            done: 0,
            of: 0,
            secs_left: None,
            created_unix_millis: self.clock.unix_millis(),
            started_unix_millis: None,
            ended_unix_millis: None,
            error: None,
            result: None,
        };
        let row = self.queue.db.add(JobRow {
            id: 0,
            place: 0.0,
            state: word(job.state),
            kind: kind.to_owned(),
            starts: 0,
            request,
            shown: serde_json::to_value(&job).unwrap_or_default(),
        })?;
        let held = Held::of(row)?;
        let (id, job) = (held.row.id, held.job.clone());
        lock(&self.queue.jobs).held.insert(id, held);
        self.tell_job(&job);
        self.queue.wake.notify_all();
        Ok(id)
    }

    fn tell_job(&self, job: &Job) {
        self.tell(&DeskEvent::Job {
            job: Box::new(job.clone()),
        });
    }

    /// Change a job under the lock, write it, tell of it.
    pub(super) fn change_job(
        &self,
        id: i64,
        change: impl FnOnce(&mut Job) -> Result<(), StudioError>,
    ) -> Result<Job, StudioError> {
        let job = {
            let mut jobs = lock(&self.queue.jobs);
            let held = jobs.held.get_mut(&id).ok_or_else(|| unknown(id))?;
            let before = held.job.clone();
            change(&mut held.job)?;
            if let Err(error) = held.write(&self.queue.db) {
                held.job = before;
                return Err(error);
            }
            held.job.clone()
        };
        self.tell_job(&job);
        self.queue.wake.notify_all();
        Ok(job)
    }

    /// Stop a job for good, or for now.
    pub(super) fn stop_job(&self, id: i64, for_now: bool) -> Result<Job, StudioError> {
        let wish = if for_now { Wish::Pause } else { Wish::Cancel };
        {
            let mut jobs = lock(&self.queue.jobs);
            let held = jobs.held.get_mut(&id).ok_or_else(|| unknown(id))?;
            if let Some(cancel) = &held.cancel {
                held.wish = Some(wish);
                cancel.cancel();
                return Ok(held.job.clone());
            }
        }
        let now = self.clock.unix_millis();
        self.change_job(id, |job| match (job.state, wish) {
            (JobState::Waiting | JobState::Interrupted, Wish::Pause) => {
                job.state = JobState::Paused;
                Ok(())
            }
            (JobState::Waiting | JobState::Paused | JobState::Interrupted, Wish::Cancel) => {
                job.state = JobState::Cancelled;
                job.ended_unix_millis = Some(now);
                Ok(())
            }
            (state, Wish::Pause) => Err(refused(id, state, "paused")),
            (state, Wish::Cancel) => Err(refused(id, state, "cancelled")),
        })
    }

    /// Let a job run (again).
    pub(super) fn restart_job(&self, id: i64, paused: bool) -> Result<Job, StudioError> {
        {
            let mut jobs = lock(&self.queue.jobs);
            let held = jobs.held.get_mut(&id).ok_or_else(|| unknown(id))?;
            held.row.starts = 0;
        }
        self.change_job(id, |job| {
            let can = if paused {
                job.state == JobState::Paused
            } else {
                matches!(
                    job.state,
                    JobState::Failed | JobState::Cancelled | JobState::Interrupted | JobState::Done
                )
            };
            if !can {
                let what = if paused { "resumed" } else { "run again" };
                return Err(refused(id, job.state, what));
            }
            job.state = JobState::Waiting;
            (job.error, job.result, job.step) = (None, None, None);
            (job.done, job.of, job.secs_left, job.ended_unix_millis) = (0, 0, None, None);
            Ok(())
        })
    }

    /// Put a job ahead of another, or behind all.
    pub(super) fn move_job(&self, id: i64, before: Option<i64>) -> Result<(), StudioError> {
        {
            let mut jobs = lock(&self.queue.jobs);
            let mut places: Vec<(i64, f64)> = jobs
                .held
                .values()
                .filter(|held| held.row.id != id)
                .map(|held| (held.row.id, held.row.place))
                .collect();
            places.sort_by(|a, b| a.1.total_cmp(&b.1));
            let at = match before {
                Some(before) => places
                    .iter()
                    .position(|(other, _)| *other == before)
                    .ok_or_else(|| unknown(before))?,
                None => places.len(),
            };
            let ahead = at.checked_sub(1).and_then(|at| places.get(at));
            let place = match (ahead, places.get(at)) {
                (Some(ahead), Some(behind)) => f64::midpoint(ahead.1, behind.1),
                (Some(ahead), None) => ahead.1 + 1.0,
                (None, Some(behind)) => behind.1 - 1.0,
                (None, None) => 1.0,
            };
            let held = jobs.held.get_mut(&id).ok_or_else(|| unknown(id))?;
            held.row.place = place;
            held.write(&self.queue.db)?;
        }
        self.tell(&DeskEvent::QueueMoved);
        Ok(())
    }

    /// Forget jobs that have ended.
    pub(super) fn clear_jobs(&self) -> Result<(), StudioError> {
        let ended: Vec<i64> = {
            let jobs = lock(&self.queue.jobs);
            let is_over = |held: &&Held| {
                let state = held.job.state;
                matches!(
                    state,
                    JobState::Done | JobState::Failed | JobState::Cancelled
                )
            };
            jobs.held
                .values()
                .filter(is_over)
                .map(|held| held.row.id)
                .collect()
        };
        self.queue.db.remove(ended.clone())?;
        let mut jobs = lock(&self.queue.jobs);
        for id in ended {
            jobs.held.remove(&id);
            self.tell(&DeskEvent::JobGone { id });
        }
        Ok(())
    }

    /// Begin to carry jobs out.
    pub(super) fn start_workers(&self) -> Result<(), StudioError> {
        for lane in LANES {
            let desk = self
                .me
                .upgrade()
                .ok_or_else(|| StudioError::new(Code::Internal, "the desk is not there yet"))?;
            let thread = std::thread::Builder::new()
                .name(format!("jobs-{lane}"))
                .spawn(move || desk.work(lane))
                .map_err(|error| {
                    StudioError::new(Code::Io, format!("cannot start a worker: {error}"))
                })?;
            lock(&self.queue.threads).push(thread);
        }
        Ok(())
    }

    /// Stop what runs, so that it goes on at the next start.
    pub(super) fn stop_workers(&self) {
        {
            let mut jobs = lock(&self.queue.jobs);
            jobs.stopping = true;
            for cancel in jobs.held.values().filter_map(|held| held.cancel.as_ref()) {
                cancel.cancel();
            }
        }
        self.queue.wake.notify_all();
        let threads = std::mem::take(&mut *lock(&self.queue.threads));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a worker of the queue panicked");
            }
        }
    }

    fn work(self: &Arc<Self>, lane: &str) {
        while let Some((id, row, cancel)) = self.next(lane) {
            let reporter = Arc::new(Reporter::new(self, id));
            let watcher: Arc<dyn Watcher> = Arc::clone(&reporter) as Arc<dyn Watcher>;
            let outcome = perform::perform(self, &row, &watcher, &cancel);
            self.ended(id, outcome);
        }
    }

    /// Wait for the next job of the lane and mark it running; nothing when the desk is stopped.
    fn next(&self, lane: &str) -> Option<(i64, JobRow, CancelToken)> {
        let mut jobs = lock(&self.queue.jobs);
        loop {
            if jobs.stopping {
                return None;
            }
            let next = jobs
                .held
                .values_mut()
                .filter(|held| held.is_next() && lane_of(&held.row.kind) == lane)
                .min_by(|a, b| a.row.place.total_cmp(&b.row.place));
            let Some(held) = next else {
                let waiting = self.queue.wake.wait(jobs);
                jobs = waiting.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            held.job.state = JobState::Running;
            held.job.started_unix_millis = Some(self.clock.unix_millis());
            held.row.starts += 1;
            if let Err(error) = held.write(&self.queue.db) {
                // It cannot be told apart later from one that never ran: it does not run.
                held.job.state = JobState::Failed;
                held.job.error = Some(error.message);
                let job = held.job.clone();
                drop(jobs);
                self.tell_job(&job);
                jobs = lock(&self.queue.jobs);
                continue;
            }
            let cancel = CancelToken::new();
            held.cancel = Some(cancel.clone());
            held.wish = None;
            let (id, row, job) = (held.row.id, held.row.clone(), held.job.clone());
            drop(jobs);
            self.tell_job(&job);
            return Some((id, row, cancel));
        }
    }

    fn ended(&self, id: i64, outcome: Result<JobResult, StudioError>) {
        let now = self.clock.unix_millis();
        let told = {
            let mut jobs = lock(&self.queue.jobs);
            let stopping = jobs.stopping;
            let Some(held) = jobs.held.get_mut(&id) else {
                return;
            };
            held.cancel = None;
            let job = &mut held.job;
            job.secs_left = None;
            job.ended_unix_millis = Some(now);
            let was_stopped = matches!(&outcome, Err(error) if error.code == Code::Cancelled);
            match outcome {
                Ok(result) => {
                    job.state = JobState::Done;
                    job.done = job.of;
                    job.result = Some(result);
                    job.step = None;
                }
                Err(_) if was_stopped => {
                    job.state = match held.wish {
                        Some(Wish::Pause) => JobState::Paused,
                        None if stopping => JobState::Interrupted,
                        Some(Wish::Cancel) | None => JobState::Cancelled,
                    };
                    if job.state != JobState::Cancelled {
                        job.ended_unix_millis = None;
                    }
                    if job.state == JobState::Interrupted {
                        // Stopped in good order: no sign that it ends the program.
                        held.row.starts = held.row.starts.saturating_sub(1);
                    }
                }
                Err(error) => {
                    job.state = JobState::Failed;
                    job.error = Some(error.message);
                }
            }
            let written = held.write(&self.queue.db);
            if let Err(error) = written {
                tracing::error!(%error, id, "a job's end could not be written: it will run again");
            }
            held.job.clone()
        };
        if let Some(error) = &told.error {
            let said = self.queue.db.say(id, error);
            drop(said);
            self.tell(&DeskEvent::Toast {
                level: ToastLevel::Error,
                message: format!("{}: {error}", told.title),
            });
        }
        self.tell_job(&told);
        // Shots that were in the making are made, or are not.
        if let Some(folder) = &told.project {
            self.project_changed(folder);
        }
        if told.kind.starts_with("models.") {
            self.tell(&DeskEvent::ModelsChanged);
        }
    }

    /// How far a job has come; kept in memory only.
    fn progress(&self, id: i64, change: impl FnOnce(&mut Job)) {
        let job = {
            let mut jobs = lock(&self.queue.jobs);
            let Some(held) = jobs.held.get_mut(&id) else {
                return;
            };
            change(&mut held.job);
            held.job.clone()
        };
        self.tell_job(&job);
    }

    fn say(&self, id: i64, line: &str) {
        if let Err(error) = self.queue.db.say(id, line) {
            tracing::debug!(%error, id, "a line of a job is lost");
        }
        self.tell(&DeskEvent::JobLog {
            id,
            line: line.to_owned(),
        });
    }
}

/// What a job was asked to do.
pub(super) fn request<T: serde::de::DeserializeOwned>(row: &JobRow) -> Result<T, StudioError> {
    serde_json::from_value(row.request.clone()).map_err(|error| {
        let message = format!("cannot read what job {} was asked to do: {error}", row.id);
        StudioError::new(Code::Corrupt, message)
    })
}

/// Arguments as a job keeps them.
pub(super) fn kept<T: serde::Serialize>(args: &T) -> Value {
    serde_json::to_value(args).unwrap_or_else(|_| json!({}))
}
