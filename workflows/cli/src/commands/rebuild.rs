//! `longtake rebuild`: a film made again from its own file.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use engine_base::CancelToken;
use flow_studio::{FilmRequest, StudioError, Watcher};

use super::{say, say_json, show_film, studio};
use crate::args::Cli;
use crate::bars::Bars;

/// Which film, and where its files lie.
#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    /// A film that longtake made
    film: PathBuf,

    /// Folder of pictures, videos and sounds, for those that are not in the cache any more
    #[arg(long = "stills", value_name = "DIR")]
    folders: Vec<PathBuf>,

    /// Where the new film goes (default: NAME-again.mp4)
    #[arg(long, value_name = "FILE.mp4")]
    out: Option<PathBuf>,
}

/// Makes it, and says whether it is the same.
pub(crate) fn rebuild(
    cli: &Cli,
    args: &RebuildArgs,
    cancel: &CancelToken,
) -> Result<u8, StudioError> {
    let request = FilmRequest {
        folders: args.folders.clone(),
        out: args.out.clone(),
        ..FilmRequest::default()
    };
    let bars = Arc::new(Bars::new(cli.quiet || cli.json));
    let watcher: Arc<dyn Watcher> = Arc::clone(&bars) as Arc<dyn Watcher>;
    let report = studio(cli)?.rebuild(&args.film, request, &watcher, cancel);
    bars.finish();
    let report = report?;
    if cli.json && report.film.code.is_none() {
        say_json(&serde_json::to_value(&report).unwrap_or_default());
        return Ok(0);
    }
    let status = show_film(cli, &report.film)?;
    if status == 0 && !cli.quiet {
        say(if report.same {
            "the same film, byte for byte"
        } else {
            "the same script and files; its bytes differ from the given film's"
        });
    }
    Ok(status)
}
