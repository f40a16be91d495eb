//! llama.cpp as the peer of the text bench.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Spent;

/// llama.cpp in a process of its own.
pub(super) struct LlamaCpp {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    pub(super) name: String,
}

impl LlamaCpp {
    pub(super) fn start(python: &Path) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/peers/llama_cpp.py");
        let mut child = Command::new(python)
            .arg("-P")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {python:?}"))?;
        let to = child.stdin.take().context("no way to the peer")?;
        let from = BufReader::new(child.stdout.take().context("no way from the peer")?);
        Ok(Self {
            child,
            to,
            from,
            name: String::new(),
        })
    }

    /// Loads `model` in the place of what was loaded.
    pub(super) fn load(&mut self, model: &Path, threads: usize) -> Result<()> {
        self.load_with(model, threads, false)
    }

    /// Loads `model`, its keys and values kept in 32 bits or, as it does by default, in 16.
    pub(super) fn load_with(&mut self, model: &Path, threads: usize, kv_f32: bool) -> Result<()> {
        let request = json!({"do": "load", "path": model, "threads": threads, "kv_f32": kv_f32});
        let reply = self.ask(&request)?;
        let version = reply["version"].as_str().unwrap_or_default();
        self.name = format!("llama.cpp (llama-cpp-python {version})");
        Ok(())
    }

    pub(super) fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.to, "{request}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| {
            format!(
                "llama.cpp gave no answer to {}; is llama-cpp-python installed",
                request["do"]
            )
        })
    }

    /// Wall and processor seconds that a request took over there.
    pub(super) fn spent(&mut self, request: &Value) -> Result<Spent> {
        let reply = self.ask(request)?;
        let figure = |name: &str| {
            reply[name]
                .as_f64()
                .context("expected a time from the peer")
        };
        Ok(Spent {
            wall_secs: figure("secs")?,
            cpu_secs: figure("cpu_secs")?,
        })
    }
}

impl Drop for LlamaCpp {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}
