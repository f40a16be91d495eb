//! Project tasks: set up a machine, make the sample film, run every test, check the rules of the
//! tree, run benches. Started as `cargo xtask NAME`.
//!
//! Knows no crate of the product but the models' (`setup` fetches the default ones) and needs no
//! system library of its own: `setup` is what installs those. Everything else is done by running
//! `cargo`, `git` and the built binaries.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool: its output is what it is for"
)]

mod bench;
mod bindings;
mod check;
mod faults;
mod film;
mod films;
mod gpu;
mod kernels;
mod models;
mod nats;
mod package;
mod setup;
mod steps;
mod suite;
mod ui;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

/// Tasks of the longtake project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Find missing system packages, print the one line that installs them; run it when root.
    /// Then fetch the default models and the cluster's server.
    #[command(
        after_help = "Examples:\n  cargo xtask setup         install what is missing\n  \
                            cargo xtask setup --dry   only say what is missing (exit 1 if any)\n  \
                            cargo xtask setup --no-models"
    )]
    Setup {
        /// Install nothing; only say what is missing.
        #[arg(long)]
        dry: bool,
        /// Leave the models alone.
        #[arg(long)]
        no_models: bool,
        /// Only what films on the command line need: no window, no browser.
        #[arg(long)]
        films: bool,
    },
    /// Build the studio and make a film; without arguments the sample film, into films/.
    #[command(after_help = "Examples:\n  cargo xtask film\n  cargo xtask film \
                            --script my.md --stills pictures --out films/my.mp4\n\nEverything \
                            after `film` goes to `longtake film`.")]
    Film {
        /// Arguments of `longtake film`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Make ten films from ten premises, with a sheet of their frames
    #[command(
        after_help = "Examples:\n  cargo xtask films\n  cargo xtask films --length 20s --seed \
                            3 --out films/third"
    )]
    Films {
        /// Length of each.
        #[arg(long, default_value = "30s")]
        length: String,
        /// Decides every draw.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Folder for the films.
        #[arg(long, default_value = "films/ten")]
        out: PathBuf,
    },
    /// Build the page and the studio, and open it in the browser.
    #[command(
        after_help = "Examples:\n  cargo xtask studio\n  cargo xtask studio --project \
                            films/the-door-left-open.longtake\n\nEverything after `studio` \
                            goes to `longtake serve --ui`."
    )]
    Studio {
        /// Arguments of `longtake serve --ui`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build the page of the studio into ui/dist, from where the programs take it in.
    #[command(
        after_help = "Example:\n  cargo xtask page   then build or run `longtake serve --ui`"
    )]
    Page,
    /// Run everything a change has to pass: setup, format, check, clippy, tests, docs.
    #[command(
        after_help = "Examples:\n  cargo xtask test           all of it\n  cargo xtask test \
                            --quick   without docs\n  cargo xtask test --fuzz    and ten \
                            seconds of search with each fuzz target (nightly, cargo-fuzz)\n\nThe last line is `N passed, N \
                            failed`; a failed step counts as one."
    )]
    Test {
        /// Leave out documentation.
        #[arg(long)]
        quick: bool,
        /// Search with each fuzz target too; building them takes long.
        #[arg(long, conflicts_with = "quick")]
        fuzz: bool,
    },
    /// Write the types of the studio's commands for the pages, into ui/src/api/generated.ts.
    #[command(after_help = "Example:\n  cargo xtask bindings   after a change of the command list")]
    Bindings,
    /// Check the rules of the tree: layers, places of outside crates, sizes, words, receipts.
    #[command(after_help = "Example:\n  cargo xtask check   prints every violation at once")]
    Check,
    /// Compile every GPU kernel for every target; no device is needed.
    #[command(
        after_help = "Examples:\n  cargo xtask kernels                              all targets\n  \
                            cargo xtask kernels --arch sm_90a --verbose      what each kernel takes"
    )]
    Kernels {
        /// Targets, joined by commas.
        #[arg(long, default_value = kernels::TARGETS)]
        arch: String,
        /// Print registers and spills of each.
        #[arg(long)]
        verbose: bool,
    },
    /// Pack what a GPU machine without Rust needs, or take in what it measured.
    #[command(
        after_help = "Examples:\n  cargo xtask gpu --out target/gpu          pack, in parts of at \
                            most 60 MB\n  cargo xtask gpu --results FOLDER          keep its receipts and render \
                            the table\n  cargo xtask gpu --render                  render the table again"
    )]
    Gpu {
        /// New folder for the parts.
        #[arg(long, default_value = "target/gpu")]
        out: PathBuf,
        /// Folder that the machine wrote.
        #[arg(long, conflicts_with = "render")]
        results: Option<PathBuf>,
        /// Only render tests/gpu/results.md.
        #[arg(long)]
        render: bool,
    },
    /// Build the .deb and the .rpm of the studio, into target/packages.
    #[command(
        after_help = "Examples:\n  cargo xtask package                  build and check both\n  \
                            cargo xtask package --test           and install the .deb in a clean \
                            Debian, start it, remove it\n  cargo xtask package --built          of \
                            programs as they were built last\n\nThe test needs root \
                            and the network, and takes minutes. AppImage, .dmg and .msi are \
                            configured in src-tauri/tauri.conf.json and are not built here."
    )]
    Package {
        /// Profile of the programs; any other than dist goes into a folder of its name.
        #[arg(long, default_value = "dist")]
        profile: String,
        /// Install the .deb in a clean system, start it there and remove it again.
        #[arg(long)]
        test: bool,
        /// Take the programs as they were built last.
        #[arg(long)]
        built: bool,
    },
    /// Make a small film on a small cluster while workers, server, owner, links or disks fail.
    #[command(
        after_help = "Examples:\n  cargo xtask faults                        two moments of each \
                      kind\n  cargo xtask faults --moments 20 --full --keep\n  cargo xtask faults \
                      --only 'worker killed' --seed 7\n\nEach kind is a row: artifacts lost or \
                      made twice, which must be none. Where root allows it, hosts are network \
                      namespaces."
    )]
    Faults {
        /// Moments of each kind.
        #[arg(long, default_value_t = 2)]
        moments: u32,
        /// Decides the moments and who is struck.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only kinds whose name begins so.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Long cuts last as long as they are called, not a fifth of it.
        #[arg(long)]
        full: bool,
        /// Keep the receipt where tables may refer to it.
        #[arg(long)]
        keep: bool,
        /// Print nothing but one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run benches, built as packages are, and keep their receipts.
    #[command(
        after_help = "Examples:\n  cargo xtask bench                 list the benches\n  cargo \
                            xtask bench all            run every one\n  cargo xtask bench NAME \
                            --keep     keep the receipt in tests/receipts/, for a table\n  cargo xtask bench text --peers     against llama.cpp, built from source first\n\nWithout \
                            --keep receipts go to tests/receipts/local/, which git ignores."
    )]
    Bench {
        /// Bench to run, or `all`; without it the benches are listed.
        what: Vec<String>,
        /// Keep the receipts where tables may refer to them.
        #[arg(long)]
        keep: bool,
        /// Build what each bench is compared with, and measure it in turn with ours.
        #[arg(long)]
        peers: bool,
        /// Print nothing but one line of JSON for each bench.
        #[arg(long)]
        json: bool,
    },
}

