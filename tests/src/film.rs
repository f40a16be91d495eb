//! A small film for tests: stills made in code, a script as text, a cache and a project of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use engine_base::{CancelToken, SystemClock};
use flow_media::{Picture, Pixels};
use flow_store::{Faults, Store, StoreOptions};
use flow_studio::{FilmReport, FilmRequest, Speaking, Studio, StudioError, StudioOptions, Watcher};

/// Script of the small film: four shots of a second, a cut, a cross-fade and a cut between them,
/// a title, two lines, music and a place's sound.
pub const SCRIPT: &str = include_str!("small_film.md");

/// A folder with everything that a film needs, removed when dropped.
pub struct SmallFilm {
    folder: tempfile::TempDir,
    /// The script; edit it between runs.
    pub script: String,
}

/// What one run committed, by node type.
pub type Made = BTreeMap<String, usize>;

impl SmallFilm {
    /// The film as in [`SCRIPT`], with its four stills.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new() -> std::io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("longtake-film-")
            .tempdir_in(scratch()?)?;
        let film = Self {
            folder,
            script: SCRIPT.to_owned(),
        };
        for (nth, name) in ["shore", "lamp", "stair", "sea"].iter().enumerate() {
            film.paint(name, nth as u32)?;
        }
        Ok(film)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the film goes.
    pub fn out(&self) -> PathBuf {
        self.folder().join("small.mp4")
    }

    /// The cache's folder.
    pub fn cache(&self) -> PathBuf {
        self.folder().join("cache")
    }

    /// Where the script lies once it was written.
    pub fn script_path(&self) -> PathBuf {
        self.folder().join("small.md")
    }

    /// Write the script as it is now.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write_script(&self) -> std::io::Result<()> {
        std::fs::write(self.script_path(), &self.script)
    }

    /// Replace text of the script that stands in it exactly once.
    ///
    /// # Panics
    /// When it does not: the test is wrong then.
    pub fn edit(&mut self, from: &str, to: &str) {
        assert_eq!(
            self.script.matches(from).count(),
            1,
            "{from:?} in\n{}",
            self.script
        );
        self.script = self.script.replace(from, to);
    }

    /// Paint the still `name` in the pattern `nth`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn paint(&self, name: &str, nth: u32) -> std::io::Result<()> {
        let (width_px, height_px) = (320, 200);
        let mut pixels = Vec::with_capacity(width_px as usize * height_px as usize * 4);
        for y in 0..height_px {
            for x in 0..width_px {
                let wave = ((x * (3 + nth) / 7) ^ (y * (5 + nth) / 9)) as u8;
                let red = (x * 255 / width_px) as u8;
                let blue = (y * 255 / height_px) as u8;
                pixels.extend_from_slice(&[
                    red,
                    (wave / 2).wrapping_add((40 * nth) as u8),
                    blue,
                    255,
                ]);
            }
        }
        let picture = Picture {
            width_px,
            height_px,
            pixels: Pixels::Rgba8(pixels),
        };
        let path = self.folder().join(format!("{name}.png"));
        flow_media::still::save_png(&picture, &path).map_err(std::io::Error::other)
    }

    /// What to ask of the studio for it: its lines are shown and not spoken.
    pub fn request(&self) -> FilmRequest {
        FilmRequest {
            script: Some(self.script_path()),
            folders: vec![self.folder().to_owned()],
            out: Some(self.out()),
            preset: Some("ultrafast".into()),
            speaking: Speaking {
                off: true,
                ..Speaking::default()
            },
            as_they_are: true,
            ..FilmRequest::default()
        }
    }

    /// Make the film as `change` asks for it; also gives what was committed, by node type.
    ///
    /// # Errors
    /// What the studio refuses it for.
    pub fn make(
        &self,
        change: impl FnOnce(&mut FilmRequest),
    ) -> Result<(FilmReport, Made), StudioError> {
        self.write_script().map_err(|error| {
            StudioError::new(
                engine_base::Code::Io,
                format!("cannot write the script: {error}"),
            )
        })?;
        let mut request = self.request();
        change(&mut request);
        let mut options = StudioOptions::of_this_machine()?;
        options.cache_folder = self.cache();
        let studio = Studio::open(&options)?;
        let store = self.store()?;
        let mark = store.mark()?;
        let silent: Arc<dyn Watcher> = Arc::new(|_event| {});
        let report = studio.film(&request, &silent, &CancelToken::new())?;
        let mut made = Made::new();
        for commit in store.committed_since(mark)? {
            *made.entry(commit.node_type).or_default() += 1;
        }
        Ok((report, made))
    }

    /// The program at `path` with this film's cache.
    pub fn program(&self, path: &str) -> Command {
        let mut command = Command::new(path);
        command.env("LONGTAKE_CACHE", self.cache());
        command.env_remove("LONGTAKE_FAULT").stdin(Stdio::null());
        command
    }

    /// The program at `path`, told to make this film as [`SmallFilm::request`] asks for it, and to
    /// answer in JSON. Writes the script first.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn film_command(&self, path: &str) -> std::io::Result<Command> {
        self.write_script()?;
        let mut command = self.program(path);
        command.arg("film").arg("--script").arg(self.script_path());
        command.arg("--stills").arg(self.folder());
        command.arg("--out").arg(self.out());
        command.args(["--preset", "ultrafast", "--mute", "--no-upscale", "--json"]);
        Ok(command)
    }

    /// The film's cache, as another process would open it.
    ///
    /// # Errors
    /// The cache cannot be opened.
    pub fn store(&self) -> Result<Store, StudioError> {
        let options = StoreOptions {
            cap_bytes: u64::MAX,
            clock: Arc::new(SystemClock::new()),
            faults: Faults::none(),
        };
        Ok(Store::open(&self.cache(), options)?)
    }
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl Ran {
    /// The one line of JSON on standard output.
    ///
    /// # Panics
    /// When there is not exactly one line, or it is not JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.out.lines().count(), 1, "expected one line: {self:?}");
        match serde_json::from_str(&self.out) {
            Ok(value) => value,
            Err(error) => panic!("{error}: {self:?}"),
        }
    }

    /// Check the exit status and that standard error names all of `texts`.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn ended(&self, status: i32, texts: &[&str]) {
        assert_eq!(self.status.code(), Some(status), "{self:?}");
        for text in texts {
            assert!(
                self.err.contains(text),
                "expected {text:?} in:\n{}",
                self.err
            );
        }
    }
}

/// Run `command` to its end.
///
/// # Errors
/// It cannot be started.
pub fn ran(command: &mut Command) -> std::io::Result<Ran> {
    let output = command.output()?;
    Ok(Ran {
        status: output.status,
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// A folder for test files on the disk that holds the build.
///
/// # Errors
/// It cannot be made.
pub fn scratch() -> std::io::Result<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/scratch");
    std::fs::create_dir_all(&target)?;
    Ok(target)
}
