//! The models that tests and benches need.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use engine_base::{CancelToken, ProgressEvent};
use engine_hub::{Hub, HubOptions, ModelState};

use crate::setup::Mode;

/// Time between two progress lines where no terminal draws over them.
const LINE_EVERY: Duration = Duration::from_secs(10);

const MEGABYTE: f64 = 1e6;

/// One line of progress.
fn line(event: &ProgressEvent) -> String {
    let mut line = event.what.clone();
    if event.step > 0 {
        line.push_str(&format!(": {:.1}", event.step as f64 / MEGABYTE));
        if event.of > 0 {
            line.push_str(&format!(" of {:.1}", event.of as f64 / MEGABYTE));
        }
        line.push_str(" MB");
    }
    if let Some(secs) = event.secs_left {
        line.push_str(&format!(", {} s left", secs.ceil()));
    }
    line
}

/// Shows progress: one line drawn over on a terminal, now and then a line in a log.
fn show() -> impl Fn(ProgressEvent) + Send + Sync {
    let terminal = std::io::stdout().is_terminal();
    let shown: Mutex<Option<Instant>> = Mutex::new(None);
    move |event| {
        let mut out = std::io::stdout().lock();
        let mut shown = shown
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Output that nobody reads is no reason to stop.
        if terminal {
            drop(write!(out, "\r\x1b[2K{}", line(&event)));
            drop(out.flush());
        } else if shown.is_none_or(|at| at.elapsed() >= LINE_EVERY) {
            drop(writeln!(out, "{}", line(&event)));
            *shown = Some(Instant::now());
        }
    }
}

/// Fetches the default models, or says which are missing.
///
/// # Errors
/// A model is missing (`Mode::Dry`) or cannot be fetched.
pub(crate) fn run(mode: Mode) -> Result<()> {
    let hub = Hub::open(HubOptions::of_this_machine()?)?;
    let mut missing = Vec::new();
    for entry in hub.entries().iter().filter(|entry| entry.default) {
        if hub.state(&entry.id)? == ModelState::Installed {
            println!("setup: the model {} is here", entry.id);
            continue;
        }
        if mode == Mode::Dry {
            missing.push(entry.id.as_str());
            continue;
        }
        let terms = &entry.licence;
        println!(
            "setup: fetching the model {} ({:.1} MB, {})",
            entry.id,
            entry.bytes() as f64 / MEGABYTE,
            terms.spdx
        );
        let path = hub.pull(&entry.id, &CancelToken::new(), &show());
        if std::io::stdout().is_terminal() {
            println!();
        }
        println!("setup: {}", path?.display());
    }
    if !missing.is_empty() {
        bail!(
            "models are missing: {}; `cargo xtask setup` fetches them",
            missing.join(", ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_known() {
        let mut event = ProgressEvent {
            what: "tiny".into(),
            step: 0,
            of: 0,
            secs_left: None,
        };
        assert_eq!(line(&event), "tiny");
        (event.step, event.of) = (1_500_000, 3_000_000);
        event.secs_left = Some(1.2);
        assert_eq!(line(&event), "tiny: 1.5 of 3.0 MB, 2 s left");
    }
}
