//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use flow_studio::DeviceChoice;

use crate::commands::{
    BenchArgs, CLUSTER_EXAMPLES, ClusterCommand, IMAGE_EXAMPLES, ImageArgs, MCP_EXAMPLES, McpArgs,
    ModelsCommand, RebuildArgs, SERVE_EXAMPLES, SPEAK_EXAMPLES, ServeArgs, SpeakArgs, WorkerArgs,
};

/// Turn a premise into a finished film on your own machine.
#[derive(Debug, Parser)]
#[command(
    name = "longtake",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Folder of the cache (default: the system's place for caches, or $LONGTAKE_CACHE)
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,

    /// Print one line of JSON at the end, and no progress bars
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say nothing but errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a film from a premise or a script, with your stills, videos and sounds
    #[command(after_help = FILM_EXAMPLES)]
    Film(Box<FilmArgs>),
    /// Make a film again from its own file
    #[command(
        after_help = "Examples:\n  longtake rebuild lighthouse.mp4\n  longtake rebuild lighthouse.mp4 --stills pictures --out again.mp4"
    )]
    Rebuild(RebuildArgs),
    /// Draw pictures from words
    #[command(after_help = IMAGE_EXAMPLES)]
    Image(Box<ImageArgs>),
    /// Make a picture or video twice as wide and high
    #[command(after_help = UPSCALE_EXAMPLES)]
    Upscale(UpscaleArgs),
    /// Run a workflow document
    #[command(after_help = "Example:\n  longtake run workflow.json --set title.value=\"Dusk\"")]
    Run(RunArgs),
    /// Say what a run would make, without making it
    #[command(
        after_help = "Examples:\n  longtake plan workflow.json\n  longtake plan Film.longtake"
    )]
    Plan(PlanArgs),
    /// Check a script, or write it in its other form
    #[command(
        after_help = "Examples:\n  longtake script check film.md\n  longtake script convert film.md film.json"
    )]
    #[command(subcommand)]
    Script(ScriptCommand),
    /// Look into a project and edit it
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Look at the cache, make room in it, check it
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Fetch models, check them, see what their licences allow
    #[command(
        after_help = "Examples:\n  longtake models list\n  longtake models pull smollm2-135m-instruct-q4_1"
    )]
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Speak a text into a sound file
    #[command(after_help = SPEAK_EXAMPLES)]
    Speak(Box<SpeakArgs>),
    /// Serve the studio to a browser on this machine
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Serve the studio's commands to an agent, over standard input and output (MCP)
    #[command(after_help = MCP_EXAMPLES)]
    Mcp(McpArgs),
    /// Write the types of all commands for the pages
    #[command(hide = true)]
    Bindings {
        /// Where they go: ui/src/api/generated.ts
        out: PathBuf,
    },
    /// Measure this machine, and keep receipts
    #[command(
        after_help = "Examples:\n  longtake bench\n  longtake bench text --json\n  longtake bench text --peers"
    )]
    Bench(BenchArgs),
    /// Let several machines work together
    #[command(after_help = CLUSTER_EXAMPLES)]
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Work for a cluster: take jobs until stopped
    #[command(
        after_help = "Example:\n  longtake worker --join longtake-join-1.… --name spark-1 --data /data/longtake"
    )]
    Worker(WorkerArgs),
    /// List the node types a workflow can use
    Nodes {
        /// Show everything about one type
        type_name: Option<String>,
    },
}

const FILM_EXAMPLES: &str = "Examples:
  longtake film \"A lighthouse keeper finds a message in a bottle\" --stills pictures --length 30s
  longtake film \"Two cooks, one oven\" --llm http://127.0.0.1:8080/v1 --seed 7
  longtake film --script lighthouse.md --stills pictures
  longtake film --script lighthouse.md --stills pictures --size 1920x1080 --fps 25 --out film.mp4
  longtake film --project Lighthouse.longtake          make it again after edits
  longtake film --script lighthouse.md --plan          say what would be made

What was made before is not made again: stop it at any time and run the same command to go on.";

#[derive(Debug, Args)]
pub(crate) struct FilmArgs {
    /// Premise of the film: a language model writes the script from it
    #[arg(value_name = "PREMISE")]
    pub(crate) premise: Option<String>,

    /// Script, as Markdown or JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    /// Folder of pictures and videos that the script names (may be given more than once)
    #[arg(long, value_name = "DIR")]
    pub(crate) stills: Vec<PathBuf>,

    /// Folder of sounds that the script names (may be given more than once)
    #[arg(long, value_name = "DIR")]
    pub(crate) sounds: Vec<PathBuf>,

    /// Length of a film from a premise, 5s to 10min
    #[arg(long, value_name = "LENGTH", default_value = "45s")]
    pub(crate) length: String,

