//! Desktop notices when jobs end, and no sleep while one runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use flow_studio::Shell;
use flow_studio::desk::events::DeskEvent;
use flow_studio::desk::queue::{Job, JobState};
use tauri::{AppHandle, Manager as _};
use tauri_plugin_notification::NotificationExt as _;

use crate::awake::Awake;
use crate::window::MAIN;

/// What is known of the jobs that run.
#[derive(Debug, Default)]
struct Running {
    jobs: BTreeSet<i64>,
    awake: Option<Awake>,
}

impl Running {
    /// Take in a job's news. True when it has just ended and a person would want to hear of it.
    fn take(&mut self, job: &Job) -> bool {
        let ran = self.jobs.contains(&job.id);
        if job.state == JobState::Running {
            self.jobs.insert(job.id);
        } else {
            self.jobs.remove(&job.id);
        }
        ran && matches!(job.state, JobState::Done | JobState::Failed)
    }

    /// Hold off sleep exactly while something runs.
    fn keep_awake(&mut self) {
        if self.jobs.is_empty() {
            self.awake = None;
        } else if self.awake.is_none() {
            self.awake = Some(Awake::hold());
        }
    }
}

/// Watch the jobs behind the window for as long as its server lives.
pub(crate) fn watch(app: &AppHandle, shell: &Shell) {
    let app = app.clone();
    let running = Mutex::new(Running::default());
    shell.desk().watch(Arc::new(move |event: &DeskEvent| {
        let DeskEvent::Job { job } = event else {
            return;
        };
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = running.take(job);
        running.keep_awake();
        drop(running);
        if ended && !is_looked_at(&app) {
            tell(&app, job);
        }
    }));
}

/// Whether somebody sees the queue anyway.
fn is_looked_at(app: &AppHandle) -> bool {
    app.get_webview_window(MAIN)
        .is_some_and(|window| window.is_focused().unwrap_or(false))
}

fn tell(app: &AppHandle, job: &Job) {
    let title = if job.state == JobState::Done {
        "Longtake has finished"
    } else {
        "Longtake could not finish"
    };
    let body = match &job.error {
        Some(error) => format!("{}: {error}", job.title),
        None => job.title.clone(),
    };
    // A desktop without notices loses nothing: the queue shows the same.
    drop(app.notification().builder().title(title).body(body).show());
}
