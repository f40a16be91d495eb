//! Picture-drawing models and encoders of prompts against outputs of diffusers and transformers on tiny
//! random checkpoints.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fixture;
mod flux2;
mod flux3;
mod qwen_image;
mod qwen_image_21;
mod schedulers;
mod stable_diffusion;
mod texts;
mod vl;
mod z_image;
