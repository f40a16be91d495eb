//! A half-hour film as jobs, with times that were published for one DGX Spark.
//!
//! Sources are the media-model facts, sections 1.3 to 1.9 (one author's machine, one run each):
//! a part of 15 s in a chain at 864x480 with 8 passes takes about 304 s; a still of 1344x768
//! 9.5 s; ESRGAN twice as large 9 s for each second of film; a job holds about 70 GB, 21 GB of
//! them the int8 transformer; the stills' models are 33 GB. Nothing is published for encoding
//! and joining: half a second for each second of film and 20 s are assumed.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use engine_base::{ContentHash, Key};

use crate::job::{Input, Job, JobId, ModelNeed, NodeType, Priority, Source};
use crate::names::{NameError, RunId};
use crate::split;

/// Frames of a part of 15 s: 17n + 5 at 24 a second.
const CLIP_FRAMES: u64 = 362;
const FRAMES_PER_SEC: f64 = 24.0;
const CLIP_PX: u64 = 864 * 480;

const CLIP_SECS: f64 = 304.0;
const STILL_SECS: f64 = 9.5;
const UPSCALE_SECS_PER_SEC: f64 = 9.0;
const EXPORT_SECS_PER_SEC: f64 = 0.5;
const JOIN_SECS: f64 = 20.0;

const CLIP_MODEL_BYTES: u64 = 21_000_000_000;
const CLIP_WORKING_BYTES: u64 = 49_000_000_000;
const STILL_MODEL_BYTES: u64 = 33_000_000_000;
const UPSCALE_MODEL_BYTES: u64 = 67_000_000;
const SMALL_WORKING_BYTES: u64 = 4_000_000_000;

/// Frames of one upscaling job, at most: about 47 s of work.
const UPSCALE_FRAMES: NonZeroU64 = NonZeroU64::new(128).unwrap();
/// Frames of a segment of the export: two clips.
const SEGMENT_FRAMES: NonZeroU64 = NonZeroU64::new(2 * CLIP_FRAMES).unwrap();

/// A job with what it truly takes.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedJob {
    /// As the dispatcher gets it.
    pub job: Job,
    /// What it takes on a Spark, without loading and transfer, in seconds.
    pub spark_secs: f64,
    /// What it takes on classes of device of which that is known by itself, in seconds, whatever
    /// their speed.
    pub class_secs: BTreeMap<String, f64>,
    /// Its outputs' sizes, in bytes.
    pub output_bytes: Vec<u64>,
}

/// What the film is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmShape {
    /// Clips of 15 s.
    pub clips: u64,
    /// How many chains there are in which each clip continues the one before.
    pub chains: u64,
    /// Clips of each chain.
    pub chain_clips: u64,
}

impl Default for FilmShape {
    /// Half an hour: 120 clips, 12 chains of 4; the other 72 begin with a cut.
    fn default() -> Self {
        Self {
            clips: 120,
            chains: 12,
            chain_clips: 4,
        }
    }
}

/// Losslessly coded frames: half of 12 bits for each pixel.
const fn coded_bytes(pixels: u64, frames: u64) -> u64 {
    pixels * frames * 3 / 4
}

struct Maker {
    run: RunId,
    jobs: Vec<PlannedJob>,
}

impl Maker {
    /// Add a job; `inputs` are (job, port) pairs, none is a piece of the script.
    fn add(&mut self, node_type: &str, inputs: &[(JobId, u32)], about: About) -> JobId {
        let id = JobId(self.jobs.len() as u64);
        let bytes_of = |job: JobId, port: u32| {
            let maker = usize::try_from(job.0).ok().and_then(|at| self.jobs.get(at));
            let bytes = maker.and_then(|maker| maker.output_bytes.get(port as usize));
            bytes.copied().unwrap_or_default()
        };
        let mut inputs: Vec<Input> = inputs
            .iter()
            .map(|(job, port)| Input {
                source: Source::Job {
                    job: *job,
                    port: *port,
                },
                bytes: bytes_of(*job, *port),
            })
            .collect();
        let first = inputs.is_empty();
        if first {
            inputs.push(Input {
                source: Source::Content(ContentHash::of(&id.0.to_le_bytes())),
                bytes: 4096,
            });
        }
        let name = format!("{node_type} {id}");
        let job = Job {
            id,
            run: self.run.clone(),
            key: first.then(|| Key::of_canonical(name.as_bytes())),
            subgraph: ContentHash::of(name.as_bytes()),
            node_types: vec![NodeType {
                name: node_type.to_owned(),
                version: 1,
            }],
            inputs,
            model: about.model,
            size: about.size,
            working_bytes: about.working_bytes,
            priority: Priority::Normal,
            device_class: None,
            engine_build: None,
        };
        self.jobs.push(PlannedJob {
            job,
            spark_secs: about.secs,
            class_secs: BTreeMap::new(),
            output_bytes: about.output_bytes,
        });
        id
    }
}

