//! From prompts to pictures.

use engine_base::CancelToken;
use engine_models::{Condition, load_qwen_image_21, load_residual_vae, load_vl_encoder};
use engine_nn::{FlowMu, FlowShift, flow_sigmas, flow_step, linear_sigmas};
use engine_pipelines::{ImageRequest, KeptLatent, Tokenizer};
use engine_tensor::Cpu;
use std::ops::ControlFlow;

use crate::tiny::{MODELS, Tiny, read};
use crate::{draw, open, request};

#[test]
fn every_family_draws_its_words_and_seed_and_goes_on_where_it_was_cut_short() {
    for model in MODELS {
        let tiny = Tiny::new(model);
        let pipeline = open(&tiny);
        let wanted = request("a red kite", 7);
        let first = draw(&pipeline, &wanted).unwrap();
        assert_eq!((first.width_px, first.height_px), (64, 64), "{model}");
        assert_eq!(first.rgba.len(), 64 * 64 * 4);
        assert!(first.notes.is_empty(), "{model}: {:?}", first.notes);
        assert_eq!(draw(&pipeline, &wanted).unwrap(), first, "{model}");
        for other in [request("a red kite", 8), request("blue sea at night", 7)] {
            assert_ne!(draw(&pipeline, &other).unwrap().rgba, first.rgba, "{model}");
        }
        let guided = ImageRequest {
            guidance: Some(3.0),
            negative: "sea".to_owned(),
            ..wanted.clone()
        };
        assert_ne!(
            draw(&pipeline, &guided).unwrap().rgba,
            first.rgba,
            "{model}"
        );

        let mut kept = None;
        let cut = pipeline.draw(&wanted, &mut |step| {
            kept = Some(KeptLatent {
                step: step.step,
                latent: step.latent.clone(),
            });
            match step.step {
                2 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        assert!(cut.is_err());
        let cancel = CancelToken::new();
        let resumed =
            pipeline.draw_from(&wanted, kept, &cancel, &mut |_| ControlFlow::Continue(()));
        assert_eq!(resumed.unwrap(), first, "{model}");
    }
}

#[test]
fn a_prompt_is_handed_over_in_its_template_and_before_the_last_norm() {
    let tiny = Tiny::new("qwen_image_21");
    let drawn = draw(&open(&tiny), &request("a red kite", 7)).unwrap();

    // The same by the parts, each of which is held to the reference elsewhere.
    let cpu = Cpu::new(1).unwrap();
    let cancel = CancelToken::new();
    let open = |part: &str| {
        let weights = engine_weights::open(tiny.part(part)).unwrap();
        (weights, read(&tiny.part(part).join("config.json")))
    };
    let (weights, config) = open("transformer");
    let config = serde_json::from_value(config).unwrap();
    let network = load_qwen_image_21(weights.as_ref(), "", &config, &cpu).unwrap();
    let (weights, config) = open("vae");
    let config = serde_json::from_value(config).unwrap();
    let vae = load_residual_vae(weights.as_ref(), "", &config, &cpu).unwrap();
    let (weights, config) = open("text_encoder");
    let text = load_vl_encoder(weights.as_ref(), "", &config, &cpu).unwrap();
    let bytes = std::fs::read(tiny.part("processor/tokenizer.json")).unwrap();
    let tokenizer = Tokenizer::from_json(&bytes, None).unwrap();
    let system = "<|im_start|>system\nComprehend and analyze the provided prompt.<|im_end|>\n";
    let dropped = tokenizer.encode_marked(system).unwrap().len();
    let mut tokens = tokenizer.encode_marked(system).unwrap();
    for (part, marked) in [
        ("<|im_start|>user\n", true),
        ("a red kite", false),
        ("<|im_end|>\n<|im_start|>assistant\n", true),
    ] {
        tokens.extend(match marked {
            true => tokenizer.encode_marked(part).unwrap(),
            false => tokenizer.encode_bare(part).unwrap(),
        });
    }
    let states = text.states(&tokens, &[], &cancel).unwrap();
    let states = &states.hidden.last().unwrap()[dropped * 64..];
    let mut prefix = network.prefix(&[Condition::Text(states)], &cancel).unwrap();
    let mu = FlowMu {
        base_tokens: 256.0,
        max_tokens: 8192.0,
        base: 0.5,
        max: 0.9,
    };
    let shift = FlowShift::Exponential(mu.of(16));
    let sigmas = flow_sigmas(&linear_sigmas(3), shift, Some(0.02)).unwrap();
    let pipeline = crate::open(&tiny);
    let mut begun = Vec::new();
    let mut seen = Vec::new();
    pipeline
        .draw(&request("a red kite", 7), &mut |step| {
            seen.push(step.latent.values.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    // The noise is what the first step came from.
    let mut latent = seen[0].clone();
    for (step, pair) in sigmas.windows(2).enumerate() {
        if step == 0 {
            begun.clone_from(&latent);
            continue;
        }
        let velocity = network
            .velocities(&mut [&mut prefix], &[&latent], (4, 4), pair[0], &cancel)
            .unwrap();
        flow_step(&mut latent, &velocity[0], pair[0], pair[1]);
        assert_eq!(latent, seen[step], "step {step}");
    }
    assert_ne!(begun, latent);
    let mut planes: Vec<f32> = (0..latent.len())
        .map(|at| latent[at % 16 * 8 + at / 16])
        .collect();
    vae.restore(&mut planes);
    let picture = vae.decode(&planes, (4, 4), usize::MAX, &cancel).unwrap();
    let byte = |value: f32| (value * 127.5 + 127.5).clamp(0.0, 255.0).round() as u8;
    for (at, got) in drawn.rgba.iter().enumerate() {
        assert_eq!(*got, byte(picture[at % 4 * 4096 + at / 4]), "byte {at}");
    }
}

#[test]
fn the_turbo_walks_its_own_eight_levels() {
    let tiny = Tiny::new("qwen_image_21");
    let turbo = [
        1.0, 0.978_453, 0.954_18, 0.926_626, 0.895_08, 0.845_148, 0.704_534, 0.414_568,
    ];
    tiny.change("model_index.json", |index| {
        index["sample_sigmas"] = serde_json::json!(turbo);
    });
    let pipeline = open(&tiny);
    let own = ImageRequest {
        steps: None,
        ..request("a red kite", 7)
    };
    let mut steps = 0;
    let drawn = pipeline.draw(&own, &mut |step| {
        steps += 1;
        assert_eq!(step.of, 8);
        ControlFlow::Continue(())
    });
    assert_eq!(steps, 8);
    // Eight steps of the usual schedule are another picture.
    tiny.change("model_index.json", |index| {
        index["sample_sigmas"] = serde_json::Value::Null;
    });
    let eight = ImageRequest {
        steps: Some(8),
        ..own
    };
    assert_ne!(
        draw(&open(&tiny), &eight).unwrap().rgba,
        drawn.unwrap().rgba
    );
}

#[test]
fn the_small_autoencoder_beside_a_model_makes_its_previews() {
    let tiny = Tiny::new("sd15");
    let pipeline = open(&tiny);
    let mut seen = Vec::new();
    pipeline
        .draw(&request("a red kite", 7), &mut |step| {
            seen.push(pipeline.preview(step.latent).unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    // This one's latents are of 32 x 32, and the small autoencoder makes 8 px of each.
    assert_eq!((seen[0].width_px, seen[0].height_px), (256, 256));
    assert_ne!(seen[0], seen[2]);
    std::fs::remove_dir_all(tiny.part("taesd")).unwrap();
    let without = open(&tiny);
    without
        .draw(&request("a red kite", 7), &mut |step| {
            let preview = without.preview(step.latent).unwrap();
            assert_eq!((preview.width_px, preview.height_px), (32, 32));
            ControlFlow::Continue(())
        })
        .unwrap();
}

#[test]
fn previews_cost_little_beside_their_steps() {
    let tiny = Tiny::new("qwen_image_21");
    let pipeline = open(&tiny);
    let wanted = ImageRequest {
        width_px: 192,
        height_px: 192,
        steps: Some(8),
        ..request("a red kite", 7)
    };
    // The weights of a model's previews are found once.
    pipeline
        .draw(&request("a red kite", 7), &mut |step| {
            pipeline.preview(step.latent).unwrap();
            ControlFlow::Continue(())
        })
        .unwrap();
    let (mut of_previews, begun) = (std::time::Duration::ZERO, std::time::Instant::now());
    pipeline
        .draw(&wanted, &mut |step| {
            let begun = std::time::Instant::now();
            pipeline.preview(step.latent).unwrap();
            of_previews += begun.elapsed();
            ControlFlow::Continue(())
        })
        .unwrap();
    let share = of_previews.as_secs_f64() / begun.elapsed().as_secs_f64();
    println!("previews: {:.3} % of a run of 8 steps", 100.0 * share);
    assert!(share < 0.03, "{share}");
}
