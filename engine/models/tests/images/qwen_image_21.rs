//! Qwen-Image 2.1.

use engine_base::CancelToken;
use engine_models::{
    Condition, QwenImage21, QwenImage21Config, ResidualVae, ResidualVaeConfig, load_qwen_image_21,
    load_residual_vae,
};
use engine_nn::{FlowMu, FlowShift, flow_sigmas, flow_step, linear_sigmas};
use engine_tensor::Cpu;
use serde_json::Value;

use crate::fixture::{Fixture, turned};

fn qwen() -> (Fixture, QwenImage21, ResidualVae) {
    let fixture = Fixture::open("qwen_image_21");
    let cpu = Cpu::new(2).unwrap();
    let config: QwenImage21Config = fixture.json("transformer/config.json");
    let weights = fixture.weights("transformer");
    let transformer = load_qwen_image_21(&weights, "", &config, &cpu).unwrap();
    let config: ResidualVaeConfig = fixture.json("vae/config.json");
    let vae = load_residual_vae(&fixture.weights("vae"), "", &config, &cpu).unwrap();
    (fixture, transformer, vae)
}

#[test]
fn qwen_image_21_predicts_what_the_reference_does() {
    let (fixture, model, _) = qwen();
    let cancel = CancelToken::new();
    let size = (4, 6);
    let text = fixture.input("t2i.encoder_hidden_states");
    let latent = fixture.input("t2i.hidden_states");
    let mut prefix = model.prefix(&[Condition::Text(&text)], &cancel).unwrap();
    let run = |prefixes: &mut [&mut _], latents: &[&[f32]], t| {
        model
            .velocities(prefixes, latents, size, t, &cancel)
            .unwrap()
    };
    let t = fixture.input("t2i.timestep")[0];
    let alone = run(&mut [&mut prefix], &[&latent], t);
    fixture.check("t2i", "out", &alone[0]);
    // The prefix is as it was, and pictures that run together do not see each other.
    let mut other = model
        .prefix(&[Condition::Text(&text[..3 * 48])], &cancel)
        .unwrap();
    let together = run(&mut [&mut other, &mut prefix], &[&latent, &latent], t);
    assert_eq!(together[1], alone[0]);
    assert_ne!(together[0], alone[0]);

    for call in ["ti2i", "ti2i_kv_cache"] {
        let input = |name: &str| fixture.input(&format!("{call}.{name}"));
        let (text, latents) = (input("encoder_hidden_states"), input("hidden_states"));
        let (reference, target) = latents.split_at(8 * 8);
        let conditions = [
            Condition::Text(&text[..3 * 48]),
            Condition::Image {
                latent: reference,
                height: 2,
                width: 4,
            },
            Condition::Text(&text[5 * 48..]),
        ];
        let mut prefix = model.prefix(&conditions, &cancel).unwrap();
        assert_eq!(prefix.rows(), 16);
        let first = run(&mut [&mut prefix], &[target], input("timestep")[0]);
        if call == "ti2i" {
            fixture.check(call, "out", &first[0]);
        } else {
            fixture.check(call, "extract", &first[0]);
            let second = run(&mut [&mut prefix], &[target], 0.2);
            fixture.check(call, "cached", &second[0]);
        }
    }
}

#[test]
fn qwen_image_21_encodes_and_decodes_what_the_reference_does() {
    let (fixture, _, vae) = qwen();
    let cancel = CancelToken::new();
    let posterior = vae
        .encode(&fixture.input("vae_encode.sample"), (32, 48), &cancel)
        .unwrap();
    fixture.check("vae_encode", "mean", &posterior.mean);
    fixture.check("vae_encode", "logvar", &posterior.log_variance);
    let z = fixture.input("vae_decode.z");
    let whole = vae.decode(&z, (2, 3), usize::MAX, &cancel).unwrap();
    fixture.check("vae_decode", "out", &whole);
}

#[test]
fn pictures_decoded_in_windows_are_those_decoded_whole() {
    let (_, _, vae) = qwen();
    let cancel = CancelToken::new();
    let size = (7, 11);
    let latent = engine_tensor::ops::numbers(3, 8 * size.0 * size.1);
    let whole = vae.decode(&latent, size, usize::MAX, &cancel).unwrap();
    for work_bytes in [0, 1 << 20, 3 << 20] {
        let parts = vae.decode(&latent, size, work_bytes, &cancel).unwrap();
        let pairs = whole.iter().zip(&parts);
        let worst = pairs.fold(0f32, |worst, (a, b)| worst.max((a - b).abs()));
        println!("{work_bytes}: {worst:e}");
        assert!(worst <= 2e-6, "{work_bytes} bytes: {worst:e}");
        let byte = |value: &f32| (value * 127.5 + 127.5).round() as u8;
        let bytes = |values: &[f32]| values.iter().map(byte).collect::<Vec<_>>();
        let differ = bytes(&whole);
        let differ = differ.iter().zip(bytes(&parts)).filter(|(a, b)| **a != *b);
        assert!(differ.count() <= 2, "{work_bytes} bytes");
    }
}

#[test]
fn qwen_image_21_draws_the_stored_picture() {
    let (fixture, model, vae) = qwen();
    let cancel = CancelToken::new();
    let config: Value = fixture.json("scheduler/scheduler_config.json");
    let number = |key: &str| config[key].as_f64().unwrap();
    let mu = FlowMu {
        base_tokens: number("base_image_seq_len"),
        max_tokens: number("max_image_seq_len"),
        base: number("base_shift"),
        max: number("max_shift"),
    };
    let shift = FlowShift::Exponential(mu.of(24));
    let terminal = Some(number("shift_terminal"));
    let sigmas = flow_sigmas(&linear_sigmas(4), shift, terminal).unwrap();
    fixture.check("loop", "sigmas", &sigmas);
    let text = fixture.input("loop.ctx");
    let mut latent = fixture.input("loop.latents");
    let mut prefix = model.prefix(&[Condition::Text(&text)], &cancel).unwrap();
    for (step, pair) in sigmas.windows(2).enumerate() {
        let velocity = model
            .velocities(&mut [&mut prefix], &[&latent], (4, 6), pair[0], &cancel)
            .unwrap();
        flow_step(&mut latent, &velocity[0], pair[0], pair[1]);
        fixture.check("loop", &format!("latents.{step}"), &latent);
    }
    let mut latent = turned(&latent, 24);
    vae.restore(&mut latent);
    let picture = vae.decode(&latent, (4, 6), usize::MAX, &cancel).unwrap();
    fixture.check("loop", "image", &picture);
}
