//! Qwen-Image and its autoencoder.

use engine_base::CancelToken;
use engine_models::{
    CausalVae, CausalVaeConfig, QwenImage, QwenImageConfig, load_causal_vae, load_qwen_image,
};
use engine_nn::{FlowMu, FlowShift, flow_sigmas, flow_step, guided_keeping_norm, linear_sigmas};
use engine_tensor::Cpu;
use serde_json::Value;

use crate::fixture::Fixture;

fn qwen() -> (Fixture, QwenImage, CausalVae) {
    let fixture = Fixture::open("qwen_image");
    let cpu = Cpu::new(2).unwrap();
    let config: QwenImageConfig = fixture.json("transformer/config.json");
    let model = load_qwen_image(&fixture.weights("transformer"), "", &config, &cpu).unwrap();
    let config: CausalVaeConfig = fixture.json("vae/config.json");
    let vae = load_causal_vae(&fixture.weights("vae"), "", &config, &cpu).unwrap();
    (fixture, model, vae)
}

#[test]
fn qwen_image_predicts_what_the_reference_does_with_and_without_a_reference_picture() {
    let (fixture, model, _) = qwen();
    let cancel = CancelToken::new();
    for (call, sizes) in [
        ("transformer", &[(4, 6)][..]),
        ("transformer_edit", &[(4, 6), (2, 4)]),
    ] {
        let input = |name: &str| fixture.input(&format!("{call}.{name}"));
        let (tokens, text) = (input("hidden_states"), input("encoder_hidden_states"));
        let t = input("timestep")[0];
        let out = model.velocity(&tokens, sizes, &text, t, &cancel).unwrap();
        fixture.check(call, "out", &out);
        let short = &tokens[1..];
        assert!(model.velocity(short, sizes, &text, t, &cancel).is_err());
        assert!(
            model
                .velocity(&tokens, sizes, &text[1..], t, &cancel)
                .is_err()
        );
    }
}

#[test]
fn the_autoencoder_encodes_and_decodes_what_the_reference_does() {
    let (fixture, _, vae) = qwen();
    let cancel = CancelToken::new();
    let sample = fixture.input("vae_encode.sample");
    let posterior = vae.encode(&sample, (32, 48), &cancel).unwrap();
    fixture.check("vae_encode", "mean", &posterior.mean);
    fixture.check("vae_encode", "logvar", &posterior.log_variance);
    let z = fixture.input("vae_decode.z");
    fixture.check(
        "vae_decode",
        "out",
        &vae.decode(&z, (4, 6), &cancel).unwrap(),
    );
    assert!(vae.encode(&sample, (32, 44), &cancel).is_err());
}

#[test]
fn qwen_image_draws_the_stored_picture_with_guidance() {
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
    let (text, negative) = (fixture.input("loop.ctx"), fixture.input("loop.neg"));
    let mut latent = fixture.input("loop.latents");
    for (step, pair) in sigmas.windows(2).enumerate() {
        let run = |text: &[f32]| {
            model
                .velocity(&latent, &[(4, 6)], text, pair[0], &cancel)
                .unwrap()
        };
        let velocity = guided_keeping_norm(&run(&text), &run(&negative), 4.0, 16);
        flow_step(&mut latent, &velocity, pair[0], pair[1]);
        fixture.check("loop", &format!("latents.{step}"), &latent);
    }
    let picture = vae
        .decode(&vae.unpack(&latent, (4, 6)), (8, 12), &cancel)
        .unwrap();
    fixture.check("loop", "image", &picture);
}