    /// Seed of a film from a premise: another one gives another script
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Language model that writes: URL of an OpenAI-compatible server (http://host:port/v1#model,
    /// key in $LONGTAKE_LLM_KEY), id of a model or path of its weights (default: our own small one)
    #[arg(long, value_name = "URL|MODEL")]
    pub(crate) llm: Option<String>,

    /// Frame size, such as 1280x720 (default: the script's, else 1280x720)
    #[arg(long, value_name = "WxH")]
    pub(crate) size: Option<String>,

    /// Frames a second, such as 24, 23.976 or 30000/1001 (default: the script's, else 24)
    #[arg(long, value_name = "RATE")]
    pub(crate) fps: Option<String>,

    /// Project folder, ending in .longtake (default: beside the film)
    #[arg(long, value_name = "DIR.longtake")]
    pub(crate) project: Option<PathBuf>,

    /// Where the film goes (default: the script's title in this folder)
    #[arg(long, value_name = "FILE.mp4")]
    pub(crate) out: Option<PathBuf>,

    /// Picture quality: lower is better and larger
    #[arg(long, value_name = "0-40", value_parser = clap::value_parser!(u8).range(0..=40))]
    pub(crate) crf: Option<u8>,

    /// Encoder effort
    #[arg(long, value_parser = ["ultrafast", "veryfast", "fast", "medium", "slow"])]
    pub(crate) preset: Option<String>,

    /// Let the script take the place of edits made in the project since one was read into it
    #[arg(long)]
    pub(crate) replace: bool,

    /// Draw the subtitles into the picture too
    #[arg(long)]
    pub(crate) burn: bool,

    /// How loud the film becomes, in LUFS: -16 (web), -14 (large video sites), -23 (television in
    /// Europe), -24 (in America), or off
    #[arg(
        long,
        value_name = "LUFS",
        default_value = "-16",
        allow_hyphen_values = true
    )]
    pub(crate) loudness: String,

    /// Voice of the narrator, as `longtake speak --list` shows them
    #[arg(long, value_name = "ID")]
    pub(crate) voice: Option<String>,

    /// Pace of all voices: 1 is their own
    #[arg(long, value_name = "RATE")]
    pub(crate) pace: Option<f64>,

    /// Use small pictures as they are; otherwise they are made twice as large first
    #[arg(long)]
    pub(crate) no_upscale: bool,

    /// Show the lines and do not speak them
    #[arg(long, conflicts_with_all = ["voice", "pace"])]
    pub(crate) mute: bool,

    /// Make the shots on the workers of a cluster: folder of `longtake cluster up`, the owner's
    /// line or a file with it (default: $LONGTAKE_CLUSTER)
    #[arg(long, value_name = "DIR|LINE")]
    pub(crate) cluster: Option<String>,

    /// Say what would be made, and make nothing
    #[arg(long)]
    pub(crate) plan: bool,
}

const UPSCALE_EXAMPLES: &str = "Examples:
  longtake upscale boats.jpg boats-large.png
  longtake upscale scan.tiff scan-large.tiff --json
  longtake upscale drawing.png large.png --model realesrgan-x4plus-anime
  longtake upscale photo.png large.webp --model weights/4x-something.safetensors
  longtake upscale holiday.mp4 holiday-large.mp4
  longtake upscale old-tape.mkv old-tape-large.mkv --crf 16 --preset slow

Pictures: PNG, JPEG, WebP and TIFF are read and written; the result is upright and sRGB. Transparency,
grey and 16 bits are kept where the file type has them.

Videos: what FFmpeg reads becomes H.264 in MP4, QuickTime or Matroska, in its own colours and depth (8
or 10 bits). Every frame keeps its time; sound, subtitles, chapters and tags are copied as they are;
interlaced frames are made whole. Stop it at any time and run the same command to go on: finished
parts lie in the cache (`longtake cache prune` removes them).

`longtake models list` shows the models.";

#[derive(Debug, Args)]
pub(crate) struct UpscaleArgs {
    /// The picture or video
    #[arg(value_name = "IN")]
    pub(crate) from: PathBuf,

    /// Where the result goes: .png, .jpg, .webp or .tiff; of a video .mp4, .mov or .mkv
    #[arg(value_name = "OUT")]
    pub(crate) to: PathBuf,

