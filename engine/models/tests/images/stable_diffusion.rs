//! Stable Diffusion 1.5, SDXL, and their autoencoders.

use engine_base::CancelToken;
use engine_models::{
    KlVaeConfig, TinyVaeConfig, UNetConfig, UNetInput, load_kl_vae, load_tiny_vae, load_unet,
};
use engine_tensor::Cpu;

use crate::fixture::Fixture;

#[test]
fn both_forms_of_the_unet_predict_what_the_reference_does() {
    let fixture = Fixture::open("sd15_unet");
    let cpu = Cpu::new(2).unwrap();
    let cancel = CancelToken::new();
    for call in ["unet", "unet_xl"] {
        let config: UNetConfig = fixture.json(&format!("{call}/config.json"));
        let model = load_unet(&fixture.weights(call), "", &config, &cpu).unwrap();
        let input = |name: &str| fixture.input(&format!("{call}.{name}"));
        let (text, latent) = (input("encoder_hidden_states"), input("sample"));
        let more = |name: &str| match call {
            "unet" => Vec::new(),
            _ => input(name),
        };
        let (pooled, ids) = (more("text_embeds"), more("time_ids"));
        let guidance = more("timestep_cond");
        let given = UNetInput {
            timestep: 601.0,
            text: &text,
            pooled: &pooled,
            size_ids: &ids,
            guidance: &guidance,
        };
        let out = model.run(&latent, (8, 8), &given, &cancel).unwrap();
        fixture.check(call, "out", &out);
        assert!(model.run(&latent, (8, 7), &given, &cancel).is_err());
        assert!(model.run(&latent[1..], (8, 8), &given, &cancel).is_err());
        let cut = UNetInput {
            text: &text[1..],
            ..given
        };
        assert!(model.run(&latent, (8, 8), &cut, &cancel).is_err());
    }
}

#[test]
fn large_and_small_autoencoders_are_the_references() {
    let fixture = Fixture::open("sd15_unet");
    let cpu = Cpu::new(2).unwrap();
    let cancel = CancelToken::new();
    let config: KlVaeConfig = fixture.json("vae/config.json");
    let vae = load_kl_vae(&fixture.weights("vae"), "", &config, &cpu).unwrap();
    let sample = fixture.input("vae_encode.sample");
    let posterior = vae.encode(&sample, (16, 16), &cancel).unwrap();
    fixture.check("vae_encode", "mean", &posterior.mean);
    fixture.check("vae_encode", "logvar", &posterior.log_variance);
    let z = fixture.input("vae_decode.z");
    let picture = vae.decode(&z, (8, 8), &cancel).unwrap();
    fixture.check("vae_decode", "out", &picture);

    let config: TinyVaeConfig = fixture.json("taesd/config.json");
    let tiny = load_tiny_vae(&fixture.weights("taesd"), "", &config, &cpu).unwrap();
    assert_eq!(tiny.scale(), 8);
    let z = fixture.input("taesd_decode.z");
    let picture = tiny.decode(&z, (4, 4), &cancel).unwrap();
    fixture.check("taesd_decode", "out", &picture);
    let sample = fixture.input("taesd_encode.s");
    let latent = tiny.encode(&sample, (32, 32), &cancel).unwrap();
    fixture.check("taesd_encode", "out", &latent);
    assert!(tiny.encode(&sample, (32, 28), &cancel).is_err());
}
