//! The `longtake` program, for tests that start it as a process.

fn main() -> std::process::ExitCode {
    flow_cli::run(std::env::args_os())
}