    /// How many times larger
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = scale())]
    pub(crate) scale: u8,

    /// Id of an upscaler, or path of its weights: safetensors of an SRVGG (Real-ESRGAN compact) or
    /// RRDB (ESRGAN) network; what one of 4x gives is halved (default: our own small one)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Quality of a video: lower is better and larger (default: 18)
    #[arg(long, value_name = "0-40", value_parser = clap::value_parser!(u8).range(0..=40))]
    pub(crate) crf: Option<u8>,

    /// Encoder effort of a video (default: medium)
    #[arg(long, value_parser = ["ultrafast", "veryfast", "fast", "medium", "slow"])]
    pub(crate) preset: Option<String>,

    /// What it runs on: auto (a GPU where one can be used, else the CPU), cpu, cuda or cuda:N
    /// (default: $LONGTAKE_DEVICE, else auto)
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<DeviceChoice>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The workflow document
    pub(crate) document: PathBuf,

    /// Set a widget first: NODE.INPUT=VALUE (JSON, or text as it is)
    #[arg(long, value_name = "NODE.INPUT=VALUE")]
    pub(crate) set: Vec<String>,

    /// Run only what these nodes need
    #[arg(long, value_name = "NODE")]
    pub(crate) target: Vec<String>,

    /// Folder for the files that targets gave (default: they stay in the cache)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A workflow document or a project folder
    pub(crate) what: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    /// Report faults and warnings
    Check {
        /// The script
        script: PathBuf,
        /// Folder of pictures and videos that the script names
        #[arg(long, value_name = "DIR")]
        stills: Vec<PathBuf>,
    },
    /// Show in what a script differs from another, field by field
    Diff {
        /// The script as it is
        old: PathBuf,
        /// The script as it would be
        new: PathBuf,
    },
    /// Write a script in the other form: Markdown for .md, JSON for .json
    Convert {
        /// The script
        from: PathBuf,
        /// The new file
        to: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Print the project's script as Markdown
    Show {
        /// The project folder
        project: PathBuf,
    },
    /// Change one field: `longtake project set P shot 2b /move/easing '"linear"'`
    Set {
        /// The project folder
        project: PathBuf,
        /// film, cast, place, scene or shot
        kind: String,
        /// The row's id in the script; `-` for the film itself
        id: String,
        /// JSON pointer of the field, such as /action
        field: String,
        /// New value as JSON; `null` takes the field away
        value: String,
    },
    /// Show in what another script differs from the project's
    Diff {
        /// The project folder
        project: PathBuf,
        /// The other script
        script: PathBuf,
    },
    /// Take changes from another script: all of them, or those that `diff` shows under these numbers
    #[command(after_help = "Examples:
  longtake project take Film.longtake new.md --accept all
  longtake project take Film.longtake new.md --accept 1,3
  longtake project take Film.longtake new.md --accept /scenes/quay/shots/boats/action")]
    Take {
        /// The project folder
        project: PathBuf,
        /// The other script
        script: PathBuf,
        /// `all`, or numbers or paths with commas between
        #[arg(long, value_name = "all|IDS")]
        accept: String,
    },
    /// Let a language model write another script, and show what it would change
    #[command(after_help = "Examples:
  longtake project rewrite Film.longtake \"Two cooks, one oven\" --seed 8
  longtake project take Film.longtake Film.longtake/proposal.json --accept 2,5")]
    Rewrite(RewriteArgs),
    /// Draw pictures for shots, each a take beside those that its shot has
    #[command(after_help = "Examples:
  longtake project draw Film.longtake --missing
  longtake project draw Film.longtake --shot boats --count 4
  longtake project draw Film.longtake --shot boats --shot lamp

A shot that shows nothing yet shows its first picture; otherwise choose one on the page Board.
What is finished stays when it is stopped. `longtake project set Film.longtake shot boats /seed
'\"42 locked\"'` lets a shot be drawn from that seed alone.")]
    Draw {
        /// The project folder
        project: PathBuf,

        /// Shot to draw for; may be given several times
        #[arg(long = "shot", value_name = "ID", required_unless_present = "missing")]
        shots: Vec<String>,

        /// Draw for every shot that has no picture, video or colour
        #[arg(long, conflicts_with = "shots")]
        missing: bool,

        /// How many for each shot
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
        count: u32,
    },
    /// Take back the last edit
    Undo {
        /// The project folder
        project: PathBuf,

        /// Also take back a whole script that was read in
        #[arg(long)]
        yes: bool,
    },
    /// Do again what was taken back
    Redo {
        /// The project folder
        project: PathBuf,
    },
    /// Say which edits undo and redo would take
    History {
        /// The project folder
        project: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RewriteArgs {
    /// The project folder
    pub(crate) project: PathBuf,

    /// Premise to write the script from
    pub(crate) premise: String,

    /// Folder of pictures that it may use (may be given more than once)
    #[arg(long, value_name = "DIR")]
    pub(crate) stills: Vec<PathBuf>,

    /// Length of the film, 5s to 10min
    #[arg(long, value_name = "LENGTH", default_value = "45s")]
    pub(crate) length: String,

    /// Seed: another one gives another script
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Language model that writes, as for `longtake film`
    #[arg(long, value_name = "URL|MODEL")]
    pub(crate) llm: Option<String>,

    /// Take these changes at once: `all`, or paths with commas between
    #[arg(long, value_name = "all|IDS")]
    pub(crate) accept: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Say what the cache holds
    Show,
    /// Remove what was used least recently; pinned results stay
    #[command(after_help = "Example:\n  longtake cache prune --to 10GB --dry-run")]
    Prune {
        /// Size to bring it down to, such as 500MB or 10GB (default: the cache's cap)
        #[arg(long, value_name = "SIZE")]
        to: Option<String>,
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
    },
    /// Check that everything is whole, and mend what is not
    Check {
        /// Hash every file again (slow)
        #[arg(long)]
        deep: bool,
        /// Put damaged files aside and forget their results, so that they are made again
        #[arg(long)]
        repair: bool,
    },
}

/// The factors that pictures are made larger by.
fn scale() -> impl clap::builder::TypedValueParser<Value = u8> {
    use clap::builder::{PossibleValuesParser, TypedValueParser as _};
    PossibleValuesParser::new(["2"]).try_map(|text| text.parse::<u8>())
}
