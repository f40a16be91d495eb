//! `longtake image`.

use std::path::PathBuf;

use clap::Args;
use engine_base::CancelToken;
use flow_studio::{DrawRequest, StudioError};

use super::{frame_size, say, say_json};
use crate::args::Cli;
use crate::bars::{Bars, clock};
use crate::size;

pub(crate) const IMAGE_EXAMPLES: &str = "Examples:
  longtake image \"a fox in the snow\" -o fox.png
  longtake image \"a red lighthouse by the sea at night\" -o scout.png --count 4 --seed 7
  longtake image \"a blue fish\" -o fish.webp --steps 8 --guidance 2.5
  longtake image \"a boat\" -o boat.png --model models/another-model --lora ink.safetensors:0.8
  longtake image \"the same boat in winter\" -o winter.png --init boat.png --strength 0.6
  longtake image \"a lighthouse\" -o shore.png --init boat.png --mask shore-mask.png
  longtake image \"the sea around the boat\" -o wide.png --init boat.png --outpaint --size 512x256
  longtake image \"the boat of picture 1 in the harbour of picture 2\" -o harbour.png \\
      --model models/qwen-image-2.1 --ref boat.png --ref harbour-photo.jpg

With --count the files are named scout-1.png, scout-2.png and so on, and seeds count up. The same words,
seed and model give the same picture. Stop it at any time and run the same command to go on: finished
pictures stay, and one that was begun goes on at its last step (NAME.latent.safetensors, beside it).";

#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// What is to be seen
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: String,

    /// Where the picture goes: .png, .jpg, .webp or .tiff
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// How many pictures
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) count: u32,

    /// Seed of the first: another one gives another picture
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Id of a picture model, its folder or its file (default: our own small one)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Size, such as 256x256 (default: the model's own)
    #[arg(long, value_name = "WxH")]
    pub(crate) size: Option<String>,

    /// Steps from noise to picture (default: the model's own)
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u32>,

    /// How closely the prompt is followed; 1 is no guidance (default: the model's own)
    #[arg(long, value_name = "G")]
    pub(crate) guidance: Option<f32>,

    /// What is not to be seen
    #[arg(long, value_name = "PROMPT", default_value = "")]
    pub(crate) negative: String,

    /// Weights of the text encoder, for models that come without one (default: our own language model)
    #[arg(long, value_name = "PATH")]
    pub(crate) text_encoder: Option<PathBuf>,

    /// Folder of the autoencoder, instead of the model's own
    #[arg(long, value_name = "PATH")]
    pub(crate) vae: Option<PathBuf>,

    /// An adapter (LoRA or LoKr), perhaps with its weight; may be given several times
    #[arg(long, value_name = "FILE[:WEIGHT]", value_parser = adapter)]
    pub(crate) lora: Vec<(PathBuf, f32)>,

    /// A picture that the prompt speaks of; may be given several times
    #[arg(long = "ref", value_name = "FILE")]
    pub(crate) references: Vec<PathBuf>,

    /// A picture to begin with
    #[arg(long, value_name = "FILE")]
    pub(crate) init: Option<PathBuf>,

    /// How far the picture may be left, up to 1 (default: 0.6, with a mask 1)
    #[arg(long, value_name = "S")]
    pub(crate) strength: Option<f32>,

    /// Where the picture is drawn anew: white there, black elsewhere
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<PathBuf>,

    /// Draw the picture further on all sides, to --size
    #[arg(long)]
    pub(crate) outpaint: bool,

    /// Where it is computed: only the processor draws yet; a graphics card waits for support
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = ["auto", "cpu"])]
    pub(crate) device: String,
}

/// A file, perhaps followed by `:` and a number.
fn adapter(text: &str) -> Result<(PathBuf, f32), String> {
    let (path, weight) = match text.rsplit_once(':') {
        Some((path, weight)) if !path.is_empty() => match weight.parse::<f32>() {
            Ok(weight) if weight.is_finite() => (path, weight),
            _ => {
                return Err(format!(
                    "the weight is {weight:?}, expected a number after \":\""
                ));
            }
        },
        _ => (text, 1.0),
    };
    Ok((PathBuf::from(path), weight))
}

/// Carry out the command; gives the exit status.
pub(super) fn image(cli: &Cli, args: &ImageArgs, cancel: &CancelToken) -> Result<u8, StudioError> {
    let size = args.size.as_deref().map(frame_size).transpose()?;
    let request = DrawRequest {
        prompt: args.prompt.clone(),
        negative: args.negative.clone(),
        out: args.out.clone(),
        count: args.count,
        seed: args.seed,
        model: args.model.clone(),
        text_encoder: args.text_encoder.clone(),
        size,
        steps: args.steps,
        guidance: args.guidance,
        vae: args.vae.clone(),
        adapters: args.lora.clone(),
        references: args.references.clone(),
        init: args.init.clone(),
        strength: args.strength,
        mask: args.mask.clone(),
        outpaint: args.outpaint,
    };
    let bars = Bars::new(cli.quiet || cli.json);
    let report = flow_studio::draw(&request, &bars, cancel);
    bars.finish();
    let report = report?;
    if cli.json {
        say_json(&serde_json::to_value(&report).unwrap_or_default());
    } else if !cli.quiet {
        for picture in &report.pictures {
            let seed = picture.seed;
            say(&format!("{}  (seed {seed})", picture.out.display()));
        }
        say(&format!(
            "{} x {} px, {}, {}, {}",
            report.width_px,
            report.height_px,
            report.model,
            clock(report.wall_secs),
            size::show(report.peak_bytes)
        ));
    }
    Ok(0)
}
