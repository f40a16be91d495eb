//! The `longtake` program.

fn main() -> std::process::ExitCode {
    flow_cli::run(std::env::args_os())
}
