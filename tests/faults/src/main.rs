//! The faults program: a small film on a small cluster while something goes wrong. Each kind of
//! fault is one row: artifacts lost or made twice, which must be none.
//!
//! Started by `cargo xtask faults`. It also is the relay of slow links and the one that changes
//! bytes (`relay`, `flip`), which run as processes of their own on the hosts.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool: its output is what it is for"
)]

mod count;
mod fault;
mod scene;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Parser, Subcommand};
use longtake_faults::network::{echo, flip, tun};
use longtake_faults::receipt::Measured;
use longtake_faults::{Better, Receipt};

use fault::{FAULTS, Fault, Moment};
use scene::{Scene, Truth};

/// Faults on a cluster.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Moments of each kind of fault.
    #[arg(long, default_value_t = 2)]
    moments: u32,
    /// Decides the moments and who is struck.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only kinds whose name begins so; several are joined by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Long cuts last as long as they are called; without it a fifth of that.
    #[arg(long)]
    full: bool,
    /// The product's program (default: the one built beside this).
    #[arg(long)]
    program: Option<PathBuf>,
    /// Print nothing but the last line, which is JSON.
    #[arg(long)]
    json: bool,
    /// Folder for the receipt.
    #[arg(long, default_value = "tests/receipts/local")]
    receipts: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Relay packets between TUN devices.
    Relay {
        /// How long each packet is under way.
        #[arg(long)]
        delay_millis: u64,
        /// How many of a hundred are lost.
        #[arg(long)]
        loss_percent: u8,
        /// Decides which are lost.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// `DEVICE=NAMESPACE=ADDRESS` of each host.
        ends: Vec<String>,
    },
    /// Send back what is sent.
    Echo {
        /// Where to listen.
        #[arg(long)]
        listen: String,
    },
    /// Send bytes to where they are sent back; prints milliseconds of the first byte and of all.
    Ask {
        /// Where to.
        #[arg(long)]
        to: String,
        /// How many.
        #[arg(long)]
        count: usize,
        /// How long silence is borne.
        #[arg(long)]
        patience_millis: u64,
    },
    /// Relay connections and change a byte of every answer.
    Flip {
        /// Where to listen.
        #[arg(long)]
        listen: String,
        /// Where to.
        #[arg(long)]
        to: String,
    },
}

/// What came of a kind of fault.
#[derive(Debug, Default)]
struct Tally {
    lost: u64,
    twice: u64,
    differing: u64,
    failed: Vec<String>,
    wall_secs: Vec<f64>,
}

impl Tally {
    fn bad(&self) -> u64 {
        self.lost + self.twice + self.differing + self.failed.len() as u64
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let mut receipt = Receipt::new("faults")?;
    let say = |text: String| {
        if !arguments.json {
            println!("{text}");
        }
    };
    let truth = Truth::make(arguments.program.as_deref())
        .context("cannot make the film without a cluster")?;
    say(format!(
        "the film alone: {} results, {:.1} s",
        truth.keys.len(),
        truth.wall.as_secs_f64()
    ));
    let chosen: Vec<&Fault> = FAULTS
        .iter()
        .filter(|fault| {
            arguments.only.is_empty()
                || arguments
                    .only
                    .iter()
                    .any(|name| fault.name.starts_with(name))
        })
        .collect();
    ensure!(
        !chosen.is_empty(),
        "no such kind of fault: {:?}",
        arguments.only
    );
    let mut bad = 0;
    for fault in chosen {
        let tally = strike(fault, arguments, &truth, &say)?;
        let Some(tally) = tally else { continue };
        bad += tally.bad();
        let value = [tally.bad() as f64];
        receipt.add(Measured {
            name: fault.name,
            unit: "artifacts",
            better: Better::Lower,
            samples: &value,
            peer: None,
            floor: Some(0.0),
        })?;
        receipt.add(Measured {
            name: &format!("{}, wall", fault.name),
            unit: "s",
            better: Better::Lower,
            samples: &tally.wall_secs,
            peer: None,
            floor: None,
        })?;
    }
    let path = receipt.write(&arguments.receipts)?;
    receipt.print_last_line(&path, std::io::stdout().lock())?;
    if bad > 0 {
        bail!("{bad} artifacts or results are not as without faults");
    }
    Ok(())
}

/// All moments of one kind; nothing where it cannot be shown here.
fn strike(
    fault: &Fault,
    arguments: &Arguments,
    truth: &Truth,
    say: &dyn Fn(String),
) -> Result<Option<Tally>> {
    let mut tally = Tally::default();
    for nth in 0..arguments.moments {
        let moment = Moment::draw(arguments.seed, fault.name, nth, arguments.full);
        let begun = Instant::now();
        let scene = Scene::open(fault, truth)?;
        if nth == 0 {
            say(format!("{:<34} {}", fault.name, scene.about()));
        }
        if let Some(why) = scene.cannot(fault) {
            say(format!("{:<34} NOT SHOWN: {why}", ""));
            return Ok(None);
        }
        match scene.play(fault, &moment, truth) {
            Ok(seen) => {
                tally.wall_secs.push(seen.wall.as_secs_f64());
                tally.lost += seen.lost;
                tally.twice += seen.twice;
                tally.differing += u64::from(!seen.identical);
                say(format!(
                    "{:<34} at file {} on {}: lost {}, made twice {}, {}, {:.1} s; {}",
                    "",
                    moment.after(truth.files),
                    scene::worker_name(moment.victim),
                    seen.lost,
                    seen.twice,
                    if seen.identical {
                        "identical"
                    } else {
                        "DIFFERENT"
                    },
                    seen.wall.as_secs_f64(),
                    seen.notes
                ));
            }
            Err(error) => {
                tally.wall_secs.push(begun.elapsed().as_secs_f64());
                say(format!("{:<34} FAILED: {error:#}", ""));
                scene.keep_logs(fault.name, nth);
                tally.failed.push(format!("{error:#}"));
            }
        }
    }
    Ok(Some(tally))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.part {
        None => run(&arguments),
        Some(Part::Relay {
            delay_millis,
            loss_percent,
            seed,
            ends,
        }) => {
            let ends: Option<Vec<tun::End>> = ends.iter().map(|end| tun::End::parse(end)).collect();
            let delay = Duration::from_millis(*delay_millis);
            match ends {
                Some(ends) => tun::relay(&ends, delay, *loss_percent, *seed)
                    .context("cannot relay between TUN devices"),
                None => Err(anyhow::anyhow!("expected DEVICE=NAMESPACE=ADDRESS")),
            }
        }
        Some(Part::Echo { listen }) => {
            echo::serve(listen).with_context(|| format!("cannot answer on {listen}"))
        }
        Some(Part::Ask {
            to,
            count,
            patience_millis,
        }) => echo::ask(to, *count, Duration::from_millis(*patience_millis))
            .map(|(first, all)| println!("{} {}", first.as_millis(), all.as_millis()))
            .with_context(|| format!("cannot ask {to}")),
        Some(Part::Flip { listen, to }) => {
            flip::relay(listen, to).with_context(|| format!("cannot relay from {listen} to {to}"))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
