//! The studio's window.
//!
//! Duty: one window over the studio's own loopback server, which this process runs: the page in it
//! is the one that a browser gets. Dialogs, notices and waking are the window's; everything about
//! films is a command of the studio. It must not know what the commands mean.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod awake;
mod notices;
mod window;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tauri::{Manager as _, RunEvent};

use crate::window::Opened;

/// A project named on the command line, such as by a double click, in the folder of that start.
fn project_of(args: impl IntoIterator<Item = String>, folder: &Path) -> Option<PathBuf> {
    let mut paths = args.into_iter().skip(1).filter(|arg| !arg.starts_with('-'));
    let path = paths.next()?;
    Some(window::project_at(Path::new(&path), folder))
}

/// What `tauri.conf.json` says, with the splash and the icons.
#[allow(
    clippy::exit,
    clippy::large_stack_frames,
    reason = "both stand in the macro's own code"
)]
fn context() -> tauri::Context {
    tauri::generate_context!()
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let here = std::env::current_dir().unwrap_or_default();
    let project = project_of(std::env::args(), &here);
    let built = tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|app, args, folder| {
            window::come_forward(app, project_of(args, Path::new(&folder)));
        }))
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_notification::init())
        .setup(move |app| {
            window::open(app.handle(), project)?;
            Ok(())
        })
        .build(context());
    let app = match built {
        Ok(app) => app,
        Err(error) => {
            use std::io::Write as _;
            // Nothing can be shown where no window opens; what fails here has nowhere else to go.
            drop(writeln!(
                std::io::stderr(),
                "error: cannot open a window: {error}"
            ));
            return ExitCode::FAILURE;
        }
    };
    app.run(|app, event| {
        if matches!(event, RunEvent::Exit)
            && let Some(opened) = app.try_state::<Opened>()
        {
            // Jobs that run are stopped and go on at the next start.
            opened.close();
        }
    });
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_that_is_no_flag_is_the_project() {
        let of = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned());
            project_of(words.collect::<Vec<_>>(), Path::new("/films"))
        };
        assert_eq!(of(&["longtake-desktop"]), None);
        assert_eq!(
            of(&["longtake-desktop", "--x", "A b.longtake"]),
            Some(PathBuf::from("/films/A b.longtake"))
        );
    }
}