struct About {
    model: Option<ModelNeed>,
    size: u64,
    working_bytes: u64,
    secs: f64,
    output_bytes: Vec<u64>,
}

fn model(name: &str, bytes: u64) -> Option<ModelNeed> {
    let model = ContentHash::of(name.as_bytes());
    Some(ModelNeed { model, bytes })
}

/// The jobs of a film.
///
/// # Errors
/// When `run` is no name.
pub fn film(shape: FilmShape, run: &str) -> Result<Vec<PlannedJob>, NameError> {
    let run = RunId::new(run)?;
    let mut maker = Maker {
        run,
        jobs: Vec::new(),
    };
    let chained = shape.chains * shape.chain_clips;
    let mut upscaled: BTreeMap<u64, Vec<JobId>> = BTreeMap::new();
    let mut before = None;
    for clip in 0..shape.clips {
        let continues = clip < chained && clip % shape.chain_clips.max(1) != 0;
        let opens_on = match before.filter(|_| continues) {
            Some(clip) => (clip, 1),
            None => (still(&mut maker), 0),
        };
        let made = maker.add(
            "video.generate",
            &[opens_on],
            About {
                model: model("video model", CLIP_MODEL_BYTES),
                size: CLIP_PX * CLIP_FRAMES,
                working_bytes: CLIP_WORKING_BYTES,
                secs: CLIP_SECS,
                output_bytes: vec![coded_bytes(CLIP_PX, CLIP_FRAMES), 1_000_000],
            },
        );
        before = Some(made);
        for run in split::frame_runs(CLIP_FRAMES, UPSCALE_FRAMES, 0) {
            let frames = run.makes.end - run.makes.start;
            let job = maker.add(
                "video.upscale",
                &[(made, 0)],
                About {
                    model: model("upscaler", UPSCALE_MODEL_BYTES),
                    size: CLIP_PX * frames,
                    working_bytes: SMALL_WORKING_BYTES,
                    secs: frames as f64 / FRAMES_PER_SEC * UPSCALE_SECS_PER_SEC,
                    output_bytes: vec![coded_bytes(4 * CLIP_PX, frames)],
                },
            );
            upscaled.entry(clip).or_default().push(job);
        }
    }
    export(&mut maker, shape, &upscaled);
    Ok(maker.jobs)
}

fn still(maker: &mut Maker) -> JobId {
    maker.add(
        "image.generate",
        &[],
        About {
            model: model("image models", STILL_MODEL_BYTES),
            size: 1344 * 768,
            working_bytes: SMALL_WORKING_BYTES,
            secs: STILL_SECS,
            output_bytes: vec![2_000_000],
        },
    )
}

fn export(maker: &mut Maker, shape: FilmShape, upscaled: &BTreeMap<u64, Vec<JobId>>) {
    let frames = shape.clips * CLIP_FRAMES;
    let cuts: Vec<u64> = (1..shape.clips).map(|clip| clip * CLIP_FRAMES).collect();
    let mut segments = Vec::new();
    for part in split::segments(frames, &cuts, SEGMENT_FRAMES.get(), SEGMENT_FRAMES) {
        let clips = part.start / CLIP_FRAMES..part.end.div_ceil(CLIP_FRAMES);
        let inputs: Vec<(JobId, u32)> = clips
            .filter_map(|clip| upscaled.get(&clip))
            .flatten()
            .map(|job| (*job, 0))
            .collect();
        let frames = part.end - part.start;
        segments.push(maker.add(
            "film.segment",
            &inputs,
            About {
                model: None,
                size: 4 * CLIP_PX * frames,
                working_bytes: SMALL_WORKING_BYTES,
                secs: frames as f64 / FRAMES_PER_SEC * EXPORT_SECS_PER_SEC,
                output_bytes: vec![frames * 40_000],
            },
        ));
    }
    let inputs: Vec<(JobId, u32)> = segments.into_iter().map(|job| (job, 0)).collect();
    maker.add(
        "film.join",
        &inputs,
        About {
            model: None,
            size: frames,
            working_bytes: SMALL_WORKING_BYTES,
            secs: JOIN_SECS,
            output_bytes: vec![frames * 40_000],
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_film_is_half_an_hour_of_120_clips() {
        let jobs = film(FilmShape::default(), "film").unwrap();
        let of = |name: &str| {
            jobs.iter()
                .filter(|job| job.job.main_type() == name)
                .count()
        };
        assert_eq!(of("video.generate"), 120);
        assert_eq!(
            of("image.generate"),
            84,
            "one for each clip that opens on a cut"
        );
        assert_eq!(of("video.upscale"), 360);
        assert_eq!(of("film.segment"), 60);
        assert_eq!(of("film.join"), 1);
        let clips: f64 = jobs
            .iter()
            .filter(|job| job.job.main_type() == "video.upscale")
            .map(|job| job.spark_secs)
            .sum();
        assert!((clips - 120.0 * 362.0 / 24.0 * 9.0).abs() < 1.0, "{clips}");
    }
}
