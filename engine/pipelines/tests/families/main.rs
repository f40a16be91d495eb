//! Pictures drawn with tiny models of every family, from folders laid out like the real repositories.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adapters;
mod bad_input;
mod given;
mod layouts;
mod tiny;
mod whole;

use std::ops::ControlFlow;

use engine_pipelines::{ImageError, ImageOptions, ImagePipeline, ImageRequest, RgbaImage};

use self::tiny::Tiny;

pub(crate) fn options() -> ImageOptions {
    ImageOptions {
        threads: 1,
        ..ImageOptions::default()
    }
}

pub(crate) fn open(tiny: &Tiny) -> ImagePipeline {
    ImagePipeline::open(tiny.path(), &options()).unwrap()
}

/// A small picture in three steps.
pub(crate) fn request(prompt: &str, seed: u64) -> ImageRequest {
    ImageRequest {
        prompt: prompt.to_owned(),
        seed,
        width_px: 64,
        height_px: 64,
        steps: Some(3),
        ..ImageRequest::default()
    }
}

pub(crate) fn draw(
    pipeline: &ImagePipeline,
    request: &ImageRequest,
) -> Result<RgbaImage, ImageError> {
    pipeline.draw(request, &mut |_| ControlFlow::Continue(()))
}

/// The largest difference of two pictures' bytes.
pub(crate) fn apart(a: &RgbaImage, b: &RgbaImage) -> u8 {
    let pairs = a.rgba.iter().zip(&b.rgba);
    pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}
