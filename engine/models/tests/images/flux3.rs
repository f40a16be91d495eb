//! FLUX.3, base and distilled.

use engine_base::CancelToken;
use engine_models::{
    Flux3, Flux3Config, Flux3Input, KlVaeConfig, PlacedRows, load_flux3, load_kl_vae,
};
use engine_nn::{FlowShift, flow_sigmas, flow_step, linear_sigmas};
use engine_tensor::Cpu;

use crate::fixture::Fixture;
use crate::flux2::places;

fn flux3(fixture: &Fixture, folder: &str, cpu: &Cpu) -> Flux3 {
    let config: Flux3Config = fixture.json(&format!("{folder}/config.json"));
    load_flux3(&fixture.weights(folder), "", &config, cpu).unwrap()
}

#[test]
fn flux3_predicts_what_the_reference_does_distilled_or_not_with_references_or_without() {
    let fixture = Fixture::open("flux3");
    let cpu = Cpu::new(2).unwrap();
    let cancel = CancelToken::new();
    for (folder, distilled) in [("transformer", true), ("transformer_base", false)] {
        let model = flux3(&fixture, folder, &cpu);
        for (call, referring) in [(folder.to_owned(), false), (format!("{folder}_ref"), true)] {
            let input = |name: &str| fixture.input(&format!("{call}.{name}"));
            let (rows, text) = (input("hidden_states"), input("encoder_hidden_states"));
            let image_places = places(&input("img_ids"));
            let text_places = places(&input("txt_ids"));
            let references = referring.then(|| {
                let rows = input("image_cond_hidden_states");
                (rows, places(&input("image_cond_ids")))
            });
            let given = Flux3Input {
                image: PlacedRows {
                    rows: &rows,
                    places: &image_places,
                },
                text: PlacedRows {
                    rows: &text,
                    places: &text_places,
                },
                references: references
                    .as_ref()
                    .map(|(rows, places)| PlacedRows { rows, places }),
                timestep: input("timestep")[0],
                target: distilled.then(|| input("target_timestep")[0]),
            };
            let out = model.velocity(&given, &cancel).unwrap();
            fixture.check(&call, "out", &out);
            let other = Flux3Input {
                target: (!distilled).then_some(0.1),
                ..given
            };
            assert!(model.velocity(&other, &cancel).is_err());
        }
    }
}

#[test]
fn flux3_draws_the_stored_picture() {
    let fixture = Fixture::open("flux3");
    let cpu = Cpu::new(2).unwrap();
    let cancel = CancelToken::new();
    let model = flux3(&fixture, "transformer", &cpu);
    let config: KlVaeConfig = fixture.json("vae/config.json");
    let vae = load_kl_vae(&fixture.weights("vae"), "", &config, &cpu).unwrap();
    let sigmas = flow_sigmas(&linear_sigmas(4), FlowShift::Constant(6.93), None).unwrap();
    fixture.check("loop", "sigmas", &sigmas);
    let (text, mut latent) = (fixture.input("loop.ctx"), fixture.input("loop.latents"));
    let image_places = places(&fixture.input("loop.img_ids"));
    let text_places = places(&fixture.input("loop.txt_ids"));
    for (step, pair) in sigmas.windows(2).enumerate() {
        let given = Flux3Input {
            image: PlacedRows {
                rows: &latent,
                places: &image_places,
            },
            text: PlacedRows {
                rows: &text,
                places: &text_places,
            },
            references: None,
            timestep: pair[0],
            target: Some(pair[1]),
        };
        let velocity = model.velocity(&given, &cancel).unwrap();
        flow_step(&mut latent, &velocity, pair[0], pair[1]);
        fixture.check("loop", &format!("latents.{step}"), &latent);
    }
    let picture = vae
        .decode(&vae.unpack(&latent, (4, 6)), (8, 12), &cancel)
        .unwrap();
    fixture.check("loop", "image", &picture);
}
