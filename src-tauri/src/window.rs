//! The window: a splash until the studio's server answers, then its page.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use engine_base::Code;
use flow_studio::desk::DeskOptions;
use flow_studio::{RunningStudio, ServeOptions, Shell};
use tauri::{AppHandle, Manager as _, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder};

use crate::notices;

/// Name of the one window.
pub(crate) const MAIN: &str = "main";

/// What stands behind the window.
enum Behind {
    /// It starts; this project is opened then.
    Starting(Option<PathBuf>),
    /// The server that the page comes from; it ends with this.
    Serving { _shell: Shell },
    /// Another process's server, which the page comes from and which goes on without the window.
    Joined,
    /// The program ends.
    Ended,
}

/// What stands behind the window; gone once the program ends.
pub(crate) struct Opened {
    behind: Mutex<Behind>,
}

impl Opened {
    fn lock(&self) -> MutexGuard<'_, Behind> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stop the server and what it makes.
    pub(crate) fn close(&self) {
        let before = std::mem::replace(&mut *self.lock(), Behind::Ended);
        drop(before);
    }
}

/// Open the window and start the studio behind it.
///
/// # Errors
/// The system gives no window.
pub(crate) fn open(app: &AppHandle, project: Option<PathBuf>) -> tauri::Result<()> {
    let window = WebviewWindowBuilder::new(app, MAIN, WebviewUrl::App("index.html".into()))
        .title("Longtake")
        .inner_size(1440.0, 900.0)
        .min_inner_size(960.0, 600.0)
        // Files are dropped into the page, which uploads them.
        .disable_drag_drop_handler()
        .on_navigation(is_ours)
        .build()?;
    app.manage(Opened {
        behind: Mutex::new(Behind::Starting(project)),
    });
    let app = app.clone();
    // The cache and the models are opened beside the event loop, so that the window answers.
    std::thread::Builder::new()
        .name("studio".into())
        .spawn(move || {
            if let Err(error) = start(&app, &window) {
                say(&window, &format!("{error:#}"));
            }
        })?;
    Ok(())
}

fn start(app: &AppHandle, window: &WebviewWindow) -> anyhow::Result<()> {
    let desk = DeskOptions::of_this_machine("longtake-desktop")?;
    let data_folder = desk.data_folder.clone();
    let (url, serves) = match Shell::start(desk, &ServeOptions::default()) {
        Ok(shell) => {
            notices::watch(app, &shell)?;
            (shell.url(), Behind::Serving { _shell: shell })
        }
        Err(error) if error.code == Code::Busy => {
            let running = RunningStudio::find(&data_folder)?;
            // One that serves commands alone has nothing to show.
            anyhow::ensure!(running.has_pages(), error);
            (running.url(), Behind::Joined)
        }
        Err(error) => return Err(error.into()),
    };
    let mut url: Url = url.parse().context("the studio's own address")?;
    let opened = app.state::<Opened>();
    let mut behind = opened.lock();
    match &*behind {
        Behind::Starting(Some(project)) => url.set_fragment(Some(&place_of(project))),
        Behind::Starting(None) | Behind::Serving { .. } | Behind::Joined => {}
        Behind::Ended => return Ok(()),
    }
    *behind = serves;
    drop(behind);
    window.navigate(url)?;
    Ok(())
}

/// The window shows the splash and the studio's page; any other address opens nowhere.
fn is_ours(url: &Url) -> bool {
    let loopback = url.scheme() == "http" && url.host_str() == Some("127.0.0.1");
    loopback
        || matches!(url.scheme(), "tauri" | "about")
        || url.host_str() == Some("tauri.localhost")
}

/// The project that a path names: its folder, or a file in it such as its database. `folder` is
/// where the path was named.
pub(crate) fn project_at(path: &Path, folder: &Path) -> PathBuf {
    let whole = folder.join(path);
    // The page knows projects by their whole path.
    let whole = std::path::absolute(&whole).unwrap_or(whole);
    let is_project = |path: &&Path| path.extension().is_some_and(|ending| ending == "longtake");
    let folder = whole.ancestors().find(is_project).map(Path::to_owned);
    folder.unwrap_or(whole)
}

/// The page's place for a project, as it stands behind `#`.
fn place_of(project: &Path) -> String {
    let path: String =
        form_urlencoded::byte_serialize(project.to_string_lossy().as_bytes()).collect();
    format!("/story?project={path}")
}

fn say(window: &WebviewWindow, what: &str) {
    let text = serde_json::to_string(what).unwrap_or_default();
    let script = format!("document.getElementById('what').textContent = {text}");
    // A window that is gone needs no message.
    drop(window.eval(script));
}

/// Another start of the program: show the window that is there, with the project it named.
pub(crate) fn come_forward(app: &AppHandle, project: Option<PathBuf>) {
    let Some(window) = app.get_webview_window(MAIN) else {
        return;
    };
    drop(window.unminimize());
    drop(window.show());
    drop(window.set_focus());
    let (Some(project), Some(opened)) = (project, app.try_state::<Opened>()) else {
        return;
    };
    let mut behind = opened.lock();
    if let Behind::Starting(wanted) = &mut *behind {
        *wanted = Some(project);
        return;
    }
    let place = serde_json::to_string(&place_of(&project)).unwrap_or_default();
    // A window that is gone opens nothing.
    drop(window.eval(format!("location.hash = {place}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_a_place_in_the_page() {
        assert_eq!(
            place_of(Path::new("/films/A & b/Tür.longtake")),
            "/story?project=%2Ffilms%2FA+%26+b%2FT%C3%BCr.longtake"
        );
    }

    #[test]
    fn a_path_names_a_project_or_something_in_it() {
        let at = |path: &str| project_at(Path::new(path), Path::new("/films"));
        assert_eq!(at("a.longtake"), Path::new("/films/a.longtake"));
        assert_eq!(at("/b/a.longtake/"), Path::new("/b/a.longtake"));
        assert_eq!(at("a.longtake/project.db"), Path::new("/films/a.longtake"));
        assert_eq!(at("/b/film"), Path::new("/b/film"));
    }

    #[test]
    fn no_page_leads_out_of_the_studio() {
        let ours = |text: &str| is_ours(&text.parse().unwrap());
        assert!(ours("http://127.0.0.1:4000/?token=a"));
        assert!(ours("tauri://localhost/index.html"));
        for other in [
            "https://127.0.0.1/",
            "http://127.0.0.1.example.org/",
            "http://localhost/",
            "file:///etc/passwd",
        ] {
            assert!(!ours(other), "{other}");
        }
    }
}
