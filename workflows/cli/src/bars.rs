//! Progress on a terminal.

use std::sync::Mutex;
use std::time::Duration;

use flow_studio::{StudioEvent, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One bar with the seconds left; plain lines for warnings. Silent when told so.
pub(crate) struct Bars {
    bar: ProgressBar,
    quiet: bool,
    stage: Mutex<String>,
}

impl Bars {
    /// A bar on standard error, or none.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        if !quiet {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        bar.set_style(style("{spinner} {msg}"));
        Self {
            bar,
            quiet,
            stage: Mutex::default(),
        }
    }

    /// Take the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn stage(&self) -> String {
        self.stage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_template_is_ours| ProgressStyle::default_bar())
        .progress_chars("━╸ ")
}

/// Seconds as `1:05` or `2:03:04`.
pub(crate) fn clock(secs: f64) -> String {
    let secs = secs.round() as u64;
    let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{secs:02}")
    } else {
        format!("{minutes}:{secs:02}")
    }
}

impl Watcher for Bars {
    fn event(&self, event: StudioEvent) {
        match event {
            StudioEvent::Stage { what } => {
                self.bar.set_style(style("{spinner} {msg}"));
                let what = what.text;
                self.bar.set_message(what.clone());
                *self
                    .stage
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner) = what;
            }
            StudioEvent::Progress(progress) => {
                if progress.of > 0 {
                    self.bar
                        .set_style(style("{msg:22} {bar:32} {percent:>3}%  {prefix}"));
                    self.bar.set_length(progress.of);
                    self.bar.set_position(progress.step);
                }
                let left = progress
                    .secs_left
                    .map(|secs| format!("{} left", clock(secs)));
                self.bar.set_prefix(left.unwrap_or_default());
                let mut message = self.stage();
                if message.is_empty() {
                    message.clone_from(&progress.what);
                }
                if progress.what == "upscaling" {
                    message = format!("{message} {}/{}", progress.step, progress.of);
                }
                self.bar.set_message(message);
            }
            StudioEvent::Warning { what } => {
                if !self.quiet {
                    self.bar
                        .suspend(|| tracing_free_line(&format!("note: {what}")));
                }
            }
            StudioEvent::Node { .. } | StudioEvent::Preview { .. } => {}
        }
    }
}

fn tracing_free_line(line: &str) {
    use std::io::Write as _;
    // A closed terminal is no reason to stop the work.
    drop(writeln!(std::io::stderr(), "{line}"));
}
