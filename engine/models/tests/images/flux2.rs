//! FLUX.2 klein and its autoencoder.

use engine_base::CancelToken;
use engine_models::{Flux2, Flux2Config, KlVae, KlVaeConfig, PlacedRows, load_flux2, load_kl_vae};
use engine_nn::{FlowShift, flow_sigmas, flow_step, flux2_mu, linear_sigmas};
use engine_tensor::Cpu;

use crate::fixture::Fixture;

fn places(values: &[f32]) -> Vec<[f64; 4]> {
    let rows = values.as_chunks::<4>().0.iter();
    rows.map(|row| row.map(f64::from)).collect()
}

fn flux2() -> (Fixture, Flux2, KlVae) {
    let fixture = Fixture::open("flux2_klein");
    let cpu = Cpu::new(2).unwrap();
    let config: Flux2Config = fixture.json("transformer/config.json");
    let model = load_flux2(&fixture.weights("transformer"), "", &config, &cpu).unwrap();
    let config: KlVaeConfig = fixture.json("vae/config.json");
    let vae = load_kl_vae(&fixture.weights("vae"), "", &config, &cpu).unwrap();
    (fixture, model, vae)
}

#[test]
fn flux2_predicts_what_the_reference_does_with_and_without_references() {
    let (fixture, model, _) = flux2();
    let cancel = CancelToken::new();
    for call in ["transformer", "transformer_ref"] {
        let input = |name: &str| fixture.input(&format!("{call}.{name}"));
        let (rows, text) = (input("hidden_states"), input("encoder_hidden_states"));
        let (image_places, text_places) = (places(&input("img_ids")), places(&input("txt_ids")));
        let image = PlacedRows {
            rows: &rows,
            places: &image_places,
        };
        let text = PlacedRows {
            rows: &text,
            places: &text_places,
        };
        let t = input("timestep")[0];
        let out = model.velocity(image, text, t, &cancel).unwrap();
        fixture.check(call, "out", &out);
        let short = PlacedRows {
            places: &image_places[1..],
            ..image
        };
        assert!(model.velocity(short, text, t, &cancel).is_err());
    }
}

#[test]
fn the_autoencoder_encodes_and_decodes_what_the_reference_does() {
    let (fixture, _, vae) = flux2();
    let cancel = CancelToken::new();
    let sample = fixture.input("vae_encode.sample");
    let posterior = vae.encode(&sample, (32, 48), &cancel).unwrap();
    fixture.check("vae_encode", "out", &posterior.mean);
    let z = fixture.input("vae_decode.z");
    fixture.check(
        "vae_decode",
        "out",
        &vae.decode(&z, (4, 6), &cancel).unwrap(),
    );
    assert!(vae.encode(&sample, (32, 44), &cancel).is_err());
}

#[test]
fn flux2_draws_the_stored_picture() {
    let (fixture, model, vae) = flux2();
    let cancel = CancelToken::new();
    let shift = FlowShift::Exponential(flux2_mu(24, 4));
    let sigmas = flow_sigmas(&linear_sigmas(4), shift, None).unwrap();
    fixture.check("loop", "sigmas", &sigmas);
    let (text, mut latent) = (fixture.input("loop.ctx"), fixture.input("loop.latents"));
    let image_places = places(&fixture.input("loop.img_ids"));
    let text_places = places(&fixture.input("loop.txt_ids"));
    let text = PlacedRows {
        rows: &text,
        places: &text_places,
    };
    for (step, pair) in sigmas.windows(2).enumerate() {
        let image = PlacedRows {
            rows: &latent,
            places: &image_places,
        };
        let velocity = model.velocity(image, text, pair[0], &cancel).unwrap();
        flow_step(&mut latent, &velocity, pair[0], pair[1]);
        fixture.check("loop", &format!("latents.{step}"), &latent);
    }
    let latent = vae.unpack(&latent, (4, 6));
    let picture = vae.decode(&latent, (8, 12), &cancel).unwrap();
    fixture.check("loop", "image", &picture);
}
