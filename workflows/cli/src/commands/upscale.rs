//! `longtake upscale`.

use engine_base::CancelToken;
use flow_studio::{StudioError, UpscaleRequest};

use super::{say, say_json};
use crate::args::{Cli, UpscaleArgs};
use crate::bars::{Bars, clock};
use crate::size;

/// Carry out the command; gives the exit status.
pub(super) fn upscale(
    cli: &Cli,
    args: &UpscaleArgs,
    cancel: &CancelToken,
) -> Result<u8, StudioError> {
    let request = UpscaleRequest {
        from: args.from.clone(),
        to: args.to.clone(),
        scale: usize::from(args.scale),
        model: args.model.clone(),
        crf: args.crf,
        preset: args.preset.clone(),
        device: args.device,
        cache_folder: cli.cache.clone(),
    };
    let bars = Bars::new(cli.quiet || cli.json);
    let report = flow_studio::upscale(&request, &bars, cancel);
    bars.finish();
    let report = report?;
    if cli.json {
        say_json(&serde_json::to_value(&report).unwrap_or_default());
    } else if !cli.quiet {
        let frames = match (report.frames, report.made_frames) {
            (Some(frames), Some(made)) if made < frames => {
                format!("{frames} frames, {} kept from before, ", frames - made)
            }
            (Some(frames), _) => format!("{frames} frames, "),
            (None, _) => String::new(),
        };
        say(&format!(
            "{}  ({} x {} px, {frames}{} on {}, {}, {})",
            report.out.display(),
            report.width_px,
            report.height_px,
            report.model,
            report.device,
            clock(report.wall_secs),
            size::show(report.peak_bytes)
        ));
    }
    Ok(0)
}
