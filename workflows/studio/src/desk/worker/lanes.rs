//! Lanes: what carries the jobs of the queue out, one after the other.

use std::sync::{Arc, PoisonError};

use engine_base::{CancelToken, Code, Preview};
use flow_store::jobs::JobRow;

use super::super::events::{DeskEvent, ToastLevel};
use super::super::queue::{Job, JobPreview, JobResult, JobState};
use super::super::{Desk, lock, perform};
use super::Wish;
use super::report::Reporter;
use crate::config;
use crate::error::StudioError;
use crate::events::Watcher;
use crate::say::{Said, Say};

/// Jobs of a lane run one after the other; neither fetching a model nor copying a
/// video keeps a film from being made.
const LANES: [&str; 3] = ["making", "fetching", "copying"];

fn lane_of(kind: &str) -> &'static str {
    match kind {
        "media.proxy" => LANES[2],
        kind if kind.starts_with("models.") => LANES[1],
        _ => LANES[0],
    }
}

impl Desk {
    /// Begin to carry jobs out.
    pub(in crate::desk) fn start_workers(&self) -> Result<(), StudioError> {
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
    pub(in crate::desk) fn stop_workers(&self) {
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
            // Everything is made by the processor; what is fetched is made nowhere.
            held.job.device = (lane != LANES[1]).then(|| format!("{} · cpu", config::host_name()));
            held.row.starts += 1;
            if let Err(error) = held.write(&self.queue.db) {
                // It cannot be told apart later from one that never ran: it does not run.
                held.job.state = JobState::Failed;
                let said = error.as_said();
                (held.job.error, held.job.error_coded) = (Some(said.text), said.coded);
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
            (held.cancel, held.picture) = (None, None);
            let job = &mut held.job;
            (job.secs_left, job.preview, job.device) = (None, None, None);
            job.ended_unix_millis = Some(now);
            let was_stopped = matches!(&outcome, Err(error) if error.code == Code::Cancelled);
            match outcome {
                Ok(result) => {
                    job.state = JobState::Done;
                    job.done = job.of;
                    job.result = Some(result);
                    (job.step, job.step_coded) = (None, None);
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
                    let said = error.as_said();
                    (job.error, job.error_coded) = (Some(said.text), said.coded);
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
            let Said { text, coded } = Say::JobFailed {
                title: told.title.clone(),
                why: error.clone(),
            }
            .into();
            self.tell(&DeskEvent::Toast {
                level: ToastLevel::Error,
                message: text,
                coded,
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
    pub(super) fn progress(&self, id: i64, change: impl FnOnce(&mut Job)) {
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

    /// Keep a picture of what a job makes; the one before goes.
    pub(super) fn show(&self, id: i64, node: String, picture: &Preview) {
        let jpeg = flow_media::still::jpeg_of(picture.width_px, picture.height_px, &picture.rgb);
        let Ok(jpeg) = jpeg else { return };
        let job = {
            let mut jobs = lock(&self.queue.jobs);
            let Some(held) = jobs.held.get_mut(&id) else {
                return;
            };
            let number = held.job.preview.as_ref().map_or(0, |shown| shown.number) + 1;
            held.picture = Some(jpeg.into());
            held.job.preview = Some(JobPreview { number, of: node });
            held.job.clone()
        };
        self.tell_job(&job);
    }

    pub(super) fn say(&self, id: i64, line: &str) {
        if let Err(error) = self.queue.db.say(id, line) {
            tracing::debug!(%error, id, "a line of a job is lost");
        }
        self.tell(&DeskEvent::JobLog {
            id,
            line: line.to_owned(),
        });
    }
}