/// The repository's root. Taken from where this file was built, so a task may be started anywhere.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap_or(here);
    root.canonicalize()
        .with_context(|| format!("cannot find the repository: {}", root.display()))
}

fn main() -> ExitCode {
    let outcome = root().and_then(|root| match Arguments::parse().task {
        Task::Setup {
            dry,
            no_models,
            films,
        } => {
            let mode = if dry {
                setup::Mode::Dry
            } else {
                setup::Mode::Install
            };
            let system = setup::run(
                mode,
                if films {
                    setup::For::Films
                } else {
                    setup::For::Everything
                },
            );
            // Both lists at once: what `--dry` reports is whole.
            let models = match (no_models, &system) {
                (true, _) => Ok(()),
                (false, Err(_)) if !dry => Ok(()),
                (false, _) => models::run(mode),
            };
            let server = match &system {
                Err(_) if !dry => Ok(()),
                _ => nats::run(&root, mode),
            };
            system.and(models).and(server)
        }
        Task::Film { args } => film::run(&root, &args),
        Task::Films { length, seed, out } => films::run(&root, &length, seed, &out),
        Task::Studio { args } => ui::studio(&root, &args),
        Task::Page => ui::build(&root),
        Task::Test { quick, fuzz } => {
            let extent = match (quick, fuzz) {
                (true, _) => suite::Extent::Quick,
                (false, false) => suite::Extent::Whole,
                (false, true) => suite::Extent::WithSearch,
            };
            suite::run(&root, extent)
        }
        Task::Bindings => bindings::run(&root),
        Task::Check => check::run(&root),
        Task::Kernels { arch, verbose } => kernels::run(&root, &arch, verbose),
        Task::Gpu {
            out,
            results,
            render,
        } => match (results, render) {
            (Some(results), _) => gpu::take(&root, &results),
            (None, true) => gpu::render(&root),
            (None, false) => gpu::pack(&root, &out),
        },
        Task::Package {
            profile,
            test,
            built,
        } => package::run(
            &root,
            &package::Order {
                profile: &profile,
                test,
                built,
            },
        ),
        Task::Faults {
            moments,
            seed,
            only,
            full,
            keep,
            json,
        } => faults::run(
            &root,
            &faults::Order {
                moments,
                seed,
                only: &only,
                full,
                keep,
                json,
            },
        ),
        Task::Bench {
            what,
            keep,
            peers,
            json,
        } => bench::run(
            &root,
            &bench::Order {
                what: &what,
                keep,
                peers,
                json,
            },
        ),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
        for name in [
            "setup", "film", "films", "studio", "page", "test", "bindings", "check", "bench",
            "kernels", "gpu", "package", "faults",
        ] {
            let mut command = Arguments::command();
            let task = command.find_subcommand_mut(name).unwrap();
            let help = task.render_long_help().to_string();
            assert!(help.contains("Example"), "{name} shows no example:\n{help}");
        }
    }

    #[test]
    fn film_arguments_pass_through_whole() {
        let parsed = Arguments::parse_from(["x", "film", "--script", "a.md", "--json"]);
        let Task::Film { args } = parsed.task else {
            panic!("not film: {parsed:?}")
        };
        assert_eq!(args, ["--script", "a.md", "--json"]);
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().unwrap().join("Cargo.lock").is_file());
    }
}
