//! The queue: jobs in memory as they stand in the database, and what a person does to them.
//! Carrying them out is in [`lanes`].
//!
//! Every change of a job's state is written before anybody is told of it. A job that a killed
//! process left as running is found at the next start and called interrupted; it runs again by
//! itself, unless it was interrupted again and again.

mod lanes;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use engine_base::{CancelToken, Code};
use flow_store::jobs::{JobRow, JobsDb};
use serde_json::{Value, json};

use super::draw::DrawJob;
use super::events::DeskEvent;
use super::queue::{Job, JobState};
use super::render::RenderWhat;
use super::settings::Settings;
use super::state::Running;
use super::{Desk, lock};
use crate::error::StudioError;
use crate::film::PictureWanted;
use crate::say::Say;

/// A job that was interrupted this often waits for a person.
const STARTS_MAX: u64 = 3;
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
    /// What it makes now, as a JPEG file: one picture a job, whatever it takes.
    picture: Option<Arc<[u8]>>,
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
        (job.preview, job.device) = (None, None);
        Ok(Self {
            row,
            job,
            cancel: None,
            wish: None,
            resumes: false,
            picture: None,
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

    /// The picture of what a job makes now, as a JPEG file.
    pub(super) fn picture(&self, id: i64) -> Option<Arc<[u8]>> {
        lock(&self.jobs).held.get(&id)?.picture.clone()
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
                        Ok(RenderWhat::Shots(shots)) => running.add(shots),
                        Ok(RenderWhat::All | RenderWhat::Missing) | Err(_) => return Running::All,
                    }
                }
                "takes.draw" => running.add(pictures_of(held).map(|wanted| wanted.shot)),
                _ => {}
            }
        }
        running
    }

    /// How many pictures for the shot of this row are asked for and not drawn yet.
    pub(super) fn pictures_waiting(&self, row: &str) -> usize {
        let jobs = lock(&self.jobs);
        let active = |held: &&Held| {
            let state = held.job.state;
            held.row.kind == "takes.draw"
                && (held.is_next() || matches!(state, JobState::Running | JobState::Paused))
        };
        let wanted = jobs.held.values().filter(active).flat_map(pictures_of);
        wanted.filter(|wanted| wanted.row == row).count()
    }

    /// The job that makes a copy of the file `hash` that plays, now or soon.
    pub(super) fn job_of_proxy(&self, hash: &str) -> Option<i64> {
        let jobs = lock(&self.jobs);
        let active = |held: &&Held| {
            held.row.kind == "media.proxy"
                && held.row.request["hash"] == hash
                && (held.is_next() || held.job.state == JobState::Running)
        };
        jobs.held.values().find(active).map(|held| held.row.id)
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

/// The pictures that a job is to draw.
fn pictures_of(held: &Held) -> impl Iterator<Item = PictureWanted> {
    let job = serde_json::from_value::<DrawJob>(held.row.request.clone());
    job.map(|job| job.pictures).unwrap_or_default().into_iter()
}

fn unknown(id: i64) -> StudioError {
    StudioError::said(Code::NotFound, &Say::NoJob { job: id })
}

fn refused(id: i64, state: JobState, what: &str) -> StudioError {
    let say = Say::JobRefused {
        job: id,
        what: what.to_owned(),
        state: word(state),
    };
    StudioError::said(Code::Refused, &say)
}

impl Desk {
    /// Put a job into the queue.
    pub(super) fn add_job(
        &self,
        kind: &'static str,
        title: Say,
        project: Option<PathBuf>,
        request: Value,
    ) -> Result<i64, StudioError> {
        let job = Job {
            id: 0,
            kind: kind.to_owned(),
            title: title.to_string().chars().take(200).collect(),
            title_coded: Some(title.coded()),
            project,
            state: JobState::Waiting,
            step: None,
            step_coded: None,
            device: None,
            preview: None,
            done: 0,
            of: 0,
            secs_left: None,
            created_unix_millis: self.clock.unix_millis(),
            started_unix_millis: None,
            ended_unix_millis: None,
            error: None,
            error_coded: None,
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
            (job.error, job.error_coded, job.result) = (None, None, None);
            (job.step, job.step_coded) = (None, None);
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
