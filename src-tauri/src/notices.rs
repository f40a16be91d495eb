//! Desktop notices when jobs end, and no sleep while one runs.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::sync::{Arc, Weak};

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
///
/// # Errors
/// The system gives no thread.
pub(crate) fn watch(app: &AppHandle, shell: &Shell) -> std::io::Result<()> {
    let (sender, news) = mpsc::channel::<Box<Job>>();
    shell.desk().watch(Arc::new(move |event: &DeskEvent| {
        if let DeskEvent::Job { job } = event {
            // Nobody hears of it once the program ends.
            drop(sender.send(job.clone()));
        }
    }));
    let (app, desk) = (app.clone(), Arc::downgrade(shell.desk()));
    // The desktop answers when it likes: nothing of the studio waits for it.
    std::thread::Builder::new()
        .name("notices".into())
        .spawn(move || follow(&app, &desk, &news))?;
    Ok(())
}

fn follow(app: &AppHandle, desk: &Weak<Desk>, news: &mpsc::Receiver<Box<Job>>) {
    let mut running = Running::default();
    while let Ok(job) = news.recv() {
        let ended = running.take(&job);
        running.keep_awake();
        let Some(desk) = desk.upgrade() else { return };
        let settings = desk.settings();
        drop(desk);
        if ended && settings.notify && !is_looked_at(app) {
            tell(app, &job, settings.language);
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
        let mut running = Running::default();
        assert!(!running.take(&job(1, JobState::Waiting)));
        assert!(!running.take(&job(1, JobState::Running)));
        assert!(!running.take(&job(2, JobState::Running)));
        assert_eq!(running.jobs.len(), 2);
        assert!(running.take(&job(1, JobState::Done)));
        assert!(!running.take(&job(1, JobState::Done)), "told once");
        assert!(
            !running.take(&job(2, JobState::Paused)),
            "a person did that"
        );
        assert!(running.jobs.is_empty());
        assert!(!running.take(&job(3, JobState::Cancelled)));
    }
}
