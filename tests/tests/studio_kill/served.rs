//! `longtake serve` as a process of its own, and one who asks it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use longtake_tests::film::SmallFilm;
use reqwest::blocking::Client;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longtake-under-test");

/// Longest that a job of the small film may take on a busy machine.
const JOB_SECS_MAX: u64 = 180;

/// One who asks a server.
#[derive(Clone)]
pub(crate) struct Caller {
    http: Client,
    base: String,
    token: String,
}

impl Caller {
    /// The answer of a command, or why there is none: the server's refusal, or that it is gone.
    pub(crate) fn ask(&self, name: &str, args: &Value) -> Result<Value, String> {
        let url = format!("{}/api/call/{name}", self.base);
        let sent = self.http.post(url).bearer_auth(&self.token).json(args);
        let answer: Value = sent
            .send()
            .and_then(reqwest::blocking::Response::json)
            .map_err(|error| error.to_string())?;
        match answer.get("ok") {
            Some(ok) => Ok(ok.clone()),
            None => Err(answer.to_string()),
        }
    }

    #[track_caller]
    pub(crate) fn call(&self, name: &str, args: &Value) -> Value {
        self.ask(name, args)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn upload(&self, project: &str, name: &str, bytes: Vec<u8>) {
        let url = reqwest::Url::parse_with_params(
            &format!("{}/api/upload", self.base),
            [("project", project), ("name", name)],
        );
        let sent = self.http.post(url.unwrap()).bearer_auth(&self.token);
        let answer = sent.body(bytes).send().unwrap();
        assert_eq!(answer.status(), 200, "{name}");
    }
}

/// A server with the film's cache and folders; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) caller: Caller,
}

impl Server {
    pub(crate) fn start(film: &SmallFilm) -> Self {
        let mut command = film.program(PROGRAM);
        command.args(["--json", "serve", "--data"]);
        command.arg(film.folder().join("data"));
        command.arg("--projects");
        command.arg(film.folder().join("projects"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let http = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(120));
        let caller = Caller {
            http: http.build().unwrap(),
            base: format!("http://{}", told["address"].as_str().unwrap()),
            token: told["token"].as_str().unwrap().to_owned(),
        };
        Self { child, caller }
    }

    /// End it as a power cut would: with nothing flushed, closed or unwound.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9),
            "it ended by itself: {status}"
        );
    }

    /// End it in good order.
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn job(&self, id: i64) -> Value {
        let jobs = self.caller.call("queue.list", &json!({}));
        let found = jobs.as_array().unwrap().iter().find(|job| job["id"] == id);
        found
            .unwrap_or_else(|| panic!("job {id} is gone: {jobs}"))
            .clone()
    }

    /// How often the job's log says that the program ended while it ran.
    pub(crate) fn interruptions(&self, id: i64) -> usize {
        let lines = self.caller.call("queue.log", &json!({ "id": id }));
        let said = lines.as_array().unwrap().iter();
        said.filter(|line| *line == "the program ended while this ran")
            .count()
    }

    /// The job once it is done.
    pub(crate) fn done(&self, id: i64) -> Value {
        self.until(id, |job| job["state"] == "done")
    }

    /// The job once `is_there` holds of it, or once it ended.
    pub(crate) fn until(&self, id: i64, is_there: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let job = self.job(id);
            if is_there(&job) || job["state"] == "done" {
                return job;
            }
            let over = matches!(job["state"].as_str(), Some("failed" | "cancelled"));
            assert!(
                !over && began.elapsed() < Duration::from_secs(JOB_SECS_MAX),
                "{job}"
            );
            std::thread::sleep(Duration::from_millis(4));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
