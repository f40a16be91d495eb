//! Desktop notices when jobs end, and no sleep while one runs.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use flow_studio::Shell;
use flow_studio::desk::Desk;
use flow_studio::desk::events::DeskEvent;
use flow_studio::desk::queue::{Job, JobState};
use flow_studio::desk::settings::UiLanguage;
use tauri::{AppHandle, Manager as _};
use tauri_plugin_notification::NotificationExt as _;

use crate::awake::Awake;
use crate::window::MAIN;

/// Name of the program's icon in the desktop's own set.
const ICON: &str = "longtake";

/// Ended jobs that wait to be told of; a desktop that answers nothing hears of no more.
const ENDED_MAX: usize = 64;

/// What is known of the jobs.
#[derive(Debug, Default)]
struct Jobs {
    /// Numbers of those that run.
    running: BTreeSet<i64>,
    /// Those that a person would want to hear of, and has not.
    ended: Vec<Job>,
}

impl Jobs {
    /// Take in a job's news. False when they change nothing here.
    fn take(&mut self, job: &Job) -> bool {
        if job.state == JobState::Running {
            return self.running.insert(job.id);
        }
        let ran = self.running.remove(&job.id);
        let is_heard = matches!(job.state, JobState::Done | JobState::Failed);
        if ran && is_heard && self.ended.len() < ENDED_MAX {
            self.ended.push(job.clone());
        }
        ran
    }
}

fn lock(jobs: &Mutex<Jobs>) -> MutexGuard<'_, Jobs> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watch the jobs behind the window for as long as its server lives.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn watch(app: &AppHandle, shell: &Shell) -> std::io::Result<()> {
    let jobs = Arc::new(Mutex::new(Jobs::default()));
    let (app, desk, told) = (app.clone(), Arc::downgrade(shell.desk()), Arc::clone(&jobs));
    let (sender, news) = mpsc::sync_channel::<()>(1);
    shell.desk().watch(Arc::new(move |event: &DeskEvent| {
        if let DeskEvent::Job { job } = event
            && lock(&told).take(job)
        {
            match sender.try_send(()) {
                // Where it is full, the look that is still to come sees this too.
                Ok(()) | Err(_) => {}
            }
        }
    }));
    // The desktop answers when it likes: nothing of the studio waits for it.
    std::thread::Builder::new()
        .name("notices".into())
        .spawn(move || follow(&app, &desk, &jobs, &news))?;
    Ok(())
}

fn follow(app: &AppHandle, desk: &Weak<Desk>, jobs: &Mutex<Jobs>, news: &mpsc::Receiver<()>) {
    // Held exactly while something runs.
    let mut awake = None;
    while news.recv().is_ok() {
        let (runs, ended) = {
            let mut jobs = lock(jobs);
            (!jobs.running.is_empty(), std::mem::take(&mut jobs.ended))
        };
        match runs {
            true if awake.is_none() => awake = Some(Awake::hold()),
            true => {}
            false => awake = None,
        }
        let Some(settings) = desk.upgrade().map(|desk| desk.settings()) else {
            return;
        };
        if settings.notify && !is_looked_at(app) {
            for job in &ended {
                tell(app, job, settings.language);
            }
        }
    }
}

/// Whether somebody sees the queue anyway.
fn is_looked_at(app: &AppHandle) -> bool {
    app.get_webview_window(MAIN)
        .is_some_and(|window| window.is_focused().unwrap_or(false))
}

/// What a notice says first.
const fn title(language: UiLanguage, is_done: bool) -> &'static str {
    match (language, is_done) {
        (UiLanguage::En, true) => "Longtake has finished",
        (UiLanguage::En, false) => "Longtake could not finish",
        (UiLanguage::De, true) => "Longtake ist fertig",
        (UiLanguage::De, false) => "Longtake konnte nicht fertig werden",
    }
}

fn tell(app: &AppHandle, job: &Job, language: UiLanguage) {
    let body = match &job.error {
        Some(error) => format!("{}: {error}", job.title),
        None => job.title.clone(),
    };
    let notice = app.notification().builder().icon(ICON);
    let notice = notice.title(title(language, job.state == JobState::Done));
    // A desktop without notices loses nothing: the queue shows the same.
    drop(notice.body(body).show());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: i64, state: JobState) -> Job {
        let text = serde_json::json!({ "id": id, "kind": "render.start", "title": "T",
            "state": state, "done": 0, "of": 0, "created_unix_millis": 0 });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn people_hear_of_jobs_that_ran_and_ended() {
        let mut jobs = Jobs::default();
        assert!(!jobs.take(&job(1, JobState::Waiting)));
        assert!(jobs.take(&job(1, JobState::Running)));
        assert!(!jobs.take(&job(1, JobState::Running)), "its progress");
        assert!(jobs.take(&job(2, JobState::Running)));
        assert_eq!(jobs.running.len(), 2);
        assert!(jobs.take(&job(1, JobState::Done)));
        assert!(!jobs.take(&job(1, JobState::Done)), "told once");
        assert!(jobs.take(&job(2, JobState::Paused)));
        assert!(jobs.running.is_empty());
        assert!(!jobs.take(&job(3, JobState::Cancelled)));
        let ended: Vec<i64> = jobs.ended.iter().map(|job| job.id).collect();
        assert_eq!(ended, [1], "a person paused the other one");
    }
}
